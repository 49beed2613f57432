//! The session file: the specification's examples, migration, defaults, what is offered at launch, and cleaning up.

use serde_json::{Value, json};

use super::table::{Table, path, said, says, task, yaml};

const EXAMPLES: [(&str, &str); 3] = [
    ("feature-auth", include_str!("../samples/documents/valid/whole.yaml")),
    ("feature-checkout", include_str!("../samples/documents/valid/rounds.yaml")),
    ("refactor-api", include_str!("../samples/documents/valid/tensions.yaml")),
];

/// A session of version 1.0.
const OLD: &str = r#"format_version: "1.0"
session:
  id: "feature-auth-2025-12-01"
  slug: "feature-auth"
  status: "in_progress"
  phase: "divergent"
  ems: 40
  persona: "architecte"
  iteration: 2
  techniques_used: ["moscow", "5whys"]
  ideas: [{ id: 1, content: "Magic links", score: 5 }]
  created: "2025-12-01T10:00:00Z"
  updated: "2026-01-08T10:00:00Z"
"#;

/// Checks that all that stands in `small` stands in `large`, too.
#[track_caller]
fn within(small: &Value, large: &Value, at: &str) {
    match (small, large) {
        (Value::Object(small), Value::Object(large)) => {
            for (name, value) in small {
                within(value, large.get(name).unwrap_or(&Value::Null), &format!("{at}/{name}"));
            }
        }
        (Value::Array(small), Value::Array(large)) => {
            assert_eq!(small.len(), large.len(), "{at}");
            small.iter().zip(large).enumerate().for_each(|(index, (a, b))| within(a, b, &format!("{at}/{index}")));
        }
        _ => assert_eq!(small, large, "{at}"),
    }
}

/// Without what a sitting may change: when it was saved, and how long it took.
fn still(mut document: Value) -> Value {
    for name in ["updated", "duration_minutes"] {
        document["session"][name] = Value::Null;
    }
    document
}

#[test]
fn the_examples_of_the_specification_load_save_and_load_to_the_same_data() {
    for (slug, text) in EXAMPLES {
        let table = Table::new().file(&path(slug), text);
        // A panel that is active would speak before anything can be typed.
        let quiet = ["--continue", slug, "--no-technique"];
        let ended = table.talk(quiet, &["save", "quit"]);
        assert_eq!(ended.code, Some(0), "{slug}: {ended:?}");
        let (example, first) = (yaml(text), yaml(&table.env.read(&path(slug))));
        let mut expected = still(example.clone());
        for name in
            ["iteration", "history", "last_question", "party_history", "panel_history", "updated", "duration_minutes"]
        {
            // The session went on: the next questions were asked. What was there must be there still.
            expected["session"].as_object_mut().expect("a session").shift_remove(name);
        }
        within(&expected, &first, slug);
        for name in ["history", "party_history", "panel_history"] {
            let before = example["session"][name].as_array().cloned().unwrap_or_default();
            let after = first["session"][name].as_array().expect("a list")[..before.len()].to_vec();
            within(&json!(before), &json!(after), &format!("{slug}/{name}"));
        }
        for name in [
            "techniques_used",
            "techniques_history",
            "party_active",
            "panel_active",
            "ideas",
            "created",
            "started_at",
            "persona",
        ] {
            assert!(!first["session"][name].is_null(), "{slug}: {name} has its default");
        }
        table.talk(quiet, &["save", "quit"]).exits(0);
        let second = yaml(&table.env.read(&path(slug)));
        assert_eq!(still(second), still(first), "{slug}");
        let checked = table.env.nietz(["check", &path(slug)]).go();
        assert_eq!(checked.code, Some(0), "{checked:?}");
    }
}

#[test]
fn an_old_file_is_migrated_when_it_is_opened_however_that_is() {
    // By name, from the list that is offered, and with its version where some files have it.
    let inner = OLD.replace("format_version: \"1.0\"\nsession:\n", "session:\n  format_version: \"1.0\"\n");
    for (text, arguments, lines) in [
        (OLD, vec!["--continue", "feature-auth"], vec!["quit"]),
        (OLD, vec![], vec!["1", "quit"]),
        (inner.as_str(), vec!["--continue", "feature-auth"], vec!["quit"]),
    ] {
        let table = Table::new().file(&path("feature-auth"), text);
        table.talk(arguments.iter().copied(), &lines).exits(0);
        let document = yaml(&table.env.read(&path("feature-auth")));
        assert_eq!(document["format_version"], "1.2");
        let session = &document["session"];
        assert_eq!(session["format_version"], Value::Null);
        assert_eq!(
            (&session["mode"], &session["party_active"], &session["panel_active"]),
            (&"standard".into(), &false.into(), &false.into())
        );
        let entry = |index: u64, slug: &str| {
            json!({"iteration": index, "technique_slug": slug, "category": "unknown", "suggested_reason": "migrated from v1.0",
                   "applied": true, "source": "manual", "weak_axes": []})
        };
        let migrated = session["techniques_history"].as_array().expect("a list")[..2].to_vec();
        assert_eq!(migrated, [entry(1, "moscow"), entry(2, "5whys")]);
        assert_eq!(session["techniques_used"], json!(["moscow", "5whys"]));
        assert_eq!(session["ideas"][0]["content"], "Magic links");
        // The original was kept until the new file was safe, and no longer.
        let left: Vec<_> =
            table.env.documents().into_keys().filter(|name| name.contains("sessions/feature-auth")).collect();
        assert_eq!(left, [path("feature-auth")]);
    }
}

#[test]
fn a_version_that_never_was_or_is_yet_to_come_is_refused_and_left_alone() {
    for version in ["1.1", "1.3", "2.0"] {
        let text = OLD.replace("\"1.0\"", &format!("\"{version}\""));
        let table = Table::new().file(&path("feature-auth"), &text);
        let ended = table.talk(["--continue", "feature-auth"], &["quit"]).exits(4);
        assert_eq!(ended.failure(), "document-version");
        let message = ended.ending()["failure"]["message"].to_string();
        assert!(message.contains(&path("feature-auth")) && message.contains(version), "{message}");
        assert_eq!(table.env.read(&path("feature-auth")), text);
    }
}

#[test]
fn launch_offers_what_there_is_and_can_begin_anew() {
    let updated = EXAMPLES[0].1.replace("updated: \"2026-01-09T11:00:00Z\"", "updated: \"2026-01-09T08:30:00Z\"");
    let table = Table::new().file(&path("feature-auth"), &updated);
    let ended = table.talk(["--lang", "fr"], &["9", "1", "quit"]).exits(0);
    let offered = "-------------------------------------------------------\n\
        Session existante detectee: \"feature-auth\" (EMS: 52)\n   Derniere activite: il y a 2 heures\n   \
        Phase: Divergent | Iteration: 3\n\n[1] Reprendre cette session\n[2] Nouvelle session\n\
        -------------------------------------------------------";
    let prompt = super::table::prompts(&ended)[0].clone();
    assert!(prompt.contains(offered), "{prompt}");
    says(&ended, &["Choisissez parmi : 1–2", "Retour dans « feature-auth »"]);

    let table = Table::new().file(&path("feature-auth"), &updated).file(&path("refactor-api"), EXAMPLES[2].1);
    let ended = table.talk([], &["3", "a new subject for the shop", "", "quit"]);
    assert!(super::table::prompts(&ended)[0].contains("[3] New session"), "{:?}", super::table::prompts(&ended));
    assert_eq!(table.session_of("a-new-subject-for-the-shop")["status"], "in_progress", "{ended:?}");
    // Another subject is not interrupted by the list, but told of it; the same one is offered.
    let ended = table.talk(["quite another thing to think about", "--no-clarify", "--no-hmw"], &["quit"]).exits(0);
    says(&ended, &["3 other sessions are in progress"]);
    let ended = table.talk(["Feature auth", "--no-clarify", "--no-hmw"], &["2", "quit"]).exits(0);
    assert_eq!(ended.result()["session"], path("feature-auth-2").as_str(), "a new one beside it");
}

#[test]
fn a_leader_who_is_gone_is_said() {
    let gone = EXAMPLES[0].1.replace("persona: \"architecte\"", "persona: \"grandmother\"");
    let table = Table::new().file(&path("feature-auth"), &gone);
    let ended = table.talk(["--continue", "feature-auth"], &["quit"]).exits(0);
    says(&ended, &["`grandmother` led this session and is not here any more"]);
    assert_eq!(table.session_of("feature-auth")["persona"], "architecte");
    // A leader of one's own is a file.
    let own = "---\nname: Grandmother\nsummary: Has seen it all\ntags: [facilitator]\n---\nYou have seen it all.\n";
    let table = Table::new().file(&path("feature-auth"), &gone).file("personas/grandmother.md", own);
    let ended = table.talk(["--continue", "feature-auth"], &["modes", "/dive costs", "quit"]).exits(0);
    says(&ended, &["`grandmother` Grandmother: Has seen it all ←"]);
    let asked = table.server.requests()[0].prompt();
    assert!(asked.contains("# Who you are now\n\nYou have seen it all."), "{asked}");
}

/// A session of another program, which is over.
const FOREIGN: &str = r#"format_version: "1.2"
session:
  id: "their-shop-2026-01-08"
  slug: "their-shop"
  status: "completed"
  phase: "convergent"
  mode: "standard"
  ems: 88
  iteration: 1
  history:
    - { iteration: 1, phase: "convergent", ems: 60, questions: ["Who pays?", "When?"], responses: ["The shop", "In May"] }
  created: "2026-01-08T10:00:00Z"
  updated: "2026-01-08T10:00:00Z"
"#;

#[test]
fn to_look_at_a_session_that_is_over_neither_opens_nor_weighs_it_and_to_answer_does() {
    let table = Table::new().file(&path("their-shop"), FOREIGN);
    let quiet = ["--continue", "their-shop", "--no-technique", "--no-suggest"];
    let ended = table.talk(quiet, &["status", "ledger", "quit"]).exits(0);
    says(&ended, &["The session is completed. Whatever you add opens it again."]);
    let session = table.session_of("their-shop");
    assert_eq!((&session["status"], &session["ems"]), (&"completed".into(), &88.into()));
    assert!(!table.server.requests().iter().any(|request| task(request).starts_with("Take down")));
    table.talk(quiet, &["the ledger keeps orders", "quit"]).exits(0);
    assert_eq!(table.session_of("their-shop")["status"], "in_progress");
}

#[test]
fn sessions_are_listed_by_a_command_of_their_own() {
    let table = Table::new();
    says(&table.talk(["sessions"], &[]).exits(0), &["There are no sessions yet."]);
    let table = table.file(&path("feature-auth"), EXAMPLES[0].1).file(&path("broken"), "session: [\n");
    let ended = table.talk(["sessions"], &[]).exits(0);
    says(&ended, &["- `feature-auth`: EMS 52/100, Divergent, iteration 3, in progress", &path("broken")]);
}

#[test]
fn what_was_finished_long_ago_is_removed_after_saying_so_and_nothing_else() {
    let example = EXAMPLES[0].1;
    let at = |slug: &str, status: &str, updated: &str| {
        example
            .replace("feature-auth", slug)
            .replace("status: \"in_progress\"", &format!("status: \"{status}\""))
            .replace("updated: \"2026-01-09T11:00:00Z\"", &format!("updated: \"{updated}\""))
    };
    let table = Table::new()
        .file(&path("done-long-ago"), &at("done-long-ago", "completed", "2025-12-01T00:00:00Z"))
        .file(&path("given-up-long-ago"), &at("given-up-long-ago", "abandoned", "2025-12-09T00:00:00Z"))
        .file(&path("done-lately"), &at("done-lately", "completed", "2025-12-12T00:00:00Z"))
        .file(&path("open-long-ago"), &at("open-long-ago", "in_progress", "2024-01-01T00:00:00Z"));
    let ended = table.talk(["a new subject for the shop", "--no-clarify", "--no-hmw"], &["quit"]).exits(0);
    says(&ended, &["Removed, finished more than 30 days ago: done-long-ago, given-up-long-ago."]);
    assert!(said(&ended).find("Removed") < said(&ended).find("session `a-new-subject-for-the-shop`"));
    for (slug, there) in
        [("done-long-ago", false), ("given-up-long-ago", false), ("done-lately", true), ("open-long-ago", true)]
    {
        assert_eq!(table.env.path(&path(slug)).exists(), there, "{slug}");
    }
}
