#!/usr/bin/env bash
# Measures with an installed wheel alone: no checkout, no Rust, no library of Python's.
# `tests/package.sh release`: the wheel as it is released, by the first look. `tests/package.sh dev`: that of the tests'
# build, by a small run of the same stores: tests/cli/look.rs takes its first look.
set -euo pipefail
cd "$(dirname "$0")/.."

complain() { printf '!! %s\n' "$*" >&2; exit 1; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
bin="$place/env/bin"
./package wheel "$1"
python3 -m venv "$place/env"
"$bin/pip" install --quiet --disable-pip-version-check --no-index dist/kvfair-*.whl
mkdir "$place/work" "$place/home"
look=()
[ "$1" = release ] || look=(run ngrams --messages 50 --blocks 1 ram redis postgres)
code=0
kvfair() { (cd "$place/work" && env -i HOME="$place/home" PATH="$bin:/usr/sbin:/usr/bin:/sbin:/bin" kvfair "$@"); }
kvfair ${look[@]+"${look[@]}"} || code=$?
kvfair show --wide >"$place/table" || true
cat "$place/table"
for row in redis postgres; do
    # On a slow machine it may be left out of a first look, which its row says.
    grep -Eq "^ ([0-9 -]* )?$row" "$place/table" || complain "the wheel's table has no row of $row"
done
# 6: the machine was too noisy to rank by time. The table is there all the same.
[ "$code" = 0 ] || [ "$code" = 6 ] || complain "the wheel's run ended with $code"
