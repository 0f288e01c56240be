//! Versions of a store that ran in the same blocks: what each costs of the first one, and between which neighbours a
//! step is claimed. The steps are planned contrasts, judged together.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;

use super::chart::palette::Inks;
use super::chart::{Chart, Plot, PlotLevel, PlotLine, PlotPoint, PlotSteps, notes_of_steps};
use super::claim_measure::ClaimMeasure;
use super::exit::Exit;
use super::grid::Grid;
use super::json::ClaimJson;
use super::levers::failure;
use super::render::{Block, Medium, Shown, json};
use super::standing::{self, Counted};
use super::table::TableLine;
use super::versus::{Versus, claimed, in_a_sentence, too_few, versus};
use super::{aa, costs};
use kvfair_core::record::Record;
use kvfair_core::units;
use kvfair_stats::floor::{AaNoise, Bar};
use kvfair_stats::paired::{LogRatios, Ratio};
use kvfair_stats::planned::{self, Costs, JudgedContrast};
use kvfair_stats::rank::{Claim, LEVEL, claim};
use kvfair_stats::sample::Sample;

#[cfg(test)]
mod tests;

/// What steps are claimed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionCost {
    Seconds,
    /// CPU of client and server: times are not told, since the machine disturbed most blocks, or the durability level
    /// cannot hold.
    CpuSeconds,
}

/// All that is printed, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct VersionsReport {
    pub job: String,
    pub cost: VersionCost,
    pub blocks: usize,
    pub versions: Vec<VersionRow>,
    /// Between neighbours that have numbers, in order.
    pub steps: Vec<VersionStep>,
    /// Why steps are not judged; nothing where they are.
    pub unjudged: Option<String>,
    /// What no difference exceeds that the same version shows with itself.
    #[serde(skip)]
    pub noise: AaNoise,
}

#[derive(Debug, Serialize)]
pub struct VersionRow {
    pub target: String,
    /// As the server itself told it: "redis 7.0.15".
    pub version: Option<String>,
    /// How it is called: by its version, or by its target where two are of one version.
    pub name: String,
    pub seconds: Option<f64>,
    /// Of the first version that has numbers; none of that one itself.
    pub seconds_versus_first: Option<Versus>,
    pub cpu_versus_first: Option<Versus>,
    /// Why it has no number.
    pub failed: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct VersionStep {
    /// Places among the versions, from 0.
    pub from: usize,
    pub to: usize,
    /// What the later one costs of what the earlier one costs.
    pub versus: Versus,
    pub blocks: usize,
    /// Of "no step", adjusted for all of them.
    pub p: Option<f64>,
    pub claim: Option<Claim>,
    /// Which of the two costs less was another one for another seed's data, so that nothing is claimed.
    pub depends_on_data: bool,
    #[serde(skip)]
    ratio: Ratio,
    #[serde(skip)]
    bar: Option<Bar>,
}

/// The report of a run of these targets, in this order: their labels as records have them.
pub fn report(records: &[Record], labels: &[String]) -> VersionsReport {
    let counted = Counted::of(records);
    let is_refused = standing::standings(records).refused.is_some();
    let cost = if is_refused || counted.is_noisy() { VersionCost::CpuSeconds } else { VersionCost::Seconds };
    let (seconds, cpu) =
        (Seen::of(records, &counted, labels, Record::cost), Seen::of(records, &counted, labels, costs::cpu_s));
    let seen = if cost == VersionCost::Seconds { &seconds } else { &cpu };
    let steps = seen.steps(&counted);
    let (seconds_first, cpu_first) = (seconds.versus_first(), cpu.versus_first());
    let mut versions: Vec<VersionRow> = labels
        .iter()
        .enumerate()
        .map(|(place, label)| VersionRow {
            target: label.clone(),
            version: version(records, label),
            name: label.clone(),
            seconds: seconds.costs.get(&place).and_then(median),
            seconds_versus_first: seconds_first.get(&place).copied(),
            cpu_versus_first: cpu_first.get(&place).copied(),
            failed: why_not(records, label).filter(|_| !seen.costs.contains_key(&place)),
        })
        .collect();
    name(&mut versions);
    let unjudged = match () {
        () if steps.iter().all(|step| step.p.is_some() && step.bar.is_some()) => None,
        () if steps.iter().any(|step| step.p.is_none()) => Some(too_few(counted.blocks.len(), "block")),
        () => Some("no version was run twice in each block (A/A control), so the noise floor is unknown".to_string()),
    };
    VersionsReport {
        job: records.first().map_or_else(String::new, |record| record.job.name.clone()),
        cost,
        blocks: counted.blocks.len(),
        versions,
        steps,
        unjudged,
        noise: seen.noise.clone(),
    }
}

/// By one cost, with versions by their places.
struct Seen {
    costs: Costs<usize>,
    lengths_s: BTreeMap<usize, f64>,
    noise: AaNoise,
}

impl Seen {
    fn of(
        records: &[Record],
        counted: &Counted,
        labels: &[String],
        cost: impl Fn(&Record) -> Option<f64> + Copy + Sync,
    ) -> Seen {
        let place = |label: &str| labels.iter().position(|one| one == label);
        let costs = standing::by_target(records, counted, cost, |label| place(label).is_some());
        let lengths_s = standing::lengths_s(records, counted).into_iter();
        Seen {
            costs: costs.into_iter().filter_map(|(label, costs)| Some((place(label)?, costs))).collect(),
            lengths_s: lengths_s.filter_map(|(label, length_s)| Some((place(label)?, length_s))).collect(),
            noise: aa::noise(records, counted, cost),
        }
    }

    /// Of neighbours among those that have numbers.
    fn steps(&self, counted: &Counted) -> Vec<VersionStep> {
        let places: Vec<usize> = self.costs.keys().copied().collect();
        let contrasts: Vec<(usize, usize)> = places.windows(2).map(|pair| (pair[1], pair[0])).collect();
        let judged = planned::judged(&contrasts, &self.costs, &self.lengths_s, &self.noise, LEVEL);
        judged.into_iter().map(|step| self.step(&step, counted)).collect()
    }

    fn step(&self, seen: &JudgedContrast<usize>, counted: &Counted) -> VersionStep {
        let bar = seen.bar.map(|bar| self.beyond_far_end(bar));
        let claim = seen.claim.and(bar).and_then(|bar| claim(seen.ratio, bar));
        let depends_on_data = claim.is_some_and(|claim| !self.holds_for_each(seen, claim, counted));
        VersionStep {
            from: seen.other,
            to: seen.one,
            versus: seen.ratio.into(),
            blocks: seen.blocks,
            p: seen.p,
            claim: claim.filter(|_| !depends_on_data),
            depends_on_data,
            ratio: seen.ratio,
            bar,
        }
    }

    /// A step is the heading of a page: it lies beyond all that the same version may differ from itself.
    fn beyond_far_end(&self, bar: Bar) -> Bar {
        let far_ends = self.noise.controls().iter().filter_map(|control| control.interval.far_end());
        Bar { floor: far_ends.fold(bar.floor, f64::max), ..bar }
    }

    /// Whether the claim points the same way in the blocks of each seed's data.
    fn holds_for_each(&self, seen: &JudgedContrast<usize>, claim: Claim, counted: &Counted) -> bool {
        let kinds: BTreeSet<u64> = counted.seeds.values().copied().collect();
        let of = |place: usize, kind: u64| {
            let is_of = |block: &u32| counted.seeds.get(block) == Some(&kind);
            self.costs[&place].iter().filter(|(block, _)| is_of(block)).map(|(block, cost)| (*block, *cost)).collect()
        };
        kinds.into_iter().all(|kind| {
            let costs: Costs<usize> = [seen.one, seen.other].map(|place| (place, of(place, kind))).into();
            let ratio = planned::paired(seen.one, seen.other, &costs).map(|ratios| ratios.ratio().estimate);
            ratio.is_none_or(|ratio| claim.is_shown_by(ratio))
        })
    }

    fn versus_first(&self) -> BTreeMap<usize, Versus> {
        let Some(first) = self.costs.keys().next().copied() else { return BTreeMap::new() };
        let others = self.costs.keys().filter(|place| **place != first);
        let ratios = others.filter_map(|place| Some((*place, planned::paired(*place, first, &self.costs)?)));
        ratios.map(|(place, ratios): (usize, LogRatios)| (place, ratios.ratio().into())).collect()
    }
}

fn median(costs: &BTreeMap<u32, f64>) -> Option<f64> {
    Some(Sample::new(costs.values().copied().collect())?.median())
}

/// What the store said that it is, behind its name where the version does not begin with one.
pub fn version(records: &[Record], label: &str) -> Option<String> {
    let record = records.iter().find(|record| record.target.label == label && record.store.is_some())?;
    let version = &record.store.as_ref()?.version;
    let is_named = version.starts_with(|letter: char| letter.is_alphabetic());
    Some(if is_named { version.clone() } else { format!("{} {version}", record.target.store) })
}

fn why_not(records: &[Record], label: &str) -> Option<String> {
    records.iter().filter(|record| record.target.label == label).find_map(failure)
}

/// By their versions, as far as these differ.
fn name(rows: &mut [VersionRow]) {
    let told: Vec<&String> = rows.iter().filter_map(|row| row.version.as_ref()).collect();
    let differ = told.iter().collect::<BTreeSet<_>>().len() == told.len();
    for row in rows.iter_mut().filter(|_| differ) {
        row.name = row.version.clone().unwrap_or_else(|| row.target.clone());
    }
}

impl VersionsReport {
    /// The same records with each target called by its version, since paths of programs are too long for a table.
    pub fn named(&self, records: &[Record]) -> Vec<Record> {
        let mut records = records.to_vec();
        for record in &mut records {
            if let Some(row) = self.versions.iter().find(|row| row.target == record.target.label) {
                record.target.label.clone_from(&row.name);
            }
        }
        records
    }
}

/// A run of versions: its tables, and what they tell of versions below. As JSON there is one document, the versions.
pub struct VersionsShown<'a> {
    pub run: &'a dyn Shown,
    pub report: &'a VersionsReport,
    /// What was typed behind `kvfair`.
    pub command: &'a [String],
}

impl Shown for VersionsShown<'_> {
    fn exit(&self) -> Exit {
        self.run.exit()
    }

    fn blocks(&self, medium: Medium) -> Result<Vec<Block>> {
        Ok(self.run.blocks(medium)?.into_iter().chain(self.report.blocks(medium)).collect())
    }

    fn csv(&self) -> Result<String> {
        self.run.csv()
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::object(self.command, exit, self.report)
    }
}

impl VersionStep {
    /// The largest step that may still be there unseen, as a share.
    fn unseen(&self) -> Option<f64> {
        Some(self.ratio.interval.far_end()?.max(self.bar?.floor))
    }

    /// "1.12x [1.08-1.16]"; of a noisy run only what is sure: "at least 1.1x".
    fn ratio_in_words(&self) -> String {
        claimed(self.versus, self.bar.is_some_and(|bar| bar.is_noisy))
    }
}

impl VersionsReport {
    /// A sentence for each step, in order.
    pub fn sentences(&self) -> Vec<String> {
        let failed = self
            .versions
            .iter()
            .filter_map(|row| Some(format!("{} has no number: {}.", row.name, row.failed.as_ref()?)));
        let steps = self.steps.iter().map(|step| self.sentence(step));
        let alone = (self.steps.is_empty())
            .then(|| "Fewer than two versions have numbers: there is no step to see.".to_string());
        failed.chain(steps).chain(alone).collect()
    }

    fn sentence(&self, step: &VersionStep) -> String {
        let (from, to) = (&self.versions[step.from].name, &self.versions[step.to].name);
        if step.claim.is_some() {
            let (takes, as_what, cost) = match self.cost {
                VersionCost::Seconds => ("takes", "as long as", "seconds"),
                VersionCost::CpuSeconds => ("uses", "as much CPU as", "CPU"),
            };
            let ratio = step.ratio_in_words();
            let ratio = in_a_sentence(&ratio, &format!("{as_what} {from}"));
            return format!("{to} {takes} {ratio} ({cost} of the whole {}).", self.job);
        }
        let between = format!("From {from} to {to}");
        match (&self.unjudged, step.unseen()) {
            (Some(why), _) => format!("{between} nothing can be said: {why}."),
            _ if step.depends_on_data => format!("{between}: which is faster depends on the data."),
            (None, Some(unseen)) => {
                format!("{between} no step is seen: one of {} or more is ruled out.", bound(unseen))
            }
            (None, None) => format!("{between} no step is seen."),
        }
    }

    /// The claims as pages and other programs have them.
    pub fn claims(&self) -> Vec<ClaimJson<'_>> {
        let measure = match self.cost {
            VersionCost::Seconds => ClaimMeasure::Seconds,
            VersionCost::CpuSeconds => ClaimMeasure::Cpu,
        };
        let of = |step: &VersionStep| {
            let [from, to] = [step.from, step.to].map(|place| self.versions[place].target.as_str());
            let (less, more, ratio) = match step.claim? {
                Claim::Slower => (from, to, step.ratio),
                Claim::Faster => (to, from, step.ratio.inverse()),
            };
            Some(ClaimJson {
                measure,
                units: None,
                order: None,
                rtt_us: None,
                part: None,
                swept: None,
                step: None,
                less,
                more,
                versus: ratio.into(),
                noise_floor: step.bar.map(|bar| bar.floor),
                noisy: step.bar.is_some_and(|bar| bar.is_noisy),
            })
        };
        self.steps.iter().filter_map(of).collect()
    }

    /// The claims alone, for a heading.
    pub fn heading(&self) -> String {
        let claimed: Vec<String> =
            self.steps.iter().filter(|step| step.claim.is_some()).map(|step| self.sentence(step)).collect();
        match (claimed.is_empty(), &self.unjudged) {
            (false, _) => claimed.join(" "),
            (true, Some(why)) => format!("Nothing can be said of steps between versions: {why}."),
            (true, None) if self.steps.is_empty() => self.sentences().join(" "),
            (true, None) => format!("No step is seen between {} versions.", self.steps.len() + 1),
        }
    }

    /// What stands in the table, the headings first. A terminal has no room for targets.
    pub fn lines(&self, with_targets: bool) -> Vec<TableLine> {
        let headings = ["version", "seconds", "vs first", "CPU vs first", "step"];
        let headings = headings.into_iter().chain(with_targets.then_some("target"));
        let mut lines = vec![TableLine::Cells(headings.map(str::to_string).collect())];
        for (place, row) in self.versions.iter().enumerate() {
            if let Some(why) = &row.failed {
                lines.push(TableLine::Reason(row.name.clone(), format!("no number: {why}")));
                continue;
            }
            let told = |seen: Option<Versus>| seen.map_or_else(|| "base".to_string(), versus);
            let mut cells = vec![
                row.name.clone(),
                row.seconds.map_or_else(|| "-".to_string(), units::seconds),
                told(row.seconds_versus_first),
                told(row.cpu_versus_first),
                self.step_in_words(place),
            ];
            cells.extend(with_targets.then(|| row.target.clone()));
            lines.push(TableLine::Cells(cells));
        }
        lines
    }

    /// Between the version before and this one.
    fn step_in_words(&self, place: usize) -> String {
        let Some(step) = self.steps.iter().find(|step| step.to == place) else { return String::new() };
        let (more, less) = if self.cost == VersionCost::Seconds { ("slower", "faster") } else { ("more", "less") };
        match step.claim {
            Some(Claim::Slower) => format!("{} {more}", step.ratio_in_words()),
            Some(Claim::Faster) => format!("{} {less}", step.ratio_in_words()),
            None if self.unjudged.is_some() => "cannot be said".to_string(),
            None => "none seen".to_string(),
        }
    }

    /// What stands below the tables of the run.
    fn blocks(&self, medium: Medium) -> Vec<Block> {
        let table = |lines| Block::Table(Grid::of(lines));
        let sentences = Block::List(self.sentences());
        if medium == Medium::Page {
            return vec![table(self.lines(true)), sentences];
        }
        let by = if self.cost == VersionCost::Seconds { "" } else { " Times cannot be told here: steps are of CPU." };
        let heading = format!("versions in their order, {} blocks; the first is the base.{by}", self.blocks);
        let named = self.versions.iter().filter(|row| row.name != row.target);
        let named = named.map(|row| format!("\n {}: {}", row.name, row.target)).collect::<String>();
        vec![Block::Gap, Block::Aside(format!("{heading}{named}")), table(self.lines(false)), sentences]
    }

    /// The picture: ratios to the first version, and levels between the claimed steps.
    pub fn chart(&self) -> Chart {
        let first = self.versions.iter().position(|row| row.failed.is_none());
        let point = |(place, row): (usize, &VersionRow)| match (&row.failed, self.versus_first(row)) {
            (Some(_), _) => None,
            (None, Some(seen)) => {
                let span = seen.low.zip(seen.high).map(|(low, high)| [low, high]);
                Some(PlotPoint { number: seen.ratio, span, doubt: "" })
            }
            (None, None) => (first == Some(place)).then(|| PlotPoint::plain(1.0)),
        };
        let points: Vec<Option<PlotPoint>> = self.versions.iter().enumerate().map(point).collect();
        let floor = self.noise.floor();
        let failed = self.versions.iter().enumerate().filter(|(_, row)| row.failed.is_some());
        let steps = PlotSteps {
            levels: self.levels(&points),
            failed: failed.map(|(place, _)| place).collect(),
            band: (floor > 0.0).then(|| (1.0 / (1.0 + floor), 1.0 + floor)),
            ..PlotSteps::default()
        };
        let what = if self.cost == VersionCost::Seconds { "times as long" } else { "times as much CPU" };
        let ink = Inks::of([(self.job.as_str(), false)].into_iter()).ink(&self.job);
        let line = PlotLine { target: self.job.clone(), remark: String::new(), ink, points };
        let names = self.versions.iter().map(|row| row.name.clone()).collect();
        let across = "versions in the order in which they were named";
        let plot = Plot::of_steps(&format!("{what} as the first"), across, names, line, steps);
        let blocks = format!("{} blocks; ratios compare trials of the same block.", self.blocks);
        let words = [
            &blocks,
            "Bars: 95 % intervals against the first version.",
            "Grey band: the same version run twice may differ by as much.",
            "A step is drawn only where it is claimed between neighbours, and a line only where the interval leaves out 1.",
        ];
        let notes = notes_of_steps(&plot, &words);
        Chart { title: "Versions".to_string(), plots: vec![plot], notes }
    }

    fn versus_first(&self, row: &VersionRow) -> Option<Versus> {
        match self.cost {
            VersionCost::Seconds => row.seconds_versus_first,
            VersionCost::CpuSeconds => row.cpu_versus_first,
        }
    }

    /// From one claimed step to the next, at the mean of the ratios there: 1 before the first step. Behind it no line
    /// is drawn of a version that may cost as much as the first one.
    fn levels(&self, points: &[Option<PlotPoint>]) -> Vec<PlotLevel> {
        if self.unjudged.is_some() || self.steps.is_empty() {
            return Vec::new();
        }
        let begins = |place: &usize| self.steps.iter().any(|step| step.to == *place && step.claim.is_some());
        let first = (1..points.len()).find(begins).unwrap_or(points.len());
        let raised: Vec<usize> = (first..points.len()).filter(|place| differs(points[*place])).collect();
        let lines = raised.chunk_by(|one, other| other - one == 1 && !begins(other)).map(|line| level(points, line));
        [PlotLevel { first: 0, last: first - 1, number: 1.0 }].into_iter().chain(lines).collect()
    }
}

/// Whether its interval has no room for 1.
fn differs(point: Option<PlotPoint>) -> bool {
    point.and_then(|point| point.span).is_some_and(|[low, high]| low > 1.0 || high < 1.0)
}

fn level(points: &[Option<PlotPoint>], places: &[usize]) -> PlotLevel {
    let logs = places.iter().filter_map(|place| Some(libm::log(points[*place]?.number)));
    let number = libm::exp(logs.sum::<f64>() / places.len() as f64);
    PlotLevel { first: places[0], last: places[places.len() - 1], number }
}

/// A bound that is at least `share`: "12 %", "0.8 %".
fn bound(share: f64) -> String {
    let percent = share * 100.0;
    format!("{} %", units::at_most(percent, usize::from(percent < 10.0)))
}
