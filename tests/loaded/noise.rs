//! Others at work while a trial runs: they are seen, and the trial is discarded.

use kvfair::model::noise::{Gate, Sign, Yardstick};
use kvfair::model::part::Part;
use kvfair::model::record::Record;

use crate::common::desk::Desk;
use crate::common::load::{alone, spinners};

fn record(desk: &Desk, target: &str) -> Record {
    serde_json::from_value(desk.record(target)).expect("a record")
}

/// Nobody else on the processors may be promised to a test, so it is strangers of its own that it looks for.
#[cfg(target_os = "linux")]
#[test]
fn strangers_at_work_are_seen_and_make_trials_void() {
    let _alone = alone();
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
        let run = record.phase(Part::Run).expect("it ran");
        assert!(noise.seen_s >= run.took_s, "{target}: {noise:?} of {} s", run.took_s);
        // The client's thread has ended with the phase, and what it waited is known all the same.
        assert!(run.client.run_delay_s > Some(0.05 * run.took_s), "{target}: {:?} of {} s", run.client, run.took_s);
        assert_eq!(run.server.map(|server| server.run_delay_s.is_some()), (target != "ram").then_some(true));
    }
    let noise = record(&desk, "ram").noise;
    assert!(noise.client_delay_share > Some(0.2) && noise.server_delay_share.is_none(), "{noise:?}");
}
