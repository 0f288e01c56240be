//! What the job `fans` costs alone: `cargo run --release --example fans_speed`. How fast records are merged, beside
//! copying them, on the records of the default data as they are when each of them is merged; and what a whole client
//! costs with a store that forgets and with a map in memory.

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use kvfair::jobs::fans::FANS;
use kvfair::jobs::merge::{Pages, merge};
use kvfair::jobs::people::{Profile, Profiles};
use kvfair::jobs::{Ask, Client, Heard, Part, Source};
use kvfair::model::load::At;
use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::{Data, JobSettings};

/// As much as stays within the second cache of the processor, where an answer is that was just received.
const BATCH_BYTES: usize = 256 << 10;

struct Memory(Vec<u8>);

impl Source for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn open(&self) -> std::io::Result<Box<dyn std::io::BufRead>> {
        Ok(Box::new(std::io::Cursor::new(self.0.clone())))
    }
}

#[derive(Default)]
struct Batch {
    olds: Vec<(Vec<u8>, usize, usize)>,
    profiles: Vec<Pages>,
    bytes: usize,
}

/// What one batch took. Of several passes the quickest counts: whatever else the machine does only ever adds.
#[derive(Clone, Copy)]
struct Took {
    copying: Duration,
    merging: Duration,
}

const PASSES: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let (seed, units) = (FANS.default_seed, FANS.default_units);
    let mut data = Vec::new();
    (FANS.data)(seed, units, &mut data)?;
    let (old_bytes, olds, mut best) = pass(&data)?;
    for _ in 1..PASSES {
        for (best, took) in best.iter_mut().zip(pass(&data)?.2) {
            best.copying = best.copying.min(took.copying);
            best.merging = best.merging.min(took.merging);
        }
    }
    let copying: Duration = best.iter().map(|took| took.copying).sum();
    let merging: Duration = best.iter().map(|took| took.merging).sum();
    let rate = |took: Duration| old_bytes as f64 / took.as_secs_f64() / 1e9;
    println!("{olds} old records, {old_bytes} bytes");
    println!("copying         {:6.2} GB/s", rate(copying));
    println!("merging         {:6.2} GB/s, {:.0} ns a record", rate(merging), merging.as_nanos() as f64 / olds as f64);
    let source = Memory(data);
    let a_profile = |took: Duration| took.as_secs_f64() * 1e6 / units as f64;
    let forgetting = quickest(|| forget(&source))?;
    println!("client on null  {:6.2} us a profile, reading it included", a_profile(forgetting));
    let keeping = quickest(|| keep(&source))?;
    println!("client on a map {:6.2} us a profile, the map included", a_profile(keeping));
    Ok(())
}

fn quickest(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..PASSES {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn forget(source: &Memory) -> Result<(), Box<dyn Error>> {
    let mut client = client(source)?;
    loop {
        let reply = match client.ask() {
            Ask::Op(Op::Get(_)) => Reply::Missing,
            Ask::Op(_) => Reply::Done,
            Ask::End => return Ok(()),
            _ => continue,
        };
        black_box(client.hear(&reply));
    }
}

fn keep(source: &Memory) -> Result<(), Box<dyn Error>> {
    let mut client = client(source)?;
    let mut records: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    loop {
        let reply = match client.ask() {
            Ask::Op(Op::Get(key)) => records.get(key).map_or(Reply::Missing, |value| Reply::Value(value)),
            Ask::Op(Op::Set { key, value, .. }) => {
                match records.get_mut(key) {
                    Some(record) => {
                        record.clear();
                        record.extend_from_slice(value);
                    }
                    None => drop(records.insert(key.to_vec(), value.to_vec())),
                }
                Reply::Done
            }
            Ask::End => return Ok(()),
            _ => continue,
        };
        if let Heard::Wrong(wrong) = client.hear(&reply) {
            return Err(wrong.found.into());
        }
    }
}

fn client(source: &Memory) -> Result<Box<dyn Client>, Box<dyn Error>> {
    Ok((FANS.open)(&settings()).client(Part::Run, 0, At::closed(1, 0), source)?)
}

fn settings() -> JobSettings {
    JobSettings {
        name: FANS.name.to_string(),
        data: Data::Recipe { name: FANS.recipe.to_string(), seed: FANS.default_seed },
        format: FANS.formats[0].to_string(),
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
    }
}

fn pass(data: &[u8]) -> Result<(usize, usize, Vec<Took>), Box<dyn Error>> {
    let mut profiles = Profiles::open(&settings(), &Memory(data.to_vec()))?;
    let (mut profile, mut pages, mut out) = (Profile::default(), Pages::default(), Vec::new());
    let mut records: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let (mut batch, mut took, mut bytes, mut olds) = (Batch::default(), Vec::new(), 0, 0);
    while profiles.read(&mut profile)? {
        pages.set(profile.pages());
        for (own, page) in profile.pages().iter().enumerate() {
            let old = records.get(page);
            merge(old.map(Vec::as_slice), own, &pages, &mut out)?;
            if let Some(old) = old {
                batch.bytes += old.len();
                batch.olds.push((old.clone(), own, batch.profiles.len()));
            }
            records.insert(page.to_vec(), out.clone());
        }
        batch.profiles.push(std::mem::take(&mut pages));
        if batch.bytes >= BATCH_BYTES {
            took.push(measure(&batch, &mut out)?);
            bytes += batch.bytes;
            olds += batch.olds.len();
            batch = Batch::default();
        }
    }
    Ok((bytes, olds, took))
}

fn measure(batch: &Batch, out: &mut Vec<u8>) -> Result<Took, Box<dyn Error>> {
    // Brings them into the cache.
    black_box(batch.olds.iter().flat_map(|(old, _, _)| old).fold(0u8, |sum, byte| sum ^ byte));
    let start = Instant::now();
    for (old, _, _) in &batch.olds {
        out.clear();
        out.extend_from_slice(old);
        black_box(&out);
    }
    let middle = Instant::now();
    for (old, own, profile) in &batch.olds {
        merge(Some(old), *own, &batch.profiles[*profile], out)?;
        black_box(&out);
    }
    Ok(Took { copying: middle - start, merging: middle.elapsed() })
}
