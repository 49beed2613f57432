//! Gives up rights for good, in a process that is about to become a command.
//!
//! Landlock (Linux 6.2 or newer) confines files and, in newer kernels, signals and sockets; `syscall_filter` takes away
//! the network and the ways around Landlock.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, Signal};

use super::namespace::{SHARED, TERMINALS};
use super::policy::Policy;
use super::syscall_filter;

/// Enters the sandbox, or returns why that failed.
pub(super) fn apply_sandbox(policy: &Policy) -> Result<(), String> {
    capabilities().map_err(|error| format!("giving up capabilities: {error}"))?;
    files(policy).map_err(|error| error.to_string())?;
    syscall_filter::refuse(policy.net || policy.loopback, policy.namespace)
}

/// Drops what this process has inherited, with or without a sandbox: descriptors, the terminal, signal handling. Makes
/// it end with its parent.
pub(super) fn leave() -> Result<(), String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: rustix::io::Errno| format!("{what}: {error}")
    };
    // Without a session of its own, the command could type into the terminal from which nietz was started.
    rustix::process::setsid().map_err(failed("leaving the session"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("ending with its parent"))?;
    // A direct system call: the library refuses to reset some signals, which may be ignored, too.
    let default = [0_u64; 4];
    for signal in 1..=64_i32 {
        // SAFETY: `default` is an action of the kernel's layout and size, without a handler, and outlives the call. None of
        // this program's handlers is needed any more. Signals whose action cannot be set have the default one anyway.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, 0_usize, 8_usize) };
    }
    close_descriptors().map_err(|error| format!("closing descriptors: {error}"))
}

/// Makes all descriptors but the first three close when the process becomes another program. A sandbox does not confine
/// files that are open already.
pub(super) fn close_descriptors() -> std::io::Result<()> {
    // SAFETY: nothing is closed now, so that no descriptor in use becomes invalid.
    let status = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Sets the limits that the kernel enforces, in this process and all that it starts.
pub(super) fn limit(policy: &Policy) -> Result<(), String> {
    let set = |resource, most: u64| {
        let before = rustix::process::getrlimit(resource);
        // A limit that is lower already stays.
        let most = before.maximum.map_or(most, |before| before.min(most));
        let current = before.current.map_or(most, |current| current.min(most));
        let limits = Rlimit { current: Some(current), maximum: Some(most) };
        rustix::process::setrlimit(resource, limits).map_err(|error| format!("setting a limit: {error}"))
    };
    set(Resource::Core, 0)?;
    set(Resource::Fsize, policy.file)?;
    set(Resource::Nofile, policy.open_files)?;
    if policy.namespace {
        // In a namespace, only its processes count; elsewhere all processes of the user would.
        set(Resource::Nproc, policy.tasks())?;
    }
    // If memory runs out, the kernel ends commands first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "800");
    Ok(())
}

/// Drops all capabilities of root, which lead around Landlock: newer kernels show root other processes' environments.
fn capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{
        CapabilitiesSecureBits as Bits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        set_capabilities, set_capabilities_secure_bits,
    };
    if capabilities(None)?.permitted.is_empty() {
        return Ok(());
    }
    // A program that root starts must not regain the capabilities.
    set_capabilities_secure_bits(
        Bits::NO_ROOT
            | Bits::NO_ROOT_LOCKED
            | Bits::NO_SETUID_FIXUP
            | Bits::NO_SETUID_FIXUP_LOCKED
            | Bits::NO_CAP_AMBIENT_RAISE
            | Bits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

fn files(policy: &Policy) -> Result<(), landlock::RulesetError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
        path_beneath_rules,
    };
    // Version 3 is the first that also confines truncation; newer versions are used where the kernel has them.
    let (least, newest) = (ABI::V3, ABI::V7);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(least))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(newest))?
        .scope(Scope::from_all(newest))?;
    if !policy.net && !policy.loopback {
        rules = rules.handle_access(AccessNet::from_all(newest))?;
    }
    // With mounts, a copy without keys covers the original.
    let copies = policy.copies.iter().filter(|_| policy.namespace).map(|(_, original)| original);
    let own = [SHARED].into_iter().chain(TERMINALS).map(Path::new);
    // Only a view keeps what is written apart: without mounts, these are the user's own folders.
    let views = policy.mounts.caches.iter().map(|view| view.target.as_path());
    let own = own.chain(views).filter(|_| policy.namespace);
    rules
        .create()?
        .add_rules(path_beneath_rules(policy.read.iter().chain(copies), AccessFs::from_read(newest)))?
        .add_rules(path_beneath_rules(
            policy.write.iter().map(PathBuf::as_path).chain(own),
            AccessFs::from_all(newest),
        ))?
        .restrict_self()?;
    Ok(())
}
