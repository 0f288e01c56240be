//! The budget that a hint proposes: one number in all of a run's output, and enough.

use crate::common::desk::{Desk, one_line};
use crate::common::load::alone;

/// The value of `--budget` behind these words.
fn budget_behind<'a>(text: &'a str, words: &str) -> &'a str {
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("no '{words}' in {text}"));
    let (_, rest) = rest.split_once("--budget ").unwrap_or_else(|| panic!("no budget in {rest}"));
    rest.split(' ').next().unwrap_or_default()
}

#[test]
fn the_budget_of_the_hint_is_that_of_the_next_command_and_is_enough() {
    let _alone = alone();
    let desk = Desk::new();
    desk.wrap("redis-server", "case \"$*\" in *--version*) ;; *) sleep 1;; esac\nexec \"$real\" \"$@\"");
    let run = ["run", "fans", "lmdb", "redis+unix", "--clients", "2", "--profiles", "60"];
    let said = desk.run(&[&run[..], &["--budget", "6s"]].concat());
    said.exits(6).shows(", no claim");
    let (before, after) = (one_line(&said.err), one_line(&said.out));
    let budget = budget_behind(&before, "hint: ");
    assert_eq!(budget, budget_behind(&after, "next: "), "{before}\n{after}");
    let said = desk.run(&[&run[..], &["--budget", budget]].concat());
    assert!(!said.out.contains("no claim") && !said.err.contains("hint: "), "{}{}", said.err, said.out);
}
