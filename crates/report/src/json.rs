//! What `--json` prints of jobs, sweeps and rates: `run` says what was done and where. `verdict` and `claims` say what
//! may be said of it, `warnings` what to know before believing it. `rows` has the numbers; with `--all` it is `trials`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::beside;
use super::cells::Row;
use super::claim_measure::ClaimMeasure;
use super::claims::CLAIMED;
use super::columns::{self, FieldLine, PartStep, ROWS};
use super::exit::Exit;
use super::point::Beside;
use super::point::Point;
use super::render::json::{ExitJson, objects};
use super::run_report::RunReport;
use super::standing::{Standing, Standings};
use super::trials::{TRIALS, Trial};
use super::versus::Versus;
use super::warn::Warning;
use super::{swept, whole, words};
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::load::Swept;
use kvfair_core::part::Part;
use kvfair_core::record::{Machine, Record, Stream};
use kvfair_core::trial::{Configuration, Durability, JobSettings};

#[derive(serde::Serialize)]
struct Document<'a> {
    run: RunTold<'a>,
    verdict: Verdict<'a>,
    claims: &'a [ClaimJson<'a>],
    warnings: &'a [Warning],
    #[serde(flatten)]
    lines: JsonRows<'a>,
}

#[derive(serde::Serialize)]
struct RunTold<'a> {
    /// What was typed behind `kvfair`, without logins.
    command: &'a [String],
    kvfair: &'a str,
    method: u32,
    debug_build: bool,
    began: &'a str,
    /// False where the run was still going on when the file was read, or was cut off.
    finished: bool,
    durability: Durability,
    configuration: Configuration,
    clients: u32,
    /// The round-trip times of `--rtt`.
    rtts_us: &'a [u64],
    job: &'a JobSettings,
    data: &'a Stream,
    machine: &'a Machine,
}

#[derive(serde::Serialize)]
struct Verdict<'a> {
    #[serde(flatten)]
    end: ExitJson,
    headline: String,
    sentence: &'a str,
    /// How many targets came to which status: "right", "wrong", "failed".
    targets: BTreeMap<&'static str, usize>,
    blocks: usize,
    discarded_blocks: usize,
    /// Whether times may be ranked.
    ranked: bool,
    noisy: bool,
    same_store_twice: Vec<Twice<'a>>,
}

/// How far a target that was run twice in each block came out from itself.
#[derive(serde::Serialize)]
struct Twice<'a> {
    target: &'a str,
    #[serde(flatten)]
    versus: Versus,
}

/// A difference that would come out the same tomorrow: how many times as much the one cost as the other.
#[derive(serde::Serialize)]
pub struct ClaimJson<'a> {
    pub measure: ClaimMeasure,
    /// The job's size, where a run has several.
    pub units: Option<u64>,
    /// The order of the n-grams, where a run has several.
    pub order: Option<u64>,
    /// The round-trip time, where a run has several.
    pub rtt_us: Option<u64>,
    pub part: Option<Part>,
    pub swept: Option<&'static str>,
    pub step: Option<u64>,
    pub less: &'a str,
    pub more: &'a str,
    #[serde(flatten)]
    pub versus: Versus,
    /// What the ratio must exceed, as a share beyond 1.
    pub noise_floor: Option<f64>,
    /// Only the near end of the interval may be told: "at least 36x".
    pub noisy: bool,
}

/// What may be said of the numbers.
pub struct ReportJson<'a> {
    pub exit: Exit,
    pub claims: Vec<ClaimJson<'a>>,
    pub warnings: Vec<Warning>,
    pub sentence: String,
}

/// The numbers.
pub enum JsonRows<'a> {
    Rows(&'a [FieldLine]),
    Trials(&'a [Trial]),
}

impl Serialize for JsonRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            JsonRows::Rows(lines) => map.serialize_entry("rows", &objects(ROWS, lines))?,
            JsonRows::Trials(trials) => map.serialize_entry("trials", &objects(TRIALS, trials))?,
        }
        map.end()
    }
}

/// The object, as text.
pub fn document(report: &RunReport<'_>, told: &ReportJson<'_>, lines: JsonRows<'_>) -> Result<String> {
    let first = report.records.first().context("no trials")?;
    let standings = &report.standings;
    let repeated = standings.repeated.iter();
    let document = Document {
        run: run(first, report.records),
        verdict: Verdict {
            end: told.exit.into(),
            headline: words::headline(report.records, standings),
            sentence: &told.sentence,
            targets: targets(&report.rows),
            blocks: standings.blocks(),
            discarded_blocks: standings.counted.discarded.len(),
            ranked: standings.may_rank(),
            noisy: standings.is_noisy(),
            same_store_twice: repeated.map(|one| Twice { target: one.target, versus: one.versus() }).collect(),
        },
        claims: &told.claims,
        warnings: &told.warnings,
        lines,
    };
    Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
}

fn run<'r>(first: &'r Record, records: &[Record]) -> RunTold<'r> {
    RunTold {
        command: &first.run.command,
        kvfair: &first.kvfair,
        method: first.method,
        debug_build: first.debug_build,
        began: &first.run.began,
        finished: !first.is_under_way && whole::cut_off(records).is_none(),
        durability: first.durability,
        configuration: first.configuration,
        clients: first.clients,
        rtts_us: &first.run.rtts_us,
        job: &first.job,
        data: &first.stream,
        machine: &first.machine,
    }
}

fn targets(rows: &[Row]) -> BTreeMap<&'static str, usize> {
    let mut targets = BTreeMap::new();
    rows.iter().for_each(|row| *targets.entry(columns::kind(&row.status)).or_default() += 1);
    targets
}

/// What is claimed of whole jobs: each pair of a group by seconds, and each pair by CPU for an op. `step` is the size
/// or the round-trip time, where a run has several.
pub fn claims<'a>(report: &'a RunReport<'_>, step: PartStep) -> Vec<ClaimJson<'a>> {
    if report.is_swept { swept_claims(&report.points) } else { claims_of_rows(&report.rows, &report.standings, step) }
}

fn claims_of_rows<'a>(rows: &'a [Row], standings: &Standings<'_>, step: PartStep) -> Vec<ClaimJson<'a>> {
    if standings.blocks() < CLAIM_BLOCKS as usize || standings.refused.is_some() {
        return Vec::new();
    }
    let stores: Vec<&Row> = rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect();
    let mut claims = Vec::new();
    for one in &stores {
        let Some(standing) = standings.groups.get(&one.group) else { continue };
        let others = stores.iter().filter(|other| other.group == one.group);
        claims.extend(others.filter_map(|other| claim(ClaimMeasure::Seconds, standing, one, other, step)));
    }
    for cost in &CLAIMED {
        let Some(standing) = (cost.standing)(rows, standings) else { continue };
        for one in &stores {
            claims.extend(stores.iter().filter_map(|other| claim(cost.measure, &standing, one, other, step)));
        }
    }
    claims
}

fn claim<'a>(
    measure: ClaimMeasure,
    standing: &Standing<'_>,
    less: &'a Row,
    more: &'a Row,
    step: PartStep,
) -> Option<ClaimJson<'a>> {
    if !standing.is_less(&less.target, &more.target) {
        return None;
    }
    let bar = standing.bar(&more.target, &less.target);
    Some(ClaimJson {
        measure,
        units: step.units,
        order: step.order,
        rtt_us: step.rtt_us,
        part: None,
        swept: None,
        step: None,
        less: &less.target,
        more: &more.target,
        versus: standing.versus(&more.target, &less.target)?,
        noise_floor: bar.map(|bar| bar.floor),
        noisy: bar.is_some_and(|bar| bar.is_noisy),
    })
}

/// What is claimed of a sweep: at its last step, beside the best.
fn swept_claims(points: &[Point]) -> Vec<ClaimJson<'_>> {
    let of = |measure: ClaimMeasure, of: fn(&Point) -> Option<Beside>| {
        let claimed = beside::claimed(points, of).into_iter();
        claimed.map(move |(best, point, beside)| ClaimJson {
            measure,
            units: None,
            order: None,
            rtt_us: None,
            part: Some(point.part),
            swept: Some(swept::words(point.swept).name),
            step: Some(point.step()),
            less: &best.target,
            more: &point.target,
            versus: beside.versus,
            noise_floor: beside.noise_floor,
            noisy: beside.noisy,
        })
    };
    let is_rate = points.iter().any(|point| point.swept == Swept::Rate);
    let time = if is_rate { ClaimMeasure::ResponseP99 } else { ClaimMeasure::Seconds };
    of(time, |point| point.beside).chain(of(ClaimMeasure::Cpu, |point| point.cpu_beside)).collect()
}
