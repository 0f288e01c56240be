#!/usr/bin/env python3
"""A stand-in for Dragonfly, whose server no package brings.

It takes Dragonfly's flags and no others, and answers in its form: INFO with its sections and without a process or run
id, CONFIG GET of its own settings only, a nil string from an EXEC that was called off. It lacks what Dragonfly lacks.
After src/server/dfly_main.cc and server_family.cc of https://github.com/dragonflydb/dragonfly. One thread, in memory.
"""

import asyncio
import os
import random
import signal
import sys
import time

# Its version says what it is: no row of it may be taken for one of Dragonfly.
VERSION = "v1.27.1-stand-in"
FLAGS = {
    "bind": "", "port": "6379", "unixsocket": "", "unixsocketperm": "", "flagfile": "", "requirepass": "",
    "dir": "", "dbfilename": "dump-{timestamp}", "snapshot_cron": "", "logtostderr": "false",
    "version_check": "true", "cache_mode": "false", "maxclients": "64000", "maxmemory": "0", "dbnum": "16",
    "proactor_threads": "0",
}
# What CONFIG knows of them.
CONFIG = ("dbfilename", "snapshot_cron", "maxclients", "maxmemory", "dbnum", "dir")
LIMIT = 4 << 30
REPLID = "%040x" % random.getrandbits(160)

databases = {}
watchers = {}
stats = {"connections": 0, "commands": 0, "calls": {}}


class Refused(Exception):
    pass


def flag(text):
    name, _, value = text.lstrip("-").partition("=")
    if not text.startswith("--") or name not in FLAGS:
        sys.exit(f"ERROR: Unknown command line flag '{name}'")
    FLAGS[name] = value
    if name == "flagfile":
        with open(value) as lines:
            for line in lines:
                flag(line.strip())


def bulk(value):
    return b"$-1\r\n" if value is None else b"$%d\r\n%b\r\n" % (len(value), value)


def array(parts):
    return b"*%d\r\n" % len(parts) + b"".join(parts)


def whole(text):
    digits = text[1:] if text.startswith(b"-") else text
    number = int(text) if digits.isdigit() else None
    if number is None or not -(1 << 63) <= number < 1 << 63:
        raise Refused("ERR value is not an integer or out of range")
    return number


class Client(asyncio.Protocol):
    def connection_made(self, transport):
        stats["connections"] += 1
        self.transport, self.received = transport, bytearray()
        self.index, self.is_known = 0, not FLAGS["requirepass"]
        self.queue, self.watched, self.is_dirty = None, set(), False

    def connection_lost(self, _):
        self.unwatch()

    def data_received(self, data):
        self.received += data
        answers, at = [], 0
        while (parsed := self.parse(at)) is not None:
            parts, at = parsed
            answers.append(self.answer(parts))
        del self.received[:at]
        self.transport.write(b"".join(answers))

    def parse(self, at):
        end = self.received.find(b"\r\n", at)
        if end < 0:
            return None
        count, at, parts = int(self.received[at + 1 : end]), end + 2, []
        for _ in range(count):
            end = self.received.find(b"\r\n", at)
            if end < 0:
                return None
            length, at = int(self.received[at + 1 : end]), end + 2
            if len(self.received) < at + length + 2:
                return None
            parts.append(bytes(self.received[at : at + length]))
            at += length + 2
        return parts, at

    def answer(self, parts):
        name, arguments = parts[0].decode().lower(), parts[1:]
        stats["commands"] += 1
        stats["calls"][name] = stats["calls"].get(name, 0) + 1
        try:
            if not self.is_known and name != "auth":
                raise Refused("NOAUTH Authentication required.")
            command = getattr(self, "on_" + name, None)
            if command is None:
                raise Refused(f"ERR unknown command `{name.upper()}`")
            if self.queue is not None and name not in ("exec", "discard", "multi", "watch"):
                self.queue.append((command, arguments))
                return b"+QUEUED\r\n"
            return command(*arguments)
        except Refused as words:
            return f"-{words}\r\n".encode()
        except TypeError:
            return f"-ERR wrong number of arguments for '{name}' command\r\n".encode()

    # Records.

    def records(self):
        return databases.setdefault(self.index, {})

    def find(self, key, kind=bytes):
        value, ends = self.records().get(key, (None, None))
        if ends is not None and ends <= time.time():
            del self.records()[key]
            return None
        if value is not None and not isinstance(value, kind):
            raise Refused("WRONGTYPE Operation against a key holding the wrong kind of value")
        return value

    def put(self, key, value, ends=None):
        self.records()[key] = (value, ends)
        self.changed(key)

    def changed(self, key):
        for client in watchers.get((self.index, key), ()):
            client.is_dirty = True

    def on_get(self, key):
        return bulk(self.find(key))

    def on_set(self, key, value, *options):
        words, ends = [option.upper() for option in options], None
        if b"NX" in words and self.find(key, object) is not None:
            return b"$-1\r\n"
        if b"EX" in words:
            ends = time.time() + whole(options[words.index(b"EX") + 1])
        self.put(key, value, ends)
        return b"+OK\r\n"

    def on_del(self, *keys):
        there = [key for key in keys if self.find(key, object) is not None]
        for key in there:
            self.records().pop(key, None)
            self.changed(key)
        return b":%d\r\n" % len(there)

    def on_mget(self, *keys):
        of_strings = lambda key: self.find(key) if not isinstance(self.find(key, object), dict) else None
        return array([bulk(of_strings(key)) for key in keys])

    def on_mset(self, *pairs):
        for key, value in zip(pairs[::2], pairs[1::2]):
            self.put(key, value)
        return b"+OK\r\n"

    def on_incrby(self, key, by):
        old = self.find(key)
        total = (0 if old is None else whole(old)) + whole(by)
        if not -(1 << 63) <= total < 1 << 63:
            raise Refused("ERR increment or decrement would overflow")
        self.put(key, b"%d" % total)
        return b":%d\r\n" % total

    def on_decrby(self, key, by):
        return self.on_incrby(key, b"%d" % -whole(by))

    def on_hincrby(self, key, field, by):
        fields = self.find(key, dict) or {}
        fields[field] = b"%d" % (whole(fields.get(field, b"0")) + whole(by))
        self.put(key, fields)
        return b":%b\r\n" % fields[field]

    def on_hget(self, key, field):
        return bulk((self.find(key, dict) or {}).get(field))

    def on_hmget(self, key, *names):
        fields = self.find(key, dict) or {}
        return array([bulk(fields.get(name)) for name in names])

    def on_hlen(self, key):
        return b":%d\r\n" % len(self.find(key, dict) or {})

    def on_hgetall(self, key):
        fields = self.find(key, dict) or {}
        return array([bulk(part) for pair in fields.items() for part in pair])

    def on_dbsize(self):
        return b":%d\r\n" % sum(self.find(key, object) is not None for key in list(self.records()))

    def on_scan(self, _cursor, *options):
        is_string = lambda key: isinstance(self.find(key, object), bytes)
        keys = [bulk(key) for key in list(self.records()) if b"TYPE" not in options or is_string(key)]
        return array([bulk(b"0"), array(keys)])

    # Transactions.

    def on_watch(self, *keys):
        for key in keys:
            self.watched.add((self.index, key))
            watchers.setdefault((self.index, key), set()).add(self)
        return b"+OK\r\n"

    def unwatch(self):
        for key in self.watched:
            watchers[key].discard(self)
            if not watchers[key]:
                del watchers[key]
        self.watched, self.is_dirty = set(), False

    def on_unwatch(self):
        self.unwatch()
        return b"+OK\r\n"

    def on_multi(self):
        self.queue = []
        return b"+OK\r\n"

    def on_exec(self):
        queue, is_dirty, self.queue = self.queue, self.is_dirty, None
        self.unwatch()
        # Redis answers with a nil array; so does Dragonfly since its pull request 8098.
        return b"$-1\r\n" if is_dirty else array([command(*arguments) for command, arguments in queue])

    # The connection and the server.

    def on_ping(self):
        return b"+PONG\r\n"

    def on_auth(self, *words):
        if words not in ((FLAGS["requirepass"].encode(),), (b"default", FLAGS["requirepass"].encode())):
            raise Refused("WRONGPASS invalid username-password pair or user is disabled.")
        self.is_known = True
        return b"+OK\r\n"

    def on_select(self, number):
        if not 0 <= whole(number) < int(FLAGS["dbnum"]):
            raise Refused("ERR DB index is out of range")
        self.index = whole(number)
        return b"+OK\r\n"

    def on_config(self, what, name):
        name = name.decode().replace("-", "_")
        if what.upper() != b"GET" or name not in CONFIG:
            return b"*0\r\n"
        return array([bulk(name.encode()), bulk(FLAGS[name].encode())])

    def on_command(self, *_):
        return b"$-1\r\n"

    def on_client(self, what, *_):
        raise Refused(f"ERR Unknown subcommand or wrong number of arguments for '{what.decode()}'. Try CLIENT HELP.")

    def on_info(self, section=b""):
        lines, wanted = [], section.decode().upper()
        for name, is_hidden, pairs in sections():
            if wanted in ("ALL", name) or not (wanted or is_hidden):
                lines.append(f"# {name.capitalize()}\r\n" + "".join(f"{key}:{value}\r\n" for key, value in pairs))
        return bulk("\r\n".join(lines).encode())


def sections():
    """Of Dragonfly's INFO the sections and fields that matter; hidden ones are told where they are asked for."""
    is_cache = FLAGS["cache_mode"] == "true"
    used = sum(len(key) + len(value) for held in databases.values() for key, (value, _) in held.items())
    yield "SERVER", False, [
        ("redis_version", "7.4.0"), ("dragonfly_version", f"df-{VERSION}"), ("redis_mode", "standalone"),
        ("arch_bits", 64), ("thread_count", 1), ("multiplexing_api", "epoll"), ("tcp_port", FLAGS["port"]),
    ]
    yield "CLIENTS", False, [("max_clients", FLAGS["maxclients"])]
    yield "MEMORY", False, [
        ("used_memory", used), ("maxmemory", LIMIT), ("maxmemory_human", "4.00GiB"),
        ("cache_mode", "cache" if is_cache else "store"),
        ("maxmemory_policy", "eviction" if is_cache else "noeviction"),
    ]
    yield "STATS", False, [
        ("total_connections_received", stats["connections"]), ("total_commands_processed", stats["commands"]),
        ("instantaneous_input_kbps", -1), ("expired_keys", 0), ("evicted_keys", 0), ("hard_evictions", 0),
    ]
    yield "PERSISTENCE", True, [("loading", 0), ("saving", 0)]
    yield "REPLICATION", False, [("role", "master"), ("connected_slaves", 0), ("master_replid", REPLID)]
    yield "COMMANDSTATS", True, [
        (f"cmdstat_{name}", f"calls={calls},usec={calls},usec_per_call=1") for name, calls in stats["calls"].items()
    ]
    yield "KEYSPACE", False, [
        (f"db{index}", f"keys={len(held)},expires=0,avg_ttl=-1") for index, held in databases.items() if held
    ]


async def serve():
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, ended.set)
    if FLAGS["unixsocket"]:
        await loop.create_unix_server(Client, FLAGS["unixsocket"])
        os.chmod(FLAGS["unixsocket"], int(FLAGS["unixsocketperm"] or "777", 8))
    if FLAGS["port"] != "0":
        await loop.create_server(Client, FLAGS["bind"] or None, int(FLAGS["port"]))
    await ended.wait()


if sys.argv[1:] == ["--version"]:
    print(f"dragonfly \033[0;32m{VERSION}\033[m\nbuild time: \033[0;33mnever\033[m")
else:
    for argument in sys.argv[1:]:
        flag(argument)
    asyncio.run(serve())
