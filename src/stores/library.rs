//! Engines that come as a system's shared library: opened when they are needed, so that kvfair itself needs none of
//! them to build or to start. It knows no engine.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::null;

use crate::model::op::Fault;

/// An open library. It is never closed: some have threads of their own that end with the process (LevelDB), whose code
/// must not go while they run.
pub type Library = ManuallyDrop<libloading::Library>;

/// A shared library: names under which it may be, the best one first, and the package that has it.
pub struct Shared {
    pub names: &'static [&'static str],
    pub package: &'static str,
}

impl Shared {
    /// Opens it by the first name that the system's loader knows, or says how to get it.
    pub fn open(&self) -> Result<Library, String> {
        let newest = self.names.iter().flat_map(|name| newest(name));
        let candidates = newest.chain(self.names.iter().map(PathBuf::from));
        for name in candidates {
            // SAFETY: loading runs the library's own initialisers. It is the system's, by a name that stands in our
            // source, and none of those listed here does more than to set up itself. Tested by tests/contract.rs.
            if let Ok(library) = unsafe { libloading::Library::new(&name) } {
                return Ok(ManuallyDrop::new(library));
            }
        }
        Err(format!("there is no {} here (package {})", self.names.join(" or "), self.package))
    }
}

/// Where a name ends in `.so.*`: the files of that name with a version, the highest first.
fn newest(name: &str) -> Vec<PathBuf> {
    let Some(stem) = name.strip_suffix('*') else { return Vec::new() };
    let directories =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    let entries = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    let mut found: Vec<(Vec<u64>, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.strip_prefix(stem)?.to_string();
            let numbers: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
            Some((numbers?, entry.path()))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Declares the functions of a library that an engine uses: one line each, resolved together, so that a library that
/// lacks one is told before anything is asked of it. The first word of every name may be given apart, for two libraries
/// with the same interface.
macro_rules! interface {
    ($name:ident { $($function:ident($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        #[allow(non_snake_case)] // Names are the library's.
        pub struct $name {
            // SAFETY: a type; each call has its own reason.
            $(pub $function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            library: crate::stores::library::Library,
        }

        #[allow(dead_code, non_snake_case)] // Not every library says its version in this way.
        impl $name {
            pub fn load(shared: &crate::stores::library::Shared, prefix: &str) -> Result<$name, String> {
                let library = shared.open()?;
                Ok($name {
                    $($function: {
                        let name = format!("{prefix}{}", stringify!($function));
                        // SAFETY: the type is the one that the library's header declares for this name; a copy of the
                        // pointer is used only as long as the library stays open, which this value keeps it.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(name.as_bytes())
                        };
                        let wanted = "another version is needed, of package";
                        *found.map_err(|_| format!("{} has no {name}: {wanted} {}", shared.names[0], shared.package))?
                    },)*
                    library,
                })
            }

            /// The words in a variable of the library's, as most name their version.
            pub fn words(&self, variable: &str) -> String {
                crate::stores::library::words(&self.library, variable)
            }

            /// Where a function of the library's is, if it exports it.
            pub fn address(&self, function: &str) -> Option<usize> {
                crate::stores::library::address(&self.library, function)
            }

            /// A variable of the library's that is a pointer; null where it has none of that name.
            pub fn pointer(&self, variable: &str) -> *const std::ffi::c_char {
                crate::stores::library::pointer(&self.library, variable)
            }
        }
    };
}
pub(crate) use interface;

/// What a variable that points to a C string says; nothing where there is no such variable.
pub fn words(library: &Library, variable: &str) -> String {
    let found = pointer(library, variable);
    if found.is_null() {
        return String::new();
    }
    // SAFETY: the library's header declares it as a pointer to a constant string, set when the library is loaded.
    unsafe { CStr::from_ptr(found).to_string_lossy().into_owned() }
}

/// What a variable of the library's that is a pointer holds; null where there is no such variable.
pub fn pointer(library: &Library, variable: &str) -> *const c_char {
    // SAFETY: the library's header declares it as a pointer to characters, set when the library is loaded.
    unsafe { library.get::<*const *const c_char>(variable.as_bytes()).map_or(null(), |found| **found) }
}

/// Where a function of the library's is, if it exports it.
pub fn address(library: &Library, function: &str) -> Option<usize> {
    // SAFETY: the address of a symbol is only compared.
    unsafe { library.get::<unsafe extern "C" fn()>(function.as_bytes()).ok().map(|found| *found as usize) }
}

/// A path as C wants it.
pub fn c_path(path: &Path) -> Result<CString, Fault> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Fault::Unsupported(format!("a path with a zero byte: {}", path.display())))
}

/// Has a function of C's put a value into `out`, in place of what is there: `fill` is given where to write and how much
/// room there is, and answers how long the value is, which may be more than it had room for. `out` grows until it fits,
/// so that the next value of that length is copied once and allocates nothing. False where there is no value.
///
/// # Safety
/// `fill` writes as many bytes as it answers, or as there is room for.
pub unsafe fn fill(
    out: &mut Vec<u8>,
    mut fill: impl FnMut(*mut u8, usize) -> Result<Option<usize>, Fault>,
) -> Result<bool, Fault> {
    out.clear();
    out.reserve(LEAST_ROOM_BYTES);
    loop {
        let room = out.capacity();
        match fill(out.as_mut_ptr(), room)? {
            None => return Ok(false),
            Some(length) if length > room => out.reserve(length),
            Some(length) => {
                // SAFETY: the caller's promise: so many bytes were written, and there was room for them.
                unsafe { out.set_len(length) };
                return Ok(true);
            }
        }
    }
}

/// A page: most values fit at once.
const LEAST_ROOM_BYTES: usize = 4096;

/// Where bytes begin, as C means it. An empty slice of Rust's points to address 1, which Kyoto Cabinet takes for its
/// sign that the record is to be removed.
pub fn start(bytes: &[u8]) -> *const u8 {
    if bytes.is_empty() { c"".as_ptr().cast() } else { bytes.as_ptr() }
}

/// What a library says of its open file, by its own names.
pub type InForce = BTreeMap<String, String>;

/// A number that must be at least what was asked.
pub fn at_least(name: &str, in_force: &InForce, setting: &str, asked: u64) -> Result<(), Fault> {
    let told = in_force.get(setting).map_or("", String::as_str);
    if told.parse().is_ok_and(|value: u64| value >= asked) {
        return Ok(());
    }
    Err(Fault::Refused(format!("{name}: {setting} is '{told}' where {asked} was asked")))
}
