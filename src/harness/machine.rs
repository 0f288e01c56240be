//! What there is to know of the machine that a trial runs on. What cannot be read is said to be unknown, never guessed.

use std::fs;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};

use super::preload;
use crate::model::record::Machine;

/// Reads it all now; `data` is the directory in which stores keep their files.
pub fn read(data: &Path) -> Machine {
    let (cpu, memory_bytes) = hardware();
    let uname = nix::sys::utsname::uname().ok();
    let kernel = uname.map_or_else(unknown, |name| {
        format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
    });
    Machine {
        cpu,
        cpus: processors() as u32,
        memory_bytes,
        kernel,
        os: os(),
        filesystem: filesystem(data).unwrap_or_else(unknown),
        load_1m: load_1m().unwrap_or(0.0),
        cpu_pressure_share: cpu_pressure_share(),
        transparent_huge_pages: huge_pages().unwrap_or_else(unknown),
        clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource").unwrap_or_else(unknown),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").unwrap_or_else(unknown),
        virtualisation: virtualisation(),
        preloaded: preload::libraries(),
        preflight: None,
    }
}

fn unknown() -> String {
    "unknown".to_string()
}

fn line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string()).filter(|text| !text.is_empty())
}

/// Who gets transparent huge pages: "always", "madvise", "never".
pub fn huge_pages() -> Option<String> {
    let text = line("/sys/kernel/mm/transparent_hugepage/enabled")?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_string())
}

/// Memory that is swapped out.
#[cfg(target_os = "linux")]
pub fn swap_used_bytes() -> Option<u64> {
    use procfs::Current;
    let memory = procfs::Meminfo::current().ok()?;
    Some(memory.swap_total.saturating_sub(memory.swap_free))
}

#[cfg(not(target_os = "linux"))]
pub fn swap_used_bytes() -> Option<u64> {
    None
}

/// Processors that we may use; 0 where that cannot be known.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// The machine's memory in bytes; 0 where it cannot be known.
pub fn memory_bytes() -> u64 {
    hardware().1
}

/// Memory that programs can have without any being taken from others, in bytes.
#[cfg(target_os = "linux")]
pub fn free_memory_bytes() -> Option<u64> {
    use procfs::{Current, Meminfo};
    Meminfo::current().ok()?.mem_available
}

#[cfg(not(target_os = "linux"))]
pub fn free_memory_bytes() -> Option<u64> {
    None
}

/// The share of the free memory that a child of ours may have: the rest is for the server and other programs.
pub const MEMORY_SHARE: f64 = 0.75;

/// Memory that a process of ours can have, in bytes: what is free, and no more than its limit or a container's.
pub fn own_memory_bytes(free_share: f64) -> Option<u64> {
    let free = free_memory_bytes().map(|free| (free as f64 * free_share) as u64);
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let of_container = limits.into_iter().filter_map(|path| line(path)?.parse().ok());
    let allowed = getrlimit(Resource::RLIMIT_DATA).ok().map(|(soft, _)| soft);
    free.into_iter().chain(of_container).chain(allowed).min()
}

/// The processor's name and the memory in bytes.
#[cfg(target_os = "linux")]
fn hardware() -> (String, u64) {
    use procfs::{CpuInfo, Current, Meminfo};
    let cpu = CpuInfo::current().ok().and_then(|info| info.model_name(0).map(str::to_string));
    let memory = Meminfo::current().map_or(0, |memory| memory.mem_total);
    (cpu.unwrap_or_else(unknown), memory)
}

#[cfg(not(target_os = "linux"))]
fn hardware() -> (String, u64) {
    (unknown(), 0)
}

fn os() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| std::env::consts::OS.to_string(), |name| name.trim_matches('"').to_string())
}

/// "ext4 on /dev/vda": of the mount that holds `path`.
#[cfg(target_os = "linux")]
pub fn filesystem(path: &Path) -> Option<String> {
    let mount = mount(path)?;
    Some(format!("{} on {}", mount.fs_type, mount.mount_source.unwrap_or_else(unknown)))
}

/// How it is mounted: "relatime", "barrier=0".
#[cfg(target_os = "linux")]
pub fn mount_options(path: &Path) -> Vec<String> {
    let Some(mount) = mount(path) else { return Vec::new() };
    let all = mount.mount_options.into_iter().chain(mount.super_options);
    all.map(|(name, value)| value.map_or(name.clone(), |value| format!("{name}={value}"))).collect()
}

#[cfg(target_os = "linux")]
fn mount(path: &Path) -> Option<procfs::process::MountInfo> {
    let path = path.canonicalize().ok()?;
    let mounts = procfs::process::Process::myself().ok()?.mountinfo().ok()?;
    // The deepest mount point wins, and of several mounts there the last one, which hides the others.
    let mounts = mounts.into_iter().filter(|mount| path.starts_with(&mount.mount_point));
    mounts.max_by_key(|mount| mount.mount_point.as_os_str().len())
}

#[cfg(not(target_os = "linux"))]
pub fn mount_options(_: &Path) -> Vec<String> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub fn filesystem(_: &Path) -> Option<String> {
    None
}

fn load_1m() -> Option<f64> {
    line("/proc/loadavg")?.split(' ').next()?.parse().ok()
}

/// `some avg10=1.23 avg60=...` of the kernel's pressure information, as a share.
pub fn cpu_pressure_share() -> Option<f64> {
    let text = line("/proc/pressure/cpu")?;
    let percent: f64 = text.split_once("avg10=")?.1.split(' ').next()?.parse().ok()?;
    Some(percent / 100.0)
}

fn virtualisation() -> String {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_virtual = flags.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    let vendor = line("/sys/class/dmi/id/sys_vendor");
    match (is_virtual, vendor) {
        (true, Some(vendor)) => vendor,
        (true, None) => "virtual".to_string(),
        (false, _) if flags.is_empty() => unknown(),
        (false, _) => "none".to_string(),
    }
}
