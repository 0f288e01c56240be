//! What a request at a fixed rate costs the generator, and how late it is sent, beside what it costs this machine to
//! wake up.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;

use super::generator::{Case, Server, children_cpu_s, client, cpu_s, kvfair_at, median, run_floor_at};
use super::{Bench, Outcome};

const RATE: usize = 20_000;
/// Ten seconds' worth.
const REQUESTS: usize = 10 * RATE;
const RUNS: usize = 5;
/// Owed: nearly all requests are sent within so much of when they were due, and so many for a CPU second.
const LAG_US: f64 = 200.0;
const A_CPU_SECOND: f64 = 100_000.0;

pub fn measure(bench: &Bench) -> Outcome {
    let WakeUp { late_us, cpu_us } = wake_up();
    let case = Case { server: "redis", transport: "tcp", direction: "set", clients: 50, depth: 1 };
    let server = Server::start(&case, bench.directory.path());
    let (mut lags, mut rates, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let before = children_cpu_s();
        run_floor_at(RATE, &case, &server, REQUESTS);
        floors.push(REQUESTS as f64 / (children_cpu_s() - before));
        server.empty(&case);
        let before = children_cpu_s();
        let at_rate = [format!("--requests={REQUESTS}"), format!("--rate={RATE}"), "--json".to_string()];
        let (program, arguments) = kvfair_at(&case, &server, bench.directory.path());
        let said = client(&program, &[arguments, at_rate.to_vec()].concat());
        rates.push(REQUESTS as f64 / (children_cpu_s() - before));
        let points: serde_json::Value = serde_json::from_slice(&said).expect("points");
        lags.push(points[0]["rated"]["lag_ns_p99"].as_f64().expect("a lag") / 1e3);
    }
    let (lag_us, rate, floor) = (median(lags), median(rates), median(floors));
    let line = format!(
        "{RATE} requests a second over 50 TCP connections: sent {lag_us:.0} us late at p99 (owed {LAG_US}; this machine \
         wakes up {late_us:.0} us late at p99), {:.0} k a client CPU second (owed {:.0} k; a bare loop of the same \
         system calls does {:.0} k here, and to sleep and wake up alone takes {cpu_us:.0} us of CPU)",
        rate / 1e3,
        A_CPU_SECOND / 1e3,
        floor / 1e3
    );
    Outcome { line, holds: lag_us <= LAG_US && rate >= A_CPU_SECOND }
}

/// What it is to sleep for as long as lies between two requests.
struct WakeUp {
    /// p99.
    late_us: f64,
    /// Of the thread itself, for each.
    cpu_us: f64,
}

fn wake_up() -> WakeUp {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_timerslack(1);
    let pause = Duration::from_secs(1) / RATE as u32;
    let before = cpu_s(UsageWho::RUSAGE_SELF);
    let mut late_us: Vec<f64> = (0..RATE)
        .map(|_| {
            let began = Instant::now();
            sleep(pause);
            (began.elapsed() - pause).as_secs_f64() * 1e6
        })
        .collect();
    let cpu_us = (cpu_s(UsageWho::RUSAGE_SELF) - before) * 1e6 / RATE as f64;
    late_us.sort_by(f64::total_cmp);
    WakeUp { late_us: late_us[RATE * 99 / 100], cpu_us }
}
