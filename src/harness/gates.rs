//! What is looked at before a run and around each trial, so that noise is known by rules that do not look at results.
//! It needs no privileges; what a machine does not tell is said.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{machine, preload};
use crate::model::noise::Noise;
use crate::model::preflight::Preflight;

pub mod processor_probe;
pub mod programs;
pub mod queue;
pub mod window;

/// How long is looked. It uses a processor that others may need.
const LOOK: Duration = Duration::from_millis(350);
/// Before a second look, where the first one was not quiet: what was just ending has ended.
const PAUSE: Duration = Duration::from_millis(1_500);

/// Looks at the machine before a run whose stores keep their files in `data`, of a job with so many bytes of data. Half
/// a second, and two and a half where others are at work.
pub fn preflight(data: &Path, data_bytes: Option<u64>) -> Preflight {
    let began = Instant::now();
    let mut seen = spun();
    if !seen.is_quiet() {
        std::thread::sleep(PAUSE);
        seen = spun();
    }
    let sys = Path::new("/sys");
    let mut preflight = Preflight {
        cpu_pressure_share: machine::cpu_pressure_share(),
        processor_probe_ns: processor_probe::ProcessorProbe::default().look(),
        disk_sync_ns: processor_probe::disk_sync(data).ok(),
        free_bytes: free_bytes(data),
        data_bytes,
        in_memory: machine::filesystem(data).map(|name| name.starts_with("tmpfs ") || name.starts_with("ramfs ")),
        swap_used_bytes: machine::swap_used_bytes(),
        saves_power: saves_power(sys),
        on_battery: on_battery(sys),
        huge_pages_always: machine::huge_pages().map(|mode| mode == "always"),
        preloaded: preload::names(),
        ..seen
    };
    preflight.lacking.extend(lacking(&preflight));
    preflight.took_s = began.elapsed().as_secs_f64();
    preflight
}

/// What a thread that never sleeps sees: how long it waited, and who else ran.
fn spun() -> Preflight {
    let us = std::process::id();
    let before = programs::look(&[us], None);
    let spinner = std::thread::spawn(move || {
        let (began, first) = (Instant::now(), queue::own());
        while began.elapsed() < LOOK {
            std::hint::spin_loop();
        }
        let waited_ns =
            queue::own().zip(first).map(|((_, now), (_, then))| now.waited_ns.saturating_sub(then.waited_ns));
        Some(waited_ns? as f64 / began.elapsed().as_nanos() as f64)
    });
    let spin_delay_share = spinner.join().expect("spinning does not panic");
    let after = programs::look(&[us], before.as_ref());
    let noise = before.zip(after.as_ref()).map_or_else(Noise::default, |(before, after)| after.since(&before, false));
    let mut lacking = Vec::new();
    if !after.as_ref().is_some_and(programs::Programs::sees_all) {
        lacking.push("others' programs and the kernel's threads: their work is only known as a sum".to_string());
    }
    if noise.steal_share.is_none() {
        lacking.push("/proc/stat: what the host takes, and what no program has, is not known".to_string());
    }
    let Noise { foreign_share, steal_share, .. } = noise;
    Preflight { spin_delay_share, foreign_share, steal_share, lacking, ..Preflight::default() }
}

/// Sources that could not be read, each with what is not known without it.
fn lacking(preflight: &Preflight) -> Vec<String> {
    let all = [
        (preflight.spin_delay_share.is_none(), "schedstat: how long threads wait for a processor is not known"),
        (preflight.cpu_pressure_share.is_none(), "/proc/pressure: the last ten seconds are not known"),
        (
            preflight.saves_power.is_none(),
            "cpufreq: whether the clock is held down, only the loop before a trial can tell",
        ),
        (preflight.huge_pages_always.is_none(), "transparent_hugepage: who gets huge pages is not known"),
        (preflight.swap_used_bytes.is_none(), "/proc/meminfo: whether memory is swapped out is not known"),
        (preflight.in_memory.is_none(), "mountinfo: what the data directory is on is not known"),
    ];
    all.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what.to_string()).collect()
}

/// Bytes that are free for us on the disk of `path`; none where that is not known.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(path).ok()?;
    #[allow(clippy::useless_conversion)] // Blocks are counted in 32 bits elsewhere.
    Some(u64::from(disk.blocks_available()) * disk.fragment_size())
}

fn line(path: PathBuf) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_string())
}

/// A governor that holds the clock down. Where the processor chooses for itself its "powersave" is the usual one, and
/// what it prefers tells (Documentation/admin-guide/pm/intel_pstate.rst, amd-pstate.rst).
fn saves_power(sys: &Path) -> Option<bool> {
    let cpufreq = sys.join("devices/system/cpu/cpu0/cpufreq");
    let governor = line(cpufreq.join("scaling_governor"))?;
    let prefers = line(cpufreq.join("energy_performance_preference"));
    Some(governor == "powersave" && prefers.is_none_or(|prefers| prefers == "power"))
}

/// A battery of this machine (not of a mouse) that is being emptied. No batteries: no.
fn on_battery(sys: &Path) -> Option<bool> {
    let supplies = std::fs::read_dir(sys.join("class/power_supply")).ok()?.flatten();
    Some(supplies.into_iter().any(|supply| {
        let says = |name: &str, what: &str| line(supply.path().join(name)).is_some_and(|text| text == what);
        says("type", "Battery") && says("status", "Discharging") && !says("scope", "Device")
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::model::preflight::Severity;
    use crate::model::trial::Durability;

    /// A tree of files as a kernel shows it.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent"))
                .and_then(|()| fs::write(&path, text))
                .expect("written");
        }
        root
    }

    #[test]
    fn a_machine_without_the_files_tells_nothing() {
        let empty = tree(&[]);
        assert_eq!((saves_power(empty.path()), on_battery(empty.path())), (None, None));
        let nothing = lacking(&Preflight::default());
        assert_eq!(nothing.len(), 6, "{nothing:?}");
    }

    #[test]
    fn a_governor_is_blamed_only_where_it_holds_the_clock() {
        let governor = "devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let prefers = "devices/system/cpu/cpu0/cpufreq/energy_performance_preference";
        let of = |files: &[(&str, &str)]| saves_power(tree(files).path());
        assert_eq!(of(&[(governor, "performance\n")]), Some(false));
        assert_eq!(of(&[(governor, "powersave\n")]), Some(true));
        assert_eq!(of(&[(governor, "powersave\n"), (prefers, "balance_performance\n")]), Some(false));
        assert_eq!(of(&[(governor, "powersave\n"), (prefers, "power\n")]), Some(true));
    }

    #[test]
    fn a_battery_is_the_machines_own_and_being_emptied() {
        let at = |name: &str, status: &str, scope: &str| {
            let path = |file: &str| format!("class/power_supply/{name}/{file}");
            let (kind, how, whose) = (path("type"), path("status"), path("scope"));
            let root = tree(&[(&kind, "Battery\n"), (&how, status), (&whose, scope)]);
            on_battery(root.path())
        };
        assert_eq!(at("BAT0", "Discharging\n", "System\n"), Some(true));
        assert_eq!(at("BAT0", "Full\n", "System\n"), Some(false));
        assert_eq!(at("hidpp_battery_0", "Discharging\n", "Device\n"), Some(false), "a mouse");
    }

    #[test]
    fn this_machine_is_looked_at_in_a_few_seconds() {
        let directory = tempfile::tempdir().expect("a directory");
        let seen = preflight(directory.path(), Some(u64::MAX / 8));
        let again_s = if seen.is_quiet() { 0.0 } else { (PAUSE + LOOK).as_secs_f64() };
        assert!(seen.took_s >= LOOK.as_secs_f64() + again_s, "{seen:?}");
        assert!(
            seen.free_bytes > Some(0) && seen.disk_sync_ns > Some(0) && seen.processor_probe_ns > Some(0),
            "{seen:?}"
        );
        let found = seen.findings(Durability::None);
        assert!(found.iter().any(|finding| finding.id == "room" && finding.weight == Severity::Warn), "{found:?}");
        if cfg!(target_os = "linux") {
            assert!(seen.foreign_share.is_some() && seen.steal_share.is_some(), "{seen:?}");
        } else {
            assert!(seen.lacking.len() >= 6, "{:?}", seen.lacking);
        }
    }
}
