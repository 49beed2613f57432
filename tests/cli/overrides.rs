//! The promise: one prompt or data file of a flow from elsewhere is overridden by a file at the same place in the project,
//! once it is trusted; each run says so, and nietz tells when the original has changed since.

use serde_json::Value;

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Response};

const NOTHING: &str = "";

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local template = require("@nietz/template")
local ui = require("@nietz/ui")
local words = require("@nietz/yaml").load("./retro/words.yaml")
local helper = require("./retro/helper")

return nietz.flow {
	name = "retro",
	summary = "Looks back",
	permissions = { llm = true },
	run = function(ctx)
		local said = llm.chat { prompt = template.render("./retro/look.md", { topic = words.topic }) }.text
		if words.asks then
			ui.ask { id = "on", prompt = "Go on?" }
		end
		return helper.mark .. said
	end,
}
"#;

const ABOUT: &str = "name: team\nversion: 1.0.0\nsummary: Looks back\nlicence: MIT\nhost_api: 1\n\
                     permissions:\n  retro: { llm: true }\n";

fn server() -> ModelServer {
    ModelServer::start(|request| Response::text(format!("<{}>", request.prompt())))
}

/// The pack of somebody else, in a repository.
fn author(server: &ModelServer) -> Env {
    let env = Env::with(server)
        .flow("retro", FLOW)
        .file("flows/retro/look.md", "Look back on {{ topic }}.\n{% include \"./tone.md\" %}\n")
        .file("flows/retro/tone.md", "Be kind.\n")
        .file("flows/retro/words.yaml", "topic: the release\n")
        .file("flows/retro/helper.lua", "return { mark = 'v1 ' }\n")
        .file("flows/retro/README.md", "Read me.\n")
        .file("pack.yaml", ABOUT);
    init(&env.workspace());
    git(&env.workspace(), ["tag", "v1.0.0"]);
    env
}

/// A project of a stranger that has the pack, whose models it may call, and trusts the folder with nothing.
fn user(server: &ModelServer, author: &Env) -> Env {
    user_trusting(server, author, NOTHING)
}

/// The same project, whose folder is trusted with this.
fn user_trusting(server: &ModelServer, author: &Env, items: &str) -> Env {
    let env = Env::with(server).trusting(items);
    let source = format!("file://{}#v1.0.0", author.workspace().display());
    env.nietz(["pack", "add", &source, "--yes", "--allow", "llm"]).go().exits(0);
    env
}

fn notices(ended: &crate::support::process::Ended) -> String {
    ended.of_type("notice").iter().map(|event| event["text"].to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn one_file_is_ejected_changed_trusted_and_read() {
    let server = server();
    let author = author(&server);
    let env = user(&server, &author);
    let told = env.nietz(["eject", "retro", "tone.md"]).go().exits(0).stdout;
    assert!(told.contains("wrote flows/retro/tone.md") && told.contains("from pack team 1.0.0"), "{told}");
    assert_eq!(env.read("flows/retro/tone.md"), "Be kind.\n");
    // What is the same as its original overrides nothing, and needs no trust.
    let ended = env.run(["retro"]).go().exits(0);
    assert_eq!(ended.result(), "v1 <Look back on the release.\nBe kind.>");
    assert!(!notices(&ended).contains("own"), "{}", notices(&ended));
    env.write("flows/retro/tone.md", "Be blunt.\n");
    let ended = env.nietz(["run", "retro"]).var("NIETZ_RUN", "r2").go().exits(5);
    assert!(ended.stderr.contains("(data=flows/retro/tone.md)"), "{}", ended.stderr);
    assert!(!env.path(".nietz/runs/r2/journal.jsonl").exists(), "nothing has begun");
    env.nietz(["trust", "add", ".", "--allow", "data=flows/retro/tone.md"]).go().exits(0);
    let ended = env.run(["retro"]).var("NIETZ_RUN", "r3").go().exits(0);
    assert_eq!(ended.result(), "v1 <Look back on the release.\nBe blunt.>");
    assert!(notices(&ended).contains("retro reads this folder's own flows/retro/tone.md"), "{}", notices(&ended));
    // A test that is kept of such a run is played with the file, and no longer passes without it.
    env.nietz(["test", "--from-run", "r3"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    env.write("flows/retro/tone.md", "Be kind.\n");
    env.nietz(["test"]).go().exits(1);
    env.write("flows/retro/tone.md", "Be blunt.\n");
    // Another file is asked for by its own name.
    env.write("flows/retro/words.yaml", "topic: the year\n");
    let ended = env.nietz(["run", "retro"]).var("NIETZ_RUN", "r4").go().exits(5);
    assert!(ended.stderr.contains("words.yaml") && !ended.stderr.contains("tone.md)"), "{}", ended.stderr);
    env.nietz(["trust", "add"]).go().exits(0);
    let ended = env.run(["retro"]).var("NIETZ_RUN", "r5").go().exits(0);
    assert_eq!(ended.result(), "v1 <Look back on the year.\nBe blunt.>");
}

#[test]
fn ejecting_writes_nothing_over_and_no_code() {
    let server = server();
    let author = author(&server);
    let env = user(&server, &author).file("flows/retro/tone.md", "Mine.\n");
    let ended = env.nietz(["eject", "retro", "tone.md"]).go().exits(2);
    assert!(ended.stderr.contains("is here already"), "{}", ended.stderr);
    let told = env.nietz(["eject", "retro"]).go().exits(0).stdout;
    assert!(told.contains("flows/retro/tone.md is here already"), "{told}");
    assert_eq!(env.read("flows/retro/tone.md"), "Mine.\n");
    let mut files: Vec<String> = env.documents().into_keys().filter(|path| path.starts_with("flows/")).collect();
    files.sort();
    let expected = ["flows/.ejected.yaml", "flows/retro/look.md", "flows/retro/tone.md", "flows/retro/words.yaml"];
    assert_eq!(files, expected);
    let ended = env.nietz(["eject", "retro", "helper.lua"]).go().exits(2);
    assert!(ended.stderr.contains("is a module"), "{}", ended.stderr);
    let ended = env.nietz(["eject", "retro", "tones.md"]).go().exits(2);
    assert!(ended.stderr.contains("did you mean tone.md?"), "{}", ended.stderr);
    for name in ["../../x.md", "/etc/passwd", "flows/../../x.md"] {
        env.nietz(["eject", "retro", name]).go().exits(2);
    }
    // A flow of the project's own is edited where it is.
    let ended = env.flow("own", FLOW).nietz(["eject", "own"]).go().exits(2);
    assert!(ended.stderr.contains("no flow of a pack"), "{}", ended.stderr);
}

#[test]
fn modules_are_not_overridden_and_that_is_said() {
    let server = server();
    let author = author(&server);
    let env = user(&server, &author).file("flows/retro/helper.lua", "return { mark = 'mine ' }\n");
    let ended = env.run(["retro"]).go().exits(0);
    assert_eq!(ended.result(), "v1 <Look back on the release.\nBe kind.>");
    assert!(notices(&ended).contains("retro does not use flows/retro/helper.lua"), "{}", notices(&ended));
    assert!(env.nietz(["flows"]).go().exits(0).stdout.contains("retro does not use flows/retro/helper.lua"));
}

#[test]
fn what_overrides_is_pinned_with_the_run_as_every_source_is() {
    let server = server();
    let author = author(&server);
    let env = user_trusting(&server, &author, "'*'").file("flows/retro/words.yaml", "topic: the year\nasks: true\n");
    env.run(["retro"]).go().exits(7);
    env.write("flows/retro/words.yaml", "topic: the month\nasks: false\n");
    let ended = env.resume().go().exits(0);
    let told = notices(&ended);
    assert!(told.contains("changed since the run began: flows/retro/words.yaml"), "{told}");
    assert_eq!(ended.result(), "v1 <Look back on the month.\nBe kind.>");
    // Trust that was taken back holds for a run that goes on, too.
    env.write("flows/retro/words.yaml", "topic: the year\nasks: true\n");
    env.run(["retro"]).var("NIETZ_RUN", "r2").go().exits(7);
    env.nietz(["trust", "revoke", "."]).go().exits(0);
    let ended = env.nietz(["resume", "r2"]).go().exits(5);
    assert!(ended.stderr.contains("(data=flows/retro/words.yaml)"), "{}", ended.stderr);
}

#[test]
fn it_is_told_when_the_original_has_changed_since() {
    let server = server();
    let author = author(&server);
    let env = user_trusting(&server, &author, "'*'");
    env.nietz(["eject", "retro", "tone.md"]).go().exits(0);
    env.write("flows/retro/tone.md", "Be blunt.\n");
    let told = env.nietz(["flows"]).go().exits(0).stdout;
    assert!(told.contains("retro reads this folder's own flows/retro/tone.md (from pack team 1.0.0)"), "{told}");
    author.write("flows/retro/tone.md", "Be kind.\nBe short.\n");
    author.write("pack.yaml", ABOUT.replace("1.0.0", "1.1.0"));
    git(&author.workspace(), ["add", "-A"]);
    git(&author.workspace(), ["commit", "-q", "-m", "1.1.0"]);
    git(&author.workspace(), ["tag", "v1.1.0"]);
    env.nietz(["pack", "update", "team", "--yes"]).go().exits(0);
    for verb in [["flows"].as_slice(), &["check", "flows/retro/tone.md"]] {
        let told = env.nietz(verb.iter().copied()).go().exits(0).stdout;
        assert!(told.contains("its original has changed since") && told.contains("+ Be short."), "{told}");
    }
    let line = env.nietz(["flows", "--json"]).go().exits(0).stdout;
    let line = line.lines().find(|line| line.contains("\"retro\"")).expect("it is listed").to_owned();
    let value: Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!(value["overrides"][0]["original"], "changed");
    // The file goes on to be read, and the rest is new; when the change was taken in, nothing more is told of it.
    assert_eq!(env.run(["retro"]).go().result(), "v1 <Look back on the release.\nBe blunt.>");
    env.nietz(["eject", "retro", "tone.md", "--merged"]).go().exits(0);
    assert!(!env.nietz(["flows"]).go().exits(0).stdout.contains("has changed since"));
    env.nietz(["check"]).go().exits(0);
}

#[test]
fn check_finds_what_is_wrong_with_an_overriding_file() {
    let server = server();
    let author = author(&server);
    let env = user_trusting(&server, &author, "'*'");
    env.write("flows/retro/tone.md", "Be {{ tone.\n");
    let ended = env.nietz(["check", "flows/retro/tone.md"]).go().exits(4);
    assert!(ended.stdout.contains("tone.md"), "{ended:?}");
    env.write("flows/retro/tone.md", "Be {{ tone }}.\n");
    let ended = env.nietz(["check", "flows/retro/tone.md"]).go().exits(0);
    assert!(ended.stdout.contains("tone") && ended.stdout.contains("note"), "{ended:?}");
    env.write("flows/retro/words.yaml", "topic: [\n");
    env.nietz(["check", "flows/retro/words.yaml"]).go().exits(4);
}

#[test]
fn a_flow_that_another_one_hides_is_run_by_its_full_name() {
    let server = server();
    let author = author(&server);
    let own = "return require('@nietz').flow { name = 'retro', summary = 'x', run = function() return 'own' end }\n";
    let env = user(&server, &author).flow("retro", own).file("flows/retro/words.yaml", "topic: mine\n");
    assert_eq!(env.run(["flows/retro.lua"]).go().result(), "own");
    // What stands beside the project's own flow is that flow's, and overrides nothing.
    let ended = env.run(["team/retro"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(ended.result(), "v1 <Look back on the release.\nBe kind.>");
    assert!(env.nietz(["flows"]).go().exits(0).stdout.contains("run it as team/retro"));
    let ended = env.nietz(["eject", "team/retro"]).go().exits(2);
    assert!(ended.stderr.contains("retro means"), "{}", ended.stderr);
    // What the list says of where a flow comes from is a name, too.
    let listed = env.nietz(["flows", "--json"]).go().exits(0).stdout;
    for line in listed.lines() {
        let flow: Value = serde_json::from_str(line).expect("a line of JSON");
        let source = flow["source"].as_str().expect("it comes from somewhere");
        env.nietz(["run", source, "--help"]).go().exits(0);
        if let Some(full_name) = flow["full_name"].as_str() {
            env.nietz(["run", full_name, "--help"]).go().exits(0);
        }
    }
    env.nietz(["run", "team/nothing"]).go().exits(2);
    // A file of that name is not the flow of the pack.
    env.write("team/retro", own);
    assert_eq!(
        env.run(["team/retro"]).var("NIETZ_RUN", "r3").go().result(),
        "v1 <Look back on the release.\nBe kind.>"
    );
}

#[test]
fn bundled_flows_are_overridden_and_named_in_full_as_well() {
    let server = server();
    let env = Env::with(&server).trusting(NOTHING);
    let told = env.nietz(["eject", "council", "prompts/select.md"]).go().exits(0).stdout;
    assert!(told.contains("wrote flows/council/prompts/select.md"), "{told}");
    env.write("flows/council/prompts/select.md", "OWN {{ request }}\n");
    let ended = env.nietz(["run", "council", "x"]).go().exits(5);
    assert!(ended.stderr.contains("(data=flows/council/prompts/select.md)"), "{}", ended.stderr);
    // What several flows share is overridden, too, but only what is there.
    env.write("flows/common/memory/prompts/recall.md", "OWN\n");
    env.write("flows/common/notes.md", "my notes\n");
    let ended = env.nietz(["run", "bundled/debug", "x"]).go().exits(5);
    assert!(ended.stderr.contains("recall.md") && !ended.stderr.contains("notes.md"), "{}", ended.stderr);
}

#[test]
fn a_new_flow_or_persona_that_hides_another_says_so() {
    let server = server();
    let author = author(&server);
    let env = user(&server, &author);
    let told = env.nietz(["new", "flow", "retro"]).go().exits(0).stdout;
    assert!(told.contains("it hides team/retro"), "{told}");
    let told = env.nietz(["new", "flow", "council"]).go().exits(0).stdout;
    assert!(told.contains("it hides bundled/council"), "{told}");
    let told = env.nietz(["new", "persona", "socrates"]).go().exits(0).stdout;
    assert!(told.contains("it hides the persona socrates (bundled)"), "{told}");
    assert!(!env.nietz(["new", "flow", "fresh"]).go().exits(0).stdout.contains("hides"));
}
