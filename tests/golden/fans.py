#!/usr/bin/env python3
"""The answer of the job `fans` by an independent program: python3 fans.py FILE.jsonl|FILE.tsv"""
import hashlib
import itertools
import json
import sys
from collections import Counter


def profiles(path):
    with open(path, "rb") as file:
        for line in file.read().removesuffix(b"\n").split(b"\n"):
            if path.endswith(".jsonl"):
                yield {name.encode() for name in json.loads(line)["likes"]}
            else:
                yield set(line.removesuffix(b"\r").split(b"\t")[1:])


def digest(lines):
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


users, fans, also = 0, Counter(), Counter()
for pages in profiles(sys.argv[1]):
    users += 1
    fans.update(pages)
    also.update(itertools.permutations(pages, 2))

print("fans", digest(b"%s\t%d\n" % item for item in fans.items()))
print("also", digest(b"%s\t%s\t%d\n" % (*pair, count) for pair, count in also.items()))
print("users", users)
print("pages", len(fans))
print("pairs", len(also) // 2)
