"""Numbers as text has them, beside what the records give."""

import math
import re

SCALES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
          "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "%": 0.01, "x": 1}
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
RATIO = rf"(?:about )?{NUMBER}x(?: \[{NUMBER}-{NUMBER}\])?"


def parts(text):
    """A number, the value of one of its last digit, and its unit: of "1.4 GB" 1.4e9, 1e8 and "GB"."""
    match = re.fullmatch(rf"({NUMBER}) ?(\D*)", text.strip())
    if not match or match[2] not in SCALES:
        return math.nan, 0.0, "no number"
    plain = match[1].replace(",", "")
    digit = 10.0 ** -len(plain.partition(".")[2])
    return float(plain) * SCALES[match[2]], digit * SCALES[match[2]], match[2]


def agrees(text, value):
    """The text is the value, rounded to its last digit."""
    number, digit, _ = parts(text)
    return value is not None and abs(number - value) <= digit * 0.5 * (1 + 1e-6) + abs(value) * 1e-9


def is_floor(text, value):
    """The text is the value, rounded down to its last digit."""
    number, digit, _ = parts(text)
    return value is not None and -1e-9 <= value - number < digit * (1 + 1e-6)


def at_most(what, text, value):
    """A complaint where the text, a bound, lies below the value or is another number."""
    faults = number(what, text, value) if not is_ceiling(text, value) else []
    if not faults and parts(text)[0] < value * (1 - 1e-9):
        faults = [f"{what} {text}: no bound, the records give {value:.5g}: it is rounded down"]
    return faults


def is_ceiling(text, value):
    """The text is the value, rounded up to its last digit."""
    shown_, digit, _ = parts(text)
    return value is not None and -1e-9 <= shown_ - value < digit * (1 + 1e-6)


def number(what, text, value):
    """A complaint where they differ, else nothing."""
    return [] if agrees(text, value) else [f"{what}: {text}, the records give {shown(value)}"]


def shown(value):
    return "nothing" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def interval(what, text, estimate, low, high, is_exact=True):
    """Complaints of "about 1.8x [1.7-2.0]" beside an estimate and its ends."""
    match = re.fullmatch(rf"(about )?({NUMBER})x(?: \[({NUMBER})-({NUMBER})\])?", text)
    if not match:
        return [f"{what}: no ratio: {text!r}"]
    faults = number(what, match[2], estimate)
    if match[3]:
        faults += number(what + ", low end", match[3], low) + number(what + ", high end", match[4], high)
        if (match[1] is None) != is_exact:
            faults.append(f"{what}: {text!r}, and the interval is {'exact' if is_exact else 'not exact'}")
    elif low is not None and high is not None and high > low * (1 + 1e-9):
        faults.append(f"{what}: {text} without its interval [{low:.4g}-{high:.4g}]")
    return faults


def times_as(what, words, ratio, is_noisy):
    """Complaints of "at least 1.4 times as long" or "1.8 times as long [1.7-1.9]" beside a Ratio."""
    ends = rf"(?: ?\[({NUMBER})-({NUMBER})\])?"
    match = re.fullmatch(rf"(at least |at most |about )?({NUMBER})(?: times)?[^\[]*?{ends}", words)
    if not match:
        return [f"{what}: cannot be read: {words!r}"]
    if match[1] == "at least ":
        near = 1 + ratio.near_end()
        faults = [] if is_floor(match[2], near) else [f"{what}: at least {match[2]}, the near end is {near:.4g}"]
        if parts(match[2])[0] > ratio.estimate:
            faults.append(f"{what}: at least {match[2]}, the ratio over blocks is {ratio.estimate:.4g}")
        return faults if is_noisy else faults + [f"{what}: no 'at least' in a quiet run"]
    if is_noisy:
        return [f"{what}: a noisy run names the near end alone: {words!r}"]
    text = f"{match[2]}x [{match[3]}-{match[4]}]" if match[3] else match[2] + "x"
    return interval(what, ("about " if match[1] else "") + text, ratio.estimate, ratio.low, ratio.high, not match[1])
