//! What a terminal shows while a run goes on: the table as far as it is, and a bar. Nothing at all elsewhere but a
//! line a block.

use super::terminal::{self, ProgressLine};
use super::{complain, sized};
use crate::harness::timing::End;
use crate::harness::trial::Live;
use crate::model::effort::Blocks;
use crate::model::record::Record;
use crate::report::standing::standings;
use crate::report::{cells, table};
use crate::scheduler::rounds::RunEvent;

/// Steps of the bar for each trial: its share of the units in per cent.
const STEPS: u64 = 100;

pub struct Screen {
    bar: Option<ProgressLine>,
    /// How wide the table above it is.
    width: usize,
    blocks: Blocks,
    units: u64,
    block: u32,
    /// Trials finished, of all blocks.
    finished: u64,
    records: Vec<Record>,
}

impl Screen {
    /// For so many blocks of so many trials, each of so many units, until `end` at the latest.
    pub fn new(blocks: Blocks, trials: usize, units: u64, end: Option<End>) -> Screen {
        let first = u32::from(!blocks.may_claim());
        let bar = ProgressLine::new(bar_steps(blocks, first, trials as u64), goes_on(blocks), end);
        let width = terminal::columns_of_screen().map_or_else(table::width, table::on_columns);
        Screen { bar, width, blocks, units: units.max(1), block: first, finished: 0, records: Vec::new() }
    }

    pub fn tell(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Live { trial, trials, target, live } => {
                let Some(bar) = &self.bar else { return };
                let (what, share) = match live {
                    Live::Starting => ("starting", 0),
                    Live::Working(units) => ("working", units * STEPS / self.units),
                    Live::FinalFlush => ("final flush", STEPS),
                    Live::Verifying(_) => ("checking answers", STEPS),
                };
                // With the second trials of A/A controls.
                bar.set_length(bar_steps(self.blocks, u32::from(!self.blocks.may_claim()), u64::from(*trials)));
                bar.set_position(self.finished * STEPS + share.min(STEPS));
                bar.set_prefix(&format!("{}, {trial} of {trials}: {target}, {what}", self.called(self.block)));
            }
            RunEvent::Finished(record) => {
                self.finished += 1;
                self.records.push((*record).clone());
                if let Some(bar) = &self.bar {
                    bar.set_position(self.finished * STEPS);
                    bar.set_message(&format!("{}\n", table_of(&self.records, self.width)));
                }
            }
            RunEvent::Discarded(..) => {}
            RunEvent::Block(block) => {
                self.block = block + 1;
                if self.bar.is_none() {
                    complain(&format!("{} done", self.called(*block)));
                }
            }
        }
    }

    /// What is not run, and is a row all the same.
    pub fn note(&mut self, record: &Record) {
        self.records.push(record.clone());
    }

    /// What there is so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// "block 3 of 6 to 10", "warm-up".
    fn called(&self, block: u32) -> String {
        match self.blocks {
            _ if block == 0 => "warm-up".to_string(),
            Blocks { least, most, .. } if least < most => format!("block {block} of {least} to {most}"),
            Blocks { most, .. } => format!("block {block} of {most}"),
        }
    }

    /// Clears the screen's own lines and hands over what was finished.
    pub fn end(self) -> Vec<Record> {
        if let Some(bar) = self.bar {
            bar.clear();
        }
        self.records
    }
}

/// Until when a run goes on that has run its least blocks; nothing where it has no others.
fn goes_on(blocks: Blocks) -> Option<&'static str> {
    let has_more = blocks.least < blocks.most;
    has_more.then(|| if blocks.plus_minus.is_some() { "until intervals are narrow" } else { "until its time is over" })
}

/// Steps of all blocks that are run at least, from block `first` on.
fn bar_steps(blocks: Blocks, first: u32, trials: u64) -> u64 {
    u64::from(blocks.least + 1 - first) * trials * STEPS
}

/// What there is to show so far.
fn table_of(records: &[Record], width: usize) -> String {
    if let Some(table) = sized::table(records, width) {
        return table;
    }
    let standings = standings(records);
    let mut rows = cells::rows(records, &standings);
    if table::tells_op_times(&rows, false) {
        // What went wrong here is said at the end of the run; until then the times are not known.
        let _ = cells::fill_in(&mut rows, records, &standings);
    }
    table::layout(&table::lines(&rows, false, table::Ranks::BeforeNames), width)
}
