//! What a terminal shows of blocks that other programs disturbed.

use crate::common::desk::{Desk, Started};
use crate::common::load::{alone, spinners};

/// As long as the run goes on.
#[test]
fn why_a_block_was_discarded_stands_above_the_bar() {
    let _alone = alone();
    let desk = Desk::new();
    let run = "run fans lmdb redis+unix --profiles 300 --blocks 4";
    let typed = format!("stty rows 50 cols 200; {} {run}", env!("CARGO_BIN_EXE_kvfair"));
    let mut script = desk.command("/usr/bin/script", &["-qec", &typed, "/dev/null"]);
    script.env("PATH", format!("{}:/usr/bin:/bin", desk.path())).env("TERM", "xterm").env("SHELL", "/bin/sh");
    script.env_remove("KVFAIR_ACCEPT_NOISE");
    let strangers = spinners(&desk);
    let all = Started::new(script).wait().out;
    drop(strangers);
    let reason = "disturbed blocks: 1, ";
    let (_, rest) = all.split_once(reason).unwrap_or_else(|| panic!("{all}"));
    let (_, rest) = rest.split_once("; the last, block ").unwrap_or_else(|| panic!("{all}"));
    // Which of the signs of noise came first is chance: each tells its share.
    let why = rest.split(['\r', '\n', '\u{1b}']).next().and_then(|line| line.split_once(": ")).map(|(_, why)| why);
    assert!(why.is_some_and(|why| why.contains(" %")), "{why:?} of {all}");
    let (_, result) = all.rsplit_once("fans, 300 profiles").unwrap_or_else(|| panic!("{all}"));
    assert!(!result.contains(reason), "the screen is cleared: {all}");
}
