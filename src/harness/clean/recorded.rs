//! What `trace` may have written: under the key of each request that is no deletion the value that this request sets,
//! or that is set after it found nothing. A value tells its request; one shorter than 16 bytes only a part of that.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Looker;
use crate::jobs::keyed::values::HEAD_BYTES;
use crate::jobs::trace::forms::Operation;
use crate::jobs::trace::hash_of;
use crate::jobs::trace::recorded::{Recorded, RecordedRequest};
use crate::jobs::trace::values::{TraceValues, version_in};
use crate::jobs::{InputFault, Source};
use crate::model::trial::JobSettings;

pub fn look_through(settings: &JobSettings, source: &dyn Source, looker: &mut Looker<'_, '_>) -> Result<(), String> {
    let written = Written::read(settings, source)?;
    written.keys.iter().try_for_each(|key| looker.look(key, |held| written.may_be(key, held)))
}

#[derive(Default)]
struct Written {
    values: TraceValues,
    keys: HashSet<Box<[u8]>>,
    /// What each request writes, by its number: 32 bits of key and length.
    marks: Vec<u32>,
    /// Digests of key and value of values that are too short for a whole version.
    short: HashSet<u64>,
}

impl Written {
    fn read(settings: &JobSettings, source: &dyn Source) -> Result<Written, String> {
        let opened = Recorded::open(settings, source).map_err(|error| InputFault::opening(source, &error).to_string());
        let (mut recorded, mut written) = (opened?, Written::default());
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut take = |request: RecordedRequest<'_>| {
            request.key.write(&mut key);
            let (hash, bytes) = (hash_of(&key), request.value_bytes as usize);
            if request.operation == Operation::Delete {
                return written.marks.push(!mark(hash, bytes));
            }
            written.marks.push(mark(hash, bytes));
            if !written.keys.contains(key.as_slice()) {
                written.keys.insert(key.as_slice().into());
            }
            if bytes < HEAD_BYTES {
                written.values.write(hash, request.number, bytes, &mut value);
                written.short.insert(xxh3_64_with_seed(&value, hash));
            }
        };
        while recorded.read(&mut take).map_err(|fault| fault.to_string())? {}
        Ok(written)
    }

    fn may_be(&self, key: &[u8], held: &[u8]) -> bool {
        let hash = hash_of(key);
        let Some(number) = version_in(held) else { return self.short.contains(&xxh3_64_with_seed(held, hash)) };
        let marked = usize::try_from(number).ok().and_then(|number| self.marks.get(number));
        marked == Some(&mark(hash, held.len())) && self.values.is(hash, number, held.len(), held)
    }
}

fn mark(key: u64, bytes: usize) -> u32 {
    ((key ^ key >> 32) as u32).wrapping_add((bytes as u32).wrapping_mul(0x9e37_79b9))
}
