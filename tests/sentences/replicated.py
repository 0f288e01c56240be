"""What was read from replicas, and what each server of a store used, beside the records. By docs/replicas.md."""

import re

from records import cpu_s, quantile_ns
from written import number


def stale_of(phases):
    """Reads that replicas answered, and how many of these were stale: the first server is the primary."""
    all_ = [phase["staleness"] for phase in phases if phase.get("staleness")]
    return tuple(sum(sum(one[of][1:]) for one in all_) for of in ("reads", "stale"))


def share(known, key, what, text):
    reads, stale = stale_of(known.phases[key])
    if not reads:
        return [] if text == "-" else [f"{what}: {text}, and no replica was read"]
    return number(what, text, stale / reads)


def behind(field, unit):
    """"2.3 ms / - / 6.8 ms": the median, the 99th percentile where ten are above it, the worst."""
    def rule(known, key, what, text):
        histograms = [phase["staleness"][field] for phase in known.phases[key] if phase.get("staleness")]
        values = [quantile_ns(histograms, *of) for of in ((0.5, 0), (0.99,), (1.0, 0))]
        if not stale_of(known.phases[key])[1]:
            return [] if text == "-" else [f"{what}: {text}, and no read was stale"]
        told = text.split(" / ")
        if len(told) != 3:
            return [f"{what}: not three numbers: {text}"]
        faults = [f"{what}: {one} is no {'time' if unit else 'number'}" for one in told
                  if one != "-" and bool(re.search(r"[a-z]", one)) != unit]
        pairs = list(zip(told, values))
        return faults + [fault for one, value in pairs for fault in (
            ([] if value is None else [f"{what}: -, the records give {value}"]) if one == "-" else
            number(what, one, value))]
    return rule


TITLES = [
    (r"reads from (replica)s that were stale", share),
    (r"stale (read)s: how far behind, p50 / p99 / worst", behind("behind_ns", True)),
    (r"stale (read)s: versions behind, p50 / p99 / worst", behind("versions_behind", False)),
]


def used(trial, of):
    return [of(phase) for phase in trial.phases if of(phase)]


def servers_of(trial):
    """Of each server its CPU, memory, mapped pages, files, bytes written and the time until it had all."""
    record = trial.record
    lines = {"primary": (used(trial, lambda phase: phase.get("server")), record["memory"]["server"],
                         record["bytes_on_disk"], None)}
    for place, replica in enumerate(record["replicas"]):
        usages = used(trial, lambda phase: (phase.get("replicas") or [None] * (place + 1))[place])
        lines[replica["name"]] = (usages, replica["memory"], replica["bytes_on_disk"], replica.get("caught_up_s"))
    return {name: {
        "CPU s": sum(map(cpu_s, usages)), "memory": memory["anonymous_bytes"] + memory["shared_bytes"],
        "mapped": memory["file_bytes"], "disk": disk, "written": sum(one["bytes_written"] for one in usages),
        "in sync after": caught_up_s and caught_up_s * 1e9,
    } for name, (usages, memory, disk, caught_up_s) in lines.items()}


def check_servers(report, run, table):
    """The table of what each server used in the first trial of each target."""
    names, lines, shown = [name for name, _ in table.heading], {}, set()
    for line in table.rows:
        target = re.fullmatch(r"(\S+(?: \w+)?):", line.strip())
        if target:
            report.fact("servers", [f"no line of {name}" for name in lines])
            first = next((one for one in run.trials if one.name == target[1] and one.finished and one.block > 0), None)
            lines = servers_of(first) if first else {}
            report.fact(line.strip(), [] if lines else ["no such target in the records"])
            shown |= {(target[1], name) for name in lines}
            continue
        server, cells = re.split(r"  +", line.strip())[0], table.cells(line)
        values = lines.pop(server, None)
        if values is None:
            report.fact(line.strip(), [f"no server of it is called {server}, or it has two lines"])
            continue
        for column, name in list(enumerate(names))[1:]:
            text, value = cells.get(column), values[name]
            if text in (None, "-"):
                faults = [] if not value and text else [f"{server}, {name}: nothing, the records give {value}"]
            else:
                faults = number(f"{server}, {name}", text, value)
            report.cell(f"{server}, {name} {text}", faults)
    replicated = {one.name for one in run.trials if one.record.get("replicas") and one.finished and one.block > 0}
    missing = replicated - {target for target, _ in shown}
    report.fact("servers", [f"no lines of {target}" for target in sorted(missing)])
    report.fact("servers", [f"no line of {name}" for name in lines])
