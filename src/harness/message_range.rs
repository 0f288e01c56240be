//! One agent's part of a job's messages: neighbouring ones, in a file of its own that the job reads like any input. So
//! an agent on another machine makes its data there, and none reads what others count.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use super::input::DataFile;
use super::oracle::Hashed;
use crate::jobs::JobKind;
use crate::jobs::text::Messages;
use crate::model::agents::AgentShare;
use crate::model::record::Stream;
use crate::model::trial::{Data, JobSettings};

/// Writes the messages of a share into the file `out`, one a line, and gives the settings that read them. A recipe
/// is made anew; a user's file is read at `input`, and must be what the run was started with: `stream` is that.
pub fn write(
    kind: &JobKind,
    job: &JobSettings,
    input: &Path,
    stream: &Stream,
    share: AgentShare,
    out: &Path,
) -> Result<JobSettings> {
    let range = share.of(stream.units);
    if range.is_empty() {
        let (units, world) = (stream.units, share.world);
        bail!("{units} messages are too few for {world} agents\nhint: --agents {}", units.max(1));
    }
    let cannot = || format!("cannot write the messages of this agent to {}", out.display());
    let file = BufWriter::with_capacity(1 << 20, File::create(out).with_context(cannot)?);
    let mut lines = LineRange { range: range.clone(), number: 0, out: file };
    match &job.data {
        Data::Recipe { seed, .. } => (kind.data)(*seed, range.end, &mut lines).with_context(cannot)?,
        Data::File { .. } | Data::Program { .. } => {
            let sha256 = copy(job, input, &mut lines)?;
            if sha256 != stream.sha256 {
                let (here, there) = (lines.number, stream.units);
                bail!(
                    "the data differ: {here} messages with sha256 {sha256} here, and {there} with {} where the run was \
                     started\nhint: put the same file at {} on every host",
                    stream.sha256,
                    input.display()
                );
            }
        }
    }
    lines.out.flush().with_context(cannot)?;
    Ok(JobSettings { units: None, skip_bad: 0, read_as: None, format: "text".to_string(), ..job.clone() })
}

/// The good messages of a user's file. The digest of what was read for them.
fn copy(job: &JobSettings, input: &Path, out: &mut LineRange<impl Write>) -> Result<String> {
    let source = Hashed::new(DataFile::new(input, &job.data));
    let cannot = |error: io::Error| anyhow!("{}: {error}", input.display());
    let hint = "hint: an agent on another machine reads a text file, one message a line, at the same path as here";
    let mut messages = Messages::open(job, &source).map_err(|error| anyhow!("{:#}\n{hint}", cannot(error)))?;
    let mut written = Ok(());
    while messages
        .read(|message| written = out.write_all(message.as_bytes()).and_then(|()| out.write_all(b"\n")))
        .map_err(|fault| anyhow!("{fault}"))?
    {
        std::mem::replace(&mut written, Ok(())).map_err(cannot)?;
    }
    drop(messages);
    Ok(source.sha256())
}

/// Lets lines through by their number.
struct LineRange<W> {
    range: Range<u64>,
    /// Of the line under way, from 0.
    number: u64,
    out: W,
}

impl<W: Write> Write for LineRange<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            let (line, others) = rest.split_at(end);
            if self.range.contains(&self.number) {
                self.out.write_all(line)?;
            }
            self.number += u64::from(line.ends_with(b"\n"));
            rest = others;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::oracle::{OracleTask, compute};
    use crate::jobs::ngrams::NGRAMS;
    use crate::model::trial::Verify;

    fn settings(data: Data, units: Option<u64>, skip_bad: u64) -> JobSettings {
        let job = crate::harness::plan::tests::plan(None).job;
        let (name, format) = (NGRAMS.name.to_string(), "text".to_string());
        JobSettings { name, data, format, units, skip_bad, read_as: None, ..job }
    }

    /// What the oracle says of a job, and the messages of each of so many agents.
    fn parts(job: &JobSettings, input: &Path, scratch: &Path, world: u32) -> (Stream, Vec<String>) {
        let (job, input) = (job.clone(), input.to_path_buf());
        let out = scratch.join("expected");
        let task = OracleTask { job, input, verify: Verify::Full, out, explain: None, memory_bytes: None };
        let stream = compute(&task).expect("it is a job").stream;
        let part = |rank| {
            let out = scratch.join(format!("part-{rank}"));
            let share = AgentShare { rank, world };
            let read = write(&NGRAMS, &task.job, &task.input, &stream, share, &out).expect("the same data");
            assert_eq!((read.units, read.skip_bad), (None, 0));
            std::fs::read_to_string(out).expect("it was written")
        };
        let parts = (0..world).map(part).collect();
        (stream, parts)
    }

    #[test]
    fn the_parts_of_a_recipe_are_all_of_it() {
        let scratch = tempfile::tempdir().expect("a directory");
        let input = scratch.path().join("data");
        let mut data = Vec::new();
        (NGRAMS.data)(7, 1_000, &mut data).expect("memory takes it");
        std::fs::write(&input, &data).expect("there is room");
        let job = settings(Data::Recipe { name: NGRAMS.recipe.to_string(), seed: 7 }, Some(1_000), 0);
        let (_, parts) = parts(&job, &input, scratch.path(), 3);
        assert_eq!(parts.concat().as_bytes(), data);
        assert!(parts.iter().all(|part| matches!(part.lines().count(), 333 | 334)));
    }

    #[test]
    fn the_parts_of_a_file_are_its_good_messages_without_those_beyond_the_limit() {
        let scratch = tempfile::tempdir().expect("a directory");
        let input = scratch.path().join("mine.txt");
        std::fs::write(&input, b"one\r\n\xff\n\ntwo three\nfour\nnever read\n").expect("there is room");
        let job = settings(Data::File { path: input.clone() }, Some(4), 1);
        let (stream, parts) = parts(&job, &input, scratch.path(), 2);
        assert_eq!(parts, ["one\n\n", "two three\nfour\n"]);
        std::fs::write(&input, b"one\r\n\xff\n\ntwo three\nfive\n").expect("there is room");
        let share = AgentShare { rank: 0, world: 2 };
        let wrong = write(&NGRAMS, &job, &input, &stream, share, &scratch.path().join("wrong"));
        let words = wrong.expect_err("another file").to_string();
        assert!(words.contains("the data differ: 4 messages") && words.contains("hint: put the same file"), "{words}");
    }
}
