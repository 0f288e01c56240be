//! The energy that the machine's processors have taken up, by the kernel's powercap counters (RAPL): of whole packages,
//! for all programs together.
//!
//! Documentation: <https://docs.kernel.org/power/powercap/powercap.html>.

use std::fs;
use std::path::Path;

/// Where the kernel shows the counters. Most kernels let only root read them.
const POWERCAP: &str = "/sys/class/powercap";
/// A zone of a package is called so, and its parts `intel-rapl:0:1`: also on processors of AMD.
const ZONE: &str = "intel-rapl:";
const PACKAGE: &str = "package-";

/// The counters at one moment; empty where there is none, or where one cannot be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Energy(Vec<Counter>);

#[derive(Clone, Debug, PartialEq)]
struct Counter {
    zone: String,
    microjoules: u64,
    /// It begins again at 0 behind this.
    highest: u64,
}

impl Energy {
    pub fn of_machine() -> Energy {
        Energy::below(Path::new(POWERCAP))
    }

    fn below(directory: &Path) -> Energy {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let zones = entries.filter(|entry| is_package(&entry.path(), &entry.file_name().to_string_lossy()));
        let counters: Option<Vec<Counter>> = zones.map(|zone| counter(&zone.path())).collect();
        let mut counters = counters.unwrap_or_default();
        counters.sort_by(|one, other| one.zone.cmp(&other.zone));
        Energy(counters)
    }

    /// All packages together. Nothing where there are no counters, or not the same ones.
    pub fn joules_since(&self, earlier: &Energy) -> Option<f64> {
        let zones = |energy: &Energy| energy.0.iter().map(|counter| counter.zone.clone()).collect::<Vec<_>>();
        if self.0.is_empty() || zones(self) != zones(earlier) {
            return None;
        }
        let each =
            self.0.iter().zip(&earlier.0).map(|(now, then)| match now.microjoules.checked_sub(then.microjoules) {
                Some(more) => more,
                None => now.microjoules + now.highest.saturating_sub(then.microjoules),
            });
        Some(each.sum::<u64>() as f64 / 1e6)
    }
}

/// A whole package: its parts would be counted twice.
fn is_package(zone: &Path, name: &str) -> bool {
    let number = name.strip_prefix(ZONE);
    let is_whole = number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    is_whole && fs::read_to_string(zone.join("name")).is_ok_and(|name| name.starts_with(PACKAGE))
}

fn counter(zone: &Path) -> Option<Counter> {
    let number = |name: &str| fs::read_to_string(zone.join(name)).ok()?.trim().parse::<u64>().ok();
    Some(Counter {
        zone: zone.file_name()?.to_string_lossy().into_owned(),
        microjoules: number("energy_uj")?,
        highest: number("max_energy_range_uj")?,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn write(root: &Path, zone: &str, name: &str, microjoules: &str) -> PathBuf {
        let zone = root.join(zone);
        fs::create_dir_all(&zone).expect("a directory");
        for (file, text) in [("name", name), ("energy_uj", microjoules), ("max_energy_range_uj", "1000000\n")] {
            fs::write(zone.join(file), text).expect("a file");
        }
        zone.join("energy_uj")
    }

    #[test]
    fn packages_are_added_up_without_their_parts_and_over_their_end() {
        let root = tempfile::tempdir().expect("a directory");
        let first = write(root.path(), "intel-rapl:0", "package-0\n", "900000\n");
        let second = write(root.path(), "intel-rapl:1", "package-1\n", "100\n");
        for (zone, name) in
            [("intel-rapl:0:0", "core\n"), ("intel-rapl:2", "psys\n"), ("intel-rapl-mmio:0", "package-0\n")]
        {
            write(root.path(), zone, name, "7");
        }
        let before = Energy::below(root.path());
        assert_eq!(before.0.len(), 2, "{before:?}");
        fs::write(&first, "400000\n").expect("a file");
        fs::write(&second, "250100\n").expect("a file");
        // 100,000 to the end and 400,000 behind it, and 250,000 of the other.
        assert_eq!(Energy::below(root.path()).joules_since(&before), Some(0.75));
    }

    #[test]
    fn without_counters_nothing_is_told() {
        let root = tempfile::tempdir().expect("a directory");
        let none = Energy::below(&root.path().join("not here"));
        assert_eq!(none.joules_since(&none), None);
        let counter = write(root.path(), "intel-rapl:0", "package-0\n", "no number\n");
        assert_eq!(Energy::below(root.path()), Energy::default(), "a counter that cannot be read");
        fs::write(counter, "5\n").expect("a file");
        let read = Energy::below(root.path());
        assert_eq!((read.joules_since(&none), read.joules_since(&read)), (None, Some(0.0)));
    }

    /// Whatever this machine has: a counter goes up, and no counter is no number.
    #[test]
    fn this_machine_has_counters_or_none() {
        let before = Energy::of_machine();
        let joules = Energy::of_machine().joules_since(&before);
        assert_eq!(joules.is_some(), !before.0.is_empty());
        assert!(joules.is_none_or(|joules| joules >= 0.0), "{joules:?}");
        println!("energy: {} counters on this machine", before.0.len());
    }
}
