//! The promise: a project is found from any folder below it, nobody else's folder takes over, what only looks leaves no run,
//! and neither does what was refused before it began.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nietz::engine::run_records::RunRecords;
use serde_json::Value;

use crate::support::env::Env;

const FLOW: &str = r#"
local documents = require("@nietz/documents")
local git = require("@nietz/git")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
local notes = documents.collection("notes")
local function command(run, reads_only)
  return { summary = "A command", reads_only = reads_only, run = run }
end
return nietz.flow {
  name = "shelf", summary = "Keeps notes",
  permissions = { llm = true, git = true },
  collections = { notes = { path = "notes/{slug}.yaml", schema = { type = "object" } } },
  commands = {
    list = command(function() ui.say("here they are") return #notes:list() end, true),
    save = command(function() notes:save({ slug = "a" }, { key = { slug = "a" } }) end, true),
    ask = command(function() return ui.ask({ id = "q", prompt = "What?" }) end, true),
    chat = command(function() return llm.chat({ prompt = "Hello" }).text end, true),
    branch = command(function() return git.head().commit end),
    wrong = command(function() nietz.usage("the title is too long", "a shorter one") end),
    look = command(function() ui.say("here they are") return #notes:list() end),
    drop = command(function()
      if not ui.confirm({ id = "sure", prompt = "Drop them?", default = false }) then return 0 end
      notes:save({ slug = "a" }, { key = { slug = "a" } })
      return 1
    end),
    asked = command(function() ui.ask({ id = "q", prompt = "What?", default = "x" }) return git.head().commit end),
  },
  run = function() ui.say("done") return 1 end,
}
"#;

const PLAIN: &str = r#"
return require("@nietz").flow { name = "plain", summary = "Says a word", run = function() return "plain" end }
"#;

fn runs(env: &Env) -> Vec<String> {
    let listed = env.nietz(["runs", "--json"]).go().exits(0).stdout;
    let id = |line: &str| {
        serde_json::from_str::<Value>(line).expect("it is JSON")["run"].as_str().expect("it is named").to_owned()
    };
    listed.lines().map(id).collect()
}

fn init(folder: &Path) {
    let made = Command::new("git").arg("init").arg("-q").arg(folder).env_clear().env("PATH", "/usr/bin:/bin").status();
    assert!(made.expect("git is there").success());
}

#[test]
fn a_project_is_found_from_below_and_typed_paths_stay_where_they_were_typed() {
    let env = Env::new().flow("shelf", FLOW).file("a/b/answers.yaml", "q: from b\n");
    let ended = env.nietz(["run", "shelf", "--json"]).within("a/b").go().exits(0);
    assert_eq!(ended.result(), 1);
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("working for ")).collect();
    assert_eq!(told.len(), 1, "{}", ended.stderr);
    assert!(env.normal(told[0]).contains("/tmp/test/work, which has flows"), "{}", told[0]);
    assert!(env.journal_path().is_file() && !env.path("a/b/.nietz").exists(), "the run is the project's");
    assert!(env.nietz(["runs"]).within("a").go().exits(0).stdout.contains("shelf"));
    // Nothing is told where the user is there, or said so themselves.
    for call in [env.nietz(["runs"]), env.nietz(["runs", "-C", "../.."]).within("a/b")] {
        let ended = call.go().exits(0);
        assert!(!ended.stderr.contains("working for"), "{}", ended.stderr);
        assert!(ended.stdout.contains("shelf"));
    }
    // `-C` names the folder outright.
    assert!(!env.nietz(["runs", "-C", "."]).within("a/b").go().exits(0).stdout.contains("shelf"));
    let answered = env
        .nietz(["run", "shelf", "asked", "--answers", "answers.yaml", "--json"])
        .within("a/b")
        .var("NIETZ_RUN", "r2");
    assert_eq!(answered.go().failure(), "git-missing");
    let checked = env.nietz(["check"]).within("a/b").go().exits(0).stdout;
    assert!(checked.contains("flows/shelf.lua"), "{checked}");
}

#[test]
fn neither_a_repository_nor_a_folder_that_others_can_write_is_left() {
    let env = Env::new()
        .flow("shelf", FLOW)
        .file("shared/flows/plain.lua", PLAIN)
        .file("shared/in/x", "")
        .file("repo/in/x", "");
    init(&env.path("repo"));
    let missing = env.nietz(["run", "shelf", "--json"]).within("repo/in").go();
    assert!(missing.stderr.contains("there is no flow `shelf`"), "{}", missing.stderr);
    env.nietz(["run", "plain"]).within("shared/in").go().exits(0);
    let mode =
        |mode| std::fs::set_permissions(env.path("shared"), std::fs::Permissions::from_mode(mode)).expect("ours");
    for open in [0o777, 0o1777] {
        mode(open);
        let missing = env.nietz(["run", "plain"]).within("shared/in").go();
        assert!(missing.stderr.contains("there is no flow `plain`"), "{}", missing.stderr);
        let place = env.nietz(["where"]).within("shared/in").go().exits(0).stdout;
        assert!(place.contains("which can be written by everybody"), "{place}");
        // Whoever is there, or names it, has chosen it.
        env.nietz(["run", "plain"]).within("shared").var("NIETZ_RUN", &format!("here-{open}")).go().exits(0);
        let named =
            env.nietz(["run", "plain", "-C", ".."]).within("shared/in").var("NIETZ_RUN", &format!("named-{open}"));
        named.go().exits(0);
    }
}

#[test]
fn where_tells_the_project_and_every_place_also_with_a_broken_configuration() {
    let env = Env::new().file("nietz.yaml", "budget: [\n").file("a/x", "").config("models: [\n");
    let told = env.nietz(["where", "--json"]).within("a").go().exits(0).stdout;
    let all: Value = serde_json::from_str(&env.normal(&told)).expect("it is JSON");
    assert_eq!(all["project"], "/tmp/test/work");
    assert_eq!(all["here"], "/tmp/test/work/a");
    assert_eq!(all["runs"], "/tmp/test/work/.nietz/runs");
    assert_eq!((&all["data"], &all["packs"]), (&"/tmp/test/home".into(), &"/tmp/test/home/packs".into()));
    assert_eq!(all["config"][0]["path"], "/tmp/test/home/config.yaml");
    assert_eq!(
        (&all["config"][1]["path"], &all["config"][1]["exists"]),
        (&"/tmp/test/work/nietz.yaml".into(), &true.into())
    );
    assert!(all["found"].as_str().unwrap().contains("it has nietz.yaml"), "{all}");
    let lines = env.normal(&env.nietz(["where"]).go().exits(0).stdout);
    for part in ["project  /tmp/test/work", "the current folder", "state", "cache", "trust"] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    assert!(env.nietz(["runs"]).go().stderr.contains("error[config-invalid]"));
    assert!(!env.path(".nietz").exists());
}

#[test]
fn what_only_looks_leaves_no_run_and_may_do_nothing_else() {
    let env = Env::new().flow("shelf", FLOW);
    let ended = env.nietz(["run", "shelf", "list", "--json"]).go().exits(0);
    assert_eq!(ended.result(), 0);
    assert!(!env.path(".nietz").exists(), "not even a folder is left");
    env.nietz(["run", "shelf"]).go().exits(0);
    for command in ["list", "save", "ask", "chat"] {
        let ended = env.nietz(["run", "shelf", command]).stdin("an answer\n").var("NIETZ_RUN", "r2").go();
        let refused = ended.stderr.contains("error[permission-refused]: a command that only looks cannot do this");
        assert_eq!(refused, command != "list", "{command}: {}", ended.stderr);
        assert!(!ended.stderr.contains("resume with"), "{}", ended.stderr);
    }
    assert!(!env.path("notes").exists());
    assert_eq!(runs(&env), ["r1"], "the first to be shown is the run");
    let log = env.nietz(["log"]).go().exits(0).stdout;
    assert!(log.contains("run r1"), "{log}");
}

#[test]
fn a_command_that_came_to_nothing_leaves_no_run() {
    let env = Env::new().flow("shelf", FLOW).file("no.yaml", "sure: false\n").file("yes.yaml", "sure: true\n");
    for (arguments, result) in [(&["look"][..], 0), (&["drop", "--answers", "no.yaml"], 0)] {
        let ended = env.nietz(["run", "shelf"].into_iter().chain(arguments.iter().copied())).args(["--json"]).go();
        assert_eq!(ended.result(), result, "{arguments:?}");
        assert!(!env.path(".nietz").exists(), "{arguments:?}");
    }
    env.nietz(["run", "shelf", "drop", "--answers", "yes.yaml"]).go().exits(0);
    assert_eq!(runs(&env), ["r1"], "what changed something is kept");
}

#[test]
fn a_run_that_is_refused_before_it_began_leaves_nothing() {
    let env = Env::new().flow("shelf", FLOW).file("answers.yaml", "q: an answer\n").file("broken.yaml", "q: [\n");
    for (arguments, code) in [
        (&["run", "shelf", "branch"][..], "git-missing"),
        (&["run", "shelf", "wrong"], "usage"),
        (&["run", "shelf", "--answers", "broken.yaml"], "answer"),
        (&["run", "shelf", "--answers", "none.yaml"], ""),
    ] {
        let ended = env.nietz(arguments.iter().copied()).go();
        assert!(ended.code != Some(0) && ended.stderr.contains(code), "{arguments:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("resume with"), "{}", ended.stderr);
        assert!(!env.path(".nietz").exists(), "{arguments:?}");
        let records = RunRecords::new(&env.home()).folder().read_dir();
        let is_record = |entry: std::io::Result<std::fs::DirEntry>| {
            RunRecords::is_record(&entry.expect("an entry can be read").file_name().to_string_lossy())
        };
        assert!(!records.is_ok_and(|mut entries| entries.any(is_record)), "{arguments:?}");
    }
    // Somebody was asked before it: that is kept.
    env.nietz(["run", "shelf", "asked", "--answers", "answers.yaml"]).go().exits(1);
    assert_eq!(runs(&env), ["r1"]);
    std::fs::remove_dir_all(env.path(".nietz")).expect("it is ours");
    let bare = env.path("bare");
    Command::new("git").args(["init", "-q", "--bare"]).arg(&bare).env("PATH", "/usr/bin:/bin").status().expect("git");
    let flow = env.path("flows/shelf.lua").display().to_string();
    let ended = env.nietz(["run", &flow, "branch", "--trust", "-C", "bare"]).go().exits(1);
    assert!(ended.stderr.contains("error[git-missing]"), "{}", ended.stderr);
    assert!(!bare.join(".nietz").exists());
}

#[test]
fn a_repository_ignores_what_is_not_to_be_kept_and_nietz_s_folder_ignores_itself() {
    let env = Env::new().file(".gitignore", "target");
    env.nietz(["new", "persona", "one"]).go().exits(0);
    assert_eq!(env.read(".gitignore"), "target", "there is no repository");
    init(&env.workspace());
    let told = env.nietz(["new", "flow", "two"]).go().exits(0).stdout;
    assert!(told.contains("added .nietz/ to .gitignore"), "{told}");
    assert_eq!(env.read(".gitignore"), "target\n.nietz/\n");
    let told = env.nietz(["new", "flow", "three"]).go().exits(0).stdout;
    assert!(!told.contains(".gitignore"), "{told}");
    assert_eq!(env.read(".gitignore"), "target\n.nietz/\n");
    let env = env.flow("shelf", FLOW);
    env.nietz(["run", "shelf"]).go().exits(0);
    assert_eq!(env.read(".nietz/.gitignore"), "*\n");
}

#[test]
fn check_sees_what_a_command_that_only_looks_would_be_refused() {
    let flow = |field: &str| {
        format!(
            r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {{
  name = "peek", summary = "Peeks",
  commands = {{ look = {{ summary = "Looks", {field}, run = function() return ui.ask({{ id = "q", prompt = "What?" }}) end }} }},
  run = function() return 1 end,
}}
"#
        )
    };
    let env = Env::new();
    for (field, told) in [
        ("reads_only = true", "a command that only looks cannot do this: @nietz/ui `ask`"),
        ("reads_only = 1", "command `look`: reads_only must be true or false"),
        ("read_only = true", "did you mean `reads_only`?"),
    ] {
        env.write("flows/peek.lua", flow(field));
        let checked = env.nietz(["check", "flows/peek.lua"]).go().exits(4);
        assert!(checked.stdout.contains(told), "{}", checked.stdout);
    }
    env.write("flows/peek.lua", flow("reads_only = false"));
    env.nietz(["check", "flows/peek.lua"]).go().exits(0);
}
