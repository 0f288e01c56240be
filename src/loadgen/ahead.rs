//! Many questions on their way at once, on one connection: what a pipelining client does, without a job or a clock.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::model::op::{Fault, Op, Reply};
use crate::protocol::Decoded;
use crate::stores::blocking::Connection;

/// Asks all of it before the first answer is read, and hears the answers in the order of the questions: a reply, or the
/// words of a refusal. Each may take as long as `patience`, in however many pieces it comes.
pub fn ask(
    connection: &mut Connection,
    ops: &[Op<'_>],
    patience: Duration,
    mut hear: impl FnMut(usize, Result<Reply<'_>, String>),
) -> Result<(), Fault> {
    let mut out = Vec::new();
    ops.iter().try_for_each(|op| connection.codec.say(op, &mut out))?;
    let (mut received, mut start, mut number) = (Vec::new(), 0, 0);
    let mut until = Until::within(patience);
    while number < ops.len() {
        write_all(connection, &out, until)?;
        out.clear();
        match connection.codec.hear(&received[start..], &mut out)? {
            None => {
                connection.check_length(received.len() - start)?;
                read_more(connection, &mut received, until)?;
            }
            Some((used, heard)) => {
                start += used;
                until = Until::within(patience);
                match heard {
                    Decoded::Reply(reply) => hear(number, Ok(reply)),
                    Decoded::Refused(words) | Decoded::PasswordNeeded { words, .. } => hear(number, Err(words)),
                    Decoded::Again | Decoded::Greeted => continue,
                }
                number += 1;
            }
        }
    }
    if start < received.len() {
        let what = format!("{}: {} bytes that were not asked for", connection.name, received.len() - start);
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

fn write_all(connection: &mut Connection, mut bytes: &[u8], until: Until) -> io::Result<()> {
    while !bytes.is_empty() {
        match connection.stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(connection, PollFlags::POLLOUT, until)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_more(connection: &mut Connection, received: &mut Vec<u8>, until: Until) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    loop {
        match connection.stream.read(&mut bytes) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(count) => {
                received.extend_from_slice(&bytes[..count]);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(connection, PollFlags::POLLIN, until)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn wait(connection: &Connection, what: PollFlags, until: Until) -> io::Result<()> {
    let left = until.moment.saturating_duration_since(Instant::now());
    let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(connection.stream.as_fd(), what)], timeout) {
        Ok(0) => Err(io::Error::new(
            ErrorKind::TimedOut,
            format!("{} has been silent for {} s", connection.name, until.patience.as_secs_f64()),
        )),
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
