"""Medians, ratios over blocks and their intervals, by the rules of docs/statistics.md."""

import functools
import itertools
import math

LEVEL = 0.05
CLAIM_BLOCKS = 4
EXACT_BLOCKS = 6
LEAST_FLOOR = 0.02
QUIET = 0.05


def median(numbers):
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def student_within(t, freedom):
    """The chance that Student's t lies between -t and t: the sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    term, total = (math.cos(angle), 0.0) if freedom % 2 else (1.0, 0.0)
    for step in range(1 if freedom % 2 else 0, freedom - 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (step + 1) / (step + 2)
    if freedom % 2:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


@functools.lru_cache(None)
def student_quantile(tail, freedom):
    low, high = 0.0, 1e7
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - student_within(middle, freedom) > 2 * tail else (low, middle)
    return high


@functools.lru_cache(None)
def rank_sums(blocks):
    """How many of the 2^blocks subsets of the ranks have each sum."""
    ways = [1]
    for rank in range(1, blocks + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    return ways


class Ratio:
    """The ratio of two costs over blocks, with its interval."""

    def __init__(self, logs, tail=LEVEL / 2):
        self.logs, self.blocks = logs, len(logs)
        means = sorted((one + other) / 2 for place, one in enumerate(logs) for other in logs[place:])
        self.estimate = math.exp(median(means))
        self.mean = sum(logs) / len(logs)
        squares = sum((log - self.mean) ** 2 for log in logs)
        self.deviation = math.sqrt(squares / (len(logs) - 1)) if len(logs) > 1 else 0.0
        self.low = self.high = None
        place, total = 0, 0
        for count in rank_sums(self.blocks):
            total += count
            if total > tail * 2 ** self.blocks:
                break
            place += 1
        self.is_exact = self.blocks >= EXACT_BLOCKS and place > 0
        if self.is_exact:
            self.low, self.high = math.exp(means[place - 1]), math.exp(means[-place])
        elif self.blocks >= CLAIM_BLOCKS:
            half = student_quantile(tail, self.blocks - 1) * self.deviation / math.sqrt(self.blocks)
            self.low, self.high = math.exp(self.mean - half), math.exp(self.mean + half)

    def half(self):
        return math.sqrt(self.high / self.low) - 1

    def far_end(self):
        return max(self.high, 1 / self.low) - 1

    def near_end(self):
        return max(self.low - 1, 1 / self.high - 1, 0.0)

    def holds_one(self):
        return self.low is None or self.low <= 1 <= self.high

    def is_noisy(self):
        return self.low is not None and (not self.holds_one() or self.half() > QUIET)

    def floor(self):
        return max(LEAST_FLOOR, self.far_end() if self.is_noisy() else self.half())

    def inverse(self):
        other = Ratio.__new__(Ratio)
        other.__dict__.update(self.__dict__, estimate=1 / self.estimate, mean=-self.mean, logs=[-x for x in self.logs])
        if self.low is not None:
            other.low, other.high = 1 / self.high, 1 / self.low
        return other

    def chance(self, needed_blocks):
        """The p-value of "neither costs less": of signed ranks from so many blocks on, below of Student's t."""
        if self.blocks < needed_blocks:
            error = self.deviation / math.sqrt(self.blocks)
            return 0.0 if error == 0 else 1 - student_within(abs(self.mean) / error, self.blocks - 1)
        ordered = sorted(self.logs, key=abs)
        sums = [sum(rank for rank, log in enumerate(ordered, 1) if log * sign > 0) for sign in (1, -1)]
        return min(1.0, 2 * sum(rank_sums(self.blocks)[:min(sums) + 1]) / 2 ** self.blocks)


def needed_blocks(comparisons, level=LEVEL):
    return next(blocks for blocks in range(EXACT_BLOCKS, 200) if 2 * comparisons <= level * 2 ** blocks)


def holm(chances):
    """The same p-values adjusted for each other."""
    adjusted, worst = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda place: chances[place])):
        worst = max(worst, min(1.0, chances[place] * (len(chances) - rank)))
        adjusted[place] = worst
    return adjusted


class Bar:
    """What a difference must exceed: of these controls, each (Ratio, seconds of a trial)."""

    def __init__(self, controls, most_discarded, lengths_s=()):
        controls = sorted((one for one in controls if one[0].low is not None), key=lambda one: one[1])
        if controls and lengths_s and min(lengths_s) >= controls[-1][1]:
            controls = controls[-1:]
        self.is_known = bool(controls)
        self.floor = max((ratio.floor() for ratio, _ in controls), default=0.0)
        self.near_end = max((ratio.far_end() for ratio, _ in controls), default=0.0) if most_discarded else 0.0
        self.is_noisy = most_discarded or any(ratio.is_noisy() for ratio, _ in controls)


class Standing:
    """Targets against each other in the blocks that all of them have: `costs[target][block]`."""

    def __init__(self, costs, lengths_s, controls, most_discarded, contrasts=None, level=LEVEL):
        self.names, self.is_planned = sorted(costs), contrasts is not None
        self.whole = self.common(costs, self.names) if costs else []
        self.bars, self.ratios, self.claims = {}, {}, {}
        if not self.whole:
            return
        pairs = contrasts if self.is_planned else list(itertools.combinations(self.names, 2))
        self.costs, self.pairs = costs, pairs
        for one, other in pairs:
            self.ratios[one, other] = self.between(one, other)
            self.ratios[other, one] = self.ratios[one, other].inverse()
            bar = Bar(controls, most_discarded, (lengths_s.get(one, 0), lengths_s.get(other, 0)))
            self.bars[one, other] = self.bars[other, one] = bar
        if len(self.whole) < CLAIM_BLOCKS or not pairs:
            return
        needed = needed_blocks(len(pairs), level)
        adjusted = holm([self.ratios[pair].chance(needed) for pair in pairs])
        for pair, chance in zip(pairs, adjusted):
            ratio, bar = self.ratios[pair], self.bars[pair]
            far = max(ratio.estimate, 1 / ratio.estimate) - 1 > bar.floor
            if bar.is_known and chance <= level and far and ratio.near_end() > bar.near_end and not ratio.holds_one():
                self.claims[pair if ratio.estimate < 1 else pair[::-1]] = chance

    @staticmethod
    def common(costs, names):
        """The blocks that all of these have."""
        return sorted(set.intersection(*(set(costs[name]) for name in names)))

    def between(self, one, other, tail=LEVEL / 2):
        """Planned contrasts use all blocks that the two have."""
        blocks = self.common(self.costs, (one, other)) if self.is_planned else self.whole
        return Ratio([math.log(self.costs[one][block] / self.costs[other][block]) for block in blocks], tail)

    def is_less(self, one, other):
        return (one, other) in self.claims

    def is_open(self, one, other):
        return not self.is_less(one, other) and not self.is_less(other, one)

    def is_tied(self, one, other):
        ratio, bar = self.ratios.get((one, other)), self.bars.get((one, other))
        return bool(ratio and bar.is_known and ratio.low and self.is_open(one, other) and ratio.far_end() <= bar.floor)

    def rank(self, name):
        return (1 + sum(self.is_less(other, name) for other in self.names),
                len(self.names) - sum(self.is_less(name, other) for other in self.names))

    @functools.lru_cache(None)
    def to_the_best(self, name):
        """Estimate, low and high end of the ratio to whichever costs least, and whether they are exact (Hsu)."""
        tail = LEVEL / 2 / max(1, len(self.pairs))
        ratios = [self.between(name, other, tail) for other in self.names if other != name]
        if not ratios:
            return 1.0, None, None, True
        ends = [max([1.0] + [getattr(ratio, end) for ratio in ratios]) if ratios[0].low else None
                for end in ("estimate", "low", "high")]
        return max([1.0] + [ratio.estimate for ratio in ratios]), ends[1], ends[2], ratios[0].is_exact

    @functools.lru_cache(None)
    def blocks_for(self, one, other, most=1000):
        """How many blocks would do, or None."""
        ratio, bar = self.ratios[one, other], self.bars[one, other]
        apart, floor = abs(math.log(ratio.estimate)), math.log(1 + bar.floor)
        if apart > floor:
            gap, tail = apart - math.log(1 + bar.near_end), LEVEL / 2 / len(self.pairs)
            least = needed_blocks(len(self.pairs))
        else:
            gap, tail, least = floor - apart, LEVEL / 2, 0
        wide = lambda blocks: student_quantile(tail, blocks - 1) * ratio.deviation / math.sqrt(blocks) >= gap
        low, high = CLAIM_BLOCKS - 1, most + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if wide(middle) else (low, middle)
        blocks = max(high, least)
        return blocks if high <= most and blocks > len(self.whole) else None
