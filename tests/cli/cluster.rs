//! Targets that are a cluster: `redis?cluster=3` is started, checked and measured. A cluster by URL is left as it was.

use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::Place;
use serde_json::Value;

use crate::cli::check::checked;
use crate::common::desk::{Desk, one_line};
use crate::common::{self, Running};

fn started(product: &str) -> Running {
    common::start_set(product, Transport::Tcp, Durability::None, &[("cluster", "3")])
}

fn nodes_of(cluster: &Running) -> Vec<Place> {
    std::iter::once(&cluster.launch.place).chain(&cluster.launch.peers).cloned().collect()
}

/// The first line that a node answers.
fn told(node: &Place, command: &str) -> String {
    use std::io::{BufRead, BufReader, Write};
    let mut stream = std::net::TcpStream::connect(node.to_string()).expect("a node");
    stream.write_all(format!("{command}\r\n").as_bytes()).expect("a node");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    line.trim_end().to_string()
}

/// Whether none of the three nodes holds a key.
fn are_empty(cluster: &Running) -> bool {
    let nodes = nodes_of(cluster);
    assert_eq!(nodes.len(), 3);
    nodes.iter().all(|node| told(node, "DBSIZE") == ":0")
}

const CLUSTERS: [&str; 2] = ["redis?cluster=3", "valkey?cluster=3"];

#[test]
fn a_cluster_gives_the_same_answers_as_one_server() {
    for job in [["fans", "--profiles"], ["ngrams", "--messages"]] {
        for via in ["portable", "batch", "native", "cas"] {
            let desk = Desk::new();
            let ways =
                ["run", job[0], job[1], "100", "--blocks", "1", "--no-aa", "--via", via, "--clients", "2", "--wide"];
            // The ways of one are those of the other: Valkey is asked in one of them.
            let clusters = if via == "batch" { &CLUSTERS[..] } else { &CLUSTERS[..1] };
            let said = desk.run(&[&ways[..], &["redis"], clusters].concat());
            said.exits(0);
            // The way stands behind the target's name, unless it is the usual one.
            let is_of = |record: &Value, target: &str| {
                record["target"]["label"].as_str().is_some_and(|label| label.split(' ').next() == Some(target))
            };
            let answer = |target: &str| {
                let record = desk.records().into_iter().find(|record| is_of(record, target));
                record.unwrap_or_else(|| panic!("no record of {target}"))["verdict"]["answer"].clone()
            };
            assert!(answer("redis").is_object());
            clusters.iter().for_each(|cluster| assert_eq!(answer(cluster), answer("redis"), "{} {via}", job[0]));
            if via == "batch" {
                said.shows("3 nodes with 5461, 5461, 5462 slots").shows("split by slot");
                let record = desk.records().into_iter().find(|record| is_of(record, CLUSTERS[0])).expect("a record");
                let run = phase_of(&record, "run");
                let (commands, ops) = (run["commands"].as_u64(), run["ops"].as_u64());
                assert!(ops.is_some() && commands > ops, "a question about many keys is several commands: {run}");
            }
            if via == "portable" {
                nodes_have_their_share(&desk);
            }
        }
    }
}

fn phase_of<'a>(record: &'a Value, name: &str) -> &'a Value {
    let phases = record["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no {name} in {}", record["outcome"]))
}

fn nodes_have_their_share(desk: &Desk) {
    let record = desk.record("redis?cluster=3");
    let phase = phase_of(&record, "run");
    let nodes = phase["nodes"].as_array().expect("each node's share");
    let cpu_s = |usage: &Value| usage["user_s"].as_f64().unwrap() + usage["system_s"].as_f64().unwrap();
    assert_eq!(nodes.len(), 3);
    assert!((nodes.iter().map(cpu_s).sum::<f64>() - cpu_s(&phase["server"])).abs() < 0.02, "{phase}");
    let schema = serde_json::from_str(include_str!("../../schema/record.schema.json")).expect("the schema");
    jsonschema::validator_for(&schema).expect("the schema is one").validate(&record).expect("valid by the schema");
}

#[test]
fn jobs_of_requests_work_on_a_cluster() {
    let desk = Desk::new();
    let small = ["--records", "1000", "--blocks", "1", "--no-aa"];
    let mixed = ["run", "mixed", "--requests", "2000", "--clients", "4"];
    desk.run(&[&mixed[..], &small, &CLUSTERS].concat()).exits(0);
    // Both products speak alike: one of them does the other jobs.
    let one = &CLUSTERS[..1];
    let getset = ["run", "getset", "--requests", "1000", "--clients", "1,4"];
    desk.run(&[&getset[..], &small, one].concat()).exits(0);
    let rated = ["run", "mixed", "--requests", "500", "--rate", "2000"];
    desk.run(&[&rated[..], &small, one].concat()).exits(0);
    let lookup = ["run", "lookup", "--messages", "100", "--blocks", "1", "--no-aa"];
    desk.run(&[&lookup[..], one].concat()).exits(0);
}

/// Every agent has a connection to each node for each of its clients.
#[test]
fn agents_share_the_clients_of_a_cluster() {
    let (cluster, desk) = (started("redis"), Desk::new());
    let url = format!("redis-cluster://{}", cluster.launch.place);
    let shared = ["--agents", "2", "--clients", "4", "--requests", "20000", "--blocks", "1"];
    desk.run(&[&["run", "mixed", &url][..], &shared].concat()).exits(0);
    let record = desk.record(&url);
    assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
    assert_eq!(record["agents"].as_array().map(Vec::len), Some(2));
    assert!(are_empty(&cluster), "agents left keys");
}

/// A slot moves while clients write: nothing is lost, and nothing is done twice.
#[test]
fn a_check_moves_a_slot_while_clients_write() {
    let said = checked(&Desk::new(), &CLUSTERS);
    said.exits(0);
    assert!(!said.out.contains("WRONG"), "{}", said.out);
    // 509 keys at each move: 500 values, a shared counter, and two of each of four clients, once these have written.
    let told = one_line(&said.out);
    let moves = told.split("limit: ").filter_map(|limit| limit.split_once(" keys moved between servers in 6 moves"));
    let moved: Vec<u32> = moves.map(|(keys, _)| keys.replace(',', "").parse().expect("a number")).collect();
    assert!(moved.len() == 2 && moved.iter().all(|keys| (6 * 500..=6 * 509).contains(keys)), "{}", said.out);
}

#[test]
fn a_cluster_by_url_is_left_as_it_was() {
    // What is left does not depend on the product: one is asked for every job and checked, and the other does one job.
    let jobs = [["fans", "--profiles", "100"], ["ngrams", "--messages", "100"], ["mixed", "--requests", "500"]];
    for (product, jobs) in [("redis", &jobs[..]), ("valkey", &jobs[..1])] {
        let cluster = started(product);
        let desk = Desk::new();
        let url = format!("redis-cluster://{}", cluster.launch.place);
        for job in jobs {
            desk.run(&[&["run"], &job[..], &["--blocks", "2", "--no-aa", &url]].concat()).exits(0);
            assert!(are_empty(&cluster), "{} left keys", job[0]);
        }
        let record = desk.record(&url);
        assert_eq!(record["store"]["settings"]["cluster nodes"], "3");
        assert!(record["room"].is_object(), "its memory was asked for");
        if cfg!(target_os = "linux") {
            // All nodes are on this machine and ours.
            assert_eq!(phase_of(&record, "run")["nodes"].as_array().map(Vec::len), Some(3));
            assert!(record["memory"]["server"].is_object(), "{}", record["memory"]);
        }
        if product == "redis" {
            checked(&desk, &[&url]).exits(0);
            assert!(are_empty(&cluster), "a check left keys");
        }
        // Whoever holds records keeps them, whichever node has them.
        let key = (0..).map(|number| format!("k{number}"));
        let last = nodes_of(&cluster).pop().expect("a node");
        let mine = key.into_iter().find(|key| told(&last, &format!("SET {key} mine")) == "+OK").expect("a key of its");
        desk.run(&["run", "fans", "--profiles", "50", "--blocks", "1", &url]).exits(1).shows("holds 1 record");
        assert_eq!(told(&last, &format!("DEL {mine}")), ":1");
        // Every node must have room.
        told(&last, "CONFIG SET maxmemory 2000000");
        let said = desk.run(&["run", "fans", "--profiles", "3000", "--blocks", "1", &url]);
        said.exits(1).shows("bytes of memory left");
    }
}

#[test]
fn what_a_cluster_cannot_do_is_refused() {
    let desk = Desk::new();
    let refused = |arguments: &[&str], words: &str| {
        desk.run(arguments).exits(2).complains(words);
    };
    for count in ["0", "1", "2", "17", "x"] {
        refused(&["check", &format!("redis?cluster={count}")], "a number of nodes from 3 to 16");
    }
    let cluster = "redis?cluster=3";
    refused(&["run", "mixed", cluster, "--depth", "8"], "leave --depth out");
    refused(&["run", "mixed", cluster, "--reconnect"], "leave --reconnect out");
    refused(&["run", "fans", cluster, "--keep", "kept"], "leave --keep out");
    refused(&["run", "fans", cluster, "--rtt", "1ms"], "leave --rtt out");
    refused(&["run", "lookup", cluster, "--cold"], "leave --cold out");
    refused(&["crash", cluster], "crash kills one");
    refused(&["crash", "--failover", "redis?cluster=3&replicas=2"], "the nodes of a cluster have no replicas");
    refused(&["levers", "fans", cluster], "levers change one");
    refused(&["run", "--exec", "true", cluster], "--exec is given the address of one");
    refused(&["check", "redis+unix?cluster=3"], "over TCP");
    refused(&["check", "redis-cluster"], "redis-cluster://HOST:PORT");
    refused(&["check", "redis://127.0.0.1:1?cluster=3"], "redis-cluster://HOST:PORT");
    assert!(desk.records().is_empty(), "nothing was run");
}

#[test]
fn a_url_of_another_kind_says_so() {
    let (alone, cluster, desk) = (common::start("redis", Transport::Tcp), started("redis"), Desk::new());
    let fans = ["run", "fans", "--profiles", "20", "--blocks", "1"];
    let url = format!("redis-cluster://{}", alone.launch.place);
    desk.run(&[&fans[..], &[&url]].concat()).exits(1);
    assert!(desk.reason(&url).contains("is a single server and no node of a cluster"), "{}", desk.reason(&url));
    let url = format!("redis://{}", cluster.launch.place);
    desk.run(&[&fans[..], &[&url]].concat()).exits(1);
    assert!(desk.reason(&url).contains("is a node of a cluster: redis-cluster://"), "{}", desk.reason(&url));
    // Nothing was written, so that nothing is deleted.
    assert!(!desk.reason(&url).contains("removed"), "{}", desk.reason(&url));
    told(&cluster.launch.place, "CLUSTER DELSLOTSRANGE 5 6");
    let url = format!("redis-cluster://{}", cluster.launch.place);
    desk.run(&[&fans[..], &[&url]].concat()).exits(1);
    assert!(desk.reason(&url).contains("slots 5 to 6 have no node"), "{}", desk.reason(&url));
}

/// What is killed is found in /proc.
#[cfg(target_os = "linux")]
mod killed {
    use nix::sys::signal::Signal;

    use super::*;
    use crate::common::desk::{Started, signal};

    /// As the kernel's out-of-memory killer does.
    #[test]
    fn a_node_that_dies_in_the_middle() {
        let desk = Desk::new();
        let run = ["run", "fans", "--profiles", "5000", "--blocks", "1", "--no-aa", CLUSTERS[0], "ram"];
        let started = Started::new(desk.kvfair(&run));
        let node = desk.wait_until_busy(|desk| desk.processes_named("redis-server"), 0.2);
        signal(node, Signal::SIGKILL);
        started.wait().exits(1).shows("the server ended: ").shows("killed by SIGKILL");
        let reason = desk.reason(CLUSTERS[0]);
        assert!(reason.starts_with("failed: after ") && reason.contains("redis at 127.0.0.1:"), "{reason}");
        assert_eq!(desk.record("ram")["verdict"]["kind"], "right");
    }

    #[test]
    fn a_node_that_is_gone_before_a_run_is_named() {
        let (cluster, desk) = (started("redis"), Desk::new());
        let mut others = cluster.facts.servers.iter().filter(|(place, _)| *place != cluster.launch.place);
        let (place, node) = others.next().expect("three nodes");
        signal(node.expect("a process"), Signal::SIGKILL);
        let url = format!("redis-cluster://{}", cluster.launch.place);
        desk.run(&["run", "fans", "--profiles", "20", "--blocks", "1", &url]).exits(1);
        assert!(desk.reason(&url).contains(&place.to_string()), "{} of {place}", desk.reason(&url));
    }

    #[test]
    fn what_a_killed_run_left_is_removed_from_each_node() {
        let (cluster, desk) = (started("redis"), Desk::new());
        let url = format!("redis-cluster://{}", cluster.launch.place);
        let run = ["run", "fans", "--profiles", "5000", "--blocks", "1", "--output", "out.jsonl", &url];
        let started = Started::new(desk.kvfair(&run));
        desk.wait_until_busy(Desk::trials, 0.3);
        started.interrupt(Signal::SIGKILL);
        started.wait().exits(-1);
        desk.no_process_is_left();
        assert_eq!(nodes_of(&cluster).iter().filter(|node| told(node, "DBSIZE") != ":0").count(), 3, "in the middle");
        desk.run(&["clean", &url, "--of", "out.jsonl", "--yes"]).exits(0);
        assert!(are_empty(&cluster), "a node has keys");
    }
}
