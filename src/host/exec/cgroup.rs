//! A control group for one command, on systems with cgroup v2 that let this process make one: the kernel ends all
//! processes of a group at once.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the kernel may take to end all processes.
const ENDING: Duration = Duration::from_secs(5);

/// A group below that of this process.
pub(super) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Makes a group, or returns why it cannot be made.
    pub(super) fn make(tasks: u64) -> Result<Cgroup, String> {
        let own = own().ok_or("there are no control groups of the second version")?;
        let folder = own.join(format!("nietz-{}", std::process::id()));
        let failed = |error: std::io::Error| format!("{} cannot be made: {error}", folder.display());
        // A group of this name is left from a process that ended without removing it.
        let _ = std::fs::remove_dir(&folder);
        std::fs::create_dir(&folder).map_err(failed)?;
        let group = Cgroup { folder };
        for file in ["cgroup.kill", "cgroup.procs"] {
            let path = group.folder.join(file);
            let file = std::fs::File::options().write(true).open(&path);
            file.map_err(|error| format!("{} cannot be used: {error}", path.display()))?;
        }
        // Without `pids.max`, `oversee` still counts the processes.
        let _ = std::fs::write(group.folder.join("pids.max"), tasks.to_string());
        Ok(group)
    }

    /// Returns the file that a process writes to join the group.
    pub(super) fn entrance(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Ends all processes of the group. Returns whether none is left.
    pub(super) fn end(&self) -> bool {
        let until = Instant::now() + ENDING;
        let _ = std::fs::write(self.folder.join("cgroup.kill"), "1");
        loop {
            let events = std::fs::read_to_string(self.folder.join("cgroup.events")).unwrap_or_default();
            if events.contains("populated 0") {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The folder stays if the group still has processes, which could not be ended.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Puts this process into a group.
pub(super) fn join(entrance: &Path) -> Result<(), String> {
    std::fs::write(entrance, "0").map_err(|error| format!("{} cannot be entered: {error}", entrance.display()))
}

/// Returns the group of this process.
fn own() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    below(&mounts, groups.lines().find_map(|line| line.strip_prefix("0::"))?)
}

/// Returns the folder of a group, given the system's mounts.
fn below(mounts: &str, group: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        // `id parent device root place options … - kind source …`
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let below = Path::new(group).strip_prefix(root).ok()?;
        Some(Path::new(place).join(below))
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::below;

    #[test]
    fn a_group_is_found_where_it_is_mounted() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
                      31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            below(mounts, "/user.slice/x.scope"),
            Some(PathBuf::from("/sys/fs/cgroup/unified/user.slice/x.scope"))
        );
        let part = "31 30 0:27 /user.slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(below(part, "/user.slice/x.scope"), Some(PathBuf::from("/sys/fs/cgroup/x.scope")));
        assert_eq!(below(part, "/other"), None);
        assert_eq!(below("30 23 0:26 / /sys/fs/cgroup ro - cgroup cgroup ro,pids\n", "/"), None);
    }
}
