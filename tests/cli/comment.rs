//! `compare --markdown`, a comment for a change, and several `--fail-if`: what decides, and that no name is markup.

use serde_json::Value;

use crate::cli::page::{is_of, lines, records};
use crate::common::desk::{Desk, Said};
use crate::common::golden::are_golden;

/// What attackers call a target.
const HOSTILE: &str = "<script>alert(1)</script>|`x` @ann [y](http://z) \\| **w** #1\u{202e}";

/// The golden run of `fans`, and as a second one the same with the targets' times so many times as long.
pub fn two_runs(desk: &Desk, times: &[(&str, f64)], change: impl Fn(&mut Value)) {
    let mut all = records("fans");
    all.iter_mut().for_each(&change);
    desk.file("base.jsonl", lines(&all));
    let mut all = records("fans");
    for (target, factor) in times {
        for record in all.iter_mut().filter(|record| is_of(record, target)) {
            for phase in record["phases"].as_array_mut().expect("phases") {
                phase["took_s"] = (phase["took_s"].as_f64().expect("a time") * factor).into();
            }
        }
    }
    all.iter_mut().for_each(&change);
    desk.file("head.jsonl", lines(&all));
}

pub fn compared(desk: &Desk, more: &[&str]) -> Said {
    desk.run(&[&["compare", "base.jsonl", "head.jsonl"], more].concat())
}

#[test]
fn golden_comment_is_as_it_was() {
    let desk = Desk::with_only(&[]);
    two_runs(&desk, &[("redis", 1.6)], |_| {});
    let said = compared(&desk, &["--markdown", "--fail-if", "slower:5%", "--fail-if", "cpu:300%"]);
    are_golden([("tests/golden/shown/compare.md".to_string(), said.exits(5).out.as_str())]);
    assert_eq!(
        compared(&desk, &["--markdown"]).exits(0).out.lines().next(),
        Some("**2 targets**: 1 slower, 1 no difference found.")
    );
}

#[test]
fn no_name_is_markup_in_a_comment() {
    let desk = Desk::with_only(&[]);
    two_runs(&desk, &[("redis", 1.6)], |record| {
        if is_of(record, "redis") {
            record["target"]["label"] = HOSTILE.into();
        }
        record["store"]["version"] = HOSTILE.into();
        record["machine"]["cpu"] = HOSTILE.into();
        record["run"]["command"] = serde_json::json!(["compare", HOSTILE, "redis://me:S3CRET@db.example.com/1"]);
    });
    let said = compared(&desk, &["--markdown", "--fail-if", "slower:5%"]);
    let out = &said.exits(5).out;
    let mut rest = out.clone();
    for ours in
        ["<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>", "**Regression**", "[1.5", "[0.9"]
    {
        rest = rest.replace(ours, "");
    }
    for bad in ["<", ">", "`", "@", "**", "](", "www", "http:", "S3CRET", "db.example", "\u{202e}", "\\|"] {
        assert!(!rest.contains(bad), "{bad} in {out}");
    }
    let rows: Vec<&str> = out.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 6, "{out}");
    assert!(rows.iter().all(|row| row.matches('|').count() == 7), "a name ends no cell: {out}");
}

/// Any of them is enough, whichever comes first, and each is told.
#[test]
fn one_limit_that_is_exceeded_decides() {
    let desk = Desk::with_only(&[]);
    two_runs(&desk, &[("redis", 1.6)], |_| {});
    let with = |limits: &[&str]| {
        let more: Vec<&str> = limits.iter().flat_map(|limit| ["--fail-if", limit]).collect();
        compared(&desk, &more)
    };
    for limits in [["slower:5%", "cpu:300%"], ["cpu:300%", "slower:5%"]] {
        let said = with(&limits);
        said.exits(5).complains("slower:5% is exceeded: redis takes 1.6").complains("cpu:300% is kept: redis uses");
    }
    with(&["slower:300%", "cpu:300%"]).exits(0).complains("slower:300% is kept").complains("cpu:300% is kept");
    let said = with(&["slower:300%", "cpu:0%"]);
    said.exits(6)
        .complains("cpu:0%: a regression of that size can neither be shown nor ruled out")
        .complains(" hint: ");
    let said = compared(&desk, &["--markdown", "--fail-if", "cpu:300%", "--fail-if", "slower:5%"]);
    said.exits(5).shows("**Regression**: slower:5% is exceeded: <code>redis</code> takes");
    with(&["slower:5%", "cpu:0%"]).exits(5).complains("slower:5% is exceeded").complains("nor ruled out");
}

#[test]
fn what_is_no_limit_is_named_before_anything_is_read() {
    let desk = Desk::with_only(&[]);
    let with = |limits: &[&str]| {
        let limits: Vec<&str> = limits.iter().flat_map(|limit| ["--fail-if", limit]).collect();
        desk.run(&[&["compare", "none.jsonl", "none.jsonl"], &limits[..]].concat())
    };
    with(&["memory:3%"]).exits(2).complains("'memory'").complains("hint: slower:3% or cpu:3%");
    with(&["slower:3%", "time>5%"]).exits(2).complains("a measure, a colon and a share");
    with(&["slower:3"]).exits(2).complains("no percent sign");
    with(&["slower:-3%"]).exits(2).complains("0% to 1000%");
    with(&["slower:3%", "cpu:3%", "slower:5%"])
        .exits(2)
        .complains("slower:3% and slower:5%: both limit the same measure");
    with(&["cpu:3%", "cpu:3%"]).exits(2).complains("hint: keep the one that is meant");
}
