//! Whose memory and CPU stand in a row.

use kvfair::model::trial::Transport;
use kvfair::model::units;
use serde_json::Value;

use crate::cli::strangers::port_of;
use crate::common;
use crate::common::desk::{Desk, Started};

const SMALL: [&str; 5] = ["run", "fans", "--profiles", "200", "--blocks"];

fn held(record: &Value, of: &str, what: &str) -> u64 {
    record["memory"][of][what].as_u64().unwrap_or_else(|| panic!("no {of} {what}: {}", record["memory"]))
}

#[test]
#[cfg(target_os = "linux")]
fn maps_of_files_are_no_memory_and_shared_buffers_are() {
    let desk = Desk::new();
    let said = desk.run(&[&SMALL[..], &["1", "lmdb", "postgres"]].concat());
    said.exits(0).shows("CPU us/op memory mapped disk");
    desk.run(&["show", "--all"]).exits(0).shows("CPU us/op memory mapped disk");
    let (lmdb, postgres) = (desk.record("lmdb"), desk.record("postgres"));
    assert_eq!(held(&lmdb, "client", "shared_bytes"), 0, "its file is mapped, on tmpfs too");
    assert!(
        held(&lmdb, "client", "file_bytes") > lmdb["bytes_on_disk"].as_u64().expect("bytes") / 2,
        "{}",
        lmdb["memory"]
    );
    let mapped = units::bytes(held(&lmdb, "client", "file_bytes"));
    let row = said.out.lines().find(|line| line.trim_start().starts_with("lmdb ")).expect("a row");
    assert!(row.contains(&format!("  {mapped}  ")), "{mapped}: {row}");
    assert!(held(&postgres, "server", "shared_bytes") > 5_000_000, "{}", postgres["memory"]);
    let rows = desk.rows();
    let row = rows.iter().find(|row| row["target"] == "postgres").expect("a row");
    assert_eq!(row["shared_bytes"], postgres["memory"]["server"]["shared_bytes"]);
}

/// The client's memory is not the server's: a neighbour's own is seen, and of any other server nothing is.
#[test]
#[cfg(target_os = "linux")]
fn a_row_of_a_url_has_the_servers_memory_or_none() {
    let desk = Desk::new();
    for store in ["redis", "memcached"] {
        let server = common::start(store, Transport::Tcp);
        let url = format!("{store}://127.0.0.1:{}", port_of(&server));
        let said = desk.run(&[&SMALL[..], &["1", "--wide", &url, "--output", &format!("{store}.jsonl")]].concat());
        said.exits(0).shows(&format!("{url}: on this machine, not started by kvfair"));
        let record = desk.record_in(&format!("{store}.jsonl"));
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
        let rss = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
        let rss_bytes = rss.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10;
        let seen = held(&record, "server", "anonymous_bytes");
        assert!(seen.abs_diff(rss_bytes) < rss_bytes / 4 + (1 << 20), "{store}: {seen} and {rss_bytes}");
        let run = record["phases"].as_array().expect("phases").iter().find(|phase| phase["name"] == "run");
        assert!(run.expect("a run")["server"]["user_s"].as_f64().is_some(), "{store}: its CPU is known");
        assert!(!run.expect("a run")["store_by_second"].is_null());
    }
}

/// Who listens is found by its socket, also where it says nothing of its process, or has one for each connection.
#[test]
#[cfg(target_os = "linux")]
fn a_server_is_found_by_what_it_listens_on() {
    let desk = Desk::new();
    let redis = common::start("redis", Transport::Unix);
    let kvfair::stores::Place::Unix(socket) = &redis.launch.place else { panic!("not in a file") };
    let user = ["ACL", "SETUSER", "default", "-info"];
    desk.command("redis-cli", &[&["-s", socket.to_str().expect("a path")], &user[..]].concat()).status().expect("set");
    let postgres = common::start("postgres", Transport::Tcp);
    let urls = [
        format!("redis+unix://{}", socket.display()),
        format!("postgres://postgres@127.0.0.1:{}/postgres", port_of(&postgres)),
    ];
    let run = [&SMALL[..], &["1", "--wide", "--accept-unchecked", "--output", "found.jsonl"]].concat();
    let said = desk.run(&[&run[..], &urls.each_ref().map(String::as_str)].concat());
    said.exits(0).shows("all that its process redis-server does").shows("all that its process postgres does");
    let records = crate::common::desk::records_in(&desk.home().join("found.jsonl"));
    assert_eq!(records.len(), 2);
    for record in records {
        assert!(held(&record, "server", "anonymous_bytes") > 500_000, "{}", record["memory"]);
        if record["target"]["store"] == "postgres" {
            assert!(held(&record, "server", "shared_bytes") > 5_000_000, "{}", record["memory"]);
        }
        let run = record["phases"].as_array().expect("phases").iter().find(|phase| phase["name"] == "run");
        let server = &run.expect("a run")["server"];
        let cpu_s = server["user_s"].as_f64().zip(server["system_s"].as_f64()).map(|(user, system)| user + system);
        assert!(cpu_s > Some(0.0), "{server}");
    }
}

/// Behind a relay nothing that we see is the server.
#[test]
fn of_a_server_that_cannot_be_seen_nothing_is_told() {
    let server = common::start("redis", Transport::Tcp);
    let relay = relay_to(port_of(&server));
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{relay}");
    let said = Started::new(desk.kvfair(&[&SMALL[..], &["1", &url]].concat())).wait();
    said.exits(0);
    let whole = desk.run(&["show", "--wide"]);
    assert!(!whole.exits(0).out.contains("on this machine, not started"), "{}", whole.out);
    let record = desk.record(&url);
    assert_eq!(record["memory"]["server"], Value::Null);
    let numbers = &desk.rows()[0];
    assert!(numbers["anonymous_bytes"].is_null() && numbers["file_bytes"].is_null(), "{numbers}");
    assert_eq!(numbers["client_anonymous_bytes"], record["memory"]["client"]["anonymous_bytes"]);
    let row = said.out.lines().find(|line| line.contains(&url) && line.contains(" %")).expect("a row");
    let last: Vec<&str> = row.split_whitespace().rev().take(2).collect();
    assert_eq!(last, ["-", "-"], "{row}");
}

/// A port from which all bytes go to another one and back.
fn relay_to(port: u16) -> u16 {
    use std::net::{TcpListener, TcpStream};
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for from in listener.incoming().flatten() {
            let to = TcpStream::connect(("127.0.0.1", port)).expect("the server");
            for (mut one, mut other) in
                [(from.try_clone().expect("a socket"), to.try_clone().expect("a socket")), (to, from)]
            {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut one, &mut other);
                    let _ = other.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    own
}
