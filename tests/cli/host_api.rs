//! The promise of versions of the host API: a flow says which one it was written for, and one that says nothing runs as it
//! always did.

use serde_json::json;

use crate::support::env::Env;

fn flow(version: &str, body: &str) -> Env {
    let flow = format!(
        r#"local task, documents = require("@nietz/task"), require("@nietz/documents")
return require("@nietz").flow {{
  name = "asked", summary = "Asks", {version}
  params = {{
    members = {{ type = "string", many = true }}, dry = {{ type = "boolean" }}, on = {{ type = "boolean", default = false }},
    some = {{ type = "string", many = true, default = {{ "a" }} }},
  }},
  collections = {{ notes = {{
    path = "notes/{{slug}}.yaml", schema = {{ type = "object" }},
    version = {{ field = "/version", current = 2, migrations = {{ ["1"] = function(doc) error("no way up") end }} }},
    rules = function(doc) if doc.odd then error("odd") end return {{}} end,
  }} }},
  run = function(ctx)
    {body}
  end,
}}"#
    );
    Env::new().flow("asked", &flow)
}

const PARAMS: &str = "local p = ctx.params
    return { members = type(p.members), dry = type(p.dry), on = type(p.on), some = type(p.some) }";

#[test]
fn what_was_not_given_is_nil_for_a_flow_of_the_second_version() {
    let types = |env: &Env, arguments: &[&str]| env.run(["asked"]).args(arguments.iter().copied()).go().result();
    let old = json!({ "members": "table", "dry": "boolean", "on": "boolean", "some": "table" });
    assert_eq!(types(&flow("", PARAMS), &[]), old);
    assert_eq!(types(&flow("host_api = 1,", PARAMS), &[]), old);
    let new = json!({ "members": "nil", "dry": "nil", "on": "boolean", "some": "table" });
    assert_eq!(types(&flow("host_api = 2,", PARAMS), &[]), new);
    assert_eq!(types(&flow("host_api = 2,", PARAMS), &["--members", "x", "--dry"]), old);

    let newer = flow("host_api = 3,", PARAMS).nietz(["check", "flows/asked.lua"]).go().exits(4);
    assert!(format!("{}{}", newer.stdout, newer.stderr).contains("this nietz has 2"), "{newer:?}");
}

#[test]
fn what_tasks_raise_is_a_table_and_a_list_keeps_its_order() {
    let body = r#"
    local settled = task.settle {
      text = function() error("no") end, own = function() error({ mine = 1 }) end,
    }
    local list = {}
    for index = 1, 12 do
      list[index] = function() return index end
    end
    local text = settled.text.error
    local summed = task.all(list)
    return {
      text = if type(text) == "table" then { code = text.code, message = text.message } else "text",
      own = settled.own.error.mine, order = if summed[1] then summed else "no list",
    }"#;
    let old = flow("", body).run(["asked"]).go().result();
    assert_eq!(old, json!({ "text": "text", "own": 1, "order": "no list" }));
    let new = flow("host_api = 2,", body).run(["asked"]).go().result();
    let order: Vec<u64> = (1..=12).collect();
    assert_eq!(new, json!({ "text": { "code": "flow-error", "message": "no" }, "own": 1, "order": order }));
    let mixed = "local ok, problem = pcall(task.all, { function() end, a = function() end }) return problem.code";
    assert_eq!(flow("host_api = 2,", mixed).run(["asked"]).go().result(), "request-invalid");
}

#[test]
fn a_migration_or_a_rule_that_raises_names_its_document_and_ends_no_listing() {
    let body = r#"
    local notes, told = documents.collection("notes"), {}
    local function keep(entry)
      if entry.error then
        table.insert(told, `{entry.error.code} {entry.error.message}`)
      end
    end
    for _, entry in notes:list() do keep(entry) end
    notes:each(keep)
    return told"#;
    let env = flow("", body)
        .file("notes/a.yaml", "version: 1\n")
        .file("notes/b.yaml", "version: 2\nodd: true\n")
        .file("notes/c.yaml", "version: 2\n");
    let told = env.run(["asked"]).go().result();
    let each = ["flow-error notes/a.yaml: no way up", "flow-error notes/b.yaml: odd"];
    assert_eq!(told, json!([each[0], each[1], each[0], each[1]]));
    let said = env.nietz(["check", "notes/a.yaml", "notes/b.yaml"]).go().exits(4);
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("in the migration of notes/a.yaml"), "{said}");
    assert!(said.contains("raised by the rules for notes/b.yaml"), "{said}");
}

#[test]
fn all_faults_of_a_manifest_are_told_at_once() {
    let flow = r#"return require("@nietz").flow {
  name = "Not Kebab",
  summry = "Misspelt",
  params = { a = { type = "text" }, b = { type = "string", order = "x" } },
  collections = { notes = { path = "notes/{slug}.yaml", schema = { type = "object" }, keys = { slug = "slug" } } },
  budget = { call = 3 },
}"#;
    let env = Env::new().flow("wrong", flow);
    let said = env.nietz(["check", "flows/wrong.lua"]).go().exits(4);
    let said = format!("{}{}", said.stdout, said.stderr);
    for fault in [
        "is not kebab-case",
        "did you mean `summary`?",
        "needs a summary",
        "param `a`",
        "param `b`",
        "run must be",
        "`/slug`",
        "budget",
    ] {
        assert!(said.contains(fault), "{fault}: {said}");
    }
}

/// What `nietz check` tells of a flow with this manifest and body, as `line message` by severity.
fn told(version: &str, body: &str) -> (Vec<String>, Vec<String>) {
    let flow = format!(
        "local nietz, llm, task = require(\"@nietz\"), require(\"@nietz/llm\"), require(\"@nietz/task\")\n\
         local notes = require(\"@nietz/documents\").collection(\"notes\")\n\
         return nietz.flow {{ name = \"told\", summary = \"Told\", {version} permissions = {{ llm = true }},\n\
         params = {{ topic = {{ type = \"string\" }}, dry = {{ type = \"boolean\" }}, members = {{ type = \"string\", many = true }} }},\n\
         settings = {{ most = {{ type = \"integer\", default = 1 }} }},\n\
         collections = {{ notes = {{ path = \"notes/{{slug}}.yaml\", schema = {{ type = \"object\" }} }} }},\n\
         run = function(ctx)\n{body}\nend }}"
    );
    let env = Env::new().flow("told", &flow);
    let ended = env.nietz(["check", "--json", "flows/told.lua"]).go();
    let (mut errors, mut notes) = (Vec::new(), Vec::new());
    for line in ended.stdout.lines() {
        let one: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let said = format!("{} {}", one["line"], one["message"].as_str().expect("a message"));
        if one["severity"] == "error" { errors.push(said) } else { notes.push(said) }
    }
    assert_eq!(ended.code, Some(if errors.is_empty() { 0 } else { 4 }), "{ended:?}");
    (errors, notes)
}

#[test]
fn names_that_mean_nothing_are_found_with_the_nearest_that_do() {
    for (body, said) in [
        ("return nobody", "there is no `nobody`"),
        ("return tosting(1)", "did you mean `tostring`?"),
        ("total = 1", "write `local total = …`"),
        ("return string.fromat('x')", "did you mean `format`?"),
        ("return ctx.parms", "did you mean `params`?"),
        ("return ctx.params.topik", "did you mean `topic`?"),
        ("local p = ctx.params\nreturn function() return p.topik end", "did you mean `topic`?"),
        ("return ctx.settings.mots", "did you mean `most`?"),
        ("return llm.chat({ promt = 'x' }).text", "did you mean `prompt`?"),
        ("local reply = llm.chat { prompt = 'x' }\nreturn reply.txt", "did you mean `text`?"),
        ("return llm.chat({ prompt = 'x' }).usage.inptu", "did you mean `input`?"),
        ("return notes:lod('a')", "did you mean `load`?"),
        ("return `{nobody}`", "there is no `nobody`"),
    ] {
        let (errors, _) = told("host_api = 2,", body);
        assert!(errors.len() == 1 && errors[0].contains(said), "{body}: {errors:?}");
    }
    let fine = "local function own(ctx) return ctx.settings.most, ctx.lang end
    local reply = llm.chat { prompt = ctx.params.topic or '', label = 'x' }
    local other = if own(ctx) then { txt = 1 } else reply
    for index, one in ipairs({ reply.usage.input }) do print(index, one, other.txt, string.format('%d', index)) end
    type Own = { x: number }
    return (notes:load('a') or {}).anything";
    assert_eq!(told("host_api = 2,", fine), (Vec::new(), Vec::new()));
}

#[test]
fn what_the_second_version_changes_is_remarked_where_it_stands() {
    let body = "if ctx.params.dry then return end
    local plain = ctx.params.dry == false
    local count = #ctx.params.members
    local settled = task.settle { a = function() end }
    local list = task.all({ function() end })
    return task.all { a = function() return { plain, count, settled, list } end }";
    let (errors, notes) = told("", body);
    assert_eq!(errors, Vec::<String>::new());
    let parts = [(9, "`dry` is nil"), (10, "`members` is nil"), (11, "is a table"), (12, "gives a list")];
    assert_eq!(notes.len(), parts.len(), "{notes:?}");
    for ((line, part), note) in parts.into_iter().zip(&notes) {
        assert!(note.starts_with(&format!("{line} with `host_api = 2`")) && note.contains(part), "{note}");
    }
    assert_eq!(told("host_api = 2,", body), (Vec::new(), Vec::new()));
    // A number behind a command may be left out only where its name is in brackets.
    let body = r#"local commands = { { name = "back", summary = "goes back", number = "N" },
    { name = "on", number = "[N]", summary = "goes on" } }
    return { commands, { number = "7" } }"#;
    let (errors, notes) = told("", body);
    assert_eq!((errors, notes.len()), (Vec::new(), 1), "{notes:?}");
    assert!(notes[0].contains("the number of this command must be given; `number = \"[N]\"`"), "{notes:?}");
    assert_eq!(told("host_api = 2,", body), (Vec::new(), Vec::new()));
}
