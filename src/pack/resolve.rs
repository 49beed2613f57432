//! From what the user typed to a flow's file: a path, else a name in the project, the packs, the bundle.

use std::path::{Path, PathBuf};

use crate::error::{Code, Failure, Result, nearest};
use crate::pack::tree::{Root, Tree, below};

/// A flow that was found: its pack's files and its path in it.
#[derive(Clone)]
pub struct Located {
    pub tree: Tree,
    /// `flows/hello.lua`.
    pub path: String,
}

impl Located {
    /// Returns how the flow is found again: a whole path, or `bundled:` and its path.
    pub fn source(&self) -> String {
        self.tree.display(&self.path)
    }

    /// Returns the flow that [`Located::source`] named.
    pub fn from_source(source: &str) -> Result<Located> {
        match source.strip_prefix("bundled:") {
            Some(path) => Ok(Located { tree: Tree::new(Root::Bundled), path: path.to_owned() }),
            None => at_path(Path::new(source)).ok_or_else(|| {
                Failure::new(Code::FlowNotFound, format!("{source} is not there any more"))
                    .hint("put the flow back, or start a new run of another one")
            }),
        }
    }
}

/// Finds the flow that `wanted` names, for a project in `workspace` with packs installed in `packs`.
pub fn flow(wanted: &str, workspace: &Path, packs: &Path) -> Result<Located> {
    let as_path = wanted.contains('/') || wanted.ends_with(".lua") || wanted.ends_with(".luau");
    if as_path {
        let found = [PathBuf::from(wanted), workspace.join(wanted)].iter().find_map(|path| at_path(path));
        if let Some(found) = found {
            return Ok(found);
        }
        let bundled = wanted.trim_start_matches("./");
        if crate::assets::read(bundled).is_some() {
            return Ok(Located { tree: Tree::new(Root::Bundled), path: bundled.to_owned() });
        }
    }
    let all = every(workspace, packs);
    if let Some(found) = all.iter().find(|located| !as_path && name(&located.path) == Some(wanted)) {
        return Ok(found.clone());
    }
    let names: Vec<&str> = all.iter().filter_map(|located| name(&located.path)).collect();
    let plain = wanted.rsplit('/').next().unwrap_or(wanted).trim_end_matches(".lua");
    let hint = match nearest(plain, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("flows here: {}", names.join(", ")),
    };
    Err(Failure::new(Code::FlowNotFound, format!("there is no flow `{}`", crate::model::text::excerpt(wanted)))
        .hint(hint))
}

/// Returns the names of all flows, each once.
pub fn names(workspace: &Path, packs: &Path) -> Vec<String> {
    let all = every(workspace, packs);
    let names: std::collections::BTreeSet<&str> = all.iter().filter_map(|located| name(&located.path)).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Returns every flow there is: the project's own, those of installed packs, the bundled ones.
pub fn every(workspace: &Path, packs: &Path) -> Vec<Located> {
    let mut trees = vec![Tree::new(Root::Disk(workspace.to_owned()))];
    trees.extend(installed(packs));
    trees.push(Tree::new(Root::Bundled));
    trees
        .into_iter()
        .flat_map(|tree| {
            let paths = tree.list("flows", ".lua").into_iter().filter(|path| name(path).is_some());
            paths.map(|path| Located { tree: tree.clone(), path }).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the trees of the packs that are installed, sorted by name.
pub fn installed(packs: &Path) -> Vec<Tree> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(packs)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect())
        .unwrap_or_default();
    folders.sort();
    folders.into_iter().map(|folder| Tree::new(Root::Disk(folder))).collect()
}

/// Returns the name of a flow's file that stands directly in `flows/`.
fn name(path: &str) -> Option<&str> {
    let name = path.strip_prefix("flows/")?.strip_suffix(".lua")?;
    (!name.contains('/')).then_some(name)
}

/// Returns the flow at a path on disk. Its pack is the folder above `flows/`; a flow that stands elsewhere
/// has the folder that it is in for its pack.
fn at_path(path: &Path) -> Option<Located> {
    let full = path.canonicalize().ok()?;
    if !full.is_file() {
        return None;
    }
    let folder = full.parent()?;
    let flows = folder.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "flows"));
    let (root, alone) = match flows.and_then(Path::parent) {
        Some(root) => (root, None),
        None => (folder, Some(full.file_stem()?.to_str()?)),
    };
    let path = below(root, &full)?;
    let root = Root::Disk(root.to_owned());
    Some(Located { path, tree: alone.map_or_else(|| Tree::new(root.clone()), |name| Tree::alone(root.clone(), name)) })
}
