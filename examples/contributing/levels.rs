//! `kvfair levels`: the durability levels that a store claims.

use anyhow::Result;

use super::args::Levels;
use super::{Exit, print, target};
use crate::model::trial::Durability;

pub fn levels(args: &Levels) -> Result<Exit> {
    let chosen = target::parse_all([&args.store])?.remove(0);
    let line = |level: Durability| match (chosen.adapter.keeps)(level) {
        Ok(how) => format!("{level}: {how}\n"),
        Err(why) => format!("{level}: no, {why}\n"),
    };
    print(&Durability::ALL.map(line).concat())?;
    Ok(Exit::Ok)
}
