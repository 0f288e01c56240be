//! `kvfair reproduce`: the posts' questions asked again here, by the same way as `kvfair run`, and the answers beside
//! theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::args::Reproduce;
use super::measure::{Ran, measure_plan};
use super::planned::{args_of, plan_of};
use super::shown::print_report;
use super::{Exit, Usage, complain, paged, print, shown, target, typed, verified};
use crate::harness::load::Parts;
use crate::harness::save;
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::harness::timing::Timer;
use crate::model::record::{Outcome, Record};
use crate::model::shell;
use crate::report::exit::worst;
use crate::report::page;
use crate::report::reproduce::text::PostsShown;
use crate::report::reproduce::{self as report, Post, PostReport};

/// The time that each post has where none is named.
const BUDGET_OF_A_POST: Duration = Duration::from_secs(240);

/// A post, and what of it can be run here.
struct Choice {
    post: Post,
    targets: Vec<String>,
    /// Why the store of a cell is not run, by target.
    absent: BTreeMap<String, String>,
}

pub fn reproduce(args: &Reproduce) -> Result<Exit> {
    paged::is_to_be_new(args.forms.html.as_deref())?;
    if !args.from.is_empty() {
        return shown_again(args);
    }
    let choices: Vec<Choice> = posts_of(&args.posts)?.into_iter().map(choice).collect();
    if args.list {
        print(&listed(&choices))?;
        return Ok(Exit::Ok);
    }
    if choices.iter().all(|choice| !choice.has_store()) {
        choices.iter().for_each(|choice| complain(&choice.why_not()));
        return Ok(Exit::Missing);
    }
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let budget = args.budget.unwrap_or(BUDGET_OF_A_POST * choices.len() as u32);
    let (mut reports, mut exits) = (Vec::new(), Vec::new());
    let timer = Timer::start();
    for (place, choice) in choices.iter().enumerate() {
        let left: u32 = choices[place..].iter().map(Choice::weight).sum();
        let share = timer.left_of(budget) * choice.weight() / left;
        let (records, exit) = match choice.has_store() {
            true => measured(choice, share),
            false => (Vec::new(), Ok(Exit::Ok)),
        };
        let is_over = matches!(exit, Ok(Exit::Interrupted));
        reports.push(report::report(&choice.post, &records, &choice.absent));
        exits.push(exit);
        if is_over || interrupt.is_set() {
            break;
        }
    }
    let exit = if interrupt.is_set() { Exit::Interrupted } else { exit_of(&exits) };
    let begun = reports.len();
    show(reports, args, exit)?;
    if interrupt.is_set() {
        complain(&format!("kvfair: {INTERRUPTED}; {begun} of {} posts were begun", choices.len()));
    }
    Ok(exit)
}

/// One post's records, and how its run ended. An error of one post keeps no other from being run, and is told at once,
/// since the next post may run for minutes.
fn measured(choice: &Choice, share: Duration) -> (Vec<Record>, Result<Exit>) {
    let number = &choice.post.number;
    complain(&format!("kvfair: post {number}: at most {:.0} s", share.as_secs_f64()));
    let (records, exit) = match run(choice, share) {
        Ok(Ran { records, ended, lost, .. }) => (records, lost.map_or(ended, Err)),
        Err(error) => (Vec::new(), Err(error)),
    };
    if let Err(error) = &exit {
        complain(&format!("kvfair: post {number}: {error:#}"));
    }
    (records, exit)
}

/// As if it were typed: `kvfair run JOB ... --budget TIME -- TARGETS`.
fn run(choice: &Choice, share: Duration) -> Result<Ran> {
    let (post, budget) = (&choice.post, format!("{}s", share.as_secs().max(1)));
    let command = post.command.iter().map(String::as_str);
    let words = command.skip(1).chain(["--budget", &budget, "--"]).chain(choice.targets.iter().map(String::as_str));
    let mut run = args_of(words)?;
    let mut plan = plan_of(&run)?;
    // By its command a results file is known for this post's.
    plan.command = vec![report::NAME.to_string(), post.number.clone()];
    // And why a store is not in it.
    let absent = |why: &String| Outcome::LeftOut { reason: why.clone(), absent: true };
    let known = choice.absent.iter().filter_map(|(target, why)| Some((target::parse(target).ok()?, absent(why))));
    plan.left_out.extend(known);
    run.how.output = Some(save::default_path(&plan.began, &format!("{}-{}", report::NAME, post.number)));
    measure_plan(&run, plan)
}

/// The worst decides; what cannot be told is a result.
fn exit_of(exits: &[Result<Exit>]) -> Exit {
    worst(exits.iter().map(|exit| match exit {
        Ok(Exit::WrongAnswers) => Exit::WrongAnswers,
        // It was told when it came.
        Err(_) => Exit::Error,
        _ => Exit::Ok,
    }))
}

/// The posts of those numbers, or all.
fn posts_of(typed: &[String]) -> Result<Vec<Post>> {
    let posts = report::posts()?;
    if let Some(unknown) = typed.iter().find(|number| !report::numbers().any(|known| known == number.as_str())) {
        let each =
            posts.iter().map(|post| format!("  {}  {} ({}, {})", post.number, post.title, post.author, post.date));
        let each = each.collect::<Vec<_>>().join("\n");
        return Err(anyhow!(Usage(format!("there is no post '{unknown}'\nhint: there are\n{each}"))));
    }
    Ok(posts.into_iter().filter(|post| typed.is_empty() || typed.contains(&post.number)).collect())
}

/// For each cell the store of the post where it is installed, else its first stand-in that is.
fn choice(post: Post) -> Choice {
    let (mut targets, mut absent) = (Vec::<String>::new(), BTreeMap::new());
    for (_, cell) in post.cells() {
        let here = cell.candidates().find(|(target, _)| not_here(target).is_none());
        match here {
            Some((target, _)) if targets.iter().any(|known| known == target) => {}
            Some((target, _)) => targets.push(target.to_string()),
            None => absent.extend(not_here(&cell.target).map(|why| (cell.target.clone(), why))),
        }
    }
    Choice { post, targets, absent }
}

/// Why a target cannot be run here.
fn not_here(text: &str) -> Option<String> {
    match target::parse(text) {
        Ok(chosen) if target::is_here(chosen.adapter) => None,
        Ok(chosen) => Some(report::not_installed(chosen.adapter.name, chosen.adapter.get_it)),
        Err(_) => Some(format!("this build does not know {text}: build it with --features full")),
    }
}

impl Choice {
    /// What a post's share of the time goes by: a block has a trial of each target, and more around them.
    fn weight(&self) -> u32 {
        self.targets.len() as u32 + 4
    }

    /// Baselines are always here.
    fn has_store(&self) -> bool {
        self.targets.iter().any(|target| target::parse(target).is_ok_and(|chosen| !chosen.target.baseline))
    }

    fn why_not(&self) -> String {
        let mut whys: Vec<&str> = self.absent.values().map(String::as_str).collect();
        whys.dedup();
        let number = &self.post.number;
        format!("kvfair: post {number}: no store of its table is installed here\nhint: {}", whys.join("\nhint: "))
    }
}

/// `--list`.
fn listed(choices: &[Choice]) -> String {
    let mut text = String::new();
    for Choice { post, targets, absent } in choices {
        text.push_str(&format!("{}  {} ({}, {})\n", post.number, post.title, post.author, post.date));
        let stand_ins = post.cells().flat_map(|(_, cell)| &cell.stand_ins);
        let stand_ins = stand_ins.filter(|one| targets.contains(&one.target)).map(|one| &one.words);
        let lines: BTreeSet<&String> = absent.values().chain(stand_ins).collect();
        text.push_str(&format!("  {}\n", shell::command(post.command.iter().chain(targets))));
        lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

/// `--from`: the newest file of each post is shown.
fn shown_again(args: &Reproduce) -> Result<Exit> {
    let posts = report::posts()?;
    let mut of_post: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for path in &args.from {
        let mut records = shown::read(path, Parts::All)?;
        verified::note(&mut records);
        let Some(number) = report::number_of(&records).map(str::to_string) else {
            let show = shell::command(["show", &path.to_string_lossy()]);
            bail!("{}: no results of `kvfair reproduce`\nhint: `{show}` shows them", path.display());
        };
        if !posts.iter().any(|post| post.number == number) {
            bail!("{}: there is no post '{number}'", path.display());
        }
        let began = |records: &[Record]| records.first().map(|record| record.run.began.clone());
        let known = of_post.get(&number).map(|records| began(records));
        if known.is_none_or(|known| known < began(&records)) {
            of_post.insert(number, records);
        }
    }
    let of = |post: &Post| Some(report::report(post, of_post.get(&post.number)?, &BTreeMap::new()));
    show(posts.iter().filter_map(of).collect(), args, Exit::Ok)?;
    Ok(Exit::Ok)
}

/// Prints the posts, and writes the page.
fn show(reports: Vec<PostReport>, args: &Reproduce, exit: Exit) -> Result<()> {
    let shown = PostsShown { command: typed(), exit, reports, declined: report::declined()? };
    let form = args.forms.form();
    print_report(&shown, exit, form)?;
    let Some(file) = &args.forms.html else { return Ok(()) };
    save::write_new(&[(file.clone(), page::reproduced_page(&shown.reports, &shown.declined))])?;
    complain(&format!("page: {}", file.display()));
    Ok(())
}
