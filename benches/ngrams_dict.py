"""The job ngrams on a Python dict, as one would write it: prints the seconds from the first line to the last."""
import re
import sys
import time

began = time.perf_counter()
counts = {}
find = re.compile(rb"[a-z0-9#@']+").findall
with open(sys.argv[1], "rb") as messages:
    for message in messages:
        last = None
        for word in find(message.lower()):
            counts[word] = counts.get(word, 0) + 1
            if last is not None:
                pair = last + b" " + word
                counts[pair] = counts.get(pair, 0) + 1
            last = word
print(time.perf_counter() - began, len(counts), sum(counts.values()))
