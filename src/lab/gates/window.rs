//! The readings around one trial: from when the clock first runs for what is measured to the end of settling. Loading
//! is in it only where records are loaded anew between two points.

use std::time::Instant;

use super::programs::{self, Programs};
use super::queue::{self, Waited, Waits};
use crate::words::noise::Noise;
use crate::words::record::Record;
use crate::words::trial::Pinned;

/// Phases that can be judged by how long threads waited speak for a trial when they are so much of it: in the few
/// milliseconds of a settling one time slice is a large share.
const JUDGED_SHARE: f64 = 0.5;

pub struct Window {
    /// Ourselves: all that we start descends from us.
    root: u32,
    child: u32,
    server: Option<u32>,
    cpus: u32,
    pinned: Option<Pinned>,
    beside_guest: bool,
    opened: Option<Programs>,
    /// Of the phase that goes on.
    before: Option<(Instant, Option<Waits>, Option<Waits>)>,
    /// Of the phases with no more busy threads than processors.
    judged: Judged,
}

#[derive(Default)]
struct Judged {
    wall_s: f64,
    client_s: Option<f64>,
    server_s: Option<f64>,
}

impl Window {
    /// Around a child that works on this server of ours, or on somebody else's.
    pub fn around(child: u32, server: Option<u32>, record: &Record, beside_guest: bool) -> Window {
        let (root, cpus, pinned) = (std::process::id(), record.machine.cpus, record.run.pinned.clone());
        let (opened, before, judged) = (None, None, Judged::default());
        Window { root, child, server, cpus, pinned, beside_guest, opened, before, judged }
    }

    /// A phase is about to begin. `known` is how programs were seen last: who has not run since is not read again.
    pub fn begins(&mut self, phase: &str, known: Option<&Programs>) {
        if self.opened.is_none() && phase != "load" {
            self.opened = programs::look(self.root, known);
        }
        let server = self.server.and_then(queue::waits);
        self.before = Some((Instant::now(), queue::waits(self.child), server));
    }

    /// It has ended, and of the trial's own threads these with it. Seconds that the threads of the trial and of the
    /// server waited for a processor.
    pub fn ended(&mut self, phase: &str, left: Waits) -> (Option<f64>, Option<f64>) {
        let Some((began, client, server)) = self.before.take() else { return (None, None) };
        let wall_s = began.elapsed().as_secs_f64();
        let waited = |before: Option<Waits>, after: Option<Waits>| -> Option<Waited> {
            Some(queue::between(&before?, &after?, wall_s))
        };
        let client = waited(client, queue::waits(self.child).map(|alive| alive.into_iter().chain(left).collect()));
        let server = waited(server, self.server.and_then(queue::waits));
        let busy = |waited: Option<Waited>| waited.map_or(0, |waited| waited.busy);
        if phase != "load" && had_room(busy(client), busy(server), self.cpus, self.pinned.as_ref()) {
            self.judged.wall_s += wall_s;
            add(&mut self.judged.client_s, client);
            add(&mut self.judged.server_s, server);
        }
        (client.map(|client| client.delay_s), server.map(|server| server.delay_s))
    }

    /// Everything that is measured has been. And programs as they are seen now.
    pub fn close(&self) -> (Noise, Option<Programs>) {
        let now = self.opened.as_ref().and_then(|opened| programs::look(self.root, Some(opened)));
        let seen = now.as_ref().zip(self.opened.as_ref());
        let noise = seen.map_or_else(Noise::default, |(now, opened)| now.since(opened, self.beside_guest));
        // Whom the kernel's threads kept waiting was kept waiting by its own writes: at most for as long as those ran.
        let kernels_s = noise.kernel_share.unwrap_or(0.0) * noise.seen_s * f64::from(noise.cpus);
        let judged = &self.judged;
        let speaks = judged.wall_s >= JUDGED_SHARE * noise.seen_s;
        let share = |worst_s: Option<f64>| Some((worst_s.filter(|_| speaks)? - kernels_s).max(0.0) / judged.wall_s);
        let (client_delay_share, server_delay_share) = (share(judged.client_s), share(judged.server_s));
        (Noise { client_delay_share, server_delay_share, ..noise }, now)
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

fn add(sum: &mut Option<f64>, waited: Option<Waited>) {
    if let Some(waited) = waited {
        *sum = Some(sum.unwrap_or(0.0) + waited.worst_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_processors_of_their_own_have_no_others() {
        let own = Pinned { server: vec![0, 1, 2], clients: vec![3] };
        assert!(had_room(1, 3, 4, Some(&own)) && had_room(1, 3, 4, None));
        assert!(!had_room(2, 1, 4, Some(&own)) && had_room(2, 1, 4, None), "two clients on one processor");
        assert!(!had_room(0, 4, 4, Some(&own)) && had_room(0, 4, 4, None), "four of the server's on three");
        assert!(!had_room(2, 3, 4, None));
    }
}
