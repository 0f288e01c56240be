#!/usr/bin/env python3
"""The answer of the job `lookup` by an independent program: python3 lookup.py FILE.txt [ORDER]"""
import hashlib
import math
import re
import sys
from collections import Counter

order = int(sys.argv[2]) if len(sys.argv) > 2 else 2
with open(sys.argv[1], "rb") as file:
    lines = [line for line in file.read().split(b"\n") if line]
messages = [re.findall(rb"[a-z0-9#@']+", line.lower()) for line in lines]
scored = messages[::10]
counted = [words for number, words in enumerate(messages) if number % 10]


def runs(words):
    return [tuple(words[i:i + n]) for i in range(len(words)) for n in range(1, order + 1) if i + n <= len(words)]


counts = Counter(run for words in counted for run in runs(words))
everything = sum(len(words) for words in counted)


def share(run):
    if counts[run] > 0:
        return counts[run] / (everything if len(run) == 1 else counts[run[:-1]])
    return 0.4 * (share(run[1:]) if len(run) > 1 else 1 / everything)


scores = []
for words in scored:
    log10 = 0.0
    for i in range(len(words)):
        log10 += math.log10(share(tuple(words[max(0, i + 1 - order):i + 1])))
    scores.append(log10)

asked = [run for words in scored for run in set(runs(words))]
print("scores", hashlib.sha256("".join("%.6f\n" % score for score in scores).encode()).hexdigest())
print("lookups", len(asked))
print("found", sum(counts[run] > 0 for run in asked))
print("entries", sum(1 for count in counts.values() if count > 0))
