"""Runs of several round-trip times, of versions of a store, and of levers."""

import re

from intervals import Standing, median
from records import Run, Trial
from tables import at_round_trip, to_the_best_at
from written import NUMBER, RATIO, agrees, at_most, interval, is_ceiling, is_floor, number

NAME = r"\S+(?: (?:batch|native|cas|[\d.]+))?"


def in_order(run, match, state):
    """"By the medians the order of targets is the same from 0 ms to 1 ms"."""
    faults = []
    costs = {float(rtt): at_round_trip(run, round(float(rtt) * 1000)) for rtt in match.groups()}
    near, far = sorted(costs)
    middle = {rtt: {name: median(of.values()) for name, of in at.items()} for rtt, at in costs.items()}
    for one in run.stores():
        for other in run.stores(run.group(one)):
            if (middle[near][one] < middle[near][other]) != (middle[far][one] < middle[far][other]) and one < other:
                faults.append(f"{one} and {other} change places")
    return faults


def change_places(run, match, state):
    """"a and b change places between 0 ms and 1 ms (seen, not claimed)"."""
    one, other, near, far = match.groups()
    at = [at_round_trip(run, round(float(rtt) * 1000)) for rtt in (near, far)]
    is_faster = [median(of[one].values()) < median(of[other].values()) for of in at]
    return [] if is_faster[0] != is_faster[1] else ["they do not change places"]


def one_by_one(run, match, state):
    """"At 1 ms a one by one takes 12.3x as long as a batch, and 7.94x at 0 ms (seen, not claimed)"."""
    far, base, at_far, other, at_near, near, seen = match.groups()
    if base not in run.by_name or other not in run.by_name:
        return ["no such targets"]
    faults = []
    for rtt, text in ((far, at_far), (near, at_near)):
        costs = {name: of for name, of in at_round_trip(run, round(float(rtt) * 1000)).items() if name in (base, other)}
        ratio = Standing(costs, run.lengths_s, [], False).ratios[base, other]
        faults += interval(f"at {rtt} ms", text, ratio.estimate, ratio.low, ratio.high, ratio.is_exact)
    return faults + ([] if bool(seen) == (len(run.blocks) < 4) else ["seen or claimed?"])


def gap(run, match, state):
    """"The gap of a to the best grows with the round trip: 17.2x at 0 ms, 51.4x at 0.2 ms"."""
    name, way, told = match[1], match[2], re.findall(rf"({RATIO}) at (\S+) ms", match[3])
    if name not in run.by_name:
        return [f"no target is called {name}"]
    faults, seen = [], []
    for text, rtt in told:
        best = to_the_best_at(run, round(float(rtt) * 1000), name)
        seen.append(best[0])
        faults += interval(f"at {rtt} ms", text, *best)
    if [round(float(rtt) * 1000) for _, rtt in told] != run.first["run"]["rtts_us"]:
        faults.append("not all round-trip times are told")
    return faults + ([] if (seen[-1] > seen[0]) == (way == "grows") else [f"it does not {way[:-1]}"])


class Versions:
    """Steps between neighbours, judged together, and ratios to the first version."""

    def __init__(self, run):
        self.names = list(dict.fromkeys(one.name for one in sorted(run.trials, key=lambda one: run.order[one.name])))
        pairs = list(zip(self.names[1:], self.names))
        self.by_cpu = run.most_discarded
        cost = Trial.cpu if self.by_cpu else run.cost
        costs = lambda of: {name: {one.block: of(one) for one in run.by_name[name]} for name in self.names}
        controls = [one[:2] for one in run.controls_by(cost)]
        self.steps = Standing(costs(cost), run.lengths_s, controls, run.most_discarded, pairs)
        # A step must also exceed the far end of each A/A interval.
        self.far_end = max((ratio.far_end() for ratio, _ in controls if ratio.low), default=0.0)
        first = [(name, self.names[0]) for name in self.names[1:]]
        self.first = {"seconds": Standing(costs(run.cost), {}, [], False, first),
                      "CPU": Standing(costs(Trial.cpu), {}, [], False, first)}

    def is_step(self, one, other):
        ratio = self.steps.ratios[other, one]
        return not self.steps.is_open(one, other) and max(ratio.estimate, 1 / ratio.estimate) - 1 > self.far_end


def named_by_version(records):
    """The records of a run of versions, with the names by which they are shown, and the targets' order."""
    version = {}
    for record in records:
        store = record.get("store")
        if store and record["run"].get("command", [])[:1] == ["history"]:
            told = store["version"]
            version[record["target"]["label"]] = told if told[:1].isalpha() else f"{record['target']['store']} {told}"
    if len(set(version.values())) == len(version):
        for record in records:
            record["target"]["label"] = version.get(record["target"]["label"], record["target"]["label"])
    return records


def version_order(run):
    """Versions stand as they were typed: by the name that each was given, or by its own."""
    words = run.first["run"].get("command", [])
    def place(one):
        told = [index for index, word in enumerate(words) if word == one.given or f"name={one.given}" in word]
        return told[0] if told else len(words)
    return {one.name: place(one) for one in run.trials}


def check_versions(report, run, page):
    for table in page.tables:
        if table.heading[0][0] != "version":
            continue
        versions = Versions(run)
        for line in table.rows:
            name = next((name for name in versions.names if line[1:].startswith(name + " ")), None)
            if name is None:
                report.cell(line, ["no such version"])
                continue
            cells = {table.heading[column][0]: text for column, text in table.cells(line).items() if column}
            report.cell(f"{name}: seconds", number(name, cells["seconds"], run.lengths_s[name]))
            for heading, by in (("vs first", "seconds"), ("CPU vs first", "CPU")):
                if name == versions.names[0]:
                    report.cell(f"{name}: {heading}", [] if cells[heading] == "base" else ["it is the base"])
                else:
                    ratio = versions.first[by].ratios[name, versions.names[0]]
                    faults = interval(heading, cells[heading], ratio.estimate, ratio.low, ratio.high, ratio.is_exact)
                    report.cell(f"{name}: {heading} {cells[heading]}", faults)
            place = versions.names.index(name)
            if place:
                is_step = versions.is_step(versions.names[place - 1], name)
                told = cells.get("step")
                report.cell(f"{name}: step {told}", [] if (told == "none seen") != is_step else
                            [f"{'a' if is_step else 'no'} step is claimed by the records"])


def no_step(run, match, state):
    versions, (one, other, text) = Versions(run), match.groups()
    if (other, one) not in versions.steps.ratios:
        return [f"{one} and {other} are no neighbours"]
    ratio, bar = versions.steps.ratios[other, one], versions.steps.bars[other, one]
    faults = ["the records claim a step"] if versions.is_step(one, other) else []
    return faults + at_most("a step of", text, max(ratio.far_end(), bar.floor, versions.far_end))


def versions_told(run, match, state):
    return [] if int(match[1]) == len(run.blocks) else [f"{len(run.blocks)} blocks count"]


class Levers:
    """Base, each lever alone, all, and all but each one: sets of the levers' names."""

    def __init__(self, records):
        self.records = records
        self.of = records[0]["run"]["levers"]
        self.name_of = {lever["change"]: lever["name"] for lever in self.of["levers"]}
        self.all = frozenset(lever["name"] for lever in self.of["levers"] if not lever.get("not_in_all"))
        alone = [(frozenset(), frozenset([name])) for name in self.name_of.values()]
        last = [(self.all - {name}, self.all) for name in sorted(self.all)]
        self.gains = self.judged("gains", sorted({*alone, *last, (frozenset(), self.all)}, key=repr))
        self.last_attempt = max([record["levers"]["part"].get("attempt", 0) for record in records])

    def part(self, kind, attempt=None):
        return [record for record in self.records
                if record["levers"]["part"]["kind"] == kind and record["levers"]["part"].get("attempt") == attempt]

    def judged(self, kind, contrasts=None, attempt=None):
        records = self.part(kind, attempt)
        if not records:
            return None
        run = Run(records)
        sets = {name: frozenset(of[0].record["levers"]["changed"]) for name, of in run.by_name.items()}
        cost = Trial.cpu if run.most_discarded else run.cost
        costs = {sets[name]: {one.block: cost(one) for one in of} for name, of in run.by_name.items()}
        lengths_s = {sets[name]: seconds for name, seconds in run.lengths_s.items()}
        alone = [(frozenset(), one) for one in sorted(costs, key=repr) if len(one) == 1]
        contrasts = [pair for pair in contrasts or alone if pair[0] in costs and pair[1] in costs]
        controls = [one[:2] for one in run.controls_by(cost)]
        standing = Standing(costs, lengths_s, controls, run.most_discarded, contrasts, 0.02)
        standing.run = run
        return standing


def gain_faults(standing, before, after, text):
    """Complaints of "at least 7.8x", "at most 0.91x", "0.88x [0.85-0.91]", "no effect seen (< 15 %)"."""
    if standing is None or (before, after) not in standing.ratios:
        return [] if text == "not measured" else [f"{text}: it was not measured"]
    ratio, bar = standing.ratios[before, after], standing.bars[before, after]
    helps, hurts = standing.is_less(after, before), standing.is_less(before, after)
    none = re.fullmatch(r"no effect seen \(< (\d+) %\)", text)
    if none:
        far = max(ratio.far_end(), bar.floor)
        return (["an effect is claimed"] if helps or hurts else []) + at_most("an effect below", none[1] + " %", far)
    if not helps and not hurts:
        return [f"{text}: no effect is claimed by the records"]
    near = re.fullmatch(rf"at (least|most) ({NUMBER})x", text)
    if near:
        faults = [] if bar.is_noisy and helps == (near[1] == "least") else ["no near end of a noisy run"]
        end, is_it = (ratio.low, is_floor) if near[1] == "least" else (ratio.high, is_ceiling)
        return faults + ([] if is_it(near[2], end) else [f"{text}: the near end is {end:.4g}"])
    return interval("gain", text, ratio.estimate, ratio.low, ratio.high, ratio.is_exact) + \
        (["a noisy run names the near end alone"] if bar.is_noisy else [])


def unwrapped(rows):
    """Rows with the lines below each joined where they were too long."""
    joined = []
    for row in rows:
        begins = re.match(r" +(costs |on set/get|best in a pilot|not with all|\D+[\d,]+ -> )", row)
        is_next = row.startswith("     ") and not begins
        if is_next and joined and (joined[-1].endswith("->") or "best in a pilot" in joined[-1]):
            joined[-1] += " " + row.strip()
        else:
            joined.append(row)
    return joined


def check_levers(report, levers, page):
    base, last = frozenset(), None
    synthetic = levers.judged("synthetic")
    for table in page.tables:
        for line in unwrapped(table.rows):
            cells = table.cells(line)
            what = re.split(r"  +", line.strip())[0]
            if what in levers.name_of and not line.startswith("    "):
                last = next(lever for lever in levers.of["levers"] if lever["change"] == what)
                name = levers.name_of[what]
                report.cell(f"{what} alone", gain_faults(levers.gains, base, frozenset([name]), cells[1]))
                faults = gain_faults(levers.gains, levers.all - {name}, levers.all, cells[2])
                report.cell(f"{what} as the last one", faults)
                continue
            alone = re.fullmatch(r"on set/get alone: (.+)", what)
            tried = re.fullmatch(r"best in a pilot: (.+)", what)
            if alone:
                faults = gain_faults(synthetic, base, frozenset([last["name"]]), alone[1])
                report.cell(f"{last['change']}: {what}", faults)
            elif tried:
                seen = {one["change"]: one["took_s"] for one in last["tried"]}
                told = re.findall(r"(\S[^,]*) (\S+) s(?:, |$)", tried[1])
                faults = [fault for change, text in told for fault in number(change, text, seen.get(change))]
                best = min((one for one in seen if seen[one]), key=seen.get)
                faults += [] if best == last["change"] and len(told) == len(seen) else [f"the best is {best}"]
                report.cell(what, faults)
            elif " -> " in what:
                report.cell(what, counter_faults(levers, last["name"], what))
            elif re.search(r"\d", what) and not what.startswith("costs "):
                report.cell(what, ["no rule reads it"])


def counter_faults(levers, name, words):
    """"commands 267,919 -> 20,003": one of the store's own counters grew so much without the lever and with it."""
    faults, run = [], levers.gains.run
    sides = [[one for one in run.trials if one.record["levers"]["changed"] == changed and one.finished and one.is_right
              and not one.is_second and one.block in run.blocks] for changed in ([], [name])]
    known = sorted({counter for side in sides for one in side for counter in one.record["store_stats"]})
    grown = [[median([one.grown(counter) for one in side]) for side in sides] for counter in known]
    for before, after in re.findall(rf"({NUMBER}) -> ({NUMBER})", words):
        if not any(agrees(before, one) and agrees(after, other) for one, other in grown):
            faults.append(f"no counter of the records goes from {before} to {after}")
    return faults


def lever_names(levers, words):
    """The set of "via batch, cache and unix"."""
    changes = re.split(r", | and ", words)
    return frozenset(levers.name_of.get(change, change) for change in changes)


def enough(run, match, state):
    levers = run.levers
    chosen = lever_names(levers, match[1])
    standing = levers.judged("confirm", [(frozenset(), chosen)], levers.last_attempt)
    beside = levers.judged("confirm", [(chosen, levers.all)], levers.last_attempt)
    faults = gain_faults(standing, frozenset(), chosen, match[2])
    if beside is None or (chosen, levers.all) not in beside.ratios:
        return faults + [f"{sorted(chosen)} was not tried in fresh blocks"]
    ratio, bar = beside.ratios[chosen, levers.all], beside.bars[chosen, levers.all]
    faults += [] if int(match[3]) == ratio.blocks else [f"{ratio.blocks} blocks were fresh"]
    faults += at_most("all levers are at most", match[4] + " %", max(0.0, ratio.high - 1))
    is_enough = ratio.high <= 1 + max(0.05, bar.floor) and not beside.is_less(levers.all, chosen)
    return faults + ([] if is_enough else ["the records do not confirm it"])


def none_helps(run, match, state):
    levers = run.levers
    chosen = lever_names(levers, match[1])
    standing = levers.judged("confirm", [(frozenset(), chosen)], levers.last_attempt)
    return gain_faults(standing, frozenset(), chosen, match[2]) + \
        gain_faults(levers.gains, frozenset(), levers.all, match[3])


def together(run, match, state):
    levers, faults = run.levers, gain_faults(run.levers.gains, frozenset(), run.levers.all, match[1])
    if match[2]:
        ratios = [levers.gains.ratios[frozenset(), frozenset([name])] for name in levers.name_of.values()
                  if name in levers.all and levers.gains.is_less(frozenset([name]), frozenset())]
        told = re.findall(rf"({NUMBER})x", match[2])
        seen = sorted((ratio.estimate for ratio in ratios), reverse=True)
        if len(told) != len(seen):
            faults.append(f"{len(seen)} levers help alone")
        faults += [fault for text, value in zip(sorted(told, key=float, reverse=True), seen)
                   for fault in number("alone", text, value)]
    return faults


def beside_set_get(run, match, state):
    levers = run.levers
    chosen = frozenset([levers.name_of.get(match[2], match[2])])
    base = [one for one in levers.gains.run.trials if not one.record["levers"]["changed"] and one.finished]
    faults = gain_faults(levers.judged("synthetic"), frozenset(), chosen, match[1])
    faults += gain_faults(levers.gains, frozenset(), chosen, match[3])
    return faults + number("waiting", match[4], median([one.waiting() for one in base]))


def base_named(run, match, state):
    levels = {record["durability"] for record in run.levers.part("durability")}
    first = next(name for name in ("none", "crash", "power") if name in levels)
    return [] if (match[1], match[2]) == (run.levers.of["base"], first) else ["another target or level"]


def level(run, match, state):
    """"power: 1.9x [1.6-2.3] as long (..; 6 blocks)": base at two durability levels, block by block."""
    records = run.levers.part("durability")
    by_level = {name: Run([record for record in records if record["durability"] == name])
                for name in {record["durability"] for record in records}}
    if match[1] not in by_level:
        return ["no such level"]
    costs = {name: {one.block: one.seconds for one in of.counted} for name, of in by_level.items()}
    first = next(name for name in ("none", "crash", "power") if name in costs)
    ratio = Standing({name: costs[name] for name in (match[1], first)}, {}, [], False).ratios[match[1], first]
    faults = interval(match[1], match[2], ratio.estimate, ratio.low, ratio.high, ratio.is_exact)
    keeps = by_level[match[1]].first["keeps"]
    return faults + ([] if (match[3], int(match[4])) == (keeps, ratio.blocks) else [f"{keeps}; {ratio.blocks} blocks"])


GAIN = rf"at (?:least|most) {NUMBER}x|{RATIO}|no effect seen \(< \d+ %\)|not measured"
RULES = [
    (r"apart, (.+) at other durability levels, in times of level (none|crash|power)", base_named),
    (r"By the medians the order of targets is the same from (\S+) ms to (\S+) ms", in_order),
    (rf"({NAME}) and ({NAME}) change places between (\S+) ms and (\S+) ms \(seen, not claimed\)", change_places),
    (rf"At (\S+) ms ({NAME}) one by one takes ({RATIO}) as long as ({NAME}), and ({RATIO}) at (\S+) ms"
     r"( \(seen, not claimed\))?", one_by_one),
    (rf"The gap of ({NAME}) to the best (grows|shrinks) with the round trip: (.+?)(?: \(seen, not claimed\))?", gap),
    (rf"From ({NAME}) to ({NAME}) no step is seen: one of (.+ %) or more is ruled out", no_step),
    (r"versions in their order, (\d+) blocks; the first is the base", versions_told),
    (rf"\S+: (.+) (?:are|is) enough: ({GAIN})(?: as fast as now)?; confirmed in (\d+) fresh blocks "
     rf"\(all levers are at most (\d+) % faster\)", enough),
    (rf"\S+: no set of levers is seen to help \((.+): ({GAIN}); all together: ({GAIN})\)", none_helps),
    (rf"Together: ({GAIN})(?:, measured as it stands: not (.+))?", together),
    (rf"Set/get alone says ({GAIN}) of (.+), this job ({GAIN}): it waits for the store (\d+ %) of its time",
     beside_set_get),
    (rf"(crash|power): ({RATIO}) as long \((.+); (\d+) blocks?\)", level),
]
