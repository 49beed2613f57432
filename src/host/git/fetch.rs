//! Fetches one commit of somebody's repository and reads its files.
//!
//! Git works on a stranger's data here. So every call has limits on time, memory, processor and file size
//! (`GitCall::of_stranger`), and its lists are read only up to the largest size that a pack needs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use super::call::GitCall;
use super::process::failure;
use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;

/// How long one fetch may take.
const FETCHING: Duration = Duration::from_secs(600);
/// The longest list, in bytes, that is read.
const LONGEST_LIST: u64 = 4 << 20;
/// The longest line of a list, in bytes: mode, object, size and path of a file.
const LONGEST_LINE: u64 = 8 << 10;

/// One file, folder, link or submodule of a tree.
#[derive(Debug)]
pub struct FetchedEntry {
    pub path: Vec<u8>,
    pub kind: FetchedKind,
    pub executable: bool,
    /// In bytes; 0 if this is not a file.
    pub size: u64,
    object: String,
}

/// What a path of a fetched commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchedKind {
    File,
    Folder,
    Link,
    Submodule,
}

/// Receives the contents of a tree: first all entries, then the contents of the files, in the same order.
pub trait TreeVisitor {
    fn visit_entry(&mut self, listed: &FetchedEntry) -> Result<()>;
    fn visit_content(&mut self, listed: &FetchedEntry, content: &mut dyn Read) -> Result<()>;
}

/// Fetches the commit that `reference` names (a tag, a branch, a full commit name) and passes those of its top files and
/// folders that are `wanted` to the visitor. `scratch` is an empty folder. Returns the full name of the commit.
///
/// # Errors
///
/// `pack-not-found` if the repository or the reference cannot be reached, `pack-invalid` if a list is too long,
/// `git-failed` if git fails or exceeds a limit; any failure of the visitor.
pub fn fetch(
    environment: &BTreeMap<String, String>,
    (url, reference): (&str, &str),
    scratch: &Path,
    wanted: impl Fn(&str) -> bool,
    visitor: &mut dyn TreeVisitor,
) -> Result<String> {
    let unreachable = |why: String| {
        Failure::new(Code::PackNotFound, format!("{} at {}: {why}", excerpt(url), excerpt(reference)))
            .hint("is the address right, and is there such a tag or commit?")
    };
    if reference.starts_with('-') || reference.contains([':', '*', '^', '~', ' ']) || reference.contains("..") {
        return Err(unreachable("this is not the name of a tag or commit".to_owned()));
    }
    let git = || GitCall::of_stranger(environment);
    git().args(["init", "-q", "--bare"]).path(scratch).bytes()?;
    let in_scratch = || git().in_repository(scratch);
    let fetched = |call: GitCall| call.with_timeout(FETCHING).output().map_err(|failure| unreachable(failure.message));
    // Some servers do not serve a commit by its name; then all branches and tags are fetched to find it.
    let one = fetched(in_scratch().args(["fetch", "-q", "--no-tags", "--depth=1", "--", url, reference]))?;
    let name = match one.status.success() {
        true => "FETCH_HEAD^{commit}".to_owned(),
        false if is_commit(reference) => {
            let all = ["fetch", "-q", "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
            let all = fetched(in_scratch().args(all))?;
            if !all.status.success() {
                return Err(unreachable(failure("fetch", &all).message));
            }
            format!("{reference}^{{commit}}")
        }
        false => return Err(unreachable(failure("fetch", &one).message)),
    };
    let commit = in_scratch().args(["rev-parse", "--verify", "--end-of-options", &name]).line();
    let commit = commit.map_err(|failure| unreachable(failure.message))?;
    let mut parts = Vec::new();
    list(in_scratch().args(["ls-tree", "-z", "--name-only", &commit]), &mut |name| {
        let name = std::str::from_utf8(name).unwrap_or_default();
        if wanted(name) {
            parts.push(name.to_owned());
        }
        Ok(())
    })?;
    if parts.is_empty() {
        return Err(unreachable("there is nothing of a pack at its top".to_owned()));
    }
    let mut all = Vec::new();
    let tree = in_scratch().args(["ls-tree", "-z", "-r", "-t", "-l", "--full-tree", &commit, "--"]);
    list(tree.args(parts.iter().map(String::as_str)), &mut |line| {
        let listed = parse(line).ok_or_else(|| unreachable("git lists its files in an unknown form".to_owned()))?;
        visitor.visit_entry(&listed)?;
        all.push(listed);
        Ok(())
    })?;
    contents(in_scratch().args(["cat-file", "--batch"]), &all, visitor)?;
    Ok(commit)
}

/// Returns the tags of a repository.
///
/// # Errors
///
/// `git-failed` if git fails or exceeds a limit, `pack-invalid` if the list is too long.
pub fn tags(environment: &BTreeMap<String, String>, url: &str) -> Result<Vec<String>> {
    let mut listed = Vec::new();
    let call = GitCall::of_stranger(environment).args(["ls-remote", "-q", "--tags", "--refs", "--", url]);
    lines(call, b'\n', &mut |line| {
        let line = std::str::from_utf8(line).unwrap_or_default();
        listed.extend(line.split_once("refs/tags/").map(|(_, tag)| tag.to_owned()));
        Ok(())
    })?;
    Ok(listed)
}

fn is_commit(reference: &str) -> bool {
    reference.len() >= 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn list(call: GitCall, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    lines(call, 0, each)
}

/// Passes git's output to `each`, line by line, while git writes it. Ends git when `each` fails.
fn lines(call: GitCall, end: u8, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let running = call.start()?;
    let mut from = BufReader::new(running.output()).take(LONGEST_LIST);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut from).take(LONGEST_LINE).read_until(end, &mut line);
        read.map_err(|error| running.pipe_failure(&error))?;
        match line.pop() {
            None => break,
            Some(last) if last == end => each(&line)?,
            Some(_) => {
                let message = format!("git lists more than {} MiB", LONGEST_LIST >> 20);
                return Err(Failure::new(Code::PackInvalid, message).hint("nothing was installed"));
            }
        }
    }
    running.wait_for_success()
}

/// Parses a line of `ls-tree -l`: `100644 blob 0123… 42<TAB>flows/a.lua`.
fn parse(line: &[u8]) -> Option<FetchedEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&line[..tab]).ok()?.split_ascii_whitespace();
    let (mode, _, object, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let kind = match mode {
        "040000" => FetchedKind::Folder,
        "120000" => FetchedKind::Link,
        "160000" => FetchedKind::Submodule,
        _ => FetchedKind::File,
    };
    let size = if kind == FetchedKind::File { size.parse().ok()? } else { 0 };
    Some(FetchedEntry {
        path: line[tab + 1..].to_vec(),
        kind,
        executable: mode == "100755",
        size,
        object: object.to_owned(),
    })
}

/// Passes the contents of the files to the visitor.
fn contents(call: GitCall, all: &[FetchedEntry], visitor: &mut dyn TreeVisitor) -> Result<()> {
    let running = call.interactive().start()?;
    let broken = |why: &dyn std::fmt::Display| running.pipe_failure(why);
    let mut input = running.input();
    let mut from = BufReader::new(running.output());
    for listed in all.iter().filter(|listed| listed.kind == FetchedKind::File) {
        input.write_all(format!("{}\n", listed.object).as_bytes()).map_err(|error| broken(&error))?;
        let mut head = String::new();
        (&mut from).take(LONGEST_LINE).read_line(&mut head).map_err(|error| broken(&error))?;
        if !head.trim_end().ends_with(&format!(" blob {}", listed.size)) {
            return Err(broken(&format!("{} is not what was listed", excerpt(&String::from_utf8_lossy(&listed.path)))));
        }
        let mut content = (&mut from).take(listed.size);
        visitor.visit_content(listed, &mut content)?;
        std::io::copy(&mut content, &mut std::io::sink()).map_err(|error| broken(&error))?;
        from.read_exact(&mut [0]).map_err(|error| broken(&error))?;
    }
    drop(input);
    running.wait_for_success()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_tree_says_what_stands_there() {
        let listed = parse(b"100755 blob 0123abcd      42\tflows/a b.lua").expect("a file");
        assert_eq!((listed.kind, listed.executable, listed.size), (FetchedKind::File, true, 42));
        assert_eq!(listed.path, b"flows/a b.lua");
        assert_eq!(parse(b"160000 commit 0123abcd       -\tsub").expect("a submodule").kind, FetchedKind::Submodule);
        assert_eq!(parse(b"120000 blob 0123abcd       9\tlink").expect("a link").kind, FetchedKind::Link);
        assert!(parse(b"100644 blob 0123").is_none());
    }
}
