//! What commands find that run no job: written to a results file, printed, and shown again by `kvfair show`.

use std::path::Path;

use anyhow::{Error, Result, bail};

use super::args::{FindingArgs, Forms, Look, Show};
use super::measure::or_lost;
use super::shown::print_report;
use super::{Exit, complain, paged, typed};
use crate::harness::plan;
use crate::harness::save::{self, Results};
use crate::model::finding::{Finding, Found};
use crate::report::check::CheckReport;
use crate::report::crash::CrashReport;
use crate::report::exit::worst;
use crate::report::failover::FailoverReport;
use crate::report::history;
use crate::report::page::page_of_blocks;
use crate::report::render::{OutputForm, Shown};

/// A results file that a command writes to while it goes on.
pub struct Findings {
    results: Results,
    found: Vec<Finding>,
    command: Vec<String>,
    began: String,
    forms: Forms,
    /// Each finding was printed at once.
    are_told: bool,
    /// Why a finding is not in the file. It is printed all the same.
    lost: Option<Error>,
}

impl Findings {
    /// A new file, by the command's name where none was named.
    pub fn create(args: &FindingArgs, name: &str) -> Result<Findings> {
        let forms = args.forms.clone();
        paged::is_to_be_new(forms.html.as_deref())?;
        let began = plan::utc_now();
        let path = args.output.clone().unwrap_or_else(|| save::default_path(&began, name));
        let results = Results::create(&path)?;
        Ok(Findings { results, found: Vec::new(), command: typed(), began, forms, are_told: false, lost: None })
    }

    pub fn save(&mut self, found: Found) {
        let (command, began) = (self.command.clone(), self.began.clone());
        let finding = Finding { kvfair: env!("CARGO_PKG_VERSION").to_string(), command, began, found };
        if self.lost.is_none() {
            self.lost = self.results.save(&finding).and_then(|()| self.results.sync()).err();
        }
        self.found.push(finding);
    }

    /// Saves it, and prints it at once if text was asked for.
    pub fn tell(&mut self, found: Found) -> Result<()> {
        self.save(found);
        if self.forms.form() == OutputForm::Text {
            self.are_told = true;
            let last = self.found[self.found.len() - 1..].to_vec();
            print_report(report(last).as_ref(), Exit::Ok, OutputForm::Text)?;
        }
        Ok(())
    }

    /// Prints what was found and writes the page. The command ends as that is, or as `ended` says.
    pub fn end(self, ended: Exit) -> Result<Exit> {
        if self.found.is_empty() {
            self.results.discard_if_empty();
            return Ok(ended);
        }
        let lost = self.lost.or_else(|| self.results.is_there().err());
        match lost {
            None => complain(&format!("results: {}", self.results.path().display())),
            Some(_) => self.results.discard_if_empty(),
        }
        let about = about(&self.found[0]);
        let report = report(self.found);
        let (form, exit) = (self.forms.form(), worst([report.exit(), ended]));
        if !self.are_told {
            print_report(report.as_ref(), exit, form)?;
        }
        let paged = write_page(report.as_ref(), &self.forms, &self.command, &about);
        or_lost(paged.map(|()| exit), lost)
    }
}

/// What one command found.
fn report(findings: Vec<Finding>) -> Box<dyn Shown> {
    let command = findings.first().map_or_else(Vec::new, |finding| finding.command.clone());
    let (mut checked, mut claims, mut failovers) = (Vec::new(), Vec::new(), Vec::new());
    for finding in findings {
        match finding.found {
            Found::Check(one) => checked.push(one),
            Found::Crash(one) => claims.push(*one),
            Found::Failover(one) => failovers.push(one),
        }
    }
    match () {
        () if !checked.is_empty() => Box::new(CheckReport { command, targets: checked }),
        () if !claims.is_empty() => Box::new(CrashReport { command, claims }),
        () => Box::new(FailoverReport { command, targets: failovers }),
    }
}

/// By which version it was found, and when.
fn about(finding: &Finding) -> String {
    format!("kvfair {}, {} UTC", finding.kvfair, history::when(&finding.began))
}

/// Writes the page of `--html`, if one was asked for.
pub fn write_page(shown: &dyn Shown, forms: &Forms, command: &[String], about: &str) -> Result<()> {
    let Some(file) = &forms.html else { return Ok(()) };
    save::write_new(&[(file.clone(), page_of_blocks(shown, command, about)?)])?;
    complain(&format!("page: {}", file.display()));
    Ok(())
}

/// `kvfair show` of such a file.
pub fn show(findings: Vec<Finding>, path: &Path, args: &Show) -> Result<Exit> {
    let options =
        [("--svg", args.svg.is_some()), ("--histograms", args.histograms.is_some()), ("--all", args.look.all)];
    if let Some((option, _)) = options.iter().find(|(_, is_typed)| *is_typed) {
        let (path, name) = (path.display(), findings[0].name());
        bail!(
            "{path}: {option}: results of `kvfair {name}` have no such form\nhint: --html is a page, --json has all numbers"
        );
    }
    let Look { forms, .. } = &args.look;
    let (form, command, about) = (forms.form(), findings[0].command.clone(), about(&findings[0]));
    let report = report(findings);
    write_page(report.as_ref(), forms, &command, &about)?;
    print_report(report.as_ref(), report.exit(), form)
}
