//! What a store asks of the kernel, as far as it bears on what is safe.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use nix::libc::{self, c_long};
use nix::unistd::Pid;
use procfs::process::{MMapPath, MemoryMap, Process};

use crate::model::crash::calls::{Effect, effect};

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
    /// Asynchronous writes and syncs are handed over.
    Submit { count: u64, list: u64 },
    /// What is asked through a ring is not seen.
    Ring,
}

/// The number of each call of the table that this architecture has.
const NUMBERS: &[(c_long, &str)] = &[
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_sync, "sync"),
    (libc::SYS_syncfs, "syncfs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "open"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, "creat"),
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_io_submit, "io_submit"),
    (libc::SYS_io_uring_setup, "io_uring_setup"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_unlinkat, "unlinkat"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, "link"),
    (libc::SYS_linkat, "linkat"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_symlink, "symlink"),
    (libc::SYS_symlinkat, "symlinkat"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_mkdirat, "mkdirat"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir"),
];

/// The same by number: it is asked at every call of every thread.
static EFFECTS: LazyLock<BTreeMap<c_long, (&str, Effect)>> = LazyLock::new(|| {
    let known = NUMBERS.iter().filter_map(|(number, name)| Some((*number, (*name, effect(name)?))));
    known.collect()
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
    let (name, effect) = *EFFECTS.get(&number)?;
    match effect {
        Effect::SyncsFile => Some(Call::File(first)),
        Effect::SyncsMapped => {
            (third as i32 & libc::MS_SYNC != 0).then_some(Call::Mapped { address: first, bytes: second })
        }
        Effect::SyncsAll => Some(Call::All),
        Effect::Writes => {
            let at = match name {
                "pwrite64" | "pwritev" => Some(fourth),
                // Of this one the place -1 is the file's position.
                "pwritev2" => Some(fourth).filter(|at| *at as i64 != -1),
                _ => None,
            };
            let is_sync = name == "pwritev2" && sixth as i32 & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
            Some(Call::Write { file: first, at, is_sync })
        }
        Effect::Opens => {
            let creates = match name {
                "open" => second as i32 & libc::O_CREAT != 0,
                "openat" => third as i32 & libc::O_CREAT != 0,
                _ => true,
            };
            creates.then_some(Call::Names)
        }
        Effect::Submits => Some(Call::Submit { count: second, list: third }),
        Effect::SetsUpRing => Some(Call::Ring),
        Effect::Renames => Some(Call::Names),
    }
}

/// Where `aio_rw_flags` and `aio_lio_opcode` stand in `struct iocb`, and its length (linux/aio_abi.h).
const FLAGS: usize = 12;
const OPCODE: usize = 16;
const LENGTH: usize = 64;
/// IOCB_CMD_FSYNC and IOCB_CMD_FDSYNC.
const SYNCS: [u16; 2] = [2, 3];
/// So many blocks of one call are looked at.
const SUBMITTED_MAX: u64 = 1024;

/// Whether any of the blocks that io_submit(2) is handed is a sync, or a write that is one: by their opcodes and flags.
/// What cannot be read may be one.
pub fn submits_sync(thread: Pid, count: u64, list: u64) -> bool {
    let memory = File::open(format!("/proc/{thread}/mem"));
    let read = |at: u64, bytes: &mut [u8]| memory.as_ref().is_ok_and(|memory| memory.read_exact_at(bytes, at).is_ok());
    (0..count.min(SUBMITTED_MAX)).any(|place| {
        let (mut pointer, mut block) = ([0; 8], [0; LENGTH]);
        if !read(list + 8 * place, &mut pointer) || !read(u64::from_ne_bytes(pointer), &mut block) {
            return true;
        }
        let flags = i32::from_ne_bytes([block[FLAGS], block[FLAGS + 1], block[FLAGS + 2], block[FLAGS + 3]]);
        let opcode = u16::from_ne_bytes([block[OPCODE], block[OPCODE + 1]]);
        SYNCS.contains(&opcode) || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0
    })
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

/// The files that are mapped in a range of memory, and which of their bytes.
pub fn mapped(thread: Pid, address: u64, bytes: u64) -> Vec<(PathBuf, u64, u64)> {
    let maps = Process::new(thread.as_raw()).and_then(|process| process.maps());
    let of = |map: MemoryMap| {
        let MMapPath::Path(path) = map.pathname else { return None };
        let (from, to) = (map.address.0.max(address), map.address.1.min(address.saturating_add(bytes)));
        let offset = |at: u64| map.offset + (at - map.address.0);
        (from < to).then(|| (path, offset(from), offset(to)))
    };
    maps.into_iter().flatten().filter_map(of).collect()
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
        assert_eq!(of(libc::SYS_io_submit, [9, 2, 4096, 0, 0, 0]), Some(Call::Submit { count: 2, list: 4096 }));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn each_call_of_the_table_has_its_number() {
        let numbered: Vec<&str> = NUMBERS.iter().map(|(_, name)| *name).collect();
        let named: Vec<&str> = crate::model::crash::calls::CALLS.iter().map(|(name, _)| *name).collect();
        assert_eq!(numbered, named);
        assert_eq!(EFFECTS.len(), NUMBERS.len(), "no number stands for two calls");
    }

    /// By the memory of this process: three blocks, of which the last is a sync.
    #[test]
    fn syncs_are_found_among_asynchronous_writes() {
        let block = |opcode: u16, flags: i32| {
            let mut block = [0_u8; LENGTH];
            block[OPCODE..OPCODE + 2].copy_from_slice(&opcode.to_ne_bytes());
            block[FLAGS..FLAGS + 4].copy_from_slice(&flags.to_ne_bytes());
            block
        };
        let finds = |blocks: &[[u8; LENGTH]]| {
            let list: Vec<u64> = blocks.iter().map(|block| block.as_ptr() as u64).collect();
            submits_sync(nix::unistd::getpid(), list.len() as u64, list.as_ptr() as u64)
        };
        assert!(!finds(&[]) && !finds(&[block(1, 0), block(0, 0)]));
        assert!(finds(&[block(1, 0), block(0, 0), block(3, 0)]));
        assert!(finds(&[block(1, libc::RWF_DSYNC)]));
        assert!(submits_sync(nix::unistd::getpid(), 1, 8), "what cannot be read may be a sync");
    }

    #[test]
    fn mapped_bytes_are_found() {
        // A constant lies in the program's own file, which is mapped.
        static CONSTANT: [u8; 64] = *b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-";
        let found = mapped(nix::unistd::getpid(), CONSTANT.as_ptr() as u64, 64);
        let [(path, from, to)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(*path, std::env::current_exe().unwrap());
        let mut bytes = vec![0; (to - from) as usize];
        File::open(path).unwrap().read_exact_at(&mut bytes, *from).unwrap();
        assert_eq!(bytes, CONSTANT);
        assert!(mapped(nix::unistd::getpid(), 0, 0x1000).is_empty(), "nothing is mapped there");
    }
}
