//! The system calls that bear on what is safe on a disk: one table for the count of syncs (`syncs`) and for the
//! emulated loss of power (`harness::crash::outage`).

/// What a call does to what is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// All bytes of one file are safe when it has succeeded.
    SyncsFile,
    /// The mapped bytes are, with MS_SYNC.
    SyncsMapped,
    /// All bytes of a file system are.
    SyncsAll,
    /// It opens a file: with O_SYNC or O_DSYNC each write to it is a sync, with O_CREAT a name may be new.
    Opens,
    /// It writes to a file, and syncs where the file was opened so or RWF_SYNC or RWF_DSYNC says so.
    Writes,
    /// It hands over asynchronous writes and syncs; what it syncs cannot be followed.
    Submits,
    /// It sets up io_uring, whose calls cannot be followed.
    SetsUpRing,
    /// Names of files change.
    Renames,
}

/// Each call by its name (syscalls(2)). Not all systems have all of them.
pub const CALLS: &[(&str, Effect)] = &[
    ("fsync", Effect::SyncsFile),
    ("fdatasync", Effect::SyncsFile),
    ("msync", Effect::SyncsMapped),
    ("sync", Effect::SyncsAll),
    ("syncfs", Effect::SyncsAll),
    ("open", Effect::Opens),
    ("openat", Effect::Opens),
    ("openat2", Effect::Opens),
    ("creat", Effect::Opens),
    ("write", Effect::Writes),
    ("writev", Effect::Writes),
    ("pwrite64", Effect::Writes),
    ("pwritev", Effect::Writes),
    ("pwritev2", Effect::Writes),
    ("io_submit", Effect::Submits),
    ("io_uring_setup", Effect::SetsUpRing),
    ("rename", Effect::Renames),
    ("renameat", Effect::Renames),
    ("renameat2", Effect::Renames),
    ("unlink", Effect::Renames),
    ("unlinkat", Effect::Renames),
    ("link", Effect::Renames),
    ("linkat", Effect::Renames),
    ("symlink", Effect::Renames),
    ("symlinkat", Effect::Renames),
    ("mkdir", Effect::Renames),
    ("mkdirat", Effect::Renames),
    ("rmdir", Effect::Renames),
];

/// What that call does; nothing where it does not matter.
pub fn effect(name: &str) -> Option<Effect> {
    CALLS.iter().find(|(call, _)| *call == name).map(|(_, effect)| *effect)
}

/// Why a count or an emulation that met the ring knows nothing.
pub const RING: &str = "io_uring was seen, whose syncs no tracer sees";
/// And one that met syncs among asynchronous writes.
pub const SUBMITTED: &str = "syncs were asked of asynchronous I/O";
