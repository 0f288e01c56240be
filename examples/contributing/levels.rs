//! `kvfair levels`: the durability levels that a store claims.

use anyhow::Result;

use super::args::Levels;
use super::found::write_page;
use super::shown::print_report;
use super::{Exit, target, typed};
use crate::model::trial::Durability;
use crate::report::columns::{Column, shown};
use crate::report::formats::plain;
use crate::report::grid::Grid;
use crate::report::render::csv::csv;
use crate::report::render::{Block, Medium, Shown, json};
use crate::report::table::of_columns;

struct Level {
    level: Durability,
    kept_by: String,
}

const COLUMNS: &[Column<Level>] = &[
    shown("level", "level", plain, |one| one.level.to_string().into()),
    shown("kept_by", "kept by", plain, |one| one.kept_by.as_str().into()),
];

struct LevelsReport(Vec<Level>);

impl Shown for LevelsReport {
    fn exit(&self) -> Exit {
        Exit::Ok
    }

    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        Ok(vec![Block::Table(Grid::of(of_columns(COLUMNS, &["level", "kept_by"], &self.0, |_| None)))])
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, &self.0, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::of_rows(&typed(), exit, COLUMNS, &self.0)
    }
}

pub fn levels(args: &Levels) -> Result<Exit> {
    let chosen = target::parse_all([&args.store])?.remove(0);
    let level = |level: Durability| {
        let kept_by = (chosen.adapter.keeps)(level).map_or_else(|why| format!("not kept: {why}"), str::to_string);
        Level { level, kept_by }
    };
    let report = LevelsReport(Durability::ALL.map(level).into());
    write_page(&report, &args.forms, &typed(), "levels")?;
    print_report(&report, report.exit(), args.forms.form())
}
