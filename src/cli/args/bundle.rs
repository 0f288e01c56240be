//! What may be typed of bundles and reruns.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair run fans redis lmdb --output fans.jsonl && kvfair bundle fans.jsonl\n  \
    kvfair rerun fans.tar.zst               on another machine\n\n\
    The archive (.tar.zst) has the records, command, seeds, data or its recipe, servers as they were started, \
    versions, digests of programs, the page, a README and a manifest with the SHA-256 of each file. A file of yours is \
    in it if it has at most 20 MB; else its SHA-256 is. It has no passwords, home directories or names of hosts. The \
    same results give the same bytes.")]
pub struct Bundle {
    /// A results file
    pub results: PathBuf,
    /// Write the archive to this file, which must be new [default: RESULTS with .tar.zst in place of .jsonl]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair rerun fans.tar.zst\n  \
    kvfair rerun report.html                writes report-2.html, with this machine beside the others\n  \
    kvfair rerun report.html --input likes.csv\n\n\
    It checks the manifest, runs the same command with the same seeds, lists what differs (machine, kernel, versions), \
    and judges each claim of the first run: reproduced, contradicted, or cannot be told. Only jobs of kvfair's own run \
    without being asked for.\n\n\
    Exit codes: 0 every claim is reproduced, 1 nothing could be run, 3 a store is not installed or did not start, 4 \
    wrong answers, 5 a claim is contradicted, 6 no verdict: no claim is contradicted, and one cannot be judged.")]
pub struct Rerun {
    /// A bundle of `kvfair bundle`, or a page of --html
    pub file: PathBuf,
    /// The data, where the file does not hold it; its SHA-256 must be the same
    #[arg(long, short, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Leave out targets whose store is not installed; without it they are an error
    #[arg(long)]
    pub skip_missing: bool,
    /// Start programs that the file names (--exec, ?program=) without asking
    #[arg(long)]
    pub yes: bool,
    /// Write the records to this file, which must not exist yet [default: ./kvfair-results/<UTC>-<job>.jsonl]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the page with this machine into this file, which must be new [default: of PAGE.html PAGE-2.html; of a
    /// bundle none]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
