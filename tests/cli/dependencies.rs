//! The promise: a worktree has the dependencies of the project, and what leads from them to the project leads to the worktree:
//! no other code than the worktree's is tested, and nothing of the user's is changed.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git;
use crate::support::process::Ended;

/// Runs commands in one worktree, each with the dependencies of the checkout, or of the worktree where the first one ran.
const FLOW: &str = r#"
local git = require("@nietz/git")
return require("@nietz").flow {
	name = "tests",
	summary = "Runs commands with the project's dependencies",
	params = {
		scripts = { type = "string", positional = true, required = true, many = true },
		setup = { type = "boolean" },
		builds = { type = "boolean" },
	},
	permissions = { git = true, exec = { "{scripts}" } },
	run = function(ctx)
		local function worktree(name)
			local branch = `nietz/{ctx.run}-{name}`
			git.branch(branch, git.head().commit)
			return git.worktree { name = name, branch = branch }
		end
		local found = if not ctx.params.setup then git.dependencies() else nil
		local tree = worktree("one")
		local ran = {}
		for at, script in ctx.params.scripts do
			local setup = if ctx.params.setup and at == 1 then worktree("setup") else nil
			local ok, done = pcall(function()
				return (setup or tree):exec {
					shell = script,
					dependencies = found,
					builds = if ctx.params.builds then { keep = at == 1 } else nil,
				}
			end)
			table.insert(ran, if ok then `{done.exit}: {done.output}` else `{done.code}: {done.message}`)
			found = if setup ~= nil then setup:dependencies() else found
			tree:restore()
		end
		return { found = found, ran = ran }
	end,
}
"#;

pub(super) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A project whose test says what its code is, and which says otherwise in the checkout since the last commit.
pub(super) fn project(files: &[(&str, &str)]) -> Env {
    let env = Env::new().flow("tests", FLOW).file(".gitignore", ".venv/\nnode_modules/\nbuilt/\n");
    let env = files.iter().fold(env, |env, (path, text)| env.file(path, text));
    git::init(&env.workspace());
    env
}

pub(super) fn run(env: &Env, arguments: &[&str]) -> Ended {
    env.run(["tests"].into_iter().chain(arguments.iter().copied())).go()
}

pub(super) fn ran(ended: &Ended) -> Vec<String> {
    let result = ended.result();
    let all = result["ran"].as_array().unwrap_or_else(|| panic!("{ended:?}"));
    all.iter().map(|text| text.as_str().expect("it is text").to_owned()).collect()
}

fn paths(result: &Value) -> Vec<&str> {
    result["found"]["folders"].as_array().into_iter().flatten().filter_map(|folder| folder["path"].as_str()).collect()
}

#[test]
fn packages_beside_the_sources_are_found_and_given_and_nothing_of_them_changes() {
    let env = project(&[("packages/a/package.json", "{}"), ("src/vendor/kept.txt", "committed")])
        .file("node_modules/dep/index.js", "of the checkout\n")
        .file("packages/a/node_modules/own/index.js", "of the package\n")
        .file("built/node.txt", "no dependency");
    let ended = run(
        &env,
        &[
            "cat node_modules/dep/index.js packages/a/node_modules/own/index.js; ls built 2>/dev/null; cat src/vendor/kept.txt",
            "echo x > node_modules/dep/index.js; echo y > node_modules/new && cat node_modules/dep/index.js node_modules/new",
            "cat node_modules/dep/index.js; ls node_modules; git status --porcelain --ignored",
        ],
    );
    assert_eq!(paths(&ended.result()), ["node_modules", "packages/a/node_modules"]);
    let expected = [
        "0: of the checkout\nof the package\ncommitted",
        // Written where the system has a view for it; each command begins with what the user has.
        "0: x\ny\n",
        "0: of the checkout\ndep\n!! node_modules/\n!! packages/a/node_modules/\n",
    ];
    assert_eq!(ran(&ended), expected);
    assert_eq!(env.read("node_modules/dep/index.js"), "of the checkout\n");
    assert!(!env.path("node_modules/new").exists());
}

#[test]
fn a_link_of_a_workspace_leads_to_the_worktree_and_never_to_the_checkout() {
    let env = project(&[("packages/core/index.js", "committed\n")]).file("node_modules/.keep", "");
    // A checkout that has changed since.
    env.write("packages/core/index.js", "not committed\n");
    std::fs::create_dir_all(env.path("node_modules/@my")).expect("a folder can be made");
    std::os::unix::fs::symlink("../../packages/core", env.path("node_modules/@my/core")).expect("a link can be made");
    std::os::unix::fs::symlink(env.path("packages/core"), env.path("node_modules/whole")).expect("a link can be made");
    let script = "cat node_modules/@my/core/index.js node_modules/whole/index.js";
    let ended = run(&env, &[script]);
    assert_eq!(ended.result()["found"]["folders"][0]["editable"], json!(["core", "whole"]));
    assert_eq!(ran(&ended), ["0: committed\ncommitted\n"]);
    // Where nothing can be mounted it is refused by name.
    let env = env.config("commands: {ends: subreaper}\n").var("NIETZ_RUN", "r2");
    let refused = ran(&run(&env, &[script])).remove(0);
    assert!(refused.starts_with("command-failed: ") && refused.contains("core, whole"), "{refused}");
}

#[test]
fn without_mounts_plain_dependencies_are_linked_and_the_links_are_gone_afterwards() {
    let env =
        project(&[]).file("node_modules/dep/index.js", "of the checkout\n").config("commands: {ends: subreaper}\n");
    let ended = run(&env, &["cat node_modules/dep/index.js; echo x > node_modules/dep/index.js", "true"]);
    assert!(ran(&ended)[0].contains("of the checkout\n"), "{ended:?}");
    assert_eq!(env.read("node_modules/dep/index.js"), "of the checkout\n");
    let tree = env.home().join("worktrees");
    let left = std::fs::read_dir(tree).expect("it is there").flatten().flat_map(|one| std::fs::read_dir(one.path()));
    let links = left.flatten().flatten().filter(|entry| entry.path().join("node_modules").is_symlink());
    assert_eq!(links.count(), 0);
}

#[test]
fn a_python_environment_runs_and_its_editable_install_is_the_worktrees() {
    if !has("python3") {
        return;
    }
    let env = project(&[("src/shop/__init__.py", "price = 'committed'\n")]);
    let made =
        Command::new("python3").args(["-m", "venv", "--without-pip", ".venv"]).current_dir(env.workspace()).status();
    assert!(made.is_ok_and(|status| status.success()));
    let packages = std::fs::read_dir(env.path(".venv/lib")).expect("it has one").flatten().next().expect("one");
    let packages = packages.path().join("site-packages");
    std::fs::write(packages.join("__editable__.shop-1.0.pth"), format!("{}\n", env.path("src").display()))
        .expect("written");
    std::fs::write(packages.join("dep.py"), "name = 'a dependency'\n").expect("it can be written");
    env.write("src/shop/__init__.py", "price = 'not committed'\n");
    let script = "import shop, dep; print(shop.price, dep.name)";
    let ended = run(&env, &[&format!(".venv/bin/python -c \"{script}\"")]);
    assert_eq!(ended.result()["found"]["folders"][0]["editable"], json!(["shop-1.0"]));
    assert_eq!(ran(&ended), ["0: committed a dependency\n"]);
    // As a terminal in which it is activated has it.
    let path = format!("{}:/usr/bin:/bin", env.path(".venv/bin").display());
    let active = env.var("PATH", &path).var("NIETZ_RUN", "r2");
    assert_eq!(ran(&run(&active, &[&format!("python -c \"{script}\"")])), ["0: committed a dependency\n"]);
}

#[test]
fn what_a_command_has_installed_is_given_to_other_worktrees() {
    let env = project(&[("lib.txt", "committed\n")]);
    let ended = run(
        &env,
        &[
            "--setup",
            "mkdir -p node_modules/dep && echo installed > node_modules/dep/a && ln -s $PWD/lib.txt node_modules/lib",
            "cat node_modules/dep/a node_modules/lib; echo changed > lib.txt; cat node_modules/lib; rm -r node_modules/dep; ls node_modules",
            "cat node_modules/dep/a",
        ],
    );
    assert_eq!(ran(&ended), ["0: ", "0: installed\ncommitted\nchanged\nlib\n", "0: installed\n"]);
}

#[test]
fn builds_are_kept_and_what_a_model_has_built_is_not() {
    let env = project(&[]);
    let show = "cat $CARGO_TARGET_DIR/made 2>/dev/null; ls";
    let ended = run(
        &env,
        &[
            "--builds",
            "--",
            "mkdir -p $CARGO_TARGET_DIR && echo by the user > $CARGO_TARGET_DIR/made",
            &format!("{show}; echo by a model > $CARGO_TARGET_DIR/made && cat $CARGO_TARGET_DIR/made"),
            show,
        ],
    );
    assert_eq!(ran(&ended), ["0: ", "0: by the user\nflows\nby a model\n", "0: by the user\nflows\n"]);
}

#[test]
fn git_shows_the_history_and_nothing_of_the_repositorys_configuration() {
    let env = project(&[("a.txt", "one\n")]);
    let place = env.workspace();
    git::git(&place, ["tag", "-a", "v1.2", "-m", "the first"]);
    git::git(&place, ["config", "remote.origin.url", "https://user:password@example.org/x.git"]);
    git::git(&place, ["config", "core.fsmonitor", "touch /tmp/never"]);
    std::fs::write(place.join(".git/hooks/pre-commit"), "#!/bin/sh\nexit 1\n").expect("it can be written");
    let script = "git describe --dirty --tags; echo two > a.txt; git describe --dirty --tags; git log --oneline | wc -l; git remote; \
                  git config --list | grep -c password; git -c user.name=a -c user.email=a@b commit -qam x && git log --oneline | wc -l";
    let ended = run(&env, &[script, "git log --oneline | wc -l; git status --porcelain"]);
    assert_eq!(ran(&ended), ["0: v1.2\nv1.2-dirty\n1\n0\n2\n", "0: 1\n"]);
    assert_eq!(git::git(&place, ["log", "--all", "--oneline"]).lines().count(), 1);
    assert!(!Path::new("/tmp/never").exists());
}

#[test]
fn caches_of_build_tools_are_read_and_never_changed() {
    for (run, config) in [("r1", "{}\n"), ("r2", "commands: {ends: subreaper}\n")] {
        let env = project(&[]).config(config).var("NIETZ_RUN", run);
        let cache = env.home().join(".m2/repository");
        std::fs::create_dir_all(&cache).expect("a folder can be made");
        std::fs::write(cache.join("dep.jar"), "the user's\n").expect("it can be written");
        let place = cache.display();
        let script =
            format!("cat {place}/dep.jar; {{ echo x > {place}/dep.jar; echo y > {place}/new; }} 2>/dev/null; true");
        assert_eq!(ran(&self::run(&env, &[&script])), ["0: the user's\n"], "{config}");
        assert_eq!(std::fs::read_to_string(cache.join("dep.jar")).expect("it is there"), "the user's\n", "{config}");
        assert!(!cache.join("new").exists(), "{config}");
    }
}

#[test]
fn a_folder_of_dependencies_that_leads_to_keys_is_refused_by_its_name() {
    for leads_to in [".ssh", "."] {
        let env = project(&[("a.txt", "one\n")]).file(".gitignore", "node_modules\n");
        git::git(&env.workspace(), ["commit", "-qam", "a link is ignored, too"]);
        std::fs::create_dir_all(env.home().join(".ssh")).expect("a folder can be made");
        std::fs::write(env.home().join(".ssh/id"), "a key\n").expect("it can be written");
        std::os::unix::fs::symlink(env.home().join(leads_to), env.path("node_modules")).expect("a link can be made");
        let refused = ran(&run(&env, &["cat node_modules/id node_modules/.ssh/id"])).remove(0);
        let told = "command-failed: the dependencies in node_modules are not shown to commands";
        assert!(refused.starts_with(told), "{leads_to}: {refused}");
    }
}
