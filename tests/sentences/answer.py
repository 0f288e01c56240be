"""The answer above the headline: who finished first, who comes behind, and what a sweep answered most."""

import re

from claims import NAME, group_in, percent
from intervals import CLAIM_BLOCKS
from points import of_run, is_kept, part_of, rate_of
from records import BATCH_ENGINES, quantile_ns
from tables import NUMBERS
from written import NUMBER, is_floor, number, parts


def took(run, name, text):
    """Complaints of "0.89 s" or "52 k requests/s"."""
    if text.endswith(" requests/s"):
        return number(f"the requests of {name}", text.removesuffix(" requests/s"), NUMBERS["requests/s"](run, name))
    return number(f"the seconds of {name}", text.removesuffix(" s"), run.lengths_s[name])


def first(run, match, state):
    """"a finished first: 0.89 s", "Tied: a and b, 0.89 s", "Not separated: a and 3 others, 0.5-0.9 s"."""
    best, beside, took_it = match[2] or match[4], match[3], match[5]
    standing, faults = group_in(run, state, best)
    if faults:
        return faults
    names = run.stores(run.group(best))
    others = [name for name in names[1:] if standing.is_open(names[0], name)]
    faults += [] if best == names[0] else [f"the best of its group is {names[0]}"]
    told = 0 if not beside else int(beside.split()[0]) if beside.endswith(" others") else 1
    if told != len(others) or told == 1 and beside != others[0]:
        faults.append(f"the records give {others} beside {best}")
    is_tied = others and all(standing.is_tied(best, name) for name in others)
    expected = ("tied" if is_tied else "not separated") if others else "alone"
    said = match[1].lower() if match[1] else "alone"
    faults += [] if said == expected else [f"by the records {best} is {expected}"]
    last = [name for name in names if name in others][-1:]
    low, _, high = took_it.rpartition("-")
    unit = " requests/s" if took_it.endswith("requests/s") else " s"
    if low:
        scale = re.search(r"(?: [kM])?(?: requests/s| s)$", high)[0] if not re.search(r" [kM]$", low) else unit
        return faults + took(run, best, low + scale) + took(run, last[0] if last else best, high)
    return faults + took(run, best, took_it) + (took(run, last[0], took_it) if last else [])


def too_noisy(run, match, state):
    names = run.stores()
    standing, faults = group_in(run, state, names[0])
    pairs = [(one, other) for one in names for other in names if one != other and standing.is_less(one, other)]
    faults += [f"{one} is claimed to be faster than {other}" for one, other in pairs]
    return faults + percent("the noise floor", match[1], run.floor)


def is_embedded(run, name):
    return run.by_name[name][0].record["target"]["transport"] == "in-process"


def behind(run, match, state):
    """"Best server: b, 10.8 s (at least 6.0x)", "Next: b, 1.06 s (1.18x)"."""
    which, name, took_it, bound, ratio = match.groups()
    standing, faults = group_in(run, state, name)
    if faults:
        return faults
    names = run.stores(run.group(name))
    servers = servers_behind(run, standing, names)
    slower = [one for one in names if standing.is_less(names[0], one)]
    expected = ("Best server", servers[0]) if servers else ("Next", slower[0] if slower else None)
    faults += [] if (which, name) == expected else [f"the records give {expected}"]
    if which == "Best server":
        faults += [f"{one} is not separated from {name}" for one in servers[1:] if standing.is_open(name, one)]
    return faults + ratio_to(standing, names[0], name, bound, ratio) + took(run, name, took_it)


def servers_behind(run, standing, names):
    """The servers, where an embedded store is claimed to be faster than the first of them."""
    servers = [one for one in names if not is_embedded(run, one)]
    leads = servers and is_embedded(run, names[0]) and standing.is_less(names[0], servers[0])
    return servers if leads else []


def servers(run, match, state):
    """"Servers: from 0.44 s (at least 13x)": more than one may be the best."""
    took_it, bound, ratio = match.groups()
    best = next(one for one in run.stores() if is_embedded(run, one))
    standing, faults = group_in(run, state, best)
    names = run.stores(run.group(best))
    behind_it = servers_behind(run, standing, names)
    if faults or not behind_it:
        return faults or ["no server is claimed to be behind"]
    if not any(standing.is_open(behind_it[0], one) for one in behind_it[1:]):
        faults.append(f"{behind_it[0]} is the best of them")
    return faults + ratio_to(standing, names[0], behind_it[0], bound, ratio) + took(run, behind_it[0], took_it)


def ratio_to(standing, best, name, bound, ratio):
    if (name, best) not in standing.ratios:
        return []
    seen, is_noisy = standing.ratios[name, best], standing.bars[name, best].is_noisy
    if (bound == "≥") != is_noisy:
        return [f"the ratio is {'' if is_noisy else 'not '}noisy"]
    if is_noisy:
        is_so = is_floor(ratio, 1 + seen.near_end())
        return [] if is_so else [f"at least {ratio}x, the near end is {1 + seen.near_end():.4g}"]
    return number("the ratio", ratio, seen.estimate)


def alone(run, match, state):
    standing, faults = group_in(run, state, match[1])
    others = [] if faults else [name for name in run.stores() if name != match[1]]
    return faults or took(run, match[1], match[2]) + [f"{name} has numbers too" for name in others]


def at_once(run, match, state):
    engines = [name for name in run.by_name if run.group(name) == BATCH_ENGINES]
    fastest = min(engines, key=run.lengths_s.get)
    faults = [] if match[1] == fastest else [f"the fastest is {fastest}"]
    faults += [f"{name} is a store" for name in run.stores()]
    return faults + took(run, fastest, match[2])


def few(run, match, state):
    is_so = int(match[1]) == len(run.blocks) < CLAIM_BLOCKS == int(match[2])
    return [] if is_so else [f"{len(run.blocks)} blocks count, and a claim needs {CLAIM_BLOCKS}"]


def groups(run, match, state):
    """"one value at a time: a, 0.5 s; via batch: b, 0.1 s": the first of two groups."""
    faults = []
    for words in match[0].split("; "):
        group, name, took_it = re.fullmatch(rf"([^:]+): ({NAME}), (.+)", words).groups()
        if name not in run.by_name:
            faults.append(f"no target is called {name}")
            continue
        names = run.stores(run.group(name))
        faults += [] if names[0] == name else [f"the best of its group is {names[0]}"]
        faults += took(run, name, took_it)
    return faults


def ways(run, match, state):
    """"Shortest: a, 0.4 s; 6 ways of asking, each ranked by itself"."""
    names = run.stores()
    shortest = min(names, key=run.lengths_s.get)
    count = len({run.group(name) for name in names})
    faults = [] if match[1] == shortest else [f"the shortest is {shortest}"]
    faults += [] if int(match[3]) == count else [f"there are {count} groups"]
    return faults + took(run, shortest, match[2])


def most(run, match, state):
    """"Highest set rates measured: a 120 k/s, b 90 k/s": the best points of two stores."""
    known, part = of_run(run), part_of(match[1] + "s")
    best = {}
    for key in known.phases:
        if key[0] == part and not run.is_baseline(key[2]) and key not in known.unclear:
            best[key[2]] = max(best.get(key[2], 0), known.middle(key, rate_of))
    order = sorted(best, key=best.get, reverse=True)
    told = [(match[2], match[3])] + ([(match[4], match[5])] if match[4] else [])
    faults = [] if part == known.parts[0] else ["it is not the first part"]
    for (name, rate), expected in zip(told, order):
        faults += [] if name == expected else [f"the records give {expected}"]
        faults += number(name, rate, best.get(name))
    return faults + ([] if len(told) == min(2, len(order)) else [f"it names {len(told)} of {len(order)}"])


def within(run, match, state):
    """"At 2,000 requests/s, p99: a 378 us, b 400 us"."""
    known, rate = of_run(run), int(match[1].replace(",", ""))
    keys = [(known.parts[0], rate, name) for at, of, name in known.phases
            if (at, of) == (known.parts[0], rate) and not run.is_baseline(name)]
    kept = [key for key in keys if all(is_kept(phase) for phase in known.phases[key])]
    times = {key[2]: quantile_ns([phase["open"]["response_ns"] for phase in known.phases[key]], 0.99) for key in kept}
    order = sorted(times, key=times.get)
    told = [(match[2], match[3])] + ([(match[4], match[5])] if match[4] else [])
    faults = [] if len(told) == min(2, len(order)) else [f"it names {len(told)} of {len(order)}"]
    for (name, time), expected in zip(told, order):
        faults += [] if name == expected else [f"the records give {expected}"]
        faults += number(name, time, times.get(name))
    return faults


TOOK = rf"({NUMBER}(?: [kM])? requests/s|{NUMBER} s)"
RATE = rf"({NUMBER}(?: [kM])?)"
RULES = [
    (rf"(?:(Tied|Not separated): ({NAME}) and ({NAME}|\d+ others), |({NAME}) (?:finished first|served most): )"
     rf"((?:{NUMBER}(?: [kM])?-)?{NUMBER}(?:(?: [kM])? requests/s| s))", first),
    (rf"Too noisy to rank: the noise floor is ({NUMBER} %)", too_noisy),
    (rf"Servers: from {TOOK} \((≥|about )?({NUMBER})x\)", servers),
    (rf"(Best server|Next): ({NAME}), {TOOK} \((≥|about )?({NUMBER})x\)", behind),
    (rf"({NAME}) finished in {TOOK}", alone),
    (rf"({NAME}) counted everything at once in {TOOK}", at_once),
    (r"Not ranked: (\d+) blocks? ran, (\d+) are needed", few),
    (rf"Shortest: ({NAME}), {TOOK}; (\d+) ways of asking, each ranked by itself", ways),
    (rf"[^:;]+: {NAME}, {NUMBER}[^;]*; [^:;]+: {NAME}, {NUMBER}[^;]*", groups),
    (rf"Highest (\w+) rates measured: ({NAME}) {RATE}/s(?:, ({NAME}) {RATE}/s)?", most),
    (rf"At ([\d,]+) requests/s, p99: ({NAME}) (\S+ \w+)(?:, ({NAME}) (\S+ \w+))?", within),
]
