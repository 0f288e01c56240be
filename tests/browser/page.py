"""Looks at pages of `kvfair show --html` in Chromium, and in Firefox where it is installed. Prints what was seen, and a
line for each thing that is wrong.

page.py FOLDER AXE: FOLDER has NAME.html and NAME.json for each name in PAGES and GROWTH, reproduced.html, hostile.html,
many.html (with hostile labels), bytes.html (with bytes on disk) and warned.html (noisy, of a debug build), and a folder
"published" with the pages of docs/results; AXE is the file axe.min.js. Exit code 1 if anything is wrong.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PAGES = ["fans", "noisy", "getset", "rates"]
# The pages of `kvfair growth` and of `kvfair reproduce`.
GROWTH = "growth"
REPRODUCED = "reproduced"
# Of two runs, which a picture lays side by side.
MACHINES = "machines"
# Pages with charts, and how many they have.
CHARTS = {"getset": 6, "rates": 5, GROWTH: 8}
# Those of whole jobs, with pictures of ratios and a choice of the base.
COMPARED = ["fans", "noisy"]
# What a page of 10,000 records may take on a quiet machine, in seconds, and how much longer on a busy one.
PAINTED_S, USABLE_S, SORTED_S, FILTERED_S, BUSY = 0.3, 1.0, 0.1, 0.1, 10
PDF_PAGES_MAX = 14
# A screen on which the verdict and the first picture are to be seen without scrolling, in pixels.
SCREEN = (1280, 900)
# The widths of a telephone, of a tablet and of a desk, in pixels, and how many words may stand above the first picture.
WIDTHS = [390, 768, 1280]
WORDS_MAX, TITLE_WORDS_MAX = 60, 14
FIREFOX_S = 120
# Columns of the page's table and fields of `show --json`, with what one unit of the field is in the page's.
COLUMNS = [
    ("seconds", "took_s", 1), ("vs best", "vs_best", 1), ("CPU vs least", "cpu_vs_least", 1), ("ops", "ops", 1),
    ("commands", "commands", 1), ("trials", "trials", 1), ("op p50", "latency_us_p50", 1e-6),
    ("op p99", "latency_us_p99", 1e-6), ("op max", "latency_us_max", 1e-6), ("cores", "cores_used", 1),
]
# What the units of the page are worth; a number without one is itself.
WORTH = {"k": 1e3, "M": 1e6, "ns": 1e-9, "us": 1e-6, "ms": 1e-3}
# The same of the tables of a sweep, by their captions: a line a step, a column a target.
SWEEPS = re.compile("(set|get|run)s per second$")


# Its code as a key.
TAB = 9


def browser():
    options = webdriver.ChromeOptions()
    for option in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1000,800"]:
        options.add_argument(option)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


class Looked:
    """What is wrong, and what was seen."""

    def __init__(self, driver, folder):
        self.driver, self.folder, self.wrong = driver, folder, 0

    def open(self, name):
        # What was logged of the page before is not of this one.
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.driver.get(f"file://{self.folder}/{name}.html")

    def must(self, is_so, words):
        if not is_so:
            self.wrong += 1
            print(f"WRONG {words}")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def press(self, key, code):
        """One key, as the keyboard sends it to what has the focus."""
        for kind in ["rawKeyDown", "keyUp"]:
            self.cdp("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def shows(self, name, how):
        """Verdict, rows and pictures are there and take room."""
        heading, rows, pictures = self.script("""
            const seen = choice => [...document.querySelectorAll(choice)].filter(one => one.checkVisibility());
            const takes_room = ({width, height}) => width > 50 && height > 50;
            return [seen('h1').map(one => one.innerText).join(), seen('tbody tr').length,
                seen('svg').filter(one => takes_room(one.getBoundingClientRect())).length];""")
        self.must(len(heading) > 10, f"{name}, {how}: no verdict")
        self.must(rows, f"{name}, {how}: no row of a table")
        self.must(pictures, f"{name}, {how}: no picture")


def no_error_was_logged(looked, name):
    errors = looked.driver.get_log("browser")
    looked.must(not errors, f"{name}: console {errors}")


def nothing_is_loaded_and_no_error(looked, name):
    looked.open(name)
    asked = [json.loads(line["message"])["message"] for line in looked.driver.get_log("performance")]
    urls = [line["params"]["request"]["url"] for line in asked if line["method"] == "Network.requestWillBeSent"]
    looked.must(len(urls) == 1 and urls[0].endswith(f"/{name}.html"), f"{name}: requests {urls}")
    no_error_was_logged(looked, name)


def it_is_readable_without_scripts_and_styles(looked, name):
    looked.cdp("Emulation.setScriptExecutionDisabled", value=True)
    looked.open(name)
    looked.shows(name, "without scripts")
    looked.cdp("Emulation.setScriptExecutionDisabled", value=False)
    looked.open(name)
    looked.shows(name, "with scripts")
    looked.script("document.querySelectorAll('style').forEach(sheet => sheet.remove());"
                  "document.querySelectorAll('[style]').forEach(one => one.removeAttribute('style'))")
    looked.shows(name, "without styles")


def tables(looked):
    """Of each table of targets: its caption, and its rows with heading to cell, as text and as number."""
    return looked.script("""
        return [...document.querySelectorAll('table.sorted')].map(table => {
            const heads = table.tHead ? [...table.tHead.rows[0].cells].map(head => head.textContent) : [];
            const rows = [...table.querySelectorAll('tr.row')].map(row => Object.fromEntries(heads.map((head, place) =>
                [head, {text: row.cells[place]?.textContent, number: row.cells[place]?.dataset.v}])));
            return [table.caption.textContent, rows];
        })""")


def pairs(caption, row, shown):
    """Cells of the page's row, each with its number in `show --json`."""
    if "target" in row:
        ours = [one for one in shown if one["target"] == row["target"]["text"]]
        if len(ours) == 1:
            yield from ((heading, row.get(heading), field, ours[0].get(field), unit) for heading, field, unit in COLUMNS)
    sweep = SWEEPS.match(caption)
    for target, cell in row.items() if sweep else []:
        for one in shown:
            step = one["rate_per_s"] if "per second" in row else one["clients"]
            of_row = row["per second" if "per second" in row else "clients"]["number"]
            if one["target"] == target and one["part"] == sweep[1] and step == float(of_row):
                yield f"{target} at {step}", cell, "units_per_s", one["units_per_s"], 1


def its_numbers_are_those_of_show(looked, name):
    looked.open(name)
    shown = json.loads((looked.folder / f"{name}.json").read_text())["rows"]
    seen = set()
    for caption, rows in tables(looked):
        for row in rows:
            for what, cell, field, value, unit in pairs(caption, row, shown):
                if cell is None or value is None:
                    continue
                # The first number of the text, as in "about 1.2x [1.1-1.3]", "39 k*", "427 us".
                digits = re.search(r"([\d,]+(?:\.(\d+))?) ?(\w*)", cell["text"])
                if digits is None:
                    continue
                seen.add(what if field != "units_per_s" else field)
                worth = WORTH.get(digits[3], 1)
                owed, told = value * unit / worth, float(digits[1].replace(",", ""))
                looked.must(abs(told - owed) <= 0.501 * 10 ** -len(digits[2] or ""),
                            f"{name}, {caption}: {what} is {cell['text']}, and {field} is {value}")
                looked.must(cell["number"] is None or abs(float(cell["number"]) - told * worth) <= 1e-9 * worth * told,
                            f"{name}, {caption}: {what} is {cell['text']}, and is sorted as {cell['number']}")
    return seen


def hostile_labels_are_text(looked):
    looked.open("hostile")
    text = looked.script("return document.body.textContent")
    looked.must("<script>alert(1)</script>" in text, "hostile: the label is not shown")
    looked.must(not looked.driver.find_elements(By.TAG_NAME, "img"), "hostile: a label became an image")
    scripts = looked.script("return document.scripts.length")
    looked.must(scripts == 3, f"hostile: {scripts} scripts")
    no_error_was_logged(looked, "hostile")


def bodies(looked):
    """Of each table of targets its rows as text."""
    return looked.script("""return [...document.querySelectorAll('table.sorted')].map(table =>
        [...table.querySelectorAll('tr.row')].map(row => [...row.cells].map(cell => cell.textContent)))""")


def choose(looked, label, value):
    """Chooses from the list behind these words, as a person does; False where there is none."""
    return looked.script("""
        const label = [...document.querySelectorAll('label')].find(one => one.firstChild.data.startsWith(arguments[0]));
        if (!label) return false;
        label.querySelector('select').value = arguments[1];
        label.querySelector('select').dispatchEvent(new Event('change'));
        return label.querySelector('select').value === arguments[1];""", label, value)


def pictures_seen(looked):
    return looked.script("""return [...document.querySelectorAll('section[data-measure]')]
        .filter(one => one.checkVisibility()).map(one => one.querySelector('h2').textContent)""")


def a_measure_is_chosen(looked):
    looked.open("bytes")
    usual = pictures_seen(looked)
    looked.must(usual == ["Time"], f"bytes: at first {usual} are seen")
    for measure, titles in [("memory", ["Memory"]), ("disk", ["Bytes on disk", "Bytes written"]), ("CPU", ["CPU per op"]),
                            ("time", usual)]:
        tabs = [one for one in looked.driver.find_elements(By.CSS_SELECTOR, ".tabs button") if one.text == measure]
        looked.must(len(tabs) == 1, f"bytes: {len(tabs)} tabs {measure}")
        for tab in tabs:
            tab.click()
        seen = pictures_seen(looked)
        looked.must(seen == titles, f"bytes: of the measure '{measure}' {seen} are seen")
        pressed = [one.text for one in looked.driver.find_elements(By.CSS_SELECTOR, ".tabs [aria-pressed=true]")]
        looked.must(pressed == [measure], f"bytes: {pressed} are pressed, and {measure} was chosen")
    # The address alone gives the same.
    looked.driver.get("about:blank")
    looked.driver.get(f"file://{looked.folder}/bytes.html#cpu")
    looked.must(pictures_seen(looked) == ["CPU per op"], f"bytes: #cpu shows {pictures_seen(looked)}")
    no_error_was_logged(looked, "bytes")


def the_answer_comes_first(looked, name):
    """Few words stand above the first picture, and nothing is clipped or lies beside the screen, however wide it is."""
    for width in WIDTHS:
        looked.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        looked.open(name)
        above, title, beside, cut = looked.script("""
            const figure = document.querySelector('figure');
            const words = text => text.split(/\\s+/).filter(word => /[\\p{L}\\p{N}]/u.test(word)).length;
            const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
            let above = 0;
            while (figure && texts.nextNode()) {
                const before = figure.compareDocumentPosition(texts.currentNode) & Node.DOCUMENT_POSITION_PRECEDING;
                const is_seen = texts.currentNode.parentElement.checkVisibility();
                if (before && is_seen) above += words(texts.currentNode.data);
            }
            const is_scrolled = one => one.closest('.scroll, svg, script');
            const beside = [...document.querySelectorAll('main *')].filter(one => one.checkVisibility() && !is_scrolled(one))
                .filter(one => { const box = one.getBoundingClientRect(); return box.right > innerWidth + 1 || box.left < -1; });
            const cut = [];
            for (const svg of document.querySelectorAll('svg')) {
                const picture = svg.getBoundingClientRect();
                if (!picture.width) continue;
                for (const text of svg.querySelectorAll('text')) {
                    const box = text.getBoundingClientRect();
                    if (box.left < picture.left - 1 || box.right > picture.right + 1) cut.push(text.textContent);
                }
            }
            return [above, words(document.querySelector('h1').textContent), beside.map(one => one.outerHTML.slice(0, 80)),
                cut.slice(0, 5)];""")
        looked.must(above <= WORDS_MAX, f"{name}, {width} px: {above} words above the first picture")
        looked.must(not beside, f"{name}, {width} px: beside the screen: {beside[:3]}")
        looked.must(not cut, f"{name}, {width} px: cut at the edge of a picture: {cut}")
        looked.driver.save_screenshot(str(looked.folder / f"{name.replace('/', '-')}-{width}.png"))
    looked.cdp("Emulation.clearDeviceMetricsOverride")
    return above, title


def names_of_targets_never_touch(looked, name):
    """Texts of a picture of rows keep apart from each other, wide and narrow."""
    for width in WIDTHS:
        looked.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        looked.open(name)
        touching = looked.script("""
            const touching = [];
            for (const svg of document.querySelectorAll('section[data-measure] svg')) {
                const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()])
                    .filter(([, box]) => box.width > 0);
                boxes.forEach(([one, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
                    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                    if (across > 1 && down > 4) touching.push(`${one} / ${other}`);
                }));
            }
            return touching;""")
        looked.must(not touching, f"{name}, {width} px: texts touch: {touching[:5]}")
    looked.cdp("Emulation.clearDeviceMetricsOverride")


def a_base_is_chosen(looked, name):
    looked.open(name)
    before = bodies(looked)
    columns = json.loads(looked.script("return document.getElementById('bases').textContent"))
    base = columns[0]["targets"][len(columns[0]["cells"]) - 1]
    looked.must(choose(looked, "Compare with", base), f"{name}: {base} cannot be chosen")
    swapped = 0
    for caption, rows in tables(looked):
        for row in rows:
            for column in columns:
                cell = row.get(f"{column['before']} {base}")
                owed = column["cells"][column["targets"].index(base)][column["targets"].index(row["target"]["text"])]
                swapped += cell is not None
                looked.must(cell is None or cell["text"] == owed, f"{name}, {caption}: {cell} beside {base}, not {owed}")
                looked.must(column["heading"] not in row, f"{name}, {caption}: {column['heading']} is still there")
    looked.must(swapped >= 2, f"{name}: {swapped} cells were exchanged")
    # The chart compares with the same one.
    drawn = looked.script("""return Object.fromEntries([...document.querySelectorAll('[data-measure=time] .wide g[data-row]')]
        .map(row => [row.dataset.row, row.querySelector('.ratio text')?.textContent]))""")
    cells = columns[0]["cells"][columns[0]["targets"].index(base)]
    owed = {target: cell.split(",")[0].split(" [")[0] for target, cell in zip(columns[0]["targets"], cells) if cell}
    looked.must(drawn.items() >= owed.items() and drawn[base] == "1.00x", f"{name}: the chart has {drawn}, not {owed}")
    address = looked.script("return location.href")
    looked.must("base=" in address, f"{name}: {address} has no base")
    chosen = bodies(looked)
    # The address alone gives the same.
    looked.driver.get("about:blank")
    looked.driver.get(address)
    looked.must(bodies(looked) == chosen, f"{name}: {address} shows another base")
    # A click on a name does the same as the list.
    names = [one for one in looked.driver.find_elements(By.CSS_SELECTOR, "tr.row th button") if one.text == base]
    names[0].click()
    looked.must(bodies(looked) == before, f"{name}: a click on {base} does not end the choice")
    names[0].click()
    looked.must(bodies(looked) == chosen, f"{name}: a click on {base} does not choose it")
    looked.must(choose(looked, "Compare with", "") and bodies(looked) == before, f"{name}: the best does not come back")
    no_error_was_logged(looked, name)


def the_first_screen_has_a_picture(looked, name):
    looked.driver.set_window_size(*SCREEN)
    looked.cdp("Emulation.setDeviceMetricsOverride", width=SCREEN[0], height=SCREEN[1], deviceScaleFactor=1, mobile=False)
    looked.open(name)
    bottom = looked.script("return document.querySelector('section[data-measure] svg').getBoundingClientRect().bottom")
    looked.must(bottom <= SCREEN[1], f"{name}: the first picture ends at {bottom:.0f} of {SCREEN[1]} px")
    looked.driver.save_screenshot(str(looked.folder / f"{name}-first.png"))
    looked.cdp("Emulation.clearDeviceMetricsOverride")


def colours_of_the_system_are_kept(looked, name):
    """Where the system chooses the colours, pictures and text have those of the system alone, and contrast."""
    for scheme in ["light", "dark"]:
        features = [{"name": "forced-colors", "value": "active"}, {"name": "prefers-color-scheme", "value": scheme}]
        looked.cdp("Emulation.setEmulatedMedia", features=features)
        looked.open(name)
        looked.must(looked.script("return matchMedia('(forced-colors: active)').matches"), "no forced colours here")
        strange, faint = looked.script("""
            const probe = document.body.appendChild(document.createElement('i'));
            const system = name => (probe.style.color = name, getComputedStyle(probe).color);
            probe.style.forcedColorAdjust = 'none';
            const names = ['Canvas', 'CanvasText', 'LinkText', 'GrayText'];
            const known = Object.fromEntries(names.map(name => [system(name), name]));
            const canvas = system('Canvas');
            probe.remove();
            const light = colour => {
                const [r, g, b] = colour.match(/[0-9.]+/g).map(part => part / 255)
                    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            const strange = new Set(), faint = new Set();
            for (const one of document.querySelectorAll('svg *')) {
                if (one instanceof SVGTitleElement) continue;
                for (const what of ['fill', 'stroke']) {
                    const colour = getComputedStyle(one)[what];
                    if (colour === 'none') continue;
                    if (!known[colour]) strange.add(`${one.tagName} ${what} ${one.getAttribute(what)} ${colour}`);
                    const is_text = one.tagName === 'text' && what === 'fill';
                    if (is_text && contrast(light(colour), light(canvas)) < 4.5) faint.add(`${one.textContent} ${colour}`);
                }
            }
            for (const circle of document.querySelectorAll('svg circle')) {
                const {fill, stroke} = getComputedStyle(circle);
                if (contrast(light(stroke === 'none' ? fill : stroke), light(canvas)) < 3) faint.add('a mark');
            }
            return [[...strange], [...faint]];""")
        looked.must(not strange, f"{name}, {scheme}: not of the system: {strange[:5]}")
        looked.must(not faint, f"{name}, {scheme}: faint: {faint[:5]}")
        looked.driver.save_screenshot(str(looked.folder / f"{name}-forced-{scheme}.png"))
    looked.cdp("Emulation.setEmulatedMedia", features=[])


def no_picture_cuts_a_word(looked, name):
    looked.open(name)
    cut = looked.script("""
        const cut = [];
        for (const svg of document.querySelectorAll('svg')) {
            const picture = svg.getBoundingClientRect();
            if (picture.width === 0) continue;
            for (const text of svg.querySelectorAll('text')) {
                const box = text.getBoundingClientRect();
                const is_cut = box.left < picture.left - 1 || box.right > picture.right + 1
                    || box.top < picture.top - 1 || box.bottom > picture.bottom + 1;
                if (is_cut) cut.push(`${text.textContent} ${box.right - picture.right}`);
            }
        }
        return cut;""")
    looked.must(not cut, f"{name}: cut at the edge of a picture: {cut[:5]}")


def the_keyboard_is_enough(looked, name):
    looked.open(name)
    count = looked.script("""
        const controls = "button, summary, select, input, [tabindex='0']";
        window.unreached = new Set([...document.querySelectorAll(controls)].filter(one => one.checkVisibility()));
        document.addEventListener('focusin', event => unreached.delete(event.target));
        return unreached.size;""")
    looked.must(count > 3, f"{name}: {count} controls")
    for _ in range(count + 5):
        looked.press("Tab", TAB)
    missed = looked.script("return [...unreached].map(one => one.innerText || one.getAttribute('aria-label'))")
    looked.must(not missed, f"{name}: Tab does not reach {missed}")
    summary = looked.driver.find_element(By.TAG_NAME, "summary")
    summary.send_keys(Keys.ENTER)
    looked.must(looked.script("return arguments[0].parentNode.open", summary), f"{name}: Enter opens no details")
    # Sorting by the keyboard.
    button = looked.driver.find_element(By.CSS_SELECTOR, "table.sorted th button")
    button.send_keys(Keys.ENTER)
    sort = looked.script("return arguments[0].parentNode.getAttribute('aria-sort')", button)
    looked.must(sort == "ascending", f"{name}: Enter on a heading sorts {sort}")
    no_error_was_logged(looked, name)


def charts_are_walked_by_arrow_keys(looked, name):
    """The values of each point are told, and a line goes through the points that it tells of."""
    looked.open(name)
    figures = looked.driver.find_elements(By.XPATH, "//figure[.//th[@data-walk]]")
    looked.must(len(figures) == CHARTS[name], f"{name}: {len(figures)} charts to walk through, not {CHARTS[name]}")
    for figure in figures:
        svg = figure.find_element(By.TAG_NAME, "svg")
        said = figure.find_element(By.CSS_SELECTOR, "[role=status]")
        heads, rows, drawn, stops = looked.script("""
            const table = arguments[0].querySelector('th[data-walk]').closest('table');
            const texts = row => [...row.cells].map(cell => cell.textContent);
            const drawn = [...arguments[0].querySelectorAll('polyline')].flatMap(one => [...one.points].map(at => at.x));
            const stops = [...arguments[0].querySelectorAll('[tabindex="0"]')].filter(one => !one.closest('details'));
            return [texts(table.tHead.rows[0]), [...table.tBodies[0].rows].map(texts), drawn, stops.length];""", figure)
        where = f"{name}, {svg.find_element(By.TAG_NAME, 'title').get_attribute('textContent')[:40]}"
        looked.must(stops == 1, f"{where}: {stops} tab stops")
        owed = ["; ".join([row[0], *(f"{head}: {cell}" for head, cell in zip(heads[1:], row[1:]) if cell)])
                for row in rows]

        def pressed(key):
            """What is told then, and where the line is."""
            looked.press(*key)
            return tuple(looked.script("""
                return [arguments[0].innerText, arguments[1].querySelector('.guide')?.getBBox().x]""", said, svg))

        looked.script("arguments[0].focus()", svg)
        right, left, home, end = ("ArrowRight", 39), ("ArrowLeft", 37), ("Home", 36), ("End", 35)
        seen = [pressed(right) for _ in rows]
        looked.must([told for told, _ in seen] == owed, f"{where}: {[told for told, _ in seen]} is told, not {owed}")
        at = [x for _, x in seen]
        # A long line has numbers at some of its places only.
        off = [x for x in at if x is None or min(abs(x - other) for other in drawn) > 0.11]
        looked.must(not off and at == sorted(set(at)), f"{where}: lines at {at}, points at {sorted(set(drawn))}")
        last = len(rows) - 1
        for key, place in [(right, last), (left, max(last - 1, 0)), (home, 0), (left, 0), (end, last)]:
            told = pressed(key)
            looked.must(told == (owed[place], at[place]), f"{where}: key {key!r} tells {told}")
        told = pressed(("Tab", TAB))
        looked.must(told == ("", None), f"{where}: {told} is still there when the chart is left")
    no_error_was_logged(looked, name)


def the_charts_of_growth_have_its_numbers(looked):
    """A cell is the cost of all n by n, and those of values are in nanoseconds."""
    looked.open(GROWTH)
    grown = json.loads((looked.folder / f"{GROWTH}.json").read_text())
    titles = {"value_bytes": "CPU ns of a {}, for each byte of its value",
              "batch": "CPU us of a {}-many, for each of its keys",
              "keys": "CPU us of a {}, by the keys held", "clients": "CPU us of a {}, by the clients"}
    charts = looked.script("""return [...document.querySelectorAll('figure details')].map(one => [one.textContent,
        [...one.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.textContent))])""")
    compared = 0
    for one in grown["rows"]:
        title = titles[one["over"]].format(one["part"])
        found = [rows for text, rows in charts if text.startswith(f"Numbers: {title}")]
        looked.must(len(found) == 1, f"growth: {len(found)} charts '{title}'")
        heads, *rows = found[0]
        column = next(place for place, head in enumerate(heads) if head.split(",")[0] == one["target"])
        is_out = one["verdict"] == "out_of_proportion"
        looked.must(heads[column].endswith(", out of proportion") == is_out, f"growth: {heads[column]} in '{title}'")
        for size in one["sizes"]:
            cell = next(row[column] for row in rows if row[0] == f"{size['n']:,}")
            worth = (1e3 if one["over"] == "value_bytes" else 1) / size["n"]
            fields = ["cpu_us_median", "cpu_us_lowest", "cpu_us_highest"]
            for digits, field in zip(re.finditer(r"\d+(?:\.(\d+))?", cell), fields):
                compared += 1
                looked.must(abs(float(digits[0]) - size[field] * worth) <= 0.501 * 10 ** -len(digits[1] or ""),
                            f"growth, {title}, {one['target']}: {cell} of {size['n']}, and {field} is {size[field]}")
    looked.must(compared > 50, f"growth: {compared} numbers compared")
    no_error_was_logged(looked, GROWTH)


def axe_finds_nothing(looked, name, axe):
    for scheme in ["light", "dark"]:
        looked.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        looked.open(name)
        looked.script("document.querySelectorAll('details').forEach(details => details.open = true)")
        looked.script(axe)
        found = looked.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then(found => done(found.violations), error => done([String(error)]))")
        for one in found:
            where = [node["html"][:120] for node in one["nodes"][:3]] if isinstance(one, dict) else one
            looked.must(False, f"{name}, {scheme}: axe {one['id'] if isinstance(one, dict) else one}: {where}")
        looked.driver.save_screenshot(str(looked.folder / f"{name}-{scheme}.png"))
    looked.cdp("Emulation.setEmulatedMedia", features=[])


def it_fits_a_telephone(looked, name):
    looked.cdp("Emulation.setDeviceMetricsOverride", width=320, height=640, deviceScaleFactor=1, mobile=True)
    looked.open(name)
    looked.script("document.querySelectorAll('details').forEach(details => details.open = true)")
    width = looked.script("return document.documentElement.scrollWidth")
    looked.must(width <= 320, f"{name}: {width} px wide where there are 320")
    looked.driver.save_screenshot(str(looked.folder / f"{name}-320.png"))
    looked.cdp("Emulation.clearDeviceMetricsOverride")


def it_can_be_printed(looked, name):
    looked.open(name)
    pdf = base64.b64decode(looked.cdp("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    (looked.folder / f"{name}.pdf").write_bytes(pdf)
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    looked.must(1 <= pages <= PDF_PAGES_MAX, f"{name}: {pages} pages of paper")
    # What is folded, and measures that were not chosen, stand on paper.
    looked.cdp("Emulation.setEmulatedMedia", media="print")
    find_hidden = """
        const hidden = one => !one.checkVisibility({contentVisibilityAuto: true}) || !one.getBoundingClientRect().height;
        const inside = [...document.querySelectorAll('details > :not(summary), section[data-measure] .wide svg')];
        return inside.filter(hidden).map(one => one.parentNode.textContent.slice(0, 40));"""
    # On a busy machine the browser takes up the new medium a moment later.
    for _ in range(50):
        hidden = looked.script(find_hidden)
        if not hidden:
            break
        time.sleep(0.1)
    controls = looked.script("return [...document.querySelectorAll('label, p > button')].filter(one => one.checkVisibility())"
                             ".map(one => one.textContent)")
    looked.must(not hidden, f"{name}: not on paper: {hidden}")
    looked.must(not controls, f"{name}: on paper: {controls}")
    looked.cdp("Emulation.setEmulatedMedia", media="")
    return pages


def until_painted(looked, kind, act):
    """How long the browser took from an event of that kind to the next picture, in seconds, as it measures that itself:
    what drives it takes longer to press a key. What took less than 16 ms it does not tell."""
    looked.script("""
        window.took = [];
        const seen = new PerformanceObserver(list => took.push(...list.getEntries()));
        seen.observe({type: 'event', durationThreshold: 16});""")
    act()
    # An entry comes after the picture.
    looked.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 300))")
    took = looked.script("return took.filter(one => one.name === arguments[0]).map(one => one.duration)", kind)
    return max(took, default=16) / 1e3


def many_records_are_no_burden(looked):
    looked.open("many")
    painted = "return performance.getEntriesByType('paint').map(entry => entry.startTime)"
    paint = WebDriverWait(looked.driver, 20).until(lambda driver: driver.execute_script(painted))
    usable = looked.script("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    nodes = looked.script("return document.querySelectorAll('*').length")
    sorted_s = until_painted(looked, "click", looked.driver.find_element(By.CSS_SELECTOR, "table.sorted th button").click)
    field = looked.driver.find_elements(By.CSS_SELECTOR, "input[type=search]")
    looked.must(field, "10,000 records: no filter")
    rows = "return [...document.querySelectorAll('table.sorted')].map(one => [...one.querySelectorAll('tr.row')]" \
           ".filter(row => row.checkVisibility()).map(row => row.cells[0].textContent).sort())[0]"
    # One letter, as each letter filters anew.
    filtered_s = until_painted(looked, "input", lambda: field[0].send_keys("+")) if field else 0.0
    looked.must(looked.script(rows) == ["redis+unix", "redis+unix?second"], f"10,000 records: filtered by '+': {looked.script(rows)}")
    # Its packed table.
    looked.script("document.querySelectorAll('details').forEach(details => details.open = true)")
    WebDriverWait(looked.driver, 20).until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "table[data-rows] tbody tr"))
    hostile = looked.script("return document.querySelector('table[data-rows] tbody').textContent")
    looked.must("<script>alert(1)</script><img src=x" in hostile, "10,000 records: the packed rows have no hostile label")
    looked.must("\"'" in hostile, "10,000 records: quotes of the label are no text")
    for name, owed in [("script", 3), ("img", 0), ("table[data-rows] td *", 0)]:
        found = len(looked.driver.find_elements(By.CSS_SELECTOR, name))
        looked.must(found == owed, f"10,000 records: {found} elements {name}")
    no_error_was_logged(looked, "many")
    painted_s, usable_s = max(paint) / 1e3, usable / 1e3
    size = (looked.folder / "many.html").stat().st_size
    print(f"10,000 records: {size} bytes, {nodes} nodes; painted after {painted_s:.2f} s (owed {PAINTED_S} on a quiet "
          f"machine), usable after {usable_s:.2f} s ({USABLE_S}), sorted in {sorted_s:.2f} s ({SORTED_S}), filtered in "
          f"{filtered_s:.2f} s ({FILTERED_S})")
    for took_s, owed_s, what in [(painted_s, PAINTED_S, "painted"), (usable_s, USABLE_S, "usable"),
                                 (sorted_s, SORTED_S, "sorted"), (filtered_s, FILTERED_S, "filtered")]:
        looked.must(took_s <= BUSY * owed_s, f"10,000 records: {what} after {took_s:.2f} s")


def distinct_rows(png):
    """How many lines of pixels differ from each other: one, or a few, in a blank picture."""
    at, packed, width = 8, b"", 0
    while at < len(png):
        length, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
        if kind == b"IHDR":
            width, depth, colours = int.from_bytes(png[at + 8:at + 12], "big"), png[at + 16], png[at + 17]
            row = 1 + width * depth // 8 * {0: 1, 2: 3, 6: 4}[colours]
        packed += png[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    pixels = zlib.decompress(packed)
    return len({pixels[start:start + row] for start in range(0, len(pixels), row)})


def a_dot_for_each_machine(looked):
    """Both runs say the same of each claim: each has a line with a dot right of 1x, and the title has the words."""
    looked.open(MACHINES)
    claims, first, second, right, title = looked.script("""
        const svg = document.querySelector('figure svg');
        const texts = [...svg.querySelectorAll('text')];
        const lanes = number => texts.filter(one => one.textContent.startsWith(`run ${number}: `)).length;
        const one = texts.find(one => one.textContent === '1x').getBBox();
        const middle = one.x + one.width / 2, below = texts.find(one => one.textContent.startsWith('run 1: ')).getBBox().y;
        const dots = [...svg.querySelectorAll('circle')].map(dot => dot.getBBox()).filter(dot => dot.y > below - 4);
        const claims = document.querySelector('table').tBodies[0].rows.length;
        return [claims, lanes(1), lanes(2), dots.filter(dot => dot.x + dot.width / 2 > middle).length,
                svg.querySelector('title').textContent];
    """)
    looked.must(claims > 0 and [first, second, right] == [claims, claims, 2 * claims],
                f"machines: {claims} claims, lines {first} and {second}, {right} dots right of 1x")
    looked.must("run 1: " in title and "run 2: " in title, f"machines: the picture's words are {title}")


def firefox_shows_it_too(looked, name):
    firefox = shutil.which("firefox") or shutil.which("firefox-esr")
    if firefox is None:
        print("!! neither firefox nor firefox-esr is here: pages NOT looked at in Firefox")
        return
    picture, profile = looked.folder / f"{name}-firefox.png", looked.folder / "firefox"
    profile.mkdir(exist_ok=True)
    try:
        said = subprocess.run([firefox, "--headless", "--no-remote", "--profile", profile, "--window-size", "1280,900",
                               "--screenshot", picture, f"file://{looked.folder}/{name}.html"],
                              env={**os.environ, "HOME": str(looked.folder)}, timeout=FIREFOX_S,
                              capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        looked.must(False, f"{name}: Firefox made no picture in {FIREFOX_S} s")
        return
    if not picture.exists():
        looked.must(False, f"{name}: Firefox made no picture: {said.stderr[-500:]}")
        return
    rows = distinct_rows(picture.read_bytes())
    looked.must(rows > 50, f"{name}: the picture of Firefox is blank: {rows} lines differ")
    print(f"firefox: a picture of {name} with {rows} different lines of pixels")


def main(folder, axe):
    driver = browser()
    try:
        looked = Looked(driver, Path(folder))
        numbers, papers = set(), []
        for name in PAGES + [GROWTH, REPRODUCED]:
            nothing_is_loaded_and_no_error(looked, name)
            it_is_readable_without_scripts_and_styles(looked, name)
            numbers |= its_numbers_are_those_of_show(looked, name) if name in PAGES else set()
            the_keyboard_is_enough(looked, name)
            axe_finds_nothing(looked, name, Path(axe).read_text())
            it_fits_a_telephone(looked, name)
            papers.append(it_can_be_printed(looked, name))
            colours_of_the_system_are_kept(looked, name)
            no_picture_cuts_a_word(looked, name)
        nothing_is_loaded_and_no_error(looked, MACHINES)
        it_is_readable_without_scripts_and_styles(looked, MACHINES)
        a_dot_for_each_machine(looked)
        axe_finds_nothing(looked, MACHINES, Path(axe).read_text())
        it_fits_a_telephone(looked, MACHINES)
        it_can_be_printed(looked, MACHINES)
        colours_of_the_system_are_kept(looked, MACHINES)
        no_picture_cuts_a_word(looked, MACHINES)
        for name in CHARTS:
            charts_are_walked_by_arrow_keys(looked, name)
        the_charts_of_growth_have_its_numbers(looked)
        for name in COMPARED + ["warned"]:
            the_first_screen_has_a_picture(looked, name)
        for name in COMPARED:
            a_base_is_chosen(looked, name)
        a_measure_is_chosen(looked)
        first = []
        published = sorted(path.stem for path in (looked.folder / "published").glob("*.html"))
        looked.must(published, "no published page is here")
        for name in PAGES + [GROWTH, REPRODUCED, MACHINES] + [f"published/{name}" for name in published]:
            above, title = the_answer_comes_first(looked, name)
            first.append(f"{name} {above}")
            looked.must(name not in PAGES or title <= TITLE_WORDS_MAX, f"{name}: {title} words in the title")
        for name in PAGES + ["bytes"]:
            names_of_targets_never_touch(looked, name)
        print(f"words above the first picture: {', '.join(first)}")
        owed = {heading for heading, _, _ in COLUMNS} | {"units_per_s"}
        looked.must(numbers >= owed, f"not compared with show --json: {sorted(owed - numbers)}")
        hostile_labels_are_text(looked)
        many_records_are_no_burden(looked)
        firefox_shows_it_too(looked, "fans")
        print(f"printed: {', '.join(f'{name} {pages}' for name, pages in zip(PAGES + [GROWTH, REPRODUCED], papers))} pages")
        print(f"{driver.capabilities['browserName']} {driver.capabilities['browserVersion']}: {looked.wrong} wrong, "
              f"{len(numbers)} columns compared")
        return 1 if looked.wrong else 0
    finally:
        driver.quit()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
