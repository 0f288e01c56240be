//! What a store asks of the kernel, as far as it bears on what is safe.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::LazyLock;

use nix::libc::{self, c_long};
use nix::unistd::Pid;

/// A call that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// fsync and fdatasync: all bytes of this file.
    File(u64),
    /// msync: the bytes of the file that is mapped there.
    Mapped { address: u64, bytes: u64 },
    /// sync and syncfs.
    All,
    /// A write, which is a sync too where the file was opened so or the call says so; at a place, or where the file's
    /// position is.
    Write { file: u64, at: Option<u64>, is_sync: bool },
    /// What stands where may change.
    Names,
    /// Whatever is asked through a ring is not seen.
    Ring,
}

/// Calls after which something may stand elsewhere, or for the first time. Not all systems have all of them.
static NAMES: LazyLock<BTreeSet<c_long>> = LazyLock::new(|| {
    let all = [
        libc::SYS_openat2,
        libc::SYS_renameat2,
        libc::SYS_unlinkat,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_mkdirat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir,
        libc::SYS_renameat,
    ];
    all.into_iter().collect()
});

/// The number of the call that a thread stands before, and what it was handed (syscall(2), "Architecture calling
/// conventions").
pub fn asked(registers: &libc::user_regs_struct) -> (c_long, [u64; 6]) {
    #[cfg(target_arch = "x86_64")]
    let (number, arguments) = {
        let libc::user_regs_struct { orig_rax, rdi, rsi, rdx, r10, r8, r9, .. } = *registers;
        (orig_rax, [rdi, rsi, rdx, r10, r8, r9])
    };
    #[cfg(target_arch = "aarch64")]
    let (number, arguments) = {
        let [first, second, third, fourth, fifth, sixth, _, _, number, ..] = registers.regs;
        (number, [first, second, third, fourth, fifth, sixth])
    };
    (number as c_long, arguments)
}

/// What the call that a thread stands behind came to; `None` where it failed.
pub fn answer(registers: &libc::user_regs_struct) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    let answer = registers.rax;
    #[cfg(target_arch = "aarch64")]
    let answer = registers.regs[0];
    // The last page of numbers are errors.
    (answer < (-4095_i64) as u64).then_some(answer)
}

/// What that call is, if it matters.
pub fn call(number: c_long, arguments: &[u64; 6]) -> Option<Call> {
    let [first, second, third, fourth, _, sixth] = *arguments;
    let write = |at, is_sync| Some(Call::Write { file: first, at, is_sync });
    let flagged = |flags: u64| flags as i32 & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
    match number {
        libc::SYS_fsync | libc::SYS_fdatasync => Some(Call::File(first)),
        libc::SYS_msync if third as i32 & libc::MS_SYNC != 0 => Some(Call::Mapped { address: first, bytes: second }),
        libc::SYS_sync | libc::SYS_syncfs => Some(Call::All),
        libc::SYS_write | libc::SYS_writev => write(None, false),
        libc::SYS_pwrite64 | libc::SYS_pwritev => write(Some(fourth), false),
        // Of this one the place -1 is the file's position.
        libc::SYS_pwritev2 => write(Some(fourth).filter(|at| *at as i64 != -1), flagged(sixth)),
        libc::SYS_openat => (third as i32 & libc::O_CREAT != 0).then_some(Call::Names),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => (second as i32 & libc::O_CREAT != 0).then_some(Call::Names),
        libc::SYS_io_uring_setup => Some(Call::Ring),
        _ if NAMES.contains(&number) => Some(Call::Names),
        _ => None,
    }
}

/// Where the file of that number is, as the kernel says.
pub fn path(thread: Pid, file: u64) -> Option<PathBuf> {
    fs::read_link(entry(thread, file)).ok()
}

pub fn open(thread: Pid, file: u64) -> std::io::Result<File> {
    File::open(entry(thread, file))
}

fn entry(thread: Pid, file: u64) -> String {
    format!("/proc/{thread}/fd/{}", file as i32)
}

/// Whether what is written to the file is synced, and its position (proc_pid_fdinfo(5)).
pub fn mode(thread: Pid, file: u64) -> Option<(bool, u64)> {
    let text = fs::read_to_string(format!("/proc/{thread}/fdinfo/{}", file as i32)).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    Some((flags & libc::O_DSYNC != 0, field("pos:")?.parse().ok()?))
}

/// The files that are mapped in a range of memory, and which of their bytes (proc_pid_maps(5)).
pub fn mapped(thread: Pid, address: u64, bytes: u64) -> Vec<(PathBuf, u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
    text.lines().filter_map(|line| overlap(line, address, address.saturating_add(bytes))).collect()
}

/// "7f0000000000-7f0000004000 rw-s 00001000 fe:00 1234    /data/file"
fn overlap(line: &str, from: u64, to: u64) -> Option<(PathBuf, u64, u64)> {
    let mut fields = line.splitn(6, ' ');
    let (begin, end) = fields.next()?.split_once('-')?;
    let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
    let path = fields.nth(2)?.trim_start();
    let (from, to) = (from.max(begin), to.min(end));
    (from < to && path.starts_with('/')).then(|| (path.into(), offset + (from - begin), offset + (to - begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_their_arguments() {
        let of = |number, arguments| call(number, &arguments);
        assert_eq!(of(libc::SYS_fdatasync, [7, 0, 0, 0, 0, 0]), Some(Call::File(7)));
        assert_eq!(of(libc::SYS_msync, [4096, 10, libc::MS_ASYNC as u64, 0, 0, 0]), None);
        let write = |at, is_sync| Some(Call::Write { file: 3, at, is_sync });
        assert_eq!(of(libc::SYS_pwrite64, [3, 0, 10, 50, 0, 0]), write(Some(50), false));
        assert_eq!(of(libc::SYS_pwritev2, [3, 0, 1, u64::MAX, 0, libc::RWF_DSYNC as u64]), write(None, true));
        assert_eq!(of(libc::SYS_renameat2, [0; 6]), Some(Call::Names));
        assert_eq!(of(libc::SYS_read, [0; 6]), None);
    }

    #[test]
    fn mapped_bytes_are_found() {
        let line = "7f0000000000-7f0000004000 rw-s 00001000 fe:00 1234                       /data/a file";
        let found = |from, to| overlap(line, from, to);
        assert_eq!(found(0x7f0000000000, 0x7f0000001000), Some(("/data/a file".into(), 0x1000, 0x2000)));
        assert_eq!(found(0x7f0000003000, 0x7f0000009000), Some(("/data/a file".into(), 0x4000, 0x5000)));
        assert_eq!(found(0x7f0000004000, 0x7f0000009000), None);
        assert_eq!(overlap("7f00-7f10 rw-p 00000000 00:00 0", 0, u64::MAX), None);
    }
}
