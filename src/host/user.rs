//! Who the user is, as the system knows it.

use std::path::PathBuf;

/// Returns the home of the user's entry in the system's list of users; nothing where there is no whole path.
#[cfg(target_os = "linux")]
pub fn home() -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;

    /// Longer than any entry.
    const MOST: usize = 1 << 20;

    let user = rustix::process::getuid().as_raw();
    let mut texts: Vec<libc::c_char> = vec![0; 1 << 12];
    loop {
        let mut found = std::ptr::null_mut();
        // SAFETY: an entry of zeros is valid.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        // SAFETY: both buffers are ours and outlive the call, and their length is told.
        let status = unsafe { libc::getpwuid_r(user, &raw mut entry, texts.as_mut_ptr(), texts.len(), &raw mut found) };
        if status == libc::ERANGE && texts.len() < MOST {
            texts.resize(texts.len() * 4, 0);
            continue;
        }
        if status != 0 || found.is_null() || entry.pw_dir.is_null() {
            return None;
        }
        // SAFETY: the call was well, so that this is a text in `texts`, with its end.
        let home = unsafe { CStr::from_ptr(entry.pw_dir) };
        return Some(PathBuf::from(OsStr::from_bytes(home.to_bytes()))).filter(|home| home.is_absolute());
    }
}

/// The standard library asks the system where `HOME` is unset; an empty one stays without an answer.
#[cfg(not(target_os = "linux"))]
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}
