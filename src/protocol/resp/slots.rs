//! Slots: the slot of a key, and what the nodes of a cluster say about the nodes of slots.
//!
//! <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>

use super::Value;

/// The number of slots of a cluster.
pub const SLOTS: usize = 16_384;

/// The slot of a key.
#[inline]
pub fn slot(key: &[u8]) -> u16 {
    crc16(hashed(key)) % SLOTS as u16
}

/// What stands between the first brace and the next closing one, where that is something; else the whole key.
#[inline]
fn hashed(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let rest = &key[open + 1..];
    match memchr::memchr(b'}', rest) {
        Some(end) if end > 0 => &rest[..end],
        _ => key,
    }
}

/// CRC-16 with the polynomial 0x1021, which begins at 0 (XMODEM).
#[inline]
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| (crc << 8) ^ CRC_OF_BYTE[usize::from((crc >> 8) as u8 ^ byte)])
}

const CRC_OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Where a node listens, as another one says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// None where it is the host of the node that says it.
    pub host: Option<String>,
    pub port: u16,
}

/// Why a node refuses a command that another one may take, or the same one later. It has carried nothing out.
#[derive(Debug, PartialEq)]
pub enum Redirect {
    /// The slot is there from now on.
    Moved(u16, Address),
    /// The slot is on its way there: for this one command.
    Ask(u16, Address),
    /// Some keys of the command are still here, and some are not.
    TryAgain,
}

impl Redirect {
    /// What the words of a refusal say; nothing where they say something else.
    pub fn read(words: &str) -> Option<Redirect> {
        let mut parts = words.split(' ');
        let code = parts.next()?;
        if code == "TRYAGAIN" {
            return Some(Redirect::TryAgain);
        }
        let make = match code {
            "MOVED" => Redirect::Moved,
            "ASK" => Redirect::Ask,
            _ => return None,
        };
        let slot = parts.next()?.parse::<u16>().ok().filter(|&slot| usize::from(slot) < SLOTS)?;
        let (host, port) = parts.next()?.rsplit_once(':')?;
        let address = Address { host: named(host), port: port.parse::<u16>().ok().filter(|&port| port > 0)? };
        parts.next().is_none().then(|| make(slot, address))
    }
}

/// Neighbouring slots of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotRange {
    pub first: u16,
    pub last: u16,
    /// Of the node that takes writes.
    pub at: Address,
}

/// What CLUSTER SLOTS answers; nothing where it is of another form. What it says of replicas is passed over.
pub fn slot_ranges(told: &Value) -> Option<Vec<SlotRange>> {
    let Value::List(ranges) = told else { return None };
    ranges.iter().map(slot_range).collect()
}

fn slot_range(told: &Value) -> Option<SlotRange> {
    let Value::List(parts) = told else { return None };
    let [Value::Number(first), Value::Number(last), Value::List(node), ..] = parts.as_slice() else { return None };
    let of = |slot: i64| u16::try_from(slot).ok().filter(|&slot| usize::from(slot) < SLOTS);
    let (first, last) = (of(*first)?, of(*last)?);
    let [host, Value::Number(port), ..] = node.as_slice() else { return None };
    let host = match host {
        Value::Text(host) => named(std::str::from_utf8(host).ok()?),
        Value::Missing => None,
        _ => return None,
    };
    let at = Address { host, port: u16::try_from(*port).ok().filter(|&port| port > 0)? };
    (first <= last).then_some(SlotRange { first, last, at })
}

/// A node that does not know its own address says nothing or `?`.
fn named(host: &str) -> Option<String> {
    (!host.is_empty() && host != "?").then(|| host.to_string())
}

/// The value of a field of CLUSTER INFO: `cluster_state:ok`.
pub fn cluster_field<'t>(told: &'t str, name: &str) -> Option<&'t str> {
    told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

/// A node's id: 40 hexadecimal digits.
pub fn node_id(told: &Value) -> Option<&[u8]> {
    match told {
        Value::Text(id) if id.len() == 40 && id.iter().all(u8::is_ascii_hexdigit) => Some(id),
        _ => None,
    }
}

/// The keys of CLUSTER GETKEYSINSLOT.
pub fn keys_in_slot(told: Value) -> Option<Vec<Vec<u8>>> {
    let Value::List(keys) = told else { return None };
    let text = |key| if let Value::Text(key) = key { Some(key) } else { None };
    keys.into_iter().map(text).collect()
}

/// The first and the last slot of a node at first, by its number and the number of nodes. The shares differ by one slot
/// at most.
pub fn fair_share(number: usize, nodes: usize) -> (usize, usize) {
    (number * SLOTS / nodes, (number + 1) * SLOTS / nodes - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's own: its appendix A for the sum, and its section on hash tags.
    #[test]
    fn a_key_falls_into_the_slot_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(crc16(b""), 0);
        assert_eq!(slot(b"123456789"), 0x31C3, "it is less than 16,384");
        // As CLUSTER KEYSLOT answers in its documentation.
        assert_eq!([slot(b"somekey"), slot(b"foo{hash_tag}"), slot(b"bar{hash_tag}")], [11_058, 2_515, 2_515]);
        assert_eq!(hashed(b"{user1000}.following"), b"user1000");
        assert_eq!(hashed(b"foo{}{bar}"), b"foo{}{bar}", "nothing between the first two braces");
        assert_eq!(hashed(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(hashed(b"foo{bar}{zap}"), b"bar");
        assert_eq!(hashed(b"foo}bar{"), b"foo}bar{");
        assert_eq!(hashed(b"{open"), b"{open");
    }

    fn at(host: &str, port: u16) -> Address {
        Address { host: Some(host.to_string()), port }
    }

    #[test]
    fn refusals_that_are_redirects_are_read() {
        assert_eq!(Redirect::read("MOVED 3999 127.0.0.1:6381"), Some(Redirect::Moved(3_999, at("127.0.0.1", 6_381))));
        assert_eq!(Redirect::read("ASK 3999 h.example:1"), Some(Redirect::Ask(3_999, at("h.example", 1))));
        assert_eq!(Redirect::read("MOVED 1 ::1:6381"), Some(Redirect::Moved(1, at("::1", 6_381))));
        assert_eq!(Redirect::read("MOVED 1 :7"), Some(Redirect::Moved(1, Address { host: None, port: 7 })));
        let words = "TRYAGAIN Multiple keys request during rehashing of slot";
        assert_eq!(Redirect::read(words), Some(Redirect::TryAgain));
        for words in [
            "",
            "ERR no",
            "MOVED",
            "MOVED 3999",
            "MOVED 16384 h:1",
            "MOVED 16385 h:1",
            "MOVED -1 h:1",
            "MOVED x h:1",
            "MOVED 1 h",
            "MOVED 1 h:0",
            "MOVED 1 h:70000",
            "MOVED 1 h:1 and more",
            "moved 1 h:1",
        ] {
            assert_eq!(Redirect::read(words), None, "{words}");
        }
    }

    #[test]
    fn ranges_of_slots_are_read_and_strange_ones_are_not() {
        let text = |text: &str| Value::Text(text.as_bytes().to_vec());
        let node = |host: Value, port| Value::List(vec![host, Value::Number(port), text("id")]);
        let range = |first, last, node| Value::List(vec![Value::Number(first), Value::Number(last), node]);
        let told = Value::List(vec![
            range(0, 5_460, node(text("127.0.0.1"), 30_001)),
            range(5_461, 16_382, node(Value::Missing, 30_002)),
            range(16_383, 16_383, node(text("?"), 1)),
        ]);
        let read = slot_ranges(&told).unwrap();
        assert_eq!(read[0], SlotRange { first: 0, last: 5_460, at: at("127.0.0.1", 30_001) });
        assert_eq!(read[1].at, Address { host: None, port: 30_002 });
        assert_eq!(read[2], SlotRange { first: 16_383, last: 16_383, at: Address { host: None, port: 1 } });
        for strange in [
            text("no"),
            Value::List(vec![text("no")]),
            Value::List(vec![range(5, 4, node(text("h"), 1))]),
            Value::List(vec![range(0, 16_384, node(text("h"), 1))]),
            Value::List(vec![range(0, 16_385, node(text("h"), 1))]),
            Value::List(vec![range(-1, 4, node(text("h"), 1))]),
            Value::List(vec![range(0, 4, node(text("h"), 70_000))]),
            Value::List(vec![range(0, 4, node(text("h"), 0))]),
            Value::List(vec![range(0, 4, text("h"))]),
        ] {
            assert_eq!(slot_ranges(&strange), None, "{strange:?}");
        }
    }

    #[test]
    fn ids_of_nodes_and_keys_of_slots_are_read_and_strange_ones_are_not() {
        let text = |text: &str| Value::Text(text.as_bytes().to_vec());
        let id = "07c37dfeb235213a872192d90877d0cd55635b91";
        assert_eq!(node_id(&text(id)), Some(id.as_bytes()));
        for strange in [text(&id[1..]), text(&id.replace('a', "g")), text(""), Value::Missing] {
            assert_eq!(node_id(&strange), None, "{strange:?}");
        }
        let keys = vec![b"a".to_vec(), b"{b}c".to_vec()];
        assert_eq!(keys_in_slot(Value::List(vec![text("a"), text("{b}c")])), Some(keys));
        assert_eq!(keys_in_slot(Value::List(Vec::new())), Some(Vec::new()));
        assert_eq!(keys_in_slot(Value::List(vec![text("a"), Value::Number(1)])), None);
        assert_eq!(keys_in_slot(text("a")), None);
    }

    #[test]
    fn every_slot_has_one_node_at_first() {
        for nodes in 3..=16 {
            let shares: Vec<_> = (0..nodes).map(|number| fair_share(number, nodes)).collect();
            assert_eq!((shares[0].0, shares[nodes - 1].1), (0, SLOTS - 1));
            assert!(shares.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{shares:?}");
        }
        assert_eq!(
            (0..3).map(|number| fair_share(number, 3)).collect::<Vec<_>>(),
            [(0, 5_460), (5_461, 10_921), (10_922, 16_383)]
        );
        assert_eq!(cluster_field("cluster_enabled:1\r\ncluster_state:ok\r\n", "cluster_state"), Some("ok"));
    }
}
