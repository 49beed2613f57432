//! Who has signed a tag of somebody's repository, by git's own signatures with keys of ssh.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::call::GitCall;
use crate::error::Result;

/// How long fetching a tag may take.
const FETCHING: Duration = Duration::from_secs(120);
/// How a signature by ssh begins in a tag.
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";

/// What a tag says of who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagSignature {
    /// The reference is no tag with a signature by ssh: a commit, a branch, a tag that nobody signed.
    None,
    /// There is one, and nobody has said whose signatures count.
    Unchecked,
    /// Of somebody whom the user's file of signers names, with the digest of their key.
    Good { by: String, key: String },
    /// Of somebody whom it does not name, or of other content; with git's words.
    Bad(String),
}

/// Returns who has signed a tag. `repository` is the folder that the commit was fetched into; a tag that has come to name
/// another commit since counts as not signed.
///
/// # Errors
///
/// `git-failed` if git cannot be started or exceeds a limit.
pub fn of_tag(
    environment: &BTreeMap<String, String>,
    (url, tag, commit): (&str, &str, &str),
    repository: &Path,
    signers: Option<&Path>,
) -> Result<TagSignature> {
    let git = || GitCall::of_stranger(environment).in_repository(repository);
    let name = format!("refs/tags/{tag}");
    let whole = format!("+{name}:{name}");
    let fetch = git().args(["fetch", "-q", "--no-tags", "--depth=1", "--", url, &whole]).with_timeout(FETCHING);
    if !fetch.output()?.status.success() {
        return Ok(TagSignature::None);
    }
    let named = git().args(["rev-parse", "--verify", "--end-of-options", &format!("{name}^{{commit}}")]).line();
    let object = git().args(["cat-file", "tag", &name]).output()?;
    let is_signed = object.status.success() && String::from_utf8_lossy(&object.stdout).contains(BEGIN);
    if !is_signed || named.ok().as_deref() != Some(commit) {
        return Ok(TagSignature::None);
    }
    let Some(signers) = signers else { return Ok(TagSignature::Unchecked) };
    let settings = [
        ("gpg.format", OsString::from("ssh")),
        ("gpg.ssh.program", OsString::from("ssh-keygen")),
        ("gpg.ssh.allowedSignersFile", signers.as_os_str().to_owned()),
    ];
    let checked = git().of_user(&settings, &[]).args(["verify-tag", &name]).output()?;
    let told = String::from_utf8_lossy(&checked.stderr).into_owned();
    match good(&told).filter(|_| checked.status.success()) {
        Some(signature) => Ok(signature),
        None => Ok(TagSignature::Bad(told.lines().next().unwrap_or("git says nothing of it").to_owned())),
    }
}

/// Returns what `Good "git" signature for NAME with ED25519 key SHA256:…` says.
fn good(told: &str) -> Option<TagSignature> {
    let line = told.lines().find(|line| line.starts_with("Good \"git\" signature for "))?;
    let (by, key) = line.strip_prefix("Good \"git\" signature for ")?.split_once(" with ")?;
    let key = key.split(' ').find(|word| word.starts_with("SHA256:"))?;
    Some(TagSignature::Good { by: by.to_owned(), key: key.to_owned() })
}
