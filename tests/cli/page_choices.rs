//! What a reader of the page of `--html` sees first, and may choose: by which measure targets are drawn, and beside
//! which of them the tables compare.

use serde_json::{Value, json};

use crate::cli::forms::results;
use crate::cli::page::{changed, embedded, findings, heading, is_of, lines, page_of, records, says};
use crate::common::desk::{Desk, Said, one_line};

/// What the ratios of 40 targets to each other may take, in bytes, where nothing has an interval.
const BASES_BYTES_MAX: usize = 30_000;

/// One of the page's pictures with its heading.
fn picture<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<h2>{title}</h2>")).expect(title);
    rest.split_once("</section>").expect("its end").0
}

#[test]
fn memory_and_disk_are_measures_where_two_targets_have_their_bytes() {
    let (_, page) = page_of(&results("fans"));
    let memory = "<section data-measure=\"memory\" data-more=\"\"><h2>Memory</h2>";
    says(&page, &[memory, "<section data-measure=\"cpu\" data-more=\"\"><h2>", "<section data-measure=\"time\"><h2>"]);
    says(
        picture(&page, "Memory"),
        &["megabytes at the peak, logarithmic<", "one block each", "for a server its processes"],
    );
    assert!(!page.contains("data-measure=\"disk\""), "Redis kept nothing on disk");
    let with_bytes = |record: &mut Value| {
        let bytes = if is_of(record, "redis") { 1_000_000 } else { 3_000_000 };
        record["bytes_on_disk"] = bytes.into();
        let phases = record["phases"].as_array_mut().expect("phases");
        phases.iter_mut().for_each(|phase| phase["server"]["bytes_written"] = (4_000_000 - bytes).into());
    };
    let (_, page) = changed(with_bytes);
    // Each has its own least, and bytes that never differ have no interval.
    for (title, told) in [
        ("Bytes on disk", "redis: 1.0 MB, 1.00x; redis+unix: 3.0 MB, 3.00x"),
        ("Bytes written", "redis+unix: 2.0 MB, 1.00x; redis: 6.0 MB, 3.00x"),
    ] {
        let picture = picture(&page, title);
        assert!(picture.contains(&format!(", logarithmic: {told}</title>")), "{picture}");
        assert!(!picture.contains("95 % interval") && picture.contains("one block each"), "{picture}");
    }
    let (_, page) = changed(|record| {
        with_bytes(record);
        // A block that counts.
        if is_of(record, "redis") && record["block"] == 2 {
            record["bytes_on_disk"] = Value::Null;
        }
    });
    says(&page, &["<h2>Bytes written</h2>"]);
    assert!(!page.contains("<h2>Bytes on disk</h2>"), "one trial's are not known");
}

/// The cells of a Markdown table, by target and heading.
fn markdown_cell(markdown: &str, target: &str, heading: &str) -> String {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace("\\[", "[")).collect()
    };
    let lines = || markdown.lines().filter(|line| line.starts_with('|')).map(cells);
    let headings = lines().find(|cells| cells[0] == "target").expect("headings");
    let place = headings.iter().position(|one| one == heading).expect(heading);
    lines().find(|cells| cells[0] == target).expect(target)[place].clone()
}

#[test]
fn beside_the_best_a_page_says_what_the_terminal_says_and_any_target_may_be_the_base() {
    for name in ["fans", "noisy"] {
        let desk = Desk::with_only(&[]);
        desk.file("out.jsonl", results(name));
        let markdown = desk.run(&["show", "out.jsonl", "--markdown", "--wide"]).exits(0).out.clone();
        let (_, page) = page_of(&results(name));
        let columns = embedded(&page, "bases");
        for column in columns.as_array().expect("columns") {
            let texts = |list: &Value| -> Vec<String> {
                list.as_array().expect("a list").iter().map(|text| text.as_str().expect("text").to_string()).collect()
            };
            let (heading, targets) = (column["heading"].as_str().expect("a heading"), texts(&column["targets"]));
            let told = |target: &String| markdown_cell(&markdown, target, heading);
            let bases = column["cells"].as_array().expect("bases");
            let best = targets[..bases.len()].iter().position(|target| told(target) == "1.00x");
            let best = best.unwrap_or_else(|| panic!("{name}: no base is 1.00x of {heading}"));
            for (target, cell) in targets.iter().zip(texts(&bases[best])) {
                assert_eq!(cell.split(", ").next(), Some(told(target).as_str()), "{name}: {heading} of {target}");
            }
        }
    }
    let columns = embedded(&page_of(&results("fans")).1, "bases");
    assert_eq!(columns[0]["targets"], json!(["redis+unix", "redis"]));
    let unix_first = [["1.00x", "1.18x [1.14-1.27], slower"], ["0.85x [0.78-0.87], faster", "1.00x"]];
    assert_eq!(columns[0]["cells"], json!(unix_first));
    assert!(page_of(&results("noisy")).1.contains(", no claim\""));
    let (_, sweep) = page_of(&results("getset"));
    assert!(!sweep.contains("id=\"bases\""), "of a sweep each point is compared by itself");
}

/// So many targets in one block.
fn crowd(targets: usize) -> String {
    let all = records("fans");
    let one = all.iter().find(|record| record["block"] == 1 && record["aa_control"] == false).expect("a record");
    let named = |number: usize| {
        let mut record = one.clone();
        record["target"]["label"] = format!("redis?maxclients={}", 1000 + number).into();
        record["position"] = (number + 1).into();
        record["run"]["blocks"] = 1.into();
        record
    };
    lines(&(0..targets).map(named).collect::<Vec<_>>())
}

#[test]
fn forty_targets_may_be_the_base_and_of_more_none() {
    let (_, page) = page_of(&crowd(40));
    let columns = embedded(&page, "bases");
    assert_eq!(columns[0]["cells"].as_array().map(Vec::len), Some(40));
    assert!(!columns.to_string().contains(", "), "one block claims nothing: {columns}");
    assert!(columns.to_string().len() <= BASES_BYTES_MAX, "{} bytes", columns.to_string().len());
    let (_, page) = page_of(&crowd(41));
    assert!(!page.contains("id=\"bases\"") && page.contains("<h2>Targets</h2>"));
}

/// A store that used as much CPU in each block is tied with the one that is said to use least.
#[test]
fn the_least_cpu_may_be_tied() {
    let mut all = records("fans");
    let of_unix = |record: &&Value| record["target"]["label"] == "redis+unix" && record["aa_control"] == false;
    let equals: Vec<Value> = all.iter().filter(of_unix).cloned().collect();
    all.extend(equals.into_iter().map(|mut equal| {
        equal["target"]["label"] = "redis+unix?maxclients=1001".into();
        equal["position"] = 100.into();
        equal
    }));
    let (_, page) = page_of(&lines(&all));
    let told = "redis+unix and redis+unix?maxclients=1001 are tied for the least CPU per op; \
                redis uses 1.17 times as much CPU [1.13-1.25] as redis+unix.";
    assert!(findings(&page).contains(told), "{}", findings(&page));
}

/// Each row has its own numbers at its right edge, and the axis has units.
#[test]
fn the_picture_has_the_numbers_of_the_answer_and_the_findings() {
    let (_, page) = page_of(&results("fans"));
    let told = "redis over a Unix socket (0.89 s) is faster than over TCP, which takes 1.18 times as long [1.14-1.27]. \
                redis+unix uses the least CPU per op; redis uses 1.17 times as much CPU [1.13-1.25].";
    assert!(findings(&page).starts_with(told), "{}", findings(&page));
    let time = picture(&page, "Time");
    says(
        time,
        &[">seconds, logarithmic</text>", ">time</text>", ">ratio</text>", ">CPU per op</text>", ">memory</text>"],
    );
    says(time, &[">0.89 s</text>", ">1.06 s</text>", ">1.18x</text>", ">[1.14-1.27]</text>", ">41.6 us</text>"]);
    says(picture(&page, "CPU per op"), &[">1.17x</text>", ">[1.13-1.25]</text>", ">41.6 us</text>"]);
    says(time, &[">server, Unix socket</text>", ">server, TCP</text>", ">server</text>", "one block each"]);
    says(&page, &["Asked of each store: for each profile", "<b>Trial</b>", "<b>Block</b>", "<b>Durability none</b>"]);
    let (_, page) = page_of(&results("noisy"));
    for told in ["7.4 times as much", "9.6 times as much", "7.5 times as long"] {
        assert!(findings(&page).contains(&format!("at least {told}")), "{}", findings(&page));
        let number = told.split(' ').next().expect("a number");
        says(&page, &[&format!(">at least {number}x</text>")]);
    }
    says(&page, &[">embedded</text>", ">baseline</text>", "Baselines: no store, never ranked"]);
    says(&page, &["null (forgets everything), ram (a hash map in this process)"]);
    says(&page, &["8 blocks of 5 trials (redis twice, null not checked) and 4 of a warm-up"]);
}

/// A store that may be as fast as the first is named beside it, and in no later sentence.
#[test]
fn what_is_not_separated_from_the_first_is_said_first() {
    let (said, page) = changed(|record| {
        if is_of(record, "redis") {
            for phase in record["phases"].as_array_mut().expect("phases") {
                phase["took_s"] = json!(phase["took_s"].as_f64().expect("seconds") / 1.2);
            }
        }
    });
    assert_eq!(heading(&page), "Not separated: redis and redis+unix, 0.88-0.89 s.");
    let told = one_line(&findings(&page));
    let (first, rest) = told.split_once(". ").expect("two sentences");
    // Their interval is wider than the noise floor.
    let open = "redis (0.88 s) and redis+unix (0.89 s) are not separated: too few blocks, about ";
    assert!(first.starts_with(open) && first.ends_with(" would do"), "{first}");
    assert!(!rest.contains("is faster") && rest.contains("Differences below ") && !rest.contains("tied"), "{rest}");
    assert!(one_line(&said.out).contains(&format!("{first}. ")), "{}", said.out);
    says(&page, &["the order is not known", "Differences below "]);
}

/// The same trials twice differ by nothing, and those that differ from themselves make the run noisy.
#[test]
fn ties_lie_within_the_noise_floor_and_a_noisy_run_names_it() {
    let mut all = records("fans");
    let of_unix = |record: &&Value| record["target"]["label"] == "redis+unix" && record["aa_control"] == false;
    let equals: Vec<Value> = all.iter().filter(of_unix).cloned().collect();
    all.extend(equals.into_iter().map(|mut equal| {
        equal["target"]["label"] = "redis+unix?maxclients=1001".into();
        equal["position"] = 100.into();
        equal
    }));
    let (_, page) = page_of(&lines(&all));
    let tied = "redis+unix (0.89 s) and redis+unix?maxclients=1001 (0.89 s) are tied for first place.";
    let first = "Tied: redis+unix and redis+unix?maxclients=1001, 0.89 s. Next: redis, 1.06 s (1.18x).";
    assert_eq!(heading(&page), first);
    assert!(findings(&page).contains(tied), "{}", findings(&page));
    assert!(findings(&page).contains(" Ties may hide differences below "), "{}", findings(&page));
    let (_, page) = changed(|record| {
        let is_second = record["aa_control"] == true;
        let factor = match record["block"].as_u64().is_some_and(|block| block % 2 == 0) {
            _ if !is_second => 1.0,
            true => 1.3,
            false => 0.9,
        };
        for phase in record["phases"].as_array_mut().expect("phases") {
            phase["took_s"] = json!(phase["took_s"].as_f64().expect("seconds") * factor);
        }
    });
    says(&page, &["<summary>! noise floor ", "<p>Single times are not reliable: noise floor "]);
    assert_eq!(heading(&page), "Not ranked: 2 targets, 0.89-1.06 s.");
    assert!(!findings(&page).contains("differed by"), "{}", findings(&page));
}

/// An op by one way of asking is not an op by another: CPU is for an op of the job as it is asked one by one.
#[test]
fn cpu_is_for_the_same_op_where_targets_ask_in_several_ways() {
    let told = "redis+unix uses the least CPU per op; redis uses 1.17 times as much CPU [1.13-1.25].";
    let cpu = |said: &Said| {
        let row = said.out.lines().find(|line| line.contains(" redis  ")).expect("a row").to_string();
        let behind = row.split("%").nth(1).expect("columns behind the waiting");
        behind.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
    };
    let (said, _) = changed(|_| ());
    assert!(one_line(&said.out).contains(told), "{}", said.out);
    let portable = cpu(&said);
    let (said, page) = changed(|record| {
        if is_of(record, "redis") {
            record["job"]["via"] = "batch".into();
            for phase in record["phases"].as_array_mut().expect("phases") {
                phase["ops"] = (phase["ops"].as_u64().expect("a count") / 10).into();
            }
        }
    });
    assert!(one_line(&said.out).contains(told), "{}", said.out);
    assert_eq!(cpu(&said), portable);
    says(&page, &["microseconds of CPU per op, client and server, logarithmic"]);
}

/// At rates all trials take the same time: the control is that of the response that is claimed.
#[test]
fn the_noise_of_rates_is_that_of_their_responses() {
    let (_, page) = page_of(&results("rates"));
    says(&page, &[" against itself ", ", requests at 2,000/s, p99"]);
    assert!(!page.contains("not run: the noise is unknown"), "{page}");
}

/// Five blocks count, and one of them lacks a target: both numbers are named.
#[test]
fn blocks_that_lack_a_target_are_no_contradiction() {
    let mut all = records("fans");
    all.retain(|record| record["block"].as_u64() <= Some(5));
    all.retain(|record| record["block"] != 5 || !is_of(record, "redis") || record["aa_control"] == true);
    for record in &mut all {
        record.as_object_mut().expect("a record").remove("noise");
        let slower = if is_of(record, "redis") { 3.0 } else { 1.0 };
        for phase in record["phases"].as_array_mut().expect("phases") {
            phase["took_s"] = (slower * phase["took_s"].as_f64().expect("seconds")).into();
        }
    }
    let (said, _) = page_of(&lines(&all));
    assert!(one_line(&said.out).contains("only 4 of the 5 blocks that count have every target"), "{}", said.out);
}

/// Each is the best of its panel, and they took 0.89 s and 1.06 s: they do not stand at the same place.
#[test]
fn targets_of_different_panels_stand_at_their_seconds() {
    let (_, page) = changed(|record| {
        if is_of(record, "redis") {
            record["job"]["via"] = "batch".into();
        }
    });
    let (_, picture) = page.split_once("<section data-measure=\"time\"").expect("a picture of seconds");
    let picture = picture.split_once("</section>").expect("its end").0;
    let places = |name: &str| {
        let (_, row) = picture.split_once(&format!(">{name}<")).expect("a row");
        let (_, x) = row.split_once("cx=\"").expect("a dot");
        x.split('"').next().and_then(|x| x.parse::<f64>().ok()).expect("a place")
    };
    let (first, second) = (places("redis+unix"), places("redis"));
    assert!(second > first + 20.0, "{first} {second}");
    says(picture, &[">seconds, logarithmic<", " s</text>", "Ratios are to the best target of the panel"]);
}

/// Ten times the limit of cells, each block with a number of its own.
#[test]
fn the_blocks_of_a_long_run_are_packed() {
    let counted: Vec<Value> = records("fans").into_iter().filter(|record| record["block"] != 0).collect();
    let again = |round: u64| {
        counted.iter().cloned().map(move |mut record| {
            record["block"] = (record["block"].as_u64().expect("a block") + 20 * round).into();
            record
        })
    };
    let all: Vec<Value> = (0..200).flat_map(again).collect();
    let (said, page) = page_of(&lines(&all));
    said.exits(0);
    says(&page, &["data-rows=\"H4sI", "kvfair show FILE --all --csv", "blocks are more than a page holds as text"]);
    assert!(page.len() <= 1_000_000, "{} bytes", page.len());
    let (_, body) = page.split_once("<body>").expect("a body");
    let elements = body.as_bytes().windows(2).filter(|pair| pair[0] == b'<' && pair[1].is_ascii_lowercase()).count();
    assert!(elements <= 5_000, "{elements} elements");
    let (_, page) = page_of(&results("fans"));
    assert!(!page.contains("data-rows=") && page.contains("warm-up: not counted"), "a short run stands there as text");
}
