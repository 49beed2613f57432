//! Searches a worktree: all files that git tracks or would add, without ignored files.

use std::collections::BTreeSet;

use super::call::names;
use super::files;
use super::worktree::Worktree;
use crate::error::Result;
use crate::host::confined::ConfinedDir;
use crate::host::globs::{globs, limit_files};
use crate::host::grep::grep_files;
use crate::model::effect::files::FoundFiles;
use crate::model::effect::search::{Matches, SearchPart};

fn all(tree: &Worktree<'_>) -> Result<BTreeSet<String>> {
    let list = tree.read_only_call().of_user(tree.patterns()?, &[]);
    let list = list.args(["ls-files", "-z", "-c", "-o", "--exclude-standard"]).bytes()?;
    let deleted = tree.read_only_call().args(["ls-files", "-z", "-d"]).bytes()?;
    let mut all: BTreeSet<String> = names(&list).filter(|path| !path.ends_with('/')).map(str::to_owned).collect();
    for path in names(&deleted) {
        all.remove(path);
    }
    Ok(all)
}

pub(super) fn find(tree: &Worktree<'_>, glob: &str) -> Result<FoundFiles> {
    let matcher = globs(&[glob.to_owned()])?;
    Ok(limit_files(all(tree)?.into_iter().filter(|path| matcher.is_match(path)).collect()))
}

pub(super) fn grep(tree: &Worktree<'_>, pattern: &str, glob: Option<&str>, part: &SearchPart) -> Result<Matches> {
    let matcher = globs(&[glob.unwrap_or("**").to_owned()])?;
    let folder = ConfinedDir::open(tree.folder())?;
    let paths = all(tree)?.into_iter().filter(|path| matcher.is_match(path));
    // A file that was deleted or is too large is skipped.
    grep_files(paths, pattern, part, |path| files::bytes(&folder, path).ok())
}
