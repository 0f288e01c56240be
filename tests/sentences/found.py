"""What `check` and `crash` found: each number of their text, computed from the lines of their results file."""

import re

from page import Page
from written import NUMBER, agrees, number

# Of so many kills that lost nothing, at most this share loses something, at 95 % (Clopper and Pearson, one-sided).
CONFIDENCE = 0.05


# What a line of the file has, by the command that wrote it.
KINDS = ("check", "crash", "failover")


def is_findings(lines):
    return any(kind in lines[0] for kind in KINDS)


class Findings:
    """The lines of a results file of one command."""

    def __init__(self, lines):
        self.kind = next(kind for kind in KINDS if kind in lines[0])
        self.found = [line[self.kind] for line in lines]
        self.names = {one["target"] for one in self.found}


def upper_median(values):
    """Of an even number of values the higher one of the two in the middle."""
    return sorted(values)[len(values) // 2] if values else None


def most_in_percent(kills):
    return 100 * (1 - CONFIDENCE ** (1 / kills))


def time_ns(seconds):
    return None if seconds is None else max(0.0, seconds) * 1e9


def same(what, told, expected):
    return [] if told == expected else [f"{what}: {told}, the records give {expected}"]


def count(what, text, expected):
    return same(what, int(text.replace(",", "")), expected)


def time(what, text, seconds):
    """Of a cell or of words: a dash where nothing is known."""
    if text == "-" or seconds is None:
        return same(what, text == "-", seconds is None)
    return number(what, text, time_ns(seconds))


def read(pattern, text, faults):
    """The groups of a pattern; a complaint where the text has no such part."""
    match = re.search(pattern, text)
    if not match:
        faults.append(f"no '{pattern}' in: {text}")
    return match


def crash_cells(one, cells):
    tried = one["tried"]
    kills, audit, outages = tried["kills"], tried["audit"], tried["outages"].get("emulated")
    faults = []
    for name in ("lost", "holes", "corrupt"):
        faults += count(name, cells[name], sum(kill[name] for kill in kills))
    recovered = [kill["recovery_s"] for kill in kills if kill["recovery_s"] is not None]
    faults += time("back", cells["back"], upper_median(recovered))
    counted = audit.get("counted")
    syncs = sum(counted["by"].values()) / counted["writes"] if counted and counted["writes"] else None
    faults += same("syncs", cells["syncs"], "unknown" if syncs is None else f"{syncs:.2f}")
    if outages is None:
        return faults + same("outage", cells["outage"], "unknown")
    share = upper_median([min(1.0, kill["lost"] / max(1, kill["records"])) for kill in outages])
    bad = sum(kill["wrong"] is not None for kill in outages)
    if not bad:
        words = "none"
    elif share < 0.0005:
        words = f"{bad} of {len(outages)}"
    else:
        words = "all" if share >= 1 else f"{share * 100:.1f} %"
    return faults + same("outage", cells["outage"], words)


def crash_sentence(one, text):
    tried = one["tried"]
    kills, counted, outages = tried["kills"], tried["audit"].get("counted"), tried["outages"].get("emulated")
    bad, faults = sum(kill["wrong"] is not None for kill in kills), []
    lost = read(rf"({NUMBER}) of ({NUMBER}) kills? lost (anything of ({NUMBER}) writes: at most ({NUMBER}) %)?", text, faults)
    if lost:
        faults += count("bad kills", lost[1], bad) + count("kills", lost[2], len(kills))
        faults += same("something is lost", lost[3] is None, bad > 0)
    if lost and lost[3]:
        faults += count("writes", lost[4], sum(kill["acknowledged"] for kill in kills))
        faults += same("the bound", lost[5], f"{most_in_percent(len(kills)):.0f}")
    if counted:
        # "999 O_DSYNC write, 1,001 fdatasync for 999 writes one by one"
        syncs = text.partition(" writes one by one")[0].rpartition("; ")[2].rpartition(" for ")[0]
        syncs = [] if syncs == "no syncs" else [one.split(" ", 1) for one in syncs.split(", ")]
        by_name = {name: int(count.replace(",", "")) for count, name in syncs}
        faults += same("syncs by name", by_name, counted["by"])
        written = read(rf"for ({NUMBER}) writes one by one", text, faults)
        faults += count("writes one by one", written[1], counted["writes"]) if written else []
    if outages is not None:
        emulated = read(rf"({NUMBER}) of ({NUMBER}) emulated loss(?:es)? of power", text, faults)
        lossy = sum(kill["wrong"] is not None for kill in outages)
        faults += count("losses that lost", emulated[1], lossy) + count("losses", emulated[2], len(outages)) \
            if emulated else []
    return faults


def failover_cells(one, cells):
    kills = one["kills"]
    faults = [] if agrees(cells["writes/s"], upper_median(
        [kill["acknowledged"] / max(kill["after_s"], 1e-3) for kill in kills])) else [f"writes/s: {cells['writes/s']}"]
    faults += count("lost", cells["lost"], sum(kill["lost"] for kill in kills))
    oldest = [kill["oldest_lost_s"] for kill in kills if kill["oldest_lost_s"] is not None]
    if oldest and max(oldest) <= 0:
        faults += same("oldest", cells["oldest"], "at the kill")
    else:
        faults += time("oldest", cells["oldest"], max(oldest, default=None))
    accepted = [kill["accepted_s"] for kill in kills]
    faults += time("accepted", cells["accepted"], upper_median(accepted)) + time("worst", cells["worst"], max(accepted))
    followed = sum(all(other["in_sync_s"] is not None for other in kill["followers"]) for kill in kills)
    has_others = any(kill["followers"] for kill in kills)
    return faults + same("followed", cells["followed"], f"{followed} of {len(kills)}" if has_others else "-")


def spread(what, values, text, faults):
    """ "14 ms (9 ms to 33 ms)", or one time where there is one kill."""
    match = re.fullmatch(r"(\S+ \S+?)(?: \((\S+ \S+) to (\S+ \S+)\))?", text)
    if not match:
        return [f"{what}: cannot be read: {text}"]
    faults += time(what, match[1], upper_median(values))
    if match[2]:
        faults += time(what + ", least", match[2], min(values)) + time(what + ", most", match[3], max(values))
    return faults


def failover_sentence(one, text):
    kills, faults = one["kills"], []
    acknowledged, lost = sum(kill["acknowledged"] for kill in kills), sum(kill["lost"] for kill in kills)
    bad = sum(kill["lost"] > 0 for kill in kills)
    told = read(rf"({NUMBER}) of ({NUMBER}) kills? lost (any|{NUMBER}) of ({NUMBER}) acknowledged writes", text, faults)
    if told:
        faults += count("lossy kills", told[1], bad) + count("kills", told[2], len(kills))
        faults += same("lost", told[3], "any" if lost == 0 else f"{lost:,}") + count("writes", told[4], acknowledged)
    if lost == 0:
        bound = read(rf"at most ({NUMBER}) % of kills do", text, faults)
        faults += same("the bound", bound[1], f"{most_in_percent(len(kills)):.0f}") if bound else []
    else:
        share = read(rf"writes \(({NUMBER}) %\)", text, faults)
        faults += number("the share", share[1], 100 * lost / acknowledged) if share else []
    when = read(r"accepted again (.+?) after the kill: a client noticed it after (\S+ \S+), the replica was a primary "
                r"after (\S+ \w+)", text, faults)
    if when:
        spread("accepted", [kill["accepted_s"] for kill in kills], when[1], faults)
        faults += time("noticed", when[2], upper_median([kill["detected_s"] for kill in kills]))
        faults += time("promoted", when[3], upper_median([kill["promoted_s"] for kill in kills]))
    synced = [[other["in_sync_s"] for other in kill["followers"] if other["in_sync_s"] is not None] for kill in kills]
    synced = [max(times) for times in synced if times]
    if synced:
        followed = read(r"in sync (.+?) after the kill", text, faults)
        faults = spread("in sync", synced, followed[1], faults) if followed else faults
    return faults


def checked_sentence(one, text):
    faults = []
    told = read(rf"({NUMBER}) probes, (all right|.*?\d+ (?:WRONG|GARBLED)).* \(({NUMBER}) s\)", text, faults)
    if told:
        faults += count("probes", told[1], one["probes"]) + number("seconds", told[3], one["took_s"])
        wrong = sum(1 + len(finding["others"]) for finding in one["wrong"])
        faults += same("something is wrong", told[2] != "all right", wrong > 0)
    return faults


RULES = {"crash": (crash_cells, crash_sentence), "failover": (failover_cells, failover_sentence)}


def check(report, findings, text):
    """Each target's cells and its sentence, beside its line of the file."""
    kind, found = findings.kind, findings.found
    if kind == "check":
        for one in (one for one in found if one["status"] == "probed"):
            said = re.search(rf"^{re.escape(one['target'])} .*?\([\d.]+\s+s\)", text, re.DOTALL | re.MULTILINE)
            told = " ".join(said[0].split()) if said else ""
            report.sentence(told or one["target"], checked_sentence(one, told))
        return
    page, (cells_of, sentence_of) = Page(text), RULES[kind]
    tried = [one for one in found if one.get("tried") or one.get("kills")]
    table = page.tables[0]
    names = [name for name, _ in table.heading]
    rows = [line for line in table.rows if "not tried" not in line and table.cells(line)]
    for one, line in zip(tried, rows, strict=True):
        cells = {names[place]: told for place, told in table.cells(line).items()}
        report.cell(one["target"], judged(cells_of, one, cells))
    begins = [f"{one['target']}, {one['level']}: " if kind == "crash" else f"{one['target']}: " for one in found]
    said = sentences(" ".join(page.flow), begins)
    for one, begin in zip(found, begins, strict=True):
        if begin not in said:
            report.sentence(begin, ["there is no such sentence"])
        elif one in tried:
            report.sentence(begin + said[begin], judged(sentence_of, one, said[begin]))


def sentences(text, begins):
    """The sentences of each target, by how they begin: lines are wrapped, so that they say nothing of an end."""
    places = sorted((text.find(" " + begin) + 1 if not text.startswith(begin) else 0, begin) for begin in begins
                    if text.startswith(begin) or " " + begin in text)
    ends = [place for place, _ in places[1:]] + [len(text)]
    return {begin: text[place + len(begin):end].strip() for (place, begin), end in zip(places, ends, strict=True)}


def judged(rule, one, told):
    """The complaints of a rule; what it cannot find cannot be computed."""
    try:
        return rule(one, told)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        return [f"it cannot be computed: {error!r}"]
