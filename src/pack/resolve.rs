//! Finds the flow that the user named: by a full name, by a path, else by a name in the project, its packs or the bundle.

use std::path::{Path, PathBuf};

use crate::error::{Code, Failure, Result, nearest};
use crate::model::text::excerpt;
use crate::pack::lock::Lockfile;
use crate::pack::overlay::ProjectFiles;
use crate::pack::path::below;
use crate::pack::seal::Seal;
use crate::pack::tree::{PackTree, Root};

/// A flow that was found: its pack's files and its path in the pack.
#[derive(Clone)]
pub struct ResolvedFlow {
    pub tree: PackTree,
    /// `flows/hello.lua`.
    pub path: String,
}

impl ResolvedFlow {
    /// Returns the text by which the flow is found again: an absolute path, or `bundled:` and the path in the bundle.
    pub fn source(&self) -> String {
        self.tree.display(&self.path)
    }

    /// Returns the name of the flow: its file's, without the ending.
    pub(crate) fn name(&self) -> &str {
        name(&self.path).unwrap_or(&self.path)
    }

    /// Tells whether the flow comes from a folder, and neither from a pack nor with nietz.
    pub(crate) fn is_of_folder(&self) -> bool {
        matches!(self.tree.root, Root::Disk(_)) && self.tree.seal().is_none()
    }

    /// Returns the name that means this flow whatever hides it: `bundled/NAME` or `PACK/NAME`. Other flows have a path.
    pub(crate) fn full_name(&self) -> Option<String> {
        let name = name(&self.path)?;
        match (&self.tree.root, self.tree.seal()) {
            (Root::Bundled, _) => Some(format!("{BUNDLED}/{name}")),
            (Root::Disk(_), Some(seal)) if seal.pack != BUNDLED => Some(format!("{}/{name}", seal.pack)),
            (Root::Disk(_), _) => None,
        }
    }

    /// Returns the flow that [`ResolvedFlow::source`] named.
    ///
    /// # Errors
    ///
    /// `flow-not-found` if there is no file at the path any more.
    pub fn from_source(source: &str) -> Result<ResolvedFlow> {
        match source.strip_prefix("bundled:") {
            Some(path) => Ok(bundled_flow(path)),
            None => at_path(Path::new(source)).ok_or_else(|| {
                Failure::new(Code::FlowNotFound, format!("{source} is not there any more"))
                    .hint("put the flow back, or start a new run of another one")
            }),
        }
    }
}

/// How full names of bundled flows begin.
const BUNDLED: &str = "bundled";

fn bundled_flow(path: &str) -> ResolvedFlow {
    ResolvedFlow { tree: PackTree::new(Root::Bundled), path: path.to_owned() }
}

/// Finds the flow that `wanted` names, for a project in `workspace` with packs installed in `packs`.
///
/// # Errors
///
/// `flow-not-found` if there is no such flow, `pack-not-found` if it may be in a pack that is not installed, and those of
/// [`as_installed`].
pub fn flow(wanted: &str, workspace: &Path, packs: &Path) -> Result<ResolvedFlow> {
    if wanted.contains('/')
        && let Some(found) =
            all_flows(workspace, packs)?.into_iter().find(|all| all.full_name().as_deref() == Some(wanted))
    {
        return Ok(found);
    }
    if let Some(bundled) = wanted.strip_prefix("bundled:").filter(|path| crate::assets::read(path).is_some()) {
        return as_installed(bundled_flow(bundled), workspace, packs);
    }
    let as_path = is_path(wanted);
    if as_path {
        let found = [PathBuf::from(wanted), workspace.join(wanted)].iter().find_map(|path| at_path(path));
        if let Some(found) = found {
            return as_installed(found, workspace, packs);
        }
        let bundled = wanted.trim_start_matches("./");
        if crate::assets::read(bundled).is_some() {
            return as_installed(bundled_flow(bundled), workspace, packs);
        }
    }
    let all = all_flows(workspace, packs)?;
    if let Some(found) = all.iter().find(|located| !as_path && name(&located.path) == Some(wanted)) {
        return Ok(found.clone());
    }
    if !wanted.ends_with(".lua")
        && let Some(failure) = missing_packs(wanted, workspace, packs)?
    {
        return Err(failure);
    }
    let names: Vec<&str> = all.iter().filter_map(|located| name(&located.path)).collect();
    let plain = wanted.rsplit('/').next().unwrap_or(wanted).trim_end_matches(".lua");
    let hint = match nearest(plain, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("flows here: {}", names.join(", ")),
    };
    Err(Failure::new(Code::FlowNotFound, format!("there is no flow `{}`", excerpt(wanted))).hint(hint))
}

/// Tells whether a word is the path of a flow, and not its name.
pub fn is_path(wanted: &str) -> bool {
    wanted.contains('/') || wanted.ends_with(".lua") || wanted.ends_with(".luau")
}

/// Returns the failure for packs of the project that are not installed, if there are any: the flow may be in one of them.
fn missing_packs(wanted: &str, workspace: &Path, packs: &Path) -> Result<Option<Failure>> {
    let lock = Lockfile::read(workspace)?;
    let missing: Vec<&str> = lock
        .packs
        .iter()
        .filter(|(name, locked)| !locked.folder(packs, name).is_dir())
        .map(|(name, _)| name.as_str())
        .collect();
    Ok((!missing.is_empty()).then(|| {
        let message =
            format!("there is no flow `{}`, and packs are not installed here: {}", excerpt(wanted), missing.join(", "));
        Failure::new(Code::PackNotFound, message).hint("install what nietz.lock names: nietz pack add --locked")
    }))
}

/// Returns the names of all flows, each once.
///
/// # Errors
///
/// Those of [`installed`].
pub fn names(workspace: &Path, packs: &Path) -> Result<Vec<String>> {
    let all = all_flows(workspace, packs)?;
    let names: std::collections::BTreeSet<&str> = all.iter().filter_map(|located| name(&located.path)).collect();
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns every flow there is: the project's own, those of its packs, the bundled ones. What of the project overrides
/// files of a flow is over those of the flow that the name means; a flow that another one hides is as it comes.
///
/// # Errors
///
/// Those of [`installed`].
pub fn all_flows(workspace: &Path, packs: &Path) -> Result<Vec<ResolvedFlow>> {
    let mut all: Vec<ResolvedFlow> = trees(workspace, packs)?.iter().flat_map(flows).collect();
    let project = ProjectFiles::of(workspace);
    let mut seen = std::collections::BTreeSet::new();
    for located in &mut all {
        if seen.insert(located.path.clone()) && !located.is_of_folder() {
            located.tree = located.tree.under(project.over(&located.tree, &located.path));
        }
    }
    Ok(all)
}

/// Returns the trees of the project, of its packs and of the bundle. The first tree that has a name wins.
///
/// # Errors
///
/// Those of [`installed`].
pub fn trees(workspace: &Path, packs: &Path) -> Result<Vec<PackTree>> {
    let mut trees = vec![PackTree::new(Root::Disk(workspace.to_owned()))];
    trees.extend(installed(workspace, packs)?);
    trees.push(PackTree::new(Root::Bundled));
    Ok(trees)
}

/// Returns the flows of one tree.
pub fn flows(tree: &PackTree) -> Vec<ResolvedFlow> {
    let paths = tree.list("flows", ".lua").into_iter().filter(|path| name(path).is_some());
    paths.map(|path| ResolvedFlow { tree: tree.clone(), path }).collect()
}

/// Returns the trees of the project's packs, sorted by name, without packs of `nietz.lock` that are not on this machine.
///
/// # Errors
///
/// Those of [`Lockfile::read`].
pub fn installed(workspace: &Path, packs: &Path) -> Result<Vec<PackTree>> {
    let lock = Lockfile::read(workspace)?;
    let folders = lock
        .packs
        .iter()
        .map(|(name, locked)| (locked.folder(packs, name), Seal::new(name, &locked.version, &locked.sha256)));
    Ok(folders.filter(|(folder, _)| folder.is_dir()).map(|(folder, seal)| PackTree::sealed(folder, seal)).collect())
}

/// Returns a flow that was found by its path; if it stands in an installed pack, it becomes a flow of that pack, with what
/// the project has over its files.
///
/// # Errors
///
/// `pack-untrusted` if it stands in a pack that this project does not have, and those of [`installed`].
pub fn as_installed(found: ResolvedFlow, workspace: &Path, packs: &Path) -> Result<ResolvedFlow> {
    let Root::Disk(root) = &found.tree.root else { return overridden(found, workspace, packs) };
    let same = |tree: &PackTree| matches!(&tree.root, Root::Disk(other) if other.canonicalize().is_ok_and(|other| other == *root));
    if let Some(tree) = installed(workspace, packs)?.into_iter().find(same) {
        return overridden(ResolvedFlow { tree, ..found }, workspace, packs);
    }
    if packs.canonicalize().is_ok_and(|packs| root.starts_with(packs)) {
        let message = format!("{} belongs to a pack that this project does not have", found.source());
        return Err(Failure::new(Code::PackUntrusted, message).hint("add it: nietz pack add SOURCE"));
    }
    Ok(found)
}

/// Returns a flow from elsewhere with what the project has over its files.
fn overridden(found: ResolvedFlow, workspace: &Path, packs: &Path) -> Result<ResolvedFlow> {
    if !workspace.join("flows").is_dir() {
        return Ok(found);
    }
    let same = |other: &ResolvedFlow| other.tree.root == found.tree.root && other.path == found.path;
    Ok(all_flows(workspace, packs)?.into_iter().find(same).unwrap_or(found))
}

/// Returns the name of a flow's file that stands directly in `flows/`.
fn name(path: &str) -> Option<&str> {
    let name = path.strip_prefix("flows/")?.strip_suffix(".lua")?;
    (!name.contains('/')).then_some(name)
}

/// Returns the flow at a path on disk. Its pack is the folder above `flows/`; the pack of a flow that stands elsewhere
/// is the flow's own folder.
fn at_path(path: &Path) -> Option<ResolvedFlow> {
    let full = path.canonicalize().ok()?;
    if !full.is_file() {
        return None;
    }
    let folder = full.parent()?;
    let flows = folder.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "flows"));
    let (root, single) = match flows.and_then(Path::parent) {
        Some(root) => (root, None),
        None => (folder, Some(full.file_stem()?.to_str()?)),
    };
    let path = below(root, &full)?;
    let root = Root::Disk(root.to_owned());
    Some(ResolvedFlow {
        path,
        tree: single.map_or_else(|| PackTree::new(root.clone()), |name| PackTree::for_single_flow(root.clone(), name)),
    })
}
