//! What a command finds in other places than where it stands: dependencies in its worktree, caches and builds that it may
//! write without changing them, its worktree where the project's own path leads, and a git folder of its own.
//!
//! All of it takes a namespace of mounts. Without one, dependencies are links, as long as nothing in them leads back to the
//! project: a test would then test other code than the worktree's.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::mount_calls::{attributes, mount, mount_with, text};
use crate::error::{Failure, Result};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mounts {
    /// Folders of dependencies in the worktree.
    pub dependencies: Vec<View>,
    /// What in them leads back to the project by a whole path.
    pub editable: Vec<String>,
    /// Folders that the command may write without changing them, where they stand.
    pub caches: Vec<View>,
    /// Where the dependencies are from: the command finds its worktree there, too.
    pub project: Option<PathBuf>,
    pub git: Option<GitMount>,
    /// A part of the folder for builds, and where in the worktree it is found, too.
    pub target: Option<(PathBuf, PathBuf)>,
}

/// A folder that shows another one. What is written in it is kept apart, and thrown away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct View {
    pub source: PathBuf,
    pub target: PathBuf,
    /// An empty folder for what is written.
    pub written: PathBuf,
}

/// The git folder of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitMount {
    pub folder: PathBuf,
    /// The file that leads to it, and its place in the worktree.
    pub file: PathBuf,
    pub target: PathBuf,
    /// The repository's objects, and their place in the folder.
    pub objects: PathBuf,
    pub objects_target: PathBuf,
}

impl View {
    /// Makes the empty folders that a view needs, below `private`.
    pub(super) fn new(source: &Path, target: &Path, private: &Path, name: &str) -> Result<View> {
        let written = private.join("views").join(name);
        for part in ["new", "work"] {
            let folder = written.join(part);
            std::fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, "create", &error))?;
        }
        Ok(View { source: source.to_owned(), target: target.to_owned(), written })
    }

    /// Mounts the view; where the kernel knows no such view here, the folder itself, read-only.
    fn mount(&self) -> std::io::Result<()> {
        let target = text(&self.target)?;
        if let Some(options) = self.overlay_options() {
            for more in ["", ",userxattr"] {
                let options = CString::new(format!("{options}{more}"))?;
                let flags = libc::MS_NOSUID | libc::MS_NODEV;
                if mount_with(Some(c"overlay"), &target, Some(c"overlay"), flags, Some(&options)).is_ok() {
                    return Ok(());
                }
            }
        }
        mount(Some(&text(&self.source)?), &target, None, libc::MS_BIND | libc::MS_REC)?;
        attributes(&target, libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV, 0)
    }

    /// Returns the options of the mount; `None` if a path has a sign that means something there.
    fn overlay_options(&self) -> Option<String> {
        let plain = |path: &Path| path.to_str().filter(|text| !text.contains([',', ':', '\\', '"'])).map(str::to_owned);
        let (source, new, work) = (&self.source, self.written.join("new"), self.written.join("work"));
        Some(format!("lowerdir={},upperdir={},workdir={}", plain(source)?, plain(&new)?, plain(&work)?))
    }
}

impl Mounts {
    /// Mounts everything. `folder` is the worktree, whose mount can be written.
    pub(super) fn apply(&self, folder: &Path) -> std::io::Result<()> {
        for view in self.dependencies.iter().chain(&self.caches) {
            view.mount()?;
        }
        if let Some((built, place)) = &self.target {
            // Behind the views, one of which may have what is built. Without it, a variable names the folder.
            let _ = mount(Some(&text(built)?), &text(place)?, None, libc::MS_BIND | libc::MS_REC);
        }
        if let Some(git) = &self.git {
            // Without these, git finds no repository, as where there are no mounts.
            let _ = git.mount();
        }
        if let Some(project) = &self.project {
            // Last, because it hides what stands there.
            mount(Some(&text(folder)?), &text(project)?, None, libc::MS_BIND | libc::MS_REC)?;
        }
        Ok(())
    }

    /// Makes links in the place of mounts, or says why that would not do.
    pub(super) fn link(&self) -> Result<(), String> {
        if !self.editable.is_empty() && !self.dependencies.is_empty() {
            let names = self.editable.join(", ");
            return Err(format!(
                "installed from the project's own folder: {names}. Without a namespace of mounts the command would run that \
                 folder's code, and not the worktree's: `nietz doctor` says what is missing here; or install what the tests \
                 need without links (not `-e`)"
            ));
        }
        for view in &self.dependencies {
            // The empty folder is for a mount.
            let _ = std::fs::remove_dir(&view.target);
            std::os::unix::fs::symlink(&view.source, &view.target)
                .map_err(|error| format!("cannot link {}: {error}", view.target.display()))?;
        }
        Ok(())
    }

    /// Removes the links that [`Mounts::link`] made.
    pub(super) fn unlink(&self) {
        for view in &self.dependencies {
            if view.target.is_symlink() {
                // A link that stays is one that git ignores or shows; the worktree is restored before it is used.
                let _ = std::fs::remove_file(&view.target);
            }
        }
    }
}

impl GitMount {
    fn mount(&self) -> std::io::Result<()> {
        let objects = text(&self.objects_target)?;
        mount(Some(&text(&self.objects)?), &objects, None, libc::MS_BIND)?;
        attributes(&objects, libc::MOUNT_ATTR_RDONLY, 0)?;
        mount(Some(&text(&self.file)?), &text(&self.target)?, None, libc::MS_BIND)
    }
}

/// Makes the folders on the way to a place in a worktree, none of them through a link. Returns whether a folder stands there.
pub(super) fn make_place(worktree: &Path, path: &str) -> bool {
    let mut place = worktree.to_owned();
    for part in Path::new(path) {
        if !matches!(Path::new(part).components().next(), Some(std::path::Component::Normal(_))) {
            return false;
        }
        place.push(part);
        match std::fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return false,
            Err(_) => {
                if std::fs::create_dir(&place).is_err() {
                    return false;
                }
            }
        }
    }
    true
}
