//! What a request costs the generator in CPU: kvfair beside the floor and redis-benchmark, in turn, the server on one
//! core and the client on the other.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

#[path = "../floor.rs"]
pub mod floor;

/// Pairs of runs of each case; the median of their ratios counts.
const PAIRS: usize = 15;
/// redis-benchmark and the floor of many keys run beside one pair in so many: what is owed is owed to the floor.
const PAIRS_A_PEER: usize = 5;
/// Long enough that starting does not count.
const REQUESTS_ONE: usize = 3_000_000;
const REQUESTS_BATCHED: usize = 16_000_000;
/// memcached sends the answer to each get by itself: these take a client as long as four times as many of the others.
const REQUESTS_ANSWERED_ONE_BY_ONE: usize = 4_000_000;
/// Keys that kvfair sets.
const KEYS: usize = 100_000;
/// The share of the floor's requests a CPU second that is owed, by depth.
const OWED: [(usize, f64); 2] = [(1, 0.92), (16, 0.80)];

/// One way of asking.
pub struct Case {
    pub server: &'static str,
    pub transport: &'static str,
    pub direction: &'static str,
    pub clients: usize,
    pub depth: usize,
}

impl Case {
    fn name(&self) -> String {
        let Case { server, transport, direction, clients, depth } = self;
        format!("{server} {transport} {direction} {clients} clients depth {depth}")
    }

    fn requests(&self) -> usize {
        match (self.depth, self.server, self.direction) {
            (1, ..) => REQUESTS_ONE,
            (_, "memcached", "get") => REQUESTS_ANSWERED_ONE_BY_ONE,
            _ => REQUESTS_BATCHED,
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for server in ["redis", "memcached"] {
        for transport in ["unix", "tcp"] {
            for direction in ["set", "get"] {
                for clients in [50, 300] {
                    cases.extend(OWED.map(|(depth, _)| Case { server, transport, direction, clients, depth }));
                }
            }
        }
    }
    cases
}

/// Measures the cases whose names hold every one of `words`, and prints a line each. Whether all of them hold.
pub fn measure(words: &[String]) -> bool {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let mut holds = true;
    for case in cases().iter().filter(|case| words.iter().all(|word| case.name().split(' ').any(|part| part == word))) {
        let server = Server::start(case, directory.path());
        let other = Server::start(case, directory.path());
        // A get of a key that is not there has another answer.
        floor::fill(case.server, &other.address, KEYS as u64);
        let (mut ratios, mut rates, mut peers, mut of_keys) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            server.say(&floor::exchange(case.server, "set").request);
            let floor = rate(case, || run_floor(case, &server, 1));
            // kvfair works in an empty store only, and leaves it so.
            server.empty(case);
            let kvfair = rate(case, || run_kvfair(case, &server, directory.path()));
            ratios.push(kvfair / floor);
            rates.push((floor, kvfair));
            if pair % PAIRS_A_PEER != 0 {
                continue;
            }
            of_keys.push(kvfair / rate(case, || run_floor(case, &other, KEYS)));
            if case.server == "redis" {
                peers.push(kvfair / rate(case, || run_peer(case, &server)));
                server.empty(case);
            }
        }
        let owed = OWED.iter().find(|(depth, _)| *depth == case.depth).map_or(0.0, |(_, owed)| *owed);
        let ratio = median(ratios);
        holds &= ratio >= owed;
        let verdict = if ratio >= owed { "holds " } else { "MISSED" };
        let (floor, kvfair) =
            (median(rates.iter().map(|rate| rate.0).collect()), median(rates.iter().map(|rate| rate.1).collect()));
        let peer =
            if peers.is_empty() { String::new() } else { format!(", {:.2} times redis-benchmark", median(peers)) };
        println!(
            "generator  {verdict} {}: {ratio:.2} of the floor (owed {owed}), {:.2} of one that asks for as many keys{peer}; {:.0} k requests a client CPU second, floor {:.0} k",
            case.name(),
            median(of_keys),
            kvfair / 1e3,
            floor / 1e3
        );
    }
    holds
}

pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Requests a second of the CPU that a client and all its children used.
fn rate(case: &Case, run: impl FnOnce()) -> f64 {
    let before = children_cpu_s();
    run();
    case.requests() as f64 / (children_cpu_s() - before)
}

pub fn children_cpu_s() -> f64 {
    cpu_s(UsageWho::RUSAGE_CHILDREN)
}

pub fn cpu_s(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("our own usage");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Runs a client on the second core. What it printed.
pub fn client(program: &Path, arguments: &[String]) -> Vec<u8> {
    let output = Command::new("taskset").args(["-c", "1"]).arg(program).args(arguments).output().expect("a client");
    assert!(output.status.success(), "{program:?} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn run_floor(case: &Case, server: &Server, keys: usize) {
    let numbers = [case.clients, case.depth, case.requests(), keys].map(|number| number.to_string());
    let words = ["floor", case.server, &server.address, case.direction].map(str::to_string);
    ourselves(&words.into_iter().chain(numbers).collect::<Vec<_>>());
}

/// The floor at a rate, over all connections of a case.
pub fn run_floor_at(rate: usize, case: &Case, server: &Server, requests: usize) {
    let numbers = [case.clients, requests].map(|number| number.to_string());
    let words = ["floor-at", &rate.to_string(), case.server, &server.address].map(str::to_string);
    ourselves(&words.into_iter().chain(numbers).collect::<Vec<_>>());
}

fn ourselves(arguments: &[String]) {
    client(&std::env::current_exe().expect("our own program"), arguments);
}

fn run_kvfair(case: &Case, server: &Server, directory: &Path) {
    let (program, arguments) = kvfair_at(case, server, directory);
    let size = [format!("--depth={}", case.depth), format!("--requests={}", case.requests())];
    client(&program, &[arguments, size.to_vec()].concat());
}

/// kvfair and what it is told of a case, but for how much it asks.
pub fn kvfair_at(case: &Case, server: &Server, directory: &Path) -> (PathBuf, Vec<String>) {
    let output = directory.join("results.jsonl");
    let _ = std::fs::remove_file(&output);
    let scheme = if case.transport == "unix" { format!("{}+unix", case.server) } else { case.server.to_string() };
    let arguments = vec![
        "run".to_string(),
        "getset".to_string(),
        format!("{scheme}://{}", server.address),
        format!("--clients={}", case.clients),
        format!("--only={}", case.direction),
        "--blocks=1".to_string(),
        format!("--output={}", output.display()),
    ];
    (PathBuf::from(env!("CARGO_BIN_EXE_kvfair")), arguments)
}

fn run_peer(case: &Case, server: &Server) {
    let place = match server.address.rsplit_once(':') {
        Some((host, port)) => vec!["-h".to_string(), host.to_string(), "-p".to_string(), port.to_string()],
        None => vec!["-s".to_string(), server.address.clone()],
    };
    let load = [
        ("-t", case.direction.to_string()),
        ("-c", case.clients.to_string()),
        ("-P", case.depth.to_string()),
        ("-n", case.requests().to_string()),
        ("-d", "32".to_string()),
        ("-r", "100000".to_string()),
    ];
    let load = load.into_iter().flat_map(|(name, value)| [name.to_string(), value]);
    client(Path::new("redis-benchmark"), &place.into_iter().chain(load).chain(["-q".to_string()]).collect::<Vec<_>>());
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

/// A server on the first core, gone when it is dropped.
pub struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub fn start(case: &Case, directory: &Path) -> Server {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port().to_string();
        drop(listener);
        let socket = directory.join(&port).display().to_string();
        let place = if case.transport == "unix" { socket } else { format!("127.0.0.1:{port}") };
        let unix = case.transport == "unix";
        let arguments: Vec<&str> = match (case.server, unix) {
            ("redis", true) => vec!["redis-server", "--save", "", "--port", "0", "--unixsocket", &place],
            ("redis", false) => vec!["redis-server", "--save", "", "--bind", "127.0.0.1", "--port", &port],
            (_, true) => vec!["memcached", "-u", "root", "-t", "1", "-m", "1024", "-s", &place],
            (_, false) => vec!["memcached", "-u", "root", "-t", "1", "-m", "1024", "-l", "127.0.0.1", "-p", &port],
        };
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).args(arguments).current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server { child: command.spawn().expect("a server"), address: place };
        let began = Instant::now();
        while !server.answers() {
            assert!(began.elapsed() < Duration::from_secs(10), "{} does not answer", case.server);
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub fn empty(&self, case: &Case) {
        // memcached's flush_all empties nothing at once: the only key is named.
        self.say(if case.server == "redis" { b"FLUSHALL\r\n" } else { b"delete key:000000012345\r\n" });
    }

    fn answers(&self) -> bool {
        self.connect().is_some()
    }

    fn connect(&self) -> Option<Box<dyn ReadWrite>> {
        Some(match self.address.starts_with('/') {
            true => Box::new(std::os::unix::net::UnixStream::connect(&self.address).ok()?),
            false => Box::new(std::net::TcpStream::connect(&self.address).ok()?),
        })
    }

    /// One command with a short answer.
    fn say(&self, command: &[u8]) {
        let mut stream = self.connect().expect("the server answers");
        stream.write_all(command).expect("the server takes a command");
        assert!(stream.read(&mut [0; 100]).expect("an answer") > 0);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
