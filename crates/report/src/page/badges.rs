//! What stands above and below the chart of a page: the answer, why it may be believed, and what may be said of it.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{PageInput, manifest};
use crate::aa::Repeated;
use crate::beside;
use crate::cells::Status;
use crate::claims;
use crate::levers;
use crate::standing::Standings;
use crate::typed;
use crate::verified;
use crate::versus::of_twice;
use crate::words;
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::logins;
use kvfair_core::noise::percent;
use kvfair_core::record::{Machine, Record, Verdict};
use kvfair_core::shell;
use kvfair_core::trial::Configuration;
use kvfair_core::units;

/// So many sentences stand below the chart; the others are folded.
const FINDINGS: usize = 2;
/// Of fewer blocks an interval is rough.
const EXACT_BLOCKS: usize = 6;

/// The answer, what was run where and when, and the badges.
pub fn top(input: &PageInput<'_>) -> Markup {
    let records = input.largest().report.records;
    html! {
        h1 { (input.answer) }
        p.subject.grey { (where_and_when(records)) }
        @for what in banners(input) { p.banner role="note" { (what) } }
        div.badges { (answers_badge(input)) (blocks_badge(input)) (noise_badge(input)) }
    }
}

/// "fans, 300 profiles · durability none · Intel(R) Xeon(R), 2 processors · 2026-11-22".
fn where_and_when(records: &[Record]) -> String {
    let first = &records[0];
    let durability = match first.configuration {
        Configuration::Matched => format!("durability {}", first.durability),
        Configuration::Shipped => "as shipped".to_string(),
    };
    let machine = &first.machine;
    let cpu = machine.cpu.split('@').next().unwrap_or_default().replace("Processor", "");
    let processors = units::counted(machine.cpus.into(), "processor");
    let machine = if cpu.trim().is_empty() { processors } else { format!("{}, {processors}", cpu.trim()) };
    let date = date(&first.run.began);
    let day = date.split(' ').next().unwrap_or_default().to_string();
    [words::job_and_size(records), durability, machine, day].join(" · ")
}

/// How far a reader may trust what a badge is about.
#[derive(Clone, Copy)]
enum Trust {
    Good,
    Doubtful,
    Bad,
}

impl Trust {
    /// The class, and a sign for those who see no colours.
    fn marks(self) -> (&'static str, &'static str) {
        match self {
            Trust::Good => ("is-good", "✓"),
            Trust::Doubtful => ("is-doubtful", "!"),
            Trust::Bad => ("is-bad", "✗"),
        }
    }
}

/// A few words that unfold to what they rest on.
fn badge(trust: Trust, words: &str, evidence: &[String]) -> Markup {
    let (class, sign) = trust.marks();
    html! {
        details class=(format!("badge {class}")) {
            summary { (sign) " " (words) }
            @for words in evidence.iter().filter(|words| !words.is_empty()) { p { (words) } }
        }
    }
}

fn answers_badge(input: &PageInput<'_>) -> Markup {
    let told = answers(input, &made_up(input));
    let records = || input.parts.iter().flat_map(|part| part.report.records);
    let is_read_only = records().any(|record| record.job.load.as_ref().is_some_and(|load| load.read_only));
    let trials: Vec<&Record> = records().filter(|record| record.verdict != Verdict::Baseline).collect();
    let of = |is: fn(&Verdict) -> bool| trials.iter().filter(|record| is(&record.verdict)).count();
    let right = of(|verdict| matches!(verdict, Verdict::Right(_)));
    let (trust, words) = match () {
        () if of(|verdict| matches!(verdict, Verdict::Wrong { .. })) > 0 => (Trust::Bad, "wrong answers".to_string()),
        () if is_read_only || of(|verdict| matches!(verdict, Verdict::Answered(_))) > 0 => {
            (Trust::Doubtful, "answers not checked".to_string())
        }
        () => {
            let [right, all] = [right, trials.len()].map(|count| units::thousands(count as u64));
            let trust = if right == all { Trust::Good } else { Trust::Doubtful };
            (trust, format!("{right} of {all} answers right"))
        }
    };
    badge(trust, &words, &[told])
}

fn blocks_badge(input: &PageInput<'_>) -> Markup {
    let standings = &input.largest().report.standings;
    let count = standings.blocks();
    let (trust, doubt) = match count {
        _ if count < CLAIM_BLOCKS as usize => (Trust::Bad, ": no claim"),
        _ if count < EXACT_BLOCKS => (Trust::Doubtful, ": rough"),
        _ => (Trust::Good, ""),
    };
    badge(trust, &format!("{}{doubt}", units::counted(count as u64, "block")), &[blocks_and_plan(input)])
}

/// Of the noisiest part.
fn noise_badge(input: &PageInput<'_>) -> Markup {
    let all = || input.parts.iter().map(|part| &part.report.standings);
    let standings = all().find(|standings| standings.is_noisy()).unwrap_or(&input.largest().report.standings);
    let report = input.largest().report;
    let at_claim = beside::repeated_at_the_claim(&report.points, report.records, &report.standings.counted);
    let of_claim = at_claim.iter().flat_map(|(_, repeated)| repeated).filter_map(|one| one.control().floor());
    let floor = match standings.noise.controls().is_empty() {
        true => of_claim.reduce(f64::max),
        false => Some(standings.noise.floor()),
    };
    let (trust, words) = match floor {
        Some(floor) if standings.is_noisy() => (Trust::Doubtful, format!("noise floor {}", percent(floor))),
        Some(floor) => (Trust::Good, format!("noise floor {}", percent(floor))),
        None => (Trust::Doubtful, "noise unknown".to_string()),
    };
    let is_warned = |id: &str| matches!(id, "discarded" | "aa-control") && standings.is_noisy();
    let warned = input.warnings.iter().filter(|warning| is_warned(warning.id)).map(|warning| warning.evidence.clone());
    let doubt = claims::doubt(standings).unwrap_or_default();
    let rule = claims::rule(&report.rows, standings).unwrap_or_default().to_string();
    let evidence: Vec<String> =
        [format!("Same store twice: {}", noise(input)), doubt, rule].into_iter().chain(warned).collect();
    badge(trust, &words, &evidence)
}

/// What may be said, what to try next, and how it was run.
pub fn findings(input: &PageInput<'_>) -> Markup {
    let records = input.largest().report.records;
    let ranking = input.levers.iter().map(|levers| &levers.report).filter(|report| !report.is_advice);
    let ranking = ranking.map(levers::text::ranking).filter(|ranking| !ranking.is_empty());
    let said: Vec<String> =
        input.sentences.iter().filter(|one| **one != input.answer).cloned().chain(ranking).collect();
    let (first, others) = said.split_at(said.len().min(FINDINGS));
    let next = logins::hidden(&input.next, &[]);
    html! {
        ul.findings {
            @for sentence in first { li { (sentence) } }
            @if !next.is_empty() { li { (capital(&next)) } }
        }
        @if !others.is_empty() {
            details {
                summary { "More that may be said (" (others.len()) ")" }
                ul { @for sentence in others { li { (sentence) } } }
            }
        }
        p.grey {
            (words::subject(records))
            @if !input.job.is_empty() { ". Asked of each store: " (input.job) }
            "."
        }
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A heading of several sentences: the first one, and all of them.
pub fn answer_and_rest(heading: &str) -> (String, Vec<String>) {
    match heading.split_once(". ") {
        Some((first, rest)) => (format!("{first}."), vec![format!("{first}."), rest.to_string()]),
        None => (heading.to_string(), vec![heading.to_string()]),
    }
}

/// The command that runs it again, and what a reader may take along.
pub fn again(input: &PageInput<'_>) -> Markup {
    let command = typed::again(&manifest::told(&input.largest().report.records[0].run.command));
    html! {
        @if !command.is_empty() {
            h2 { "Run this on your machine" }
            p.again { code.command { (shell::command(command)) } }
        }
    }
}

/// The facts of trials that are not compared with each other.
pub fn facts_of_trials(input: &PageInput<'_>) -> Markup {
    let records = input.largest().report.records;
    html! {
        (fact("answers", &answers(input, "")))
        (fact("durability", &durability(records)))
        (fact("machine", &machine(&records[0].machine)))
        (fact("date", &date(&records[0].run.began)))
    }
}

fn fact(name: &str, words: &str) -> Markup {
    html! { div { dt { (name) } dd { (words) } } }
}

/// What a reader must know first.
pub fn banners(input: &PageInput<'_>) -> Vec<String> {
    let first = &input.largest().report.records[0];
    let debug = "kvfair was built without optimisation (a debug build): its clients and embedded stores are many times \
        slower. No number here is one of a release.";
    let wrong = input.parts.iter().flat_map(|part| &part.report.rows);
    let wrong = wrong.filter(|row| matches!(row.status, Status::Wrong { .. })).map(|row| row.target.as_str());
    let mut wrong: Vec<&str> = wrong.collect();
    wrong.dedup();
    let reads_only = first.job.load.as_ref().is_some_and(|load| load.read_only);
    let is_unchecked = reads_only || has_verdict(input, |verdict| matches!(verdict, Verdict::Answered(_)));
    let mut found: Vec<String> = Vec::new();
    found.extend(input.broken.clone());
    found.extend(first.debug_build.then(|| debug.to_string()));
    found
        .extend(first.is_under_way.then(|| "The run was still in progress: these results are incomplete.".to_string()));
    found.extend((!wrong.is_empty()).then(|| format!("FAILED: wrong answers from {}.", wrong.join(", "))));
    found.extend(
        is_unchecked.then(|| "Answers were not checked: numbers may be those of a store that is wrong.".to_string()),
    );
    found.extend(
        input.cut_off.as_ref().map(|what| format!("The run was cut off by its time limit or by a signal: {what}.")),
    );
    found
}

fn has_verdict(input: &PageInput<'_>, is: fn(&Verdict) -> bool) -> bool {
    input.parts.iter().flat_map(|part| part.report.records).any(|record| is(&record.verdict))
}

/// "right in 48 of 48 trials"; of all trials but those of what holds nothing. `made_up` says how so many came about.
fn answers(input: &PageInput<'_>, made_up: &str) -> String {
    let records = || input.parts.iter().flat_map(|part| part.report.records);
    if records().any(|record| record.job.load.as_ref().is_some_and(|load| load.read_only)) {
        return "not checked".to_string();
    }
    let trials = || records().filter(|record| record.verdict != Verdict::Baseline);
    let (all, right) =
        (trials().count(), trials().filter(|record| matches!(record.verdict, Verdict::Right(_))).count());
    let unchecked = trials().filter(|record| matches!(record.verdict, Verdict::Answered(_))).count();
    let wrong = trials().filter(|record| matches!(record.verdict, Verdict::Wrong { .. })).count();
    let [told_right, told_all] = [right, all].map(|count| units::thousands(count as u64));
    let mut said = format!("right in {told_right} of {told_all} trials{made_up}");
    // It was refused, did not start, or failed.
    let none = all - right - unchecked - wrong;
    for (count, words) in [(wrong, "wrong"), (unchecked, "not checked"), (none, "without an answer")] {
        if count > 0 {
            said += &format!("; {} {words}", units::thousands(count as u64));
        }
    }
    said
}

/// ": 17 blocks of 3 trials (redis twice) and 2 of a warm-up", how the trials that are checked are made up, where all
/// blocks have as many but one that was cut off.
fn made_up(input: &PageInput<'_>) -> String {
    let [part] = input.parts.as_slice() else { return String::new() };
    let mut blocks: BTreeMap<u32, usize> = BTreeMap::new();
    for record in part.report.records.iter().filter(|record| record.verdict != Verdict::Baseline) {
        *blocks.entry(record.block).or_default() += 1;
    }
    let warm_up = blocks.remove(&0).map_or_else(String::new, |trials| format!(" and {trials} of a warm-up"));
    let Some(each) = blocks.values().next().copied() else { return String::new() };
    let is_short = input.cut_off.is_some() && blocks.len() > 1;
    let short = blocks.last_key_value().map(|(_, trials)| *trials).filter(|trials| is_short && *trials < each);
    if short.is_some() {
        blocks.pop_last();
    }
    let short = short.map_or_else(String::new, |trials| format!(", {trials} of a block that was cut off"));
    if blocks.values().any(|trials| *trials != each) || input.levers.is_some() {
        return String::new();
    }
    let twice: Vec<&str> = part.report.standings.repeated.iter().map(|one| one.target).collect();
    let twice = (!twice.is_empty()).then(|| format!("{} twice", twice.join(" and ")));
    let unchecked = part.report.rows.iter().filter(|row| matches!(row.status, Status::Baseline));
    let unchecked: Vec<&str> = unchecked.map(|row| row.target.as_str()).collect();
    let unchecked = (!unchecked.is_empty()).then(|| format!("{} not checked", unchecked.join(", ")));
    let which: Vec<String> = twice.into_iter().chain(unchecked).collect();
    let which = if which.is_empty() { String::new() } else { format!(" ({})", which.join(", ")) };
    format!(": {} of {each} trials{which}{short}{warm_up}", units::counted(blocks.len() as u64, "block"))
}

/// What the A/A controls tell, and what follows from that for the heading.
fn noise(input: &PageInput<'_>) -> String {
    let report = input.largest().report;
    let unseen = claims::unseen_in_words(&report.rows, &report.standings);
    let unseen = unseen.filter(|_| report.points.is_empty() && input.levers.is_none());
    let unseen = unseen.map_or_else(String::new, |unseen| format!(". {unseen}"));
    match beside::repeated_at_the_claim(&report.points, report.records, &report.standings.counted) {
        // At rates all trials take the same time: what is claimed is the response at one of them.
        Some((at, repeated)) if report.standings.repeated.is_empty() => {
            format!("{}, {at}", against_themselves(&repeated))
        }
        _ => format!("{}{unseen}", twice(&report.standings)),
    }
}

pub fn twice(standings: &Standings<'_>) -> String {
    match standings.repeated.as_slice() {
        [] => "not run: the noise is unknown".to_string(),
        repeated => format!("{}; 1.00x is no difference", against_themselves(repeated)),
    }
}

fn against_themselves(repeated: &[Repeated<'_>]) -> String {
    let each = repeated.iter().map(|one| format!("{} against itself {}", one.target, of_twice(one.versus())));
    each.collect::<Vec<_>>().join(", ")
}

pub fn blocks(standings: &Standings<'_>) -> String {
    let counted = &standings.counted;
    let (blocks, discarded) = (standings.blocks(), counted.discarded.len());
    let were = if discarded == 1 { "was" } else { "were" };
    match (blocks, discarded) {
        (1, 0) => "1 ran: too few for a claim".to_string(),
        (_, 0) => format!("{blocks} ran, all are used"),
        _ if counted.is_noisy() => format!("{blocks} ran, all are used, though {discarded} {were} disturbed"),
        _ => {
            format!("{} ran: {blocks} count, {discarded} {were} disturbed and discarded", blocks + discarded)
        }
    }
}

/// The same with how many were planned, where fewer ran, and what became of the last one.
fn blocks_and_plan(input: &PageInput<'_>) -> String {
    let part = input.largest();
    let (run, counted) = (&part.report.records[0].run, &part.report.standings.counted);
    let at_most = if run.plus_minus.is_some() { "at most " } else { "" };
    let ran = (counted.blocks.len() + counted.discarded.difference(&counted.blocks).count()) as u32;
    let is_less = run.blocks > 1 && ran < run.blocks;
    let planned = if is_less { format!("{at_most}{} planned, ", run.blocks) } else { String::new() };
    let last = part.report.records.iter().map(|record| record.block).max();
    let cut_off = match last.filter(|_| input.cut_off.is_some()) {
        Some(last) if counted.blocks.contains(&last) => "; the last was cut off, and counts as far as it came",
        Some(_) => "; the last was cut off",
        None => "",
    };
    format!("{planned}{}{cut_off}", blocks(&part.report.standings))
}

fn durability(records: &[Record]) -> String {
    match records[0].configuration {
        Configuration::Matched => verified::in_words(records),
        Configuration::Shipped => "as each store is shipped: not matched".to_string(),
    }
}

/// "Intel(R) Xeon(R), 2 processors, 25 GB of memory, store files on ext4 on /dev/vda".
pub fn machine(machine: &Machine) -> String {
    let processors = units::counted(machine.cpus.into(), "processor");
    let memory = format!("{} of memory", units::bytes(machine.memory_bytes));
    let files = Some(&machine.filesystem).filter(|filesystem| !filesystem.is_empty());
    let files = files.map_or_else(String::new, |filesystem| format!("store files on {filesystem}"));
    [machine.cpu.as_str(), &processors, &memory, &files]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// "20261122T032606Z" as people write it.
pub fn date(began: &str) -> String {
    let digits: BTreeMap<usize, char> = began.char_indices().filter(|(_, letter)| letter.is_ascii_digit()).collect();
    let is_time = began.len() == 16 && digits.len() == 14 && began.is_ascii();
    if !is_time {
        return if began.is_empty() { "unknown".to_string() } else { began.to_string() };
    }
    let part = |from: usize, to: usize| &began[from..to];
    format!("{}-{}-{} {}:{} UTC", part(0, 4), part(4, 6), part(6, 8), part(9, 11), part(11, 13))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_for_people() {
        assert_eq!(date("20261122T032606Z"), "2026-11-22 03:26 UTC");
        assert_eq!([date(""), date("yesterday")], ["unknown", "yesterday"]);
    }
}
