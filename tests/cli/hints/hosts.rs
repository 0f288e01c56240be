//! Hints about servers of a user's own: hosts, ports and logins.

/// The network of these rows: a server on the usual port, with logins and without, one of each other port and host that
/// they name, and a cluster of one node.
pub const NETWORK: &str = r#"
ip link set lo up
printf '127.0.0.1 localhost HOST somewhere\n127.0.0.2 one\n127.0.0.3 two\n' > names
mount --bind names /etc/hosts
serve() { redis-server --save '' --dir "$PWD" "$@" > /dev/null & }
me="--user me on >word >a?b >1/b ~* &* +@all"
serve --port 6379 --bind 127.0.0.1 $me --user xyz on nopass '~*' '&*' '+@all'
serve --port 6379 --bind 127.0.0.2 $me --requirepass word
serve --port 6379 --bind 127.0.0.3 $me
serve --port 1
serve --port 7000 --cluster-enabled yes
for at in '127.0.0.1 -p 6379' '127.0.0.2 -p 6379' '127.0.0.3 -p 6379' '127.0.0.1 -p 1' '127.0.0.1 -p 7000'; do
    until redis-cli -h $at ping > /dev/null 2>&1; do sleep 0.05; done
done
redis-cli -p 7000 cluster addslotsrange 0 16383
until redis-cli -p 7000 cluster info | grep -q cluster_state:ok; do sleep 0.05; done
redis-cli -n 3 set Tea 3
touch ready
wait
"#;

pub const LOGINS: &str = r#"
refused: kvfair run fans xyz@somewhere
hint: put the login between STORE:// and @
mended: kvfair run fans redis://xyz@somewhere --profiles 5 --blocks 1

refused: kvfair run fans redis:me:word@localhost
hint: put the login between redis:// and @, with two slashes
mended: kvfair run fans redis://me:word@localhost --profiles 5 --blocks 1

refused: kvfair run fans localhost:6379/2
hint: redis://localhost:6379/2
mended: kvfair run fans redis://localhost:6379/2 --profiles 5 --blocks 1

refused: kvfair run fans localhost:1
hint: name the store too: redis://localhost:1, ...
mended: kvfair run fans redis://localhost:1 --profiles 5 --blocks 1

refused: kvfair run fans 'redis://me:a?b@localhost'
hint: in a password write %3F for ? and %40 for @; elsewhere %40 for @
mended: kvfair run fans 'redis://me:a%3Fb@localhost' --profiles 5 --blocks 1

refused: kvfair run fans 'redis://me:1/b@localhost'
hint: in a password write %2F for /, %3F for ?, %23 for # and %40 for @
mended: kvfair run fans 'redis://me:1%2Fb@localhost' --profiles 5 --blocks 1

refused: kvfair run fans redis-cluster
hint: redis-cluster://HOST:PORT; kvfair starts one: redis?cluster=3
mended: kvfair run fans redis-cluster://localhost:7000 --profiles 5 --blocks 1
mended: kvfair run fans 'redis?cluster=3' --list

refused: kvfair run fans 'redis://localhost:7000?cluster=3'
hint: redis-cluster://HOST:PORT
mended: kvfair run fans redis-cluster://localhost:7000 --profiles 5 --blocks 1

refused: KVFAIR_PASSWORD=word kvfair run fans redis://one redis://two
hint: run each by itself, or put passwords into the URLs
mended: KVFAIR_PASSWORD=word kvfair run fans redis://one --profiles 5 --blocks 1
mended: kvfair run fans redis://me:word@one redis://me:word@two --profiles 5 --blocks 1
"#;

pub const SERVERS: &str = r#"
refused: kvfair growth redis-cluster://localhost:1
hint: kvfair starts one: redis?cluster=3
begun: kvfair growth 'redis?cluster=3'

refused: kvfair run lookup --cold redis-cluster://localhost:7000
hint: leave --cold out
mended: kvfair run lookup redis-cluster://localhost:7000 --messages 5 --blocks 1

refused: kvfair run mixed --read-only redis
hint: name a store by URL
mended: kvfair run mixed --read-only redis://localhost/3 --requests 100 --blocks 1

# Not `getset`, which sets as well.
refused: kvfair run ycsb-c --read-only redis://localhost/3
hint: kvfair run mixed has it
mended: kvfair run mixed --read-only redis://localhost/3 --requests 100 --blocks 1

refused: kvfair run getset --read-only redis://localhost/3
hint: kvfair run getset --only get --read-only
mended: kvfair run getset --only get --read-only redis://localhost/3 --requests 100 --blocks 1

refused: kvfair run mixed redis --agents 2 --launch 'kvfair agent'
hint: name a server by URL, as in redis://HOST, or leave --launch out
mended: kvfair run mixed redis://HOST --agents 2 --launch 'kvfair agent' --requests 100 --records 10 --blocks 1
mended: kvfair run mixed redis --agents 2 --list

refused: kvfair run ngrams redis://localhost --messages 5 --blocks 1 --output by-url.jsonl && kvfair clean redis
  --of by-url.jsonl
hint: name the URL of the run
mended: kvfair clean redis://localhost --of by-url.jsonl
"#;
