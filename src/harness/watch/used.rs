//! What a process tree has used up by now.

use nix::sys::time::TimeValLike;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use procfs::process::Process;

use super::UsageReading;
use super::tree::family;

/// The most readings of one tree while its processes end.
const READINGS: usize = 8;

/// What a process tree has used up by now, its dead children included. A root that is gone counts nothing.
///
/// The kernel adds the usage of a child to that of its parent when the parent waits for it. A child that ends after its
/// parent was read and before it is read itself is in neither. So the tree is read again until none has ended
/// meanwhile.
pub fn reading(root: u32) -> UsageReading {
    let mut sum = UsageReading::default();
    for _ in 0..READINGS {
        let members = family(root);
        sum = sum_of(&members);
        if members.iter().all(|&pid| Process::new(pid as i32).is_ok()) {
            break;
        }
    }
    sum
}

fn sum_of(members: &[u32]) -> UsageReading {
    let mut sum = UsageReading::default();
    for &pid in members {
        let Ok(process) = Process::new(pid as i32) else { continue };
        let Ok(stat) = process.stat() else { continue };
        let dead_user = stat.cutime.max(0) as u64;
        let dead_system = stat.cstime.max(0) as u64;
        sum.cpu_s += cpu_s(pid) + (dead_user + dead_system) as f64 / procfs::ticks_per_second() as f64;
        sum.user_ticks += stat.utime + dead_user;
        sum.system_ticks += stat.stime + dead_system;
        // Another user's /proc/PID/io is not ours to read: then nothing is said of bytes. Those of dead children that
        // were waited for are in it.
        let Ok(io) = process.io() else { continue };
        let written = io.write_bytes.saturating_sub(io.cancelled_write_bytes);
        sum.bytes_written = Some(sum.bytes_written.unwrap_or(0) + written);
        sum.bytes_read = Some(sum.bytes_read.unwrap_or(0) + io.read_bytes);
    }
    sum
}

fn cpu_s(pid: u32) -> f64 {
    let clock = clock_getcpuclockid(Pid::from_raw(pid as i32));
    let time = clock.and_then(clock_gettime);
    time.map_or(0.0, |time| time.num_nanoseconds() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;

    /// Children that write a file each and end, one after another. What all have written never gets less.
    #[test]
    fn a_child_that_ends_during_a_reading_is_counted() {
        // The kernel counts what is written to a disk, and the directory of temporary files may lie in memory.
        let program = std::env::current_exe().expect("a program");
        let directory = tempfile::tempdir_in(program.parent().expect("a directory")).expect("a directory");
        let script = "for i in $(seq 2000); do head -c 65536 /dev/zero > $i; done; echo; read line";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let began = Instant::now();
        let (mut most, mut less, mut readings) = (0, 0, 0);
        while began.elapsed().as_secs_f64() < 1.0 {
            let written = reading(shell.id()).bytes_written.expect("it is ours");
            readings += 1;
            less += u32::from(written < most);
            most = most.max(written);
        }
        let _ = shell.kill().and_then(|()| shell.wait());
        assert!(most > 1 << 20, "{most} bytes");
        assert_eq!(less, 0, "of {readings} readings");
    }

    /// A file that is in no cache is read from the disk once.
    #[test]
    fn what_comes_from_a_disk_is_counted_and_what_is_cached_is_not() {
        use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&vec![7; 4 << 20]).and_then(|()| file.as_file().sync_all()).expect("written");
        posix_fadvise(file.as_file(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("dropped");
        let read_bytes = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "cat \"$1\" > /dev/null; echo; read line", "sh"]).arg(file.path());
            let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
            shell.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 1]).expect("it answers");
            let read = reading(shell.id()).bytes_read.expect("it is ours");
            let _ = shell.kill().and_then(|()| shell.wait());
            read
        };
        let disk = crate::harness::machine::filesystem(file.path());
        if disk.is_some_and(|disk| !disk.starts_with("tmpfs ")) {
            assert!(read_bytes() >= 4 << 20, "it was dropped");
        }
        assert!(read_bytes() < 4 << 20, "it was read just before");
    }

    /// As a server forks to write its file: what the child used up is the server's, alive and after its end.
    #[test]
    fn what_a_dead_child_used_up_is_not_lost() {
        let script = "read line; (i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done); echo; read line";
        let mut shell =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
        let before = reading(shell.id());
        shell.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("it listens");
        let mut done = [0; 1];
        shell.stdout.as_mut().expect("a pipe").read_exact(&mut done).expect("it answers");
        assert_eq!(family(shell.id()), [shell.id()], "the child has ended");
        let own_s = reading(shell.id()).since(&before).cpu_s();
        let _ = shell.kill();
        let _ = shell.wait();
        assert!(own_s > 0.03, "{own_s} s");
    }
}
