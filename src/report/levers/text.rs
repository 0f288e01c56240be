//! The same as text, 80 columns wide.

use super::{EnoughLevers, LevelRow, LeverCost, LeverReport, LeverRow, SyntheticAnswer};
use crate::model::levers::TriedValue;
use crate::model::units;
use crate::report::next::quoted;
use crate::report::table::{TableLine, layout, width, wrap};
use crate::report::versus::{at_least, versus};
use crate::stats::levers::{Confirmed, Gain};

/// A table of levers is no wider.
const WIDTH: usize = 80;

pub fn text(report: &LeverReport) -> String {
    let width = width().min(WIDTH);
    if report.is_advice {
        return advice(report, width);
    }
    let mut lines = vec![report.headline.clone()];
    lines.extend(wrap(&sentence(report), width));
    lines.push(layout(&table(report, width), width).trim_end().to_string());
    lines.extend(wrap(&together(report), width));
    lines.extend(wrap(&beside(report), width));
    lines.extend(durability(report, width));
    for lever in &report.left_out {
        lines.extend(wrap(&format!("left out: {}: {}", lever.name, lever.reason), width));
    }
    lines.retain(|line| !line.is_empty());
    format!("{}\n", lines.join("\n"))
}

/// Lines of an advice.
const ADVICE_MAX: usize = 5;

/// The levers that help, best first: what each gains, what it costs, and the command that shows it.
fn advice(report: &LeverReport, width: usize) -> String {
    let mut helpful: Vec<(&LeverRow, Gain)> =
        report.levers.iter().filter_map(|lever| Some((lever, lever.alone.filter(Gain::helps)?))).collect();
    helpful.sort_by(|(_, one), (_, other)| other.ratio.estimate.total_cmp(&one.ratio.estimate));
    let mut lines = vec![report.headline.clone()];
    lines.extend(helpful.iter().take(ADVICE_MAX).enumerate().flat_map(|(place, (lever, gain))| {
        let pays = if lever.pays.is_empty() { "nothing known".to_string() } else { lever.pays.clone() };
        let what = format!("{}. {}: {}; costs {pays}", place + 1, lever.change, gained(gain, report.cost));
        let command = format!("   kvfair levers {} {} --levers {}", report.asked, quoted(&report.base), lever.name);
        [wrap(&what, width).join("\n   "), command]
    }));
    if helpful.is_empty() {
        lines.extend(wrap(&not_advised(report), width));
    }
    format!("{}\n", lines.join("\n"))
}

fn not_advised(report: &LeverReport) -> String {
    let seen: Vec<String> =
        report.levers.iter().map(|lever| format!("{} {}", lever.change, cell(lever.alone.as_ref()))).collect();
    match report.is_clear() {
        true => format!("{}: no lever is seen to help: {}.", report.base, seen.join(", ")),
        false => format!("{}: too little can be told to advise anything: {}.", report.base, seen.join(", ")),
    }
}

/// "redis: unix and via native are enough: 5.8x as fast as it is now [5.1-6.4]; confirmed in 6 fresh blocks".
fn sentence(report: &LeverReport) -> String {
    let (base, enough) = (&report.base, &report.enough);
    let by_cpu = match report.cost {
        LeverCost::Seconds => "",
        LeverCost::CpuSeconds => " (by CPU alone: times cannot be told here)",
    };
    if report.together.is_none_or(|gain| gain.p.is_none() || gain.bar.is_none()) {
        return format!("{base}{by_cpu}: too little was measured to say which levers are enough.");
    }
    if enough.levers.is_empty() {
        return format!("{base}{by_cpu}: no lever is seen to help (all together: {}).", cell(report.together.as_ref()));
    }
    let words = listed(&enough.levers);
    let fast = enough.gain.as_ref().map(|gain| format!(": {}", gained(gain, report.cost))).unwrap_or_default();
    let (is, takes) = (if enough.levers.len() == 1 { "is" } else { "are" }, "takes all of them");
    match (enough.is_all, &enough.confirmation) {
        (true, _) if enough.levers.len() == 1 => format!("{base}{by_cpu}: {words} {is} enough{fast}."),
        (true, Some(_)) => {
            format!("{base}{by_cpu}: no smaller set that was tried is enough: it {takes}, {words}{fast}.")
        }
        (true, None) => format!("{base}{by_cpu}: it {takes}, {words}{fast}."),
        (false, _) => format!("{base}{by_cpu}: {words} {is} enough{fast}; {}.", confirmed(enough)),
    }
}

fn confirmed(enough: &EnoughLevers) -> String {
    let Some(seen) = &enough.confirmation else {
        return "not confirmed: it was not run in fresh blocks".to_string();
    };
    let blocks = seen.all.blocks;
    let high = seen.all.ratio.interval.bounds().map(|(_, high)| (high - 1.0).max(0.0) * 100.0);
    let at_most = high.map(|high| format!("all levers are at most {high:.0} % faster")).unwrap_or_default();
    match seen.found {
        Confirmed::Enough => format!("confirmed in {blocks} fresh blocks ({at_most})"),
        _ if at_most.is_empty() => format!("not confirmed: {blocks} fresh blocks are too few"),
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
fn cell(gain: Option<&Gain>) -> String {
    let Some(gain) = gain else { return "not measured".to_string() };
    match (gain.effect, gain.bar, gain.ratio.interval.near_end()) {
        (None, ..) if gain.p.is_none() => format!("{} (seen)", versus(gain.ratio.into())),
        (None, ..) => none_seen(gain),
        (Some(_), Some(bar), Some(near)) if bar.is_noisy && gain.helps() => at_least(1.0 + near),
        (Some(_), ..) => versus(gain.ratio.into()),
    }
}

fn none_seen(gain: &Gain) -> String {
    match gain.unseen() {
        Some(unseen) => format!("no effect seen (< {:.0} %)", (unseen * 100.0).ceil()),
        None => format!("{} (seen)", versus(gain.ratio.into())),
    }
}

fn table(report: &LeverReport, width: usize) -> Vec<TableLine> {
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
        lines.extend(below(lever).into_iter().flat_map(|text| indented(&text, width)).map(TableLine::Words));
    }
    lines
}

/// What a lever costs, why it helps, what a benchmark of requests says of it, why it stands apart, and which values a
/// pilot tried.
fn below(lever: &LeverRow) -> Vec<String> {
    let pays = (!lever.pays.is_empty()).then(|| format!("costs {}", lever.pays));
    let counters = (!lever.counters.is_empty()).then(|| lever.counters.join("; "));
    let alone = lever.synthetic.as_ref().map(|gain| format!("on set/get alone: {}", cell(Some(gain))));
    let apart = lever.not_in_all.as_ref().map(|reason| format!("not with all: {reason}"));
    let tried = (!lever.tried.is_empty()).then(|| {
        let one = |tried: &TriedValue| match tried.took_s {
            Some(took_s) => format!("{} {} s", tried.change, units::seconds(took_s)),
            None => format!("{} failed", tried.change),
        };
        format!("best in a pilot: {}", lever.tried.iter().map(one).collect::<Vec<_>>().join(", "))
    });
    [pays, counters, alone, apart, tried].into_iter().flatten().collect()
}

fn indented(text: &str, width: usize) -> Vec<String> {
    wrap(text, width - 4).into_iter().map(|line| format!("    {line}")).collect()
}

/// "Together 9.1x [8.7-9.5], not 5.8x times 1.9x." What was not measured is not multiplied.
fn together(report: &LeverReport) -> String {
    let Some(gain) = report.together.filter(|_| report.levers.len() > 1) else { return String::new() };
    let counts = report.levers.iter().filter(|lever| lever.not_in_all.is_none());
    let alone: Vec<String> = counts
        .filter_map(|lever| lever.alone.filter(Gain::helps))
        .map(|gain| format!("{}x", units::digits(gain.ratio.estimate)))
        .collect();
    let not =
        if alone.len() > 1 { format!(", measured as it stands: not {}", alone.join(" times ")) } else { String::new() };
    format!("Together: {}{not}.", cell(Some(&gain)))
}

/// "Set/get alone says 3.1x of unix, this job 1.3x: it waits for the store 41 % of its time." Of the lever of which the
/// two differ most, where both are seen.
fn beside(report: &LeverReport) -> String {
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

fn durability(report: &LeverReport, width: usize) -> Vec<String> {
    let Some(first) = report.durability.first() else { return Vec::new() };
    let mut lines =
        vec![format!("apart, {} at other durability levels, in times of level {}:", report.base, first.level)];
    for row in report.durability.iter().filter(|row| row.level != first.level || row.failed.is_some()) {
        lines.extend(wrap(&format!("  {}", level(row)), width));
    }
    lines
}

/// "power: 31x [29-33] as long (appendonly yes, appendfsync always; 6 blocks)".
fn level(row: &LevelRow) -> String {
    let blocks = if row.blocks == 1 { "1 block".to_string() } else { format!("{} blocks", row.blocks) };
    match row.ratio {
        Some(ratio) => format!("{}: {} as long ({}; {blocks})", row.level, versus(ratio.into()), row.keeps),
        None => {
            let why = row.failed.as_deref().unwrap_or("no block has it and the first level");
            format!("{}: no number: {why} ({})", row.level, row.keeps)
        }
    }
}

/// "unix, cache and via native".
fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}
