//! The promise: a flow of one's own runs within minutes. What `nietz new` writes works at once, and has its test.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Response};

#[test]
fn a_new_flow_runs_and_its_test_passes() {
    let server = ModelServer::start(|request| {
        let wants_value = request.body["response_format"].is_object();
        Response::text(if wants_value { r#"{"decides":"taste","next_step":"Ask them."}"# } else { "Well." })
    });
    let env = Env::with(&server);
    let ended = env.nietz(["new", "flow", "two-sides"]).go().exits(0);
    assert_snapshot!(ended.stdout, @r#"
    wrote flows/two-sides.lua
    wrote flows/two-sides/prompts/side.md
    wrote flows/two-sides/prompts/verdict.md
    wrote tests/cassettes/two-sides/run.jsonl
    run it: nietz run flows/two-sides.lua "Tabs or spaces?"   test it: nietz test flows/two-sides.lua
    "#);
    env.nietz(["test"]).go().exits(0);
    env.nietz(["check", "flows/two-sides.lua"]).go().exits(0);
    let ended = env.run(["flows/two-sides.lua", "Tea or coffee?"]).go().exits(0);
    assert_eq!(ended.result()["decides"], "taste");
    assert_eq!(server.calls(), 3);
    let text = env.read("tests/cassettes/two-sides/run.jsonl");
    assert!(text.contains("flows/two-sides.lua") && !text.contains("NAME"), "{text}");
}

/// What one reviewer finds, and which findings are the same.
fn reviewed(prompt: &str) -> &'static str {
    match prompt {
        prompt if prompt.contains("Reviewers found this") => {
            r#"{"groups":[{"numbers":[1,2],"why":"Nobody can pay nothing.","suggestion":"Allow 0."}]}"#
        }
        prompt if prompt.contains("own them in two years") => r#"{"findings":[]}"#,
        _ => {
            r#"{"findings":[{"file":"pay.py","line":2,"why":"0 is refused.","severity":"major","suggestion":"Allow 0."}]}"#
        }
    }
}

#[test]
fn a_review_that_begins_as_an_example_reads_a_change_of_a_real_repository() {
    let server = ModelServer::start(|request| {
        let all = request.body["messages"].to_string();
        assert!(all.contains("Reviewers found") || all.contains("     2 +    return cents > 0\\n"), "{all}");
        Response::text(reviewed(&all))
    });
    let env = Env::with(&server);
    let ended = env.nietz(["new", "flow", "mine", "--like", "review"]).go().exits(0);
    assert_snapshot!(ended.stdout, @r"
    wrote flows/mine.lua
    wrote flows/mine/findings.schema.json
    wrote flows/mine/groups.schema.json
    wrote flows/mine/prompts/findings.md
    wrote flows/mine/prompts/list.md
    wrote flows/mine/prompts/merge.md
    wrote personas/adversary.md
    wrote personas/correctness.md
    wrote personas/maintainer.md
    wrote tests/cassettes/mine/ci.jsonl
    wrote tests/cassettes/mine/person.jsonl
    run it: nietz run flows/mine.lua HEAD~1   test it: nietz test flows/mine.lua
    ");
    // No repository, no model, no key.
    let ended = env.nietz(["test"]).go().exits(0);
    assert!(ended.stdout.contains("mine/ci") && ended.stdout.contains("mine/person"), "{ended:?}");
    let ended = env.nietz(["check"]).go().exits(0);
    assert!(!ended.stdout.contains("remark") && !ended.stdout.contains("NAME"), "{}", ended.stdout);
    assert_eq!(server.calls(), 0);
    // Its personas are there for another one, and one that was changed is nobody else's.
    env.nietz(["new", "flow", "other", "--like", "review"]).go().exits(0);
    env.write("personas/adversary.md", "---\nname: Mine\n---\nYou are mine.\n");
    let ended = env.nietz(["new", "flow", "third", "--like", "review"]).go().exits(2);
    assert!(ended.stderr.contains("personas/adversary.md is there already"), "{}", ended.stderr);
    assert!(!env.path("flows/third.lua").exists());

    env.write("pay.py", "def may_pay(cents):\n    return True\n");
    env.write(".gitignore", ".nietz\n");
    init(&env.workspace());
    env.write("pay.py", "def may_pay(cents):\n    return cents > 0\n");
    git(&env.workspace(), ["commit", "-q", "-am", "Nobody pays nothing"]);
    let ended = env.run(["mine", "HEAD~1", "--ci"]).go().exits(8);
    let findings = ended.ending()["result"]["findings"].clone();
    assert_eq!(findings[0]["why"], "Nobody can pay nothing.");
    assert_eq!(
        (findings.as_array().map(Vec::len), &findings[0]["by"]),
        (Some(1), &json!(["correctness", "adversary"]))
    );
    assert_eq!(ended.ending()["verdict"]["ok"], false, "{}", ended.ending());
    assert_eq!(server.calls(), 4);
    // What a person drops is no finding any more.
    env.write("answers.yaml", "findings: [drop 7, drop 1, done]\n");
    let arguments = ["mine", "HEAD~1", "--answers", "answers.yaml", "--reviewer", "correctness"];
    let ended = env.run(arguments).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(ended.result()["findings"], json!([]));
    env.nietz(["run", "mine", "nowhere"]).go().exits(2);
    // What is not committed is read, too, and no branch is made of it.
    env.write("pay.py", "def may_pay(cents):\n    return cents > 0\n# more\n");
    git(&env.workspace(), ["reset", "-q", "--soft", "HEAD~1"]);
    env.run(["mine", "--ci"]).var("NIETZ_RUN", "r3").go().exits(8);
    assert_eq!(git(&env.workspace(), ["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

/// The example with documents: two tests, one of which reads a document of the first version.
#[test]
fn a_flow_that_keeps_documents_begins_as_an_example_that_works() {
    let sorted = r#"{"groups":[{"title":"Calm","items":[1]}],"actions":["Write a rota"]}"#;
    let server = ModelServer::start(move |_| Response::text(sorted));
    let env = Env::with(&server);
    let told = env.nietz(["new", "flow", "mine", "--like", "retro"]).go().exits(0).stdout;
    assert!(told.contains("run it: nietz run flows/mine.lua --week 2026-W02   test it"), "{told}");
    for path in env.documents().keys() {
        assert!(!env.read(path).contains("NAME"), "{path}");
    }
    assert!(env.read("flows/mine.lua").lines().count() <= 150);
    let told = env.nietz(["check"]).go().exits(0).stdout;
    assert!(told.lines().all(|line| line.ends_with(": valid")), "{told}");
    let told = env.nietz(["test"]).var("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").go().exits(0).stdout;
    assert!(
        told.contains("passed mine/older") && told.contains("passed mine/run") && told.contains("2 passed"),
        "{told}"
    );

    // A week of the first version, whose action is asked about, and a session that takes an item back.
    let first = "version: 1
week: 2026-W01
items: []
groups: []
actions: [Sleep]
";
    env.write("retros/2026-W01.yaml", first);
    let seen = env.nietz(["run", "mine", "show", "2026-W01"]).go().exits(0).stdout;
    assert!(seen.contains("○ Sleep") && env.read("retros/2026-W01.yaml") == first, "{seen}");
    env.run(["mine", "--week", "2026-W02"]).stdin("y\nloud\nback\nquiet\nskip\nfinish\ny\n").go().exits(0);
    assert_eq!(server.calls(), 1);
    assert!(env.read("retros/2026-W01.yaml").contains("done: true"));
    let saved = env.read("retros/2026-W02.yaml");
    assert!(saved.contains("quiet") && !saved.contains("loud") && saved.contains("text: Write a rota"), "{saved}");
    let listed = env.nietz(["run", "mine", "list"]).go().exits(0).stdout;
    assert!(listed.contains("2026-W01: 0 items") && listed.contains("2026-W02: 1 item\n"), "{listed}");
    env.nietz(["run", "mine", "show", "2026-W09"]).go().exits(2);
    env.run(["mine", "--week", "2026-W02"]).var("NIETZ_RUN", "r2").go().exits(2);
    env.nietz(["check"]).go().exits(0);
}

#[test]
fn new_personas_quotes_and_packs_are_valid() {
    let env = Env::new();
    for kind in ["persona", "quotes", "pack"] {
        env.nietz(["new", kind, "deep-thought"]).go().exits(0);
    }
    env.nietz(["check", "personas/deep-thought.md", "quotes/deep-thought.yaml"]).go().exits(0);
    env.nietz(["test", "deep-thought"]).go().exits(0);
    env.nietz(["check", "deep-thought"]).go().exits(0);
    env.nietz(["pack", "add", "deep-thought", "--yes", "--allow", "llm"]).go().exits(0);
    assert!(env.read("personas/deep-thought.md").contains("name: Deep Thought"));
    assert!(env.read("deep-thought/pack.yaml").contains("name: deep-thought"));
}

#[test]
fn nothing_is_written_over_and_odd_names_are_refused() {
    let env = Env::new().flow("mine", "return 1");
    let ended = env.nietz(["new", "flow", "mine"]).go().exits(2);
    assert!(ended.stderr.contains("is there already"), "{}", ended.stderr);
    for name in ["../mine", "Mine", "", "-x", "a/b"] {
        env.nietz(["new", "flow", "--", name]).go().exits(2);
    }
    assert_eq!(env.documents().len(), 1);
}

/// All faults at once, each with its file, line, column and code.
#[test]
fn check_sees_what_a_flow_gets_wrong_without_running_it() {
    let flow = r#"local llm = require("@nietz/llm")
local nietz = require("@nietz")
local room = require("./wrong/room")
local template = require("@nietz/template")
local ui = require("@nietz/uii")

return nietz.flow {
	name = "wrong",
	summary = "Wrong",
	run = function(ctx)
		local prompt = template.render("./wrong/ask.md", { topic = "x" })
		template.render("./wrong/gone.md", {})
		llm.chatt { prompt = prompt }
		return llm.chat { prompt = prompt }
	end,
}
"#;
    let env = Env::new()
        .flow("wrong", &flow.replace("local ui = require(\"@nietz/uii\")\n", ""))
        .file("flows/wrong/room.lua", "-- llm.nothing is no use here\nlocal ui = require(\"@nietz/ui\")\nreturn { say = function() ui.shout(\"x\") end }\n")
        .file("flows/wrong/ask.md", "About {{ topic }} for {{ reader }}{% if mood is defined %} {{ mood }}{% endif %}.\n")
        .file("personas/odd.md", "---\nname: 3\ntags: none\n---\nYou {{ broken.\n")
        .file("quotes/odd.yaml", "quotes:\n  - text: x\n    philosopher: y\n    contxt: z\n")
        .file("pack.yaml", "name: Odd\nversion: one\nsummary: x\nlicence: MIT\n");
    let ended = env.nietz(["check"]).go().exits(4);
    assert_snapshot!(env.normal(&ended.stdout), @r#"
    ./flows/wrong/room.lua: valid
    error[template-invalid]: `./wrong/ask.md` needs reader, and is not given it; give every name, or test it with `is defined`
      --> ./flows/wrong.lua:10:34
       |
    10 |   local prompt = template.render("./wrong/ask.md", { topic = "x" })
       |                                  ^^^^^^^^^^^^^^^^

    error[template-invalid]: there is no prompt `./wrong/gone.md` in this pack
      --> ./flows/wrong.lua:11:19
       |
    11 |   template.render("./wrong/gone.md", {})
       |                   ^^^^^^^^^^^^^^^^^

    error[flow-invalid]: @nietz/llm has no `chatt`; did you mean `chat`?
      --> ./flows/wrong.lua:12:7
       |
    12 |   llm.chatt { prompt = prompt }
       |       ^^^^^

    error[permission-refused]: this flow calls a model, but its manifest does not declare that it may; add `permissions = { llm = true }` to its nietz.flow{…}
      --> ./flows/wrong.lua:13:14
       |
    13 |   return llm.chat { prompt = prompt }
       |              ^^^^
    error[flow-invalid]: @nietz/ui has no `shout`; it has ask, attended, choose, confirm, progress, say, status
     --> /tmp/test/work/flows/wrong/room.lua:3:30
      |
    3 | return { say = function() ui.shout("x") end }
      |                              ^^^^^^^^^^
    error: is missing required "host_api"
     --> ./pack.yaml:1:1
      |
    1 | name: Odd
      | ^^^^

    error: must match the pattern ^[a-z][a-z0-9-]{0,63}$; found "Odd"
     --> ./pack.yaml:1:7
      |
    1 | name: Odd
      |       ^^^ /name

    error: must match the pattern ^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.-]+)?$; found "one"
     --> ./pack.yaml:2:10
      |
    2 | version: one
      |          ^^^ /version
    error: must be text; found 3, which is a number; put it in quotes
     --> ./personas/odd.md:2:7
      |
    2 | name: 3
      |       ^ /name

    error: must be a list; found "none"
     --> ./personas/odd.md:3:7
      |
    3 | tags: none
      |       ^^^^ /tags

    error[template-invalid]: syntax error: unexpected end of input, expected identifier or integer
     --> ./personas/odd.md:5:1
      |
    5 | You {{ broken.
      | ^^^
    error: is missing required "context"
     --> ./quotes/odd.yaml:2:5
      |
    2 |   - text: x
      |     ^^^^ /quotes/0

    error: is missing required "source"
     --> ./quotes/odd.yaml:2:5
      |
    2 |   - text: x
      |     ^^^^ /quotes/0

    error: "contxt" is not known here; did you mean "context"?
     --> ./quotes/odd.yaml:4:5
      |
    4 |     contxt: z
      |     ^^^^^^ /quotes/0/contxt
    "#);
    let ended = env.nietz(["check", "--json", "flows"]).go().exits(4);
    assert_snapshot!(env.normal(&ended.stdout), @r#"
    {"file":"flows/wrong.lua","line":10,"column":34,"pointer":"","message":"`./wrong/ask.md` needs reader, and is not given it; give every name, or test it with `is defined`","keyword":"template-invalid","severity":"error","code":"template-invalid"}
    {"file":"flows/wrong.lua","line":11,"column":19,"pointer":"","message":"there is no prompt `./wrong/gone.md` in this pack","keyword":"template-invalid","severity":"error","code":"template-invalid"}
    {"file":"flows/wrong.lua","line":12,"column":7,"pointer":"","message":"@nietz/llm has no `chatt`; did you mean `chat`?","keyword":"flow-invalid","severity":"error","code":"flow-invalid"}
    {"file":"flows/wrong.lua","line":13,"column":14,"pointer":"","message":"this flow calls a model, but its manifest does not declare that it may; add `permissions = { llm = true }` to its nietz.flow{…}","keyword":"permission-refused","severity":"error","code":"permission-refused"}
    {"file":"/tmp/test/work/flows/wrong/room.lua","line":3,"column":30,"pointer":"","message":"@nietz/ui has no `shout`; it has ask, attended, choose, confirm, progress, say, status","keyword":"flow-invalid","severity":"error","code":"flow-invalid"}
    "#);
    // A module that is not there is told with its neighbours.
    let env = Env::new().flow("wrong", flow);
    let ended = env.nietz(["check", "flows/wrong.lua"]).go().exits(4);
    assert!(ended.stderr.is_empty() && ended.stdout.contains("flows/wrong.lua:3"), "{}", ended.stdout);
}

/// A folder is looked through for documents, too, and each is held to its collection.
#[test]
fn check_finds_the_documents_of_a_folder() {
    let env = Env::new()
        .flow("short", include_str!("../support/flows/short.lua"))
        .file("notes/first.yaml", "slug: first\nsaid: [x]\n")
        .file("notes/other.txt", "none of ours\n");
    let ended = env.nietz(["check"]).go().exits(0);
    assert_eq!(ended.stdout, "./flows/short.lua: valid\n./notes/first.yaml: valid\n");
    env.write("notes/first.yaml", "slug: second\nsaid: x\n");
    let ended = env.nietz(["check", "notes", "--json"]).go().exits(4);
    assert_eq!(
        ended.stdout.lines().filter(|line| line.contains("\"code\":\"document-invalid\"")).count(),
        2,
        "{}",
        ended.stdout
    );
}

#[test]
fn the_bundled_flows_and_their_files_pass_every_check() {
    let env = Env::new();
    let repository = env!("CARGO_MANIFEST_DIR");
    for folder in ["flows", "personas", "quotes"] {
        env.nietz(["check", &format!("{repository}/{folder}")]).go().exits(0);
    }
}

#[test]
fn lists_say_where_things_come_from_and_what_hides_them() {
    let env = Env::new()
        .file("personas/architect.md", "---\nname: Mine\nsummary: My own\n---\nYou are mine.\n")
        .file("personas/broken.md", "no front matter\n")
        .file("quotes/classics.yaml", "quotes:\n  - {text: x, philosopher: y, context: victory, source: z}\n");
    let ended = env.nietz(["personas"]).go().exits(0);
    let lines: Vec<&str> =
        ended.stdout.lines().filter(|line| line.starts_with("architect ") || line.starts_with("broken")).collect();
    assert_snapshot!(env.normal(&lines.join("\n")), @r"
    architect            My own                                                                                                           project
    broken               (invalid: nietz check /tmp/test/work/personas/broken.md)                                                   project
    architect            Looks at boundaries, dependencies and what will be hard to change                            party               bundled (hidden by that of: project)
    ");
    let ended = env.nietz(["quotes"]).go().exits(0);
    assert_snapshot!(ended.stdout, @r"
    QUOTES    HOW MANY, ABOUT WHAT                                               FROM
    classics  1: victory                                                         project
    classics  78: avoidance, defeat, overwhelm, perseverance, strategy, victory  bundled (hidden by that of: project)
    ");
    let ended = env.nietz(["personas", "--json", "--tag", "panel"]).go().exits(0);
    assert!(
        ended.stdout.lines().count() >= 5 && ended.stdout.lines().all(|line| line.contains("bundled")),
        "{}",
        ended.stdout
    );
}

#[test]
fn types_complete_what_there_is_and_keep_what_the_user_has() {
    let env = Env::new()
        .file(".luaurc", "{\"lint\": {\"*\": true}, \"aliases\": {\"mine\": \"lib\"}}")
        .file(".vscode/settings.json", "{ // mine\n}");
    let ended = env.nietz(["types"]).go().exits(0);
    assert_snapshot!(ended.stdout, @r#"
    wrote .nietz/types: 18 modules, 16 schemas
    wrote .luaurc
    .vscode/settings.json is not plain JSON; add this to it:
    {
      "luau-lsp.platform.type": "standard",
      "files.associations": {
        "**/flows/**/*.lua": "luau"
      },
      "yaml.schemas": {
        "./.nietz/types/schemas/quotes.schema.json": [
          "quotes/*.yaml"
        ],
        "./.nietz/types/schemas/pack.schema.json": [
          "pack.yaml"
        ],
        "./.nietz/types/schemas/config.schema.json": [
          "nietz/config.yaml"
        ],
        "./.nietz/types/schemas/project.schema.json": [
          "nietz.yaml"
        ],
        "./.nietz/types/schemas/lock.schema.json": [
          "nietz.lock"
        ],
        "./.nietz/types/schemas/ejected.schema.json": [
          "flows/.ejected.yaml"
        ],
        "./.nietz/types/schemas/grants.schema.json": [
          "nietz/grants.yaml"
        ],
        "./.nietz/types/schemas/trust.schema.json": [
          "nietz/trust.yaml"
        ],
        "./.nietz/types/schemas/keys.schema.json": [
          "nietz/keys.yaml"
        ]
      }
    }
    wrote .zed/settings.json
    VS Code needs the extension `luau-lsp`, Zed the extension `Luau`; both find their settings here
    Neovim (0.11 or newer, with luau-lsp in PATH): dofile(".nietz/types/nvim.lua") in your init.lua
    "#);
    assert_snapshot!(env.read(".luaurc"), @r#"
    {
      "lint": {
        "*": true
      },
      "aliases": {
        "mine": "lib",
        "nietz": ".nietz/types/nietz"
      },
      "languageMode": "strict"
    }
    "#);
    assert_eq!(env.read(".vscode/settings.json"), "{ // mine\n}");
    // Zed and Neovim find the same.
    let zed: serde_json::Value = serde_json::from_str(&env.read(".zed/settings.json")).expect("JSON");
    assert_eq!(zed["lsp"]["luau-lsp"]["settings"]["luau-lsp"]["platform"]["type"], "standard");
    assert_eq!(zed["file_types"]["Luau"][0], "**/flows/**/*.lua");
    let neovim = env.read(".nietz/types/nvim.lua");
    assert!(
        neovim.contains("vim.lsp.enable")
            && neovim.contains("[\"./.nietz/types/schemas/pack.schema.json\"] = { \"pack.yaml\" }"),
        "{neovim}"
    );
    assert!(env.read(".nietz/types/nietz/llm.luau").contains("function llm.chat("));
    assert!(env.read(".nietz/types/nietz/init.luau").contains("function nietz.flow("));
    let schema: serde_json::Value =
        serde_json::from_str(&env.read(".nietz/types/schemas/pack.schema.json")).expect("JSON");
    assert_eq!(schema["title"], "nietz pack");
    // A second time changes nothing.
    assert!(env.nietz(["types"]).go().exits(0).stdout.contains(".luaurc is as it should be"));
}

#[test]
fn manual_pages_tell_every_command() {
    let env = Env::new();
    env.nietz(["man", "man"]).go().exits(0);
    for page in ["nietz.1", "nietz-test.1", "nietz-pack-add.1"] {
        assert!(env.read(&format!("man/{page}")).contains(".TH"), "{page}");
    }
    assert!(env.documents().keys().all(|name| !name.contains("__")), "hidden commands have no page");
}

#[test]
fn an_option_of_every_run_is_no_param_of_a_flow_and_its_value_is_not_the_flow() {
    let flow = |param: &str| {
        format!(
            "local nietz = require('@nietz')
            local take = {{ summary = 's', params = {{ {param} = {{ type = 'string' }} }}, run = function() return 'x' end }}
            return nietz.flow {{ name = 'takes', summary = 's', commands = {{ take = take }}, run = function() end }}"
        )
    };
    let env = Env::new();
    // As the help of a flow with every permission tells them: none is forgotten when one is added.
    let all = "permissions = { files = true, exec = { 'sh' } }";
    let all = format!("return require('@nietz').flow {{ name = 'all', summary = 's', {all}, run = function() end }}");
    env.write("flows/all.lua", &all);
    let help = env.nietz(["run", "all", "--help"]).go().exits(0).stdout;
    let options: Vec<&str> = help
        .lines()
        .filter_map(|line| line.trim_start().split_once("--").map(|(_, rest)| rest.split(' ').next().unwrap()))
        .collect();
    assert!(options.len() > 14 && options.contains(&"trust") && options.contains(&"allow-read"), "{options:?}");
    for option in options {
        env.write("flows/takes.lua", flow(&option.replace('-', "_")));
        let ended = env.nietz(["run", "takes", "take"]).go().exits(4);
        assert!(ended.stderr.contains(&format!("has an option `--{option}` itself")), "{option}: {}", ended.stderr);
    }
    env.write("flows/takes.lua", flow("mine"));
    for before in [&["--model", "a/b"][..], &["--max-calls=3"], &["--seed", "7"], &["--answers", "x", "--trust"]] {
        let arguments = [&["run"][..], before, &["--plan", "takes", "take"]].concat();
        let plan = env.nietz(arguments.iter().copied()).go().exits(0);
        assert!(plan.stdout.contains("command       take"), "{arguments:?}: {plan:?}");
    }
}
