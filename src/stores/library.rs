//! Engines that come as a system's shared library: opened when they are needed, so that kvfair itself needs none of
//! them to build or to start. It knows no engine.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use crate::words::op::Fault;

/// A shared library: names under which it may be, the best one first, and the package that has it.
pub struct Shared {
    pub names: &'static [&'static str],
    pub package: &'static str,
}

impl Shared {
    /// Opens it by the first name that the system's loader knows, or says how to get it.
    pub fn open(&self) -> Result<libloading::Library, String> {
        let newest = self.names.iter().flat_map(|name| newest(name));
        let candidates = newest.chain(self.names.iter().map(PathBuf::from));
        for name in candidates {
            // SAFETY: loading runs the library's own initialisers. It is the system's, by a name that stands in our
            // source, and none of those listed here does more than to set up itself. Tested by tests/contract.rs.
            if let Ok(library) = unsafe { libloading::Library::new(&name) } {
                return Ok(library);
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
            library: libloading::Library,
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
        }
    };
}
pub(crate) use interface;

/// What a variable that points to a C string says; nothing where there is no such variable.
pub fn words(library: &libloading::Library, variable: &str) -> String {
    // SAFETY: the library's header declares it as a pointer to a constant string, set when the library is loaded.
    unsafe {
        match library.get::<*const *const std::ffi::c_char>(variable.as_bytes()) {
            Ok(found) if !found.is_null() && !(**found).is_null() => {
                std::ffi::CStr::from_ptr(**found).to_string_lossy().into_owned()
            }
            _ => String::new(),
        }
    }
}

/// A path as C wants it.
pub fn c_path(path: &Path) -> Result<CString, Fault> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Fault::Unsupported(format!("a path with a zero byte: {}", path.display())))
}

/// Where bytes begin, as C means it. An empty slice of Rust's points to address 1, which Kyoto Cabinet takes for its
/// sign that the record is to be removed.
pub fn start(bytes: &[u8]) -> *const u8 {
    if bytes.is_empty() { c"".as_ptr().cast() } else { bytes.as_ptr() }
}
