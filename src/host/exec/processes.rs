//! What the system says of processes: which there are below this one, and what they use.

use std::collections::{HashMap, HashSet};

use rustix::process::Pid;

/// What processes use, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResourceUsage {
    pub processes: u64,
    /// Bytes of memory that are resident and of no file; what children share with their parents counts for each.
    pub memory: u64,
    /// Bytes written to disks so far, also by those that are over and were waited for.
    pub written: u64,
}

/// Returns all processes below this one that are not over. One whose first thread is over is there as long as another
/// goes on.
pub(super) fn descendants() -> Vec<Pid> {
    descendants_of(&[rustix::process::getpid()]).pop().unwrap_or_default()
}

/// Returns all processes below each of these that are not over.
pub(super) fn descendants_of(roots: &[Pid]) -> Vec<Vec<Pid>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let mut over = HashSet::new();
    for id in ids("/proc") {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        // `id (name) state parent …`, where the name may hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        if fields.next() == Some("Z") && threads(id).count() < 2 {
            over.insert(id);
        }
        if let Some(parent) = fields.next().and_then(|parent| parent.parse().ok()) {
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
        below.into_iter().skip(1).filter(|id| !over.contains(id)).filter_map(Pid::from_raw).collect()
    };
    roots.iter().map(&mut below).collect()
}

fn threads(id: i32) -> impl Iterator<Item = i32> {
    ids(&format!("/proc/{id}/task"))
}

/// Returns the children of this process: all that have lost their parents are among them. Much quicker than a look at
/// all processes; empty where the kernel does not tell.
pub(super) fn children() -> Vec<Pid> {
    let id = rustix::process::getpid();
    let text = std::fs::read_to_string(format!("/proc/self/task/{id}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

/// Returns what these processes use, and what those wrote that this one has waited for.
pub(super) fn total_usage(processes: &[Pid]) -> ResourceUsage {
    let used = usage_of(processes);
    ResourceUsage { written: used.written.saturating_add(written_here()), ..used }
}

/// Returns what this process wrote to disks, and what those did that it has waited for.
pub(super) fn written_here() -> u64 {
    written("self")
}

/// Returns what these processes use.
pub(super) fn usage_of(processes: &[Pid]) -> ResourceUsage {
    let mut used = ResourceUsage { processes: processes.len() as u64, memory: 0, written: 0 };
    for id in processes {
        used.memory = used.memory.saturating_add(sum(*id, "status", ["RssAnon:", "RssShmem:"]));
        used.written = used.written.saturating_add(written(&id.to_string()));
    }
    used
}

/// Returns the sum of what a file of a process says behind these names, in kilobytes. Where its first thread is over, it is
/// another one's that says so.
fn sum(id: Pid, file: &str, names: [&str; 2]) -> u64 {
    let of = |id: i32| {
        let text = std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
        names.iter().map(|name| field(&text, name)).sum::<u64>()
    };
    let id = id.as_raw_nonzero().get();
    let found = match of(id) {
        0 => threads(id).map(of).find(|found| *found > 0).unwrap_or(0),
        found => found,
    };
    found.saturating_mul(1 << 10)
}

/// Returns how much memory these processes have resident, what they share counted once. It takes a while.
pub(super) fn memory(processes: &[Pid]) -> u64 {
    processes.iter().map(|id| sum(*id, "smaps_rollup", ["Pss_Anon:", "Pss_Shmem:"])).fold(0, u64::saturating_add)
}

/// Returns the bytes of memory of this machine.
pub(super) fn machine_memory() -> u64 {
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

fn ids(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
