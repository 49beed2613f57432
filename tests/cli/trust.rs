//! The promise: what comes with a folder can call models, ask and write its documents, and nothing else, until the user
//! trusts the folder with it: once, by name, and again only for what is new.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Ended;

const NOTHING: &str = "";

fn server() -> ModelServer {
    ModelServer::start(|_| Response::text("said"))
}

/// A folder that the user has said nothing of.
fn env(server: &ModelServer) -> Env {
    Env::with(server).trusting(NOTHING)
}

fn flow(name: &str, permissions: &str, line: &str) -> String {
    format!(
        "local nietz = require('@nietz')\n\
         return nietz.flow {{ name = '{name}', summary = 'x', permissions = {{ {permissions} }},\n\
         run = function(ctx) {line} end }}\n"
    )
}

const READ: &str = "return require('@nietz/files').read('a.txt').text";

fn said(env: &Env, ended: &Ended) -> String {
    env.normal(&ended.stderr)
}

#[test]
fn what_needs_models_questions_and_documents_alone_asks_for_nothing() {
    let server = server();
    let env = env(&server)
        .flow("plain", &flow("plain", "llm = true", "return require('@nietz/llm').chat({ prompt = 'p' }).text"));
    assert_eq!(env.run(["plain"]).go().result(), "said");
    let env = Env::with(&server).trusting(NOTHING);
    env.nietz(["new", "flow", "mine"]).go().exits(0);
    env.nietz(["run", "mine", "--model", "openai/test", "--json", "x"]).stdin("{\"answer\":true}\n".repeat(9)).go();
    assert!(env.journal_path().is_file(), "it began without a question");
}

#[test]
fn documents_of_other_folders_are_read_where_that_is_declared_and_trusted_and_said_before() {
    let server = server();
    let flow = |declared: &str| {
        format!(
            "local nietz, documents = require('@nietz'), require('@nietz/documents')\n\
             local notes = documents.collection('notes')\n\
             return nietz.flow {{ name = 'reads', summary = 'x',\n\
             collections = {{ notes = {{ path = 'notes/{{id}}.json', schema = {{ type = 'object' }}, {declared} }} }},\n\
             run = function(ctx)\n\
             local found = {{}}\n\
             notes:each(function(entry) table.insert(found, (entry.folder or 'here') .. ' ' .. entry.path) end, {{ everywhere = true }})\n\
             notes:save({{ id = 'one' }}, {{ overwrite = true }})\n\
             return found end }}\n"
        )
    };
    let env = env(&server).flow("reads", &flow("everywhere = true"));
    let refused = env.nietz(["run", "reads"]).go().exits(5);
    assert_snapshot!(said(&env, &refused), @r"
    error[folder-untrusted]: reads asks for what you do not trust /tmp/test/work with
      - it reads notes/{id}.json in your other folders, too, where a flow that does so was run (everywhere=notes/{id}.json)
    hint: look at it; if you trust it with this: nietz trust add /tmp/test/work --allow 'everywhere=notes/{id}.json'; for one run alone: --trust
    ");
    let plan = env.nietz(["run", "reads", "--plan"]).go().exits(0);
    assert!(plan.stdout.contains("reads notes/{id}.json in your other folders, too"), "{plan:?}");
    let other = env.workspace().parent().expect("the workspace is in a folder").join("other");
    std::fs::create_dir_all(other.join("flows")).expect("a folder can be made");
    std::fs::copy(env.path("flows/reads.lua"), other.join("flows/reads.lua")).expect("a flow can be copied");
    let there = other.to_str().expect("it is a text");
    env.run(["-C", there, "reads", "--trust"]).go().exits(0);
    let ended = env.run(["reads", "--trust"]).var("NIETZ_RUN", "again").go();
    assert_eq!(ended.result(), json!([format!("{there} notes/one.json")]));

    env.write("flows/reads.lua", flow(""));
    let undeclared = env.run(["reads", "--trust"]).var("NIETZ_RUN", "undeclared").go().exits(5);
    assert_eq!(undeclared.ending()["failure"]["code"], "permission-refused");
    for wrong in ["everywhere = 1", "everywhere = true, path = '{*}'", "everywhere = true, path = '{id}/a.json'"] {
        let text = flow(wrong).replace(
            "path = 'notes/{id}.json', ",
            if wrong.contains("path") { "" } else { "path = 'notes/{id}.json', " },
        );
        env.write("flows/reads.lua", text);
        env.nietz(["check", "flows/reads.lua"]).go().exits(4);
    }
}

#[test]
fn commands_git_and_files_are_asked_for_once_and_again_for_what_is_new() {
    let server = server();
    let env = env(&server).file("a.txt", "text").flow("reads", &flow("reads", "files = true", READ));
    let ended = env.nietz(["run", "reads"]).go().exits(5);
    assert_snapshot!(said(&env, &ended), @r"
    error[folder-untrusted]: reads asks for what you do not trust /tmp/test/work with
      - it reads any file in your folder, and those elsewhere that you allow (files)
    hint: look at it; if you trust it with this: nietz trust add /tmp/test/work --allow files; for one run alone: --trust
    ");
    assert!(!env.journal_path().exists(), "nothing has begun");
    // In CI, for one run, and said there.
    let ended = env.nietz(["run", "reads", "--trust"]).go().exits(0);
    assert!(said(&env, &ended).contains("trusted for this run: /tmp/test/work with files"), "{}", ended.stderr);
    assert_snapshot!(env.normal(&env.nietz(["trust", "add", "."]).go().exits(0).stdout), @r"
    trusted: /tmp/test/work
      + reads any file in your folder, and those elsewhere that you allow (files)
    ");
    assert_eq!(env.run(["reads"]).var("NIETZ_RUN", "r2").go().result(), "text");
    // A pull brings more.
    env.write("flows/reads.lua", flow("reads", "files = true, git = true, exec = { 'sh' }", READ));
    let ended = env.nietz(["run", "reads"]).var("NIETZ_RUN", "r3").go().exits(5);
    assert_snapshot!(said(&env, &ended), @r"
    error[folder-untrusted]: reads asks for what you do not trust /tmp/test/work with
      - it runs `sh` with any arguments, in a sandbox (exec=sh)
      - it reads the whole repository and uncommitted work; makes branches and worktrees of its own (git)
    hint: look at it; if you trust it with this: nietz trust add /tmp/test/work --allow 'exec=sh,git'; for one run alone: --trust
    ");
    // The line grants just that.
    let before = std::fs::read(env.home().join("trust.yaml")).expect("it is kept");
    env.nietz(["trust", "add", ".", "--allow", "exec=sh,git"]).go().exits(0);
    env.run(["reads"]).var("NIETZ_RUN", "r9").go().exits(0);
    std::fs::write(env.home().join("trust.yaml"), before).expect("it can be written");
    // A part of it is not all of it.
    env.nietz(["trust", "add", ".", "--allow", "git"]).go().exits(0);
    let ended = env.nietz(["run", "reads"]).var("NIETZ_RUN", "r3").go().exits(5);
    assert!(!ended.stderr.contains("(git)") && ended.stderr.contains("(exec=sh)"), "{}", ended.stderr);
    let ended = env.nietz(["trust", "add", ".", "--allow", "exec=rm"]).go().exits(2);
    assert!(ended.stderr.contains("asked for: exec=sh, files, git"), "{}", ended.stderr);
    assert_snapshot!(env.normal(&env.nietz(["trust", "list"]).go().exits(0).stdout), @r"
    folder /tmp/test/work
        reads any file in your folder, and those elsewhere that you allow (files)
        reads the whole repository and uncommitted work; makes branches and worktrees of its own (git)
    ");
    env.nietz(["trust", "add", "--all"]).go().exits(0);
    env.run(["reads"]).var("NIETZ_RUN", "r4").go().exits(0);
    env.nietz(["trust", "revoke", "."]).go().exits(0);
    env.nietz(["run", "reads"]).var("NIETZ_RUN", "r5").go().exits(5);
    assert_eq!(env.nietz(["trust", "revoke", "."]).go().exits(0).stdout.matches("was not trusted").count(), 1);
}

#[test]
fn a_run_that_goes_on_asks_for_what_its_flow_has_come_to_want() {
    let server = server();
    let asks = "require('@nietz/ui').ask { id = 'on', prompt = 'Go on?' } return 1";
    let env = env(&server).flow("on", &flow("on", "", asks));
    env.nietz(["run", "on"]).go().exits(7);
    env.write("flows/on.lua", flow("on", "git = true, exec = { 'sh' }", asks));
    let ended = env.nietz(["resume"]).stdin("yes\n").go().exits(5);
    assert!(ended.stderr.contains("[folder-untrusted]") && ended.stderr.contains("(exec=sh)"), "{}", ended.stderr);
    env.nietz(["resume", "--trust"]).stdin("yes\n").go().exits(0);
}

#[test]
fn where_somebody_is_they_are_asked_and_the_answer_is_kept() {
    let server = server();
    let env = env(&server).file("a.txt", "text").flow("reads", &flow("reads", "files = true", READ));
    let run = |id: &str| env.nietz(["run", "reads"]).var("NIETZ_RUN", id).var("TERM", "dumb");
    let mut seat = run("r1").at_a_terminal();
    seat.sees("it reads any file in your folder");
    seat.sees("Do you trust this folder with that?");
    seat.types("n\n");
    assert_eq!(seat.end(), Some(5));
    let mut seat = run("r2").at_a_terminal();
    seat.sees("Do you trust this folder with that?");
    seat.types("y\n");
    assert_eq!(seat.end(), Some(0));
    let seat = run("r3").at_a_terminal();
    assert_eq!(seat.end(), Some(0));
    // What stands in a pipe is for the flow: it is no yes.
    env.nietz(["trust", "revoke", "."]).go().exits(0);
    run("r4").stdin("y\ny\ny\n").go().exits(5);
}

#[test]
fn a_flow_in_place_of_a_bundled_one_is_told_and_asked_for() {
    let server = server();
    let env = env(&server).flow("brainstorm", &flow("brainstorm", "", "return 'mine'"));
    let ended = env.nietz(["run", "brainstorm"]).go().exits(5);
    assert_snapshot!(said(&env, &ended), @r"
    error[folder-untrusted]: brainstorm asks for what you do not trust /tmp/test/work with
      - it is run in place of the bundled flow brainstorm (hides=brainstorm)
    hint: look at it; if you trust it with this: nietz trust add /tmp/test/work --allow 'hides=brainstorm'; for one run alone: --trust
    ");
    // By its path there is no doubt which one is meant.
    assert_eq!(env.run(["flows/brainstorm.lua"]).go().result(), "mine");
    env.nietz(["trust", "add"]).go().exits(0);
    let ended = env.nietz(["run", "brainstorm"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert!(
        said(&env, &ended).contains("brainstorm is /tmp/test/work/flows/brainstorm.lua (project), and not the bundled")
    );
    // A checkout of the bundled files is no other flow; one changed module makes it one.
    let env = Env::with(&server).trusting(NOTHING);
    for path in nietz::assets::list("flows").iter().filter(|path| path.contains("debug") || path.contains("common")) {
        env.write(path, nietz::assets::read(path).expect("it is bundled"));
    }
    env.nietz(["run", "debug", "--plan"]).go().exits(0);
    let ended = env.run(["debug", "list"]).go();
    assert!(!ended.stderr.contains("untrusted"), "{}", ended.stderr);
    for module in nietz::assets::list("flows").into_iter().filter(|path| path.starts_with("flows/common/")) {
        let bytes = nietz::assets::read(&module).expect("it is bundled");
        // Also one that is not required while the flow is loaded.
        let more: &[u8] = match module.rsplit('.').next() {
            Some("lua") => b"\n-- more\n",
            Some("yaml") => b"\n# more\n",
            _ => b"\n",
        };
        env.write(&module, [bytes, more].concat());
        let ended = env.nietz(["run", "debug", "list"]).var("NIETZ_RUN", "r3").go().exits(5);
        assert!(ended.stderr.contains("hides=debug") && ended.stderr.contains("(files)"), "{module}: {}", ended.stderr);
        env.write(&module, bytes);
    }
}

#[test]
fn personas_quotes_and_the_model_of_a_folder_do_not_change_bundled_flows_unasked() {
    let server = server();
    let persona = "---\nname: s\n---\nSomething else.\n";
    let slug =
        nietz::assets::list("personas")[0].rsplit('/').next().expect("a file").trim_end_matches(".md").to_owned();
    let quotes = nietz::assets::list("quotes")[0].clone();
    let env = env(&server)
        .file(&format!("personas/{slug}.md"), persona)
        .file("personas/my-own.md", persona)
        .file(&quotes, nietz::assets::read(&quotes).expect("it is bundled"))
        .file("nietz.yaml", "models: {default: openai/dear}\nflows: {council: {cycle_limit: 2}}\n");
    let ended = env.nietz(["run", "council", "x"]).go().exits(5);
    let said = said(&env, &ended);
    assert!(said.contains(&format!("(persona={slug})")) && said.contains("(model=openai/dear)"), "{said}");
    assert!(!said.contains("my-own") && !said.contains("quotes=") && !said.contains("setting="), "{said}");
    // A model that the user names is no business of the project's.
    let ended = env.nietz(["run", "council", "x", "--model", "openai/test"]).go().exits(5);
    assert!(!ended.stderr.contains("openai/dear"), "{}", ended.stderr);
}

#[test]
fn a_copy_of_a_bundled_flow_brings_no_persona_of_its_own_unasked() {
    let server = server();
    let slug =
        nietz::assets::list("personas")[0].rsplit('/').next().expect("a file").trim_end_matches(".md").to_owned();
    for folder in ["", "vendor/"] {
        let env = env(&server).file(&format!("{folder}personas/{slug}.md"), "---\nname: s\n---\nSomething else.\n");
        for path in nietz::assets::list("flows") {
            env.write(&format!("{folder}{path}"), nietz::assets::read(&path).expect("it is bundled"));
        }
        let path = format!("{folder}flows/council.lua");
        let ended = env.nietz(["run", &path, "x"]).go().exits(5);
        assert!(ended.stderr.contains(&format!("(persona={slug})")), "{folder}: {}", ended.stderr);
        env.nietz(["run", &path, "x", "--plan", "--trust"]).go().exits(0);
    }
}

#[test]
fn a_persona_s_model_does_not_override_the_one_that_the_user_named() {
    let asked = |server: &ModelServer| -> Vec<Value> {
        server.requests().iter().map(|request| request.body["model"].clone()).collect()
    };
    let line = "local persona = require('@nietz/personas').get('me')\n\
                return require('@nietz/llm').chat({ persona = persona, prompt = 'p' }).model";
    let server = server();
    let env = env(&server)
        .flow("x", &flow("x", "llm = true", line))
        .file("personas/me.md", "---\nname: me\nmodel: openai/dear\n---\nx\n");
    let ended = env.nietz(["run", "x", "--model", "openai/cheap"]).go().exits(0);
    assert!(said(&env, &ended).contains("--model holds for all personas, also for me"), "{}", ended.stderr);
    assert_eq!(asked(&server), [json!("cheap")]);
    // What was decided stays: nothing is asked anew after the folder is trusted.
    env.nietz(["trust", "add"]).go().exits(0);
    env.nietz(["resume", "r1"]).go().exits(0);
    assert_eq!(asked(&server), [json!("cheap")]);
    env.nietz(["run", "x", "--model", "openai/cheap"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(asked(&server), [json!("cheap"), json!("dear")]);
    // Without one, nothing is overridden.
    env.nietz(["run", "x"]).var("NIETZ_RUN", "r3").go().exits(0);
    assert_eq!(asked(&server)[2], json!("dear"));
}

#[test]
fn files_that_hold_secrets_and_those_of_runs_are_not_read_unless_they_are_named() {
    let server = server();
    let line = "local files = require('@nietz/files') local out = {}\n\
                for _, path in { '.env', '.env.local', '.envrc', 'sub/.env', '.env.example', 'id_rsa', 'a.pem', '.nietz/runs/r0/journal.jsonl',\n\
                '.NIETZ/x', 'a.txt', '.nietz/mine/a.yaml' } do\n\
                local fine, read = pcall(files.read, path)\n\
                table.insert(out, path .. ' ' .. (if fine then (if read then 'read' else 'none') else read.code)) end\n\
                table.insert(out, tostring(#files.find('**').paths)) return out";
    let text = flow("x", "files = true", line).replace(
        "permissions",
        "params = { file = { type = 'string' } }, collections = { own = { path = '.nietz/mine/{name}.yaml', schema = {} } }, permissions",
    );
    let mut env = Env::with(&server).flow("x", &text);
    for path in [
        ".env",
        ".env.local",
        ".envrc",
        "sub/.env",
        ".env.example",
        "id_rsa",
        "a.pem",
        ".nietz/runs/r0/journal.jsonl",
        ".NIETZ/x",
        "a.txt",
        ".nietz/mine/a.yaml",
    ] {
        env = env.file(path, "planted");
    }
    let read = |args: &[&str], id: &str| -> Vec<String> {
        let result = env.run(["x"]).args(args.iter().copied()).var("NIETZ_RUN", id).go().result();
        serde_json::from_value(result).expect("texts")
    };
    assert_snapshot!(read(&[], "r1").join("\n"), @r"
    .env path-refused
    .env.local path-refused
    .envrc path-refused
    sub/.env path-refused
    .env.example read
    id_rsa path-refused
    a.pem path-refused
    .nietz/runs/r0/journal.jsonl path-refused
    .NIETZ/x path-refused
    a.txt read
    .nietz/mine/a.yaml read
    3
    ");
    let named = read(&["--file", "sub/.env", "--allow-read", ".env"], "r2");
    assert!(named.contains(&"sub/.env read".to_owned()) && named.contains(&".env read".to_owned()), "{named:?}");
    assert!(named.contains(&".env.local path-refused".to_owned()), "{named:?}");
    let folder = read(&["--allow-read", "."], "r3");
    assert!(folder.contains(&".env path-refused".to_owned()), "a folder is no file: {folder:?}");
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is ours");
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn what_others_can_write_is_not_the_users_word() {
    let server = server();
    let env = Env::with(&server).file("a.txt", "text").flow("reads", &flow("reads", "files = true", READ));
    for name in ["trust.yaml", "config.yaml"] {
        let path = env.home().join(name);
        let before = mode_of(&path);
        mode(&path, 0o666);
        let ended = env.nietz(["run", "reads"]).go().exits(1);
        let said = said(&env, &ended);
        assert!(
            said.contains(&format!("error[config-invalid]: /tmp/test/home/{name} can be written by everybody")),
            "{said}"
        );
        assert!(said.contains("chmod go-w") && !env.journal_path().exists(), "{said}");
        // Nor is anything added to it.
        env.nietz(["trust", "add"]).go().exits(1);
        mode(&path, before);
    }
    mode(&env.home(), 0o777);
    let ended = env.nietz(["run", "reads"]).go().exits(1);
    assert!(said(&env, &ended).contains("/tmp/test/home can be written by everybody"), "{}", ended.stderr);
    mode(&env.home(), 0o755);
    assert_eq!(env.run(["reads"]).go().result(), "text");
}

#[test]
fn a_folder_that_belongs_to_somebody_else_than_when_it_was_trusted_is_asked_for_anew() {
    let server = server();
    let env = Env::with(&server).file("a.txt", "text").flow("reads", &flow("reads", "files = true", READ));
    env.nietz(["trust", "add", "--all"]).go().exits(0);
    let path = env.home().join("trust.yaml");
    let trust = std::fs::read_to_string(&path).expect("it is kept");
    let owner = format!("work\": {}\n", rustix::process::geteuid().as_raw());
    assert!(trust.contains(&owner), "{trust}");
    std::fs::write(&path, trust.replace(&owner, "work\": 4000000\n")).expect("it can be written");
    env.nietz(["run", "reads"]).go().exits(5);
    let list = env.nietz(["trust", "list"]).go().exits(0).stdout;
    assert!(list.contains("which is not there or belongs to somebody else now"), "{list}");
    env.nietz(["trust", "add"]).go().exits(0);
    assert_eq!(env.run(["reads"]).go().result(), "text");
    let list = env.nietz(["trust", "list"]).go().exits(0).stdout;
    assert!(!list.contains("whatever") && !list.contains("somebody else"), "{list}");
}

#[test]
fn what_the_user_trusts_is_kept_for_them_alone_whatever_their_umask_is() {
    let env =
        Env::new().without("NIETZ_HOME").file("a.txt", "text").flow("reads", &flow("reads", "files = true", READ));
    env.nietz(["trust", "add"]).by("sh", ["-c", "umask 0; exec \"$0\" \"$@\""]).go().exits(0);
    let state = env.home().join(".local/state/nietz");
    assert_eq!((mode_of(&state), mode_of(&state.join("trust.yaml"))), (0o700, 0o600));
    env.run(["reads"]).go().exits(0);
}

#[test]
fn what_the_user_trusts_is_changed_or_the_wait_for_it_ends() {
    let env = Env::new();
    let path = env.home().join("trust.lock");
    let held = std::fs::File::create(&path).expect("the home can be written");
    held.lock().expect("nobody else has it");
    let ended = env.nietz(["trust", "revoke", "."]).go();
    assert!(ended.code != Some(0) && ended.stderr.contains("error[document-busy]"), "{ended:?}");
    std::fs::remove_file(&path).expect("it is ours");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from(0o600)).expect("a pipe can be made");
    let ended = env.nietz(["trust", "revoke", "."]).go();
    assert!(ended.code != Some(0) && ended.stderr.contains("is a pipe"), "{ended:?}");
}

#[test]
fn an_alias_of_a_project_takes_the_place_of_no_model_and_of_no_provider() {
    let asked = |server: &ModelServer| -> Vec<Value> {
        server.requests().iter().map(|request| request.body["model"].clone()).collect()
    };
    let line = "return require('@nietz/llm').chat({ prompt = 'p' }).text";
    let server = server();
    let lab = format!("models: {{providers: {{lab: {{base_url: '{}', model: cheap}}}}}}\n", server.url());
    let env = env(&server).flow("x", &flow("x", "llm = true", line)).config(&lab);
    for (alias, named) in
        [("openai/cheap", "openai/cheap"), ("openai", "openai"), ("lab", "lab"), ("local", "lab"), (" lab", "lab")]
    {
        env.write("nietz.yaml", format!("models:\n  aliases:\n    '{alias}': openai/dear\n"));
        let ended = env.nietz(["run", "x", "--model", named]).go().exits(1);
        let told = format!("/tmp/test/work/nietz.yaml:3:5: the alias `{alias}`");
        assert!(said(&env, &ended).contains(&told), "{alias}: {}", ended.stderr);
    }
    assert_eq!(asked(&server), [json!(null); 0]);
    // Names of its own it may give.
    env.write("nietz.yaml", "models: {aliases: {quick: openai/dear}}\n");
    env.nietz(["run", "x", "--model", "quick"]).var("NIETZ_RUN", "r1").go().exits(0);
    env.nietz(["run", "x", "--model", "lab"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(asked(&server), [json!("dear"), json!("cheap")]);
    // The user's own file says whatever it likes.
    let own = "models: {aliases: {openai/cheap: openai/dear}}\n";
    env.config(own).nietz(["run", "x", "--model", "openai/cheap"]).var("NIETZ_RUN", "r3").go().exits(0);
    assert_eq!(asked(&server)[2], json!("dear"));
}

#[test]
fn a_model_that_was_agreed_to_is_that_model_and_not_its_name() {
    let server = server();
    let named = |model: &str| format!("models: {{default: quick, aliases: {{quick: {model}}}}}\n");
    let env = env(&server).file("nietz.yaml", named("openai/one"));
    let ended = env.nietz(["run", "council", "x"]).go().exits(5);
    assert!(said(&env, &ended).contains("(model=openai/one)"), "{}", ended.stderr);
    env.nietz(["trust", "add"]).go().exits(0);
    env.nietz(["run", "council", "x", "--plan"]).go().exits(0);
    env.write("nietz.yaml", named("openai/most-expensive"));
    let ended = env.nietz(["run", "council", "x"]).go().exits(5);
    assert!(said(&env, &ended).contains("(model=openai/most-expensive)"), "{}", ended.stderr);
    // Blanks push nothing of it out of sight.
    env.write("nietz.yaml", format!("models: {{default: 'openai/one{}dear'}}\n", " ".repeat(500)));
    let ended = env.nietz(["run", "council", "x"]).go().exits(5);
    assert!(!ended.stderr.contains("   ") && ended.stderr.contains("␠␠dear"), "{}", ended.stderr);
}

#[test]
fn the_doctor_says_what_a_folder_is_trusted_with_and_who_else_can_change_it() {
    let env = Env::new().trusting("git, exec=cargo");
    let found = |name: &str| -> Value {
        let ended = env.nietz(["doctor", "--json"]).go();
        let lines = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
        lines.into_iter().find(|line| line["check"] == name).unwrap_or_else(|| panic!("{name}: {ended:?}"))
    };
    assert_eq!(found("trust")["found"], "this folder: exec=cargo, git; in all 1 folders and 0 packs");
    assert_eq!(found("files")["state"], "ok");
    // What grants something is not read there at all: see below.
    for name in ["config.yaml", "trust.yaml"] {
        std::fs::remove_file(env.home().join(name)).expect("it is ours");
    }
    mode(&env.home(), 0o777);
    assert_eq!(found("files")["state"], "weak");
    mode(&env.home(), 0o755);
    std::fs::write(env.home().join("trust.yaml"), "folders: 1\n").expect("it can be written");
    assert_eq!(found("trust")["state"], "missing");
}

/// Whoever can open the lock can hold it for good, and what stands in its place may be a pipe.
#[test]
fn a_lock_that_is_never_given_back_is_told() {
    let env = Env::new().trusting("").flow("x", &flow("x", "files = true", READ));
    let lock = env.home().join("trust.lock");
    let held = std::fs::File::create(&lock).expect("the home can be written");
    held.lock().expect("it can be locked");
    let told = env.nietz(["trust", "add", "--all", "."]).go().exits(1);
    assert!(told.stderr.contains("another process holds"), "{told:?}");
    drop(held);
    std::fs::remove_file(&lock).expect("it can be removed");
    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, rustix::fs::Mode::from(0o600)).expect("a pipe can be made");
    let told = env.nietz(["trust", "add", "--all", "."]).go().exits(5);
    assert!(told.stderr.contains("error[path-refused]"), "{told:?}");
}
