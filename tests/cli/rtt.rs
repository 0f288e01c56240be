//! A network between client and server: a proxy that delays, what it costs, and what it tells.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use kvfair::model::trial::Transport;
use kvfair::stores::Place;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::cli::seeds::quiet;
use crate::common;
use crate::common::desk::{Desk, Started, one_line, records_in, wait_for};
use crate::common::needs::{Need, needs, servers_here};

const FANS: &[&str] = &["run", "fans", "--profiles", "15", "--blocks", "1"];

fn run_of(record: &Value) -> &Value {
    record["phases"].as_array().expect("phases").iter().find(|phase| phase["name"] == "run").expect("a run")
}

fn cpu_s(usage: &Value) -> f64 {
    usage["user_s"].as_f64().expect("seconds") + usage["system_s"].as_f64().expect("seconds")
}

#[test]
fn a_round_trip_is_owed_by_each_question_and_a_row_at_0_goes_through_the_proxy_too() {
    let desk = Desk::new();
    let said = desk.run(&[FANS, &["redis", "redis+unix", "lmdb", "null", "--rtt", "0,2ms", "--wide"]].concat());
    said.exits(0).shows("round trips of 0, 2 ms by a proxy").shows("No network: lmdb, null");
    said.shows("a proxy of kvfair's on the client's processors");
    let records = desk.records();
    assert_eq!(records.len(), 2 * 2 + 2, "stores without a network once");
    for record in &records {
        let (run, network, target) = (run_of(record), &record["network"], &record["target"]["label"]);
        if record["target"]["transport"] == "in-process" {
            assert!(network.is_null() && run["proxy"].is_null(), "{target}: {network}");
            continue;
        }
        let (rtt_us, took_s) = (network["rtt_us"].as_u64().expect("a time"), run["took_s"].as_f64().expect("seconds"));
        let owed_s = run["ops"].as_f64().expect("ops") * rtt_us as f64 / 1e6;
        assert!(took_s >= owed_s * 0.98, "{target} at {rtt_us} us: {took_s} s, and {owed_s} s are owed");
        let owed_at_2_ms_s = run["ops"].as_f64().expect("ops") * 2e-3;
        assert!(rtt_us > 0 || took_s < owed_at_2_ms_s, "{target}: {took_s} s without a delay");
        let moved = run["bytes_out"].as_u64().expect("bytes") + run["bytes_in"].as_u64().expect("bytes");
        assert!(network["bytes"].as_u64().expect("bytes") > moved, "{target}: {network}");
        let (own_us, ping_us) = (network["own_us"].as_f64(), network["ping_us"].as_f64());
        assert!(own_us.is_some() && ping_us >= Some(rtt_us as f64), "{target}: {network}");
        assert!(cpu_s(&run["proxy"]) > 0.0, "{target}: {}", run["proxy"]);
    }
    assert!(records.iter().all(|record| record["run"]["rtts_us"] == json!([0, 2_000])), "{records:?}");
    let rows = desk.rows();
    let row = |target: &str, rtt_us: u64| {
        rows.iter().find(|row| row["target"] == target && row["rtt_us"] == rtt_us).expect("a row").clone()
    };
    assert_eq!(row("lmdb", 0)["took_s"], row("lmdb", 2_000)["took_s"], "the same trial in both");
    assert!(row("lmdb", 0)["round_trips"].is_null() && row("lmdb", 0)["proxy_cpu_us_per_op"].is_null());
    each_op_waits_for_one_round_trip(&desk, records);
    assert_eq!(desk.run(&["show", "--wide"]).exits(0).out, said.out, "the same from the file");
    desk.run(&["show", "--all"]).exits(0).shows("rtt us");
    let csv = desk.run(&["show", "--all", "--csv"]).exits(0).out.clone();
    assert_eq!(csv.lines().count(), 1 + 6, "{csv}");
    desk.run(&["show", "--markdown"]).exits(0).shows("| target | 0 ms | vs best | 2 ms | vs best | round trips |");
    desk.run(&["show", "--wide"]).exits(0).shows("2 ms:");
    desk.run(&["show", "--svg", "chart.svg"]).exits(1).complains("several sizes or round-trip times");
    desk.run(&["show", "--html", "page.html"]).exits(0);
    let page = std::fs::read_to_string(desk.home().join("page.html")).expect("a page");
    assert!(page.contains("\"rtts_us\":[0,2000]") && page.contains("round trips"), "{page}");
}

/// As it is shown of records that took no longer than their round trips.
fn each_op_waits_for_one_round_trip(desk: &Desk, mut records: Vec<Value>) {
    for record in records.iter_mut().filter(|record| record["target"]["label"] == "redis") {
        let rtt_s = record["network"]["rtt_us"].as_f64().expect("a time") / 1e6;
        for phase in record["phases"].as_array_mut().expect("phases") {
            phase["took_s"] = json!(1.0 + phase["ops"].as_f64().unwrap_or(0.0) * rtt_s);
        }
    }
    let rows = desk.json(&[desk.file("owed.jsonl", lines(&records))])["rows"].clone();
    let is_far = |row: &&Value| row["target"] == "redis" && row["rtt_us"] == 2_000;
    let row = rows.as_array().expect("rows").iter().find(is_far).expect("a row");
    let share = row["round_trips"].as_f64().expect("round trips") / row["ops"].as_f64().expect("ops");
    assert!((share - 1.0).abs() < 0.01, "{row}");
}

/// A results file of these records.
fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Client libraries are delayed as our own codecs are, and so is a server with a processor of its own.
#[test]
fn whatever_speaks_to_a_server_goes_through_the_proxy() {
    needs!(Need::processors(2));
    let desk = Desk::new();
    let few = ["run", "fans", "--profiles", "5", "--blocks", "1", "--rtt", "2ms"];
    desk.run(&[&few[..], &servers_here(&["mariadb", "postgres", "ferretdb", "cassandra"])].concat()).exits(0);
    let of_all = desk.records().len();
    desk.run(&[&few[..], &["--pin"], &servers_here(&["mariadb", "redis"])].concat())
        .exits(0)
        .shows("client on processor");
    assert!(desk.records().len() > of_all);
    for record in desk.records() {
        let (run, target) = (run_of(&record), &record["target"]["label"]);
        let took_s = run["took_s"].as_f64().expect("seconds");
        assert!(took_s >= run["ops"].as_f64().expect("ops") * 0.98 * 2e-3, "{target}: {run}");
        assert!(cpu_s(&run["proxy"]) > 0.0, "{target}: {}", run["proxy"]);
        assert_eq!(record["verdict"]["kind"], "right", "{target}: {}", record["outcome"]);
    }
}

/// A batch has its questions under way together: it is delayed once.
#[test]
fn what_is_asked_together_waits_for_one_round_trip() {
    let desk = Desk::new();
    let said = desk.run(&[FANS, &["redis", "--via", "portable,batch", "--rtt", "0,5ms", "--wide"]].concat());
    said.exits(0).shows("At 5 ms redis one by one takes");
    let took_s = |label: &str| {
        let of = |record: &&Value| record["target"]["label"] == label && record["network"]["rtt_us"] == 5_000;
        run_of(desk.records().iter().find(of).expect("a record"))["took_s"].as_f64().expect("seconds")
    };
    assert!(took_s("redis") > 3.0 * took_s("redis batch"), "{} and {}", took_s("redis"), took_s("redis batch"));
    let asked =
        ["run", "getset", "redis", "--clients", "1", "--depth", "100", "--records", "1000", "--requests", "2000"];
    desk.run(&[&asked[..], &["--blocks", "1", "--rtt", "5ms", "--output", "deep.jsonl"]].concat()).exits(0);
    let record = &records_in(&desk.home().join("deep.jsonl"))[0];
    let phases = record["phases"].as_array().expect("phases");
    let names: Vec<&Value> = phases.iter().map(|phase| &phase["name"]).collect();
    assert_eq!(names, ["load", "set", "get", "final_flush"]);
    for phase in phases.iter().filter(|phase| phase["name"] != "final_flush") {
        let (took_s, ops) = (phase["took_s"].as_f64().expect("seconds"), phase["ops"].as_f64().expect("ops"));
        // A hundred at a time owe one round trip of 5 ms, and a hundred of them one by one.
        let owed_one_by_one_s = ops * 5e-3;
        assert!(phase["name"] == "load" || took_s >= owed_one_by_one_s / 100.0 * 0.98, "{phase}");
        assert!(took_s < owed_one_by_one_s, "{phase}");
    }
}

#[test]
fn a_server_by_url_is_reached_through_the_proxy_and_left_empty() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let Place::Tcp { port, .. } = &server.launch.place else { panic!("a port") };
    let url = format!("redis://127.0.0.1:{port}");
    let said = desk.run(&[FANS, &[url.as_str(), "--rtt", "1ms", "--wide", "--output", "out.jsonl"]].concat());
    said.exits(0).shows("a round trip of 1 ms by a proxy").shows("on this machine, not started by kvfair");
    let record = &records_in(&desk.home().join("out.jsonl"))[0];
    let run = run_of(record);
    assert!(run["took_s"].as_f64().expect("seconds") >= run["ops"].as_f64().expect("ops") * 0.98e-3, "{run}");
    assert!(cpu_s(&run["server"]) > 0.0 && cpu_s(&run["proxy"]) > 0.0, "{run}");
    let rows = desk.json(&["out.jsonl"])["rows"].as_array().expect("rows").clone();
    assert_eq!(rows[0]["rtt_us"], 1_000);
    assert_eq!(server.open().count().expect("a count"), Some(0), "what was written is deleted");
    desk.run(&[FANS, &[url.as_str(), "--output", "plain.jsonl"]].concat()).exits(0);
    desk.run(&["compare", "plain.jsonl", "out.jsonl"]).exits(0).shows("another round-trip time: no --rtt and 1 ms");
}

/// Neither from other machines nor by other users: the proxy asks nobody for a password.
#[test]
fn a_proxy_lets_nobody_else_in() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "300", "--blocks", "1", "--output", "out.jsonl", "--rtt", "1ms"];
    let started = Started::new(desk.kvfair(&[&run[..], &["memcached"]].concat()));
    let proxy = wait_for("the proxy", || {
        let mut proxies =
            desk.processes().into_iter().filter(|pid| crate::common::desk::command_line(*pid).ends_with("proxy\0"));
        proxies.next_back().filter(|_| desk.trials().len() == 1)
    });
    let table = std::process::Command::new("ss").args(["-ltnpH"]).output().expect("ss");
    let table = String::from_utf8_lossy(&table.stdout).to_string();
    let line = table.lines().find(|line| line.contains(&format!("pid={proxy},"))).expect("it listens");
    let address = line.split_whitespace().nth(3).expect("an address");
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let mut ours = TcpStream::connect(address).expect("our own process is let in");
    ours.write_all(b"version\r\n").expect("it takes a question");
    let mut answer = [0; 7];
    std::io::Read::read_exact(&mut ours, &mut answer).expect("an answer");
    assert_eq!(&answer, b"VERSION");
    if nix::unistd::geteuid().is_root() {
        let port = address.rsplit(':').next().expect("a port");
        let asks = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'version\\r\\n' >&3; cat <&3");
        let mut other = std::process::Command::new("setpriv");
        other.args(["--reuid", "65534", "--clear-groups", "bash", "-c", &asks]).stdin(Stdio::null());
        let heard = other.output().expect("setpriv");
        assert_eq!(String::from_utf8_lossy(&heard.stdout), "", "another user hears nothing");
    }
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
    desk.is_swept();
}

#[test]
fn a_proxy_before_a_unix_socket_listens_in_a_directory_of_its_own() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "300", "--blocks", "1", "--output", "out.jsonl", "--rtt", "1ms"];
    let started = Started::new(desk.kvfair(&[&run[..], &["redis+unix"]].concat()));
    let directory = wait_for("the proxy's socket", || {
        let walk = std::process::Command::new("find").arg(desk.tmp()).args(["-type", "s", "-path", "*/p/s/*"]).output();
        let found = String::from_utf8_lossy(&walk.ok()?.stdout).lines().next()?.to_string();
        let path = std::path::PathBuf::from(found);
        path.metadata().ok()?.file_type().is_socket().then(|| path.parent().expect("a directory").to_path_buf())
    });
    assert_eq!(directory.metadata().expect("it is there").permissions().mode() & 0o777, 0o700);
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
    desk.is_swept();
    desk.no_process_is_left();
}

/// The other one takes half as long again without a delay and less over 1 ms, as a results file tells it.
#[test]
fn whose_order_changes_with_the_round_trip_is_said() {
    let desk = Desk::new();
    let run = ["run", "fans", "redis", "redis+unix", "--profiles", "10", "--blocks", "1", "--rtt", "0,1ms"];
    desk.run(&[&run[..], &["--output", "out.jsonl"]].concat()).exits(0);
    let mut records = six_blocks(&records_in(&desk.home().join("out.jsonl")));
    for record in &mut records {
        let is_far = record["network"]["rtt_us"] == 1_000;
        let factor = match record["target"]["label"] == "redis" {
            true if is_far => 0.7,
            true => 1.5,
            false => 1.0,
        };
        record["noise"] = quiet();
        let block = record["block"].as_f64().expect("a number");
        let took_s = if is_far { 10.0 } else { 2.0 } * factor * (1.0 + block / 1e4);
        for phase in record["phases"].as_array_mut().expect("phases") {
            phase["took_s"] = json!(took_s);
        }
    }
    let words = one_line(&desk.run(&["show", "--wide", desk.file("crossed.jsonl", lines(&records))]).out);
    assert!(words.contains("redis is faster than redis+unix at 1 ms, and slower at 0 ms"), "{words}");
}

/// The records of one block as those of six, with `redis` twice in each.
fn six_blocks(block: &[Value]) -> Vec<Value> {
    let mut records = Vec::new();
    for number in 1..=6 {
        for record in block {
            let mut record = record.clone();
            (record["block"], record["run"]["blocks"]) = (json!(number), json!(6));
            records.push(record.clone());
            if record["target"]["label"] == "redis" {
                record["aa_control"] = json!(true);
                records.push(record);
            }
        }
    }
    records
}

#[test]
fn what_cannot_be_delayed_is_refused_with_a_reason() {
    let desk = Desk::new();
    let bad = |more: &[&str], words: &str| {
        desk.run(&[&["run"], more].concat()).exits(2).complains(words);
    };
    let with = |times: &'static str| ["fans", "redis", "--rtt", times];
    bad(&with("9x"), "'9x' is no round-trip time, as in 0.2ms, 200us or 0");
    bad(&with("0.2"), "'0.2' is no round-trip time");
    bad(&["fans", "redis", "--rtt=-1ms"], "'-1ms' is no round-trip time");
    bad(&with("0.01ms"), "0.01ms is shorter than the timers of this system can keep: at least 0.05ms, or 0");
    bad(&with("2s"), "2s is longer than any round trip");
    bad(&with("1ms,1000us"), "1 ms is named twice");
    bad(&["fans", "lmdb", "null", "--rtt", "1ms"], "lmdb has no network: the store is in the client's own process");
    bad(&["fans", "redis", "--rtt", "0,1ms", "--profiles", "20,60"], "--rtt takes one time beside --profiles");
    bad(&["getset", "redis", "--clients", "1,5", "--rtt", "0,1ms"], "--rtt takes one time beside a sweep");
    bad(&["mixed", "redis", "--rate", "1k", "--rtt", "0,1ms"], "--rtt takes one time beside --rate");
    desk.run(&["compare", "fans", "--base", "redis", "--head", "valkey", "--rtt", "0,1ms"])
        .exits(2)
        .complains("compare takes one round-trip time");
    desk.run(&["levers", "fans", "redis", "--rtt", "1ms"]).exits(2).complains("levers are compared without a network");
    desk.run(&["run", "fans", "redis", "lmdb", "--rtt", "0,1ms", "--blocks", "1", "--list"])
        .exits(0)
        .shows("fans at 1 ms on redis")
        .shows("fans on lmdb");
}

/// A delay that the ping before the run did not see is told with the real one.
#[test]
fn a_delay_that_was_not_kept_is_told() {
    let desk = Desk::new();
    desk.run(&[FANS, &["redis", "--rtt", "1ms", "--output", "out.jsonl"]].concat()).exits(0);
    let told = |name: &'static str, member: &str, number: f64| {
        let mut records = records_in(&desk.home().join("out.jsonl"));
        records.iter_mut().for_each(|record| {
            record["network"]["ping_us"] = json!(1_050.0);
            record["network"]["own_us"] = json!(50.0);
            record["network"]["late_us"] = json!(0.0);
            record["network"][member] = json!(number);
        });
        one_line(&desk.run(&["show", "--wide", desk.file(name, lines(&records))]).out)
    };
    let words = told("late.jsonl", "ping_us", 1_550.0);
    assert!(words.contains("warning (rtt): --rtt 1ms: a ping shows that the proxy adds 1.50 ms"), "{words}");
    let words = told("busy.jsonl", "late_us", 800.0);
    assert!(words.contains("under load the proxy before redis was 0.80 ms late each way"), "{words}");
    assert!(!told("kept.jsonl", "late_us", 9.0).contains("warning (rtt)"));
}
