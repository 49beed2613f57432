//! The data files of a project that stand in place of those of a flow from elsewhere, or beside them.
//!
//! Prompts, screens, texts, schemas and data of a bundled flow, or of one of a pack, are overridden by a file at the same
//! path in the project. Lua is not: what a flow does is its author's word, and who changes that has a flow of their own.

use std::collections::BTreeSet;
use std::path::Path;

use crate::pack::path;
use crate::pack::tree::{Overlay, PackTree, Root};

/// The endings of the files that can be overridden.
const DATA: &[&str] = &[".md", ".yaml", ".yml", ".json", ".txt"];

/// The files of a project, as far as they can override something.
pub(crate) struct ProjectFiles {
    tree: PackTree,
    paths: Vec<String>,
}

impl ProjectFiles {
    pub(crate) fn of(workspace: &Path) -> ProjectFiles {
        let tree = PackTree::new(Root::Disk(workspace.to_owned()));
        let mut paths = tree.list("flows", "");
        // Hidden files are nobody's data: an editor or nietz itself keeps something there.
        paths.retain(|path| !path.split('/').any(|part| part.starts_with('.')));
        ProjectFiles { tree, paths }
    }

    /// Returns what overrides files of this flow, which is not one of the project's own.
    pub(crate) fn over(&self, flow: &PackTree, path: &str) -> Option<Overlay> {
        let folder = folder(path);
        let own = |path: &&String| path.starts_with(&folder);
        let mut files: BTreeSet<String> = self.paths.iter().filter(own).filter(|path| is_data(path)).cloned().collect();
        let shared: Vec<&String> = self.paths.iter().filter(|path| is_data(path) && self.is_shared(path)).collect();
        if !shared.is_empty() {
            let theirs: BTreeSet<String> = flow.list("flows", "").into_iter().collect();
            let meant = |path: &str| theirs.contains(path) || is_beside_data(path, &theirs);
            let beside = |path: &&&String| meant(path) && !theirs.contains(&main_file(path));
            files.extend(shared.iter().filter(beside).map(|path| (*path).clone()));
        }
        let unused: Vec<String> = self.paths.iter().filter(own).filter(|path| path::is_code(path)).cloned().collect();
        let any = !files.is_empty() || !unused.is_empty();
        any.then(|| Overlay { tree: self.tree.clone(), folder, files, unused })
    }

    /// Tells whether a file stands in a folder below `flows` that is not the folder of a flow of the project's own.
    fn is_shared(&self, path: &str) -> bool {
        path.matches('/').count() > 1 && !self.paths.contains(&main_file(path))
    }
}

/// Tells whether a file can be one more of a folder that holds nothing but YAML: flows read such a folder whole.
fn is_beside_data(path: &str, theirs: &BTreeSet<String>) -> bool {
    let mut there = theirs.iter().filter(|other| path::folder(other) == path::folder(path)).peekable();
    path.ends_with(".yaml") && there.peek().is_some() && there.all(|other| other.ends_with(".yaml"))
}

/// Returns the folder of a flow's own files: `flows/hello/` for `flows/hello.lua`.
pub(crate) fn folder(flow: &str) -> String {
    format!("{}/", flow.trim_end_matches(".lua"))
}

/// Tells whether a file is data that can be overridden. What people read about a flow is no part of it.
pub(crate) fn is_data(path: &str) -> bool {
    DATA.iter().any(|ending| path.ends_with(ending)) && !path.ends_with("/README.md")
}

/// Returns the flow whose folder a file below `flows` stands in, if there is one: `flows/hello.lua`.
fn main_file(path: &str) -> String {
    let top: Vec<&str> = path.split('/').take(2).collect();
    format!("{}.lua", top.join("/"))
}
