//! What `ngrams` and `lookup` may have written: under each term of the messages that are counted a counter from 1 to
//! the term's final count. A counter does not say who counted: one of another program, within these bounds and under
//! the same name, looks the same.

use std::collections::HashMap;

use super::Looker;
use crate::jobs::Source;
use crate::jobs::lookup::{LOOKUP, is_scored};
use crate::jobs::text::{Messages, Terms};
use crate::model::trial::JobSettings;

pub fn look_through(settings: &JobSettings, source: &dyn Source, looker: &mut Looker<'_, '_>) -> Result<(), String> {
    for (term, last) in &counts(settings, source)? {
        let may_be = |held: &[u8]| {
            let number = std::str::from_utf8(held).ok().and_then(|text| text.parse::<u64>().ok());
            number.is_some_and(|number| (1..=*last).contains(&number))
        };
        looker.look(term, may_be)?;
    }
    Ok(())
}

/// How often each term is counted.
fn counts(settings: &JobSettings, source: &dyn Source) -> Result<HashMap<Box<[u8]>, u64>, String> {
    let mut messages = Messages::open(settings, source).map_err(|error| format!("{}: {error}", source.name()))?;
    let (mut terms, mut counts) = (Terms::of(settings.ngrams), HashMap::<Box<[u8]>, u64>::new());
    loop {
        terms.clear();
        let is_counted = settings.name != LOOKUP.name || !is_scored(messages.count());
        let read = messages.read(|message| {
            if is_counted {
                terms.read(message)
            }
        });
        if !read.map_err(|fault| fault.to_string())? {
            return Ok(counts);
        }
        for place in 0..terms.len() {
            *counts.entry(terms.get(place).into()).or_insert(0) += 1;
        }
    }
}
