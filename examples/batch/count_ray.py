"""Counts n-grams with Ray Data: count_ray.py MESSAGES COUNTS ORDER UNIT

MESSAGES has one message a line. COUNTS gets one line a term, "TERM<tab>COUNT", in any order.
UNIT is `word` or `char`; runs of 1 to ORDER neighbouring units of a message are counted.
The cluster of RAY_ADDRESS does it, or the one that runs on this host. None is started: Ray would listen on every
interface.
"""

import collections
import os
import re
import string
import sys

import pyarrow
import ray
import ray.data
from ray.data.context import ShuffleStrategy

messages, counts, order, unit = sys.argv[1:]
# A task takes so much text.
CHUNK_BYTES = 4 << 20


def units_of(message):
    # A-Z become a-z, and no other letter changes.
    message = message.translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))
    if unit == "word":
        return re.findall("[a-z0-9#@']+", message), " "
    # White space as Unicode has it: `split` without arguments knows four separators more.
    spaces = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    return re.sub(f"[{spaces}]+", " ", message).strip(" "), ""


def count(chunks):
    """The terms of some text, each once."""
    found = collections.Counter()
    for chunk in chunks["text"].to_pylist():
        for message in chunk.split("\n"):
            units, between = units_of(message)
            for length in range(1, int(order) + 1):
                found.update(
                    between.join(units[first : first + length]) for first in range(len(units) - length + 1)
                )
    return pyarrow.table({"term": list(found.keys()), "count": list(found.values())})


def chunks():
    """The file in parts that end with a line. Nodes need not have it."""
    with open(messages, encoding="utf-8", newline="\n") as text:
        while lines := text.readlines(CHUNK_BYTES):
            yield {"text": "".join(lines)}


ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, logging_level="ERROR")
context = ray.data.DataContext.get_current()
context.enable_progress_bars = False
# It needs no actors that hold processors, of which a small cluster has too few.
context.shuffle_strategy = ShuffleStrategy.SORT_SHUFFLE_PULL_BASED
parts = list(chunks())
terms = (
    ray.data.from_items(parts, override_num_blocks=max(1, len(parts)))
    .map_batches(count, batch_size=1, batch_format="pyarrow")
    .groupby("term")
    .sum("count")
)
with open(counts, "w", encoding="utf-8", newline="\n") as out:
    for batch in terms.iter_batches(batch_size=1 << 16, batch_format="pyarrow"):
        numbers = batch["sum(count)"].to_pylist()
        out.writelines(f"{term}\t{number}\n" for term, number in zip(batch["term"].to_pylist(), numbers))
