//! The workspace's repository, used through the git command line, and worktrees outside of the repository.
//!
//! - `call` is one git command without the user's hooks, signing and configuration; `programs` keeps out the commands that
//!   the repository's own configuration would run; `process` runs git within limits;
//! - `revisions` finds commits by their names; `uncommitted` shows what the user has not committed; `hunks` shows a change
//!   file by file;
//! - `branches` makes, compares and merges branches, all in memory; `brings` finds files of a change that start by themselves;
//! - `worktrees` makes and removes worktrees (each a `worktree`); `commits` commits and restores them, with `stage` and
//!   `host::sweep`, which cope with any state in which commands leave a folder; `files` and `search` read and write in
//!   them through `host::confined`, which cannot leave them;
//! - `stat` counts the lines of a change; `remains` finds and removes what runs that are over have left;
//! - `dependencies` finds the folders of dependencies that git ignores; `view` is what commands see of the repository;
//! - `folders` checks that the repository is the workspace's own; `user_config` says which of the user's settings apply;
//! - `fetch` fetches one commit of somebody's repository.
//!
//! The user's checkout, index and stashes are never touched, and only branches that begin with
//! [`crate::model::git::PREFIX`] are moved. Models and commands write the files of a worktree, so no file in it, least of
//! all its `.git` file, is trusted to say where the repository is.

mod branches;
mod brings;
mod call;
mod commits;
mod dependencies;
mod edits;
pub mod fetch;
mod files;
mod folders;
mod hunks;
mod names;
mod pipes;
mod user_config;
mod programs;
mod process;
mod remains;
mod search;
pub mod signature;
mod stage;
mod stat;
mod revisions;
mod uncommitted;
mod view;
mod worktree;
mod worktrees;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::error::{Code, Failure, Result};
use crate::host::path;
use crate::host::place::CommandPlace;
use crate::model::command::ExecCommand;
use crate::model::effect::git::{GitBefore, GitOp, GitOutcome, NewBranch};
use crate::model::effect::worktree::{TreeBefore, TreeOp, TreeOutcome, WorktreeOp};
use crate::model::git::GitLimits;
use crate::model::text::{clean, shell};
use call::{GitCall, NewCommit};
use hunks::HunkQuery;
pub use process::end_all;
use programs::Programs;

/// The oldest version of git that merges in memory.
const OLDEST: (u32, u32) = (2, 38);

/// The repository of one run's workspace. Its git folders are looked up when they are first needed.
#[derive(Clone)]
pub struct Repository {
    workspace: PathBuf,
    /// The folder of the workspace that the user works in: commands start in that of their worktree.
    below: PathBuf,
    /// The folder of the worktrees, outside of the repository.
    worktrees: PathBuf,
    run: String,
    path: String,
    limits: GitLimits,
    /// Commands of the repository's configuration that the user trusts.
    trusted: Arc<BTreeSet<String>>,
    /// The variables of the environment that locate the user's configuration.
    user: BTreeMap<String, String>,
    /// The variables that filters get, most of them from the user's environment.
    filter_variables: Arc<Vec<(String, OsString)>>,
    git_folders: Arc<OnceLock<GitFolders>>,
    patterns: Arc<OnceLock<user_config::GitSettings>>,
    /// The programs in each git folder's configuration, kept for one request.
    programs: Arc<Mutex<HashMap<PathBuf, Arc<Programs>>>>,
    remarks: Arc<Mutex<Remarks>>,
    worktree_locks: Arc<Mutex<HashMap<String, WorktreeLocks>>>,
}

/// The locks of one worktree.
#[derive(Clone, Debug, Default)]
struct WorktreeLocks {
    /// Held by each request.
    request: Arc<Mutex<()>>,
    /// Commands share it. Git takes it alone: it uses paths, which a command could swap under it.
    commands: Arc<RwLock<()>>,
}

/// Remarks for the user; each is shown once.
#[derive(Debug, Default)]
struct Remarks {
    all: BTreeSet<String>,
    new: Vec<String>,
}

/// The git folders of a repository.
#[derive(Clone, Debug)]
struct GitFolders {
    /// The workspace's own git folder; `common` is the one that all worktrees share.
    own: PathBuf,
    common: PathBuf,
}

/// Returns the version line of the git on a `PATH`.
///
/// # Errors
///
/// `git-missing` if there is no git or it is too old, `git-failed` if it fails.
pub fn version(path: &str) -> Result<String> {
    let version =
        GitCall::new(path, GitLimits::default()).args(["version"]).text().map_err(|failure| match failure.code {
            Code::GitFailed => failure,
            _ => Failure::new(Code::GitMissing, "git is needed, and cannot be started")
                .because(failure.message)
                .hint("install git 2.38 or newer"),
        })?;
    if parse_version(&version).is_none_or(|version| version < OLDEST) {
        let message = format!("git 2.38 or newer is needed, found {}", version.trim());
        return Err(Failure::new(Code::GitMissing, message).hint("install a newer git"));
    }
    Ok(version.trim().to_owned())
}

impl Repository {
    /// Returns the repository of a workspace. `worktrees` is a folder of the user's cache, shared by all runs; `limits` hold
    /// for each call of git.
    pub fn new(
        workspace: &Path,
        worktrees: &Path,
        run: &str,
        environment: &BTreeMap<String, String>,
        limits: GitLimits,
    ) -> Repository {
        let digest = crate::model::digest::Digest::of(workspace.as_os_str().as_encoded_bytes()).to_string();
        Repository {
            workspace: workspace.to_owned(),
            below: PathBuf::new(),
            // With links resolved, as git writes the path down.
            worktrees: path::resolved(worktrees).join(&digest[..8]),
            run: run.to_owned(),
            path: path::search_path(environment),
            limits,
            trusted: Arc::default(),
            user: call::configuration(environment),
            filter_variables: Arc::new(user_config::variables(environment)),
            git_folders: Arc::default(),
            patterns: Arc::default(),
            programs: Arc::default(),
            remarks: Arc::default(),
            worktree_locks: Arc::default(),
        }
    }

    /// Lets commands start in this folder below the top of their worktree, if it is there.
    #[must_use]
    pub fn starting_in(self, below: PathBuf) -> Repository {
        Repository { below, ..self }
    }

    /// Lets git run these commands of the repository's configuration ([`Repository::filters`]).
    #[must_use]
    pub fn trusting(self, filters: BTreeSet<String>) -> Repository {
        Repository { trusted: Arc::new(filters), ..self }
    }

    /// Returns the remarks for the user since the last call.
    pub fn remarks(&self) -> Vec<String> {
        std::mem::take(&mut self.remarks.lock().unwrap_or_else(PoisonError::into_inner).new)
    }

    fn remark(&self, text: String) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        if remarks.all.insert(text.clone()) {
            remarks.new.push(text);
        }
    }

    /// Returns the repository for a new request, which reads the configuration again.
    fn for_new_request(&self) -> Repository {
        Repository { programs: Arc::default(), ..self.clone() }
    }

    /// Performs a request; `again` says that an earlier process may have begun it. `now` is the time for commits, in
    /// seconds since 1970.
    ///
    /// # Errors
    ///
    /// `git-missing` without a repository or a new enough git, `git-failed` if git fails or exceeds a limit,
    /// `permission-refused` and `path-refused` if the flow may not do this, `request-invalid` for a malformed name.
    pub fn perform(&self, op: &GitOp, again: bool, now: u64) -> Result<GitOutcome> {
        let this = self.for_new_request();
        Ok(match op {
            GitOp::Head => GitOutcome::Head(this.head()?),
            GitOp::Commit { branch } => GitOutcome::Commit(this.commit_of(branch)?),
            GitOp::Branch { name, commit } => GitOutcome::Branch(this.branch(name, commit)?),
            GitOp::Delete { name } => {
                this.delete_branch(name)?;
                GitOutcome::Deleted
            }
            GitOp::Snapshot => GitOutcome::Snapshot(this.snapshot(now)?),
            GitOp::Diff { from, to, path } => GitOutcome::Diff(this.diff(from, to, path.as_deref())?),
            GitOp::Hunks { compared, path, after, context } => {
                let query = HunkQuery { path: path.as_deref(), after: after.as_deref(), context: *context };
                GitOutcome::Hunks(this.hunks(compared, query)?)
            }
            GitOp::Changed { from, to } => GitOutcome::Changed(this.changed(from, to)?),
            GitOp::Resolve { revision } => GitOutcome::Commit(this.resolve(revision)?),
            GitOp::MergeBase { one, other } => GitOutcome::Commit(this.merge_base(one, other)?),
            GitOp::Log { from, to, path, most } => {
                GitOutcome::Log(this.log(from.as_deref(), to, path.as_deref(), *most)?)
            }
            GitOp::Staged { path } => GitOutcome::Diff(this.staged(path.as_deref())?),
            GitOp::Unstaged { path } => GitOutcome::Diff(this.unstaged(path.as_deref())?),
            GitOp::Brings { from, to } => GitOutcome::Brings(this.brings(from, to)?),
            GitOp::Files { commit, glob } => GitOutcome::Files(this.files(commit, glob)?),
            GitOp::Stat { from, to } => GitOutcome::Stat(this.stat(from, to)?),
            GitOp::Merge { from, into, message, squash, author } => {
                let commit = NewCommit { message, author: author.as_deref(), now };
                GitOutcome::Merge(this.merge(from, into, *squash, &commit)?)
            }
            GitOp::Remains { run } => GitOutcome::Remains(this.remains(run)?),
            GitOp::Discard { run, name } => GitOutcome::Discarded(this.discard(run, name)?),
            GitOp::Worktree { name, branch } => GitOutcome::Worktree(this.worktree(name, branch, again)?),
            GitOp::Dependencies { tree } => GitOutcome::Dependencies(this.dependencies(tree.as_deref())?),
        })
    }

    /// Performs a request in a worktree; `again` and `now` as in [`Repository::perform`].
    ///
    /// # Errors
    ///
    /// As [`Repository::perform`], and `disk-failed` or `timed-out` for files and searches.
    pub fn perform_in(&self, WorktreeOp { tree, op }: &WorktreeOp, again: bool, now: u64) -> Result<TreeOutcome> {
        let locks = self.locks_of(tree);
        let _alone = op.is_by_git().then(|| locks.commands.blocking_write());
        let _held = locks.request.lock().unwrap_or_else(PoisonError::into_inner);
        if again && matches!(op, TreeOp::Remove { .. }) && self.finish_removal(tree)? {
            return Ok(TreeOutcome::Done);
        }
        let this = self.for_new_request();
        let tree = this.tree(tree)?;
        Ok(match op {
            TreeOp::Read { path } => TreeOutcome::Read(files::read(&tree, path)?),
            TreeOp::Write { path, text } => TreeOutcome::Write { bytes: files::write(&tree, path, text)? },
            TreeOp::Replace { path, old, new } => TreeOutcome::Replace { line: files::replace(&tree, path, old, new)? },
            TreeOp::List { path } => TreeOutcome::List(files::list(&tree, path)?),
            TreeOp::Find { glob } => TreeOutcome::Find(search::find(&tree, glob)?),
            TreeOp::Grep { pattern, glob, part } => {
                TreeOutcome::Grep(search::grep(&tree, pattern, glob.as_deref(), part)?)
            }
            TreeOp::Delete { path } => {
                edits::delete(&tree, path, again)?;
                TreeOutcome::Moved {}
            }
            TreeOp::Rename { from, to } => {
                edits::rename(&tree, from, to, again)?;
                TreeOutcome::Moved {}
            }
            TreeOp::Apply { patch } => TreeOutcome::Apply { paths: edits::apply(&tree, patch, again)? },
            TreeOp::Diff { from, path } => TreeOutcome::Diff(edits::diff(&tree, from, path.as_deref())?),
            TreeOp::Commit { branch, message, author } => {
                let commit = NewCommit { message, author: author.as_deref(), now };
                TreeOutcome::Commit(tree.commit(branch, &commit)?)
            }
            TreeOp::Restore { protect } => TreeOutcome::Restore { touched: tree.restore(protect.as_ref())? },
            TreeOp::MoveTo { branch, commit } => {
                tree.move_to(branch, commit)?;
                TreeOutcome::Done
            }
            TreeOp::Remove { discard } => {
                tree.remove(*discard)?;
                TreeOutcome::Done
            }
        })
    }

    /// Returns the place of a command in a worktree, and guards: git does nothing there, nor where its dependencies are from,
    /// until they are dropped.
    ///
    /// # Errors
    ///
    /// `git-failed` if there is no such worktree.
    pub(crate) async fn lend(&self, command: &ExecCommand) -> Result<(CommandPlace, Vec<OwnedRwLockReadGuard<()>>)> {
        let from = command.dependencies.as_ref().and_then(|given| given.from.as_deref());
        let builds = command.builds.as_ref().and_then(|builds| builds.of.as_deref());
        // Each once and in one order, or two commands could wait for each other.
        let names: BTreeSet<&str> = [Some(command.tree.as_str()), from, builds].into_iter().flatten().collect();
        let mut held = Vec::new();
        for name in names {
            held.push(self.locks_of(name).commands.read_owned().await);
        }
        let tree = self.tree(&command.tree)?;
        let project = match from {
            Some(from) => self.tree(from)?.folder,
            None => self.workspace.clone(),
        };
        let start = tree.folder.join(&self.below);
        let place = CommandPlace {
            start: if start.is_dir() { start } else { tree.folder.clone() },
            builds: Some(worktrees::builds_folder(&self.tree(builds.unwrap_or(&command.tree))?.folder)),
            written: Some(worktrees::written_folder(&tree.folder)),
            folder: tree.folder,
            project,
            git: self.view(&command.tree).map_err(|why| self.remark(format!("commands see no history: {why}"))).ok(),
        };
        Ok((place, held))
    }

    fn locks_of(&self, tree: &str) -> WorktreeLocks {
        self.worktree_locks.lock().unwrap_or_else(PoisonError::into_inner).entry(tree.to_owned()).or_default().clone()
    }

    /// Returns what [`Repository::probe`] needs after a crash to find out whether a request happened.
    ///
    /// # Errors
    ///
    /// As [`Repository::perform`], for a merge.
    pub fn prepare(&self, op: &GitOp) -> Result<GitBefore> {
        match op {
            GitOp::Merge { from, into, .. } => self.for_new_request().prepare_merge(from, into),
            GitOp::Head
            | GitOp::Commit { .. }
            | GitOp::Branch { .. }
            | GitOp::Delete { .. }
            | GitOp::Snapshot
            | GitOp::Resolve { .. }
            | GitOp::MergeBase { .. }
            | GitOp::Log { .. }
            | GitOp::Staged { .. }
            | GitOp::Unstaged { .. }
            | GitOp::Diff { .. }
            | GitOp::Hunks { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. }
            | GitOp::Stat { .. }
            | GitOp::Remains { .. }
            | GitOp::Discard { .. }
            | GitOp::Dependencies { .. }
            | GitOp::Worktree { .. } => Ok(GitBefore::Nothing {}),
        }
    }

    /// Returns the outcome of a request whose intent was written, if it happened.
    pub fn probe(&self, op: &GitOp, before: &GitBefore) -> Option<Result<GitOutcome>> {
        match op {
            GitOp::Merge { into, squash, .. } => {
                self.for_new_request().probe_merge(into, *squash, before).map(|done| Ok(GitOutcome::Merge(done)))
            }
            GitOp::Branch { name, commit } => {
                let found = self.for_new_request().commit_of(name).ok()??;
                let made = NewBranch { name: name.clone(), commit: commit.clone() };
                (found == *commit).then_some(Ok(GitOutcome::Branch(made)))
            }
            GitOp::Head
            | GitOp::Commit { .. }
            | GitOp::Delete { .. }
            | GitOp::Snapshot
            | GitOp::Resolve { .. }
            | GitOp::MergeBase { .. }
            | GitOp::Log { .. }
            | GitOp::Staged { .. }
            | GitOp::Unstaged { .. }
            | GitOp::Diff { .. }
            | GitOp::Hunks { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. }
            | GitOp::Stat { .. }
            | GitOp::Remains { .. }
            | GitOp::Discard { .. }
            | GitOp::Dependencies { .. }
            | GitOp::Worktree { .. } => None,
        }
    }

    /// Does the same as [`Repository::prepare`], for a request in a worktree.
    ///
    /// # Errors
    ///
    /// As [`Repository::perform_in`], for a commit or a replacement.
    pub fn prepare_in(&self, WorktreeOp { tree, op }: &WorktreeOp) -> Result<TreeBefore> {
        let this = self.for_new_request();
        match op {
            TreeOp::Commit { .. } => this.tree(tree)?.prepare_commit(),
            TreeOp::Replace { path, old, new } => files::prepare_replace(&this.tree(tree)?, path, old, new),
            TreeOp::Read { .. }
            | TreeOp::Write { .. }
            | TreeOp::List { .. }
            | TreeOp::Find { .. }
            | TreeOp::Grep { .. }
            | TreeOp::Delete { .. }
            | TreeOp::Rename { .. }
            | TreeOp::Apply { .. }
            | TreeOp::Diff { .. }
            | TreeOp::Restore { .. }
            | TreeOp::MoveTo { .. }
            | TreeOp::Remove { .. } => Ok(TreeBefore::Nothing {}),
        }
    }

    /// Does the same as [`Repository::probe`], for a request in a worktree.
    pub fn probe_in(&self, WorktreeOp { tree, op }: &WorktreeOp, before: &TreeBefore) -> Option<Result<TreeOutcome>> {
        let this = self.for_new_request();
        let tree = this.tree(tree).ok()?;
        match op {
            TreeOp::Commit { .. } => tree.probe_commit(before).map(|done| Ok(TreeOutcome::Commit(done))),
            TreeOp::Replace { path, .. } => {
                files::probe_replace(&tree, path, before).map(|line| Ok(TreeOutcome::Replace { line }))
            }
            TreeOp::Read { .. }
            | TreeOp::Write { .. }
            | TreeOp::List { .. }
            | TreeOp::Find { .. }
            | TreeOp::Grep { .. }
            | TreeOp::Delete { .. }
            | TreeOp::Rename { .. }
            | TreeOp::Apply { .. }
            | TreeOp::Diff { .. }
            | TreeOp::Restore { .. }
            | TreeOp::MoveTo { .. }
            | TreeOp::Remove { .. } => None,
        }
    }

    /// Returns the git folders, found and checked at the first call.
    fn git_folders(&self) -> Result<&GitFolders> {
        if let Some(found) = self.git_folders.get() {
            return Ok(found);
        }
        let found = self.find_git_folders()?;
        Ok(self.git_folders.get_or_init(|| found))
    }

    fn find_git_folders(&self) -> Result<GitFolders> {
        version(&self.path)?;
        let place = self.workspace.display();
        let no_repository = || {
            Failure::new(Code::GitMissing, format!("{place} is not the top folder of a git repository"))
                .hint("name the top folder: nietz -C FOLDER run …")
        };
        folders::check_plain(&self.workspace.join(".git"))?;
        let query =
            ["rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
        let out = self.git().discover(&self.workspace).with_user_config(&self.user).args(query).output()?;
        if !out.status.success() {
            let stderr = String::from_utf8_lossy(&out.stderr);
            return Err(match stderr.contains("dubious ownership") {
                true => self.of_another_user(),
                false => no_repository().because(clean(stderr.trim().trim_start_matches("fatal: "))).hint(
                    "in a new project: git init, and commit something; else name the repository: nietz -C FOLDER run …",
                ),
            });
        }
        let out = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut lines = out.lines().map(PathBuf::from);
        let (Some(top), Some(own), Some(common)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(no_repository());
        };
        if top != self.workspace {
            return Err(no_repository().because(format!("the top folder is {}", top.display())));
        }
        if self.worktrees.starts_with(&self.workspace) {
            let message = format!("worktrees would be made in {}, inside of the repository", self.worktrees.display());
            return Err(Failure::new(Code::GitMissing, message).hint("set NIETZ_HOME to a folder outside of it"));
        }
        self.check_whose(&own, &common)?;
        Ok(GitFolders { own: path::resolved(&own), common: path::resolved(&common) })
    }

    fn of_another_user(&self) -> Failure {
        let place = self.workspace.display();
        let message = format!("the repository in {place} belongs to another user, who decides what git runs in it");
        Failure::new(Code::PermissionRefused, message)
            .hint(format!("if you trust it: git config --global --add safe.directory {}", shell(&place.to_string())))
    }

    fn git(&self) -> GitCall {
        GitCall::new(&self.path, self.limits)
    }

    /// Returns a git command for the git folder that all worktrees share.
    fn call(&self) -> Result<GitCall> {
        self.call_at(&self.git_folders()?.common)
    }

    /// Returns a git command that only reads objects, references and names. Git runs no programs for those, so the
    /// configuration does not matter.
    fn read_only_call(&self) -> Result<GitCall> {
        Ok(self.git().repository(&self.git_folders()?.common))
    }

    /// Returns a git command for one git folder of the repository, without the programs that its configuration names.
    fn call_at(&self, git_dir: &Path) -> Result<GitCall> {
        let programs = self.programs_at(git_dir)?;
        let call = self.git().repository(git_dir).of_user(self.patterns()?, &[]);
        let call = if programs.run_filters() { call.of_user(&[], &self.filter_variables) } else { call };
        Ok(call.with(&programs.settings, programs.hint()))
    }

    /// Returns the programs that the configuration of a git folder would run. Read once per request, as it may change.
    fn programs_at(&self, git_dir: &Path) -> Result<Arc<Programs>> {
        let mut known = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(programs) = known.get(git_dir) {
            return Ok(Arc::clone(programs));
        }
        let mut programs = Programs::of(&self.program_settings(git_dir)?, &self.trusted);
        user_config::configure_filters(&mut programs.settings);
        let programs = Arc::new(programs);
        known.insert(git_dir.to_owned(), Arc::clone(&programs));
        Ok(programs)
    }

    /// Returns git's listing of the settings that name programs.
    fn program_settings(&self, git_dir: &Path) -> Result<Vec<u8>> {
        let call = self.git().repository(git_dir).with_user_config(&self.user);
        let listed = call.args(["config", "-z", "--show-scope", "--get-regexp", programs::LISTED]).output()?;
        // Status 1 means that there are no such settings.
        if !matches!(listed.status.code(), Some(0 | 1)) {
            return Err(
                process::failure("config", &listed).hint("mend git's configuration: `git config --list` says the same")
            );
        }
        Ok(listed.stdout)
    }
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix("git version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
