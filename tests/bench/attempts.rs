//! What the host adds to git: branch, worktree, one change, commit, diff, merge and removal, on a repository of many
//! files, beside the bare commands.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::{Cost, Row, cost, pairs};

/// The files of the repository.
const FILES: usize = 5000;

const FLOW: &str = r#"
local git = require("@nietz/git")
local task = require("@nietz/task")
return require("@nietz").flow {
  name = "attempts", summary = "Attempts", permissions = { git = true },
  params = { count = { type = "integer", default = 1 }, lanes = { type = "integer", default = 1 } },
  run = function(ctx)
    local base = "nietz/" .. ctx.run
    local start = git.head().commit
    git.branch(base, start)
    local function attempt(name)
      local branch = base .. "-" .. name
      git.branch(branch, start)
      local tree = git.worktree { name = name, branch = branch }
      tree:write("changed/" .. name .. ".txt", "a change\n")
      local commit = tree:commit("a change").commit
      git.diff(start, commit)
      tree:remove()
      return branch
    end
    local lanes = {}
    for lane = 1, ctx.params.lanes do
      lanes["lane" .. lane] = function()
        local made = {}
        for index = 1, ctx.params.count do
          table.insert(made, attempt("l" .. lane .. "n" .. index))
        end
        return made
      end
    end
    for _, made in task.all(lanes) do
      for _, branch in made do
        assert(git.merge { from = branch, into = base, message = "merge" }.commit)
      end
    end
    return true
  end,
}
"#;

/// Four attempts beside the bare commands, and four side by side beside four one by one.
pub(crate) fn rows(count: usize) -> [Row; 2] {
    let attempts = Attempts::new();
    let (ours, floors) = pairs(count, || attempts.ours(4, 1), || attempts.bare(4));
    let beside_git = Row::ratio("4 attempts on 5,000 files, beside bare git", &ours, &floors, 1.3);
    let (ours, floors) = pairs(count, || attempts.ours(1, 4), || attempts.ours(4, 1));
    [beside_git, Row::ratio("4 attempts side by side, beside one by one", &ours, &floors, 1.0)]
}

/// A repository with a flow in it.
struct Attempts {
    folder: tempfile::TempDir,
    next: std::cell::Cell<u32>,
}

impl Attempts {
    fn new() -> Attempts {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = folder.path().join("work");
        for index in 0..FILES {
            let path = work.join(format!("src/d{}/f{index}.txt", index % 100));
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            std::fs::write(path, format!("file {index}\n").repeat(40)).expect("a file");
        }
        std::fs::create_dir_all(work.join("flows")).expect("a folder");
        std::fs::write(work.join("flows/attempts.lua"), FLOW).expect("a file");
        let attempts = Attempts { folder, next: std::cell::Cell::new(0) };
        for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "first"]] {
            cost(git(&work).args(words));
        }
        attempts
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn number(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// So many attempts, one after the other, in so many lanes side by side.
    fn ours(&self, count: usize, lanes: usize) -> Cost {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nietz"));
        command.current_dir(self.work()).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("NIETZ_HOME", self.folder.path().join("home")).env("NIETZ_RUN", format!("b{}", self.number()));
        command.args(["run", "attempts", "--trust", "--count", &count.to_string(), "--lanes", &lanes.to_string()]);
        cost(&mut command)
    }

    /// The same with git alone, in a process of its own.
    fn bare(&self, count: usize) -> Cost {
        let this = std::env::current_exe().expect("this program has a path");
        let words = ["floor", "git", &count.to_string(), &self.number().to_string()];
        cost(Command::new(this).args(words).arg(self.work()))
    }
}

pub(crate) fn git(work: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(work).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.org");
    }
    command
}

/// The bare commands: `git COUNT NUMBER FOLDER`.
pub(crate) fn floor(words: &[&str]) {
    let [count, number, work] = words else { panic!("which repository?") };
    let work = Path::new(work);
    let run = |folder: &Path, words: &[&str]| {
        let output = git(folder).args(words).output().expect("git is there");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let base = format!("bare/{number}");
    run(work, &["branch", &base, "main"]);
    for index in 0..count.parse().expect("a number") {
        let branch = format!("{base}-{index}");
        let tree = work.with_file_name(format!("bare-{number}-{index}"));
        let path = tree.display().to_string();
        run(work, &["branch", &branch, "main"]);
        run(work, &["worktree", "add", "-q", &path, &branch]);
        std::fs::create_dir_all(tree.join("changed")).expect("a folder");
        std::fs::write(tree.join(format!("changed/{index}.txt")), "a change\n").expect("a file");
        run(&tree, &["add", "-A"]);
        run(&tree, &["commit", "-q", "-m", "a change"]);
        run(&tree, &["diff", "main", "HEAD"]);
        let merged = run(work, &["merge-tree", "--write-tree", &base, &branch]);
        let commit = run(work, &["commit-tree", &merged, "-p", &base, "-p", &branch, "-m", "merge"]);
        run(work, &["update-ref", &format!("refs/heads/{base}"), &commit]);
        run(work, &["worktree", "remove", "--force", &path]);
    }
}
