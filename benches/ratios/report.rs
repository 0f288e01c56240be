//! What it takes to show many results, and what looking at a trial adds to it.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use flate2::bufread::MultiGzDecoder;
use kvfair::harness::load::{self, Parts};
use kvfair::model::record::Record;
use serde_json::Value;

use crate::{Bench, Outcome, best, kvfair};

const RECORDS: usize = 10_000;
const ROUNDS: usize = 7;
const OWED_S: f64 = 0.150;
/// What kvfair's own tests show: blocks of a real run.
const RESULTS: &str = "tests/golden/shown/fans.jsonl.gz";

/// Ten thousand records as one table.
pub fn shown(bench: &Bench) -> Outcome {
    let file = bench.path("many.jsonl");
    write_many(&mut BufWriter::new(File::create(&file).expect("a results file")));
    let bytes = fs::metadata(&file).expect("a results file").len();
    let took = |arguments: &[&str]| {
        let each = (0..ROUNDS).map(|_| {
            let began = Instant::now();
            let output = kvfair().arg("show").arg(&file).args(arguments).output().expect("kvfair shows");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("redis"), "{text}");
            began.elapsed().as_secs_f64()
        });
        best(&each.collect::<Vec<_>>())
    };
    let (table_s, wide_s) = (took(&[]), took(&["--wide"]));
    let line = format!(
        "{RECORDS} records ({:.0} MB) as a table {:.0} ms (owed {:.0}), with all histograms {:.0} ms",
        bytes as f64 / 1e6,
        table_s * 1e3,
        OWED_S * 1e3,
        wide_s * 1e3
    );
    Outcome { line, holds: table_s <= OWED_S }
}

const PAGE_OWED_S: f64 = 1.0;
const PAGE_OWED_BYTES: u64 = 1_000_000;
/// Elements in the body.
const ELEMENTS_OWED: usize = 5_000;

/// Ten thousand records as one page.
pub fn page(bench: &Bench) -> Outcome {
    let file = bench.path("many-for-a-page.jsonl");
    write_many(&mut BufWriter::new(File::create(&file).expect("a results file")));
    let page = bench.path("page.html");
    let each = (0..ROUNDS).map(|_| {
        let _ = fs::remove_file(&page);
        let began = Instant::now();
        let output = kvfair().arg("show").arg(&file).arg("--html").arg(&page).output().expect("kvfair shows");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        began.elapsed().as_secs_f64()
    });
    let took_s = best(&each.collect::<Vec<_>>());
    let text = fs::read_to_string(&page).expect("a page");
    let body = text.split_once("<body>").map_or("", |(_, body)| body);
    let is_element = |pair: &[u8]| pair[0] == b'<' && pair[1].is_ascii_lowercase();
    let elements = body.as_bytes().windows(2).filter(|pair| is_element(pair)).count();
    let bytes = text.len() as u64;
    let line = format!(
        "{RECORDS} records as a page {took_s:.2} s (owed {PAGE_OWED_S:.0}), {} kB (owed {}), {elements} elements (owed \
         {ELEMENTS_OWED})",
        bytes / 1000,
        PAGE_OWED_BYTES / 1000
    );
    Outcome { line, holds: took_s <= PAGE_OWED_S && bytes <= PAGE_OWED_BYTES && elements <= ELEMENTS_OWED }
}

/// The blocks of a real run again and again, each with a number of its own.
fn write_many(out: &mut impl Write) {
    let mut text = String::new();
    let packed = BufReader::new(File::open(RESULTS).expect("the records of a real run"));
    MultiGzDecoder::new(packed).read_to_string(&mut text).expect("the records of a real run");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let blocks = records.iter().filter_map(|record| record["block"].as_u64()).max().expect("blocks");
    let counted: Vec<&Value> = records.iter().filter(|record| record["block"] != 0).collect();
    for (number, &record) in (0..RECORDS).map(|number| (number, &counted[number % counted.len()])) {
        let mut record = record.clone();
        let block = record["block"].as_u64().expect("a block") + blocks * (number / counted.len()) as u64;
        record["block"] = block.into();
        writeln!(out, "{record}").expect("room");
    }
}

const ADDED: f64 = 0.02;

/// The processor time that kvfair itself uses while trials run, by their wall time: of a long trial less a short one,
/// so that what is done between trials cancels out.
pub fn looking(bench: &Bench) -> Outcome {
    let run = |profiles: &str| {
        let out = bench.path(&format!("looking-{profiles}.jsonl"));
        let mut child = kvfair()
            // Of three blocks nothing is claimed, so that none is discarded and run again.
            .args(["run", "fans", "redis+unix", "--profiles", profiles, "--blocks", "3", "--output"])
            .arg(&out)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("kvfair runs");
        // The kernel forgets a process' own time, its children's left out, when it ends.
        let mut used_s = 0.0;
        while child.try_wait().expect("kvfair ends").is_none() {
            used_s = own_cpu_s(child.id()).unwrap_or(used_s);
            std::thread::sleep(Duration::from_millis(5));
        }
        let records = load::records(&out, Parts::Tables).expect("records");
        fs::remove_file(&out).expect("our own file");
        (used_s, records.iter().filter_map(Record::took_s).sum::<f64>())
    };
    let shares: Vec<f64> = (0..3)
        .map(|_| {
            let ((few_used_s, few_s), (many_used_s, many_s)) = (run("500"), run("3000"));
            (many_used_s - few_used_s) / (many_s - few_s)
        })
        .collect();
    let share = best(&shares);
    let line = format!("sampling and gates use {:.2} % of a trial's time (owed at most 2)", share * 100.0);
    Outcome { line, holds: share <= ADDED }
}

/// What the process itself has used, from proc(5): the fields 14 and 15, in hundredths of a second.
fn own_cpu_s(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
    (ticks > 0).then_some(ticks as f64 / 100.0)
}
