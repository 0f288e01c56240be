//! Passwords that stand in no command line, which every user of the machine can read: out of the environment, or asked
//! for on a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use url::Host;

use super::{Usage, terminal};
use crate::harness::plan::Chosen;
use crate::harness::process::PASSWORD_VARIABLE;
use crate::model::op::Fault;
use crate::model::trial::Configuration;
use crate::stores::{Adapter, Launch, Place, password};

/// How long a server may take to say whether it wants a password.
const PATIENCE: Duration = Duration::from_secs(2);

/// Gives servers by URL that name no password the one of the environment. On a terminal it is asked for where there is
/// none and the URL names a user, or the server wants one.
pub fn complete(chosen: &mut [Chosen]) -> Result<()> {
    let mut of_variable: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for one in chosen.iter_mut() {
        let (Some(variable), Some(host)) = (variable(one.adapter), host(one)) else { continue };
        let found = [PASSWORD_VARIABLE, variable].into_iter().find_map(|name| Some((name, set(name)?)));
        if let Some((name, password)) = found.filter(|_| one.login.password.is_none()) {
            of_variable.entry(name).or_default().insert(host);
            one.login.password = Some(password);
        }
    }
    if let Some((name, hosts)) = of_variable.into_iter().find(|(_, hosts)| hosts.len() > 1) {
        let hosts = hosts.into_iter().collect::<Vec<_>>().join(" and ");
        let what = format!("{name} would be sent to {hosts}: a password is for one host");
        return Err(anyhow!(Usage(format!("{what}\nhint: run each by itself, or put passwords into the URLs"))));
    }
    if io::stdin().is_terminal() && terminal::is_watched() { ask_for(chosen) } else { Ok(()) }
}

/// Asks once for each user of each server.
fn ask_for(chosen: &mut [Chosen]) -> Result<()> {
    let may_ask = |one: &Chosen| host(one).is_some() && variable(one.adapter).is_some() && one.login.password.is_none();
    let _silence = chosen.iter().any(may_ask).then(terminal::Silence::begin);
    let mut told: BTreeMap<(String, Option<String>), String> = BTreeMap::new();
    for one in chosen.iter_mut() {
        let Some(place) = &one.place else { continue };
        let is_open = host(one).is_some() && variable(one.adapter).is_some() && one.login.password.is_none();
        if !is_open || (one.login.user.is_none() && !wants_password(one, place)) {
            continue;
        }
        let key = (place.to_string(), one.login.user.clone());
        let password = match told.get(&key) {
            Some(password) => password.clone(),
            None => terminal::ask_for_password(&format!("password for {}: ", one.target.label))
                .context("cannot ask for a password")?,
        };
        one.login.password = Some(password.clone()).filter(|password| !password.is_empty());
        told.insert(key, password);
    }
    Ok(())
}

/// Refuses servers that want a password and were given none, before anything is made for a run.
pub fn has_passwords(chosen: &[Chosen]) -> Result<()> {
    let lacks = |one: &&Chosen| {
        let may_lack = one.login.password.is_none() && host(one).is_some() && variable(one.adapter).is_some();
        may_lack && one.place.as_ref().is_some_and(|place| wants_password(one, place))
    };
    let Some(one) = chosen.iter().find(lacks) else { return Ok(()) };
    let variables = [Some(PASSWORD_VARIABLE), variable(one.adapter).filter(|name| *name != PASSWORD_VARIABLE)];
    let variables = variables.into_iter().flatten().collect::<Vec<_>>().join(" or ");
    Err(anyhow!("{}: the server wants a password: {variables}", one.target.label))
}

/// Whether the server answers by asking for a login. What else is wrong with it is found when it is used.
fn wants_password(one: &Chosen, place: &Place) -> bool {
    let (configuration, login, answer_bytes) = (Configuration::Shipped, one.login.clone(), Some(0));
    let launch = Launch { configuration, login, answer_bytes, ..Launch::at(place.clone(), PATIENCE) };
    let answer = (one.adapter.open)(&launch).and_then(|store| store.facts());
    matches!(answer, Err(Fault::Refused(words)) if password::is_wanted(&words))
}

fn variable(adapter: &Adapter) -> Option<&'static str> {
    adapter.server?.password_variable
}

fn set(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|password| !password.is_empty())
}

/// The machine that a server that kvfair did not start runs on.
fn host(one: &Chosen) -> Option<String> {
    let is_loopback = |host: &str| match Host::parse(host).or_else(|_| Host::parse(&format!("[{host}]"))) {
        Ok(Host::Domain(name)) => name == "localhost",
        Ok(Host::Ipv4(ip)) => ip.is_loopback(),
        Ok(Host::Ipv6(ip)) => ip.is_loopback(),
        Err(_) => false,
    };
    match one.place.as_ref()? {
        Place::Tcp { host, .. } if !is_loopback(&host.to_lowercase()) => Some(host.to_lowercase()),
        Place::Tcp { .. } | Place::Unix(_) => Some("this machine".to_string()),
        Place::Memory | Place::Path(_) => None,
    }
}
