//! What a page that is given away must not tell: logins in URLs, home directories, and the hosts of servers by URL; and
//! what chance named, so that two runs have the same commands. It goes by the records alone, so that a file gives the
//! same page on every machine.

use serde_json::Value;

use super::manifest::told as told_command;
use kvfair_core::logins::{HIDDEN, hidden, hidden_word};
use kvfair_core::plain;
use kvfair_core::record::Record;

/// Where people's own directories are.
const HOMES: [&str; 2] = ["/home/", "/Users/"];
const HOME_OF_ROOT: &str = "/root";

/// The hosts that records name, in the order in which they come.
#[derive(Debug, Default)]
pub struct Mask {
    hosts: Vec<String>,
}

impl Mask {
    pub fn of(records: &[Record]) -> Mask {
        Mask::of_hosts(records.iter().flat_map(|record| {
            let texts = record.run.command.iter().chain([&record.target.label]);
            let of_agents = record.agents.iter().map(|agent| agent.host.clone()).filter(|host| host != "localhost");
            texts.flat_map(|text| hosts_in(text)).chain(of_agents)
        }))
    }

    /// Of what was typed.
    pub fn of_command(command: &[String]) -> Mask {
        Mask::of_hosts(command.iter().flat_map(|word| hosts_in(word)))
    }

    fn of_hosts(all: impl Iterator<Item = String>) -> Mask {
        let mut hosts: Vec<String> = Vec::new();
        for host in all {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        Mask { hosts }
    }

    /// The records with labels that a picture may cut short: half a host would not be found in the text.
    pub fn labelled(&self, records: &[Record]) -> Vec<Record> {
        let labelled = |record: &Record| {
            let mut record = record.clone();
            record.target.label = self.applied(&record.target.label);
            if let Some(run) = &mut record.run.levers {
                run.base = self.applied(&run.base);
            }
            record
        };
        records.iter().map(labelled).collect()
    }

    /// A record without them, whatever its fields are; and without the values of settings that are named like secrets
    /// or hosts.
    pub fn record(&self, record: Value) -> Value {
        self.masked("", record)
    }

    fn masked(&self, name: &str, value: Value) -> Value {
        match value {
            Value::String(text) if text.starts_with(PACKED) => Value::String(text),
            Value::String(text) if matches!(name, "reason" | "program") => self.applied(&hidden(&text, &[])).into(),
            Value::String(text) => self.applied(&text).into(),
            Value::Array(all) if name == "command" => {
                let words: Vec<String> = all.iter().map(|word| word.as_str().unwrap_or_default().to_string()).collect();
                told_command(&words).iter().map(|word| self.applied(word)).collect()
            }
            Value::Array(all) => all.into_iter().map(|one| self.masked(name, one)).collect(),
            Value::Object(all) => {
                let inner = |key: &String| if name == "program" { name.to_string() } else { key.clone() };
                let each = all.into_iter().map(|(key, value)| match value {
                    Value::String(_) if name == "settings" && is_private(&key) => (key, HIDDEN.into()),
                    value => {
                        let value = self.masked(&inner(&key), value);
                        (self.applied(&key), value)
                    }
                });
                Value::Object(each.collect())
            }
            other => other,
        }
    }

    /// The text without them; what steers a terminal or turns the order of letters round is escaped.
    pub fn applied(&self, text: &str) -> String {
        let mut named: Vec<(&String, String)> =
            (1..).zip(&self.hosts).map(|(n, host)| (host, format!("host{n}"))).collect();
        // A host may be a part of another one's name.
        named.sort_by_key(|(host, _)| std::cmp::Reverse(host.len()));
        let text = named.iter().fold(without_logins(text), |text, (host, name)| renamed(&text, host, name));
        let text = HOMES.iter().fold(text, |text, home| without_home(&text, home));
        plain::text(&without_chance(&without_root(&without_mount(&text)))).into_owned()
    }
}

/// How a packed histogram begins: its text names nothing, whatever it looks like.
const PACKED: &str = "HISTFAAA";

/// A setting that is named like a secret, or like a host.
fn is_private(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.contains("host") || hidden_word(&format!("{}=x", name.replace(['.', '-'], "_"))).ends_with(HIDDEN)
}

/// Filesystems whose device names a server, as the kernel calls them.
const MOUNTED: [&str; 7] = ["nfs", "nfs4", "cifs", "smb3", "ceph", "fuse.sshfs", "fuse.glusterfs"];

/// "nfs4 on host:/export" in place of "nfs4 on nas:/export", "cifs on //host/x" in place of "cifs on //nas/x".
fn without_mount(text: &str) -> String {
    const ON: &str = " on ";
    let mut parts = text.split(ON);
    let mut said = parts.next().unwrap_or_default().to_string();
    for rest in parts {
        let kind = said.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '.').next().unwrap_or_default();
        let is_mounted = MOUNTED.contains(&kind);
        said.push_str(ON);
        // What follows may be all the rest of a page.
        let is_host = |(host, _): &(&str, &str)| {
            !host.is_empty() && host.chars().all(|letter| letter.is_alphanumeric() || "-_.@[]".contains(letter))
        };
        let share = rest.strip_prefix("//").and_then(|share| share.split_once('/')).filter(is_host);
        let export = rest.split_once(":/").filter(is_host);
        match share.map(|(_, path)| ("//host/", path)).or(export.map(|(_, path)| ("host:/", path))) {
            Some((host, path)) if is_mounted => said.extend([host, path]),
            _ => said.push_str(rest),
        }
    }
    said
}

/// What may follow a URL in text or in HTML.
fn ends_url(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'' | '<' | '>' | '`' | ',' | ';' | ')')
}

/// The part of a URL between its scheme and its path, and all that follows.
fn authority(rest: &str) -> &str {
    let end = rest.find(|letter: char| ends_url(letter) || matches!(letter, '/' | '?' | '#')).unwrap_or(rest.len());
    &rest[..end]
}

/// The hosts of the URLs in a text; not this machine.
fn hosts_in(text: &str) -> Vec<String> {
    let authorities = text.match_indices("://").map(|(at, scheme)| authority(&text[at + scheme.len()..]));
    let hosts = authorities.map(|authority| {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        match host.find(']') {
            Some(end) if host.starts_with('[') => &host[..=end],
            _ => host.split(':').next().unwrap_or_default(),
        }
    });
    let is_here = |host: &str| host.is_empty() || host == "localhost" || host == "[::1]" || host.starts_with("127.");
    hosts.filter(|host| !is_here(host) && !host.contains(['{', '*', '$'])).map(str::to_string).collect()
}

/// A host by another name: wherever it stands if nothing else looks like it, else only where a host must be.
fn renamed(text: &str, host: &str, name: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let has_letters = host.chars().any(|letter| letter.is_ascii_alphabetic());
    let is_unlike_words = host.starts_with('[') || host.matches('.').count() >= if has_letters { 1 } else { 3 };
    let (mut said, mut done) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(host) {
        let (before, after) = (&text[..at], &text[at + host.len()..]);
        let mut next = after.chars();
        let (first, second) = (next.next(), next.next());
        let goes_on = first.is_some_and(is_part) || first == Some('.') && second.is_some_and(is_part);
        let is_whole = !goes_on && !before.ends_with(|letter| is_part(letter) || letter == '.');
        let has_port = first == Some(':') && second.is_some_and(|letter| letter.is_ascii_digit());
        if is_whole && (is_unlike_words || has_port || before.ends_with("://") || before.ends_with('@')) {
            said.push_str(&text[done..at]);
            said.push_str(name);
            done = at + host.len();
        }
    }
    said.push_str(&text[done..]);
    said
}

/// User and password of each URL.
fn without_logins(text: &str) -> String {
    let mut parts = text.split("://");
    let mut said = parts.next().unwrap_or_default().to_string();
    for rest in parts {
        said.push_str("://");
        // An @ that should have been escaped may stand in a password, and so may a slash.
        let end = rest.find(ends_url).unwrap_or(rest.len());
        match rest[..end].rfind('@') {
            Some(at) => said.push_str(&format!("{HIDDEN}{}", &rest[at..])),
            None => said.push_str(rest),
        }
    }
    said
}

/// "~/x" in place of "/home/ann/x".
fn without_home(text: &str, home: &str) -> String {
    let mut parts = text.split(home);
    let mut said = parts.next().unwrap_or_default().to_string();
    for rest in parts {
        let end = rest.find(|letter: char| ends_url(letter) || matches!(letter, '/' | ':' | '&')).unwrap_or(rest.len());
        said.push_str(if end == 0 { home } else { "~" });
        said.push_str(&rest[end..]);
    }
    said
}

fn without_root(text: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let mut parts = text.split(HOME_OF_ROOT);
    let mut said = parts.next().unwrap_or_default().to_string();
    for rest in parts {
        let is_home = !said.ends_with(is_part) && !rest.starts_with(is_part);
        said.push_str(if is_home { "~" } else { HOME_OF_ROOT });
        said.push_str(rest);
    }
    said
}

/// What the names of scratch directories begin with.
const SCRATCH: &str = "/kvfair-";

/// "/tmp/kvfair-scratch/data" in place of "/tmp/kvfair-u2AMZ7/4-1/data": the directory of a run, named by chance, and in
/// it that of a trial, named by its block and its place in there.
fn without_chance(text: &str) -> String {
    let mut parts = text.split(SCRATCH);
    let mut said = parts.next().unwrap_or_default().to_string();
    for rest in parts {
        said.push_str(SCRATCH);
        match behind_trial(rest) {
            Some(behind) => said.extend(["scratch", behind]),
            None => said.push_str(rest),
        }
    }
    said
}

/// What follows the directory of a trial.
fn behind_trial(rest: &str) -> Option<&str> {
    let (chance, rest) = rest.split_once('/')?;
    let (block, rest) = rest.split_once('-')?;
    let behind = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    let is_named = !chance.is_empty() && chance.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let ends = !behind.starts_with(|letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.'));
    (is_named && is_number(block) && behind.len() < rest.len() && ends).then_some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(hosts: &[&str], text: &str) -> String {
        Mask { hosts: hosts.iter().map(|host| host.to_string()).collect() }.applied(text)
    }

    #[test]
    fn hosts_are_those_of_urls_but_this_machine() {
        let text = "redis://me:S@db.example:6379/9 redis://cache [x]://[2001:db8::1]:7 mysql://127.0.0.1:1/ \
            redis+unix:///run/s redis://localhost";
        assert_eq!(hosts_in(text), ["db.example", "cache", "[2001:db8::1]"]);
    }

    #[test]
    fn hosts_have_numbers_wherever_they_are_told() {
        let hosts = ["db.example", "redis", "db.example.com"];
        let text = "<b>redis://db.example:6379</b> no route to db.example, redis://db.example.com";
        assert_eq!(masked(&hosts, text), "<b>redis://host1:6379</b> no route to host1, redis://host3");
        let text = " redis is a store, redis://redis/1 a server, redis:6379 too, predis:1 not";
        assert_eq!(masked(&hosts, text), " redis is a store, redis://host2/1 a server, host2:6379 too, predis:1 not");
        assert_eq!(masked(&["10.1"], "x 10.1 y://10.1"), "x 10.1 y://host1", "coordinates stay");
    }

    #[test]
    fn directories_that_chance_named_have_one_name() {
        let text = "--dir /tmp/kvfair-u2AMZ7/4-1/data --log=/tmp/kvfair-5529-tm1adm/10-12 /tmp/kvfair-u2AMZ7/4-1&quot;";
        let same = "--dir /tmp/kvfair-scratch/data --log=/tmp/kvfair-scratch /tmp/kvfair-scratch&quot;";
        assert_eq!(masked(&[], text), same);
        for other in
            ["x/kvfair-results/a-1", "x/kvfair-results/1-1.jsonl", "/kvfair-a b/1-1/x", "/kvfair-x", "/kvfair-/1-1"]
        {
            assert_eq!(masked(&[], other), other);
        }
    }

    #[test]
    fn servers_of_mounted_filesystems_are_told_nowhere() {
        assert_eq!(masked(&[], "nfs4 on nas-1:/export, ext4 on /dev/vda"), "nfs4 on host:/export, ext4 on /dev/vda");
        assert_eq!(masked(&[], "\"fuse.sshfs on ann@nas:/x\""), "\"fuse.sshfs on host:/x\"");
        assert_eq!(masked(&[], "cifs on //nas/share"), "cifs on //host/share");
        for other in ["did not run on redis://x", "the job on lmdb:/data", "nfs on ~/x, redis://x"] {
            assert_eq!(masked(&[], other), other);
        }
    }

    #[test]
    fn a_record_is_told_without_its_private_settings() {
        let mask = Mask { hosts: vec!["db.example".to_string()] };
        let record = serde_json::json!({
            "run": {"command": ["run", "--password", "S", "redis://db.example/1"]},
            "outcome": {"kind": "failed", "reason": "db.example said --auth=S"},
            "store": {"settings": {"requirepass": "S", "hostname": "S", "save": "3600 1"}, "version": "7.0"},
            "job": {"data": {"program": {"command": "./a --token S", "answer": "none"}}},
            "times_ns": "HISTFAAA/root/S",
            "n": 1.5
        });
        let told = serde_json::json!({
            "run": {"command": ["run", "--password", "***", "redis://host1/1"]},
            "outcome": {"kind": "failed", "reason": "host1 said --auth=***"},
            "store": {"settings": {"requirepass": "***", "hostname": "***", "save": "3600 1"}, "version": "7.0"},
            "job": {"data": {"program": {"command": "./a --token ***", "answer": "none"}}},
            "times_ns": "HISTFAAA/root/S",
            "n": 1.5
        });
        assert_eq!(mask.record(record), told);
    }

    #[test]
    fn logins_and_homes_are_told_nowhere() {
        let text = "redis://me:S/c@h:1 /home/ann/a \"/Users/bob\" /root/x /root /rooted a/root";
        assert_eq!(masked(&[], text), "redis://***@h:1 ~/a \"~\" ~/x ~ /rooted a/root");
        assert_eq!(masked(&[], "/home/ not \u{1b}[2J"), "/home/ not \\u001b[2J");
    }
}
