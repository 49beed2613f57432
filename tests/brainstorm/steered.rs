//! What the next questions are for, and what a session says of itself at its turns: no task contradicts another, and nothing is told
//! that is not so.

use serde_json::json;

use super::model::Brain;
use super::table::{FULL, MORE, SLUG, TOPIC, Table, path, prompts, read, said, says, task};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

const QUIET: [&str; 5] = [TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"];

/// The tasks in which questions were asked for.
fn questions(table: &Table) -> Vec<String> {
    table.server.requests().iter().map(task).filter(|task| task.starts_with("Ask the user")).collect()
}

#[test]
fn what_the_next_questions_are_for_contradicts_nothing() {
    let table = Table::new();
    table.talk(QUIET, &["quit"]).exits(0);
    assert!(questions(&table)[0].contains("Open the subject up"), "{}", questions(&table)[0]);
    // Who does what is least known now, and still nobody is pushed for it.
    let text = table.env.read(&path(SLUG));
    table.env.write(&path(SLUG), text.replace("action: 20", "action: 5"));
    let quiet = ["--continue", SLUG, "--no-technique", "--no-suggest"];
    table.talk(quiet, &["the ledger", "continue", "converge", "/dive costs", "quit"]).exits(0);
    let all = questions(&table);
    let (opening, closing, dive) = (&all[1], &all[2], &all[3]);
    assert!(opening.contains("Open the subject up") && opening.contains("Least is known about"), "{opening}");
    assert!(!opening.contains("who does the first step"), "{opening}");
    assert!(closing.contains("Close the subject; open nothing new"), "{closing}");
    assert!(!closing.contains("Open the subject up") && !closing.contains("other ways to do it"), "{closing}");
    assert!(dive.contains("Ask only about this, whatever phase the session is in: costs"), "{dive}");
    for other in ["Close the subject", "Open the subject up", "Least is known"] {
        assert!(!dive.contains(other), "{dive}");
    }
}

#[test]
fn directions_are_shown_as_such_and_told_to_whoever_asks_next() {
    let table = Table::new();
    let ended = table.talk([TOPIC, "--no-clarify"], &["quit"]).exits(0);
    says(&ended, &["Directions to look in:\n\n- How might we keep selling while nobody can pay?"]);
    let asked = table.server.requests();
    let asked = asked.iter().find(|request| task(request).starts_with("Ask the user")).expect("questions");
    assert!(read(asked).contains("A direction to look in: How might we keep selling while nobody can pay?"));
}

#[test]
fn who_looks_for_faults_is_nobody_who_may_only_ask() {
    let table = Table::new();
    table.begin(&["premortem", "security-check", "/spike 1d does it hold?", "quit"]).exits(0);
    let who = |request: &Request| read(request).rsplit("# Who you are now\n\n").next().unwrap_or_default().to_owned();
    for name in ["risks", "threats", "verdict"] {
        let requests = table.server.requests();
        let asked = requests.iter().find(|one| !one.schema()["properties"][name].is_null()).expect("it is asked for");
        assert!(who(asked).starts_with("You examine ideas before anybody builds them"), "{name}: {}", who(asked));
    }
}

#[test]
fn a_large_mind_with_one_good_question_gets_no_plain_ones_beside_it() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if task(request).starts_with("Ask the user") {
            let question =
                |text: String| json!({"question": text, "urgency": "info", "replies": ["Yes, so it is", "No, never"]});
            value["questions"] = json!([
                question("Which orders wait?".to_owned()),
                question(format!("And what happens then, in round {}?", request.number))
            ]);
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    table.talk(QUIET, &["the ledger", "the worker", "quit"]).exits(0);
    let history = table.session()["history"].clone();
    assert_eq!(history[0]["questions"].as_array().map(Vec::len), Some(2));
    assert_eq!(history[1]["questions"], json!(["And what happens then, in round 3?"]));
}

#[test]
fn after_back_another_way_is_measured_by_where_it_began() {
    let table = Table::with(Brain { claims: 45, ..Brain::default() });
    let lines = [FULL, "", "", MORE, "", "", "back", "another worker altogether", "", "", "quit"];
    let ended = table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-technique"], &lines).exits(0);
    let session = table.session();
    let ems = |index: usize| session["history"][index]["ems"].as_i64().expect("a number");
    assert_eq!(session["history"].as_array().map(Vec::len), Some(5), "{session:#}");
    // Less than the other way had, and much more than where both began.
    assert!(ems(4) - ems(2) < 3 && ems(4) - ems(0) > 10, "{session:#}");
    let asked = prompts(&ended);
    assert!(!asked.iter().any(|prompt| prompt.contains("moved little")), "{asked:?}");
    assert!(!said(&ended).contains("takes over") && session["persona"] == "architecte", "{}", said(&ended));
}

#[test]
fn a_mature_idea_is_asked_about_with_what_is_still_open() {
    let table = Table::with(Brain { claims: 100, ..Brain::default() });
    let ended = table.begin(&["/open Who pays for it", FULL, "", "", MORE, "", "", "quit"]);
    let asked =
        prompts(&ended).into_iter().find(|prompt| prompt.contains("mature enough for a brief")).expect("it asks");
    assert!(asked.contains("One question is open or contested: `ledger` shows it."), "{asked}");
}

#[test]
fn iterations_without_an_answer_are_not_counted_at_the_end() {
    let table = Table::new();
    let ended = table.talk(QUIET, &[FULL, "", "", MORE, "", "", "", "", "", "finish"]).exits(0);
    let title = said(&ended).lines().find(|line| line.starts_with("**Finished.**")).map(str::to_owned);
    assert!(title.as_deref().is_some_and(|title| title.contains(", 2 iterations, ")), "{title:?}");
}

#[test]
fn a_brief_that_was_previewed_is_not_paid_for_again() {
    let table = Table::with(Brain { claims: 100, ..Brain::default() });
    let ended = table.begin(&[FULL, "", "", MORE, "", "", "preview", "finish"]).exits(0);
    assert_eq!(ended.result()["status"], "completed");
    for name in ["brief", "parts"] {
        let has = |request: &&Request| !request.schema()["properties"][name].is_null();
        assert_eq!(table.server.requests().iter().filter(has).count(), 1, "{name}");
    }
}
