"""Looks at the index of `kvfair site` in Chromium. Prints what was seen, and a line for each thing that is wrong.

site.py FOLDER AXE: FOLDER holds index.html with four runs: two jobs, two machines, one of them with a tag in its name.
AXE is the file axe.min.js. Exit code 1 if anything is wrong.
"""
import sys
from pathlib import Path

from page import Looked, axe_finds_nothing, browser, it_fits_a_telephone, no_error_was_logged, \
    nothing_is_loaded_and_no_error
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

INDEX = "index"
RUNS = 4


def rows(looked):
    """The cells of each row that is seen."""
    found = looked.driver.find_elements(By.CSS_SELECTOR, "tr.row")
    return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in found if row.is_displayed()]


def selects(looked):
    labels = looked.driver.find_elements(By.TAG_NAME, "label")
    return {label.text.split()[0]: Select(label.find_element(By.TAG_NAME, "select")) for label in labels}


def it_is_a_table_without_scripts(looked):
    looked.cdp("Emulation.setScriptExecutionDisabled", value=True)
    looked.open(INDEX)
    looked.must(len(rows(looked)) == RUNS, f"without scripts: {rows(looked)}")
    looked.must(all(len(row) == 5 and len(row[0]) > 20 for row in rows(looked)), "without scripts: an empty cell")
    looked.must(not looked.driver.find_elements(By.TAG_NAME, "select"), "without scripts: a filter that does nothing")
    looked.cdp("Emulation.setScriptExecutionDisabled", value=False)


def filters_leave_what_they_name(looked):
    looked.open(INDEX)
    looked.must(len(rows(looked)) == RUNS, "not all runs are seen at first")
    for name, place in [("job", 1), ("store", 2), ("machine", 3)]:
        options = [option.text for option in selects(looked)[name].options]
        looked.must(options[0] == "all" and len(options) > 2, f"{name}: options {options}")
        for option in options[1:]:
            selects(looked)[name].select_by_visible_text(option)
            seen = rows(looked)
            is_of = (lambda row: option in row[place].split(", ")) if name == "store" else \
                (lambda row: option == row[place])
            looked.must(seen and all(map(is_of, seen)), f"{name} {option}: {seen}")
            said = looked.driver.find_element(By.CSS_SELECTOR, "[role=status]").text
            looked.must(said == f"{len(seen)} of {RUNS} runs", f"{name} {option}: says {said}")
        selects(looked)[name].select_by_visible_text("all")
    looked.must(len(rows(looked)) == RUNS and not looked.script("return location.hash"), "all is not all")
    # Two together, and the address alone gives the same.
    selects(looked)["job"].select_by_visible_text("fans")
    selects(looked)["machine"].select_by_index(1)
    seen, address = rows(looked), looked.script("return location.href")
    looked.must(0 < len(seen) < RUNS and "#job=fans,machine=" in address, f"{address}: {seen}")
    looked.driver.get("about:blank")
    looked.driver.get(address)
    looked.must(rows(looked) == seen, f"{address}: {rows(looked)}")
    for bad in ["#job=none,x=1", "#%", "#__proto__=1", "#job"]:
        looked.driver.get("about:blank")
        looked.driver.get(f"file://{looked.folder}/index.html{bad}")
        looked.must(len(rows(looked)) == RUNS, f"{bad}: {rows(looked)}")
    no_error_was_logged(looked, INDEX)


def links_lead_to_pages(looked):
    looked.open(INDEX)
    for link in [one.get_attribute("href") for one in looked.driver.find_elements(By.CSS_SELECTOR, "td a")]:
        looked.driver.get(link)
        looked.must(looked.driver.find_elements(By.ID, "manifest"), f"{link} is no page")


def main(folder, axe):
    driver = browser()
    try:
        looked = Looked(driver, Path(folder))
        nothing_is_loaded_and_no_error(looked, INDEX)
        it_is_a_table_without_scripts(looked)
        filters_leave_what_they_name(looked)
        links_lead_to_pages(looked)
        axe_finds_nothing(looked, INDEX, Path(axe).read_text())
        it_fits_a_telephone(looked, INDEX)
        print(f"{driver.capabilities['browserName']} {driver.capabilities['browserVersion']}: {looked.wrong} wrong in "
              f"the index of {RUNS} runs")
        return 1 if looked.wrong else 0
    finally:
        driver.quit()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
