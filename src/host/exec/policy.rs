//! What a command may touch, as the helper is told.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Commands, environment};
use crate::error::{Code, Failure, Result};

/// What every program needs to start, and nothing of a person's own.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/etc", "/proc", "/sys", "/dev"];
/// Devices that are written to, and mean nothing.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];
/// Where names of hosts are looked up, for commands that have the network.
const RESOLVER: &str = "/run/systemd/resolve";

/// The most processes of one command at once.
const PROCESSES: usize = 512;
/// The largest file that a command may write.
const FILE: u64 = 4 << 30;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    /// Where the helper tells how it ended.
    pub report: PathBuf,
    /// Whether there is a sandbox at all.
    pub confine: bool,
    pub net: bool,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub processes: usize,
    pub file: u64,
}

impl Policy {
    pub(super) fn new(commands: &Commands, folder: &Path, temporary: &Path, report: &Path) -> Policy {
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        read.extend(environment::path(&commands.environment));
        read.extend(environment::toolchains(&commands.environment));
        if commands.grants.net {
            read.push(PathBuf::from(RESOLVER));
        }
        read.retain(|path| path != Path::new("/"));
        let mut write: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        write.extend([folder.to_owned(), temporary.to_owned()]);
        Policy {
            report: report.to_owned(),
            confine: !commands.grants.no_sandbox,
            net: commands.grants.net,
            read,
            write,
            processes: PROCESSES,
            file: FILE,
        }
    }

    /// Returns the policy as one argument; it holds no secret.
    pub(super) fn text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|_| {
            let all = [&self.report].into_iter().chain(&self.write).chain(&self.read);
            let odd = all.filter(|path| path.to_str().is_none()).map(|path| path.display().to_string()).next();
            let message = format!("commands cannot be run with a path that is not UTF-8: {}", odd.unwrap_or_default());
            Failure::new(Code::CommandFailed, message).hint("TMPDIR and the folder's own path have to be UTF-8")
        })
    }
}
