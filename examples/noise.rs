//! Records a machine's noise as `crates/stats/tests/data/noise.txt` holds it: how long the same piece of work takes,
//! every 20 ms.
//! `cargo run --release --example noise > noise.txt` takes ten minutes; `-- 60` one.

use std::hint::black_box;
use std::io::{BufWriter, Result, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(20);

/// About 2 ms, a tenth of the time of one processor.
const LOOKS: u32 = 20_000;

fn main() -> Result<()> {
    let seconds: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(600);
    let table: Vec<u64> = (0..1_u64 << 20).map(|index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).collect();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let (start, mut state) = (Instant::now(), 1);
    for turn in 0..seconds * 50 {
        if let Some(wait) = (start + EVERY * turn).checked_duration_since(Instant::now()) {
            std::thread::sleep(wait);
        }
        let begun = Instant::now();
        state = black_box(work(&table, state));
        writeln!(out, "{:.1}", begun.elapsed().as_nanos() as f64 / 1e3)?;
    }
    out.flush()
}

/// Looks one after another into 8 MiB, each where the one before it says, as a store's table is looked into.
fn work(table: &[u64], from: u64) -> u64 {
    (0..LOOKS).fold(from, |state, _| {
        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(table[(state >> 44) as usize])
    })
}
