"""Stands where kvfair expects an agent: `python -m kvfair_ray.pipe SOCKET NODE`.

Copies standard input to the socket and the socket to standard output. Once the socket is closed, the file SOCKET.lost
tells what went wrong, where anything did. The node's name is for lists of processes.
"""

import os
import socket
import sys
import threading

CHUNK_BYTES = 1 << 16


def copy_input(connection):
    try:
        while data := os.read(sys.stdin.fileno(), CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        # The other direction notices as well.
        pass


def main():
    path = sys.argv[1]
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    threading.Thread(target=copy_input, args=(connection,), daemon=True).start()
    try:
        while data := connection.recv(CHUNK_BYTES):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
    except (BrokenPipeError, ConnectionResetError):
        pass
    try:
        with open(f"{path}.lost", encoding="utf-8") as lost:
            sys.stderr.write(lost.read() + "\n")
    except FileNotFoundError:
        return 0
    return 1


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # The other thread may still wait for input.
    os._exit(code)
