"""What `./test` runs and reports.

run.py tests [--profile NAME] [--only BINARY,...] [--install COMMAND] [--beside-real NAME COMMAND] [ARGUMENT...]
    builds the test binaries with their lints while the command installs what they need, and runs them one after
    another with these arguments of libtest; a part of that name beside `real`
run.py part NAME COMMAND...
    runs a command, whose output may have lines of tests as libtest prints them
run.py report [--timings]
    prints what was not run and why, how long each part took, and one closing line; 1 where a test failed

Notes are in target/test-notes: `outcomes.tsv` (outcome, test, reason, seconds), `parts.tsv` (part, when it began,
seconds), and `not-run.tsv`, which tests/common/needs.rs writes (extent, test, need, reason).
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTES = ROOT / "target/test-notes"
OUTCOMES, PARTS, NOT_RUN = NOTES / "outcomes.tsv", NOTES / "parts.tsv", NOTES / "not-run.tsv"
PASSED, FAILED, IN_PART, LEFT_OUT = "passed", "failed", "run in part", "not run"
RESULTS = {"ok": PASSED, "FAILED": FAILED, "ignored": LEFT_OUT}
PROCESSORS = os.cpu_count()
# The test binaries in their order, and their threads. Tests of `real` wait for servers part of their time. Those of
# `alone` measure time or load the machine.
THREADS = {
    "kvfair_draw": PROCESSORS, "kvfair_stats": PROCESSORS, "campaigns": 1, "kvfair_core": PROCESSORS,
    "kvfair_jobs": PROCESSORS,
    "kvfair_report": PROCESSORS, "kvfair": PROCESSORS,
    "quick": 3 * PROCESSORS // 2, "real": 3 * PROCESSORS, "alone": 1,
}
SLOWEST = 30
OUTCOME = re.compile(r"^test (.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, (.*?))?(?: <([0-9.]+)s>)?$")


def note(file, *fields):
    NOTES.mkdir(parents=True, exist_ok=True)
    with file.open("a") as notes:
        notes.write("\t".join(map(str, fields)) + "\n")


def noted(file):
    return [line.split("\t") for line in file.read_text().splitlines()] if file.exists() else []


def timed(part, work):
    began = time.monotonic()
    result = work()
    note(PARTS, part, f"{began:.1f}", f"{time.monotonic() - began:.1f}")
    return result


def build(profile):
    """Builds all targets and returns the test binaries by name. A lint that is broken fails the build."""
    command = ["cargo", "test", "--no-run", "--workspace", "--all-targets", "--locked", "--features", "full", "--profile", profile]
    command += ["--message-format", "json-render-diagnostics"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as cargo:
        messages = [json.loads(line) for line in cargo.stdout if line.startswith("{")]
    if cargo.returncode:
        note(OUTCOMES, FAILED, "build and lints", "", "")
        return {}
    tests = [message for message in messages if message.get("executable") and message["profile"]["test"]]
    return {test["target"]["name"]: test["executable"] for test in tests if test["target"]["kind"] in (["lib"], ["test"])}


def run(name, command, more):
    """Runs a command, prints its output and notes the outcomes of the tests in it, or its own where it has none."""
    outcomes = []
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **more}, stdout=subprocess.PIPE, text=True, errors="replace") as tests:
        for line in tests.stdout:
            print(line, end="", flush=True)
            if found := OUTCOME.match(line.rstrip("\n")):
                test, result, reason, seconds = found.groups()
                outcomes.append(RESULTS[result])
                note(OUTCOMES, RESULTS[result], f"{name}::{test}", reason or "", seconds or 0)
    if not outcomes or (tests.returncode and FAILED not in outcomes):
        outcome = FAILED if tests.returncode else PASSED
        note(OUTCOMES, outcome, name, f"it ended with {tests.returncode}" if tests.returncode else "", 0)


def part(name, *command, **more):
    print(f"\n== {name}", flush=True)
    timed(name, lambda: run(name, command, more))


def tests(*arguments):
    arguments = list(arguments)
    profile, only = "test", ",".join(THREADS)
    if arguments[:1] == ["--profile"]:
        profile, arguments = arguments[1], arguments[2:]
    if arguments[:1] == ["--only"]:
        only, arguments = arguments[1], arguments[2:]
    installing = beside = None
    if arguments[:1] == ["--install"]:
        # Installing waits for the network most of its time, and building for the processors.
        installing = threading.Thread(target=part, args=("install", "sh", "-c", arguments[1]))
        arguments = arguments[2:]
        installing.start()
    if arguments[:1] == ["--beside-real"]:
        beside = threading.Thread(target=part, args=(arguments[1], "sh", "-c", arguments[2]))
        arguments = arguments[3:]
    print("\n== build and lints", flush=True)
    binaries = timed("build and lints", lambda: build(profile))
    if installing:
        installing.join()
    for name in filter(lambda name: name in binaries, only.split(",")):
        # libtest tells times with its unstable options only.
        options = ["-Z", "unstable-options", "--report-time", "--test-threads", str(THREADS[name])]
        if beside and name == "alone":
            beside.join()
        if beside and name == "real":
            beside.start()
        part(name, binaries[name], *options, *arguments, RUSTC_BOOTSTRAP="1", KVFAIR_NOT_RUN=str(NOT_RUN))


def merged():
    """The outcomes, after tests told that they were not run."""
    by_test = {test: [outcome, reason, float(seconds or 0)] for outcome, test, reason, seconds in noted(OUTCOMES)}
    for extent, test, need, why in noted(NOT_RUN):
        for name in by_test:
            if name.split("::", 1)[-1] == test and by_test[name][0] in (PASSED, IN_PART):
                outcome = LEFT_OUT if extent == "whole" else IN_PART
                reasons = [reason for reason in (by_test[name][1], f"{need}: {why}") if reason]
                by_test[name][:2] = [outcome, ", ".join(dict.fromkeys(reasons))]
    return by_test


def timed_parts():
    """(part, when it began, seconds)"""
    return [(part, float(began), float(seconds)) for part, began, seconds in noted(PARTS)]


def elapsed(parts):
    """From the beginning of the first part to the end of the last one: some parts run beside each other."""
    return max(began + seconds for _, began, seconds in parts) - min(began for _, began, _ in parts)


def print_timings(by_test):
    parts = timed_parts()
    total = elapsed(parts)
    print(f"\n== time by part: {total:.0f} s")
    for part, _, seconds in parts:
        print(f"{seconds:8.1f} s {100 * seconds / total:5.1f} %  {part}")
    print(f"\n== the {SLOWEST} slowest tests, in seconds beside others")
    slowest = sorted(by_test.items(), key=lambda item: -item[1][2])[:SLOWEST]
    for test, (_, _, seconds) in slowest:
        print(f"{seconds:8.1f} s  {test}")


def report(*arguments):
    by_test = merged()
    if "--timings" in arguments:
        print_timings(by_test)
    for wanted in (IN_PART, LEFT_OUT, FAILED):
        for test, (outcome, reason, _) in by_test.items():
            if outcome == wanted:
                print(f"{outcome}: {test}{': ' if reason else ''}{reason}")
    count = {kind: sum(outcome == kind for outcome, _, _ in by_test.values()) for kind in (PASSED, IN_PART, FAILED, LEFT_OUT)}
    took = elapsed(timed_parts())
    passed = count[PASSED] + count[IN_PART]
    in_part = f" ({count[IN_PART]} in part)" if count[IN_PART] else ""
    print(f"\n{passed} passed{in_part}, {count[FAILED]} failed, {count[LEFT_OUT]} not run in {took:.0f} s")
    return 1 if count[FAILED] or not passed else 0


COMMANDS = {"tests": tests, "part": part, "report": report}

if __name__ == "__main__":
    sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]))
