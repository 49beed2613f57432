//! The ledger: nothing that was said is lost or made up, it is the user's own, and what a `back` leaves counts for nothing.

use serde_json::{Value, json};

use super::model::{Brain, sentences};
use super::table::{SLUG, TOPIC, Table, path, prompts, read, said, says, task};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

/// A table whose model takes down what this says, and else answers as usual.
pub(super) fn taking_down(minutes: impl Fn(&[String]) -> Value + Send + Sync + 'static) -> Table {
    let server = ModelServer::start(move |request| {
        let mut value = Brain::default().reply(request);
        if value.get("said").is_some() {
            for (name, part) in minutes(&sentences(request)).as_object().expect("parts") {
                value[name] = part.clone();
            }
        }
        Response::text(value.to_string())
    });
    Table { env: Env::with(&server), server }
}

fn brief(table: &Table) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md"))
}

pub(super) fn entries(table: &Table) -> Vec<Value> {
    table.own()["ledger"]["entries"].as_array().expect("a list").clone()
}

#[test]
fn what_is_true_is_kept_whatever_its_words_are_and_what_nobody_said_is_not() {
    let table = taking_down(|said| {
        json!({"said": [
            {"quote": "sixty inspectors", "kind": "user", "text": "The field staff counts three score people"},
            {"quote": "we have a moon base", "kind": "fact", "text": "There is a moon base"},
            {"quote": said[1], "kind": "goal", "text": "Losses fall to 40 percent"}],
          "decided": [], "planned": [{"quote": "Jonas writes it", "kind": "step", "text": "Write the manifest",
            "owner": "Jonas", "date": "by 9 August"}]})
    });
    let answer = "We have sixty inspectors. Losses must fall by half; Jonas writes it. The photos have UUIDs.";
    let ended = table.begin(&[answer, "", "", "finish"]).exits(0);
    let all = entries(&table);
    let texts: Vec<&str> = all.iter().filter_map(|entry| entry["text"].as_str()).collect();
    assert_eq!(
        texts,
        [
            "The field staff counts three score people",
            // A figure that nobody said gives way to the words of the quote.
            "Losses must fall by half; Jonas writes it.",
            "Write the manifest",
            // The model passed over it.
            "The photos have UUIDs."
        ]
    );
    assert_eq!((&all[2]["owner"], &all[2]["date"], &all[0]["by"]), (&"Jonas".into(), &Value::Null, &"user".into()));
    let text = brief(&table);
    for part in texts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("moon") && !text.contains("40 percent") && !text.contains("9 August"), "{text}");
    let shown = said(&ended);
    assert!(shown.contains("- **+** **1** people: The field staff counts three score people"), "{shown}");
    assert!(shown.find("**+** **1** people") < shown.find("EMS "), "before the bars: {shown}");
}

#[test]
fn what_is_taken_back_or_answered_is_shown_and_reaches_neither_prompt_nor_brief() {
    let table = taking_down(|said| match said[0].as_str() {
        "Photos resume in chunks." => json!({"said": [
            {"quote": said[0], "kind": "idea", "text": "Resume in chunks"},
            {"quote": said[1], "kind": "open", "text": "Nobody knows who pays"}], "decided": []}),
        _ => {
            json!({"said": [], "decided": [{"quote": said[0], "text": "No chunks at all", "why": "becasue they are slow, no chunks at all", "rejected": ""}],
            "revoked": [{"id": 1, "quote": said[0]}, {"id": 2, "quote": "Ann pays"}, {"id": 2, "quote": "Bob pays"}, {"id": 77, "quote": said[0]}]})
        }
    });
    let lines =
        ["Photos resume in chunks. Who pays is open.", "", "", "No chunks at all, they are slow. Ann pays.", "", ""];
    let ended =
        table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-technique"], &[&lines[..], &["finish"]].concat()).exits(0);
    says(&ended, &["− **1** idea: Resume in chunks (holds no more)", "✓ **2** open: Nobody knows who pays (answered)"]);
    let text = brief(&table);
    assert!(!text.contains("Resume in chunks") && !text.contains("Nobody knows"), "{text}");
    assert!(text.contains("No chunks at all. Why: They are slow. Ann pays."), "{text}");
    assert_eq!(table.session()["ideas"], json!([]));
    let requests = table.server.requests();
    let written = requests.iter().map(task).find(|task| task.starts_with("Write the brief")).expect("a brief");
    assert!(!written.contains("Resume in chunks"), "a brief is written from what holds: {written}");
}

#[test]
fn the_ledger_is_the_users_own() {
    let table = Table::new();
    let ended = table
        .begin(&[
            "/fact Sixty inspectors work in the field",
            "/decide Orders stay with us",
            "/idea Number the photos at once",
            "/open Who pays for it",
            "/idea number the photos at once",
            "/rate 3 9",
            "/rate 1 5",
            "/rate 3 11",
            "/strike 2",
            "/strike 2",
            "ledger",
            "open",
            "/idea Second",
            "finish",
        ])
        .exits(0);
    says(
        &ended,
        &[
            "**+** **1** fact: Sixty inspectors work in the field",
            "That stands there already.",
            "**3** idea: Number the photos at once · 9/10",
            "Only ideas are rated; this is **1** fact",
            "`/rate NUMBER SCORE`",
            "− **2** decided: Orders stay with us (holds no more)",
            "Nothing that holds has the number 2",
        ],
    );
    assert_eq!(table.session()["history"][0]["responses"][0], "open", "a word that needs its slash is an answer");
    let ideas = table.session()["ideas"].clone();
    assert_eq!(ideas[0], json!({"id": 1, "content": "Number the photos at once", "score": 9}));
    assert_eq!(ideas[1], json!({"id": 2, "content": "Second", "score": 5}));
    let text = brief(&table);
    assert!(text.contains("Number the photos at once.") && text.contains("- Who pays for it"), "{text}");
    assert!(!text.contains("Orders stay with us"), "{text}");
    let ids: Vec<_> = entries(&table).iter().filter_map(|entry| entry["id"].as_u64()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    table.env.nietz(["check", &path(SLUG)]).go().exits(0);
}

#[test]
fn back_sets_aside_what_it_leaves_and_continue_brings_it_back() {
    let first = ["the ledger keeps orders", "", ""];
    let second = ["a worker retries them nightly", "", ""];
    let flags = [TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"];
    let table = Table::new();
    table.talk(flags, &[&first[..], &second, &["/idea Mail them", "quit"]].concat()).exits(0);
    assert_eq!(table.session()["ideas"].as_array().map(Vec::len), Some(2));
    let before = table.server.calls();
    let another = ["back", "a person retries them daily", "", "", "finish"];
    table.go_on(&[&["back"], &another[..]].concat()).exits(0);
    // Twice back, and another way from the first iteration.
    let text = brief(&table);
    assert!(text.contains("Orders stay in our ledger") && !text.contains("a worker retries"), "{text}");
    assert!(entries(&table).iter().any(|entry| entry["quote"] == "a person retries them daily"));
    assert!(!text.contains("Mail them") && !text.contains("the ledger keeps orders"), "{text}");
    for request in &table.server.requests()[before..] {
        assert!(!read(request).contains("nightly"), "{}", read(request));
    }
    let journal = table.env.read(&format!("docs/briefs/{SLUG}/journal-2026-01-09.md"));
    assert!(journal.contains("(set aside)") && journal.contains("a worker retries them nightly"), "{journal}");

    let table = Table::new();
    table
        .talk(flags, &[&first[..], &second, &["/idea Mail them", "back 2", "continue", "continue", "finish"]].concat())
        .exits(0);
    let text = brief(&table);
    for part in ["a worker retries them nightly", "Mail them", "keeps the order in our ledger"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn answers_given_again_after_back_are_kept_one_by_one() {
    let flags = [TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"];
    let lines = ["the ledger keeps orders", "two", "three", "back", "quit"];
    let table = Table::new();
    table.talk(flags, &["the ledger keeps orders", "two days", "three people", "quit"]).exits(0);
    // Nothing comes after it: the answer was kept when it was given.
    table.go_on(&["back", "another ledger altogether"]).exits(7);
    assert_eq!(table.own()["revisit"]["replies"], json!(["another ledger altogether"]), "{lines:?}");
    let ended = table.go_on(&["", "", "quit"]).exits(0);
    assert!(prompts(&ended)[0].contains("Question 2 of 3"), "{:?}", prompts(&ended));
    let history = &table.session()["history"];
    assert_eq!(history[2]["responses"], json!(["another ledger altogether", "two days", "three people"]));
}

#[test]
fn letters_and_numbers_mean_what_stands_behind_them_and_that_is_shown() {
    let table = Table::new();
    let ended = table
        .begin(&[
            "a and b",
            "b, but only by Ann",
            "a supervisor signs it",
            "2",
            "1 und 2",
            "@alice in finance says two people",
            "quit",
        ])
        .exits(0);
    let session = table.session();
    let offered = table.own()["offered"].clone();
    let suggestion =
        |question: usize, index: usize| offered[question]["suggestions"][index].as_str().expect("one").to_owned();
    let both = format!("{}; {}", suggestion(0, 0), suggestion(0, 1));
    assert_eq!(session["history"][0]["responses"][0], both);
    assert_eq!(session["history"][0]["responses"][1], format!("{}, but only by Ann", suggestion(1, 1)));
    assert_eq!(session["history"][0]["responses"][2], "a supervisor signs it");
    assert_eq!(session["history"][1]["responses"][0], suggestion(3, 1));
    assert_eq!(session["history"][1]["responses"][2], "@alice in finance says two people", "no voice is called alice");
    says(&ended, &[&format!("→ {both}"), &format!("→ {}", suggestion(3, 1))]);
    assert_eq!(session["last_question"], session["history"][1]["questions"][2], "the one that was asked");
}

#[test]
fn one_voice_is_asked_by_its_name_at_any_time_and_the_question_stands() {
    let table = Table::new();
    let ended = table.begin(&["party", "a day", "@Security what about P1?", "the ledger", "quit"]).exits(0);
    let asked: Vec<String> =
        table.server.requests().iter().map(task).filter(|task| task.contains("what about P1?")).collect();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].contains("- P1 (Architect): Point"), "it hears what it is asked about: {}", asked[0]);
    assert_eq!(table.session()["history"][0]["responses"][0], "the ledger");
    let questions: Vec<String> =
        prompts(&ended).into_iter().filter(|prompt| prompt.contains("Question 1 of 3")).collect();
    assert_eq!(questions.len(), 3, "before, after the party, and after the voice: {questions:?}");
    assert_eq!(questions[0], questions[2]);
    assert_eq!(table.own()["notes"][1]["kind"], "aside");
    // What the party came to stands in the ledger and in later prompts.
    let kinds: Vec<Value> = entries(&table).iter().map(|entry| entry["kind"].clone()).collect();
    assert!(kinds.contains(&"finding".into()) && kinds.contains(&"contested".into()), "{kinds:?}");
    let last = read(table.server.requests().last().expect("one"));
    assert!(last.contains("Party, round 1, on:") && last.contains("contested, party 1: Keeping the order"), "{last}");
}

#[test]
fn a_file_without_a_version_or_of_comments_alone_is_told_with_its_name() {
    for text in ["# nothing yet\n", "session:\n  id: \"x-2026-01-09\"\n  slug: \"x\"\n", "[]\n"] {
        let table = Table::new().file(&path("x"), text);
        let ended = table.talk(["--continue", "x"], &["quit"]).exits(4);
        let told = ended.ending()["failure"].to_string();
        assert!(told.contains(&path("x")), "{text:?}: {told}");
        let checked = table.env.nietz(["check", &path("x")]).go().exits(4);
        assert!(checked.stdout.contains("x.yaml"), "{checked:?}");
        let folder = table.env.nietz(["check", ".project-memory/brainstorm-sessions"]).go().exits(4);
        assert!(folder.stdout.contains("x.yaml") && !folder.stdout.contains("attempt to index"), "{folder:?}");
        // A list of sessions says why, too.
        let listed = said(&table.talk(["sessions"], &[]).exits(0));
        let why = listed.split("cannot be read and was left alone: ").nth(1).unwrap_or_default();
        assert!(listed.contains(&path("x")) && why.trim().len() > 20, "{text:?}: {listed}");
    }
}

#[test]
fn check_remarks_what_files_break_unnoticed_and_refuses_none_of_it() {
    const GOOD: &str = include_str!("../samples/documents/valid/whole.yaml");
    for (what, text, told) in [
        ("mode", GOOD.replace("mode: \"standard\"", "mode: \"party\""), "party_active"),
        (
            "iteration",
            GOOD.replace(
                "iteration: 2\n      phase: \"divergent\"\n      ems: 38",
                "iteration: 1\n      phase: \"divergent\"\n      ems: 38",
            ),
            "once more",
        ),
        ("delta", GOOD.replace("ems_delta: 13", "ems_delta: 44"), "ems_delta"),
        ("ids", GOOD.replace("- id: 1\n", "- id: 7\n"), "ideas"),
        (
            "responses",
            GOOD.replace("        - \"Sliding window", "        - \"One too many\"\n        - \"Sliding window"),
            "responses",
        ),
        (
            "persona",
            GOOD.replace("persona: \"architecte\"", "persona: \"sparing\""),
            "there is no persona \"sparing\" here; did you mean \"sparring\"?",
        ),
    ] {
        assert_ne!(text, GOOD, "{what}");
        let table = Table::new().file(&path("feature-auth"), &text);
        let checked = table.env.nietz(["check", &path("feature-auth")]).go().exits(0);
        assert!(format!("{}{}", checked.stdout, checked.stderr).contains(told), "{what}: {checked:?}");
    }
}
