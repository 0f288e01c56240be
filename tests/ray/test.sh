#!/usr/bin/env bash
# Tests kvfair-ray on three nodes of Ray in namespaces of their own: Ray would listen on every interface of this machine.
# `tests/ray/test.sh BUILT [TEST]`: the folder below target with kvfair in it, and part of a test's name.
set -euo pipefail
cd "$(dirname "$0")/../.."

ray="${XDG_CACHE_HOME:-$HOME/.cache}/kvfair-tests/ray-2.60.0"
not_run() {
    echo "test ray ... ignored, $1"
    # Where every change is tested, a test that is not run is a failure.
    [ -z "${KVFAIR_TESTS_STRICT:-}" ]
    exit
}

unshare --net --pid --mount --uts --fork --kill-child true 2>/dev/null ||
    not_run "namespaces cannot be made here: it needs Linux and root"
tests/install.sh ray
[ -d "$ray/ray" ] || not_run "Ray could not be installed"
exec python3 tests/ray/run.py "target/$1/kvfair" "$ray" "${@:2}"
