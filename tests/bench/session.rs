//! The git work of a session with attempts, beside a shell script of the very commands of git that it comes to.
//!
//! A run whose `git` is this program writes the script: each command with its folder, variables and input. Then both are run in
//! turn, each in a fresh copy of the same repository at the same place, so that all ids and paths are the same. What is left
//! between them is what the host does around git: starting it, reading what it says, checks, the journal, and the start of the program.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::attempts::git;
use crate::measure::{Cost, Row, cost, pairs};

/// What an attempt of a migration has git do, as the journals of such sessions have it, without commands and models.
const FLOW: &str = r#"
local git = require("@nietz/git")
return require("@nietz").flow {
  name = "session", summary = "A session's git work", permissions = { git = true },
  params = { count = { type = "integer", default = 1 } },
  run = function(ctx)
    local base = "nietz/" .. ctx.run
    git.head()
    local start = git.snapshot().commit
    git.branch(base .. "-validation", start)
    local validation = git.worktree { name = "validation", branch = base .. "-validation" }
    git.files(start, "**")
    git.branch(base, start)
    for index = 1, ctx.params.count do
      local branch = base .. "-a" .. index
      git.branch(branch, start)
      local tree = git.worktree { name = "a" .. index, branch = branch }
      tree:write("changed-" .. index .. ".txt", "a change\n")
      local commit = tree:commit("a change").commit
      tree:restore { from = start, globs = { "check.sh" } }
      validation:move(commit)
      git.changed(start, commit)
      git.diff(start, commit)
      tree:remove { discard = true }
      assert(git.merge { from = branch, into = base, message = "merge" }.commit)
    end
    validation:remove { discard = true }
    git.brings(start, base)
    return true
  end,
}
"#;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A few files and attempts, and many of both.
pub(crate) fn rows(count: usize) -> Vec<Row> {
    let shapes = [(12, 3), (2000, 10)];
    let row = |(files, attempts): (usize, usize)| {
        let session = Session::new(files, attempts);
        let script = session.record();
        let (ours, floors) = pairs(count, || session.ours(PATH), || session.floor(&script));
        Row::ratio(&format!("git work, {attempts} attempts on {files} files, beside a script"), &ours, &floors, 1.1)
    };
    shapes.into_iter().map(row).collect()
}

struct Session {
    folder: tempfile::TempDir,
    attempts: usize,
}

impl Session {
    fn new(files: usize, attempts: usize) -> Session {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = folder.path().join("template/work");
        for index in 0..files {
            let path = work.join(format!("src/d{}/f{index}.txt", index % 40));
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            std::fs::write(path, format!("file {index}\n").repeat(40)).expect("a file");
        }
        std::fs::write(work.join("check.sh"), "exit 0\n").expect("a file");
        std::fs::create_dir_all(work.join("flows")).expect("a folder");
        std::fs::write(work.join("flows/session.lua"), FLOW).expect("a file");
        for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "first"]] {
            cost(git(&work).args(words));
        }
        Session { folder, attempts }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a fresh copy of everything in its place.
    fn fresh(&self) {
        let now = self.place("now");
        if now.exists() {
            std::fs::remove_dir_all(&now).expect("it is ours");
        }
        cost(Command::new("cp").arg("-a").arg(self.place("template")).arg(now));
        // What was written is on the disk before anything is measured.
        cost(&mut Command::new("sync"));
    }

    fn ours(&self, path: &str) -> Cost {
        self.fresh();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nietz"));
        command.current_dir(self.place("now/work")).env_clear().env("PATH", path);
        command.env("NIETZ_HOME", self.place("now/home")).env("NIETZ_RUN", "r1");
        cost(command.args(["run", "session", "--trust", "--count", &self.attempts.to_string()]))
    }

    fn floor(&self, script: &Path) -> Cost {
        self.fresh();
        cost(Command::new("sh").arg(script).env_clear().env("PATH", PATH).current_dir(self.place("now/work")))
    }

    /// Runs it once with a `git` that writes down how it is called, and returns a script that does the same.
    fn record(&self) -> PathBuf {
        let bin = self.place("bin");
        std::fs::create_dir(&bin).expect("a folder");
        let this = std::env::current_exe().expect("this program has a path");
        let wrapper = format!("#!/bin/sh\nexec '{}' git-recorded '{}' \"$@\"\n", this.display(), bin.display());
        std::fs::write(bin.join("git"), wrapper).expect("a file");
        std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        self.ours(&format!("{}:{PATH}", bin.display()));
        let recorded = std::fs::read_to_string(bin.join("script")).expect("git was called");
        let script = self.place("script.sh");
        std::fs::write(&script, self.with_files(&recorded)).expect("a file");
        script
    }

    /// Adds what the run did to files by itself, where it did so: a change before a worktree is looked at for the first time, its
    /// folders when it is over, and temporary folders.
    fn with_files(&self, recorded: &str) -> String {
        let (mut script, mut changed) = (String::new(), Vec::new());
        for line in recorded.lines() {
            let tree = word_after(line, "GIT_WORK_TREE=").filter(|tree| tree.contains("/worktrees/"));
            let attempt = tree.as_deref().and_then(|tree| Some(tree.rsplit_once("/r1-a")?.1.to_owned()));
            if let (Some(tree), Some(number)) = (&tree, attempt)
                && line.contains("'--debug'")
                && !changed.contains(&number)
            {
                let _ = writeln!(script, "echo 'a change' > '{tree}/changed-{number}.txt'");
                changed.push(number);
            }
            // Temporary folders of calls: of an index, or to stand in.
            let index =
                word_after(line, "GIT_INDEX_FILE=").and_then(|index| Path::new(&index).parent().map(Path::to_owned));
            let stands_in = word_after(line, "cd ").map(PathBuf::from);
            let is_temporary =
                |folder: &PathBuf| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".tmp"));
            for folder in index.into_iter().chain(stands_in).filter(is_temporary) {
                let _ = writeln!(script, "mkdir -p '{}'", folder.display());
            }
            let _ = writeln!(script, "{line}");
            if let (Some(tree), true) = (&tree, line.contains("'--contains'")) {
                let git_dir = word_after(line, "GIT_DIR=").expect("each names its repository");
                let _ = writeln!(script, "rm -rf '{tree}' '{git_dir}'");
            }
        }
        assert_eq!(changed.len(), self.attempts, "each attempt changes a file: {recorded}");
        println!("{} attempts come to {} commands of git", self.attempts, recorded.lines().count());
        script
    }
}

/// The quoted word behind a name in a line of the script.
fn word_after(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("{name}'"))?;
    rest.split_once('\'').map(|(word, _)| word.to_owned())
}

/// A word as a shell has it.
fn quoted(word: &[u8]) -> String {
    let word = String::from_utf8(word.to_vec()).expect("all of it is text");
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Is git for a run that is written down: `git-recorded FOLDER WORDS…`.
pub(crate) fn recorded(words: &[OsString]) -> ! {
    let (folder, words) = words.split_first().expect("where is it written?");
    let folder = PathBuf::from(folder);
    let number = std::fs::read_dir(&folder).expect("it is there").count();
    let input = folder.join(format!("input-{number}"));
    let mut child = Command::new("/usr/bin/git").args(words).stdin(Stdio::piped()).spawn().expect("git is there");
    let mut pipe = child.stdin.take().expect("it is a pipe");
    let mut copy = std::fs::File::create(&input).expect("a file");
    // What talks to git while it answers is passed on piece by piece.
    let mut stdin = std::io::stdin().lock();
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = std::io::Read::read(&mut stdin, &mut piece) {
        copy.write_all(&piece[..length]).expect("written");
        if pipe.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    drop(pipe);
    let status = child.wait().expect("it ends").code().unwrap_or(128);
    let mut line = format!("cd {} &&", quoted(std::env::current_dir().expect("it has one").as_os_str().as_bytes()));
    // What the shell between has added is left out.
    for (name, value) in
        std::env::vars_os().filter(|(name, _)| !["PWD", "OLDPWD", "SHLVL", "_"].iter().any(|own| name == own))
    {
        let value = if name == "PATH" { OsString::from(PATH) } else { value };
        let _ = write!(line, " {}={}", name.display(), quoted(value.as_bytes()));
    }
    line.push_str(" /usr/bin/git");
    for word in words {
        let _ = write!(line, " {}", quoted(word.as_bytes()));
    }
    let _ = writeln!(line, " < {} > /dev/null 2>&1; [ $? = {status} ] || exit 1", quoted(input.as_os_str().as_bytes()));
    let mut script = std::fs::File::options().create(true).append(true).open(folder.join("script")).expect("a file");
    script.write_all(line.as_bytes()).expect("written");
    std::process::exit(status);
}
