//! Namespaces of processes and mounts: all that a command starts ends with the first process there, because the kernel
//! says so; it sees no process but those; and nothing but its own folders can be changed, not even modes and times.

use std::ffi::{CStr, CString};
use std::io::{Error, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal};

use super::policy::Policy;

/// Where the system's library keeps memory that processes share, and their semaphores.
pub(super) const SHARED: &str = "/dev/shm";
/// The first kernel that numbers the processes of each namespace by a limit of its own.
const OWN_NUMBERS: (u32, u32) = (6, 14);
/// The lowest limit that it takes.
const LEAST_NUMBERS: u64 = 400;

/// Starts a process that is the first of new namespaces, and there does `inside`. Returns its id; the reason if this
/// system does not let us.
pub(super) fn start(policy: &Policy, inside: impl FnOnce() -> u8) -> Result<Pid, String> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let (mut reader, mut writer) = std::io::pipe().map_err(|error| error.to_string())?;
    let (id, foreign) = forked()?;
    let Some(id) = id else {
        drop(reader);
        let made = (|| {
            // One whose parent is gone meanwhile finds its standard input ended.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if foreign {
                map_user(user.as_raw(), group.as_raw())?;
            }
            mounts(policy)
        })();
        if let Err(error) = made {
            let _ = write!(writer, "{error}");
            end(1);
        }
        drop(writer);
        end(inside());
    };
    drop(writer);
    let mut why = String::new();
    let heard = reader.read_to_string(&mut why);
    if heard.is_ok() && why.is_empty() {
        return Ok(id);
    }
    let _ = rustix::process::kill_process(id, Signal::KILL);
    let _ = rustix::process::waitpid(Some(id), rustix::process::WaitOptions::empty());
    Err(why)
}

/// Forks into new namespaces, also of users where that is needed. Returns nothing in the new process.
fn forked() -> Result<(Option<Pid>, bool), String> {
    let wanted = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::SIGCHLD;
    let mut failed = Error::from_raw_os_error(libc::EPERM);
    for users in [0, libc::CLONE_NEWUSER] {
        let flags = libc::c_long::from(wanted | users);
        // SAFETY: this process has one thread, and no stack is given: the new process goes on with a copy of all, as
        // after `fork`.
        let id = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
        if id >= 0 {
            return Ok((i32::try_from(id).ok().and_then(Pid::from_raw), users != 0));
        }
        failed = Error::last_os_error();
    }
    Err(format!("namespaces cannot be made: {failed}"))
}

/// Ends this process at once: what the other one had open and buffered is not its own.
fn end(status: u8) -> ! {
    // SAFETY: it does not return, and runs nothing of this process.
    unsafe { libc::_exit(i32::from(status)) }
}

/// Is the same user as outside.
fn map_user(user: u32, group: u32) -> std::io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Shows the processes of this namespace alone, and lets nothing be changed but what the command may change.
fn mounts(policy: &Policy) -> std::io::Result<()> {
    let slave = libc::MS_REC | libc::MS_SLAVE;
    mount(None, c"/", None, slave)?;
    for folder in &policy.kept {
        let folder = text(folder)?;
        mount(Some(&folder), &folder, None, libc::MS_BIND | libc::MS_REC)?;
    }
    for (copy, original) in &policy.copies {
        mount(Some(&text(copy)?), &text(original)?, None, libc::MS_BIND)?;
    }
    // Where there is none, nobody looks for it.
    let shared = Path::new(SHARED).is_dir();
    if shared {
        mount(Some(&text(&policy.shared)?), &text(Path::new(SHARED))?, None, libc::MS_BIND)?;
    }
    attributes(c"/", libc::MOUNT_ATTR_RDONLY, 0)?;
    if shared {
        let set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
        attributes(&text(Path::new(SHARED))?, set, libc::MOUNT_ATTR_RDONLY)?;
    }
    for folder in &policy.kept {
        attributes(&text(folder)?, libc::MOUNT_ATTR_NOSUID, libc::MOUNT_ATTR_RDONLY)?;
    }
    mount(Some(c"proc"), c"/proc", Some(c"proc"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)?;
    if own_numbers() {
        // Where this is not to be had, the processes are counted all the same.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", policy.tasks().max(LEAST_NUMBERS).to_string());
    }
    // What was open by this path is what is mounted over now.
    std::env::set_current_dir(&policy.folder)
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> std::io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all texts have their ends and outlive the call.
    let status = unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null()) };
    check_status(status.into(), "mount", target)
}

/// Sets and clears attributes of a mount and all below it.
fn attributes(target: &CStr, set: u64, clear: u64) -> std::io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        users: u64,
    }
    let attributes = MountAttributes { set, clear, propagation: 0, users: 0 };
    // SAFETY: the path has its end, and the structure is of the layout and size that are told; both outlive the call.
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

fn text(path: &Path) -> std::io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Tells whether a limit of process numbers is this namespace's own: in older kernels it is the machine's.
fn own_numbers() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= OWN_NUMBERS
}
