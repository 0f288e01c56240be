//! What is claimed of differences, and what it takes: blocks, a warm-up, and targets that are run twice.

use kvfair::model::trial::METHOD;
use serde_json::Value;

use crate::common::desk::{Desk, Said, copy_program, real};

const SMALL: [&str; 4] = ["run", "ngrams", "--messages", "60"];

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL, more].concat()
}

fn blocks(records: &[Value], target: &str, aa_control: bool) -> Vec<u64> {
    let same =
        records.iter().filter(|record| record["target"]["label"] == target && record["aa_control"] == aa_control);
    same.map(|record| record["block"].as_u64().expect("a number")).collect()
}

/// A run that may claim something begins with a block that is counted nowhere, and runs one or two stores twice.
#[test]
fn a_run_that_may_claim_warms_up_and_runs_a_store_twice() {
    let desk = Desk::new();
    let said = desk.run(&run(&["--blocks", "4", "null", "lmdb", "sqlite"]));
    said.complains("warm-up done");
    let records = desk.records();
    // Whoever else is at work may discarded blocks, and others are run in their place.
    let last = records.iter().filter_map(|record| record["block"].as_u64()).max().expect("records");
    assert!(last >= 4, "{last}");
    for target in ["null", "lmdb", "sqlite"] {
        assert_eq!(blocks(&records, target, false), (0..=last).collect::<Vec<_>>(), "{target}");
    }
    let twice: Vec<&str> =
        ["null", "lmdb", "sqlite"].into_iter().filter(|target| !blocks(&records, target, true).is_empty()).collect();
    assert!(!twice.is_empty() && !twice.contains(&"null"), "{twice:?}");
    for target in twice {
        assert_eq!(blocks(&records, target, true), (1..=last).collect::<Vec<_>>(), "chosen once: {target}");
    }
    let order = |block: u64| -> Vec<String> {
        let here = records.iter().filter(|record| record["block"] == block);
        here.map(|record| format!("{} {}", record["target"]["label"], record["aa_control"])).collect()
    };
    assert!((2..=last).any(|block| order(block) != order(1)), "each block's order is drawn anew");
    for row in desk.rows() {
        let trials = row["trials"].as_u64().expect("a count");
        assert!((1..=last).contains(&trials), "second trials and block 0 are in no row: {row}");
    }
    assert!(records.iter().all(|record| record["method"] == METHOD));
}

#[test]
fn a_run_of_three_blocks_claims_nothing_and_does_nothing_besides() {
    let desk = Desk::new();
    let said = desk.run(&run(&["--blocks", "3", "lmdb", "sqlite"]));
    said.exits(0).shows("3 blocks, no claim").shows("Not ranked: 3 blocks ran, 4 are needed.");
    assert_eq!(desk.records().len(), 6);
    assert!(!said.out.contains(" rank ") && !said.out.contains('['), "no interval, no rank: {}", said.out);
}

/// Without a claim no sentence names one target before another.
#[test]
fn a_run_without_a_claim_has_no_heading_of_a_winner() {
    let desk = Desk::new();
    let said = desk.run(&run(&["--blocks", "1", "lmdb", "sqlite", "--html", "page.html"]));
    said.exits(0).shows("Not ranked: 1 block ran, 4 are needed.");
    let page = std::fs::read_to_string(desk.home().join("page.html")).expect("a page");
    let heading = page.split_once("<h1>").and_then(|(_, rest)| rest.split_once("</h1>")).expect("a heading").0;
    assert!(heading.starts_with("Not ranked: ") && !heading.contains("lmdb"), "{heading}");
    desk.run(&run(&["--blocks", "1", "lmdb"])).exits(0).shows("lmdb finished in ");
}

/// The store that answers most requests a second may let some of them wait longest.
#[test]
fn a_verdict_of_requests_names_latency_too() {
    let desk = Desk::new();
    let mixed =
        ["run", "mixed", "--blocks", "4", "--records", "300", "--requests", "3000", "--wide", "lmdb", "redis+unix"];
    let said = desk.run(&mixed);
    said.exits(0).shows("p99 of a request");
    let said = desk.run(&run(&["--blocks", "4", "--wide", "lmdb", "sqlite"]));
    assert!(!said.exits(0).out.contains("p99 of a request"), "of other jobs nothing waits for an answer: {}", said.out);
}

/// Wall time may be disturbed by whoever shares the machine; CPU is what is compared then.
#[test]
fn a_store_that_works_harder_is_found_by_its_cpu_whoever_else_is_at_work() {
    let desk = Desk::new();
    let base = ["compare", "ngrams", "--messages", "150", "--blocks", "4"];
    let with = |base_target: &str, head: &str, limit: &str| {
        desk.run(&[&base[..], &["--base", base_target, "--head", head, "--fail-if", limit]].concat())
    };
    let (plain, slow) = ("faulty?name=plain", "faulty?fault=slow&name=slow");
    with(plain, slow, "cpu:3%").exits(5).shows("slow against plain").shows("more");
    with(slow, plain, "cpu:3%").exits(0).shows("plain against slow").shows("less");
    let again = with(plain, "faulty?name=again", "cpu:500%");
    again.exits(0).shows("again against plain");
}

#[test]
fn two_results_files_are_compared_where_they_may_be() {
    let desk = Desk::new();
    let to = |file: &str, more: &[&str]| {
        desk.run(&run(&[&["--blocks", "4", "--output", file, "faulty?name=x", "null"], more].concat()));
    };
    to("one.jsonl", &[]);
    to("two.jsonl", &[]);
    desk.run(&["compare", "one.jsonl", "two.jsonl"]).exits(0).shows("target").shows(" x ").shows(" null ");
    let json: Value =
        serde_json::from_str(&desk.run(&["compare", "one.jsonl", "two.jsonl", "--json"]).exits(0).out).expect("JSON");
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(2));
    desk.run(&[&SMALL[..3], &["70", "--blocks", "1", "--output", "other.jsonl", "faulty?name=x"]].concat());
    let said = desk.run(&["compare", "one.jsonl", "other.jsonl", "--fail-if", "slower:3%"]);
    said.exits(6).shows("not comparable: another data").complains("neither be shown nor ruled out");
    to("crash.jsonl", &["--durability", "crash"]);
    desk.run(&["compare", "one.jsonl", "crash.jsonl"]).exits(0).shows("another durability: none and crash");
    desk.run(&["compare", "one.jsonl", "none.jsonl"]).exits(1).complains("cannot read results from none.jsonl");
}

/// One comment: the verdict, a table with two rows a target, and what is folded.
#[test]
fn a_comparison_is_shown_as_markdown() {
    let desk = Desk::new();
    let base = ["compare", "ngrams", "--messages", "60", "--blocks", "4", "--markdown", "--output", "one.jsonl"];
    let said = desk.run(&[&base[..], &["--base", "faulty?name=x", "--head", "faulty?name=a|b"]].concat());
    let heading =
        "\n\n| target | measure | base | head | head / base | claim |\n| :-- | :-- | --: | --: | --: | :-- |\n";
    let (verdict, rest) = said.exits(0).out.split_once(heading).expect("a table of the comparison");
    assert!(
        verdict.starts_with("**") && verdict.contains("**: <code>a&#124;b</code> against <code>x</code> "),
        "{verdict}"
    );
    let (rows, details) = rest.split_once("\n\n<details>").expect("what is folded");
    let begins: Vec<Vec<&str>> = rows.lines().map(|row| row.split(" | ").take(2).collect()).collect();
    assert_eq!(begins, [["| <code>a&#124;b</code>", "time"], ["| <code>a&#124;b</code>", "CPU per op"]], "{rows}");
    for line in [
        "- Job: ngrams, 60 messages",
        "- Machine: ",
        "- Versions: <code>",
        "- Noise",
        "- Command: <code>kvfair compare",
    ] {
        assert!(details.contains(line), "{line}: {details}");
    }
    assert!(details.trim_end().ends_with("</details>"), "{details}");

    let said = desk.run(&["compare", "one.jsonl", "one.jsonl", "--markdown"]);
    let rows = said.exits(0).out.split_once(heading).expect("the same table").1;
    assert_eq!(rows.lines().take_while(|row| row.starts_with("| ")).count(), 4, "{rows}");
    desk.run(&["run", "ngrams", "--messages", "70", "--blocks", "1", "--output", "other.jsonl", "faulty?name=x"]);
    let said = desk.run(&["compare", "one.jsonl", "other.jsonl", "--markdown"]);
    said.exits(0).shows("**Not comparable**: <code>x</code> another data").shows("| not comparable: another data");
}

#[test]
fn what_makes_no_comparison_is_a_mistake() {
    let desk = Desk::with_only(&[]);
    desk.run(&["compare"]).exits(2).complains("two results files, or --base and --head");
    desk.run(&["compare", "one.jsonl"]).exits(2).complains("two results files");
    desk.run(&["compare", "--base", "ram"]).exits(2).complains("belong together");
    desk.run(&["compare", "a", "b", "--base", "ram", "--head", "lmdb"]).exits(2).complains("there is one job");
    desk.run(&["compare", "--base", "ram", "--head", "nothing"]).exits(2).complains("nothing");
    desk.run(&["compare", "a", "b", "--fail-if", "faster:3%"]).exits(2).complains("slower:3% or cpu:3%");
    desk.run(&["compare", "--base", "ram", "--head", "ram", "--blocks", "1"]).exits(2).complains("called 'ram'");
    desk.run(&run(&["--effort", "hard", "ram"])).exits(2).complains("quick, normal or careful");
    desk.run(&run(&["--effort", "quick", "--blocks", "3", "ram"])).exits(2).complains("cannot be used with");
}

/// A size that was asked for is kept, and what it will take is said before; the run ends by its effort.
#[test]
fn an_effort_tells_how_many_blocks_there_are() {
    let desk = Desk::new();
    let said = desk.run(&run(&["lmdb", "sqlite"]));
    said.shows("ngrams, 60 messages").complains("for 6 blocks and a warm-up").complains("stopped: ");
    let most = desk.records().iter().filter_map(|record| record["block"].as_u64()).max();
    assert!(most >= Some(6), "{most:?}");
    assert!(desk.records().iter().all(|record| record["run"]["plus_minus"] == 0.05 && record["run"]["blocks"] == 10));
}

/// A pilot whose job cannot be made larger was the block that warms up.
#[test]
fn what_just_ran_needs_no_block_to_warm_up() {
    let desk = Desk::new();
    // So slow to start that nothing larger fits.
    desk.wrap("redis-server", "case \"$*\" in *--version*) ;; *) sleep 1.5;; esac\nexec \"$real\" \"$@\"");
    let said = desk.run(&["run", "fans", "redis+unix", "lmdb", "--effort", "quick", "--budget", "10s"]);
    said.shows("fans, 250 profiles").complains("block 1 of ");
    let records = desk.records();
    assert!(!records.is_empty() && records.iter().all(|record| record["block"] != 0), "{}", said.err);
}

/// Who is alone is compared with itself, and who may not be ends with the least blocks.
#[test]
fn one_store_alone_ends_by_its_own_interval() {
    let desk = Desk::new();
    let alone = ["run", "ngrams", "lmdb", "--messages", "300"];
    let said = desk.run(&alone);
    said.complains("stopped: ");
    assert!(!said.err.contains("nothing to compare") && !said.err.contains("within 0.0 %"), "{}", said.err);
    let said = desk.run(&[&alone[..], &["--no-aa", "--output", "alone.jsonl"]].concat());
    // Where the machine is never quiet it ends by that.
    let is_disturbed = said.err.contains("the machine disturbed");
    assert!(
        !is_disturbed || desk.json(&["alone.jsonl"])["verdict"]["discarded_blocks"].as_u64() > Some(0),
        "{}",
        said.err
    );
    assert!(is_disturbed || said.err.contains("there is nothing to compare with"), "{}", said.err);
}

/// Most of a small trial's time is not the job's: a larger pilot follows. One that is large enough is the block that
/// warms up.
#[test]
fn a_pilot_that_was_far_too_small_is_followed_by_a_larger_one() {
    let desk = Desk::new();
    let said = desk.run(&["run", "getset", "ram", "lmdb", "--clients", "1", "--records", "1000", "--budget", "15s"]);
    let pilots: Vec<u64> =
        said.err.lines().filter_map(|line| line.strip_prefix("kvfair: a pilot of ")).map(leading).collect();
    assert!(pilots[0] == 250 && (2..=3).contains(&pilots.len()), "{}", said.err);
    let units = leading(said.out.split_once("\ngetset, ").expect("a headline").1);
    let was_near = units <= 2 * pilots.last().expect("there are some");
    assert!(was_near || pilots.len() == 3, "{units} after {pilots:?}");
    let records = desk.records();
    assert!(!records.is_empty());
    assert_eq!(records.iter().all(|record| record["block"] != 0), was_near, "{}", said.err);
}

/// A server that does not come up is waited for by the first pilot and by the first block: no other pilot, and no other
/// block, has to find that out again.
#[test]
fn who_failed_in_a_pilot_is_in_no_larger_one() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let (program, log) = (desk.home().join("gone-redis"), desk.home().join("starts.log"));
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) exec redis-server --version;; esac\necho start >>'{}'\nexit 1\n",
        log.display()
    );
    std::fs::write(&program, script).expect("a script");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let store = "redis+unix?program=./gone-redis&name=gone";
    let run = ["run", "getset", "lmdb", store, "--clients", "1", "--records", "1000"];
    let begun = |budget: &str| {
        std::fs::write(&log, "").expect("it is ours");
        desk.run(&[&run[..], &["--budget", budget]].concat())
    };
    let pilots = |said: &Said| said.err.matches("a pilot of").count();
    // On a slow disk the first pilot takes all the time that a short run has for them.
    let mut said = begun("12s");
    if pilots(&said) == 1 {
        said = begun("80s");
    }
    said.exits(3);
    let starts = std::fs::read_to_string(&log).expect("it began");
    assert!(pilots(&said) > 1, "{}", said.err);
    assert_eq!(starts.lines().count(), 2, "{}", said.err);
}

/// The number in front, which has a comma before its thousands.
fn leading(words: &str) -> u64 {
    let number = words.split(' ').next().unwrap_or_default().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("no number in front of '{words}'"))
}

/// One target's noise does not silence the others: the noise floor of long trials comes from a long one.
#[test]
fn the_shortest_and_a_long_target_are_run_twice() {
    let desk = Desk::new();
    let targets = ["null", "lmdb", "sqlite", "redis", "redis+unix", "memcached", "memcached+unix"];
    desk.run(&[&["run", "fans", "--profiles", "30", "--blocks", "4"], &targets[..]].concat());
    let records = desk.records();
    let twice: Vec<&str> = targets.into_iter().filter(|target| !blocks(&records, target, true).is_empty()).collect();
    // On a busy machine another embedded store may be the shortest.
    assert!(twice.len() == 2 && ["lmdb", "sqlite"].contains(&twice[0]), "{twice:?}");
    let headline = desk.run(&["show", "--wide"]).out;
    let headline = headline.replace('\n', " ");
    assert!(headline.contains("same store twice: ") && headline.contains(&format!(" {},", twice[0])), "{headline}");
}

/// Another build of a server, and settings that must be in force.
#[test]
fn another_build_and_other_settings_stand_beside_the_first() {
    let desk = Desk::with_only(&["redis-server"]);
    let program = real("redis-server").display().to_string();
    let copied = desk.home().join("my-redis");
    copy_program(&program, &copied);
    let logged = "redis+unix?appendonly=yes&appendfsync=everysec&name=logged";
    desk.run(&run(&["--blocks", "1", "redis+unix?program=./my-redis&name=mine", logged])).exits(0);
    let command = desk.record("mine")["store"]["command"][0].as_str().expect("a program").to_string();
    assert!(command.ends_with("/my-redis"), "{command}");
    assert_eq!(desk.record("logged")["store"]["settings"]["appendonly"], "yes");
    assert_eq!(desk.record("logged")["store"]["settings"]["appendfsync"], "everysec");
    let gone = desk.run(&run(&["--blocks", "1", "redis?program=/nowhere/redis-server&name=gone"]));
    gone.exits(2).complains("gone: /nowhere/redis-server is no program that can be run");
    let unkept = run(&["--blocks", "1", "--durability", "crash", "redis?appendonly=no&name=unkept"]);
    desk.run(&unkept).exits(3).shows("appendonly no");
    desk.run(&run(&["redis://127.0.0.1:1?program=/bin/true"])).exits(2).complains("for a server that is started here");
    desk.run(&run(&["redis?appendonly=maybe"])).exits(2).complains("yes or no");
}
