//! A workspace that is given by the address of a repository: it is kept beside the user's cache, and brought up to the repository's default
//! branch whenever no run is at it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;
use crate::model::text::{clean, excerpt};
use crate::run::machine::Machine;

/// How old a checkout may be when a run begins: so often the repository is asked, at most.
const FRESH: Duration = Duration::from_secs(30);

/// A checkout that is kept.
pub(super) struct Checkout {
    url: String,
    pub(super) folder: PathBuf,
    brought_up: Option<Instant>,
}

/// Tells whether a place is the address of a repository, and no folder.
pub(super) fn is_url(place: &str) -> bool {
    let is_remote = |(host, path): (&str, &str)| !host.contains('/') && host.contains('@') && !path.is_empty();
    place.contains("://") || place.split_once(':').is_some_and(is_remote)
}

impl Checkout {
    /// Clones the repository, or finds the clone that is there.
    ///
    /// # Errors
    ///
    /// `git-failed` and `git-missing`.
    pub(super) fn of(machine: &Machine, url: &str) -> Result<Checkout> {
        let [_, _, _, cache] = machine.own_folders();
        let name = url.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or("workspace").trim_end_matches(".git");
        // Beside the cache, because no flow reads what is within nietz's own folders.
        let mut beside = cache.file_name().unwrap_or_default().to_owned();
        beside.push("-workspaces");
        let place = cache.with_file_name(beside).join(Digest::of(url.as_bytes()).to_string());
        let folder = place.join(name);
        let mut checkout = Checkout { url: url.to_owned(), folder, brought_up: None };
        if !checkout.folder.join(".git").is_dir() {
            std::fs::create_dir_all(&place).map_err(|error| Failure::io(&place, "create", &error))?;
            // What a kill has left of another try.
            let half = place.join(".half");
            let _ = std::fs::remove_dir_all(&half);
            checkout.git(machine, &place, &["clone", "--quiet", "--", url, ".half"])?;
            std::fs::rename(&half, &checkout.folder).map_err(|error| Failure::io(&half, "rename", &error))?;
            checkout.brought_up = Some(Instant::now());
        }
        Ok(checkout)
    }

    /// Brings it up to the default branch of its repository. Nobody may be at it.
    ///
    /// # Errors
    ///
    /// `git-failed` and `git-missing`: it is as it was.
    pub(super) fn bring_up(&mut self, machine: &Machine) -> Result<()> {
        if self.brought_up.is_some_and(|then| then.elapsed() < FRESH) {
            return Ok(());
        }
        self.git(machine, &self.folder, &["fetch", "--quiet", "--prune", "origin"])?;
        self.git(machine, &self.folder, &["remote", "set-head", "origin", "--auto"])?;
        self.git(machine, &self.folder, &["checkout", "--quiet", "--force", "--detach", "origin/HEAD"])?;
        self.brought_up = Some(Instant::now());
        Ok(())
    }

    fn git(&self, machine: &Machine, folder: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new("git");
        command.env_clear().envs(&machine.environment).env("GIT_TERMINAL_PROMPT", "0").current_dir(folder);
        let output = command.args(arguments).stdin(Stdio::null()).output().map_err(|error| {
            Failure::new(Code::GitMissing, format!("git cannot be run: {error}")).hint("install git, or name a folder")
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = machine.redactor().text(&String::from_utf8_lossy(&output.stderr)).into_owned();
        let message = format!("git {} of {}: {}", arguments[0], shown(&self.url), excerpt(&clean(said.trim())));
        Err(Failure::new(Code::GitFailed, message)
            .hint("look at the address, and at what this user may read there: git asks nobody for a password"))
    }
}

/// Returns an address without what may be a password.
fn shown(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_url, shown};

    #[test]
    fn an_address_is_told_from_a_folder() {
        for url in ["https://git.example/team.git", "git@git.example:team.git", "file:///srv/team.git", "ssh://git@h/x"]
        {
            assert!(is_url(url), "{url}");
        }
        for folder in ["/srv/team", "team", "../a@b", "/srv/a@b:c", "C:\\work"] {
            assert!(!is_url(folder), "{folder}");
        }
        let address = ["https://me:", "pw", "@git.example/team.git"].concat();
        assert_eq!(shown(&address), "https://git.example/team.git");
    }
}
