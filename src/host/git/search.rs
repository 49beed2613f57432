//! Looking through a worktree: all files that git knows or would take, and none that it ignores.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::bytes::RegexBuilder;
use serde_json::{Value, json};

use super::beneath::Beneath;
use super::call::names;
use super::files;
use super::worktrees::Tree;
use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;

/// The most files and lines that one search gives.
const MOST_FILES: usize = 1000;
const MOST_LINES: usize = 200;
/// How much of a long line is shown.
const LINE: usize = 300;

fn all(tree: &Tree<'_>) -> Result<BTreeSet<String>> {
    let list = tree.reading().args(["ls-files", "-z", "-c", "-o", "--exclude-standard"]).bytes()?;
    let deleted = tree.reading().args(["ls-files", "-z", "-d"]).bytes()?;
    let mut all: BTreeSet<String> = names(&list).filter(|path| !path.ends_with('/')).map(str::to_owned).collect();
    for path in names(&deleted) {
        all.remove(path);
    }
    Ok(all)
}

/// Returns a matcher of globs: `*` stays within a folder, `**` does not. A glob that names a folder means all in it.
pub(in crate::host) fn globs(patterns: &[String]) -> Result<GlobSet> {
    let wrong = |pattern: &str, error: &dyn std::fmt::Display| {
        let message = format!("`{}` is no glob: {error}", excerpt(pattern));
        Failure::new(Code::RequestInvalid, message).hint("such as `src/**/*.rs`")
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let plain = pattern.trim_start_matches("./").trim_end_matches('/');
        for pattern in [plain.to_owned(), format!("{plain}/**")] {
            let glob = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).build();
            set.add(glob.map_err(|error| wrong(&pattern, &error))?);
        }
    }
    set.build().map_err(|error| wrong(&patterns.join(" "), &error))
}

pub(super) fn find(tree: &Tree<'_>, glob: &str) -> Result<Value> {
    let matcher = globs(std::slice::from_ref(&glob.to_owned()))?;
    Ok(found(all(tree)?.into_iter().filter(|path| matcher.is_match(path)).collect()))
}

/// Returns as many paths as a flow may have.
pub(in crate::host) fn found(mut paths: Vec<String>) -> Value {
    let cut = paths.len() > MOST_FILES;
    paths.truncate(MOST_FILES);
    json!({ "paths": paths, "cut": cut })
}

pub(super) fn grep(tree: &Tree<'_>, pattern: &str, glob: Option<&str>) -> Result<Value> {
    let regex = RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|error| {
        let message = format!("`{}` is no regular expression", excerpt(pattern));
        Failure::new(Code::RequestInvalid, message).because(excerpt(&error.to_string()))
    })?;
    let matcher = globs(&[glob.unwrap_or("**").to_owned()])?;
    let beneath = Beneath::open(tree.folder())?;
    let mut lines = Vec::new();
    for path in all(tree)?.into_iter().filter(|path| matcher.is_match(path)) {
        // What was deleted, is no text, or is too large has no lines to show.
        let Ok(bytes) = files::bytes(&beneath, &path) else { continue };
        if memchr::memchr(0, &bytes[..bytes.len().min(8000)]).is_some() || !regex.is_match(&bytes) {
            continue;
        }
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if !regex.is_match(line) {
                continue;
            }
            if lines.len() == MOST_LINES {
                return Ok(json!({ "lines": lines, "cut": true }));
            }
            let text: String = String::from_utf8_lossy(line).chars().take(LINE).collect();
            lines.push(json!({ "path": path, "line": index + 1, "text": text.trim_end() }));
        }
    }
    Ok(json!({ "lines": lines, "cut": false }))
}
