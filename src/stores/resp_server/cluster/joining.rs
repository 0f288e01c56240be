//! Makes a cluster of servers that were started for it, each of which knows no other yet.

use std::sync::OnceLock;

use super::super::{RespProduct, RespServer, ask};
use crate::model::op::Fault;
use crate::protocol::resp::{Value, fair_share};
use crate::stores::blocking::BlockingConnection;
use crate::stores::{Launch, Place};

/// Gives each server its share of the slots and makes the first one known to the others. That they have heard of each
/// other is for `facts` to find.
pub fn join(name: &'static str, product: &'static RespProduct, launch: &Launch) -> Result<(), Fault> {
    let first = RespServer { name, product, launch: launch.clone(), no_touch: OnceLock::new(), is_node: true };
    let places: Vec<&Place> = std::iter::once(&launch.place).chain(&launch.peers).collect();
    for (number, &place) in places.iter().enumerate() {
        let mut session = first.at(place.clone()).connect()?;
        let connection = session.connection();
        // Two nodes of the same epoch would have to settle which of them is right. It can be set while a node knows no
        // other.
        let epoch = (number + 1).to_string();
        done(connection, &[b"CLUSTER", b"SET-CONFIG-EPOCH", epoch.as_bytes()])?;
        let (from, to) = fair_share(number, places.len());
        let (from, to) = (from.to_string(), to.to_string());
        done(connection, &[b"CLUSTER", b"ADDSLOTSRANGE", from.as_bytes(), to.as_bytes()])?;
    }
    let mut session = first.connect()?;
    for peer in &launch.peers {
        let Place::Tcp { host, port } = peer else { continue };
        done(session.connection(), &[b"CLUSTER", b"MEET", host.as_bytes(), port.to_string().as_bytes()])?;
    }
    Ok(())
}

/// A command whose only good answer is OK.
pub(super) fn done(connection: &mut BlockingConnection, parts: &[&[u8]]) -> Result<(), Fault> {
    match ask(connection, parts)? {
        Value::Text(word) if word == b"OK" => Ok(()),
        Value::Error(words) => Err(Fault::Refused(format!("{}: {}: {words}", connection.name(), first_words(parts)))),
        other => Err(super::strange(connection, &first_words(parts), &other)),
    }
}

/// The command without its arguments, one of which may be a password.
fn first_words(parts: &[&[u8]]) -> String {
    let words =
        parts.iter().take(2).take_while(|part| part.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-'));
    words.map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>().join(" ")
}
