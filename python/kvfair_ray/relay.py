"""Between kvfair and the actors: a private socket for each rank. Who connects to it talks to a new agent on its node.
"""

import contextlib
import os
import socket
import threading

CHUNK_BYTES = 1 << 16


class Relay:
    def __init__(self, group, directory):
        self.group = group
        self.directory = directory
        self.sockets = [self.listen(rank) for rank in range(len(group.actors))]
        for rank in range(len(self.sockets)):
            threading.Thread(target=self.accept, args=(rank,), daemon=True).start()

    def path(self, rank):
        return os.path.join(self.directory, str(rank))

    def told(self, rank):
        return f"{self.path(rank)}.lost"

    def listen(self, rank):
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(self.path(rank))
        listening.listen()
        return listening

    def accept(self, rank):
        while True:
            try:
                connection, _ = self.sockets[rank].accept()
            except OSError:
                # Closed: the run is over.
                return
            threading.Thread(target=self.serve, args=(rank, connection), daemon=True).start()

    def serve(self, rank, connection):
        """One agent's life."""
        ray, actor = self.group.ray, self.group.actors[rank]
        # Of an earlier agent of this rank.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.told(rank))
        try:
            number = ray.get(actor.start.remote())
            threading.Thread(target=self.send, args=(actor, number, connection), daemon=True).start()
            while data := ray.get(actor.receive.remote(number)):
                connection.sendall(data)
            code, told = ray.get(actor.end.remote(number))
            if code != 0:
                self.lost(rank, f"the agent ended with exit code {code}{': ' + told if told else ''}")
        except ray.exceptions.RayError as error:
            self.lost(rank, f"Ray lost it: {str(error).strip().splitlines()[0]}")
        except OSError:
            # kvfair has ended the pipe. The agent may be at work, and must not write any more.
            actor.kill.remote(number)
        finally:
            # While `send` still reads it, closing alone would tell the other end nothing.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def send(self, actor, number, connection):
        """Waits for each call, since Ray keeps no order between calls that may run at once."""
        ray = self.group.ray
        try:
            while True:
                data = connection.recv(CHUNK_BYTES)
                if not ray.get(actor.send.remote(number, data)) or not data:
                    return
        except (OSError, ray.exceptions.RayError):
            # `serve` hears of it as well.
            pass

    def lost(self, rank, why):
        """What the pipe of this rank tells kvfair at its end."""
        with open(self.told(rank), "w", encoding="utf-8") as out:
            out.write(f"node {self.group.names[rank]} (rank {rank}): {why}")

    def close(self):
        for listening in self.sockets:
            listening.close()
