//! Our own codecs do not allocate once they are warm: counted by this test binary's own allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kvfair::model::op::{KeyList, Op, Pairs, Reply};
use kvfair::protocol::memcache::{Memcache, Meta};
use kvfair::protocol::mysql::{self, Mysql, Wording};
use kvfair::protocol::postgres;
use kvfair::protocol::resp::{Resp, slot};
use kvfair::protocol::tyrant::Tyrant;
use kvfair::protocol::{Codec, Credentials, Decoded};

struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

// An allocator cannot be written without `unsafe`; this one only counts, and hands on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count() {
    ALLOCATED.with(|allocated| allocated.set(allocated.get() + 1));
}

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATED.with(Cell::get);
    work();
    ALLOCATED.with(Cell::get) - before
}

/// Asks one op and hears its answer in two pieces, the second of them its last byte.
fn ask(codec: &mut dyn Codec, op: Op<'_>, answer: &[u8], out: &mut Vec<u8>, check: impl FnOnce(Reply<'_>)) {
    out.clear();
    codec.say(&op, out).unwrap();
    let used = match codec.hear(&answer[..answer.len() - 1], out).unwrap() {
        None => 0,
        Some((used, Decoded::Again)) => used,
        other => panic!("{} was answered too early: {other:?}", op.name()),
    };
    match codec.hear(&answer[used..], out).unwrap() {
        Some((_, Decoded::Reply(reply))) => check(reply),
        other => panic!("{} was answered {other:?}", op.name()),
    }
}

/// What a server says to each of the ops of a round.
struct Answers {
    stored: &'static [u8],
    exists: &'static [u8],
    found: &'static [u8],
    missing: &'static [u8],
    sum: &'static [u8],
    deleted: &'static [u8],
    version: &'static [u8],
    swapped: &'static [u8],
    many: &'static [u8],
    numbers: &'static [u8],
    stored_many: &'static [u8],
}

/// Every op that both protocols have.
fn round(codec: &mut dyn Codec, keys: &KeyList, out: &mut Vec<u8>, answers: &Answers) {
    let (key, value) = (&b"key:000000012345"[..], &[b'v'; 4300][..]);
    let done = |reply: Reply<'_>| assert_eq!(reply, Reply::Done);
    ask(codec, Op::Set { key, value, ttl_s: None }, answers.stored, out, done);
    ask(codec, Op::Set { key, value, ttl_s: Some(60) }, answers.stored, out, done);
    ask(codec, Op::SetIfAbsent { key, value }, answers.exists, out, |reply| assert_eq!(reply, Reply::Conflict));
    ask(codec, Op::Get(key), answers.found, out, |reply| assert_eq!(reply, Reply::Value(b"12345")));
    ask(codec, Op::Number(key), answers.found, out, |reply| assert_eq!(reply, Reply::Number(12345)));
    ask(codec, Op::Get(key), answers.missing, out, |reply| assert_eq!(reply, Reply::Missing));
    ask(codec, Op::Increment { key, by: -1 }, answers.sum, out, |reply| assert_eq!(reply, Reply::Number(42)));
    ask(codec, Op::Delete(key), answers.deleted, out, done);
    let mut found_version = 0;
    ask(codec, Op::GetVersion(key), answers.version, out, |reply| match reply {
        Reply::Versioned(b"12345", version) => found_version = version,
        other => panic!("get-version was answered {other:?}"),
    });
    ask(codec, Op::Cas { key, version: found_version, value }, answers.swapped, out, done);
    ask(codec, Op::GetMany(keys.lend()), answers.many, out, |reply| match reply {
        Reply::Values(values) => assert_eq!((values.get(0), values.get(1)), (Some(&b"v"[..]), Some(&b"w"[..]))),
        other => panic!("get-many was answered {other:?}"),
    });
    ask(codec, Op::NumberMany(keys.lend()), answers.numbers, out, |reply| {
        assert_eq!(reply, Reply::Numbers(&[None, Some(7)]))
    });
    let pairs = Pairs { keys: keys.lend(), values: keys.lend() };
    ask(codec, Op::SetMany(pairs), answers.stored_many, out, done);
}

/// Ten rounds to warm up, then a hundred that must not allocate: 1,300 ops.
fn allocates_nothing(codec: &mut dyn Codec, answers: &Answers) {
    let keys: KeyList = [&b"a"[..], b"b"].into_iter().collect();
    let mut out = Vec::new();
    (0..10).for_each(|_| round(codec, &keys, &mut out, answers));
    assert_eq!(allocations_of(|| (0..100).for_each(|_| round(codec, &keys, &mut out, answers))), 0);
    assert_eq!(codec.pending(), 0);
}

#[test]
fn resp_allocates_nothing_once_warm() {
    let mut codec = Resp::new("redis", Default::default());
    let answers = Answers {
        stored: b"+OK\r\n",
        exists: b"$-1\r\n",
        found: b"$5\r\n12345\r\n",
        missing: b"$-1\r\n",
        sum: b":42\r\n",
        deleted: b":1\r\n",
        version: b"+OK\r\n$5\r\n12345\r\n",
        swapped: b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n",
        many: b"*2\r\n$1\r\nv\r\n$1\r\nw\r\n",
        numbers: b"*2\r\n$-1\r\n$1\r\n7\r\n",
        stored_many: b"+OK\r\n",
    };
    allocates_nothing(&mut codec, &answers);
    let (records, mut out) = ([&b"r"[..], b"s"].into_iter().collect::<KeyList>(), Vec::new());
    let mut tallies = || {
        let tally = Op::Tally { records: records.lend(), fields: records.lend(), by: 1 };
        ask(&mut codec, tally, b":1\r\n:2\r\n:3\r\n:4\r\n", &mut out, |reply| assert_eq!(reply, Reply::Done));
        let rows = b"*2\r\n$1\r\nf\r\n$1\r\n1\r\n";
        ask(&mut codec, Op::ReadTally(b"r"), rows, &mut out, |reply| assert!(matches!(reply, Reply::Rows(_))));
    };
    (0..10).for_each(|_| tallies());
    assert_eq!(allocations_of(|| (0..100).for_each(|_| tallies())), 0);
}

#[test]
fn memcache_allocates_nothing_once_warm() {
    let answers = Answers {
        stored: b"STORED\r\n",
        exists: b"NOT_STORED\r\n",
        found: b"VALUE key:000000012345 0 5\r\n12345\r\nEND\r\n",
        missing: b"END\r\n",
        sum: b"43\r\n42\r\n",
        deleted: b"DELETED\r\n",
        version: b"VALUE key:000000012345 0 5 77\r\n12345\r\nEND\r\n",
        swapped: b"STORED\r\n",
        many: b"VALUE a 0 1\r\nv\r\nVALUE b 0 1\r\nw\r\nEND\r\n",
        numbers: b"VALUE b 0 1\r\n7\r\nEND\r\n",
        stored_many: b"STORED\r\nSTORED\r\n",
    };
    allocates_nothing(&mut Memcache::new("memcached"), &answers);
    let answers = Answers {
        stored: b"HD\r\n",
        exists: b"NS\r\n",
        found: b"VA 5\r\n12345\r\n",
        missing: b"EN\r\n",
        sum: b"VA 2\r\n43\r\nVA 2\r\n42\r\n",
        deleted: b"HD\r\n",
        version: b"VA 5 c77\r\n12345\r\n",
        swapped: b"HD\r\n",
        many: b"VA 1 O0\r\nv\r\nVA 1 O1\r\nw\r\nMN\r\n",
        numbers: b"VA 1 O1\r\n7\r\nMN\r\n",
        stored_many: b"MN\r\n",
    };
    allocates_nothing(&mut Meta::new("memcached"), &answers);
}

/// Of its own ops those that take many keys: the others are no more than a code and a value.
#[test]
fn tyrant_allocates_nothing_for_many_keys_once_warm() {
    let mut codec = Tyrant::new("tokyotyrant");
    let (keys, mut out) = ([&b"a"[..], b"b"].into_iter().collect::<KeyList>(), Vec::new());
    let found = b"\0\0\0\0\x02\0\0\0\x01\0\0\0\x01av\0\0\0\x01\0\0\0\x01bw";
    let numbers = b"\0\0\0\0\x01\0\0\0\x01\0\0\0\x04b\x07\0\0\0";
    let mut many = || {
        ask(&mut codec, Op::GetMany(keys.lend()), found, &mut out, |reply| match reply {
            Reply::Values(values) => assert_eq!((values.get(0), values.get(1)), (Some(&b"v"[..]), Some(&b"w"[..]))),
            other => panic!("get-many was answered {other:?}"),
        });
        ask(&mut codec, Op::NumberMany(keys.lend()), numbers, &mut out, |reply| {
            assert_eq!(reply, Reply::Numbers(&[None, Some(7)]))
        });
        let pairs = Pairs { keys: keys.lend(), values: keys.lend() };
        ask(&mut codec, Op::SetMany(pairs), b"\0\0", &mut out, |reply| assert_eq!(reply, Reply::Done));
    };
    (0..10).for_each(|_| many());
    assert_eq!(allocations_of(|| (0..100).for_each(|_| many())), 0);
}

/// Its statements are prepared, and its lists have been as long before.
fn sql_allocates_nothing(codec: &mut dyn Codec, answers: &[&[u8]; 6]) {
    let [stored, found, missing, many, numbers, stored_many] = *answers;
    let (keys, mut out) = ([&b"a"[..], b"b"].into_iter().collect::<KeyList>(), Vec::new());
    let key = &b"key:000000012345"[..];
    let mut round = || {
        let done = |reply: Reply<'_>| assert_eq!(reply, Reply::Done);
        ask(codec, Op::Set { key, value: &[b'v'; 4300], ttl_s: None }, stored, &mut out, done);
        ask(codec, Op::Get(key), found, &mut out, |reply| assert_eq!(reply, Reply::Value(b"12345")));
        ask(codec, Op::Get(key), missing, &mut out, |reply| assert_eq!(reply, Reply::Missing));
        ask(codec, Op::GetMany(keys.lend()), many, &mut out, |reply| match reply {
            Reply::Values(values) => assert_eq!((values.get(0), values.get(1)), (Some(&b"v"[..]), Some(&b"w"[..]))),
            other => panic!("get-many was answered {other:?}"),
        });
        ask(codec, Op::NumberMany(keys.lend()), numbers, &mut out, |reply| {
            assert_eq!(reply, Reply::Numbers(&[None, Some(7)]))
        });
        let pairs = Pairs { keys: keys.lend(), values: keys.lend() };
        ask(codec, Op::SetMany(pairs), stored_many, &mut out, done);
    };
    (0..10).for_each(|_| round());
    assert_eq!(allocations_of(|| (0..100).for_each(|_| round())), 0);
    assert_eq!(codec.pending(), 0);
}

fn login() -> Credentials {
    Credentials { user: String::new(), password: None, database: String::new(), nonce: String::new() }
}

#[test]
fn postgres_allocates_nothing_once_warm() {
    let answers: [&[u8]; 6] = [
        b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I",
        b"2\0\0\0\x04D\0\0\0\x0f\0\x01\0\0\0\x0512345C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I",
        b"2\0\0\0\x04C\0\0\0\x0dSELECT 0\0Z\0\0\0\x05I",
        b"2\0\0\0\x04D\0\0\0\x10\0\x02\0\0\0\x01b\0\0\0\x01wD\0\0\0\x10\0\x02\0\0\0\x01a\0\0\0\x01v\
          C\0\0\0\x0dSELECT 2\0Z\0\0\0\x05I",
        b"2\0\0\0\x04D\0\0\0\x17\0\x02\0\0\0\x01b\0\0\0\x08\0\0\0\0\0\0\0\x07C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I",
        b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 2\0Z\0\0\0\x05I",
    ];
    let greeting = postgres::Greeting::new(login(), false, String::new());
    let mut codec = postgres::Postgres::new("postgres", |_| String::new(), greeting);
    sql_allocates_nothing(&mut codec, &answers);
}

#[test]
fn mysql_allocates_nothing_once_warm() {
    let wording = Wording { statement: |_, _| String::new(), tally: String::new(), tally_end: String::new() };
    let mut codec = Mysql::new("mysql", mysql::Greeting::new(login(), false, "mysql"), wording);
    let (keys, mut out) = ([&b"a"[..], b"b"].into_iter().collect::<KeyList>(), Vec::new());
    codec.prepare_first(&mut out);
    let ops = [
        Op::GetMany(keys.lend()),
        Op::NumberMany(keys.lend()),
        Op::SetMany(Pairs { keys: keys.lend(), values: keys.lend() }),
    ];
    // Each number of a statement, and no more than a refusal of what is asked with it.
    let prepared = b"\x0c\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0";
    while codec.pending() > 0 {
        codec.hear(prepared, &mut out).unwrap();
    }
    for op in ops {
        codec.say(&op, &mut out).unwrap();
        codec.hear(prepared, &mut out).unwrap();
        codec.hear(b"\x09\0\0\x01\xff\x01\0#00000", &mut out).unwrap();
    }
    let head = b"\x01\0\0\x01\x01\x01\0\0\x02x\x05\0\0\x03\xfe\0\0\x02\0";
    let two = b"\x01\0\0\x01\x02\x01\0\0\x02x\x01\0\0\x03x\x05\0\0\x04\xfe\0\0\x02\0";
    let [found, missing] = [&b"\x08\0\0\x04\0\0\x0512345\x05\0\0\x05\xfe\0\0\x02\0"[..], b"\x05\0\0\x04\xfe\0\0\x02\0"]
        .map(|rest| [head, rest].concat());
    let many = b"\x06\0\0\x05\0\0\x01b\x01w\x06\0\0\x06\0\0\x01a\x01v\x05\0\0\x07\xfe\0\0\x02\0";
    let numbers = b"\x0c\0\0\x05\0\0\x01b\x07\0\0\0\0\0\0\0\x05\0\0\x06\xfe\0\0\x02\0";
    let [many, numbers] = [&many[..], numbers].map(|rest| [&two[..], rest].concat());
    let stored = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";
    sql_allocates_nothing(&mut codec, &[stored, &found, &missing, &many, &numbers, stored]);
}

#[test]
fn the_counting_counts() {
    assert!(allocations_of(|| drop(std::hint::black_box(vec![1_u8; 100]))) >= 1);
}

/// What a cluster needs besides: the slot of a key, and ASKING before a command.
#[test]
fn slots_and_asking_allocate_nothing_once_warm() {
    let mut codec = Resp::new("redis", Default::default());
    let mut out = Vec::new();
    let mut round = || {
        assert_eq!(slot(b"foo{hash_tag}"), 2_515);
        out.clear();
        codec.asking(&mut out);
        codec.say(&Op::Get(b"k"), &mut out).unwrap();
        let answer = b"+OK\r\n$1\r\nv\r\n";
        let used = match codec.hear(answer, &mut out).unwrap() {
            Some((used, Decoded::Greeted)) => used,
            other => panic!("ASKING was answered {other:?}"),
        };
        match codec.hear(&answer[used..], &mut out).unwrap() {
            Some((_, Decoded::Reply(reply))) => assert_eq!(reply, Reply::Value(b"v")),
            other => panic!("a get was answered {other:?}"),
        }
    };
    (0..10).for_each(|_| round());
    assert_eq!(allocations_of(|| (0..100).for_each(|_| round())), 0);
}
