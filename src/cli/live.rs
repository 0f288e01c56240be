//! What a terminal shows while a run goes on: the table as far as it is, and a bar. Nothing at all elsewhere but a
//! line a block.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use super::complain;
use crate::lab::trial::Live;
use crate::report::{cells, table};
use crate::study::rounds::Event;
use crate::words::record::Record;

/// Steps of the bar for each trial: its share of the units in per cent.
const STEPS: u64 = 100;

pub struct Screen {
    bar: Option<ProgressBar>,
    blocks: u32,
    units: u64,
    block: u32,
    /// Trials finished, of all blocks.
    finished: u64,
    records: Vec<Record>,
}

impl Screen {
    /// For so many blocks of so many trials, each of so many units.
    pub fn new(blocks: u32, trials: usize, units: u64) -> Screen {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(u64::from(blocks) * trials as u64 * STEPS);
            let style = ProgressStyle::with_template("{msg}{prefix} {bar:30} {percent} %, about {eta} left");
            bar.set_style(style.expect("the template is valid").progress_chars("=> "));
            bar
        });
        Screen { bar, blocks, units: units.max(1), block: 1, finished: 0, records: Vec::new() }
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
                bar.set_prefix(format!(
                    "block {} of {}, {trial} of {trials}: {target}, {what}",
                    self.block, self.blocks
                ));
            }
            Event::Finished(record) => {
                self.finished += 1;
                self.records.push((*record).clone());
                if let Some(bar) = &self.bar {
                    bar.set_position(self.finished * STEPS);
                    bar.set_message(format!("{}\n", table::table(&cells::rows(&self.records), false)));
                }
            }
            Event::Block(block) => {
                self.block = block + 1;
                if self.bar.is_none() {
                    complain(&format!("block {block} of {} done", self.blocks));
                }
            }
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
