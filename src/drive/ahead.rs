//! Many questions on their way at once, on one connection: what a pipelining client does, without a job or a clock.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::stores::blocking::Line;
use crate::wire::Heard;
use crate::words::op::{Fault, Op, Reply};

/// Asks all of it before the first answer is read, and hears the answers in the order of the questions: a reply, or the
/// words of a refusal. Each may take as long as `patience`, in however many pieces it comes.
pub fn ask(
    line: &mut Line,
    ops: &[Op<'_>],
    patience: Duration,
    mut hear: impl FnMut(usize, Result<Reply<'_>, String>),
) -> Result<(), Fault> {
    let mut out = Vec::new();
    ops.iter().try_for_each(|op| line.codec.say(op, &mut out))?;
    let (mut received, mut start, mut number) = (Vec::new(), 0, 0);
    let mut until = Until::within(patience);
    while number < ops.len() {
        write_all(line, &out, until)?;
        out.clear();
        match line.codec.hear(&received[start..], &mut out)? {
            None => {
                line.check_length(received.len() - start)?;
                read_more(line, &mut received, until)?;
            }
            Some((used, heard)) => {
                start += used;
                until = Until::within(patience);
                match heard {
                    Heard::Reply(reply) => hear(number, Ok(reply)),
                    Heard::Refused(words) => hear(number, Err(words)),
                    Heard::Again | Heard::Greeted => continue,
                }
                number += 1;
            }
        }
    }
    if start < received.len() {
        let what = format!("{}: {} bytes that nobody asked for", line.name, received.len() - start);
        return Err(Fault::Garbled(what));
    }
    Ok(())
}

/// When the answer must be there that is awaited.
#[derive(Clone, Copy)]
struct Until {
    moment: Instant,
    patience: Duration,
}

impl Until {
    fn within(patience: Duration) -> Until {
        Until { moment: Instant::now() + patience, patience }
    }
}

fn write_all(line: &mut Line, mut bytes: &[u8], until: Until) -> io::Result<()> {
    while !bytes.is_empty() {
        match line.stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(line, PollFlags::POLLOUT, until)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_more(line: &mut Line, received: &mut Vec<u8>, until: Until) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    loop {
        match line.stream.read(&mut bytes) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(count) => {
                received.extend_from_slice(&bytes[..count]);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(line, PollFlags::POLLIN, until)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn wait(line: &Line, what: PollFlags, until: Until) -> io::Result<()> {
    let left = until.moment.saturating_duration_since(Instant::now());
    let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(line.stream.as_fd(), what)], timeout) {
        Ok(0) => Err(io::Error::new(
            ErrorKind::TimedOut,
            format!("{} has been silent for {} s", line.name, until.patience.as_secs_f64()),
        )),
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
