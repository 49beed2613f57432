//! Finds commits by the names that people give them, and reads what commits say of themselves.

use super::Repository;
use super::call::GitCall;
use super::names::{HEAD, Revision, is_hash};
use super::process::failure;
use crate::error::{Code, Failure, Result};
use crate::model::effect::git::{Commits, LoggedCommit};
use crate::model::text::excerpt;

/// The most bytes that git writes about commits, and the most bytes of one message that a flow gets.
const MOST_LOG: usize = 4 << 20;
const MOST_MESSAGE: usize = 8 << 10;

/// What git says of each commit, in lines; the message is last. NUL, which no message has, ends it.
const FORMAT: &str = "--format=%H%n%P%n%an%n%at%n%B%x00";

impl Repository {
    /// Returns the commit that a revision names: a branch, a tag, a branch of a remote, `HEAD` or the beginning of a hash,
    /// with `~1` or `^2` behind it; `None` if there is no such commit.
    ///
    /// # Errors
    ///
    /// `request-invalid` for what is no revision, and those of [`Repository::perform`].
    pub fn resolve(&self, revision: &str) -> Result<Option<String>> {
        let Revision { name, steps } = Revision::parse(revision)?;
        if name == HEAD {
            self.head()?;
            return commit(self.git().repository(&self.git_folders()?.own), &format!("{HEAD}{steps}"));
        }
        // Git looks in this order, too, and takes a name for the beginning of a hash only where nothing is called like that.
        let candidates = match name.starts_with("refs/") {
            true => vec![name.to_owned()],
            false => {
                ["refs", "refs/tags", "refs/heads", "refs/remotes"].map(|below| format!("{below}/{name}")).to_vec()
            }
        };
        candidates.iter().try_for_each(|full| self.check_reference(full))?;
        let listed = self
            .read_only_call()?
            .args(["for-each-ref", "--format=%(refname)"])
            .args(candidates.iter().map(String::as_str))
            .text()?;
        // A name of a folder lists all that is below it.
        match candidates.iter().find(|full| listed.lines().any(|line| line == full.as_str())) {
            Some(full) if !is_hash(name) => commit(self.read_only_call()?, &format!("{full}{steps}")),
            _ if Revision::may_be_hash(name) => commit(self.read_only_call()?, &format!("{name}{steps}")),
            _ => Ok(None),
        }
    }

    /// Returns the names of branches, the user's and those of remotes.
    ///
    /// # Errors
    ///
    /// Those of [`Repository::perform`].
    pub fn branch_names(&self) -> Result<Vec<String>> {
        let list = ["for-each-ref", "--format=%(refname:short)", "--count=1000", "refs/heads", "refs/remotes"];
        Ok(self.read_only_call()?.args(list).text()?.lines().map(str::to_owned).collect())
    }

    /// Returns the commit of a revision, which must be there. All digits of a hash are taken as they are.
    pub(super) fn need_commit(&self, revision: &str) -> Result<String> {
        if is_hash(revision) {
            return Ok(revision.to_owned());
        }
        self.resolve(revision)?.ok_or_else(|| {
            let shown = excerpt(revision);
            Failure::new(Code::GitFailed, format!("`{shown}` names no commit of this repository"))
                .hint("git.resolve returns nil where there is none")
        })
    }

    /// Returns the best common ancestor of two revisions, if they have one.
    pub(super) fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>> {
        let (one, other) = (self.need_commit(one)?, self.need_commit(other)?);
        let output = self.read_only_call()?.args(["merge-base", &one, &other]).output()?;
        match output.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())),
            Some(1) => Ok(None),
            _ => Err(failure("merge-base", &output)),
        }
    }

    /// Returns the commits that `to` reaches and `from` does not, newest first.
    pub(super) fn log(&self, from: Option<&str>, to: &str, path: Option<&str>, most: usize) -> Result<Commits> {
        let to = self.need_commit(to)?;
        let from = from.map(|from| self.need_commit(from)).transpose()?;
        let count = format!("--max-count={}", most + 1);
        let list = ["rev-list", "--no-commit-header", "--encoding=UTF-8", FORMAT, &count, &to];
        let call = self.read_only_call()?.args(list).limit_output(MOST_LOG);
        let call = from.iter().fold(call, |call, from| call.args([format!("^{from}").as_str()]));
        let call = path.iter().fold(call.args(["--"]), |call, path| call.args([*path]));
        let text = call.text()?;
        // What follows the last NUL is the beginning of a commit, if git was ended there.
        let (whole, rest) = text.rsplit_once('\0').unwrap_or(("", text.as_str()));
        let mut commits: Vec<LoggedCommit> = whole.split('\0').filter_map(logged).collect();
        let cut = commits.len() > most || !rest.trim().is_empty();
        commits.truncate(most);
        Ok(Commits { commits, cut })
    }
}

/// Reads one commit in [`FORMAT`].
fn logged(text: &str) -> Option<LoggedCommit> {
    let mut parts = text.trim_start_matches('\n').splitn(5, '\n');
    let (commit, parents, author) = (parts.next()?, parts.next()?, parts.next()?);
    let time = parts.next()?.parse().ok()?;
    let message = parts.next().unwrap_or_default().trim_end();
    let end = (0..=MOST_MESSAGE.min(message.len())).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
    Some(LoggedCommit {
        commit: commit.to_owned(),
        parents: parents.split_whitespace().map(str::to_owned).collect(),
        author: author.to_owned(),
        time,
        message: message[..end].to_owned(),
    })
}

/// Returns the commit that git finds; `None` if there is none.
fn commit(call: GitCall, name: &str) -> Result<Option<String>> {
    let output = call.args(["rev-parse", "--verify", &format!("{name}^{{commit}}")]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("ambiguous") {
        let message = format!("`{}` is the beginning of more than one hash", excerpt(name));
        return Err(Failure::new(Code::RequestInvalid, message).hint("give more of its digits"));
    }
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned()))
}
