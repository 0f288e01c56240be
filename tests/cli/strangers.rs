//! Servers that somebody else started, by URL: hostile ones are survived, friendly ones are left as they were found,
//! and no password is ever told.

use std::io::{BufRead, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use kvfair::model::trial::Transport;
use kvfair::stores::Place;

use crate::common::desk::{Desk, Said, Started, command_line, wait_for};
use crate::common::{self, Running};

/// What a hostile server does instead of answering.
#[derive(Clone, Copy, Debug)]
enum Malice {
    Garbage,
    /// Announces 4 GB and sends on and on.
    Huge,
    Silence,
    /// Half an answer, and closes.
    Half,
    /// A large answer, byte by byte, and never all of it.
    Drip,
    /// An answer that its protocol allows, and that is longer than any of the job.
    Large,
}

/// When it does so: at once, or in the middle of the job's work.
#[derive(Clone, Copy, Debug)]
enum When {
    AtOnce,
    AtSet,
}

const MALICES: &[(Malice, &str)] = &[
    (Malice::Garbage, "garbled answer"),
    (Malice::Huge, "4294967296"),
    (Malice::Silence, "has been silent for 2 s"),
    (Malice::Half, "the server closed the connection"),
    (Malice::Drip, "has not finished an answer within 2 s"),
    (Malice::Large, "bytes, longer than any of the job"),
];

/// Serves one connection after another until the test's process ends.
fn serve_tcp(malice: Malice, when: When) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| talk(stream, malice, when)));
    format!("redis://127.0.0.1:{port}?name={malice:?}-{when:?}")
}

fn serve_unix(desk: &Desk, malice: Malice, when: When) -> String {
    let path = desk.home().join(format!("{malice:?}-{when:?}"));
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| talk(stream, malice, when)));
    format!("redis+unix://{}?name=unix-{malice:?}-{when:?}", path.display())
}

/// A Redis that knows just enough to be begun with. Each connection has a thread, for one may be held open.
fn talk(mut stream: impl Read + Write + Send + 'static, malice: Malice, when: When) {
    std::thread::spawn(move || {
        let mut received = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut received) {
            let asked = String::from_utf8_lossy(&received[..count]).into_owned();
            let answer: &[u8] = match when {
                When::AtSet if asked.contains("INFO") => b"$93\r\nredis_version:7.0.15\r\nmaxmemory:0\r\nused_memory:1\r\nmaxmemory_policy:noeviction\r\nevicted_keys:0\r\n",
                When::AtSet if asked.contains("CONFIG") => b"*0\r\n",
                When::AtSet if asked.contains("DBSIZE") => b":0\r\n",
                When::AtSet if asked.contains("GET\r\n") => b"$-1\r\n",
                _ => {
                    let _ = misbehave(&mut stream, malice);
                    return;
                }
            };
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    });
}

fn misbehave(stream: &mut (impl Read + Write), malice: Malice) -> std::io::Result<()> {
    match malice {
        Malice::Garbage => stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?,
        Malice::Huge => {
            stream.write_all(b"$4294967296\r\n")?;
            loop {
                stream.write_all(&[b'x'; 64 << 10])?;
            }
        }
        Malice::Silence => {}
        Malice::Drip => {
            stream.write_all(b"$100000\r\n")?;
            loop {
                stream.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Malice::Large => {
            stream.write_all(b"$536870912\r\n")?;
            loop {
                stream.write_all(&[b'x'; 64 << 10])?;
            }
        }
        Malice::Half => return stream.write_all(b"$100\r\nabc"),
    }
    // Held open until the other side leaves.
    stream.read(&mut [0; 4096]).map(drop)
}

#[test]
fn servers_that_answer_badly_are_failed_rows_that_say_what_came() {
    let desk = Desk::new();
    // Most wait for 2 s, so that the servers of each malice are asked beside the others.
    std::fs::create_dir(desk.home().join("kvfair-results")).expect("a directory");
    let of_malice = MALICES.iter().map(|(malice, _)| {
        let output = format!("kvfair-results/{malice:?}.jsonl");
        let urls = [serve_tcp(*malice, When::AtOnce), serve_tcp(*malice, When::AtSet)];
        let unix = serve_unix(&desk, *malice, When::AtSet);
        let run = ["run", "fans", "--profiles", "20", "--blocks", "1", "--timeout", "2s", "--output", &output, "ram"];
        Started::new(desk.kvfair(&[&run[..], &[urls[0].as_str(), &urls[1], &unix]].concat()))
    });
    let started: Vec<Started> = of_malice.collect();
    started.into_iter().for_each(|started| _ = started.wait().exits(1));
    let right = desk.records().iter().filter(|record| record["verdict"]["kind"] == "right").count();
    assert_eq!(right, MALICES.len(), "ram is right beside each");
    for (malice, words) in MALICES {
        for name in [format!("{malice:?}-AtOnce"), format!("{malice:?}-AtSet"), format!("unix-{malice:?}-AtSet")] {
            let reason = desk.reason(&name);
            assert!(reason.starts_with("failed: ") && reason.contains(words), "{name}: {reason}");
            // It may hold something of ours by then, and does not let us take it back.
            if name.ends_with("AtSet") {
                let (first, then) = reason.split_once("; what this trial wrote to ").expect("both are told");
                assert!(first.contains("after ") && then.contains("could not all be removed"), "{name}: {reason}");
            }
            let peak = &desk.record(&name)["memory"]["client"]["anonymous_bytes"];
            assert!(peak.as_u64().expect("bytes") < 50 << 20, "{name}: {peak} bytes");
        }
    }
}

/// Serves connections that answer each command by `answer`, which has the words of the command. What `answer` does not
/// know is said again and again without an end.
fn serve_endless(head: &'static [u8], again: &'static [u8], answer: fn(&[String]) -> Option<&'static [u8]>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut lines = std::io::BufReader::new(stream.try_clone()?).lines();
                let mut stream = stream;
                while let Some(count) = lines.next().transpose()?.and_then(|line| line[1..].parse::<usize>().ok()) {
                    // The length of each word stands on a line before it.
                    let words = lines.by_ref().take(2 * count).collect::<std::io::Result<Vec<String>>>()?;
                    let words: Vec<String> = words.into_iter().skip(1).step_by(2).collect();
                    if let Some(answer) = answer(&words) {
                        stream.write_all(answer)?;
                        continue;
                    }
                    stream.write_all(head)?;
                    let many = again.repeat(1_000);
                    loop {
                        stream.write_all(&many)?;
                    }
                }
                Ok::<(), std::io::Error>(())
            });
        }
    });
    port
}

const INFO: &[u8] =
    b"$93\r\nredis_version:7.0.15\r\nmaxmemory:0\r\nused_memory:1\r\nmaxmemory_policy:noeviction\r\nevicted_keys:0\r\n";

/// Each piece of such an answer is short: what is kept of them is bounded.
#[test]
fn an_answer_of_endless_pieces_fills_no_memory() {
    let pairs = serve_endless(b"*2000000000\r\n", b"$5\r\nfield\r\n$1\r\n1\r\n", |words| match words[0].as_str() {
        "PING" => Some(b"+PONG\r\n"),
        "INFO" => Some(INFO),
        "CONFIG" => Some(b"*0\r\n"),
        "DBSIZE" => Some(b":0\r\n"),
        "HINCRBY" => Some(b":1\r\n"),
        _ => None,
    });
    let keys = serve_endless(b"*2\r\n$1\r\n0\r\n*2000000000\r\n", b"$1\r\nk\r\n", |words| match words[0].as_str() {
        "PING" => Some(b"+PONG\r\n"),
        "INFO" => Some(INFO),
        "CONFIG" | "COMMAND" => Some(b"*0\r\n"),
        "CLIENT" => Some(b"+OK\r\n"),
        "DBSIZE" => Some(b":9\r\n"),
        _ => None,
    });
    let desk = Desk::new();
    let of = |port: u16| format!("redis://127.0.0.1:{port}?name=endless");
    let run = ["run", "fans", "--via", "native", "--profiles", "20", "--blocks", "1", "--output", "pairs.jsonl"];
    desk.run(&[&run[..], &[&of(pairs)]].concat()).exits(1);
    let run = [
        "run",
        "getset",
        "--only",
        "get",
        "--read-only",
        "--requests",
        "100",
        "--blocks",
        "1",
        "--output",
        "keys.jsonl",
    ];
    desk.run(&[&run[..], &[&of(keys)]].concat()).exits(1);
    for (file, words) in [("pairs.jsonl", "bytes, longer than any of the job"), ("keys.jsonl", "524288 elements")] {
        let record = desk.record_in(file);
        let reason = record["outcome"]["reason"].as_str().expect("a reason");
        assert!(reason.contains("garbled answer") && reason.contains(words), "{file}: {reason}");
        let peak = record["memory"]["client"]["anonymous_bytes"].as_u64().expect("bytes");
        assert!(peak < 128 << 20, "{file}: {peak} bytes");
    }
}

/// Of the process that asks a server; one that holds a store itself has no such limit, nor has a user's program.
#[test]
#[cfg(target_os = "linux")]
fn a_process_that_asks_a_server_has_a_limit_of_memory() {
    let limit_of = |target: &str| {
        let desk = Desk::new();
        let started = Started::new(desk.kvfair(&["run", "fans", "--profiles", "2000", "--blocks", "1", target]));
        // A process that has used so much has taken its task, and with it the limit.
        let trial = desk.wait_until_busy(Desk::trials, 0.1);
        let limits = std::fs::read_to_string(format!("/proc/{trial}/limits")).expect("it runs");
        started.wait().exits(0);
        let line = limits.lines().find_map(|line| line.strip_prefix("Max data size")).expect("a limit of data");
        line.split_whitespace().next().and_then(|soft| soft.parse::<u64>().ok())
    };
    let bytes = limit_of("redis").expect("a number");
    assert!((512 << 20..1 << 50).contains(&bytes), "{bytes}");
    assert_eq!(limit_of("lmdb"), None);
}

/// A connection that is never taken: the queue of a socket is full, over TCP and in a file.
#[test]
#[cfg(target_os = "linux")]
fn a_connection_that_is_never_taken_ends_at_its_time_out() {
    let desk = Desk::new();
    let fill = "import os, socket\n\
        for family, address in [(socket.AF_INET, ('127.0.0.1', 0)), (socket.AF_UNIX, 'socket')]:\n\
        \x20   server = socket.socket(family); server.bind(address); server.listen(0)\n\
        \x20   kept = [server]\n\
        \x20   for _ in range(5):\n\
        \x20       client = socket.socket(family); client.setblocking(False)\n\
        \x20       client.connect_ex(server.getsockname()); kept.append(client)\n\
        \x20   globals()['all_' + str(family)] = kept\n\
        \x20   if family == socket.AF_INET: open('port', 'w').write(str(server.getsockname()[1]) + '\\n')\n\
        open('ready', 'w')\n\
        import time; time.sleep(1000)\n";
    desk.file("fill.py", fill);
    let filler = Started::new(desk.command("python3", &["fill.py"]));
    wait_for("full queues", || desk.home().join("ready").exists().then_some(()));
    let port = std::fs::read_to_string(desk.home().join("port")).expect("a port");
    let urls =
        [format!("redis://localhost:{}", port.trim()), format!("unix://{}", desk.home().join("socket").display())];
    for url in &urls {
        let began = std::time::Instant::now();
        desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", "--timeout", "2s", url]).exits(1);
        assert!(desk.reason(url).contains("connection timed out"), "{}", desk.reason(url));
        // The kernel gives up after more than two minutes over TCP, and in a file never.
        assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
    }
    crate::common::desk::signal(filler.id(), nix::sys::signal::Signal::SIGKILL);
    filler.wait();
}

#[test]
fn a_memcached_that_answers_badly() {
    let desk = Desk::new();
    let urls =
        [Malice::Garbage, Malice::Half].map(|malice| serve_tcp(malice, When::AtOnce).replace("redis", "memcached"));
    let run = ["run", "ngrams", "--messages", "5", "--blocks", "1", "--timeout", "2s"];
    desk.run(&[&run[..], &urls.each_ref().map(String::as_str)].concat()).exits(1);
    for (name, words) in [("Garbage-AtOnce", "garbled answer"), ("Half-AtOnce", "$100")] {
        assert!(
            desk.reason(name).starts_with("failed: ") && desk.reason(name).contains(words),
            "{}",
            desk.reason(name)
        );
    }
}

#[test]
fn nobody_there_is_a_failed_row() {
    let desk = Desk::new();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let url = format!("memcached://127.0.0.1:{port}");
    let said = desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", "ram", &url, "unix:///no/such/socket"]);
    said.exits(1);
    // It is said before anything is made, too.
    let at_once = said.err.find(&format!("kvfair: {url}: cannot connect to memcached")).expect("it is said");
    assert!(at_once < said.err.find("block 1").unwrap_or(said.err.len()), "{}", said.err);
    assert!(desk.reason(&url).contains("connection refused"), "{}", desk.reason(&url));
    let reason = desk.reason("unix:///no/such/socket");
    assert!(reason.contains("/no/such/socket") && reason.contains("no such file"), "{reason}");
    assert_eq!(desk.record("ram")["verdict"]["kind"], "right");
}

pub fn port_of(server: &Running) -> u16 {
    match server.launch.place {
        Place::Tcp { port, .. } => port,
        _ => panic!("not started on a port"),
    }
}

/// One command over the wire as a person types it, and the first line of the answer.
pub fn ask(server: &Running, command: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(server))).expect("the test's own server");
    stream.write_all(format!("{command}\r\n").as_bytes()).expect("the test's own server");
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n") && stream.read(&mut byte).expect("the test's own server") == 1 {
        answer.extend(byte);
    }
    String::from_utf8(answer).expect("text").trim_end().to_string()
}

pub const SECRET: &str = "pA55w0rd-of-nobody";

#[test]
fn a_password_works_and_is_told_nowhere() {
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, &format!("CONFIG SET requirepass {SECRET}")), "+OK");
    let port = port_of(&server);
    let desk = Desk::new();
    let (right, wrong) =
        (format!("redis://:{SECRET}@127.0.0.1:{port}/9"), format!("redis://:{SECRET}X@127.0.0.1:{port}/9?name=wrong"));
    let without = format!("redis://127.0.0.1:{port}/8");
    let run = ["run", "fans", "--profiles", "100", "--blocks", "1", &right, &wrong];
    let said = desk.run(&[&run[..], &[&without]].concat());
    said.exits(1).complains(&format!("{without}: the server wants a password: KVFAIR_PASSWORD or REDISCLI_AUTH"));
    assert_tells_no_secret(&desk, &said);
    let started = Started::new(desk.kvfair(&run));
    let parent = started.id();
    let trial = wait_for("a trial", || desk.trials().first().copied());
    for pid in desk.processes().into_iter().filter(|pid| *pid != parent) {
        assert!(!command_line(pid).contains(SECRET), "{}", command_line(pid));
    }
    assert_ne!(trial, parent);
    let said = started.wait();
    said.exits(1).shows("wrong failed: ").shows("refused the login: ");
    assert_eq!(desk.record(&format!("redis://127.0.0.1:{port}/9"))["verdict"]["kind"], "right");
    assert!(desk.reason("wrong").contains("WRONGPASS"), "{}", desk.reason("wrong"));
    assert_tells_no_secret(&desk, &said);

    // As redis-cli has it, for those who do not want it on a command line at all.
    let mut command = desk.kvfair(&["run", "ngrams", "--messages", "5", "--blocks", "1", &without, "--json"]);
    command.env("REDISCLI_AUTH", SECRET);
    let said = Started::new(command).wait();
    assert_tells_no_secret(&desk, said.exits(0));
}

#[track_caller]
fn assert_tells_no_secret(desk: &Desk, said: &Said) {
    assert!(!said.out.contains(SECRET) && !said.err.contains(SECRET), "{}{}", said.out, said.err);
    assert!(!desk.records().iter().any(|record| record.to_string().contains(SECRET)));
}

#[test]
fn only_the_database_that_was_named_is_used_and_it_is_left_empty() {
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, "SET mine 1"), "+OK");
    let desk = Desk::new();
    let (full, empty) =
        (format!("redis://127.0.0.1:{}", port_of(&server)), format!("redis://127.0.0.1:{}/9", port_of(&server)));
    let said = desk.run(&["run", "fans", "--profiles", "50", "--blocks", "2", &full, &empty]);
    said.exits(1).shows("holds 1 record that is not ours: name an empty database");
    assert_eq!(desk.record(&empty)["verdict"]["kind"], "right");
    assert_eq!(ask(&server, "GET mine"), "$1", "untouched");
    let keyspace = ask_info(&server);
    assert_eq!(keyspace, "db0:keys=1", "nothing else is left");
}

/// What INFO tells of databases that hold something.
pub fn ask_info(server: &Running) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(server))).expect("the test's own server");
    stream.write_all(b"INFO keyspace\r\nQUIT\r\n").expect("the test's own server");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the test's own server");
    let told = answer.lines().filter(|line| line.starts_with("db"));
    told.map(|line| line.split(',').next().unwrap_or_default()).collect::<Vec<_>>().join(" ")
}

/// A directory of somebody's is a guest room as well: it must be empty of records, and is so again.
#[test]
fn embedded_stores_by_url_are_left_empty() {
    let desk = Desk::new();
    let names = ["lmdb", "sqlite", "redb", "fjall"];
    names.iter().for_each(|name| std::fs::create_dir(desk.home().join(name)).expect("a directory"));
    let urls = names.map(|name| format!("{name}:{name}"));
    let run = ["run", "fans", "--profiles", "50", "--blocks", "2"];
    for _ in 0..2 {
        desk.run(&[&run[..], &urls.each_ref().map(String::as_str)].concat()).exits(0);
    }
}

/// What is cut off is a guest that leaves no more behind than one that was done.
#[test]
fn a_trial_that_is_cut_off_takes_back_what_it_wrote() {
    let server = common::start("redis", Transport::Tcp);
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}/3", port_of(&server));
    let slow = ["--profiles", "60", "--rtt", "1ms", "--blocks", "1", "--timeout", "1s"];
    let said = desk.run(&[&["run", "fans", &url], &slow[..]].concat());
    said.exits(1).shows("> 1 s, ");
    assert_eq!(ask_info(&server), "", "nothing is left");
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_trial_takes_back_what_it_wrote() {
    let server = common::start("redis", Transport::Tcp);
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}/3", port_of(&server));
    let slow = ["--profiles", "60", "--rtt", "1ms", "--blocks", "1", "--output", "out.jsonl"];
    let started = Started::new(desk.kvfair(&[&["run", "fans", &url], &slow[..]].concat()));
    wait_for("keys", || ask_info(&server).contains("db3:keys=").then_some(()));
    started.interrupt(nix::sys::signal::Signal::SIGINT);
    started.wait().exits(130);
    assert_eq!(ask_info(&server), "", "nothing is left");
    assert!(!desk.home().join("out.jsonl").exists(), "no trial was finished");
}
