//! What `kvfair levers` and `kvfair advise` show: a table, sentences, and the short form of an advice.

use anyhow::Result;

use super::columns::{Column, exported, exported_wide, value};
use super::exit::Exit;
use super::grid::Grid;
use super::levers::text::{advised, beside, level, not_advised, sentence, table, together};
use super::levers::{LeverCost, LeverReport, LeverRow};
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};
use kvfair_stats::levers::Gain;

/// What `kvfair levers` and `kvfair advise` show.
pub struct LeversShown {
    /// What was typed behind `kvfair`.
    pub command: Vec<String>,
    pub exit: Exit,
    pub report: LeverReport,
}

/// A lever, and what its ratios are of.
struct LeverLine {
    lever: LeverRow,
    cost: LeverCost,
}

/// A row a lever. A ratio is how many times as fast it is as before, or how many times less CPU it uses.
const COLUMNS: &[Column<LeverLine>] = &[
    exported("lever", |line| line.lever.name.as_str().into()),
    exported("change", |line| line.lever.change.as_str().into()),
    exported("ratio_of", |line| json::nested(&line.cost)),
    exported("alone_ratio", |line| value(line.lever.alone.map(|gain| gain.ratio.estimate))),
    exported("alone_ratio_low", |line| value(ends(line.lever.alone).map(|(low, _)| low))),
    exported("alone_ratio_high", |line| value(ends(line.lever.alone).map(|(_, high)| high))),
    exported("alone_effect", |line| json::nested(&line.lever.alone.and_then(|gain| gain.effect))),
    exported("last_ratio", |line| value(line.lever.last.map(|gain| gain.ratio.estimate))),
    exported("last_ratio_low", |line| value(ends(line.lever.last).map(|(low, _)| low))),
    exported("last_ratio_high", |line| value(ends(line.lever.last).map(|(_, high)| high))),
    exported("last_effect", |line| json::nested(&line.lever.last.and_then(|gain| gain.effect))),
    exported("costs", |line| line.lever.pays.as_str().into()),
    exported("not_in_all", |line| value(line.lever.not_in_all.as_deref())),
    exported("failed", |line| value(line.lever.failed.as_deref())),
    exported_wide("tried", |line| json::nested(&line.lever.tried)),
];

fn ends(gain: Option<Gain>) -> Option<(f64, f64)> {
    gain?.ratio.interval.bounds()
}

impl Shown for LeversShown {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn blocks(&self, medium: Medium) -> Result<Vec<Block>> {
        let report = &self.report;
        let headline = std::iter::once(Block::Headline(report.headline.clone()));
        Ok(headline.chain(if report.is_advice { advice(report, medium) } else { answer(report) }).collect())
    }

    fn csv(&self) -> Result<String> {
        let line = |lever: &LeverRow| LeverLine { lever: lever.clone(), cost: self.report.cost };
        Ok(csv(COLUMNS, &self.report.levers.iter().map(line).collect::<Vec<_>>(), false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::object(&self.command, exit, &self.report)
    }
}

/// Which levers are enough, and what each gains.
fn answer(report: &LeverReport) -> Vec<Block> {
    let left_out = report.left_out.iter().map(|lever| format!("left out: {}: {}", lever.name, lever.reason));
    let mut blocks = vec![
        Block::Paragraph(sentence(report)),
        Block::Table(Grid::of(table(report))),
        Block::Paragraph(together(report)),
        Block::Paragraph(beside(report)),
    ];
    blocks.extend(durability(report));
    blocks.push(Block::List(left_out.collect()));
    blocks
}

/// The levers that help, best first: what each gains, what it costs, and the command that shows it, which is not
/// wrapped.
fn advice(report: &LeverReport, medium: Medium) -> Vec<Block> {
    let advised = advised(report);
    match medium {
        _ if advised.is_empty() => vec![Block::Paragraph(not_advised(report))],
        Medium::Page => advised.into_iter().map(|one| Block::Subject(one.what, vec![one.command])).collect(),
        Medium::Terminal(_) => {
            let lines = advised.into_iter().enumerate().flat_map(|(place, one)| {
                let what = Block::Subject(format!("{}. {}", place + 1, one.what), Vec::new());
                [what, Block::Aside(format!("   {}", one.command))]
            });
            lines.collect()
        }
    }
}

fn durability(report: &LeverReport) -> Option<Block> {
    let first = report.durability.first()?;
    let others = report.durability.iter().filter(|row| row.level != first.level || row.failed.is_some());
    let subject = format!("apart, {} at other durability levels, in times of level {}:", report.base, first.level);
    Some(Block::Subject(subject, others.map(level).collect()))
}
