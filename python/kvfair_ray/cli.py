"""`kvfair-ray run ...`: a run of kvfair whose agents are on the nodes of a Ray cluster."""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile

from kvfair_ray import cluster
from kvfair_ray.node import VERSION_S, find, first_line
from kvfair_ray.relay import Relay
from kvfair_ray.trouble import NOT_HERE, USAGE, Trouble

# After Ctrl-C, as of kvfair.
INTERRUPTED = 130
# What kvfair-ray gives to kvfair itself.
OWN = ("--launch", "--hosts")


def arguments(typed):
    parser = argparse.ArgumentParser(
        prog="kvfair-ray",
        usage="kvfair-ray run JOB TARGET_URL --agents N [--address ADDRESS] [options of kvfair run]",
        description="Runs kvfair with one agent on each of N nodes of a Ray cluster. The cluster goes on afterwards.",
        allow_abbrev=False,
    )
    parser.add_argument("--agents", type=int, required=True, metavar="N", help="agents, each on a node of its own")
    parser.add_argument("--address", default=os.environ.get("RAY_ADDRESS", "auto"), help="of the cluster [auto]")
    parser.add_argument("--kvfair", default="kvfair", metavar="PROGRAM", help="kvfair's program here and on the nodes")
    own, others = parser.parse_known_args(typed)
    if own.agents < 1:
        raise Trouble(f"--agents {own.agents}: at least 1", code=USAGE)
    if not others or others[0].startswith("-"):
        raise Trouble("which command of kvfair?", "kvfair-ray run JOB TARGET_URL --agents N", USAGE)
    for option in OWN:
        if any(word == option or word.startswith(option + "=") for word in others):
            raise Trouble(f"{option}: kvfair-ray starts the agents itself", f"leave {option} out", USAGE)
    return own, others


def version_of(program):
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(f"{program} does not start: {error}", code=NOT_HERE) from error
    return first_line(told.stdout)


def run(typed):
    own, others = arguments(typed)
    program = find(own.kvfair)
    if program is None:
        raise Trouble(f"{own.kvfair} is not here", "pip install 'kvfair[ray]', or --kvfair PATH", NOT_HERE)
    version = version_of(program)
    ray = cluster.join(own.address)
    try:
        group = cluster.Group(ray, own.agents, own.kvfair)
        try:
            group.must_have(version, own.kvfair)
            # Others on this host could speak to the agents: the directory is closed to them.
            with tempfile.TemporaryDirectory(prefix="kvfair-ray-") as directory:
                relay = Relay(group, directory)
                try:
                    return drive(program, others, group.names, directory)
                finally:
                    relay.close()
        finally:
            group.leave()
    finally:
        # Leaves the cluster, which goes on.
        ray.shutdown()


def drive(program, others, names, directory):
    """kvfair's own run. It merges what the agents saw, and calls each by the name of its node."""
    hosts = os.path.join(directory, "hosts")
    with open(hosts, "w", encoding="utf-8") as out:
        out.writelines(f"{name}\n" for name in names)
    pipe = f"{shlex.quote(sys.executable)} -m kvfair_ray.pipe {shlex.quote(directory)}/{{rank}} {{host}}"
    agents = ["--agents", str(len(names)), "--launch", pipe, "--hosts", hosts]
    child = subprocess.Popen([program, *others, *agents])
    # Ctrl-C reaches kvfair as well, which ends its agents and tells of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    code = child.wait()
    return code if code >= 0 else 128 - code


def main():
    try:
        return run(sys.argv[1:])
    except Trouble as trouble:
        print(f"kvfair-ray: {trouble}", file=sys.stderr)
        return trouble.code
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
