#!/usr/bin/env python3
"""The answer of the job `ngrams` by an independent program: python3 ngrams.py FILE.txt"""
import hashlib
import re
import sys
from collections import Counter

counts = Counter()
with open(sys.argv[1], "rb") as file:
    for message in file.read().split(b"\n"):
        # Of bytes, lower() and the classes of re know ASCII only.
        words = re.findall(rb"[a-z0-9#@']+", message.lower())
        counts.update(words)
        counts.update(b"%s %s" % pair for pair in zip(words, words[1:]))

lines = b"".join(b"%s\t%d\n" % item for item in sorted(counts.items()))
print("digest", hashlib.sha256(lines).hexdigest())
print("terms", len(counts))
print("sum", sum(counts.values()))
for term, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:20]:
    print("top", count, term.decode())
