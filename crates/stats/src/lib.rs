//! Pure numbers: knows no store, no job and no unit.

pub mod across;
pub mod arrivals;
pub mod averages;
pub mod change;
pub mod controls;
pub mod floor;
pub mod growth;
pub mod holm;
pub mod levers;
pub mod never;
pub mod normal;
pub mod paired;
pub mod parallel;
pub mod planned;
pub mod rank;
pub mod sample;
pub mod shift;
pub mod student;
pub mod unpaired;
pub mod wilcoxon;
