//! The network between a client and its server, as `--rtt` asks for it: a proxy of ours in a process of its own, and
//! the ping that shows what it really adds.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::child::{Child, tell};
use super::pipe::{Listener, Pipe};
use super::task::{Event, ProxyTask, Task};
use crate::model::network::Network;
use crate::model::record::{Phase, Record};
use crate::stores::Place;

#[cfg(target_os = "linux")]
mod peer;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod queue;

/// The shortest round trip that is asked for: a timer goes off no more exactly than this, and both ways need one.
pub const RTT_LEAST: Duration = Duration::from_micros(50);
/// The longest: further away than a satellite.
pub const RTT_MOST: Duration = Duration::from_secs(1);

/// How long a proxy may take to begin, and to tell what it passed on.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pings wake everything up.
const WARM_UP: usize = 20;
/// Pings of one round-trip time, and how long they may take together, but for the least.
const PINGS: usize = 400;
const PINGS_LEAST: usize = 5;
const PINGING: Duration = Duration::from_millis(500);

/// A replica has one connection to its primary, and others while it is copied; several may follow one promoted replica.
const REPLICA_CONNECTIONS: u32 = 64;

/// A proxy before one server, until its end.
pub struct Proxy {
    child: Child,
    /// Where clients reach the server through it.
    pub place: Place,
}

impl Proxy {
    /// Before `server`, for so many clients, with its socket and log in `directory`; started by the command `under`,
    /// where that is one. Clients are this user's.
    pub fn start(under: &[String], server: &Place, rtt: Duration, clients: u32, directory: &Path) -> Result<Proxy> {
        Proxy::of(under, server, rtt / 2, (clients, None), directory)
    }

    /// Between a primary and its replica, which may run as the user `lets_in`.
    pub fn link(server: &Place, delay: Duration, lets_in: Option<u32>, directory: &Path) -> Result<Proxy> {
        Proxy::of(&[], server, delay, (REPLICA_CONNECTIONS, lets_in), directory)
    }

    fn of(
        under: &[String],
        server: &Place,
        delay: Duration,
        (clients, lets_in): (u32, Option<u32>),
        directory: &Path,
    ) -> Result<Proxy> {
        if let Place::Unix(path) = server
            && path.is_dir()
        {
            bail!("--rtt: {} is a directory: name the socket in it, or the server's port", path.display());
        }
        let directory = directory.join("p");
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let task = ProxyTask { server: server.clone(), delay, clients, lets_in, directory: directory.join("s") };
        let mut child = Child::start(under, &Task::Proxy(task), &directory.join("proxy.log"))?;
        match child.next(PATIENCE) {
            Ok(Event::Listens(place)) => Ok(Proxy { child, place }),
            Ok(Event::Failed(why)) => bail!(why),
            _ => bail!("the proxy before {server} did not begin: {}", child.ending()),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it where nothing is measured of what it passed on.
    pub fn stop(mut self) {
        self.child.end();
    }

    /// Ends it and notes what it passed on. Who was not spoken to through it is no measurement.
    pub fn end(mut self, record: &mut Record) -> Result<()> {
        self.child.end();
        let Ok(Event::Passed(passed)) = self.child.next(PATIENCE) else {
            bail!("the proxy that stands for the network ended before the trial did: {}", self.child.ending());
        };
        if let Some(network) = &mut record.network {
            network.bytes = passed.bytes;
            network.late_us = passed.late_s * 1e6 / passed.chunks.max(1) as f64;
        }
        let moved = |phase: &Phase| phase.metrics.bytes_out + phase.metrics.bytes_in;
        // A store that one process fills for another is filled past it.
        let moved: u64 = record.measured().map(moved).sum();
        // What a cache answers does not come by.
        let least = if record.target.cache.is_some() { 0 } else { moved / 2 };
        if passed.bytes == 0 || passed.bytes < least {
            bail!(
                "--rtt: the client bypassed the proxy: a client library that finds its servers by itself, or \
                 a program that does not use the place that it is told"
            );
        }
        Ok(())
    }
}

/// In the child: the whole life of a proxy.
pub fn serve(task: &ProxyTask) {
    if let Err(why) = run(task) {
        tell(&Event::Failed(why));
    }
}

#[cfg(target_os = "linux")]
use proxy::run;

/// Why there is no proxy on this system; nothing where there is one.
#[cfg(target_os = "linux")]
pub fn missing() -> Option<&'static str> {
    None
}

/// Others have no timer that is exact enough for it (timerfd_create(2)).
#[cfg(not(target_os = "linux"))]
pub fn missing() -> Option<&'static str> {
    Some("--rtt works on Linux only")
}

#[cfg(not(target_os = "linux"))]
fn run(_: &ProxyTask) -> Result<(), String> {
    Err(missing().unwrap_or_default().to_string())
}

/// What pings show of a proxy with this round-trip time, and of one that delays nothing.
pub fn ping(rtt_us: u64, under: &[String], scratch: &Path) -> Result<Network> {
    let cannot = |error: std::io::Error| anyhow!("--rtt: no ping through a proxy: {error}");
    let any = Place::Tcp { host: String::new(), port: 0 };
    let (listener, place) = Listener::for_clients_of(&any, scratch).map_err(cannot)?;
    let proxies = if rtt_us == 0 { 1 } else { 2 };
    thread::spawn(move || (0..proxies).for_each(|_| listener.accept().map_or((), echo)));
    let through = |rtt_us: u64| -> Result<f64> {
        let rtt = Duration::from_micros(rtt_us);
        let proxy = Proxy::start(under, &place, rtt, 1, &scratch.join(format!("ping-{rtt_us}")))?;
        pinged_us(&proxy.place, rtt).map_err(cannot)
    };
    let own_us = through(0)?;
    let ping_us = if rtt_us == 0 { own_us } else { through(rtt_us)? };
    Ok(Network { ping_us, own_us, ..Network::of(rtt_us) })
}

fn echo(mut pipe: Pipe) {
    let mut byte = [0; 1];
    let _ = pipe.without_delay();
    while pipe.read_exact(&mut byte).is_ok() && pipe.write_all(&byte).is_ok() {}
}

/// The median of what a byte takes there and back, in microseconds.
fn pinged_us(place: &Place, rtt: Duration) -> std::io::Result<f64> {
    let mut pipe = Pipe::to(place)?;
    pipe.wait_at_most(Some(PATIENCE))?;
    let mut once = || -> std::io::Result<f64> {
        let (began, mut byte) = (Instant::now(), [7]);
        pipe.write_all(&byte)?;
        pipe.read_exact(&mut byte)?;
        Ok(began.elapsed().as_secs_f64() * 1e6)
    };
    let fit = (PINGING.as_secs_f64() / rtt.as_secs_f64().max(1e-9)) as usize;
    let count = fit.clamp(PINGS_LEAST, PINGS);
    for _ in 0..WARM_UP.min(count) {
        once()?;
    }
    let mut took_us = (0..count).map(|_| once()).collect::<std::io::Result<Vec<f64>>>()?;
    took_us.sort_by(f64::total_cmp);
    Ok(took_us[count / 2])
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::path::Path;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::proxy::serve_in_a_thread;
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    /// A proxy before a server that answers every byte with itself, at a place like this one.
    fn before_an_echo(like: &Place, directory: &Path) -> Place {
        let (listener, server) = Listener::for_clients_of(like, &directory.join("e")).unwrap();
        thread::spawn(move || {
            while let Ok(mut pipe) = listener.accept() {
                thread::spawn(move || {
                    let mut bytes = vec![0; 64 << 10];
                    while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                        pipe.write_all(&bytes[..count]).unwrap();
                    }
                });
            }
        });
        let (delay, directory) = (RTT / 2, directory.join("p"));
        serve_in_a_thread(ProxyTask { server, delay, clients: 9, lets_in: None, directory })
    }

    fn places(directory: &Path) -> [Place; 2] {
        [Place::Tcp { host: String::new(), port: 0 }, Place::Unix(directory.join("s"))]
    }

    #[test]
    fn a_byte_there_and_back_takes_a_round_trip_and_many_take_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        for like in places(directory.path()) {
            let mut pipe = Pipe::to(&before_an_echo(&like, directory.path())).unwrap();
            let mut byte = [1];
            let began = Instant::now();
            pipe.write_all(&byte).unwrap();
            pipe.read_exact(&mut byte).unwrap();
            let took = began.elapsed();
            assert!(took >= RTT - Duration::from_millis(1) && took < 3 * RTT, "{like}: {took:?}");
            // Twenty megabytes, 64 kB at a time, would take 300 round trips if one waited for the other.
            let mut writer = pipe.try_clone().unwrap();
            let sent: Vec<u8> = (0..20 << 20).map(|place: u32| (place >> 3) as u8).collect();
            let expected = sent.clone();
            let began = Instant::now();
            let writes = thread::spawn(move || writer.write_all(&sent).unwrap());
            let mut came = vec![0; expected.len()];
            pipe.read_exact(&mut came).unwrap();
            writes.join().unwrap();
            let took = began.elapsed();
            assert!(came == expected, "{like}: the same bytes in the same order");
            assert!(took > RTT && took < 100 * RTT, "{like}: {took:?}");
        }
    }

    #[test]
    fn the_end_of_a_side_comes_through_after_what_was_before_it() {
        let directory = tempfile::tempdir().unwrap();
        for like in places(directory.path()) {
            let mut pipe = Pipe::to(&before_an_echo(&like, directory.path())).unwrap();
            pipe.write_all(b"last words").unwrap();
            pipe.shut(std::net::Shutdown::Write).unwrap();
            let mut came = String::new();
            pipe.read_to_string(&mut came).unwrap();
            assert_eq!(came, "last words", "{like}");
        }
    }
}
