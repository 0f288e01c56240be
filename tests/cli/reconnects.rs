//! Connections that a server cuts: the end of a trial, or opened again where that was asked for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use kvfair::model::trial::Transport;
use kvfair::stores::Place;
use serde_json::Value;

use crate::common::desk::{Desk, Said, Started};
use crate::common::needs::{Need, needs};
use crate::common::{self, Running};

/// So many connections that set or get are cut while a run goes on, a few at a time.
const CUTS: u64 = 12;

/// Asks the server one thing that is answered with a text or a number.
fn tell(stream: &mut BufReader<TcpStream>, words: &str) -> String {
    stream.get_mut().write_all(format!("{words}\r\n").as_bytes()).expect("the server listens");
    let mut line = String::new();
    stream.read_line(&mut line).expect("an answer");
    let Some(length) = line.strip_prefix('$') else { return line };
    let mut text = vec![0; length.trim().parse::<usize>().expect("a length") + 2];
    stream.read_exact(&mut text).expect("the rest of the answer");
    String::from_utf8(text).expect("a text")
}

/// Cuts connections of clients at their work until there are so many cuts, or until kvfair has ended.
fn cut(server: &Running, kvfair: &mut Started) -> u64 {
    let Place::Tcp { host, port } = &server.launch.place else { panic!("a server on a port") };
    let mut stream = BufReader::new(TcpStream::connect((host.as_str(), *port)).expect("a connection"));
    let mut cuts = 0;
    while cuts < CUTS && kvfair.is_running() {
        let clients = tell(&mut stream, "CLIENT LIST");
        let at_work = clients
            .lines()
            .filter(|line| [" cmd=set ", " cmd=get ", " cmd=mget ", " cmd=mset "].iter().any(|cmd| line.contains(cmd)));
        let ids = at_work.filter_map(|line| line.split([' ', '=']).nth(1)).map(str::to_string).take(3);
        for id in ids.collect::<Vec<_>>() {
            cuts += u64::from(tell(&mut stream, &format!("CLIENT KILL ID {id}")).starts_with(":1"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    cuts
}

/// What kvfair says while somebody cuts its connections, and how many were cut.
fn run_with_cuts(desk: &Desk, arguments: &[&str]) -> (Said, u64) {
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://{}?name=mine", server.launch.place);
    let mut kvfair =
        Started::new(desk.kvfair(&[&["run"], arguments, &["--blocks", "1", "--records", "300", &url]].concat()));
    let cuts = cut(&server, &mut kvfair);
    let said = kvfair.wait();
    assert_eq!(server.open().count().unwrap(), Some(0), "what was written is taken back");
    (said, cuts)
}

fn reconnects(record: &Value) -> u64 {
    record["phases"]
        .as_array()
        .expect("phases")
        .iter()
        .map(|phase| phase["reconnects"].as_u64().expect("a count"))
        .sum()
}

/// What was under way is asked again, and the end state is right all the same.
#[test]
fn cut_connections_are_opened_again_where_that_was_asked_for() {
    for run in [
        &["getset", "--clients", "5", "--requests", "50000"][..],
        &["getset", "--clients", "3", "--batch", "20", "--requests", "200000"],
        &["mixed", "--depth", "16", "--writes", "50", "--requests", "250000"],
        &["mixed", "--rate", "5k", "--writes", "50", "--requests", "7500"],
        &["ycsb-d", "--requests", "50000"],
        &["ycsb-f", "--depth", "4", "--requests", "75000"],
    ] {
        let desk = Desk::new();
        let (said, cuts) = run_with_cuts(&desk, &[run, &["--reconnect"]].concat());
        said.exits(0).shows("were lost and opened again").shows("every get was right");
        let record = desk.record("mine");
        let count = reconnects(&record);
        // Who was cut in the moment of his end has nothing more to ask.
        assert!(count > CUTS / 2 && count <= cuts, "{run:?}: {count} of {cuts} cuts");
        assert_eq!((&record["verdict"]["kind"], &record["job"]["load"]["reconnect"]), (&"right".into(), &true.into()));
        desk.run(&["show", "--wide"]).exits(0).shows(" connections were lost and opened again (").shows("in block 1, ");
    }
}

#[test]
fn a_cut_connection_is_the_end_where_nothing_was_said() {
    for rate in [&["--requests", "500000"][..], &["--requests", "15000", "--rate", "5k"]] {
        let desk = Desk::new();
        let (said, _) = run_with_cuts(&desk, &[&["mixed"], rate].concat());
        said.exits(1);
        let reason = desk.reason("mine");
        assert!(reason.starts_with("failed: after ") && reason.contains("connection lost: "), "{reason}");
    }
}

#[test]
fn who_has_no_connections_of_ours_cannot_open_them_again() {
    needs!(Need::server("ferretdb"));
    let desk = Desk::new();
    let small = ["run", "mixed", "--blocks", "1", "--records", "50", "--requests", "200", "--reconnect"];
    let said = desk.run(&[&small[..], &["redis+unix", "lmdb", "ferretdb", "cached:redis"]].concat());
    said.exits(1).shows("ferretdb is not reached by connections of our own: it has no --reconnect");
    assert!(desk.reason("cached:redis").starts_with("refused: "));
    for target in ["redis+unix", "lmdb"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
    assert!(!said.out.contains("opened again"));
    desk.run(&["run", "fans", "--reconnect", "ram"]).exits(2).complains("--reconnect is no option of the job fans");
}
