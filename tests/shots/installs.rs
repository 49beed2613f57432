//! What a model installs is there for its next commands and never in the user's own folders; what validates installs it anew,
//! by the user's own setup, from what the work says that it needs.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::basics::{call, column, shoot, step};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

/// Makes files outside of the program, as a package's author does.
#[track_caller]
fn make(folder: &Path, script: &str) -> String {
    let made = Command::new("sh").args(["-ec", script]).current_dir(folder).output().expect("there is a shell");
    assert!(made.status.success(), "{script}: {}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8_lossy(&made.stdout).trim().to_owned()
}

#[track_caller]
fn outputs(env: &Env, ended: &Ended) -> Vec<String> {
    assert_eq!(ended.result()["status"], "success", "{ended:?}\n{:?}", column(env, "tool_call", "output"));
    column(env, "tool_call", "output").iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

/// Runs these commands or writes these files, one after another.
fn doing(steps: Vec<(&'static str, Value)>) -> ModelServer {
    ModelServer::start(move |request: &Request| match steps.get(step(request)) {
        Some((name, arguments)) => call(name, arguments),
        None => Response::text("I did it."),
    })
}

#[test]
fn a_package_of_npms_is_there_for_the_next_command_and_for_validation_by_the_setup() {
    if !Path::new("/usr/bin/npm").exists() {
        return;
    }
    const INSTALL: &str = "npm install --offline --no-audit --no-fund --silent";
    let server = doing(vec![
        ("run", json!({ "command": format!("{INSTALL} ./wares/extra-1.0.0.tgz") })),
        ("run", json!({ "command": "node check.js" })),
        ("run", json!({ "command": "ls node_modules" })),
    ]);
    let check = "const wanted = require('./package.json').dependencies;\nif (!wanted) { console.log('nothing is wanted'); process.exit(1); }\n\
                 console.log(require('extra'));\n";
    let env = Env::with(&server)
        .file(".gitignore", "node_modules\n")
        .file("package.json", r#"{"name": "app", "version": "1.0.0", "private": true}"#)
        .file("check.js", check)
        .file("wares/package/package.json", r#"{"name": "extra", "version": "1.0.0"}"#)
        .file("wares/package/index.js", "module.exports = 'so it is';\n");
    make(&env.path("wares"), "tar czf extra-1.0.0.tgz package && rm -r package");
    init(&env.workspace());
    // Installed in the checkout, and no part of the repository.
    let env = env.file("node_modules/old/index.js", "old\n");
    let ended = shoot(&env, &["--validate", "node check.js", "--setup", INSTALL]);
    let outputs = outputs(&env, &ended);
    assert!(outputs[1].starts_with("exit code 0\nso it is\n"), "{outputs:?}");
    assert!(outputs[2].contains("extra"), "{outputs:?}");
    assert_eq!(column(&env, "validation_run", "output")[0], "so it is\n");
    assert!(!env.path("node_modules/extra").exists() && env.path("node_modules/old/index.js").exists());
}

#[test]
fn what_validation_lacks_without_a_setup_is_said() {
    if !Path::new("/usr/bin/node").exists() {
        return;
    }
    let server = doing(vec![
        ("run", json!({ "command": "mkdir -p node_modules/extra && echo 1 > node_modules/extra/index.js" })),
        ("write_file", json!({ "path": "go.txt", "text": "go" })),
        (
            "replace_in_file",
            json!({ "path": "package.json", "old": "\"private\": true", "new": "\"private\": true, \"dependencies\": {\"extra\": \"1\"}" }),
        ),
        ("run", json!({ "command": "node check.js" })),
    ]);
    let env = Env::with(&server)
        .file(".gitignore", "node_modules\n")
        .file("package.json", r#"{"name": "app", "version": "1.0.0", "private": true}"#)
        .file("check.js", "if (!require('fs').existsSync('go.txt')) process.exit(1);\nrequire('extra');\n");
    init(&env.workspace());
    let env = env.file("node_modules/old/index.js", "old\n");
    let ended = shoot(&env, &["--validate", "node check.js", "--max-breakdowns", "0"]);
    let outputs = column(&env, "tool_call", "output");
    assert!(outputs[3].as_str().is_some_and(|text| text.starts_with("exit code 0")), "{outputs:?} {ended:?}");
    let validated = column(&env, "validation_run", "output")[0].clone();
    let said = "[what `package.json` asks for now is not installed for validation: --setup CMD installs it";
    assert!(validated.as_str().is_some_and(|text| text.contains(said)), "{validated}");
}

#[test]
fn a_package_of_pips_is_there_for_the_next_command_and_for_validation_by_the_setup() {
    let pip = Command::new("/usr/bin/python3").args(["-m", "pip", "--version"]).output();
    if !pip.is_ok_and(|ended| ended.status.success()) {
        eprintln!("SKIPPED: this machine's Python has no pip");
        return;
    }
    // The system's pip, because an environment with one of its own takes long to make.
    const SETUP: &str = "/usr/bin/python3 -m venv --without-pip .venv && \
                         /usr/bin/python3 -m pip --python .venv/bin/python install -q --no-index --find-links wares -r requirements.txt";
    const CHECK: &str = ".venv/bin/python check.py";
    let server = doing(vec![
        (
            "run",
            json!({ "command": "/usr/bin/python3 -m pip --python .venv/bin/python install -q --no-index --find-links wares extra" }),
        ),
        ("run", json!({ "command": ".venv/bin/python -c 'import extra; print(extra.said)'" })),
        ("write_file", json!({ "path": "requirements.txt", "text": "extra\n" })),
    ]);
    let wheel = "import zipfile\nw = zipfile.ZipFile('extra-1.0-py3-none-any.whl', 'w')\nw.writestr('extra.py', 'said = \"so it is\"\\n')\n\
                 w.writestr('extra-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: extra\\nVersion: 1.0\\n')\n\
                 w.writestr('extra-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
                 w.writestr('extra-1.0.dist-info/RECORD', '')\nw.close()\n";
    let check = "if 'extra' not in open('requirements.txt').read():\n    raise SystemExit('nothing is wanted')\nimport extra\nprint(extra.said)\n";
    let env = Env::with(&server)
        .file(".gitignore", ".venv\n")
        .file("requirements.txt", "")
        .file("check.py", check)
        .file("wares/make.py", wheel);
    make(&env.path("wares"), "/usr/bin/python3 make.py && rm make.py");
    init(&env.workspace());
    let ended = shoot(&env, &["--validate", CHECK, "--setup", SETUP]);
    let outputs = outputs(&env, &ended);
    assert_eq!(outputs[1], "exit code 0\nso it is\n");
    assert_eq!(column(&env, "validation_run", "output")[0], "so it is\n");
}

/// A script of the work's own is run by the setup, which is run again because of it: it may have no key of a registry.
#[test]
fn the_setup_that_is_run_again_on_the_work_has_no_key_and_says_so_where_it_fails_for_that() {
    const INSTALL: &str = "sh install.sh";
    const STEAL: &str = "mkdir -p node_modules/dep\ncat ~/.netrc > node_modules/dep/loot 2>/dev/null || echo none > node_modules/dep/loot\n";
    for (script, expected) in
        [(STEAL, "none\n"), ("grep -q password ~/.netrc || { echo no key; exit 3; }\n", "no key\n")]
    {
        let server = doing(vec![
            ("read_files", json!({ "paths": ["install.sh", "package.json"] })),
            ("write_file", json!({ "path": "install.sh", "text": script })),
            ("write_file", json!({ "path": "package.json", "text": r#"{"dependencies": {"dep": "2"}}"# })),
        ]);
        let env = Env::with(&server)
            .file(".gitignore", "node_modules\n")
            .file("package.json", r#"{"dependencies": {"dep": "1"}}"#)
            .file("install.sh", "mkdir -p node_modules/dep && grep -c password ~/.netrc > node_modules/dep/loot\n")
            .file("check.sh", "cat node_modules/dep/loot; grep -q 2 package.json\n");
        init(&env.workspace());
        let place = env.home().join(".netrc");
        std::fs::write(&place, "machine registry.example\nlogin us\npassword registry-key-1234567890\n").expect("ours");
        let more =
            ["--setup", INSTALL, "--setup-read", "~/.netrc", "--validate", "sh check.sh", "--max-breakdowns", "0"];
        let ended = shoot(&env, &more);
        let validated = column(&env, "validation_run", "output")[0].as_str().expect("a text").to_owned();
        assert!(validated.ends_with(expected), "{validated} {ended:?}");
        let said = "run again without --setup-read because of `package.json`, ended with 3";
        assert_eq!(validated.contains(said), script != STEAL, "{validated}");
        let journal = std::fs::read_to_string(env.journal_path()).expect("it is there");
        assert!(!journal.contains("registry-key-1234567890"));
    }
}

/// As setuptools writes it for a project whose packages lie beside each other: a module that finds each by its whole path.
const FINDER: &str = "import sys\nfrom importlib.machinery import PathFinder\nfrom importlib.util import spec_from_file_location\n\
    MAPPING = {'shop': 'CHECKOUT/shop'}\n\
    class _EditableFinder:\n    @classmethod\n    def find_spec(cls, fullname, path=None, target=None):\n\
    \x20       if fullname in MAPPING:\n            at = MAPPING[fullname]\n\
    \x20           return spec_from_file_location(fullname, at + '/__init__.py', submodule_search_locations=[at])\n\
    def install():\n    sys.meta_path.append(_EditableFinder)\n";

#[test]
fn a_finder_of_setuptools_leads_to_the_code_of_the_worktree() {
    let venv = Command::new("/usr/bin/python3").args(["-m", "venv", "--help"]).output();
    if !venv.is_ok_and(|ended| ended.status.success()) {
        eprintln!("SKIPPED: this machine's Python makes no environments");
        return;
    }
    let server = doing(vec![("replace_in_file", json!({ "path": "shop/__init__.py", "old": "todo", "new": "done" }))]);
    let env = Env::with(&server)
        .file(".gitignore", ".venv\n")
        .file("shop/__init__.py", "price = 'todo'\n")
        // Started elsewhere, so that the folder that it runs in does not help.
        .file(
            "check.sh",
            "cd / && \"$OLDPWD/.venv/bin/python\" -c \"import shop; print(shop.price); assert shop.price == 'done'\"\n",
        );
    init(&env.workspace());
    make(&env.workspace(), "/usr/bin/python3 -m venv --without-pip .venv");
    let packages = make(&env.workspace(), "echo .venv/lib/python3*/site-packages");
    let name = "__editable___shop_1_0_finder";
    env.write(&format!("{packages}/{name}.py"), FINDER.replace("CHECKOUT", &env.workspace().display().to_string()));
    env.write(&format!("{packages}/__editable__.shop-1.0.pth"), format!("import {name}; {name}.install()\n"));
    // The checkout's own code would pass.
    env.write("shop/__init__.py", "price = 'done'\n");
    let ended = shoot(&env, &["--validate", "sh check.sh"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert!(!ended.stdout.contains("passes before anything is changed"), "the start commit's code was run: {ended:?}");
    assert!(ended.stdout.contains("the worktree: `shop_1_0`"), "it is told: {ended:?}");
    assert_eq!(column(&env, "validation_run", "output")[0], "done\n");
}

#[test]
fn a_crate_is_added_with_the_network_and_the_users_registry_stays_as_it_is() {
    let server = doing(vec![
        ("run", json!({ "command": "cargo add -q extra" })),
        ("replace_in_file", json!({ "path": "src/lib.rs", "old": "    0\n", "new": "    extra::one()\n" })),
        ("run", json!({ "command": "cargo test -q 2>&1 | tail -n 20" })),
    ]);
    let env = Env::with(&server)
        .file(".gitignore", "target\n")
        .file("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n")
        .file(
            "src/lib.rs",
            "pub fn answer() -> u32 {\n    0\n}\n#[test]\nfn answers() {\n    assert_eq!(answer(), 1);\n}\n",
        );
    let home = env.home();
    let wares = home.join("wares");
    let index = wares.join("index/ex/tr");
    for folder in [wares.join("extra-1.0.0/src"), index.clone(), home.join(".cargo/registry")] {
        std::fs::create_dir_all(folder).expect("a folder can be made");
    }
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("it can be written");
    write(
        &wares.join("extra-1.0.0/Cargo.toml"),
        "[package]\nname = \"extra\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
    );
    write(&wares.join("extra-1.0.0/src/lib.rs"), "pub fn one() -> u32 {\n    1\n}\n");
    let sum = make(
        &wares,
        "tar czf extra-1.0.0.crate extra-1.0.0 && rm -r extra-1.0.0 && sha256sum extra-1.0.0.crate | cut -c1-64",
    );
    let row = json!({"name": "extra", "vers": "1.0.0", "deps": [], "cksum": sum, "features": {}, "yanked": false});
    write(&index.join("extra"), &format!("{row}\n"));
    let dl = format!("file://{}/{{crate}}-{{version}}.crate", wares.display());
    write(&wares.join("index/config.json"), &json!({ "dl": dl }).to_string());
    init(&wares.join("index"));
    let config = format!(
        "[source.crates-io]\nreplace-with = \"own\"\n[source.own]\nregistry = \"file://{}\"\n",
        wares.join("index").display()
    );
    write(&home.join(".cargo/config.toml"), &config);
    let tools = Path::new(env!("CARGO")).parent().expect("cargo is in a folder");
    let env = env
        .config(&format!("commands: {{read: [{}]}}\n", wares.display()))
        .var("PATH", &format!("{}:/usr/bin:/bin", tools.display()));
    let env = match tools.ancestors().nth(3).filter(|folder| folder.join("toolchains").is_dir()) {
        Some(rustup) => env.var("RUSTUP_HOME", &rustup.display().to_string()),
        None => env,
    };
    init(&env.workspace());
    let ended = shoot(&env, &["--validate", "cargo test -q", "--allow-net"]);
    let outputs = outputs(&env, &ended);
    assert!(outputs[0].starts_with("exit code 0\n"), "{outputs:?}");
    assert!(outputs[2].contains("1 passed"), "{outputs:?}");
    let left = std::fs::read_dir(home.join(".cargo/registry")).expect("it is there").count();
    assert_eq!(left, 0, "nothing is downloaded into the user's own registry");
    let manifest = git(&env.workspace(), ["show", "nietz/r1:Cargo.toml"]);
    assert!(manifest.contains("extra = \"1.0.0\""), "{manifest}");
}
