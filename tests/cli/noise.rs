//! What else goes on while a trial runs: its own servers, threads and syncs are no strangers' work. Strangers that are
//! really at work stand in `tests/loaded`.

use kvfair::harness::gates;
use kvfair::model::noise::{Gate, Noise, Yardstick};
use kvfair::model::part::Part;
use kvfair::model::record::Record;
use kvfair::model::trial::Transport;
use serde_json::Value;

use crate::common;
use crate::common::desk::Desk;

fn record(desk: &Desk, target: &str) -> Record {
    serde_json::from_value(desk.record(target)).expect("a record")
}

/// Far more threads than processors wait for each other, and that is no stranger's doing.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_are_more_than_the_processors_are_not_asked_why_they_wait() {
    let desk = Desk::with_only(&[]);
    let clients = (4 * std::thread::available_parallelism().map_or(1, usize::from)).to_string();
    desk.run(&["run", "ngrams", "--blocks", "1", "--messages", "3000", "--clients", &clients, "ram"]).exits(0);
    let record = record(&desk, "ram");
    assert!(record.phase(Part::Run).expect("it ran").client.run_delay_s > Some(0.0), "{:?}", record.noise);
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
