//! Fetching one commit of somebody's repository, as an archive of the files that are asked for.

use std::collections::BTreeMap;
use std::path::Path;

use super::call::{Call, failure};
use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;

/// What was fetched.
pub struct Fetched {
    /// The whole name of the commit.
    pub commit: String,
    /// An uncompressed tar archive.
    pub archive: Vec<u8>,
}

/// Fetches the commit that `reference` names (a tag, a branch, a whole commit) and returns those of its top files and
/// folders that are `wanted`. `scratch` is an empty folder.
pub fn fetch(
    environment: &BTreeMap<String, String>,
    (url, reference): (&str, &str),
    scratch: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<Fetched> {
    let unreachable = |why: String| {
        Failure::new(Code::PackNotFound, format!("{} at {}: {why}", excerpt(url), excerpt(reference)))
            .hint("is the address right, and is there such a tag or commit?")
    };
    if reference.starts_with('-') || reference.contains([':', '*', '^', '~', ' ']) || reference.contains("..") {
        return Err(unreachable("this is no name of a tag or commit".to_owned()));
    }
    let git = || Call::as_user(environment);
    git().args(["init", "-q", "--bare"]).path(scratch).bytes()?;
    let here = || git().repository(scratch);
    // A whole commit is not always given by its name; then everything is fetched, and it is looked for.
    let one = here().args(["fetch", "-q", "--no-tags", "--depth=1", "--", url, reference]).output()?;
    let name = match one.status.success() {
        true => "FETCH_HEAD^{commit}".to_owned(),
        false if is_commit(reference) => {
            let all = ["fetch", "-q", "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
            here().args(all).bytes().map_err(|failure| unreachable(failure.message))?;
            format!("{reference}^{{commit}}")
        }
        false => return Err(unreachable(failure("fetch", &one).message)),
    };
    let commit = here().args(["rev-parse", "--verify", "--end-of-options", &name]).line();
    let commit = commit.map_err(|failure| unreachable(failure.message))?;
    let top = here().args(["ls-tree", "-z", "--name-only", &commit]).bytes()?;
    let parts: Vec<&str> = super::call::names(&top).filter(|name| wanted(name)).collect();
    if parts.is_empty() {
        return Err(unreachable("there is nothing of a pack at its top".to_owned()));
    }
    let archive = here().args(["archive", "--format=tar", &commit, "--"]).args(parts.iter().copied()).bytes()?;
    Ok(Fetched { commit, archive })
}

/// Returns the tags of a repository.
pub fn tags(environment: &BTreeMap<String, String>, url: &str) -> Result<Vec<String>> {
    let listed = Call::as_user(environment).args(["ls-remote", "-q", "--tags", "--refs", "--", url]).text()?;
    Ok(listed.lines().filter_map(|line| Some(line.split_once("refs/tags/")?.1.to_owned())).collect())
}

fn is_commit(reference: &str) -> bool {
    reference.len() >= 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}
