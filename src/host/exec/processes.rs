//! What the system says of processes: which there are below this one, and what they use.

use std::collections::HashMap;

use rustix::process::Pid;

/// What processes use, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub processes: u64,
    /// Bytes of memory that are resident and their own; what children share with their parents counts for each.
    pub memory: u64,
    /// Bytes written to disks so far, also by those that are over and were waited for.
    pub written: u64,
}

/// Returns all processes below this one that are not over.
pub(super) fn below() -> Vec<Pid> {
    below_each(&[rustix::process::getpid()]).pop().unwrap_or_default()
}

/// Returns all processes below each of these that are not over.
pub(super) fn below_each(roots: &[Pid]) -> Vec<Vec<Pid>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for id in numbers() {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        // `id (name) state parent …`, where the name may hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let state = fields.next();
        if let Some(parent) = fields.next().and_then(|parent| parent.parse().ok())
            && state != Some("Z")
        {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut below = |root: &Pid| {
        let mut below = vec![root.as_raw_nonzero().get()];
        let mut at = 0;
        while at < below.len() {
            below.extend(children.remove(&below[at]).unwrap_or_default());
            at += 1;
        }
        below.into_iter().skip(1).filter_map(Pid::from_raw).collect()
    };
    roots.iter().map(&mut below).collect()
}

/// Returns the children of this process: all that have lost their parents are among them. Much quicker than a look at
/// all processes; empty where the kernel does not tell.
pub(super) fn children() -> Vec<Pid> {
    let id = rustix::process::getpid();
    let text = std::fs::read_to_string(format!("/proc/self/task/{id}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

/// Returns what these processes use, and what those wrote that this one has waited for.
pub(super) fn used(processes: &[Pid]) -> Used {
    let used = used_by(processes);
    Used { written: used.written.saturating_add(written_here()), ..used }
}

/// Returns what this process wrote to disks, and what those did that it has waited for.
pub(super) fn written_here() -> u64 {
    written("self")
}

/// Returns what these processes use.
pub(super) fn used_by(processes: &[Pid]) -> Used {
    // SAFETY: it reads a number of the system.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let mut used = Used { processes: processes.len() as u64, memory: 0, written: 0 };
    for id in processes {
        let memory = std::fs::read_to_string(format!("/proc/{id}/statm")).unwrap_or_default();
        let mut pages = memory.split(' ').skip(1).filter_map(|pages| pages.trim().parse::<u64>().ok());
        let (resident, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
        used.memory = used.memory.saturating_add(resident.saturating_sub(shared).saturating_mul(page));
        used.written = used.written.saturating_add(written(&id.to_string()));
    }
    used
}

/// Returns how much memory these processes have resident, what they share counted once. It takes a while.
pub(super) fn memory(processes: &[Pid]) -> u64 {
    let of = |id: &Pid| {
        let text = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
        let parts = ["Pss_Anon:", "Pss_Shmem:"].map(|name| field(&text, name));
        parts.iter().sum::<u64>() << 10
    };
    processes.iter().map(of).fold(0, u64::saturating_add)
}

/// Returns the bytes of memory of this machine.
pub(super) fn machine() -> u64 {
    field(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:") << 10
}

fn written(id: &str) -> u64 {
    field(&std::fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default(), "write_bytes:")
}

/// Returns the number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn numbers() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
