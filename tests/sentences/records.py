"""What the records of a run tell: which trials count, what each cost, how targets are grouped. By docs/method.md."""

import base64
import collections
import functools
import json
import math

from intervals import CLAIM_BLOCKS, Ratio, Standing, median

# A reading above the first share is noted, above the second doubted, and above the third the trial is discarded.
NEVER = float("inf")
LIMITS = {
    "foreign": (NEVER, 0.02, 0.05), "unclaimed": (NEVER, 0.20, 0.40), "steal": (NEVER, 0.005, 0.02),
    "server_delay": (NEVER, 0.02, 0.10), "client_delay": (NEVER, 0.02, 0.10), "stalled": (NEVER, 0.02, 0.10),
    "processor": (0.03, NEVER, 0.10), "disk": (0.50, 1.00, 3.00),
}
GRAIN_S = 0.03
PLAIN = "one value at a time"
BATCH_ENGINES = "batch engines"


def readings(noise, probe_ns=None, sync_ns=None):
    """Each reading with its share, where it is known and large enough to say anything."""
    shares = {name: noise.get(name + "_share") for name in LIMITS}
    if noise.get("kernel_share") is not None:
        shares["unclaimed"] = None
    for name, field, usual in (("processor", "processor_probe_ns", probe_ns), ("disk", "disk_sync_ns", sync_ns)):
        shares[name] = noise[field] / usual - 1 if usual and noise.get(field) is not None else None
    for name, share in shares.items():
        seconds = noise.get("seen_s", 0) * (noise.get("cpus", 0) if name in ("foreign", "unclaimed", "steal") else 1)
        if share is not None and (name in ("processor", "disk") or share * seconds >= GRAIN_S):
            yield name, share


def above(noise, step, probe_ns=None, sync_ns=None):
    """The readings above the limit: 1 is doubted, 2 discarded."""
    return {name: share for name, share in readings(noise, probe_ns, sync_ns) if share > LIMITS[name][step]}


def counts_of(packed):
    """The counts of a histogram by the highest time of each, in nanoseconds (HdrHistogram, form V2, 3 digits)."""
    data, counts, index, place = base64.b64decode(packed)[40:], {}, 0, 0
    while place < len(data):
        number = shift = 0
        while True:
            byte = data[place]
            place += 1
            number |= (byte if shift == 56 else byte & 127) << shift
            shift += 7
            if shift == 63 or not byte & 128:
                break
        number = number >> 1 ^ -(number & 1)
        if number < 0:
            index -= number
            continue
        bucket = max(0, (index >> 10) - 1)
        low = (index - (bucket << 10)) << bucket
        if number:
            counts[low + (1 << bucket) - 1] = number
        index += 1
    return counts


def quantile_ns(histograms, share, beyond=10):
    """The time that this share of all ops did not exceed; None where fewer ops than `beyond` lie above."""
    return quantile_of(tuple(histograms), share, beyond)


@functools.lru_cache(None)
def quantile_of(histograms, share, beyond):
    counts = collections.Counter()
    for packed in histograms:
        counts.update(counts_of(packed))
    total = sum(counts.values())
    if not total or total * (1 - share) < beyond:
        return None
    left = math.ceil(share * total)
    for time_ns in sorted(counts):
        left -= counts[time_ns]
        if left <= 0:
            return time_ns
    return None


def cpu_s(usage):
    return usage["user_s"] + usage["system_s"]


def servers_usage(phase):
    """What the primary and its replicas used together; None of an embedded store."""
    if not phase.get("server"):
        return None
    used = [phase["server"]] + (phase.get("replicas") or [])
    amounts = {what: [one[what] for one in used] for what in used[0]}
    return {what: None if None in seen else sum(seen) for what, seen in amounts.items()}


def group_of(record):
    """What a target may be compared with, in the words of headings."""
    if record["target"].get("batch"):
        return BATCH_ENGINES
    words = ["via " + record["job"]["via"]] if record["job"]["via"] != "portable" else []
    words += ["in memory only, so it stays warm"] if record.get("is_warm") else []
    words += ["behind a cache in the client"] if record["target"].get("cache") else []
    return ", ".join(words) or PLAIN


def rtt_of(record):
    """The round-trip time of a trial in microseconds; None without a network."""
    return (record.get("network") or {}).get("rtt_us")


class Trial:
    """One record, and what it cost."""

    def __init__(self, record):
        self.record, self.name, self.block = record, record["target"]["label"], record["block"]
        self.given = record.get("given", self.name)
        self.is_baseline, self.is_second = record["target"]["baseline"], record.get("aa_control", False)
        self.finished = record["outcome"]["kind"] == "finished"
        self.is_right = record["verdict"]["kind"] in ("right", "answered", "baseline")
        self.phases = [one for one in record["phases"] if one["name"] not in ("load", "ask") and not one.get("doubled")]
        self.points = [one for one in self.phases if one["name"] != "final_flush"]
        self.run = next((one for one in self.phases if one["name"] == "run"), None)
        load = record["job"].get("load")
        units = sum(one["units"] for one in self.phases)
        self.ops = max(1, units if load else record["stream"]["ops"])
        self.seconds = sum(one["took_s"] for one in self.phases) if self.finished else None
        self.is_rated = any(one.get("open") for one in self.phases)
        self.rtt_us = rtt_of(record)

    def sum_of(self, who):
        usages = [servers_usage(one) if who == "server" else one.get(who) for one in self.phases]
        return None if None in usages or not usages else sum(map(cpu_s, usages))

    def cpu(self):
        """CPU of client and server."""
        return (self.sum_of("client") or 0) + (self.sum_of("server") or 0) or None

    def cpu_us(self, who):
        used = self.sum_of(who)
        return None if used is None else used * 1e6 / self.ops

    def waiting(self):
        readers = (self.record["job"].get("lookup") or {}).get("readers") or 1
        clients = self.record["clients"] * readers
        all_s = sum(one["took_s"] * (clients if one["name"] == "run" else 1) for one in self.phases)
        return min(1.0, sum(one["waiting_s"] for one in self.phases) / all_s)

    def system_share(self):
        usages = [usage for phase in self.phases for usage in (phase["client"], servers_usage(phase)) if usage]
        all_s = sum(map(cpu_s, usages))
        return sum(usage["system_s"] for usage in usages) / all_s if all_s else None

    def written(self):
        bytes_ = [(servers_usage(phase) or phase["client"])["bytes_written"] for phase in self.phases]
        return None if None in bytes_ else sum(bytes_)

    def written_a_byte(self):
        handed_over = sum(phase["bytes_out"] for phase in self.phases)
        return self.written() / handed_over if handed_over and self.written() is not None else None

    def disk_a_byte(self):
        checked, disk = self.record["verdict"], self.record["bytes_on_disk"]
        held = checked.get("bytes", 0) / max(1, checked.get("keys", 0)) * checked.get("keys_expected", 0)
        return disk / held if disk and held else None

    def grown(self, counter):
        """How much the store's own counters of that name grew; "*" stands for any words."""
        begin, star, end = counter.partition("*")
        found = [after - before for name, (before, after) in self.record["store_stats"].items()
                 if name == counter or star and name.startswith(begin) and name.endswith(end)]
        return sum(found)

    def peak(self, *kinds):
        peak = self.record["memory"]["server"] or self.record["memory"]["client"]
        return sum(peak.get(kind + "_bytes", 0) for kind in kinds)


class Run:
    """The trials of a run, or of a part of it."""

    def __init__(self, records):
        self.records, self.first = records, records[0]
        # The run of each round-trip time.
        self.at = {None: self}
        self.trials = [Trial(record) for record in records if not record.get("ahead")]
        noises = [trial.record["noise"] for trial in self.trials]
        probes = [noise["processor_probe_ns"] for noise in noises if noise.get("processor_probe_ns")]
        syncs = sorted(noise["disk_sync_ns"] for noise in noises if noise.get("disk_sync_ns"))
        self.usual = (min(probes, default=None), syncs[len(syncs) // 2] if len(syncs) >= 5 else None)
        self.planned = self.first["run"]["blocks"]
        claims = self.planned >= CLAIM_BLOCKS
        self.discarded = {one.block for one in self.trials if one.block > 0 and claims and self.above(one, 2)}
        ran = {one.block for one in self.trials if one.block > 0 and not one.is_second}
        self.ran = ran | self.discarded
        self.most_discarded = len(self.discarded) > len(self.ran) / 2
        self.blocks = self.ran if self.most_discarded else self.ran - self.discarded
        self.counted = [one for one in self.trials
                        if one.block in self.blocks and not one.is_second and one.finished and one.is_right]
        self.by_name = collections.OrderedDict()
        for one in self.counted:
            self.by_name.setdefault(one.name, []).append(one)
        self.names = {one.name for one in self.trials}
        self.failed = {one.name for one in self.trials if one.block >= 0 and not (one.finished and one.is_right)}
        self.lengths_s = {name: median([one.seconds for one in of]) for name, of in self.by_name.items()}
        self.cost = lambda one: one.seconds if one.seconds and not one.is_rated else None
        self.controls = self.controls_by(self.cost)
        self.floor = max((ratio.floor() for ratio, _, _ in self.controls), default=0.0)
        self.is_noisy = self.most_discarded or any(ratio.is_noisy() for ratio, _, _ in self.controls)
        self.standings = {}

    def above(self, trial, step):
        return above(trial.record["noise"], step, *self.usual)

    @functools.lru_cache(None)
    def group(self, name):
        return next(group_of(one.record) for one in self.trials if one.name == name)

    @functools.lru_cache(None)
    def is_baseline(self, name):
        return any(one.is_baseline for one in self.trials if one.name == name)

    @functools.lru_cache(None)
    def controls_by(self, cost):
        """Of each target that ran twice: its ratio to itself, the seconds of a trial, its name; the shortest first."""
        found = []
        for name in sorted({one.name for one in self.trials if one.is_second}):
            both = [one for one in self.trials if one.name == name and one.block in self.blocks and one.is_right]
            first, second = ({one.block: cost(one) for one in both if one.is_second == is_second and cost(one)}
                             for is_second in (False, True))
            logs = [math.log(second[block] / first[block]) for block in sorted(first) if block in second]
            if logs:
                found.append((Ratio(logs), median([one.seconds for one in both if one.seconds]), name))
        return sorted(found, key=lambda one: one[1])

    def standing(self, key, cost, names):
        """The standing of these targets by a cost, kept by its key."""
        if key not in self.standings:
            costs = {}
            for one in self.counted:
                if one.name in names and cost(one):
                    costs.setdefault(one.name, {})[one.block] = cost(one)
            controls = [one[:2] for one in self.controls_by(cost)]
            self.standings[key] = Standing(costs, self.lengths_s, controls, self.most_discarded)
        return self.standings[key]

    def stores(self, group=None):
        """Targets with numbers that are ranked, the fastest first."""
        named = [name for name in self.by_name if not self.is_baseline(name) and name not in self.failed]
        return sorted((name for name in named if group is None or self.group(name) == group),
                      key=lambda name: (self.group(name), self.lengths_s[name]))

    @functools.lru_cache(None)
    def by_time(self, group):
        named = {one.name for one in self.trials if not one.is_baseline and group_of(one.record) == group}
        return self.standing(("time", group), self.cost, named)

    def by_cpu(self):
        return self.standing("cpu", Trial.cpu, self.names)

    def by_p99(self):
        p99 = lambda one: quantile_ns([one.run["times_ns"]], 0.99) if one.run else None
        return self.standing("p99", p99, set(self.stores()))

    def middle(self, name, number):
        """The median of a number over a target's trials."""
        known = [number(one) for one in self.by_name[name]]
        return median([one for one in known if one is not None]) if any(one is not None for one in known) else None

    def worst(self, step, blocks):
        """The worst reading of each kind above a limit, of these blocks."""
        worst = {}
        for one in self.trials:
            if one.block in blocks:
                for name, share in self.above(one, step).items():
                    worst[name] = max(share, worst.get(name, 0))
        return worst


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
