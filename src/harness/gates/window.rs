//! The readings around one trial: from when the clock first runs for what is measured to the end of the final flush.
//! Loading is in it only where records are loaded anew between two points. Queries that follow have readings of their
//! own.

use std::time::{Duration, Instant};

use super::programs::{self, Programs};
use super::queue::{self, Waited, Waits};
use crate::jobs::Part;
use crate::model::noise::Noise;
use crate::model::record::Record;
use crate::model::trial::Pinned;

/// Phases that can be judged by how long threads waited speak for a trial when they are so much of it: in the few
/// milliseconds of a final flush one time slice is a large share.
const JUDGED_SHARE: f64 = 0.5;

/// Who sleeps between looks wakes up some milliseconds late where many threads want to run. This late nothing ran at
/// all: the host stood still, or all of us were stopped.
const STALL: Duration = Duration::from_millis(50);

pub struct Window {
    /// Ourselves, from whom all descends that we start; and agents of the trial that somebody else started here for us.
    roots: Vec<u32>,
    child: u32,
    servers: Vec<u32>,
    /// Between them, on the processors of the child.
    proxy: Option<u32>,
    cpus: u32,
    pinned: Option<Pinned>,
    beside_guest: bool,
    /// Each phase is a point, with noise of its own.
    has_points: bool,
    opened: Option<Programs>,
    /// Of the phase that goes on.
    before: Option<Before>,
    stalled_s: f64,
    /// Of the phases with no more busy threads than processors.
    judged: Judged,
}

/// What was so when a phase began.
struct Before {
    began: Instant,
    client: Option<Waits>,
    server: Option<Waits>,
    proxy: Option<Waits>,
    programs: Option<Programs>,
}

#[derive(Clone, Copy, Default)]
struct Judged {
    wall_s: f64,
    client_s: Option<f64>,
    server_s: Option<f64>,
    stalled_s: f64,
}

/// What was seen of one phase.
#[derive(Default)]
pub struct PhaseNoise {
    /// Seconds that the threads of the trial and of the server waited for a processor.
    pub client_s: Option<f64>,
    pub server_s: Option<f64>,
    /// Of a point alone, and of queries.
    pub noise: Option<Noise>,
}

impl Window {
    /// Around a child that works on a store's servers, managed or guest, through that proxy if there is one.
    pub fn around(child: u32, servers: Vec<u32>, proxy: Option<u32>, record: &Record, beside_guest: bool) -> Window {
        let (roots, cpus, pinned) = (vec![std::process::id()], record.machine.cpus, record.run.pinned.clone());
        let has_points = record.job.load.is_some() || record.job.replay_percent.is_some();
        let judged = Judged::default();
        let (opened, before, stalled_s) = (None, None, 0.0);
        Window {
            roots,
            child,
            servers,
            proxy,
            cpus,
            pinned,
            beside_guest,
            has_points,
            opened,
            before,
            stalled_s,
            judged,
        }
    }

    /// These processes on this machine are the trial's too.
    pub fn also_ours(&mut self, processes: Vec<u32>) {
        self.roots.extend(processes);
    }

    /// A phase is about to begin. `known` is how programs were seen last: who has not run since is not read again.
    pub fn begins(&mut self, phase: Part, known: Option<&Programs>) {
        let opens = self.opened.is_none() && phase != Part::Load;
        let known = self.opened.as_ref().or(known);
        let programs = (opens || self.is_apart(phase)).then(|| programs::look(&self.roots, known)).flatten();
        if opens {
            self.opened = programs.clone();
        }
        let (client, server) = (queue::waits(&[self.child]), queue::waits(&self.servers));
        let proxy = self.proxy.and_then(|proxy| queue::waits(&[proxy]));
        self.stalled_s = 0.0;
        self.before = Some(Before { began: Instant::now(), client, server, proxy, programs });
    }

    /// It is judged by itself: a point, or what is asked once all is built.
    fn is_apart(&self, phase: Part) -> bool {
        phase == Part::Ask || (self.has_points && phase != Part::Load && phase != Part::FinalFlush)
    }

    /// The one who looks slept so much longer than it was to.
    pub fn overslept(&mut self, by: Duration) {
        if by >= STALL {
            self.stalled_s += by.as_secs_f64();
        }
    }

    /// It has ended, and of the trial's own threads these with it.
    pub fn ended(&mut self, phase: Part, left: Waits) -> PhaseNoise {
        let Some(Before { began, client, server, proxy, programs }) = self.before.take() else {
            return PhaseNoise::default();
        };
        let wall_s = began.elapsed().as_secs_f64();
        let waited = |before: Option<Waits>, after: Option<Waits>| -> Option<Waited> {
            Some(queue::between(&before?, &after?, wall_s))
        };
        let client = waited(client, queue::waits(&[self.child]).map(|alive| alive.into_iter().chain(left).collect()));
        let server = waited(server, queue::waits(&self.servers));
        let proxy = waited(proxy, self.proxy.and_then(|proxy| queue::waits(&[proxy])));
        let busy = |waited: Option<Waited>| waited.map_or(0, |waited| waited.busy);
        let mut judged = Judged::default();
        if phase != Part::Load && had_room(busy(client) + busy(proxy), busy(server), self.cpus, self.pinned.as_ref()) {
            let worst_s = |waited: Option<Waited>| waited.map(|waited| waited.worst_s);
            let (client_s, server_s, stalled_s) = (worst_s(client), worst_s(server), self.stalled_s);
            judged = Judged { wall_s, client_s, server_s, stalled_s };
            self.judged.add(&judged);
        }
        let noise = || Some(self.since(programs.as_ref()?, &judged).0);
        let noise = if self.is_apart(phase) { noise() } else { None };
        PhaseNoise {
            client_s: client.map(|client| client.delay_s),
            server_s: server.map(|server| server.delay_s),
            noise,
        }
    }

    /// Everything that is measured has been. And programs as they are seen now.
    pub fn close(&self) -> (Noise, Option<Programs>) {
        self.opened.as_ref().map_or_else(Default::default, |opened| self.since(opened, &self.judged))
    }

    /// What went on since programs were seen like this, and how they are seen now.
    fn since(&self, opened: &Programs, judged: &Judged) -> (Noise, Option<Programs>) {
        let now = programs::look(&self.roots, Some(opened));
        let noise = now.as_ref().map_or_else(Noise::default, |now| now.since(opened, self.beside_guest));
        // Whom the kernel's threads kept waiting was kept waiting by its own writes: at most for as long as those ran.
        let kernels_s = noise.kernel_share.unwrap_or(0.0) * noise.seen_s * f64::from(noise.cpus);
        let speaks = judged.wall_s > 0.0 && judged.wall_s >= JUDGED_SHARE * noise.seen_s;
        let share = |worst_s: Option<f64>| Some((worst_s.filter(|_| speaks)? - kernels_s).max(0.0) / judged.wall_s);
        let (client_delay_share, server_delay_share) = (share(judged.client_s), share(judged.server_s));
        let stalled_share = speaks.then(|| judged.stalled_s / judged.wall_s);
        (Noise { client_delay_share, server_delay_share, stalled_share, ..noise }, now)
    }
}

impl Judged {
    fn add(&mut self, phase: &Judged) {
        let add = |sum: &mut Option<f64>, more_s: Option<f64>| {
            if let Some(more_s) = more_s {
                *sum = Some(sum.unwrap_or(0.0) + more_s);
            }
        };
        self.wall_s += phase.wall_s;
        self.stalled_s += phase.stalled_s;
        add(&mut self.client_s, phase.client_s);
        add(&mut self.server_s, phase.server_s);
    }
}

/// Whether so many busy threads each had a processor. Where there are more, some wait for the others whoever else is
/// here.
fn had_room(client: u32, server: u32, cpus: u32, pinned: Option<&Pinned>) -> bool {
    match pinned {
        None => client + server <= cpus,
        Some(own) => client <= own.clients.len() as u32 && server <= own.server.len() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that is not below a process that sleeps is somebody else's: so is this test, which works while queries are
    /// asked.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_goes_on_while_queries_are_asked_is_seen() {
        let mut asleep = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let mut window = Window {
            roots: vec![asleep.id()],
            child: std::process::id(),
            servers: Vec::new(),
            proxy: None,
            cpus: 2,
            pinned: None,
            beside_guest: false,
            has_points: false,
            opened: None,
            before: None,
            stalled_s: 0.0,
            judged: Judged::default(),
        };
        let phase = |window: &mut Window, part: Part, work: &dyn Fn()| {
            window.begins(part, None);
            work();
            window.ended(part, Waits::new()).noise
        };
        let rest = || std::thread::sleep(Duration::from_millis(50));
        assert_eq!(phase(&mut window, Part::Run, &rest), None, "it is part of the trial's");
        assert!(window.close().0.seen_s > 0.0);
        let burn = || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(300) {
                std::hint::spin_loop();
            }
        };
        let asked = phase(&mut window, Part::Ask, &burn).expect("queries have readings of their own");
        let _ = asleep.kill().and_then(|()| asleep.wait());
        assert!(asked.seen_s >= 0.3 && asked.foreign_share > Some(0.05), "{asked:?}");
    }

    #[test]
    fn threads_with_processors_of_their_own_have_no_others() {
        let own = Pinned { server: vec![0, 1, 2], clients: vec![3] };
        assert!(had_room(1, 3, 4, Some(&own)) && had_room(1, 3, 4, None));
        assert!(!had_room(2, 1, 4, Some(&own)) && had_room(2, 1, 4, None), "two clients on one processor");
        assert!(!had_room(0, 4, 4, Some(&own)) && had_room(0, 4, 4, None), "four of the server's on three");
        assert!(!had_room(2, 3, 4, None));
    }
}
