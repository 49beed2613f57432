//! What comes before the brief and around it: the project's own words, ideas in steps, approaches, forms, templates, and a brief that
//! somebody edited.

use serde_json::{Value, json};

use super::ledger::entries;
use super::model::Brain;
use super::table::{FULL, SLUG, TOPIC, Table, path, prompts, read, said, says, yaml};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

fn brief(table: &Table, name: &str) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/{name}.md"))
}

#[test]
fn a_brief_that_somebody_edited_is_left_and_the_next_one_has_a_name_of_its_own() {
    let table = Table::new();
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    // Ours, as it was written, is brought up to date.
    table.go_on(&["/fact It rains on Mondays", "finish"]).exits(0);
    assert!(brief(&table, "brief-2026-01-09").contains("It rains on Mondays"));
    let path = format!("docs/briefs/{SLUG}/brief-2026-01-09.md");
    let edited = format!("{}\nOur own words.\n", table.env.read(&path));
    table.env.write(&path, &edited);
    let ended = table.go_on(&["/fact It snows on Sundays", "finish"]).exits(0);
    assert_eq!(table.env.read(&path), edited);
    assert!(brief(&table, "brief-2026-01-09-2").contains("It snows on Sundays"));
    says(&ended, &["Somebody has edited the brief: it was left as it is, and the new one is"]);
}

#[test]
fn a_session_whose_brief_cannot_be_written_goes_on_until_it_can() {
    let table = Table::new().file("docs", "no folder\n");
    let ended = table.begin(&[FULL, "", "", "finish"]);
    assert_eq!((ended.code, &ended.ending()["failure"]["code"]), (Some(5), &"path-refused".into()), "{ended:?}");
    assert_eq!(table.session()["status"], "in_progress");
    std::fs::remove_file(table.env.path("docs")).expect("it is there");
    table.go_on(&["finish"]).exits(0);
    assert_eq!(table.session()["status"], "completed");
    assert!(brief(&table, "brief-2026-01-09").contains("Orders stay in our ledger"));
}

#[test]
fn each_form_and_a_template_of_ones_own_says_all_that_holds() {
    for (arguments, heads) in [
        (vec!["--format", "prd"], vec!["## Options", "## Stories", "## Next steps"]),
        (vec!["--format", "rfc"], vec!["## Motivation", "## Design"]),
        (vec!["--format", "adr"], vec!["## Context", "## Decision", "## Consequences"]),
        (vec!["--format", "issue"], vec!["## Stories", "A customer keeps the order"]),
        (
            vec!["--template", "own.md"],
            vec!["Ours: checkout", "* Orders:", "## Also noted\n\n### Recommendation\n", "\n### Problem\n"],
        ),
    ] {
        let table = Table::new().file("own.md", "Ours: {{ topic }}\n* Orders: {{ decisions }}\n");
        let flags = [TOPIC, "--no-clarify", "--no-hmw"];
        let lines = [FULL, "/open Who pays for it", "/fact Sixty | inspectors", "", "", "finish"];
        table.talk(flags.into_iter().chain(arguments.iter().copied()), &lines).exits(0);
        let text = brief(&table, "brief-2026-01-09");
        for part in heads.iter().copied().chain([
            "Who pays for it",
            "Sixty | inspectors",
            "Support people see pending orders daily",
        ]) {
            assert!(text.contains(part), "{arguments:?}: {part:?} is not in\n{text}");
        }
    }
}

/// A writer may leave the problem out: a record of decisions has no empty context then.
#[test]
fn a_record_of_decisions_without_a_problem_has_no_empty_context() {
    for (kept, context) in [
        (vec!["users", "decisions"], "## Context\n\n### Who is touched by it\n\n- customers at the ledger\n"),
        (vec!["decisions"], "## Context\n\ncheckout that survives a payment outage\n\n## Decision\n"),
    ] {
        let server = ModelServer::start(move |request| {
            let mut value = Brain::default().reply(request);
            if let Some(parts) = value.get_mut("parts").and_then(Value::as_array_mut) {
                parts.retain(|part| kept.iter().any(|of| part["of"] == *of));
                parts.push(json!({"of": "decisions", "heading": "Decisions", "text": "- Orders stay with us [1]"}));
            }
            Response::text(value.to_string())
        });
        let table = Table { env: Env::with(&server), server };
        table.talk([TOPIC, "--no-clarify", "--no-hmw", "--format", "adr"], &[FULL, "", "", "finish"]).exits(0);
        let text = brief(&table, "brief-2026-01-09");
        assert!(text.contains(context), "{context:?} is not in\n{text}");
    }
}

/// Several parts may be one section: each is mended by its own name. A section that a correction adds has its place, too.
#[test]
fn a_part_is_mended_by_its_heading_and_one_that_is_added_is_shown() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if let Some(parts) = value.get_mut("parts").and_then(Value::as_array_mut) {
            parts.retain(|part| part["of"] != "risks");
            for (heading, text) in
                [("Mails", "There are 713 mails."), ("Nights", "Nobody sleeps."), ("Mails", "In French.")]
            {
                parts.push(json!({"of": "other", "heading": heading, "text": text}));
            }
        }
        if value.get("changes").is_some() {
            let sections = &request.schema()["properties"]["changes"]["items"]["properties"]["section"]["enum"];
            let names: Vec<&str> = sections.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            assert!(names.contains(&"other: Mails") && names.contains(&"other: Nights"), "{names:?}");
            assert!(!names.contains(&"other"), "{names:?}");
            value["changes"] = json!([{"section": "other: Mails", "text": "Mails go out."},
                                      {"section": "risks", "text": "- They come late."}]);
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    let text = brief(&table, "brief-2026-01-09");
    for part in ["\n## Mails\n\nMails go out.\n\n## Nights\n\nNobody sleeps.\n", "\n## Risks\n\n- They come late.\n"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("713"), "{text}");
}

/// Whoever drafts a brief hears the conversation alone: what the user put down or struck out by a command is part of it, and so is what
/// they answered about, where they say "none of those".
#[test]
fn a_draft_is_written_from_what_was_put_down_and_struck_out_too() {
    let table = Table::new();
    table.begin(&[FULL, "None of those.", "", "/fact It rains on Mondays", "/fact It snows", "quit"]).exits(0);
    let id =
        entries(&table).iter().find(|one| one["text"] == "It snows").map(|one| one["id"].clone()).expect("it is there");
    table.go_on(&[&format!("/strike {id}"), "finish"]).exits(0);
    let asked = table.server.requests();
    let draft =
        asked.iter().find(|one| !one.schema()["properties"]["brief"].is_null()).expect("one is written").prompt();
    for part in ["\nThey put down (fact): It rains on Mondays\n", "\nThey struck out: It snows\n", "; b: "] {
        assert!(draft.contains(part), "{part:?} is not in\n{draft}");
    }
    assert!(!draft.contains("(fact): Orders stay"), "what was noted of what they said: {draft}");
}

/// A figure that was taken back may stand below a heading that says so, and nowhere else.
#[test]
fn what_was_taken_back_stands_only_below_a_heading_that_says_it_holds_no_more() {
    for (heading, told) in [("Was nicht mehr gilt", "\n- 713 vans\n"), ("Vans of ours", "\n- *713* vans\n")] {
        let server = ModelServer::start(move |request| {
            let mut value = Brain::default().reply(request);
            if let Some(parts) = value.get_mut("parts").and_then(Value::as_array_mut) {
                parts.push(json!({"of": "other", "heading": heading, "text": "- 713 vans [1]"}));
            }
            Response::text(value.to_string())
        });
        let table = Table { env: Env::with(&server), server };
        table.begin(&[FULL, "", "", "/fact We have 713 vans", "quit"]).exits(0);
        let id = entries(&table).iter().find(|one| one["text"] == "We have 713 vans").map(|one| one["id"].clone());
        table.go_on(&[&format!("/strike {}", id.expect("it is there")), "finish"]).exits(0);
        let text = brief(&table, "brief-2026-01-09");
        assert!(text.contains(told), "{told:?} is not in\n{text}");
    }
}

/// Who reads a brief has not seen what was suggested below a question, and cannot know what its letter means; an option that the user
/// names so is theirs.
#[test]
fn a_brief_that_names_a_suggestion_by_its_letter_is_told_so() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if value.get("parts").is_some() {
            value["lead"] =
                json!("Keep orders. Option c was refused, and *Option D* is open. Option B of the bank stands.");
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    table.begin(&["We keep option B of the bank.", "", "", "finish"]).exits(0);
    let asked = table.server.requests();
    let told = asked
        .iter()
        .map(|one| one.prompt())
        .find(|one| one.contains("which its reader never sees"))
        .expect("it is told");
    assert!(told.contains("Option c was refused, and *Option D*") && !told.contains("(\"Option B"), "{told}");
}

#[test]
fn the_project_is_read_cited_and_remembered() {
    let table = Table::new()
        .file("docs/spec.md", "# Orders\n\nAn order waits two days.\n")
        .file("docs/more/notes.md", "Notes.\n")
        .file("README.md", "Read me.\n");
    let flags = [TOPIC, "--no-clarify", "--no-hmw", "--about", "docs", "--about", "README.md"];
    let ended = table.talk(flags, &[FULL, "", "", "quit"]).exits(0);
    says(&ended, &["- `docs/spec.md`", "- `README.md`"]);
    let asked = read(&table.server.requests()[0]);
    assert!(asked.contains("===== docs/spec.md\n1\t# Orders\n2\t\n3\tAn order waits two days."), "{asked}");
    let files = table.own()["about"]["files"].clone();
    assert_eq!(files.as_array().map(Vec::len), Some(3));
    assert_eq!((&files[0]["first"], &files[0]["sha256"].as_str().map(str::len)), (&1.into(), &Some(64)));
    // Another sitting reads them again.
    let before = table.server.calls();
    table.go_on(&["/dive the order", "finish"]).exits(0);
    assert!(read(&table.server.requests()[before]).contains("An order waits two days."));
    assert!(brief(&table, "brief-2026-01-09").contains("`docs/spec.md:1-3`"));
    let missing = Table::new();
    missing.talk([TOPIC, "--about", "nowhere"], &[]).exits(2);
}

#[test]
fn approaches_are_set_side_by_side_and_the_choice_is_a_decision() {
    let table = Table::new();
    let ended = table.begin(&[FULL, "", "", "approaches", "b", "finish"]).exits(0);
    says(&ended, &["**Ledger first** · recommended: Orders wait in our ledger.", "decided: Second provider"]);
    let text = brief(&table, "brief-2026-01-09");
    assert!(text.contains("| **Second provider** (chosen) |"), "{text}");
}

#[test]
fn ideas_come_in_steps_in_the_users_words_until_they_run_dry_and_are_rated_after() {
    let table = Table::new();
    let mut lines = vec!["A drawer for paper; Ask the bank", "Phones only", "", ""];
    lines.extend(["Mail every hour", "", "", "", "", "quit"]);
    let ended = table.talk([TOPIC, "--no-clarify", "--no-hmw", "--diverge"], &lines).exits(0);
    let steps = prompts(&ended).into_iter().filter(|prompt| prompt.contains("Step ")).count();
    assert!(steps >= 6, "{:?}", prompts(&ended));
    says(&ended, &["That one has run dry.", "4 ideas so far.", "**The ledger**", "Rate them when you like"]);
    assert!(!said(&ended).contains("EMS "), "nothing is judged meanwhile");
    let ideas = table.session()["ideas"].clone();
    assert_eq!(ideas[1], json!({"id": 2, "content": "Ask the bank", "score": 5}));
    assert_eq!(ideas.as_array().map(Vec::len), Some(4));
}

#[test]
fn at_the_limit_the_user_may_go_on_and_is_told_what_is_open() {
    let table = Table::new();
    let lines = ["/open Who pays for it", "continue", "continue", "continue", "more", "continue", "quit"];
    let ended = table.talk([TOPIC, "--no-clarify", "--quick"], &lines).exits(0);
    let limit =
        prompts(&ended).into_iter().find(|prompt| prompt.contains("the last of this session")).expect("it asks");
    assert!(limit.contains("One question is open or contested") && limit.contains("5 more iterations"), "{limit}");
    assert_eq!(table.session()["iteration"], 5);
}

#[test]
fn a_no_to_what_was_understood_is_asked_what_it_is() {
    let own_of = |table: &Table| yaml(&table.env.read(&path("payment")))["nietz"].clone();
    for no in ["no", "n", "Not quite.", "Nein."] {
        let table = Table::new();
        let ended = table.talk(["payment", "--no-hmw"], &[no, "Orders survive an outage of payments", "quit"]).exits(0);
        assert!(prompts(&ended)[1].starts_with("What is it, then?"), "{no}: {:?}", prompts(&ended));
        assert_eq!(own_of(&table)["topic"], "Orders survive an outage of payments", "{no}");
    }
    for said in ["yes", "Sí"] {
        let yes = Table::new();
        yes.talk(["payment"], &[said, "quit"]).exits(0);
        assert_eq!(own_of(&yes)["topic"], "a checkout that survives an outage of payments", "a subject, not a wish");
    }
}
