//! The page of `--html`: the same bytes for the same results, every state, nothing that must not be told, and nothing
//! that is loaded.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::cli::forms::results;
use crate::common::desk::{Desk, Said};
use crate::common::golden::are_golden;

/// Results of another day, whose pages are kept.
const RESULTS: &[&str] = &["fans", "noisy", "getset", "rates"];
/// What a page of 53 trials may take, in bytes.
const PAGE_BYTES_MAX: usize = 150_000;

fn read(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn records(name: &str) -> Vec<Value> {
    results(name).lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

pub fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// What `show` says of these results, and the page.
pub fn page_of(text: &str) -> (Said, String) {
    let desk = Desk::with_only(&[]);
    desk.file("out.jsonl", text);
    desk.run(&["show", "out.jsonl", "--html", "page.html"]);
    let said = desk.run(&["show", "out.jsonl", "--wide"]);
    let page = read(&desk, "page.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    (said, page)
}

/// The page of the golden results of `fans`, each record changed.
pub fn changed(change: impl Fn(&mut Value)) -> (Said, String) {
    let mut all = records("fans");
    all.iter_mut().for_each(change);
    page_of(&lines(&all))
}

pub fn is_of(record: &Value, target: &str) -> bool {
    record["target"]["label"] == target
}

#[track_caller]
pub fn says(page: &str, words: &[&str]) {
    for word in words {
        assert!(page.contains(word), "{word}\n{page}");
    }
}

pub fn heading(page: &str) -> &str {
    let (_, rest) = page.split_once("<h1>").expect("a heading");
    rest.split_once("</h1>").expect("its end").0
}

/// What may be said, below the picture: the first sentences, and the folded ones.
pub fn findings(page: &str) -> String {
    let (_, rest) = page.split_once("<ul class=\"findings\">").expect("findings");
    let (first, rest) = rest.split_once("</ul>").expect("their end");
    let others = rest.strip_prefix("<details><summary>More that may be said").and_then(|rest| rest.split_once("</ul>"));
    let items = |list: &str| list.split("<li>").skip(1).map(|item| item.replace("</li>", "")).collect::<Vec<_>>();
    [items(first), others.map_or_else(Vec::new, |(list, _)| items(list))].concat().join(" ")
}

#[test]
fn golden_pages_of_another_day_are_as_they_were_then() {
    let mut pages = Vec::new();
    for name in RESULTS {
        let desk = Desk::with_only(&[]);
        let file = format!("{name}.jsonl");
        desk.file(&file, results(name));
        let plain = desk.run(&["show", &file]);
        let said = desk.run(&["show", &file, "--html", "other.html"]);
        said.exits(0).complains("page: other.html");
        assert_eq!(said.out, plain.out, "the table is printed all the same");
        let page = read(&desk, "other.html");
        desk.run(&["show", &file, "--html", "again.html"]).exits(0);
        assert_eq!(page, read(&desk, "again.html"), "{name}: the same input gives the same bytes");
        assert!(page.len() <= PAGE_BYTES_MAX, "{name}: {} bytes", page.len());
        pages.push((format!("tests/golden/shown/{name}.html"), page));
    }
    are_golden(pages.iter().map(|(name, page)| (name.clone(), page.as_str())));
}

/// The answer heads it, badges say why it may be believed, and what may be said is what the terminal prints.
#[test]
fn the_page_says_what_the_terminal_says() {
    let (said, page) = page_of(&results("fans"));
    assert_eq!(heading(&page), "redis+unix finished first: 0.89 s. Next: redis, 1.06 s (1.18x).");
    let printed = said.exits(0).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = findings(&page);
    // A terminal ends with commands in place of what waits.
    let mut said = told.split(". ").filter(|sentence| !sentence.contains(" is waiting "));
    assert!(said.all(|sentence| printed.contains(sentence.trim_end_matches('.'))), "{told}");
    let badges = [
        "<summary>✓ 53 of 53 answers right</summary>",
        "right in 53 of 53 trials: 17 blocks of 3 trials (redis twice) and 2 of a warm-up",
        "<summary>✓ 10 blocks</summary>",
        "17 ran: 10 count, 7 were disturbed and discarded",
        "redis against itself 0.98x [0.94-1.03]; 1.00x is no difference",
        "durability none · Intel(R) Xeon(R), 2 processors · 2026-11-22</p>",
        "2026-11-22 03:26 UTC",
    ];
    says(&page, &badges);
    says(
        &page,
        &[
            "1.18x [1.14-1.27]",
            ">0.89</td>",
            ">18.1 + 23.5</td>",
            "<title>Time, seconds, logarithmic: redis+unix: 0.89 s, 1.00x, ",
        ],
    );
    says(
        &page,
        &["warm-up: not counted", "discarded: ", "34532b152bc00fd13b212b2be775d0919b85179453b8c27f52c225b31898756b"],
    );
    says(&page, &["<summary>All columns</summary>", "client library</th>", "<summary>Warnings (1)</summary>"]);
    let (_, table) = page.split_once("<caption>Medians over the blocks</caption>").expect("the table");
    let heads = table.split_once("</thead>").expect("its heads").0.matches("<th ").count();
    assert_eq!(heads, 6, "{table}");
    assert!(!page.contains("The store, second by second"), "trials of one second are no line");
}

/// What the page has for programs, by its name.
pub fn embedded(page: &str, id: &str) -> Value {
    let (_, rest) = page.split_once(&format!("<script type=\"application/json\" id=\"{id}\">")).expect(id);
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

#[test]
fn the_manifest_tells_what_was_run_and_what_is_claimed() {
    let (_, page) = page_of(&results("fans"));
    let manifest = embedded(&page, "manifest");
    let sha256: String = Sha256::digest(results("fans")).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(manifest["results_sha256"], sha256.as_str());
    assert!(page.contains(&sha256[..]), "and people can read it");
    let data = "012b255d61dc2a4934d8cab75fb80390dc347d64fcbbdfdee83b00b9b7336b85";
    assert_eq!(manifest["data"], json!({"recipe": "likes10k", "seed": 797, "sha256": data}));
    assert_eq!((&manifest["blocks"], &manifest["discarded_blocks"]), (&json!(10), &json!(7)));
    let claims = manifest["claims"].as_array().expect("claims");
    assert!(claims.iter().any(|claim| claim["less"] == "redis+unix" && claim["measure"] == "seconds"), "{claims:?}");
    assert_eq!(manifest["targets"].as_array().map(Vec::len), Some(2));
}

#[test]
fn nothing_that_must_not_be_told_is_told_and_labels_are_text() {
    let label = "redis://me:PLANTED@db.planted.example:6379/9";
    let script = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}";
    let (said, page) = changed(|record| {
        let is_one = is_of(record, "redis");
        record["target"]["label"] = if is_one { script } else { label }.into();
        record["run"]["command"] = json!(["run", "fans", label, "--password", "PLANTED", "-i", "/home/planted/a.csv"]);
        record["keeps"] = script.into();
        record["job"]["data"] = json!({"file": {"path": "/home/planted/a.csv"}});
        record["machine"]["filesystem"] = "ext4 on /home/planted".into();
        record["store"]["command"] = json!(["/root/planted", "--requirepass", "PLANTED"]);
        record["store"]["settings"] =
            json!({"requirepass": "PLANTED", "dir": "/Users/planted/data", "hostname": "planted", "evil": script});
        if is_one && record["block"] == 3 {
            record["outcome"] = json!({"kind": "failed", "reason": format!("{script} no route to db.planted.example")});
        }
    });
    said.exits(1);
    for secret in ["PLANTED", "db.planted", "/home/", "/Users/", "//me", "\u{202e}", "Michael Jackson"] {
        assert!(!page.contains(secret), "{secret}\n{page}");
    }
    let page = page.replace("~/planted", "");
    assert!(!page.contains("planted"), "{page}");
    says(&page, &["redis://***@host1:6379/9", "no route to host1", "&lt;/script&gt;&lt;script&gt;alert(1)", "~/a.csv"]);
    assert_eq!(page.matches("<script").count(), 2, "the manifest and the page's own");
    assert_eq!(page.matches("<img").count(), 0);
    let (manifest, _) = page.split_once("</script>").expect("the end of the manifest");
    assert!(manifest.contains("\"command\":[\"run\",\"fans\",\"redis://***@host1:6379/9\",\"--password\",\"***\""));
}

#[test]
fn no_request_leaves_a_page() {
    for name in RESULTS {
        let (_, page) = page_of(&results(name));
        let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for bad in ["http://", "https://", " src=", " href=", "url(", "@import", "onclick", "<link", "<iframe", "<img"]
        {
            assert!(!page.contains(bad), "{name}: {bad}");
        }
        says(&page, &["default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-", "prefers-color-scheme"]);
    }
}

#[test]
fn a_sweep_has_its_tables_and_charts() {
    let (_, page) = page_of(&results("getset"));
    says(
        &page,
        &[
            "<h2>The sweep</h2>",
            "<svg role=\"img\" ",
            "<polyline",
            "sets per second",
            "CPU us per get, client + server",
        ],
    );
    assert_eq!(page.matches("<style").count(), 1, "one style sheet for all pictures");
    assert_eq!(page.matches("aria-label=\"Chart: ").count(), 6, "rate, CPU and latency of sets and of gets");
    assert!(page.contains("limited by the client") && !page.contains("<h2>Time</h2>"));
}

#[test]
fn the_seconds_of_stores_are_drawn() {
    let (_, page) = changed(|record| {
        let seconds = [(0.5, 1_000_000), (0.9, 7_000_000), (0.7, 9_500_000)];
        let seconds = seconds.map(|(cpu_s, bytes)| json!({"cpu_s": cpu_s, "anonymous_bytes": bytes}));
        let phases = record["phases"].as_array_mut().expect("phases");
        phases
            .iter_mut()
            .filter(|phase| phase["name"] == "run")
            .for_each(|run| run["store_by_second"] = json!(seconds));
    });
    says(&page, &["The store, second by second", "redis+unix at most 0.90", "redis at most 9.50"]);
    assert_eq!(page.matches("<polyline").count(), 2 * 2 * 3, "a line and its sample, of two targets in three charts");
}

#[test]
fn one_block_is_seen_once() {
    let mut all = records("fans");
    all.retain(|record| record["block"] == 1 && record["aa_control"] == false);
    all.iter_mut().for_each(|record| record["run"]["blocks"] = 1.into());
    let (said, page) = page_of(&lines(&all));
    // Not one block was asked for, but a claim.
    said.exits(6);
    says(
        &page,
        &[
            "<h1>Not ranked: 1 block ran, 4 are needed.</h1>",
            "<summary>✗ 1 block: no claim</summary>",
            "<p>1 ran: too few for a claim</p>",
            "One block ran: there is no interval and no claim.",
            "No claim: 1 block ran, and a claim needs at least 4.",
        ],
    );
    assert!(!page.contains("95 % interval") && !page.contains("are not reliable"), "{page}");
}

#[test]
fn noise_is_a_badge_and_never_the_heading() {
    let (_, page) = page_of(&results("noisy"));
    assert_eq!(heading(&page), "lmdb finished first: 0.027 s. Servers: from 0.23 s (≥7.5x).");
    let (above, below) = page.split_once("<figure>").expect("a picture");
    says(
        above,
        &[
            "is-doubtful\"><summary>! noise floor ",
            "Single times are not reliable: the machine disturbed 6 of 8 blocks.",
            "Only differences beyond the noise are claimed.",
            "6 of 8 blocks were disturbed (the processor was 32 % slower",
        ],
    );
    says(below, &["stroke-width=\"1.5\"", ">2-3</text>", "embedded, noisy", "server, noisy"]);
    says(below, &["Baselines: no store, never ranked", "noisy, but used: "]);
    assert!(findings(&page).starts_with("lmdb uses the least CPU per op; "), "{}", findings(&page));
}

#[test]
fn wrong_answers_have_no_place_on_the_axis() {
    let mut all = records("fans");
    for record in all.iter_mut().filter(|record| is_of(record, "redis") && record["block"] == 2) {
        let checked = record["verdict"].clone();
        let first = json!({"key": "k<1>", "expected": "1", "found": "2"});
        record["verdict"] = json!({"kind": "wrong", "first": first, "wrong_keys": 3, "checked": checked});
    }
    let (_, page) = page_of(&lines(&all));
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["show", desk.file("wrong.jsonl", lines(&all))]);
    said.exits(4);
    assert_eq!(heading(&page), "redis gave wrong answers.");
    said.shows("answers: right in ");
    assert!(!said.out.contains("the same from every target") && !said.out.contains(" answers right"), "{}", said.out);
    says(&page, &["is-bad\"><summary>✗ wrong answers</summary>"]);
    says(&page, &["FAILED: wrong answers from redis.", "no number, so no place on the axis", "expected 1, found 2"]);
    says(&page, &["class=\"reason bad\"", "k&lt;1&gt;"]);
}

#[test]
fn what_was_cut_off_is_an_arrow() {
    let (said, page) = changed(|record| {
        if is_of(record, "redis") {
            record["outcome"] = json!({"kind": "timed_out", "after_s": 300.0, "done_share": 0.34});
            record["verdict"] = json!({"kind": "not_reached"});
        }
    });
    said.exits(1);
    says(&page, &[">at least 3", "cut off: at least", "&gt; 300 s, 34 % done"]);
}

#[test]
fn targets_that_are_not_comparable_have_panels_of_their_own() {
    let (_, page) = changed(|record| {
        if is_of(record, "redis") {
            record["job"]["via"] = "batch".into();
        }
    });
    says(&page, &["via batch (compared within this group only)", "one value at a time, without a cache"]);
}

#[test]
fn a_debug_build_unchecked_answers_and_a_run_that_was_cut_off_have_banners() {
    let (_, page) = changed(|record| record["debug_build"] = true.into());
    says(&page, &["kvfair was built without optimisation (a debug build)"]);
    let (_, page) = changed(|record| {
        record["verdict"] = json!({"kind": "answered", "sha256": null, "bytes": 0, "ends": ""});
        record["job"]["data"] = json!({"program": {"command": "./mine.py", "answer": "none"}});
    });
    says(&page, &["Answers were not checked", "; 53 not checked</p>", "<summary>! answers not checked</summary>"]);
    let mut all = records("fans");
    let last = all.iter().filter_map(|record| record["block"].as_u64()).max();
    let first_of_last = all.iter().position(|record| record["block"].as_u64() == last && record["aa_control"] == false);
    let first = all[first_of_last.expect("a block")].clone();
    all.retain(|record| record["block"].as_u64() != last);
    all.push(first);
    let (_, page) = page_of(&lines(&all));
    says(&page, &["The run was cut off by its time limit or by a signal: block 17 has 1 of 3 trials."]);
}

#[test]
fn a_page_that_has_nothing_to_show_says_why() {
    let mut text: Vec<String> = results("fans").lines().map(str::to_string).collect();
    text[4] = "{\"broken\": <script>".to_string();
    let (said, page) = page_of(&format!("{}\n", text.join("\n")));
    said.exits(1).complains("out.jsonl:5: not a record of kvfair");
    says(
        &page,
        &["role=\"note\">out.jsonl:5: not a record of kvfair", "Records read before that line: 4.", "<h2>Targets</h2>"],
    );
    text[0] = "{\"broken\": <script>".to_string();
    let (said, page) = page_of(&format!("{}\n", text.join("\n")));
    said.exits(1).complains("out.jsonl:1: not a record of kvfair");
    says(&page, &["No results can be shown", "out.jsonl:1: not a record of kvfair"]);
    let (said, page) = page_of("");
    said.exits(1);
    says(&page, &["No results can be shown", "out.jsonl holds no records"]);
}

#[test]
fn a_page_is_written_over_nothing() {
    let desk = Desk::new();
    desk.file("taken.html", "precious");
    desk.file("fans.jsonl", results("fans"));
    for command in [&["show", "fans.jsonl"][..], &["run", "ngrams", "--messages=30", "--blocks=2", "ram"]] {
        let said = desk.run(&[command, &["--html", "taken.html"]].concat());
        said.exits(1).complains("taken.html is there already");
        assert_eq!((said.out.as_str(), read(&desk, "taken.html").as_str()), ("", "precious"));
        let said = desk.run(&[command, &["--html", "taken.html/in/page.html"]].concat());
        said.exits(1).complains("cannot write taken.html/in/page.html");
        assert_eq!(said.out, "");
    }
    assert!(!desk.home().join("kvfair-results").exists(), "refused before anything is measured");
}

#[test]
fn a_run_writes_the_page_that_show_writes() {
    let desk = Desk::new();
    let run = ["run", "ngrams", "--messages=30", "--blocks=2", "--output=out.jsonl", "--html=run.html", "ram", "null"];
    desk.run(&run).exits(0).complains("page: run.html");
    desk.run(&["show", "out.jsonl", "--html", "show.html"]).exits(0);
    assert_eq!(read(&desk, "run.html"), read(&desk, "show.html"));
}

#[test]
fn the_page_of_a_comparison_has_its_finding_first() {
    let desk = Desk::new();
    let compare = ["compare", "ngrams", "--messages=30", "--blocks=2", "--output=out.jsonl", "--html=page.html"];
    desk.run(&[&compare[..], &["--base", "lmdb", "--head", "lmdb?name=head"]].concat()).complains("page: page.html");
    let page = read(&desk, "page.html");
    says(&page, &["<caption>head against lmdb</caption>", "<th scope=\"col\">found</th>", "<h2>Time</h2>"]);
    assert!(page.find("head against lmdb") < page.find("<caption>Medians over the blocks</caption>"), "{page}");
    // Two files have no blocks in common: their page is the table.
    desk.run(&["compare", "out.jsonl", "out.jsonl", "--html", "files.html"]).complains("page: files.html");
    says(&read(&desk, "files.html"), &["<h1>kvfair compare out.jsonl", "<caption>Targets</caption>", ">head</th>"]);
    let said = desk.run(&[&compare[..4], &["--html=page.html", "--base", "ram", "--head", "null"]].concat());
    said.exits(1).complains("page.html is there already");
}

#[test]
fn each_size_of_a_run_has_its_own_part() {
    let desk = Desk::new();
    let run =
        ["run", "ngrams", "--messages=20,60", "--blocks=2", "--output=out.jsonl", "--html=run.html", "ram", "lmdb"];
    desk.run(&run).exits(0).complains("page: run.html");
    let page = read(&desk, "run.html");
    for size in ["20 messages", "60 messages"] {
        says(&page, &[&format!("Blocks in the order of time, {size}</summary>")]);
    }
    // Lines over the sizes, and no picture for each.
    says(
        &page,
        &["<title>seconds (logarithmic) by messages", "<title>megabytes of memory at the peak (logarithmic) by "],
    );
    assert!(!page.contains("<section data-measure"), "{page}");
    says(&page, &["<th scope=\"col\">grows with</th>", "\"sizes\":[20,60]"]);
    desk.run(&["show", "out.jsonl", "--html", "show.html"]).exits(0);
    assert_eq!(page, read(&desk, "show.html"));
}

#[test]
fn latency_is_drawn_by_percentile_with_its_numbers_beside() {
    for (name, title) in [
        ("getset", "latency of a get with 8 clients, us (logarithmic) by percentile"),
        ("rates", "latency of a request "),
    ] {
        let (_, page) = page_of(&results(name));
        says(&page, &["<h2>Latency by percentile</h2>", title, ">99 %</th>"]);
    }
    let (_, page) = page_of(&results("fans"));
    assert!(!page.contains("Latency by percentile"), "only of jobs of requests");
}

#[test]
fn a_picture_has_whatever_the_job_has() {
    let desk = Desk::with_only(&[]);
    desk.file("rates.jsonl", results("rates"));
    desk.run(&["show", "rates.jsonl", "--svg", "rates.svg"]).exits(0);
    let svg = read(&desk, "rates.svg");
    says(&svg, &["response of a request, p99 in us", "CPU, processors kept busy", "latency of a request "]);
    // One point is no sweep.
    let mut all = records("rates");
    let slow = |phase: &Value| phase["open"].is_null() || phase["open"]["rate"] == 500;
    all.iter_mut().for_each(|record| record["phases"].as_array_mut().expect("phases").retain(slow));
    desk.file("one.jsonl", lines(&all));
    desk.run(&["show", "one.jsonl", "--svg", "one.svg"]).exits(0);
    let svg = read(&desk, "one.svg");
    says(&svg, &["CPU, processors kept busy", "memory of its own at the end of each second, MB"]);
    assert!(svg.starts_with("<svg ") && !svg.contains("p99 in us"), "{svg}");
}

/// Text, Markdown and page have the same cells; CSV and JSON the same numbers, and the cells are these rounded; the
/// picture and the page tell the same of each second.
#[test]
fn all_six_forms_show_the_same_numbers() {
    let desk = Desk::with_only(&[]);
    let mut all = records("fans");
    let seconds = json!([{"cpu_s": 0.5, "anonymous_bytes": 1_000_000}, {"cpu_s": 0.9, "anonymous_bytes": 7_000_000}]);
    for record in &mut all {
        let phases = record["phases"].as_array_mut().expect("phases");
        phases.iter_mut().for_each(|phase| phase["store_by_second"] = json!([]));
        phases
            .iter_mut()
            .filter(|phase| phase["name"] == "run")
            .for_each(|run| run["store_by_second"] = seconds.clone());
    }
    desk.file("out.jsonl", lines(&all));
    let shown = |form: &[&str]| desk.run(&[&["show", "out.jsonl"], form].concat()).exits(0).out.clone();
    let (text, markdown, csv) = (shown(&["--wide"]), shown(&["--markdown"]), shown(&["--csv"]));
    let json: Value = serde_json::from_str(&shown(&["--json"])).expect("JSON");
    shown(&["--html", "page.html"]);
    shown(&["--svg", "out.svg"]);
    let (page, svg) = (read(&desk, "page.html"), read(&desk, "out.svg"));
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let names = csv.headers().expect("names").clone();
    let csv: Vec<csv::StringRecord> = csv.records().map(|row| row.expect("a row")).collect();
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), csv.len()), (2, 2));
    for (row, csv) in rows.iter().zip(&csv) {
        let target = row["target"].as_str().expect("a target");
        let number = |name: &str| row[name].as_f64().expect("a number");
        let of_csv =
            |name: &str| csv[names.iter().position(|one| one == name).expect(name)].parse::<f64>().expect(name);
        for name in ["took_s", "vs_best", "client_cpu_us_per_op", "server_cpu_us_per_op", "waiting_share"] {
            assert_eq!(number(name), of_csv(name), "{target} {name}");
        }
        let line = markdown.lines().find(|line| line.starts_with(&format!("| {target} |"))).expect(target);
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace("\\[", "[")).collect();
        assert_eq!(cells[2], kvfair::model::units::seconds(number("took_s")), "{target}");
        assert!(cells[3].starts_with(&format!("{:.2}x", number("vs_best"))), "{target}: {}", cells[3]);
        assert_eq!(cells[4], format!("{:.0} %", 100.0 * number("waiting_share")), "{target}");
        let printed = text.lines().find(|line| line.split_whitespace().nth(1) == Some(target)).expect(target);
        let (_, on_page) = page.split_once("<summary>All columns").expect("all columns");
        let (_, on_page) = on_page.split_once(&format!("<th scope=\"row\">{target}</th>")).expect(target);
        let on_page = on_page.split_once("</tr>").expect("the end of a row").0;
        for cell in &cells[1..] {
            assert!(printed.contains(cell.as_str()), "{cell}: {printed}");
            assert!(on_page.contains(&format!(">{cell}</td>")), "{cell}: {on_page}");
        }
        for told in [format!("{target} at most 0.90"), format!("{target} at most 7.00")] {
            assert!(svg.contains(&told) && page.contains(&told), "{told}");
        }
    }
}
