//! Plots as figures of a page, each with its numbers folded below it.

use maud::{Markup, html};

use super::plot::{drawn, guide, size};
use super::{Chart, Plot, PlotLine, PlotPoint, svg};
use kvfair_core::units;

/// A table has no more rows: of more places it shows each second, fifth or hundredth.
const ROWS_MAX: usize = 40;

/// All plots of a chart, two in a row where there is room for two, and its notes.
pub fn figures(chart: &Chart) -> Markup {
    let is_wide = chart.plots.iter().any(|plot| plot.steps.is_some());
    html! {
        div.two[!is_wide] {
            @for plot in &chart.plots {
                @let view = svg::View { class: "scroll", size: size(plot), drawn: drawn(plot) };
                (svg::figure(&label(plot), &[view], &numbers(plot)))
            }
        }
        @for note in &chart.notes { p.grey { (note) } }
    }
}

fn label(plot: &Plot) -> String {
    format!("Chart: {}", plot.title)
}

/// The numbers that are drawn: a row a place, a column a target. The page's script walks through the rows, and draws
/// the line that each of them has for it.
fn numbers(plot: &Plot) -> Markup {
    // Places in their order are runs or versions: each has its row.
    let step = if plot.steps.is_some() { 1 } else { plot.across.places.len().div_ceil(ROWS_MAX).max(1) };
    html! {
        details {
            summary { "Numbers: " (plot.title) @if step > 1 { ", one of " (step) } }
            div.scroll tabindex="0" role="region" aria-label=(format!("Numbers: {}", plot.title)) {
                table {
                    thead { tr {
                        th scope="col" { (plot.across.title) }
                        @for line in &plot.lines { th scope="col" { (line.target) (line.remark) } }
                    } }
                    tbody {
                        @for (row, (place, words)) in plot.across.places.iter().enumerate().step_by(step) {
                            tr {
                                th scope="row" data-walk=(guide(plot, *place)) { (words) }
                                @for line in &plot.lines { td { (cell(plot, line, row)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// "39.1 [37.0-41.2], limited by the client"; nothing where there is no point.
fn cell(plot: &Plot, line: &PlotLine, row: usize) -> String {
    let has_failed = || plot.steps.as_ref().is_some_and(|steps| steps.failed.contains(&row));
    match line.points.get(row) {
        Some(Some(point)) => in_words(point),
        _ if has_failed() => "no number".to_string(),
        _ => String::new(),
    }
}

fn in_words(point: &PlotPoint) -> String {
    let number = units::digits(point.number);
    let ends = point.span.map(|span| span.map(units::digits)).filter(|[low, high]| low != high);
    let span = ends.map_or_else(String::new, |[low, high]| format!(" [{low}-{high}]"));
    let doubt = if point.doubt.is_empty() { String::new() } else { format!(", {}", point.doubt) };
    format!("{number}{span}{doubt}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{plot, steps};
    use super::*;

    fn figure(plot: Plot) -> Markup {
        figures(&Chart { plots: vec![plot], ..Chart::default() })
    }

    #[test]
    fn a_plot_has_a_title_and_a_table() {
        let html = figure(plot(&["a"], &[0.0, 5.0, 10.0])).into_string();
        assert!(html.contains("role=\"img\"") && html.contains("CPU &lt;busy&gt; by seconds: a at most 10"), "{html}");
        assert_eq!(html.matches("<tr><th scope=\"row\" data-walk=\"M").count(), 3, "{html}");
    }

    #[test]
    fn a_long_line_has_a_short_table() {
        let html = figure(plot(&["a"], &[1.0; 1000])).into_string();
        assert_eq!(html.matches("<tr><th scope=\"row\" data-walk=\"M").count(), ROWS_MAX, "{html}");
        assert!(html.contains(", one of 25"), "the table says what it leaves out");
    }

    #[test]
    fn a_cell_tells_all_of_a_point() {
        let point = PlotPoint { number: 2.0, span: Some([1.0, 3.0]), doubt: "limited by the client" };
        assert_eq!(in_words(&point), "2.00 [1.00-3.00], limited by the client");
        assert_eq!(in_words(&PlotPoint { span: Some([2.0, 2.0]), doubt: "", ..point }), "2.00");
        let mut plot = steps(&[Some(1.0), None, None]);
        plot.steps.as_mut().expect("steps").failed = vec![1];
        let cells = [0, 1, 2].map(|row| cell(&plot, &plot.lines[0], row));
        assert_eq!(cells, ["1.00 [0.97-1.03]", "no number", ""]);
    }
}
