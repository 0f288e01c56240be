//! A comparison as a comment on a change: Markdown for forges. The verdict comes first, then a table, and folded below
//! them what a reader may ask for.
//!
//! Names may be anybody's. What stands here is made of letters and of marks as numbered entities, so that no name is
//! markup, a link, a mention or the end of a cell.

use super::compare::{ComparedCost, CostChange};
use super::costs;
use super::page::{Mask, blocks, machine, twice};
use super::regression::{CLEARER, ComparisonEnd, JudgedLimit};
use super::standing::{self, Counted, standings};
use super::verified;
use super::words;
use kvfair_core::logins;
use kvfair_core::record::Record;
use kvfair_core::units;
use kvfair_stats::sample::Sample;

/// Where the two of a comparison stand.
pub enum ComparedRuns<'a> {
    OneRun { records: &'a [Record], base: &'a str, head: &'a str },
    TwoRuns { base: &'a [Record], head: &'a [Record] },
}

impl ComparedRuns<'_> {
    /// The records and the label of the base and of the head.
    fn sides<'s>(&'s self, one: &'s ComparedCost) -> [(&'s [Record], &'s str); 2] {
        match self {
            ComparedRuns::OneRun { records, base, head } => [(*records, *base), (*records, *head)],
            ComparedRuns::TwoRuns { base, head } => [(*base, &one.target), (*head, &one.target)],
        }
    }

    fn mask(&self) -> Mask {
        match self {
            ComparedRuns::OneRun { records, .. } => Mask::of(records),
            ComparedRuns::TwoRuns { base, head } => Mask::of(&[*base, *head].concat()),
        }
    }
}

/// The whole comment.
pub fn comment(compared: &[ComparedCost], limits: &[JudgedLimit<'_>], of: &ComparedRuns<'_>) -> String {
    let mask = of.mask();
    let named = |one: &ComparedCost| match of {
        ComparedRuns::OneRun { base, head, .. } => format!("{} against {}", code(&mask, head), code(&mask, base)),
        ComparedRuns::TwoRuns { .. } => code(&mask, &one.target),
    };
    let mut text = format!("{}\n\n", verdict(compared, limits, &named, &mask));
    text.push_str("| target | measure | base | head | head / base | claim |\n| :-- | :-- | --: | --: | --: | :-- |\n");
    for one in compared {
        let [base, head] = of.sides(one);
        let cpu = if one.of_program { "CPU" } else { "CPU per op" };
        let measures: [(&str, &CostChange, Cost, [&str; 2]); 2] = [
            ("time", &one.seconds, Record::cost, ["faster", "slower"]),
            (cpu, &one.cpu, costs::cpu_us_per_op, ["less", "more"]),
        ];
        for (measure, change, cost, [less, more]) in measures {
            let of_side = |(records, label)| cell(middle(records, label, cost), measure);
            let claim = match change {
                CostChange::NotComparable { reason } => format!("not comparable: {}", inert(&mask, reason)),
                change => change.claim(less, more),
            };
            let ratio = change.ratio().unwrap_or_else(|| "-".to_string());
            let cells = [code(&mask, head.1), measure.to_string(), of_side(base), of_side(head), ratio, claim];
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    text + &details(of, &mask)
}

/// The first line: what it comes to.
fn verdict(
    compared: &[ComparedCost],
    limits: &[JudgedLimit<'_>],
    named: &impl Fn(&ComparedCost) -> String,
    mask: &Mask,
) -> String {
    // What decides comes first.
    let mut limits: Vec<&JudgedLimit<'_>> = limits.iter().collect();
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.end));
    let told = limits.iter().map(|limit| limit.in_words(named)).collect::<Vec<_>>().join("; ");
    match limits.first().map(|limit| limit.end) {
        Some(ComparisonEnd::Regressed) => return format!("**Regression**: {told}."),
        Some(ComparisonEnd::Unclear) => return format!("**Unclear**: {told}. What helps: {CLEARER}."),
        Some(ComparisonEnd::Good) => return format!("**No regression**: {told}."),
        None => {}
    }
    let claim = |one: &ComparedCost| match &one.seconds {
        CostChange::NotComparable { .. } => "not comparable".to_string(),
        change => change.claim("faster", "slower"),
    };
    if let [one] = compared {
        let words = claim(one);
        let (first, rest) = words.split_at(1);
        let evidence = match (&one.seconds, one.seconds.ratio()) {
            (CostChange::NotComparable { reason }, _) => inert(mask, reason),
            (_, ratio) => format!("takes {}", ratio.unwrap_or_default()),
        };
        return format!("**{}{rest}**: {} {evidence}.", first.to_uppercase(), named(one));
    }
    let counts = ["slower", "faster", "no difference found", "within the noise", "not comparable"].map(|words| {
        let count = compared.iter().filter(|one| claim(one) == words).count();
        (count > 0).then(|| format!("{count} {words}"))
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    format!("**{} targets**: {}.", compared.len(), counts.join(", "))
}

type Cost = fn(&Record) -> Option<f64>;

/// The median of the trials that count.
fn middle(records: &[Record], label: &str, cost: Cost) -> Option<f64> {
    let costs = standing::by_target(records, &Counted::of(records), cost, |one| one == label);
    Some(Sample::new(costs.into_values().next()?.into_values().collect())?.median())
}

fn cell(cost: Option<f64>, measure: &str) -> String {
    match (cost, measure) {
        (None, _) => "-".to_string(),
        (Some(seconds), "time") => format!("{} s", units::seconds(seconds)),
        (Some(cpu_us), "CPU") => format!("{} s", units::seconds(cpu_us / 1e6)),
        (Some(cpu_us), _) => format!("{} us", units::digits(cpu_us)),
    }
}

fn details(of: &ComparedRuns<'_>, mask: &Mask) -> String {
    let inside = match of {
        ComparedRuns::OneRun { records, .. } => facts(records, mask),
        ComparedRuns::TwoRuns { base, head } => {
            format!("Base:\n\n{}\nHead:\n\n{}", facts(base, mask), facts(head, mask))
        }
    };
    format!("\n<details><summary>Machine, versions, noise and command</summary>\n\n{inside}\n</details>\n")
}

/// A list of what a run was.
fn facts(records: &[Record], mask: &Mask) -> String {
    let Some(first) = records.first() else { return String::new() };
    let standings = standings(records);
    let build = if first.debug_build { ", a debug build: no number is one of a release" } else { "" };
    let mut versions: Vec<String> = Vec::new();
    for record in records {
        let Some(store) = &record.store else { continue };
        let told = format!("{} {}", code(mask, &record.target.label), inert(mask, &store.version));
        if !versions.contains(&told) {
            versions.push(told);
        }
    }
    let command = logins::hidden(&first.run.command.join(" "), &[]);
    let command = if command.is_empty() { command } else { code(mask, &format!("kvfair {command}")) };
    let lines = [
        ("Job", inert(mask, &words::subject(records))),
        ("Machine", inert(mask, &machine(&first.machine))),
        ("Versions", versions.join(", ")),
        ("kvfair", format!("{}, method {}{build}", inert(mask, &first.kvfair), first.method)),
        ("Blocks", inert(mask, &blocks(&standings))),
        ("Noise, the same target twice", inert(mask, &twice(&standings))),
        ("Durability", inert(mask, &verified::in_words(records))),
        ("Command", command),
    ];
    let told = lines.iter().filter(|(_, words)| !words.is_empty());
    told.map(|(name, words)| format!("- {name}: {words}\n")).collect()
}

/// Marks that begin a reference to a person, an issue or the like.
const REFERS: [char; 8] = ['@', '#', '!', '$', '%', '~', '&', '^'];

/// Words that may hold names. A space without width behind a mark keeps a forge from taking it for a reference.
fn inert(mask: &Mask, text: &str) -> String {
    let letters: Vec<char> = one_line(&mask.applied(text)).chars().collect();
    let each = letters.iter().enumerate().map(|(at, &letter)| {
        let refers = REFERS.contains(&letter) && letters.get(at + 1).is_some_and(|next| next.is_alphanumeric());
        format!("{}{}", entity(&letters, at), if refers { "&#8203;" } else { "" })
    });
    each.collect()
}

/// A name as it is typed. Forges look for references outside of code only.
fn code(mask: &Mask, text: &str) -> String {
    let letters: Vec<char> = one_line(&mask.applied(text)).chars().collect();
    format!("<code>{}</code>", (0..letters.len()).map(|at| entity(&letters, at)).collect::<String>())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The letter, or its number where it could be a mark. "www." begins a link.
fn entity(letters: &[char], at: usize) -> String {
    let letter = letters[at];
    let begins_link = letter == '.' && at > 0 && matches!(letters[at - 1], 'w' | 'W');
    // Only what follows at once makes a colon a link or a picture.
    let ends_word = letter == ':' && letters.get(at + 1).is_none_or(|next| *next == ' ');
    let is_plain = ends_word || !letter.is_ascii() || letter.is_ascii_alphanumeric() || " -+.,;()?/=%".contains(letter);
    if is_plain && !begins_link { letter.to_string() } else { format!("&#{};", u32::from(letter)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as attackers choose them.
    #[test]
    fn no_name_is_markup_or_a_mention() {
        let mask = Mask::default();
        let hostile = "a|b `c` <script>alert(1)</script> @ann #1 [x](http://y) \\| ~~z~~ **w**\n# h www.x.y";
        for said in [code(&mask, hostile), inert(&mask, hostile)] {
            let said = said.trim_start_matches("<code>").trim_end_matches("</code>");
            for mark in ['|', '`', '<', '>', '@', '[', ']', '\\', '~', '*', '_', '\n'] {
                assert!(!said.contains(mark), "{mark:?} in {said}");
            }
            assert!(!said.contains("www.") && !said.contains("http:") && said.contains("alert(1)"), "{said}");
        }
        assert_eq!(
            code(&mask, "redis+unix?program=./x/redis-server"),
            "<code>redis+unix?program=./x/redis-server</code>"
        );
        assert_eq!(inert(&mask, "@ann, 3 % of #7"), "&#64;&#8203;ann, 3 % of &#35;&#8203;7");
        assert_eq!(inert(&mask, "controls: 4 · 1"), "controls: 4 · 1");
    }
}
