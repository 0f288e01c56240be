"""The sentences of a verdict: who is faster, tied or uses more CPU, and how large a difference may be hidden."""

import re

from intervals import CLAIM_BLOCKS
from records import BATCH_ENGINES, Trial
from written import NUMBER, number, times_as

TOLD = 2
# A difference is found nine times in ten where it is so many times the half of an interval.
SEEN = 1.8
# The name of a target: "redis+unix?counters=hash batch", "redis 6.2.5".
NAME = r"\S+(?: (?:batch|native|cas|portable|[\d.]+))?"
OVER = {"in-process": "in process", "unix": "over a Unix socket", "tcp": "over TCP"}


def group_in(run, state, *names):
    """The group of these targets, which must be the one that is spoken of."""
    unknown = [name for name in names if name not in run.by_name]
    if unknown:
        return None, [f"no target is called {name}" for name in unknown]
    groups = {run.group(name) for name in names}
    if len(groups) > 1 or (state.group and groups != {state.group}):
        return None, [f"they are of {sorted(groups)}, and {state.group or 'one group'} is spoken of"]
    return run.by_time(groups.pop()), []


def percent(what, text, share):
    """Kvfair writes shares with one place below 9.95 %."""
    return number(what, text, share)


def doubt_floor(run, match, state):
    faults = [] if run.is_noisy and not run.most_discarded else ["the run is not noisy by its A/A intervals"]
    return faults + percent("the noise floor", match[1], run.floor)


def doubt_machine(run, match, state):
    told = (int(match[1]), int(match[2]))
    seen = (len(run.discarded), len(run.ran))
    return ([] if told == seen else [f"the records give {seen[0]} of {seen[1]}"]) + \
        ([] if run.most_discarded else ["most blocks were not disturbed"])


def no_claim(run, match, state):
    return [] if int(match[1]) == len(run.blocks) < CLAIM_BLOCKS == int(match[2]) else \
        [f"{len(run.blocks)} blocks count, and a claim needs {CLAIM_BLOCKS}"]


def did_the_job(run, match, state):
    standing, faults = group_in(run, state, match[1])
    others = [] if faults else [name for name in run.stores(run.group(match[1])) if name != match[1]]
    return faults or number("its seconds", match[2], run.lengths_s[match[1]]) + \
        [f"{name} did it too" for name in others]


def named_by_transport(run, one, other):
    """The two targets of "redis over a Unix socket" and "over TCP"."""
    for faster in run.stores():
        for slower in run.stores():
            targets = [run.by_name[name][0].record["target"] for name in (faster, slower)]
            words = [OVER[target["transport"]] for target in targets]
            is_one_store = targets[0]["store"] == targets[1]["store"] and run.group(faster) == run.group(slower)
            if is_one_store and one == f"{targets[0]['store']} {words[0]}" and other == words[1]:
                return faster, slower
    return one, other


def is_faster(run, match, state):
    one, took, other, ratio, rough = match.groups()
    if one not in run.by_name:
        one, other = named_by_transport(run, one, other)
    standing, faults = group_in(run, state, one, other)
    if faults:
        return faults
    if not standing.is_less(one, other):
        faults.append(f"the records do not claim that {one} is faster than {other}")
    if (one, other) in standing.ratios:
        median_ratio, bar = standing.ratios[other, one], standing.bars[other, one]
        faults += times_as("the ratio", ratio, median_ratio, bar.is_noisy)
        if median_ratio.estimate - 1 <= bar.floor:
            faults.append(f"the ratio {median_ratio.estimate:.3g} is within the noise floor {bar.floor * 100:.1f} %")
        whole, count = len(standing.whole), len(run.blocks)
        expected = None if median_ratio.is_exact else f"{whole} blocks" if whole == count else \
            f"{whole} of the {count} blocks that count have every target"
        if rough != expected:
            faults.append(f"rough: {rough}, the records give {expected}")
    if took:
        faults += number(f"the seconds of {one}", took, run.lengths_s[one])
        best = run.stores(run.group(one))[0]
        faults += [] if best == one or "over" in match[1] else [f"the best of its group is {best}"]
    state.pairs["faster"].append((one, other))
    return faults


def listed(words):
    """The names and seconds of "a (1.0 s), b (1.1 s) and 2 more", and how many more."""
    more = re.search(r" and (\d+) more$", words)
    words = words[:more.start()] if more else words
    parts = re.split(r", | and ", words)
    return [re.fullmatch(rf"({NAME})(?: \(([^)]+)\))?", part) for part in parts], int(more[1]) if more else 0


def first_place(run, match, state):
    """"a (0.29 s), b (0.33 s) are tied for first place", "... are not separated: too few blocks, about 8 would do"."""
    found, more = listed(match[1])
    if None in found:
        return [f"no list of targets: {match[1]!r}"]
    names = [one[1] for one in found]
    best = match[3] or names[0]
    standing, faults = group_in(run, state, best, *names)
    if faults:
        return faults
    for one in found:
        if one[2]:
            faults += number(f"the seconds of {one[1]}", one[2].removesuffix(" s"), run.lengths_s[one[1]])
    of_group = run.stores(run.group(best))
    if best != of_group[0]:
        faults.append(f"the best of its group is {of_group[0]}")
    others = [name for name in of_group if name != of_group[0] and standing.is_open(of_group[0], name)]
    tied = [name for name in others if standing.is_tied(of_group[0], name)]
    is_tied = match[2].startswith("tied")
    expected = tied if is_tied else [name for name in others if name not in tied]
    told = [name for name in names if name != best]
    if told != expected[:len(told)] or len(told) + more != len(expected):
        faults.append(f"the records give {', '.join(expected) or 'none'} beside {best}")
    if match[4]:
        blocks = [standing.blocks_for(best, name) for name in expected]
        if None in blocks:
            faults += [] if match[4].startswith("too much noise") else ["no number of blocks would do"]
        else:
            would_do = f"too few blocks, about {max(blocks):,} would do"
            faults += [] if match[4] == would_do else [f"the records give: {would_do}"]
    state.open.add(run.group(best))
    return faults


def neighbours(run, state, how, group=None):
    """Neighbours in the table that are tied or not separated, without those of the first place."""
    pairs = []
    group = group or state.group or next(run.group(name) for name in run.stores())
    names, standing = run.stores(group), run.by_time(group)
    first = {name for name in names if name == names[0] or standing.is_open(names[0], name)}
    for one, other in zip(names, names[1:]):
        if standing.is_open(one, other) and not {one, other} <= first:
            if standing.is_tied(one, other) == (how == "tied"):
                pairs.append((one, other))
    return pairs


def are_alike(run, match, state):
    """"a and b are tied", "a and b are not separated"."""
    standing, faults = group_in(run, state, match[1], match[2])
    if faults:
        return faults
    pairs = neighbours(run, state, match[3], run.group(match[1]))
    if (match[1], match[2]) not in pairs:
        faults.append(f"the records give these pairs of neighbours: {pairs}")
    state.pairs[match[3]].append((match[1], match[2]))
    return faults


def more_pairs(run, match, state):
    pairs = neighbours(run, state, match[2])
    state.more[state.group, match[2]] = int(match[1])
    told = sum(run.group(one) == run.group(pairs[0][0]) for one, _ in state.pairs[match[2]]) if pairs else 0
    is_right = int(match[1]) == len(pairs) - told
    return [] if is_right else [f"the records give {len(pairs)} pairs, of which {told} are named"]


def hidden(run, match, state):
    """How large a difference would have shown between neighbours of which nothing is claimed."""
    most = run.floor
    for group in {run.group(name) for name in run.stores()}:
        names, standing = run.stores(group), run.by_time(group)
        for one, other in zip(names, names[1:]):
            if standing.is_open(one, other) and (one, other) in standing.ratios:
                most = max(most, standing.bars[one, other].floor, SEEN * standing.ratios[one, other].half())
    return percent("it", match[1], most)


def least_of(run, match, state):
    """"a and b are tied for the least CPU per op; c uses at least 2.4 times as much CPU as a, d uses ...", and p99."""
    who, how, what, rest = match.groups()
    is_cpu = what == "CPU per op"
    standing = run.by_cpu() if is_cpu else run.by_p99()
    if is_cpu:
        middle = {name: sum(run.middle(name, lambda one: one.cpu_us(of)) or 0 for of in ("client", "server")) *
                  run.by_name[name][0].ops for name in run.stores()}
    else:
        from tables import NUMBERS
        middle = {name: NUMBERS["op p99"](run, name) for name in run.stores()}
    order = sorted(middle, key=middle.get)
    least = order[0]
    more = [name for name in order if standing.is_less(least, name)]
    equal = [name for name in order if name not in more]
    found, others = listed(who)
    if None in found:
        return [f"no list of targets: {who!r}"]
    names, faults = [one[1] for one in found], []
    if names != equal[:len(names)] or len(names) + others != len(equal):
        faults.append(f"the records give {', '.join(equal)}")
    for one in found:
        if one[2] and not is_cpu:
            faults += number(f"the p99 of {one[1]}", one[2], middle.get(one[1]))
    expected = "alone" if len(equal) == 1 else \
        "tied" if all(standing.is_tied(least, name) for name in equal[1:]) else "not separated"
    told = "tied" if how.startswith("are tied") else "not separated" if how.startswith("are not") else "alone"
    faults += [] if told == expected else [f"they are {expected} by the records"]
    named = re.split(rf", (?={NAME} (?:uses|has) )", rest)
    wanted = [more[0], more[-1]] if len(more) > TOLD else more
    if len(named) != len(wanted):
        return faults + [f"it names {len(named)} of {wanted}"]
    for words, name in zip(named, wanted):
        uses = rf"({NAME}) (?:uses|has) (.+?) (?:as much CPU|as long a p99)(?: as ({NAME}))?( \[\S+\])?"
        of = re.fullmatch(uses, words)
        if not of or of[1] != name or (of[3] or least) != least:
            faults.append(f"{words!r}: expected {name} beside {least}")
            continue
        if (name, least) in standing.ratios:
            ratio, bar = standing.ratios[name, least], standing.bars[name, least]
            faults += times_as(name, of[2] + (of[4] or ""), ratio, bar.is_noisy)
    return faults


def not_told_apart(run, match, state):
    standing = run.by_cpu() if match[1] == "CPU per op" else run.by_p99()
    names = run.stores()
    return [f"{one} is claimed before {other}" for one, other in standing.claims if {one, other} <= set(names)][:1]


def batch_count(run, match, state):
    """"Counting incrementally in a took 4.2 times as long as the batch count by b [3.8-4.3]"."""
    store, ratio, engine, ends = match.groups()
    if store not in run.by_name or engine not in run.by_name:
        return ["no such targets"]
    best = min((name for name in run.by_name if not run.is_baseline(name)), key=run.lengths_s.get)
    fastest = min((name for name in run.by_name if run.group(name) == BATCH_ENGINES), key=run.lengths_s.get)
    faults = [] if (store, engine) == (best, fastest) else [f"the best are {best} and {fastest}"]
    standing = run.standing(("batch", store, engine), run.cost, {store, engine})
    return faults + times_as("it", ratio + " times" + (ends or ""), standing.ratios[store, engine], False)


def medians_apart(run, match, state):
    faults = []
    for name, text in re.findall(rf"({NAME}) ({NUMBER})x", match[1]):
        if name not in run.by_name:
            faults.append(f"no target is called {name}")
            continue
        best = run.stores(run.group(name))[0]
        faults += number(name, text, run.lengths_s[name] / run.lengths_s[best])
    return faults


def waits(run, match, state):
    """"97 % of a is waiting for one answer at a time"."""
    if match[2] not in run.by_name:
        return [f"no target is called {match[2]}"]
    one = run.by_name[match[2]][0]
    faults = [] if one.record["memory"]["server"] else ["it has no server"]
    return faults + number("the share", match[1], run.middle(match[2], Trial.waiting))


def unsaid(run, state):
    """What a verdict of times leaves out: who is first, and each pair of neighbours of which nothing is claimed."""
    faults = []
    for group in sorted({run.group(name) for name in run.stores()}):
        names, standing = run.stores(group), run.by_time(group)
        if len(names) < 2:
            continue
        is_open = any(standing.is_open(names[0], name) for name in names[1:])
        if is_open != (group in state.open):
            faults.append(f"{group}: {names[0]} is {'not ' * is_open}alone in the first place; the text says otherwise")
        is_told = any(one == names[0] for one, _ in state.pairs["faster"])
        if not is_told and any(standing.is_less(names[0], name) for name in names):
            faults.append(f"{names[0]} is claimed to be faster than others of {group}, and the text does not say so")
        for how in ("tied", "not separated"):
            pairs = neighbours(run, state, how, group)
            named = [pair for pair in state.pairs[how] if run.group(pair[0]) == group]
            more = sum(count for (of, what), count in state.more.items() if of in (group, None) and what == how)
            if len(named) + more != len(pairs) or named != pairs[:len(named)]:
                faults.append(f"{group}: {len(pairs)} pairs are {how}, and {len(named) + more} are told: {pairs}")
    for how in ("tied", "not separated"):
        both = set(state.pairs[how]) & {pair[::way] for pair in state.pairs["faster"] for way in (1, -1)}
        faults += [f"{one} and {other} are called {how}, and one faster" for one, other in sorted(both)]
    return faults


SECONDS = rf"({NUMBER}) s"
TIMES = rf"((?:at least |about )?{NUMBER} times as long(?: \[{NUMBER}-{NUMBER}\])?)"
RULES = [
    (rf"Single times are not reliable: noise floor ({NUMBER} %)", doubt_floor),
    (r"Single times are not reliable: the machine disturbed (\d+) of (\d+) blocks", doubt_machine),
    (r"No claim: (\d+) blocks? ran, and a claim needs at least (\d+)", no_claim),
    (rf"({NAME}) did the job in {SECONDS}", did_the_job),
    (rf"({NAME}|\S+ (?:over a Unix socket|over TCP|in process))(?: \({SECONDS}\))? is faster than "
     rf"({NAME}|over TCP|over a Unix socket), which takes {TIMES}(?: \(rough: only (.+)\))?", is_faster),
    (rf"(.+) are (tied for first place)()()", first_place),
    (rf"(.+) (?:is|are) (not separated)(?: from ({NAME}))?: (too few blocks, about .* would do|too much noise, .*)",
     first_place),
    (rf"({NAME}) and ({NAME}) are (tied|not separated)", are_alike),
    (r"(\d+) more pairs of neighbours in the table are (tied|not separated)", more_pairs),
    (rf"Ties may hide differences below ({NUMBER} %)", hidden),
    (rf"Differences below ({NUMBER} %) are not detected", hidden),
    (r"(.+?) ((?:uses|has) the least|(?:uses|has) the shortest|are tied for the \w+|are not separated at the \w+) "
     r"(CPU per op|p99 of a request); (.+)", least_of),
    (r"The stores cannot be told apart by (CPU per op|p99 of a request)(?:: .*)?", not_told_apart),
    (rf"Counting incrementally in ({NAME}) took ({NUMBER}) times as long as the batch count by (\S+)( \[\S+\])?",
     batch_count),
    (r"Medians over all blocks give (.+): times changed between blocks", medians_apart),
    (rf"(?:next: )?(\d+ %) of ({NAME}) is waiting for one answer at a time: see .*", waits),
]
