//! Refuses a command the system calls that lead around the sandbox, to other processes, or to little-tested parts of the
//! kernel. No build needs them.

use std::collections::BTreeMap;

use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, sock_filter};

/// Numbers of calls that are too new for the library to name.
const SETXATTRAT: i64 = 463;
const GETXATTRAT: i64 = 464;
const LISTXATTRAT: i64 = 465;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;

/// Calls that are not permitted (`EPERM`), whatever the arguments are.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_migrate_pages,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    // Queues and memory outlive the process that made them, and all of the user's programs share them.
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_setns,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    FILE_SETATTR,
    LISTMOUNT,
    OPEN_TREE_ATTR,
    STATMOUNT,
];

/// Calls for extended attributes, which Landlock does not confine. They answer like a file system without attributes,
/// which programs that copy files ignore.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    GETXATTRAT,
    LISTXATTRAT,
    REMOVEXATTRAT,
    SETXATTRAT,
];

/// Calls that answer `ENOSYS`. A filter cannot see the flags of `clone3`; programs then use `clone`. Landlock does not
/// confine inotify; programs then poll.
const ABSENT: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_inotify_add_watch,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
];

/// Commands of `fcntl` that affect other processes: leases make them wait, and notices tell what they do.
const ON_FILES: &[i32] = &[libc::F_SETLEASE, libc::F_NOTIFY];

/// Requests of `ioctl` that change a file open only for reading: its flags, its project, its version, its fs-verity seal.
const ON_INODES: &[u32] =
    &[0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4008_7602, 0x4004_7602, 0x4080_6685, 0x4008_7601, 0x4004_7601];

/// The flag of `fallocate` that frees disk space.
const PUNCH_HOLE: u64 = 2;

/// The flags of `clone` that make namespaces.
const NAMESPACES: i32 = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refuses the calls for good. `net` allows the network; `alone` says that a namespace hides all other processes.
pub(super) fn refuse(net: bool, alone: bool) -> Result<(), String> {
    let all = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect::<Rules>();
    other_numbers()?;
    install_filter(all(ABSENT), libc::ENOSYS)?;
    let mut unsupported = all(ATTRIBUTES);
    unsupported.insert(libc::SYS_ioctl, each(1, ON_INODES.iter().copied())?);
    // Reserved disk space does not count as written. Without `fallocate`, programs write instead.
    unsupported.insert(libc::SYS_fallocate, vec![rule(vec![condition(1, Dword, MaskedEq(PUNCH_HOLE), 0)?])?]);
    install_filter(unsupported, libc::EOPNOTSUPP)?;
    let mut rules = all(REFUSED);
    rules.insert(libc::SYS_socket, sockets(net)?);
    rules.insert(libc::SYS_socketpair, pairs()?);
    rules.insert(libc::SYS_fcntl, each(1, ON_FILES.iter().map(|call| call.unsigned_abs()))?);
    rules.insert(libc::SYS_clone, namespaces()?);
    rules.extend(rules_on_others(alone)?);
    install_filter(rules, libc::EPERM)
}

/// Refuses sockets of other families, which lead to services of this machine. Without network, all sockets are refused.
fn sockets(net: bool) -> Result<Vec<SeccompRule>, String> {
    if !net {
        return Ok(Vec::new());
    }
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let other = families.iter().map(|family| condition(0, Dword, Ne, u64::from(family.unsigned_abs())));
    Ok(vec![rule(other.collect::<Result<_, _>>()?)?])
}

/// Refuses pairs of datagram sockets, which can be connected to any local service with a path; streams cannot.
fn pairs() -> Result<Vec<SeccompRule>, String> {
    let kind = |kind: i32| rule(vec![condition(1, Dword, MaskedEq(0xf), u64::from(kind.unsigned_abs()))?]);
    Ok(vec![kind(libc::SOCK_DGRAM)?, kind(libc::SOCK_RAW)?])
}

/// Returns a rule for each value of an argument.
fn each(argument: u8, values: impl Iterator<Item = u32>) -> Result<Vec<SeccompRule>, String> {
    values.map(|value| rule(vec![condition(argument, Dword, Eq, u64::from(value))?])).collect()
}

fn namespaces() -> Result<Vec<SeccompRule>, String> {
    let bits = (0..32).map(|shift| 1_u64 << shift).filter(|bit| u64::from(NAMESPACES.cast_unsigned()) & bit != 0);
    bits.map(|bit| rule(vec![condition(0, Dword, MaskedEq(bit), bit)?])).collect()
}

/// Refuses to change limits, priorities and processors of other processes: the kernel only checks that the user is the same.
fn rules_on_others(alone: bool) -> Result<Rules, String> {
    let other = |argument| condition(argument, Dword, Ne, 0);
    // Reading a limit is harmless, and a process may need to set its own.
    let mut rules = Rules::from([(libc::SYS_prlimit64, vec![rule(vec![other(0)?, condition(2, Qword, Ne, 0)?])?])]);
    if !alone {
        for call in [
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
        ] {
            rules.insert(call, vec![rule(vec![other(0)?])?]);
        }
        let user = |process: u64| -> Result<_, String> {
            // Refuses process groups and users, and any process but the caller.
            Ok(vec![rule(vec![condition(0, Dword, Ne, process)?])?, rule(vec![other(1)?])?])
        };
        rules.insert(libc::SYS_setpriority, user(0)?);
        rules.insert(libc::SYS_ioprio_set, user(1)?);
    }
    Ok(rules)
}

/// Refuses the x32 numbers, by which the same calls and some others can be made on x86-64.
#[cfg(target_arch = "x86_64")]
fn other_numbers() -> Result<(), String> {
    const X32: u32 = 0x4000_0000;
    const NUMBER: u32 = 0;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, NUMBER),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, ERRNO | libc::EPERM.unsigned_abs()),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, ALLOW),
    ];
    seccompiler::apply_filter(&program).map_err(|error| text(&error))
}

#[cfg(not(target_arch = "x86_64"))]
fn other_numbers() -> Result<(), String> {
    Ok(())
}

fn install_filter(rules: Rules, answer: i32) -> Result<(), String> {
    let architecture = std::env::consts::ARCH.try_into().map_err(|error| text(&error))?;
    let answer = SeccompAction::Errno(answer.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture).map_err(|error| text(&error))?;
    let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| text(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| text(&error))
}

fn condition(
    argument: u8,
    length: seccompiler::SeccompCmpArgLen,
    operator: seccompiler::SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, length, operator, value).map_err(|error| text(&error))
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| text(&error))
}

fn text(error: &dyn std::fmt::Display) -> String {
    format!("the filter of system calls: {error}")
}
