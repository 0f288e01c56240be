//! Plots as figures of a page, each with its numbers folded below it.

use maud::{Markup, html};

use super::plot::{PlotSize, drawn, px, summary};
use super::{Chart, Plot, PlotPoint};
use crate::model::units;

/// A table has no more rows: of more places it shows each second, fifth or hundredth.
const ROWS_MAX: usize = 40;

/// All plots of a chart two in a row, and its notes.
pub fn figures(chart: &Chart) -> Markup {
    html! {
        div.two { @for plot in &chart.plots { (figure(plot)) } }
        @for note in &chart.notes { p.grey { (note) } }
    }
}

fn figure(plot: &Plot) -> Markup {
    let size = PlotSize::of(plot);
    html! {
        figure {
            div.scroll tabindex="0" role="region" aria-label=(format!("Chart: {}", plot.title)) {
                svg role="img" width=(px(size.width)) height=(px(size.height))
                    viewBox=(format!("0 0 {} {}", px(size.width), px(size.height)))
                    font-family="sans-serif" font-size="12" {
                    title { (summary(plot)) }
                    (drawn(plot))
                }
            }
            (numbers(plot))
        }
    }
}

/// The numbers that are drawn: a row a place, a column a target.
fn numbers(plot: &Plot) -> Markup {
    let step = plot.across.places.len().div_ceil(ROWS_MAX).max(1);
    html! {
        details {
            summary { "Numbers: " (plot.title) @if step > 1 { ", each " (step) "th" } }
            div.scroll tabindex="0" role="region" aria-label=(plot.title) {
                table {
                    thead { tr {
                        th scope="col" { (plot.across.title) }
                        @for line in &plot.lines { th scope="col" { (line.target) (line.remark) } }
                    } }
                    tbody {
                        @for (row, (_, words)) in plot.across.places.iter().enumerate().step_by(step) {
                            tr {
                                th scope="row" { (words) }
                                @for line in &plot.lines { td { (cell(line.points.get(row))) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// "39.1 [37.0-41.2], limited by the client"; nothing where there is no point.
fn cell(point: Option<&Option<PlotPoint>>) -> String {
    let Some(Some(point)) = point else { return String::new() };
    let number = units::digits(point.number);
    let ends = point.span.map(|span| span.map(units::digits)).filter(|[low, high]| low != high);
    let span = ends.map_or_else(String::new, |[low, high]| format!(" [{low}-{high}]"));
    let doubt = if point.doubt.is_empty() { String::new() } else { format!(", {}", point.doubt) };
    format!("{number}{span}{doubt}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::plot;
    use super::*;

    #[test]
    fn a_plot_has_a_title_and_a_table() {
        let html = figure(&plot(&["a"], &[0.0, 5.0, 10.0])).into_string();
        assert!(html.contains("role=\"img\"") && html.contains("CPU &lt;busy&gt; by seconds: a at most 10"), "{html}");
        assert_eq!(html.matches("<tr><th scope=\"row\">").count(), 3, "{html}");
    }

    #[test]
    fn a_long_line_has_a_short_table() {
        let html = figure(&plot(&["a"], &[1.0; 1000])).into_string();
        assert_eq!(html.matches("<tr><th scope=\"row\">").count(), ROWS_MAX, "{html}");
        assert!(html.contains(", each 25th"), "the table says what it leaves out");
    }

    #[test]
    fn a_cell_tells_all_of_a_point() {
        let point = PlotPoint { number: 2.0, span: Some([1.0, 3.0]), doubt: "limited by the client" };
        assert_eq!(cell(Some(&Some(point))), "2.00 [1.00-3.00], limited by the client");
        assert_eq!(cell(Some(&Some(PlotPoint { span: Some([2.0, 2.0]), doubt: "", ..point }))), "2.00");
        assert_eq!((cell(Some(&None)), cell(None)), (String::new(), String::new()));
    }
}
