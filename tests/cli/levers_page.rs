//! The page and the picture of `kvfair levers`: all numbers of `--json`, the same bytes for the same records, text that
//! stays text, and a page of what is there after Ctrl-C.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::levers::code_of;
use crate::common::desk::{Desk, Said, Started, wait_for};

const OUT: &str = "levers.jsonl";
/// What the page of a run of a few levers may take, in bytes.
const PAGE_BYTES_MAX: usize = 150_000;

fn read(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn heading(page: &str) -> &str {
    let (_, rest) = page.split_once("<h1>").expect("a heading");
    rest.split_once("</h1>").expect("its end").0
}

fn manifest(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"manifest\">").expect("a manifest");
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

/// A small run of an embedded store, with its page. What it claims depends on the machine.
fn measured(desk: &Desk, command: &str) -> Said {
    let job = [command, "fans", "lmdb", "--profiles", "30", "--levers", "cache,via"];
    let said = desk.run(&[&job[..], &["--blocks", "4", "--seed", "1", "--output", OUT, "--html", "run.html"]].concat());
    said.exits(code_of(&desk.json(&[OUT])));
    said.complains("page: run.html");
    said
}

/// A ratio as any of the forms that it may have, to one digit or to three.
fn is_told(page: &str, ratio: &Value) -> bool {
    let ratio = ratio.as_f64().expect("a number");
    (0..3).any(|places| page.contains(&format!("{ratio:.places$}x")))
}

fn has_all_numbers(page: &str, json: &Value) {
    let gains = json["levers"].as_array().expect("levers").iter().flat_map(|lever| [&lever["alone"], &lever["last"]]);
    let gains = gains.chain([&json["together"], &json["enough"]["gain"], &json["enough"]["confirmation"]["all"]]);
    let ratios: Vec<&Value> = gains.chain(json["durability"].as_array().expect("levels")).collect();
    let ratios: Vec<&Value> = ratios.iter().map(|one| &one["ratio"]["estimate"]).filter(|one| !one.is_null()).collect();
    assert!(ratios.len() >= 2, "{json}");
    for ratio in ratios {
        assert!(is_told(page, ratio), "{ratio}\n{page}");
    }
    for lever in json["levers"].as_array().expect("levers") {
        for name in ["change", "pays"] {
            assert!(page.contains(lever[name].as_str().expect("text")), "{name} of {lever}");
        }
        for counter in lever["counters"].as_array().expect("counters") {
            let words = counter.as_str().expect("text").replace('>', "&gt;");
            assert!(page.contains(&words), "{words}\n{page}");
        }
    }
}

#[test]
fn a_page_has_all_numbers_and_show_writes_the_same_bytes() {
    let desk = Desk::new();
    let said = measured(&desk, "levers");
    let page = read(&desk, "run.html");
    let mut json: Value = serde_json::from_str(&desk.run(&["show", OUT, "--json"]).out).expect("JSON");
    has_all_numbers(&page, &json);
    // The command and how it ended are not of the page.
    let object = json.as_object_mut().expect("an object");
    assert!(["run", "verdict"].iter().all(|name| object.remove(*name).is_some()));
    assert_eq!(manifest(&page)["levers"], json, "and other programs find them");
    // Of a noisy run the reason stands before it.
    let told = heading(&page).replace("<span>", "").replace("</span>", "").replace("&lt;", "<");
    said.shows(&told[told.find("lmdb").expect("the base")..]);
    for words in ["how to read", "the lever alone", "than now|as now", "<h2>Targets</h2>", "sha256 <code>"] {
        assert!(words.split('|').any(|words| page.contains(words)), "{words}\n{page}");
    }
    for bad in ["http://", "https://", " src=", " href=", "url(", "@import", "<link", "<img"] {
        assert!(!page.contains(bad), "{bad}");
    }
    assert!(page.len() <= PAGE_BYTES_MAX, "{} bytes", page.len());
    for name in ["show.html", "again.html"] {
        desk.run(&["show", OUT, "--html", name]).complains("page: ");
        assert_eq!(page, read(&desk, name));
    }
    desk.run(&["show", OUT, "--svg", "levers.svg"]).complains("chart: levers.svg");
    let svg = read(&desk, "levers.svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    for words in ["how to read", "the lever alone", "via ", "cache"] {
        assert!(svg.contains(words), "{words}\n{svg}");
    }
    // Names of targets and levers may be anybody's.
    let label = r"</script><script>alert(1)</script><img src=x>";
    let hostile = read(&desk, OUT).replace("\"base\":\"lmdb\"", &format!("\"base\":\"{label}\""));
    let hostile = hostile.replace("\"label\":\"lmdb\"", &format!("\"label\":\"{label}\""));
    let hostile = hostile.replace("\"change\":\"cache\"", &format!("\"change\":\"{label}\""));
    desk.file("hostile.jsonl", hostile);
    desk.run(&["show", "hostile.jsonl", "--html", "hostile.html", "--svg", "hostile.svg"]);
    let (page, svg) = (read(&desk, "hostile.html"), read(&desk, "hostile.svg"));
    // The page's own script, and what it and other programs read.
    assert_eq!((page.matches("<script").count(), page.matches("<img").count()), (3, 0), "{page}");
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)") && !svg.contains("<script"), "{svg}");
}

#[test]
fn an_advice_has_the_same_page_with_each_lever_alone() {
    let desk = Desk::new();
    measured(&desk, "advise");
    let page = read(&desk, "run.html");
    desk.run(&["show", OUT, "--html", "show.html"]).complains("page: show.html");
    assert_eq!(page, read(&desk, "show.html"));
    assert!(page.contains("What each lever gains alone at lmdb") && page.contains("the lever alone"), "{page}");
    for bad in ["as the last one", "added last", "cannot be combined"] {
        assert!(!page.contains(bad), "{bad}\n{page}");
    }
}

#[test]
fn a_page_that_is_there_is_refused_before_anything_is_measured() {
    let desk = Desk::new();
    desk.file("taken.html", "precious");
    for command in ["levers", "advise"] {
        let said = desk.run(&[command, "fans", "lmdb", "--profiles", "100", "--html", "taken.html"]);
        said.exits(1).complains("taken.html is there already");
    }
    assert_eq!(read(&desk, "taken.html"), "precious");
    assert!(desk.records().is_empty() && !desk.home().join("kvfair-results").exists(), "nothing was measured");
}

#[test]
fn what_is_there_after_an_interrupt_has_a_page() {
    let desk = Desk::new();
    let command = ["levers", "fans", "lmdb", "--profiles", "30", "--levers", "cache,via", "--blocks", "500"];
    let started = Started::new(desk.kvfair(&[&command[..], &["--output", OUT, "--html", "run.html"]].concat()));
    wait_for("two blocks", || {
        let records = fs::read_to_string(desk.home().join(OUT)).unwrap_or_default();
        (records.lines().count() > 15).then_some(())
    });
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130).complains("trials were finished").complains("page: run.html");
    let page = read(&desk, "run.html");
    assert!(page.contains("how to read") && page.ends_with("</html>\n"), "{page}");
}
