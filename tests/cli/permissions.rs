//! The promise: what a flow uses and does not declare is told before it runs, refused when it runs, and kept out of packs,
//! in the same words each time.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git;

/// A permission, what else is declared, and a line that needs it.
const USES: &[(&str, &str, &str)] = &[
    ("llm", "", "return llm.chat { prompt = 'x' }"),
    ("llm", "", "return llm['chat']({ prompt = 'x' })"),
    ("llm", "", "return llm.model()"),
    ("files", "", "return files.read('x')"),
    ("files", "", "return files.find('**')"),
    ("files", "", "return require('@nietz/files').read('x')"),
    ("files", "", "return reading.read('x')"),
    ("git", "", "return git.head()"),
    ("git", "git = 'read'", "return git.branch('nietz/y', git.commit_of('main'))"),
    ("exec", "git = true", "return tree():exec({ program = { 'ls' } })"),
    ("notify", "", "return nietz.notify { title = 'x', text = 'y' }"),
    ("exec", "git = true", "local made = tree() return made:exec { program = { 'ls' } }"),
];

/// The line of a flow on which what it does stands.
const LINE: usize = 12;

fn flow(declared: &str, line: &str) -> String {
    // Where git is not declared, the helper that works with it is left out.
    let tree = match declared.contains("git") {
        true => "git.branch('nietz/x', git.head().commit) return git.worktree { name = 'x', branch = 'nietz/x' }",
        false => "",
    };
    format!(
        "local files = require('@nietz/files')\n\
         local git = require('@nietz/git')\n\
         local llm = require('@nietz/llm')\n\
         local nietz = require('@nietz')\n\
         local reading = files\n\
         local function tree()\n\
         {tree}\n\
         end\n\
         return nietz.flow {{\n\
         name = 'uses', summary = 'Uses', permissions = {{ {declared} }},\n\
         run = function()\n\
         {line}\n\
         end }}\n"
    )
}

/// What is said of a line, without what is said of the rest.
fn told(found: &str) -> Vec<Value> {
    let found = found.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    found.filter(|found| found["line"] == LINE).collect()
}

#[test]
fn what_is_used_and_not_declared_is_told_refused_and_kept_out_in_the_same_words() {
    for (permission, others, line) in USES {
        let text = flow(others, line);
        let about = format!(
            "name: uses\nversion: 1.0.0\nsummary: x\nlicence: MIT\nhost_api: 1\npermissions: {{uses: {{{}}}}}\n",
            others.replace(" =", ":")
        );
        let env = Env::new().file("mine/flows/uses.lua", &text).file("mine/pack.yaml", &about).flow("uses", &text);
        git::init(&env.workspace());

        let checked = env.nietz(["check", "--json", "flows/uses.lua"]).go().exits(4);
        let told = told(&checked.stdout);
        assert_eq!(told.len(), 1, "{line}: {}", checked.stdout);
        assert_eq!((&told[0]["file"], &told[0]["code"]), (&json!("flows/uses.lua"), &json!("permission-refused")));

        let ran = env.run(["uses"]).go().exits(5);
        let failure = &ran.ending()["failure"];
        let (message, hint) = (failure["message"].as_str().expect("a text"), failure["hint"].as_str().expect("a text"));
        assert_eq!(told[0]["message"], format!("{message}; {hint}"), "{line}");
        assert!(hint.starts_with(&format!("add `permissions = {{ {permission} = ")), "{line}: {hint}");

        let added = env.nietz(["pack", "add", "mine", "--yes"]).go().exits(4);
        let place = format!("flows/uses.lua:{LINE}:");
        let said = added.stderr.lines().find(|line| line.contains(&place)).unwrap_or_else(|| panic!("{added:?}"));
        assert!(added.stderr.contains("pack-invalid") && said.ends_with(&format!("{message}; {hint}")), "{said}");

        // Declared, it is fine.
        let declared = match *permission {
            "exec" => format!("{others}, exec = {{ 'ls' }}"),
            other => format!("{other} = true"),
        };
        env.write(
            "flows/uses.lua",
            text.replace(&format!("permissions = {{ {others} }}"), &format!("permissions = {{ {declared} }}")),
        );
        let checked = env.nietz(["check", "flows/uses.lua"]).go().exits(0);
        assert_eq!(checked.stdout, "flows/uses.lua: valid\n");
    }
}

/// A plan says what is declared, and nothing else.
#[test]
fn a_plan_tells_every_permission_that_is_declared() {
    let plan = |declared: &str| -> Value {
        let env = Env::new().flow("uses", &flow(declared, "return 1"));
        serde_json::from_str(&env.run(["uses", "--plan"]).go().exits(0).stdout).expect("it is JSON")
    };
    for (declared, expected) in [
        ("", json!([null, false, false, []])),
        ("notify = true", json!([null, false, false, []])),
        ("llm = true", json!(["openai/test", false, false, []])),
        ("files = true", json!([null, true, false, []])),
        ("git = 'read'", json!([null, false, "read", []])),
        ("git = true, exec = { 'ls' }", json!([null, false, true, ["ls"]])),
    ] {
        let plan = plan(declared);
        assert_eq!(
            json!([plan["model"]["model"], plan["files"], plan["git"], plan["commands"]]),
            expected,
            "{declared}"
        );
    }
}

/// `:exec` is a name that anybody may give to a method of their own.
#[test]
fn a_method_of_the_flow_s_own_needs_no_permission() {
    let own = "local own = {} function own:exec(what) return what end return own:exec('x')";
    let env = Env::new().flow("uses", &flow("git = true", own));
    assert_eq!(env.nietz(["check", "flows/uses.lua"]).go().exits(0).stdout, "flows/uses.lua: valid\n");
    assert_eq!(env.run(["uses"]).go().result(), "x");
}

/// What is declared as `{param}` is a permission, for those commands that the user gives.
#[test]
fn a_command_that_the_user_did_not_give_is_refused_by_its_name() {
    let text = flow("git = true, exec = { '{check}' }", "return tree():exec({ program = { 'ls' } })")
        .replace("summary =", "params = { check = { type = 'string' } }, summary =");
    let env = Env::new().flow("uses", &text);
    git::init(&env.workspace());
    env.nietz(["check", "flows/uses.lua"]).go().exits(0);
    let failure = &env.run(["uses"]).go().exits(5).ending()["failure"];
    assert_eq!(
        (&failure["message"], &failure["hint"]),
        (&json!("the command `ls` is not allowed"), &json!("allowed: none is"))
    );
}

/// What is run where the user gives nothing is the flow's word: it is declared, so that whoever grants it reads it.
#[test]
fn a_default_of_a_param_that_names_commands_is_declared() {
    let text = |declared: &str| {
        flow(&format!("git = true, exec = {{ {declared} }}"), "return tree():exec({ program = { 'ls' } })")
            .replace("summary =", "params = { check = { type = 'string', default = 'ls' } }, summary =")
    };
    let env = Env::new().flow("uses", &text("'{check}'"));
    git::init(&env.workspace());
    let told = env.nietz(["check", "flows/uses.lua"]).go().exits(4);
    let said = format!("{}{}", told.stdout, told.stderr);
    assert!(said.contains("`ls` is run where nobody gives `{check}`, and permissions.exec does not name it"), "{said}");
    let env = Env::new().flow("uses", &text("'{check}', 'ls'"));
    git::init(&env.workspace());
    env.nietz(["check", "flows/uses.lua"]).go().exits(0);
    env.run(["uses"]).go().exits(0);
}
