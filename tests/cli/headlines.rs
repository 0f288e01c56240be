//! What stands above and below a table says what the numbers are, and what they are not.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::forms;
use crate::cli::strangers::port_of;
use crate::common;
use crate::common::desk::{Desk, Started, one_line, wait_for};

/// Results of another day in which every second trial of a block took so much more time and CPU.
fn with_second_trials(time: f64, cpu: f64) -> String {
    let mut text = String::new();
    for line in forms::results("fans").lines() {
        let mut record: Value = serde_json::from_str(line).expect("a record");
        if record["aa_control"] == true {
            for phase in record["phases"].as_array_mut().expect("phases") {
                let mut scale = |path: &str, by: f64| {
                    if let Some(found) = phase.pointer_mut(path).filter(|found| found.is_number()) {
                        *found = Value::from(found.as_f64().expect("a number") * by);
                    }
                };
                scale("/took_s", time);
                ["/client/user_s", "/client/system_s", "/server/user_s", "/server/system_s"]
                    .iter()
                    .for_each(|path| scale(path, cpu));
            }
        }
        text += &format!("{record}\n");
    }
    text
}

#[test]
fn an_interval_of_the_same_store_that_leaves_out_1_is_commented_on() {
    let desk = Desk::with_only(&[]);
    let shown =
        |name, time, cpu| one_line(&desk.run(&["show", "--wide", desk.file(name, with_second_trials(time, cpu))]).out);
    let same = shown("same.jsonl", 1.0, 1.0);
    assert!(!same.contains("differed from itself"), "{same}");
    let slower = shown("slower.jsonl", 1.3, 1.0);
    for words in
        ["noisy", "warning (aa-control): ", "differed from itself: the second trial of redis took 1.", "time of its"]
    {
        assert!(slower.contains(words), "no {words} in {slower}");
    }
    assert!(slower.contains("differences in time of up to ") && !slower.contains("the CPU of its"), "{slower}");
    let by_cpu = shown("cpu.jsonl", 1.0, 1.3);
    assert!(by_cpu.contains("the second trial of redis took 1.") && by_cpu.contains("the CPU of its"), "{by_cpu}");
}

#[test]
fn a_run_that_still_goes_on_is_not_shown_as_if_it_had_ended() {
    let desk = Desk::new();
    let file = desk.home().join("on.jsonl");
    let run = ["run", "getset", "ram", "lmdb", "--clients", "1,2", "--requests", "2000", "--blocks", "500"];
    let started = Started::new(desk.kvfair(&[&run[..], &["--output", "on.jsonl"]].concat()));
    wait_for("records", || std::fs::read_to_string(&file).ok().filter(|text| text.lines().count() > 4));
    desk.run(&["show", "on.jsonl"]).exits(0).shows("not finished · ").complains("the run is still in progress");
    desk.run(&["show", "on.jsonl", "--markdown"]).exits(0).shows("not finished");
    desk.run(&["show", "on.jsonl", "--json"]).exits(0).complains("the run is still in progress");
    desk.run(&["show", "on.jsonl", "--svg", "on.svg"]).exits(0);
    let svg = std::fs::read_to_string(desk.home().join("on.svg")).expect("a chart");
    assert!(one_line(&svg).contains("not finished"), "{svg}");
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
    let ended = desk.run(&["show", "on.jsonl"]);
    assert!(!ended.exits(0).out.contains("not finished") && !ended.err.contains("in progress"), "{}", ended.out);
}

/// Nobody knows where the data of a server that kvfair did not start lies and what becomes of it.
#[test]
fn a_headline_does_not_say_of_a_strangers_server_what_is_true_of_ours() {
    let server = common::start("redis", kvfair::model::trial::Transport::Tcp);
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}/5", port_of(&server));
    let run = ["run", "fans", "--profiles", "30", "--blocks", "1"];
    let headline = |more: &[&str]| {
        let said = desk.run(&[&run[..], more].concat());
        one_line(said.exits(0).out.split(" target ").next().unwrap_or_default())
    };
    let alone = headline(&[&url, "ram"]);
    assert!(alone.contains(" · a server not started by kvfair · "), "{alone}");
    assert!(!alone.contains("in memory") && !alone.contains("durability"), "{alone}");
    let both = headline(&[&url, "lmdb"]);
    assert!(
        both.contains("data fits in memory · durability none · a server not started by kvfair: redis://"),
        "{both}"
    );
    let other = format!("redis://127.0.0.1:{}/6", port_of(&server));
    let two = headline(&[&url, &other]);
    assert!(two.contains(" · servers not started by kvfair · ") && !two.contains("durability"), "{two}");
}

/// A durability level is read back from a server that kvfair did not start, or it is not claimed.
#[test]
fn what_a_server_does_not_tell_of_itself_is_not_assumed() {
    let server = common::start("redis", kvfair::model::trial::Transport::Tcp);
    assert_eq!(crate::cli::strangers::ask(&server, "ACL SETUSER default -config"), "+OK");
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let small = ["run", "fans", "--profiles", "30", "--blocks", "1"];
    for (options, words) in [
        (vec!["--durability", "crash", &url], "does not tell appendonly (CONFIG GET refused: "),
        (vec![&format!("{url}?appendfsync=always")], "does not tell appendfsync (CONFIG GET refused: "),
    ] {
        desk.run(&[&small[..], &options].concat()).exits(1);
        let reason = desk.reason(options.last().expect("a target"));
        assert!(reason.contains(words) && reason.contains("let it answer CONFIG GET, or leave "), "{reason}");
        // Results files are named by the second.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    desk.run(&[&small[..], &[&url]].concat()).exits(0);
    assert_eq!(desk.record(&url)["keeps"], "as its owner has it");
}
