//! Moves a slot with its keys from one node to another while clients use them. Only in a cluster that kvfair started.
//!
//! The order of the steps: <https://redis.io/docs/latest/commands/cluster-setslot/>

use super::super::{RespServer, ask, strange};
use super::joining::done;
use super::{Cluster, Topology};
use crate::model::op::Fault;
use crate::protocol::resp::{Value, keys_in_slot, node_id, slot};
use crate::stores::Place;
use crate::stores::blocking::BlockingConnection;

/// Keys that are on their way at once: several rounds make it likely that clients meet a slot that is half moved.
const KEYS_AT_ONCE: &[u8] = b"10";
/// More rounds than any slot that was filled here needs.
const ROUNDS_MAX: u32 = 100_000;
/// How long a node may take to hand keys to another one, in milliseconds.
const TIMEOUT_MS: &[u8] = b"5000";

/// Moves the slot of this key from the node that has it to the next one. Returns the number of its keys.
pub fn to_next_node(cluster: &Cluster, key: &[u8]) -> Result<u64, Fault> {
    let slot = slot(key);
    // Not as it was when the cluster was opened: it may have been moved before.
    let topology = Topology::ask(&cluster.seed)?;
    let from = topology.node_of_slot[usize::from(slot)].map(usize::from);
    let from_place = from.map(|from| &topology.nodes[from]);
    let from = cluster.nodes.iter().position(|node| Some(&node.launch.place) == from_place);
    let from = from.ok_or_else(|| Fault::Refused(format!("slot {slot} has no node that could hand it over")))?;
    let (source, target) = (&cluster.nodes[from], &cluster.nodes[(from + 1) % cluster.nodes.len()]);
    let (mut source_session, mut target_session) = (source.connect()?, target.connect()?);
    let (source_line, target_line) = (source_session.connection(), target_session.connection());
    let slot = slot.to_string();
    let set = |line: &mut BlockingConnection, state: &[u8], id: &[u8]| {
        done(line, &[b"CLUSTER", b"SETSLOT", slot.as_bytes(), state, id])
    };
    let (source_id, target_id) = (id_of(source_line)?, id_of(target_line)?);
    // The target first: it must take what the source sends clients to it for.
    set(target_line, b"IMPORTING", &source_id)?;
    set(source_line, b"MIGRATING", &target_id)?;
    let moved = migrate_all(source_line, slot.as_bytes(), target)?;
    // The target first: from then on one of the two at least knows the slot's new node.
    set(target_line, b"NODE", &target_id)?;
    set(source_line, b"NODE", &target_id)?;
    let is_other = |node: &&RespServer| ![&source.launch.place, &target.launch.place].contains(&&node.launch.place);
    for node in cluster.nodes.iter().filter(is_other) {
        set(node.connect()?.connection(), b"NODE", &target_id)?;
    }
    Ok(moved)
}

fn id_of(connection: &mut BlockingConnection) -> Result<Vec<u8>, Fault> {
    let told = ask(connection, &[b"CLUSTER", b"MYID"])?;
    let id = node_id(&told).map(<[u8]>::to_vec);
    id.ok_or_else(|| strange(connection, "CLUSTER MYID", &told))
}

/// Hands keys over until the source has none left. Returns their number.
fn migrate_all(source: &mut BlockingConnection, slot: &[u8], target: &RespServer) -> Result<u64, Fault> {
    let Place::Tcp { host, port } = &target.launch.place else {
        return Err(Fault::Unsupported("a node is reached over tcp".to_string()));
    };
    let port = port.to_string();
    let mut moved = 0;
    for _ in 0..ROUNDS_MAX {
        let told = ask(source, &[b"CLUSTER", b"GETKEYSINSLOT", slot, KEYS_AT_ONCE])?;
        let keys = match told {
            Value::List(_) => keys_in_slot(told),
            told => return Err(strange(source, "CLUSTER GETKEYSINSLOT", &told)),
        };
        let keys = keys.ok_or_else(|| Fault::Garbled("CLUSTER GETKEYSINSLOT has what is no key".to_string()))?;
        if keys.is_empty() {
            return Ok(moved);
        }
        let mut parts: Vec<&[u8]> = vec![&b"MIGRATE"[..], host.as_bytes(), port.as_bytes(), b"", b"0", TIMEOUT_MS];
        if let Some(password) = &target.launch.login.password {
            parts.extend([&b"AUTH"[..], password.as_bytes()]);
        }
        parts.push(b"KEYS");
        parts.extend(keys.iter().map(Vec::as_slice));
        match ask(source, &parts)? {
            Value::Text(word) if word == b"OK" => moved += keys.len() as u64,
            // A client has deleted them meanwhile.
            Value::Text(word) if word == b"NOKEY" => {}
            Value::Error(words) => return Err(Fault::Refused(format!("{}: MIGRATE: {words}", source.name()))),
            other => return Err(strange(source, "MIGRATE", &other)),
        }
    }
    Err(Fault::Refused(format!("{}: slot {} is never empty", source.name(), String::from_utf8_lossy(slot))))
}
