"""What stands around a verdict: the headline, the answer, the data, the warnings, the notes below a table."""

import re

from claims import percent
from intervals import CLAIM_BLOCKS, EXACT_BLOCKS, median
from points import limited_points, short_point, without_star
from written import NUMBER, at_most, number

READINGS = [
    (r"other programs used (.+) of the CPU", "foreign"),
    (r"(.+) of the processors went to what cannot be seen from in here", "unclaimed"),
    (r"(.+) steal: the host took the processors away", "steal"),
    (r"the server waited for a processor for (.+) of the time", "server_delay"),
    (r"the client waited for a processor for (.+) of the time", "client_delay"),
    (r"the machine stood still for (.+) of the time", "stalled"),
    (r"the processor was (.+) slower than at its best in this run", "processor"),
    (r"the disk took (.+) longer to sync than is usual in this run", "disk"),
]


def reasons(words, worst):
    """Complaints of "other programs used 49 % of the CPU; 15 % steal: ..." beside the worst readings."""
    faults, told = [], set()
    for part in words.split("; "):
        for pattern, name in READINGS:
            match = re.fullmatch(pattern, part)
            if match:
                told.add(name)
                faults += number(name, match[1], worst.get(name))
                break
        else:
            faults.append(f"no reading: {part!r}")
    return faults + [f"{name} is not told" for name in sorted(set(worst) - told)]


def twice(words, controls):
    """Complaints of "0.93x [0.75-1.25] kyotocabinet, ..." beside the A/A controls: (Ratio, seconds, name)."""
    told = re.findall(rf"({NUMBER})x(?: \[({NUMBER})-({NUMBER})\])?(?: ([^,]+))?(?:, |$)", words)
    names = [name for *_, name in told]
    faults = [] if len(told) == 1 or names == [name for *_, name in controls] else [f"the controls are {controls}"]
    return faults + twice_faults([one[:3] for one in told], controls)


def twice_faults(told, controls):
    if len(told) != len(controls):
        return [f"{len(told)} controls, the records give {len(controls)}"]
    faults = []
    for (estimate, low, high), (ratio, _, name) in zip(told, controls):
        faults += number(f"{name} twice", estimate, ratio.estimate)
        if low:
            faults += number(f"{name} twice, low end", low, ratio.low)
            faults += number(f"{name} twice, high end", high, ratio.high)
        elif ratio.low is not None:
            faults.append(f"{name} twice: no interval")
    return faults


def blocks(run, match, state):
    counting, ran = len(run.blocks), len(run.ran)
    return [] if int(match[1]) == counting and (run.most_discarded or not run.discarded) else \
        [f"{ran} ran, {counting} count, {len(run.discarded)} were discarded"]


def blocks_ran(run, match, state):
    seen = [len(run.ran), len(run.blocks), len(run.discarded)]
    return [] if [int(one) for one in match.groups()] == seen else [f"the records give {seen}"]


def few_blocks(run, match, state):
    return blocks(run, match, state) + ([] if len(run.blocks) < CLAIM_BLOCKS else ["so many blocks may be claimed of"])


def noise_word(run, match, state):
    expected = ("noisy" if run.is_noisy else "noise ok") + (" in the blocks that count" if run.discarded else "")
    return [] if match[0] == expected else [f"the records give {expected!r}"]


def noisy_blocks(run, match, state):
    seen = [len(run.discarded), len(run.ran)]
    return [] if run.most_discarded and [int(match[1]), int(match[2])] == seen else [f"the records give {seen}"]


def clients(run, match, state):
    load = run.first["job"].get("load")
    told = [int(one) for one in re.findall(r"\d+", match[1])]
    asked = load["clients"] if load else [run.first["clients"]]
    faults = [] if told in ([min(asked), max(asked)], [max(asked)]) and (len(told) == 2) == (min(asked) < max(asked)) \
        else [f"the records give {asked}"]
    if match[2]:
        faults += [] if int(match[2]) == load["depth"] else [f"the depth is {load['depth']}"]
    if match[3]:
        rates = [f"{rate:,}" for rate in load["rates"]]
        faults += [] if match[3] == ", ".join(rates) else [f"the rates are {rates}"]
    return faults


def units(run, match, state):
    told = [int(one) for one in match[2].replace(",", "").split()]
    seen = run.first["stream"]["units"]
    unit = run.first["stream"]["unit"]
    faults = [] if match[1] == run.first["job"]["name"] and match[3] in (unit, unit + "s") else ["another job or unit"]
    return faults + ([] if told == [seen] else [f"the records give {seen:,}"])


def fits(run, match, state):
    most = max((one.record["bytes_on_disk"] or 0 for one in run.trials if not one.is_baseline), default=0)
    share = most / run.first["machine"]["memory_bytes"]
    expected = "fits in memory" if share < 0.25 else "fits in memory in part" if share <= 2 else "larger than memory"
    return [] if match[1] == expected else [f"the largest files have {share:.3g} of the memory"]


def requests(run, match, state):
    load = run.first["job"]["load"]
    asked = "sets and gets" if not load["reads"] + load["writes"] else \
        f"{load['reads']} get{'s' * (load['reads'] != 1)} to {load['writes']} set{'s' * (load['writes'] != 1)}"
    return [] if (match[1], match[2]) == (asked, f"{load['value_bytes']:,}") else \
        [f"the records give {asked} of {load['value_bytes']}"]


def processors(run, match, state):
    return [] if int(match[1]) == run.first["machine"]["cpus"] else ["another number of processors"]


def round_trips(run, match, state):
    told = [round(float(one) * 1000) for one in match[1].split(", ")]
    return [] if told == run.first["run"]["rtts_us"] else [f"the records give {run.first['run']['rtts_us']}"]


# Parts of the headline, between dots.
def all_right(run, match, state):
    trials = [record for record in run.records if record["verdict"]["kind"] != "baseline"
              and record["outcome"]["kind"] not in ("left_out", "missing")]
    right = sum(record["verdict"]["kind"] == "right" for record in trials)
    is_so = [int(text.replace(",", "")) for text in match.groups()] == [right, len(trials)]
    return [] if is_so else [f"the records give {right} of {len(trials)}"]


HEADLINE = [
    (r"(\w+), ([\d, ]+) (\w+)", units),
    (r"data (fits in memory(?: in part)?|larger than memory)", fits),
    (r"(sets and gets|\d+ gets? to \d+ sets?) of ([\d,]+) bytes", requests),
    (r"(\d+ clients?|\d+ to \d+ clients)(?: in a closed loop, depth (\d+)|, (.+)/s independent of each other)?",
     clients),
    (r"client and server share (\d+) processors?", processors),
    (r"round trips of (.+) ms by a proxy", round_trips),
    (r"(\d+) blocks?", blocks),
    (r"(\d+) blocks?, no claim", few_blocks),
    (r"(\d+) blocks? ran, (\d+) count, (\d+) discarded for noise", blocks_ran),
    (r"same store twice: (.+)", lambda run, match, state: twice(match[1], run.controls)),
    (rf"noise floor ({NUMBER} %)", lambda run, match, state: percent("the noise floor", match[1], run.floor)),
    (r"([\d,]+) of ([\d,]+) answers right", all_right),
    (r"noisy: (\d+) of (\d+) blocks disturbed, all are used", noisy_blocks),
    (r"(noisy|noise ok)( in the blocks that count)?", noise_word),
]


def discarded(run, match, state):
    told, seen = (int(match[1]), int(match[2])), (len(run.discarded), len(run.ran))
    faults = [] if told == seen else [f"the records give {seen[0]} of {seen[1]}"]
    faults += [] if (match[3] == "disturbed") == run.most_discarded else [f"they were not {match[3]}"]
    # A run that ends with narrow intervals has at least six blocks that count.
    least = min(run.planned, EXACT_BLOCKS) if run.first["run"].get("plus_minus") else run.planned
    missing = least - len(run.blocks)
    lacking = re.fullmatch(r"(\d+) of them could not be run again", match[5] or "")
    if match[5] == "they were run again" and missing > 0:
        faults.append(f"{least} blocks were planned and {len(run.blocks)} count: of {len(run.discarded)} that were "
                      f"discarded {missing} could not be run again")
    elif lacking and int(lacking[1]) != missing:
        faults.append(f"{missing} could not be run again")
    return faults + reasons(match[4], run.worst(2, run.discarded))


def doubted(run, match, state):
    """Readings of trials that count: of those of few blocks, what would be discarded of many counts too."""
    worst = run.worst(1, run.blocks)
    return reasons(match[1], worst)


def wide_control(run, match, state):
    noisy = [one for one in run.controls if one[0].is_noisy() and one[0].holds_one()]
    told = re.findall(rf"(\S[^,]*?) ({NUMBER})x(?: \[({NUMBER})-({NUMBER})\])?(?:, |$)", match[1])
    names = [name for *_, name in noisy]
    faults = [] if [one[0] for one in told] == names else [f"these are wide: {names}"]
    return faults + twice_faults([one[1:] for one in told], noisy)


def differs(run, match, state):
    name, words, measure, of, floor = match.groups()
    cost = run.cost if measure == "time" else lambda one: one.cpu() and one.cpu() / one.ops
    ratio = next((ratio for ratio, _, target in run.controls_by(cost) if target == name), None)
    if ratio is None or ratio.holds_one() or of != measure:
        return [f"{name} is no control of {measure} that differs from itself"]
    return twice(words, [(ratio, 0, name)]) + number("the floor", floor, ratio.floor())


def discarded_in_brief(run, match, state):
    told, seen = (int(match[1]), int(match[2])), (len(run.discarded), len(run.ran))
    faults = [] if told == seen else [f"the records give {seen[0]} of {seen[1]}"]
    return faults + ([] if (match[3] == "disturbed") == run.most_discarded else [f"they were not {match[3]}"])


def doubted_in_brief(run, match, state):
    """The first of the reasons."""
    faults = reasons(match[1], run.worst(1, run.blocks))
    return [fault for fault in faults if not fault.endswith(" is not told")]


def is_wide(run, match, state):
    return [] if any(one[0].is_noisy() and one[0].holds_one() for one in run.controls) else ["no control is wide"]


def differs_in_brief(run, match, state):
    name, words, measure = match.groups()
    cost = run.cost if measure == "time" else lambda one: one.cpu() and one.cpu() / one.ops
    ratio = next((ratio for ratio, _, target in run.controls_by(cost) if target == name), None)
    if ratio is None or ratio.holds_one():
        return [f"{name} is no control of {measure} that differs from itself"]
    return twice(words, [(ratio, 0, name)])


def short(run, match, state):
    """The shortest target."""
    names = {one.name for one in run.counted if not one.is_baseline}
    middle = {name: median([one.seconds for one in run.counted if one.name == name]) for name in names}
    shortest = min(middle, key=middle.get)
    faults = [] if match[1] == shortest else [f"the shortest is {shortest}"]
    faults += number("it", match[2], middle[shortest])
    return faults + ([] if middle[shortest] < 0.5 else ["it is not below 0.5 s"])


def unsteady(run, match, state):
    """In most trials the last third of the seconds had another rate than the first, on the side that is told."""
    told = re.findall(r"([^,]+?) \((slowing|warming)\)(?:, |$)", match[1])
    faults = [] if len(set(told)) == len(told) else ["one is named twice"]
    for name, word in told:
        changes, trials = [], run.by_name.get(name, [])
        for one in trials:
            seconds = one.run["units_by_second"][:-1]
            third = len(seconds) // 3
            if third:
                changes.append(sum(seconds[-third:]) / max(1, sum(seconds[:third])))
        if 2 * sum(change < 0.95 if word == "slowing" else change > 1.05 for change in changes) <= len(trials):
            faults.append(f"{name} is not {word} in most trials: {[round(change, 3) for change in changes]}")
    return faults


def preflight(field):
    def rule(run, match, state):
        seen = [record["machine"]["preflight"] for record in run.records if record["machine"].get("preflight")]
        return number("the share", match[1], seen[0].get(field) if seen else None)
    return rule


def proxy_off(run, match, state):
    network = next(one.record["network"] for one in run.trials if one.rtt_us is not None)
    added_us = network["ping_us"] - network["own_us"]
    faults = number("the proxy", match[2], added_us / 1000)
    faults += [] if float(match[1]) * 1000 == network["rtt_us"] else ["another round-trip time"]
    return faults + ([] if is_off(network, added_us - network["rtt_us"]) else ["the delay was kept"])


def is_off(network, by_us):
    return abs(by_us) > max(30, 0.1 * network["rtt_us"])


def proxy_late(run, match, state):
    """The trial in which the proxy was late most."""
    late_us = {}
    for one in run.trials:
        network = one.record.get("network")
        if network and one.block in run.blocks and not one.is_second and is_off(network, 2 * network["late_us"]):
            late_us[one.name] = max(late_us.get(one.name, 0), network["late_us"], key=abs)
    worst = max(late_us, key=lambda name: abs(late_us[name]))
    return ([] if match[1] == worst else [f"the latest is {worst}"]) + number("it", match[2], late_us[worst] / 1000)


ADVICE = r"(?:stop other programs.*|run .*|more blocks .*|a larger job.*|fewer .*|a machine .*)"
WARNINGS = [
    (rf"warning \(discarded\): (\d+) of (\d+) blocks were (discarded|disturbed) \((.+?)\)(?:; (they were run again|"
     rf"\d+ of them could not be run again|all blocks are used, and only what is beyond the noise is claimed))?: "
     rf"{ADVICE}", discarded),
    (rf"warning \(discarded\): (\d+) of (\d+) blocks were (discarded|disturbed)(?:: {ADVICE})?", discarded_in_brief),
    (rf"warning \(aa-control\): the same store run twice may differ by more than 5 %(?:: {ADVICE})?", is_wide),
    (rf"warning \(aa-control\): the second trial of (.+) took (.+) the (time|CPU) of its first(?:: {ADVICE})?",
     differs_in_brief),
    (rf"warning \(noise\): in some trials that count (.+): {ADVICE}", doubted),
    (rf"warning \(noise\): in some trials (.+?)(?:: {ADVICE})?", doubted_in_brief),
    (rf"warning \(aa-control\): the same store run twice may differ by more than 5 %: (.+): {ADVICE}", wide_control),
    (rf"warning \(aa-control\): the same store run twice differed from itself: the second trial of (.+) took (.+) "
     rf"the (time|CPU) of its first; differences in (time|CPU) of up to (.+ %) are not claimed: {ADVICE}", differs),
    (rf"warning \(short\): (.+) finished in ({NUMBER}) s; fixed costs dominate(?:: a larger job)?", short),
    (rf"warning \(short\): the (\w+) of (.+) with ([\d,]+) clients? finished in ({NUMBER}) s; fixed costs "
     rf"dominate: {ADVICE}", short_point),
    (rf"warning \(unsteady\): no steady rate within their trials: (.+): {ADVICE}", unsteady),
    (rf"warning \(client-limited\): (\d+) of (\d+) points are limited by the client and not ranked \(\*\): {ADVICE}",
     limited_points),
    (rf"warning \(pressure\): (.+ %) of the last 10 s something waited for a processor: {ADVICE}",
     preflight("cpu_pressure_share")),
    (rf"warning \(spin\): (.+ %) of its time a lone busy thread waited for a processor: {ADVICE}",
     preflight("spin_delay_share")),
    (rf"warning \(foreign\): (.+ %) of the processors go to other programs: {ADVICE}", preflight("foreign_share")),
    (rf"warning \(steal\): (.+ %) of the processors go to other guests of the host: .*", preflight("steal_share")),
    (rf"warning \(rtt\): --rtt (\S+)ms: a ping shows that the proxy adds (\S+) ms to a round trip: {ADVICE}",
     proxy_off),
    (rf"warning \(rtt\): under load the proxy before (.+) was (\S+) ms late each way, on average: {ADVICE}",
     proxy_late),
]


def data(run, match, state):
    stream, recipe = run.first["stream"], run.first["job"]["data"].get("recipe", {})
    faults = [] if (match[1], int(match[2])) == (recipe.get("name"), recipe.get("seed")) else ["another recipe or seed"]
    faults += [] if match[3].replace(",", "") == str(stream["ops"]) else [f"the records give {stream['ops']:,} ops"]
    if match[4]:
        faults += number("packed", match[4], stream.get("zstd_share"))
    return faults + ([] if match[5] == stream["sha256"] else ["another sha256"])


def answers(run, match, state):
    checked = run.counted[0].record["verdict"]["keys"]
    return [] if int(match[1].replace(",", "")) == checked else [f"the records give {checked:,}"]


def all_right(run, match, state):
    """Trials of the stores, with those of the warm-up and of the second time."""
    checked = [one for one in run.records if one["verdict"].get("kind") != "baseline"]
    seen = [sum(one["verdict"].get("kind") == "right" for one in checked), len(checked)]
    told = [int(one.replace(",", "")) for one in match.groups()]
    is_same = "the same" in match[0]
    return ([] if told == seen else [f"the records give {seen}"]) + \
        ([] if is_same == (seen[0] == seen[1]) else ["not all of them are right"])


FOOT = [
    (r"answers: (?:the same from every target, )?right in ([\d,]+) of ([\d,]+) trials", all_right),
    (r"data: recipe (\w+), seed (\d+), ([\d,]+) ops(?:, values that zstd packs to (\d+ %))?, sha256 ([0-9a-f]+)", data),
    (r"answers: every get was looked at, and ([\d,]+) records hold some client's last write", answers),
]


def note(run, text):
    """Complaints of a note below a table, and whether it is one of the answer, whose words are the records' own."""
    given = [one.record["verdict"].get("answer") or {} for one in run.trials if one.is_right]
    given = [answer for answer in given if answer]
    plain = re.sub(r"\s+", " ", text)
    for name in given[0] if given else []:
        if plain.startswith(name + " "):
            wrong = [answer[name] for answer in given if plain != f"{name} {answer[name]}" and answer]
            return [f"a trial that is right answered {wrong[0]}"] if wrong else []
    if any(plain == f"{one.name}: {one.given}" for one in run.trials):
        return []
    # The digits are those of the target's name.
    if any(plain == f"{one.name}: nothing of note" for one in run.trials):
        return []
    for pattern, rule in NOTES:
        match = re.fullmatch(pattern, plain)
        if match:
            return rule(run, match, None)
    return ["no rule reads this note"] if re.search(r"\d", plain) else None


def agents(run, match, state):
    """How far apart they began, with what their clocks leave open."""
    counted = [one for one in run.trials if one.block > 0]
    parts = [phase["agents"] for one in counted for phase in one.phases if phase.get("agents")]
    bounds_us = [max(agent["bound_us"] for agent in of) for of in parts]
    spread_us = max(max(agent["began_us"] for agent in of) + bound_us for of, bound_us in zip(parts, bounds_us))
    asked = len(counted[0].record["agents"])
    faults = [] if int(match[1]) == asked else [f"there were {asked} agents"]
    faults += at_most("they began at most", match[2], spread_us / 1000)
    return faults + at_most("clocks", match[3], max(bounds_us) / 1000)


def proxy(run, match, state):
    """The ping of the longest round-trip time, and the CPU of the proxy beside the targets."""
    rtts_us = run.first["run"]["rtts_us"]
    longest = next(one.record["network"] for one in run.trials if one.rtt_us == max(rtts_us))
    faults = number("a ping", match[1], longest["ping_us"] / 1000)
    faults += number("without a delay", match[3], longest["own_us"] / 1000)
    faults += [] if float(match[2]) * 1000 == max(rtts_us) else ["not the longest round trip"]
    last = [one for one in run.counted if one.rtt_us in (None, max(rtts_us))]
    told = dict(re.findall(rf"([^,]+?) ({NUMBER})(?:, |$)", match[4]))
    for name in sorted({one.name for one in last if one.rtt_us is not None}):
        used = median([one.cpu_us("proxy") for one in last if one.name == name])
        faults += number(f"the proxy beside {name}", told.pop(name), used) if name in told else [f"{name} is not named"]
    absent = sorted({one.name for one in last if one.rtt_us is None})
    return faults + [f"no target is called {name}" for name in told] + \
        ([] if sorted(match[5].split(", ")) == absent else [f"without a network: {absent}"])


def counters(run, match, state):
    """"redis: keys not found +41,525 (keyspace_misses); ...": medians of how much the store's own counters grew."""
    if match[1] not in run.by_name:
        return [f"no target is called {match[1]}"]
    faults = []
    for words in match[2].split("; "):
        of = re.fullmatch(rf".+? \+({NUMBER}) \((.+)\)", words)
        grown = run.middle(match[1], lambda one: one.grown(of[2])) if of else None
        faults += number(of[2], of[1], grown) if of else [f"cannot be read: {words!r}"]
    return faults


NOTES = [
    (r"(\S+(?: \w+)?): (.+ \+\S+ \(.+\))", counters),
    (r"agents: (\d+) on one machine drove the clients\. They began at most (\S+) ms apart, by clocks known to (\S+) ms",
     agents),
    (r"network: a proxy .*? A ping through it took (\S+) ms at (\S+) ms, and (\S+) ms without a delay\. "
     r"Its CPU us/op, in no other number: (.+)\. No network: (.+)", proxy),
    (r"without a star, at most (\d+ %) of that", without_star),
    (r"no room for: .+ \(--wide\)", lambda *_: []),
    # It is not computed, but the names are.
    (r"requests were sent in bursts, not at independent times: (.+)",
     lambda run, match, state: [f"no target is called {name}" for name in match[1].split(", ") if name not in run.names]),
    (r"\* limited by the client: more than 80 % of what .* more than 90 % of the time, more than 5 % more with .*",
     lambda *_: []),
]
