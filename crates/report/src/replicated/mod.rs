//! What a page's manifest tells of its run, so that others can run it again and lay the runs side by side. A manifest
//! may come from anybody: it is checked before it is used.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use self::findings::PageFinding;
use super::claim_measure::ClaimMeasure;
use super::json::ClaimJson;
use kvfair_core::load::Load;
use kvfair_core::record::Machine;
use kvfair_core::trial::{Configuration, Durability, Seeds, Split, Transport, Via};

pub mod difference;
pub mod findings;
pub mod judge;
pub mod picture;
pub mod refute;

/// The form of a manifest.
pub const FORM: u32 = 2;
/// No page of kvfair's own has a manifest of more bytes: 1,000 targets with all their claims take less.
pub const MANIFEST_BYTES_MAX: usize = 64 << 20;
/// So many runs are laid side by side at the most.
pub const RUNS_MAX: usize = 1000;
/// A run of 100 targets has half as many claims: each is held against each of another run.
pub const CLAIMS_MAX: usize = 20_000;
/// Where the manifest begins in a page.
pub const BEGINS: &str = "<script type=\"application/json\" id=\"manifest\">";

/// One run, without its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageRun {
    pub form: u32,
    pub kvfair: String,
    pub method: u32,
    pub debug_build: bool,
    pub began: String,
    /// What was typed behind `kvfair`, without logins.
    pub command: Vec<String>,
    pub seeds: Seeds,
    pub blocks: usize,
    pub discarded_blocks: usize,
    pub durability: Durability,
    pub configuration: Configuration,
    pub clients: u32,
    pub job: PageJob,
    pub data: PageData,
    pub machine: PageMachine,
    pub results_sha256: Option<String>,
    pub targets: Vec<PageTarget>,
    pub claims: Vec<PageClaim>,
    /// Of a command that finds something else than what targets cost beside each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<PageFinding>,
    /// The same job on other machines, or on other days. They have none themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replications: Vec<PageRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageJob {
    pub name: String,
    pub unit: String,
    pub sizes: Vec<u64>,
    /// The size that the run had, in units, where it was asked for or chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtts_us: Vec<u64>,
    pub ops: u64,
    pub via: Via,
    pub split: Split,
    pub load: Option<Load>,
}

/// Where the data came from: what makes it again, or its digest alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageData {
    pub recipe: Option<String>,
    pub seed: Option<u64>,
    pub sha256: String,
    /// The name of a file of the user's, without its directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What tells one machine from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageMachine {
    pub cpu: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    pub kernel: String,
    pub os: String,
    pub filesystem: String,
}

impl From<&Machine> for PageMachine {
    fn from(machine: &Machine) -> PageMachine {
        let Machine { cpu, cpus, memory_bytes, kernel, os, filesystem, .. } = machine.clone();
        PageMachine { cpu, cpus, memory_bytes, kernel, os, filesystem }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageTarget {
    pub target: String,
    pub store: String,
    pub transport: Transport,
    pub version: String,
    pub client_library: String,
    pub units: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
    pub status: String,
    pub trials: usize,
    pub rank: Option<(usize, usize)>,
    pub seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
}

/// As `--json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageClaim {
    pub measure: ClaimMeasure,
    pub units: Option<u64>,
    pub order: Option<u64>,
    pub rtt_us: Option<u64>,
    pub part: Option<String>,
    pub swept: Option<String>,
    pub step: Option<u64>,
    pub less: String,
    pub more: String,
    pub ratio: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub preliminary: bool,
    pub noise_floor: Option<f64>,
    pub noisy: bool,
}

impl From<&ClaimJson<'_>> for PageClaim {
    fn from(claim: &ClaimJson<'_>) -> PageClaim {
        PageClaim {
            measure: claim.measure,
            units: claim.units,
            order: claim.order,
            rtt_us: claim.rtt_us,
            part: claim.part.map(|part| part.to_string()),
            swept: claim.swept.map(str::to_string),
            step: claim.step,
            less: claim.less.to_string(),
            more: claim.more.to_string(),
            ratio: claim.versus.ratio,
            low: claim.versus.low,
            high: claim.versus.high,
            preliminary: claim.versus.preliminary,
            noise_floor: claim.noise_floor,
            noisy: claim.noisy,
        }
    }
}

impl PageRun {
    /// The run of the page itself, and those beside it.
    pub fn all(&self) -> Vec<&PageRun> {
        std::iter::once(self).chain(&self.replications).collect()
    }

    /// The same run, whatever page it stands in.
    pub fn is_same_run(&self, other: &PageRun) -> bool {
        let told = |run: &PageRun| (run.began.clone(), run.seeds.clone(), run.results_sha256.clone());
        told(self) == told(other) && self.machine == other.machine
    }

    /// How many of its claims can be held against another run.
    pub fn claimed(&self) -> usize {
        match findings::kind(self) {
            Some(_) => self.findings.iter().filter(|finding| finding.is_claim()).count(),
            None => self.claims.len(),
        }
    }

    /// The command of kvfair that made it: `run` too where nothing was typed.
    pub fn made_by(&self) -> &str {
        self.command.first().map_or("run", String::as_str)
    }
}

/// How many of these runs' machines differ.
pub fn machines(runs: &[&PageRun]) -> usize {
    runs.iter().map(|run| &run.machine).collect::<BTreeSet<_>>().len()
}

/// One page of several: the runs of each, in their order, each once.
pub fn merged(pages: Vec<PageRun>) -> Result<PageRun, String> {
    let mut runs: Vec<PageRun> = Vec::new();
    for mut page in pages {
        let beside = std::mem::take(&mut page.replications);
        for run in std::iter::once(page).chain(beside) {
            if !runs.iter().any(|one| one.is_same_run(&run)) {
                runs.push(run);
            }
        }
    }
    if runs.is_empty() {
        return Err("there is no page".to_string());
    }
    let mut first = runs.remove(0);
    if let Some(what) = runs.iter().find_map(|run| unlike(&first, run)) {
        return Err(what);
    }
    if runs.len() >= RUNS_MAX {
        return Err(format!("{} runs are more than a page has room for: {RUNS_MAX}", runs.len() + 1));
    }
    first.replications = runs;
    Ok(first)
}

/// The first field in which two runs did not do the same.
pub fn unlike(one: &PageRun, other: &PageRun) -> Option<String> {
    fn told<T: std::fmt::Debug + PartialEq>(name: &str, one: &T, other: &T) -> Option<String> {
        (one != other).then(|| format!("another {name}: {one:?} and {other:?}"))
    }
    let kind = [one, other].map(|run| findings::kind(run).map(|kind| kind.command).unwrap_or_default());
    let searches = findings::kind(one).is_some_and(|kind| !kind.has_one_size);
    let of_one_size = || {
        told("size", &one.job.sizes, &other.job.sizes)
            .or_else(|| told("SHA-256 of the data", &one.data.sha256, &other.data.sha256))
            .or_else(|| told("load", &one.job.load, &other.job.load))
    };
    told("method", &one.method, &other.method)
        .or_else(|| told("command", &kind[0], &kind[1]))
        .or_else(|| told("job", &one.job.name, &other.job.name))
        .or_else(|| if searches { told("command", &refute::typed(one), &refute::typed(other)) } else { of_one_size() })
        .or_else(|| told("round-trip time", &one.job.rtts_us, &other.job.rtts_us))
        .or_else(|| told("way (--via)", &one.job.via, &other.job.via))
        .or_else(|| told("split", &one.job.split, &other.job.split))
        .or_else(|| told("number of clients", &one.clients, &other.clients))
        .or_else(|| told("durability level", &one.durability, &other.durability))
        .or_else(|| told("configuration", &one.configuration, &other.configuration))
}

/// The manifest of a page, checked.
pub fn parse(page: &str) -> Result<PageRun, String> {
    let mut parts = page.split(BEGINS);
    let (_, manifest, more) = (parts.next(), parts.next(), parts.next());
    let manifest = manifest.and_then(|rest| rest.split_once("</script>")).map(|(manifest, _)| manifest);
    let manifest = manifest.ok_or("it has no manifest: it is no page of `--html`, or was changed")?;
    if more.is_some() {
        return Err("it has two manifests: it was changed".to_string());
    }
    of_json(manifest)
}

/// What every form has.
#[derive(Deserialize)]
struct AnyForm {
    form: u32,
    #[serde(default)]
    kvfair: String,
}

/// A manifest by itself, checked.
pub fn of_json(manifest: &str) -> Result<PageRun, String> {
    if manifest.len() > MANIFEST_BYTES_MAX {
        return Err(format!("its manifest has more than {MANIFEST_BYTES_MAX} bytes"));
    }
    let is_none = |error: serde_json::Error| format!("its manifest cannot be read: {error}");
    let AnyForm { form, kvfair } = serde_json::from_str(manifest).map_err(is_none)?;
    if form != FORM {
        return Err(format!(
            "its manifest has form {form} (kvfair {kvfair}), and this kvfair reads form {FORM}\nhint: use a kvfair of \
             that version, or write the page again from its results: kvfair show RESULTS --html PAGE"
        ));
    }
    let run: PageRun = serde_json::from_str(manifest).map_err(is_none)?;
    checked(&run)?;
    if run.replications.len() >= RUNS_MAX {
        return Err(format!("its manifest has more than {RUNS_MAX} runs"));
    }
    for replication in &run.replications {
        checked(replication)?;
        if !replication.replications.is_empty() {
            return Err("its manifest has runs within runs".to_string());
        }
        if let Some(what) = unlike(&run, replication) {
            return Err(format!("its manifest lays unlike runs side by side: {what}"));
        }
    }
    Ok(run)
}

/// What kvfair itself would never write.
fn checked(run: &PageRun) -> Result<(), String> {
    let is_hex = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A program of the user's reads what it reads.
    let is_unknown = run.data.sha256.is_empty() && run.data.recipe.is_none();
    if !is_hex(&run.data.sha256) && !is_unknown {
        return Err("its manifest has no SHA-256 of the data".to_string());
    }
    let is_number = |number: Option<f64>| number.is_none_or(|number| number.is_finite() && number >= 0.0);
    if let Some(target) = run.targets.iter().find(|target| !is_number(target.seconds) || !is_number(target.cpu_us)) {
        return Err(format!("its manifest has no number where the seconds of {} should be", target.target));
    }
    let claims = run.claims.len().max(run.findings.len());
    if claims > CLAIMS_MAX {
        return Err(format!("its manifest has {claims} claims, and at most {CLAIMS_MAX} are read"));
    }
    let names: BTreeSet<&str> = run.targets.iter().map(|target| target.target.as_str()).collect();
    for claim in &run.claims {
        let about = format!("claim that {} costs less than {}", claim.less, claim.more);
        if let Some(unknown) = [&claim.less, &claim.more].into_iter().find(|name| !names.contains(name.as_str())) {
            return Err(format!("its manifest has a {about}, and no target {unknown}"));
        }
        if claim.less == claim.more {
            return Err(format!("its manifest has a {about}, which is no claim"));
        }
        if claim.ratio <= 0.0
            || ![Some(claim.ratio), claim.low, claim.high, claim.noise_floor].map(is_number)[..].iter().all(|is| *is)
        {
            return Err(format!("its manifest has a {about} without a ratio"));
        }
    }
    Ok(())
}
