"""Counts n-grams with Polars: count_polars.py MESSAGES COUNTS ORDER UNIT

MESSAGES has one message a line. COUNTS gets one line a term, "TERM<tab>COUNT", in any order.
UNIT is `word` or `char`; runs of 1 to ORDER neighbouring units of a message are counted.
"""

import string
import sys

import polars as pl

messages, counts, order, unit = sys.argv[1:]

# A-Z become a-z, and no other letter changes.
text = pl.col("message").str.replace_many(list(string.ascii_uppercase), list(string.ascii_lowercase))
if unit == "word":
    units, between = text.str.extract_all("[a-z0-9#@']+"), " "
else:
    # A run of white space is one space, and none stands at the ends.
    units, between = text.str.replace_all(r"\s+", " ").str.strip_chars(" ").str.extract_all("(?s)."), ""
# The units of all messages, one below the other.
with open(messages, encoding="utf-8", newline="\n") as file:
    lines = pl.LazyFrame({"message": file.read().split("\n")}).with_row_index("number")
column = lines.select("number", units.alias("unit")).explode("unit").drop_nulls("unit").collect().lazy()


def runs(length):
    """Runs of so many units, none of which reaches into the next message."""
    term = pl.concat_str([pl.col("unit").shift(-place) for place in range(length)], separator=between)
    is_whole = pl.col("number") == pl.col("number").shift(1 - length)
    return column.select(term.alias("term"), is_whole.alias("is_whole")).filter("is_whole").select("term")


everything = pl.concat([runs(length) for length in range(1, int(order) + 1)])
everything.group_by("term").len().collect().write_csv(counts, separator="\t", include_header=False, quote_style="never")
