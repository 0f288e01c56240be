//! What a memcached says of its memory, and how much of it a job takes: pages of a size class, which it does not give
//! to another class in time.
//! <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>, "Slab statistics".

use std::collections::BTreeMap;

use super::{find, stats};
use crate::model::op::Fault;
use crate::stores::blocking::BlockingConnection;
use crate::stores::room::{Limit, ServerMemory, Weight};

/// A page; slabs.c, `slab_page_size`.
const PAGE_BYTES: u64 = 1 << 20;
/// An item's header, its version, and what ends key and value; memcached.h, `item`.
const ITEM_BYTES: u64 = 60;
/// The smallest chunk and the largest, and how much larger each class is than the one before; `-n`, `-f`.
const CHUNKS: (u64, u64) = (96, 512 << 10);
const GROWTH: f64 = 1.25;
/// What the probes of a check take at most: a page of each class that they write to. Measured: 31 pages.
const CHECK_BYTES: u64 = 40 * PAGE_BYTES;

pub fn room(connection: &mut BlockingConnection) -> Result<ServerMemory, Fault> {
    let seen = stats(connection, b"stats\r\n")?;
    let slabs = stats(connection, b"stats slabs\r\n")?;
    let settings = stats(connection, b"stats settings\r\n")?;
    let of = |name: &str| find(&seen, name).and_then(|text| text.parse::<u64>().ok());
    let taken = find(&slabs, "total_malloced").and_then(|text| text.parse::<u64>().ok());
    // Pages that are of no class any more: the next class that needs one gets it.
    let pooled = of("slab_global_page_pool").unwrap_or(0).saturating_mul(PAGE_BYTES);
    let policy = find(&settings, "evictions").map(|word| format!("evictions {word}"));
    Ok(ServerMemory {
        limit: match of("limit_maxbytes") {
            Some(limit) => Limit::Bytes(limit),
            None => Limit::Unknown("stats tell no limit_maxbytes".to_string()),
        },
        used_bytes: taken.map(|taken| taken.saturating_sub(pooled)),
        evicts: policy.as_deref() != Some("evictions off"),
        policy,
        records: of("curr_items"),
        evicted: evicted(connection)?,
        // Pages stay with their class.
        stays_taken: true,
        check_bytes: CHECK_BYTES,
    })
}

/// Items that went for newer ones of their size, and those that went with a page that another size was given.
pub fn evicted(connection: &mut BlockingConnection) -> Result<Option<u64>, Fault> {
    let seen = stats(connection, b"stats\r\n")?;
    let counts = ["evictions", "slab_reassign_evictions_nomem"];
    let counts = counts.iter().filter_map(|name| find(&seen, name)?.parse::<u64>().ok());
    Ok(counts.reduce(u64::saturating_add))
}

/// Twice what all entries take in chunks of their classes, in whole pages, and what is under way.
pub fn needs(weight: &Weight) -> u64 {
    let mut classes: BTreeMap<u64, u64> = BTreeMap::new();
    for (bytes, count) in weight.entries() {
        let chunk = chunk(bytes.saturating_add(ITEM_BYTES));
        *classes.entry(chunk).or_insert(0) += count;
    }
    let pages = classes.into_iter().map(|(chunk, count)| match PAGE_BYTES / chunk {
        0 => count.saturating_mul(chunk.div_ceil(PAGE_BYTES)),
        a_page => count.div_ceil(a_page),
    });
    let pages = pages.fold(0_u64, u64::saturating_add);
    pages.saturating_mul(2 * PAGE_BYTES).saturating_add(weight.under_way_bytes())
}

/// The chunk of an item: of its class, or several of the largest. slabs.c, `slabs_init`.
fn chunk(bytes: u64) -> u64 {
    let (mut chunk, largest) = CHUNKS;
    while chunk < bytes && chunk < largest {
        chunk = ((chunk as f64 * GROWTH) as u64).next_multiple_of(8).min(largest);
    }
    if bytes > largest { bytes.next_multiple_of(largest) } else { chunk }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_those_that_memcached_lists() {
        // `stats slabs` of memcached 1.6.18.
        let listed = [96, 120, 152, 192, 240, 304, 384, 480, 600, 752, 944, 1184, 1480, 1856, 2320, 2904, 3632, 4544];
        for pair in listed.windows(2) {
            assert_eq!(chunk(pair[0] + 1), pair[1]);
            assert_eq!(chunk(pair[1]), pair[1]);
        }
        assert_eq!(chunk(500_000), 524_288);
        assert_eq!(chunk(600_000), 1_048_576);
    }

    #[test]
    fn entries_take_whole_pages_twice() {
        let mut weight = Weight::default();
        weight.add(10, 1);
        assert_eq!(needs(&weight), 2 * PAGE_BYTES, "one item has a page");
        weight.add(2_000, 10_000);
        // 451 chunks of 2,320 bytes a page.
        assert_eq!(needs(&weight), 2 * (1 + 23) * PAGE_BYTES);
    }
}
