//! How fast recorded traffic is read, in each form and packing, and in how much memory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use kvfair::draw::Rng;
use kvfair::harness::input::DataFile;
use kvfair::jobs::trace::forms::{Key, NAMES};
use kvfair::jobs::trace::recorded::Recorded;
use kvfair::model::trial::{Data, JobSettings};

use super::{Bench, Outcome, ROUNDS, best};

const ROWS: u64 = 10_000_000;
/// Objects among which they are drawn.
const OBJECTS: u64 = 1_000_000;
/// Millions of rows a second that are owed, by packing.
const PACKINGS: [(&str, f64); 3] = [("", 20.0), (".gz", 4.0), (".zst", 4.0)];
/// Memory of the whole process that reads: far below any of the files.
const PEAK_MB: f64 = 50.0;

pub fn measure(bench: &Bench) -> Outcome {
    let (mut lines, mut holds) = (Vec::new(), true);
    for form in NAMES {
        let mut speeds = Vec::new();
        for (packing, owed) in PACKINGS {
            let file = bench.path(&format!("trace.{form}{packing}"));
            write(form, packing, &file).expect("room for a trace");
            let rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| in_a_process(form, &file)).collect();
            std::fs::remove_file(&file).expect("our own file");
            let seconds: Vec<f64> = rounds.iter().map(|(seconds, _)| *seconds).collect();
            let speed = ROWS as f64 / best(&seconds) / 1e6;
            let peak_mb = rounds.iter().map(|(_, peak_mb)| *peak_mb).fold(0.0, f64::max);
            holds &= speed >= owed && peak_mb <= PEAK_MB;
            speeds
                .push(format!("{} {speed:.1} in {peak_mb:.0} MB", if packing.is_empty() { "plain" } else { packing }));
        }
        lines.push(format!("{form}: {}", speeds.join(", ")));
    }
    let owed = "owed 20 plain, 4 packed, 50 MB";
    Outcome { line: format!("million rows a second ({owed}): {}", lines.join("; ")), holds }
}

fn in_a_process(form: &str, file: &Path) -> (f64, f64) {
    let this = std::env::current_exe().expect("our own path");
    let output = Command::new(this).args(["recorded", form]).arg(file).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(|number| number.parse().expect("a number"));
    (numbers.next().expect("seconds"), numbers.next().expect("a peak"))
}

/// Reads a trace and prints the seconds that it took, and the megabytes.
pub fn read(form: &str, file: &Path) {
    let data = Data::File { path: file.to_path_buf() };
    let settings = JobSettings {
        name: "trace".into(),
        data: data.clone(),
        format: form.into(),
        read_as: None,
        units: None,
        skip_bad: 0,
        via: Default::default(),
        split: Default::default(),
        load: None,
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    };
    let began = Instant::now();
    let mut recorded = Recorded::open(&settings, &DataFile::new(file, &data)).expect("the file opens");
    let (mut requests, mut bytes) = (0, 0);
    while recorded
        .read(|request| {
            requests += 1;
            bytes += u64::from(request.value_bytes)
                + match request.key {
                    Key::Text(text) => text.len() as u64,
                    Key::Object(object) => object,
                };
        })
        .expect("good rows")
    {}
    let took_s = began.elapsed().as_secs_f64();
    assert!(requests == ROWS && bytes > ROWS);
    println!("{took_s} {}", peak_kb() as f64 / 1e3);
}

/// The most memory of this program, from proc(5): what getrusage(2) tells is also of the program that started it.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("our own status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse().expect("a number of kB")
}

fn write(form: &str, packing: &str, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    match packing {
        ".gz" => {
            let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            write_rows(form, &mut packer)?;
            packer.finish()?.flush()
        }
        ".zst" => {
            let mut packer = zstd::Encoder::new(file, 3)?;
            write_rows(form, &mut packer)?;
            packer.finish()?.flush()
        }
        _ => {
            write_rows(form, &mut file)?;
            file.flush()
        }
    }
}

/// Rows as they are in traces that are given out: the same few objects again and again, times that hardly move.
fn write_rows(form: &str, out: &mut impl Write) -> io::Result<()> {
    let mut random = Rng::new(1);
    for row in 0..ROWS {
        let (drawn, other) = (random.draw(), random.draw());
        // Squared, so that some are far more frequent than others.
        let frequent = ((drawn >> 32) * (drawn & 0xffff_ffff)) >> 32;
        let object = (frequent * OBJECTS) >> 32;
        let (time_s, bytes) = (row / 10_000, 20 + (object * 7919) % 900);
        match form {
            "twitter" => {
                let (operation, ttl_s) = if other % 8 == 0 { ("set", 86_400) } else { ("get", 0) };
                let name = object.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                writeln!(out, "{time_s},q:q:1:{name:016x},22,{bytes},{},{operation},{ttl_s}", other >> 54)?;
            }
            "libcachesim" => writeln!(out, "{time_s}, {object}, {bytes}, {}", row + (other >> 50))?,
            "oracle" => {
                out.write_all(&(time_s as u32).to_le_bytes())?;
                out.write_all(&object.to_le_bytes())?;
                out.write_all(&(bytes as u32).to_le_bytes())?;
                out.write_all(&(row + (other >> 50)).to_le_bytes())?;
            }
            _ => writeln!(out, "{object} 1 0 {row}")?,
        }
    }
    Ok(())
}
