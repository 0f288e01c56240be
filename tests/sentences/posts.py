"""What `kvfair reproduce` shows of each post, beside the records of its run. What is compared stands in the post's file."""

import json
import math
import os
import re

import points
from intervals import CLAIM_BLOCKS, Ratio, Standing, median
from records import Run, read
from written import NUMBER, agrees, interval, number

POSTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/report/src/reproduce/posts")
LEVEL = 1.1
STILL_SO, REVERSED, NOT_TOLD, NOT_RUN = "still so", "reversed", "cannot be told", "cannot be run here"
WORST_FIRST = (REVERSED, NOT_TOLD, STILL_SO)
TOLD = 2
SECONDS_LEAST = 3
CELL = rf"(?:-|(?:about )?{NUMBER}x?(?: \[{NUMBER}-{NUMBER}\])?)"


def unsteadiness(trial):
    """The standard deviation of the requests of whole seconds, in their mean; the last second is not whole."""
    whole = (trial.run or {}).get("units_by_second", [])[:-1]
    if len(whole) < SECONDS_LEAST:
        return None
    mean = sum(whole) / len(whole)
    return math.sqrt(sum((units - mean) ** 2 for units in whole) / (len(whole) - 1)) / mean


class Post:
    """A post's file, and the trials of today's run."""

    def __init__(self, number, records):
        with open(os.path.join(POSTS, f"{number}.json"), encoding="utf-8") as file:
            self.data = json.load(file)
        self.run = Run([dict(record, given=record["target"]["label"]) for record in records])
        self.cells = {cell["id"]: (panel, cell) for panel in self.data["panels"] for cell in panel["cells"]}
        self.outcomes = {}
        for record in records:
            self.outcomes.setdefault(record["target"]["label"], []).append(record["outcome"])

    def today(self, cell):
        """What runs for a cell, and what it stands in for; None where nothing does."""
        candidates = [(cell["target"], None)] + [(one["target"], one) for one in cell.get("stand_ins", [])]
        is_run = lambda target: any(one["kind"] not in ("left_out", "missing") for one in self.outcomes.get(target, []))
        return next((one for one in candidates if is_run(one[0])), None)

    def is_left_out(self, cell):
        """It is here, and the run had no time for it."""
        labels = [cell["target"]] + [one["target"] for one in cell.get("stand_ins", [])]
        all_ = [outcome for label in labels for outcome in self.outcomes.get(label, [])]
        return any(one["kind"] == "left_out" and not one.get("absent") for one in all_)

    def name(self, cell, panel=None):
        """As it is shown: with what stands in, and with its panel where panels have cells of the same name."""
        is_twice = sum(other["name"] == cell["name"] for _, other in self.cells.values()) > 1
        name = f"{cell['name']} {panel['title']}" if panel and is_twice and not panel.get("part") else cell["name"]
        today = self.today(cell)
        if not today or not today[1]:
            return name
        program = today[1]["words"].split(" in place of ")[0].rstrip(",").split(" of ")[0]
        return f"{program} for {name} *"

    def phase(self, trial, panel):
        is_here = lambda one: one["name"] == panel["part"] and one["clients"] == panel["clients"]
        return next((one for one in trial.points if is_here(one) and not points.is_disturbed(one)), None)

    def cost(self, kind, panel):
        """What a trial cost at the panel's point, or as a whole."""
        if kind == "memory":
            return lambda trial: trial.peak("anonymous", "shared", "file")
        if kind == "unsteadiness":
            return unsteadiness
        if panel.get("part"):
            of = points.cpu_us_a_request if kind == "cpu" else lambda phase: phase["took_s"] / phase["units"]
            return lambda trial: self.phase(trial, panel) and of(self.phase(trial, panel))
        return (lambda trial: trial.cpu() and trial.cpu() * 1e6 / trial.ops) if kind == "cpu" else self.run.cost

    def by_block(self, target, cost):
        known = ((one.block, cost(one)) for one in self.run.counted if one.name == target)
        return {block: value for block, value in known if value}

    def standings(self, sentence):
        """The cells of a sentence against each other, by point."""
        kind = sentence.get("cost") or self.data["measure"]
        costs, lengths_s, panels = {}, {}, {}
        for name in (name for pair in sentence["pairs"] for name in pair):
            panel, cell = self.cells[name]
            today = self.today(cell)
            point = (panel.get("part"), panel.get("clients"))
            known = self.by_block(today[0], self.cost(kind, panel)) if today else {}
            if known:
                costs.setdefault(point, {})[name] = known
                panels.setdefault(point, panel)
                lengths_s[name] = self.run.lengths_s.get(today[0], 0)
        of = {}
        for point, cells in costs.items():
            controls = [one[:2] for one in self.run.controls_by(self.cost(kind, panels[point]))]
            of[point] = Standing(cells, lengths_s, controls, self.run.most_discarded)
        return kind, of

    def is_limited(self, panel, names):
        """The load generator limits the point of one of these cells."""
        if not panel.get("part"):
            return False
        known = points.of_run(self.run)
        keys = [(panel["part"], panel["clients"], today[0]) for name in names if (today := self.today(self.cells[name][1]))]
        return any(key in known.phases and known.is_limited(key) for key in keys)

    def pair(self, kind, standings, direction, names):
        """The judgement of two cells, and the ratio of the second to the first with its bar, where both were run."""
        panel, first = self.cells[names[0]]
        second = self.cells[names[1]][1]
        todays = [self.today(cell) for cell in (first, second)]
        standing = standings.get((panel.get("part"), panel.get("clients")))
        ratio = standing and standing.ratios.get((names[1], names[0]))
        is_absent = any(not today and not self.is_left_out(cell) for today, cell in zip(todays, (first, second)))
        engines = [bool(today and today[1] and today[1].get("is_engine")) for today in todays]
        if is_absent or engines[0] != engines[1]:
            return NOT_RUN, ratio, None
        if not ratio or kind == "seconds" and self.is_limited(panel, names):
            return NOT_TOLD, ratio, None
        bar = standing.bars[names[0], names[1]]
        judgement = judged(direction, ratio, bar, standing, names)
        is_stand_in = any(today[1] for today in todays)
        return NOT_TOLD if judgement == REVERSED and is_stand_in else judgement, ratio, bar


def judged(direction, ratio, bar, standing, names):
    if ratio.low is None or not bar.is_known:
        return NOT_TOLD
    is_less, is_more = standing.is_less(*names), standing.is_less(*names[::-1])
    if direction == "level":
        if ratio.low >= 1 / LEVEL and ratio.high <= LEVEL:
            return STILL_SO
        return REVERSED if is_less and ratio.low > LEVEL or is_more and ratio.high < 1 / LEVEL else NOT_TOLD
    return STILL_SO if is_less else REVERSED if is_more else NOT_TOLD


def check(report, text, paths):
    """All posts of a text, each beside the records of its run."""
    all_ = [read(path) for path in paths]
    by_number = {records[0]["run"]["command"][1]: records for records in all_}
    parts = re.split(r"(?m)^(\d{3}) (?=\S)", text)
    shown = dict(zip(parts[1::2], parts[2::2]))
    report.fact("posts", [] if sorted(shown) == sorted(by_number) else [f"{sorted(shown)}, files of {sorted(by_number)}"])
    tally = dict.fromkeys((STILL_SO, REVERSED, NOT_TOLD, NOT_RUN), 0)
    in_part = 0
    for number_, words in shown.items():
        post = Post(number_, by_number[number_])
        table, _, sentences = words.partition("\nsentences:\n")
        if not sentences:
            # Without a line of its own above them, sentences begin where a judgement does.
            table, _, sentences = split_at_sentences(words)
        check_table(report, post, table)
        for judgement, is_part in check_sentences(report, post, sentences):
            tally[judgement] += 1
            in_part += is_part
    check_headline(report, text, tally, in_part, len(shown))


def split_at_sentences(words):
    match = re.search(rf"(?m)^  (?={'|'.join((STILL_SO, REVERSED, NOT_TOLD, NOT_RUN))})", words)
    return (words[:match.start()], "", words[match.start():]) if match else (words, "", "")


def counted(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


def check_headline(report, text, tally, in_part, posts):
    behind = {STILL_SO: f" ({in_part} in part)" if in_part else ""}
    counts = ", ".join(f"{count} {judgement}{behind.get(judgement, '')}" for judgement, count in tally.items())
    expected = f"{counted(sum(tally.values()), 'sentence')} of {counted(posts, 'post')}: {counts}."
    told = " ".join(text.split("\n\n")[0].split())
    report.sentence(told, [] if told == expected else [f"the records give: {expected}"])


def check_table(report, post, text):
    """The numbers of today of each row, and the figures of the post."""
    rows, before = [], ""
    for line in text.split("\n"):
        match = re.match(rf"^ (\S.*?)? +({CELL}) +({CELL}) +({CELL}) +({CELL}) +({CELL})$", line)
        if match:
            # A long name has a line of its own.
            rows.append((match[1] or before, *match.groups()[1:]))
        before = line
    cells = list(post.cells.values())
    report.fact(post.data["number"], [] if len(rows) == len(cells) else [f"{len(rows)} rows, {len(cells)} cells"])
    for row, (panel, cell) in zip(rows, cells):
        what = f"{post.data['number']}: {panel['title']} {cell['name']}"
        name = " ".join((row[0] or "").split())
        report.fact(what, [] if name == post.name(cell) else [f"it is called {name!r}, not {post.name(cell)!r}"])
        check_row(report, post, panel, cell, row[1:], what)


def check_row(report, post, panel, cell, texts, what):
    then, then_ratio, today, ratio, cpu = texts
    base_panel, base = base_of(post, panel)
    figures = cell.get("figure"), base.get("figure")
    is_of_time = post.data["unit"] == "seconds"
    known = None not in figures and (figures[0] / figures[1] if is_of_time else figures[1] / figures[0])
    target = post.today(cell)
    seconds = post.cost("seconds", panel)
    of = lambda trial: seconds(trial) and (seconds(trial) if is_of_time else units_of(trial, panel) / seconds(trial))
    values = list(post.by_block(target[0], of).values()) if target else []
    used = list(post.by_block(target[0], post.cost("cpu", panel)).values()) if target else []
    for text, value, which in ((then, figures[0], "then"), (then_ratio.rstrip("x"), known or None, "ratio then"),
                               (today, median(values) if values else None, "today"),
                               (cpu, median(used) if used else None, "CPU")):
        nothing = [] if value is None else [f"{which}: nothing, and there is {value:.4g}"]
        report.cell(f"{what}: {which} {text}", nothing if text == "-" else number(which, text, value))
    other = post.today(base) if base else None
    if base is cell and values:
        report.cell(what, [] if ratio == "1.00x" else [f"the base has {ratio}"])
    elif not values or not other:
        report.cell(what, [] if ratio == "-" else [f"{ratio}, and there is no number"])
    else:
        mine, its = post.by_block(target[0], seconds), post.by_block(other[0], post.cost("seconds", base_panel))
        seen = Ratio([math.log(mine[block] / its[block]) for block in sorted(mine) if block in its])
        report.cell(f"{what}: {ratio}", interval(what, ratio, seen.estimate, seen.low, seen.high, seen.is_exact
                                                 or seen.low is None))


def units_of(trial, panel):
    return 1 if panel.get("part") else sum(phase["units"] for phase in trial.phases)


def base_of(post, panel):
    """The post's base where it was run, else the first cell of the same point that was."""
    point = lambda one: (one.get("part"), one.get("clients"))
    named = post.cells[panel["base"]]
    if post.today(named[1]):
        return named
    run = [one for one in post.cells.values() if point(one[0]) == point(panel) and post.today(one[1])]
    return run[0] if run else named


def check_sentences(report, post, text):
    """The judgement of each sentence, and the comparisons that it names. Yields the judgements."""
    paragraphs = re.split(r"\n  (?=\S)", "\n" + text.split("\n\n")[0].rstrip())[1:]
    shown = [" ".join(one.split()) for one in paragraphs]
    sentences = post.data["sentences"]
    report.fact(post.data["number"], [] if len(shown) == len(sentences) else
                [f"{len(shown)} sentences, the post has {len(sentences)}"])
    for words, sentence in zip(shown, sentences):
        kind, standings = post.standings(sentence)
        direction = sentence.get("is", "less")
        pairs = [(names, *post.pair(kind, standings, direction, names)) for names in sentence["pairs"]]
        found = {one[1] for one in pairs}
        judgement = next((one for one in WORST_FIRST if one in found), NOT_RUN)
        is_part = judgement == STILL_SO and NOT_RUN in found
        report.sentence(words, sentence_faults(post, words, sentence["says"], (judgement, is_part), pairs))
        yield judgement, is_part


def sentence_faults(post, words, says, expected, pairs):
    judgement, is_part = expected
    head = f"{judgement}{' in part' if is_part else ''}: {says}"
    if not words.startswith(head):
        return [f"the records give: {head}"]
    rest = words[len(head):].strip().rstrip(".")
    if judgement == NOT_RUN:
        return [f"a ratio of what cannot be run: {rest}"] if re.search(rf"{NUMBER}x ", rest) else []
    faults, named = [], comparisons(rest)
    if len(pairs) > 1:
        held, not_run = (sum(one[1] == what for one in pairs) for what in (STILL_SO, NOT_RUN))
        counted = f"{held} of {len(pairs)} comparisons hold" + (f", {not_run} cannot be run here" if not_run else "")
        faults += [] if named and named[0].lower() == counted.lower() else [f"the records give: {counted}"]
        named = named[1:]
    decisive = [one for one in pairs if one[1] == judgement]
    more = f"{len(decisive) - TOLD} more like these"
    if len(decisive) > TOLD:
        faults += [] if named[-1:] == [more] else [f"the records give: {more}"]
        named = named[:-1]
    faults += [] if len(named) == min(TOLD, len(decisive)) else [f"{len(named)} are named, {len(decisive)} decide"]
    for one in named:
        faults += pair_faults(post, one, decisive)
    return faults


def comparisons(text):
    """The parts of a text between semicolons, but for those in parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == ";" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def pair_faults(post, words, pairs):
    """"set, 1 client: B is 1.14x A then, 1.3x [1.2-1.4] today (the interval contains 1)" beside the pair that it is."""
    for names, _, ratio, bar in pairs:
        panel, first = post.cells[names[0]]
        other_panel, second = post.cells[names[1]]
        one, other = post.name(first, panel), post.name(second, other_panel)
        point = f"{panel['title']}: " if panel.get("part") else ""
        head, tail = f"{point}{other} ", words[len(f"{point}{other} "):]
        if words.lower().startswith(head.lower()) and one in tail:
            return ratio_faults(words, tail, one, ratio, bar, first, second, post)
    return [f"no comparison that decides is called so: {words!r}"]


def ratio_faults(words, tail, one, ratio, bar, first, second, post):
    faults = []
    then = re.match(rf"is ({NUMBER})x {re.escape(one)} then", tail)
    today = re.search(rf"((?:about )?{NUMBER}x(?: \[{NUMBER}-{NUMBER}\])?) (?:{re.escape(one)} )?today", tail)
    if then:
        figures = first.get("figure"), second.get("figure")
        was = figures[1] / figures[0] if post.data["unit"] == "seconds" else figures[0] / figures[1]
        faults += number(f"{words}, then", then[1], was)
    if ratio:
        faults += interval(words, today[1], ratio.estimate, ratio.low, ratio.high, ratio.is_exact or ratio.low is None) \
            if today else [f"{words}: no ratio of today, the records give {ratio.estimate:.4g}"]
    elif today:
        faults.append(f"{words}: a ratio of today, and the records give none")
    noise = re.search(r"not surely beyond the noise of (\d+) %", tail)
    if noise and (not bar or int(noise[1]) != math.ceil(bar.floor * 100)):
        faults.append(f"{words}: the noise is {bar and bar.floor:.3g}")
    if "the interval contains 1" in tail and (ratio is None or not ratio.holds_one()):
        faults.append(f"{words}: the interval does not contain 1")
    return faults
