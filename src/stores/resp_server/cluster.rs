//! A store of several servers of RESP: a cluster, each of whose nodes has some of the 16,384 slots. It knows who may be
//! a node, and asks all of them for what a single server tells of itself.
//!
//! What nodes say of other nodes is hostile until checked. Of a cluster that kvfair started only the servers that it
//! started are connected to; of another one only those that CLUSTER SLOTS of the node in the URL names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::{COUNTERS, HASH, RespProduct, RespServer, ask, strange};
use crate::model::op::{Fault, KeyList};
use crate::model::record::{NODES, SLOTS_OF_NODES};
use crate::protocol::resp::{Address, SLOTS, SlotRange, Value, cluster_field, slot_ranges};
use crate::stores::room::{Limit, ServerMemory};
use crate::stores::store_stats::StoreStats;
use crate::stores::{Facts, Launch, Place, Session, Store, Watch};

mod joining;
mod relocate;
mod session;

pub use joining::join;

/// More nodes than Redis' own documentation recommends at most.
const NODES_MAX: usize = 1_000;

/// Opens the cluster that the server at `launch.place` is a node of.
pub fn open(name: &'static str, product: &'static RespProduct, launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    if launch.settings.get(COUNTERS.name).is_some_and(|counters| counters == HASH) {
        let what = format!("{name}: one hash of all counters is in one slot, so that one node has all of them");
        return Err(Fault::Unsupported(format!("{what}: leave ?{}={HASH} out", COUNTERS.name)));
    }
    if launch.login.database.as_deref().is_some_and(|database| database != "0") {
        return Err(Fault::Unsupported(format!("{name}: a cluster has database 0 only")));
    }
    let seed = RespServer { name, product, launch: launch.clone(), no_touch: OnceLock::new(), is_node: true };
    let topology = Topology::ask(&seed)?;
    topology.check(&seed)?;
    let nodes = topology.nodes.iter().map(|place| seed.at(place.clone())).collect();
    Ok(Box::new(Cluster { seed, nodes, node_of_slot: topology.node_of_slot }))
}

/// Who has which slot.
struct Topology {
    nodes: Vec<Place>,
    /// For each slot the index of its node, where it has one.
    node_of_slot: Vec<Option<u16>>,
}

impl Topology {
    /// As the node says that stands in the URL, or that kvfair has started first.
    fn ask(seed: &RespServer) -> Result<Topology, Fault> {
        let mut session = seed.connect()?;
        let connection = session.connection();
        let ranges = match ask(connection, &[b"CLUSTER", b"SLOTS"])? {
            Value::Error(words) if words.contains("cluster support disabled") => {
                let name = connection.name();
                return Err(Fault::Unsupported(format!(
                    "{name} is a single server and no node of a cluster ({words})"
                )));
            }
            Value::Error(words) => {
                return Err(Fault::Refused(format!("{}: CLUSTER SLOTS: {words}", connection.name())));
            }
            told => slot_ranges(&told).ok_or_else(|| strange(connection, "CLUSTER SLOTS", &told))?,
        };
        Topology::of(&ranges, seed)
    }

    fn of(ranges: &[SlotRange], seed: &RespServer) -> Result<Topology, Fault> {
        let mut topology = Topology { nodes: Vec::new(), node_of_slot: vec![None; SLOTS] };
        for SlotRange { first, last, at } in ranges {
            let place = seed.place_of(at, &seed.launch.place);
            let node = match topology.nodes.iter().position(|known| *known == place) {
                Some(node) => node,
                None if topology.nodes.len() == NODES_MAX => {
                    return Err(Fault::Unsupported(format!("a cluster of more than {NODES_MAX} nodes")));
                }
                None => {
                    seed.check_started(&place, "CLUSTER SLOTS")?;
                    topology.nodes.push(place);
                    topology.nodes.len() - 1
                }
            };
            topology.node_of_slot[usize::from(*first)..=usize::from(*last)].fill(Some(node as u16));
        }
        Ok(topology)
    }

    /// Every slot must have a node. In a cluster that kvfair has just started nodes still hear of each other.
    fn check(&self, seed: &RespServer) -> Result<(), Fault> {
        let Some(first) = self.node_of_slot.iter().position(Option::is_none) else { return Ok(()) };
        let run = self.node_of_slot[first..].iter().take_while(|node| node.is_none()).count();
        let all = self.node_of_slot.iter().filter(|node| node.is_none()).count();
        let slots = match run {
            1 => format!("slot {first} has"),
            run => format!("slots {first} to {} have", first + run - 1),
        };
        let others = if all > run { format!(", and {} other slots have none", all - run) } else { String::new() };
        let what = format!("{} at {}: {slots} no node{others}", seed.name, seed.launch.place);
        Err(if seed.is_started() {
            Fault::Refused(what)
        } else {
            Fault::Unsupported(format!("{what}: give them one (`redis-cli --cluster fix`)"))
        })
    }
}

impl RespServer {
    /// The same server's settings and login for another place.
    fn at(&self, place: Place) -> RespServer {
        RespServer {
            launch: Launch { place, peers: Vec::new(), ..self.launch.clone() },
            no_touch: self.no_touch.clone(),
            is_node: true,
            ..*self
        }
    }

    /// Whether kvfair has started all nodes.
    fn is_started(&self) -> bool {
        !self.launch.peers.is_empty()
    }

    /// Where the node is that was named by the one at `by`.
    fn place_of(&self, at: &Address, by: &Place) -> Place {
        let host = match (&at.host, by) {
            (Some(host), _) => host.clone(),
            (None, Place::Tcp { host, .. }) => host.clone(),
            (None, _) => String::new(),
        };
        Place::Tcp { host, port: at.port }
    }

    /// Of a cluster that kvfair has started no other server is connected to, whatever a node says.
    fn check_started(&self, place: &Place, said: &str) -> Result<(), Fault> {
        let launch = &self.launch;
        if !self.is_started() || launch.place == *place || launch.peers.contains(place) {
            return Ok(());
        }
        Err(Fault::Refused(format!("{said}: {} says that {place} is a node, and kvfair did not start that", self.name)))
    }
}

struct Cluster {
    /// Of the node by which the cluster was opened.
    seed: RespServer,
    /// Those that had slots then.
    nodes: Vec<RespServer>,
    node_of_slot: Vec<Option<u16>>,
}

impl Cluster {
    /// What each node says.
    fn each<T>(&self, mut ask: impl FnMut(&RespServer) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        self.nodes.iter().map(&mut ask).collect()
    }

    /// Every node must say that the cluster works: each has heard of the others by itself.
    fn check_state(&self) -> Result<(), Fault> {
        for node in &self.nodes {
            let mut session = node.connect()?;
            let connection = session.connection();
            let told = match ask(connection, &[b"CLUSTER", b"INFO"])? {
                Value::Text(told) => String::from_utf8_lossy(&told).into_owned(),
                told => return Err(strange(connection, "CLUSTER INFO", &told)),
            };
            if cluster_field(&told, "cluster_state") != Some("ok") {
                let state = cluster_field(&told, "cluster_state").unwrap_or("unknown");
                return Err(Fault::Refused(format!("{} has cluster_state {state}, not ok", connection.name())));
            }
        }
        Ok(())
    }

    /// "5461, 5462, 5461": how many slots each node has, in the order of the slots.
    fn shares(&self) -> String {
        let mut counts = vec![0_u32; self.nodes.len()];
        self.node_of_slot.iter().flatten().for_each(|&node| counts[usize::from(node)] += 1);
        counts.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl Store for Cluster {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(session::ClusterSession::open(self)?))
    }

    /// What one node says, and where the nodes differ what each of them says.
    fn facts(&self) -> Result<Facts, Fault> {
        self.check_state()?;
        let all = self.each(RespServer::facts)?;
        let mut settings: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, setting) in all.iter().flat_map(|facts| &facts.settings) {
            settings.entry(name.clone()).or_default().insert(setting.clone());
        }
        let mut settings: BTreeMap<String, String> =
            settings.into_iter().map(|(name, values)| (name, joined(values, " or "))).collect();
        settings.insert(NODES.to_string(), self.nodes.len().to_string());
        settings.insert(SLOTS_OF_NODES.to_string(), self.shares());
        let versions = joined(all.iter().map(|facts| facts.version.clone()).collect(), " and ");
        let started: Option<Vec<String>> = all.iter().map(|facts| facts.started.clone()).collect();
        let servers = self.nodes.iter().zip(&all).map(|(node, facts)| (node.launch.place.clone(), facts.process_id));
        let servers = servers.collect();
        let first = all.into_iter().next().unwrap_or_default();
        let started = started.map(|ids| ids.join(" "));
        Ok(Facts { version: versions, settings, process_id: None, servers, started, ..first })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        self.each(RespServer::final_flush).map(drop)
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(self.each(RespServer::count)?.into_iter().sum())
    }

    /// The sums over all nodes.
    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::sum(&self.each(RespServer::stats)?))
    }

    fn watch(&self) -> Result<Option<Watch<'_>>, Fault> {
        let watches: Option<Vec<Watch<'_>>> = self.nodes.iter().map(|node| node.watch()).collect::<Result<_, _>>()?;
        let Some(mut watches) = watches else { return Ok(None) };
        Ok(Some(Box::new(move || watches.iter_mut().map(|ask| ask()).sum::<Result<Option<u64>, Fault>>())))
    }

    /// That of the node with the least left: it is to hold all by itself, wherever keys fall.
    fn room(&self) -> Result<Option<ServerMemory>, Fault> {
        let all: Option<Vec<ServerMemory>> = self.nodes.iter().map(|node| node.room()).collect::<Result<_, _>>()?;
        let Some(all) = all else { return Ok(None) };
        let left = |room: &ServerMemory| match room.limit {
            // What is not known is the least of all.
            Limit::Unknown(_) => None,
            Limit::Bytes(limit) => Some(limit.saturating_sub(room.used_bytes?)),
            Limit::Host => Some(u64::MAX),
        };
        let (evicts, records) = (all.iter().any(|room| room.evicts), all.iter().map(|room| room.records).sum());
        let evicted = all.iter().map(|room| room.evicted).sum();
        let least = all.into_iter().min_by_key(left);
        Ok(least.map(|least| ServerMemory { evicts, records, evicted, ..least }))
    }

    /// Of each node as many.
    fn existing(&self, most: usize) -> Result<Option<KeyList>, Fault> {
        let mut keys = KeyList::default();
        for node in &self.nodes {
            let of_node = node.existing(most.div_ceil(self.nodes.len()))?.unwrap_or_default();
            let free = most - keys.lend().len();
            of_node.lend().iter().take(free).for_each(|key| keys.push(key));
        }
        Ok(Some(keys))
    }

    fn leave_no_trace(&self) -> Result<(), Fault> {
        self.seed.leave_no_trace()?;
        self.each(RespServer::leave_no_trace).map(drop)
    }

    fn expires(&self) -> bool {
        true
    }

    fn relocate(&self, key: &[u8]) -> Option<Result<u64, Fault>> {
        // Another's cluster is never changed.
        self.seed.is_started().then(|| relocate::to_next_node(self, key))
    }
}

fn joined(values: BTreeSet<String>, between: &str) -> String {
    values.into_iter().collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    static PRODUCT: RespProduct =
        RespProduct { info: &[], informed: &[], started: "", settings: &[], by_url: None, check: |_, _, _| Ok(()) };

    fn seed(peers: &[u16]) -> RespServer {
        let place = |port| Place::Tcp { host: "127.0.0.1".to_string(), port };
        let peers = peers.iter().map(|&port| place(port)).collect();
        let launch = Launch { peers, ..Launch::at(place(7_001), Duration::from_secs(1)) };
        RespServer { name: "redis", product: &PRODUCT, launch, no_touch: OnceLock::new(), is_node: true }
    }

    fn range(first: u16, last: u16, host: Option<&str>, port: u16) -> SlotRange {
        SlotRange { first, last, at: Address { host: host.map(str::to_string), port } }
    }

    #[test]
    fn missing_slots_are_named() {
        let refused = |ranges: &[SlotRange], peers: &[u16]| {
            let seed = seed(peers);
            Topology::of(ranges, &seed).unwrap().check(&seed).unwrap_err()
        };
        let gap = [range(0, 99, None, 7_001), range(101, 16_383, None, 7_002)];
        let words = refused(&gap, &[]).to_string();
        assert!(words.contains("redis at 127.0.0.1:7001: slot 100 has no node: give"), "{words}");
        let words = refused(&[range(5, 9, None, 7_001)], &[]).to_string();
        assert!(words.contains("slots 0 to 4 have no node, and 16374 other slots have none"), "{words}");
        // Nodes that were just started are still hearing of each other.
        assert!(matches!(refused(&gap, &[7_002, 7_003]), Fault::Refused(_)));
        let whole = [range(0, 99, None, 7_001), range(100, 16_383, Some("127.0.0.1"), 7_002)];
        let seed = seed(&[]);
        let topology = Topology::of(&whole, &seed).unwrap();
        assert!(topology.check(&seed).is_ok());
        assert_eq!(
            (topology.nodes.len(), topology.node_of_slot[99], topology.node_of_slot[100]),
            (2, Some(0), Some(1))
        );
    }

    #[test]
    fn a_node_that_was_not_started_here_is_none_of_a_cluster_of_ours() {
        let strange = [range(0, 99, None, 7_001), range(100, 16_383, Some("192.0.2.1"), 7_002)];
        assert!(Topology::of(&strange, &seed(&[])).is_ok(), "its owner's cluster names its nodes");
        let words = Topology::of(&strange, &seed(&[7_002])).err().expect("refused").to_string();
        assert!(words.contains("192.0.2.1:7002 is a node, and kvfair did not start that"), "{words}");
    }
}
