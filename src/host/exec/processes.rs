//! Reads from `/proc` which processes are below this one, and what they use.

use std::collections::{HashMap, HashSet};

use rustix::process::Pid;

/// The sum of what several processes use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResourceUsage {
    pub processes: u64,
    /// Resident memory in bytes, without mapped files. Memory that parents and children share counts for each.
    pub memory: u64,
    /// Bytes written to disks so far, including ended children that were waited for.
    pub written: u64,
}

/// Returns all running processes below this one. A process whose first thread has ended runs as long as another thread
/// does.
pub(super) fn descendants() -> Vec<Pid> {
    descendants_of(&[rustix::process::getpid()]).pop().unwrap_or_default()
}

/// Returns all running processes below each of these.
pub(super) fn descendants_of(roots: &[Pid]) -> Vec<Vec<Pid>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let mut ended = HashSet::new();
    for id in ids("/proc") {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        // `id (name) state parent …`, where the name may hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        if fields.next() == Some("Z") && threads(id).count() < 2 {
            ended.insert(id);
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
        below.into_iter().skip(1).filter(|id| !ended.contains(id)).filter_map(Pid::from_raw).collect()
    };
    roots.iter().map(&mut below).collect()
}

fn threads(id: i32) -> impl Iterator<Item = i32> {
    ids(&format!("/proc/{id}/task"))
}

/// Returns the children of this process, adopted orphans included. Much quicker than a search of all processes; empty if
/// the kernel does not list children.
pub(super) fn children() -> Vec<Pid> {
    let id = rustix::process::getpid();
    let text = std::fs::read_to_string(format!("/proc/self/task/{id}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

/// Returns what these processes use, plus what this process and its ended children wrote.
pub(super) fn total_usage(processes: &[Pid]) -> ResourceUsage {
    let used = usage_of(processes);
    ResourceUsage { written: used.written.saturating_add(written_here()), ..used }
}

/// Returns the bytes that this process and its ended children wrote to disks.
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

/// Returns the sum, in bytes, of these fields in a file of a process. If the first thread has ended, the file of another
/// thread is read.
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

/// Returns the resident memory of these processes, in bytes, with shared memory counted once. Slow.
pub(super) fn memory(processes: &[Pid]) -> u64 {
    processes.iter().map(|id| sum(*id, "smaps_rollup", ["Pss_Anon:", "Pss_Shmem:"])).fold(0, u64::saturating_add)
}

/// Returns the memory of this machine, in bytes.
pub(super) fn machine_memory() -> u64 {
    field(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:") << 10
}

fn written(id: &str) -> u64 {
    field(&std::fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default(), "write_bytes:")
}

/// Returns the number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn ids(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
