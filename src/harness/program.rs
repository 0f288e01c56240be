//! A program of the user's as a trial: where its target is, put into its command line and its environment. Who runs it
//! is `worker::supervisor`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::model::logins;
use crate::model::shell::quoted;
use crate::model::trial::{Answer, Transport};
use crate::stores::{Adapter, Login, Place};

/// What is run, with everything filled in. Goes over a pipe, since the environment may hold a password.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// For `sh -c`.
    pub line: String,
    /// Variables of its environment; nothing where one of that name must not be there.
    pub environment: Vec<(String, Option<String>)>,
    pub answer: Answer,
    /// What no message may repeat.
    pub secrets: Vec<String>,
    /// It counts as a batch engine does, and what it counted is compared with the expected state.
    pub batch: Option<BatchProgram>,
    /// There is a server to be asked for its version, counters and records; else the store is the program's affair.
    pub served: bool,
}

/// What is known of a batch engine's program before it is run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BatchProgram {
    pub version: String,
    /// The file in which it leaves its counts.
    pub counts: PathBuf,
    /// What its input has.
    pub units: u64,
    pub ops: u64,
}

/// What may stand in braces, in the order in which help names them.
pub const PLACEHOLDERS: [&str; 5] = ["host", "port", "socket", "url", "dir"];

/// A target as a program is told of it.
pub struct ProgramTarget<'a> {
    pub label: &'a str,
    pub adapter: &'a Adapter,
    pub place: &'a Place,
    pub login: &'a Login,
    /// An empty directory.
    pub directory: &'a Path,
}

/// The placeholders that have a value for targets reached in that way.
pub fn has(transport: Transport) -> &'static [&'static str] {
    match transport {
        Transport::InProcess => &["dir"],
        Transport::Unix => &["socket", "url", "dir"],
        Transport::Tcp => &["host", "port", "url", "dir"],
    }
}

/// The first placeholder in `text` that such a target has no value for.
pub fn lacks(text: &str, transport: Transport) -> Option<&'static str> {
    let mut found = None;
    replace(text, |name| {
        found = found.or(Some(name).filter(|name| !has(transport).contains(name)));
        None
    });
    found
}

impl Program {
    pub fn new(command: &str, answer: &Answer, target: &ProgramTarget<'_>) -> Program {
        let values = target.values();
        let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let variables = PLACEHOLDERS.iter().filter(|name| **name != "url").map(|name| (*name, value(name)));
        let url = target.url(target.login.password.as_deref());
        let all = variables.chain([("url", url), ("target", Some(target.label.to_string()))]);
        let answer = match answer {
            Answer::File(path) => {
                let path = replace(&path.to_string_lossy(), value);
                Answer::File(PathBuf::from(path))
            }
            other => other.clone(),
        };
        Program {
            line: replace(command, |name| value(name).map(|value| quoted(&value))),
            environment: all.map(|(name, value)| (format!("KVFAIR_{}", name.to_uppercase()), value)).collect(),
            answer,
            secrets: target.login.password.as_deref().map_or_else(Vec::new, logins::forms),
            batch: None,
            served: target.adapter.server.is_some(),
        }
    }
}

impl ProgramTarget<'_> {
    fn values(&self) -> Vec<(&'static str, String)> {
        let mut values = vec![("dir", self.directory.display().to_string())];
        match self.place {
            Place::Tcp { host, port } => values.extend([("host", host.clone()), ("port", port.to_string())]),
            Place::Unix(path) => values.push(("socket", path.display().to_string())),
            Place::Memory | Place::Path(_) => {}
        }
        values.extend(self.url(None).map(|url| ("url", url)));
        values
    }

    /// As client libraries take it: `redis://host:port/2`, `unix:///path?db=2`.
    fn url(&self, password: Option<&str>) -> Option<String> {
        let Login { user, database, .. } = self.login;
        let mut url = match self.place {
            Place::Tcp { .. } => Url::parse(&format!("{}://{}", self.adapter.scheme(), self.place)).ok()?,
            Place::Unix(_) => Url::parse(&format!("{}:///", self.adapter.scheme_of_sockets())).ok()?,
            Place::Memory | Place::Path(_) => return None,
        };
        if let Place::Unix(path) = self.place {
            url.set_path(path.to_str()?);
            // It has no other place for them.
            let query = [("user", user.as_deref()), ("password", password), ("db", database.as_deref())];
            for (name, value) in query.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                url.query_pairs_mut().append_pair(name, value);
            }
            return Some(url.into());
        }
        url.set_username(user.as_deref().unwrap_or_default()).ok()?;
        url.set_password(password).ok()?;
        url.set_path(database.as_deref().unwrap_or_default());
        Some(url.into())
    }
}

/// Puts values in the place of `{name}`. Braces around anything else are the command's own (awk, JSON), and so are
/// those behind a dollar sign, which the shell knows.
fn replace(text: &str, mut value: impl FnMut(&'static str) -> Option<String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, braced) = rest.split_at(start);
        filled.push_str(before);
        let named =
            PLACEHOLDERS.iter().find(|name| braced[1..].strip_prefix(**name).is_some_and(|end| end.starts_with('}')));
        let named = named.filter(|_| !before.ends_with('$'));
        match named.and_then(|name| Some((name, value(name)?))) {
            Some((name, value)) => {
                filled.push_str(&value);
                rest = &braced[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &braced[1..];
            }
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores;

    fn program(command: &str, store: &str, place: Place, login: Login) -> Program {
        let adapter = stores::find(store).expect("it is there");
        let directory = Path::new("/tmp/a directory/it's");
        let target = ProgramTarget { label: "mine", adapter, place: &place, login: &login, directory };
        Program::new(command, &Answer::File("{dir}/answer".into()), &target)
    }

    fn tcp(host: &str) -> Place {
        Place::Tcp { host: host.to_string(), port: 5 }
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_left() {
        let filled = program("x -h {host} -p {port} {url} {dir}", "redis", tcp("::1"), Login::default());
        assert_eq!(filled.line, r"x -h ::1 -p 5 'redis://[::1]:5' '/tmp/a directory/it'\''s'");
        assert_eq!(filled.answer, Answer::File("/tmp/a directory/it's/answer".into()));
        let theirs = r#"awk '{print $1}' ${dir} {"port":1} {nothing} {port {} {{host}} {"#;
        let left = program(theirs, "valkey", tcp("h"), Login::default()).line;
        assert_eq!(left, theirs.replace("{{host}}", "{h}"));
        let socket = program("{socket} {url}", "valkey", Place::Unix("/run/a b".into()), Login::default()).line;
        assert_eq!(socket, "'/run/a b' unix:///run/a%20b");
        assert_eq!(program("{url}", "memcached", tcp("h"), Login::default()).line, "memcached://h:5");
    }

    #[test]
    fn what_a_target_has_no_value_for_is_found() {
        assert_eq!(lacks("{host} {port} {url} {dir} {x}", Transport::Tcp), None);
        assert_eq!(lacks("{dir} {socket}", Transport::Tcp), Some("socket"));
        assert_eq!(lacks("{url} {port} {host}", Transport::Unix), Some("port"));
        assert_eq!(lacks("{dir} {url}", Transport::InProcess), Some("url"));
        assert_eq!(lacks("${port}", Transport::InProcess), None, "the shell's own");
    }

    #[test]
    fn a_password_is_in_the_environment_alone() {
        let login = Login { user: Some("me".into()), password: Some("s@cr et/".into()), database: Some("2".into()) };
        for place in [tcp("h"), Place::Unix("/s".into())] {
            let filled = program("{url}", "redis", place, login.clone());
            assert!(!filled.line.contains("cr"), "{}", filled.line);
            let (_, url) = filled.environment.iter().find(|(name, _)| name == "KVFAIR_URL").unwrap();
            let url = url.as_deref().unwrap();
            assert!(filled.secrets.iter().any(|secret| url.contains(secret)), "{url}: {:?}", filled.secrets);
            assert!(filled.secrets.contains(&"s@cr et/".to_string()));
        }
        let (_, socket) = &program("", "redis", tcp("h"), Login::default()).environment[2];
        assert_eq!(socket, &None, "none of an outer kvfair's");
    }
}
