//! What real servers say of themselves by their own counters, and what is made of hostile ones.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use kvfair::model::op::Fault;
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::store_stats::StoreStats;
use kvfair::stores::{Launch, Place, Store, find};

use super::set;
use crate::common::needs::{Need, needs};
use crate::common::{launch_at, session, start_at};

const SETS: u32 = 40;

/// How much a counter grew by so many sets of one session, which has ended when the counters are read again. No number
/// where it is missing then; a counter that nothing has been counted by yet may be missing before.
fn grown(store: &dyn Store, counters: &[&str]) -> Vec<f64> {
    // Tables are made with the first session.
    drop(session(store));
    let before = store.stats().expect("counters");
    let mut session = session(store);
    (0..SETS).for_each(|key| set(session.as_mut(), &key.to_be_bytes(), b"some value"));
    drop(session);
    let after = store.stats().expect("counters");
    let of = |name: &str| after.get(name).unwrap_or(f64::NAN) - before.get(name).unwrap_or(0.0);
    counters.iter().map(|name| of(name)).collect()
}

fn grown_at(store: &str, durability: Durability, counters: &[&str]) -> Vec<f64> {
    let server = start_at(store, Transport::Tcp, durability);
    let one = Launch { clients: 1, ..server.launch.clone() };
    grown((server.adapter.open)(&one).expect("it opens").as_ref(), counters)
}

#[test]
fn redis_and_valkey_count_commands_and_the_bytes_of_their_log() {
    let sets = f64::from(SETS);
    for store in ["redis", "valkey"] {
        for (durability, logged) in [(Durability::None, 0.0), (Durability::Power, sets * 20.0)] {
            let told = grown_at(store, durability, &["cmdstat_set.calls", "aof_current_size", "evicted_keys"]);
            assert_eq!((told[0], told[2]), (sets, 0.0), "{store} at {durability}");
            // Without a log there is no counter of its bytes.
            assert!(
                if logged > 0.0 { told[1] > logged } else { told[1].is_nan() },
                "{store} at {durability}: {told:?}"
            );
        }
    }
}

#[test]
fn memcached_counts_sets() {
    assert_eq!(grown_at("memcached", Durability::None, &["cmd_set", "evictions"]), [f64::from(SETS), 0.0]);
}

#[test]
fn sql_servers_count_the_syncs_that_a_class_asks_for() {
    for (store, counter) in [("mariadb", "Innodb_data_fsyncs"), ("postgres", "pg_stat_wal.wal_sync")] {
        let power = grown_at(store, Durability::Power, &[counter])[0];
        let none = grown_at(store, Durability::None, &[counter])[0];
        // One session: no two commits share a sync.
        assert!(power >= f64::from(SETS) && none < f64::from(SETS) / 2.0, "{store}: {power} at power, {none} at none");
    }
    assert_eq!(grown_at("mariadb", Durability::None, &["Com_stmt_execute"]), [f64::from(SETS)]);
}

/// A session of PostgreSQL hands in what it counted when it ends, which is a moment after it was told to.
#[test]
fn what_a_session_counted_is_waited_for() {
    let server = start_at("postgres", Transport::Unix, Durability::Power);
    let store = server.open();
    drop(session(store.as_ref()));
    let before = store.stats().expect("counters");
    let mut session = session(store.as_ref());
    (0..SETS).for_each(|key| set(session.as_mut(), &key.to_be_bytes(), b"some value"));
    let after = std::thread::scope(|scope| {
        let asking = scope.spawn(|| store.stats().expect("counters"));
        std::thread::sleep(Duration::from_millis(150));
        drop(session);
        asking.join().expect("it asks to its end")
    });
    let commits = |said: &StoreStats| said.get("pg_stat_database.xact_commit").expect("a counter of that name");
    assert!(commits(&after) - commits(&before) >= f64::from(SETS), "{} to {}", commits(&before), commits(&after));
}

#[test]
#[cfg(feature = "mongodb")]
fn ferretdb_counts_its_commands() {
    assert_eq!(grown_at("ferretdb", Durability::None, &["metrics.commands.update.total"]), [f64::from(SETS)]);
}

#[test]
fn tokyo_tyrant_counts_its_records() {
    needs!(Need::server("tokyotyrant"));
    assert_eq!(grown_at("tokyotyrant", Durability::None, &["rnum"]), [f64::from(SETS)]);
}

#[test]
#[cfg(feature = "cassandra")]
fn cassandra_counts_the_tasks_of_its_threads() {
    let (server, _turn) = super::cassandra::one();
    let store = server.open();
    let told = grown(store.as_ref(), &["thread_pools.Native-Transport-Requests.completed_tasks"]);
    assert!(told[0] >= f64::from(SETS), "{told:?}");
    let said = store.stats().expect("counters");
    for name in ["thread_pools.CompactionExecutor.completed_tasks", "thread_pools.MutationStage.blocked_tasks_all_time"]
    {
        assert!(said.get(name).is_some(), "{name}: {said:?}");
    }
    assert!(said.get("caches.keys.request_count").is_some(), "{said:?}");
}

/// Listens for one connection and answers the first thing that it hears, again and again where it is to.
fn says_once(answer: Vec<u8>, endless: bool) -> Box<dyn Store> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.read(&mut [0; 1024]);
        while stream.write_all(&answer).is_ok() && endless {}
        while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
    });
    let place = Place::Tcp { host: "127.0.0.1".to_string(), port };
    let launch = Launch { patience: Duration::from_millis(500), ..launch_at(place, Durability::None) };
    (find("redis").expect("it is built in").open)(&launch).expect("opening asks nothing")
}

fn told(text: &str) -> Result<StoreStats, Fault> {
    says_once(format!("${}\r\n{text}\r\n", text.len()).into_bytes(), false).stats()
}

#[test]
fn of_a_hostile_answer_only_short_names_and_numbers_are_kept() {
    let long = "n".repeat(5_000);
    let text = format!(
        "evicted_keys:7\r\nrequirepass:hunter2\r\nrun_id:61f1c52106bb69f28af1dc2862e53a07f717db8b\r\nnan:nan\r\ninf:inf\r\n\
         {long}:1\r\n\u{1b}[31mred\u{202e}:2\r\nhuge:{}\r\n:3\r\nnothing\r\ncmdstat_x:calls=4,pass=secret,=5\r\n",
        "9".repeat(400)
    );
    let said = told(&text).expect("an answer");
    let expected: StoreStats = [
        ("evicted_keys", 7.0),
        (&long[..100], 1.0),
        ("?[31mred?", 2.0),
        ("", 3.0),
        ("cmdstat_x.calls", 4.0),
        ("cmdstat_x.", 5.0),
    ]
    .into_iter()
    .collect();
    assert_eq!(said, expected);
}

#[test]
fn many_counters_are_cut_off_and_many_bytes_refused() {
    let many: String = (0..50_000).map(|index| format!("c{index}:1\r\n")).collect();
    assert_eq!(told(&many).expect("an answer").until(&StoreStats::default()).len(), 4_000);
    let announced = says_once(b"$400000000\r\n".to_vec(), false).stats();
    assert!(matches!(announced, Err(Fault::Lost(_))), "{announced:?}");
    // The head once, then on and on.
    let fault = says_once([&b"$400000000\r\n"[..], &[b'x'; 8_000]].concat(), true).stats().expect_err("it never ends");
    assert!(fault.to_string().contains("counters of more than 1048576 bytes"), "{fault}");
}

#[test]
fn what_is_no_counter_at_all_is_said() {
    for (answer, words) in [
        (&b"-NOPERM this user has no permissions\r\n"[..], "NOPERM"),
        (b":12\r\n", "INFO answered"),
        (b"HTTP/1.1 400\r\n", "garbled"),
    ] {
        let fault = says_once(answer.to_vec(), false).stats().expect_err("no counters").to_string();
        assert!(fault.contains(words), "{fault}");
    }
}
