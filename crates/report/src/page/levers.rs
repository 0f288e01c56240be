//! What a page shows of levers: the picture, the same numbers as a table, the durability levels, and what was left out.

use maud::{Markup, html};

use crate::chart::drawn_rows::figure;
use crate::levers::picture::picture;
use crate::levers::text::{advised, beside, cell, level_numbers, measured, not_multiplied, tried};
use crate::levers::{LeverCost, LeverReport, LeverRow};
use kvfair_core::logins;
use kvfair_stats::levers::Gain;

pub fn levers(report: &LeverReport) -> Markup {
    let (picture, synthetic) = (picture(report), beside(report));
    html! {
        h2 { (picture.title) }
        (advice(report))
        (figure(&picture))
        h2 { "Levers" }
        (table(report))
        @if !synthetic.is_empty() { p { (hidden(&synthetic)) } }
        (levels(report))
        (left_out(report))
    }
}

/// The levers that help, each with the command that shows it.
fn advice(report: &LeverReport) -> Markup {
    let all = if report.is_advice { advised(report) } else { Vec::new() };
    html! {
        @if !all.is_empty() {
            ol { @for one in &all { li { (hidden(&one.what)) ": " code.command { (hidden(&one.command)) } } } }
        }
    }
}

fn hidden(text: &str) -> String {
    logins::hidden(text, &[])
}

fn table(report: &LeverReport) -> Markup {
    let times = match report.cost {
        LeverCost::Seconds => "Times as fast as now",
        LeverCost::CpuSeconds => "Times less CPU than now",
    };
    let caption = format!("{times}, medians of the ratios of {} blocks", report.blocks);
    let enough = report.enough.gain.filter(|_| !report.enough.is_all);
    let sets = [("enough", enough), ("all together", report.together)];
    let sets = sets.into_iter().filter_map(|(name, gain)| Some((name, gain?))).filter(|_| !report.is_advice);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr {
                    th scope="col" { "lever" }
                    th scope="col" { "alone" }
                    @if !report.is_advice { th scope="col" { "as the last one" } }
                    th scope="col" { "blocks" }
                    th.left scope="col" { "costs" }
                    th.left scope="col" { "what changed most" }
                } }
                tbody {
                    @for lever in &report.levers { (row(lever, report.is_advice)) }
                    @for (name, gain) in sets { (set(name, &gain, report)) }
                }
            }
        }
    }
}

fn row(lever: &LeverRow, is_advice: bool) -> Markup {
    let is_struck = !is_advice && lever.not_in_all.is_some();
    let columns = if is_advice { 5 } else { 6 };
    let blocks = [lever.alone, lever.last].into_iter().flatten().map(|gain| gain.blocks).min();
    html! {
        tr {
            th scope="row" { @if is_struck { s { (lever.change) } } @else { (lever.change) } }
            @if let Some(reason) = &lever.failed {
                td.reason.bad[reason.starts_with("FAILED")] colspan=(columns - 1) { (hidden(reason)) }
            } @else {
                td { (numbers(lever.alone.as_ref())) }
                @match &lever.not_in_all {
                    _ if is_advice => {}
                    Some(reason) => td.left { "cannot be combined: " (hidden(reason)) },
                    None => td { (numbers(lever.last.as_ref())) },
                }
                td { @if let Some(blocks) = blocks { (blocks) } }
                td.left { (if lever.pays.is_empty() { "nothing known" } else { &lever.pays }) }
                td.left {
                    @for counter in &lever.counters { div.whole { (counter) } }
                    @if lever.synthetic.is_some() { div { "on set/get alone: " (cell(lever.synthetic.as_ref())) } }
                    @if let Some(tried) = tried(lever) { div.grey { (tried) } }
                }
            }
        }
    }
}

/// What is claimed, and below it what was measured where that is something else.
fn numbers(gain: Option<&Gain>) -> Markup {
    html! {
        (cell(gain))
        @if let Some(seen) = gain.and_then(measured) { div.grey { "measured " (seen) } }
    }
}

/// Several levers, from the base to them.
fn set(name: &str, gain: &Gain, report: &LeverReport) -> Markup {
    let is_enough = name == "enough";
    let levers = report.enough.levers.join(", ");
    // Where all are needed, what was tried in fresh blocks was a smaller set.
    let tried = if is_enough { "them" } else { "a smaller set" };
    let fresh = report.enough.confirmation.filter(|_| is_enough || report.enough.is_all);
    html! {
        tr {
            th scope="row" { (name) @if is_enough { ": " (levers) } }
            td colspan="2" { (numbers(Some(gain))) }
            td { (gain.blocks) }
            td.left colspan="2" {
                @if let Some(seen) = fresh {
                    "all levers against " (tried) ", in " (seen.all.blocks) " fresh blocks: " (numbers(Some(&seen.all)))
                }
                @if let Some(product) = not_multiplied(report).filter(|_| !is_enough) {
                    div { "measured as it stands: not " (product) }
                }
            }
        }
    }
}

/// The durability levels, in times of the weakest one.
fn levels(report: &LeverReport) -> Markup {
    let Some((first, others)) = report.durability.split_first().filter(|(_, others)| !others.is_empty()) else {
        return html! {};
    };
    let heads = [("level", false), ("times as long", false), ("blocks", false), ("kept by", true)];
    let caption = format!("Apart: {} at other durability levels, in times of level {}", report.base, first.level);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for (head, is_left) in heads { th class=[is_left.then_some("left")] scope="col" { (head) } } } }
                tbody {
                    @for level in others {
                        tr.gone {
                            th scope="row" { (level.level.to_string()) }
                            td { (level_numbers(level)) }
                            td { (level.blocks) }
                            td.left {
                                (level.keeps)
                                @if let Some(why) = &level.failed { div.bad { (hidden(why)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn left_out(report: &LeverReport) -> Markup {
    html! {
        @if !report.left_out.is_empty() {
            h3 { "Left out" }
            ul { @for lever in &report.left_out { li { b { (lever.name) } ": " (hidden(&lever.reason)) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levers::picture::tests::report;
    use kvfair_core::levers::UntriedLever;

    #[track_caller]
    fn says(html: &str, words: &[&str]) {
        for word in words {
            assert!(html.contains(word), "{word}\n{html}");
        }
    }

    #[test]
    fn the_table_has_all_numbers_and_the_reasons() {
        let mut seen = report();
        let reason = "no time for redis://me:PLANTED@host/".to_string();
        seen.left_out = vec![UntriedLever { name: "<i>hz".to_string(), reason }];
        let html = levers(&seen).into_string();
        says(
            &html,
            &[
                ">5.8x [5.7-5.9]</td>",
                ">4.90x [4.80-5.00]</td>",
                "no effect seen (&lt; 5 %)<div class=\"grey\">measured 1.01x [0.99-1.03]</div>",
            ],
        );
        says(&html, &[">0.80x [0.78-0.82]</td>", "<s>cache</s>", "cannot be combined: a cache cannot see that"]);
        says(&html, &["class=\"reason bad\" colspan=\"5\">FAILED: wrong answers", "memory &lt;of&gt; the client"]);
        says(&html, &["enough: via native, unix", "all levers against them, in 11 fresh blocks: no effect seen"]);
        says(&html, &[">6.2x [6.1-6.3]</td>", "measured as it stands: not 5.80x times 1.50x"]);
        says(&html, &["<tr class=\"gone\"><th scope=\"row\">crash</th><td>3.00x [2.94-3.06]</td><td>6</td>"]);
        seen.enough.is_all = true;
        let whole = levers(&seen).into_string();
        says(&whole, &["all levers against a smaller set, in 11 fresh blocks: no effect seen"]);
        assert!(!whole.contains("enough: via"), "one row of all levers:\n{whole}");
        says(&html, &["<td>no number</td>", "<b>&lt;i&gt;hz</b>: no time for redis://"]);
        for bad in ["PLANTED", "<i>", "<b>io", "7.0x"] {
            assert!(!html.contains(bad), "{bad}\n{html}");
        }
    }

    #[test]
    fn an_advice_lists_what_helps_with_its_command() {
        let mut advice = report();
        advice.is_advice = true;
        advice.levers.iter_mut().for_each(|lever| {
            (lever.last, lever.not_in_all) = (None, Some("each alone".to_string()));
        });
        let html = levers(&advice).into_string();
        says(&html, &["<code class=\"command\">kvfair levers fans store --levers 'via native'</code>"]);
        for bad in ["as the last one", "all together", "cannot be combined", "<s>", "each alone"] {
            assert!(!html.contains(bad), "{bad}\n{html}");
        }
    }
}
