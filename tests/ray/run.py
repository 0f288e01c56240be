"""Tests of kvfair-ray on three nodes of Ray, each in network, process, mount and host name namespaces of its own.

run.py KVFAIR RAY [TEST]: the program, the directory that `pip install --target` put Ray in, and part of the names
of the tests to run. Those that take many minutes are run only where they are named. Needs root and redis-server, and
DuckDB for the large size.
All addresses are of these namespaces alone.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = sys.executable
NODES = 3
PORT = 7000
# How long a cluster may take to come up, and a command to end.
UP_S = 180
ENDS_S = 300


def address(node):
    return f"10.231.77.{10 + node}"


class Cluster:
    """A bridge in a network namespace of its own, and the nodes on it."""

    def __init__(self, work, kvfair, ray):
        self.work, self.ray = work, ray
        # Every node has its own /tmp, where the program may be.
        self.kvfair = shutil.copy(kvfair, work / "kvfair")
        self.nodes = []
        self.others = []

    def up(self):
        bridge = self.spawn(["unshare", "--net", "--fork", "--kill-child", "sleep", "infinity"])
        self.inside = inner(bridge)
        self.on_bridge("ip", "link", "add", "br0", "type", "bridge")
        self.on_bridge("ip", "link", "set", "br0", "up")
        for node in range(1, NODES + 1):
            self.add(node)
        wait(lambda: self.alive() == NODES, UP_S, "the nodes of Ray")

    def spawn(self, command, **more):
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **more)
        self.others.append(child)
        return child

    def on_bridge(self, *command):
        subprocess.run(["nsenter", "--net", "--target", str(self.inside), *command], check=True)

    def environment(self, node=1):
        return {
            "PATH": f"{self.work}/bin/node{node}:{os.environ['PATH']}",
            "HOME": "/tmp/home",
            "PYTHONPATH": ":".join(map(str, [self.ray, ROOT / "python", ROOT / "target/test-tools/python"])),
            "RAY_memory_monitor_refresh_ms": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def add(self, node):
        name = f"node{node}"
        programs = self.work / "bin" / name
        programs.mkdir(parents=True)
        os.symlink(self.kvfair, programs / "kvfair")
        # One node has another version.
        odd = programs / "kvfair-odd"
        odd.write_text('#!/bin/sh\necho "kvfair 0.0.1"\n' if node == NODES else f'#!/bin/sh\nexec {self.kvfair} "$@"\n')
        odd.chmod(0o755)
        role = ["--head", "--port", "6379", "--include-dashboard", "false"]
        if node > 1:
            role = ["--address", f"{address(1)}:6379"]
        command = ["unshare", "--net", "--pid", "--mount", "--uts", "--fork", "--kill-child", "--mount-proc"]
        command += [str(HERE / "node.sh"), name, address(node), PYTHON, *role]
        log = open(self.work / f"{name}.log", "wb")
        child = self.spawn(command, env=self.environment(node), stdout=log, stderr=log)
        pid = inner(child)
        self.nodes.append(pid)
        # The same names everywhere: each end goes into its own namespace at once.
        self.on_bridge("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self.on_bridge("ip", "link", "set", name, "master", "br0", "up")
        if node == 1:
            wait(lambda: self.alive() == 1, UP_S, "the head of Ray")

    def command(self, words, **changed):
        """A command on the first node."""
        enter = ["nsenter", "--target", str(self.nodes[0]), "--net", "--pid", "--mount", "--uts"]
        settings = {**self.environment(), **changed}.items()
        return [*enter, "env", "-i", "-C", "/tmp", *[f"{name}={value}" for name, value in settings], *words]

    def run(self, words, within_s=ENDS_S, **changed):
        command = self.command(words, **changed)
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=within_s)

    def alive(self):
        """How many nodes the cluster has."""
        # Ray prints its notices, such as of a dead node, to standard output.
        count = "import sys, ray; out, sys.stdout = sys.stdout, sys.stderr; "
        count += "ray.init('auto', log_to_driver=False, logging_level='ERROR'); "
        count += "print(sum(node['Alive'] for node in ray.nodes()), file=out)"
        told = self.run([PYTHON, "-c", count])
        return int(told.stdout) if told.returncode == 0 else 0

    def kill(self, node):
        """With all its processes: they lose their first one."""
        os.kill(self.nodes[node - 1], signal.SIGKILL)

    def close(self):
        """`unshare` passes nothing on, but its end is that of what it has started."""
        for child in reversed(self.others):
            child.kill()
            child.wait()


def inner(child):
    """The process that `unshare` has started."""
    path = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children")

    def first():
        return int((path.read_text().split() or ["0"])[0])

    wait(lambda: first() > 0, 10, "a process in its namespaces")
    return first()


def wait(until, at_most_s, what):
    ends = time.monotonic() + at_most_s
    while not until():
        if time.monotonic() > ends:
            raise TimeoutError(f"{what} did not come within {at_most_s} s")
        time.sleep(0.2)


def redis(cluster):
    """A store that all nodes reach."""
    server = ["redis-server", "--bind", address(1), "--port", str(PORT), "--protected-mode", "no", "--save", ""]
    cluster.spawn(cluster.command([*server, "--dir", "/tmp"]), stdout=subprocess.DEVNULL)
    wait(lambda: keys(cluster) == 0, 20, "Redis")


def keys(cluster):
    told = cluster.run(["redis-cli", "-h", address(1), "-p", str(PORT), "dbsize"])
    return int(told.stdout.split()[-1]) if told.returncode == 0 and told.stdout.strip() else None


def kvfair_ray(*words):
    return [PYTHON, "-m", "kvfair_ray", *words]


def ngrams(*words):
    return ["run", "ngrams", f"redis://{address(1)}:{PORT}", "--blocks", "1", "--no-aa", *words]


def records(cluster, path):
    return [json.loads(line) for line in cluster.run(["cat", path]).stdout.splitlines()]


def shows(told, *words):
    said = told.stdout + told.stderr
    for word in words:
        assert word in said, f"'{word}' is not in:\n{said}"


def counts_as_one_writer_and_as_ray_data_do(cluster):
    job = ["--messages", "5000", "--via", "batch"]
    one = cluster.run(["kvfair", *ngrams(*job, "--output", "/tmp/one.jsonl")])
    assert one.returncode == 0, one.stdout + one.stderr
    many = cluster.run(kvfair_ray(*ngrams(*job, "--agents", "3", "--output", "/tmp/many.jsonl")))
    assert many.returncode == 0, many.stdout + many.stderr
    one, many = records(cluster, "/tmp/one.jsonl")[0], records(cluster, "/tmp/many.jsonl")[0]
    for record in (one, many):
        assert record["verdict"]["kind"] == "right", record["verdict"]
    assert one["verdict"]["answer"]["sha256 terms"] == many["verdict"]["answer"]["sha256 terms"]
    assert many["phases"][-2]["units"] == 5000, many["phases"]
    assert keys(cluster) == 0, "what was written is taken back"
    words = [*ngrams(*job[:2], "--output", "/tmp/batch.jsonl"), "--timeout", "900s"]
    words[2] = "ray-data"
    # A cluster on a busy machine takes minutes for what takes seconds.
    batch = cluster.run(["kvfair", *words], within_s=960)
    assert batch.returncode == 0, batch.stdout + batch.stderr
    batch = records(cluster, "/tmp/batch.jsonl")[0]
    assert batch["verdict"]["answer"]["sha256 terms"] == one["verdict"]["answer"]["sha256 terms"]
    assert cluster.alive() == NODES, "the cluster goes on"


def three_million_messages_are_counted_alike(cluster):
    """By four writers of one Redis, by DuckDB, and by Ray Data on the cluster."""
    records_of = {}
    for target, more in {
        f"redis://{address(1)}:{PORT}": ["--via", "batch", "--agents", "4", "--launch", "kvfair agent"],
        "duckdb": [],
        "ray-data": [],
    }.items():
        words = ["kvfair", "run", "ngrams", target, "--messages", "3000000", "--blocks", "1", "--no-aa", *more]
        words += ["--timeout", "3600s", "--output", "/tmp/large.jsonl"]
        told = cluster.run(words, within_s=2 * 3600)
        assert told.returncode == 0, told.stdout + told.stderr
        print(told.stdout, flush=True)
        [records_of[target]] = records(cluster, "/tmp/large.jsonl")
        cluster.run(["rm", "/tmp/large.jsonl"])
        assert records_of[target]["verdict"]["kind"] == "right", records_of[target]["verdict"]
        assert records_of[target]["stream"]["units"] == 3000000
    digests = {record["verdict"]["answer"]["sha256 terms"] for record in records_of.values()}
    assert len(digests) == 1, digests


def too_small_a_cluster_is_named(cluster):
    told = cluster.run(kvfair_ray(*ngrams("--agents", "4")))
    assert told.returncode == 3, told
    shows(told, "--agents 4 needs 4 nodes", "the cluster has 3 nodes", address(1), address(3), "hint: --agents 3")


def without_ray_it_is_said_how_to_get_it(cluster):
    told = cluster.run(kvfair_ray(*ngrams("--agents", "2")), PYTHONPATH=str(ROOT / "python"))
    assert told.returncode == 3, told
    shows(told, "Ray is not installed here", "hint: pip install 'kvfair[ray]'")


def no_cluster_is_started(cluster):
    told = cluster.run(kvfair_ray(*ngrams("--agents", "2", "--address", f"{address(2)}:9")))
    assert told.returncode == 3, told
    shows(told, "no Ray cluster answers", "hint: ray start --head")
    # Redis listens there.
    told = cluster.run(kvfair_ray(*ngrams("--agents", "2", "--address", f"{address(1)}:{PORT}")))
    assert told.returncode == 3, told
    shows(told, "no Ray cluster answers", "within 60 s", "hint: ray start --head")
    told = cluster.run(kvfair_ray(*ngrams("--agents", "2", "--address", "local")))
    assert told.returncode == 2, told
    shows(told, "--address local would start a cluster")


def another_version_on_a_node_is_named(cluster):
    told = cluster.run(kvfair_ray(*ngrams("--agents", "3", "--kvfair", "kvfair-odd")))
    assert told.returncode == 3, told
    shows(told, "node node3 (rank ", "has kvfair 0.0.1, and here is kvfair ", "on every node")


def agent_on(cluster, node):
    """The process of an agent on that node."""
    space = os.readlink(f"/proc/{cluster.nodes[node - 1]}/ns/pid")
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_there = os.readlink(process / "ns/pid") == space
            if is_there and (process / "cmdline").read_bytes().endswith(b"kvfair\0agent\0"):
                return int(process.name)
        except OSError:
            # It has ended.
            continue
    return None


def leaves_no_number(cluster, kill, name):
    """A run, part of which is killed in the middle. Why it failed."""
    path = f"/tmp/{name}.jsonl"
    words = ngrams("--messages", "30000", "--agents", "3", "--output", path)
    child = subprocess.Popen(
        cluster.command(kvfair_ray(*words)),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    wait(lambda: (keys(cluster) or 0) > 1000, ENDS_S, "the first terms")
    kill()
    results, said = child.communicate(timeout=ENDS_S)
    assert child.returncode == 1, results + said
    # Whether Ray tells of a dead node before the run has ended is chance.
    assert "(raylet)" not in results, f"standard output is for results:\n{results}"
    record = records(cluster, path)[0]
    assert record["outcome"]["kind"] == "failed", (record["outcome"], said)
    assert all(phase["name"] != "run" for phase in record["phases"]), "no number"
    assert keys(cluster) == 0, "what was written is taken back"
    return record["outcome"]["reason"]


def a_killed_agent_is_named_and_there_is_no_number(cluster):
    reason = leaves_no_number(cluster, lambda: os.kill(agent_on(cluster, 2), signal.SIGKILL), "agent")
    assert "(node2) is lost" in reason and "the agent ended with exit code -9" in reason, reason


def a_killed_node_is_named_and_there_is_no_number(cluster):
    reason = leaves_no_number(cluster, lambda: cluster.kill(NODES), "node")
    # By Ray's own notice, or because nothing was heard of it.
    assert "(node3) is lost" in reason, reason
    wait(lambda: cluster.alive() == NODES - 1, UP_S, "the cluster without that node")


# It waits for a minute, beside the others.
BESIDE = [no_cluster_is_started]

TESTS = [
    without_ray_it_is_said_how_to_get_it,
    too_small_a_cluster_is_named,
    another_version_on_a_node_is_named,
    counts_as_one_writer_and_as_ray_data_do,
    a_killed_agent_is_named_and_there_is_no_number,
    # It comes last: the node is gone.
    a_killed_node_is_named_and_there_is_no_number,
]

# They take many minutes.
SLOW = [three_million_messages_are_counted_alike]


def passes(test, cluster):
    """Runs a test, and prints its outcome as libtest does."""
    began, outcome = time.monotonic(), "ok"
    try:
        test(cluster)
    except Exception as error:
        outcome = "FAILED"
        print(f"{test.__name__}: {error}", flush=True)
    print(f"test {test.__name__} ... {outcome} <{time.monotonic() - began:.1f}s>", flush=True)
    return outcome == "ok"


def main():
    # A run that is ended ends its cluster.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    kvfair, ray = (os.path.abspath(path) for path in sys.argv[1:3])
    asked = "".join(sys.argv[3:])
    beside, tests = [
        [test for test in listed if asked in test.__name__] for listed in (BESIDE, TESTS + (SLOW if asked else []))
    ]
    target = ROOT / "target"
    target.mkdir(exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="ray-tests-", dir=target))
    cluster = None
    try:
        cluster = Cluster(work, kvfair, ray)
        cluster.up()
        redis(cluster)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            waiting = [threads.submit(passes, test, cluster) for test in beside]
            passed = [passes(test, cluster) for test in tests] + [each.result() for each in waiting]
    except TimeoutError as error:
        passed = []
        print(f"the cluster did not come up: {error}", flush=True)
        for log in sorted(work.glob("*.log")):
            print(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}")
    finally:
        if cluster is not None:
            cluster.close()
        shutil.rmtree(work, ignore_errors=True)
    failed = len(beside + tests) - sum(passed)
    print(f"{sum(passed)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
