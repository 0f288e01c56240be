//! What stands above and below a table: the headline, the answer, one sentence to quote, what is missing, what to type
//! next.

use std::collections::BTreeSet;

use super::cells::Row;
use super::render::Block;
use super::standing::Standings;
use super::versus::{digits, of_twice};
use super::{verified, warn};
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::load::{Arrivals, Keys, Load, Only};
use kvfair_core::network;
use kvfair_core::noise::percent;
use kvfair_core::op::readable;
use kvfair_core::record::{Checked, KEYS_DRAWN, Outcome, Record, Traced, Verdict};
use kvfair_core::trial::{Configuration, Data, Durability, NgramSettings, Verify, file_in_words};
use kvfair_core::units;

/// "fans, 10,000 profiles · durability none · 1 client · 3 blocks, no claim".
pub fn headline(records: &[Record], standings: &Standings<'_>) -> String {
    let Some(first) = records.first() else { return "no trials".to_string() };
    format!("{} · {}", subject(records), claim(first, standings, twice(standings)))
}

/// "fans, 10,000 profiles · durability none · 1 client · 12 blocks · noise floor 2 % · 61 of 61 answers right".
pub fn headline_in_brief(records: &[Record], standings: &Standings<'_>) -> String {
    let Some(first) = records.first() else { return "no trials".to_string() };
    let has_floor = !standings.repeated.is_empty() && !standings.is_noisy();
    let floor = has_floor.then(|| format!("noise floor {}", percent(standings.noise.floor())));
    let parts = [Some(subject(records)), Some(claim(first, standings, floor)), all_right(records)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The trials of stores that were run.
fn run_on_stores(records: &[Record]) -> Vec<&Record> {
    let is_run = |record: &&Record| !matches!(record.outcome, Outcome::LeftOut { .. } | Outcome::Missing { .. });
    records.iter().filter(|record| record.verdict != Verdict::Baseline).filter(is_run).collect()
}

/// "61 of 61 answers right", or that each get was looked at; nothing where not all trials are right, or not compared in
/// full.
fn all_right(records: &[Record]) -> Option<String> {
    let trials = run_on_stores(records);
    let checked = trials.iter().map(|record| match &record.verdict {
        Verdict::Right(checked) if checked.how != Verify::Sample => Some((*record, checked)),
        _ => None,
    });
    let checked: Vec<_> = checked.collect::<Option<_>>()?;
    let is_looked_at =
        |(record, checked): &(&Record, &Checked)| record.stream.traced.is_some() || checked.answer.is_empty();
    Some(match checked.iter().any(is_looked_at) {
        _ if checked.is_empty() || reads_only(checked[0].0) => return None,
        true => "every get was right".to_string(),
        false => format!("{0} of {0} answers right", units::thousands(checked.len() as u64)),
    })
}

/// "fans, 10,000 profiles", or the program that was run.
pub fn job_and_size(records: &[Record]) -> String {
    let Some(first) = records.first() else { return "no trials".to_string() };
    if let Some((command, _)) = first.job.program() {
        return format!("`{}`", readable(command.as_bytes(), COMMAND_BYTES));
    }
    let plural = if first.stream.units == 1 { "" } else { "s" };
    let sizes: Vec<String> = first.run.sizes.iter().map(|&size| units::thousands(size)).collect();
    let units = if sizes.is_empty() { units::thousands(first.stream.units) } else { sizes.join(", ") };
    format!("{}, {units} {}{plural}", first.job.name, first.stream.unit)
}

/// What was run and how, without what came out; one line.
pub fn subject(records: &[Record]) -> String {
    let Some(first) = records.first() else { return "no trials".to_string() };
    if first.job.program().is_some() {
        return of_program(records);
    }
    let clients = match &first.job.load {
        Some(load) if load.read_only => format!("gets of keys that are there, answers not checked · {}", many(load)),
        Some(load) => {
            let bytes = load.spread.map_or_else(|| listed(&load.sizes, load.value_bytes), |spread| spread.to_string());
            format!("{} of {bytes} bytes · {}", asked(load), many(load))
        }
        None => units::counted(first.clients.into(), "client"),
    };
    let replayed = match first.job.replay_percent {
        None => String::new(),
        Some(100) => " · at the recorded times".to_string(),
        Some(percent) => format!(" · {} times as fast as recorded", f64::from(percent) / 100.0),
    };
    let ngrams = match first.job.ngrams {
        NgramSettings { unit, .. } if !first.run.orders.is_empty() => {
            let orders: Vec<String> = first.run.orders.iter().map(u32::to_string).collect();
            format!(" · runs of 1 to {} {unit}s", orders.join(", "))
        }
        usual if usual == NgramSettings::default() => String::new(),
        NgramSettings { order, unit } => format!(" · runs of 1 to {order} {unit}s"),
    };
    let cold = if first.job.lookup.cold { " · cold: restarted, files dropped from the page cache" } else { "" };
    let readers = match first.job.lookup.readers {
        0 | 1 => String::new(),
        readers => format!(" · {readers} processes read at once"),
    };
    let queries = match first.job.fans.queries {
        0 => String::new(),
        1 => " · then 1 query".to_string(),
        queries => format!(" · then {} queries", units::thousands(queries)),
    };
    // Latencies are shown of requests alone.
    let shared = match (first.machine.cpus, first.job.load.is_some()) {
        _ if first.run.pinned.is_some() => String::new(),
        (1, true) => " · client and server share 1 processor".to_string(),
        (cpus @ 2..=3, true) => format!(" · client and server share {cpus} processors"),
        _ => String::new(),
    };
    let (lies, kept) = lies_and_kept(records, first);
    let shared = format!("{shared}{}{}", network(first), pinned(first));
    let subject = job_and_size(records);
    format!("{subject} · {lies}{kept} · {clients}{ngrams}{queries}{cold}{readers}{replayed}{shared}")
}

/// "`./mine.py -h {host}` · data fits in memory · durability none".
fn of_program(records: &[Record]) -> String {
    let first = &records[0];
    let (lies, kept) = lies_and_kept(records, first);
    format!("{} · {lies}{kept}{}{}", job_and_size(records), network(first), pinned(first))
}

/// " · round trips of 0, 0.2, 1 ms by a proxy".
fn network(first: &Record) -> String {
    match first.run.rtts_us.as_slice() {
        [] => String::new(),
        [one] => format!(" · a round trip of {} by a proxy", network::in_words(*one)),
        several => format!(" · round trips of {} by a proxy", network::listed(several)),
    }
}

/// " · server on processor 0, client on processor 1".
fn pinned(first: &Record) -> String {
    first.run.pinned.as_ref().map_or_else(String::new, |pinned| format!(" · {pinned}"))
}

/// So much of a command is told.
const COMMAND_BYTES: usize = 1000;

/// Where the data lies and what becomes of it: both are known only of what kvfair started. What was asked of a server
/// that kvfair did not start was read back from it, unless nothing was asked.
fn lies_and_kept(records: &[Record], first: &Record) -> (String, String) {
    let stores = || records.iter().filter(|record| !record.target.baseline);
    let guests: BTreeSet<&str> =
        stores().filter(|record| record.target.is_guest()).map(|record| record.target.label.as_str()).collect();
    let is_ours = stores().any(|record| !record.target.is_guest());
    let kept = match first.configuration {
        Configuration::Matched => format!("durability {}", verified::in_words(records)),
        Configuration::Shipped => "as shipped, durability not matched".to_string(),
    };
    let lies = warn::where_data_lies(records).filter(|_| !first.run.answers_only).map(str::to_string);
    let told = match (is_ours, guests.len()) {
        (_, 0) => vec![kept],
        (true, 1) => vec![kept, format!("a server not started by kvfair: {}", listed_names(&guests))],
        (true, _) => vec![kept, format!("servers not started by kvfair: {}", listed_names(&guests))],
        (false, count) => {
            let asked = (first.durability != Durability::None).then_some(kept);
            let servers = if count == 1 { "a server" } else { "servers" };
            std::iter::once(format!("{servers} not started by kvfair")).chain(asked).collect()
        }
    };
    (lies.map_or_else(String::new, |lies| format!("{lies} · ")), told.join(" · "))
}

fn listed_names(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

/// "12 blocks · same store twice: 1.00x [0.98-1.02] · noise ok".
fn claim(first: &Record, standings: &Standings<'_>, of_control: Option<String>) -> String {
    let claim = claim_so_far(first, standings, of_control);
    if first.is_under_way { format!("not finished · {claim}") } else { claim }
}

fn claim_so_far(first: &Record, standings: &Standings<'_>, of_control: Option<String>) -> String {
    if first.run.answers_only {
        return "answers only, nothing timed".to_string();
    }
    let of_sets = match first.run.seeds.data.len() {
        0 | 1 => String::new(),
        seeds => format!(" of {seeds} data sets"),
    };
    let in_words = |count: usize| format!("{}{of_sets}", units::counted(count as u64, "block"));
    let (counting, discarded) = (standings.blocks(), standings.counted.discarded.len());
    let blocks = match discarded {
        0 => in_words(counting),
        // All of them count.
        _ if standings.counted.is_noisy() => in_words(counting),
        _ => format!("{} ran, {counting} count, {discarded} discarded for noise", in_words(counting + discarded)),
    };
    if standings.blocks() < CLAIM_BLOCKS as usize {
        return format!("{blocks}, no claim");
    }
    [Some(blocks), of_control, Some(noise(standings))].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// "same store twice: 1.00x [0.98-1.02]".
fn twice(standings: &Standings<'_>) -> Option<String> {
    let twice = standings.repeated.iter().map(|one| match standings.repeated.len() {
        1 => of_twice(one.versus()),
        _ => format!("{} {}", of_twice(one.versus()), one.target),
    });
    let twice = twice.collect::<Vec<_>>().join(", ");
    (!twice.is_empty()).then(|| format!("same store twice: {twice}"))
}

/// Why "vs best" is not the ratio of the seconds beside it, where it is not: it comes from pairs of the same block, and
/// the seconds are medians over all blocks.
pub fn medians(rows: &[Row]) -> String {
    let mut best: Option<(&str, f64)> = None;
    let mut apart = Vec::new();
    for row in rows.iter().filter(|row| !row.baseline) {
        let Some(numbers) = &row.numbers else { continue };
        // Rows are sorted by group and seconds: the first of each group is its best.
        if best.is_none_or(|(group, _)| group != row.group) {
            best = Some((&row.group, numbers.seconds));
        }
        let interval = numbers.vs_best.and_then(|vs_best| vs_best.low.zip(vs_best.high));
        let ratio = best.map(|(_, seconds)| numbers.seconds / seconds.max(1e-9));
        if let (Some((low, high)), Some(ratio)) = (interval, ratio)
            && (ratio < low || ratio > high)
        {
            apart.push(format!("{} {}x", row.target, digits(ratio, 1)));
        }
    }
    if apart.is_empty() {
        return String::new();
    }
    let apart = apart.join(", ");
    format!(
        "vs best compares trials of the same block. Medians over all blocks give {apart}: times changed between blocks."
    )
}

/// What "about" before a ratio means, where a table has one.
pub fn rough(rows: &[Row]) -> &'static str {
    let is_rough = |row: &Row| {
        let ratios = row.numbers.iter().flat_map(|numbers| [numbers.vs_best, numbers.cpu_vs_least]);
        ratios.flatten().any(|ratio| ratio.preliminary)
    };
    if rows.iter().any(is_rough) { "about: too few blocks for an exact interval" } else { "" }
}

/// Of the blocks that count: "noise ok", "noisy: 7 of 12 blocks disturbed, all are used".
fn noise(standings: &Standings<'_>) -> String {
    let counted = &standings.counted;
    let (discarded, all) = (counted.discarded.len(), counted.blocks.union(&counted.discarded).count());
    let of_which = if discarded > 0 { " in the blocks that count" } else { "" };
    match () {
        () if counted.is_noisy() => format!("noisy: {discarded} of {all} blocks disturbed, all are used"),
        () if standings.is_noisy() => format!("noisy{of_which}"),
        () => format!("noise ok{of_which}"),
    }
}

/// "32, 1,000, 32,000": what is swept over, or what is the same everywhere.
fn listed(swept: &[u32], same: u32) -> String {
    let one = |size: &u32| units::thousands(u64::from(*size));
    if swept.is_empty() { one(&same) } else { swept.iter().map(one).collect::<Vec<_>>().join(", ") }
}

/// "sets and gets", "50 gets to 1 set".
fn asked(load: &Load) -> String {
    match (load.only, load.reads + load.writes) {
        (None, 0) => "sets and gets".to_string(),
        (None, _) => {
            format!("{} to {}", units::counted(load.reads.into(), "get"), units::counted(load.writes.into(), "set"))
        }
        (Some(Only::Set), _) => "sets".to_string(),
        (Some(Only::Get), _) => "gets".to_string(),
    }
}

/// "1 to 300 clients in a closed loop, depth 16": each asks again once it is answered.
fn many(load: &Load) -> String {
    let (fewest, most) = (load.clients.iter().min(), load.clients.iter().max());
    let clients = match (fewest, most) {
        (Some(fewest), Some(most)) if fewest < most => format!("{fewest} to {most} clients"),
        (_, Some(1)) => "1 client".to_string(),
        (_, most) => format!("{} clients", most.unwrap_or(&0)),
    };
    let keys = if load.keys == Keys::Uniform { String::new() } else { format!(", keys {}", load.keys) };
    let rates: Vec<String> = load.rates.iter().map(|&rate| units::thousands(rate)).collect();
    match (rates.as_slice(), load.arrivals) {
        ([], _) if !load.batches.is_empty() => {
            format!("{clients} in a closed loop, {} keys at once{keys}", listed(&load.batches, 1))
        }
        ([], _) => format!("{clients} in a closed loop, depth {}{keys}", load.depth),
        (rates, Arrivals::Poisson) => format!("{clients}, {}/s independent of each other{keys}", rates.join(", ")),
        (rates, Arrivals::Constant | Arrivals::Recorded) => {
            format!("{clients}, {}/s evenly spread{keys}", rates.join(", "))
        }
    }
}

/// Where the data came from, and its digest.
pub fn stream(records: &[Record]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let source = match &first.job.data {
        Data::Recipe { name, seed } if first.run.seeds.data.is_empty() => format!("recipe {name}, seed {seed}"),
        Data::Recipe { name, seed } => {
            let seeds: Vec<String> = first.run.seeds.data.iter().map(u64::to_string).collect();
            format!("recipe {name}, seeds {} in turn; of {seed}", seeds.join(", "))
        }
        Data::File { path } => file_in_words(path),
        // What it reads is its own affair.
        Data::Program { .. } => return String::new(),
    };
    if reads_only(first) {
        return format!("data: keys that are there, {} ops", units::thousands(first.stream.ops));
    }
    let read_as = first.job.read_as.as_ref().map_or_else(String::new, |read| format!(" read as {}", read.form));
    let skipped = match first.stream.skipped_lines {
        0 => String::new(),
        lines => format!(", {} skipped", units::counted(lines, "bad line")),
    };
    let (ops, sha256) = (units::thousands(first.stream.ops), &first.stream.sha256);
    let counted = match &first.stream.traced {
        Some(traced) => format!("{ops} requests{}", unasked(traced)),
        None => format!("{ops} ops"),
    };
    let packed = first.stream.zstd_share;
    let packed = packed.map_or_else(String::new, |share| format!(", values that zstd packs to {:.0} %", share * 100.0));
    format!("data: {source}{read_as}, {counted}{skipped}{packed}, sha256 {sha256}")
}

/// What was recorded and is not replayed.
fn unasked(traced: &Traced) -> String {
    match traced.unasked {
        0 => String::new(),
        unasked => format!(", {} skipped (append, prepend, incr, decr)", units::thousands(unasked)),
    }
}

/// How often each target's gets found nothing; nothing for a job that counts no misses.
pub fn misses(rows: &[Row], records: &[Record]) -> Option<Block> {
    let traced = records.first()?.stream.traced?;
    let told = |misses: u64| {
        let share = 100.0 * misses as f64 / traced.gets.max(1) as f64;
        format!("misses {} of {} ({share:.1} %)", units::thousands(misses), units::thousands(traced.gets))
    };
    let each = rows.iter().filter_map(|row| Some((row.target.as_str(), row.numbers.as_ref()?.run.misses)));
    let everything = traced.misses.map(|misses| ("a store that keeps everything", misses));
    let texts = each.chain(everything).map(|(name, misses)| (name.to_string(), told(misses)));
    Some(Block::Named("gets that found nothing, each followed by a set:".to_string(), texts.collect()))
}

/// How old what each target's replicas answered was; nothing where no replica was read.
pub fn stale(rows: &[Row]) -> Option<Block> {
    let of = |row: &Row| Some((row.target.clone(), row.numbers.as_ref()?.stale?.in_words()));
    let texts: Vec<(String, String)> = rows.iter().filter_map(of).collect();
    let told = "reads from replicas (p50 / p99 / worst of stale reads):";
    (!texts.is_empty()).then(|| Block::Named(told.to_string(), texts))
}

fn reads_only(record: &Record) -> bool {
    record.job.load.as_ref().is_some_and(|load| load.read_only)
}

/// Of keys that are not ours nothing is known but how many were asked for, and which were gone.
fn not_checked(records: &[Record]) -> String {
    let keys = records.iter().filter_map(|record| record.counters.get(KEYS_DRAWN)).max().copied().unwrap_or(0);
    let misses: u64 = records.iter().map(|record| record.metrics().misses).sum();
    let gone = if misses == 0 { String::new() } else { format!("; {} gets found nothing", units::thousands(misses)) };
    let drawn = if keys == 1 { "1 key was".to_string() } else { format!("{} keys were", units::thousands(keys)) };
    format!("answers: not checked; {drawn} drawn{gone}; nothing was written")
}

/// How answers were checked, where the headline in brief does not say that all are right.
pub fn answers_in_brief(records: &[Record]) -> String {
    match answer(records, false) {
        Block::Paragraph(words) if all_right(records).is_none() => words,
        _ => String::new(),
    }
}

/// How many trials gave the right answer; with `whole` the answer itself: digests, counts, what comes first.
pub fn answer(records: &[Record], whole: bool) -> Block {
    if records.first().is_some_and(reads_only) {
        return Block::Paragraph(not_checked(records));
    }
    let right = records.iter().find_map(|record| match &record.verdict {
        Verdict::Right(checked) => Some((record, checked)),
        _ => None,
    });
    if records.iter().any(|record| matches!(record.verdict, Verdict::Answered(_))) {
        let words = "answers: none was asked for, so kvfair does not know whether they are the same";
        return Block::Paragraph(words.to_string());
    }
    let Some((record, checked)) = right else { return Block::Paragraph(String::new()) };
    let keys = units::thousands(checked.keys);
    if checked.how == Verify::Sample {
        return Block::Paragraph(format!("answers: a sample of {keys} keys was compared"));
    }
    if records.iter().any(|record| record.stream.traced.is_some()) {
        let all = units::thousands(checked.keys_expected);
        let words = format!("answers: every get was looked at, and {keys} of {all} keys hold what was set last");
        return Block::Paragraph(words);
    }
    if checked.answer.is_empty() {
        let words = format!("answers: every get was looked at, and {keys} records hold some client's last write");
        return Block::Paragraph(words);
    }
    if !whole {
        let checked = run_on_stores(records);
        let right = checked.iter().filter(|record| matches!(record.verdict, Verdict::Right(_))).count();
        let all = checked.len();
        // Where one is wrong, or did not come to its end, they are not the same.
        let same = if right == all { "the same from every target, " } else { "" };
        let [right, all] = [right, all].map(|count| units::thousands(count as u64));
        return Block::Paragraph(format!("answers: {same}right in {right} of {all} trials"));
    }
    let of = match record.run.seeds.data.is_empty() {
        true => String::new(),
        false => format!(" to the data of seed {}", record.job.seed()),
    };
    let answers = checked.answer.iter().map(|(name, value)| (name.clone(), value.clone()));
    Block::Named(format!("the answer{of}, the same from every target that is right:"), answers.collect())
}
