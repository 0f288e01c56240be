"""The cells of tables of targets, of sweeps and of round trips beside the records."""

import re

import points
import replicated
from intervals import Standing, median
from page import SERVERS
from records import BATCH_ENGINES, PLAIN, quantile_ns
from written import agrees, interval, number, parts, shown

# Columns of one number each: what it is of a run's target. Bytes and times in nanoseconds have their units in the text.
NUMBERS = {
    "seconds": lambda run, name: run.lengths_s[name],
    "requests/s": lambda run, name: run.by_name[name][0].run["units"] / run.lengths_s[name],
    "waiting": lambda run, name: run.middle(name, lambda one: one.waiting()),
    "memory": lambda run, name: sum(run.middle(name, lambda one: one.peak(kind)) for kind in ("anonymous", "shared")),
    "mapped": lambda run, name: run.middle(name, lambda one: one.peak("file")),
    "disk": lambda run, name: run.middle(name, lambda one: one.record["bytes_on_disk"]),
    "op p50": lambda run, name: quantile_ns([one.run["times_ns"] for one in run.by_name[name]], 0.5, 0),
    "op p99": lambda run, name: quantile_ns([one.run["times_ns"] for one in run.by_name[name]], 0.99),
    "op p99.9": lambda run, name: quantile_ns([one.run["times_ns"] for one in run.by_name[name]], 0.999),
    "lookups/s": lambda run, name: model(run, "lookups") / run.lengths_s[name],
    "us/lookup": lambda run, name: run.middle(name, lambda one: one.run["waiting_s"]) * 1e6 / model(run, "lookups"),
    "read/lookup": lambda run, name: run.middle(name, read_bytes) / model(run, "lookups"),
    "memory/entry": lambda run, name: NUMBERS["memory"](run, name) / model(run, "entries"),
    "disk/entry": lambda run, name: NUMBERS["disk"](run, name) / model(run, "entries"),
    "final flush": lambda run, name: run.middle(name, flush_s),
    "op max": lambda run, name: quantile_ns([one.run["times_ns"] for one in run.by_name[name]], 1.0, 0),
    "units/s": lambda run, name: run.by_name[name][0].run["units"] / run.lengths_s[name],
    "in kernel": lambda run, name: run.middle(name, lambda one: one.system_share()),
    "cores": lambda run, name: run.middle(name, lambda one: (one.cpu() or 0) / one.seconds),
    "written": lambda run, name: run.middle(name, lambda one: one.written()),
    "a user byte": lambda run, name: run.middle(name, lambda one: one.written_a_byte()),
    "disk/byte held": lambda run, name: run.middle(name, lambda one: one.disk_a_byte()),
    "entries": lambda run, name: model(run, "entries"),
    "read": lambda run, name: run.middle(name, read_bytes),
    "trials": lambda run, name: len(run.by_name[name]),
    "ops": lambda run, name: run.by_name[name][0].run["ops"],
    "commands": lambda run, name: run.by_name[name][0].run["commands"],
}
# Columns of --wide that are words, or that nothing is computed for.
NOT_COMPUTED = {"CPU vs least", "version", "client library", "conflicts", "hits", "found", "filled in"}
IN_NANOSECONDS = {"op p50", "op p99", "op p99.9", "op max"}


def model(run, what):
    return run.first["stream"]["model"][what]


def read_bytes(one):
    return (one.run.get("server") or one.run["client"])["bytes_read"]


def flush_s(one):
    return next((phase["took_s"] for phase in one.phases if phase["name"] == "final_flush"), None)


def check(report, run, page):
    """Every table of a page."""
    for table in page.tables:
        names = [name for name, _ in table.heading]
        if names[0] in ("clients", "per second"):
            report.guard(table.title, points.check_table, run, table)
        elif "round trips" in names:
            report.guard("table", check_round_trips, run, table)
        elif names[0] == SERVERS:
            report.guard("table", replicated.check_servers, run, table)
        elif names[0] in ("rank", "target"):
            report.guard("table", check_targets, run, table)
        lost = [text for text in table.unread if not text.startswith("> ")]
        report.fact(f"{names[0]} {table.title}", [f"below no heading: {text}" for text in lost])
    points.check_columns(report, run, [table for table in page.tables if table.title])


def rows_of(table, known):
    """The rank, name and cells of each row, and the words above them: long names have a line of their own."""
    names = [name for name, _ in table.heading]
    start = table.heading[names.index("target" if "target" in names else names[0])]
    start = start[1] - len(start[0])
    waiting = None
    for line in table.rows:
        cells = table.cells(line)
        rank, name = line[:start].strip(), re.split(r"  +", line[start:])[0].strip()
        cells = {column: text for column, text in cells.items() if column and names[column] not in ("rank", "target")}
        cells = {} if line[start:].strip() == name else cells
        if waiting and not line[:start + 1].strip():
            yield waiting[0], waiting[1], cells, line
            waiting = None
        elif name in known and not re.sub(r"[\d-]", "", rank):
            waiting = (rank, name) if line[start:].strip() == name else None
            if not waiting:
                yield rank, name, cells, line
        else:
            yield None, line.strip(), {}, line


def check_targets(report, run, table):
    names = [name for name, _ in table.heading]
    heading, seen, last = PLAIN, [], {}
    for rank, name, cells, line in rows_of(table, run.names):
        if rank is None:
            heading = line.strip().replace(" (compared within this group only)", "")
            report.fact(line.strip(), heading_faults(run, heading))
            continue
        seen.append(name)
        group = run.group(name)
        if not cells:
            report.cell(f"{name}: {line.strip()}", reason_faults(run, name, line))
            continue
        if run.is_baseline(name):
            right = heading.startswith("Batch engines" if group == BATCH_ENGINES else "Baselines")
        else:
            right = heading == group
            faults = [] if run.lengths_s[name] >= last.get(group, 0) else ["a slower target stands above a faster one"]
            report.cell(f"{name}: place", faults)
            last[group] = run.lengths_s[name]
        report.cell(f"{name}: below {heading!r}", [] if right else [f"its group is {group}"])
        if "rank" in names:
            report.cell(f"{name}: rank {rank}", rank_faults(run, name, rank))
        for column, text in sorted(cells.items()):
            check_cell(report, run, name, names[column], text)
        missing = {names[column] for column in range(names.index("target") + 1, len(names))} - {names[c] for c in cells}
        wanted = missing - ({"vs best"} if run.is_baseline(name) else set())
        if wanted:
            report.cell(f"{name}: {', '.join(sorted(wanted))}", ["no cell below the heading"])
    if report.is_brief:
        return
    absent = {one.name for one in run.trials if one.block > 0 and not one.is_second} - set(seen)
    report.fact("all targets have a row", [f"no row of {name}" for name in sorted(absent)])


def heading_faults(run, heading):
    known = {run.group(name) for name in run.names}
    is_known = heading in known or heading.startswith(("Baselines", "Batch engines"))
    return [] if is_known else ["no target is of this group"]


def reason_faults(run, name, line):
    match = re.search(r"> (\S+) s, (\d+) % done", line)
    ends = [one.record["outcome"] for one in run.trials if one.name == name]
    if match:
        right = any(end["kind"] == "timed_out" and agrees(match[1], end["after_s"]) and
                    agrees(match[2] + " %", end["done_share"]) for end in ends)
        return [] if right else [f"the records say {ends}"]
    return [] if name in run.failed else ["a row without numbers, and its trials are right"]


def rank_faults(run, name, rank):
    if run.is_baseline(name):
        return ["a baseline has a rank"] if rank else []
    best, worst = run.by_time(run.group(name)).rank(name)
    expected = str(best) if best == worst else f"{best}-{worst}"
    return [] if rank == expected else [f"the records give {expected}"]


def check_cell(report, run, name, column, text):
    what = f"{name}, {column}"
    if column == "vs best":
        standing = run.by_time(run.group(name))
        alone = len(run.blocks) < 4
        if standing.whole:
            report.cell(f"{what} {text}", interval(what, text, *standing.to_the_best(name)))
        else:
            report.skip("vs best of targets with no block in common")
        if alone and "[" in text:
            report.cell(what, ["an interval of fewer than four blocks"])
    elif column == "CPU us/op":
        both = [run.middle(name, lambda one: one.cpu_us(who)) for who in ("client", "server")]
        report.cell(f"{what} {text}", sum_faults(what, text, both))
    elif column == "lowest..highest":
        ends = min(one.seconds for one in run.by_name[name]), max(one.seconds for one in run.by_name[name])
        told = zip(text.split(".."), ends)
        report.cell(f"{what} {text}", [fault for end, seconds in told for fault in number(what, end, seconds)])
    elif column == "timed":
        one_in = run.by_name[name][0].run["timed_one_in"]
        words = "all" if one_in == 1 else f"1 in {one_in}"
        report.cell(f"{what} {text}", [] if text == words else [f"the records give {words}"])
    elif column in NUMBERS:
        value = NUMBERS[column](run, name)
        if text == "-":
            # A batch engine and a program have no ops that were timed one by one.
            silent = not value or column.startswith("op ") and run.group(name) == BATCH_ENGINES
            report.cell(f"{what} -", [] if silent else [f"the records give {shown(value)}"])
        elif column in IN_NANOSECONDS and parts(text)[2] not in ("ns", "us", "ms", "s"):
            report.cell(what, ["no unit of time"])
        else:
            report.cell(f"{what} {text}", number(what, text, value))
    elif column in NOT_COMPUTED:
        report.skip(f"column {column}")
    else:
        report.cell(what, ["no rule reads this column"])


def sum_faults(what, text, values):
    """Of "15.1 + 20.3": client and server."""
    texts = text.split(" + ")
    values = [value for value in values if value is not None]
    if len(texts) != len(values):
        return [f"{what}: {text}, the records give {len(values)} numbers"]
    return [fault for part, value in zip(texts, values) for fault in number(what, part, value)]


def at_round_trip(run, rtt_us):
    """Costs of each target at one round-trip time, in the blocks that count there."""
    costs = {}
    for one in run.at[rtt_us].counted:
        costs.setdefault(one.name, {})[one.block] = one.seconds
    return costs


def to_the_best_at(run, rtt_us, name):
    group = {other: of for other, of in at_round_trip(run, rtt_us).items()
             if run.group(other) == run.group(name) and not run.is_baseline(other)}
    return Standing(group, run.lengths_s, [], False).to_the_best(name)


def check_round_trips(report, run, table):
    names = [name for name, _ in table.heading]
    for rank, name, cells, line in rows_of(table, run.names):
        if rank is None:
            report.fact(line.strip(), heading_faults(run, line.strip()))
            continue
        for column, text in sorted(cells.items()):
            what = f"{name}, {names[column]} {text}"
            if names[column].endswith(" ms"):
                rtt_us = round(float(names[column][:-3]) * 1000)
                report.cell(what, number(what, text, median(at_round_trip(run, rtt_us)[name].values())))
            elif names[column] == "vs best":
                rtt_us = round(float(names[column - 1][:-3]) * 1000)
                report.cell(what, interval(what, text, *to_the_best_at(run, rtt_us, name)))
            else:
                report.cell(what, trips_faults(run, name, text))


def trips_faults(run, name, text):
    """Round trips that a target waits for: the slope of its seconds over the round-trip time, by least squares."""
    if all(one.rtt_us is None for one in run.by_name[name]):
        return [] if text == "no network" else ["it has no network"]
    rtts_us = run.first["run"]["rtts_us"]
    points_s = [(rtt_us / 1e6, median(at_round_trip(run, rtt_us)[name].values())) for rtt_us in rtts_us]
    middle = [sum(point[axis] for point in points_s) / len(points_s) for axis in (0, 1)]
    slope = sum((x - middle[0]) * (y - middle[1]) for x, y in points_s) / sum((x - middle[0]) ** 2 for x, _ in points_s)
    return number("round trips", text, slope)
