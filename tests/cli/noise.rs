//! What else goes on while a trial runs, with others really at work: it is seen, it makes the trial discarded, and the
//! trial's own servers, threads and syncs do not.

use kvfair::harness::gates;
use kvfair::model::noise::{Gate, Noise, Sign, Yardstick};
use kvfair::model::record::Record;
use kvfair::model::trial::Transport;
use serde_json::Value;

use crate::common;
use crate::common::desk::Desk;
use crate::common::load::spinners;

fn record(desk: &Desk, target: &str) -> Record {
    serde_json::from_value(desk.record(target)).expect("a record")
}

/// Nobody else on the processors may be promised to a test, so it is strangers of its own that it looks for.
#[cfg(target_os = "linux")]
#[test]
fn strangers_at_work_are_seen_and_make_trials_void() {
    let desk = Desk::with_only(&["redis-server"]);
    let strangers = spinners(&desk);
    for (target, messages) in [("ram", "5000"), ("redis+unix", "300")] {
        desk.run(&["run", "ngrams", "--blocks", "1", "--messages", messages, target]).exits(0);
    }
    drop(strangers);
    for target in ["ram", "redis+unix"] {
        let record = record(&desk, target);
        let noise = record.noise;
        // Three for each processor beside one or two threads of ours.
        assert!(noise.foreign_share > Some(0.4), "{target}: {noise:?}");
        let Gate::Discard(reasons) = noise.gate(Yardstick::default()) else {
            panic!("{target}: not discarded: {noise:?}")
        };
        assert!(reasons.iter().any(|reason| reason.sign == Sign::Foreign), "{target}: {reasons:?}");
        assert!(noise.processor_probe_ns > Some(0) && noise.disk_sync_ns.is_none(), "{target}: {noise:?}");
        let run = record.phase("run").expect("it ran");
        assert!(noise.seen_s >= run.took_s, "{target}: {noise:?} of {} s", run.took_s);
        // The client's thread has ended with the phase, and what it waited is known all the same.
        assert!(run.client.run_delay_s > Some(0.05 * run.took_s), "{target}: {:?} of {} s", run.client, run.took_s);
        assert_eq!(run.server.map(|server| server.run_delay_s.is_some()), (target != "ram").then_some(true));
    }
    let noise = record(&desk, "ram").noise;
    assert!(noise.client_delay_share > Some(0.2) && noise.server_delay_share.is_none(), "{noise:?}");
}

/// Far more threads than processors wait for each other, and that is no stranger's doing.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_are_more_than_the_processors_are_not_asked_why_they_wait() {
    let desk = Desk::with_only(&[]);
    let clients = (4 * std::thread::available_parallelism().map_or(1, usize::from)).to_string();
    desk.run(&["run", "ngrams", "--blocks", "1", "--messages", "3000", "--clients", &clients, "ram"]).exits(0);
    let record = record(&desk, "ram");
    assert!(record.phase("run").expect("it ran").client.run_delay_s > Some(0.0), "{:?}", record.noise);
    // The final flush is one thread's work, and too little of the trial to speak for it.
    assert_eq!(record.noise.client_delay_share, None, "{:?}", record.noise);
}

/// Its CPU could not be told from a stranger's.
#[cfg(target_os = "linux")]
#[test]
fn somebody_elses_server_is_no_stranger() {
    let server = common::start("redis", Transport::Tcp);
    let desk = Desk::with_only(&[]);
    let url = format!("redis://{}?name=theirs", server.launch.place);
    desk.run(&["run", "ngrams", "--blocks", "1", "--messages", "500", &url]).exits(0);
    let noise = record(&desk, "theirs").noise;
    assert_eq!((noise.foreign_share, noise.unclaimed_share, noise.server_delay_share), (None, None, None), "{noise:?}");
    assert!(noise.steal_share.is_some() && noise.client_delay_share.is_some(), "{noise:?}");
}

#[test]
fn the_disk_is_looked_at_where_it_matters_and_what_it_does_for_us_is_ours() {
    let desk = Desk::with_only(&[]);
    desk.run(&["run", "ngrams", "--blocks", "1", "--messages", "20", "--durability", "power", "lmdb"]).exits(0);
    let noise = record(&desk, "lmdb").noise;
    assert!(noise.disk_sync_ns > Some(0) && noise.processor_probe_ns > Some(0), "{noise:?}");
}

#[test]
fn a_record_from_before_there_was_noise_is_still_read() {
    let desk = Desk::with_only(&[]);
    desk.run(&["run", "ngrams", "--blocks", "1", "--messages", "20", "ram"]).exits(0);
    let mut old = desk.record("ram");
    old.as_object_mut().expect("an object").remove("noise");
    for phase in old["phases"].as_array_mut().expect("phases") {
        phase["client"].as_object_mut().expect("an object").remove("run_delay_s");
    }
    let read: Record = serde_json::from_value(old).expect("an old record is one");
    assert_eq!((read.noise, read.noise.gate(Yardstick::default())), (Noise::default(), Gate::Ok));
    assert_eq!(read.phases[0].client.run_delay_s, None);
}

/// Nobody tells a run to look before it begins yet: the schema is held against a look itself.
#[test]
fn a_look_before_a_run_is_valid_by_the_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../schema/record.schema.json")).expect("the schema");
    let of_preflight = &schema["properties"]["machine"]["properties"]["preflight"];
    let validator = jsonschema::validator_for(of_preflight).expect("the schema is one");
    let directory = tempfile::tempdir().expect("a directory");
    let seen = serde_json::to_value(gates::preflight(directory.path(), Some(9))).expect("plain data");
    let faults: Vec<String> = validator.iter_errors(&seen).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?} in {seen}");
    assert!(!validator.is_valid(&serde_json::json!({"took_s": 1.0})), "the schema sees what is missing");
}
