//! Results of `kvfair growth` shown again: as they were printed, drawn, as a page, and what they are refused for.

use serde_json::{Value, json};

use crate::cli::forms::results;
use crate::cli::page::{embedded, lines, page_of, records, says};
use crate::common::desk::Desk;

/// Two stores: one with a fault that was planted, and one without.
const FAULT: &str = "bad: the CPU of a get-many of n keys grows with n^";

#[test]
fn a_file_of_growth_is_shown_in_words_markdown_and_json() {
    let desk = Desk::with_only(&[]);
    desk.file("growth.jsonl", results("growth"));
    let shown = |form: &[&str]| desk.run(&[&["show", "growth.jsonl"], form].concat());
    let text = shown(&[]);
    assert!(text.out.starts_with("growth: the CPU of client and server as n grows, seed 1\n"), "{}", text.out);
    text.shows(FAULT).shows("a get-many of n keys").shows("out of proportion");
    let (markdown, json) = (shown(&["--markdown"]), shown(&["--json"]));
    markdown.shows("| bad | a get-many of n keys | 1-1,024 |").shows("- bad: the CPU of a get-many");
    assert_eq!((markdown.code, json.code), (text.code, text.code), "{}", markdown.err);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    let grown = json["rows"].as_array().expect("rows");
    assert_eq!(grown.len(), 2 * 8, "two stores, four sizes, set and get");
    for one in grown {
        let sizes = one["sizes"].as_array().expect("sizes");
        let number = |size: &Value, name: &str| size[name].as_f64().expect("a number");
        assert_eq!((&sizes[0]["n"], &sizes[sizes.len() - 1]["n"]), (&one["from"], &one["to"]));
        for size in sizes {
            let [low, middle, high] =
                ["cpu_us_lowest", "cpu_us_median", "cpu_us_highest"].map(|name| number(size, name));
            assert!(0.0 < low && low <= middle && middle <= high, "{one}");
        }
    }
    let is_fault = |one: &&Value| one["verdict"] == "out_of_proportion";
    let faults: Vec<String> =
        grown.iter().filter(is_fault).map(|one| format!("{} {}", one["part"], one["over"])).collect();
    assert_eq!(faults, ["\"get\" \"batch\""]);
}

#[test]
fn the_page_of_growth_has_a_chart_of_each_cost() {
    let (said, page) = page_of(&results("growth"));
    assert!(page_of(&results("growth")).1 == page, "the same input gives the same bytes");
    let (_, heading) = page.split_once("<h1>").expect("a heading");
    let heading = heading.split_once("</h1>").expect("its end").0;
    assert!(heading.starts_with(FAULT), "{heading}");
    let sentence = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sentence.contains(heading.split_once(": out of").expect("a fault").0), "{sentence}");
    assert_eq!(page.matches("aria-label=\"Chart: ").count(), 8, "four sizes, set and get");
    says(
        &page,
        &[
            "CPU us of a get-many, for each of its keys",
            ">bad, out of proportion</text>",
            "<th scope=\"row\" data-walk=\"M",
            ">524,288</th>",
            "a line that rises: each byte, key or request costs more",
            "<caption>The CPU of client and server</caption>",
            "<summary>Versions and settings</summary>",
            "<dt>answers</dt><dd>right in ",
        ],
    );
    for other in ["times as long as", "vs best", "same store twice", "id=\"bases\"", "<h2>Time</h2>"] {
        assert!(!page.contains(other), "{other}: trials that ask for different things are not compared");
    }
    let manifest = embedded(&page, "manifest");
    assert_eq!((&manifest["command"][0], &manifest["seeds"]["order"]), (&json!("growth"), &json!(1)));
    let grown = manifest["growth"].as_array().expect("growths");
    assert_eq!((grown.len(), &grown[0]["sizes"][0]["n"]), (16, &json!(32)));
    assert!(manifest["targets"].as_array().expect("targets").iter().all(|target| target["seconds"].is_null()));
    assert!(!page_of(&results("fans")).1.contains("\"growth\""), "of other runs nothing");
}

#[test]
fn how_costs_grow_is_drawn() {
    let desk = Desk::with_only(&[]);
    desk.file("growth.jsonl", results("growth"));
    desk.run(&["show", "growth.jsonl", "--svg", "growth.svg"]).complains("chart: growth.svg");
    let svg = std::fs::read_to_string(desk.home().join("growth.svg")).expect("a picture");
    says(&svg, &["growth: the CPU of client and server as n grows, seed 1", ">bad, out of proportion</text>"]);
    assert_eq!(svg.matches("<g transform=").count(), 4 + 8, "8 plots in 4 rows: {svg}");
    // Pilots alone.
    let pilots: Vec<Value> = records("growth").into_iter().filter(|record| record["block"] == 0).collect();
    desk.file("pilots.jsonl", lines(&pilots));
    let said = desk.run(&["show", "pilots.jsonl", "--svg", "pilots.svg"]);
    said.exits(1).complains("pilots.jsonl: nothing was measured at two sizes, so there is no growth to draw");
}

#[test]
fn a_page_of_growth_without_numbers_says_so_and_tells_no_secrets() {
    let mut all = records("growth");
    for record in &mut all {
        let store = record["target"]["store"].as_str().expect("a store");
        record["target"]["label"] = format!("<script>redis://me:PLANTED@db.planted.example:1/{store}").into();
        record["run"]["command"] =
            json!(["growth", "redis://me:PLANTED@db.planted.example:1", "-o", "/home/planted/a"]);
        record["outcome"] = json!({"kind": "failed", "reason": "no route to db.planted.example"});
        record["verdict"] = json!({"kind": "not_reached"});
    }
    let (said, page) = page_of(&lines(&all));
    said.exits(1);
    says(&page, &["<h1>Nothing was measured: the table says why.</h1>", "no route to host1", "&lt;script&gt;redis"]);
    assert!(!page.contains("lanted") && !page.contains("PLANTED") && !page.contains("Chart: "), "{page}");
    assert_eq!(page.matches("<script").count(), 2, "the manifest and the page's own");
}

#[test]
fn what_is_no_form_of_growth_and_what_is_not_one_run_is_refused() {
    let desk = Desk::with_only(&[]);
    desk.file("growth.jsonl", results("growth"));
    desk.file("fans.jsonl", results("fans"));
    let said = desk.run(&["show", "growth.jsonl", "--all"]);
    said.exits(1).complains("growth.jsonl: --all: `kvfair growth` has no such form").complains("hint: --json");
    let said = desk.run(&["show", "growth.jsonl", "--histograms", "times"]);
    said.exits(1).complains("results of `kvfair growth` have no histograms");
    for files in [["growth.jsonl", "fans.jsonl"], ["fans.jsonl", "growth.jsonl"]] {
        desk.run(&["compare", files[0], files[1]])
            .exits(1)
            .complains("growth.jsonl: results of `kvfair growth` cannot be compared");
    }
    let all = records("growth");
    let again = lines(&[&all[..], &all[..1]].concat());
    desk.file("again.jsonl", again);
    let place = all.len() + 1;
    desk.run(&["show", "again.jsonl"])
        .exits(1)
        .complains(&format!("again.jsonl:{place}: the same trial once more: bad"));
    let mut other = all[0].clone();
    other["run"]["began"] = "20300101T000000Z".into();
    desk.file("two.jsonl", lines(&[&all[..], &[other]].concat()));
    desk.run(&["show", "two.jsonl"]).exits(1).complains(&format!("two.jsonl:{place}: another run: "));
    // What only looks alike is none.
    let mut run = all.clone();
    run.iter_mut().for_each(|record| record["run"]["command"][0] = "run".into());
    desk.file("run.jsonl", lines(&run));
    desk.run(&["show", "run.jsonl"]).exits(1).complains("another job: getset with other settings");
}
