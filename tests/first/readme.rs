//! The promise: what the README says to write and to type works as it stands. Its flows are run, and the lines of each recipe
//! are given to a shell, with a model server in the place of a provider.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Call;
use crate::support::tls::sample;

const README: &str = include_str!("../../README.md");

/// The blocks of a part of the page, with the language of each.
fn blocks(part: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = part;
    while let Some((_, block)) = rest.split_once("\n```") {
        let (language, block) = block.split_once('\n').expect("a block begins with its language");
        let (text, behind) = block.split_once("\n```").expect("a block ends");
        found.push((language, text));
        rest = behind;
    }
    found
}

/// The part below a heading.
fn part(heading: &str) -> &'static str {
    let (_, part) = README.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("there is no {heading}"));
    let level = heading.split(' ').next().expect("it is one");
    let is_end =
        |line: &str| line.starts_with('#') && line.split(' ').next().is_some_and(|own| own.len() <= level.len());
    // A line of a block that begins with `#` is a comment.
    let (mut length, mut is_code) = (0, false);
    for line in part.split_inclusive('\n') {
        is_code ^= line.starts_with("```");
        if !is_code && is_end(line) {
            break;
        }
        length += line.len();
    }
    &part[..length]
}

/// The least value that a schema takes.
fn least(schema: &Value) -> Value {
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("object");
    match kind {
        "object" => {
            let names = schema["required"].as_array().cloned().unwrap_or_default();
            let members = names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| (name.to_owned(), least(&schema["properties"][name])));
            Value::Object(members.collect())
        }
        "array" => {
            let count = schema["minItems"].as_u64().unwrap_or(0);
            (0..count).map(|_| least(&schema["items"])).collect()
        }
        "integer" | "number" => schema["minimum"].as_i64().unwrap_or(1).into(),
        "boolean" => Value::Bool(true),
        _ => "because it is small".into(),
    }
}

/// A model that answers everything, and does what a recipe's flow needs of it.
fn answer(request: &Request) -> Response {
    if request.body.to_string().contains("The release went out") {
        let sorted = json!({ "groups": [{ "title": "Shipped", "items": [1] }], "actions": ["Rest"] });
        return Response::text(sorted.to_string());
    }
    match request.schema() {
        Value::Null => Response::text("It is the 3rd of May."),
        schema => Response::text(least(&schema).to_string()),
    }
}

/// An environment in which a reader would type: nietz and the usual programs are found, and nothing names runs or clocks.
fn reader(server: &ModelServer) -> Env {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_nietz")).parent().expect("it has a folder");
    Env::with(server)
        .without("NIETZ_RUN")
        .without("NIETZ_CLOCK")
        .var("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()))
        .var("GIT_AUTHOR_NAME", "Somebody")
        .var("GIT_AUTHOR_EMAIL", "somebody@example.org")
        .var("GIT_COMMITTER_NAME", "Somebody")
        .var("GIT_COMMITTER_EMAIL", "somebody@example.org")
}

fn shell(env: &Env, script: &str) -> Call {
    env.nietz(["-euc", script]).instead("sh").patient()
}

/// What each recipe finds, and what is there when it is done.
struct Recipe {
    title: &'static str,
    before: fn(&Env),
    after: fn(&Env, &str),
}

fn nothing(_: &Env) {}

const RECIPES: [Recipe; 10] = [
    Recipe {
        title: "1. Review each change in CI",
        before: |env| {
            env.write("pay.py", "def may_pay(cents):\n    return True\n");
            env.write(".gitignore", ".nietz/\n");
            init(&env.workspace());
            git(&env.workspace(), ["update-ref", "refs/remotes/origin/main", "HEAD"]);
            env.write("pay.py", "def may_pay(cents):\n    return cents > 0\n");
            git(&env.workspace(), ["commit", "-q", "-am", "Nobody pays nothing"]);
        },
        after: |env, told| {
            assert!(told.contains("2 passed, 0 failed") && told.contains("No findings."), "{told}");
            assert!(env.read("review.md").contains("review"), "{}", env.read("review.md"));
        },
    },
    Recipe {
        title: "2. Look back each Friday, by cron",
        before: nothing,
        after: |env, told| {
            assert!(told.contains(": 1 item\n"), "{told}");
            assert!(env.documents().keys().any(|path| path.starts_with("retros/")), "{told}");
        },
    },
    Recipe {
        title: "3. A model server of your own",
        before: nothing,
        after: |_, told| assert!(told.contains("lab/qwen") && told.contains("3rd of May"), "{told}"),
    },
    Recipe {
        title: "4. Behind a company's proxy, with its own authority",
        before: nothing,
        after: |_, told| {
            assert!(told.contains("http://proxy.example:3128 for https"), "{told}");
            assert!(told.contains("this machine and .example (NO_PROXY)") && told.contains("SSL_CERT_FILE="), "{told}");
        },
    },
    Recipe {
        title: "5. Move your prompts to another model",
        before: nothing,
        after: |env, _| assert!(env.read("page.html").contains("</html>")),
    },
    Recipe {
        title: "6. One question over many files, or rows",
        before: |env| {
            env.write("notes/a.md", "We met on the 3rd of May.\n");
            env.write("notes/b.md", "And again later.\n");
            env.write("rows.csv", "1,it is broken\n2,thank you\n");
        },
        after: |env, told| {
            assert!(
                env.read("notes/a.dates").contains("3rd of May") && env.read("notes/b.dates").contains("3rd of May")
            );
            assert_eq!(told.matches("3rd of May").count(), 2, "{told}");
        },
    },
    Recipe {
        title: "7. Change one prompt of a flow that comes with nietz",
        before: nothing,
        after: |env, told| {
            assert!(env.read("flows/council/prompts/select.md").ends_with("have to run it.\n"));
            assert!(told.contains("council reads this folder's own"), "{told}");
        },
    },
    Recipe {
        title: "8. Keep a run as a test",
        before: nothing,
        after: |env, told| {
            assert!(env.path("tests/cassettes/two-sides/databases.jsonl").exists());
            assert!(told.contains("3 passed, 0 failed"), "{told}");
        },
    },
    Recipe {
        title: "9. Stay within a budget",
        before: nothing,
        after: |_, told| assert!(told.contains("50 calls") && told.contains("3rd of May"), "{told}"),
    },
    Recipe {
        title: "10. Share a flow with your team",
        before: nothing,
        after: |env, told| {
            assert!(env.read("nietz.lock").contains("looks:") && told.contains("added looks 0.1.0"), "{told}");
        },
    },
];

#[test]
fn each_recipe_does_what_it_says() {
    let titles: Vec<&str> = README.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(titles, RECIPES.iter().map(|recipe| recipe.title).collect::<Vec<_>>(), "each recipe has its test");
    for Recipe { title, before, after } in &RECIPES {
        let server = ModelServer::start(answer);
        let mut env = reader(&server);
        before(&env);
        for (language, text) in blocks(part(&format!("### {title}"))) {
            match (language, text.lines().next().unwrap_or_default()) {
                ("yaml", "# ~/.config/nietz/config.yaml") => {
                    env = env.config(&text.replace("http://127.0.0.1:8080/v1", &server.url()));
                }
                ("yaml", "# nietz.yaml") => env.write("nietz.yaml", text),
                ("sh", _) => {
                    let script = text.replace("/etc/ssl/company.pem", &sample("ca.pem").display().to_string());
                    let ended = shell(&env, &script).go();
                    assert_eq!(ended.code, Some(0), "{title}: {ended:#?}");
                    after(&env, &format!("{}{}", ended.stdout, ended.stderr));
                }
                (language, first) => panic!("{title}: nobody knows what to do with {language}: {first}"),
            }
        }
    }
}

/// The two flows of the page, by their names.
fn flows() -> BTreeMap<&'static str, &'static str> {
    let lua = blocks(README).into_iter().filter(|(language, _)| *language == "lua");
    lua.map(|(_, text)| {
        let (_, rest) = text.split_once("name = \"").expect("a flow has a name");
        (rest.split('"').next().expect("the name ends"), text)
    })
    .collect()
}

#[test]
fn the_flow_with_documents_keeps_them_and_the_agent_asks_before_it_does() {
    let flows = flows();
    assert_eq!(flows.keys().copied().collect::<Vec<_>>(), ["decide", "reader"]);
    for (name, text) in &flows {
        let lines = text.lines().filter(|line| !line.starts_with("local ") && !line.trim().is_empty()).count();
        assert!(lines <= 25, "{name} has {lines} lines");
    }
    let server = ModelServer::start(answer);
    let env = reader(&server).flow("decide", flows["decide"]);
    let checked = env.nietz(["check", "flows"]).go().exits(0).stdout;
    assert!(!checked.contains("remark"), "{checked}");
    let ended = env.nietz(["run", "decide", "use-sqlite", "--answers", "-"]).stdin("We take SQLite\n\n").go().exits(0);
    assert!(
        ended.stdout.contains("- because it is small") && ended.stdout.contains("Kept in decisions/use-sqlite.yaml"),
        "{ended:?}"
    );
    assert!(env.read("decisions/use-sqlite.yaml").contains("decision: We take SQLite"));

    let server = ModelServer::start(|request| match request.number {
        1 => Response::text("").tool_call("a", "search", r#"{"pattern":"round"}"#),
        2 => Response::text("").tool_call("b", "read", r#"{"path":"price.py"}"#),
        3 => Response::text("").tool_call("c", "note", r#"{"text":"Prices are rounded once."}"#),
        _ => Response::text("In price.py, in line 2."),
    });
    let env =
        reader(&server).flow("reader", flows["reader"]).file("price.py", "def price(x):\n    return round(x, 2)\n");
    let checked = env.nietz(["check", "flows"]).go().exits(0).stdout;
    assert!(!checked.contains("remark"), "{checked}");
    let line = ["run", "reader", "Where is a price rounded?", "--answers", "-"];
    let ended = env.nietz(line).stdin("y\n").go().exits(0);
    assert!(ended.stdout.contains("In price.py, in line 2."), "{ended:?}");
    assert_eq!(env.read("notes/latest.md").trim_end(), "Prices are rounded once.");
    let told: Vec<String> = server.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(told[1].contains("price.py") && told[2].contains("return round(x, 2)"), "{}", told[2]);
}

#[test]
fn the_page_is_short_and_leads_to_what_is_there() {
    assert!(README.lines().count() <= 350, "{} lines", README.lines().count());
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let targets = README.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for target in targets.filter(|target| !target.starts_with("https://")) {
        assert!(root.join(target.split('#').next().unwrap()).exists(), "{target}");
    }
}
