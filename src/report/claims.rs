//! What may be said of a run in plain words: differences that would come out the same tomorrow, who cannot be told
//! apart, and why nothing is claimed.

use super::cells::{Row, Status, have_the_same_ops};
use super::standing::{Standing, Standings};
use super::versus::in_a_sentence;
use crate::model::effort::CLAIM_BLOCKS;
use crate::model::trial::Transport;
use crate::model::units;

/// So many differences are told, and so many pairs that cannot be told apart.
const TOLD: usize = 2;
/// A step is found nine times in ten where it is so many times the ± of intervals (simulated: docs/statistics.md).
const SEEN: f64 = 1.8;

/// One or a few sentences that can be quoted.
pub fn sentence(rows: &[Row], standings: &Standings<'_>) -> String {
    let wrong: Vec<&str> =
        rows.iter().filter(|row| matches!(row.status, Status::Wrong { .. })).map(|row| row.target.as_str()).collect();
    if !wrong.is_empty() && rows.iter().any(|row| row.of_program) {
        return format!("The answers differ: {} cannot be compared.", wrong.join(", "));
    }
    if !wrong.is_empty() {
        return format!("{} gave wrong answers and has no numbers.", wrong.join(", "));
    }
    if let Some(refused) = &standings.refused {
        return format!("{} {}", refused.in_words(), of_cpu(rows, standings));
    }
    let numbered: Vec<&Row> = rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect();
    if numbered.is_empty() {
        return String::new();
    }
    if standings.blocks() < CLAIM_BLOCKS as usize {
        return seen(&numbered, &few(standings.blocks()));
    }
    if numbered.len() > 1 && standings.noise.controls().is_empty() {
        return seen(&numbered, NO_CONTROL);
    }
    let groups = numbered.chunk_by(|one, other| one.group == other.group);
    let several = groups.clone().count() > 1;
    let each = groups.filter_map(|group| {
        let said = claims(group, standings.groups.get(&group[0].group)?)?;
        Some(if several { format!("{}: {said}", called(group[0])) } else { said })
    });
    let mut said: Vec<String> = each.collect();
    let cpu = of_cpu(rows, standings);
    if !cpu.is_empty() {
        said.insert(if standings.is_noisy() { 0 } else { said.len() }, cpu);
    }
    said.join(" ")
}

/// Whether CPU is the first that is said something of: where the noise, or the machine, makes times doubtful.
pub fn leads_with_cpu(rows: &[Row], standings: &Standings<'_>) -> bool {
    (standings.refused.is_some() || standings.is_noisy()) && !of_cpu(rows, standings).is_empty()
}

/// What one group's ranks say.
fn claims(group: &[&Row], standing: &Standing<'_>) -> Option<String> {
    if let [only] = group {
        return Some(format!("{} did the job in {} s.", only.target, units::seconds(seconds(only))));
    }
    let mut told = transports(group, standing);
    let best = group[0];
    let next = group.iter().find(|row| standing.is_less(&best.target, &row.target));
    let said =
        told.iter().any(|claim| next.is_some_and(|next| claim.slower == next.target && claim.faster == best.target));
    if let (Some(next), false) = (next, said) {
        told.insert(0, Claim::of(standing, best, next, None)?);
    }
    let mut parts: Vec<String> = told.iter().take(TOLD).map(Claim::in_words).collect();
    let (depending, alike): (Vec<Pair>, Vec<Pair>) =
        neighbours(group, standing).into_iter().partition(|(one, other)| standing.depends_on_data(one, other));
    if !depending.is_empty() {
        parts.push(format!("which is faster depends on the data: {}", named(&depending).join("; ")));
    }
    let (alike, hidden) = (named(&alike), hidden(&alike, standing));
    if !alike.is_empty() {
        parts.push(format!("cannot be told apart: {}{hidden}", alike.join(", ")));
    }
    Some(format!("{}.", parts.join("; ")))
}

/// A difference that may be claimed.
struct Claim<'a> {
    faster: &'a str,
    /// What the faster one took, in seconds.
    took_s: f64,
    slower: &'a str,
    /// How many times as long the slower one took: "1.29x [1.23-1.34]", "at least 36x".
    ratio: String,
    preliminary: bool,
    /// Where there are better words than their names: "redis over a Unix socket", "over TCP".
    words: Option<(String, String)>,
}

impl<'a> Claim<'a> {
    fn of(
        standing: &Standing<'_>,
        faster: &'a Row,
        slower: &'a Row,
        words: Option<(String, String)>,
    ) -> Option<Claim<'a>> {
        let took_s = seconds(faster);
        let (faster, slower) = (faster.target.as_str(), slower.target.as_str());
        let preliminary = standing.versus(slower, faster)?.preliminary;
        let ratio = standing.in_words(slower, faster)?.trim_start_matches('~').to_string();
        Some(Claim { faster, took_s, slower, ratio, preliminary, words })
    }

    fn in_words(&self) -> String {
        let (faster, slower) = match &self.words {
            Some((faster, slower)) => (faster.as_str(), slower.as_str()),
            None => (self.faster, self.slower),
        };
        let preliminary = if self.preliminary { ", preliminary" } else { "" };
        let (took, ratio) = (units::seconds(self.took_s), in_a_sentence(&self.ratio, "as long"));
        format!("{faster} ({took} s) is faster than {slower}, which takes {ratio}{preliminary}")
    }
}

/// The same store by two ways, where one is faster.
fn transports<'a>(group: &[&'a Row], standing: &Standing<'_>) -> Vec<Claim<'a>> {
    let pairs =
        group.iter().enumerate().flat_map(|(place, one)| group[place + 1..].iter().map(move |other| (one, other)));
    let same = pairs.filter(|(one, other)| one.store == other.store && one.transport != other.transport);
    let claimed = same.filter(|(one, other)| standing.is_less(&one.target, &other.target));
    let claims = claimed.filter_map(|(one, other)| {
        let words = (format!("{} {}", one.store, over(one.transport)), over(other.transport).to_string());
        // A target that was given a name of its own is called by it.
        let plain = [one, other].iter().all(|row| row.target.starts_with(&row.store));
        Claim::of(standing, one, other, plain.then_some(words))
    });
    claims.collect()
}

pub(super) fn over(transport: Transport) -> &'static str {
    match transport {
        Transport::InProcess => "in process",
        Transport::Unix => "over a Unix socket",
        Transport::Tcp => "over TCP",
    }
}

/// Two targets that stand next to each other in the table.
type Pair<'a> = (&'a str, &'a str);

/// Neighbours of which none may be called faster.
fn neighbours<'a>(group: &[&'a Row], standing: &Standing<'_>) -> Vec<Pair<'a>> {
    let pairs = group.windows(2).map(|pair| (pair[0].target.as_str(), pair[1].target.as_str()));
    pairs.filter(|(one, other)| !standing.is_less(one, other) && !standing.is_less(other, one)).collect()
}

/// "redis and valkey"; where there are many, how many more.
fn named(pairs: &[Pair<'_>]) -> Vec<String> {
    let mut words: Vec<String> = pairs.iter().map(|(one, other)| format!("{one} and {other}")).collect();
    if words.len() > TOLD + 1 {
        let more = words.len() - TOLD;
        words.truncate(TOLD);
        words.push(format!("{more} other neighbours"));
    }
    words
}

/// How large a difference would have been seen between them.
fn hidden(pairs: &[Pair<'_>], standing: &Standing<'_>) -> String {
    let below = |(one, other): &Pair<'_>| {
        let width = standing.versus(one, other).map_or(0.0, |ratio| ratio.plus_minus());
        standing.bar(one, other).map_or(0.0, |bar| bar.floor).max(SEEN * width)
    };
    let hidden = pairs.iter().map(below).fold(0.0, f64::max);
    if hidden > 0.0 { format!(" (noise hides differences below {:.0} %)", hidden * 100.0) } else { String::new() }
}

/// Why nothing is claimed from so many blocks.
fn few(blocks: usize) -> String {
    let blocks = if blocks == 1 { "1 block is".to_string() } else { format!("{blocks} blocks are") };
    format!("Seen here, not claimed: {blocks} too few, {CLAIM_BLOCKS} are the least.")
}

/// Why nothing is claimed without an A/A control.
pub(super) const NO_CONTROL: &str =
    "Seen here, not claimed: no store was run twice in each block (A/A control), so the noise floor is unknown.";

/// What was seen, and why it is no claim.
fn seen(numbered: &[&Row], why: &str) -> String {
    let mut bests = numbered.to_vec();
    bests.dedup_by(|one, other| one.group == other.group);
    if bests.len() > 1 {
        let each =
            bests.iter().map(|row| format!("{} {} in {} s", called(row), row.target, units::seconds(seconds(row))));
        return format!("Fastest of each kind: {}. {why}", each.collect::<Vec<_>>().join("; "));
    }
    match numbered {
        // The table has the ratio: its median over blocks may be another one than that of these seconds.
        [best, .., last] => format!(
            "{} did the job in {} s, {} in {} s. {why}",
            best.target,
            units::seconds(seconds(best)),
            last.target,
            units::seconds(seconds(last))
        ),
        [only] => format!("{} did the job in {} s.", only.target, units::seconds(seconds(only))),
        [] => String::new(),
    }
}

/// CPU: which store used least, and what others used of it where that may be claimed. The one that used next to
/// least and the one that used most stand for those between. A baseline is never the winner.
fn of_cpu(rows: &[Row], standings: &Standings<'_>) -> String {
    let Some(cpu) = standings.cpu().filter(Standing::has_controls) else { return String::new() };
    let cpu_of = match () {
        () if have_the_same_ops(rows) => "CPU per op",
        () if rows.iter().any(|row| row.of_program) => "CPU",
        () => "CPU for the whole job",
    };
    let used = |row: &&&Row| row.numbers.as_ref().map_or(f64::MAX, |numbers| numbers.cpu_us());
    let mut stores: Vec<&Row> = rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect();
    stores.sort_by(|one, other| used(&one).total_cmp(&used(&other)));
    let Some(least) = stores.first() else { return String::new() };
    let others = stores.iter().filter(|row| cpu.is_less(&least.target, &row.target));
    let mut each: Vec<String> = others
        .filter_map(|row| {
            let ratio = cpu.in_words(&row.target, &least.target)?;
            Some(format!("{} uses {}", row.target, in_a_sentence(&ratio, "as much")))
        })
        .collect();
    if each.is_empty() {
        return match stores.len() {
            0 | 1 => String::new(),
            _ => format!("The stores cannot be told apart by {cpu_of}."),
        };
    }
    if each.len() > TOLD {
        each.drain(1..each.len() - 1);
    }
    format!("{} uses the least {cpu_of}; {}.", least.target, each.join(", "))
}

fn seconds(row: &Row) -> f64 {
    row.numbers.as_ref().map_or(0.0, |numbers| numbers.seconds)
}

fn called(row: &Row) -> &str {
    match row.group.as_str() {
        "" if row.of_requests => "without a cache",
        "" => "one value at a time",
        group => group,
    }
}
