//! `@nietz/git`: branches of a run's own, merges in memory, and worktrees beside the repository with files and
//! commands in them. Each operation is one effect; `git.luau` builds the handle of a worktree.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Result;
use crate::lua::api::ModuleBuilder;
use crate::lua::api::args::{Args, invalid};
use crate::lua::convert;
use crate::lua::request::{OutcomeToLua, Request, outcome_to_nil};
use crate::lua::vm::Vm;
use crate::model::command::{BuildFolder, CommandLine, ExecCommand, GivenDependencies};
use crate::model::effect::Effect;
use crate::model::effect::git::GitOp;
use crate::model::effect::worktree::{TreeOp, WorktreeOp};
use crate::model::hunks::{ComparedTrees, Uncommitted, with_lines};
use crate::model::text::excerpt;

/// How long a command may take if the flow does not say, in seconds.
const SECONDS: f64 = 300.0;
/// The longest time that a flow may let a command take, in seconds.
const MOST_SECONDS: f64 = 86_400.0;
/// The most bytes of a command's output that a flow may ask for.
const MOST_OUTPUT: usize = 1 << 20;

/// The most commits that a flow may ask for at once.
const MOST_COMMITS: usize = 1000;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let native = ModuleBuilder::new(vm)?
        .effect("head", head)?
        .effect("commit_of", commit_of)?
        .effect("branch", branch)?
        .effect("delete_branch", delete_branch)?
        .effect("snapshot", snapshot)?
        .effect("resolve", resolve)?
        .effect("merge_base", merge_base)?
        .effect("log", log)?
        .effect("staged", staged)?
        .effect("unstaged", unstaged)?
        .effect("diff", diff)?
        .effect("hunks", hunks)?
        .effect("changed", changed)?
        .effect("stat", stat)?
        .effect("brings", brings)?
        .effect("files", files)?
        .effect("merge", merge)?
        .effect("remains", remains)?
        .effect("discard", discard)?
        .effect("worktree", worktree)?
        .effect("tree", tree)?
        .effect("exec", exec)?
        .effect("dependencies", dependencies)?
        .build();
    Ok(ModuleBuilder::new(vm)?.luau(include_str!("git.luau"), native)?.build())
}

fn git(git: GitOp, finish: OutcomeToLua) -> Request {
    Request::Effect(Box::new(Effect::Git(git)), finish)
}

fn head(_: &Lua, _: MultiValue) -> Result<Request> {
    Ok(git(GitOp::Head, convert::to_lua))
}

fn commit_of(lua: &Lua, values: MultiValue) -> Result<Request> {
    let branch = Args::new(lua, "git.commit_of", values).text(0)?;
    Ok(git(GitOp::Commit { branch }, present))
}

/// Converts an outcome; null, for a branch or file that does not exist, becomes nil.
fn present(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    if value.is_null() { Ok(LuaValue::Nil) } else { convert::to_lua(lua, value) }
}

fn branch(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.branch", values);
    Ok(git(GitOp::Branch { name: args.text(0)?, commit: args.text(1)? }, outcome_to_nil))
}

fn delete_branch(lua: &Lua, values: MultiValue) -> Result<Request> {
    let name = Args::new(lua, "git.delete_branch", values).text(0)?;
    Ok(git(GitOp::Delete { name }, outcome_to_nil))
}

fn snapshot(_: &Lua, _: MultiValue) -> Result<Request> {
    Ok(git(GitOp::Snapshot, convert::to_lua))
}

fn resolve(lua: &Lua, values: MultiValue) -> Result<Request> {
    let revision = Args::new(lua, "git.resolve", values).text(0)?;
    Ok(git(GitOp::Resolve { revision }, present))
}

fn merge_base(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.merge_base", values);
    Ok(git(GitOp::MergeBase { one: args.text(0)?, other: args.text(1)? }, present))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogOptions {
    from: Option<String>,
    #[serde(default = "head_revision")]
    to: String,
    path: Option<String>,
    #[serde(default = "some_commits")]
    most: usize,
}

fn head_revision() -> String {
    "HEAD".to_owned()
}

fn some_commits() -> usize {
    100
}

fn log(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.log", values);
    let LogOptions { from, to, path, most } = args.data(0, "options")?;
    if !(1..=MOST_COMMITS).contains(&most) {
        return Err(invalid(format!("git.log: most goes from 1 to {MOST_COMMITS}")));
    }
    Ok(git(GitOp::Log { from, to, path, most }, convert::to_lua))
}

/// What of a change to return.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffOptions {
    path: Option<String>,
}

/// Returns the path of the options at this place of the arguments, if there are any.
fn path_option(function: &'static str, args: &Args<'_>, index: usize) -> Result<Option<String>> {
    let options: Option<DiffOptions> = args.data(index, "options")?;
    checked_path(function, options.unwrap_or_default().path)
}

/// Refuses a path that is no path in the repository.
fn checked_path(function: &str, path: Option<String>) -> Result<Option<String>> {
    match path {
        Some(path)
            if path.trim_end_matches('/').is_empty() || path.starts_with('/') || path.split('/').any(is_step) =>
        {
            let message = format!("{function}: `{}` is no path in the repository", excerpt(&path));
            Err(invalid(message).hint("give a file or a folder, relative to the top, such as `src/main.rs`"))
        }
        path => Ok(path),
    }
}

fn is_step(part: &str) -> bool {
    part == "." || part == ".."
}

fn staged(lua: &Lua, values: MultiValue) -> Result<Request> {
    let path = path_option("git.staged", &Args::new(lua, "git.staged", values), 0)?;
    Ok(git(GitOp::Staged { path }, convert::to_lua))
}

fn unstaged(lua: &Lua, values: MultiValue) -> Result<Request> {
    let path = path_option("git.unstaged", &Args::new(lua, "git.unstaged", values), 0)?;
    Ok(git(GitOp::Unstaged { path }, convert::to_lua))
}

fn diff(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.diff", values);
    let (from, to, path) = (args.text(0)?, args.text(1)?, path_option("git.diff", &args, 2)?);
    Ok(git(GitOp::Diff { from, to, path }, convert::to_lua))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HunksOptions {
    from: Option<String>,
    to: Option<String>,
    #[serde(default)]
    staged: bool,
    #[serde(default)]
    unstaged: bool,
    path: Option<String>,
    after: Option<String>,
    #[serde(default = "usual_context")]
    context: usize,
}

/// How many lines around what differs are usual in a patch, and the most of them.
fn usual_context() -> usize {
    3
}
const MOST_CONTEXT: usize = 1000;

fn hunks(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.hunks", values);
    let HunksOptions { from, to, staged, unstaged, path, after, context } = args.data(0, "options")?;
    let compared = match (from, to, staged, unstaged) {
        (Some(from), to, false, false) => ComparedTrees::Revisions { from, to: to.unwrap_or_else(head_revision) },
        (None, None, true, false) => ComparedTrees::Uncommitted { uncommitted: Uncommitted::Staged },
        (None, None, false, true) => ComparedTrees::Uncommitted { uncommitted: Uncommitted::Unstaged },
        _ => {
            return Err(invalid(
                "git.hunks: give `from` (and `to`), or `staged = true`, or `unstaged = true`".to_owned(),
            ));
        }
    };
    if context > MOST_CONTEXT {
        return Err(invalid(format!("git.hunks: context goes from 0 to {MOST_CONTEXT}")));
    }
    let path = checked_path("git.hunks", path)?;
    Ok(git(GitOp::Hunks { compared, path, after, context }, |lua, value| {
        convert::to_lua(lua, &with_lines(value.clone()))
    }))
}

fn changed(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.changed", values);
    Ok(git(GitOp::Changed { from: args.text(0)?, to: args.text(1)? }, convert::to_lua))
}

fn stat(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.stat", values);
    Ok(git(GitOp::Stat { from: args.text(0)?, to: args.text(1)? }, convert::to_lua))
}

fn brings(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.brings", values);
    Ok(git(GitOp::Brings { from: args.text(0)?, to: args.text(1)? }, convert::to_lua))
}

fn files(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.files", values);
    let (commit, glob) = (args.text(0)?, args.maybe_text(1)?.unwrap_or_else(|| "**".to_owned()));
    Ok(git(GitOp::Files { commit, glob }, convert::to_lua))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeOptions {
    from: String,
    into: String,
    message: String,
    #[serde(default)]
    squash: bool,
    author: Option<String>,
}

fn merge(lua: &Lua, values: MultiValue) -> Result<Request> {
    let MergeOptions { from, into, message, squash, author } =
        Args::new(lua, "git.merge", values).data(0, "options")?;
    Ok(git(GitOp::Merge { from, into, message, squash, author }, convert::to_lua))
}

fn remains(lua: &Lua, values: MultiValue) -> Result<Request> {
    let run = Args::new(lua, "git.remains", values).text(0)?;
    Ok(git(GitOp::Remains { run }, convert::to_lua))
}

fn discard(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "git.discard", values);
    Ok(git(GitOp::Discard { run: args.text(0)?, name: args.text(1)? }, convert::to_lua))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorktreeOptions {
    name: String,
    branch: String,
}

fn worktree(lua: &Lua, values: MultiValue) -> Result<Request> {
    let WorktreeOptions { name, branch } = Args::new(lua, "git.worktree", values).data(0, "options")?;
    Ok(git(GitOp::Worktree { name, branch }, convert::to_lua))
}

/// Requests an operation in a worktree, as `git.luau` builds it.
fn tree(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "worktree", values);
    let (tree, op) = (args.text(0)?, args.data::<TreeOp>(1, "options")?);
    Ok(Request::Effect(Box::new(Effect::Worktree(WorktreeOp { tree, op })), present))
}

fn dependencies(lua: &Lua, values: MultiValue) -> Result<Request> {
    let tree = Args::new(lua, "dependencies", values).maybe_text(0)?;
    Ok(git(GitOp::Dependencies { tree }, convert::to_lua))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecOptions {
    program: Option<Vec<String>>,
    shell: Option<String>,
    seconds: Option<f64>,
    idle: Option<f64>,
    #[serde(default)]
    repeatable: bool,
    output: Option<usize>,
    dependencies: Option<GivenDependencies>,
    builds: Option<BuildFolder>,
    #[serde(default)]
    read: Vec<String>,
}

fn exec(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "worktree:exec", values);
    let tree = args.text(0)?;
    let ExecOptions { program, shell, seconds, idle, repeatable, output, dependencies, builds, read } =
        args.data(1, "options")?;
    let run = match (program, shell) {
        (Some(words), None) if words.first().is_some_and(|program| !program.is_empty()) => CommandLine::Program(words),
        (None, Some(text)) if !text.trim().is_empty() => CommandLine::Shell(text),
        _ => {
            return Err(invalid(
                "worktree:exec: give either a program, { \"make\", \"test\" }, or a text for the shell",
            ));
        }
    };
    let seconds = seconds.unwrap_or(SECONDS);
    if [Some(seconds), idle].into_iter().flatten().any(|limit| !(0.01..=MOST_SECONDS).contains(&limit)) {
        return Err(invalid(format!("worktree:exec: seconds and idle go from 0.01 to {MOST_SECONDS}")));
    }
    if output.is_some_and(|most| !(1024..=MOST_OUTPUT).contains(&most)) {
        return Err(invalid(format!("worktree:exec: output goes from 1024 to {MOST_OUTPUT} bytes")));
    }
    let command = ExecCommand { tree, run, seconds, idle, repeatable, output, dependencies, builds, read };
    Ok(Request::Effect(Box::new(Effect::Exec(command)), convert::to_lua))
}
