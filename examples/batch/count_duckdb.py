"""Counts n-grams with DuckDB: count_duckdb.py MESSAGES COUNTS ORDER UNIT

MESSAGES has one message a line. COUNTS gets one line a term, "TERM<tab>COUNT", in any order.
UNIT is `word` or `char`; runs of 1 to ORDER neighbouring units of a message are counted.
"""

import sys

import duckdb

messages, counts, order, unit = sys.argv[1:]

# A word is a run of these; A-Z become a-z. Of characters, a run of white space is one space, and none stands at the ends.
WORDS = "[lower(word) for word in regexp_extract_all(message, '[A-Za-z0-9#@'']+')]"
SPACE = r"[\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
SPACED = f"trim(regexp_replace(message, '{SPACE}', ' ', 'g'), ' ')"
UPPER, LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
CHARS = f"regexp_extract_all(translate({SPACED}, '{UPPER}', '{LOWER}'), '(?s).')"
units, between = (WORDS, " ") if unit == "word" else (CHARS, "")

runs = " UNION ALL ".join(
    f"""
    SELECT unnest([array_to_string(units[first : first + {length} - 1], '{between}')
                   for first in range(1, len(units) - {length} + 2)]) AS term
    FROM split
    """
    for length in range(1, int(order) + 1)
)
duckdb.sql(f"""
    COPY (
        WITH lines AS MATERIALIZED (SELECT unnest(string_split(content, chr(10))) AS message FROM read_text('{messages}')),
             split AS MATERIALIZED (SELECT {units} AS units FROM lines)
        SELECT term, count(*) FROM ({runs}) GROUP BY term
    ) TO '{counts}' (FORMAT csv, DELIMITER '\t', HEADER false, QUOTE '', ESCAPE '')
""")
