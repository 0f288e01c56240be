//! A run once more, from a bundle and from a page, with real stores: what was claimed is judged anew.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::bundles::unpacked;
use crate::cli::forms::results;
use crate::cli::page::{embedded, lines, page_of, records, says};
use crate::common::desk::{Desk, Said, one_line, records_in};

/// Stores that nothing confuses.
const RUN: &[&str] = &["run", "fans", "--profiles", "150", "--blocks", "4", "lmdb", "redis"];

/// Runs a job at a desk, and leaves its results as run.jsonl, run.tar.zst and run.html.
fn ran(desk: &Desk, run: &[&str]) {
    let said = desk.run(&[run, &["--output", "run.jsonl", "--html", "run.html"]].concat());
    said.exits(0);
    desk.run(&["bundle", "run.jsonl"]).exits(0);
    let claims = desk.json(&["run.jsonl"])["claims"].clone();
    assert!(claims.as_array().is_some_and(|claims| !claims.is_empty()), "{}{}", said.out, said.err);
}

fn take(from: &Desk, name: &str, to: &Desk) {
    fs::copy(from.home().join(name), to.home().join(name)).expect("a file");
}

/// Nothing is contradicted: 0 where all is reproduced, and 6 where something cannot be told.
#[track_caller]
fn holds(said: &Said) {
    said.shows("claims of the first run").shows(", 0 contradicted, ");
    let is_whole = one_line(&said.out).contains(", 0 contradicted, 0 cannot be told.");
    said.exits(if is_whole { 0 } else { 6 });
}

fn read(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_bundle_and_a_page_are_run_again_elsewhere_and_swapped_targets_are_contradicted() {
    let (here, there) = (Desk::new(), Desk::new());
    ran(&here, RUN);
    ["run.tar.zst", "run.html"].iter().for_each(|name| take(&here, name, &there));
    let said = there.run(&["rerun", "run.tar.zst"]);
    holds(&said);
    said.shows("lmdb uses less CPU than redis: ").shows("no difference is known");
    let said = there.run(&["rerun", "run.html"]);
    holds(&said);
    said.complains("page: run-2.html");
    // Data and seeds are the same.
    let seeds = |path: &Path| {
        let record: Value = records_in(path).pop().expect("a record");
        (record["run"]["seeds"].clone(), record["stream"]["sha256"].clone(), record["job"]["units"].clone())
    };
    let newest = there.records().pop().expect("a record");
    let newest = (newest["run"]["seeds"].clone(), newest["stream"]["sha256"].clone(), newest["job"]["units"].clone());
    assert_eq!(seeds(&here.home().join("run.jsonl")), newest);
    let program = here.home().join("run.jsonl");
    let redis =
        records_in(&program).into_iter().rfind(|record| record["target"]["label"] == "redis").expect("a record");
    let sha256 = redis["store"]["program_sha256"].as_str().expect("of the server").to_string();
    assert_eq!(
        sha256,
        crate::cli::bundles::hex(&fs::read(crate::common::desk::real("redis-server")).expect("the server"))
    );

    // A page with two runs is run again, too.
    let page = read(&there, "run-2.html");
    says(&page, &["lmdb uses less CPU than redis: held in 2 of 2 runs on 1 machine", "Would refute it: ", "run 2"]);
    let manifest = embedded(&page, "manifest");
    assert_eq!(manifest["replications"].as_array().map(Vec::len), Some(1));
    let said = there.run(&["show", "run.html", "run-2.html", "--html", "all.html"]);
    said.exits(0).shows("lmdb uses less CPU than redis: held in 2 of 2 runs");
    assert_eq!(read(&there, "all.html"), page, "each run once");

    swapped_are_contradicted(&here, &there);
}

/// Two targets whose names are swapped in every record.
fn swapped_are_contradicted(here: &Desk, there: &Desk) {
    let mut all = records_in(&here.home().join("run.jsonl"));
    let target =
        |label: &str| all.iter().find(|record| record["target"]["label"] == label).expect("a record")["target"].clone();
    let (lmdb, redis) = (target("lmdb"), target("redis"));
    for record in &mut all {
        let is_lmdb = record["target"]["label"] == "lmdb";
        record["target"] = if is_lmdb { redis.clone() } else { lmdb.clone() };
    }
    here.file("swapped.jsonl", lines(&all));
    here.run(&["bundle", "swapped.jsonl"]).exits(0);
    take(here, "swapped.tar.zst", there);
    let said = there.run(&["rerun", "swapped.tar.zst", "--html", "swapped.html"]);
    said.exits(5).shows("contradicted redis uses less CPU than lmdb: redis uses ");
    says(
        &read(there, "swapped.html"),
        &["<h1>redis ", "redis uses less CPU than lmdb: held in 1 of 2 runs on 1 machine; contradicted in 1"],
    );
}

#[test]
fn data_of_a_users_own_goes_with_a_bundle_and_is_asked_for_by_a_page() {
    let (here, there) = (Desk::new(), Desk::new());
    let data = here.run(&["data", "fans", "--profiles", "150"]);
    here.file("mine.jsonl", &data.out);
    let run = ["run", "fans", "--input", "mine.jsonl", "--blocks", "4", "lmdb", "redis"];
    ran(&here, &run);
    let names: Vec<String> = unpacked(&here.home().join("run.tar.zst")).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"data/mine.jsonl".to_string()), "{names:?}");
    ["run.tar.zst", "run.html"].iter().for_each(|name| take(&here, name, &there));
    holds(&there.run(&["rerun", "run.tar.zst"]));
    there
        .run(&["rerun", "run.html"])
        .exits(1)
        .complains("the data (mine.jsonl) is not in it")
        .complains("--input FILE");
    there.file("wrong.jsonl", data.out.replace("Michael Jackson", "Somebody Else"));
    let said = there.run(&["rerun", "run.html", "--input", "wrong.jsonl"]);
    said.exits(1)
        .complains("--input wrong.jsonl: its SHA-256 as the job reads it is")
        .complains("that of the first run");
    there.file("right.jsonl", &data.out);
    holds(&there.run(&["rerun", "run.html", "--input", "right.jsonl", "--html", "mine.html"]));
    assert!(!read(&there, "mine.html").contains("right.jsonl"));
    // What is no longer the data of the run is not packed as if it were.
    here.file("mine.jsonl", data.out.replace("Michael Jackson", "Somebody Else"));
    let said = here.run(&["bundle", "run.jsonl", "--output", "other.tar.zst"]);
    said.exits(0).complains("the data (mine.jsonl) is not in the bundle: it was changed since the run");
    take(&here, "other.tar.zst", &there);
    there.run(&["rerun", "other.tar.zst"]).exits(1).complains("the data (mine.jsonl) is not in it");
}

/// Neither the first look nor a comparison needs a command that was typed as a run.
#[test]
fn a_run_whose_stores_are_not_installed_is_not_repeated() {
    let desk = Desk::with_only(&[]);
    let compare = json!(["compare", "--base", "redis", "--head", "redis+unix", "--profiles", "50", "--blocks", "1"]);
    for (place, command) in [json!([]), compare].into_iter().enumerate() {
        let mut all = records("fans");
        for record in &mut all {
            record["run"]["command"] = command.clone();
            record["job"]["units"] = 50.into();
        }
        let name = format!("gone{place}.jsonl");
        desk.file(&name, lines(&all));
        desk.run(&["bundle", &name]).exits(0);
        let bundle = name.replace("jsonl", "tar.zst");
        for more in [&[][..], &["--skip-missing"]] {
            let said = desk.run(&[&["rerun", &bundle][..], more].concat());
            said.exits(3).complains("redis: there is no redis-server on PATH");
        }
        assert!(desk.records().is_empty(), "nothing was run");
    }
}

#[test]
fn a_page_that_is_none_of_kvfairs_is_refused() {
    let desk = Desk::with_only(&[]);
    let (_, page) = page_of(&results("fans"));
    let manifest = embedded(&page, "manifest");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = manifest.clone();
        change(&mut changed);
        let told = changed.to_string().replace('<', "\\u003c");
        format!("<html><script type=\"application/json\" id=\"manifest\">{told}</script></html>")
    };
    let bad = [
        ("<html></html>".to_string(), "it has no manifest"),
        (String::new(), "it has no manifest"),
        (page.clone() + &page, "it has two manifests"),
        (
            with(&|manifest| manifest["form"] = 1.into()),
            "its manifest has form 1 (kvfair 0.1.0), and this kvfair reads form 2",
        ),
        (with(&|manifest| manifest["method"] = 1.into()), "it was measured by method 1"),
        (with(&|manifest| manifest["claims"] = json!([])), "it claims nothing"),
        (with(&|manifest| manifest["claims"][0]["less"] = "evil".into()), "and no target evil"),
        (with(&|manifest| manifest["claims"][0]["measure"] = "evil".into()), "unknown variant `evil`"),
        (with(&|manifest| manifest["claims"][0]["ratio"] = (-1).into()), "without a ratio"),
        (with(&|manifest| manifest["data"]["sha256"] = "evil".into()), "no SHA-256 of the data"),
        (with(&|manifest| manifest["seeds"] = Value::Null), "its manifest cannot be read"),
        (with(&|manifest| manifest["command"] = json!(["run", "--exec", "touch evil", "redis"])), "it names programs"),
    ];
    for (text, why) in bad {
        desk.file("bad.html", &text);
        let said = desk.run(&["rerun", "bad.html"]);
        said.exits(if why == "it names programs" { 2 } else { 1 }).complains(why);
    }
    assert!(!desk.home().join("evil").exists() && !desk.home().join("bad-2.html").exists());
}

#[test]
fn pages_of_one_job_are_joined_and_others_are_named() {
    let desk = Desk::with_only(&[]);
    for name in ["fans", "noisy"] {
        desk.file(&format!("{name}.jsonl"), results(name));
        desk.run(&["show", &format!("{name}.jsonl"), "--html", &format!("{name}.html")]);
    }
    // The same run on another machine, which says the opposite.
    let page = read(&desk, "fans.html");
    let mut other = embedded(&page, "manifest");
    other["machine"]["cpu"] = "<b>another</b>".into();
    for claim in other["claims"].as_array_mut().expect("claims") {
        let (less, more) = (claim["less"].clone(), claim["more"].clone());
        (claim["less"], claim["more"]) = (more, less);
    }
    let told = other.to_string().replace('<', "\\u003c");
    desk.file("other.html", format!("<script type=\"application/json\" id=\"manifest\">{told}</script>"));
    let said = desk.run(&["show", "fans.html", "other.html", "--html", "both.html"]);
    let words = "redis over a Unix socket is faster than over TCP: held on 1 of 2 machines; contradicted on 1";
    said.exits(0).shows(words).complains("page: both.html");
    let both = read(&desk, "both.html");
    says(&both, &[words, "&lt;b&gt;another&lt;/b&gt;", "<details>", "default-src 'none'"]);
    // Each run has a line in the picture, and the opposite stands left of 1x.
    says(
        &both,
        &[
            "<title>Claims by machine, times as much as the first target of the claim: redis",
            "another&lt;/b&gt; contradicted: 0.8",
            "run 2: &lt;b&gt;another",
            ">contradicted</text>",
        ],
    );
    desk.run(&["show", "both.html", "fans.html", "--html", "again.html"]).exits(0);
    assert_eq!(read(&desk, "again.html"), both, "the same runs give the same bytes");
    let said = desk.run(&["show", "fans.html", "noisy.html", "--html", "no.html"]);
    said.exits(1).complains("these pages do not belong together: another ");
    desk.run(&["show", "fans.html", "other.html"]).exits(2).complains("--html OUT.html");
    desk.run(&["show", "fans.html", "fans.jsonl", "--html", "no.html"]).exits(2).complains("fans.jsonl is no page");
    desk.run(&["show", "fans.jsonl", "noisy.jsonl"]).exits(2).complains("show takes one results file");
    assert!(!desk.home().join("no.html").exists());
}

/// Each claim unfolds to its evidence and to the command that would refute it.
#[test]
fn claims_on_a_page_have_evidence_and_a_command() {
    let (_, page) = page_of(&results("fans"));
    says(
        &page,
        &[
            ">10 blocks count, 7 were disturbed",
            "<th scope=\"row\">redis over a Unix socket is faster than over TCP</th>",
            ">redis takes 1.18 times as long [1.14-1.27], beside redis+unix</td>",
            ">would refute it</th>",
            "<td class=\"left\"><code>kvfair ",
        ],
    );
}
