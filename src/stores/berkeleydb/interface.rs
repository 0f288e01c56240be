//! Berkeley DB's C interface: structures of function pointers, whose places belong to one version of the library: 5.3,
//! the last one that distributions carry. They were read from its header (`offsetof` on 64-bit Linux), and nothing is
//! asked of another version. It knows nothing of durability levels and settings.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use super::NAME;
use crate::model::op::Fault;
use crate::stores::library::{Shared, interface, start};

static SHARED: Shared = Shared { names: &["libdb-5.3.so", "libdb-5.3.dylib"], package: "libdb5.3" };

pub type Handle = *mut c_void;

interface!(Api {
    version(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    create(*mut Handle, Handle, u32) -> c_int;
    env_create(*mut Handle, u32) -> c_int;
    strerror(c_int) -> *const c_char;
});

/// A key or a value (`DBT`): all zeros but what is named.
#[repr(C)]
pub struct Thing {
    data: *mut c_void,
    pub size: u32,
    /// How much room there is at `data`, where that is ours.
    room: u32,
    /// Length and place of partial records: not used.
    unused: [u32; 2],
    app_data: *mut c_void,
    flags: u32,
}

impl Thing {
    pub fn of(bytes: &[u8]) -> Result<Thing, Fault> {
        let size = u32::try_from(bytes.len());
        let size = size.map_err(|_| Fault::Unsupported(format!("{NAME} takes at most 4 GiB")))?;
        Ok(Thing { data: start(bytes).cast_mut().cast(), size, ..Thing::empty() })
    }

    pub fn empty() -> Thing {
        Thing { data: null_mut(), size: 0, room: 0, unused: [0; 2], app_data: null_mut(), flags: 0 }
    }

    /// Memory of ours that it may write to, so many bytes.
    pub fn room(start: *mut u8, room: usize) -> Thing {
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        Thing { data: start.cast(), room, flags: DB_DBT_USERMEM, ..Thing::empty() }
    }

    /// # Safety
    /// The library has just filled it, and nothing was asked of its handle since.
    pub unsafe fn bytes(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size as usize) }
    }
}

/// Where the functions are in the structures, in bytes.
pub mod at {
    pub const DB_CLOSE: usize = 568;
    pub const DB_CURSOR: usize = 584;
    pub const DB_DEL: usize = 592;
    pub const DB_GET: usize = 632;
    pub const DB_GET_CACHESIZE: usize = 704;
    pub const DB_GET_ENV: usize = 744;
    pub const DB_GET_OPEN_FLAGS: usize = 888;
    pub const DB_GET_TYPE: usize = 984;
    pub const DB_OPEN: usize = 1008;
    pub const DB_PUT: usize = 1024;
    pub const DB_SET_CACHESIZE: usize = 1096;
    pub const ENV_CLOSE: usize = 488;
    pub const ENV_GET_CACHESIZE: usize = 576;
    pub const ENV_GET_FLAGS: usize = 656;
    pub const ENV_LOG_GET_CONFIG: usize = 1072;
    pub const ENV_LOG_SET_CONFIG: usize = 1112;
    pub const ENV_LOG_STAT: usize = 1120;
    pub const ENV_MEMP_STAT: usize = 1168;
    pub const ENV_OPEN: usize = 1328;
    pub const ENV_SET_CACHESIZE: usize = 1632;
    pub const ENV_SET_FLAGS: usize = 1728;
    pub const ENV_TXN_BEGIN: usize = 2040;
    pub const ENV_TXN_CHECKPOINT: usize = 2048;
    pub const TXN_ABORT: usize = 232;
    pub const TXN_COMMIT: usize = 240;
    pub const CURSOR_CLOSE: usize = 352;
    pub const CURSOR_GET: usize = 392;
}

/// The header's numbers.
pub const DB_BTREE: c_int = 1;
pub const DB_HASH: c_int = 2;
pub const DB_CREATE: u32 = 0x1;
pub const DB_RECOVER: u32 = 0x2;
pub const DB_LOG_AUTO_REMOVE: u32 = 0x1;
pub const DB_TXN_NOSYNC: u32 = 0x1;
pub const DB_TXN_WRITE_NOSYNC: u32 = 0x20;
pub const DB_AUTO_COMMIT: u32 = 0x100;
pub const DB_INIT: u32 = 0x100 | 0x200 | 0x400 | 0x2000; // LOCK, LOG, MPOOL, TXN
pub const DB_PRIVATE: u32 = 0x10000;
pub const DB_FIRST: u32 = 7;
pub const DB_NEXT: u32 = 16;
pub const DB_SET_RANGE: u32 = 27;
pub const DB_NOTFOUND: c_int = -30988;
pub const DB_BUFFER_SMALL: c_int = -30999;
const DB_DBT_USERMEM: u32 = 0x800;

// SAFETY: these are types, as the header declares the functions; each call has its own reason.
pub type Close = unsafe extern "C" fn(Handle, u32) -> c_int;
pub type CloseCursor = unsafe extern "C" fn(Handle) -> c_int;
pub type OpenDb = unsafe extern "C" fn(Handle, Handle, *const c_char, *const c_char, c_int, u32, c_int) -> c_int;
pub type OpenEnv = unsafe extern "C" fn(Handle, *const c_char, u32, c_int) -> c_int;
pub type SetCache = unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int;
pub type GetCache = unsafe extern "C" fn(Handle, *mut u32, *mut u32, *mut c_int) -> c_int;
// SAFETY: as above.
pub type SetFlags = unsafe extern "C" fn(Handle, u32, c_int) -> c_int;
pub type GetFlags = unsafe extern "C" fn(Handle, *mut u32) -> c_int;
pub type GetInt = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
pub type SetLog = unsafe extern "C" fn(Handle, u32, c_int) -> c_int;
pub type GetLog = unsafe extern "C" fn(Handle, u32, *mut c_int) -> c_int;
// SAFETY: as above.
pub type Checkpoint = unsafe extern "C" fn(Handle, u32, u32, u32) -> c_int;
pub type Begin = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
// SAFETY: as above.
pub type Commit = unsafe extern "C" fn(Handle, u32) -> c_int;
pub type Abort = unsafe extern "C" fn(Handle) -> c_int;
pub type KeyValue = unsafe extern "C" fn(Handle, Handle, *mut Thing, *mut Thing, u32) -> c_int;
pub type Delete = unsafe extern "C" fn(Handle, Handle, *mut Thing, u32) -> c_int;
pub type NewCursor = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
// SAFETY: as above.
pub type Move = unsafe extern "C" fn(Handle, *mut Thing, *mut Thing, u32) -> c_int;

/// The function at a place of a structure.
///
/// # Safety
/// `handle` is a structure of version 5.3 on a 64-bit system, and `F` is the type of the function there.
pub unsafe fn method<F: Copy>(handle: Handle, at: usize) -> F {
    // SAFETY: the caller's promise; every place in `at` is that of a pointer, aligned as one.
    unsafe { *handle.cast::<u8>().add(at).cast::<F>() }
}

pub fn load() -> Result<(Api, String), String> {
    let api = Api::load(&SHARED, "db_")?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three places for numbers, as the header says.
    unsafe { (api.version)(&mut major, &mut minor, &mut patch) };
    known(major, minor)?;
    check_places(&api)?;
    Ok((api, format!("{major}.{minor}.{patch}")))
}

/// Functions that the library also exports, and where they must be in a new database and in a new environment.
const DB_PLACES: &[(usize, &str)] = &[
    (at::DB_CLOSE, "__db_close_pp"),
    (at::DB_CURSOR, "__db_cursor_pp"),
    (at::DB_DEL, "__db_del_pp"),
    (at::DB_GET, "__db_get_pp"),
    (at::DB_OPEN, "__db_open_pp"),
    (at::DB_PUT, "__db_put_pp"),
];
const ENV_PLACES: &[(usize, &str)] = &[
    (at::ENV_CLOSE, "__env_close_pp"),
    (at::ENV_LOG_GET_CONFIG, "__log_get_config"),
    (at::ENV_MEMP_STAT, "__memp_stat_pp"),
    (at::ENV_OPEN, "__env_open_pp"),
    (at::ENV_SET_FLAGS, "__env_set_flags"),
    (at::ENV_TXN_BEGIN, "__txn_begin_pp"),
    (at::ENV_TXN_CHECKPOINT, "__txn_checkpoint_pp"),
];

/// A library of the same version may have been built with other structures: its own symbols say where they are.
fn check_places(api: &Api) -> Result<(), String> {
    let (mut database, mut environment) = (null_mut(), null_mut());
    // SAFETY: two functions of the header that make a handle each, which nothing was asked of.
    let made = unsafe { ((api.create)(&mut database, null_mut(), 0), (api.env_create)(&mut environment, 0)) };
    if made != (0, 0) {
        return Err(format!("{} makes no handles: errors {made:?}", SHARED.names[0]));
    }
    check_handle(api, database, DB_PLACES)?;
    check_handle(api, environment, ENV_PLACES)?;
    // SAFETY: both handles were just made, and the places of both functions are known by now.
    unsafe {
        method::<Close>(database, at::DB_CLOSE)(database, 0);
        method::<Close>(environment, at::ENV_CLOSE)(environment, 0);
    }
    Ok(())
}

fn check_handle(api: &Api, handle: Handle, places: &[(usize, &str)]) -> Result<(), String> {
    for &(place, name) in places {
        // Some builds add the version to their names.
        let exported = [name.to_string(), format!("{name}_5003")].into_iter().find_map(|name| api.address(&name));
        // SAFETY: structures of this version are longer than every place; a number is read and not called.
        let found: usize = unsafe { method(handle, place) };
        if exported != Some(found) {
            let library = SHARED.names[0];
            return Err(format!("{library} has {name} not at byte {place} of its structure: another build is needed"));
        }
    }
    Ok(())
}

/// Whether the places in `at` are that version's.
fn known(major: c_int, minor: c_int) -> Result<(), String> {
    match (major, minor) {
        (5, 3) if cfg!(target_pointer_width = "64") => Ok(()),
        _ => Err(format!("{} is version {major}.{minor}: 5.3 on a 64-bit system is needed", SHARED.names[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is called there would be another function.
    #[test]
    fn a_structure_with_other_places_is_not_spoken_to() {
        let Ok((api, _)) = load() else { return eprintln!("!! no Berkeley DB: its places are NOT tested") };
        let mut database = null_mut();
        // SAFETY: a function of the header that makes a handle.
        assert_eq!(unsafe { (api.create)(&mut database, null_mut(), 0) }, 0);
        check_handle(&api, database, DB_PLACES).expect("its own places");
        let moved: Vec<_> = DB_PLACES.iter().map(|(place, name)| (place + 8, *name)).collect();
        let said = check_handle(&api, database, &moved).expect_err("other places");
        assert!(said.contains("__db_close_pp not at byte 576"), "{said}");
        // SAFETY: it was just made.
        unsafe { method::<Close>(database, at::DB_CLOSE)(database, 0) };
    }

    /// Another version would be asked at the wrong places.
    #[test]
    fn only_one_version_is_spoken_to() {
        assert!(known(5, 3).is_ok());
        for (major, minor) in [(4, 8), (5, 1), (5, 4), (6, 2), (18, 1)] {
            assert!(known(major, minor).expect_err("another version").contains(&format!("{major}.{minor}")));
        }
    }
}
