"""The cluster: one actor a node, in one placement group. An existing cluster is used and never stopped."""

import contextlib
import os
import socket
import sys
import threading

from kvfair_ray.node import Node
from kvfair_ray.trouble import NOT_HERE, USAGE, Trouble

# How long a host of the cluster may take to answer.
CONNECTING_S = 10
# How long it may take to join the cluster.
JOINING_S = 60
# How long the cluster may take to reserve the group, and to start an actor.
PLACING_S = 60
STARTING_S = 120
# Calls of an actor that may run at once: an agent is listened to while it is told something.
CALLS = 8


def load():
    """Ray itself, which not everybody has."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        ray = None
    # A directory of that name, as Ray's own in /tmp, is a package without anything in it.
    if not hasattr(ray, "init"):
        raise Trouble("Ray is not installed here", "pip install 'kvfair[ray]'", NOT_HERE)
    return ray


def join(address):
    """Connects to a running cluster."""
    ray = load()
    hint = "ray start --head --port=6379 on one host, ray start --address=HOST:6379 on the others"
    if address == "local":
        raise Trouble("--address local would start a cluster", "--address auto, or HOST:PORT", USAGE)
    what = f"no Ray cluster answers at --address {address}"
    late = threading.Timer(JOINING_S, give_up, [Trouble(f"{what} within {JOINING_S} s", hint, NOT_HERE)])
    late.daemon = True
    try:
        if address != "auto":
            must_listen(address)
        late.start()
        # Ray prints its notices, such as of a dead node, to standard output, which is for kvfair's results.
        sys.stdout = sys.stderr
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise Trouble(f"{what}: {words[0]}", hint, NOT_HERE) from error
    finally:
        late.cancel()
    return ray


def give_up(trouble):
    """Ends this process: Ray tries for minutes to reach what is no cluster, and cannot be stopped. Nothing was begun."""
    print(f"kvfair-ray: {trouble}", file=sys.stderr, flush=True)
    os._exit(trouble.code)


def must_listen(address):
    """Tells at once of an address where nobody listens."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise Trouble(f"--address {address} is no address", "--address auto, or HOST:PORT", USAGE)
    socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECTING_S).close()


class Group:
    """As many actors as there are agents, each on a node of its own."""

    def __init__(self, ray, count, program):
        self.ray = ray
        self.placed = None
        self.actors = []
        self.names = []
        self.has_room(count)
        try:
            self.place(count)
            self.start(count, program)
        except BaseException:
            self.leave()
            raise

    def has_room(self, count):
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        if len(alive) >= count:
            return
        names = ", ".join(sorted(node["NodeManagerAddress"] for node in alive))
        plural = "" if len(alive) == 1 else "s"
        what = f"--agents {count} needs {count} nodes, one for each agent, and the cluster has {len(alive)}"
        raise Trouble(f"{what} node{plural}: {names}", f"--agents {len(alive)}, or add nodes", NOT_HERE)

    def place(self, count):
        from ray.util.placement_group import placement_group

        self.placed = placement_group([{"CPU": 1}] * count, strategy="STRICT_SPREAD")
        if self.placed.wait(PLACING_S):
            return
        free = "; ".join(
            f"{node['NodeManagerAddress']}: {node['Resources'].get('CPU', 0):.0f} CPUs"
            for node in self.ray.nodes()
            if node["Alive"]
        )
        what = f"the cluster had no free CPU on {count} nodes within {PLACING_S} s ({free} in all)"
        raise Trouble(what, "wait for other work on it to end, or take fewer --agents", NOT_HERE)

    def start(self, count, program):
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        actor = self.ray.remote(Node)
        for rank in range(count):
            where = PlacementGroupSchedulingStrategy(placement_group=self.placed, placement_group_bundle_index=rank)
            options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": CALLS}
            self.actors.append(actor.options(scheduling_strategy=where, **options).remote(program))
        asked = [actor.about.remote() for actor in self.actors]
        try:
            self.about = self.ray.get(asked, timeout=STARTING_S)
        except self.ray.exceptions.RayError as error:
            words = str(error).strip().splitlines()[0]
            hint = "every node needs kvfair-ray and the same versions of Python and Ray: pip install 'kvfair[ray]'"
            raise Trouble(f"a node of the cluster cannot start an agent: {words}", hint, NOT_HERE) from error
        self.names = [about["host"] for about in self.about]

    def must_have(self, version, program):
        """Every node must have this version of kvfair."""
        for rank, about in enumerate(self.about):
            if about["version"] == version:
                continue
            it_has = about["version"] or (f"a {program} that does not run" if about["program"] else f"no {program}")
            what = f"node {about['host']} (rank {rank}) has {it_has}, and here is {version}"
            release = version.split()[-1]
            raise Trouble(what, f"pip install 'kvfair[ray]=={release}' on every node, or --kvfair PATH", NOT_HERE)

    def leave(self):
        """Ends the actors and gives their nodes back. The cluster goes on."""
        from ray.util.placement_group import remove_placement_group

        # Of a cluster that is lost nothing is left to give back.
        with contextlib.suppress(self.ray.exceptions.RayError):
            for actor in self.actors:
                self.ray.kill(actor, no_restart=True)
            if self.placed is not None:
                remove_placement_group(self.placed)
