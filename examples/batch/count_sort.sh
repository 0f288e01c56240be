#!/bin/sh
# Counts n-grams with `sort | uniq -c`: count_sort.sh MESSAGES COUNTS ORDER UNIT
#
# MESSAGES has one message a line. COUNTS gets one line a term, "TERM<tab>COUNT", in any order.
# UNIT is `word` or `char`; runs of 1 to ORDER neighbouring units of a message are counted.
set -eu
messages=$1 counts=$2 order=$3 unit=$4
# Bytes are compared, not letters of a language.
export LC_ALL=C
if [ "$unit" = word ]; then
    # A word is a run of these; A-Z become a-z.
    units() { tr 'A-Z' 'a-z' <"$messages" | tr -c "a-z0-9#@'\\n" ' '; }
    between=' '
else
    echo "count_sort.sh counts words, not characters" >&2
    exit 1
fi
units | awk -v order="$order" -v between="$between" '{
    for (first = 1; first <= NF; first++) {
        term = ""
        for (last = first; last < first + order && last <= NF; last++) {
            term = term (last > first ? between : "") $last
            print term
        }
    }
}' | sort | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)$/\2\t\1/' >"$counts"
