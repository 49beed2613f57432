//! Every command that can be typed at a prompt does what its line in `help` says.

use super::table::{FULL, SLUG, TOPIC, Table, prompts, said, says};
use crate::support::process::Ended;

fn notices(ended: &Ended) -> String {
    ended.of_type("notice").iter().map(|notice| format!("{}\n", notice["text"].as_str().unwrap_or_default())).collect()
}

#[test]
fn help_lists_every_command_and_a_slip_is_asked_about() {
    let table = Table::new();
    let ended = table.begin(&["help", "statsu", "\\savee", "/xyzzy", "/back x", "quit"]).exits(0);
    let told = notices(&ended);
    for name in [
        "continue",
        "back [N]",
        "dive [SUBJECT]",
        "pivot [ANGLE]",
        "diverge",
        "converge",
        "status",
        "scoring",
        "energy",
        "plan-preview",
        "sessions",
        "technique [NAME]",
        "framework [moscow|5whys|swot]",
        "idea TEXT",
        "decide TEXT",
        "open TEXT",
        "fact TEXT",
        "strike N…",
        "rate N…",
        "ledger",
        "approaches",
        "premortem",
        "spike [DURATION QUESTION]",
        "security-check",
        "modes",
        "mode [auto|NAME]",
        "party [exit|add NAME|focus NAME]",
        "panel [debate|socratic|exit]",
        "save",
        "finish",
        "quit",
        "abandon",
        "help",
    ] {
        assert_eq!(told.matches(&format!("  /{name}  ")).count(), 1, "{name}: {told}");
    }
    for why in
        ["`statsu`: did you mean `status`?", "there is no command `/xyzzy`", "`/back` does not take `x`: `/back [N]`"]
    {
        assert!(told.contains(why), "{why}: {told}");
    }
    // The slip that was none is an answer.
    assert_eq!(table.session()["history"][0]["responses"][0], "savee");
}

#[test]
fn words_that_begin_like_a_command_are_answers() {
    for line in ["security", "plan", "spike in traffic at noon", "dive tokens and cards", "party of five", "\\save"] {
        let table = Table::new();
        table.begin(&[line, "quit"]).exits(0);
        assert_eq!(table.session()["history"][0]["responses"][0], line.trim_start_matches('\\'), "{line}");
    }
}

#[test]
fn where_a_prompt_has_options_they_come_before_the_commands_of_their_names() {
    let table = Table::new();
    let ended = table.begin(&["energy", "continue", "quit"]).exits(0);
    assert_eq!(ended.asked().iter().filter(|id| *id == "energy").count(), 1);
    let told = notices(&ended);
    let other = told.lines().find(|line| !line.starts_with("this flow asks for its own limits"));
    assert_eq!(other, None, "what the prompt names is taken at once");
    assert_eq!(table.session()["iteration"], 1, "it was no command that leaves the iteration");
}

#[test]
fn looking_around_changes_nothing() {
    let table = Table::new();
    table.begin(&[FULL, "a", "a", "quit"]).exits(0);
    let before = table.session();
    let ended = table.go_on(&["status", "scoring", "modes", "sessions", "plan-preview", "quit"]).exits(0);
    says(
        &ended,
        &[
            "iteration 2 of 10 · Architect · ",
            "What carries it, in your words:",
            "- Clarity: “Orders stay in our own ledger first.”",
            "Course: `▂▄▄`",
            "- **5/10** Orders stay in our own ledger",
            "Orders stay in our ledger",
            "`architecte` Architect: Orders the problem first, then asks for what is missing ←",
            &format!("- `{SLUG}`: EMS 40/100, Divergent, iteration 2, in progress"),
            "Plan as it would be today:",
            "1. **A customer keeps the order in our ledger during an outage**",
        ],
    );
    for field in ["history", "ems", "iteration", "phase", "ideas", "techniques_history"] {
        assert_eq!(table.session()[field], before[field], "{field}");
    }
}

#[test]
fn continue_leaves_the_rest_of_an_iteration() {
    let table = Table::new();
    table.begin(&["The ledger keeps orders for us", "continue", "quit"]).exits(0);
    let session = table.session();
    assert_eq!(session["iteration"], 2);
    assert_eq!(session["history"][0]["responses"].as_array().map(Vec::len), Some(3));
    assert_eq!(session["history"][0]["responses"][1], "");
}

#[test]
fn dive_and_pivot_ask_about_something_else_and_keep_what_was_answered() {
    let table = Table::new();
    table
        .begin(&["The ledger keeps orders for us", "/dive tokens and cards", "/pivot the merchant's side", "quit"])
        .exits(0);
    let prompts: Vec<String> = table.server.requests().iter().map(|request| request.prompt()).collect();
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.contains("Ask only about this, whatever phase the session is in: tokens and cards")),
        "{prompts:?}"
    );
    assert!(prompts.iter().any(|prompt| prompt.contains("Ask only about this, whatever phase the session is in: the merchant's side")));
    let session = table.session();
    assert_eq!(
        (&session["iteration"], &session["history"][0]["responses"][0]),
        (&1.into(), &"The ledger keeps orders for us".into())
    );
    assert_eq!(session["history"][0]["questions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn converge_and_diverge_change_the_phase_and_save() {
    let table = Table::new();
    // No answer comes after it: what is in the file was saved by the command.
    table.begin(&["converge"]).exits(7);
    assert_eq!(table.session()["phase"], "convergent");
    table.go_on(&["diverge"]).exits(7);
    assert_eq!(table.session()["phase"], "divergent");
}

#[test]
fn techniques_and_frameworks_are_used_and_recorded() {
    let table = Table::new();
    let ended = table
        .begin(&[
            "/technique six-hats",
            "/technique six-hat",
            "framework",
            "3",
            "/framework pestel",
            "framework moscow",
            "technique",
            "quit",
        ])
        .exits(0);
    says(&ended, &["**Six hats**", "There is no technique `six-hat`. Did you mean `six-hats`?"]);
    assert!(notices(&ended).contains("`/framework` does not take `pestel`: `/framework [moscow|5whys|swot]`"));
    let session = table.session();
    let slugs: Vec<&str> = session["techniques_history"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["technique_slug"].as_str())
        .collect();
    assert_eq!(slugs[..3], ["six-hats", "swot", "moscow"]);
    assert!(slugs.len() > 3, "without a name, one that fits: {slugs:?}");
    assert_eq!(session["techniques_history"][0]["source"], "manual");
    let used: Vec<&str> =
        session["techniques_used"].as_array().expect("a list").iter().filter_map(|slug| slug.as_str()).collect();
    assert_eq!(used, slugs);
}

#[test]
fn premortem_spike_and_security_check_are_recorded() {
    let table = Table::new();
    let ended = table
        .begin(&[
            "premortem",
            "/spike 2h does the key hold?",
            "spike",
            "3d",
            "what does it cost?",
            "security-check",
            "quit",
        ])
        .exits(0);
    says(
        &ended,
        &[
            "[Sparring partner] takes over for the premortem.",
            "The ledger fills up unnoticed (probability 3 × impact 2 = **6**) ⚠️ to be mitigated → Alert on its age",
            "**GO** · does the key hold? (2h)",
            "**GO** · what does it cost? (3d)",
            "**Somebody replays a payment** → One key for each attempt",
        ],
    );
    let state = &table.own();
    assert_eq!((&state["risks"][0]["probability"], &state["risks"][0]["impact"]), (&3.into(), &2.into()));
    let kinds: Vec<&str> =
        state["notes"].as_array().expect("a list").iter().filter_map(|note| note["kind"].as_str()).collect();
    assert_eq!(kinds, ["spike", "spike", "security"]);
}

#[test]
fn the_leader_is_chosen_asked_for_and_left_to_the_session() {
    let table = Table::new();
    let ended = table
        .begin(&["/mode sparring", "/mode sparring", "/mode nobody", "mode", "maieuticien", "mode auto", "quit"])
        .exits(0);
    says(
        &ended,
        &[
            "[Sparring partner] takes over, as you wish.",
            "Sparring partner leads already, and stays.",
            "Nobody here is called `nobody`",
            "[Midwife] takes over",
            "changes with the session again",
        ],
    );
    assert_eq!(table.session()["persona"], "maieuticien");
    assert_eq!(table.own()["pinned"], false);
}

#[test]
fn energy_pauses_speeds_up_and_pivots() {
    let table = Table::new();
    let ended =
        table.begin(&["energy", "continue", "energy", "speed", "energy", "pivot", "costs", "energy", "pause"]).exits(0);
    assert_eq!(ended.result()["status"], "in_progress");
    assert_eq!(table.session()["phase"], "divergent", "a pivot opens up again");
    assert!(said(&ended).contains("Paused."), "{}", said(&ended));
    let asked = ended.of_type("asked");
    let energy = asked.iter().find(|event| event["question"]["id"] == "energy").expect("it is asked");
    assert_eq!(energy["question"]["default"], "go on", "what Enter means, in the words of the options");
}

#[test]
fn save_says_how_to_resume_and_quit_leaves() {
    let table = Table::new();
    let ended = table.begin(&["save", "quit"]).exits(0);
    let file = format!(".project-memory/brainstorm-sessions/{SLUG}.yaml");
    says(
        &ended,
        &[
            &format!("Session saved: {file}"),
            "EMS 22/100 | Divergent | iteration 1",
            &format!("To resume: `nietz run brainstorm --continue {SLUG}`"),
        ],
    );
    assert_eq!(ended.result()["session"], file.as_str());
    let french = table.talk([TOPIC, "--lang", "fr"], &["1", "save", "quit"]).exits(0);
    says(
        &french,
        &[&format!("Session saved: {file}"), &format!("Pour reprendre: `nietz run brainstorm --continue {SLUG}`")],
    );
}

#[test]
fn abandon_closes_the_session_and_what_is_said_then_opens_it_again() {
    let table = Table::new();
    let ended = table.begin(&["abandon"]).exits(0);
    assert_eq!((&ended.result()["status"], &table.session()["status"]), (&"abandoned".into(), &"abandoned".into()));
    let again = table.go_on(&["quit"]).exits(0);
    says(&again, &["The session is abandoned. Whatever you add opens it again."]);
    assert_eq!(table.session()["status"], "abandoned", "to look at it opens nothing");
    table.go_on(&["the ledger", "quit"]).exits(0);
    assert_eq!(table.session()["status"], "in_progress");
}

#[test]
fn every_prompt_says_what_it_needs_and_answers_by_letter_number_and_words() {
    let table = Table::new();
    let ended = table.begin(&["b", "1", "in my own words", "quit"]).exits(0);
    let first = &prompts(&ended)[0];
    assert!(first.starts_with("ℹ️ Info · Question 1 of 3\n\n**Which "), "{first}");
    assert!(first.contains("\n- **a** ") && first.contains("\n- **b** "), "{first}");
    let responses = table.session()["history"][0]["responses"].clone();
    let offered = table.own()["offered"].clone();
    assert_eq!(responses[0], offered[0]["suggestions"][1]);
    assert_eq!(responses[1], offered[1]["suggestions"][0]);
    assert_eq!(responses[2], "in my own words");
}
