//! How what is swept over is called: in files, above a column, on an axis, and in a sentence.

use kvfair_core::load::Swept;
use kvfair_core::units;

/// The words of one of them.
pub struct SweptWords {
    /// As CSV and JSON have it.
    pub name: &'static str,
    /// Above its column.
    pub heading: &'static str,
    /// On the axis of a chart.
    pub axis: &'static str,
    /// One of its points: "with 5 clients". `#` stands for the number.
    at: &'static str,
}

pub fn words(swept: Swept) -> &'static SweptWords {
    match swept {
        Swept::Clients => &SweptWords { name: "clients", heading: "clients", axis: "clients", at: "with # clients" },
        Swept::Rate => &SweptWords { name: "rate", heading: "per second", axis: "requests per second", at: "at #/s" },
        Swept::ValueBytes => {
            &SweptWords { name: "value_bytes", heading: "bytes", axis: "bytes of a value", at: "of # bytes" }
        }
        Swept::Batch => {
            &SweptWords { name: "batch", heading: "batch", axis: "keys of a question", at: "with # keys at once" }
        }
    }
}

/// "with 5 clients", "of 1,000 bytes": which of a sweep's points it is.
pub fn with(swept: Swept, step: u64) -> String {
    if swept == Swept::Clients && step == 1 {
        return "with 1 client".to_string();
    }
    words(swept).at.replace('#', &units::thousands(step))
}
