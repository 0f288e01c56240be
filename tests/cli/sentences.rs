//! What a table and its sentences say agrees with the records, as a program of its own computes it.

use std::path::PathBuf;
use std::process::Command;

use crate::cli::forms::results;
use crate::common::desk::{Desk, Said, Started};
use crate::common::needs::{Need, needs};

/// What `tests/sentences.py` says of a results file and of a text.
fn judged(desk: &Desk, records: &str, shown: &str) -> Said {
    desk.file("shown.txt", shown);
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sentences.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(program).args([records, "shown.txt"]).current_dir(desk.home());
    Started::new(command).wait()
}

#[test]
fn golden_results_say_what_their_records_give_and_a_changed_number_is_noticed() {
    needs!(Need::program("python3"));
    let desk = Desk::with_only(&["python3"]);
    for name in ["fans", "getset", "noisy", "rates"] {
        let file = format!("{name}.jsonl");
        desk.file(&file, results(name));
        let shown = desk.run(&["show", &file]).exits(0).out.clone();
        judged(&desk, &file, &shown).exits(0).shows("sentences and");
    }
    let shown = desk.run(&["show", "fans.jsonl"]).exits(0).out.clone();
    for (said, other) in [("1.18x [1.14-1.27]", "1.28x [1.14-1.37]"), ("7 of 17 blocks", "6 of 17 blocks")] {
        assert!(shown.contains(said), "no {said}: {shown}");
        judged(&desk, "fans.jsonl", &shown.replace(said, other)).exits(1).shows(other);
    }
}

/// Of what is measured here and now: a table of stores.
#[test]
fn results_of_today_say_what_their_records_give() {
    needs!(Need::program("python3"), Need::server("redis"));
    let desk = Desk::new();
    for (job, size) in [("ngrams", "--messages"), ("fans", "--profiles")] {
        let file = format!("{job}.jsonl");
        let run = ["run", job, "ram", "lmdb", "redis", "redis+unix", size, "100", "--blocks", "4", "--output", &file];
        desk.run(&run);
        let shown = desk.run(&["show", &file]).out.clone();
        judged(&desk, &file, &shown).exits(0).shows("sentences and");
    }
}
