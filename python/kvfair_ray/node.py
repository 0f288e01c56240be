"""What runs on a node of the cluster, in an actor: processes of `kvfair agent`, one after another."""

import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile

CHUNK_BYTES = 1 << 16
# So much of what an agent complained of is told.
TOLD_BYTES = 2000
# How long an agent may take to end once its output is closed.
ENDING_S = 10
# How long it may take to tell its version.
VERSION_S = 30


def find(program):
    """The program on this node: by its path, on PATH, or beside this Python."""
    if os.sep in program:
        return program if os.access(program, os.X_OK) else None
    return shutil.which(program) or shutil.which(program, path=sysconfig.get_path("scripts"))


def first_line(text):
    return text.strip().split("\n")[0]


class Node:
    """The agents of one rank. Each has a number."""

    def __init__(self, program):
        self.name = program
        self.program = find(program)
        self.agents = []

    def about(self):
        """The host's name, and the version of its kvfair: nothing where there is none, or where it does not say."""
        version = None
        if self.program is not None:
            try:
                told = subprocess.run(
                    [self.program, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=False
                )
                version = first_line(told.stdout) or None
            except (OSError, subprocess.TimeoutExpired):
                pass
        return {"host": socket.gethostname(), "program": self.program, "version": version}

    def start(self):
        errors = tempfile.TemporaryFile()
        agent = subprocess.Popen(
            [self.program, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
        )
        self.agents.append((agent, errors))
        return len(self.agents) - 1

    def send(self, number, data):
        """Gives an agent more input; an empty one is the last. False once it takes no more."""
        agent, _ = self.agents[number]
        try:
            if data:
                agent.stdin.write(data)
            else:
                agent.stdin.close()
        except (OSError, ValueError):
            return False
        return True

    def receive(self, number):
        """What an agent says next; nothing at its end."""
        agent, _ = self.agents[number]
        return os.read(agent.stdout.fileno(), CHUNK_BYTES)

    def kill(self, number):
        """Ends an agent at once."""
        self.agents[number][0].kill()
        return self.end(number)

    def end(self, number):
        """Waits for an agent's end. Its exit code, and what it complained of last."""
        agent, errors = self.agents[number]
        self.send(number, b"")
        try:
            code = agent.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            agent.kill()
            code = agent.wait()
        size = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, size - TOLD_BYTES))
        told = errors.read().decode("utf-8", "replace").strip()
        agent.stdout.close()
        errors.close()
        return code, told
