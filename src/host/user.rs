//! The user's entry in the system's user database.

use std::path::PathBuf;

/// Returns the home folder of the user's entry in the user database; `None` if it is not an absolute path.
#[cfg(target_os = "linux")]
pub(crate) fn home() -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;

    /// A buffer size above that of any entry.
    const MOST: usize = 1 << 20;

    let user = rustix::process::getuid().as_raw();
    let mut buffer: Vec<libc::c_char> = vec![0; 1 << 12];
    loop {
        let mut result = std::ptr::null_mut();
        // SAFETY: an entry of zeros is valid.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        // SAFETY: both buffers are ours and outlive the call, which gets their length.
        let status =
            unsafe { libc::getpwuid_r(user, &raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut result) };
        if status == libc::ERANGE && buffer.len() < MOST {
            buffer.resize(buffer.len() * 4, 0);
            continue;
        }
        if status != 0 || result.is_null() || entry.pw_dir.is_null() {
            return None;
        }
        // SAFETY: the call succeeded, so `pw_dir` points to a terminated string in `buffer`.
        let home = unsafe { CStr::from_ptr(entry.pw_dir) };
        return Some(PathBuf::from(OsStr::from_bytes(home.to_bytes()))).filter(|home| home.is_absolute());
    }
}

/// Returns `HOME`, or if it is unset, what the system knows. An empty `HOME` gives `None`.
#[cfg(not(target_os = "linux"))]
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}
