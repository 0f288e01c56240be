//! What may be said of a run in plain words: differences that would come out the same tomorrow, which targets are tied,
//! which are not separated, and why nothing is claimed.

use super::cells::{Numbers, Row, Status};
use super::claim_measure::ClaimMeasure;
use super::costs;
use super::standing::{Standing, Standings};
use super::versus::in_a_sentence;
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::noise::percent;
use kvfair_core::trial::Transport;
use kvfair_core::units;
use kvfair_stats::rank::Unclaimed;

/// So many differences are told, and so many pairs that are tied.
const TOLD: usize = 2;
/// A step is found nine times in ten where it is so many times the ± of intervals (simulated: docs/statistics.md).
const SEEN: f64 = 1.8;

/// One or a few sentences that can be quoted. Of a noisy run the first one says that single times are not reliable.
pub fn sentence(rows: &[Row], standings: &Standings<'_>) -> String {
    let said = sentences(rows, standings).join(" ");
    match said.is_empty() || is_wrong(rows) {
        true => said,
        false => {
            doubted(standings, rule(rows, standings).into_iter().chain([said.as_str()]).collect::<Vec<_>>().join(" "))
        }
    }
}

/// The same one by one, without what the noise forbids.
pub fn sentences(rows: &[Row], standings: &Standings<'_>) -> Vec<String> {
    if !is_wrong(rows) {
        return of_right_answers(rows, standings);
    }
    let wrong = rows.iter().filter(|row| matches!(row.status, Status::Wrong { .. })).map(|row| row.target.as_str());
    let wrong = wrong.collect::<Vec<_>>().join(", ");
    vec![match rows.iter().any(|row| row.of_program) {
        true => format!("The answers differ: {wrong} cannot be compared."),
        false => format!("{wrong} gave wrong answers and has no numbers."),
    }]
}

/// Some target gave wrong answers.
pub(super) fn is_wrong(rows: &[Row]) -> bool {
    rows.iter().any(|row| matches!(row.status, Status::Wrong { .. }))
}

/// A sentence about times, behind the one that says why single times are not reliable, if they are not.
pub fn doubted(standings: &Standings<'_>, said: String) -> String {
    match doubt(standings) {
        Some(doubt) => format!("{doubt} {said}").trim_end().to_string(),
        None => said,
    }
}

/// Why the single times of a run are not reliable; nothing of a quiet run.
pub fn doubt(standings: &Standings<'_>) -> Option<String> {
    let counted = &standings.counted;
    let (discarded, all) = (counted.discarded.len(), counted.blocks.union(&counted.discarded).count());
    let why = match standings.is_noisy() {
        false => return None,
        true if counted.is_noisy() => format!("the machine disturbed {discarded} of {all} blocks"),
        true => format!("noise floor {}", percent(standings.noise.floor())),
    };
    Some(format!("Single times are not reliable: {why}."))
}

fn of_right_answers(rows: &[Row], standings: &Standings<'_>) -> Vec<String> {
    let some = |said: Vec<String>| said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>();
    if let Some(refused) = &standings.refused {
        return some(vec![refused.in_words(), of_cpu(rows, standings)]);
    }
    let numbered = numbered(rows);
    if numbered.is_empty() {
        return Vec::new();
    }
    if let Some(why) = no_claims(&numbered, standings) {
        return vec![no_claim(&numbered, &why)];
    }
    let groups = numbered.chunk_by(|one, other| one.group == other.group);
    let several = groups.clone().count() > 1;
    let of_group = |group: &[&Row]| {
        let mut said = claims(group, standings.groups.get(&group[0].group)?, standings.blocks())?;
        if several {
            said[0] = format!("{}: {}", called(group[0]), said[0]);
        }
        Some(said)
    };
    let mut said: Vec<String> = groups.filter_map(of_group).flatten().collect();
    let cpu = of_cpu(rows, standings);
    if standings.is_noisy() {
        // CPU is disturbed less, so it comes before times. Several groups are named, each before what is said of it.
        if !cpu.is_empty() && !said.is_empty() && !several {
            said[0] = format!("By time: {}", said[0]);
        }
        said.splice(0..0, some(vec![cpu]));
    } else if !cpu.is_empty() {
        said.push(cpu);
    }
    let others = CLAIMED.iter().filter(|cost| cost.measure != ClaimMeasure::Cpu);
    said.extend(some(others.map(|cost| cost.sentence(rows, standings)).collect()));
    let open = open(&numbered, standings);
    said.extend(unseen_in_words(rows, standings).filter(|_| open.tied || open.not_separated));
    said
}

/// Why nothing at all is claimed.
pub(super) fn no_claims(numbered: &[&Row], standings: &Standings<'_>) -> Option<String> {
    if standings.blocks() < CLAIM_BLOCKS as usize {
        return Some(few(standings.blocks()));
    }
    (numbered.len() > 1 && standings.noise.controls().is_empty()).then(|| NO_CONTROL.to_string())
}

/// Whether some targets are tied, and whether some are not separated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Open {
    tied: bool,
    not_separated: bool,
}

/// What is open between the best of each group and the others, and between neighbours in the table.
fn open(numbered: &[&Row], standings: &Standings<'_>) -> Open {
    let mut open = Open::default();
    if standings.refused.is_some() || no_claims(numbered, standings).is_some() {
        return open;
    }
    for group in numbered.chunk_by(|one, other| one.group == other.group).filter(|group| group.len() > 1) {
        let Some(standing) = standings.groups.get(&group[0].group) else { continue };
        let is_first = |row: &Row| is_unclaimed(standing, group[0], row);
        let neighbours = group.windows(2).map(|pair| (pair[0], pair[1]));
        let neighbours = neighbours.filter(|(one, other)| !(is_first(one) && is_first(other)));
        let pairs = group[1..].iter().map(|row| (group[0], *row)).chain(neighbours);
        for (one, other) in pairs.filter(|(one, other)| is_unclaimed(standing, one, other)) {
            match is_tied(standing, one, other) {
                true => open.tied = true,
                false => open.not_separated = true,
            }
        }
    }
    open
}

/// The stores that have numbers.
pub(super) fn numbered(rows: &[Row]) -> Vec<&Row> {
    rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect()
}

/// What is still claimed of a noisy run.
pub fn rule(rows: &[Row], standings: &Standings<'_>) -> Option<&'static str> {
    let numbered = numbered(rows);
    let claims = standings.refused.is_none() && numbered.len() > 1 && no_claims(&numbered, standings).is_none();
    (claims && standings.is_noisy()).then_some("Only differences beyond the noise are claimed.")
}

/// Of targets whose ratio lies within the noise floor.
const TIED: &str = " are tied";
/// Of targets of which nothing is claimed, and that may differ by more.
const NOT_SEPARATED: &str = " not separated";

/// What one group's ranks say, a sentence each, and one at the least.
fn claims(group: &[&Row], standing: &Standing<'_>, blocks: usize) -> Option<Vec<String>> {
    if let [only] = group {
        return Some(vec![format!("{} did the job in {} s.", only.target, units::seconds(seconds(only)))]);
    }
    let best = group[0];
    let first: Vec<&Row> = group.iter().copied().filter(|row| is_unclaimed(standing, best, row)).collect();
    let mut told = transports(group, standing, blocks);
    let next = group.iter().find(|row| standing.is_less(&best.target, &row.target));
    let said =
        told.iter().any(|claim| next.is_some_and(|next| claim.slower == next.target && claim.faster == best.target));
    if let (Some(next), false) = (next, said) {
        told.insert(0, Claim::of(standing, best, next, blocks, None)?);
    }
    let mut parts: Vec<String> = Vec::new();
    if first.len() > 1 {
        parts.extend(first_place(standing, best, &first[1..]));
        told.iter_mut().filter(|claim| claim.faster == best.target).for_each(|claim| claim.took_s = None);
    }
    parts.extend(told.iter().take(TOLD).map(Claim::in_words));
    let pairs = group.windows(2).map(|pair| (pair[0], pair[1]));
    let depending = pairs.clone().filter(|(one, other)| standing.depends_on_data(&one.target, &other.target));
    let depends = |one: &str, other: &str| format!("Whether {one} or {other} is faster depends on the data");
    parts.extend(named(depending, depends, " depend on the data"));
    let is_first = |row: &Row| first.iter().any(|one| one.target == row.target);
    let open = pairs.filter(|(one, other)| is_unclaimed(standing, one, other) && !(is_first(one) && is_first(other)));
    let (tied, open): (Vec<_>, Vec<_>) = open.partition(|(one, other)| is_tied(standing, one, other));
    parts.extend(named(tied.into_iter(), |one, other| format!("{one} and {other}{TIED}"), TIED));
    let not_separated = format!(" are{NOT_SEPARATED}");
    parts.extend(named(open.into_iter(), |one, other| format!("{one} and {other}{not_separated}"), &not_separated));
    Some(parts.into_iter().map(|part| format!("{part}.")).collect()).filter(|said: &Vec<String>| !said.is_empty())
}

/// The best row, and those that it is not claimed to be faster than: which of them are tied with it, and which are not
/// separated from it, for want of blocks.
fn first_place(standing: &Standing<'_>, best: &Row, others: &[&Row]) -> Vec<String> {
    let (tied, open): (Vec<&Row>, Vec<&Row>) = others.iter().copied().partition(|row| is_tied(standing, best, row));
    let tied: Vec<&Row> = [best].into_iter().chain(tied).collect();
    let is_alone = tied.len() == 1;
    let mut said = Vec::new();
    if !is_alone {
        said.push(format!("{}{TIED} for first place", listed(&tied)));
    }
    if !open.is_empty() {
        let are = if open.len() == 1 { "is" } else { "are" };
        let named = match is_alone {
            true => format!("{} are{NOT_SEPARATED}", listed(&[&tied[..], &open].concat())),
            false => format!("{} {are}{NOT_SEPARATED} from {}", listed(&open), best.target),
        };
        said.push(format!("{named}: {}", too_few(standing, best, &open)));
    }
    said
}

/// "too few blocks, about 14 would do": the most that any of these needs.
fn too_few(standing: &Standing<'_>, best: &Row, open: &[&Row]) -> String {
    let blocks = open.iter().map(|row| match standing.unclaimed(&best.target, &row.target) {
        Some(Unclaimed::NotSeparated { blocks }) => blocks,
        Some(Unclaimed::Tied) | None => None,
    });
    match blocks.collect::<Option<Vec<usize>>>().and_then(|blocks| blocks.into_iter().max()) {
        Some(blocks) => format!("too few blocks, about {} would do", units::thousands(blocks as u64)),
        None => "too much noise, more blocks alone would not do".to_string(),
    }
}

/// None of the two may be called faster, whatever the data.
pub(super) fn is_unclaimed(standing: &Standing<'_>, one: &Row, other: &Row) -> bool {
    one.target == other.target || standing.unclaimed(&one.target, &other.target).is_some()
}

/// Nor does one of them differ from the other by more than the noise floor.
pub(super) fn is_tied(standing: &Standing<'_>, one: &Row, other: &Row) -> bool {
    standing.unclaimed(&one.target, &other.target) == Some(Unclaimed::Tied)
}

/// "redis (0.89 s), valkey (0.90 s) and 2 more".
fn listed(rows: &[&Row]) -> String {
    let mut names: Vec<String> =
        rows.iter().map(|row| format!("{} ({} s)", row.target, units::seconds(seconds(row)))).collect();
    if names.len() > TOLD + 1 {
        let more = names.len() - TOLD;
        names.truncate(TOLD);
        names.push(format!("{more} more"));
    }
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

/// What `unseen` means beside the claims.
pub fn unseen_in_words(rows: &[Row], standings: &Standings<'_>) -> Option<String> {
    let share = percent(unseen(rows, standings)?);
    Some(match open(&numbered(rows), standings).tied {
        true => format!("Ties may hide differences below {share}."),
        false => format!("Differences below {share} are not detected."),
    })
}

/// How large a difference would have shown between targets of which none is claimed to be faster: one number for a run.
/// Where there are none, the noise floor; nothing where there is no control.
pub fn unseen(rows: &[Row], standings: &Standings<'_>) -> Option<f64> {
    let ranked = numbered(rows);
    let each = ranked.windows(2).filter(|pair| pair[0].group == pair[1].group).filter_map(|pair| {
        let standing =
            standings.groups.get(&pair[0].group).filter(|standing| is_unclaimed(standing, pair[0], pair[1]))?;
        let (one, other) = (pair[0].target.as_str(), pair[1].target.as_str());
        let width = standing.versus(one, other).map_or(0.0, |ratio| ratio.plus_minus());
        Some(standing.bar(one, other).map_or(0.0, |bar| bar.floor).max(SEEN * width))
    });
    let most = each.fold(standings.noise.floor(), f64::max);
    (standings.may_rank() && most > 0.0).then_some(most)
}

/// A difference that may be claimed.
struct Claim<'a> {
    faster: &'a str,
    /// What the faster one took, in seconds; none where that was said.
    took_s: Option<f64>,
    slower: &'a str,
    /// How many times as long the slower one took: "1.29x [1.23-1.34]", "at least 36x".
    ratio: String,
    /// Of so few blocks that the interval is rough: these, and those that count.
    few: Option<(usize, usize)>,
    /// Where there are better words than their names: "redis over a Unix socket", "over TCP".
    words: Option<(String, String)>,
}

impl<'a> Claim<'a> {
    fn of(
        standing: &Standing<'_>,
        faster: &'a Row,
        slower: &'a Row,
        blocks: usize,
        words: Option<(String, String)>,
    ) -> Option<Claim<'a>> {
        let took_s = Some(seconds(faster));
        let (faster, slower) = (faster.target.as_str(), slower.target.as_str());
        let few = standing.versus(slower, faster)?.preliminary.then_some((standing.blocks, blocks));
        let ratio = standing.in_words(slower, faster)?;
        Some(Claim { faster, took_s, slower, ratio, few, words })
    }

    fn in_words(&self) -> String {
        let (faster, slower) = match &self.words {
            Some((faster, slower)) => (faster.as_str(), slower.as_str()),
            None => (self.faster, self.slower),
        };
        let few = self.few.map_or_else(String::new, |(whole, all)| match whole == all {
            true => format!(" (rough: only {whole} blocks)"),
            false => format!(" (rough: only {whole} of the {all} blocks that count have every target)"),
        });
        let took = self.took_s.map_or_else(String::new, |took_s| format!(" ({} s)", units::seconds(took_s)));
        let ratio = in_a_sentence(&self.ratio, "as long");
        format!("{faster}{took} is faster than {slower}, which takes {ratio}{few}")
    }
}

/// The same store by two ways, where one is faster.
fn transports<'a>(group: &[&'a Row], standing: &Standing<'_>, blocks: usize) -> Vec<Claim<'a>> {
    let pairs =
        group.iter().enumerate().flat_map(|(place, one)| group[place + 1..].iter().map(move |other| (one, other)));
    let same = pairs.filter(|(one, other)| one.store == other.store && one.transport != other.transport);
    let claimed = same.filter(|(one, other)| standing.is_less(&one.target, &other.target));
    let claims = claimed.filter_map(|(one, other)| {
        let words = (format!("{} {}", one.store, over(one.transport)), over(other.transport).to_string());
        // A target that was given a name of its own is called by it.
        let plain = [one, other].iter().all(|row| row.target.starts_with(&row.store));
        Claim::of(standing, one, other, blocks, plain.then_some(words))
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

/// A sentence for each pair of neighbours in the table; where there are many, how many more.
fn named<'a>(
    pairs: impl Iterator<Item = (&'a Row, &'a Row)>,
    words: impl Fn(&str, &str) -> String,
    they: &str,
) -> Vec<String> {
    let mut said: Vec<String> = pairs.map(|(one, other)| words(&one.target, &other.target)).collect();
    if said.len() > TOLD + 1 {
        let more = said.len() - TOLD;
        said.truncate(TOLD);
        said.push(format!("{more} more pairs of neighbours in the table{they}"));
    }
    said
}

/// Why nothing is claimed from so many blocks.
fn few(blocks: usize) -> String {
    let blocks = units::counted(blocks as u64, "block");
    format!("No claim: {blocks} ran, and a claim needs at least {CLAIM_BLOCKS}.")
}

/// Why nothing is claimed without an A/A control.
pub(super) const NO_CONTROL: &str =
    "No claim: no store was run twice in each block (A/A control), so the noise is unknown.";

/// Why nothing is claimed. No target is named before others: that would be a claim.
fn no_claim(numbered: &[&Row], why: &str) -> String {
    match numbered {
        [only] => format!("{} did the job in {} s.", only.target, units::seconds(seconds(only))),
        _ => format!("{why} The table has what was measured."),
    }
}

/// A cost besides the time of the job by which targets are compared with each other, those of all groups together.
pub(super) struct ClaimedCost {
    pub measure: ClaimMeasure,
    pub standing: for<'a> fn(&[Row], &Standings<'a>) -> Option<Standing<'a>>,
    /// What the table has of it.
    used: fn(&Row) -> Option<f64>,
    words: fn(&[Row]) -> LeastWords,
}

/// In the order in which they are told.
pub(super) const CLAIMED: [ClaimedCost; 2] = [CPU, LATENCY];

/// What is used up does not wait, so baselines are in it too.
const CPU: ClaimedCost = ClaimedCost {
    measure: ClaimMeasure::Cpu,
    standing: |_, standings| standings.cpu(),
    used: |row| row.numbers.as_ref().map(Numbers::cpu_us),
    words: |rows| LeastWords {
        least: if rows.iter().any(|row| row.of_program) { "CPU" } else { "CPU per op" },
        uses: "uses",
        the_least: "the least",
        as_much: "as much CPU",
        value: |_| String::new(),
    },
};

/// Of jobs of requests: a store that answers most requests may let some of them wait longest.
const LATENCY: ClaimedCost = ClaimedCost {
    measure: ClaimMeasure::LatencyP99,
    standing: |rows, standings| {
        let is_store = |label: &str| rows.iter().any(|row| !row.baseline && row.target == label);
        let of_requests = rows.iter().any(|row| row.of_requests);
        of_requests.then(|| standings.by(costs::latency_p99_s, is_store)).flatten().filter(Standing::has_controls)
    },
    used: |row| Some(row.numbers.as_ref()?.op_times?.op_ns_p99? as f64),
    words: |_| LeastWords {
        least: "p99 of a request",
        uses: "has",
        the_least: "the shortest",
        as_much: "as long a p99",
        value: |p99_ns| format!(" ({})", units::nanoseconds(p99_ns as u64)),
    },
};

impl ClaimedCost {
    /// Which stores cost least, and what others cost of it where that may be claimed.
    pub(super) fn sentence(&self, rows: &[Row], standings: &Standings<'_>) -> String {
        let standing = (self.standing)(rows, standings).filter(Standing::has_controls);
        standing.map_or_else(String::new, |standing| least(rows, &standing, self.used, &(self.words)(rows)))
    }
}

fn of_cpu(rows: &[Row], standings: &Standings<'_>) -> String {
    CPU.sentence(rows, standings)
}

/// How what is least is called.
struct LeastWords {
    least: &'static str,
    uses: &'static str,
    the_least: &'static str,
    as_much: &'static str,
    /// Behind the name of one that has least.
    value: fn(f64) -> String,
}

/// Which stores have least, and what others have of it. The one that has next to least and the one that has most stand
/// for those between. A baseline is never the winner.
fn least(rows: &[Row], standing: &Standing<'_>, used: impl Fn(&Row) -> Option<f64>, words: &LeastWords) -> String {
    let LeastWords { least: what, uses, the_least, as_much, value } = words;
    let known = rows.iter().filter(|row| !row.baseline).filter_map(|row| Some((row, used(row)?)));
    let mut stores: Vec<(&Row, f64)> = known.collect();
    stores.sort_by(|one, other| one.1.total_cmp(&other.1));
    let Some(&(least, least_used)) = stores.first() else { return String::new() };
    let is_more = |row: &Row| standing.is_less(&least.target, &row.target);
    let others = stores.iter().map(|(row, _)| *row).filter(|row| is_more(row));
    let equal: Vec<&(&Row, f64)> = stores.iter().filter(|(row, _)| !is_more(row)).collect();
    let tied: Vec<String> = equal.iter().map(|(row, used)| format!("{}{}", row.target, value(*used))).collect();
    let beside = if tied.len() < 2 { String::new() } else { format!(" as {}", least.target) };
    let mut each: Vec<String> = others
        .filter_map(|row| {
            let ratio = standing.in_words(&row.target, &least.target)?;
            Some(format!("{} {uses} {}{beside}", row.target, in_a_sentence(&ratio, as_much)))
        })
        .collect();
    if each.is_empty() {
        let told = if value(least_used).is_empty() { String::new() } else { format!(": {}", tied.join(", ")) };
        let is_alone = stores.len() < 2;
        return if is_alone { String::new() } else { format!("The stores cannot be told apart by {what}{told}.") };
    }
    if each.len() > TOLD {
        each.drain(1..each.len() - 1);
    }
    let are = match equal.iter().all(|(row, _)| row.target == least.target || is_tied(standing, least, row)) {
        true => format!("are tied for {the_least} {what}"),
        false => format!("are{NOT_SEPARATED} at {the_least} {what}"),
    };
    let who = match tied.as_slice() {
        [only] => format!("{only} {uses} {the_least} {what}"),
        [one, other] => format!("{one} and {other} {are}"),
        [one, other, third] => format!("{one}, {other} and {third} {are}"),
        more => format!("{} and {} more {are}", more[0], more.len() - 1),
    };
    format!("{who}; {}.", each.join(", "))
}

pub(super) fn seconds(row: &Row) -> f64 {
    row.numbers.as_ref().map_or(0.0, |numbers| numbers.seconds)
}

pub(super) fn called(row: &Row) -> &str {
    match row.group.as_str() {
        "" if row.of_requests => "without a cache",
        "" => "one value at a time",
        group => group,
    }
}
