//! `kvfair compare`: two results files, or two targets in one run, held against each other.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use super::args::{Compare, Exec, Forms, How, RunArgs};
use super::found::write_page;
use super::measure::{measure, or_lost};
use super::paged::{self, PageFindings};
use super::shown::{print_records, print_report, read};
use super::{Exit, Usage, complain, grown, target, typed};
use crate::harness::load::Parts;
use crate::report::comment::ComparedRuns;
use crate::report::compare::{self, ComparedCost};
use crate::report::compared::ComparisonReport;
use crate::report::grid::Grid;
use crate::report::regression::{self, CLEARER, ComparisonEnd, RegressionLimit};
use crate::report::render::{OutputForm, Shown};
use crate::report::{ahead, sizes};

pub fn compare(args: Compare) -> Result<Exit> {
    let usage = |what: &str| Err(anyhow!(Usage(what.to_string())));
    regression::one_of_each_measure(&args.fail_if).map_err(|what| anyhow!(Usage(what)))?;
    let what = args.what.clone();
    match (args.base.clone(), args.head.clone(), what.as_slice()) {
        (Some(base), Some(head), []) => side_by_side(args, "fans", &base, &head),
        (Some(base), Some(head), [job]) => side_by_side(args, job, &base, &head),
        (None, None, [base, head]) => files(&args, &PathBuf::from(base), &PathBuf::from(head)),
        (Some(_), Some(_), _) => {
            usage("with --base and --head there is one job\nhint: kvfair compare fans --base redis --head redis+unix")
        }
        (None, None, _) => usage("two results files, or --base and --head\nhint: kvfair compare old.jsonl new.jsonl"),
        _ => usage("--base and --head belong together: the target as it was, and as it is"),
    }
}

/// Both in the same blocks: the only comparison that the machine cannot spoil.
fn side_by_side(args: Compare, job: &str, base: &str, head: &str) -> Result<Exit> {
    let sizes = [&args.how.size.profiles, &args.how.size.messages];
    if sizes.iter().any(|sizes| sizes.len() > 1) {
        let what = "compare takes one size\nhint: `kvfair run` has lists, as in --profiles 500,2000";
        return Err(anyhow!(Usage(what.to_string())));
    }
    if args.how.rtt.as_ref().is_some_and(|rtts| rtts.0.len() > 1) {
        let what = "compare takes one round-trip time\nhint: `kvfair run` has lists, as in --rtt 0,0.2ms,1ms";
        return Err(anyhow!(Usage(what.to_string())));
    }
    let labels = [base, head].map(|text| target::parse(text).map(|chosen| chosen.target.label));
    let [base_label, head_label] = labels.map(|label| label.map_err(|error| anyhow!(Usage(format!("{error:#}")))));
    let (base_label, head_label) = (base_label?, head_label?);
    let targets = vec![base.to_string(), head.to_string()];
    let (limits, look) = (args.fail_if, args.how.look());
    paged::is_to_be_new(look.forms.html.as_deref())?;
    // A run that ended by what it found would find a regression by chance.
    let how = How { until_budget: !limits.is_empty(), ..args.how };
    let ran = measure(&RunArgs { job: Some(job.to_string()), targets, own: Exec::default(), how })?;
    // Where the durability level cannot hold CPU is compared all the same.
    let is_compared = matches!(ran.ended, Ok(Exit::Ok | Exit::Inconclusive));
    // For programs there is one document, the comparison; as Markdown one comment, if there is a comparison.
    let is_alone = match look.forms.form() {
        OutputForm::Text => false,
        OutputForm::Json => true,
        OutputForm::Markdown | OutputForm::Csv => is_compared,
    };
    if !ran.records.is_empty() && !is_alone {
        print_records(&ran.records, &look)?;
    }
    // A server may say that it is another product than the one that was named.
    let called = |label: &str, place: usize| -> String {
        let first = ran.records.iter().find(|record| record.target.label == label).or_else(|| ran.records.get(place));
        first.map_or_else(|| label.to_string(), |record| record.target.label.clone())
    };
    let (base, head) = (called(&base_label, 0), called(&head_label, 1));
    let compared: Vec<ComparedCost> =
        is_compared.then(|| compare::within(&ran.records, &base, &head)).into_iter().collect();
    let results = ran.lost.is_none().then_some(ran.path.as_path()).filter(|_| !ran.records.is_empty());
    let table = Grid { title: format!("{head} against {base}"), lines: compare::lines(&compared) };
    let tables = if is_compared { vec![table] } else { Vec::new() };
    let paged = paged::write_with(PageFindings { tables, ..PageFindings::default() }, &ran.records, &look, results);
    let ended = match ran.ended {
        Ok(exit) if is_compared => {
            let runs = ComparedRuns::OneRun { records: &ran.records, base: &base, head: &head };
            end(&comparison(&compared, &limits, runs, exit), &look.forms)
        }
        ended => ended,
    };
    or_lost(ended, ran.lost.or(paged.err()))
}

fn files(args: &Compare, base: &Path, head: &Path) -> Result<Exit> {
    let forms = &args.how.look.forms;
    paged::is_to_be_new(forms.html.as_deref())?;
    let (before, after) = (read(base, Parts::Tables)?, read(head, Parts::Tables)?);
    if let Some((path, _)) = [(base, &before), (head, &after)].iter().find(|(_, all)| !sizes::parts(all).is_empty()) {
        let hint = "hint: compare runs of one size and one round-trip time each";
        return Err(anyhow!("{}: a run of several sizes is several comparisons\n{hint}", path.display()));
    }
    if let Some((path, _)) = [(base, &before), (head, &after)].iter().find(|(_, all)| grown::is_growth(all)) {
        let hint = "hint: `kvfair show` prints them; compare two runs of one job";
        return Err(anyhow!("{}: results of `kvfair growth` cannot be compared\n{hint}", path.display()));
    }
    let (before, after) = (ahead::split(&before).0, ahead::split(&after).0);
    let compared = compare::across(before, after);
    if compared.is_empty() {
        return Err(anyhow!("{} and {} have no target in common", base.display(), head.display()));
    }
    let runs = ComparedRuns::TwoRuns { base: before, head: after };
    let report = comparison(&compared, &args.fail_if, runs, Exit::Ok);
    write_page(&report, forms, &report.command, concat!("kvfair ", env!("CARGO_PKG_VERSION")))?;
    end(&report, forms)
}

fn comparison<'a>(
    compared: &'a [ComparedCost],
    limits: &[RegressionLimit],
    runs: ComparedRuns<'a>,
    ran: Exit,
) -> ComparisonReport<'a> {
    let limits = limits.iter().map(|limit| regression::judge(compared, *limit)).collect();
    ComparisonReport { command: typed(), compared, limits, runs, ran }
}

/// Prints it, and what became of each limit.
fn end(report: &ComparisonReport<'_>, forms: &Forms) -> Result<Exit> {
    let (exit, form) = (report.exit(), forms.form());
    print_report(report, exit, form)?;
    // Two files are only read.
    let again = if matches!(report.runs, ComparedRuns::TwoRuns { .. }) { "run both again with " } else { "" };
    for limit in &report.limits {
        let told = limit.in_words(|one| one.target.clone());
        let is_unclear = limit.end == ComparisonEnd::Unclear;
        let hint = if is_unclear { format!("\nhint: {again}{CLEARER}") } else { String::new() };
        complain(&format!("kvfair: {told}{hint}"));
    }
    Ok(exit)
}
