#!/usr/bin/env python3
"""What a request to PostgreSQL and MariaDB costs a client: by our own codecs, by the client libraries that kvfair had
before, by pgbench and by sysbench. All ask the same servers in turn for single rows by their keys.

    ./bench drivers              builds kvfair and the last commit with the libraries, and prints a table

It needs postgresql, mariadb-server and sysbench (Debian's packages), and half an hour the first time.
"""

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The last commit that reached both by libraries (postgres 0.19.14, mysql 28.0.4).
BY_LIBRARIES = "810aed9e"
ROUNDS = 5
CLIENTS = 50
REQUESTS = 60_000
# Rows of pgbench and sysbench, and records of kvfair.
ROWS = 100_000
# Of the client's CPU a request.
OWED = {("postgres", "library"): 0.5, ("postgres", "bench"): 0.5, ("mariadb", "library"): 0.8, ("mariadb", "bench"): 0.5}
ROOT = Path(__file__).resolve().parent.parent


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def build():
    """Both programs, as users build them."""
    run("cargo", "build", "--quiet", "--release", "--locked", cwd=ROOT)
    before = ROOT / "target/drivers/before"
    if not before.exists():
        run("git", "clone", "--quiet", "--shared", ROOT, before)
        run("git", "checkout", "--quiet", BY_LIBRARIES, cwd=before)
    run("cargo", "build", "--quiet", "--release", "--locked", "--target-dir", before.parent / "target", cwd=before)
    return {"codec": ROOT / "target/release/kvfair", "library": before.parent / "target/release/kvfair"}


class Server:
    """One that listens on a Unix socket in a directory of ours."""

    def __init__(self, directory, command, is_ready, url):
        self.directory, self.url = directory, url
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, cwd=directory)
        for _ in range(300):
            if is_ready():
                return
            time.sleep(0.1)
        sys.exit(f"{command[0]} does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def postgres(directory):
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(directory, "postgres")
    data = directory / "data"
    run(*as_user, programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C",
        stdout=subprocess.DEVNULL, cwd=directory)
    settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=1GB", "listen_addresses=",
                f"unix_socket_directories={directory}"]
    command = as_user + [programs / "postgres", "-D", data] + [part for one in settings for part in ("-c", one)]
    ready = [programs / "pg_isready", "-q", "-h", directory]
    server = Server(directory, command, lambda: subprocess.run(ready).returncode == 0,
                    f"postgres+unix://{directory}/.s.PGSQL.5432")
    run("pgbench", "-i", "-q", "-s", 1, "-h", directory, "-U", "postgres", "postgres", stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL)
    return server


def mariadb(directory):
    data, socket = directory / "data", directory / "s"
    run("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db",
        "--auth-root-authentication-method=normal", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    command = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-networking=1",
               f"--socket={socket}", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=1G"]
    client = ["mariadb", "--no-defaults", f"--socket={socket}", "-u", "root"]
    ready = client + ["-e", "CREATE DATABASE IF NOT EXISTS kvfair"]
    server = Server(directory, command, lambda: subprocess.run(ready, stderr=subprocess.DEVNULL).returncode == 0,
                    f"mariadb+unix://{socket}?user=root")
    run(*sysbench(directory), "prepare", stdout=subprocess.DEVNULL)
    return server


def sysbench(directory):
    return ["sysbench", "oltp_point_select", "--db-driver=mysql", f"--mysql-socket={directory}/s", "--mysql-user=root",
            "--mysql-db=kvfair", "--tables=1", f"--table-size={ROWS}", f"--threads={CLIENTS}", f"--events={REQUESTS}",
            "--time=0"]


def of_kvfair(program, server):
    """Microseconds of the client's CPU for a get, and gets a second."""
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.jsonl"
        # One block claims nothing, which its exit code says; its answers are looked at below.
        command = [program, "run", "getset", server.url, "--only", "get", "--clients", CLIENTS, "--requests", REQUESTS,
                   "--records", ROWS, "--blocks", 1, "--no-aa", "--output", results]
        subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       cwd=directory)
        record = json.loads(results.read_text().splitlines()[-1])
    assert record["verdict"]["kind"] == "right", record["verdict"]
    [phase] = [phase for phase in record["phases"] if phase["name"] == "get"]
    cpu_s = phase["client"]["user_s"] + phase["client"]["system_s"]
    return cpu_s / phase["ops"] * 1e6, phase["ops"] / phase["took_s"]


def of_program(command, pattern):
    """The same of a program that prints how many it asked a second. Its start and end count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = run(*command, capture_output=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s / REQUESTS * 1e6, float(re.search(pattern, said).group(1))


def of_pgbench(server):
    command = ["pgbench", "-S", "-n", "-M", "prepared", "-c", CLIENTS, "-j", 1, "-t", REQUESTS // CLIENTS,
               "-h", server.directory, "-U", "postgres", "postgres"]
    return of_program(command, r"tps = ([0-9.]+)")


def of_sysbench(server):
    return of_program(sysbench(server.directory) + ["run"], r"transactions:\s+\d+\s+\(([0-9.]+) per sec")


STORES = {"postgres": (postgres, of_pgbench, "pgbench -M prepared"), "mariadb": (mariadb, of_sysbench, "sysbench")}


def main():
    programs = build()
    is_met = True
    print(f"{REQUESTS} reads of single rows over Unix sockets by {CLIENTS} clients, {ROUNDS} rounds in turn: median")
    for store, (start, beside, name) in STORES.items():
        with tempfile.TemporaryDirectory(prefix="drivers-") as directory:
            os.chmod(directory, 0o711)
            server = start(Path(directory))
            measures = {"codec": lambda: of_kvfair(programs["codec"], server),
                        "library": lambda: of_kvfair(programs["library"], server),
                        "bench": lambda: beside(server)}
            samples = {way: [] for way in measures}
            try:
                for _ in range(ROUNDS):
                    for way, measure in measures.items():
                        samples[way].append(measure())
            finally:
                server.stop()
        cpu_us = {way: statistics.median(cpu for cpu, _ in list_) for way, list_ in samples.items()}
        rate = {way: statistics.median(rate for _, rate in list_) for way, list_ in samples.items()}
        print(f"\n{store:10} {'client CPU us':>14} {'requests/s':>12} {'codec / it':>11}")
        for way in measures:
            called = {"codec": "own codec", "library": "client library", "bench": name}[way]
            ratio = cpu_us["codec"] / cpu_us[way]
            owed = OWED.get((store, way))
            verdict = "" if owed is None else f"  owed {owed}: {'met' if ratio <= owed else 'missed'}"
            is_met = is_met and (owed is None or ratio <= owed)
            print(f"  {called:20} {cpu_us[way]:>6.1f} {rate[way]:>12,.0f} {ratio:>11.2f}{verdict}")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
