//! The answer of a run in one line of 14 words at the most, to head its page: who finished first, and by how much.

use super::cells::{Row, Status};
use super::claims::{called, is_tied, is_unclaimed, no_claims, numbered, seconds};
use super::costs::BATCH_ENGINES;
use super::standing::{Standing, Standings};
use super::sweep;
use super::{point::Point, run_report::RunReport};
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::noise::percent;
use kvfair_core::trial::Transport;
use kvfair_core::units;

/// So many targets that gave wrong answers are named.
const NAMED: usize = 3;
/// Beyond this noise floor it tells nothing that two targets are tied.
const TOO_NOISY: f64 = 0.25;
/// More words are not read at a glance.
const WORDS_MAX: usize = 14;

/// Of a run of one size. Never empty.
pub fn answer(report: &RunReport<'_>) -> String {
    if report.is_swept && !report.points.is_empty() {
        return of_points(&report.points);
    }
    let [first, next] = of_rows(&report.rows, &report.standings);
    let both = format!("{first} {next}");
    if both.split_whitespace().count() <= WORDS_MAX { both.trim_end().to_string() } else { first }
}

/// The heading of its page: noise is a badge there, and no heading.
pub fn heading(report: &RunReport<'_>) -> String {
    let ranked = numbered(&report.rows);
    match too_noisy(&ranked, &report.standings) {
        Some(_) => format!("Not ranked: {} targets, {}.", ranked.len(), range(&ranked)),
        None => answer(report),
    }
}

/// The noise floor, where it hides every difference.
fn too_noisy(ranked: &[&Row], standings: &Standings<'_>) -> Option<f64> {
    let floor = standings.noise.floor();
    let is_hidden = !standings.groups.values().any(Standing::claims_any);
    (ranked.len() > 1 && floor > TOO_NOISY && is_hidden).then_some(floor)
}

/// Of the largest of several sizes: "At 10,000 profiles lmdb finished first: 0.51 s."
pub fn answer_at(size: &str, report: &RunReport<'_>) -> String {
    let [first, _] = of_rows(&report.rows, &report.standings);
    match no_claims(&numbered(&report.rows), &report.standings) {
        Some(_) => first,
        None => format!("At {size}: {first}"),
    }
}

fn of_points(points: &[Point]) -> String {
    let otherwise = || sweep::sentences(points).into_iter().next();
    sweep::answer(points).or_else(otherwise).unwrap_or_else(|| "No target has numbers.".to_string())
}

/// A sentence, and another one or nothing.
fn of_rows(rows: &[Row], standings: &Standings<'_>) -> [String; 2] {
    let alone = |sentence: String| [sentence, String::new()];
    let wrong: Vec<&str> =
        rows.iter().filter(|row| matches!(row.status, Status::Wrong { .. })).map(|row| row.target.as_str()).collect();
    if !wrong.is_empty() {
        let who = if wrong.len() > NAMED { format!("{} targets", wrong.len()) } else { wrong.join(", ") };
        let differ = rows.iter().any(|row| row.of_program);
        return alone(match differ {
            true => format!("The answers differ: {who} cannot be compared."),
            false => format!("{who} gave wrong answers."),
        });
    }
    let ranked = numbered(rows);
    if ranked.is_empty() {
        return alone(without_numbers(rows));
    }
    if standings.refused.is_some() {
        return alone("Times are not ranked: this machine cannot keep the durability level.".to_string());
    }
    if let [only] = ranked.as_slice() {
        return alone(format!("{} finished in {}.", only.target, took(only)));
    }
    if no_claims(&ranked, standings).is_some() {
        let blocks = standings.blocks();
        return alone(match blocks < CLAIM_BLOCKS as usize {
            true => format!("Not ranked: {} ran, {CLAIM_BLOCKS} are needed.", units::counted(blocks as u64, "block")),
            false => "Not ranked: no store was run twice in each block.".to_string(),
        });
    }
    let groups: Vec<&[&Row]> = ranked.chunk_by(|one, other| one.group == other.group).collect();
    if let Some(floor) = too_noisy(&ranked, standings) {
        return alone(format!("Too noisy to rank: the noise floor is {}.", percent(floor)));
    }
    match groups.as_slice() {
        [group] => of_group(group, standings.groups.get(&group[0].group)),
        several => alone(of_groups(several)),
    }
}

fn without_numbers(rows: &[Row]) -> String {
    // Rows of a group are sorted by their seconds.
    if let Some(engine) = rows.iter().find(|row| row.group == BATCH_ENGINES && row.numbers.is_some()) {
        return format!("{} counted everything at once in {}.", engine.target, took(engine));
    }
    let of = |is: fn(&Row) -> bool| rows.iter().filter(|row| !row.baseline && is(row)).count();
    let (all, good) = (of(|_| true), of(|row| row.status.has_numbers()));
    match good {
        0 if all == 0 => "Only baselines were run: what the job costs without a store.".to_string(),
        0 => format!("No target has numbers: none of {all} finished with right answers."),
        _ => format!("Nothing was timed: {good} of {all} targets answered without a mistake."),
    }
}

/// Groups are not compared with each other: the first of each of two, or the shortest time of all.
fn of_groups(groups: &[&[&Row]]) -> String {
    let each =
        groups.iter().take(2).map(|group| format!("{}: {}, {}", called(group[0]), group[0].target, took(group[0])));
    let text = format!("{}.", each.collect::<Vec<_>>().join("; "));
    if text.split_whitespace().count() <= WORDS_MAX {
        return text;
    }
    let shortest = groups.iter().map(|group| group[0]).min_by(|one, other| seconds(one).total_cmp(&seconds(other)));
    let shortest = shortest.map_or_else(String::new, |row| format!("Shortest: {}, {}; ", row.target, took(row)));
    format!("{shortest}{} ways of asking, each ranked by itself.", groups.len())
}

/// Who finished first, and who is claimed to come behind.
fn of_group(group: &[&Row], standing: Option<&Standing<'_>>) -> [String; 2] {
    let best = group[0];
    let Some(standing) = standing else {
        return [format!("{} finished in {}.", best.target, took(best)), String::new()];
    };
    let first: Vec<&Row> = group.iter().copied().filter(|row| is_unclaimed(standing, best, row)).collect();
    let is_tie = first.iter().all(|row| is_tied(standing, best, row) || row.target == best.target);
    let words = if is_tie { "Tied" } else { "Not separated" };
    let finished = if best.of_requests { "served most" } else { "finished first" };
    let said = match first.as_slice() {
        [] | [_] => format!("{} {finished}: {}.", best.target, took(best)),
        [one, other] => format!("{words}: {} and {}, {}.", one.target, other.target, range(&first)),
        [one, others @ ..] => format!("{words}: {} and {} others, {}.", one.target, others.len(), range(&first)),
    };
    [said, behind(group, standing).unwrap_or_default()]
}

/// "Best server: memcached, 10.8 s (21x)." where embedded stores lead, and "Servers: from 10.8 s (21x)." where the best
/// server is not known; else the next one that is claimed to be slower.
fn behind(group: &[&Row], standing: &Standing<'_>) -> Option<String> {
    let best = group[0];
    let is_embedded = |row: &Row| row.transport == Transport::InProcess && !row.of_program;
    let is_slower = |row: &&&Row| standing.is_less(&best.target, &row.target);
    let servers = || group.iter().filter(|row| !is_embedded(row));
    let server = servers().next().filter(|row| is_embedded(best) && is_slower(row));
    let is_best =
        |server: &Row| servers().all(|row| row.target == server.target || !is_unclaimed(standing, server, row));
    let (words, row) = match server {
        Some(server) => ("Best server", server),
        None => ("Next", group.iter().find(is_slower)?),
    };
    let ratio = standing.in_brief(&row.target, &best.target)?;
    if server.is_some_and(|server| !is_best(server)) {
        return Some(format!("Servers: from {} ({ratio}).", took(row)));
    }
    Some(format!("{words}: {}, {} ({ratio}).", row.target, took(row)))
}

/// "0.51-0.89 s", from the best to the last of these.
fn range(rows: &[&Row]) -> String {
    let ends = [rows.first(), rows.last()].map(|row| row.map_or_else(String::new, |row| took(row)));
    let [from, to] = &ends;
    let unit = to.rfind(|letter: char| letter.is_ascii_digit()).map_or("", |at| &to[at + 1..]);
    if from == to { to.clone() } else { format!("{}-{to}", from.trim_end_matches(unit)) }
}

/// "0.51 s", "52 k requests/s".
fn took(row: &Row) -> String {
    match &row.numbers {
        Some(numbers) if row.of_requests => format!("{} requests/s", units::count(numbers.units_per_s)),
        Some(numbers) => format!("{} s", units::seconds(numbers.seconds)),
        None => String::new(),
    }
}
