//! What `fans` may have written: under each page of its profiles a record as it was after some of them.
//!
//! Where one client owns a page, its profiles come in their order: a record with n fans must be, byte for byte, that
//! of the first n profiles with the page. Where several clients take whole profiles, or a profile is counted field by
//! field by the store's own means, the order is not known: then no number of the record may be above its final one.

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
            Held::Bytes(held) if merge::read(held).is_ok() => {
                let fans = merge::read(held).map_or(0, |(fans, _)| fans);
                let page = Page { held: held.to_vec(), fans, record: Vec::new(), was_held: false };
                pages.insert(name, page);
            }
            Held::Bytes(_) | Held::Strange => looker.is_other(&name),
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

/// Whether no number of the held record is above its final one. A tally may have been cut off before its own fans were
/// counted.
fn is_within(page: &Page, tallied: bool) -> bool {
    let entries = |record| {
        let (fans, entries) = merge::read(record).ok()?;
        let entries = entries.map(|entry| entry.map(|(name, count)| (name.into_owned(), count)));
        Some((fans, entries.collect::<Result<HashMap<Vec<u8>, u64>, _>>().ok()?))
    };
    let (Some((fans, held)), Some((most, last))) = (entries(&page.held), entries(&page.record)) else { return false };
    let least = u64::from(!tallied);
    let is_less = |(name, count): (&Vec<u8>, &u64)| last.get(name).is_some_and(|most| count <= most);
    (least..=most).contains(&fans) && held.iter().all(is_less)
}
