//! The promise: a flow goes through a change of any size file by file, with hunks and numbers of lines that are git's own, and
//! may do so without the right to make branches.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git::{git, init};

const FLOW: &str = r#"
local nietz, git, json = require("@nietz"), require("@nietz/git"), require("@nietz/json")
return nietz.flow {
  name = "look", summary = "Looks at a change", host_api = 2, permissions = { git = "read" },
  params = {
    from = { type = "string" }, staged = { type = "boolean" }, unstaged = { type = "boolean" },
    path = { type = "string" }, context = { type = "integer" },
  },
  run = function(ctx)
    local pages, change = json.array {}, table.clone(ctx.params)
    repeat
      local page = git.hunks(change)
      table.insert(pages, page)
      change.after = page.files[#page.files] and page.files[#page.files].path
    until not page.cut
    return pages
  end,
}
"#;

fn env() -> Env {
    Env::new().flow("look", FLOW).file(".gitignore", ".nietz\n")
}

/// Commits everything, and returns the commit.
fn commit(env: &Env) -> String {
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-q", "-m", "more"]);
    git(&env.workspace(), ["rev-parse", "HEAD"])
}

/// All files of all pages.
fn files(pages: &Value) -> Vec<Value> {
    let pages = pages.as_array().expect("a list of pages");
    pages.iter().flat_map(|page| page["files"].as_array().cloned().expect("files")).collect()
}

fn is_link(mode: &Value) -> bool {
    mode == "120000"
}

/// Writes what a flow was given as a patch again. Files that are no text have none.
fn patch(files: &[Value]) -> String {
    let quoted = |prefix: &str, path: &Value| format!("{:?}", format!("{prefix}{}", path.as_str().expect("a path")));
    let mut patch = String::new();
    for file in files.iter().filter(|file| file["binary"] != true) {
        let old = quoted("a/", if file["old_path"].is_null() { &file["path"] } else { &file["old_path"] });
        let new = quoted("b/", &file["path"]);
        let mut part = |head: String, hunks: &[Value], (before, after): (bool, bool)| {
            patch += &format!("diff --git {old} {new}\n{head}");
            if !hunks.is_empty() {
                patch += &format!("--- {}\n", if before { old.as_str() } else { "/dev/null" });
                patch += &format!("+++ {}\n", if after { new.as_str() } else { "/dev/null" });
            }
            for hunk in hunks {
                let number = |name: &str| hunk[name].as_u64().expect("a number");
                let (old, new) =
                    ((number("old_start"), number("old_count")), (number("new_start"), number("new_count")));
                patch += &format!(
                    "@@ -{},{} +{},{} @@\n{}",
                    old.0,
                    old.1,
                    new.0,
                    new.1,
                    hunk["text"].as_str().expect("text")
                );
            }
        };
        let (old_mode, new_mode) = (&file["old_mode"], &file["new_mode"]);
        let text = |mode: &Value| mode.as_str().expect("a mode").to_owned();
        let hunks = file["hunks"].as_array().expect("hunks");
        let modes = if old_mode == new_mode || old_mode.is_null() || new_mode.is_null() {
            String::new()
        } else {
            format!("old mode {}\nnew mode {}\n", text(old_mode), text(new_mode))
        };
        match file["kind"].as_str().expect("a kind") {
            "added" => part(format!("new file mode {}\n", text(new_mode)), hunks, (false, true)),
            "deleted" => part(format!("deleted file mode {}\n", text(old_mode)), hunks, (true, false)),
            "modified" if is_link(old_mode) != is_link(new_mode) => {
                part(format!("deleted file mode {}\n", text(old_mode)), &hunks[..1], (true, false));
                part(format!("new file mode {}\n", text(new_mode)), &hunks[1..], (false, true));
            }
            "modified" => part(modes, hunks, (true, true)),
            "renamed" => {
                let (from, to) = (quoted("", &file["old_path"]), quoted("", &file["path"]));
                part(format!("{modes}rename from {from}\nrename to {to}\n"), hunks, (true, true));
            }
            other => panic!("{other}"),
        }
    }
    patch
}

/// Holds each line to the file that it is a line of.
fn check_lines(env: &Env, files: &[Value], before: &str) {
    for file in files.iter().filter(|file| !is_link(&file["old_mode"]) && !is_link(&file["new_mode"])) {
        let path = file["path"].as_str().expect("a path");
        let old_path = file["old_path"].as_str().unwrap_or(path);
        let show = |commit: &str, path: &str| {
            let text = std::process::Command::new("git")
                .args(["show", &format!("{commit}:{path}")])
                .current_dir(env.workspace())
                .output();
            String::from_utf8_lossy(&text.expect("git is there").stdout).into_owned()
        };
        let (old, new) = (show(before, old_path), show("HEAD", path));
        let mut counts = BTreeMap::<String, u64>::new();
        for line in
            file["hunks"].as_array().expect("hunks").iter().flat_map(|hunk| hunk["lines"].as_array().expect("lines"))
        {
            *counts.entry(line["kind"].as_str().expect("a kind").to_owned()).or_default() += 1;
            for (number, text) in [(&line["old_line"], &old), (&line["new_line"], &new)] {
                let Some(number) = number.as_u64() else { continue };
                let found = text.split('\n').nth(number as usize - 1);
                assert_eq!(found, line["text"].as_str(), "{path}, line {number}");
                let is_last = text.split('\n').count() == number as usize;
                assert_eq!(is_last, line["no_newline"] == true, "{path}, line {number}");
            }
        }
        if file["kind"] == "added" {
            assert_eq!(counts.get("added").copied().unwrap_or_default(), new.lines().count() as u64, "{path}");
        }
    }
}

fn lines(count: usize, changed: &[usize]) -> String {
    (1..=count)
        .map(|at| format!("{}{at} of many lines\n", if changed.contains(&at) { "changed " } else { "" }))
        .collect()
}

#[test]
fn hunks_are_gits_own_and_git_applies_them_to_the_same_files() {
    let env = env();
    let work = env.workspace();
    for (path, text) in [
        ("a.txt", lines(40, &[])),
        ("plain", "1\n2\n".into()),
        ("gone.txt", "gone\n".into()),
        ("empty", String::new()),
        ("old name.rs", lines(30, &[])),
        ("moved.md", lines(9, &[])),
        ("run.sh", "#!/bin/sh\n".into()),
        ("no-end", "a\nb".into()),
        ("end", "a\nb\n".into()),
        ("tab\there", "x\n".into()),
        ("quote\"d\\", "x\n".into()),
        ("ünï cöde", "grüße\n".into()),
        ("crlf", "a\r\nb\r\n".into()),
        ("link", "a file\n".into()),
        ("dashes", "-- a\n++ b\n@@ -1 +1 @@\ndiff --git a/x b/x\n".into()),
        ("b/x", "x\n".into()),
        ("x b/x", "y\n".into()),
        ("into", "a file of its own\n".into()),
        ("into-x", "x\n".into()),
    ] {
        env.write(path, text);
    }
    env.write("picture", [0_u8, 159, 1, 0, 2]);
    init(&work);
    let before = git(&work, ["rev-parse", "HEAD"]);

    env.write("a.txt", lines(42, &[2, 20]));
    env.write("new.txt", "no end");
    env.write("new-empty", "");
    env.write("folder/deep.rs", "fn main() {}\n");
    for gone in ["gone.txt", "empty", "link", "into"] {
        std::fs::remove_file(env.path(gone)).expect("it is there");
    }
    symlink("a.txt", env.path("link")).expect("it can be made");
    std::fs::rename(env.path("old name.rs"), env.path("new näme\t.rs")).expect("it is there");
    env.write("new näme\t.rs", lines(30, &[7]));
    std::fs::rename(env.path("moved.md"), env.path("folder/moved.md")).expect("it is there");
    std::fs::set_permissions(env.path("run.sh"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    for (path, text) in [
        ("no-end", "a\nb\n"),
        ("end", "a\nc"),
        ("tab\there", "y\n"),
        ("quote\"d\\", "y\n"),
        ("ünï cöde", "Grüße\n"),
        ("crlf", "a\r\nc\r\n"),
        ("dashes", "-- b\n++ a\n@@ -1 +2 @@\ndiff --git a/x b/y\n"),
        ("b/x", "z\n"),
        ("x b/x", "z\n"),
        ("into/deep", "nothing of that is here\n"),
        ("into-x", "y\n"),
    ] {
        env.write(path, text);
    }
    env.write("picture", [0_u8, 159, 1, 0, 3]);
    let after = commit(&env);

    let pages = env.run(["look", "--from", &before]).go().result();
    let files = files(&pages);
    let kinds: BTreeMap<String, String> = files
        .iter()
        .map(|file| {
            (file["path"].as_str().expect("a path").to_owned(), file["kind"].as_str().expect("a kind").to_owned())
        })
        .collect();
    let listed = git(&work, ["-c", "core.quotePath=false", "diff", "--name-only", "-z", "-M", &before, &after]);
    assert_eq!(kinds.keys().cloned().collect::<Vec<_>>(), {
        let mut names: Vec<String> = listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        names.sort();
        names
    });
    let file = |path: &str| files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path}"));
    assert_eq!(
        (&file("new näme\t.rs")["kind"], &file("new näme\t.rs")["old_path"]),
        (&json!("renamed"), &json!("old name.rs"))
    );
    assert_eq!(file("folder/moved.md")["hunks"], json!([]));
    assert_eq!((&file("picture")["binary"], &file("picture")["kind"]), (&json!(true), &json!("modified")));
    assert_eq!((&file("run.sh")["old_mode"], &file("run.sh")["new_mode"]), (&json!("100644"), &json!("100755")));
    // Two files that are empty are one to git.
    assert_eq!((&file("gone.txt")["kind"], &file("new-empty")["old_path"]), (&json!("deleted"), &json!("empty")));
    assert_eq!(file("a.txt")["hunks"].as_array().map(Vec::len), Some(3));
    check_lines(&env, &files, &before);

    // What the flow was given makes the one commit of the other.
    git(&work, ["checkout", "-q", &before]);
    env.write("the.patch", patch(&files));
    git(&work, ["apply", "--index", "the.patch"]);
    git(&work, ["checkout", &after, "--", "picture"]);
    assert_eq!(git(&work, ["write-tree"]), git(&work, ["rev-parse", &format!("{after}^{{tree}}")]));

    // A rename is one also where its path alone is asked for, and each side of a folder is told apart from its neighbours.
    git(&work, ["reset", "-q", "--hard", &after]);
    let only = |path: &str| {
        let pages = env.run(["look", "--from", &before, "--path", path]).var("NIETZ_RUN", "r2").go().result();
        std::fs::remove_dir_all(env.path(".nietz")).expect("it is there");
        crate::cli::git_hunks::files(&pages)
    };
    assert_eq!(only("new näme\t.rs"), [file("new näme\t.rs").clone()]);
    assert_eq!(only("folder/"), [file("folder/deep.rs").clone(), file("folder/moved.md").clone()]);
    assert_eq!(only("fold"), [] as [Value; 0]);
    // Between a file and what is in the folder of its name there may be others.
    assert_eq!(only("into"), [file("into").clone(), file("into/deep").clone()]);
    assert_eq!(only("a.txt"), [file("a.txt").clone()]);
}

#[test]
fn a_change_of_any_size_is_gone_through_in_bounded_pages() {
    // A result has 16 MB at most, and each line as a table is much of that.
    let counts = "for _, file in page.files do for _, hunk in file.hunks do \
        hunk.count, hunk.last, hunk.lines = #hunk.lines, hunk.lines[#hunk.lines], nil end end table.insert(pages, page)";
    let flow = FLOW.replace("table.insert(pages, page)", counts);
    let env = Env::new().flow("look", &flow).file(".gitignore", ".nietz\n");
    init(&env.workspace());
    let before = git(&env.workspace(), ["rev-parse", "HEAD"]);
    let (some, more) = (lines(6000, &[]), lines(30_000, &[]));
    for (path, text) in [("a", &some), ("b", &some), ("c", &more), ("d", &some), ("e", &some), ("f/g", &some)] {
        env.write(path, text);
    }
    commit(&env);
    let pages = env.run(["look", "--from", &before]).go().result();
    for page in pages.as_array().expect("pages") {
        let text: usize = page["files"]
            .as_array()
            .expect("files")
            .iter()
            .flat_map(|file| file["hunks"].as_array().expect("hunks"))
            .map(|hunk| hunk["text"].as_str().expect("text").len())
            .sum();
        assert!(text <= 256 << 10, "{text}");
    }
    let files = files(&pages);
    let names: Vec<&str> = files.iter().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f/g"]);
    for file in &files {
        let cut = file["path"] == "c";
        assert_eq!(file["cut"] == true, cut, "{}", file["path"]);
        let (count, last) = (file["hunks"][0]["count"].as_u64().expect("a number"), &file["hunks"][0]["last"]);
        if cut {
            assert!((5000..29_999).contains(&count), "{count}");
        } else {
            assert_eq!(count, 6000, "{}", file["path"]);
        }
        assert_eq!(last["text"], format!("{} of many lines", last["new_line"]));
    }
    assert_eq!(pages.as_array().map(Vec::len), Some(4), "two small files together, the big one alone");
}

#[test]
fn what_is_staged_and_what_is_not_have_hunks_and_a_patch_has_one_path_of_them() {
    let looks = FLOW.replace("return pages", "return { pages = pages, staged = git.staged({ path = 'b.txt' }).patch, \
        unstaged = git.unstaged({ path = 'a.txt' }).patch, diff = git.diff('HEAD~1', 'HEAD', { path = 'b.txt' }).patch, \
        nothing = git.diff('HEAD~1', 'HEAD', { path = 'nowhere' }).patch, wrong = pcall(git.diff, 'HEAD~1', 'HEAD', { path = '../x' }) }");
    let env = Env::new().flow("look", &looks).file(".gitignore", ".nietz\n").file("a.txt", "a\n").file("b.txt", "b\n");
    let work = env.workspace();
    init(&work);
    env.write("a.txt", "2\n");
    env.write("b.txt", "2\n");
    commit(&env);
    for (a, b) in [("staged a\n", "staged b\n"), ("changed a\n", "changed b\n")] {
        env.write("a.txt", a);
        env.write("b.txt", b);
        if a.starts_with("staged") {
            git(&work, ["add", "-A"]);
        }
    }
    let index = std::fs::read(env.path(".git/index")).expect("an index");
    let staged = env.run(["look", "--staged"]).go().result();
    let unstaged = env.run(["look", "--unstaged", "--context", "0"]).var("NIETZ_RUN", "r2").go().result();
    assert_eq!(std::fs::read(env.path(".git/index")).expect("an index"), index);
    let text =
        |found: &Value| files(&found["pages"]).iter().map(|file| file["hunks"][0]["text"].clone()).collect::<Vec<_>>();
    assert_eq!(text(&staged), ["-2\n+staged a\n", "-2\n+staged b\n"]);
    assert_eq!(text(&unstaged), ["-staged a\n+changed a\n", "-staged b\n+changed b\n"]);
    let one = |patch: &Value, path: &str, line: &str| {
        let patch = patch.as_str().expect("a patch");
        assert!(patch.matches("diff --git").count() == 1 && patch.contains(path) && patch.contains(line), "{patch}");
    };
    one(&staged["staged"], "a/b.txt", "+staged b\n");
    one(&staged["unstaged"], "a/a.txt", "+changed a\n");
    one(&staged["diff"], "a/b.txt", "+2\n");
    assert_eq!((&staged["nothing"], &staged["wrong"]), (&json!(""), &json!(false)));
}

/// One run with each of these permissions: what the functions do, or the code and hint that they raise.
const MAY: &str = r#"
local git = require("@nietz/git")
local nietz = require("@nietz")
local function tried(name, ...)
  local ok, problem = pcall(git[name], ...)
  return if ok then "fine" else `{problem.code}: {problem.hint}`
end
return nietz.flow {
  name = "may", summary = "s", host_api = 2, permissions = { git = "read" },
  run = function()
    local found, head = {}, git.head().commit
    for name, arguments in {
      commit_of = { "main" }, snapshot = {}, resolve = { "main" }, merge_base = { "main", "HEAD" }, log = { { most = 1 } },
      staged = {}, unstaged = {}, diff = { "main", "HEAD" }, hunks = { { from = "main" } }, changed = { "main", "HEAD" },
      brings = { "main", "HEAD" }, stat = { "main", "HEAD" }, remains = { "r0" }, discard = { "r0", "w" }, files = { "main" }, branch = { "nietz/new", head }, delete_branch = { "nietz/new" },
      merge = { { from = "main", into = "nietz/new", message = "m" } }, worktree = { { name = "w", branch = "nietz/new" } },
    } do
      found[name] = tried(name, table.unpack(arguments))
    end
    return found
  end,
}
"#;

#[test]
fn a_flow_that_may_read_reads_everything_and_changes_nothing() {
    let env = Env::new().trusting("").flow("may", MAY).file(".gitignore", ".nietz\n");
    let work = env.workspace();
    init(&work);
    env.write("new.txt", "new\n");
    let ended = env.nietz(["run", "may"]).go().exits(5);
    assert_snapshot!(env.normal(&ended.stderr), @r"
    error[folder-untrusted]: may asks for what you do not trust /tmp/test/work with
      - it reads the whole repository and uncommitted work (git=read)
    hint: look at it; if you trust it with this: nietz trust add /tmp/test/work --allow 'git=read'; for one run alone: --trust
    ");
    env.nietz(["trust", "add", ".", "--allow", "git=read"]).go().exits(0);
    let result = env.run(["may"]).go().result();
    for (name, came) in result.as_object().expect("what came of each") {
        let refused = ["branch", "delete_branch", "merge", "worktree", "discard"].contains(&name.as_str());
        let hint = "permission-refused: add `permissions = { git = true }` to its nietz.flow{…}";
        assert_eq!(came, if refused { hint } else { "fine" }, "{name}");
    }
    assert_eq!(git(&work, ["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    let plan = env.nietz(["run", "may", "--plan"]).go().exits(0).stdout;
    assert!(plan.contains("reads the whole repository and uncommitted work\n"), "{plan}");
    // It is seen without running it, too.
    let checked = env.nietz(["check", "flows/may.lua"]).go().exits(0);
    assert!(!checked.stdout.contains("permission-refused"), "{}", checked.stdout);
    env.write(
        "flows/wrong.lua",
        MAY.replace("\"may\"", "\"wrong\"").replace("git.head()", "git.worktree({ name = 'w', branch = 'nietz/w' })"),
    );
    let checked = env.nietz(["check", "flows/wrong.lua"]).go().exits(4);
    assert!(
        checked.stdout.contains("makes branches and worktrees")
            || checked.stderr.contains("makes branches and worktrees"),
        "{checked:?}"
    );

    // More than reading is asked for anew; less than all is not.
    env.write("flows/may.lua", MAY.replace("git = \"read\"", "git = true"));
    let ended = env.nietz(["run", "may"]).var("NIETZ_RUN", "r2").go().exits(5);
    assert!(ended.stderr.contains("makes branches and worktrees of its own (git)\n"), "{}", ended.stderr);
    env.nietz(["trust", "revoke", "."]).go().exits(0);
    env.nietz(["trust", "add", ".", "--allow", "git"]).go().exits(0);
    let result = env.run(["may"]).var("NIETZ_RUN", "r2").go().result();
    assert_eq!(result["branch"], "fine");
    env.write("flows/may.lua", MAY);
    env.run(["may"]).var("NIETZ_RUN", "r3").go().exits(0);
    env.write("flows/may.lua", MAY.replace("git = \"read\"", "git = \"raed\""));
    let ended = env.nietz(["run", "may"]).var("NIETZ_RUN", "r4").go().exits(4);
    assert!(ended.stderr.contains("git must be true, false or \"read\""), "{}", ended.stderr);
}
