//! Numbers of clients as they are typed: `1,5,10..100:10,200,300`.

use std::fmt;

/// The most clients that a run may have.
pub const CLIENTS_MAX: u32 = 10_000;
/// The most points of a sweep: more than anybody looks at.
const POINTS_MAX: usize = 1000;

/// The points of a sweep, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points(pub Vec<u32>);

impl fmt::Display for Points {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        out.write_str(&numbers.join(","))
    }
}

/// Numbers and ranges `LO..HI:STEP`, separated by commas; each number once.
pub fn parse(text: &str) -> Result<Points, String> {
    let mut points = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => points.push(number(part)?),
            Some((low, rest)) => {
                let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
                let (low, high, step) = (number(low)?, number(high)?, number(step)?);
                if low > high {
                    return Err(format!("'{part}' ends before it begins"));
                }
                points.extend((low..=high).step_by(step as usize).take(POINTS_MAX));
            }
        }
        if points.len() >= POINTS_MAX {
            return Err(format!("more than {POINTS_MAX} numbers of clients"));
        }
    }
    if let Some(twice) = points.iter().enumerate().find(|(place, one)| points[..*place].contains(one)) {
        return Err(format!("{} clients are named twice", twice.1));
    }
    Ok(Points(points))
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=CLIENTS_MAX) => Ok(number),
        _ => Err(format!("'{text}' is no number from 1 to {CLIENTS_MAX}; as in 1,5,10..100:10,200")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let parsed = |text: &str| parse(text).map(|points| points.0);
        assert_eq!(parsed("4"), Ok(vec![4]));
        assert_eq!(parsed("1,5,10..30:10,200"), Ok(vec![1, 5, 10, 20, 30, 200]));
        assert_eq!(parsed("8..10"), Ok(vec![8, 9, 10]));
        assert_eq!(parse("10..100:45").unwrap().to_string(), "10,55,100");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for bad in ["", "0", "10001", "1,,2", "5..1", "1..9:0", "1,1", "2..4,3", "-1", "1..10000", "many"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
