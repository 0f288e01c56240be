//! What a connection costs the generator in memory, besides what the kernel keeps of it.

use super::{Bench, Outcome};

const MANY: u64 = 10_000;
const FEW: u64 = 100;
const OWED_BYTES: u64 = 4096;

pub fn measure(bench: &Bench) -> Outcome {
    let bytes = |clients: u64| {
        let clients = clients.to_string();
        let run = ["getset", "redis+unix", "--only", "set", "--clients", &clients, "--requests", "200000"];
        let records = bench.records(&[&run[..], &["--blocks", "1"]].concat());
        records[0].memory.client.anonymous_bytes
    };
    let each = bytes(MANY).saturating_sub(bytes(FEW)) / (MANY - FEW);
    let line = format!("each of {MANY} connections costs {each} bytes of the client's memory (owed {OWED_BYTES})");
    Outcome { line, holds: each <= OWED_BYTES }
}
