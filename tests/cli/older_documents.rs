//! The promise of versions: what reads many documents reads older ones as what they are today, and `nietz documents migrate`
//! brings all of them up to date, or tells which it cannot.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::process::Ended;

fn flow(body: &str) -> String {
    format!(
        r#"local documents = require("@nietz/documents")
return require("@nietz").flow {{
  name = "retro", summary = "Weeks", host_api = 2,
  collections = {{ weeks = {{
    path = "weeks/{{slug}}.yaml",
    schema = {{ type = "object", required = {{ "mood" }}, properties = {{ mood = {{ type = "integer", maximum = 5 }} }} }},
    keys = {{ slug = "/slug" }},
    index = {{ week = {{ columns = {{ slug = "/slug", mood = "/mood" }} }} }},
    version = {{ field = "/version", current = 3, migrations = {{
      ["1"] = function(doc)
        if doc.feeling == nil then error("no feeling") end
        doc.version, doc.mood, doc.feeling = 2, doc.feeling, nil
        return doc
      end,
      ["2"] = function(doc) doc.version = 3 return doc end,
    }} }},
    rules = function(doc) return if doc.mood == 0 then {{ {{ pointer = "/mood", message = "is never 0" }} }} else {{}} end,
  }} }},
  run = function()
    local weeks = documents.collection("weeks")
    {body}
  end,
}}"#
    )
}

/// The flow as it was when its documents were of version 1: it has another schema, and no migration.
fn of_version_1(today: &str) -> String {
    let first = today
        .replace(
            "required = { \"mood\" }, properties = { mood = { type = \"integer\", maximum = 5 } }",
            "required = { \"slug\" }",
        )
        .replace("current = 3", "current = 1");
    let (head, rest) = first.split_once("migrations = {").expect("it has migrations");
    format!("{head}}},\n    rules = {}", rest.split_once("rules = ").expect("it has rules").1)
}

const QUERY: &str = r#"local answer = documents.query("SELECT slug, mood FROM week ORDER BY slug", { tables = { "weeks" } })
    return { rows = answer.rows, broken = answer.broken }"#;

/// One document of each version, and some that cannot be brought up to date.
fn weeks(env: Env) -> Env {
    env.file("weeks/a.yaml", "version: 1\nslug: a\nfeeling: 2\n")
        .file("weeks/b.yaml", "version: 2\nslug: b\nmood: 4\n")
        .file("weeks/c.yaml", "# ours\nversion: 3\nslug: c\nmood: 5\n")
}

fn broken(env: Env) -> Env {
    env.file("weeks/d.yaml", "version: 1\nslug: d\n")
        .file("weeks/e.yaml", "version: 1\nslug: e\nfeeling: 9\n")
        .file("weeks/f.yaml", "version: 2\nslug: f\nmood: 0\n")
        .file("weeks/g.yaml", "version: 4\nslug: g\nmood: 1\n")
}

fn lines(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn a_query_counts_older_documents_as_what_they_are_today() {
    let env = weeks(Env::new().flow("retro", &flow(QUERY)));
    let before = env.documents();
    let rows = json!([["a", 2], ["b", 4], ["c", 5]]);
    assert_eq!(env.run(["retro"]).go().result(), json!({ "rows": rows }));
    assert_eq!(env.documents(), before, "nothing is written");
    // What was asked is recorded: a resumed run has it from there.
    let journal = std::fs::read_to_string(env.journal_path()).expect("a journal");
    assert_eq!(journal.matches(r#""migrated":[{"#).count(), 1, "{journal}");

    let env = broken(weeks(Env::new().flow("retro", &flow(QUERY))));
    let result = env.run(["retro"]).go().result();
    assert_eq!(result["rows"], rows);
    let told: BTreeMap<&str, &str> = (result["broken"].as_array().expect("some are broken").iter())
        .map(|one| (one["path"].as_str().expect("a path"), one["message"].as_str().expect("a message")))
        .collect();
    let parts = [("d", "no feeling"), ("e", "/mood"), ("f", "is never 0"), ("g", "newer")];
    assert_eq!(told.len(), parts.len(), "{told:?}");
    for (slug, part) in parts {
        assert!(told[format!("weeks/{slug}.yaml").as_str()].contains(part), "{told:?}");
    }
}

#[test]
fn each_and_list_give_what_older_documents_are_today_and_what_is_wrong_with_it() {
    let body = r"
    local listed, seen = {}, {}
    for _, entry in weeks:list() do table.insert(listed, if entry.value then entry.value.mood else entry.error.code) end
    weeks:each(function(entry) table.insert(seen, if entry.value then entry.value.mood else entry.error.code) end)
    return { listed, seen }";
    let env = broken(weeks(Env::new().flow("retro", &flow(body))));
    let all = json!([2, 4, 5, "flow-error", "document-invalid", "document-invalid", "document-version"]);
    assert_eq!(env.run(["retro"]).go().result(), json!([all, all]));
}

#[test]
fn all_documents_are_brought_up_to_date_and_a_dry_run_shows_how() {
    let env = weeks(Env::new().flow("retro", &flow(QUERY)));
    let before = env.documents();
    let shown = env.nietz(["documents", "migrate", "retro", "--dry-run"]).go().exits(0).stdout;
    for part in
        ["weeks/a.yaml: 1 → 3", "- /feeling: 2", "+ /mood: 2", "weeks/b.yaml: 2 → 3", "would be brought up to date: 2"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("weeks/c.yaml"), "{shown}");
    assert_eq!(env.documents(), before, "a dry run changes nothing");

    let told = lines(&env.nietz(["documents", "migrate", "--json"]).go().exits(0));
    let told: Vec<_> = told.iter().map(|one| json!([one["path"], one["from"], one["to"], one["migrated"]])).collect();
    assert_eq!(json!(told), json!([["weeks/a.yaml", "1", "3", true], ["weeks/b.yaml", "2", "3", true]]));
    let after = env.documents();
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "nothing is left beside them");
    assert_eq!(after["weeks/c.yaml"], before["weeks/c.yaml"], "what is of today is left alone");
    assert!(after["weeks/a.yaml"].contains("mood: 2") && !after["weeks/a.yaml"].contains("feeling"), "{after:?}");
    env.nietz(["check", "weeks"]).go().exits(0);
    let again = env.nietz(["documents", "migrate"]).go().exits(0).stdout;
    assert!(again.contains("all documents are of today's versions"), "{again}");
}

#[test]
fn what_cannot_be_brought_up_to_date_is_kept_and_told_by_the_exit_status() {
    let env = broken(weeks(Env::new().flow("retro", &flow(QUERY))));
    let before = env.documents();
    let told = lines(&env.nietz(["documents", "migrate", "--json"]).go().exits(4));
    let kept: BTreeMap<&str, String> = (told.iter().filter(|one| one["migrated"] == json!(false)))
        .map(|one| (one["path"].as_str().expect("a path"), one["failure"]["message"].to_string()))
        .collect();
    for (slug, part) in [("d", "no feeling"), ("e", "/mood"), ("f", "is never 0"), ("g", "newer")] {
        let path = format!("weeks/{slug}.yaml");
        assert!(kept[path.as_str()].contains(part), "{kept:?}");
        assert_eq!(env.read(&path), before[&path], "{path} is as it was");
    }
    assert_eq!((kept.len(), told.len()), (4, 6), "{told:?}");
}

#[test]
fn a_dry_run_promises_no_more_than_is_done_and_what_no_migration_leads_from_is_told() {
    let env =
        weeks(Env::new().flow("retro", &flow(QUERY))).file("weeks/h.yaml", "version: 1\nslug: other\nfeeling: 2\n");
    for arguments in [vec!["documents", "migrate", "--dry-run"], vec!["documents", "migrate"]] {
        let ended = env.nietz(arguments).go().exits(4);
        assert!(ended.stdout.contains("weeks/h.yaml: kept as it is: ") && ended.stdout.contains("/slug"), "{ended:?}");
        assert!(ended.stdout.contains("kept as they are: 1"), "{ended:?}");
    }
    let (before, behind) = (flow(QUERY), flow(QUERY));
    let without = [before.split("migrations = ").next(), behind.split("rules = ").nth(1)];
    let source = format!("{}}},\n    rules = {}", without[0].expect("a flow"), without[1].expect("its rules"));
    let env = weeks(Env::new().flow("retro", &source));
    let ended = env.nietz(["documents", "migrate"]).go().exits(4);
    assert!(ended.stdout.contains("kept as they are: 2"), "{ended:?}");
}

#[test]
fn a_command_that_only_looks_sees_older_documents_as_today_s_and_leaves_their_files() {
    let look = "return documents.collection(\"weeks\"):load(ctx.params.week).mood";
    let source = flow(QUERY).replace(
        "  run = function()",
        &format!(
            "  commands = {{ show = {{ summary = \"Shows\", reads_only = true, \
             params = {{ week = {{ type = \"string\", positional = true, required = true }} }}, run = function(ctx) {look} end }} }},\n  run = function()"
        ),
    );
    let env = weeks(Env::new().flow("retro", &source));
    let before = env.documents();
    assert_eq!(env.run(["retro", "show", "a"]).go().exits(0).result(), 2);
    assert_eq!(env.documents(), before);
}

/// A run waits at a question, its flow gets another version, and the run goes on with what it had read.
#[test]
fn what_a_run_read_as_an_earlier_flow_is_brought_up_to_date_in_memory() {
    let body = r#"local read = weeks:load("a")
    local all = {}
    for _, one in weeks:list() do table.insert(all, one.value or one.error) end
    weeks:each(function(one) table.insert(all, one.value or one.error) end)
    require("@nietz/ui").ask { id = "wait", prompt = "Wait?" }
    return { read.mood, all[1].mood, all[2].mood }"#;
    let today = flow(body);
    let env = Env::new().flow("retro", &of_version_1(&today)).file("weeks/a.yaml", "version: 1\nslug: a\nfeeling: 2\n");
    env.run(["retro"]).go().exits(7);
    env.write("flows/retro.lua", today);
    assert_eq!(env.resume().stdin("x\n").go().exits(0).result(), json!([2, 2, 2]));
}

/// Parts of a document cannot be migrated, and without its version nobody could tell that they are old.
#[test]
fn parts_that_were_read_as_an_earlier_flow_are_an_error_and_no_value() {
    let body = r#"local all = {}
    weeks:each(function(one)
      table.insert(all, if one.value then one.value.slug else one.error.code .. ": " .. one.error.message)
    end, { fields = { slug = "/slug" } })
    require("@nietz/ui").ask { id = "wait", prompt = "Wait?" }
    return all"#;
    let today = flow(body);
    let env = Env::new().flow("retro", &of_version_1(&today)).file("weeks/a.yaml", "version: 1\nslug: a\nfeeling: 2\n");
    env.run(["retro"]).go().exits(7);
    env.write("flows/retro.lua", today);
    let result = env.resume().stdin("x\n").go().exits(0).result();
    let told = result[0].as_str().expect("a text");
    assert!(told.starts_with("document-version: weeks/a.yaml") && told.contains("version 1"), "{told}");
    // A run that begins now sees them as they are today.
    let result = env.run(["retro"]).var("NIETZ_RUN", "r2").stdin("x\n").go().exits(0).result();
    assert_eq!(result, json!(["a"]));
}

/// A migration is no fault of the run that wrote the document; an edit beside it is told as before.
#[test]
fn a_run_whose_documents_were_brought_up_to_date_since_agrees_with_its_journal() {
    let body =
        "weeks:save { version = 1, slug = \"a\", feeling = 2 } weeks:save { version = 1, slug = \"b\", feeling = 3 }";
    let today = flow(body);
    let env = Env::new().flow("retro", &of_version_1(&today));
    env.run(["retro"]).go().exits(0);
    env.write("flows/retro.lua", today);
    env.nietz(["verify", "r1"]).go().exits(0);
    env.nietz(["documents", "migrate"]).go().exits(0);
    let told = env.nietz(["verify", "r1"]).go().exits(0).stdout;
    assert!(told.contains("weeks/a.yaml: brought up to date since"), "{told}");
    let told = env.nietz(["verify", "r1", "--json"]).go().exits(0).stdout;
    assert!(told.contains(r#""brought_up":["weeks/a.yaml","weeks/b.yaml"]"#), "{told}");
    env.write("weeks/a.yaml", env.read("weeks/a.yaml").replace("mood: 2", "mood: 4"));
    let ended = env.nietz(["verify", "r1"]).go().exits(4);
    assert!(
        ended.stderr.contains("weeks/a.yaml: is not as line") && !ended.stderr.contains("weeks/b.yaml"),
        "{ended:?}"
    );
}

/// What a kill leaves: some documents of today with the old file still beside them, and some that are still old.
#[test]
fn a_migration_that_was_killed_goes_on_and_leaves_nothing_behind() {
    let env = weeks(Env::new().flow("retro", &flow(QUERY)))
        .file("weeks/c.yaml.v1.bak", "version: 1\nslug: c\nfeeling: 5\n")
        .file("weeks/a.yaml.v1.bak", "version: 1\nslug: a\nfeeling: 2\n");
    env.nietz(["documents", "migrate"]).go().exits(0);
    let documents = env.documents();
    let names: Vec<&String> = documents.keys().filter(|path| path.starts_with("weeks/")).collect();
    assert_eq!(names, ["weeks/a.yaml", "weeks/b.yaml", "weeks/c.yaml"]);
    env.nietz(["check", "weeks"]).go().exits(0);
}

#[test]
fn documents_are_not_changed_under_a_run_that_is_on() {
    let body = r#"weeks:each(function() end) return require("@nietz/ui").ask { id = "wait", prompt = "Wait?" }"#;
    let env = weeks(Env::new().flow("retro", &flow(body)));
    let mut running = env.run(["retro"]).spawn();
    running.wait_for("asked");
    let before = env.documents();
    let refused = env.nietz(["documents", "migrate"]).go();
    assert!(refused.code != Some(0) && refused.stderr.contains("is on"), "{refused:?}");
    assert_eq!(env.documents(), before);
    // To look is free.
    env.nietz(["documents", "migrate", "--dry-run"]).go().exits(0);
    running.kill();
    env.nietz(["documents", "migrate"]).go().exits(0);
}
