#!/usr/bin/env python3
"""Every sentence and every cell that `kvfair show` prints, beside what the records give.

sentences.py RECORDS.jsonl SHOWN.txt
    computes medians, ratios and intervals from the records by docs/method.md and docs/statistics.md, and prints each
    sentence and cell that does not agree with them; 1 where there is one
sentences.py --brief RECORDS.jsonl SHOWN.txt
    the same of what is shown without `--wide`, where not all claims are told and lines are cut
sentences.py --posts SHOWN.txt RECORDS.jsonl [RECORDS.jsonl ...]
    the same of what `kvfair reproduce` shows, a file of records for each post
sentences.py --self-test RECORDS.jsonl SHOWN.txt [RECORDS.jsonl SHOWN.txt ...]
    changes one number or one name of the text at a time, and prints how many of these changes are noticed

A sentence with a digit must be read by a rule, or tell no measured number: see UNMEASURED. Read are runs of targets, of
requests by clients or rates, of replicas, of round-trip times, of versions and of levers, and what `check` and `crash`
found; of other forms (several sizes or orders, programs, searches, growth, the first look's larger job) each sentence
with a digit is an error. Words without
a digit are read where a rule knows them; `sent in bursts` and `drift` are not computed. An interval, a noise floor, a
rank and a claim are computed anew, from the rules that docs/statistics.md states.
"""

import collections
import os
import re
import sys

# No files are left beside the modules.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "sentences"))

import answer  # noqa: E402
import around  # noqa: E402
import claims  # noqa: E402
import found  # noqa: E402
import others  # noqa: E402
import points  # noqa: E402
import posts  # noqa: E402
import tables  # noqa: E402
from intervals import CLAIM_BLOCKS  # noqa: E402
from page import Page  # noqa: E402
from records import Run, read, rtt_of  # noqa: E402
from written import NUMBER  # noqa: E402

# Sentences with digits that tell no measured number: commands, and what is no number of this run.
UNMEASURED = [
    r"next(, .+)?: kvfair .*",
    r"more \(--wide\): [\w, -]+",
    r"(slower|too slow for a first look|not here) \(--wide\): .*",
    r"left out: [^:]+: [^\d]+",
]
RULES = claims.RULES + answer.RULES + others.RULES + around.WARNINGS + around.FOOT + [
    (r"Most (\w+) per second: (.+)", points.most),
    (r"(Sets|Gets|Requests) (?:with|at) ([\d,]+)(/s, p99| clients?): (.+)", points.claim),
    (r"CPU per request, (\w+) (?:with|at) ([\d,]+)(/s| clients?): (.+)", points.claim),
    (rf"At ([\d,]+)/s, 99 % were answered within: (.+)", points.within),
]
CACHED = "behind a cache in the client"
GROUP = re.compile(rf"(one value at a time|without a cache|in memory only, so it stays warm|via \w+(?:, {CACHED})?|"
                   rf"{CACHED}): (.+)")


class Report:
    """What was looked at, and what does not agree."""

    def __init__(self, is_brief=False):
        # Not all claims and rows are shown.
        self.is_brief = is_brief
        self.cells, self.sentences, self.faults, self.skipped = 0, 0, [], collections.Counter()

    def cell(self, what, faults):
        self.cells += 1
        self.faults += [f"cell: {what}\n    {fault}" for fault in faults]

    def fact(self, what, faults):
        self.faults += [f"table: {what}\n    {fault}" for fault in faults]

    def sentence(self, what, faults):
        self.sentences += 1
        self.faults += [f"sentence: {what}\n    {fault}" for fault in faults]

    def guard(self, what, check, *arguments):
        """A table that cannot be read is a fault too."""
        try:
            check(self, *arguments)
        except (KeyError, ValueError, IndexError, StopIteration, TypeError, AttributeError) as error:
            self.fact(what, [f"it cannot be computed: {error!r}"])

    def skip(self, why):
        self.skipped[why] += 1


class State:
    """What was said before in the same text."""

    def __init__(self):
        self.group, self.pairs, self.open, self.more = None, collections.defaultdict(list), set(), {}


def judged(rule, run, *arguments):
    """The complaints of a rule; what names no target or number of this run cannot be computed."""
    try:
        return rule(run, *arguments)
    except (KeyError, ValueError, IndexError, StopIteration, TypeError, AttributeError) as error:
        return [f"it cannot be computed: {error!r}"]


def part_of(run, text):
    """Of several round-trip times the run of which "warning (discarded): at 1 ms 5 of 5 blocks were disturbed" tells,
    and the words without it; of a doubt the first run that is noisy."""
    match = re.fullmatch(r"(warning \([\w-]+\): )at (\S+) ms (.+)", text)
    part = match and run.at.get(round(float(match[2]) * 1000))
    if part:
        return part, match[1] + match[3]
    # The answer is that of the last one.
    match = re.fullmatch(r"At (\S+) ms: (.+)", text)
    part = match and run.at.get(round(float(match[1]) * 1000))
    if part:
        return part, match[2]
    is_doubt = text.startswith("Single times")
    return next((one for one in run.at.values() if is_doubt and one.is_noisy), run), text


def check_sentence(report, run, sentence, state):
    group = GROUP.fullmatch(sentence)
    text = group[2] if group else re.sub(r"^By time: ", "", sentence)
    if group:
        state.group = group[1]
    part, text = part_of(run, text)
    # Advice that does not fit into a line is left out.
    texts = [text] + [f"{text}: run it again"] * (report.is_brief and text.startswith("warning ("))
    for pattern, rule in RULES:
        match = next(filter(None, (re.fullmatch(pattern, one) for one in texts)), None)
        if match:
            report.sentence(sentence, judged(rule, part, match, state))
            return
    if re.search(r"\d", text) and not any(re.fullmatch(pattern, text) for pattern in UNMEASURED):
        report.sentence(sentence, ["no rule reads it"])


def check_headline(report, run, headline):
    for part in headline.split(" · "):
        for pattern, rule in around.HEADLINE:
            match = re.fullmatch(pattern, part)
            if match:
                report.sentence(part, judged(rule, run, match, None))
                break
        else:
            if re.search(r"\d", part):
                report.sentence(part, ["no rule reads it"])


def at_round_trips(records):
    """The run; of several round-trip times, each by itself, that of the longest one, which has the others."""
    rtts_us = records[0]["run"].get("rtts_us") or [None]
    # What has no network is the same at each.
    is_there = lambda record, rtt_us: rtt_us is None or rtt_of(record) in (None, rtt_us)
    at = {rtt_us: Run([one for one in records if is_there(one, rtt_us)]) for rtt_us in rtts_us}
    for run in at.values():
        run.at = at
    return at[rtts_us[-1]]


def prepared(records):
    """The run of these records, with the names by which it is shown; or what was found without a job."""
    if found.is_findings(records):
        return found.Findings(records)
    for record in records:
        record["given"] = record["target"]["label"]
    levers = others.Levers(records) if records[0].get("levers") else None
    run = levers.gains.run if levers else at_round_trips(others.named_by_version(records))
    run.levers = levers
    run.order = others.version_order(run)
    return run


# Ends a line of which words are left out.
CUT = " ..."


def check_brief(run, text):
    """The report of what is shown without `--wide`."""
    return check(run, "".join(line for line in text.splitlines(True) if not line.rstrip("\n").endswith(CUT)), True)


def check(run, text, is_brief=False):
    """The report of a page."""
    if isinstance(run, found.Findings):
        report = Report()
        found.check(report, run, text)
        return report
    report, state, page = Report(is_brief), State(), Page(text)
    if run.levers:
        report.guard("levers", others.check_levers, run.levers, page)
    else:
        tables.check(report, run, page)
        report.guard("versions", others.check_versions, run, page)
    check_headline(report, run, page.headline)
    for note in page.notes:
        faults = judged(around.note, run, note)
        if faults is not None:
            report.sentence(note, faults)
    for sentence in page.sentences():
        check_sentence(report, run, sentence, state)
    is_ranked = any(dict(table.heading).get("rank") for table in page.tables)
    if not is_brief and is_ranked and len(run.blocks) >= CLAIM_BLOCKS and run.controls:
        report.fact("the verdict", judged(claims.unsaid, run, state))
    return report


def replaced(text, start, end, new):
    """The text with this in place; in a table the ends of cells stay below those of their headings."""
    longer = len(new) - (end - start)
    cell = max(text.rfind("  ", 0, start) + 2, text.rfind("\n", 0, start) + 1)
    before, gap = text[:cell], re.search(r" *$", text[:cell])[0]
    if len(gap) > longer and text[text.rfind("\n", 0, start) + 1] == " ":
        before = before[:len(before) - longer] if longer > 0 else before + " " * -longer
        return before + text[cell:start] + new + text[end:]
    after = re.match(r" *", text[end:])[0]
    after = after[longer:] if 0 < longer < len(after) else after + " " * -longer if after else after
    return text[:start] + new + after + text[end + len(re.match(r" *", text[end:])[0]):]


def changed(text, names):
    """Texts with one change, and what was changed: a number by a fifth, or by two of its last digit, up and down; a
    name by another; the two names of an order."""
    for match in re.finditer(NUMBER, text):
        plain = match[0].replace(",", "")
        places = len(plain.partition(".")[2])
        for kind, way in (("number, higher", 1), ("number, lower", -1)):
            value = float(plain) + way * max(float(plain) * 0.2, 2 * 10.0 ** -places)
            if value >= 0:
                new = f"{value:,.{places}f}" if "," in match[0] else f"{value:.{places}f}"
                yield kind, match, replaced(text, match.start(), match.end(), new)
    for place, name in enumerate(sorted(names) if len(names) > 1 else []):
        other = sorted(names)[place - 1]
        for match in re.finditer(rf"(?<![\w:+?=.]){re.escape(name)}(?![\w:+?=])(?! (batch|native|cas))", text):
            yield "name", match, replaced(text, match.start(), match.end(), other)
    for match in re.finditer(rf"({claims.NAME})( \([^)]+\))?(\s+is\s+faster\s+than\s+)({claims.NAME})(?=,)", text):
        turned = match[4] + (match[2] or "") + match[3] + match[1]
        yield "order", match, text[:match.start()] + turned + text[match.end():]


def complaints(run, text):
    """What was found, without the sentences of which it is said: these differ in each changed text."""
    return collections.Counter(fault.rpartition("\n")[2] for fault in check(run, text).faults)


def self_test(paths):
    for records_path, shown_path in zip(paths[::2], paths[1::2]):
        with open(shown_path, encoding="utf-8") as file:
            text = file.read()
        run = prepared(read(records_path))
        before = complaints(run, text)
        tried, missed = collections.Counter(), collections.defaultdict(list)
        for kind, match, new in changed(text, run.names):
            tried[kind] += 1
            if not complaints(run, new) - before:
                line = text[:match.start()].rpartition("\n")[2] + text[match.start():].partition("\n")[0]
                missed[kind].append(f"{match[0]!r} in {line.strip()!r}")
        for kind, count in tried.items():
            noticed = f"{count - len(missed[kind])} of {count} changes of one {kind} are noticed"
            print(f"{os.path.basename(records_path)}: {noticed}")
            for line in missed[kind]:
                print(f"    not noticed: {line}")


def main(arguments):
    if arguments[:1] == ["--self-test"]:
        return self_test(arguments[1:])
    if arguments[:1] == ["--posts"] and len(arguments) > 2:
        with open(arguments[1], encoding="utf-8") as file:
            report = Report()
            posts.check(report, file.read(), arguments[2:])
        return told(report, arguments[1])
    is_brief = arguments[:1] == ["--brief"]
    arguments = arguments[is_brief:]
    if len(arguments) != 2:
        sys.exit(__doc__)
    with open(arguments[1], encoding="utf-8") as file:
        report = (check_brief if is_brief else check)(prepared(read(arguments[0])), file.read())
    return told(report, arguments[0])


def told(report, path):
    """Prints what does not agree, and how much was looked at; 1 where anything does not agree."""
    for fault in report.faults:
        print(fault)
    why = ", ".join(f"{what}: {count}" for what, count in sorted(report.skipped.items()))
    skipped = f"{sum(report.skipped.values())} cells were not computed" + (f" ({why})" if why else "")
    looked_at = f"{report.sentences} sentences and {report.cells} cells"
    faults = len(report.faults)
    said = f"{faults} disagreements in {looked_at}" if faults else f"{looked_at} agree with the records"
    print(f"{os.path.basename(path)}: {said}, {skipped}")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
