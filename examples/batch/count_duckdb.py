"""Counts n-grams with DuckDB: count_duckdb.py MESSAGES COUNTS ORDER UNIT

MESSAGES has one message a line. COUNTS gets one line a term, "TERM<tab>COUNT", in any order.
UNIT is `word` or `char`; runs of 1 to ORDER neighbouring units of a message are counted.
"""

import string
import sys

import duckdb

messages, counts, order, unit = sys.argv[1:]
CHUNK_BYTES = 1 << 20

# A-Z become a-z, and no other letter changes.
TEXT = f"translate(message, '{string.ascii_uppercase}', '{string.ascii_lowercase}')"
# As Unicode has it.
SPACE = r"[\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
if unit == "word":
    units, between = f"regexp_extract_all({TEXT}, '[a-z0-9#@'']+')", " "
else:
    # A run of white space is one space, and none stands at the ends.
    spaced = f"trim(regexp_replace({TEXT}, '{SPACE}', ' ', 'g'), ' ')"
    units, between = f"regexp_extract_all({spaced}, '(?s).')", ""
runs = " UNION ALL ".join(
    f"""
    SELECT unnest([array_to_string(units[first : first + {length} - 1], '{between}')
                   for first in range(1, len(units) - {length} + 2)]) AS term
    FROM split
    """
    for length in range(1, int(order) + 1)
)


def quoted(path):
    return "'" + path.replace("'", "''") + "'"


def chunks():
    """The file in parts that end with a line. The time of splitting one text grows with the square of its lines."""
    with open(messages, encoding="utf-8", newline="\n") as text:
        while lines := text.readlines(CHUNK_BYTES):
            yield ["".join(lines)]


database = duckdb.connect()
database.execute("CREATE TABLE chunks (content VARCHAR)")
for chunk in chunks():
    database.execute("INSERT INTO chunks VALUES (?)", chunk)
database.execute("CREATE TABLE lines AS SELECT unnest(string_split(content, chr(10))) AS message FROM chunks")
database.execute(f"""
    COPY (
        WITH split AS MATERIALIZED (SELECT {units} AS units FROM lines)
        SELECT term, count(*) FROM ({runs}) GROUP BY term
    ) TO {quoted(counts)} (FORMAT csv, DELIMITER '\t', HEADER false, QUOTE '', ESCAPE '')
""")
