//! A server's words in pieces: a proxy between a codec and its server, which passes on what is asked as it comes, and
//! what is answered split where it is told to, or byte by byte, or many answers at once. It knows no protocol.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::harness::pipe::{Listener, Pipe};
use crate::model::op::Fault;
use crate::stores::{Adapter, Launch, Place, Store};

/// Between two pieces: so long that whoever reads has read the first one.
const BETWEEN: Duration = Duration::from_millis(1);
/// Between two bytes.
const BETWEEN_BYTES: Duration = Duration::from_micros(20);
/// What comes within this time is one answer, where answers are to be joined.
const QUIET: Duration = Duration::from_millis(5);

/// How answers are passed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    AsTheyCome,
    /// So many bytes since the last question, and a moment later the rest.
    SplitAfter(usize),
    ByteByByte,
    /// All that comes until the server is quiet, at once; then split after so many bytes.
    Joined(usize),
}

pub struct Proxy {
    /// Where it listens.
    pub place: Place,
    shared: Arc<Shared>,
}

struct Shared {
    manner: Mutex<Manner>,
    /// Bytes of answers since the last question, on whatever connection spoke last.
    answered: AtomicUsize,
    /// Bytes of all answers so far.
    passed: AtomicUsize,
}

/// How a store is opened past a proxy.
pub struct Through<'g> {
    pub proxy: &'g Proxy,
    pub adapter: &'g Adapter,
    pub launch: &'g Launch,
}

impl Through<'_> {
    pub fn open(&self) -> Result<Box<dyn Store>, Fault> {
        (self.adapter.open)(&Launch { place: self.proxy.place.clone(), ..self.launch.clone() })
    }
}

impl Proxy {
    /// Listens on the loopback, or for a server on a Unix socket in a `directory` of its own, until this process ends.
    pub fn begin(server: &Place, directory: &Path) -> io::Result<Proxy> {
        let shared = Arc::new(Shared {
            manner: Mutex::new(Manner::AsTheyCome),
            answered: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
        });
        let (for_all, server) = (shared.clone(), server.clone());
        let (listener, place) = Listener::for_clients_of(&server, directory)?;
        thread::spawn(move || {
            loop {
                if let Ok(client) = listener.accept() {
                    let _ = connect(client, &server, &for_all);
                }
            }
        });
        Ok(Proxy { place, shared })
    }

    /// From the next answer on.
    pub fn pass(&self, manner: Manner) {
        *self.shared.manner.lock().expect("no thread of the proxy panics") = manner;
    }

    /// Bytes of all answers so far: who is not spoken to does not come this way.
    pub fn passed(&self) -> usize {
        self.shared.passed.load(Ordering::Relaxed)
    }

    /// Bytes of the last answer.
    pub fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::Relaxed)
    }
}

/// A thread for each way.
fn connect(client: Pipe, server: &Place, shared: &Arc<Shared>) -> io::Result<()> {
    let server = Pipe::to(server)?;
    client.without_delay()?;
    // Bytes of answers since this connection's last question.
    let since = Arc::new(AtomicUsize::new(0));
    let (questions, from_client, to_server) = (since.clone(), client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = pass_questions(from_client, to_server, &questions);
    });
    let shared = shared.clone();
    thread::spawn(move || {
        let _ = pass_answers(server, client, &since, &shared);
    });
    Ok(())
}

fn pass_questions(mut from: Pipe, mut to: Pipe, since: &AtomicUsize) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) | Err(_) => return to.shut(Shutdown::Both),
            Ok(count) => {
                since.store(0, Ordering::Relaxed);
                to.write_all(&bytes[..count])?;
            }
        }
    }
}

fn pass_answers(mut from: Pipe, mut to: Pipe, since: &AtomicUsize, shared: &Shared) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let mut count = match from.read(&mut bytes) {
            Ok(0) | Err(_) => return to.shut(Shutdown::Both),
            Ok(count) => count,
        };
        let manner = *shared.manner.lock().expect("no thread of the proxy panics");
        if let Manner::Joined(_) = manner {
            count = join(&mut from, &mut bytes, count)?;
        }
        let before = since.fetch_add(count, Ordering::Relaxed);
        shared.answered.store(before + count, Ordering::Relaxed);
        shared.passed.fetch_add(count, Ordering::Relaxed);
        let came = &bytes[..count];
        match manner {
            Manner::SplitAfter(place) | Manner::Joined(place) if (before + 1..before + count).contains(&place) => {
                to.write_all(&came[..place - before])?;
                thread::sleep(BETWEEN);
                to.write_all(&came[place - before..])?;
            }
            Manner::ByteByByte => came.iter().try_for_each(|byte| {
                to.write_all(&[*byte])?;
                thread::sleep(BETWEEN_BYTES);
                Ok::<(), io::Error>(())
            })?,
            _ => to.write_all(came)?,
        }
    }
}

/// Reads on until nothing comes any more; how many bytes there are then.
fn join(from: &mut Pipe, bytes: &mut [u8], mut count: usize) -> io::Result<usize> {
    from.wait_at_most(Some(QUIET))?;
    while count < bytes.len() {
        match from.read(&mut bytes[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => return Err(error),
        }
    }
    from.wait_at_most(None)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    /// A server that answers every byte with ten.
    fn tenfold(directory: &Path) -> Place {
        let path = directory.join("s");
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut byte = [0];
                while client.read(&mut byte).is_ok_and(|count| count == 1) {
                    client.write_all(&[byte[0]; 10]).unwrap();
                }
            }
        });
        Place::Unix(path)
    }

    /// The pieces in which the answers to some questions come.
    fn pieces(proxy: &Proxy, questions: &[u8]) -> Vec<usize> {
        let Place::Unix(path) = &proxy.place else { panic!("a Unix socket") };
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(questions).unwrap();
        let (mut pieces, mut bytes) = (Vec::new(), [0; 100]);
        while pieces.iter().sum::<usize>() < 10 * questions.len() {
            pieces.push(stream.read(&mut bytes).unwrap());
        }
        pieces
    }

    /// Whether they ever come so: a reader that is late finds pieces together.
    fn come(proxy: &Proxy, questions: &[u8], so: impl Fn(&[usize]) -> bool) -> bool {
        (0..100).any(|_| so(&pieces(proxy, questions)))
    }

    #[test]
    fn answers_are_split_joined_and_counted() {
        let directory = tempfile::tempdir().unwrap();
        let ours = directory.path().join("p");
        fs::create_dir(&ours).unwrap();
        let proxy = Proxy::begin(&tenfold(directory.path()), &ours).unwrap();
        assert_eq!(pieces(&proxy, b"a").iter().sum::<usize>(), 10);
        assert_eq!(proxy.answered(), 10);
        for place in 1..10 {
            proxy.pass(Manner::SplitAfter(place));
            assert!(come(&proxy, b"a", |pieces| pieces == [place, 10 - place]), "{place}");
        }
        proxy.pass(Manner::Joined(0));
        assert_eq!(pieces(&proxy, b"abc"), [30]);
        proxy.pass(Manner::Joined(11));
        assert!(come(&proxy, b"abc", |pieces| pieces == [11, 19]));
        proxy.pass(Manner::ByteByByte);
        assert!(come(&proxy, b"a", |pieces| pieces.len() > 5));
    }
}
