//! `kvfair rerun`: the run of a bundle or a page once more, on this machine, and what it says to each claim.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::again::{Again, digests};
use super::args::{Look, Rerun};
use super::measure::{Ran, measure, or_lost};
use super::shown::print_records;
use super::{Exit, Usage, complain, paged, pages, print, terminal};
use crate::harness::load::{self, Parts};
use crate::harness::{bundle, plan, save, scratch};
use crate::model::answers;
use crate::model::record::Record;
use crate::model::shell;
use crate::model::trial::METHOD;
use crate::model::units;
use crate::report::replicated::judge::{JudgedClaim, Judgement, each};
use crate::report::replicated::{PageRun, difference, findings, merged, parse, refute};
use crate::report::table;

pub fn rerun(args: &Rerun) -> Result<Exit> {
    let scratch = scratch::make()?;
    let (page, data, is_page) = open(&args.file, scratch.path())?;
    let html = args.html.clone().or_else(|| is_page.then(|| pages::beside(&args.file)));
    html.as_deref().map_or(Ok(()), save::is_to_be_new)?;
    let about = || args.file.display().to_string();
    may_be_judged(&page).with_context(about)?;
    let mut again = Again::of(&page, args.input.clone().or(data)).with_context(about)?;
    again.args.how.output = args.output.clone();
    again.args.how.skip_missing = args.skip_missing;
    may_start(args, &again.programs)?;
    complain(&format!("kvfair: again, seed {}: {}", page.seeds.order, shell::command(refute::typed(&page))));
    for (target, why) in &again.left_out {
        complain(&format!("kvfair: without {target}: {why}"));
    }
    if again.args.how.input.is_some() {
        has_digest(&again, &page)?;
    }
    let ran = once_more(again, page.made_by())?;
    if ran.records.is_empty() {
        return or_lost(ran.ended, ran.lost);
    }
    judged(&page, ran, html.as_deref())
}

/// The runs that a file tells of, the data that it holds, and whether it is a page.
fn open(file: &Path, scratch: &Path) -> Result<(PageRun, Option<PathBuf>, bool)> {
    let is_bundle = bundle::is_one(file).with_context(|| format!("cannot read {}", file.display()))?;
    if !is_bundle {
        return Ok((pages::read(file)?, None, true));
    }
    let directory = scratch.join("bundle");
    let manifest = bundle::unpack(file, &directory)?;
    let about = || file.display().to_string();
    let path = directory.join(bundle::RECORDS);
    // The records are the evidence: what is claimed is computed from them anew.
    let records = counted(&path).with_context(about)?;
    let page = paged::of_records(&records, &Look::default(), Some(&path)).with_context(about)?;
    let page = parse(&page).map_err(|what| anyhow!("{}: {what}", file.display()))?;
    Ok((page, manifest.data.file.map(|name| directory.join(name)), false))
}

/// The records of a results file that are shown.
fn counted(path: &Path) -> Result<Vec<Record>> {
    let mut records = load::records(path, Parts::All)?;
    records.retain(|record| !record.discarded);
    records.sort_by_key(|record| record.ahead);
    answers::note(&mut records);
    Ok(records)
}

/// Runs it, and prints its own results.
fn once_more(again: Again, name: &str) -> Result<Ran> {
    let Again { mut args, command, .. } = again;
    let Some(command) = command else {
        let ran = measure(&args)?;
        if !ran.records.is_empty() {
            print_records(&ran.records, &Look::default())?;
        }
        return Ok(ran);
    };
    // Named here, since the command hands over no records.
    let path = args.how.output.clone().unwrap_or_else(|| save::default_path(&plan::utc_now(), name));
    save::is_to_be_new(&path)?;
    args.how.output = Some(path.clone());
    let ended = command(args);
    let records = if path.exists() { counted(&path)? } else { Vec::new() };
    Ok(Ran { records, ended, lost: None, path })
}

/// Why nothing of a run could be held against another one.
fn may_be_judged(page: &PageRun) -> Result<()> {
    if page.method != METHOD {
        return Err(anyhow!(
            "it was measured by method {} (kvfair {}), and this kvfair measures by method {METHOD}\nhint: use a kvfair \
             of that version: numbers of two methods are not compared",
            page.method,
            page.kvfair
        ));
    }
    if page.claimed() == 0 {
        let hint = match findings::kind(page) {
            None => "a claim needs two targets, blocks enough (--blocks 6), and a target that runs twice in each",
            Some(_) => "its answer was unclear: a quiet machine, or more time (--budget), makes it clear",
        };
        return Err(anyhow!("it claims nothing, so nothing can be reproduced\nhint: {hint}"));
    }
    Ok(())
}

/// A program that a bundle or page names is started only after `--yes` or an answer at the terminal.
fn may_start(args: &Rerun, programs: &[String]) -> Result<()> {
    if programs.is_empty() || args.yes {
        return Ok(());
    }
    let listed = programs.join("\n  ");
    if !io::stdin().is_terminal() {
        let what = format!("it names programs, which would run with your rights:\n  {listed}\nhint: --yes starts them");
        return Err(anyhow!(Usage(what)));
    }
    match terminal::ask(&format!("start these programs with your rights?\n  {listed}\n[y/N] "))?.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(anyhow!("nothing was run")),
    }
}

/// Other data would be another run.
fn has_digest(again: &Again, page: &PageRun) -> Result<()> {
    let found = digests(&again.args)?;
    if found.contains(&page.data.sha256) {
        return Ok(());
    }
    let file = again.args.how.input.as_deref().unwrap_or(Path::new("-")).display();
    let found = found.join(", ");
    Err(anyhow!(
        "--input {file}: its SHA-256 as the job reads it is {found}, and that of the first run is {}",
        page.data.sha256
    ))
}

/// Prints what differs and what this run says to each claim, and writes the page of all runs.
fn judged(page: &PageRun, ran: Ran, html: Option<&Path>) -> Result<Exit> {
    let results = ran.lost.is_none().then_some(ran.path.as_path());
    let here = parse(&paged::of_records(&ran.records, &Look::default(), results)?);
    let mut here = here.map_err(|what| anyhow!("nothing can be judged: {what}"))?;
    // The page must not tell the name of a file on this machine.
    here.data.file.clone_from(&page.data.file);
    let differences = difference::all(page, &here);
    let each = each(page, &here);
    print(&text(&differences, &each))?;
    let wrote = html.map_or(Ok(()), |out| {
        let all = merged(vec![page.clone(), here]);
        pages::write(&all.map_err(|what| anyhow!("no page is written, for this run is another one: {what}"))?, out)
    });
    let ended = ran.ended.map(|exit| match exit {
        Exit::WrongAnswers | Exit::Interrupted => exit,
        _ => exit_of(&each),
    });
    or_lost(ended, ran.lost.or(wrote.err()))
}

fn count(each: &[(String, JudgedClaim)], judgement: Judgement) -> usize {
    each.iter().filter(|(_, one)| one.judgement == judgement).count()
}

fn exit_of(each: &[(String, JudgedClaim)]) -> Exit {
    match () {
        () if count(each, Judgement::Contradicted) > 0 => Exit::Regression,
        () if count(each, Judgement::Untold) > 0 => Exit::Inconclusive,
        () => Exit::Ok,
    }
}

fn text(differences: &[String], each: &[(String, JudgedClaim)]) -> String {
    let mut said = "\nset-up, beside the first run\n".to_string();
    for difference in differences {
        said += &format!("  {difference}\n");
    }
    if differences.is_empty() {
        said += "  no difference is known: machine, kernel, versions and data are the same\n";
    }
    said += "claims of the first run\n";
    for (words, one) in each {
        said += &format!("  {:<14}  {words}: {}\n", one.judgement.in_words(), one.words);
    }
    let [reproduced, contradicted, untold] =
        [Judgement::Reproduced, Judgement::Contradicted, Judgement::Untold].map(|judgement| count(each, judgement));
    let claims = units::counted(each.len() as u64, "claim");
    let end = format!("{reproduced} of {claims} reproduced, {contradicted} contradicted, {untold} cannot be told.");
    said + &table::wrap(&end, terminal::width()).join("\n") + "\n"
}
