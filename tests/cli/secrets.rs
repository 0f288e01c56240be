//! Passwords: given outside of command lines, to the one host that they are for, and told nowhere, however badly they
//! are written.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use kvfair::model::trial::Transport;

use crate::cli::strangers::{SECRET, ask, port_of};
use crate::common::desk::{Desk, LIMIT, Said, Started, command_line, wait_for};
use crate::common::needs::servers_here;
use crate::common::{self, Running};

/// Logins as people write them. `S` stands for the secret.
const WRITTEN: &[&str] = &[
    "redis://me:S@127.0.0.1:1/x",
    "redis://me:S@127.0.0.1:port",
    "redis://me:S",
    "redis://:S@",
    "redis://me:1/S@h",
    "redis://me:1?S@h",
    "redis://me:1?name=S@h",
    "redis://me:1#S@h",
    "redis://me:S%40h",
    "redis://me:%S@127.0.0.1:1",
    "redis://h?password=S",
    "redis:me:S@h",
    "redis:me:S",
    "redis:/me:S@h",
    "redis:///me:S@h",
    "redis//me:S@h",
    "redis+unix://me:S@/run/s",
    "redis+unix:///me:S@h",
    "unix://me:S@h/run/s",
    "reddis://me:S@h",
    "valkey+tcp://me:S@h",
    "http://me:S@h",
    "cached:redis:me:S@h",
    "lmdb://me:S@h",
    "lmdb:me:S@h",
    "memcached://me:S@127.0.0.1:1",
    "mysql://me:S@127.0.0.1:1/base",
    "postgres:me:S@127.0.0.1:1/base",
    "mongodb+srv://me:S@h",
    "me:S@h",
    "S@h",
    "pre:S@redis://h",
    "redis?me:S@h",
    "redis%3A%2F%2Fme%3AS%40h",
    "ram?name=redis://me:S%40h",
];

/// Ways to say something of them.
const TOLD: &[&[&str]] = &[
    &["run", "ngrams", "--messages", "5", "--blocks", "1", "--timeout", "2s", "ram", "X"],
    &["run", "ngrams", "--messages", "5", "--blocks", "1", "--timeout", "2s", "--json", "X"],
    &["run", "--blocks", "1", "--timeout", "2s", "--exec", "true", "X"],
    &["run", "X", "ram"],
    &["run", "ngrams", "--clients", "X", "ram"],
    &["run", "ngrams", "--input=X", "ram"],
    &["check", "X"],
    &["crash", "X"],
    &["query", "X", "page"],
    &["show", "X"],
    &["compare", "X", "X"],
    &["compare", "ngrams", "--base", "X", "--head", "X", "--messages", "5", "--blocks", "1", "--timeout", "2s"],
    &["find-max", "mixed", "X", "--slo", "X"],
    &["X"],
    &["--X"],
];

#[track_caller]
fn tells_no_secret(desk: &Desk, said: &Said, of: &[&str]) {
    assert!(!said.out.contains(SECRET) && !said.err.contains(SECRET), "{of:?}:\n{}{}", said.out, said.err);
    no_file_has_it(&desk.home(), of);
}

#[track_caller]
fn no_file_has_it(directory: &Path, of: &[&str]) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        assert!(!name.to_string_lossy().contains(SECRET), "{of:?}: {name:?}");
        if path.is_dir() {
            no_file_has_it(&path, of);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
            assert!(!text.contains(SECRET), "{of:?}: {name:?}: {text}");
        }
    }
}

#[test]
fn a_login_that_is_written_badly_is_told_nowhere() {
    let desk = Desk::new();
    for written in WRITTEN {
        let written = written.replace('S', SECRET);
        for told in TOLD {
            let code = right_code(told, &written);
            let told: Vec<String> = told.iter().map(|word| word.replace('X', &written)).collect();
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            let said = desk.run(&told);
            assert_eq!(said.code, code, "{told:?}: {}{}", said.out, said.err);
            tells_no_secret(&desk, &said, &told);
        }
    }
    assert!(!desk.records().is_empty(), "some of them were run");
}

/// What is no file fails, what is no target or no option is a usage error, and few of these logins name a target.
fn right_code(told: &[&str], written: &str) -> i32 {
    let is_file = told.contains(&"--input=X") || told == ["show", "X"] || told == ["compare", "X", "X"];
    let takes_a_target = matches!(told[0], "query" | "check")
        || told.starts_with(&["run", "ngrams", "--messages"])
        || told.contains(&"--exec");
    // Nobody listens there.
    let is_url = ["redis://me:%", "memcached://", "mysql://"].iter().any(|start| written.starts_with(start));
    match told[0] {
        _ if is_file => 1,
        _ if takes_a_target && is_url => 1,
        "query" if written.starts_with("ram?name=") => 1,
        "run" | "check" if takes_a_target && written.starts_with("ram?name=") && !told.contains(&"--exec") => 0,
        _ => 2,
    }
}

#[test]
fn a_command_is_run_as_it_was_typed_and_recorded_without_logins() {
    let desk = Desk::new();
    let command = format!(
        "printf '%s ' 'redis://me:{SECRET}@h' {SECRET} $KVFAIR_PASSWORD >\"$OUT\"; X_TOKEN={SECRET} true; \
         true --password {SECRET} --auth={SECRET} -a {SECRET}; echo redis://me:{SECRET}@h {SECRET} >&2; \
         echo me:{SECRET}@h; exit $CODE"
    );
    // What is no login by its looks is known by the URL that it belongs to.
    let server = guarded();
    let url = format!("redis://:{SECRET}@127.0.0.1:{}/9", port_of(&server));
    for code in ["0", "3"] {
        let out = desk.tmp().join("out");
        let mut kvfair = desk.kvfair(&["run", "--blocks", "1", "--exec", &command, &url]);
        kvfair.env("OUT", &out).env("CODE", code).env("KVFAIR_PASSWORD", format!("{SECRET}-of-kvfair"));
        let said = Started::new(kvfair).wait();
        tells_no_secret(&desk, said.exits(if code == "0" { 0 } else { 1 }), &[code]);
        assert_eq!(fs::read_to_string(&out).expect("the program's file"), format!("redis://me:{SECRET}@h {SECRET} "));
        fs::remove_file(out).expect("the program's file");
    }
    tells_no_secret(&desk, desk.run(&["show", "--wide"]).exits(0), &["show"]);
}

fn ask_as_owner(server: &Running, command: &str) -> String {
    let port = port_of(server).to_string();
    let words: Vec<&str> = ["-p", &port].into_iter().chain(command.split(' ')).collect();
    let output = Command::new("redis-cli").env("REDISCLI_AUTH", SECRET).args(words).output().expect("redis-cli");
    format!("+{}", String::from_utf8_lossy(&output.stdout).trim())
}

/// A Redis that wants a password.
fn guarded() -> Running {
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, &format!("CONFIG SET requirepass {SECRET}")), "+OK");
    server
}

#[test]
fn a_password_of_the_environment_reaches_the_server_and_nothing_else() {
    let server = guarded();
    let desk = Desk::new();
    let (url, wrong) = (
        format!("redis://127.0.0.1:{}/9", port_of(&server)),
        format!("redis://:other@127.0.0.1:{}/8?name=wrong", port_of(&server)),
    );
    let cache = common::start("memcached", Transport::Tcp);
    let memcached = format!("memcached://127.0.0.1:{}", port_of(&cache));
    let run = ["run", "fans", "--profiles", "50", "--blocks", "1", &url, &wrong, &memcached, "redis"];
    for variable in ["KVFAIR_PASSWORD", "REDISCLI_AUTH"] {
        let mut kvfair = desk.kvfair(&run);
        kvfair.env(variable, SECRET);
        let started = Started::new(kvfair);
        wait_for("a trial", || desk.trials().first().copied());
        for pid in desk.processes() {
            assert!(!command_line(pid).contains(SECRET), "{}", command_line(pid));
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let has_it = String::from_utf8_lossy(&environment).contains(SECRET);
            assert_eq!(has_it, pid == started.id(), "{}", command_line(pid));
        }
        let said = started.wait();
        tells_no_secret(&desk, &said, &[variable]);
        for target in [&url, &memcached, "redis"] {
            assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}: {}", desk.record(target));
        }
        assert!(desk.reason("wrong").contains("WRONGPASS"), "its own password was kept: {}", desk.reason("wrong"));
    }
    // A check is told by the server how much memory it has left.
    assert_eq!(ask_as_owner(&server, "CONFIG SET maxmemory 1000000"), "+OK");
    let mut check = desk.kvfair(&["check", &url]);
    check.env("KVFAIR_PASSWORD", SECRET);
    Started::new(check).wait().exits(1).shows("bytes of memory left (limit 1,000,000");
    desk.run(&["check", &url]).exits(1).complains("the server wants a password: KVFAIR_PASSWORD or REDISCLI_AUTH");
}

/// In all variables that kvfair knows.
const MARK: &str = "m4rk-of-the-environment";

/// Programs that end at once are replaced by scripts that note what they were given; the others are looked at.
#[test]
fn no_program_that_kvfair_starts_inherits_a_password() {
    let desk = Desk::new();
    let notes = desk.home().join("notes");
    File::create(&notes).and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o666))).expect("a file");
    let wrapped = ["redis-server", "memcached", "mariadbd", "sort", "cp", "strace"];
    for program in wrapped {
        let note = format!("echo \"{program} $(env | grep -c {MARK})\" >>'{}'", notes.display());
        desk.wrap(program, &format!("{note}\nexec \"$real\" \"$@\""));
    }
    let servers = servers_here(&["mariadb", "postgres"]);
    let run = ["run", "ngrams", "--messages", "20", "--blocks", "1", "redis", "memcached", "sort"];
    let commands: [&[&str]; 8] = [
        &[&run[..], &servers].concat(),
        &["run", "ngrams", "--messages", "200", "--blocks", "1", "--agents", "2", "--output", "2", "redis+unix"],
        &["run", "--exec", "env >exec; sleep 0.1", "--blocks", "1", "--output", "3", "redis"],
        &["check", "memcached"],
        &["crash", "--kills", "1", "redis", "--durability", "crash"],
        &[
            "run",
            "fans",
            "--profiles",
            "20",
            "--blocks",
            "1",
            "--output",
            "4",
            "--keep",
            "kept",
            "--durability",
            "crash",
            "redis",
        ],
        &["query", "redis:kept/redis", "Michael Jackson"],
        &["stores", "redis"],
    ];
    for command in commands {
        let mut kvfair = desk.kvfair(command);
        let variables: Vec<&str> = kvfair::stores::password_variables().chain(["KVFAIR_PASSWORD"]).collect();
        variables.iter().for_each(|variable| _ = kvfair.env(variable, MARK));
        let is_exec = command.contains(&"--exec");
        let mut started = Started::new(kvfair);
        while started.is_running() {
            for pid in desk.processes().into_iter().filter(|pid| *pid != started.id()) {
                // Until it is another program, a new process is kvfair itself.
                let is_copy = command_line(pid) == command_line(started.id());
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let environment = String::from_utf8_lossy(&environment);
                let has_it =
                    environment.contains(&format!("KVFAIR_PASSWORD={MARK}")) || environment.contains(MARK) && !is_exec;
                assert!(!has_it || is_copy, "{command:?}: {}", command_line(pid));
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let said = started.wait();
        // Nothing can be said of claims of durability on every machine.
        let is_right = said.code == 0 || said.code == 6 && command[0] == "crash";
        assert!(is_right, "{command:?}: {}{}", said.out, said.err);
    }
    let noted = fs::read_to_string(&notes).expect("notes");
    for program in wrapped {
        let of_program = noted.lines().filter_map(|line| line.strip_prefix(program)).collect::<Vec<_>>();
        assert!(!of_program.is_empty(), "{program} was not started: {noted}");
        assert!(of_program.iter().all(|count| count.trim() == "0"), "{program}: {noted}");
    }
    // What the user's own program reads is the user's, but for what is kvfair's own.
    let of_user = fs::read_to_string(desk.home().join("exec")).expect("its environment");
    assert!(of_user.contains(&format!("REDISCLI_AUTH={MARK}")) && !of_user.contains("KVFAIR_PASSWORD="), "{of_user}");
}

#[test]
fn a_password_is_told_to_one_host_only() {
    let desk = Desk::new();
    let list = |variable: &str, targets: &[&str]| {
        let mut kvfair = desk.kvfair(&[&["run", "fans", "--list"][..], targets].concat());
        kvfair.env(variable, SECRET);
        Started::new(kvfair).wait()
    };
    for variable in ["KVFAIR_PASSWORD", "REDISCLI_AUTH"] {
        let two = list(variable, &["redis://a.example", "valkey://b.example:1/2"]);
        two.exits(2).complains(&format!("{variable} would be sent to a.example and b.example"));
        tells_no_secret(&desk, &two, &[variable]);
        list(variable, &["redis://127.0.0.1:1", "redis://a.example"]).exits(2).complains("this machine");
        list(variable, &["redis://127.0.0.1:1", "redis://localhost:2", "unix:///run/s"]).exits(0);
        list(variable, &["redis://a.example", "redis://:own@b.example", "memcached://c.example"]).exits(0);
    }
    list("KVFAIR_PASSWORD", &["redis://a.example", "postgres://me@b.example"]).exits(2).complains("run each by itself");
}

/// Runs kvfair on a terminal and types the secret where it is asked for.
fn on_a_terminal(desk: &Desk, arguments: &str, prompt: &str) -> String {
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_kvfair"));
    let screen = desk.tmp().join("screen");
    let mut script: Command = desk.command("script", &["-qec", &command, "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(File::create(&screen).expect("a file"));
    let mut child = script.spawn().expect("script");
    let shown = || String::from_utf8_lossy(&fs::read(&screen).expect("what was shown")).into_owned();
    wait_for("the prompt", || shown().contains(prompt).then_some(()));
    // What is typed as soon as the question stands there is not shown.
    let kvfair = desk.processes_named("kvfair")[0];
    let terminal = fs::read_link(format!("/proc/{kvfair}/fd/0")).expect("a terminal");
    let output = Command::new("stty").arg("-F").arg(&terminal).arg("-a").output().expect("stty");
    assert!(String::from_utf8_lossy(&output.stdout).contains("-echo "), "it shows what is typed");
    let mut keys = child.stdin.take().expect("it is piped");
    keys.write_all(format!("{SECRET}\n").as_bytes()).expect("it waits");
    let began = std::time::Instant::now();
    while child.try_wait().expect("our own child").is_none() {
        assert!(began.elapsed() < LIMIT, "{}", shown());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let shown = shown();
    fs::remove_file(screen).expect("our own file");
    shown
}

#[test]
fn a_terminal_is_asked_for_what_a_url_leaves_out() {
    let server = guarded();
    assert_eq!(ask(&server, "PING"), "-NOAUTH Authentication required.");
    let desk = Desk::new();
    let port = port_of(&server);
    for url in [format!("redis://127.0.0.1:{port}/9"), format!("redis://default@127.0.0.1:{port}/9")] {
        let run = format!("run ngrams --messages 5 --blocks 1 {url}");
        let shown = on_a_terminal(&desk, &run, &format!("password for redis://127.0.0.1:{port}/9: "));
        assert!(!shown.contains(SECRET), "{shown}");
        assert_eq!(desk.records().pop().expect("a record")["verdict"]["kind"], "right", "{shown}");
        no_file_has_it(&desk.home(), &[&url]);
    }
    // Where there is no terminal, nothing waits for an answer.
    desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", &format!("redis://127.0.0.1:{port}/8")])
        .exits(1)
        .complains(&format!("redis://127.0.0.1:{port}/8: the server wants a password: KVFAIR_PASSWORD"));
}
