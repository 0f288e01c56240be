//! Hints about targets: their names, URLs and settings, and what cannot be done with them.

pub const NAMES: &str = r#"
refused: kvfair run fans reddis
hint: did you mean `redis`?
mended: kvfair run fans redis --list

refused: kvfair run fans nothing-like-it
hint: there are null, ram, lmdb, ...
mended: kvfair run fans lmdb --list

refused: kvfair run fans 'redis+unix?cluster=3'
hint: redis?cluster=3
mended: kvfair run fans 'redis?cluster=3' --list

# An old name, which stands nowhere whole (tests/words.rs).
refused: kvfair run fans 'memcached?mou''th=binary'
hint: ?protocol=binary
mended: kvfair run fans 'memcached?protocol=binary' --list

refused: kvfair run fans 'redis?programme=/bin/true'
hint: did you mean `program`?
mended: kvfair run fans 'redis?program=/bin/true' --list

refused: kvfair run fans 'ram?nothing-like-it=1'
hint: it has name
mended: kvfair run fans 'ram?name=mine' --list

refused: kvfair run fans 'redis?program=./nowhere'
hint: ?program= takes a server's path
mended: kvfair run fans 'redis?program=/bin/true' --list

refused: kvfair run fans ram ram
hint: name one of them: 'ram?name=other'
mended: kvfair run fans ram 'ram?name=other' --list

refused: kvfair run fans 'redis?db=1' 'redis?db=1'
hint: name one of them: 'redis?db=1&name=other'
mended: kvfair run fans 'redis?db=1' 'redis?db=1&name=other' --list

# What is called otherwise, or is asked in a way of its own, has no label that could be typed.
refused: kvfair run fans 'ram?name=mine' 'lmdb?name=mine'
hint: name one of them: 'TARGET?name=other'
mended: kvfair run fans 'ram?name=mine' 'lmdb?name=other' --list

refused: kvfair run fans --via cas redis redis
hint: name one of them: 'TARGET?name=other'
mended: kvfair run fans --via cas redis 'redis?name=other' --list

refused: kvfair run fans lmdb ferretdb?program=nowhere
hint: ?program= takes a server's path
mended: kvfair run fans lmdb --list
"#;

pub const REFUSALS: &str = r#"
refused: kvfair growth redis://localhost:1
hint: kvfair growth redis
begun: kvfair growth redis

refused: kvfair levers getset redis://localhost:1
hint: kvfair levers JOB redis
begun: kvfair levers getset redis --levers transport --requests 200

refused: kvfair crash redis+unix:///run/redis.sock
hint: kvfair crash redis
mended: kvfair crash redis --kills 1

refused: kvfair run fans --pin redis-cluster://localhost:1
hint: kvfair starts one: redis?cluster=3
mended: kvfair run fans --pin 'redis?cluster=3' --list

refused: kvfair run fans --pin redis://localhost:1
hint: name `redis`
mended: kvfair run fans --pin redis --list

refused: kvfair run lookup --cold redis://localhost:1
hint: name `redis`
mended: kvfair run lookup --cold redis --list

refused: kvfair run fans fst
hint: kvfair run lookup fst
mended: kvfair run lookup fst --list

refused: kvfair check sort
hint: kvfair run ngrams sort
mended: kvfair run ngrams sort --list

refused: kvfair run ngrams cached:sort
hint: leave cached: out
mended: kvfair run ngrams sort --list

refused: kvfair run ngrams ram sort --keep kept
hint: leave --keep or the batch engine out
mended: kvfair run ngrams ram sort --list
mended: kvfair run ngrams ram --keep kept --list

refused: kvfair run ngrams ram sort --unit char
hint: leave it out, or --unit word
mended: kvfair run ngrams ram --unit char --list
mended: kvfair run ngrams ram sort --unit word --list

refused: kvfair levers fans ram
hint: name a store, as in redis
begun: kvfair levers fans redis --profiles 20

refused: kvfair check ram null
hint: leave this target out
mended: kvfair check ram

refused: kvfair run lookup ram lmdb --readers 2
hint: leave this target out
mended: kvfair run lookup lmdb --readers 2 --list

refused: kvfair crash lmdb 'redis?cluster=3'
hint: leave this target out
mended: kvfair crash lmdb --kills 1

refused: kvfair crash cached:redis
hint: leave cached: out
mended: kvfair crash redis --kills 1

refused: kvfair run fans 'redis?cluster=3' --keep kept
hint: leave --keep out
mended: kvfair run fans 'redis?cluster=3' --list

refused: kvfair run lookup 'redis?cluster=3' --cold
hint: leave --cold out
mended: kvfair run lookup 'redis?cluster=3' --list

refused: kvfair run lookup 'redis?cluster=3' --readers 2
hint: leave --readers out
mended: kvfair run lookup 'redis?cluster=3' --list

refused: kvfair run fans 'redis?cluster=3' --rtt 1ms
hint: leave --rtt out
mended: kvfair run fans 'redis?cluster=3' --list

refused: kvfair run getset 'redis?cluster=3' --reconnect
hint: leave --reconnect out
mended: kvfair run getset 'redis?cluster=3' --list

refused: kvfair run getset 'redis?cluster=3' --depth 4
hint: leave --depth out
mended: kvfair run getset 'redis?cluster=3' --list

refused: kvfair run fans 'redis?processors=half' --pin
hint: leave ?processors= out
mended: kvfair run fans redis --pin --list

refused: kvfair run fans cached:redis --via native --list
hint: leave cached: or --via native out
mended: kvfair run fans redis --via native --list
mended: kvfair run fans cached:redis --list

refused: kvfair run ycsb-e cached:lmdb
hint: leave cached: out
mended: kvfair run ycsb-e lmdb --list

refused: kvfair run getset cached:lmdb --depth 4
hint: leave cached: or --depth out
mended: kvfair run getset cached:lmdb --list
mended: kvfair run getset lmdb --depth 4 --list

refused: kvfair run ycsb-e redis
hint: stores that can: lmdb, ...
mended: kvfair run ycsb-e lmdb --list

refused: kvfair run --exec true lmdb:./kept
hint: name `lmdb`, and the program finds its own in {dir}
mended: kvfair run --exec 'test -d {dir}' lmdb --blocks 1

refused: kvfair run --exec true lmdb --durability crash
hint: leave it out, or name targets that have a server
mended: kvfair run --exec true lmdb --list
mended: kvfair run --exec true redis --durability crash --list

refused: kvfair run --exec 'true {host}' redis+unix
hint: it has {socket}, {url}, {dir}
mended: kvfair run --exec 'true {socket} {url} {dir}' redis+unix --list
"#;

pub const REPLICAS: &str = r#"
refused: kvfair run mixed 'redis?read=replicas'
hint: redis?replicas=2&read=...
mended: kvfair run mixed 'redis?replicas=2&read=replicas' --list

refused: kvfair run mixed 'redis://localhost?replicas=2'
hint: name `redis`, without a place
mended: kvfair run mixed 'redis?replicas=2' --list

refused: kvfair run mixed 'redis?cluster=3&replicas=2'
hint: leave ?replicas= out
mended: kvfair run mixed 'redis?cluster=3' --list

refused: kvfair run mixed 'cached:redis?replicas=2'
hint: leave cached: or ?replicas= out
mended: kvfair run mixed 'redis?replicas=2' --list
mended: kvfair run mixed cached:redis --list

refused: kvfair run mixed 'redis+unix?replicas=2'
hint: redis?replicas=2
mended: kvfair run mixed 'redis?replicas=2' --list

refused: kvfair run mixed 'redis?replicas=1&wait=2'
hint: redis?replicas=2&wait=1
mended: kvfair run mixed 'redis?replicas=2&wait=1' --list

refused: kvfair run fans 'redis?replicas=2'
hint: jobs that can: getset, mixed, ...
mended: kvfair run mixed 'redis?replicas=2' --list

refused: kvfair run mixed --depth 2 'redis?replicas=2'
hint: leave ?replicas= out
mended: kvfair run mixed --depth 2 redis --list

refused: kvfair run mixed 'redis?replicas=2' --records 5 --clients 10
hint: --records 10
mended: kvfair run mixed 'redis?replicas=2' --records 10 --clients 10 --list

refused: kvfair run mixed 'redis?replicas=2' --values 1
hint: --values 16 or more
mended: kvfair run mixed 'redis?replicas=2' --values 16 --list

refused: kvfair crash 'redis?replicas=2'
hint: kvfair crash --failover 'redis?replicas=2'
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

# Where each replica must have a write, none of them could be promoted.
refused: kvfair crash 'redis?replicas=1&wait=1'
hint: kvfair crash --failover 'redis?replicas=2&wait=1'
mended: kvfair crash --failover 'redis?replicas=2&wait=1' --kills 1

refused: kvfair crash 'redis?replicas=2&name=mine'
hint: kvfair crash --failover 'redis?replicas=2'
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

refused: kvfair crash --failover
hint: kvfair crash --failover 'redis?replicas=2'
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

refused: kvfair crash --failover redis://localhost
hint: kvfair crash --failover 'redis?replicas=2'
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

refused: kvfair crash --failover memcached://localhost
hint: kvfair crash --failover 'redis?replicas=2'
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

refused: kvfair crash --failover lmdb
hint: stores with replicas: redis, ...
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

refused: kvfair crash --failover memcached
hint: stores with replicas: redis, ...
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

refused: kvfair crash --failover redis
hint: 'redis?replicas=2'
mended: kvfair crash --failover 'redis?replicas=2' --kills 1

refused: kvfair crash --failover 'redis?replicas=2&wait=2'
hint: ?replicas=3
mended: kvfair crash --failover 'redis?replicas=3&wait=2' --kills 1

refused: kvfair run mixed 'redis?replicas=2' --agents 3
hint: leave ?replicas= out, or --agents
mended: kvfair run mixed redis --agents 3 --list
mended: kvfair run mixed 'redis?replicas=2' --list
"#;
