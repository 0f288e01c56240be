"""Sweeps over numbers of clients and over rates: each point of each target beside the records."""

import functools
import re

from intervals import CLAIM_BLOCKS, Standing, median
from records import above, counts_of, cpu_s, quantile_ns, servers_usage
from replicated import TITLES as OF_REPLICAS
from written import NUMBER, interval, number, times_as

CEILING_SHARE, BUSY_SHARE, RISE = 0.8, 0.9, 1.05
LAG_NS, LAG_SHARE = 100_000, 0.1


def rate_of(phase):
    return phase["units"] / phase["took_s"]


def is_kept(phase):
    open_ = phase["open"]
    return open_["late"] is None and phase["took_s"] <= open_["due_s"] * 1.01 + 0.1


def step_of(phase):
    return phase["open"]["rate"] if phase.get("open") else phase["clients"]


def is_disturbed(phase):
    return bool(phase.get("noise")) and bool(above(phase["noise"], 2))


def seconds_a_request(phase):
    if phase.get("open"):
        times = [phase["open"]["response_ns"]]
        return (quantile_ns(times, 0.99) or quantile_ns(times, 0.5, 0)) / 1e9 if is_kept(phase) else None
    return phase["took_s"] / phase["units"]


def cpu_us_a_request(phase, who=("client", "server")):
    usages = [phase["client"] if one == "client" else servers_usage(phase) for one in who]
    return sum(cpu_s(usage) for usage in usages if usage) * 1e6 / phase["units"]


class Points:
    """Phases by part, step and target: those that the machine left alone, or all where it disturbed most."""

    def __init__(self, run):
        self.run, self.phases, self.unclear = run, {}, set()
        self.takes_all = run.first["run"].get("accepts_noise", False)
        for one in run.counted:
            for phase in one.points:
                self.phases.setdefault((phase["name"], step_of(phase), one.name), []).append(phase)
        for key, phases in self.phases.items():
            quiet = [phase for phase in phases if not self.is_left_out(phase)]
            if 2 * len(quiet) < len(phases):
                self.unclear.add(key)
            else:
                self.phases[key] = quiet
        self.ways = {one.name: (one.record["store"]["client_library"], one.record["target"]["transport"])
                     for one in run.counted if one.record["target"]["transport"] != "in-process"}
        self.parts = sorted({key[0] for key in self.phases}, key=lambda part: part != "set")
        self.steps = sorted({key[1] for key in self.phases})
        self.is_rated = any(phase.get("open") for phases in self.phases.values() for phase in phases)
        self.standings = {}

    def is_left_out(self, phase):
        return is_disturbed(phase) and not self.takes_all

    def middle(self, key, of):
        return median([of(phase) for phase in self.phases[key]])

    def ceiling_share(self, key):
        part, step, name = key
        for other in self.ways:
            if self.run.is_baseline(other) and name in self.ways and self.ways[other] == self.ways[name] \
                    and (part, step, other) in self.phases and not self.run.is_baseline(name):
                return self.middle(key, rate_of) / self.middle((part, step, other), rate_of)
        return None

    @functools.lru_cache(None)
    def is_limited(self, key):
        """The load generator limits it: it has a star."""
        phases = self.phases[key]
        busy = [cpu_s(one["client"]) / (one["took_s"] * max(1, one["threads"])) for one in phases if one.get("server")]
        rises = []
        for one in self.run.by_name[key[2]]:
            phases_of = [phase for phase in one.record["phases"] if phase["name"] == key[0]]
            for twice in (phase for phase in phases_of if phase.get("doubled")):
                same = [phase for phase in phases_of if phase["point"] == twice["point"] and not phase.get("doubled")]
                plain = same[0]
                if step_of(plain) == key[1]:
                    rises.append(rate_of(twice) / rate_of(plain))
        return (self.ceiling_share(key) or 0) > CEILING_SHARE or bool(busy) and median(busy) > BUSY_SHARE \
            or bool(rises) and median(rises) > RISE or self.is_late(phases)

    def is_late(self, phases):
        """Requests were sent too late, over connections that have several under way."""
        if not all((phase.get("open") or {}).get("pipelined") for phase in phases):
            return False
        response, lag = (quantile_ns([phase["open"][of] for phase in phases], 0.99) for of in ("response_ns", "lag_ns"))
        has_time = all(phase.get("server") and cpu_s(phase["server"]) < BUSY_SHARE * phase["took_s"]
                       for phase in phases if not is_kept(phase))
        return has_time and None not in (response, lag) and lag > max(LAG_NS, int(response * LAG_SHARE))

    def standing(self, part, step, group, by):
        """Of time: those that the generator does not limit; of CPU: all stores."""
        key = (part, step, group, by)
        if key not in self.standings:
            names = [name for at, of, name in self.phases if (at, of) == (part, step) and not self.run.is_baseline(name)
                     and self.run.group(name) == group and (part, step, name) not in self.unclear
                     and (by == "cpu" or not self.is_limited((part, step, name)))]
            cost = seconds_a_request if by == "time" else cpu_us_a_request
            is_here = lambda phase: (phase["name"], step_of(phase)) == (part, step) and not self.is_left_out(phase)
            of = lambda one: next((cost(phase) for phase in one.points if is_here(phase)), None)
            costs = {}
            for one in self.run.counted:
                if one.name in names and of(one):
                    costs.setdefault(one.name, {})[one.block] = of(one)
            controls = [control[:2] for control in self.run.controls_by(of)]
            self.standings[key] = Standing(costs, self.run.lengths_s, controls, self.run.most_discarded)
        return self.standings[key]

    def fastest(self, standing):
        return min(standing.names, key=lambda name: median([standing.costs[name][block] for block in standing.whole]))


def of_run(run):
    if not hasattr(run, "points"):
        run.points = Points(run)
    return run.points


def part_of(word):
    word = word[:-1] if word.endswith("s") else word
    return "run" if word in ("request", "replica", "read") else word


def check_table(report, run, table):
    """The cells of one table of a sweep, by what its title says."""
    known, names = of_run(run), [name for name, _ in table.heading]
    for pattern, rule in TITLES:
        match = re.fullmatch(pattern, table.title)
        if match:
            break
    else:
        report.fact(table.title, ["no rule reads this table"])
        return
    steps = {key[1] for key in known.phases if key[0] == part_of(match[1])}
    for line in table.rows:
        step = int(re.sub(r"\D", "", line.split()[0]) or 0)
        steps.discard(step)
        cells = table.cells(line)
        for column, name in list(enumerate(names))[1:]:
            what, text = f"{table.title}: {step}, {name}", cells.get(column)
            key = (part_of(match[1]), step, name)
            if key not in known.phases:
                report.cell(what, ["no such point in the records"] if text not in (None, "-") else [])
            elif text is not None:
                report.cell(f"{what} {text}", rule(known, key, what, text))
            elif "vs best" not in table.title:
                report.cell(what, ["no cell"])
    report.fact(table.title, [f"no row of {step}" for step in sorted(steps)])


def check_columns(report, run, parts):
    """The tables of one title have each target once."""
    for title in {table.title for table in parts}:
        seen = [name for table in parts if table.title == title for name, _ in table.heading[1:]]
        wanted = set(run.by_name) if "vs best" not in title else set(run.stores())
        twice = sorted({name for name in seen if seen.count(name) > 1})
        report.fact(title, [f"{name} has more than one column" for name in twice])
        report.fact(title, [f"{name} has no column" for name in sorted(wanted - set(seen))])


def star_faults(known, key, what, text):
    """A star stands where the client limits the point, and nowhere else."""
    if text.endswith("*") == known.is_limited(key):
        return []
    return [f"{what}: {text}, the client {'does not limit it' if text.endswith('*') else 'limits it'}"]


def per_second(known, key, what, text):
    return number(what, text.rstrip("*"), known.middle(key, rate_of)) + star_faults(known, key, what, text)


def beside_best(known, key, what, text):
    part, step, name = key
    standing = known.standing(part, step, known.run.group(name), "time")
    if name not in standing.names:
        return [] if text == "-" else [f"{what}: {text}, and it is not ranked"]
    return interval(what, text, *standing.to_the_best(name))


def cpu(known, key, what, text):
    texts = text.split(" + ")
    whos = [who for who in ("client", "server") if known.phases[key][0].get(who)]
    if len(texts) != len(whos):
        return [f"{what}: {text}, the records give {len(whos)} numbers"]
    faults = [number(what, one, known.middle(key, lambda phase: cpu_us_a_request(phase, (who,))))
              for one, who in zip(texts, whos)]
    return sum(faults, [])


def response(share):
    def rule(known, key, what, text):
        if not all(is_kept(phase) for phase in known.phases[key]):
            return [] if text.startswith("overload") else [f"{what}: {text}, and the rate was not kept"]
        times = [phase["open"]["response_ns"] for phase in known.phases[key]]
        value = quantile_ns(times, share, 0 if share in (0.5, 1.0) else 10)
        faults = [] if value is None and text.rstrip("*") == "-" else number(what, text.rstrip("*"), value)
        return faults + star_faults(known, key, what, text)
    return rule


def service(share):
    def rule(known, key, what, text):
        value = quantile_ns([phase["times_ns"] for phase in known.phases[key]], share, 0 if share in (0.5, 1.0) else 10)
        return number(what, text, value) if text != "-" or value else []
    return rule


def ends(known, key, what, text):
    rates = [rate_of(phase) for phase in known.phases[key]]
    told = zip(text.rstrip("*").split(".."), (min(rates), max(rates)))
    return [fault for end, rate in told for fault in number(what, end, rate)]


def lag(known, key, what, text):
    value = quantile_ns([phase["open"]["lag_ns"] for phase in known.phases[key]], 0.99)
    return star_faults(known, key, what, text) + number(what, text.rstrip("*"), value)


def timed_out(known, key, what, text):
    responses = [counts_of(phase["open"]["response_ns"]) for phase in known.phases[key]]
    late = sum(count for counts in responses for time_ns, count in counts.items() if time_ns >= 1e10)
    return star_faults(known, key, what, text) + number(what, text.rstrip("*"), late)


# Of --wide those of the second half.
TITLES = [
    (r"(\w+)s per second", per_second),
    (r"time of a (\w+), vs best \(at rates its p99\), with intervals", beside_best),
    (r"CPU us per (\w+), client \+ server", cpu),
    (r"response of a (\w+), from when it was due to its answer: median", response(0.5)),
    (r"response of a (\w+): p99", response(0.99)),
    (r"response of a (\w+): p99\.9", response(0.999)),
    (r"response of a (\w+): longest", response(1.0)),
    (r"(\w+) that were answered after 10 s or later", timed_out),
    (r"lag of a (\w+), from when it was due to its sending: p99", lag),
    (r"time of a (\w+) while all clients ask at once, median \(not what users would wait\)", service(0.5)),
    (r"time of a (\w+) while all clients ask at once, p99", service(0.99)),
    (r"(\w+)s per second, lowest\.\.highest of the blocks", ends),
    *OF_REPLICAS,
]


def step_words(step, is_rated):
    return f"at {step:,}/s" if is_rated else "with 1 client" if step == 1 else f"with {step:,} clients"


def most(run, match, state):
    """"Most sets per second: redis 120 k with 10 clients, ...": the best point of each store."""
    known, part, faults = of_run(run), part_of(match[1]), []
    best = {}
    for key in known.phases:
        if key[0] == part and not run.is_baseline(key[2]) and key not in known.unclear:
            rate = known.middle(key, rate_of)
            if rate > best.get(key[2], (0,))[0]:
                best[key[2]] = (rate, key)
    order = sorted(best.values(), key=lambda one: -one[0])
    told = re.split(r", (?=\S+(?: [\d.]+)? (?:at least )?\d)", match[2])
    if part != known.parts[0] or len(told) != len(order):
        return [f"it names {len(told)} of {len(order)} stores"]
    for words, (rate, key) in zip(told, order):
        limited = known.is_limited(key)
        of = re.fullmatch(r"(.+?) (at least )?(\d[\d.]*(?: [kM])?) (with .+ clients?|of .+ bytes)"
                          r"( \(limited by the load generator\))?", words)
        if not of or of[1] != key[2] or of[4] != step_words(key[1], False):
            faults.append(f"{words!r}: expected {key[2]} {step_words(key[1], False)}")
        elif bool(of[2]) != limited or bool(of[5]) != limited:
            faults.append(f"{words!r}: the client {'limits' if limited else 'does not limit'} it")
        else:
            faults += number(key[2], of[3], rate)
    return faults


def claim(run, match, state):
    """"Sets with 300 clients: A took least time; B at least 2.0x, C 1.4x [..] as long; D and A are tied"."""
    known = of_run(run)
    part, step = part_of(match[1].lower()), int(match[2].replace(",", ""))
    if (part, step) != (known.parts[0], known.steps[-1]):
        return ["it is not of the last step of the first part"]
    return claim_faults(known, part, step, match[4], "cpu" if match[0].startswith("CPU") else "time")


def claim_faults(known, part, step, words, by):
    """The pieces of such a sentence."""
    group = next(known.run.group(name) for _, _, name in known.phases if not known.run.is_baseline(name))
    standing = known.standing(part, step, group, by)
    if len(standing.whole) < CLAIM_BLOCKS:
        return [f"a claim of {len(standing.whole)} blocks"]
    best, faults, told = known.fastest(standing), [], set()
    for piece in words.split("; "):
        head = re.fullmatch(r"(.+) (?:took least time|used least)", piece)
        alike = re.fullmatch(r"(.+) and (.+?) are (tied|not separated)", piece)
        if head:
            faults += [] if head[1] == best else [f"{best} is the best, not {head[1]}"]
        elif alike:
            faults += [] if alike[2] == best else [f"{best} is the best, not {alike[2]}"]
            for name in alike[1].split(", "):
                told.add(name)
                faults += alike_faults(standing, name, best, alike[3] == "tied")
        else:
            more = re.sub(r" as (long|much)$", "", piece)
            for one in re.split(r", (?=\S+(?: [\d.]+)? (?:at least |about )?\d)", more):
                of = re.fullmatch(rf"(\S+(?: [\d.]+)?) ((?:at least |about )?{NUMBER}x.*)", one)
                if not of or of[1] not in standing.names:
                    faults.append(f"cannot be read: {one!r}")
                    continue
                told.add(of[1])
                if not standing.is_less(best, of[1]):
                    faults.append(f"{best} is not claimed to need less than {of[1]}")
                ratio, bar = standing.ratios[of[1], best], standing.bars[of[1], best]
                faults += times_as(of[1], of[2].replace("x", "", 1), ratio, bar.is_noisy)
    missing = set(standing.names) - told - {best}
    return faults + [f"{name} is not named" for name in sorted(missing)]


def alike_faults(standing, name, best, is_tied):
    """None of the two is claimed to need less, and they are tied or not as it says."""
    if name not in standing.names:
        return [f"{name} is no store of this point"]
    faults = [] if standing.is_open(name, best) else [f"{name} is claimed to differ from {best}"]
    if standing.is_tied(best, name) != is_tied:
        faults.append(f"{name} and {best} are {'not ' if is_tied else ''}tied")
    return faults


def within(run, match, state):
    """"At 2,000/s, 99 % were answered within: lmdb 378 us, ..."."""
    known, rate, faults = of_run(run), int(match[1].replace(",", "")), []
    keys = [(known.parts[0], rate, name) for at, of, name in known.phases
            if (at, of) == (known.parts[0], rate) and not run.is_baseline(name)]
    kept = [key for key in keys if all(is_kept(phase) for phase in known.phases[key])]
    times = {key[2]: quantile_ns([phase["open"]["response_ns"] for phase in known.phases[key]], 0.99) for key in kept}
    told = match[2].split("; not kept by ")[0].split(", ")
    if len(told) != len(times):
        faults.append(f"it names {len(told)} of {len(times)} stores")
    for words, name in zip(told, sorted(times, key=times.get)):
        limited = known.is_limited((known.parts[0], rate, name))
        of = re.fullmatch(r"(\S+) (at most )?(\S+ \ws|\S+ s)( \(limited by the load generator\))?", words)
        if not of or of[1] != name or bool(of[2]) != limited or bool(of[4]) != limited:
            faults.append(f"{words!r}: expected {name}, the client {'limits' if limited else 'does not limit'} it")
        else:
            faults += number(name, of[3], times[name])
    return faults


def limited_points(run, match, state):
    """"19 of 60 points are limited by the client"."""
    known = of_run(run)
    keys = [key for key in known.phases if not run.is_baseline(key[2])]
    limited = sum(known.is_limited(key) for key in keys)
    is_right = (int(match[1]), int(match[2])) == (limited, len(keys))
    return [] if is_right else [f"the records give {limited} of {len(keys)}"]


def without_star(run, match, state):
    known = of_run(run)
    shares = [known.ceiling_share(key) for key in known.phases if not known.is_limited(key)]
    return number("the share", match[1], max(share for share in shares if share is not None))


def short_point(run, match, state):
    """"the gets of lmdb with 8 clients finished in 0.024 s": of all blocks that count, the shortest point."""
    medians = {}
    for one in run.counted:
        for phase in one.points:
            if not one.is_baseline and not phase.get("open"):
                medians.setdefault((phase["name"], one.name, phase["clients"]), []).append(phase["took_s"])
    shortest = min(medians, key=lambda key: median(medians[key]))
    told = (part_of(match[1]), match[2], int(match[3].replace(",", "")))
    faults = [] if told == shortest else [f"the shortest is {shortest}"]
    took_s = median(medians[shortest])
    return faults + number("it", match[4], took_s) + ([] if took_s < 0.05 else ["it is not below 0.05 s"])
