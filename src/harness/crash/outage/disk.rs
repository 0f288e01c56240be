//! What of a directory's files a loss of power would leave: the bytes and names that were made safe, held in memory.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A larger file is not followed.
const LARGEST: u64 = 1 << 30;

/// A file, whatever it is called. The number alone is given again to another when the file is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    number: u64,
    born: Option<SystemTime>,
}

impl Node {
    pub fn of(meta: &Metadata) -> Node {
        Node { number: meta.ino(), born: meta.created().ok() }
    }
}

/// What stands at a path below the root.
#[derive(Clone, Debug, PartialEq)]
pub struct PathState {
    path: PathBuf,
    kind: Kind,
    mode: u32,
    owner: (u32, u32),
    modified: SystemTime,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Directory,
    File(Node),
    Link(PathBuf),
}

/// Bytes of a file as they are now.
pub struct FilePart {
    node: Node,
    /// Of the whole file.
    length: u64,
    from: u64,
    bytes: Vec<u8>,
    modified: SystemTime,
}

impl FilePart {
    /// A range of the file in bytes, or the whole; what lies beyond its end is left out.
    pub fn read(file: &File, range: Option<(u64, u64)>) -> io::Result<FilePart> {
        let meta = file.metadata()?;
        let length = meta.len();
        if length > LARGEST {
            return Err(io::Error::other(format!("a file of {length} bytes is too large to be followed")));
        }
        let (from, to) = range.map_or((0, length), |(from, to)| (from.min(length), to.min(length)));
        let mut bytes = vec![0; (to - from) as usize];
        let mut read = 0;
        while read < bytes.len() {
            match file.read_at(&mut bytes[read..], from + read as u64)? {
                0 => break,
                count => read += count,
            }
        }
        bytes.truncate(read);
        Ok(FilePart { node: Node::of(&meta), length, from, bytes, modified: meta.modified()? })
    }
}

/// A file's bytes as they were made safe.
struct Safe {
    bytes: Vec<u8>,
    /// Its time of change when they were: a store may refuse a file of another time.
    modified: SystemTime,
    /// When all of them were last seen at once.
    whole: Moment,
}

/// Moments are numbered: what was seen at a later one is newer, though its sync may have ended before.
pub type Moment = u64;

/// What is safe.
pub struct Disk {
    root: PathBuf,
    safe: HashMap<Node, Safe>,
    names: Vec<PathState>,
    /// When the names were seen.
    named: Moment,
}

impl Disk {
    /// All that is there now is safe.
    pub fn new(root: &Path) -> io::Result<Disk> {
        let mut disk = Disk { root: root.to_path_buf(), safe: HashMap::new(), names: Vec::new(), named: 0 };
        disk.names = disk.names_now()?;
        for part in disk.all_now()? {
            disk.keep(0, part);
        }
        Ok(disk)
    }

    pub fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    /// All files as they are now.
    pub fn all_now(&self) -> io::Result<Vec<FilePart>> {
        let names = self.names_now()?.into_iter().filter(|name| matches!(name.kind, Kind::File(_)));
        let parts =
            names.map(|name| File::open(self.root.join(name.path)).and_then(|file| FilePart::read(&file, None)));
        parts.filter(|part| !is_gone(part)).collect()
    }

    /// What stands where now.
    pub fn names_now(&self) -> io::Result<Vec<PathState>> {
        let (mut names, mut directories) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(directory) = directories.pop() {
            let entries = fs::read_dir(self.root.join(&directory));
            if is_gone(&entries) {
                continue;
            }
            for entry in entries? {
                let path = directory.join(entry?.file_name());
                let name = name(&self.root, &path);
                if is_gone(&name) {
                    continue;
                }
                if let Some(name) = name? {
                    if name.kind == Kind::Directory {
                        directories.push(path);
                    }
                    names.push(name);
                }
            }
        }
        Ok(names)
    }

    /// These bytes, as seen at that moment, are safe now, and how long their file is.
    pub fn keep(&mut self, at: Moment, part: FilePart) {
        let FilePart { node, length, from, bytes, modified } = part;
        let safe = self.safe.entry(node).or_insert(Safe { bytes: Vec::new(), modified, whole: 0 });
        if at < safe.whole {
            return;
        }
        safe.modified = modified;
        if from == 0 && bytes.len() as u64 == length {
            (safe.bytes, safe.whole) = (bytes, at);
            return;
        }
        safe.bytes.resize(length as usize, 0);
        safe.bytes[from as usize..][..bytes.len()].copy_from_slice(&bytes);
    }

    /// These names are, and the times of their files. A file that has none is nowhere to be found.
    pub fn keep_names(&mut self, at: Moment, names: Vec<PathState>) {
        if at < self.named {
            return;
        }
        self.named = at;
        let nodes: HashSet<Node> =
            names.iter().filter_map(|name| if let Kind::File(node) = name.kind { Some(node) } else { None }).collect();
        self.safe.retain(|node, safe| nodes.contains(node) || safe.whole > at);
        self.names = names;
    }

    /// Makes the directory what it was: a file whose bytes were never made safe is there and empty.
    pub fn roll_back(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        // Directories come before what is in them.
        self.names.iter().try_for_each(|name| {
            let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", name.path.display()));
            self.put_back(name).map_err(at)
        })
    }

    fn put_back(&self, name: &PathState) -> io::Result<()> {
        let path = self.root.join(&name.path);
        match &name.kind {
            Kind::Directory => fs::create_dir(&path)?,
            Kind::File(node) => {
                let (mut file, safe) = (File::create(&path)?, self.safe.get(node));
                safe.map_or(Ok(()), |safe| file.write_all(&safe.bytes))?;
                file.set_modified(safe.map_or(name.modified, |safe| safe.modified.max(name.modified)))?;
            }
            Kind::Link(to) => return symlink(to, &path),
        }
        // Whoever is not root may give nothing away, and what was root's is then the store's own.
        match chown(&path, Some(name.owner.0), Some(name.owner.1)) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(name.mode))
    }
}

/// `None` of what is neither file, directory nor link: a socket, a pipe.
fn name(root: &Path, path: &Path) -> io::Result<Option<PathState>> {
    let meta = root.join(path).symlink_metadata()?;
    let kind = match meta.file_type() {
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_file() => Kind::File(Node::of(&meta)),
        kind if kind.is_symlink() => Kind::Link(fs::read_link(root.join(path))?),
        _ => return Ok(None),
    };
    let (mode, owner, modified) = (meta.mode() & 0o7777, (meta.uid(), meta.gid()), meta.modified()?);
    Ok(Some(PathState { path: path.to_path_buf(), kind, mode, owner, modified }))
}

/// It was removed while we looked.
pub fn is_gone<T>(looked: &io::Result<T>) -> bool {
    looked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(path: &Path) -> FilePart {
        FilePart::read(&File::open(path).expect("a file"), None).expect("its bytes")
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn only_what_was_made_safe_is_left() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("old")).expect("room");
        fs::write(at("old/kept"), "kept").expect("room");
        fs::write(at("log"), "one ").expect("room");
        let mut disk = Disk::new(root.path()).expect("a disk");
        fs::write(at("log"), "one two ").expect("room");
        disk.keep(1, whole(&at("log")));
        fs::write(at("log"), "one two three").expect("room");
        fs::remove_file(at("old/kept")).expect("a file");
        fs::write(at("new"), "never synced").expect("room");
        disk.roll_back().expect("room");
        assert_eq!((text(&at("log")), text(&at("old/kept"))), ("one two ".to_string(), "kept".to_string()));
        assert!(!at("new").exists());
    }

    #[test]
    fn a_file_has_the_time_of_the_last_sync_of_itself_or_of_names() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("file");
        let second = |count: u64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(count);
        let write = |text: &str, at: SystemTime| {
            fs::write(&path, text).expect("room");
            File::options().write(true).open(&path).and_then(|file| file.set_modified(at)).expect("a time");
        };
        let found = || (text(&path), fs::metadata(&path).and_then(|meta| meta.modified()).expect("a file"));
        write("old", second(1));
        // It is another file after each time that it is put back.
        let mut disk = Disk::new(root.path()).expect("a disk");
        write("never synced", second(9));
        disk.roll_back().expect("room");
        assert_eq!(found(), ("old".to_string(), second(1)));

        disk = Disk::new(root.path()).expect("a disk");
        write("synced", second(2));
        disk.keep(1, whole(&path));
        write("not synced", second(9));
        disk.roll_back().expect("room");
        assert_eq!(found(), ("synced".to_string(), second(2)));

        disk = Disk::new(root.path()).expect("a disk");
        write("not synced, when something else was", second(3));
        disk.keep_names(1, disk.names_now().expect("names"));
        disk.roll_back().expect("room");
        assert_eq!(found(), ("synced".to_string(), second(3)));

        fs::remove_file(&path).expect("a file");
        disk = Disk::new(root.path()).expect("a disk");
        write("of a file that never was", second(4));
        disk.keep_names(1, disk.names_now().expect("names"));
        write("longer", second(9));
        disk.roll_back().expect("room");
        assert_eq!(found(), (String::new(), second(4)));
    }

    #[test]
    fn a_sync_that_ends_late_takes_nothing_back() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        fs::write(at("log"), "one ").expect("room");
        let mut disk = Disk::new(root.path()).expect("a disk");
        let (early, early_names) = (whole(&at("log")), disk.names_now().expect("names"));
        fs::write(at("log"), "one two ").expect("room");
        fs::write(at("new"), "new").expect("room");
        disk.keep(2, whole(&at("log")));
        disk.keep(3, whole(&at("new")));
        disk.keep_names(1, early_names.clone());
        disk.keep_names(3, disk.names_now().expect("names"));
        disk.keep(1, early);
        disk.keep_names(1, early_names);
        disk.roll_back().expect("room");
        assert_eq!((text(&at("log")), text(&at("new"))), ("one two ".to_string(), "new".to_string()));
    }

    #[test]
    fn names_are_safe_apart_from_bytes() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        fs::write(at("one"), "1").expect("room");
        let mut disk = Disk::new(root.path()).expect("a disk");
        fs::write(at("two"), "22").expect("room");
        fs::rename(at("one"), at("first")).expect("a file");
        disk.keep_names(1, disk.names_now().expect("names"));
        disk.roll_back().expect("room");
        assert_eq!((text(&at("first")), text(&at("two"))), ("1".to_string(), String::new()));
        assert!(!at("one").exists());
    }

    #[test]
    fn a_range_is_safe_and_nothing_beside_it() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("pages");
        fs::write(&path, "aaaabbbb").expect("room");
        let mut disk = Disk::new(root.path()).expect("a disk");
        fs::write(&path, "AAAABBBBCCCC").expect("room");
        let file = File::open(&path).expect("a file");
        disk.keep(1, FilePart::read(&file, Some((4, 8))).expect("bytes"));
        disk.keep(2, FilePart::read(&file, Some((11, 99))).expect("bytes"));
        disk.roll_back().expect("room");
        assert_eq!(text(&path), "aaaaBBBB\0\0\0C");
    }
}
