//! What a picture of steps shows: a number at each place from left to right, and levels that change only where a step
//! is claimed. The page draws it.

pub struct StepChart {
    pub title: String,
    /// What lies across, and what is counted upwards.
    pub across: String,
    pub up: String,
    /// From left to right.
    pub places: Vec<StepPlace>,
    /// From left to right. Between two that touch there is a step.
    pub levels: Vec<StepLevel>,
    pub rules: Vec<StepRule>,
    /// Numbers in here are not told apart from the first one.
    pub band: Option<(f64, f64)>,
    /// Neighbours are joined by a thin line.
    pub is_joined: bool,
    /// Sentences below it.
    pub notes: Vec<String>,
}

pub struct StepPlace {
    pub label: String,
    pub mark: StepMark,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepMark {
    At {
        number: f64,
        span: Option<(f64, f64)>,
        /// It counts for nothing.
        is_hollow: bool,
    },
    /// It was run and has no number.
    Failed,
    Nothing,
}

/// The level of the places from the first to the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLevel {
    pub first: usize,
    pub last: usize,
    pub number: f64,
}

/// An upright line before a place.
pub struct StepRule {
    pub before: usize,
    pub words: String,
    /// What stands on either side is never compared.
    pub is_break: bool,
}

impl StepChart {
    /// All numbers that are drawn.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let marks = self.places.iter().flat_map(|place| match place.mark {
            StepMark::At { number, span, .. } => {
                let (low, high) = span.unwrap_or((number, number));
                vec![number, low, high]
            }
            StepMark::Failed | StepMark::Nothing => Vec::new(),
        });
        let band = self.band.into_iter().flat_map(|(low, high)| [low, high]);
        marks.chain(band).filter(|number| *number > 0.0 && number.is_finite())
    }
}
