//! Servers of our own: started in private, asked until they answer, checked to be ours and to listen nowhere else,
//! stopped.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use xxhash_rust::xxh3::xxh3_64;

use super::password;
use super::pin::{self, PROCESSORS};
use super::process::{self, Leashed, in_words, is_program, on_path};
use super::remote_place::{self, Instead};
use super::signals::Interrupt;
use super::watch;
use crate::model::op::Fault;
use crate::model::trial::Transport;
use crate::stores::{self, Adapter, ClusterRecipe, Facts, Launch, Login, Place, Server, Step, Store};

mod cluster;
mod places;

/// How long one probe of a starting server may take.
const PROBE: Duration = Duration::from_secs(1);
/// How long a server may take to stop before it is killed.
const STOP: Duration = Duration::from_secs(15);
/// A free port may be taken between our looking and the server's binding; so often we look again.
const PORTS_TRIED: u32 = 3;

/// A server that we started and that answers.
pub struct Served {
    leash: Leashed,
    /// It has nothing to write when it stops.
    keeps_nothing: bool,
    pub place: Place,
    /// Who is let in: with a password of this start, where it takes one.
    pub login: Login,
    /// Its whole command line, for the record.
    pub command: Vec<String>,
    pub facts: Facts,
    log: PathBuf,
    /// The others, where several servers are one store.
    peers: Vec<Served>,
}

/// Why there is no server.
#[derive(Debug)]
pub enum Unserved {
    /// Its program is not on this machine.
    Missing(String),
    Failed(String),
    Interrupted,
}

impl Unserved {
    /// Servers may repeat what they were told.
    fn without(self, password: Option<&str>) -> Unserved {
        match self {
            Unserved::Failed(why) => Unserved::Failed(without(why, password)),
            other => other,
        }
    }
}

fn without(text: String, password: Option<&str>) -> String {
    password.map_or(text.clone(), |password| text.replace(password, "***"))
}

/// Where a server's files go.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    pub data: &'a Path,
    /// For its socket and log.
    pub scratch: &'a Path,
    /// Where data directories lie that a store's own program has prepared before and not synced, to be copied; nothing
    /// where each is to be prepared anew.
    pub prepared: Option<&'a Path>,
    /// A server over TCP that takes passwords is given one.
    pub is_guarded: bool,
}

/// Starts the server of `adapter`, or as many as are one store; its program is started by the command `under`, where
/// that is one.
pub fn start(
    under: &[String],
    adapter: &Adapter,
    transport: Transport,
    launch: &Launch,
    site: Site<'_>,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Served, Unserved> {
    let server = adapter.server.expect("only servers are started");
    let program = match launch.settings.get(PROGRAM).map(PathBuf::from) {
        Some(named) if is_program(&named) => named,
        Some(named) => return Err(Unserved::Missing(format!("{} is no program that can be run", named.display()))),
        None => program(server).ok_or_else(|| Unserved::Missing(not_here(server)))?,
    };
    let processors = launch.settings.get(PROCESSORS).map_or(Ok(Vec::new()), |asked| pin::of_a_target(asked));
    let under = [processors.map_err(Unserved::Failed)?, under.to_vec()].concat();
    let mut login = launch.login.clone();
    // A replica has the password of its primary.
    let is_new = launch.follows.is_none();
    if site.is_guarded && is_new && server.takes_password && transport == Transport::Tcp {
        let fresh =
            stores::password::fresh().map_err(|error| Unserved::Failed(format!("no random password: {error}")))?;
        login.password = Some(fresh);
    }
    let launch = Launch { login, patience: PROBE, ..launch.clone() };
    let nodes = adapter.nodes(&launch.settings);
    let cluster = server.cluster.filter(|_| nodes.is_some());
    let starter = Starter { under, adapter, server, cluster, program, transport, limit, interrupt };
    let served = match (cluster, nodes) {
        (Some(cluster), Some(nodes)) => starter.cluster(cluster, nodes, &launch, site),
        _ => starter.one(&launch, site),
    };
    served.map_err(|unserved| unserved.without(launch.login.password.as_deref()))
}

/// What all servers of a target are started by.
struct Starter<'a> {
    under: Vec<String>,
    adapter: &'a Adapter,
    server: &'a Server,
    /// They are to become one store.
    cluster: Option<&'a ClusterRecipe>,
    program: PathBuf,
    transport: Transport,
    limit: Duration,
    interrupt: &'a Interrupt,
}

impl Starter<'_> {
    /// Starts one server, at a place that is free.
    fn one(&self, launch: &Launch, site: Site<'_>) -> Result<Served, Unserved> {
        let bus_offset = self.cluster.map(|cluster| cluster.bus_offset);
        for attempt in 1.. {
            let place = places::private(self.server, self.transport, site.scratch, bus_offset);
            let launch = Launch { place: place.map_err(Unserved::Failed)?, ..launch.clone() };
            match self.once(&launch, site) {
                Err(Unserved::Failed(why)) if attempt < PORTS_TRIED && why.contains("in use") => continue,
                other => return other,
            }
        }
        unreachable!("the last attempt returns")
    }

    fn once(&self, launch: &Launch, site: Site<'_>) -> Result<Served, Unserved> {
        let Starter { under, adapter, server, program, limit, interrupt, .. } = self;
        let data = site.data;
        let instead = remote_place::who(server.instead_of_root).map_err(Unserved::Failed)?;
        let ground = Ground { program, site, environment: (server.environment)(launch, data), instead };
        ground.prepare((server.prepare)(launch, data), *limit, interrupt)?;
        let arguments = (server.arguments)(launch, data);
        let input = (server.input)(launch);
        let spawned = ground.spawn(under, program, &arguments, input, "server.log", Leashed::spawn);
        let (leash, log) = spawned.map_err(Unserved::Failed)?;
        let command = std::iter::once(program.display().to_string()).chain(arguments).collect();
        let (keeps_nothing, peers) = (server.keeps_nothing, Vec::new());
        let (place, login, facts) = (launch.place.clone(), launch.login.clone(), Facts::default());
        let mut served = Served { leash, keeps_nothing, place, login, command, facts, log, peers };
        let open = || (server.admit)(launch, data).and_then(|()| (adapter.open)(launch));
        served.ask_until_it_answers(&open, *limit, interrupt)?;
        served.check_identity(server, self.cluster).map_err(Unserved::Failed)?;
        Ok(served)
    }
}

/// The setting that names another build of a server than the one that PATH knows.
pub const PROGRAM: &str = "program";

/// Where a server's programs run, and as whom.
struct Ground<'a> {
    /// The server's own; others stand beside it.
    program: &'a Path,
    site: Site<'a>,
    environment: Vec<(String, String)>,
    instead: Option<Instead>,
}

impl Ground<'_> {
    /// Everything that must be there before the server is started. A program runs only on an empty data directory, and
    /// there is one at the most.
    fn prepare(&self, steps: Vec<Step>, limit: Duration, interrupt: &Interrupt) -> Result<(), Unserved> {
        let Site { data, scratch, .. } = self.site;
        if let Some(instead) = &self.instead {
            instead.hand_over(data, scratch).map_err(Unserved::Failed)?;
        }
        let empty = fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_none());
        for step in steps {
            match step {
                Step::Write { path, text } => {
                    let written = fs::create_dir_all(path.parent().unwrap_or(data))
                        .and_then(|()| password::write_private(&path, &text))
                        .and_then(|()| self.instead.as_ref().map_or(Ok(()), |instead| instead.own_file(&path)));
                    written.map_err(|error| Unserved::Failed(format!("cannot write {}: {error}", path.display())))?;
                }
                Step::Run { program, arguments, is_synced } if empty => match self.site.prepared {
                    Some(prepared) if !is_synced => self.copy_of(prepared, program, &arguments, limit, interrupt)?,
                    _ => self.run(program, &arguments, limit, interrupt)?,
                },
                Step::Run { .. } => {}
            }
        }
        Ok(())
    }

    /// An empty data directory becomes a store's own by a copy of what its program has made before, or by the program,
    /// of which a copy is then kept.
    fn copy_of(
        &self,
        prepared: &Path,
        program: &str,
        arguments: &[String],
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), Unserved> {
        let beside = self.program.display().to_string();
        let own = self.site.data.display().to_string();
        let command: Vec<String> = arguments.iter().map(|argument| argument.replace(&own, "")).collect();
        let name = format!("{:016x}", xxh3_64([&beside, program, &command.join("\0")].join("\0").as_bytes()));
        let kept = prepared.join(name);
        if kept.exists() {
            return copy(&kept, self.site.data).map_err(Unserved::Failed);
        }
        self.run(program, arguments, limit, interrupt)?;
        let unfinished = kept.with_extension("part");
        let copied = copy(self.site.data, &unfinished).and_then(|()| {
            fs::rename(&unfinished, &kept).map_err(|error| format!("cannot make {}: {error}", kept.display()))
        });
        copied.map_err(Unserved::Failed)
    }

    fn run(&self, name: &str, arguments: &[String], limit: Duration, interrupt: &Interrupt) -> Result<(), Unserved> {
        let beside = self.program.with_file_name(name);
        let program = if is_program(&beside) { Some(beside) } else { on_path(name) };
        let program = program.ok_or_else(|| Unserved::Missing(format!("there is no {name} on PATH")))?;
        let spawned = self.spawn(&[], &program, arguments, None, "prepare.log", Leashed::spawn_group);
        let (mut leash, log) = spawned.map_err(Unserved::Failed)?;
        let began = Instant::now();
        loop {
            match leash.wait_at_most(Duration::from_millis(50)) {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    let words = last_words(&log);
                    return Err(Unserved::Failed(format!("{name} failed: {}{words}", in_words(status))));
                }
                None if interrupt.is_set() => return Err(Unserved::Interrupted),
                None if began.elapsed() >= limit => {
                    return Err(Unserved::Failed(format!("{name} did not end within {} s", limit.as_secs_f64())));
                }
                None => {}
            }
        }
    }

    /// Starts a program on a leash, with what it says in a log of its own.
    fn spawn(
        &self,
        under: &[String],
        program: &Path,
        arguments: &[String],
        input: Option<String>,
        log: &str,
        leash: fn(&mut Command) -> io::Result<Leashed>,
    ) -> Result<(Leashed, PathBuf), String> {
        let log = self.site.scratch.join(log);
        let mut command = process::under(under, program);
        command.args(arguments).current_dir(self.site.data);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(instead) = &self.instead {
            instead.take_over(&mut command);
            // Ours may be closed to others.
            command.env("TMPDIR", self.site.scratch);
        }
        let started = File::create(&log).and_then(|out| {
            command.stderr(out.try_clone()?).stdout(out);
            leash(&mut command)
        });
        let mut leash = started.map_err(|error| {
            let denied = self.instead.as_ref().filter(|_| error.kind() == ErrorKind::PermissionDenied);
            let why = denied.map_or_else(String::new, |instead| instead.denied(self.site.data));
            format!("{} could not be started: {error}{why}", program.display())
        })?;
        if let (Some(input), Some(mut pipe)) = (input, leash.child().stdin.take()) {
            // Less than any pipe holds. Who does not read it is found when it is asked.
            let _ = pipe.write_all(input.as_bytes());
        }
        Ok((leash, log))
    }
}

impl Served {
    /// How it is reached: where it listens, and with its password.
    pub fn reached(&self, launch: &Launch) -> Launch {
        let peers = self.peers.iter().map(|peer| peer.place.clone()).collect();
        Launch { place: self.place.clone(), peers, login: self.login.clone(), ..launch.clone() }
    }

    /// Of a store of several servers that of the first.
    pub fn id(&self) -> u32 {
        self.leash.id()
    }

    /// The processes of all its servers.
    pub fn ids(&self) -> Vec<u32> {
        std::iter::once(self).chain(&self.peers).map(Served::id).collect()
    }

    fn ask_until_it_answers(
        &mut self,
        open: &dyn Fn() -> Result<Box<dyn Store>, Fault>,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), Unserved> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if interrupt.is_set() {
                return Err(Unserved::Interrupted);
            }
            if let Some(ending) = self.ending_within(Duration::ZERO) {
                return Err(Unserved::Failed(format!("{} ended before it answered: {ending}", self.command[0])));
            }
            match open().and_then(|store| store.facts()) {
                Ok(facts) => {
                    self.facts = facts;
                    return Ok(());
                }
                // It will not become another server by waiting.
                Err(Fault::Unsupported(what)) => return Err(Unserved::Failed(what)),
                Err(fault) if began.elapsed() >= limit => {
                    let within = limit.as_secs_f64();
                    let log = last_words(&self.log);
                    let what = format!("{} did not answer within {within} s: {fault}{log}", self.command[0]);
                    return Err(Unserved::Failed(what));
                }
                Err(_) => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// The server that answered must be the process that we started, and must listen where we said and nowhere else.
    fn check_identity(&self, server: &Server, cluster: Option<&ClusterRecipe>) -> Result<(), String> {
        let place = &self.place;
        if let Some(answered) = self.facts.process_id.filter(|&answered| answered != self.id()) {
            let ours = self.id();
            return Err(format!("the server that answers at {place} is process {answered}, not ours ({ours})"));
        }
        let listening = super::listeners::of(self.id())?;
        let bus = match place {
            Place::Tcp { port, .. } => cluster.and_then(|cluster| port.checked_add(cluster.bus_offset)),
            _ => None,
        };
        let checked = listening.check(place, bus, server.listens_elsewhere);
        checked.map_err(|what| format!("{}: {what}", self.command[0]))
    }

    /// How a server of it ended, with its last words, if it is no longer there. Another one than the first is named.
    pub fn ending_within(&mut self, limit: Duration) -> Option<String> {
        let of_peer = |peer: &mut Served| {
            let ending = peer.own_ending_within(Duration::ZERO)?;
            Some(format!("{}: {ending}", peer.place))
        };
        self.own_ending_within(limit).or_else(|| self.peers.iter_mut().find_map(of_peer))
    }

    fn own_ending_within(&mut self, limit: Duration) -> Option<String> {
        let status = self.leash.wait_at_most(limit)?;
        let ending = format!("{}{}", in_words(status), last_words(&self.log));
        Some(without(ending, self.login.password.as_deref()))
    }

    /// Kills its process group as `kill -9` does. A tracer below it has a group of its own, and lives on.
    pub fn kill(mut self) {
        self.leash.kill();
        self.peers.into_iter().for_each(Served::kill);
    }

    /// Kills it and all processes below it, waits until none is left, and tells when the first was killed. PostgreSQL
    /// does not start again while one of its old processes has its shared memory.
    pub fn kill_all(mut self) -> SystemTime {
        let family = watch::families(&self.ids());
        let killed_at = process::kill_each(&family);
        self.leash.kill();
        self.peers.iter_mut().for_each(|peer| peer.leash.kill());
        process::wait_until_gone(&family);
        killed_at
    }

    /// Stops it and makes sure that nobody answers there any more.
    pub fn stop(mut self) -> Result<(), String> {
        let peers: Vec<_> = std::mem::take(&mut self.peers).into_iter().map(Served::stop).collect();
        self.stop_alone().and(peers.into_iter().collect())
    }

    fn stop_alone(mut self) -> Result<(), String> {
        let stopped = if self.keeps_nothing {
            self.leash.kill();
            true
        } else {
            self.leash.stop(STOP)
        };
        if answers(&self.place) {
            return Err(format!("something still answers at {} after {} was stopped", self.place, self.command[0]));
        }
        let within = STOP.as_secs();
        if stopped { Ok(()) } else { Err(format!("{} did not stop within {within} s and was killed", self.command[0])) }
    }
}

/// All that a directory holds and is, into one that is empty or not there: owners and permissions too.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |what: String| format!("cannot copy {} to {}: {what}", from.display(), to.display());
    fs::create_dir_all(to).map_err(|error| failed(error.to_string()))?;
    let output = process::program("cp").arg("-a").arg(from.join(".")).arg(to).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("cp: {error}")))?;
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(failed(words.trim().to_string())) }
}

fn last_words(log: &Path) -> String {
    let log = fs::read(log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" | ");
    if last.is_empty() { String::new() } else { format!("; its last words: {last}") }
}

/// The first of the server's programs that PATH or one of its own directories knows.
pub fn program(server: &Server) -> Option<PathBuf> {
    if server.own {
        return std::env::current_exe().ok();
    }
    let elsewhere: Vec<PathBuf> =
        server.directories.iter().flat_map(|pattern| remote_place::directories(pattern)).collect();
    let found = |name: &&str| {
        on_path(name).or_else(|| elsewhere.iter().map(|directory| directory.join(name)).find(|file| is_program(file)))
    };
    server.programs.iter().filter_map(found).find(|file| !is_link_to(file, server.not))
}

fn is_link_to(file: &Path, programs: &[&str]) -> bool {
    let real = fs::canonicalize(file).ok();
    let name = real.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| programs.iter().any(|program| name == *program))
}

/// Why a server's program cannot be started.
pub fn not_here(server: &Server) -> String {
    if server.programs.is_empty() {
        return "it is reached by URL only".to_string();
    }
    let places: Vec<&str> = std::iter::once("on PATH").chain(server.directories.iter().copied()).collect();
    format!("there is no {} {}", server.programs.join(" or "), places.join(" nor in "))
}

/// Why a path is no program that can be run.
pub fn no_program(file: &Path) -> Option<String> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Some("no such file".to_string()),
        Err(error) => Some(error.kind().to_string()),
        Ok(meta) if meta.is_dir() => Some("it is a directory".to_string()),
        Ok(_) => (!is_program(file)).then(|| "it may not be executed".to_string()),
    }
}

/// The version that a server's program prints; an error says why it cannot be had.
pub fn version(server: &Server) -> Result<String, String> {
    let program = program(server).ok_or_else(|| not_here(server))?;
    let output = process::program(&program).arg(server.version_argument).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{} does not start: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    (server.version)(&said).ok_or_else(|| format!("{} {} says no version", program.display(), server.version_argument))
}

fn answers(place: &Place) -> bool {
    match place {
        Place::Unix(path) => UnixStream::connect(path).is_ok(),
        Place::Tcp { host, port } => format!("{host}:{port}")
            .parse::<SocketAddr>()
            .is_ok_and(|address| TcpStream::connect_timeout(&address, PROBE).is_ok()),
        Place::Memory | Place::Path(_) => false,
    }
}

/// Turns a fault of opening into words for a row.
pub fn unreachable(place: &Place, fault: &Fault) -> String {
    format!("nothing to measure at {place}: {fault}")
}
