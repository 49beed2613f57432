//! Finds folders of dependencies: what package managers have installed beside the sources, and git ignores. A worktree has
//! none of them, and hardly a project's tests run without.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::Repository;
use super::call::{GitCall, paths};
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;
use crate::model::effect::git::{DependencyFolder, FoundDependencies};

/// The names of such folders. A Python environment is known by its file, whatever its name is.
const NAMES: &[&str] = &[
    ".bundle",
    ".nox",
    ".pixi",
    ".tox",
    ".venv",
    ".yarn",
    "Pods",
    "__pypackages__",
    "bower_components",
    "deps",
    "node_modules",
    "vendor",
    "venv",
];
/// The file that makes a folder a Python environment.
const PYTHON: &str = "pyvenv.cfg";
/// Folders that tools write into while they work: their content is no dependency.
const CACHES: &[&str] = &["__pycache__", ".cache", ".vite", ".vite-temp", ".vitest"];
/// The most folders that are found, and the most files that are looked at in one of them.
const MOST: usize = 64;
const MOST_FILES: u64 = 2_000_000;
/// The most names of editable installs that are told, and the largest file that is searched for them, in bytes.
const MOST_EDITABLE: usize = 20;
const LARGEST: u64 = 1 << 20;

impl Repository {
    /// Returns the folders of dependencies in the user's checkout, or in a worktree.
    pub(super) fn dependencies(&self, tree: Option<&str>) -> Result<FoundDependencies> {
        let list =
            |call: GitCall| call.args(["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"]).bytes();
        let (project, listed) = match tree {
            Some(name) => {
                let tree = self.tree(name)?;
                (tree.folder.clone(), list(tree.call()?)?)
            }
            None => {
                self.head()?;
                (self.workspace.clone(), self.with_index(|call| list(call()?))?)
            }
        };
        let mut found: Vec<PathBuf> =
            paths(&listed).map(trimmed).filter(|path| is_dependencies(&project, path)).map(PathBuf::from).collect();
        found.sort();
        let cut = found.len() > MOST;
        found.truncate(MOST);
        let folders = found.iter().map(|path| look_at(&project, path)).collect::<Result<_>>()?;
        Ok(FoundDependencies { folders, cut })
    }
}

/// Returns a path of git's list without the slash that marks a folder.
fn trimmed(path: &OsStr) -> &OsStr {
    OsStr::from_bytes(path.as_bytes().strip_suffix(b"/").unwrap_or(path.as_bytes()))
}

fn is_dependencies(project: &Path, path: &OsStr) -> bool {
    let folder = project.join(path);
    let known = Path::new(path).file_name().and_then(OsStr::to_str).is_some_and(|name| NAMES.contains(&name));
    // A path that is not UTF-8 can be passed to no command.
    path.to_str().is_some() && folder.is_dir() && (known || folder.join(PYTHON).is_file())
}

/// Returns what stands in a folder of dependencies.
fn look_at(project: &Path, path: &Path) -> Result<DependencyFolder> {
    let folder = project.join(path);
    let mut hasher = blake3::Hasher::new();
    let (mut files, mut bytes) = (0, 0);
    let entries = WalkDir::new(folder.canonicalize().map_err(|error| Failure::io(&folder, "read", &error))?)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !CACHES.iter().any(|name| entry.file_name() == *name));
    for entry in entries {
        let Ok(entry) = entry else { continue };
        let Ok(found) = entry.metadata() else { continue };
        if found.is_dir() {
            continue;
        }
        files += 1;
        bytes += found.len();
        if files > MOST_FILES {
            let message = format!("{} has more than {MOST_FILES} files", folder.display());
            return Err(Failure::new(Code::GitFailed, message).hint("is it a folder of dependencies?"));
        }
        digest(&mut hasher, entry.path(), &found);
    }
    let editable = editable(project, &folder);
    Ok(DependencyFolder {
        path: path.display().to_string(),
        files,
        bytes,
        digest: Digest::so_far(&hasher).to_string(),
        editable,
    })
}

/// Adds a file to a digest: its path, size and time. Reading hundreds of thousands of files would take minutes.
fn digest(hasher: &mut blake3::Hasher, path: &Path, found: &Metadata) {
    let path = path.as_os_str().as_bytes();
    hasher.update(&(path.len() as u64).to_le_bytes());
    hasher.update(path);
    for number in [found.len().cast_signed(), found.mtime(), found.mtime_nsec()] {
        hasher.update(&number.to_le_bytes());
    }
}

/// Returns what in a folder of dependencies leads back to the project's own sources, by name and in order.
fn editable(project: &Path, folder: &Path) -> Vec<String> {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let mut names: Vec<String> = links(&project, folder).chain(python(&project, folder)).collect();
    names.sort();
    names.dedup();
    if names.len() > 1 {
        // The list of what the others have installed, by old versions of pip, is no package itself.
        names.retain(|name| name != "easy-install");
    }
    names.truncate(MOST_EDITABLE);
    names
}

fn entries(folder: &Path) -> impl Iterator<Item = std::fs::DirEntry> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten()
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the links of a workspace: those in the folder, or in a folder of a scope there, that lead into the project.
fn links(project: &Path, folder: &Path) -> impl Iterator<Item = String> {
    let scopes = entries(folder).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let all = entries(folder).chain(scopes.flat_map(|scope| entries(&scope.path())));
    let own = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let project = project.to_owned();
    all.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())).filter_map(move |entry| {
        let leads_to = entry.path().canonicalize().ok()?;
        let back = leads_to.starts_with(&project)
            && !leads_to.starts_with(&own)
            && !is_inside_dependencies(&project, &leads_to);
        back.then(|| name_of(&entry.path()))
    })
}

/// Tells whether a place in the project is in another folder of dependencies, as in a store that several packages share.
fn is_inside_dependencies(project: &Path, place: &Path) -> bool {
    place.strip_prefix(project).is_ok_and(|path| path.iter().any(|part| NAMES.iter().any(|name| part == *name)))
}

/// Returns the files of a Python environment that name the project: those of editable installs.
fn python(project: &Path, folder: &Path) -> impl Iterator<Item = String> {
    let needle = project.as_os_str().as_bytes().to_owned();
    let packages = entries(&folder.join("lib")).map(|python| python.path().join("site-packages"));
    packages.flat_map(|packages| entries(&packages).collect::<Vec<_>>()).filter_map(move |entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let may = name.ends_with(".pth") || name.ends_with(".egg-link") || name.starts_with("__editable__");
        let small = entry.metadata().is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        let text = (may && small).then(|| std::fs::read(entry.path()).ok()).flatten()?;
        memchr::memmem::find(&text, &needle).map(|_| plain_name(&name))
    })
}

/// Returns the name of an editable install, without what its file's name adds.
fn plain_name(file: &str) -> String {
    let name = file.trim_start_matches("__editable__").trim_start_matches(['.', '_']);
    let name = name.trim_end_matches(".pth").trim_end_matches(".egg-link").trim_end_matches("_finder.py");
    name.to_owned()
}
