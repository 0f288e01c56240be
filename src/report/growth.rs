//! How the cost of a request grows with the size of its values, and of a question with its keys.

use super::sweep::{Point, called};
use crate::stats::growth::exponent;
use crate::words::load::Swept;

/// A cost that grows with a higher power of the size is out of proportion: what takes twice as long for twice as much
/// has the exponent 1, and measuring leaves some doubt.
const NOTABLE: f64 = 1.2;

/// A line for each target and part whose CPU grows out of proportion.
pub fn remarks(points: &[Point]) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let points: Vec<&Point> = points.iter().filter(|point| point.has_number()).collect();
    for point in points.iter().copied().filter(|point| matches!(point.swept, Swept::ValueBytes | Swept::Batch)) {
        let one = (point.part.as_str(), point.target.as_str());
        if seen.contains(&one) {
            continue;
        }
        seen.push(one);
        let of_one = points.iter().filter(|point| (point.part.as_str(), point.target.as_str()) == one);
        let costs: Vec<(f64, f64)> = of_one.map(|point| cost(point)).collect();
        if let Some(exponent) = exponent(&costs).filter(|exponent| *exponent > NOTABLE) {
            let (part, of) = match point.swept {
                Swept::Batch => ("question", "the number of its keys"),
                _ => (called(&point.part), "the size of its value"),
            };
            remarks.push(format!(
                "{}: the CPU of a {part} grows with {of} to the power of {exponent:.1}: out of proportion",
                point.target
            ));
        }
    }
    remarks
}

/// A size, and the CPU of what has that size.
fn cost(point: &Point) -> (f64, f64) {
    let times = if point.swept == Swept::Batch { f64::from(point.batch) } else { 1.0 };
    (point.step() as f64, point.cpu_us_per_request() * times)
}
