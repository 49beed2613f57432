//! Gives up rights for good, in a process that is about to become a command.
//!
//! Landlock (Linux 6.2 or newer) confines files, and signals and sockets as far as the kernel knows how; a filter of
//! system calls takes away the network and the ways around. What is left, and cannot be taken on every kernel: the
//! modes and times of files that the same user owns can be changed.

use super::policy::Policy;

/// Puts the sandbox on, or says why it cannot.
#[cfg(target_os = "linux")]
pub(super) fn put_on(policy: &Policy) -> Result<(), String> {
    capabilities().map_err(|error| format!("giving up capabilities: {error}"))?;
    files(policy).map_err(|error| error.to_string())?;
    calls(policy.net)
}

/// What root has beyond other users leads around Landlock: with it, newer kernels show other processes' environments.
#[cfg(target_os = "linux")]
fn capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{
        CapabilitiesSecureBits as Bits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        set_capabilities, set_capabilities_secure_bits,
    };
    if capabilities(None)?.permitted.is_empty() {
        return Ok(());
    }
    // So that a program which root starts does not have them again.
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

#[cfg(not(target_os = "linux"))]
pub(super) fn put_on(_: &Policy) -> Result<(), String> {
    Err("this system has none that is supported".to_owned())
}

#[cfg(target_os = "linux")]
fn files(policy: &Policy) -> Result<(), landlock::RulesetError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
        path_beneath_rules,
    };
    // The third version is the first that also confines truncation; what is newer is taken where it is.
    let (least, newest) = (ABI::V3, ABI::V7);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(least))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(newest))?
        .scope(Scope::from_all(newest))?;
    if !policy.net {
        rules = rules.handle_access(AccessNet::from_all(newest))?;
    }
    rules
        .create()?
        .add_rules(path_beneath_rules(&policy.read, AccessFs::from_read(newest)))?
        .add_rules(path_beneath_rules(&policy.write, AccessFs::from_all(newest)))?
        .restrict_self()?;
    Ok(())
}

/// System calls that no build needs, and that lead around the sandbox or to the kernel's least tried parts.
#[cfg(target_os = "linux")]
const REFUSED: &[i64] = &[
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// The flags of `clone` that make namespaces.
#[cfg(target_os = "linux")]
const NAMESPACES: i32 = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;

#[cfg(target_os = "linux")]
fn calls(net: bool) -> Result<(), String> {
    use std::collections::BTreeMap;

    use seccompiler::SeccompCmpArgLen::Dword;
    use seccompiler::SeccompCmpOp::{MaskedEq, Ne};
    use seccompiler::{BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule};

    let text = |error: &dyn std::fmt::Display| format!("the filter of system calls: {error}");
    let condition = |argument: u8, operator, value: u64| {
        SeccompCondition::new(argument, Dword, operator, value).map_err(|error| text(&error))
    };
    let rule = |conditions| SeccompRule::new(conditions).map_err(|error| text(&error));
    let put_on = |rules: BTreeMap<i64, Vec<SeccompRule>>, answer: i32| -> Result<(), String> {
        let architecture = std::env::consts::ARCH.try_into().map_err(|error| text(&error))?;
        let answer = SeccompAction::Errno(answer.unsigned_abs());
        let filter = SeccompFilter::new(every_abi(rules), SeccompAction::Allow, answer, architecture);
        let program: BpfProgram = filter
            .map_err(|error| text(&error))?
            .try_into()
            .map_err(|error: seccompiler::BackendError| text(&error))?;
        seccompiler::apply_filter(&program).map_err(|error| text(&error))
    };

    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut socket = Vec::new();
    if net {
        // A socket of another family would lead to the services of this machine.
        let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        let others = families.iter().map(|family| condition(0, Ne, u64::from(family.unsigned_abs())));
        socket.push(rule(others.collect::<Result<_, _>>()?)?);
    }
    rules.insert(libc::SYS_socket, socket);
    let mut clone = Vec::new();
    for bit in (0..32).map(|shift| 1_u64 << shift).filter(|bit| u64::from(NAMESPACES.cast_unsigned()) & bit != 0) {
        clone.push(rule(vec![condition(0, MaskedEq(bit), bit)?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    // Its flags cannot be looked at, so it is not there; everybody then uses the older one.
    put_on(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    put_on(rules, libc::EPERM)
}

/// On x86-64 the same calls can be made by other numbers.
#[cfg(target_os = "linux")]
fn every_abi(
    mut rules: std::collections::BTreeMap<i64, Vec<seccompiler::SeccompRule>>,
) -> std::collections::BTreeMap<i64, Vec<seccompiler::SeccompRule>> {
    const X32: i64 = 0x4000_0000;
    if cfg!(target_arch = "x86_64") {
        let others: Vec<_> = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        rules.extend(others);
    }
    rules
}
