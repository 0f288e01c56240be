//! What an adapter adds to its engine: the same sets and gets straight on the library's interface and through the
//! session, on new files with the same options.

use std::ffi::{CString, c_char, c_int, c_void};
use std::hint::black_box;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Instant;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, EnvFlags, EnvOpenOptions, RwTxn, WithTls};
use kvfair::model::op::{Op, Reply};
use kvfair::stores::{self, Launch, Place, Session, Store};
use libloading::Library;

use super::{Bench, Outcome, best, launch};

/// What is set and got: all keys once, then values of another length over them where they differ, then all are got.
struct Shape {
    name: &'static str,
    keys: u64,
    shortest: usize,
    longest: usize,
}

/// The figure that is owed, and records as `fans` has them, which grow.
const SHAPES: [Shape; 2] = [
    Shape { name: "100 bytes", keys: 100_000, shortest: 100, longest: 100 },
    Shape { name: "1 to 10 KB", keys: 10_000, shortest: 1_000, longest: 10_000 },
];
/// Sets in a transaction, where there are any: a job's unit.
const UNIT: u64 = 100;
/// An adapter may cost so many times its engine at most.
const OWED: f64 = 1.10;
/// Rounds of both, in turn.
const ROUNDS: usize = 5;

/// The engine's own interface: opens a new file below a directory with the options of the adapter.
type Straight = fn(&Launch, &Path) -> Box<dyn Engine>;

/// What is asked straight on the library. A get gives the length of what was found, which must be looked at.
trait Engine {
    fn set(&mut self, key: &[u8], value: &[u8]);
    fn get(&mut self, key: &[u8]) -> usize;
    /// The end of a unit.
    fn commit(&mut self) {}
}

const ENGINES: &[(&str, Straight)] = &[
    ("lmdb", |_, place| Box::new(Lmdb::open(place))),
    ("sqlite", |launch, place| Box::new(Sqlite::open(launch, place))),
    ("rocksdb", |launch, place| Box::new(Rocks::open(launch, place))),
    ("tokyocabinet", |launch, place| Box::new(Tokyo::open(launch, place))),
    ("berkeleydb", |launch, place| Box::new(Berkeley::open(launch, place))),
];

pub fn measure(bench: &Bench) -> Outcome {
    let mut line = format!("an adapter's time over its engine's (owed at most {OWED:.2} each)");
    let mut holds = true;
    for (name, straight) in ENGINES {
        let ratios = SHAPES.map(|shape| (ratio(bench, name, *straight, &shape), shape.name));
        let missed = ratios.iter().any(|(ratio, _)| *ratio > OWED);
        let words = ratios.map(|(ratio, shape)| format!("{ratio:.2} at {shape}")).join(", ");
        line += &format!("\n    {name:14} {words}{}", if missed { " MISSED" } else { "" });
        holds &= !missed;
    }
    Outcome { line, holds }
}

fn ratio(bench: &Bench, name: &str, straight: Straight, shape: &Shape) -> f64 {
    let (mut straight_s, mut adapter_s) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let place = |kind: &str| {
            // A path of its own for each: LMDB's environments stay open, and none is opened twice.
            let place = bench.path(&format!("{name}-{kind}-{}-{round}", shape.name));
            std::fs::create_dir(&place).expect("a new directory");
            place
        };
        let here = place("straight");
        let mut engine = straight(&launch(), &here);
        straight_s.push(time(shape, |what| match what {
            What::Set(key, value) => engine.set(key, value),
            What::Get(key, length) => assert_eq!(engine.get(key), length),
            What::Commit => engine.commit(),
        }));
        drop(engine);
        let there = place("adapter");
        let store = opened(name, &there);
        let mut session = store.session().expect("a session");
        adapter_s.push(time(shape, |what| through(session.as_mut(), what)));
        drop(session);
        drop(store);
        for place in [here, there] {
            std::fs::remove_dir_all(place).expect("our own directory goes");
        }
    }
    best(&adapter_s) / best(&straight_s)
}

enum What<'a> {
    Set(&'a [u8], &'a [u8]),
    /// And how long its value is.
    Get(&'a [u8], usize),
    Commit,
}

/// All keys are set, then got, in another order than that of their bytes; values that differ are set twice.
fn time(shape: &Shape, mut ask: impl FnMut(What<'_>)) -> f64 {
    let mixed = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = |number: u64| mixed(number).to_be_bytes();
    // Bytes without a pattern that a store could pack away.
    let noise: Vec<u8> = (0..shape.longest as u64).map(|number| (mixed(mixed(number) >> 7) >> 32) as u8).collect();
    let length = |number: u64| shape.shortest + (mixed(number) >> 40) as usize % (shape.longest - shape.shortest + 1);
    let turns = if shape.shortest < shape.longest { 2 } else { 1 };
    let began = Instant::now();
    for turn in 0..turns {
        for number in 0..shape.keys {
            ask(What::Set(&key(number), &noise[..length(number + turn)]));
            if number % UNIT == UNIT - 1 {
                ask(What::Commit);
            }
        }
    }
    for number in 0..shape.keys {
        ask(What::Get(&key(number), length(number + turns - 1)));
    }
    began.elapsed().as_secs_f64()
}

fn opened(name: &str, place: &Path) -> Box<dyn Store> {
    let adapter = stores::find(name).expect("a store of that name");
    (adapter.open)(&Launch { place: Place::Path(place.to_path_buf()), ..launch() }).expect("it opens")
}

fn through(session: &mut dyn Session, what: What<'_>) {
    match what {
        What::Set(key, value) => {
            session.ask(&Op::Set { key, value, ttl_s: None }).expect("a set");
        }
        What::Get(key, length) => match session.ask(&Op::Get(key)).expect("a get") {
            Reply::Value(value) => assert_eq!(black_box(value).len(), length),
            other => panic!("a get of what was set: {other:?}"),
        },
        What::Commit => session.flush().expect("a commit"),
    }
}

struct Lmdb {
    write: Option<RwTxn<'static>>,
    records: Database<'static, Bytes, Bytes>,
    env: &'static heed::Env<WithTls>,
}

impl Lmdb {
    fn open(place: &Path) -> Lmdb {
        let mut options = EnvOpenOptions::new();
        options.map_size(1 << 38).max_readers(127);
        // SAFETY: the directory is ours alone; what a system crash breaks here nobody wants.
        let env = unsafe { options.flags(EnvFlags::NO_SYNC).open(place) }.expect("an environment");
        // A benchmark ends soon: transactions may borrow from it for good.
        let env: &'static heed::Env<WithTls> = Box::leak(Box::new(env));
        let write = env.write_txn().expect("a transaction");
        let records = env.create_databases_and_commit(write, |creator, write| {
            creator.create_database(write, None).map(CommitOrAbort::<_, ()>::Commit)
        });
        let records = records.expect("a database").unwrap_commit();
        Lmdb { write: None, records, env }
    }
}

impl Engine for Lmdb {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        let write = self.write.get_or_insert_with(|| self.env.write_txn().expect("a transaction"));
        self.records.put(write, key, value).expect("a put");
    }

    /// Sees the newest commit, and so reads in a transaction of its own.
    fn get(&mut self, key: &[u8]) -> usize {
        let read = self.env.read_txn().expect("a transaction");
        black_box(self.records.get(&read, key).expect("a get").expect("it is there")).len()
    }

    fn commit(&mut self) {
        if let Some(write) = self.write.take() {
            write.commit().expect("a commit");
        }
    }
}

struct Sqlite {
    connection: rusqlite::Connection,
    is_open: bool,
}

impl Sqlite {
    /// With the settings that the adapter finds in force.
    fn open(_: &Launch, place: &Path) -> Sqlite {
        let asked = place.join("asked");
        std::fs::create_dir(&asked).expect("a directory");
        let settings = opened("sqlite", &asked).facts().expect("facts").settings;
        let connection = rusqlite::Connection::open(place.join("straight.db")).expect("a file");
        for name in ["page_size", "locking_mode", "journal_mode", "synchronous", "cache_size", "mmap_size"] {
            connection.pragma_update(None, name, &settings[name]).expect("a pragma");
        }
        let table = "CREATE TABLE kv (key BLOB PRIMARY KEY NOT NULL, value NOT NULL) WITHOUT ROWID";
        connection.execute_batch(table).expect("a table");
        Sqlite { connection, is_open: false }
    }

    fn run(&self, sql: &str) {
        self.connection.prepare_cached(sql).expect("a statement").execute([]).expect("it runs");
    }
}

impl Engine for Sqlite {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        if !self.is_open {
            self.run("BEGIN IMMEDIATE");
            self.is_open = true;
        }
        let sql = "INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        self.connection.prepare_cached(sql).expect("a statement").execute([key, value]).expect("an upsert");
    }

    fn get(&mut self, key: &[u8]) -> usize {
        let mut statement = self.connection.prepare_cached("SELECT value FROM kv WHERE key = ?1").expect("a statement");
        let mut rows = statement.query([key]).expect("a query");
        let row = rows.next().expect("a row").expect("it is there");
        black_box(row.get_ref(0).expect("a value").as_blob().expect("bytes")).len()
    }

    fn commit(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.run("COMMIT");
        }
    }
}

type Handle = *mut c_void;
type Error = *mut *mut c_char;

/// A function of a library, as its header declares it.
fn function<F: Copy>(library: &Library, name: &str) -> F {
    // SAFETY: every caller below names the type that the header gives the function.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    *found.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The library stays open until the benchmark ends.
fn library(names: &[&str]) -> &'static Library {
    // SAFETY: loading a system's library runs its own initialisers only.
    let found = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
    Box::leak(Box::new(found.unwrap_or_else(|| panic!("none of {names:?} is here"))))
}

fn path(place: &Path) -> CString {
    CString::new(place.to_str().expect("UTF-8")).expect("no zero byte")
}

struct Rocks {
    database: Handle,
    reading: Handle,
    writing: Handle,
    put: unsafe extern "C" fn(Handle, Handle, *const u8, usize, *const u8, usize, Error),
    get: unsafe extern "C" fn(Handle, Handle, *const u8, usize, Error) -> Handle,
    value: unsafe extern "C" fn(Handle, *mut usize) -> *const u8,
    destroy: unsafe extern "C" fn(Handle),
    close: unsafe extern "C" fn(Handle),
}

impl Rocks {
    fn open(launch: &Launch, place: &Path) -> Rocks {
        let library = library(&["librocksdb.so.7.8", "librocksdb.so", "librocksdb.dylib"]);
        let new = |name: &str| {
            let create: unsafe extern "C" fn() -> Handle = function(library, &format!("rocksdb_{name}_create"));
            // SAFETY: makes a handle of this library's.
            unsafe { create() }
        };
        let (options, table, reading, writing) =
            (new("options"), new("block_based_options"), new("readoptions"), new("writeoptions"));
        let cached: unsafe extern "C" fn(usize) -> Handle = function(library, "rocksdb_cache_create_lru");
        let pair =
            |name: &str| -> unsafe extern "C" fn(Handle, Handle) { function(library, &format!("rocksdb_{name}")) };
        let size: unsafe extern "C" fn(Handle, usize) = function(library, "rocksdb_options_set_write_buffer_size");
        let flag: unsafe extern "C" fn(Handle, u8) = function(library, "rocksdb_options_set_create_if_missing");
        let logless: unsafe extern "C" fn(Handle, c_int) = function(library, "rocksdb_writeoptions_disable_WAL");
        let open: unsafe extern "C" fn(Handle, *const c_char, Error) -> Handle = function(library, "rocksdb_open");
        let mut error = null_mut();
        // SAFETY: as the header says, on handles of this library's.
        let database = unsafe {
            flag(options, 1);
            size(options, 64 << 20);
            let cache = cached(usize::try_from(launch.cache_bytes()).expect("a size of memory"));
            pair("block_based_options_set_block_cache")(table, cache);
            pair("options_set_block_based_table_factory")(options, table);
            logless(writing, 1);
            open(options, path(place).as_ptr(), &mut error)
        };
        assert!(error.is_null(), "rocksdb opens");
        let named = |name: &str| format!("rocksdb_{name}");
        Rocks {
            database,
            reading,
            writing,
            put: function(library, &named("put")),
            get: function(library, &named("get_pinned")),
            value: function(library, &named("pinnableslice_value")),
            destroy: function(library, &named("pinnableslice_destroy")),
            close: function(library, &named("close")),
        }
    }
}

impl Engine for Rocks {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        let (mut error, at) = (null_mut(), value.as_ptr());
        // SAFETY: pointers and lengths belong together.
        unsafe { (self.put)(self.database, self.writing, key.as_ptr(), key.len(), at, value.len(), &mut error) };
        assert!(error.is_null(), "a put");
    }

    fn get(&mut self, key: &[u8]) -> usize {
        let (mut error, mut length) = (null_mut(), 0);
        // SAFETY: pointers and lengths belong together; the value is looked at before it is let go.
        unsafe {
            let lent = (self.get)(self.database, self.reading, key.as_ptr(), key.len(), &mut error);
            assert!(error.is_null() && !lent.is_null(), "a get");
            black_box((self.value)(lent, &mut length));
            (self.destroy)(lent);
        }
        length
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.close)(self.database) };
    }
}

struct Tokyo {
    database: Handle,
    buffer: Vec<u8>,
    put: unsafe extern "C" fn(Handle, *const u8, c_int, *const u8, c_int) -> bool,
    get: unsafe extern "C" fn(Handle, *const u8, c_int, *mut u8, c_int) -> c_int,
    del: unsafe extern "C" fn(Handle),
}

impl Tokyo {
    fn open(launch: &Launch, place: &Path) -> Tokyo {
        let library = library(&["libtokyocabinet.so.9", "libtokyocabinet.dylib"]);
        let new: unsafe extern "C" fn() -> Handle = function(library, "tchdbnew");
        let shared: unsafe extern "C" fn(Handle) -> bool = function(library, "tchdbsetmutex");
        let mapped: unsafe extern "C" fn(Handle, i64) -> bool = function(library, "tchdbsetxmsiz");
        let tune: unsafe extern "C" fn(Handle, i64, i8, i8, u8) -> bool = function(library, "tchdbtune");
        let open: unsafe extern "C" fn(Handle, *const c_char, c_int) -> bool = function(library, "tchdbopen");
        // SAFETY: as the header says, on a handle of this library's.
        let database = unsafe {
            let database = new();
            shared(database);
            mapped(database, launch.cache_bytes() as i64);
            tune(database, 1_000_000, -1, -1, 1);
            assert!(open(database, path(&place.join("straight.tch")).as_ptr(), 6), "tokyocabinet opens");
            database
        };
        Tokyo {
            database,
            buffer: vec![0; 1 << 16],
            put: function(library, "tchdbput"),
            get: function(library, "tchdbget3"),
            del: function(library, "tchdbdel"),
        }
    }
}

impl Engine for Tokyo {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: pointers and lengths belong together.
        let is_put = unsafe {
            (self.put)(self.database, key.as_ptr(), key.len() as c_int, value.as_ptr(), value.len() as c_int)
        };
        assert!(is_put, "a put");
    }

    fn get(&mut self, key: &[u8]) -> usize {
        let (buffer, size) = (self.buffer.as_mut_ptr(), self.buffer.len() as c_int);
        // SAFETY: pointers and lengths belong together.
        let length = unsafe { (self.get)(self.database, key.as_ptr(), key.len() as c_int, buffer, size) };
        black_box(&self.buffer);
        usize::try_from(length).expect("it is there")
    }
}

impl Drop for Tokyo {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.del)(self.database) };
    }
}

/// `DBT` of Berkeley DB 5.3.
#[repr(C)]
struct Thing {
    data: *mut c_void,
    size: u32,
    unused: [u32; 3],
    app_data: *mut c_void,
    flags: u32,
}

impl Thing {
    fn of(bytes: &[u8]) -> Thing {
        let data = bytes.as_ptr().cast_mut().cast();
        Thing { data, size: bytes.len() as u32, unused: [0; 3], app_data: null_mut(), flags: 0 }
    }
}

type Pair = unsafe extern "C" fn(Handle, Handle, *mut Thing, *mut Thing, u32) -> c_int;

struct Berkeley {
    database: Handle,
    get: Pair,
    put: Pair,
    close: unsafe extern "C" fn(Handle, u32) -> c_int,
}

impl Berkeley {
    fn open(launch: &Launch, place: &Path) -> Berkeley {
        type Open = unsafe extern "C" fn(Handle, Handle, *const c_char, *const c_char, c_int, u32, c_int) -> c_int;
        type SetCache = unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int;
        let library = library(&["libdb-5.3.so", "libdb-5.3.dylib"]);
        let create: unsafe extern "C" fn(*mut Handle, Handle, u32) -> c_int = function(library, "db_create");
        let bytes = launch.cache_bytes();
        // SAFETY: the places are those of the structure of version 5.3 (see the adapter), and the types the header's.
        unsafe {
            let mut database = null_mut();
            assert_eq!(create(&mut database, null_mut(), 0), 0);
            let set = method::<SetCache>(database, 1096);
            assert_eq!(set(database, (bytes >> 30) as u32, (bytes & ((1 << 30) - 1)) as u32, 1), 0);
            let open = method::<Open>(database, 1008);
            let file = path(&place.join("straight.db"));
            assert_eq!(open(database, null_mut(), file.as_ptr(), null(), 2, 1, 0), 0, "berkeleydb opens");
            Berkeley { database, get: method(database, 632), put: method(database, 1024), close: method(database, 568) }
        }
    }
}

/// The function at a place of a structure.
///
/// # Safety
/// `F` is the type of the function there.
unsafe fn method<F: Copy>(handle: Handle, at: usize) -> F {
    // SAFETY: the caller's promise.
    unsafe { *handle.cast::<u8>().add(at).cast::<F>() }
}

impl Engine for Berkeley {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: both are only read.
        let code = unsafe { (self.put)(self.database, null_mut(), &mut Thing::of(key), &mut Thing::of(value), 0) };
        assert_eq!(code, 0, "a put");
    }

    fn get(&mut self, key: &[u8]) -> usize {
        let mut value = Thing { size: 0, data: null_mut(), ..Thing::of(&[]) };
        // SAFETY: what is lent is looked at before the next call.
        let code = unsafe { (self.get)(self.database, null_mut(), &mut Thing::of(key), &mut value, 0) };
        assert_eq!(code, 0, "a get");
        black_box(value.size) as usize
    }
}

impl Drop for Berkeley {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.close)(self.database, 0) };
    }
}
