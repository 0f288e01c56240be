//! What a terminal shows while a run goes on: the table as far as it is, and a bar. Nothing at all elsewhere but a
//! line a block.

use super::terminal::{self, ProgressLine};
use super::{complain, sized};
use crate::harness::timing::End;
use crate::harness::trial::Live;
use crate::model::disturbed::Disturbed;
use crate::model::effort::Blocks;
use crate::model::noise::Yardstick;
use crate::model::record::Record;
use crate::report::disturbed_block::disturbed;
use crate::report::run_report::RunReport;
use crate::report::standing::Counted;
use crate::report::table;
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
    /// Trials that the machine disturbed: how many, and the last one in words.
    discarded: (usize, String),
    /// The table that is shown, and how many of its rows have numbers.
    shown: (usize, String),
}

impl Screen {
    /// For so many blocks of so many trials, each of so many units, until `end` at the latest.
    pub fn new(blocks: Blocks, trials: usize, units: u64, end: Option<End>) -> Screen {
        let first = u32::from(!blocks.may_claim());
        let bar = ProgressLine::new(bar_steps(blocks, first, trials as u64), goes_on(blocks), end);
        // A line that fills the screen runs into the next one where the terminal is made wider.
        let width = terminal::columns_of_screen().map_or_else(terminal::width, table::on_columns) - 1;
        Screen {
            bar,
            width,
            blocks,
            units: units.max(1),
            block: first,
            finished: 0,
            records: Vec::new(),
            discarded: (0, String::new()),
            shown: (0, String::new()),
        }
    }

    pub fn tell(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Live { trial, trials, target, live } => {
                let Some(bar) = &self.bar else { return };
                let (what, share) = match live {
                    Live::Starting => ("starting", 0),
                    Live::Working(units) => ("working", units * STEPS / self.units),
                    Live::FinalFlush => ("final flush", STEPS),
                    Live::Asking => ("asking", STEPS),
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
                self.draw();
            }
            RunEvent::Discarded(record, what) => {
                self.discarded = (self.discarded.0 + 1, discarded(record, what));
                match self.bar {
                    Some(_) => self.draw(),
                    None => complain(&self.discarded.1),
                }
            }
            RunEvent::Block(block) => {
                self.block = block + 1;
                if self.bar.is_none() {
                    complain(&format!("{} done", self.called(*block)));
                }
            }
        }
    }

    /// The table as far as it is, and why a trial was discarded, above the bar.
    fn draw(&mut self) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(self.finished * STEPS);
        // The first block that counts begins with fewer rows than the warm-up has.
        let table = table_of(&self.records, self.width);
        if table.0 >= self.shown.0 {
            self.shown = table;
        }
        let mut text = fitted(&self.shown.1, terminal::lines_of_screen());
        let of_trials = match &self.discarded {
            (0, _) => None,
            (trials, last) => Some(format!("discarded trials, which are run again: {trials}; the last: {last}")),
        };
        for words in [discarded_blocks(&self.records), of_trials].into_iter().flatten() {
            text += &format!("{}\n", table::wrap(&words, self.width).join("\n"));
        }
        bar.set_message(&text);
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
            Blocks { least, most, .. } if block > most => {
                let wanted = if least < most { format!("{least} to {most}") } else { most.to_string() };
                format!("block {block}, for {wanted} that are not disturbed")
            }
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

/// "redis: discarded: other programs used 94 % of the CPU".
pub fn discarded(record: &Record, what: &Disturbed) -> String {
    format!("{}: discarded: {what}", record.target.label)
}

/// How many blocks were disturbed so far, whether they count all the same, and how the last one was.
fn discarded_blocks(records: &[Record]) -> Option<String> {
    let counted = Counted::of(records);
    let blocks = &counted.discarded;
    let last = blocks.last()?;
    let trials: Vec<&Record> = records.iter().filter(|record| record.block == *last).collect();
    let why = disturbed(&trials, Yardstick::of(records.iter().map(|record| &record.noise)))?;
    let then = if counted.is_noisy() { "all are used" } else { "run again" };
    Some(format!("disturbed blocks: {}, {then}; the last, block {last}: {why}", blocks.len()))
}

/// Lines below the table: why a trial was discarded, and the bar.
const BELOW: usize = 6;

/// As many lines of a table as the screen has room for, and how many more there are.
fn fitted(table: &str, screen: Option<u16>) -> String {
    let lines: Vec<&str> = table.lines().collect();
    let room = screen.map_or(usize::MAX, |lines| usize::from(lines).saturating_sub(BELOW).max(2));
    if lines.len() <= room {
        return format!("{}\n", table.trim_end());
    }
    let shown = &lines[..room - 1];
    format!("{}\n and {} more lines\n", shown.join("\n"), lines.len() - shown.len())
}

/// How many rows have numbers so far, and what there is to show.
fn table_of(records: &[Record], width: usize) -> (usize, String) {
    let mut report = RunReport::of_rows(records);
    let numbered = report.rows.iter().filter(|row| row.numbers.is_some()).count();
    if let Some(table) = sized::table(records, width) {
        return (numbered, table);
    }
    if table::tells_op_times(&report.rows, false) {
        // What went wrong here is said at the end of the run; until then the times are not known.
        let _ = report.fill_in();
    }
    (numbered, table::layout(&table::lines(&report.rows, table::TableColumns::Usual, table::Ranks::BeforeNames), width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_beyond_the_most_says_why_it_is_run() {
        let blocks = Blocks { least: 6, most: 10, plus_minus: Some(0.05) };
        let screen = Screen::new(blocks, 2, 100, None);
        assert_eq!(screen.called(10), "block 10 of 6 to 10");
        assert_eq!(screen.called(15), "block 15, for 6 to 10 that are not disturbed");
        let exactly = Screen { blocks: Blocks::exactly(4), ..screen };
        assert_eq!(exactly.called(5), "block 5, for 4 that are not disturbed");
    }

    #[test]
    fn a_table_has_no_more_lines_than_the_screen() {
        let table = (0..30).map(|row| format!(" row {row}\n")).collect::<String>();
        assert_eq!(fitted(&table, None), table);
        assert_eq!(fitted(&table, Some(40)), table);
        let cut = fitted(&table, Some(24));
        assert_eq!(cut.lines().count(), 24 - BELOW);
        assert!(cut.ends_with(" row 16\n and 13 more lines\n"), "{cut}");
        assert_eq!(fitted(&table, Some(1)).lines().count(), 2);
    }
}
