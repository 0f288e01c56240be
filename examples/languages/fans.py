#!/usr/bin/env python3
"""The job `fans` as its users would write it: python3 fans.py URL FILE.jsonl, as `kvfair data fans` writes it.

URL is redis://host:port, unix:///path (Redis and Valkey, by redis-py), memcached://host:port or memcached+unix:///path
(by pymemcache). Prints what tests/golden/fans.py prints, which asks no store.
"""
import hashlib
import json
import sys
from urllib.parse import quote, unquote, urlsplit


def connect(url):
    """A get and a set of bytes by a page's name."""
    place = urlsplit(url)
    if place.scheme in ("redis", "unix"):
        import redis

        client = redis.Redis.from_url(url)
        return client.get, client.set
    from pymemcache.client.base import Client

    socket = unquote(place.path) if place.scheme == "memcached+unix" else (place.hostname, place.port)
    client = Client(socket, no_delay=True)
    # Its keys may hold no blanks and nothing but ASCII.
    return lambda page: client.get(quote(page)), lambda page, value: client.set(quote(page), value, noreply=False)


def digest(lines):
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


get, put = connect(sys.argv[1])
users, seen = 0, set()
for line in open(sys.argv[2], encoding="utf-8"):
    pages = set(json.loads(line)["likes"])
    users += 1
    seen |= pages
    for page in pages:
        old = get(page)
        record = json.loads(old) if old else {"fans": 0, "also": {}}
        record["fans"] += 1
        for other in pages - {page}:
            record["also"][other] = record["also"].get(other, 0) + 1
        put(page, json.dumps(record).encode())

records = {page: json.loads(get(page)) for page in seen}
print("fans", digest(f"{page}\t{record['fans']}\n" for page, record in records.items()))
pairs = [f"{page}\t{other}\t{count}\n" for page, record in records.items() for other, count in record["also"].items()]
print("also", digest(pairs))
print("users", users)
print("pages", len(records))
print("pairs", len(pairs) // 2)
