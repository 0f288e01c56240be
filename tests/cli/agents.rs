//! `--agents`: the clients of a run in several processes, in network namespaces where those may be made, against one
//! real Redis. What they saw is added up exactly, and an agent that is no good is named.
#![cfg(target_os = "linux")]

use std::fs;

use kvfair::model::agents::AgentShare;
use kvfair::model::hist::{Packed, Times};
use kvfair::model::trial::Transport;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::strangers::{ask, port_of};
use crate::common::desk::{Desk, Said, Started, command_line, signal, wait_for};
use crate::common::needs::{self, Need};
use crate::common::{self, Running};

const KVFAIR: &str = env!("CARGO_BIN_EXE_kvfair");

/// Namespaces of our own: one with a bridge, a server and the head, and one for each agent. The network of the machine
/// has no part of them.
struct Namespaces {
    names: Vec<String>,
    server: Option<Started>,
}

const PORT: &str = "6379";
const SERVER: &str = "10.77.0.1";

impl Namespaces {
    /// None, and the calling test is reported as run in part, where they may not be made.
    fn make(desk: &Desk, agents: usize) -> Option<Namespaces> {
        let ip = |words: &str| Started::new(desk.command("ip", &words.split(' ').collect::<Vec<_>>())).wait().code == 0;
        let name = |place: usize| format!("kvfair-{}-{agents}-{place}", std::process::id());
        let made = Namespaces { names: (0..=agents).map(name).collect(), server: None };
        if !ip(&format!("netns add {}", made.names[0])) {
            needs::report("part", &Need::new("network namespaces", false, "run the tests as root on Linux"));
            return None;
        }
        let hub = &made.names[0];
        let mut all_done = ip(&format!("-n {hub} link set lo up"))
            && ip(&format!("-n {hub} link add bridge type bridge"))
            && ip(&format!("-n {hub} addr add {SERVER}/24 dev bridge"))
            && ip(&format!("-n {hub} link set bridge up"));
        for (place, own) in made.names.iter().enumerate().skip(1) {
            all_done = all_done
                && ip(&format!("netns add {own}"))
                && ip(&format!("-n {hub} link add port{place} type veth peer name eth0 netns {own}"))
                && ip(&format!("-n {hub} link set port{place} master bridge up"))
                && ip(&format!("-n {own} addr add 10.77.0.{}/24 dev eth0", place + 1))
                && ip(&format!("-n {own} link set eth0 up"));
        }
        assert!(all_done, "a bridge between network namespaces cannot be made");
        Some(made)
    }

    fn serve(mut self, desk: &Desk) -> Namespaces {
        let server = ["redis-server", "--bind", SERVER, "--port", PORT, "--protected-mode", "no", "--save", ""];
        self.server = Some(Started::new(self.inside(desk, &server)));
        let ping = ["redis-cli", "-h", SERVER, "-p", PORT, "ping"];
        wait_for("the server", || Started::new(self.inside(desk, &ping)).wait().out.contains("PONG").then_some(()));
        self
    }

    fn inside(&self, desk: &Desk, words: &[&str]) -> std::process::Command {
        desk.command("ip", &[&["netns", "exec", &self.names[0]], words].concat())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            signal(server.id(), Signal::SIGKILL);
            server.wait();
        }
        for name in &self.names {
            // Those that were not made are none.
            let _ = std::process::Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// Runs `mixed` or `getset` with so many agents. What each says goes to `agent-RANK.lines` as well.
fn run_shared(desk: &Desk, agents: usize, job: &[&str]) -> Said {
    let count = agents.to_string();
    let spaces = Namespaces::make(desk, agents).map(|spaces| spaces.serve(desk));
    let options = ["--agents", &count, "--blocks", "1", "--output", "out.jsonl"];
    let tee = format!("{KVFAIR} agent | tee agent-{{rank}}.lines");
    match spaces {
        Some(spaces) => {
            desk.file("hosts", spaces.names[1..].join("\n"));
            let (url, launch) = (format!("redis://{SERVER}:{PORT}"), format!("ip netns exec {{host}} {tee}"));
            let reached = [&url, "--hosts", "hosts", "--launch", &launch];
            let words = [&[KVFAIR, "run"], job, &reached, &options].concat();
            Started::new(spaces.inside(desk, &words)).wait()
        }
        None => {
            let server = common::start("redis", Transport::Tcp);
            let url = url_of(&server);
            let words = [&["run"], job, &[&url, "--launch", &tee], &options[..]].concat();
            desk.run(&words)
        }
    }
}

pub fn url_of(server: &Running) -> String {
    format!("redis://127.0.0.1:{}", port_of(server))
}

/// What each agent said at the end of the parts that are called so, by its rank.
fn said_by_agents(desk: &Desk, agents: usize, part: &str) -> Vec<Value> {
    let of_agent = |rank: usize| {
        let text = fs::read_to_string(desk.home().join(format!("agent-{rank}.lines"))).expect("what an agent said");
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
        let mut ends = events.filter_map(|event| event.get("share_ended").cloned());
        ends.find(|end| end["seen"]["phase"]["name"] == part).expect("an end of the part")
    };
    (0..agents).map(of_agent).collect()
}

fn times(packed: &Value) -> Times {
    serde_json::from_value::<Packed>(packed.clone()).expect("a histogram").times().expect("a whole one")
}

fn phase<'r>(record: &'r Value, name: &str) -> &'r Value {
    let phases = record["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no {name}: {}", record["outcome"]))
}

/// The record of a part is the sum of what each agent said of it.
fn is_the_sum(desk: &Desk, record: &Value, part: &str, agents: usize, clients: u64, requests: u64) {
    let (whole, parts) = (phase(record, part), said_by_agents(desk, agents, part));
    let sum = |field: &str| parts.iter().map(|end| end["seen"]["phase"][field].as_u64().expect("a count")).sum::<u64>();
    assert_eq!((sum("units"), whole["units"].as_u64()), (requests, Some(requests)), "{part}");
    assert_eq!((sum("ops"), sum("clients")), (whole["ops"].as_u64().expect("ops"), clients), "{part}");
    assert_eq!(whole["agents"].as_array().map(Vec::len), Some(agents), "{part}");
    let mut pooled = Times::default();
    parts.iter().for_each(|end| pooled.merge(&times(&end["seen"]["phase"]["times_ns"])));
    let merged = times(&whole["times_ns"]);
    assert_eq!(merged, pooled, "{part}: every bucket");
    for quantile in [0.5, 0.99, 0.999] {
        assert_eq!(merged.value_at(quantile), pooled.value_at(quantile), "{part}: {quantile}");
    }
    for (rank, end) in (0..).zip(&parts) {
        let own = AgentShare { rank, world: agents as u32 }.of(clients);
        assert_eq!(end["seen"]["phase"]["clients"], own.end - own.start, "{part}: {rank}");
        let asked: Vec<u64> =
            end["seen"]["asked"].as_array().expect("clients").iter().filter_map(|one| one[0].as_u64()).collect();
        assert_eq!(asked, own.collect::<Vec<_>>(), "{part}: {rank}");
    }
}

#[test]
fn three_agents_with_unequal_shares_are_one_run() {
    let desk = Desk::new();
    let job = ["getset", "--clients", "10", "--requests", "100000", "--records", "5000", "--seed", "3", "--wide"];
    let said = run_shared(&desk, 3, &job);
    said.exits(0).complains("3 agents on one machine, all of kvfair").complains("agent 2 (");
    said.shows("agents: 3 on one machine drove the clients. They began at most");
    let record = desk.record_in("out.jsonl");
    assert_eq!((&record["verdict"]["kind"], &record["verdict"]["keys"]), (&"right".into(), &5000.into()));
    for part in ["set", "get"] {
        is_the_sum(&desk, &record, part, 3, 10, 100_000);
    }
    // Clocks of one machine are one clock.
    for agent in record["agents"].as_array().expect("agents") {
        let (offset_us, bound_us) = (agent["clock_offset_us"].as_f64(), agent["clock_bound_us"].as_f64());
        assert!(offset_us.expect("an offset").abs() <= bound_us.expect("its bound") + 1.0, "{agent}");
        assert_eq!(agent["machine"], 0);
    }
}

#[test]
fn eight_agents_keep_a_rate_together() {
    let desk = Desk::new();
    let rate = ["mixed", "--clients", "13", "--rate", "2k", "--requests", "8000", "--records", "1000", "--seed", "3"];
    run_shared(&desk, 8, &rate).exits(0);
    let record = desk.record_in("out.jsonl");
    assert_eq!(record["verdict"]["kind"], "right");
    is_the_sum(&desk, &record, "run", 8, 13, 8_000);
    let (whole, parts) = (phase(&record, "run"), said_by_agents(&desk, 8, "run"));
    assert_eq!((&whole["open"]["rate"], &whole["open"]["late"]), (&2_000.into(), &Value::Null));
    for field in ["response_ns", "lag_ns"] {
        let mut pooled = Times::default();
        parts.iter().for_each(|end| pooled.merge(&times(&end["seen"]["phase"]["open"][field])));
        assert_eq!(times(&whole["open"][field]), pooled, "{field}");
        assert_eq!(pooled.count(), 8_000, "{field}");
    }
    // All of the seed's due times, and the last one's is the longest.
    let due_s = |phase: &Value| phase["open"]["due_s"].as_f64().expect("a time");
    let last = parts.iter().map(|end| due_s(&end["seen"]["phase"])).fold(0.0, f64::max);
    assert!((due_s(whole) - last).abs() < 1e-9 && (3.5..4.5).contains(&last), "{last}");
}

#[test]
fn a_search_for_the_highest_rate_is_shared() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let find =
        ["find-max", "getset", "--only", "get", "--slo", "p99:200ms", "--step", "1", "--budget", "25s", "--json"];
    let shared = ["--agents", "3", "--clients", "3", "--records", "100", "--output", "out.jsonl"];
    let url = url_of(&server);
    let said = desk.run(&[&find[..], &shared[..], &[&url]].concat());
    // On a busy machine a search may find nothing, and says so.
    let found: Value = serde_json::from_str(&said.out).expect("what was found");
    let found = &found["rows"];
    let (unclear, reason) = (found[0]["unclear"].as_bool().expect("a verdict"), found[0]["reason"].as_str());
    said.exits(if unclear { 6 } else { i32::from(reason != Some("")) }).complains("3 agents on one machine");
    assert_eq!(found[0]["rate"].is_number(), said.code == 0, "{}", said.out);
    let records = crate::common::desk::records_in(&desk.home().join("out.jsonl"));
    let rated = records.iter().filter(|record| record["outcome"]["kind"] == "finished");
    let rated: Vec<&Value> = rated.filter(|record| !record["job"]["load"]["rates"].is_null()).collect();
    assert!(!rated.is_empty(), "{}", said.err);
    let agents = |record: &&Value| phase(record, "get")["agents"].as_array().map(Vec::len);
    assert_eq!(rated.iter().map(agents).collect::<Vec<_>>(), vec![Some(3); rated.len()]);
}

#[test]
fn agents_without_a_command_are_processes_here_and_know_a_password() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, "CONFIG SET requirepass sesame"), "+OK");
    let url = format!("redis://:sesame@127.0.0.1:{}", port_of(&server));
    let run = ["run", "mixed", "--agents", "2", "--clients", "4", "--requests", "100000", "--blocks", "1", &url];
    let started = Started::new(desk.kvfair(&run));
    let agents = wait_for("two agents", || Some(agents_of(&desk)).filter(|agents| agents.len() == 2));
    agents.iter().for_each(|pid| assert!(!command_line(*pid).contains("sesame")));
    let said = started.wait();
    said.exits(0);
    assert_eq!(desk.records()[0]["verdict"]["kind"], "right");
    assert!(!format!("{}{}", said.out, said.err).contains("sesame"));
}

/// The processes of agents, without shells that start them.
fn agents_of(desk: &Desk) -> Vec<u32> {
    let is = |pid: &u32| command_line(*pid).split('\0').nth(1) == Some("agent");
    desk.processes().into_iter().filter(is).collect()
}

#[test]
fn what_agents_cannot_share_is_refused_before_anything_starts() {
    let desk = Desk::new();
    desk.file("hosts", "a\nb # the second\n");
    let url = "redis://127.0.0.1:1";
    let elsewhere = ["--launch", "ssh {host} kvfair agent", "--hosts", "hosts"];
    let refused: &[(&[&str], &str)] = &[
        (&["mixed", url, "--agents", "0"], "0 is not in 1..=10000"),
        (&["fans", url, "--agents", "2"], "agents cannot share the job fans"),
        (&["lookup", url, "--agents", "2"], "agents cannot share the job lookup"),
        (&["mixed", "redis?replicas=2", "--agents", "2"], "known to one process of clients"),
        (&["mixed", "lmdb", "--agents", "2"], "lmdb is in one process, which agents cannot share"),
        (&["mixed", "cached:redis", "--agents", "2"], "the cache is in one process"),
        (&["mixed", url, "--agents", "11"], "11 agents cannot share 10 clients"),
        (&["getset", url, "--agents", "2", "--clients", "1,5"], "2 agents cannot share 1 clients"),
        (&["mixed", url, "--agents", "2", "--rtt", "1ms"], "not with --rtt"),
        (&["mixed", "redis", "--agents", "2", "--pin"], "not with --pin"),
        (&["mixed", url, "--agents", "2", "--read-only"], "not with --read-only"),
        (&["mixed", url, "--launch", "kvfair agent"], "--agents"),
        (&["mixed", url, "--agents", "2", "--launch", "ssh {host} kvfair agent"], "there is no --hosts"),
        (&["mixed", url, "--agents", "2", "--launch", "ssh {node} kvfair agent"], "{node} is unknown"),
        (&["mixed", url, "--agents", "2", "--launch", " "], "--launch is empty"),
        (&["mixed", url, "--agents", "2", "--launch", "kvfair agent", "--hosts", "hosts"], "--launch has no {host}"),
    ];
    for (words, why) in refused {
        desk.run(&[&["run"], *words].concat()).exits(2).complains(why);
    }
    let with = |words: &[&str]| desk.run(&[&["run", "mixed"], words, &elsewhere].concat());
    with(&[url, "--agents", "3"]).exits(2).complains("--agents 3: hosts has 2 hosts");
    with(&["redis", "--agents", "2"]).exits(2).complains("listens only on this machine");
    with(&["redis+unix:///a/socket", "--agents", "2"]).exits(2).complains("is a socket of this machine");
    desk.run(&["run", "--exec", "true", "redis", "--agents", "2"]).exits(2).complains("--agents is an option of jobs");
    assert!(desk.records().is_empty());
}

/// Runs against a real server with agents that such a command starts.
fn run_launched(desk: &Desk, server: &Running, launch: &str, more: &[&str]) -> Said {
    let url = url_of(server);
    let run = ["run", "mixed", &url, "--agents", "2", "--clients", "4", "--requests", "20000", "--blocks", "1"];
    desk.run(&[&run[..], &["--launch", launch], more].concat())
}

#[test]
fn agents_that_are_none_are_named_before_a_run() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let bad: &[(&str, &[&str], &str)] = &[
        // What ssh says of a host that is not there.
        (
            "echo 'ssh: connect to host b: No route to host' >&2; exit 255",
            &[],
            "agent 0 (localhost) did not start: exit code 255; it said: ssh: connect to host b: No route to host hint:",
        ),
        ("exec sleep 100", &["--timeout", "2s"], "agent 0 (localhost): it did not answer within 2 s hint:"),
        ("echo Welcome; exec KVFAIR agent", &[], "agent 0 (localhost) sent an unexpected line: 'Welcome' hint:"),
        (
            r#"KVFAIR agent | sed -u 's/"kvfair":"[^"]*"/"kvfair":"0.0.1"/'"#,
            &[],
            "agent 0 (localhost) is kvfair 0.0.1 with method",
        ),
        (r#"KVFAIR agent | sed -u 's/"method":[0-9]*/"method":1/'"#, &[], "with method 1, and this is"),
        (
            "exec KVFAIR agent --rank 0",
            &[],
            "agent 1 (localhost) and agent 0 (localhost) both say that they are rank 0",
        ),
        ("exec KVFAIR agent --rank 7", &[], "both say that they are rank 7"),
    ];
    for (launch, more, why) in bad {
        run_launched(&desk, &server, &launch.replace("KVFAIR", KVFAIR), more).exits(1).complains(why);
    }
    assert!(desk.records().is_empty(), "nothing was run");
    assert_eq!(ask(&server, "DBSIZE"), ":0");
}

#[test]
fn a_host_that_cannot_be_reached_is_named() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    desk.file("hosts", "kvfair-nowhere\nkvfair-nowhere-else\n");
    let launch = format!("ip netns exec {{host}} {KVFAIR} agent");
    let said = run_launched(&desk, &server, &launch, &["--hosts", "hosts"]);
    said.exits(1).complains("agent 0 (kvfair-nowhere) did not start: exit code");
}

/// A clock that is set while a part runs: from an agent's end of the part on, each reading has one more digit.
#[test]
fn a_clock_that_jumps_leaves_no_number() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let jump = r#"sed -u '/share_ended/,/no such line/ s/"clock":\([0-9]\)/"clock":1\1/'"#;
    let launch = format!("if [ {{rank}} = 1 ]; then {KVFAIR} agent | {jump}; else {KVFAIR} agent; fi");
    run_launched(&desk, &server, &launch, &[]).exits(1);
    let url = url_of(&server);
    let reason = desk.reason(&url);
    assert!(reason.starts_with("failed: agent 1 (localhost): its clock jumped by +"), "{reason}");
    assert_eq!(ask(&server, "DBSIZE"), ":0", "all was taken back");
}

/// Agent 1 runs this command before it is told when to begin.
fn late(command: &str) -> String {
    let late = format!("sed -u '/\"begin\"/e {command}'");
    format!("if [ {{rank}} = 1 ]; then {late} | {KVFAIR} agent; else {KVFAIR} agent; fi")
}

/// One agent is told half a second too late when to begin.
#[test]
fn agents_that_begin_apart_leave_no_number() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    run_launched(&desk, &server, &late("sleep 0.5"), &[]).exits(1);
    let reason = desk.reason(&url_of(&server));
    assert!(reason.starts_with("refused: agents began up to "), "{reason}");
    assert!(reason.contains(" ms apart, agent 1 (localhost) last: more than 100 ms"), "{reason}");
    assert_eq!(desk.record(&url_of(&server))["agents_apart_ms"].as_array().map(Vec::len), Some(3), "three attempts");
    assert_eq!(ask(&server, "DBSIZE"), ":0", "all was taken back");
}

/// One agent is late once, as it may be on a busy machine.
#[test]
fn a_trial_whose_agents_began_apart_is_tried_again() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let said = run_launched(&desk, &server, &late("mkdir was-late 2>/dev/null && sleep 0.5"), &["--wide"]);
    said.exits(0).shows(" tried again: agents began up to ");
    let record = desk.record(&url_of(&server));
    assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
    let apart_ms = record["agents_apart_ms"].as_array().expect("attempts")[0].as_f64().expect("milliseconds");
    assert!(apart_ms > 400.0, "{apart_ms}");
}

#[test]
fn an_agent_that_is_killed_is_named_and_there_is_no_number() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = url_of(&server);
    let run = ["run", "mixed", &url, "--agents", "3", "--clients", "3", "--requests", "100000000", "--blocks", "1"];
    let launch = format!("exec {KVFAIR} agent --rank {{rank}}");
    let started = Started::new(desk.kvfair(&[&run[..], &["--launch", &launch]].concat()));
    let second = |desk: &Desk| -> Vec<u32> {
        agents_of(desk).into_iter().filter(|pid| command_line(*pid).ends_with("--rank\x001\0")).collect()
    };
    let victim = desk.wait_until_busy(second, 0.3);
    signal(victim, Signal::SIGKILL);
    let said = started.wait();
    said.exits(1).shows("agent 1 (localhost) is lost");
    assert!(!said.out.contains("They began"), "no part was driven to its end: {}", said.out);
    assert_eq!(desk.reason(&url), "failed: agent 1 (localhost) is lost: killed by SIGKILL");
    let record = desk.record(&url);
    let phases: Vec<&Value> = record["phases"].as_array().expect("phases").iter().map(|one| &one["name"]).collect();
    assert_eq!(phases, ["load"], "no number of the run");
    assert_eq!(ask(&server, "DBSIZE"), ":0", "all was taken back");
    desk.no_process_is_left();
}

/// An agent that stands still says nothing: it is not waited for without end.
#[test]
fn an_agent_that_stands_still_is_lost() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = url_of(&server);
    // A rate, so that the other agent does not take a processor meanwhile.
    let rate = ["--rate", "2k", "--requests", "200000", "--records", "1000", "--blocks", "1"];
    let run = [&["run", "mixed", &url, "--agents", "2", "--clients", "2"], &rate[..]].concat();
    let started = Started::new(desk.kvfair(&run));
    let victim = desk.wait_until_busy(agents_of, 0.3);
    signal(victim, Signal::SIGSTOP);
    started.wait().exits(1);
    assert!(desk.reason(&url).ends_with("is lost: nothing was heard of it for 15 s"), "{}", desk.reason(&url));
}

#[test]
fn agents_end_with_kvfair() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = url_of(&server);
    let run = ["run", "mixed", &url, "--agents", "3", "--clients", "3", "--requests", "100000000", "--blocks", "1"];
    // A shell between, as where a command starts agents elsewhere.
    let launch = format!("{KVFAIR} agent | cat");
    let started = Started::new(desk.kvfair(&[&run[..], &["--launch", &launch]].concat()));
    desk.wait_until_busy(agents_of, 0.3);
    signal(started.id(), Signal::SIGKILL);
    started.wait();
    desk.no_process_is_left();
    desk.is_swept();
}
