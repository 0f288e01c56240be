//! The page of several runs of the same job: a column for each machine, a row for each claim, and who is right where
//! they differ. It is made of manifests alone: what they say is text from anybody.

use anyhow::Result;
use maud::{Markup, PreEscaped, html};

use super::{Mask, evidence, manifest, style, tables};
use crate::chart::drawn_rows::figure;
use crate::replicated::judge::{ClaimAcross, Judgement, across, sentence};
use crate::replicated::{PageRun, PageTarget, machines, picture, refute};
use crate::table::TableLine;
use kvfair_core::shell;
use kvfair_core::units;

/// So many claims are told at the most, contradicted ones first.
const TOLD: usize = 60;

/// The whole page; the same runs give the same bytes.
pub fn machines_page(page: &PageRun) -> Result<String> {
    let runs = page.all();
    let mut rows = across(&runs);
    let heading = sentence(&rows, &runs);
    rows.sort_by_key(|row| row.count(Judgement::Contradicted) == 0);
    let all = rows.len();
    rows.truncate(TOLD);
    let body = html! {
        h1 { (heading) }
        @if let Some(picture) = picture::picture(&rows, &runs) { (figure(&picture)) }
        p.subject.grey { (subject(page, &runs)) }
        h2 { "Claims" }
        p.grey { "A ratio says how many times as much the second target costs, with its 95 % interval. Each claim unfolds below." }
        (tables::table("What each machine says to each claim", &claim_lines(&rows, &runs)))
        @for row in &rows { (unfolded(row, &runs)) }
        @if all > TOLD { p.grey { "The other claims, " (units::thousands((all - TOLD) as u64)) " of them, are in the page's manifest." } }
        h2 { "Targets" }
        (tables::table("Median seconds of the job", &target_lines(&runs)))
        h2 { "Machines" }
        (tables::table("Where and when each run was", &machine_lines(&runs)))
        p.grey {
            "The blocks of a run, and its other pictures, are on its own page. " code { "kvfair rerun PAGE" }
            " runs the job of this page and adds this machine as one more column; "
            code { "kvfair show A.html B.html --html OUT.html" } " joins pages."
        }
        script type="application/json" id="manifest" { (PreEscaped(manifest::as_script(page)?)) }
    };
    let mask = Mask::default();
    let title = format!("kvfair: {} on {}", page.job.name, units::counted(machines(&runs) as u64, "machine"));
    Ok(style::document(&mask.applied(&title), &mask.applied(&body.into_string())))
}

fn subject(page: &PageRun, runs: &[&PageRun]) -> String {
    let sizes: Vec<String> = page.job.sizes.iter().map(|size| units::thousands(*size)).collect();
    let size = format!("{} {}s", sizes.join(", "), page.job.unit);
    let data = match &page.data.recipe {
        Some(recipe) => format!("recipe {recipe}, seed {}", page.data.seed.unwrap_or_default()),
        None => "data of the author's own".to_string(),
    };
    let ran =
        format!("{} on {}", units::counted(runs.len() as u64, "run"), units::counted(machines(runs) as u64, "machine"));
    format!("{}: {size}; {data}, sha256 {}; durability {}; {ran}", page.job.name, page.data.sha256, page.durability)
}

/// "1", "2": machines and days have no names.
fn headings(first: &str, runs: &[&PageRun]) -> TableLine {
    let names = (1..=runs.len()).map(|place| format!("run {place}"));
    TableLine::Cells(std::iter::once(first.to_string()).chain(names).collect())
}

fn claim_lines(rows: &[ClaimAcross<'_>], runs: &[&PageRun]) -> Vec<TableLine> {
    let mut lines = vec![headings("claim", runs)];
    lines.extend(rows.iter().map(|row| {
        let cells = row.by_run.iter().map(|one| match one.judgement {
            Judgement::Reproduced => one.words.clone(),
            other => format!("{}: {}", other.in_words(), one.words),
        });
        TableLine::Cells(std::iter::once(row.words.clone()).chain(cells).collect())
    }));
    lines
}

fn unfolded(row: &ClaimAcross<'_>, runs: &[&PageRun]) -> Markup {
    let of = |claim| runs.iter().find(|run| run.claims.contains(claim)).unwrap_or(&runs[0]);
    let refuted_by = match row.claim {
        Some(claim) => refute::command(of(claim), claim),
        None => shell::command(refute::typed(runs[0])),
    };
    html! {
        details {
            summary { (row.words) ": " (row.held(runs)) }
            ul {
                @for (place, (one, run)) in row.by_run.iter().zip(runs).enumerate() {
                    li { "run " (place + 1) ": " (one.judgement.in_words()) ", " (one.words) "; " (evidence::rests_on(run)) }
                }
            }
            p { "Would refute it: " code.command { (refuted_by) } }
        }
    }
}

/// A line for each target and size of the first run; targets that only others have come behind.
fn target_lines(runs: &[&PageRun]) -> Vec<TableLine> {
    let key = |target: &PageTarget| (target.target.clone(), target.units, target.rtt_us);
    let mut keys = Vec::new();
    for target in runs.iter().flat_map(|run| &run.targets) {
        if !keys.contains(&key(target)) {
            keys.push(key(target));
        }
    }
    let mut lines = vec![headings("target", runs)];
    lines.extend(keys.iter().map(|of| {
        let cells = runs.iter().map(|run| match run.targets.iter().find(|target| key(target) == *of) {
            Some(target) => format!("{} {}", told(target), target.version).trim_end().to_string(),
            None => "-".to_string(),
        });
        let several = keys.iter().filter(|one| one.0 == of.0).count() > 1;
        let name = if several { format!("{}, {}", of.0, units::thousands(of.1)) } else { of.0.clone() };
        TableLine::Cells(std::iter::once(name).chain(cells).collect())
    }));
    lines
}

fn told(target: &PageTarget) -> String {
    match target.seconds {
        Some(seconds) => format!("{} s, version", units::seconds(seconds)),
        None => format!("{}, version", target.status.replace('_', " ")),
    }
}

fn machine_lines(runs: &[&PageRun]) -> Vec<TableLine> {
    let line = |name: &str, of: &dyn Fn(&PageRun) -> String| {
        TableLine::Cells(std::iter::once(name.to_string()).chain(runs.iter().map(|run| of(run))).collect())
    };
    vec![
        headings("", runs),
        line("processor", &|run| format!("{}, {} processors", run.machine.cpu, run.machine.cpus)),
        line("memory", &|run| units::bytes(run.machine.memory_bytes)),
        line("system", &|run| run.machine.os.clone()),
        line("kernel", &|run| run.machine.kernel.clone()),
        line("filesystem", &|run| run.machine.filesystem.clone()),
        line("date", &|run| run.began.clone()),
        line("kvfair", &|run| {
            format!("{}, method {}{}", run.kvfair, run.method, if run.debug_build { ", a debug build" } else { "" })
        }),
        line("blocks", &|run| evidence::rests_on(run)),
    ]
}
