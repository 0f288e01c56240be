//! What levers gain, in words: sentences, and the cells of a table.

use super::{EnoughLevers, LevelRow, LeverCost, LeverReport, LeverRow, SyntheticAnswer};
use crate::table::TableLine;
use crate::typed;
use crate::versus::{claimed, too_few, versus};
use kvfair_core::levers::TriedValue;
use kvfair_core::shell;
use kvfair_core::units;
use kvfair_stats::levers::{Confirmed, Gain, LeverEffect};

/// The most levers that an advice names.
const ADVICE_MAX: usize = 5;

/// A lever that helps.
pub struct AdvisedLever {
    /// What it gains, and what it costs.
    pub what: String,
    /// What shows it together with others.
    pub command: String,
}

pub fn advised(report: &LeverReport) -> Vec<AdvisedLever> {
    let mut helpful: Vec<(&LeverRow, Gain)> =
        report.levers.iter().filter_map(|lever| Some((lever, lever.alone.filter(Gain::helps)?))).collect();
    helpful.sort_by(|(_, one), (_, other)| other.ratio.estimate.total_cmp(&one.ratio.estimate));
    let one = |(lever, gain): &(&LeverRow, Gain)| {
        let pays = if lever.pays.is_empty() { "nothing known" } else { &lever.pays };
        AdvisedLever {
            what: format!("{}: {}; costs {pays}", lever.change, gained(gain, report.cost)),
            command: shell::command(typed::with(report.asked.clone(), "--levers", &lever.name)),
        }
    };
    helpful.iter().take(ADVICE_MAX).map(one).collect()
}

/// What a page is headed with: the sentence, or of an advice the lever that gains most.
pub fn heading(report: &LeverReport) -> String {
    match advised(report).first() {
        _ if !report.is_advice => sentence(report),
        Some(best) => format!("{}{}: alone {}.", report.base, by_cpu(report.cost), best.what),
        None => not_advised(report),
    }
}

pub fn not_advised(report: &LeverReport) -> String {
    let seen: Vec<String> =
        report.levers.iter().map(|lever| format!("{} {}", lever.change, cell(lever.alone.as_ref()))).collect();
    match report.is_clear() {
        true => format!("{}: no lever is seen to help: {}.", report.base, seen.join(", ")),
        false => format!("{}: too little can be told to advise anything: {}.", report.base, seen.join(", ")),
    }
}

/// "redis: unix and via native are enough: 5.8x as fast as it is now [5.1-6.4]; confirmed in 6 fresh blocks".
pub fn sentence(report: &LeverReport) -> String {
    let (base, enough) = (&report.base, &report.enough);
    let by_cpu = by_cpu(report.cost);
    if report.together.is_none_or(|gain| gain.p.is_none() || gain.bar.is_none()) {
        return format!("{base}{by_cpu}: too little was measured to say which levers are enough.");
    }
    if enough.levers.is_empty() {
        return format!("{base}{by_cpu}: no lever is seen to help (all together: {}).", cell(report.together.as_ref()));
    }
    let words = listed(&enough.levers);
    if let Some(gain) = enough.gain.as_ref().filter(|gain| !gain.helps() && gain.p.is_some() && gain.bar.is_some()) {
        let all = cell(report.together.as_ref());
        return format!(
            "{base}{by_cpu}: no set of levers is seen to help ({words}: {}; all together: {all}).",
            cell(Some(gain))
        );
    }
    // What fresh blocks cannot tell is not called enough, nor do they name a gain.
    if enough.gain.as_ref().is_some_and(|gain| gain.p.is_none() || gain.bar.is_none()) {
        let all = cell(report.together.as_ref());
        return format!("{base}{by_cpu}: {words} may be enough; {}; all together: {all}.", confirmed(enough));
    }
    let fast = enough.gain.as_ref().map(|gain| format!(": {}", gained(gain, report.cost))).unwrap_or_default();
    let are = match enough.levers.len() {
        1 => "is enough",
        _ if !enough.is_all => "are enough",
        2 => "are both needed",
        _ => "are all needed",
    };
    let tried = match enough.is_all {
        false => format!("; {}", confirmed(enough)),
        true if enough.confirmation.is_some() => "; no smaller set that was tried is enough".to_string(),
        true => String::new(),
    };
    format!("{base}{by_cpu}: {words} {are}{fast}{tried}.")
}

/// "Alone, times as fast as now: unix 1.9x [1.8-2.0]. Slower: hz=500 0.8x [0.7-0.9]. No gain seen: io-threads=4."
pub fn ranking(report: &LeverReport) -> String {
    let measured = report.levers.iter().filter(|lever| lever.failed.is_none());
    let alone: Vec<(&LeverRow, Gain)> = measured.filter_map(|lever| Some((lever, lever.alone?))).collect();
    let of = |effect: Option<LeverEffect>| {
        let these = alone.iter().filter(|(_, gain)| gain.effect == effect);
        let each = these.map(|(lever, gain)| match effect {
            Some(_) => format!("{} {}", lever.change, cell(Some(gain))),
            None => lever.change.clone(),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let (helpful, worse) = match report.cost {
        LeverCost::Seconds => ("Alone, times as fast as now", "Slower"),
        LeverCost::CpuSeconds => ("Alone, times less CPU than now", "More CPU"),
    };
    let groups = [(helpful, Some(LeverEffect::Helps)), (worse, Some(LeverEffect::Hurts)), ("No gain seen", None)];
    let told = groups.map(|(words, effect)| (words, of(effect)));
    let told = told.iter().filter(|(_, levers)| !levers.is_empty());
    told.map(|(words, levers)| format!("{words}: {levers}.")).collect::<Vec<_>>().join(" ")
}

fn by_cpu(cost: LeverCost) -> &'static str {
    match cost {
        LeverCost::Seconds => "",
        LeverCost::CpuSeconds => " (by CPU alone: times cannot be told here)",
    }
}

pub(super) fn confirmed(enough: &EnoughLevers) -> String {
    let Some(seen) = &enough.confirmation else {
        return "not confirmed: it was not run in fresh blocks".to_string();
    };
    let blocks = seen.all.blocks;
    let high = seen.all.ratio.interval.bounds().map(|(_, high)| (high - 1.0).max(0.0) * 100.0);
    let at_most =
        high.map(|high| format!("all levers are at most {} % faster", units::at_most(high, 0))).unwrap_or_default();
    match seen.found {
        Confirmed::Enough => format!("confirmed in {blocks} fresh blocks ({at_most})"),
        _ if at_most.is_empty() => format!("not confirmed: {}", too_few(blocks, "fresh block")),
        _ => format!("not confirmed: {blocks} fresh blocks cannot tell it apart from all levers ({at_most})"),
    }
}

/// "5.8x as fast as now [5.1-6.4]".
fn gained(gain: &Gain, cost: LeverCost) -> String {
    let than = match cost {
        LeverCost::Seconds => "as fast as now",
        LeverCost::CpuSeconds => "less CPU than now",
    };
    match cell(Some(gain)) {
        words if gain.effect.is_some() => format!("{words} {than}"),
        words => words,
    }
}

/// "1.9x [1.8-2.0]", "at least 36x", "no effect seen (< 5 %)".
pub fn cell(gain: Option<&Gain>) -> String {
    let Some(gain) = gain else { return "not measured".to_string() };
    match gain.effect {
        None if gain.p.is_none() => format!("{} (too few blocks to tell)", versus(gain.ratio.into())),
        None => none_seen(gain),
        Some(_) => claimed(gain.ratio.into(), is_noisy(gain)),
    }
}

fn is_noisy(gain: &Gain) -> bool {
    gain.bar.is_some_and(|bar| bar.is_noisy)
}

/// What was measured, where the claim is another one: "5.6x [5.1-6.1]" beside "at least 5.1x".
pub fn measured(gain: &Gain) -> Option<String> {
    let is_other = match gain.effect {
        Some(_) => is_noisy(gain),
        None => gain.p.is_some() && gain.unseen().is_some(),
    };
    is_other.then(|| versus(gain.ratio.into()))
}

fn none_seen(gain: &Gain) -> String {
    match gain.unseen() {
        Some(unseen) => format!("no effect seen (< {} %)", units::at_most(unseen * 100.0, 0)),
        None => format!("{} (the noise is unknown)", versus(gain.ratio.into())),
    }
}

pub fn table(report: &LeverReport) -> Vec<TableLine> {
    let what = match report.cost {
        LeverCost::Seconds => "times as fast",
        LeverCost::CpuSeconds => "times less CPU",
    };
    let heads = [what, "alone", "as the last one"].map(str::to_string).to_vec();
    let mut lines = vec![TableLine::Cells(heads)];
    for lever in &report.levers {
        let last = match &lever.not_in_all {
            Some(_) => "cannot be combined".to_string(),
            None => cell(lever.last.as_ref()),
        };
        lines.push(match &lever.failed {
            Some(reason) => TableLine::Reason(lever.change.clone(), reason.clone()),
            None => TableLine::Cells(vec![lever.change.clone(), cell(lever.alone.as_ref()), last]),
        });
        lines.extend(below(lever).into_iter().map(TableLine::Detail));
    }
    lines
}

/// What a lever costs, why it helps, what a benchmark of requests says of it, why it stands apart, and which values a
/// pilot tried.
fn below(lever: &LeverRow) -> Vec<String> {
    let counters = (!lever.counters.is_empty()).then(|| lever.counters.join("; "));
    let alone = lever.synthetic.as_ref().map(|gain| format!("on set/get alone: {}", cell(Some(gain))));
    costs(lever).into_iter().chain(counters).chain(alone).chain(apart(lever)).chain(tried(lever)).collect()
}

/// One sentence, where anything is known.
pub(super) fn costs(lever: &LeverRow) -> Vec<String> {
    if lever.pays.is_empty() { Vec::new() } else { vec![format!("costs {}", lever.pays)] }
}

pub(super) fn apart(lever: &LeverRow) -> Option<String> {
    lever.not_in_all.as_ref().map(|reason| format!("not with all: {reason}"))
}

pub fn tried(lever: &LeverRow) -> Option<String> {
    let one = |tried: &TriedValue| match tried.took_s {
        Some(took_s) => format!("{} {} s", tried.change, units::seconds(took_s)),
        None => format!("{} failed", tried.change),
    };
    let all = lever.tried.iter().map(one).collect::<Vec<_>>().join(", ");
    (!all.is_empty()).then(|| format!("best in a pilot: {all}"))
}

/// "Together: 9.1x [8.7-9.5], measured as it stands: not 5.8x times 1.9x."
pub fn together(report: &LeverReport) -> String {
    let Some(gain) = report.together.filter(|_| report.levers.len() > 1) else { return String::new() };
    let not = not_multiplied(report).map(|product| format!(", measured as it stands: not {product}"));
    format!("Together: {}{}.", cell(Some(&gain)), not.unwrap_or_default())
}

/// "5.8x times 1.9x": what each lever that helps gains alone, where all together are something else.
pub fn not_multiplied(report: &LeverReport) -> Option<String> {
    let counts = report.levers.iter().filter(|lever| lever.not_in_all.is_none() && lever.failed.is_none());
    let alone: Vec<f64> =
        counts.filter_map(|lever| lever.alone.filter(Gain::helps)).map(|gain| gain.ratio.estimate).collect();
    let is_as_much = report.together.is_some_and(|gain| gain.ratio.interval.contains(alone.iter().product()));
    let each: Vec<String> = alone.iter().map(|ratio| format!("{}x", units::digits(*ratio))).collect();
    (each.len() > 1 && !is_as_much).then(|| each.join(" times "))
}

/// "Set/get alone says 3.1x of unix, this job 1.3x: it waits for the store 41 % of its time." Of the lever of which the
/// two differ most, where both are seen.
pub fn beside(report: &LeverReport) -> String {
    let Some(SyntheticAnswer { waiting_share, .. }) = &report.synthetic else { return String::new() };
    let both = report.levers.iter().filter_map(|lever| Some((lever, lever.synthetic?, lever.alone?)));
    let seen = both.filter(|(_, synthetic, _)| synthetic.effect.is_some());
    let apart = |(_, synthetic, alone): &(&LeverRow, Gain, Gain)| {
        let log = |gain: &Gain| libm::log(gain.ratio.estimate);
        (log(synthetic) - log(alone)).abs()
    };
    let Some((lever, synthetic, alone)) = seen.max_by(|one, other| apart(one).total_cmp(&apart(other))) else {
        return String::new();
    };
    let waits = waiting_share.map(|share| format!(": it waits for the store {:.0} % of its time", share * 100.0));
    format!(
        "Set/get alone says {} of {}, this job {}{}.",
        cell(Some(&synthetic)),
        lever.change,
        cell(Some(&alone)),
        waits.unwrap_or_default()
    )
}

/// "power: 31x [29-33] as long (appendonly yes, appendfsync always; 6 blocks)".
pub fn level(row: &LevelRow) -> String {
    let blocks = units::counted(row.blocks as u64, "block");
    let number = level_numbers(row);
    match row.ratio {
        Some(_) => format!("{}: {number} as long ({}; {blocks})", row.level, row.keeps),
        None => {
            let why = row.failed.as_deref().unwrap_or("no block has it and the first level");
            format!("{}: {number}: {why} ({})", row.level, row.keeps)
        }
    }
}

/// "31x [29-33]".
pub fn level_numbers(row: &LevelRow) -> String {
    row.ratio.map_or_else(|| "no number".to_string(), |ratio| versus(ratio.into()))
}

/// "unix, cache and via native".
pub fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::picture::tests::{gain, report};
    use super::*;

    #[test]
    fn the_sentence_names_the_smallest_set() {
        let mut seen = report();
        let fast = "6.1x [6.0-6.2] as fast as now";
        let confirmed = "confirmed in 11 fresh blocks (all levers are at most 4 % faster)";
        assert_eq!(sentence(&seen), format!("store: via native and unix are enough: {fast}; {confirmed}."));
        (seen.enough.is_all, seen.enough.confirmation) = (true, None);
        assert_eq!(sentence(&seen), format!("store: via native and unix are both needed: {fast}."));
        seen.enough.levers.push("hz=500".to_string());
        seen.enough.confirmation = report().enough.confirmation;
        let tried = "no smaller set that was tried is enough";
        let all = "via native, unix and hz=500 are all needed";
        assert_eq!(sentence(&seen), format!("store: {all}: {fast}; {tried}."));
    }

    #[test]
    fn a_set_without_effect_is_not_called_enough() {
        let mut seen = report();
        seen.enough.gain = Some(gain(1.01, None));
        let none =
            "store: no set of levers is seen to help (via native and unix: no effect seen (< 5 %); all together: ";
        assert!(sentence(&seen).starts_with(none), "{}", sentence(&seen));
        seen.enough.gain = Some(gain(0.8, Some(LeverEffect::Hurts)));
        assert!(
            sentence(&seen).contains("no set of levers is seen to help (via native and unix: 0.8"),
            "{}",
            sentence(&seen)
        );
    }

    #[test]
    fn what_fresh_blocks_cannot_tell_is_not_called_enough() {
        let mut seen = report();
        seen.enough.gain = Some(Gain { p: None, ..gain(2.08, None) });
        if let Some(confirmation) = &mut seen.enough.confirmation {
            confirmation.found = Confirmed::Open;
            confirmation.all.ratio.interval = kvfair_stats::paired::Interval::None;
            confirmation.all.blocks = 3;
        }
        let said = sentence(&seen);
        let start =
            "store: via native and unix may be enough; not confirmed: 3 fresh blocks are too few; all together: ";
        assert!(said.starts_with(start) && !said.contains("claim") && !said.contains("2.08"), "{said}");
        assert!(cell(seen.enough.gain.as_ref()).ends_with(" (too few blocks to tell)"));
    }

    #[test]
    fn the_ranking_has_what_helps_what_hurts_and_what_is_not_seen() {
        let mut seen = report();
        let found = ranking(&seen);
        assert!(found.starts_with("Alone, times as fast as now: via native 5.8x [5.7-5.9], unix 1.5"), "{found}");
        assert!(found.ends_with("Slower: hz=500 0.80x [0.78-0.82]. No gain seen: <b>io-threads=4."), "{found}");
        assert!(!found.contains("broken"), "what failed gains nothing: {found}");
        seen.levers.iter_mut().for_each(|lever| lever.alone = None);
        assert_eq!(ranking(&seen), "");
        seen.levers[0].alone = Some(gain(1.0, None));
        assert_eq!(ranking(&seen), "No gain seen: via native.");
    }
}
