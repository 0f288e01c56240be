//! `kvfair lookup`: how often words were counted, out of a store that holds n-grams.

use anyhow::{Context, Result, anyhow};

use super::args::Lookup;
use super::{Exit, print, query};
use crate::harness::signals::Interrupt;
use crate::harness::{kept_data, scratch};
use crate::model::plain;

pub fn lookup(args: &Lookup) -> Result<Exit> {
    let chosen = query::store_of(&args.target)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let words = args.words.join(" ");
    let counts = kept_data::counts(&chosen, &words, scratch.path(), &interrupt)?;
    if counts.is_empty() {
        return Err(anyhow!("no word in '{}'\nhint: a word is a run of a-z, 0-9, #, @ and '", plain::line(&words)));
    }
    let lines = counts.iter().map(|(term, count)| format!("{count:>9}  {}\n", plain::line(term)));
    print(&lines.collect::<String>())?;
    Ok(Exit::Ok)
}
