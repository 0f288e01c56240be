//! What stands at the top of a page: what may be said, why it may be believed, and what a reader must know first.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::PageInput;
use crate::aa::Repeated;
use crate::beside;
use crate::cells::{Row, Status};
use crate::claims;
use crate::levers;
use crate::standing::Standings;
use crate::verified;
use crate::versus::of_twice;
use crate::words;
use kvfair_core::record::{Machine, Record, Verdict};
use kvfair_core::trial::Configuration;
use kvfair_core::units;

/// Heading, banners, and the strip of facts.
pub fn top(input: &PageInput<'_>) -> Markup {
    let part = input.largest();
    let (records, standings) = (part.report.records, &part.report.standings);
    let noisy = input.parts.iter().map(|part| &part.report.standings).find(|standings| standings.is_noisy());
    let sentence = claims::doubted(noisy.unwrap_or(standings), sentence(input));
    let (first, rest) = sentence.split_once(". ").unwrap_or((&sentence, ""));
    html! {
        h1 {
            // A heading of six lines is not read.
            (first) @if !rest.is_empty() { ". " span { (rest) } }
        }
        @match &input.levers {
            Some(seen) => {
                @let ranking = levers::text::ranking(&seen.report);
                @if !seen.report.is_advice && !ranking.is_empty() { p { (ranking) } }
                // The facts below have the blocks and the noise.
                p.grey { (words::subject(records)) }
            }
            None => p.subject {
                span.grey { (words::subject(records)) }
                @if !input.job.is_empty() { ". Asked of each store: " (input.job) "." }
            },
        }
        @for what in banners(input) { p.banner role="note" { (what) } }
        dl.strip {
            (fact("answers", &answers(input, &made_up(input))))
            (fact("blocks", &blocks_and_plan(input)))
            (fact("noise: same store twice", &noise(input)))
            (facts_of_run(records))
        }
    }
}

/// The facts of trials that are not compared with each other.
pub fn facts_of_trials(input: &PageInput<'_>) -> Markup {
    html! { (fact("answers", &answers(input, ""))) (facts_of_run(input.largest().report.records)) }
}

fn facts_of_run(records: &[Record]) -> Markup {
    html! {
        (fact("durability", &durability(records)))
        (fact("machine", &machine(&records[0].machine)))
        (fact("date", &date(&records[0].run.began)))
    }
}

/// What makes a noisy run noisy: it stands below the first picture, which is to be seen first.
pub fn evidence(input: &PageInput<'_>) -> Markup {
    let of_noise = input.warnings.iter().filter(|warning| matches!(warning.id, "discarded" | "aa-control"));
    let is_noisy = input.parts.iter().any(|part| part.report.standings.is_noisy());
    html! { @for warning in of_noise.filter(|_| is_noisy) { p { (warning.evidence) } } }
}

fn fact(name: &str, words: &str) -> Markup {
    html! { div { dt { (name) } dd { (words) } } }
}

/// What the terminal prints; where it says nothing of times, what is known of the answers.
fn sentence(input: &PageInput<'_>) -> String {
    if !input.sentence.is_empty() {
        return input.sentence.clone();
    }
    let rows = || input.parts.iter().flat_map(|part| &part.report.rows);
    let of = |is: fn(&Row) -> bool| rows().filter(|row| is(row)).count();
    let (all, good) = (of(|row| !row.baseline), of(|row| !row.baseline && row.status.has_numbers()));
    match good {
        0 if all == 0 => "Only baselines were run: they show what the job costs without a store.".to_string(),
        0 => format!("No target has numbers: none of {all} came to its end with right answers."),
        _ if rows().any(|row| row.numbers.is_some()) => format!("{good} of {all} targets have numbers."),
        _ => format!("Nothing was timed: {good} of {all} targets answered without a mistake."),
    }
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
    found.extend(first.is_under_way.then(|| "The run was still going on: this is not its end.".to_string()));
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
        (_, 0) => format!("{blocks} ran, all count"),
        _ if counted.is_noisy() => format!("{blocks} ran and count, though {discarded} {were} disturbed"),
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
