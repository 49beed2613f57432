//! Deletes, moves and patches files of a worktree, and shows what has changed in it.

use super::branches::{AS_PATCH, patch_of};
use super::commits::WRITE_TREE;
use super::names::check_commit;
use super::stage::stage;
use super::worktree::Worktree;
use crate::error::{Code, Failure, Result};
use crate::host::confined::{ConfinedDir, check_written, invalid};
use crate::model::effect::git::Patch;
use crate::model::text::excerpt;

/// Deletes a file or a folder with all that is in it. If the request is made `again`, it may be gone already.
pub(super) fn delete(tree: &Worktree<'_>, path: &str, again: bool) -> Result<()> {
    ConfinedDir::open(tree.folder())?.remove(path, again)
}

/// Moves a file or a folder. If the request is made `again`, it may have been moved already.
pub(super) fn rename(tree: &Worktree<'_>, from: &str, to: &str, again: bool) -> Result<()> {
    ConfinedDir::open(tree.folder())?.rename(from, to, again)
}

/// Applies a unified diff: all of it, or nothing where a part does not fit. If the request is made `again`, it may have been
/// applied already. Returns the paths that it names.
pub(super) fn apply(tree: &Worktree<'_>, patch: &str, again: bool) -> Result<Vec<String>> {
    let paths = named_paths(patch);
    if paths.is_empty() {
        let failure = invalid("the patch", "names no file");
        return Err(failure.hint("it is a unified diff: --- a/FILE, +++ b/FILE, @@ -1,3 +1,4 @@ and the lines"));
    }
    for path in &paths {
        check_written(path)?;
    }
    let level = if has_prefixes(patch) { "-p1" } else { "-p0" };
    let call = |more: &[&str]| -> Result<std::process::Output> {
        let mut text = patch.to_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let settings = ["apply", "--recount", "--whitespace=nowarn", level];
        tree.call()?.args(settings).args(more.iter().copied()).args(["-"]).input(text.into_bytes()).output()
    };
    let done = call(&[])?;
    if done.status.success() || again && call(&["--reverse", "--check"])?.status.success() {
        return Ok(paths);
    }
    let failure = Failure::new(Code::RequestInvalid, "the patch does not fit, and nothing of it was applied");
    let said = String::from_utf8_lossy(&done.stderr);
    let failure = said.lines().take(5).fold(failure, |failure, line| failure.because(excerpt(line)));
    Err(failure.hint("read the lines again as they are now, or write the whole file"))
}

/// Returns the paths that a patch names, without the prefixes `a/` and `b/`.
fn named_paths(patch: &str) -> Vec<String> {
    let prefixed = has_prefixes(patch);
    let mut paths: Vec<String> = Vec::new();
    for line in patch.lines() {
        let named = ["--- ", "+++ "].iter().find_map(|start| line.strip_prefix(start)).map(|path| (path, prefixed));
        let moved = ["rename from ", "rename to ", "copy from ", "copy to "];
        let named = named.or_else(|| moved.iter().find_map(|start| line.strip_prefix(start)).map(|path| (path, false)));
        let Some((path, prefixed)) = named else { continue };
        let path = path.split('\t').next().unwrap_or_default().trim_matches('"');
        let path = if prefixed { path.split_once('/').map_or(path, |(_, path)| path) } else { path };
        if line.ends_with("/dev/null") || paths.iter().any(|known| known == path) {
            continue;
        }
        paths.push(path.to_owned());
    }
    paths
}

/// Whether the names in a patch begin with `a/` and `b/`.
fn has_prefixes(patch: &str) -> bool {
    let all = |start: &str, prefix: &str| {
        let names = patch.lines().filter_map(|line| line.strip_prefix(start)).filter(|name| *name != "/dev/null");
        names.map(|name| name.trim_start_matches('"')).all(|name| name.starts_with(prefix))
    };
    all("--- ", "a/") && all("+++ ", "b/")
}

/// Returns the patch from a commit to the files as they are, new ones included and ignored ones not.
pub(super) fn diff(tree: &Worktree<'_>, from: &str, path: Option<&str>) -> Result<Patch> {
    check_commit(from)?;
    stage(&|| tree.call(), tree.folder(), &tree.uncommitted_paths()?, true)?;
    let now = tree.call()?.args(WRITE_TREE).line()?;
    patch_of(|limit| {
        let call = tree.read_only_call().args(["diff-tree", "-r"]).args(AS_PATCH).args([from, now.as_str()]);
        call.only(path).limit_output(limit).bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_a_patch_are_known_before_it_is_applied() {
        let patch =
            "diff --git a/x b/x\n--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1 +1 @@\n-a\n+b\nrename from old\nrename to new\n";
        assert_eq!(named_paths(patch), ["src/x.rs", "old", "new"]);
        assert_eq!(named_paths("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+a\n"), ["new.txt"]);
        assert_eq!(named_paths("--- src/x.rs\t2026-01-01\n+++ src/x.rs\n"), ["src/x.rs"]);
        assert!(named_paths("no patch").is_empty());
    }
}
