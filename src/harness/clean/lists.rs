//! What `fans` may have written: under each page of its profiles a record as it was after some of them.
//!
//! Where one client owns a page, its profiles come in their order: a record with n fans must be, byte for byte, that
//! of the first n profiles with the page. Where several clients take whole profiles, or a profile is counted field by
//! field by the store's own means, the order is not known: then no number of the record may be above its final one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_128;

use super::{Held, Looker, Shape};
use crate::jobs::merge::{self, Pages};
use crate::jobs::people::{Profile, Profiles};
use crate::jobs::{InputFault, Source};
use crate::model::trial::{JobSettings, Split};

/// A page whose record was found in the store.
struct Page {
    held: Vec<u8>,
    /// The fans that it has by its own word.
    fans: u64,
    /// As the profiles so far have made it; empty before the first.
    record: Vec<u8>,
    /// It was once what is held.
    was_held: bool,
}

pub fn look_through(
    settings: &JobSettings,
    clients: u32,
    source: &dyn Source,
    looker: &mut Looker<'_, '_>,
) -> Result<(), String> {
    let tallied = looker.reader.shape == Shape::Tally;
    let in_order = !tallied && (settings.split == Split::Pages || clients == 1);
    let mut names: HashSet<Box<[u8]>> = HashSet::new();
    each_profile(settings, source, |profile| names.extend(profile.pages().iter().map(Box::from)))?;
    let mut pages = found(names, looker)?;
    grow(settings, source, &mut pages)?;
    for (name, page) in &pages {
        let ours = page.was_held || (!in_order && is_within(page, tallied));
        if ours { looker.is_ours(name, xxh3_128(&page.held)) } else { looker.is_other(name) }
    }
    Ok(())
}

/// The pages that hold a record, whatever is in it.
fn found(names: HashSet<Box<[u8]>>, looker: &mut Looker<'_, '_>) -> Result<HashMap<Box<[u8]>, Page>, String> {
    let mut pages = HashMap::new();
    for name in names {
        match looker.reader.read(&name)? {
            Held::Nothing => {}
            Held::Bytes(held) => match fans_of(held) {
                Some(fans) => {
                    let page = Page { held: held.to_vec(), fans, record: Vec::new(), was_held: false };
                    pages.insert(name, page);
                }
                None => looker.is_other(&name),
            },
            Held::Strange => looker.is_other(&name),
        }
    }
    Ok(pages)
}

/// Goes through all profiles as the job does, and notes which records were once what is held.
fn grow(settings: &JobSettings, source: &dyn Source, found: &mut HashMap<Box<[u8]>, Page>) -> Result<(), String> {
    let (mut pages, mut grown, mut broken) = (Pages::default(), Vec::new(), None);
    each_profile(settings, source, |profile| {
        pages.set(profile.pages());
        for (own, name) in profile.pages().iter().enumerate() {
            let Some(page) = found.get_mut(name).filter(|page| !page.was_held) else { continue };
            let old = (!page.record.is_empty()).then_some(page.record.as_slice());
            match merge::merge(old, own, &pages, &mut grown) {
                Ok(fans) => page.was_held = fans == page.fans && grown == page.held,
                Err(what) => broken = Some(what),
            }
            std::mem::swap(&mut page.record, &mut grown);
        }
    })?;
    broken.map_or(Ok(()), |what| Err(what.to_string()))
}

fn each_profile(settings: &JobSettings, source: &dyn Source, mut take: impl FnMut(&Profile)) -> Result<(), String> {
    let opened = Profiles::open(settings, source).map_err(|error| InputFault::opening(source, &error).to_string());
    let (mut profiles, mut profile) = (opened?, Profile::default());
    while profiles.read(&mut profile).map_err(|fault| fault.to_string())? {
        take(&profile);
    }
    Ok(())
}

/// How a tally begins that was cut off before its own fans were counted. No job writes such a record.
const NO_FANS: &[u8] = b"{\"fans\":0,";

/// The record of a tally without fans as one with a fan, which can be read.
fn readable(record: &[u8]) -> Cow<'_, [u8]> {
    let Some(rest) = record.strip_prefix(NO_FANS) else { return record.into() };
    [b"{\"fans\":1,", rest].concat().into()
}

fn fans_of(record: &[u8]) -> Option<u64> {
    let fans = merge::read(&readable(record)).ok().map(|(fans, _)| fans)?;
    Some(if record.starts_with(NO_FANS) { 0 } else { fans })
}

fn entries_of(record: &[u8]) -> Option<HashMap<Vec<u8>, u64>> {
    let record = readable(record);
    let (_, entries) = merge::read(&record).ok()?;
    entries.map(|entry| entry.map(|(name, count)| (name.into_owned(), count)).ok()).collect()
}

/// Whether no number of the held record is above its final one. A tally may have no fans yet.
fn is_within(page: &Page, tallied: bool) -> bool {
    let (Some(held), Some(last)) = (entries_of(&page.held), entries_of(&page.record)) else { return false };
    let Some(most) = fans_of(&page.record) else { return false };
    let least = u64::from(!tallied);
    let is_less = |(name, count): (&Vec<u8>, &u64)| last.get(name).is_some_and(|most| count <= most);
    (least..=most).contains(&page.fans) && held.iter().all(is_less)
}
