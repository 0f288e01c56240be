"""Counts n-grams with Polars: count_polars.py MESSAGES COUNTS ORDER UNIT

MESSAGES has one message a line. COUNTS gets one line a term, "TERM<tab>COUNT", in any order.
UNIT is `word` or `char`; runs of 1 to ORDER neighbouring units of a message are counted.
"""

import sys

import polars as pl

messages, counts, order, unit = sys.argv[1:]

# A word is a run of these; A-Z become a-z. Of characters, a run of white space is one space, and none stands at the ends.
WORD, CHAR, SPACE = "[A-Za-z0-9#@']+", "(?s).", r"\s+"
with open(messages, encoding="utf-8", newline="\n") as file:
    message = pl.Series("message", file.read().split("\n"))
lines = pl.LazyFrame([message]).with_row_index("number")
text = pl.col("message")
if unit == "word":
    units, between = text.str.extract_all(WORD), " "
else:
    units, between = text.str.replace_all(SPACE, " ").str.strip_chars(" ").str.extract_all(CHAR), ""
# The units of all messages, one below the other. What is not A-Z has another lower case at most in Unicode.
column = lines.select("number", units.alias("unit")).explode("unit").drop_nulls("unit")
upper = pl.col("unit").str.contains("^[A-Z#@'0-9a-z]+$")
column = column.with_columns(pl.when(upper).then(pl.col("unit").str.to_lowercase()).otherwise(pl.col("unit")))
column = column.collect().lazy()


def runs(length):
    """Runs of so many units, none of which reaches into the next message."""
    term = pl.concat_str([pl.col("unit").shift(-place) for place in range(length)], separator=between)
    is_whole = pl.col("number") == pl.col("number").shift(1 - length)
    return column.select(term.alias("term"), is_whole.alias("is_whole")).filter("is_whole").select("term")


everything = pl.concat([runs(length) for length in range(1, int(order) + 1)])
everything.group_by("term").len().collect().write_csv(counts, separator="\t", include_header=False, quote_style="never")
