//! The kernel's calls for mounts.

use std::ffi::{CStr, CString};
use std::io::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Mounts a folder or a file system at a place.
pub(super) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> std::io::Result<()> {
    mount_with(source, target, kind, flags, None)
}

/// Mounts with the options of a file system.
pub(super) fn mount_with(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> std::io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all texts end with NUL and outlive the call.
    let status = unsafe {
        libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, pointer(options).cast::<libc::c_void>())
    };
    check_status(status.into(), "mount", target)
}

/// Sets and clears attributes of a mount and all mounts below it.
pub(super) fn attributes(target: &CStr, set: u64, clear: u64) -> std::io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        users: u64,
    }
    let attributes = MountAttributes { set, clear, propagation: 0, users: 0 };
    // SAFETY: the path ends with NUL, and the structure has the kernel's layout and the given size; both outlive the call.
    let status = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    check_status(status, "protect", target)
}

fn check_status(status: libc::c_long, what: &str, target: &CStr) -> std::io::Result<()> {
    if status == 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    Err(Error::new(error.kind(), format!("cannot {what} {}: {error}", target.to_string_lossy())))
}

/// Returns a path in the form of the kernel's.
pub(super) fn text(path: &Path) -> std::io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
