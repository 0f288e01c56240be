//! `kvfair levers`: each lever alone and as the last one on a real server, what is refused, and that a file is shown as
//! the run was.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::desk::{Desk, Said, records_in};
use crate::common::needs::{Need, needs};

const OUT: &str = "levers.jsonl";

/// A small job in few blocks. What they claim depends on the machine.
fn measured(desk: &Desk, command: &str, job: &[&str], levers: &str) -> (Said, Value) {
    let job = [&[command], job, &["--levers", levers]].concat();
    let said = desk.run(&[&job[..], &["--blocks", "4", "--seed", "1", "--output", OUT]].concat());
    let json = desk.json(&[OUT]);
    said.exits(code_of(&json));
    (said, json)
}

/// The exit code that belongs to what is told: 0 where times are told and enough of them is judged.
pub fn code_of(json: &Value) -> i32 {
    let is_judged = |gain: &Value| gain["p"].is_number() && gain["bar"].is_object();
    let levers = json["levers"].as_array().expect("levers");
    let enough = &json["enough"];
    let is_confirmed = enough["confirmation"]["found"] == "enough";
    let is_enough = is_confirmed || enough["is_all"] == true || enough["levers"] == serde_json::json!([]);
    let is_known = match json["is_advice"].as_bool().expect("yes or no") {
        true => levers.iter().any(|lever| is_judged(&lever["alone"])),
        false => is_judged(&json["together"]) && is_enough,
    };
    if json["cost"] == "seconds" && is_known { 0 } else { 6 }
}

/// The lever of that name.
fn lever<'a>(json: &'a Value, name: &str) -> &'a Value {
    let found = json["levers"].as_array().expect("levers").iter().find(|lever| lever["name"] == name);
    found.unwrap_or_else(|| panic!("no lever {name}: {json}"))
}

fn labels(records: &[Value], part: &str) -> BTreeSet<String> {
    let of = records.iter().filter(|record| record["levers"]["part"]["kind"] == part);
    of.map(|record| record["target"]["label"].as_str().expect("a label").to_string()).collect()
}

#[test]
fn a_store_is_measured_with_each_lever_and_the_file_shows_the_same() {
    let desk = Desk::new();
    let job = ["fans", "redis", "--profiles", "30"];
    let (said, json) = measured(&desk, "levers", &job, "transport,via");
    let records = records_in(&desk.home().join(OUT));
    let wrong = records.iter().find(|record| record["verdict"]["kind"] != "right");
    assert!(wrong.is_none(), "{wrong:?}");
    // Of two levers all but one is the other one alone.
    let found = labels(&records, "gains");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.contains("redis") && found.contains("redis with unix") && found.contains("redis with all"));
    let via = found.iter().find(|label| label.starts_with("redis with via ")).expect("the best way");
    let via_of_the_run = lever(&records[0]["run"]["levers"], "via");
    assert_eq!(format!("redis with {}", via_of_the_run["change"].as_str().expect("words")), *via);
    assert!(via_of_the_run["tried"].as_array().expect("values").len() >= 2, "{via_of_the_run}");
    for words in ["alone", "as the last one", "unix", "via ", "Together", "left out: appendonly", "left out: cache"] {
        said.shows(words);
    }
    said.shows("best in a pilot: via ").shows("costs code: many keys in one question");
    assert!(
        said.out.lines().count() > 9 && said.out.lines().skip(2).all(|line| line.chars().count() <= 100),
        "{}",
        said.out
    );
    // Many ops of one key each against one op of the store's own a profile.
    assert!(said.out.contains(" -> "), "no counters:\n{}", said.out);
    has_a_control(&records);
    let levels = labels(&records, "durability");
    assert_eq!(levels.into_iter().collect::<Vec<_>>(), ["redis"]);
    said.shows("crash: ").shows("power: ");
    let again = desk.run(&["show", OUT]);
    assert_eq!((again.out.as_str(), again.code), (said.out.as_str(), said.code));
    assert_eq!(json["levers"].as_array().expect("levers").len(), 2);
    assert_eq!(json["durability"].as_array().expect("levels").len(), 3);
    let csv = desk.run(&["show", OUT, "--csv"]);
    assert_eq!(csv.out.lines().count(), 1 + 2, "a row a lever:\n{}", csv.out);
    csv.shows("lever,change,ratio_of,alone_ratio,alone_ratio_low,alone_ratio_high,alone_effect,last_ratio,")
        .shows("transport,unix,");
    let markdown = desk.run(&["show", OUT, "--markdown"]);
    markdown.shows(" | alone | as the last one |").shows("| unix |").shows("- crash: ");
    let by_targets = desk.run(&["show", OUT, "--csv", "--wide"]);
    assert_eq!(by_targets.out.lines().count(), 1 + 4, "a row a target:\n{}", by_targets.out);
    // The same levers on requests alone, but for the way of the job.
    let synthetic = labels(&records, "synthetic");
    assert_eq!(synthetic.into_iter().collect::<Vec<_>>(), ["redis", "redis with unix"]);
    said.shows("on set/get alone: ");
    assert_eq!(json["synthetic"]["job"], "getset");
    let share = json["synthetic"]["waiting_share"].as_f64().expect("a share");
    assert!((0.0..=1.0).contains(&share), "{share}");
    assert!(!again.err.contains("cut off"), "{}", again.err);
    let (_, after) = said.err.split_once("the same levers on the job getset").expect("it is told");
    let sizes = after.lines().filter_map(|line| line.strip_prefix("kvfair: a pilot of ")?.split_once(" requests"));
    let sizes: Vec<u64> = sizes.map(|(size, _)| size.replace(',', "").parse().expect("a number")).collect();
    assert!(!sizes.is_empty() && sizes.iter().all(|size| *size <= 10_000), "{}", said.err);
    is_told_where_it_was_cut_off(&desk, &records);
}

/// Which target that is depends on what each took in a pilot: see `scheduler::controls`.
fn has_a_control(records: &[Value]) {
    let fresh = records.iter().filter(|record| record["levers"]["part"]["kind"] == "confirm");
    let fresh: Vec<&Value> = fresh.collect();
    let controls = fresh.iter().filter(|record| record["aa_control"] == true);
    let controls: Vec<&Value> = controls.map(|record| &record["target"]["label"]).collect();
    assert_eq!(controls.is_empty(), fresh.is_empty(), "a control in fresh blocks");
}

/// As a kill or Ctrl-C leaves a file: in the middle of a block, or between two of them.
fn is_told_where_it_was_cut_off(desk: &Desk, records: &[Value]) {
    let text = std::fs::read_to_string(desk.home().join(OUT)).expect("results");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), records.len());
    let of = |part: &str, block: u64| {
        let is = |record: &Value| {
            let is_second = record["aa_control"] == true;
            record["levers"]["part"]["kind"] == part && record["block"] == block && !is_second
        };
        records.iter().rposition(is).expect("a record")
    };
    let cut = |lines: &[&str]| {
        desk.file("cut.jsonl", &(lines.join("\n") + "\n"));
        desk.run(&["show", "cut.jsonl"])
    };
    cut(&lines[..of("gains", 3)]).complains("the run was cut off").complains("the blocks of gains: block 3 has");
    let gains = records.iter().filter(|record| record["levers"]["part"]["kind"] == "gains").count();
    cut(&lines[..gains]).complains("the run was cut off").complains("nothing follows the blocks of gains");
    cut(&lines[..of("durability", 4)]).complains("the durability levels: block 4 has");
}

/// A cache in the client answers one request at a time: the two stand alone, and not together.
#[test]
fn levers_that_cannot_be_combined_are_measured_alone_and_say_why() {
    let desk = Desk::new();
    let job = ["mixed", "redis+unix", "--clients", "2", "--requests", "200", "--records", "50"];
    let (_, json) = measured(&desk, "levers", &job, "cache,depth");
    let levers = json["levers"].as_array().expect("levers");
    assert_eq!(levers.len(), 2);
    let apart = levers.iter().filter(|lever| !lever["not_in_all"].is_null()).collect::<Vec<_>>();
    let [apart] = apart.as_slice() else { panic!("{levers:?}") };
    let reason = apart["not_in_all"].as_str().expect("a reason");
    assert!(reason.contains("a cache answers one request at a time"), "{reason}");
    assert!(apart["alone"].is_object() && apart["last"].is_null(), "{apart}");
    desk.run(&["show", OUT]).shows("cannot be combined").shows("a cache answers one request at a time");
}

/// Nor can it see what a store counts by itself, where that was the best way in a pilot.
#[test]
fn a_cache_is_combined_with_every_way_but_the_stores_own() {
    let desk = Desk::new();
    let (_, json) = measured(&desk, "levers", &["fans", "redis+unix", "--profiles", "30"], "via,cache");
    let apart: Vec<&Value> = ["via", "cache"].map(|name| &lever(&json, name)["not_in_all"]).to_vec();
    let reasons: Vec<&str> = apart.into_iter().filter_map(Value::as_str).collect();
    match lever(&json, "via")["change"].as_str().expect("words") {
        "via native" => {
            assert!(reasons.len() == 1 && reasons[0].contains("a cache cannot see that"), "{reasons:?}");
        }
        _ => assert_eq!(reasons, Vec::<&str>::new()),
    }
}

/// Values that are open name those worth trying, and a list of values is a lever by itself.
#[test]
fn a_setting_of_an_adapter_is_a_lever() {
    let desk = Desk::new();
    let (_, json) = measured(&desk, "advise", &["ngrams", "memcached", "--messages", "60"], "protocol");
    let tried = lever(&json, "protocol")["tried"].as_array().expect("values");
    assert!(tried.len() >= 2, "{tried:?}");
    assert!(tried.iter().all(|value| value["change"].as_str().is_some_and(|words| words.starts_with("protocol="))));
    let records = records_in(&desk.home().join(OUT));
    let settings: BTreeSet<String> =
        records.iter().map(|record| record["target"]["settings"]["protocol"].to_string()).collect();
    assert_eq!(settings.len(), 2, "base has none, the lever has the best one: {settings:?}");
}

/// How a store's files are compressed is a lever with a price, and the store was opened with what the label says.
#[test]
fn compression_is_a_lever() {
    let desk = Desk::new();
    let (said, json) = measured(&desk, "advise", &["ngrams", "leveldb", "--messages", "60"], "compression");
    said.shows("compression=");
    assert_eq!(lever(&json, "compression")["pays"], "disk without, CPU with");
    let records = records_in(&desk.home().join(OUT));
    let changed = |record: &&Value| record["levers"]["changed"] == serde_json::json!(["compression"]);
    let alone = records.iter().find(changed).expect("a trial with compression alone");
    let asked = &alone["target"]["settings"]["compression"];
    assert!(asked.is_string() && *asked != "snappy", "{asked}");
    assert_eq!(alone["store"]["settings"]["compression"], *asked);
    let base = records.iter().find(|record| record["levers"]["changed"] == serde_json::json!([]));
    assert_eq!(base.expect("a trial of the base")["store"]["settings"]["compression"], "its own");
}

#[test]
fn what_is_no_lever_or_cannot_be_changed_is_refused_by_name() {
    let desk = Desk::new();
    let levers = |more: &[&str]| desk.run(&[&["levers"], more].concat());
    let unknown = levers(&["fans", "redis", "--levers", "colour"]);
    unknown.exits(2).complains("redis has no such lever for the job fans").complains("transport, via, cache");
    // What is said of an unknown name names those of the store and of the job.
    for has in ["io-threads", "processors"] {
        unknown.complains(has);
    }
    let of_requests = levers(&["mixed", "memcached", "--levers", "colour"]);
    of_requests.exits(2).complains("clients, depth").complains("threads");
    levers(&["fans", "redis", "--levers", "clients"]).exits(2).complains("no such lever for the job fans");
    levers(&["fans", "redis", "--levers", "processors", "--pin"]).exits(2).complains("--pin gives each server half");
    levers(&["--exec", "true", "fans", "redis"]).exits(2).complains("a program is run on one store");
    levers(&["--exec", "true", "lmdb"]).exits(2).complains("lmdb has no lever for a program");
    levers(&["fans", "redis", "--levers", "appendfsync"]).exits(2).complains("changes what survives a crash");
    levers(&["fans", "redis://localhost:1"]).exits(2).complains("only stores that are started here are changed");
    levers(&["fans", "ram"]).exits(2).complains("ram is a baseline");
    levers(&["fans", "reddis"]).exits(2).complains("did you mean `redis`?");
    levers(&["fan", "redis"]).exits(2).complains("did you mean `fans`?");
    levers(&["fans"]).exits(2).complains("<STORE>");
    levers(&["getset", "redis", "--clients", "1,5"]).exits(2).complains("levers are compared at one point");
    levers(&["fans", "redis", "--profiles", "10,20"]).exits(2).complains("levers are compared at one point");
    levers(&["fans", "redis", "--via", "batch,native"]).exits(2).complains("the others are levers");
    levers(&["mixed", "redis", "--rate", "5k"]).exits(2).complains("--rate is no option of levers");
    levers(&["fans", "redis", "--wide"]).exits(2).complains("`kvfair show` has it");
    assert!(desk.records().is_empty(), "nothing was run");
    let help = desk.run(&["levers", "--help"]);
    help.exits(0).shows("--levers").shows("--budget").shows("kvfair levers fans redis");
}

#[test]
fn a_store_that_is_not_here_says_so() {
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["levers", "fans", "redis", "--profiles", "50", "--blocks", "4"]);
    said.exits(3).complains("kvfair: redis: there is no redis-server on PATH; get it: ");
}

/// The short form: each lever alone, at most five lines, and no set.
#[test]
fn an_advice_is_a_few_lines_with_gain_price_and_command() {
    let desk = Desk::new();
    let advise = ["advise", "fans", "redis", "--profiles", "60", "--blocks", "6", "--output", OUT];
    let said = desk.run(&advise);
    let json = desk.json(&[OUT]);
    said.exits(code_of(&json));
    let records = records_in(&desk.home().join(OUT));
    let found = labels(&records, "gains");
    assert!(found.len() >= 3 && !found.iter().any(|label| label.contains(" all")), "{found:?}");
    assert!(records.iter().all(|record| record["levers"]["part"]["kind"] == "gains"), "nothing else is measured");
    let levers = json["levers"].as_array().expect("levers");
    let helpful = levers.iter().filter(|lever| lever["alone"]["effect"] == "helps").count();
    let is_numbered = |line: &&str| line.split_once(". ").is_some_and(|(place, _)| place.parse::<u8>().is_ok());
    assert_eq!(said.out.lines().filter(is_numbered).count(), helpful.min(5), "{}", said.out);
    // Many keys in one question need a small part of the CPU: in six blocks no noise hides that.
    said.shows("1. via ").shows("; costs ").shows("kvfair levers fans redis --profiles 60 --blocks 6 --levers via");
    assert!(!said.out.contains("6. "), "{}", said.out);
    assert_eq!(desk.run(&["show", OUT]).out, said.out);
    desk.run(&["advise", "fans", "redis", "--wide"]).exits(2).complains("`kvfair show` has it");
}

/// Clients and their depth are the job's own: each of their targets has an expected state of its own.
#[test]
fn clients_and_depth_are_levers_of_a_job_of_requests() {
    let desk = Desk::new();
    let job = ["mixed", "redis+unix", "--clients", "4", "--requests", "500", "--records", "100"];
    let (said, json) = measured(&desk, "advise", &job, "clients,depth");
    assert!(lever(&json, "clients")["change"].as_str().is_some_and(|words| words.starts_with("clients=")));
    assert!(lever(&json, "depth")["change"].as_str().is_some_and(|words| words.starts_with("depth=")));
    assert_eq!(lever(&json, "depth")["pays"], "code: it sends requests before earlier answers arrive");
    let records = records_in(&desk.home().join(OUT));
    let wrong = records.iter().find(|record| record["verdict"]["kind"] != "right");
    assert!(wrong.is_none(), "{wrong:?}");
    let of = |lever: &str| {
        let one = records.iter().find(|record| record["levers"]["changed"] == serde_json::json!([lever]));
        one.unwrap_or_else(|| panic!("no trial with {lever} alone"))
    };
    let clients = of("clients");
    assert!([1, 16].map(Value::from).contains(&clients["clients"]), "{}", clients["clients"]);
    assert_eq!(clients["job"]["load"]["clients"][0], clients["clients"]);
    assert_eq!(clients["job"]["load"]["depth"], 1);
    let depth = of("depth");
    assert!([4, 16].map(Value::from).contains(&depth["job"]["load"]["depth"]), "{}", depth["job"]["load"]);
    assert_eq!(depth["clients"], 4);
    // The headline tells of base.
    said.shows("4 clients");
    assert_eq!(desk.run(&["show", OUT]).out, said.out);
}

/// What a server is given is its own: threads by its command line, processors by the system.
#[test]
#[cfg(target_os = "linux")]
fn threads_and_processors_of_a_server_are_levers() {
    needs!(Need::processors(2));
    let desk = Desk::new();
    let (_, json) = measured(&desk, "advise", &["fans", "memcached", "--profiles", "30"], "threads,processors");
    assert!(lever(&json, "threads")["change"].as_str().is_some_and(|words| words.starts_with("threads=")));
    assert_eq!(lever(&json, "processors")["change"], "processors=half");
    let records = records_in(&desk.home().join(OUT));
    let threads = |record: &&Value| record["levers"]["changed"] == serde_json::json!(["threads"]);
    let one = records.iter().find(threads).expect("a trial with threads alone");
    assert_eq!(one["store"]["settings"]["num_threads"], one["target"]["settings"]["threads"]);
    let run = ["run", "fans", "redis?processors=1&io-threads=2", "--profiles", "10", "--blocks", "1"];
    desk.run(&run).exits(0);
    let record = desk.record("redis?processors=1&io-threads=2");
    assert_eq!(record["store"]["settings"]["io-threads"], "2");
    let told = |target: &str| desk.run(&["run", "fans", target, "--profiles", "10", "--blocks", "1"]);
    told("redis?processors=0").exits(2).complains("takes half, all or a number from 1 to");
    told("redis?processors=many").exits(2).complains("takes half, all or a number from 1 to");
    told("lmdb?processors=half").exits(2).complains("?processors= is for servers: lmdb runs in kvfair's process");
    told("redis://localhost:1?processors=1").exits(2).complains("?processors= is for a server that is started here");
    told("memcached?threads=0").exits(2).complains("a number of threads from 1 to 64");
}

/// Levers that need no change of a program: where its server is reached, and how it is started.
#[test]
fn a_program_has_the_levers_of_its_server() {
    let desk = Desk::new();
    let program = "redis-cli -u {url} set a 1 > /dev/null; redis-cli -u {url} get a";
    let run = ["--exec", program, "redis"];
    let (said, _) = measured(&desk, "levers", &run, "io-threads");
    said.shows("io-threads=");
    let records = records_in(&desk.home().join(OUT));
    assert!(records.iter().all(|record| record["outcome"]["kind"] == "finished"), "{said:?}", said = said.err);
    assert_eq!(labels(&records, "durability").len(), 1);
    assert!(labels(&records, "synthetic").is_empty(), "nobody knows what a program asks");
    assert_eq!(desk.run(&["show", OUT]).out, said.out);
    // Of two addresses it takes one: a socket has no port.
    let over_tcp = "redis-cli -h {host} -p {port} ping";
    let only = desk.run(&["levers", "--exec", over_tcp, "redis", "--levers", "transport"]);
    only.exits(2).complains("has no {host}").complains("--levers transport");
}

/// Measures within a time that is enough on most machines, or else within the one that the hint names: what was said,
/// the results file, and the time in seconds.
fn within(desk: &Desk, command: &[&str], budget: &str) -> (Said, String, f64) {
    let file = format!("within-{budget}.jsonl");
    let said = desk.run(&[command, &["--budget", budget, "--output", &file]].concat());
    let hint = said.err.split_once("hint: --budget ").filter(|_| said.code == 2);
    if let Some((enough, _)) = hint.and_then(|(_, hint)| hint.split_once(' ')) {
        return within(desk, command, enough);
    }
    let unit_s = if budget.ends_with('m') { 60.0 } else { 1.0 };
    let count: f64 = budget.trim_end_matches(['s', 'm']).parse().expect("a number of seconds or minutes");
    (said, file, count * unit_s)
}

/// What is planned fits into the time that it has, and what is under way at its end is cut off.
#[test]
fn an_advice_keeps_its_time() {
    let desk = Desk::new();
    let (said, file, budget_s) = within(&desk, &["advise", "fans", "redis", "--levers", "via"], "40s");
    said.exits(code_of(&desk.json(&[&file])));
    let records = records_in(&desk.home().join(&file));
    let phases = records.iter().flat_map(|record| record["phases"].as_array().expect("phases"));
    // Trials take longer than what is measured of them, so that it fits however busy the machine is.
    let measured_s: f64 = phases.map(|phase| phase["took_s"].as_f64().expect("seconds")).sum();
    assert!(0.0 < measured_s && measured_s < budget_s, "{measured_s} s\n{}", said.err);
    assert!(labels(&records, "gains").len() >= 2, "base and a lever:\n{}", said.err);
    desk.run(&["advise", "-h"]).exits(0).shows("[default: 2m]");
}

/// Where the time of the run is over, what is left says so, and is no failure of the store.
#[test]
fn levels_for_which_there_was_no_time_say_so() {
    let desk = Desk::new();
    // The time is over somewhere: what was under way then has failed no more than what had no turn.
    let (said, file, _) = within(&desk, &["levers", "fans", "lmdb", "--profiles", "300", "--levers", "via"], "12s");
    said.exits(code_of(&desk.json(&[&file])));
    assert!(!said.out.contains("cut off after"), "{}", said.out);
}
