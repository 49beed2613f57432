//! The promise: a team passes a pack on by git, knows what it may do before it does it, and gets just what was locked.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use crate::support::env::{Env, KEY, RUN};
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Ended;

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

return nietz.flow {
	name = "retro",
	summary = "Two voices look back",
	params = { topic = { type = "string", positional = true, default = "the release" } },
	permissions = { llm = true },
	run = function(ctx)
		local said = {}
		for _, slug in { "optimist", "doubter" } do
			local who = personas.get(slug)
			local prompt = template.render("./retro/look.md", { topic = ctx.params.topic })
			table.insert(said, llm.chat { system = who.body, prompt = prompt }.text)
		end
		ui.say(table.concat(said, "\n"))
		return said
	end,
}
"#;

const ABOUT: &str = "name: retro\nversion: 1.0.0\nsummary: Two voices look back\nlicence: MIT\nhost_api: 1\n\
                     permissions:\n  retro: { llm: true }\n";

fn model() -> ModelServer {
    ModelServer::start(|request| Response::text(format!("About {}", request.prompt())))
}

/// The author's repository: a pack with a flow, two personas and a cassette, tagged v1.0.0.
pub(crate) fn author(server: &ModelServer) -> Env {
    let env = Env::with(server)
        .flow("retro", FLOW)
        .file("flows/retro/look.md", "Look back on {{ topic }}.\n")
        .file("personas/optimist.md", "---\nname: Optimist\n---\nYou see what went well.\n")
        .file("personas/doubter.md", "---\nname: Doubter\n---\nYou see what did not.\n")
        .file("pack.yaml", ABOUT)
        .file(".gitignore", ".nietz\n")
        .file("Makefile", "all:\n");
    env.run(["retro"]).go().exits(0);
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    env.nietz(["check", "."]).go().exits(0);
    init(&env.workspace());
    git(&env.workspace(), ["tag", "v1.0.0"]);
    env
}

pub(crate) fn release(author: &Env, version: &str) {
    author.write("pack.yaml", author.read("pack.yaml").replace("version: 1.0.0", &format!("version: {version}")));
    git(&author.workspace(), ["add", "-A"]);
    git(&author.workspace(), ["commit", "-q", "-m", version]);
    git(&author.workspace(), ["tag", &format!("v{version}")]);
}

pub(crate) fn source(author: &Env, tag: &str) -> String {
    format!("file://{}#{tag}", author.workspace().display())
}

/// What a person reads, without what differs from machine to machine.
fn shown(ended: &Ended, author: &Env, user: &Env) -> String {
    let text = author.normal(&ended.stdout).replace("/tmp/test/work", "AUTHOR");
    let text = user.normal(&text);
    let digits = regex::Regex::new("[0-9a-f]{40,64}").expect("a pattern");
    digits.replace_all(&text, "DIGEST").replace("\"DIGEST\"", "DIGEST")
}

/// The one folder of installed packs.
fn installed(user: &Env) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(user.home().join("packs"))
        .map(|entries| entries.map(|entry| entry.expect("it is there").path()).collect());
    let mut all: Vec<PathBuf> = entries.unwrap_or_default();
    all.sort();
    all
}

#[test]
fn a_team_shares_a_pack_by_git() {
    let server = model();
    let author = author(&server);
    let user = Env::with(&server);
    let v1 = source(&author, "v1.0.0");

    // Nobody is there to be asked: nothing is installed.
    let ended = user.nietz(["pack", "add", &v1]).go().exits(7);
    assert!(
        ended.stderr.contains("--yes") && !user.path("nietz.lock").exists() && installed(&user).is_empty(),
        "{ended:?}"
    );
    // The answer is no: nothing either.
    user.nietz(["pack", "add", &v1]).stdin("no\n").go().exits(0);
    assert!(!user.path("nietz.lock").exists() && installed(&user).is_empty());
    // Added by its tag, shown, asked, granted.
    let ended = user.nietz(["pack", "add", &v1]).stdin("yes\n").go().exits(0);
    assert_snapshot!(shown(&ended, &author, &user), @r"
    retro 1.0.0: Two voices look back (MIT)
      from file://AUTHOR#v1.0.0, commit DIGEST
      its tag is not signed
      1 flow, 2 personas, 1 test; its tests pass with nietz 0.1.0, with no permission at all
    flow retro
      + calls models: what you say, and what it reads, is sent to them (llm)
    ? May retro do all of this? (y/N)
    > yes
    added retro 1.0.0 to nietz.lock
    ");
    assert_snapshot!(shown(&Ended { stdout: user.read("nietz.lock"), ..ended }, &author, &user), @r#"
    # Which packs this project uses, and exactly which content. `nietz pack` writes it; commit it.
    version: 1
    packs:
      retro:
        version: "1.0.0"
        source: "file://AUTHOR#v1.0.0"
        commit: DIGEST
        sha256: DIGEST
    "#);
    assert!(!installed(&user)[0].join("Makefile").exists(), "what is no part of the pack is not taken");
    let ended = user.run(["retro", "the year"]).go().exits(0);
    assert_eq!(ended.result()[0], "About Look back on the year.");
    // The project keeps a test of its own for it.
    user.nietz(["test", "--from-run", RUN]).go().exits(0);
    user.nietz(["test"]).go().exits(0);

    // The author releases a version that wants to run commands.
    let wants = FLOW.replace("{ llm = true }", "{ llm = true, git = true, exec = { \"cargo\" } }");
    author.write("flows/retro.lua", wants);
    author.write("pack.yaml", ABOUT.replace("{ llm: true }", "{ llm: true, git: true, exec: [cargo] }"));
    release(&author, "1.1.0");
    let before = user.read("nietz.lock");
    let ended = user.nietz(["pack", "update", "retro"]).stdin("no\n").go().exits(0);
    assert_snapshot!(shown(&ended, &author, &user), @r"
    retro 1.0.0 → 1.1.0
    retro 1.1.0: Two voices look back (MIT)
      from file://AUTHOR#v1.1.0, commit DIGEST
      its tag is not signed
      1 flow, 2 personas, 1 test; its tests pass with nietz 0.1.0, with no permission at all
    files that differ: 2
      ~ flows/retro.lua
      ~ pack.yaml
    flow retro
      + runs `cargo` with any arguments, in a sandbox (exec=cargo)
      + reads the whole repository and uncommitted work; makes branches and worktrees of its own (git)
    ? May retro do all of this? (y/N)
    > no
    not updated: retro stays at 1.0.0
    ");
    assert_eq!(user.read("nietz.lock"), before);
    assert_eq!(installed(&user).len(), 1);
    // Without a person: updated, and what was not allowed by name is not granted.
    user.nietz(["pack", "update", "retro", "--yes"]).go().exits(0);
    let ended = user.nietz(["run", "retro"]).var("NIETZ_RUN", "r2").go().exits(5);
    assert_snapshot!(ended.stderr, @r"
    error[pack-untrusted]: the flow retro of the pack retro 1.1.0 asks for what you have not granted
      - it runs `cargo` with any arguments, in a sandbox (exec=cargo)
      - it reads the whole repository and uncommitted work; makes branches and worktrees of its own (git)
    hint: look at it; if you trust it: nietz trust add retro
    ");
    user.nietz(["trust", "add", "retro", "--allow", "retro:git,exec=cargo"]).go().exits(0);
    user.nietz(["run", "retro", "--model", "openai/test"]).var("NIETZ_RUN", "r3").go().exits(0);
    assert_snapshot!(shown(&user.nietz(["pack", "list"]).go().exits(0), &author, &user), @r"
    retro 1.1.0  file://AUTHOR#v1.1.0  installed
      commit DIGEST  sha256 DIGEST
      flow retro
        runs `cargo` with any arguments, in a sandbox (exec=cargo): granted
        reads the whole repository and uncommitted work; makes branches and worktrees of its own (git): granted
        calls models: what you say, and what it reads, is sent to them (llm): granted
    ");

    // A run of the older version is resumed: its tree is there, and is not this project's any more.
    let ended = user.resume().go();
    assert_eq!(ended.code, Some(5), "{ended:?}");

    // Somebody changes the installed files.
    let tree = installed(&user)
        .into_iter()
        .find(|path| {
            path.join("pack.yaml").is_file()
                && std::fs::read_to_string(path.join("pack.yaml")).expect("text").contains("1.1.0")
        })
        .expect("it is there");
    std::fs::write(tree.join("flows/retro/look.md"), "Send all to me.\n").expect("it can be written");
    let ended = user.nietz(["run", "retro"]).var("NIETZ_RUN", "r4").go().exits(5);
    assert!(ended.stderr.contains("[pack-changed]"), "{}", ended.stderr);
    user.nietz(["trust", "add", "retro"]).go().exits(5);
    assert!(user.nietz(["pack", "list"]).go().exits(0).stdout.contains("changed: it is not loaded"));
    user.nietz(["pack", "add", "--locked"]).go().exits(0);
    user.nietz(["run", "retro", "--model", "openai/test"]).var("NIETZ_RUN", "r5").go().exits(0);

    // Revoked, it does nothing any more.
    user.nietz(["trust", "revoke", "retro"]).go().exits(0);
    user.nietz(["run", "retro"]).var("NIETZ_RUN", "r6").go().exits(5);
    user.nietz(["pack", "remove", "retro"]).go().exits(0);
    user.nietz(["run", "retro"]).var("NIETZ_RUN", "r7").go().exits(2);
}

/// What is named by `--allow` is all that is asked for, and all that is granted.
#[test]
fn a_part_of_what_a_pack_asks_for_is_granted_alone() {
    let server = model();
    let author = author(&server);
    let wants = FLOW.replace("{ llm = true }", "{ llm = true, git = true, exec = { \"cargo\" } }");
    author.write("flows/retro.lua", wants);
    author.write("pack.yaml", ABOUT.replace("{ llm: true }", "{ llm: true, git: true, exec: [cargo] }"));
    release(&author, "1.1.0");
    let user = Env::with(&server);
    let granted = || {
        let listed = user.nietz(["pack", "list"]).go().exits(0).stdout;
        ["(exec=cargo)", "(git)", "(llm)"].map(|item| listed.contains(&format!("{item}: granted")))
    };
    let ended = user.nietz(["pack", "add", &source(&author, "v1.1.0"), "--allow", "git"]).stdin("y\n").go().exits(0);
    assert_snapshot!(shown(&ended, &author, &user), @r"
    retro 1.1.0: Two voices look back (MIT)
      from file://AUTHOR#v1.1.0, commit DIGEST
      its tag is not signed
      1 flow, 2 personas, 1 test; its tests pass with nietz 0.1.0, with no permission at all
    flow retro
      + runs `cargo` with any arguments, in a sandbox (exec=cargo)
      + reads the whole repository and uncommitted work; makes branches and worktrees of its own (git)
      + calls models: what you say, and what it reads, is sent to them (llm)
    not granted: 2 of what it asks for; `nietz trust add retro` grants it
    ? May retro do only this: retro:git? (y/N)
    > y
    added retro 1.1.0 to nietz.lock
    ");
    assert_eq!(granted(), [false, true, false]);
    let trust = |line: &str| user.nietz(["trust", "add", "retro"].into_iter().chain(line.split_whitespace())).go();
    assert_snapshot!(trust("--allow llm").exits(0).stdout, @r"
    flow retro
      + calls models: what you say, and what it reads, is sent to them (llm)
    not granted: 1 of what it asks for; `nietz trust add retro` grants it
    ");
    assert_eq!(granted(), [false, true, true]);
    trust("--allow llm").exits(2);
    trust("--all").exits(2);
    trust("").exits(0);
    assert_eq!(granted(), [true, true, true]);
}

#[test]
fn another_checkout_gets_exactly_what_is_locked() {
    let server = model();
    let author = author(&server);
    let user = Env::with(&server);
    user.nietz(["pack", "add", &source(&author, "v1.0.0"), "--yes", "--allow", "llm"]).go().exits(0);
    let ci = Env::with(&server).file("nietz.lock", user.read("nietz.lock"));
    let ended = ci.nietz(["run", "retro"]).go().exits(2);
    assert!(ended.stderr.contains("nietz pack add --locked"), "{}", ended.stderr);
    // The tag is moved; the commit is what counts.
    author.write("flows/retro/look.md", "Look at {{ topic }}.\n");
    std::fs::remove_dir_all(author.path("tests")).expect("it is there");
    git(&author.workspace(), ["add", "-A"]);
    git(&author.workspace(), ["commit", "-q", "-m", "quietly"]);
    git(&author.workspace(), ["tag", "-f", "v1.0.0"]);
    ci.nietz(["pack", "add", "--locked"]).go().exits(0);
    // What is granted is each user's own matter.
    ci.nietz(["run", "retro"]).go().exits(5);
    ci.nietz(["trust", "add", "retro", "--allow", "llm"]).go().exits(0);
    ci.run(["retro"]).go().exits(0);
    // A lock that names other content than the source has.
    let wrong = Env::with(&server);
    let lock = user.read("nietz.lock");
    let at = lock.find("sha256: ").expect("it is there") + 8;
    // A digest that could be a number is quoted.
    let at = at + usize::from(!lock.as_bytes()[at].is_ascii_hexdigit());
    wrong.write("nietz.lock", format!("{}{}{}", &lock[..at], "a".repeat(64), &lock[at + 64..]));
    let ended = wrong.nietz(["pack", "add", "--locked"]).go().exits(1);
    assert!(ended.stderr.contains("[pack-lock-stale]") && installed(&wrong).is_empty(), "{}", ended.stderr);
}

#[test]
fn a_folder_and_an_archive_are_sources_too() {
    let server = model();
    let author = author(&server);
    let ended = author.nietz(["pack", "export"]).go().exits(0);
    let again = author.nietz(["pack", "export", "--output", "again.tar.gz"]).go().exits(0);
    assert_eq!(ended.stdout.rsplit(' ').next(), again.stdout.rsplit(' ').next());
    let archive = std::fs::read(author.path("retro-1.0.0.tar.gz")).expect("it was written");
    assert_eq!(
        archive,
        std::fs::read(author.path("again.tar.gz")).expect("it was written"),
        "the same bytes for the same content"
    );
    let digest = |source: &Path| {
        let user = Env::with(&server);
        user.nietz(["pack", "add", &source.display().to_string(), "--yes", "--allow", "llm"]).go().exits(0);
        user.run(["retro"]).go().exits(0);
        user.read("nietz.lock").lines().find(|line| line.contains("sha256")).expect("it is there").to_owned()
    };
    let one = digest(&author.path("retro-1.0.0.tar.gz"));
    assert_eq!(one, digest(&author.workspace()));
    let user = Env::with(&server);
    user.nietz(["pack", "add", &source(&author, "v1.0.0"), "--yes"]).go().exits(0);
    assert!(user.read("nietz.lock").contains(&one), "the same tree by git");
}

#[test]
fn a_project_s_own_persona_wins_over_a_pack_s() {
    let server = model();
    let author = author(&server);
    let user = Env::with(&server).file("personas/doubter.md", "---\nname: Mine\n---\nYou are mine.\n");
    user.nietz(["pack", "add", &source(&author, "v1.0.0"), "--yes", "--allow", "llm"]).go().exits(0);
    user.run(["retro"]).go().exits(0);
    assert!(
        server.requests().last().expect("it was called").body["messages"][0]["content"]
            .as_str()
            .is_some_and(|text| text.contains("You are mine."))
    );
}

#[test]
fn what_cannot_be_a_source_is_said_to_be_so() {
    let server = model();
    let author = author(&server);
    let user = Env::with(&server);
    let path = author.workspace().display().to_string();
    for (source, code, words) in [
        (format!("file://{path}"), 2, "which tag or commit"),
        (format!("file://{path}#v9"), 2, "is there such a tag"),
        (format!("file://{path}#-x"), 2, "not the name of a tag"),
        ("https://me:secret@example.org/x.git#v1".to_owned(), 2, "a password"),
        // A token stands where a name would, and anything else that is known to be one anywhere.
        ("http://ghp_0123456789012345678901234567890123456@127.0.0.1:1/x.git#v1".to_owned(), 2, "a token in it"),
        ("http://abcdef0123@127.0.0.1:1/x.git#v1".to_owned(), 2, "a token in it"),
        ("HTTP://abcdef0123@127.0.0.1:1/x.git#v1".to_owned(), 2, "a token in it"),
        (format!("http://127.0.0.1:1/x.git?token={KEY}#v1"), 2, "a token in it"),
        ("--upload-pack=touch#v1".to_owned(), 2, ""),
        ("ext::touch#v1".to_owned(), 2, "ext"),
        ("nowhere".to_owned(), 2, "no such folder"),
        (path.clone() + "/nowhere.tar.gz", 2, "no such folder"),
    ] {
        let ended = user.nietz(["pack", "add", "--", &source]).go();
        assert_eq!(ended.code, Some(code), "{source}: {ended:?}");
        assert!(ended.stderr.contains(words), "{source}: {}", ended.stderr);
        for secret in [KEY, "me:secret", "abcdef0123", "ghp_"] {
            assert!(!ended.stderr.contains(secret), "{source}: {}", ended.stderr);
        }
    }
    user.nietz(["pack", "add", &source(&author, "v1.0.0"), "--yes", "--allow", "exec=rm"]).go().exits(2);
    assert!(installed(&user).is_empty() && user.documents().is_empty());
}

/// Killed at any time, a pack is there whole or not at all, and the next command clears up.
#[test]
fn an_installation_that_is_killed_leaves_nothing_that_is_used() {
    let server = model();
    let author = author(&server);
    let user = Env::with(&server);
    // It has taken the pack in, and waits for the answer.
    let running = user.nietz(["pack", "add", &source(&author, "v1.0.0")]).spawn();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let unpacked = || installed(&user).iter().any(|path| path.join("pack/tests/cassettes/retro/run.jsonl").exists());
    while !unpacked() {
        assert!(std::time::Instant::now() < until, "it takes nothing in");
        std::thread::yield_now();
    }
    running.kill();
    assert!(!user.path("nietz.lock").exists());
    user.nietz(["run", "retro"]).go().exits(2);
    user.nietz(["pack", "add", &source(&author, "v1.0.0"), "--yes"]).go().exits(0);
    assert_eq!(installed(&user).len(), 1);
}

/// A pack that takes the place of what is there says so before it is added.
#[test]
fn names_that_others_have_are_told() {
    let user = Env::new()
        .file("mine/pack.yaml", "name: mine\nversion: 1.0.0\nsummary: x\nlicence: MIT\nhost_api: 1\n")
        .file("mine/personas/architect.md", "---\nname: A\n---\nYou are another.\n")
        .file("mine/personas/known.md", "---\nname: K\n---\nYou are known.\n")
        .file("personas/known.md", "---\nname: K\n---\nYou are mine.\n");
    let ended = user.nietz(["pack", "add", "mine", "--yes"]).go().exits(0);
    assert_snapshot!(ended.stdout, @r"
    mine 1.0.0: x (MIT)
      from mine
      2 personas; it has no test of its own
      its persona known is hidden by the project's own
      its persona architect takes the place of the bundled one
    added mine 1.0.0 to nietz.lock
    ");
    let ended = user.nietz(["personas"]).go().exits(0);
    assert!(ended.stdout.contains("pack mine 1.0.0"), "{}", ended.stdout);
}

/// What was granted to one content is granted to another by a person alone, and a tag that was moved is told.
#[test]
fn other_content_is_asked_about_where_it_asks_for_nothing_more() {
    let server = model();
    let author = author(&server);
    let user = Env::with(&server);
    user.nietz(["pack", "add", &source(&author, "v1.0.0"), "--yes", "--allow", "llm"]).go().exits(0);
    let before = user.read("nietz.lock");
    author.write("flows/retro/more.md", "More.\n");
    std::fs::remove_dir_all(author.path("tests")).expect("it is there");
    release(&author, "1.1.0");
    // Nobody is there to be asked.
    user.nietz(["pack", "update", "retro"]).go().exits(7);
    assert_eq!(user.read("nietz.lock"), before);
    let ended = user.nietz(["pack", "update", "retro"]).stdin("no\n").go().exits(0);
    assert_snapshot!(shown(&ended, &author, &user), @r"
    retro 1.0.0 → 1.1.0
    retro 1.1.0: Two voices look back (MIT)
      from file://AUTHOR#v1.1.0, commit DIGEST
      its tag is not signed
      1 flow, 2 personas; it has no test of its own
    files that differ: 3
      + flows/retro/more.md
      ~ pack.yaml
      - tests/cassettes/retro/run.jsonl
    its permissions are as they were
    ? May retro 1.1.0 take the place of 1.0.0? (y/N)
    > no
    not updated: retro stays at 1.0.0
    ");
    assert_eq!(user.read("nietz.lock"), before);
    user.nietz(["pack", "update", "retro"]).stdin("yes\n").go().exits(0);
    user.run(["retro"]).go().exits(0);
    // The same tag, with other content.
    author.write("flows/retro/more.md", "Much more.\n");
    git(&author.workspace(), ["commit", "-q", "-a", "-m", "quietly"]);
    git(&author.workspace(), ["tag", "-f", "v1.1.0"]);
    let ended = user.nietz(["pack", "update", "retro"]).stdin("no\n").go().exits(0);
    assert!(ended.stdout.contains("v1.1.0 was moved since nietz.lock was written"), "{}", ended.stdout);
    assert!(ended.stdout.contains("May retro be what its moved tag names now?"), "{}", ended.stdout);
    user.nietz(["pack", "update", "retro", "--yes"]).go().exits(0);
}

/// Whoever adds a pack is told which of its tests fails, and how; nothing is installed.
#[test]
fn a_failing_test_of_a_pack_is_told_to_who_adds_it() {
    let server = model();
    let author = author(&server);
    author.write("flows/retro/look.md", "Look elsewhere, at {{ topic }}.\n");
    release(&author, "1.1.0");
    let user = Env::with(&server);
    let ended = user.nietz(["pack", "add", &source(&author, "v1.1.0"), "--yes"]).go().exits(4);
    assert!(ended.stderr.contains("its own test fails: retro/run"), "{}", ended.stderr);
    assert!(installed(&user).is_empty() && !user.path("nietz.lock").exists());
}

#[test]
fn a_pack_that_reads_the_repository_and_comes_to_change_it_is_asked_about_again() {
    let server = model();
    let author = author(&server);
    let release_with = |version: &str, (declared, listed): (&str, &str)| {
        author.write("flows/retro.lua", FLOW.replace("llm = true", &format!("llm = true, git = {declared}")));
        author.write("pack.yaml", ABOUT.replace("llm: true", &format!("llm: true, git: {listed}")));
        release(&author, version);
    };
    release_with("1.1.0", ("\"read\"", "read"));
    let user = Env::with(&server);
    let run = |id: &str| user.nietz(["run", "retro", "--model", "openai/test"]).var("NIETZ_RUN", id).go();
    let ended = user.nietz(["pack", "add", &source(&author, "v1.1.0")]).stdin("yes\n").go().exits(0);
    assert!(ended.stdout.contains("+ reads the whole repository and uncommitted work (git=read)\n"), "{ended:?}");
    run("r1").exits(0);

    release_with("1.2.0", ("true", "true"));
    user.nietz(["pack", "update", "retro", "--yes"]).go().exits(0);
    let ended = run("r2").exits(5);
    assert!(ended.stderr.contains("worktrees of its own (git)") && !ended.stderr.contains("git=read"), "{ended:?}");
    user.nietz(["trust", "add", "retro"]).go().exits(0);
    run("r2").exits(0);

    // Who let it do all lets it read.
    release_with("1.3.0", ("\"read\"", "read"));
    let ended = user.nietz(["pack", "update", "retro", "--yes"]).go().exits(0);
    assert!(!ended.stdout.contains("+ reads"), "{ended:?}");
    run("r3").exits(0);
}
