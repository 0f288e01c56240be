//! The marks of rows, and what each looks like.

use maud::{Markup, html};

use super::palette::{GREY, GRID, PAPER, Stroke, TEXT, hex};
use super::svg::{self, Pixel, area, dashed, dot, px};

/// How a mark looks, and what that means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkKind {
    pub shape: MarkShape,
    pub stroke: Stroke,
    /// Its interval is thin: not all of it counts.
    pub is_thin: bool,
    /// Empty for what needs no legend.
    pub words: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkShape {
    Dot,
    HollowDot,
    Diamond,
    HollowDiamond,
    Square,
    /// It goes on beyond what is drawn.
    Arrow,
}

impl MarkKind {
    pub const fn new(shape: MarkShape, stroke: Stroke, words: &'static str) -> MarkKind {
        MarkKind { shape, stroke, is_thin: false, words }
    }

    pub const fn thin(self, is_thin: bool) -> MarkKind {
        MarkKind { is_thin, ..self }
    }
}

pub fn mark(kind: MarkKind, (x, y): Pixel) -> Markup {
    let stroke = kind.stroke;
    let diamond = || format!("M{} {}l6 6l-6 6l-6 -6z", px(x), px(y - 6.0));
    match kind.shape {
        MarkShape::Dot => dot((x, y), stroke, false),
        MarkShape::HollowDot => dot((x, y), stroke, true),
        MarkShape::Diamond => html! { path d=(diamond()) fill=(hex(stroke.light)) {} },
        MarkShape::HollowDiamond => html! {
            path d=(diamond()) fill=(hex(PAPER.light)) stroke=(hex(stroke.light)) stroke-width="2" {}
        },
        MarkShape::Square => area((x - 5.0, y - 5.0), (x + 5.0, y + 5.0), stroke),
        MarkShape::Arrow => arrow((x, y)),
    }
}

/// An interval.
pub fn bar(from: f64, to: f64, y: f64, stroke: Stroke, is_thin: bool) -> Markup {
    let (from, to) = (px(from), px(to.max(from + 1.0)));
    let path = format!("M{from} {end}v8M{from} {y}H{to}M{to} {end}v8", y = px(y), end = px(y - 4.0));
    html! {
        path d=(path) fill="none" stroke=(hex(stroke.light)) stroke-width=(if is_thin { "1.5" } else { "3" }) {}
    }
}

/// What a mark is the median of, as one path below its interval.
pub fn each(all: impl Iterator<Item = f64>, y: f64) -> Markup {
    let path: String = all.map(|x| format!("M{} {}v7", px(x), px(y + 7.0))).collect();
    html! { @if !path.is_empty() { path d=(path) fill="none" stroke=(hex(GREY.light)) {} } }
}

pub fn arrow((x, y): Pixel) -> Markup {
    let path = format!("M{x} {} v10 M{x} {y} h28 m-7 -5 l7 5 l-7 5", px(y - 5.0), x = px(x), y = px(y));
    html! { path d=(path) fill="none" stroke=(hex(TEXT.light)) stroke-width="2" {} }
}

/// Around rows, from the middle of the first one to that of the last one.
pub fn bracket(x: f64, first: f64, last: f64) -> Markup {
    let path = format!("M{x} {} h-5 V{} h5", px(first - 9.0), px(last + 9.0), x = px(x));
    html! { path d=(path) fill="none" stroke=(hex(GREY.light)) {} }
}

pub fn struck((x, y): Pixel, words: &str) -> Markup {
    html! {
        text x=(px(x)) y=(px(y + 4.0)) fill=(hex(TEXT.light)) text-decoration="line-through" {
            (svg::printable(words))
        }
    }
}

pub fn band(from: f64, to: f64, top: f64, bottom: f64) -> Markup {
    html! {
        (area((from, top), (to, bottom), GRID))
        @for x in [from, to] { (dashed((x, top), (x, bottom), GREY, "2 3")) }
    }
}

pub fn guide(x: f64, top: f64, bottom: f64) -> Markup {
    dashed((x, top), (x, bottom), GREY, "4 3")
}
