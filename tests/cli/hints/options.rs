//! Hints about jobs, options and agents.

pub const JOBS: &str = r#"
refused: kvfair run fnas ram
hint: did you mean `fans`?
mended: kvfair run fans ram --list

refused: kvfair run nothing-like-it ram
hint: there are fans, ngrams, ...
mended: kvfair run fans ram --list

refused: kvfair run lookup ram --verify sample
hint: leave it out
mended: kvfair run lookup ram --list

refused: kvfair run fans redis --rtt 0,1ms --profiles 5,10
hint: name one --rtt, or one number of the other (--clients 50)
mended: kvfair run fans redis --rtt 1ms --profiles 5,10 --list
mended: kvfair run fans redis --rtt 0,1ms --profiles 5 --list

refused: kvfair run getset redis --rtt 0,1ms
hint: name one --rtt, or one number of the other (--clients 50)
mended: kvfair run getset redis --rtt 0,1ms --clients 50 --list

refused: kvfair run getset redis --rtt 0,1ms --rate 5k
hint: name one --rtt, or leave --rate out
mended: kvfair run getset redis --rtt 1ms --rate 5k --list
mended: kvfair run getset redis --rtt 0,1ms --clients 50 --list

refused: kvfair run lookup ram --order 2,3
hint: kvfair run ngrams has lists
mended: kvfair run ngrams ram --order 2,3 --list

refused: kvfair run ngrams ram --order 2,3 --keep kept
hint: --order 2
mended: kvfair run ngrams ram --order 2 --keep kept --list

refused: kvfair run ngrams ram --order 2,3 --messages 5,10
hint: name one --order, or one of the other
mended: kvfair run ngrams ram --order 2 --messages 5,10 --list
mended: kvfair run ngrams ram --order 2,3 --messages 5 --list

refused: kvfair run fans ram --rtt 1ms
hint: name a server beside it, as in redis
mended: kvfair run fans ram redis --rtt 1ms --list

refused: kvfair run fans ram --config shipped --durability crash
hint: leave --durability out
mended: kvfair run fans ram --config shipped --list

refused: kvfair run fans ram --order 2
hint: kvfair run ngrams has it
mended: kvfair run ngrams ram --order 2 --list

refused: kvfair run fans ram --depth 2
hint: kvfair run getset has it
mended: kvfair run getset ram --depth 2 --list

refused: kvfair run fans ram --replay 2x
hint: kvfair run trace has it
mended: kvfair run trace --help

refused: kvfair run fans ram --queries 5 --verify sample
hint: leave one of them out
mended: kvfair run fans ram --queries 5 --list
mended: kvfair run fans ram --verify sample --list

refused: kvfair run lookup lmdb --readers 2 --clients 3
hint: leave --clients out
mended: kvfair run lookup lmdb --readers 2 --list

refused: kvfair run getset ram --via cas
hint: leave --via out
mended: kvfair run getset ram --list

refused: kvfair run fans redis --split profiles --clients 2
hint: --via cas or --via native
mended: kvfair run fans redis --split profiles --clients 2 --via cas --list
mended: kvfair run fans redis --split profiles --clients 2 --via native --list

refused: kvfair run fans redis --via native --encoding binary
hint: --via portable,batch,cas
mended: kvfair run fans redis --via portable,batch,cas --encoding binary --list

refused: kvfair run fans ram --profiles 5,10 --keep kept
hint: --profiles 5
mended: kvfair run fans ram --profiles 5 --keep kept --list

refused: kvfair run getset ram --profiles 5
hint: it has --requests
mended: kvfair run getset ram --requests 5 --list

refused: kvfair run fans ram --clients 1,2
hint: kvfair run getset sweeps over many
mended: kvfair run getset ram --clients 1,2 --list

refused: kvfair run getset ram --rate 5k,10k --clients 1,2
hint: --clients 50
mended: kvfair run getset ram --rate 5k,10k --clients 50 --list

refused: kvfair run getset ram --rate 1 --requests 1000
hint: fewer --requests, or a longer --timeout
mended: kvfair run getset ram --rate 1 --requests 10 --list
mended: kvfair run getset ram --rate 1 --requests 1000 --timeout 2000s --list

refused: kvfair run fans ram --profiles 5 --queries 1000 --blocks 1
hint: --queries 96 or fewer, or more profiles
mended: kvfair run fans ram --profiles 5 --queries 96 --blocks 1
"#;

/// Results, and programs of a store, that commands need.
pub const MADE: &str = r#"
set -e
for name in old new; do kvfair run ngrams ram --messages 5 --blocks 1 --output $name.jsonl; done
kvfair run fans ram --profiles 5 --blocks 1
for version in 7.0 8; do ln -s "$(command -v redis-server)" redis-$version; done
"#;

pub const COMMANDS: &str = r#"
refused: kvfair find-max fans redis
hint: getset, mixed and ycsb-* have
begun: kvfair find-max getset redis --step 1

refused: kvfair find-max getset redis --clients 1,2
hint: --clients 50
begun: kvfair find-max getset redis --clients 50 --step 1

refused: kvfair find-max getset redis ram
hint: name a store, as in redis
begun: kvfair find-max getset redis --step 1

refused: kvfair run --exec 'true {host} {port}'
hint: kvfair run --exec 'CMD {host} {port}' redis memcached
mended: kvfair run --exec 'true {host} {port}' redis memcached --list

refused: kvfair levers --exec true fans redis
hint: leave the job out
begun: kvfair levers --exec true redis

refused: kvfair levers getset redis --clients 1,2
hint: name one number in place of a list: kvfair levers getset redis
begun: kvfair levers getset redis --levers transport --requests 200

refused: kvfair levers getset 'redis?name=mine' --clients 1,2
hint: name one number in place of a list: kvfair levers getset 'redis?name=mine'
begun: kvfair levers getset 'redis?name=mine' --levers transport --requests 200

refused: kvfair levers getset redis --levers nothing-like-it
hint: it has transport, cache, ...
begun: kvfair levers getset redis --levers transport,cache --requests 200

# A path stands for each program.
refused: kvfair history fans
hint: kvfair history fans 'redis?program=./redis-7.0' 'redis?program=./redis-8'; `kvfair history` alone follows
  results files
begun: kvfair history fans 'redis?program=./redis-7.0' 'redis?program=./redis-8' --profiles 20
mended: kvfair history

refused: kvfair history fans ram 'ram?name=other' --profiles 5,10
hint: name one number or way in place of a list
begun: kvfair history fans ram 'ram?name=other' --profiles 5

refused: kvfair history fnas
hint: did you mean `fans`?
begun: kvfair history fans ram 'ram?name=other' --profiles 20

refused: kvfair history nothing-like-it
hint: `kvfair jobs` lists the jobs; results files end in .jsonl
mended: kvfair jobs

refused: kvfair history --clients 5
hint: kvfair history JOB VERSIONS...
begun: kvfair history --clients 5 fans ram 'ram?name=other' --profiles 20

refused: kvfair compare fans ngrams --base redis --head redis+unix
hint: kvfair compare fans --base redis --head redis+unix
begun: kvfair compare fans --base redis --head redis+unix --profiles 20

refused: kvfair compare old.jsonl
hint: kvfair compare old.jsonl new.jsonl
mended: kvfair compare old.jsonl new.jsonl

refused: kvfair compare --base redis --head redis+unix --profiles 5,10
hint: `kvfair run` has lists, as in --profiles 500,2000
mended: kvfair run fans redis redis+unix --profiles 500,2000 --list

refused: kvfair compare --base redis --head redis+unix --rtt 0,1ms
hint: `kvfair run` has lists, as in --rtt 0,0.2ms,1ms
mended: kvfair run fans redis redis+unix --rtt 0,0.2ms,1ms --list

refused: kvfair compare --base redis --head redis+unix --fail-if slower
hint: slower:3% or cpu:3%
begun: kvfair compare --base redis --head redis+unix --fail-if slower:3% --profiles 20
begun: kvfair compare --base redis --head redis+unix --fail-if cpu:3% --profiles 20

refused: kvfair compare --base redis --head redis+unix --fail-if slower:3% --fail-if slower:5%
hint: keep the one that is meant
begun: kvfair compare --base redis --head redis+unix --fail-if slower:5% --profiles 20

refused: kvfair crash --forget redis
hint: stores of which something is kept: none
mended: kvfair crash redis --kills 1

refused: kvfair crash redis --durability none
hint: crash or power
mended: kvfair crash redis --durability crash --kills 1
mended: kvfair crash redis --durability power --kills 1

refused: kvfair reproduce 7
hint: there are
mended: kvfair reproduce 001 --list

refused: TMPDIR=/nowhere kvfair run ngrams ram --messages 5 --blocks 1
hint: set TMPDIR to a directory with room
mended: TMPDIR="$TMPDIR" kvfair run ngrams ram --messages 5 --blocks 1

refused: kvfair run ngrams ram --messages 5 --blocks 1 --output nowhere/out.jsonl
hint: make the directory, or name another file
mended: mkdir made && kvfair run ngrams ram --messages 5 --blocks 1 --output made/out.jsonl
mended: kvfair run ngrams ram --messages 5 --blocks 1 --output out.jsonl
"#;

pub const AGENTS: &str = r#"
refused: kvfair run fans redis --agents 3
hint: they share getset, mixed, ycsb-* and ngrams
mended: kvfair run ngrams redis --agents 3 --list

refused: kvfair run mixed redis --agents 3 --rtt 1ms
hint: leave one of them out
mended: kvfair run mixed redis --agents 3 --list
mended: kvfair run mixed redis --rtt 1ms --list

refused: kvfair run mixed cached:redis --agents 3
hint: leave cached: out
mended: kvfair run mixed redis --agents 3 --list

refused: kvfair run mixed lmdb --agents 3
hint: name a server, as in redis
mended: kvfair run mixed redis --agents 3 --list

refused: kvfair run mixed redis --agents 3 --clients 2
hint: --clients 3
mended: kvfair run mixed redis --agents 3 --clients 3 --list

refused: kvfair run mixed $SERVER --agents 2 --launch ''
hint: what starts one agent, as in 'ssh {host} kvfair agent'
mended: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent' --hosts hosts --list

refused: kvfair run mixed $SERVER --agents 2 --launch 'ssh {node} kvfair agent'
hint: {host} and {rank} are filled in
mended: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent --rank {rank}' --hosts hosts --list

refused: kvfair run mixed $SERVER --agents 2 --launch 'kvfair agent' --hosts hosts
hint: --launch 'ssh {host} kvfair agent', or leave --hosts out
mended: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent' --hosts hosts --list
mended: kvfair run mixed $SERVER --agents 2 --launch 'kvfair agent' --list

refused: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent'
hint: --hosts FILE
mended: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent' --hosts hosts --list

refused: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent' --hosts messages.txt
hint: one host a line
mended: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent' --hosts hosts --list

refused: kvfair run mixed $SERVER --agents 3 --launch 'ssh {host} kvfair agent' --hosts hosts
hint: --agents 2, or name a host twice
mended: kvfair run mixed $SERVER --agents 2 --launch 'ssh {host} kvfair agent' --hosts hosts --list

refused: kvfair run ngrams $SERVER --agents 2 --launch 'false' --messages 5 --blocks 1
hint: the command of --launch must start `kvfair agent` there, of this version, and connect its standard input and
  output
mended: kvfair run ngrams $SERVER --agents 2 --launch 'kvfair agent' --messages 5 --blocks 1

refused: kvfair run ngrams $SERVER --agents 2 --launch 'kvfair agent --rank 1' --messages 5 --blocks 1
hint: --launch '... kvfair agent --rank {rank}', or leave --rank out
mended: kvfair run ngrams $SERVER --agents 2 --launch 'kvfair agent --rank {rank}' --messages 5 --blocks 1
mended: kvfair run ngrams $SERVER --agents 2 --launch 'kvfair agent' --messages 5 --blocks 1

refused: kvfair run ngrams $SERVER --agents 2 --launch 'kvfair agent | sh other-build' --messages 5 --blocks 1
hint: install the same there
mended: kvfair run ngrams $SERVER --agents 2 --launch 'kvfair agent' --messages 5 --blocks 1

# The table tells it.
refused: kvfair run ngrams $SERVER --agents 3 --input messages.txt --messages 1 --blocks 1 >&2
hint: --agents 1
mended: kvfair run ngrams $SERVER --agents 1 --input messages.txt --messages 1 --blocks 1
"#;
