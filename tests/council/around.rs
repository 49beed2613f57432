//! What stands around a debate: who is called in, which models sit there, files, whether a council is worth it at all, what it is
//! written as, and in which language.

use super::model::{Brain, restless, stuck, whole};
use super::table::{REQUEST, Table, complaint, each, list, says, turns};
use crate::support::env::{Env, RUN};

#[test]
fn anybody_can_be_called_in_by_any_part_of_a_name() {
    let brain = Brain { stand: stuck, seats: vec!["Senior Architect", "Senior Developer"], ..Brain::default() };
    let table = Table::large(brain);
    let lines = [
        "",
        "@senior how?",
        "@Security who gains?",
        "@devil’s what if?",
        "@senior developer, and you?",
        "@Nobody?",
        // No remark that all would hear.
        "help",
        "stop",
        "",
    ];
    let ended = table.hold(&["--consider", "never"], &lines);
    let session = ended.result();
    says(
        &ended,
        &[
            "\"senior\" could be Senior Architect, Senior Developer. Say more of the name.",
            "Security Expert is called in for an answer.",
            "Nobody here is called \"Nobody?\".",
            "`/help` lists what can be typed here.",
        ],
    );
    let answers: Vec<_> =
        turns(&session, "discussion").into_iter().filter(|turn| turn["recipient"]["type"] == "user").collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["sender"]["name"], "Security Expert");
    assert_eq!(
        (&answers[1]["sender"]["name"], &answers[2]["sender"]["name"]),
        (&"Devil's Advocate".into(), &"Senior Developer".into())
    );
    let guest =
        list(&session["participants"]).iter().find(|one| one["name"] == "Security Expert").expect("it takes part");
    assert_eq!((&guest["role"], &guest["isRelevantForRequest"]), (&"guest".into(), &false.into()));
    let said = list(&session["nietz"]["said"]);
    assert_eq!(each(said, "text"), ["who gains?", "what if?", "and you?"]);
    assert!(ended.of_type("said").iter().any(|event| event["from"] == "Senior Architect #1"), "turns are numbered");
}

#[test]
fn models_take_the_seats_in_turn_and_no_prompt_says_who_is_which() {
    let table = Table::large(Brain { stand: stuck, ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--models", "openai/one,openai/two", "--cycles", "2"], &[]);
    let session = ended.result();
    let spoken = turns(&session, "discussion");
    let models: Vec<_> = spoken.iter().map(|turn| turn["metadata"]["model"].as_str().unwrap_or_default()).collect();
    assert_eq!(models, ["one", "two", "one"].repeat(2));
    assert!(table.server.requests().iter().all(|request| !whole(request).contains("openai")));
    let made = list(&session["messageTurns"]).iter().filter(|turn| turn["metadata"]["model"].is_string());
    assert!(made.clone().all(|turn| turn["metadata"]["latencySeconds"].is_number()));
    assert!(made.count() >= 8, "also the minority report and the answer");
}

#[test]
fn a_contrarian_alone_is_refused_before_anything_is_paid_for() {
    let table = Table::large(Brain::default());
    let ended = table.hold(&["--personas", "Devil's Advocate"], &[]).exits(2);
    assert!(complaint(&ended).contains("--personas names Devil's Advocate alone"), "{}", complaint(&ended));
    assert_eq!(table.server.calls(), 0);
}

#[test]
fn files_are_read_whole_with_their_lines_and_kept_in_the_record() {
    let mut table = Table::large(Brain::default());
    table.env = table.env.file("docs/plan.md", "# Plan\n\nTwo people until May.\n");
    let session = table.hold(&["--no-pause", "--context", "@docs/plan.md", "--context", "Nina decides."], &[]).result();
    for request in table.server.requests() {
        let heard = whole(&request);
        assert!(heard.contains("# File docs/plan.md") && heard.contains("3\tTwo people until May."), "{heard}");
        assert!(heard.contains("U1: Nina decides."), "{heard}");
    }
    let file = &session["nietz"]["files"][0];
    assert_eq!((&file["path"], &file["lines"]), (&"docs/plan.md".into(), &3.into()));
    table.env.write("much.txt", "word ".repeat(40_000));
    let ended = table.hold(&["--no-pause", "--context", "@much.txt"], &[]).exits(2);
    assert!(complaint(&ended).contains("there is room for 40000"), "{}", complaint(&ended));
}

#[test]
fn where_nothing_is_to_be_weighed_one_plain_answer_is_offered_and_no_session_is_written() {
    let brain = Brain { worth: "plain", stand: stuck, ..Brain::default() };
    let table = Table::large(brain.clone());
    let ended = table.hold(&["--save", "d.json"], &["hm", ""]);
    let result = ended.result();
    assert!(
        result["plain"].as_str().expect("an answer").contains("# Split it?\n\nSplit it, alone.")
            && result["sessionId"].is_null()
    );
    assert!(table.env.documents().is_empty());
    let prompt = ended.of_type("asked")[0]["question"]["prompt"].as_str().expect("a prompt").to_owned();
    assert!(prompt.contains("Not for this: Two sides can be argued.") && prompt.contains("about 21 calls"), "{prompt}");
    assert_eq!(table.server.calls(), 2);
    let refused = table.env.nietz(["run", "council", "export", RUN, "x.json"]).var("NIETZ_RUN", "x").go().exits(2);
    assert!(refused.stderr.contains("a plain answer was taken"), "{refused:?}");
    // Whoever wants it holds it all the same; nobody who goes on without questions is asked.
    let table = Table::large(brain.clone());
    let session = table.hold(&["--cycles", "1"], &["council", "", "", ""]).result();
    assert_eq!(session["status"], "completed");
    let table = Table::large(brain);
    assert_eq!(table.hold(&["--no-pause", "--cycles", "1"], &[]).result()["status"], "completed");
    assert!(table.prompts("judge whether it is worth it").is_empty());
}

#[test]
fn a_decision_is_written_as_a_record_in_markdown() {
    let table = Table::large(Brain { stand: stuck, ..Brain::default() });
    table.hold(&["--no-pause", "--context", "Nina signs it.", "--save", "docs/decision.md"], &[]).exits(0);
    let record = table.env.read("docs/decision.md");
    let session = regex::Regex::new("session [0-9a-f-]+").expect("it is one");
    insta::assert_snapshot!(session.replace(&record, "session ID"), @r"
    # Billing on its own?

    *Recommendation · 2026-01-09*

    Split billing out, behind contract tests.

    ## Why

    - The tests pin what both sides mean.

    ## What you do

    | What | Who | By |
    |---|---|---|
    | Write the contract tests | The team | May *(suggested)* |

    ## What speaks against it

    Who is called at night counts nights, others do not.

    ## What nobody knows

    Whether two people can work on nothing else.

    *How this came about: 3 advisers who see such things differently debated it in 3 rounds (Senior Architect, QA Engineer, Devil's Advocate). Of these, 2 would decide so. It ended because the council is in deadlock.*

    <!-- council session ID -->
    ");
    let ended = table.env.nietz(["run", "council", "export", RUN, "other.md"]).var("NIETZ_RUN", "x").go().exits(0);
    assert!(ended.stdout.contains("other.md"), "{ended:?}");
    assert_eq!(table.env.read("other.md"), record);
}

#[test]
fn whether_councils_were_worth_it_is_summed_over_all_of_a_workspace() {
    let judge: fn(&str, &str) -> &'static str =
        |first, _| if first.contains("behind contract tests") { "first" } else { "second" };
    let table = Table::large(Brain { judge, ..Brain::default() });
    let nothing = table.env.nietz(["run", "council", "worth"]).go().exits(0);
    assert!(nothing.stdout.contains("No council of this workspace was compared yet"), "{nothing:?}");
    for run in ["w1", "w2"] {
        table.call([REQUEST, "--no-pause", "--control"]).var("NIETZ_RUN", run).go().result();
    }
    let summed = table.env.nietz(["run", "council", "worth"]).go().exits(0).stdout;
    for part in [
        "2 councils were compared.",
        "Against the control: better 2 times, equal 0, not shown 0, worse 0, not found out 0.",
        "Against the plain answer: better 2 times",
        "times those of a plain answer",
    ] {
        assert!(summed.contains(part), "{part}: {summed}");
    }
    table.env.nietz(["check"]).go().exits(0);
}

#[test]
fn the_frame_is_in_the_users_language_and_what_is_recorded_too() {
    let rounds = vec![vec![("Quelle échéance ?", "Juin")]];
    let table = Table::large(Brain { rounds, stand: stuck, ..Brain::default() });
    let ended = table.hold(&["--lang", "fr", "--consider", "never", "--cycles", "1"], &["skip", "", "", ""]);
    let session = ended.result();
    says(
        &ended,
        &["D'où vient cette réponse : 3 conseillers", "l'avocat du diable", "**Le conseil sur : ", "*Recommande :*"],
    );
    // What was assumed stands in the answer, whatever its writer makes of it.
    assert!(
        session["finalAnswer"].as_str().is_some_and(|answer| answer.contains("## Supposé, et non vérifié\n\n- Juin"))
    );
    assert_eq!(session["assumptionLog"][0]["assumption"], "Hypothèse : Juin (question : \"Quelle échéance ?\")");
    table.env.write("fr.json", session.to_string());
    table.env.nietz(["check", "--as", "council:sessions", "fr.json"]).go().exits(0);
}

/// A prompt's last line is shown as it stands, at every front end: so it has no marks of Markdown in it.
#[test]
fn no_prompt_shows_the_marks_of_its_markdown() {
    let rounds = vec![vec![("Which deadline binds us?", "June"), ("Who pays?", "")]];
    let table = Table::large(Brain { rounds, stand: restless, worth: "plain", ..Brain::default() });
    let ended = table.hold(&["--cycles", "2"], &["council", "skip", "The shop", "", "", "", ""]);
    let asked = ended.of_type("asked");
    assert_eq!(asked.len(), 7);
    for event in asked {
        let prompt = event["question"]["prompt"].as_str().expect("a prompt");
        let last = prompt.lines().last().unwrap_or_default();
        assert!(!last.is_empty() && !last.contains(['*', '`']), "{prompt}");
        assert!(prompt.contains("\n\n"), "what stands above is a paragraph of its own: {prompt}");
    }
}

#[test]
fn a_file_that_holds_nothing_is_told_by_its_name() {
    let env = Env::new().file("empty.yaml", "# nothing yet\n").file("list.json", "[1]");
    let checked = env.nietz(["check", "--as", "council:sessions", "empty.yaml", "list.json"]).go().exits(4);
    assert!(checked.stdout.contains("empty.yaml") && checked.stdout.contains("list.json"), "{checked:?}");
    assert!(!checked.stdout.contains(".lua") && !checked.stderr.contains(".lua"), "{checked:?}");
}
