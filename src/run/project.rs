//! Which folder is the project: the one that the user names, or the nearest above the current folder that has nietz's files.
//!
//! What stands in a project is run, configured and trusted by its path. So a folder is found from below only if nobody but
//! the user can have put something there: `/tmp/flows` of a stranger, or a folder above a project that belongs to
//! somebody else, takes over nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::owner;
use crate::error::{Code, Failure, Result};

/// The folder that nietz works for, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub folder: PathBuf,
    /// The folder that typed paths are relative to: the one that `-C` names, else the current one.
    pub here: PathBuf,
    pub found: Found,
    /// The first folder above that was not looked at, and why.
    pub closed: Option<(PathBuf, String)>,
}

/// How the project was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The user named it.
    Named,
    /// It is the current folder.
    Here,
    /// It is above the current folder, and has this file or folder.
    Above(&'static str),
}

impl Project {
    /// Returns the folder that the user named; without one, the nearest project from the current folder upwards, else the
    /// current folder. The search ends at the top of a repository, at the user's home, and below a folder that others
    /// can write.
    ///
    /// # Errors
    ///
    /// `usage` if the folder cannot be used.
    pub fn find(named: Option<&Path>, home: Option<&Path>) -> Result<Project> {
        let wanted = named.unwrap_or(Path::new("."));
        let here = wanted.canonicalize().map_err(|error| {
            Failure::new(Code::Usage, format!("the workspace {} cannot be used: {error}", wanted.display()))
                .hint("name a folder that is there and that you may open: nietz -C FOLDER …")
        })?;
        let found = if named.is_some() { Found::Named } else { Found::Here };
        let nearest = Project { folder: here.clone(), here, found, closed: None };
        Ok(if named.is_some() { nearest } else { nearest.upwards(home) })
    }

    fn upwards(mut self, home: Option<&Path>) -> Project {
        let home = home.and_then(|home| home.canonicalize().ok());
        for folder in self.here.clone().ancestors() {
            let is_here = folder == self.here;
            // Whoever can write a folder can put a project there. The current folder was chosen by the user.
            if !is_here && let Some(why) = not_the_user_s(folder) {
                self.closed = Some((folder.to_owned(), why));
                break;
            }
            let is_home = home.as_deref() == Some(folder);
            if let Some(marker) = marker(folder, is_home && !is_here) {
                self.found = if is_here { Found::Here } else { Found::Above(marker) };
                self.folder = folder.to_owned();
                break;
            }
            if is_home || is_repository(folder) {
                break;
            }
        }
        self
    }
}

/// Returns what makes a folder a project. A home has a `.nietz` as soon as anything was run there, and takes over all that
/// is below it only by a file that somebody wrote.
fn marker(folder: &Path, is_home: bool) -> Option<&'static str> {
    let kind = |name: &str| folder.join(name).symlink_metadata().map(|metadata| metadata.file_type());
    let is_file = |name: &&str| kind(name).is_ok_and(|kind| kind.is_file());
    if let Some(file) = ["nietz.yaml", "nietz.lock"].into_iter().find(is_file) {
        return Some(file);
    }
    let is_folder = |name: &str| !is_home && kind(name).is_ok_and(|kind| kind.is_dir());
    if is_folder("flows") && has_flow(&folder.join("flows")) {
        return Some("flows");
    }
    is_folder(".nietz").then_some(".nietz")
}

/// Tells whether a folder has a flow: other programs have folders named `flows`, too.
fn has_flow(flows: &Path) -> bool {
    let is_flow = |name: std::ffi::OsString| Path::new(&name).extension().is_some_and(|ending| ending == "lua");
    std::fs::read_dir(flows).is_ok_and(|entries| entries.flatten().any(|entry| is_flow(entry.file_name())))
}

/// Tells whether a folder is the top of a repository, of a worktree or of a submodule, or a bare repository.
fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has(".git") || ["HEAD", "objects", "refs"].into_iter().all(has)
}

/// Returns the top of the repository that a folder is in; none for a bare one.
pub(crate) fn repository(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// Returns the top of the repository that a workspace is in, and the way from there to the workspace: the workspace itself, and no
/// way, if it is in none. As for projects, a folder above counts only if nobody but the user can have put a repository there; and
/// a repository of the whole home is not that of a folder in it.
pub(crate) fn repository_around(workspace: &Path, home: Option<&Path>) -> (PathBuf, PathBuf) {
    for folder in workspace.ancestors() {
        if folder != workspace && (home == Some(folder) || not_the_user_s(folder).is_some()) {
            break;
        }
        if let (true, Ok(below)) = (folder.join(".git").symlink_metadata().is_ok(), workspace.strip_prefix(folder)) {
            return (folder.to_owned(), below.to_owned());
        }
    }
    (workspace.to_owned(), PathBuf::new())
}

/// Tells why others could have put a project into a folder. A sticky folder keeps its files from being replaced, and anyone
/// can add some; a folder of the system's belongs to nobody's project.
fn not_the_user_s(folder: &Path) -> Option<String> {
    const STICKY_FOR_ALL: u32 = 0o1002;
    let metadata = match folder.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Some(format!("cannot be looked at: {error}")),
    };
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Some(format!("belongs to another user (number {})", metadata.uid()));
    }
    if metadata.mode() & STICKY_FOR_ALL == STICKY_FOR_ALL {
        return Some("can be written by everybody".to_owned());
    }
    owner::problem(&metadata)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir_all, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Returns the project that is found from a folder of the tree, by its path in the tree, and how.
    fn found(top: &Path, here: &str, home: &str) -> (String, Found) {
        let here = top.join(here);
        let nearest = Project { folder: here.clone(), here, found: Found::Here, closed: None };
        let project = nearest.upwards(Some(&top.join(home)));
        let folder = project.folder.strip_prefix(top).map_or("outside".to_owned(), |path| path.display().to_string());
        (folder, project.found)
    }

    #[test]
    fn a_project_is_the_nearest_above_and_never_above_a_repository_or_a_home() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for path in [
            "home/p/flows",
            "home/p/a/b",
            "home/p/repo/.git",
            "home/p/repo/in",
            "home/.nietz",
            "home/plain/in",
            "home/q/.nietz/runs",
            "home/q/in",
            "home/other/flows",
            "home/other/in",
            "home/p/bare/objects",
            "home/p/bare/refs",
            "home/p/nested/in",
            "deep/in",
        ] {
            create_dir_all(top.join(path)).unwrap();
        }
        for path in [
            "home/p/flows/one.lua",
            "home/p/bare/HEAD",
            "home/p/nested/nietz.yaml",
            "home/other/flows/x.json",
            "nietz.yaml",
        ] {
            write(top.join(path), "").unwrap();
        }
        for (here, expected, how) in [
            ("home/p", "home/p", Found::Here),
            ("home/p/a/b", "home/p", Found::Above("flows")),
            ("home/p/nested/in", "home/p/nested", Found::Above("nietz.yaml")),
            ("home/q/in", "home/q", Found::Above(".nietz")),
            // A repository ends the search at its top, be it bare or not.
            ("home/p/repo/in", "home/p/repo/in", Found::Here),
            ("home/p/repo", "home/p/repo", Found::Here),
            ("home/p/bare/refs", "home/p/bare/refs", Found::Here),
            // A folder `flows` without a flow is another program's, and what was run in a home makes no project of it.
            ("home/other/in", "home/other/in", Found::Here),
            ("home/plain/in", "home/plain/in", Found::Here),
            ("home", "home", Found::Here),
            ("deep/in", "", Found::Above("nietz.yaml")),
        ] {
            assert_eq!(found(&top, here, "home"), (expected.to_owned(), how), "{here}");
        }
        write(top.join("home/nietz.yaml"), "").unwrap();
        assert_eq!(found(&top, "home/plain/in", "home"), ("home".to_owned(), Found::Above("nietz.yaml")));
    }

    #[test]
    fn a_folder_that_others_can_write_is_no_project_from_below_and_ends_the_search() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        create_dir_all(top.join("shared/mine/in")).unwrap();
        write(top.join("nietz.yaml"), "").unwrap();
        write(top.join("shared/nietz.yaml"), "").unwrap();
        for (mode, expected) in [(0o755, "shared"), (0o1777, "shared/mine/in"), (0o777, "shared/mine/in")] {
            set_permissions(top.join("shared"), Permissions::from_mode(mode)).unwrap();
            assert_eq!(found(&top, "shared/mine/in", "none").0, expected, "{mode:o}");
        }
        // It is the user's choice to be there.
        assert_eq!(found(&top, "shared", "none").0, "shared");
        assert!(not_the_user_s(Path::new("/proc/self/nothing")).is_some());
    }
}
