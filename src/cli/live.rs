//! What a terminal shows while a run goes on: the table as far as it is, and a bar. Nothing at all elsewhere but a
//! line a block.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use super::{complain, sized};
use crate::lab::trial::Live;
use crate::report::standing::standings;
use crate::report::{cells, table};
use crate::study::rounds::Event;
use crate::words::effort::Blocks;
use crate::words::record::Record;

/// Steps of the bar for each trial: its share of the units in per cent.
const STEPS: u64 = 100;

pub struct Screen {
    bar: Option<ProgressBar>,
    blocks: Blocks,
    units: u64,
    block: u32,
    /// Trials finished, of all blocks.
    finished: u64,
    records: Vec<Record>,
}

impl Screen {
    /// For so many blocks of so many trials, each of so many units.
    pub fn new(blocks: Blocks, trials: usize, units: u64) -> Screen {
        let first = if blocks.may_claim() { 0 } else { 1 };
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(u64::from(blocks.least) * trials as u64 * STEPS);
            let style = ProgressStyle::with_template("{msg}{prefix} {bar:30} {percent} %, about {eta} left");
            bar.set_style(style.expect("the template is valid").progress_chars("=> "));
            bar
        });
        Screen { bar, blocks, units: units.max(1), block: first, finished: 0, records: Vec::new() }
    }

    pub fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Live { trial, trials, target, live } => {
                let Some(bar) = &self.bar else { return };
                let (what, share) = match live {
                    Live::Starting => ("starting", 0),
                    Live::Working(units) => ("working", units * STEPS / self.units),
                    Live::Settling => ("settling", STEPS),
                    Live::Verifying(_) => ("checking answers", STEPS),
                };
                bar.set_position(self.finished * STEPS + share.min(STEPS));
                bar.set_prefix(format!("block {}, {trial} of {trials}: {target}, {what}", self.called(self.block)));
            }
            Event::Finished(record) => {
                self.finished += 1;
                self.records.push((*record).clone());
                if let Some(bar) = &self.bar {
                    bar.set_position(self.finished * STEPS);
                    bar.set_message(format!("{}\n", table_of(&self.records)));
                }
            }
            Event::Discarded(..) => {}
            Event::Block(block) => {
                self.block = block + 1;
                if self.bar.is_none() {
                    complain(&format!("block {} done", self.called(*block)));
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

    /// "3 of 6 to 10", "0, not counted".
    fn called(&self, block: u32) -> String {
        match self.blocks {
            _ if block == 0 => "0, not counted,".to_string(),
            Blocks { least, most, .. } if least < most => format!("{block} of {least} to {most}"),
            Blocks { most, .. } => format!("{block} of {most}"),
        }
    }

    /// Clears the screen's own lines and hands over what was finished.
    pub fn end(self) -> Vec<Record> {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        self.records
    }
}

/// What there is to show so far.
fn table_of(records: &[Record]) -> String {
    if let Some(table) = sized::table(records) {
        return table;
    }
    let standings = standings(records);
    let mut rows = cells::rows(records, &standings);
    if table::tells_op_times(&rows, false) {
        // What went wrong here is said at the end of the run; until then the times are not known.
        let _ = cells::fill_in(&mut rows, records, &standings);
    }
    table::table(&rows, false)
}
