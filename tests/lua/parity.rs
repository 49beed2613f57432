//! What `nietz types` shows is what there is: each `.d.luau` names exactly what its module has, documents every
//! function with an example, and every example runs.

use nietz::error::{Code, Failure};
use nietz::lua::api::ALL;
use nietz::lua::audit;
use nietz::lua::limits::FlowLimits;
use nietz::model::permission::{Permission, methods, of_function};
use serde_json::{Value, json};

use crate::lua::bench::Bench;

/// A function of a `.d.luau`, with its doc comment.
struct Documented {
    name: String,
    doc: String,
}

/// Reads the functions of a file, the fields that are no functions, and the methods of its handle.
fn read(module: &str, types: &str) -> (Vec<Documented>, Vec<String>, Vec<String>) {
    let (mut functions, mut fields, mut methods) = (Vec::new(), Vec::new(), Vec::new());
    let mut doc = String::new();
    for line in types.lines() {
        if let Some(text) = line.strip_prefix("---") {
            doc.push_str(text.strip_prefix(' ').unwrap_or(text));
            doc.push('\n');
            continue;
        }
        let doc = std::mem::take(&mut doc);
        if let Some(rest) = line.strip_prefix(&format!("function {module}.")) {
            let name = rest.split(['(', '<']).next().unwrap_or_default().to_owned();
            functions.push(Documented { name, doc });
        } else if let Some(rest) = line.strip_prefix(&format!("{module}."))
            && rest.contains("((")
        {
            // A function with a type for each way to call it.
            functions.push(Documented { name: rest.split(' ').next().unwrap_or_default().to_owned(), doc });
        } else if let Some(rest) = line.strip_prefix(&format!("{module}.")) {
            fields.push(rest.split(' ').next().unwrap_or_default().to_owned());
        } else if let Some((name, _)) = line.trim().split_once(": (self: Handle") {
            methods.push(name.to_owned());
        }
    }
    methods.sort();
    (functions, fields, methods)
}

fn requires() -> String {
    ALL.iter().map(|(path, _, _)| format!("local {} = require(\"{path}\")\n", plain(path))).collect()
}

/// The name by which the examples call a module.
fn plain(path: &str) -> &str {
    path.rsplit(['/', '@']).next().unwrap_or(path)
}

/// What a manifest declares by each permission, for the examples.
fn declared(permission: Permission) -> &'static str {
    match permission {
        Permission::Llm => "llm = true",
        Permission::Files => "files = true",
        Permission::GitRead => "git = \"read\"",
        Permission::Git => "git = true",
        Permission::Notify => "notify = true",
        Permission::Exec => "exec = { \"cat\" }",
        Permission::ExecRead => "exec_read = { \"{key_file}\" }",
        Permission::Mcp => "mcp = { \"docs\" }",
    }
}

/// Runs the body of a flow with every permission and returns its result.
fn run(body: &str) -> Value {
    let (result, _) = run_with(Permission::ALL, body);
    result.unwrap_or_else(|failure| panic!("{body}\n{failure:#?}"))
}

/// Runs the body of a flow with some permissions; returns what became of it and which permissions are told to be missing
/// before it runs.
fn run_with(permissions: &[Permission], body: &str) -> (Result<Value, Failure>, Vec<String>) {
    let permissions = without_parts(permissions);
    let bench = Bench::new();
    for (slug, tags) in [("guide", "[facilitator]"), ("architect", "[]")] {
        let text = format!("---\nname: {slug}\nsummary: Helps\ntags: {tags}\n---\nYou help.\n");
        bench.file(&format!("personas/{slug}.md"), text);
    }
    bench.file(
        "flows/example.lua",
        format!(
            "{}return nietz.flow {{ name = \"example\", summary = \"Example\", permissions = {{ {} }},\n\
             params = {{ key_file = {{ type = \"string\" }} }},\n\
             collections = {{ notes = {{ path = \"notes/{{slug}}.yaml\", schema = {{ type = \"object\" }} }},\n\
             votes = {{ path = \"votes.jsonl\", schema = {{ type = \"object\", properties = {{ topic = {{ type = \"string\" }}, \
             order = {{ type = \"integer\" }} }} }} }} }},\n\
             run = function(ctx)\n{body}\nend }}\n",
            requires(),
            permissions.iter().map(|permission| declared(*permission)).collect::<Vec<_>>().join(", "),
        ),
    );
    bench.commit_all();
    let limits = FlowLimits { seconds: 20.0, megabytes: 64 };
    let located = bench.located("flows/example.lua");
    let session = bench.load("flows/example.lua", limits).unwrap_or_else(|failure| panic!("{body}\n{failure:#?}"));
    let found = audit::flow(&located.tree, &located.path, &session.flow.manifest);
    let missing = found.into_iter().filter(|found| found.code == Code::PermissionRefused).map(|found| found.message);
    (bench.run("flows/example.lua", json!({}), limits).0, missing.collect())
}

/// The permissions without those that another one of them holds: a manifest declares one of them.
fn without_parts(permissions: &[Permission]) -> Vec<Permission> {
    let is_part = |one: &Permission| permissions.iter().any(|other| one != other && one.is_part_of(*other));
    permissions.iter().copied().filter(|one| !is_part(one)).collect()
}

/// The examples of all functions, by their names.
fn examples() -> Vec<(String, String)> {
    let mut examples = Vec::new();
    for (path, _, types) in ALL {
        let module = plain(path);
        for Documented { name, doc } in read(module, types).0 {
            let example = doc.split("```lua\n").nth(1).and_then(|rest| rest.split("```").next());
            let example = example.unwrap_or_else(|| panic!("{module}.{name} has no example"));
            examples.push((format!("{module}.{name}"), example.to_owned()));
        }
    }
    examples
}

#[test]
fn the_types_name_what_there_is() {
    let found = run("local found = {}\n\
         local function names(t) local list = json.array {} for name in t do table.insert(list, name) end \
         table.sort(list) return list end\n\
         for name, module in { nietz = nietz, llm = llm, mcp = mcp, ui = ui, documents = documents, files = files, git = git, personas = personas, \
         quotes = quotes, template = template, task = task, clock = clock, random = random, schema = schema, \
         json = json, yaml = yaml, text = text, xml = xml } do found[name] = names(module) end\n\
         local function methods(handle) local all = table.clone(getmetatable(handle).__index) all.__index = nil \
         return names(all) end\n\
         git.branch(\"nietz/handle\", git.head().commit)\n\
         found.handles = { documents = methods(documents.collection(\"notes\")), \
         git = methods(git.worktree { name = \"handle\", branch = \"nietz/handle\" }) }\n\
         return found");
    for (path, _, types) in ALL {
        let module = plain(path);
        let (functions, fields, methods) = read(module, types);
        let mut named: Vec<String> = functions.into_iter().map(|function| function.name).chain(fields).collect();
        named.sort();
        assert_eq!(json!(named), found[module], "{module}.d.luau and its module differ");
        if !methods.is_empty() {
            assert_eq!(
                json!(methods),
                found["handles"][module],
                "the handle of {module}.d.luau and its methods differ"
            );
        }
    }
}

#[test]
fn each_module_has_its_file_of_types() {
    let files = crate::lua::structure::files(&["src/lua/api"], &["luau"]);
    let count = files.iter().filter(|(name, _)| name.ends_with(".d.luau")).count();
    assert_eq!(count, ALL.len());
}

/// What a call takes is what its type says: an unknown field's hint names all that there are.
#[test]
fn the_types_of_a_model_call_name_every_field() {
    let refused = run("local ok, why = pcall(llm.chat, { zzzzzzzzzzzz = 1 }) assert(not ok) return why.hint");
    let hint = refused.as_str().and_then(|hint| hint.strip_prefix("known are ")).expect("they are listed");
    let mut known: Vec<&str> = hint.split(", ").collect();
    known.sort_unstable();
    let types = ALL.iter().find(|(path, ..)| *path == "@nietz/llm").expect("it is there").2;
    let (_, rest) = types.split_once("export type Chat = {\n").expect("it is there");
    let (block, _) = rest.split_once("\n}").expect("it ends");
    let fields = block.lines().filter_map(|line| line.strip_prefix('\t')?.split_once(':'));
    let mut named: Vec<&str> =
        fields.map(|(name, _)| name).filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_')).collect();
    named.sort_unstable();
    assert_eq!(named, known);
}

#[test]
fn the_types_of_a_flow_name_every_permission() {
    let types = ALL.iter().find(|(path, ..)| *path == "@nietz").expect("it is there").2;
    let (_, rest) = types.split_once("\tpermissions: {\n").expect("they are there");
    let (block, _) = rest.split_once("\n\t}").expect("they end");
    let lines = block.lines().map(str::trim).filter(|line| !line.starts_with("---"));
    let mut named: Vec<&str> = lines.filter_map(|line| Some(line.split_once(':')?.0)).collect();
    named.sort_unstable();
    let mut known: Vec<&str> = Permission::ALL.iter().map(|permission| permission.member()).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(named, known);
}

#[test]
fn every_function_is_documented_with_an_example_that_runs() {
    let blocks = examples().into_iter().map(|(name, example)| format!("do -- {name}\n{example}end\n"));
    assert_eq!(run(&blocks.collect::<String>()), Value::Null);
}

/// What is told to be missing before a run is what the run refuses, function by function, and nothing else is.
#[test]
fn every_function_needs_what_the_audit_says_that_it_needs() {
    for (name, example) in examples() {
        // Which model a run has is not asked at the gate.
        if ["llm.model", "llm.window"].contains(&name.as_str()) {
            continue;
        }
        let (_, told) = run_with(&[], &example);
        let needed: Vec<Permission> = Permission::ALL
            .iter()
            .copied()
            .filter(|permission| told.contains(&permission.undeclared_failure().message))
            .collect();
        let (result, told) = run_with(&needed, &example);
        assert!(result.is_ok() && told.is_empty(), "{name} with {needed:?}: {result:?}");
        for without in &without_parts(&needed) {
            let others: Vec<Permission> = needed.iter().copied().filter(|other| other != without).collect();
            let (result, told) = run_with(&others, &example);
            let failure = result.expect_err(&name);
            assert_eq!(
                (failure.code, &failure.message),
                (Code::PermissionRefused, &without.undeclared_failure().message)
            );
            assert!(told.iter().all(|told| *told == failure.message) && !told.is_empty(), "{name}: {told:?}");
        }
    }
}

#[test]
fn the_types_of_a_module_say_which_permission_it_needs() {
    for (path, _, types) in ALL {
        let head = types.lines().take_while(|line| line.starts_with("--")).collect::<Vec<_>>().join("\n");
        let (functions, ..) = read(plain(path), types);
        for permission in Permission::ALL {
            let needs = |function: &Documented| of_function(path, &function.name, false) == Some(*permission);
            assert_eq!(head.contains(&permission.declaration()), functions.iter().any(needs), "{path}: {permission:?}");
        }
        for (module, method, permission) in methods().filter(|(module, ..)| module == path) {
            let (doc, _) = types.split_once(&format!("\t{method}: (self: ")).unwrap_or_else(|| panic!("{module}"));
            let doc = doc.rsplit_once(" -> ").map_or(doc, |(_, doc)| doc);
            assert!(doc.contains(&format!("permissions.{}", permission.member())), "{module}: {method}");
        }
    }
}

#[test]
fn the_flow_of_the_architecture_runs_as_it_stands() {
    let bench = Bench::new();
    bench.file("flows/second-opinion.lua", include_str!("flows/second_opinion.lua"));
    for slug in ["architect", "security"] {
        bench.file(&format!("personas/{slug}.md"), format!("---\nname: {slug}\n---\nYou are the {slug}.\n"));
    }
    let params = json!({ "question": "Should we cache this?", "rounds": 2 });
    let (result, said) = bench.run("flows/second-opinion.lua", params, FlowLimits::default());
    assert_eq!(result, Ok(json!({ "disagreements": ["x"] })));
    assert_eq!(said, ["- x"]);
}
