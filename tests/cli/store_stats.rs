//! What the stores say of themselves, from the store to the record and to the lines below a table.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use kvfair::model::trial::Transport;
use kvfair::stores::Place;
use serde_json::Value;

use crate::common::desk::{Desk, one_line};
use crate::common::{self, Running};

/// One of a store's own counters in its last record: before what is measured and after it.
fn counter(desk: &Desk, target: &str, name: &str) -> (f64, f64) {
    let record = desk.record(target);
    let number =
        |place: usize| record["store_stats"][name][place].as_f64().unwrap_or_else(|| panic!("{target}: no {name}"));
    (number(0), number(1))
}

/// Loading comes before the first look; every set of every point, and nothing else, between the two.
#[test]
fn counters_are_read_after_loading_and_after_all_points() {
    let desk = Desk::new();
    let small = ["run", "getset", "--blocks", "1", "--only", "set", "--records", "50", "--requests", "60"];
    let rest = ["--clients", "1,2", "--durability", "power", "rocksdb", "lmdb", "cached:rocksdb"];
    desk.run(&[&small[..], &rest].concat()).exits(0);
    assert_eq!(counter(&desk, "rocksdb", "Cumulative WAL syncs"), (50.0, 170.0));
    let (before, after) = counter(&desk, "lmdb", "me_last_txnid");
    assert_eq!(after - before, 120.0);
    // What a cache holds back until the final flush goes to the store in that time.
    let (_, after) = counter(&desk, "cached:rocksdb", "Cumulative writes keys");
    assert!((50.0..=170.0).contains(&after), "{after}");
}

/// A store that lets nothing expire is asked through another, which must hand them on.
#[test]
fn counters_come_through_what_stands_before_a_store() {
    let desk = Desk::new();
    desk.file("ten.lis", "1 10 0 0\n");
    desk.run(&["run", "trace", "--blocks", "1", "--input", "ten.lis", "rocksdb", "cached:rocksdb"]).exits(0);
    for target in ["rocksdb", "cached:rocksdb"] {
        assert_eq!(counter(&desk, target, "Cumulative writes keys"), (0.0, 10.0), "{target}");
    }
}

#[test]
fn what_grew_stands_below_a_wide_table_and_nowhere_else() {
    let desk = Desk::new();
    let run = ["run", "getset", "--blocks", "3", "--records", "50", "--requests", "60", "--clients", "1"];
    let rest = ["--durability", "power", "rocksdb", "redis+unix", "mariadb+unix"];
    let said = desk.run(&[&run[..], &rest].concat());
    said.exits(0);
    assert!(!one_line(&said.out).contains("say of themselves"), "{}", said.out);
    let wide = desk.run(&["show", "--wide"]);
    wide.exits(0).shows("what the stores say of themselves").shows("(medians of the trials that count");
    wide.shows("rocksdb: syncs of the log +60 (Cumulative WAL syncs)");
    wide.shows("redis+unix: bytes of log +").shows("(aof_current_size)");
    wide.shows("mariadb+unix: syncs of files +").shows("(Innodb_data_fsyncs)");
    let section = wide.out.split("what the stores say").nth(1).and_then(|rest| rest.split("answers:").next());
    let section = section.expect("a section");
    assert!(section.lines().all(|line| line.chars().count() <= 100), "{section}");

    desk.run(&["run", "getset", "--blocks", "1", "--requests", "60", "--clients", "1", "ram", "null"]).exits(0);
    for control in ["ram", "null"] {
        assert_eq!(desk.record(control)["store_stats"], Value::Object(Default::default()), "{control}");
    }
    let wide = desk.run(&["show", "--wide"]);
    assert!(!one_line(&wide.exits(0).out).contains("say of themselves"), "{}", wide.out);
}

/// A real server behind one who answers in its place when it is asked for all of its counters.
fn behind(server: &Running, answer: String) -> String {
    let Place::Tcp { port: real, .. } = server.launch.place else { panic!("a server at a port") };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let real = TcpStream::connect(("127.0.0.1", real)).expect("the test's own server");
            let (mut back, mut to_client) = (real.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
            std::thread::spawn(move || io::copy(&mut back, &mut to_client));
            let answer = answer.clone();
            std::thread::spawn(move || pass_on(client, real, answer.as_bytes()));
        }
    });
    format!("redis://127.0.0.1:{port}/3")
}

fn pass_on(mut client: TcpStream, mut real: TcpStream, answer: &[u8]) -> io::Result<()> {
    let mut received = [0; 4096];
    loop {
        let count = client.read(&mut received)?;
        if count == 0 {
            return real.shutdown(std::net::Shutdown::Both);
        }
        match received[..count].ends_with(b"\r\nall\r\n") {
            true => client.write_all(answer)?,
            false => real.write_all(&received[..count])?,
        }
    }
}

#[test]
fn a_server_that_lies_about_its_counters_or_keeps_them_to_itself_fails_no_trial() {
    let server = common::start("redis", Transport::Tcp);
    let lies = "evicted_keys:3\r\nrequirepass:hunter2\r\n\u{1b}[2J\u{1b}[31mx:4\r\n";
    let liar = behind(&server, format!("${}\r\n{lies}\r\n", lies.len()));
    let mute = behind(&server, "-NOPERM hands off \u{1b}[2J\r\n".to_string());
    let desk = Desk::new();
    for (url, name) in [(liar, "liar"), (mute, "mute")] {
        let url = format!("{url}?name={name}");
        let run = ["run", "getset", "--blocks", "1", "--records", "50", "--requests", "60", "--clients", "2", "--wide"];
        let said = desk.run(&[&run[..], &[&url]].concat());
        said.exits(0);
        assert_eq!(desk.record(name)["verdict"]["kind"], "right");
        assert!(!format!("{}{}", said.out, desk.record(name)).contains(['\u{1b}']), "{}", said.out);
        match name {
            "liar" => {
                let told = desk.record(name)["store_stats"].as_object().expect("counters").clone();
                let names: Vec<&String> = told.keys().collect();
                assert_eq!(names, ["?[2J?[31mx", "evicted_keys"]);
                said.shows("liar: nothing of note");
            }
            _ => {
                assert_eq!(desk.record(name)["store_stats"], Value::Object(Default::default()));
                said.shows("mute: could not be asked: ").shows("NOPERM hands off");
            }
        }
    }
}
