#!/usr/bin/env bash
# Compares two programs of a store in one run: the work of action.yml, and of any other CI. Settings are variables of the
# environment, so that no text of a change becomes a command here.
#
#   KVFAIR_CI_KVFAIR           the program kvfair; empty: cargo builds that of this directory
#   KVFAIR_CI_JOB              the job (default fans)
#   KVFAIR_CI_STORE            the store and its transport (default redis)
#   KVFAIR_CI_BASE             the program as it was
#   KVFAIR_CI_HEAD             the program as it is
#   KVFAIR_CI_BUILD_BASE       a shell command that makes the program as it was; empty: it is there
#   KVFAIR_CI_BUILD_HEAD       a shell command that makes the program as it is; empty: it is there
#   KVFAIR_CI_FAIL_IF          limits, separated by blanks (default slower:5%); "none": no limit
#   KVFAIR_CI_FAIL_IF_UNCLEAR  true: exit with 6 where a limit can neither be shown nor ruled out; false (default): with 0
#   KVFAIR_CI_OPTIONS          more options of `kvfair compare`, separated by blanks
#   KVFAIR_CI_DIRECTORY        where page.html, comment.md and results.jsonl go; it must be new (default kvfair-compare)
#
# Exit codes are those of `kvfair compare`, but for 6.
set -euo pipefail

complain() { printf 'compare.sh: %s\n' "$*" >&2; }
refuse() {
    complain "$1"
    printf 'hint: %s\n' "$2" >&2
    exit 2
}

kvfair=${KVFAIR_CI_KVFAIR:-}
job=${KVFAIR_CI_JOB:-fans}
store=${KVFAIR_CI_STORE:-redis}
base=${KVFAIR_CI_BASE:-}
head=${KVFAIR_CI_HEAD:-}
fail_if=${KVFAIR_CI_FAIL_IF:-slower:5%}
fail_if_unclear=${KVFAIR_CI_FAIL_IF_UNCLEAR:-false}
directory=${KVFAIR_CI_DIRECTORY:-kvfair-compare}

[ -n "$base" ] || refuse "no program as it was is named" "set KVFAIR_CI_BASE (input base), as in ./base/src/redis-server"
[ -n "$head" ] || refuse "no program as it is is named" "set KVFAIR_CI_HEAD (input head), as in ./head/src/redis-server"
case $fail_if_unclear in
    true | false) ;;
    *) refuse "'$fail_if_unclear' is neither true nor false" "set KVFAIR_CI_FAIL_IF_UNCLEAR (input fail-if-unclear) to one" ;;
esac
[ ! -e "$directory" ] || refuse "$directory is there already" "set KVFAIR_CI_DIRECTORY (input directory) to a new one"

# Words without the patterns of a shell.
read -r -d '' -a options <<<"${KVFAIR_CI_OPTIONS:-}" || true
limits=()
if [ "$fail_if" != none ]; then
    read -r -d '' -a words <<<"$fail_if" || true
    [ "${#words[@]}" -gt 0 ] || refuse "KVFAIR_CI_FAIL_IF is blank" "name limits, as in slower:5%, or none"
    for limit in "${words[@]}"; do limits+=(--fail-if "$limit"); done
fi

# What a command prints belongs to the log.
build() {
    [ -z "$2" ] && return
    complain "builds $1: $2"
    bash -euo pipefail -c "$2" >&2 || {
        code=$?
        complain "the command that builds $1 ended with $code: $2"
        exit 1
    }
}
build base "${KVFAIR_CI_BUILD_BASE:-}"
build head "${KVFAIR_CI_BUILD_HEAD:-}"

# A target, which has a syntax of its own: a path with one of its marks would be another setting.
target() {
    [[ $2 =~ ^[A-Za-z0-9_./,@:=~-]+$ ]] || refuse "$1: the path '$2' has letters that a target cannot hold" "use letters, digits and _ . / , @ : = ~ -"
    [ -f "$2" ] && [ -x "$2" ] || refuse "$1: $2 is no program" "build it before, or name the command that does (input build-$1)"
    case $store in *\?*) mark='&' ;; *) mark='?' ;; esac
    printf '%s%sprogram=%s&name=%s' "$store" "$mark" "$2" "$1"
}
base_target=$(target base "$base")
head_target=$(target head "$head")
if cmp -s "$base" "$head"; then complain "note: $base and $head hold the same bytes"; fi

if [ -z "$kvfair" ]; then
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
    complain "builds kvfair in $root"
    cargo build --release --locked --quiet --manifest-path "$root/Cargo.toml" >&2
    kvfair=${CARGO_TARGET_DIR:-$root/target}/release/kvfair
fi

mkdir -p "$directory"
comment=$directory/comment.md
code=0
"$kvfair" compare "$job" --base "$base_target" --head "$head_target" ${limits[@]+"${limits[@]}"} \
    --markdown --html "$directory/page.html" --output "$directory/results.jsonl" ${options[@]+"${options[@]}"} \
    >"$comment" || code=$?
[ -s "$comment" ] || printf '**Not compared**: kvfair ended with exit code %s. The log says why.\n' "$code" >"$comment"

case $code in
    0) verdict=good ;;
    5) verdict=regression ;;
    6) verdict=unclear ;;
    *) verdict=failed ;;
esac
cat "$comment"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$comment" >>"$GITHUB_STEP_SUMMARY"; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then printf 'verdict=%s\nexit-code=%s\n' "$verdict" "$code" >>"$GITHUB_OUTPUT"; fi
if [ "$code" = 6 ] && [ "$fail_if_unclear" = false ]; then
    complain "exit code 6, nothing can be said, does not fail here (KVFAIR_CI_FAIL_IF_UNCLEAR, input fail-if-unclear)"
    code=0
fi
exit "$code"
