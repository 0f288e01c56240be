//! Servers that speak a protocol and tell nothing of themselves: no INFO, no statistics, no count of records. They can
//! be checked and measured, and what they do not tell is unknown.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::cli::check::broken_clients::are_of_a_race;
use crate::common::desk::{Desk, Started, one_line};
use crate::common::needs::{Need, needs};

type Records = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// How a connection is served: nothing once it is closed.
type Talk = fn(&mut BufReader<TcpStream>, &Records) -> Option<Vec<u8>>;

/// Serves one connection after another, each in a thread, until the test's process ends.
pub fn serve(talk: Talk) -> (u16, Records) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let records = Records::default();
    let shared = records.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let records = shared.clone();
            std::thread::spawn(move || {
                let mut answers = stream.try_clone().expect("a socket");
                let mut questions = BufReader::new(stream);
                while wait_in_races(&mut questions).is_some()
                    && let Some(answer) = talk(&mut questions, &records)
                {
                    if answers.write_all(&answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, records)
}

/// Clients of a check race for seconds, at the full speed of all processors. A short wait at each op leaves these to
/// other tests.
fn wait_in_races(from: &mut BufReader<TcpStream>) -> Option<()> {
    if are_of_a_race(from.fill_buf().ok()?) {
        std::thread::sleep(Duration::from_millis(3));
    }
    Some(())
}

fn line(from: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line).ok().filter(|&length| length > 0)?;
    line.truncate(line.len().saturating_sub(2));
    Some(line)
}

fn number(bytes: &[u8]) -> Option<usize> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn block(from: &mut BufReader<TcpStream>, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

fn bulk(value: Option<&Vec<u8>>) -> Vec<u8> {
    match value {
        None => b"$-1\r\n".to_vec(),
        Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
    }
}

/// RESP with seven commands.
pub fn resp(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    let count = number(line(from)?.strip_prefix(b"*")?)?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let length = number(line(from)?.strip_prefix(b"$")?)?;
        parts.push(block(from, length)?);
    }
    let mut held = records.lock().expect("no thread panics with it in hand");
    let name = String::from_utf8_lossy(&parts[0]).to_ascii_uppercase();
    Some(match (name.as_str(), &parts[1..]) {
        ("PING", []) => b"+PONG\r\n".to_vec(),
        ("GET", [key]) => bulk(held.get(key)),
        ("SET", [key, value]) => {
            held.insert(key.clone(), value.clone());
            b"+OK\r\n".to_vec()
        }
        ("DEL", keys) => format!(":{}\r\n", keys.iter().filter(|key| held.remove(*key).is_some()).count()).into(),
        ("MGET", keys) => {
            let values = keys.iter().map(|key| bulk(held.get(key)));
            [format!("*{}\r\n", keys.len()).into_bytes(), values.collect::<Vec<_>>().concat()].concat()
        }
        ("MSET", pairs) => {
            pairs.chunks_exact(2).for_each(|pair| drop(held.insert(pair[0].clone(), pair[1].clone())));
            b"+OK\r\n".to_vec()
        }
        ("INCRBY", [key, by]) => {
            let of = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<i64>().ok();
            match held.get(key).map_or(Some(0), |old| of(old)).zip(of(by)).and_then(|(old, by)| old.checked_add(by)) {
                Some(sum) => {
                    held.insert(key.clone(), sum.to_string().into_bytes());
                    format!(":{sum}\r\n").into_bytes()
                }
                None => b"-ERR value is not an integer or out of range\r\n".to_vec(),
            }
        }
        _ => format!("-ERR unknown command '{name}'\r\n").into_bytes(),
    })
}

/// Takes a value away after so long, unless there is another one by then.
fn expire(records: &Records, key: Vec<u8>, value: Vec<u8>, ttl_s: u64) {
    let records = records.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(ttl_s));
        let mut held = records.lock().expect("no thread panics with it in hand");
        if held.get(&key) == Some(&value) {
            held.remove(&key);
        }
    });
}

/// Adds to a counter or takes from it, as memcached does.
fn count(old: Option<&mut Vec<u8>>, by: &[u8], is_up: bool) -> Vec<u8> {
    let Some(old) = old else { return b"NOT_FOUND\r\n".to_vec() };
    let of = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.trim().parse::<u64>().ok();
    let Some((number, by)) = of(old).zip(of(by)) else {
        return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n".to_vec();
    };
    let sum = if is_up { number.wrapping_add(by) } else { number.saturating_sub(by) };
    *old = sum.to_string().into_bytes();
    format!("{sum}\r\n").into_bytes()
}

/// memcached's first commands, without statistics; with those of MemcacheDB where its name is asked for.
fn memcache(from: &mut BufReader<TcpStream>, records: &Records, is_memcachedb: bool) -> Option<Vec<u8>> {
    let asked = line(from)?;
    let words: Vec<&[u8]> = asked.split(|&byte| byte == b' ').collect();
    let value = match words[0] {
        b"set" | b"add" => Some(block(from, number(words[4])?)?),
        _ => None,
    };
    let mut held = records.lock().expect("no thread panics with it in hand");
    let key = words.get(1).map_or_else(Vec::new, |key| key.to_vec());
    Some(match words[0] {
        b"version" => b"VERSION 1.2.1\r\n".to_vec(),
        b"stats" if is_memcachedb => b"STAT txn_nosync 1\r\nEND\r\n".to_vec(),
        b"get" => {
            let mut answer = Vec::new();
            for key in &words[1..] {
                if let Some(value) = held.get(*key) {
                    let length = format!(" 0 {}\r\n", value.len());
                    answer.extend([b"VALUE ", *key, length.as_bytes(), value, b"\r\n"].concat());
                }
            }
            answer.extend(b"END\r\n");
            answer
        }
        b"add" if held.contains_key(&key) => b"NOT_STORED\r\n".to_vec(),
        b"set" | b"add" => {
            let (value, ttl_s) = (value?, number(words[3])?);
            if ttl_s > 0 {
                expire(records, key.clone(), value.clone(), ttl_s as u64);
            }
            held.insert(key, value);
            b"STORED\r\n".to_vec()
        }
        b"delete" => match held.remove(&key) {
            Some(_) => b"DELETED\r\n".to_vec(),
            None => b"NOT_FOUND\r\n".to_vec(),
        },
        b"incr" | b"decr" => count(held.get_mut(&key), words[2], words[0] == b"incr"),
        _ => b"ERROR\r\n".to_vec(),
    })
}

fn memcached(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    memcache(from, records, false)
}

fn memcachedb(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    memcache(from, records, true)
}

const SMALL: [&str; 5] = ["run", "fans", "--profiles", "30", "--blocks"];

/// Refused without a word of the owner's, measured with it, and left as it was.
fn is_measured(scheme: &str, port: u16, records: &Records) -> Value {
    let (desk, url) = (Desk::new(), format!("{scheme}://127.0.0.1:{port}"));
    let said = desk.run(&[&SMALL[..], &["1", &url]].concat());
    said.exits(1).shows("cannot say whether it is empty").shows("--accept-unchecked");
    records.lock().expect("records").insert(b"theirs".to_vec(), b"1".to_vec());
    desk.run(&[&SMALL[..], &["2", "--accept-unchecked", "--output", "job.jsonl", &url]].concat()).exits(0);
    let requests = ["run", "getset", "--clients", "2", "--requests", "500", "--records", "100", "--blocks", "1"];
    desk.run(&[&requests[..], &["--accept-unchecked", &url]].concat()).exits(0);
    let left: Vec<Vec<u8>> = records.lock().expect("records").drain().map(|(key, _)| key).collect();
    assert_eq!(left, [b"theirs".to_vec()], "only our own keys are deleted");
    crate::common::desk::records_in(&desk.home().join("job.jsonl")).remove(0)
}

#[test]
fn a_redis_that_tells_nothing_is_measured_and_its_version_is_unknown() {
    let (port, records) = serve(resp);
    let record = is_measured("redis", port, &records);
    assert_eq!(record["store"]["version"], "unknown");
    assert_eq!(record["keeps"], "as its owner has it");
    let record = is_measured("valkey", port, &records);
    assert_eq!(record["store"]["version"], "unknown", "no product is assumed");
}

#[test]
fn a_memcached_without_statistics_is_measured() {
    let (port, records) = serve(memcached);
    let record = is_measured("memcached", port, &records);
    assert!(record["store"]["settings"].get("maxbytes").is_none(), "{}", record["store"]);
    assert_eq!(record["room"]["policy"], Value::Null, "whether it evicts is not known");
    assert_eq!(record["room"]["evicted"], Value::Null);
}

/// With the statistics that its durability level is read from, and without any.
#[test]
fn a_memcachedb_by_url_is_measured_where_its_owner_accepts_it() {
    for talk in [memcachedb as Talk, memcached] {
        let (port, records) = serve(talk);
        is_measured("memcachedb", port, &records);
    }
    let url = format!("memcachedb://127.0.0.1:{}", serve(memcached).0);
    let desk = Desk::new();
    desk.run(&[&SMALL[..], &["1", "--accept-unchecked", "--durability", "crash", &url]].concat()).exits(1);
    assert!(desk.reason(&url).contains("does not tell txn_nosync"), "{}", desk.reason(&url));
}

/// Nobody knows how many records it holds; but a key that the job would overwrite is found before it is written.
#[test]
fn what_a_job_would_overwrite_is_found_before() {
    let (port, records) = serve(resp);
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{port}");
    let page = b"Michael Jackson".to_vec();
    records.lock().expect("records").insert(page.clone(), b"theirs".to_vec());
    let said = desk.run(&[&SMALL[..], &["1", "--accept-unchecked", &url]].concat());
    let out = one_line(&said.exits(1).out);
    assert!(out.contains("it holds the key \"Michael Jackson\", which this job would overwrite"), "{out}");
    let held = records.lock().expect("records").clone();
    assert_eq!(held, HashMap::from([(page, b"theirs".to_vec())]));
}

/// So many gets have come at once.
static MOST_AT_ONCE: AtomicU32 = AtomicU32::new(0);

fn counts_gets(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    has(from, b"GET\r\n")?;
    let gets = from.buffer().windows(5).filter(|part| part == b"GET\r\n").count();
    MOST_AT_ONCE.fetch_max(gets as u32, Ordering::Relaxed);
    resp(from, records)
}

/// One at a time would take as many journeys as there are keys, before each trial.
#[test]
fn keys_that_a_job_would_overwrite_are_asked_for_many_at_once() {
    let (port, records) = serve(counts_gets);
    let url = format!("redis://127.0.0.1:{port}");
    Desk::new().run(&[&SMALL[..], &["1", "--accept-unchecked", &url]].concat()).exits(0);
    assert!(MOST_AT_ONCE.load(Ordering::Relaxed) > 20, "{MOST_AT_ONCE:?}");
    assert!(records.lock().expect("records").is_empty());
}

/// What is no string is no less its owner's.
#[test]
fn a_list_under_a_key_of_the_job_is_found_before_too() {
    let server = crate::common::start("redis", kvfair::model::trial::Transport::Tcp);
    let ask = |command: &str| crate::cli::strangers::ask(&server, command);
    assert_eq!(ask("RPUSH \"Michael Jackson\" theirs"), ":1");
    assert_eq!(ask("ACL SETUSER default -dbsize"), "+OK");
    let url = format!("redis://127.0.0.1:{}", crate::cli::strangers::port_of(&server));
    let said = Desk::new().run(&[&SMALL[..], &["1", "--accept-unchecked", &url]].concat());
    said.exits(1).shows("Michael Jackson").shows("WRONGTYPE");
    assert_eq!(ask("LLEN \"Michael Jackson\""), ":1", "it is as it was");
}

/// Values that are put into a table do not come back: the reason is told, and not what becomes of each value.
#[test]
#[cfg(target_os = "linux")]
fn a_table_database_is_told_from_one_that_keeps_values() {
    needs!(Need::server("tokyotyrant"));
    for (file, words) in [("x.tct", "is a table database (.tct)"), ("x.tcf", "is a fixed-length database (.tcf)")] {
        let desk = Desk::new();
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let server = Started::new(desk.command("ttserver", &["-host", "127.0.0.1", "-port", &port.to_string(), file]));
        crate::common::desk::wait_for("ttserver", || TcpStream::connect(("127.0.0.1", port)).ok());
        let url = format!("tokyotyrant://127.0.0.1:{port}");
        let checked = desk.run(&["check", &url]);
        checked
            .exits(1)
            .shows("could not be checked")
            .shows(words)
            .shows("start ttserver with '*', a .tch or a .tcb file");
        let run = desk.run(&[&SMALL[..], &["1", &url]].concat());
        run.exits(1).shows("refused: ").shows(words).shows("start ttserver with '*', a .tch or a .tcb file");
        crate::common::desk::signal(server.id(), nix::sys::signal::Signal::SIGKILL);
        server.wait();
    }
}

/// A server that tells nothing of itself is checked all the same. Each command that it does not know is told once, as
/// what was not asked, and is no fault of its own.
#[test]
fn a_server_that_tells_nothing_is_checked_and_not_asked_what_it_does_not_know() {
    for (port, scheme, not_asked) in [
        (
            serve(resp).0,
            "redis",
            ["set-if-absent: ERR unknown command 'SET'", "get-version: ERR unknown command 'WATCH'"],
        ),
        (
            serve(memcached).0,
            "memcached",
            ["get-version: the server does not know its command (ERROR)", "memcached has no read-tally"],
        ),
    ] {
        let said = Desk::new().run(&["check", "--accept-unchecked", &format!("{scheme}://127.0.0.1:{port}")]);
        let out = one_line(&said.exits(0).out);
        let (faults, told) = out.split_once("not asked: ").unwrap_or_else(|| panic!("{out}"));
        assert!(!faults.contains("unknown command") && !faults.contains("ERROR"), "{out}");
        for words in not_asked {
            assert_eq!(told.matches(words).count(), 1, "{words}: {out}");
        }
    }
}

/// Speaks the protocol and knows no command at all.
fn knows_nothing(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    let is_ping = has(from, b"PING\r\n")?;
    let answer = resp(from, records)?;
    Some(if is_ping { answer } else { b"-ERR unknown command\r\n".to_vec() })
}

#[test]
fn who_answers_no_probe_is_not_right() {
    let url = format!("redis://127.0.0.1:{}", serve(knows_nothing).0);
    let said = Desk::new().run(&["check", "--accept-unchecked", &url]);
    said.exits(1).shows("could not be checked: it cannot be asked: set: refused: ERR unknown command");
    assert!(!said.out.contains("all right"), "{}", said.out);
}

/// Whether the next command has these bytes in it.
fn has(from: &mut BufReader<TcpStream>, bytes: &[u8]) -> Option<bool> {
    Some(from.fill_buf().ok()?.windows(bytes.len()).any(|part| part == bytes))
}

#[track_caller]
fn checked(talk: Talk) -> String {
    let url = format!("redis://127.0.0.1:{}", serve(talk).0);
    one_line(&Desk::new().run(&["check", "--accept-unchecked", &url]).exits(4).out)
}

/// Answers whatever gets or sets with one error, but for the key that is set before the first probe.
fn loading(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    let is_loading = has(from, b"ET\r\n")? && !has(from, b"kvfair:check:first")?;
    let answer = resp(from, records)?;
    Some(if is_loading { b"-LOADING the dataset is in memory soon\r\n".to_vec() } else { answer })
}

#[test]
fn one_cause_that_many_probes_meet_is_one_line() {
    let out = checked(loading);
    assert_eq!(out.matches("LOADING").count(), 1, "{out}");
    let more = out.split(" ... and ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    assert!(more > Some(20), "{out}");
    // The first of the others are named.
    let named = out.split(" more: ").nth(1).expect("names");
    assert!(named.split("; ").count() > 5 && named.contains("; and ") && named.contains(" others"), "{out}");
}

/// Refuses to set what is to be deleted.
fn refuses_a_step(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    let is_step = has(from, b"SET\r\n")? && has(from, b"kvfair:check:delete:k")?;
    let answer = resp(from, records)?;
    Some(if is_step { b"-OOM not now\r\n".to_vec() } else { answer })
}

/// Who needs an op in order to ask for another is not to blame where the first one fails.
#[test]
fn a_probe_is_not_blamed_for_what_it_needs() {
    let out = checked(refuses_a_step);
    assert!(out.contains("WRONG set, needed by delete, then get: sent set \"kvfair:check:delete:k\""), "{out}");
    assert!(out.contains("refused: OOM not now") && !out.contains("WRONG delete, then get"), "{out}");
}

/// Of some hundred increments from several clients one is lost.
fn loses_now_and_then(from: &mut BufReader<TcpStream>, records: &Records) -> Option<Vec<u8>> {
    static COUNTED: AtomicU32 = AtomicU32::new(0);
    let key = b"kvfair:check:sum:n";
    if !has(from, b"INCRBY\r\n")? || !has(from, key)? {
        return resp(from, records);
    }
    let before = records.lock().expect("no thread panics with it in hand").get(&key[..]).cloned();
    let answer = resp(from, records);
    // Also where another client has counted meanwhile.
    if let (true, Some(before)) = (COUNTED.fetch_add(1, Ordering::Relaxed) % 500 == 499, before) {
        records.lock().expect("no thread panics with it in hand").insert(key.to_vec(), before);
    }
    answer
}

#[test]
fn a_server_that_loses_an_increment_now_and_then_is_found() {
    let out = checked(loses_now_and_then);
    assert!(out.contains("WRONG several clients on one counter: sent increment"), "{out}");
}
