//! How a session ends: finished with its brief and journal, counted, with a last word; paused, interrupted, or killed.

use std::time::Duration;

use serde_json::json;

use super::model::Brain;
use super::table::{FULL, SLUG, TOPIC, Table, read, said, says, yaml};
use crate::support::env::Env;
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer, Request, Response};

fn brief(table: &Table, name: &str) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/{name}-2026-01-09.md"))
}

#[test]
fn finish_writes_a_brief_and_a_journal_that_can_be_traced() {
    let table = Table::new();
    let ended =
        table.begin(&["premortem", FULL, "a", "", "/spike 1d does it hold?", "party", "a day", "finish"]).exits(0);
    let brief_path = format!("docs/briefs/{SLUG}/brief-2026-01-09.md");
    let journal_path = format!("docs/briefs/{SLUG}/journal-2026-01-09.md");
    assert_eq!(
        ended.result(),
        json!({"status": "completed", "ems": 40, "session": super::table::path(SLUG), "brief": brief_path, "journal": journal_path})
    );
    says(&ended, &[&format!("Brief: `{brief_path}`"), &format!("Journal: `{journal_path}`")]);
    let text = brief(&table, "brief");
    for part in [
        "# Checkout that survives a payment outage\n\nKeep orders in the ledger.\n\n## Problem\n",
        "\n## More\n\nNobody has asked the bank. *(suggested)*\n",
        "*How this came about: 2 answers in one round of questions, in the journal beside this file.*",
        "When the provider is down, the ledger has no order and the customer leaves.\n",
        "- customers at the ledger\n",
        "1. **A customer keeps the order in our ledger during an outage**\n   - The order is there",
        "Orders stay in our ledger.",
        "| The ledger fills up unnoticed | Alert on its age *(suggested)* | none yet |",
        "| Support is not told | Write the page first *(suggested)* | none yet |",
        "GO · does it hold? (1d)",
        "| Write down the ledger's key | Ann *(suggested)* | Friday *(suggested)* |\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let text = brief(&table, "journal");
    for part in [
        "## 1. Divergent · EMS 22 → 40 (+18)",
        "Orders stay in our own ledger first.",
        "(skipped)",
        "## Party 1:",
        "**Architect**",
        "- _spike_:",
        "## What the brief rests on",
        "- Who is touched by it: customers at the ledger ← 1",
        "** decided: Orders stay in our ledger “Orders stay in our own ledger first.”",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(table.session()["status"], "completed");
}

#[test]
fn nothing_said_is_nothing_to_finish_and_little_is_warned_of() {
    let table = Table::new();
    let ended = table.begin(&["finish", "the ledger keeps orders", "", "", "finish"]).exits(0);
    says(&ended, &["There is nothing to write a brief from yet", "the brief will be thin"]);
    assert_eq!(ended.result()["status"], "completed");
}

#[test]
fn finished_sessions_are_counted_once_each() {
    let table = Table::new();
    says(&table.talk(["stats"], &[]).exits(0), &["No session has been finished yet."]);
    table.begin(&["/technique swot", FULL, "", "", "finish"]).exits(0);
    says(&table.talk(["stats"], &[]).exits(0), &["One finished session, "]);
    // Reopened and finished again, it is still one session.
    table.go_on(&["finish"]).exits(0);
    table
        .talk(
            ["another thing for the shop", "--no-clarify", "--no-hmw", "--persona", "sparring"],
            &[FULL, "", "", "finish"],
        )
        .exits(0);
    let rows = table.env.read(".project-memory/brainstorm-history.jsonl");
    let rows: Vec<serde_json::Value> = rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&rows[0]["slug"], &rows[0]["techniques"], &rows[0]["personas"]),
        (&SLUG.into(), &json!(["swot"]), &json!(["architecte"]))
    );
    let sums: serde_json::Value =
        serde_json::from_str(&table.env.read(".project-memory/brainstorm-stats.json")).expect("JSON");
    assert_eq!((&sums["sessions"], &sums["ems_average"]), (&2.into(), &json!(40)));
    assert_eq!(
        (&sums["techniques"], &sums["personas"]),
        (&json!({"swot": 1}), &json!({"architecte": 1, "sparring": 1}))
    );
    let shown = table.talk(["stats"], &[]).exits(0);
    says(&shown, &["2 finished sessions, ", "- techniques: swot 1×", "- leaders: architecte 1×, sparring 1×"]);
    let checked = table
        .env
        .nietz(["check", ".project-memory/brainstorm-stats.json", ".project-memory/brainstorm-history.jsonl"])
        .go();
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn a_session_ends_with_a_quote_that_fits_and_a_light_one_without() {
    let quoted = |lines: &[&str], flags: &[&str]| {
        let ended = Table::with(Brain { claims: 100, ..Brain::default() })
            .talk([TOPIC, "--no-clarify", "--no-hmw"].into_iter().chain(flags.iter().copied()), lines);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let last =
            ended.of_type("said").pop().expect("something is said")["markdown"].as_str().unwrap_or_default().to_owned();
        last.starts_with("> ").then_some(last)
    };
    let file = include_str!("../../quotes/classics.yaml");
    let all = yaml(file);
    let context = |line: &str| {
        let quotes = all["quotes"].as_array().expect("a list");
        let found =
            quotes.iter().find(|quote| line.contains(quote["text"].as_str().expect("a text"))).expect("one of ours");
        (found["context"].as_str().expect("a context").to_owned(), found["lang"].as_str().unwrap_or("en").to_owned())
    };
    let of = |lines: &[&str], flags: &[&str]| quoted(lines, flags).map(|line| context(&line));
    let answered = [FULL, "", "", "finish"];
    assert_eq!(of(&answered, &[]), Some(("perseverance".into(), "en".into())), "EMS 47");
    let far = [
        FULL,
        "",
        "",
        "Finance exports it. It stops after forty attempts. Mail goes out. Bob owns alerts. First comes a table.",
        "",
        "",
        "finish",
    ];
    assert_eq!(of(&far, &[]).map(|found| found.0), Some("victory".into()));
    assert_eq!(of(&["abandon"], &[]).map(|found| found.0), Some("defeat".into()));
    assert_eq!(of(&answered, &["--lang", "fr"]).map(|found| found.1), Some("fr".into()));
    assert_eq!(of(&[FULL, "finish"], &["--lite"]), None);
}

#[test]
fn an_interrupt_at_a_prompt_or_in_a_call_leaves_a_run_that_goes_on() {
    const LINES: [&str; 5] = [FULL, "", "", "premortem", "finish"];
    let arguments = [TOPIC, "--no-clarify", "--no-hmw"];
    let calm = Table::new();
    let result = calm.talk(arguments, &LINES).result();
    let typed = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();

    // At the second prompt.
    let table = Table::new();
    let mut running = table.call(arguments).spawn();
    running.wait_for("asked");
    running.say(&typed(&LINES[..1]));
    running.wait_for("asked");
    running.interrupt();
    let ended = running.end().exits(130);
    assert_eq!(ended.ending()["status"], "interrupted");
    assert!(!said(&ended).contains("saved"), "the flow is told nothing: {}", said(&ended));
    assert_eq!(table.session()["status"], "in_progress");
    let calls = table.server.calls();
    let resumed = table.env.resume().stdin(typed(&LINES[1..])).go();
    assert_eq!((resumed.result(), table.server.calls()), (result.clone(), calm.server.calls()));
    assert!(calls > 0 && resumed.asked().len() < calm.env.journal().of_kind("ask").len());
    assert_eq!(table.env.documents(), calm.env.documents());

    // In the call after the first answers, twice in a row.
    let gate = Gate::default();
    let held = gate.clone();
    let brain = Brain::default();
    let server = ModelServer::start(move |request| {
        let reply = Response::text(brain.reply(request).to_string());
        if request.number > 1 { reply.held_by(&held) } else { reply }
    });
    let table = Table { env: Env::with(&server), server };
    let running = table.call(arguments).stdin(typed(&LINES[..3])).spawn();
    assert!(table.server.wait_for_calls(2, Duration::from_secs(30)));
    running.interrupt();
    running.end().exits(130);
    let running = table.env.resume().spawn();
    assert!(table.server.wait_for_calls(3, Duration::from_secs(30)));
    running.terminate();
    running.end().exits(130);
    gate.open();
    let resumed = table.env.resume().stdin(typed(&LINES[3..])).go();
    assert_eq!((resumed.result(), table.server.calls()), (result, calm.server.calls() + 2));
    // The questions of this model depend on how often it was asked.
    let (found, expected) = (table.env.documents(), calm.env.documents());
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert_eq!(table.session()["history"][0], calm.session()["history"][0]);
}

#[test]
fn a_full_disk_or_a_kill_at_any_time_loses_nothing() {
    let table = || {
        let answers =
            format!("answer: [\"{FULL}\", \"\", \"\", premortem, converge, \"the ledger has a key\", finish]\n");
        Table::new().file("answers.yaml", &answers)
    };
    let arguments = [TOPIC, "--no-clarify", "--no-hmw", "--answers", "answers.yaml"];
    let calm = table();
    let result = calm.call(arguments).go().result();
    let lines = calm.env.journal().lines.len();
    for line in kills::points(lines as u64 - 3, 4).into_iter().map(|point| point + 2) {
        for (fault, code) in [("full", Some(1)), ("kill", None)] {
            let table = table();
            let broken = table.call(arguments).var("NIETZ_FAULT", &format!("{fault}@{line}")).go();
            assert_eq!(broken.code, code, "{fault}@{line}: {broken:?}");
            let resumed = table.env.resume().args(["--answers", "answers.yaml"]).go();
            assert_eq!(resumed.result(), result, "{fault}@{line}");
            let (found, expected) = (table.env.documents(), calm.env.documents());
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{fault}@{line}");
            let rows = ".project-memory/brainstorm-history.jsonl";
            assert_eq!(found[rows], expected[rows], "{fault}@{line}: counted once");
        }
    }
}

#[test]
fn killed_at_any_moment_a_session_comes_to_the_same_documents_and_leaves_nothing() {
    let table = || {
        let answers =
            format!("answer: [\"{FULL}\", \"\", \"\", premortem, converge, \"the ledger has a key\", finish]\n");
        // What is said depends on what is asked, and not on how often.
        let server = ModelServer::start(|request| {
            let again = Request { number: read(request).len(), ..request.clone() };
            Response::text(Brain::default().reply(&again).to_string())
        });
        Table { env: Env::with(&server), server }.file("answers.yaml", &answers)
    };
    let arguments = [TOPIC, "--no-clarify", "--no-hmw", "--answers", "answers.yaml"];
    let calm = table();
    let result = calm.call(arguments).go().result();
    let length = std::fs::metadata(calm.env.journal_path()).expect("it is there").len();
    let (seeds, times) = kills::rounds();
    kills::for_each(&seeds, |seed| {
        let table = table();
        let resume = || table.env.resume().args(["--answers", "answers.yaml"]);
        let ended =
            kills::anywhere(&table.env, &mut kills::Chance(seed), (times, length), table.call(arguments), resume);
        assert_eq!(ended.result(), result, "seed {seed}");
        assert_eq!(table.env.documents(), calm.env.documents(), "seed {seed}");
        assert_eq!(kills::strays(&table.env), Vec::<String>::new(), "seed {seed}");
    });
}

#[test]
fn in_french_all_that_is_said_is_french() {
    let locale = Table::new();
    let ended =
        locale.call([TOPIC, "--no-clarify", "--no-hmw"]).var("LANG", "fr_FR.UTF-8").stdin("quit\n").go().exits(0);
    says(&ended, &["Architecte mène"]);
    let table = Table::new();
    let lines = ["le registre garde les commandes", "", "", "status", "premortem", "finish"];
    let ended = table.talk([TOPIC, "--lang", "fr", "--no-clarify", "--no-hmw"], &lines).exits(0);
    says(&ended, &["Architecte mène", "Clarté", "**Terminé.**", "Un an plus tard, c'est un échec"]);
    let said = said(&ended);
    for english in ["Your answer", "Question 1 of", "iteration ", "Finished", "leads"] {
        assert!(!said.contains(english), "{english:?} in:\n{said}");
    }
    assert!(table.server.requests().iter().all(|request| request.prompt().contains("French")));
    assert!(table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md")).contains("*D'où vient ce document : "));
}
