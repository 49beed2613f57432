//! PID, mount and network namespaces. The kernel ends all processes of a command with the first process of the namespace;
//! the command sees no other processes; it can change only its own folders, not even modes and times elsewhere; and it
//! has a loopback and terminals of its own, for tests that start servers or need a terminal.

use std::io::{Error, Read, Write};
use std::path::Path;

use rustix::process::{Pid, Signal};

use super::mount_calls::{attributes, mount, mount_with, text};
use super::policy::Policy;

/// Where the C library keeps shared memory and semaphores.
pub(super) const SHARED: &str = "/dev/shm";
/// Where pseudoterminals are made and found, and the process's own terminal.
pub(super) const TERMINALS: [&str; 3] = ["/dev/ptmx", "/dev/pts", "/dev/tty"];
/// The first kernel with a `pid_max` for each namespace.
const OWN_NUMBERS: (u32, u32) = (6, 14);
/// The lowest `pid_max` that the kernel accepts.
const LEAST_NUMBERS: u64 = 400;

/// Starts a process as the first of new namespaces, which runs `inside` there, with the policy that says whether the
/// command has a loopback of its own. Returns its id, or why this system does not allow that.
pub(super) fn start(policy: &Policy, inside: impl FnOnce(&Policy) -> u8) -> Result<Pid, String> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let (mut reader, mut writer) = std::io::pipe().map_err(|error| error.to_string())?;
    let (id, flags) = forked(policy.net)?;
    let Some(id) = id else {
        drop(reader);
        let mut policy = policy.clone();
        let made = (|| {
            // If the parent has ended before this call, the lifeline has ended, too.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if flags & libc::CLONE_NEWUSER != 0 {
                map_user(user.as_raw(), group.as_raw())?;
            }
            policy.loopback = flags & libc::CLONE_NEWNET != 0 && start_loopback().is_ok();
            mounts(&policy)
        })();
        if let Err(error) = made {
            let _ = write!(writer, "{error}");
            end(1);
        }
        drop(writer);
        end(inside(&policy));
    };
    drop(writer);
    let mut why = String::new();
    let read = reader.read_to_string(&mut why);
    if read.is_ok() && why.is_empty() {
        return Ok(id);
    }
    let _ = rustix::process::kill_process(id, Signal::KILL);
    let _ = rustix::process::waitpid(Some(id), rustix::process::WaitOptions::empty());
    Err(why)
}

/// Forks into new namespaces: with a user namespace if needed, and with one of the network where the machine's may not be
/// used and another can be made. Returns `None` in the new process, and the flags of what was made.
fn forked(net: bool) -> Result<(Option<Pid>, libc::c_int), String> {
    let wanted = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::SIGCHLD;
    let networks: &[libc::c_int] = if net { &[0] } else { &[libc::CLONE_NEWNET, 0] };
    let mut failed = Error::from_raw_os_error(libc::EPERM);
    for more in networks.iter().flat_map(|network| [*network, network | libc::CLONE_NEWUSER]) {
        let flags = libc::c_long::from(wanted | more);
        // SAFETY: this process has one thread, and no stack is given: the new process continues with a copy of everything,
        // as after `fork`.
        let id = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
        if id >= 0 {
            return Ok((i32::try_from(id).ok().and_then(Pid::from_raw), more));
        }
        failed = Error::last_os_error();
    }
    Err(format!("namespaces cannot be made: {failed}"))
}

/// Ends this process at once, without flushing buffers and closing files that belong to the process it was forked from.
fn end(status: u8) -> ! {
    // SAFETY: the call does not return, and runs no code of this process.
    unsafe { libc::_exit(i32::from(status)) }
}

/// Maps the user and the group to the same ids as outside.
fn map_user(user: u32, group: u32) -> std::io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Starts the loopback of a new network namespace, in which nothing else can be reached.
fn start_loopback() -> std::io::Result<()> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the structure is plain data, for which zero bytes are a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    // Its flags are one 16-bit number, and both fit.
    #[allow(clippy::cast_possible_truncation)]
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    request.ifr_ifru.ifru_flags = flags;
    // SAFETY: the descriptor is open, and the request has the kernel's layout and outlives the call.
    let status = unsafe {
        libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&socket), libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request)
    };
    if status == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Mounts a `/proc` of this namespace, and makes everything read-only except what the command may change.
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
    // Without the folder, no program uses shared memory.
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
    policy.mounts.apply(&policy.folder)?;
    if Path::new(TERMINALS[1]).is_dir() {
        // Without a mount of its own, no terminal can be made: those of the machine stay out of reach.
        let _ = terminals();
    }
    mount(Some(c"proc"), c"/proc", Some(c"proc"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)?;
    if own_numbers() {
        // Without this limit, `oversee` still counts the processes.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", policy.tasks().max(LEAST_NUMBERS).to_string());
    }
    // Enters the folder again: the current folder is still the one below the new mount.
    std::env::set_current_dir(&policy.start)
}

/// Mounts pseudoterminals of this namespace's own.
fn terminals() -> std::io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount_with(Some(c"devpts"), c"/dev/pts", Some(c"devpts"), flags, Some(c"newinstance,ptmxmode=0666,mode=620"))
}

/// Returns whether `pid_max` belongs to this namespace: in older kernels it is the machine's.
fn own_numbers() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= OWN_NUMBERS
}
