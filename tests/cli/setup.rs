//! The promise: a session stands where its developers work: what `--setup` installs is there for all commands, is installed
//! once, and no other command knows the keys that the setup was given.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

/// A key of a registry, as the user's own file has it.
const TOKEN: &str = "registry-key-77aa31";

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn call(name: &str, arguments: &Value) -> Response {
    Response::text("").usage(10, 5).tool_call("t", name, &arguments.to_string())
}

/// A model that first runs a command, if there is one, and then replaces a text in a file.
fn model(run: &'static str, path: &'static str, (old, new): (&'static str, &'static str)) -> ModelServer {
    ModelServer::start(move |request: &Request| {
        let step = request.turns().iter().filter(|(role, _)| role == "assistant").count() + usize::from(run.is_empty());
        match step {
            0 => call("run", &json!({ "command": run })),
            1 => call("read_file", &json!({ "path": path })),
            2 => call("replace_in_file", &json!({ "path": path, "old": old, "new": new })),
            _ => Response::text("I did it.").usage(10, 5),
        }
    })
}

fn project(server: &ModelServer, files: &[(&str, &str)]) -> Env {
    let env = Env::with(server).file(".gitignore", ".venv/\nnode_modules/\n*.egg-info\n.nietz/\n");
    let env = files.iter().fold(env, |env, (path, text)| env.file(path, text));
    init(&env.workspace());
    env
}

fn shoot(env: &Env, arguments: &[&str]) -> Ended {
    env.run(["shots-on-goal", "--model-a", "openai/a", "say done"].into_iter().chain(arguments.iter().copied())).go()
}

fn said(ended: &Ended) -> String {
    let events = ended.events().into_iter().filter(|event| event["type"] == "said" || event["type"] == "notice");
    let text = |event: Value| event["markdown"].as_str().or(event["text"].as_str()).unwrap_or_default().to_owned();
    events.map(text).collect::<Vec<_>>().join("\n")
}

/// What the models are to reach. Its command names no file that they change.
const CHECK: &str = "sh check.sh";
const DONE: &str = "grep -q done work.txt\n";

/// A home with the file of a registry's key.
fn with_key(env: &Env) -> String {
    let place = env.home().join(".netrc");
    std::fs::write(&place, format!("machine registry.example\nlogin us\npassword {TOKEN}\n"))
        .expect("it can be written");
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    place.display().to_string()
}

/// Installs a package if the key can be read as programs read it, and says so in what is installed.
const INSTALL: &str = "key=$(python3 -c \"import netrc; print(netrc.netrc().hosts['registry.example'][2])\") && mkdir -p node_modules/dep \
                       && echo \"installed with ${#key} bytes\" > node_modules/dep/proof && echo \"the key is $key\"";

#[test]
fn the_key_of_a_registry_is_read_by_the_setup_and_by_nothing_after_it() {
    if !has("python3") {
        return;
    }
    const LOOK: &str = "sh look.sh";
    let server = model(LOOK, "work.txt", ("todo", "done"));
    let look = "cat node_modules/dep/proof; cat ~/.netrc \"$REAL\" 2>/dev/null && echo READ; grep -rs registry-key node_modules ~ && echo FOUND; \
                grep -q done work.txt\n";
    let env = project(&server, &[("work.txt", "todo\n")]);
    let key = with_key(&env);
    env.write("look.sh", look.replace("$REAL", &key));
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-qm", "the script"]);
    let ended = shoot(&env, &["--setup", INSTALL, "--setup-read", "~/.netrc", "--validate", LOOK]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let told = said(&ended);
    assert!(told.contains(&format!("gives a command that it chooses {key}, with the keys that stand there")), "{told}");
    let rows = std::fs::read_to_string(env.path(".nietz/shots-on-goal/r1/validation_run.jsonl")).expect("it ran");
    let row: Value = serde_json::from_str(rows.lines().next().expect("there is one")).expect("a row is JSON");
    let expected = format!("installed with {} bytes\n", TOKEN.len());
    assert_eq!(row["output"], expected, "what the setup installed is there, and the key is not");
    // The model's own command, and the whole journal.
    let asked = server.requests().iter().map(|request| request.body.to_string()).collect::<String>();
    assert!(asked.contains("installed with") && !asked.contains(TOKEN) && !asked.contains("READ\\n"), "{asked}");
    let journal = std::fs::read_to_string(env.journal_path()).expect("it is there");
    assert!(journal.contains("the key is [redacted:.netrc]") && !journal.contains(TOKEN));
}

#[test]
fn a_file_for_the_setup_that_leads_elsewhere_is_refused_by_its_name_and_leaves_no_run() {
    let server = ModelServer::start(|_| Response::text("never"));
    let env = project(&server, &[("work.txt", "todo\n")]);
    symlink("/etc/hostname", env.home().join("out")).expect("a link can be made");
    std::fs::create_dir(env.home().join("folder")).expect("a folder can be made");
    for (file, why) in [
        ("~/out", "out of your home"),
        ("~/folder", "it is no file"),
        ("~/absent", "it cannot be read"),
        ("/etc/hostname", "it is not in your home"),
        ("@work.txt", "it is no whole path"),
    ] {
        let ended = shoot(&env, &["--setup", "true", "--setup-read", file, "--validate", "true"]).exits(2);
        assert!(ended.stderr.contains(&format!("the file {file}: ")) && ended.stderr.contains(why), "{}", ended.stderr);
    }
    let ended = shoot(&env, &["--setup-read", &with_key(&env), "--validate", "true"]).exits(2);
    let message = ended.ending()["failure"]["message"].clone();
    assert!(message.as_str().is_some_and(|message| message.contains("there is no --setup")), "{ended:?}");
    assert!(!env.path(".nietz/runs/r1").exists() && server.calls() == 0);
}

#[test]
fn a_flow_gives_no_file_that_the_user_has_not_named() {
    let flow = r#"
local git = require("@nietz/git")
return require("@nietz").flow {
	name = "takes", summary = "Takes a file", params = { keys = { type = "string", many = true, default = {} } },
	permissions = { git = true, exec = { "cat" }, exec_read = { "{keys}" } },
	run = function(ctx)
		git.branch(`nietz/{ctx.run}`, git.head().commit)
		local tree = git.worktree { name = "a", branch = `nietz/{ctx.run}` }
		return tree:exec({ program = { "cat", "FILE" }, read = { "FILE" } }).output
	end,
}
"#;
    let env = Env::new();
    let key = with_key(&env);
    let env = env.flow("takes", &flow.replace("FILE", &key));
    init(&env.workspace());
    assert_eq!(env.run(["takes"]).go().exits(5).failure(), "permission-refused");
    let named = env.var("NIETZ_RUN", "r2").run(["takes", "--keys", &key]).go().result();
    assert_eq!(named, "[redacted:.netrc]\n");
}

/// A setup that leaves what is never the same twice.
const STAMP: &str = "mkdir -p node_modules && cat /proc/sys/kernel/random/uuid > node_modules/stamp";

#[test]
fn a_setup_is_run_once_and_not_again_when_a_session_that_was_killed_goes_on() {
    let arguments = ["--setup", STAMP, "--validate", CHECK];
    let files = [("work.txt", "todo\n"), ("check.sh", "test -s node_modules/stamp && grep -q done work.txt\n")];
    let script = || model("", "work.txt", ("todo", "done"));
    let is_setup = |line: &&Value| line["is"]["intent"]["request"]["run"]["shell"] == STAMP;
    let server = script();
    let env = project(&server, &files);
    assert_eq!(shoot(&env, &arguments).result()["status"], "success");
    let journal = env.journal();
    let setup = journal.lines.iter().find(is_setup).expect("it ran");
    let key = &setup["is"]["intent"]["key"];
    let ended = journal.lines.iter().find(|line| line["is"]["outcome"]["key"] == *key);
    let ended = ended.expect("it ended")["seq"].as_u64().expect("it has a number");
    for line in [ended, ended + 3] {
        let server = script();
        let env = project(&server, &files);
        let killed = env.run(["shots-on-goal", "--model-a", "openai/a", "say done"].into_iter().chain(arguments));
        assert_eq!(killed.var("NIETZ_FAULT", &format!("kill@{line}")).go().signal, Some(9));
        assert_eq!(env.resume().go().result()["status"], "success", "line {line}");
        let intents = env.journal().lines.iter().filter(is_setup).count();
        assert_eq!(intents, 1, "line {line}");
        assert!(!git(&env.workspace(), ["branch", "--list"]).contains("setup"), "what was made for it is gone");
    }
}

#[test]
fn a_setup_has_the_network_only_where_that_is_allowed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let setup = format!(
        "perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0) and connect(S,sockaddr_in({port},inet_aton(\"127.0.0.1\"))) or exit 1' && {STAMP}"
    );
    let server = model("", "work.txt", ("todo", "done"));
    let env = project(&server, &[("work.txt", "todo\n"), ("check.sh", DONE)]);
    let check = ["--setup", &setup, "--validate", CHECK];
    let ended = shoot(&env, &check).exits(1);
    let hint = ended.ending()["failure"]["hint"].clone();
    assert!(hint.as_str().is_some_and(|hint| hint.contains("if it needs the network: --allow-net")), "{ended:?}");
    assert_eq!(server.calls(), 0, "no model is asked before the setup is done");
    assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "nothing is left of it");
    let env = env.var("NIETZ_RUN", "r2");
    let allowed: Vec<&str> = check.into_iter().chain(["--allow-net"]).collect();
    assert_eq!(shoot(&env, &allowed).result()["status"], "success");
}

#[test]
fn what_is_not_committed_is_said_and_taken_where_that_is_wanted() {
    for (more, seen, told) in [
        (
            &[][..],
            "committed",
            "This starts from the last commit, without 2 files with changes that are not committed: `new.txt`, `seen.txt`. \
             --with-changes starts from the files as they are.",
        ),
        (
            &["--with-changes"],
            "not committed",
            "This starts from the files as they are, with 2 files with changes that are not committed: `new.txt`, `seen.txt`.",
        ),
    ] {
        let server = model("", "work.txt", ("todo", "done"));
        let check = format!("grep -qx '{seen}' seen.txt && grep -q done work.txt\n");
        let env = project(&server, &[("work.txt", "todo\n"), ("seen.txt", "committed\n"), ("check.sh", &check)]);
        env.write("seen.txt", "not committed\n");
        env.write("new.txt", "new\n");
        let ended = shoot(&env, &[&["--validate", CHECK], more].concat());
        assert_eq!(ended.result()["status"], "success", "{ended:?}");
        assert!(said(&ended).contains(told), "{}", said(&ended));
        assert_eq!((env.read("seen.txt"), env.read("work.txt")), ("not committed\n".to_owned(), "todo\n".to_owned()));
    }
}

/// A Python project, with an environment that pip has made of it.
const SHOP: &[(&str, &str)] = &[
    (
        "setup.py",
        "from setuptools import setup\nsetup(name='shop', version='1.0', package_dir={'': 'src'}, packages=['shop'])\n",
    ),
    ("src/shop/__init__.py", "price = 'todo'\n"),
    ("check.py", "import shop\nprint(shop.price, shop.__file__)\nassert shop.price == 'done'\n"),
];

#[test]
fn an_editable_install_of_pips_is_the_worktrees_code_in_the_checkout_and_by_the_setup() {
    if !has("/usr/bin/python3") || !has("/usr/bin/git") {
        return;
    }
    const MAKE: &str =
        "/usr/bin/python3 -m venv .venv && .venv/bin/pip install -q --no-index --no-build-isolation --no-deps -e .";
    const CHECK: &str = ".venv/bin/python check.py";
    for by_setup in [false, true] {
        let server = model("", "src/shop/__init__.py", ("todo", "done"));
        let env = project(&server, SHOP);
        let mut arguments = vec!["--validate", CHECK];
        if by_setup {
            arguments.extend(["--setup", MAKE]);
        } else {
            let mut made = Command::new("sh");
            made.args(["-c", MAKE]).current_dir(env.workspace()).env_clear().env("PATH", "/usr/bin:/bin");
            if !made.status().is_ok_and(|status| status.success()) {
                eprintln!("SKIPPED: pip cannot install here without the network");
                return;
            }
        }
        // The checkout's own code would pass.
        env.write("src/shop/__init__.py", "price = 'done'\n");
        let ended = shoot(&env, &arguments);
        assert_eq!(ended.result()["status"], "success", "{ended:?}");
        assert!(said(&ended).contains("What in them leads to the project leads to the worktree: "), "{}", said(&ended));
        assert!(
            !said(&ended).contains("passes before anything is changed"),
            "the start commit's code was run: {}",
            said(&ended)
        );
        assert!(!said(&ended).contains("easy-install"), "a list of pip's is no package: {}", said(&ended));
        let rows = std::fs::read_to_string(env.path(".nietz/shots-on-goal/r1/validation_run.jsonl")).expect("it ran");
        assert!(rows.contains("done src/shop/__init__.py"), "{rows}");
    }
}

#[test]
fn the_links_of_a_workspace_of_npms_lead_to_the_worktree_after_a_setup() {
    if !has("/usr/bin/npm") {
        return;
    }
    let server = model("", "packages/core/index.js", ("todo", "done"));
    let env = project(
        &server,
        &[
            ("package.json", r#"{"name": "all", "private": true, "workspaces": ["packages/*"]}"#),
            ("packages/core/package.json", r#"{"name": "@my/core", "version": "1.0.0"}"#),
            ("packages/core/index.js", "module.exports = 'todo';\n"),
            (
                "check.js",
                "const core = require('@my/core');\nconsole.log(core);\nprocess.exit(core === 'done' ? 0 : 1);\n",
            ),
        ],
    );
    env.write("packages/core/index.js", "module.exports = 'done';\n");
    let setup = "npm install --offline --no-audit --no-fund --silent";
    let ended = shoot(&env, &["--setup", setup, "--validate", "node check.js"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert!(said(&ended).contains("leads to the project leads to the worktree: `core`"), "{}", said(&ended));
}

#[test]
fn a_wheel_of_ones_own_is_installed_without_the_network_and_found_by_an_activated_environment() {
    if !has("/usr/bin/python3") {
        return;
    }
    let server = model("", "work.txt", ("todo", "done"));
    let env = project(
        &server,
        &[("work.txt", "todo\n"), ("check.py", "import dep\nassert open('work.txt').read() == 'done\\n'\n")],
    );
    let make = "python3 -m venv .venv && .venv/bin/pip --version && mkdir -p dep && \
                printf \"from setuptools import setup\\nsetup(name='dep', version='1.0', py_modules=['dep'])\\n\" > dep/setup.py && echo > dep/dep.py && \
                .venv/bin/pip install -q --no-index --no-build-isolation ./dep";
    let ended = shoot(
        &env,
        &[
            "--setup",
            make,
            "--validate",
            ".venv/bin/python check.py",
            "--validate",
            ". .venv/bin/activate && python check.py",
        ],
    );
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
}
