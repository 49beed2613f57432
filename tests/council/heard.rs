//! What a large mind hears: the whole conversation, with who stands for what, who recommends what and whom a reply answers; what
//! the user says is everybody's, and for good.

use serde_json::{Value, json};

use super::model::{Brain, restless, stuck, whole};
use super::table::{Table, each, list, says, turns};
use crate::support::model_server::Request;

/// The requests of positions, in order.
fn positions(table: &Table) -> Vec<Request> {
    table.server.requests().into_iter().filter(|request| request.prompt().contains("\nCycle ")).collect()
}

#[test]
fn members_hear_what_others_stand_for_and_recommend_and_whom_a_reply_answers() {
    let table = Table::large(Brain { stand: stuck, ..Brain::default() });
    table.hold(&["--no-pause"], &[]).result();
    let asked = positions(&table);
    assert!(asked.len() >= 9, "{}", asked.len());
    for request in &asked[..3] {
        assert!(!whole(request).contains("stands for") && request.prompt().contains("Nobody has spoken yet"), "blind");
    }
    for request in &asked[3..6] {
        let heard = whole(request);
        assert!(heard.contains("## QA Engineer stands for A, with confidence 70"), "{heard}");
        assert!(heard.contains("Recommends: Begin with the contract tests of Senior Architect"), "{heard}");
    }
    assert!(whole(&asked[6]).contains("(against P1 of Senior Architect)"), "{}", whole(&asked[6]));
    let contrarian =
        asked.iter().rfind(|request| request.prompt().starts_with("You are Devil's Advocate")).expect("one");
    assert!(contrarian.prompt().contains("leans to, now A (\"Split now\")"), "{}", contrarian.prompt());
    let written = &table.prompts("The debate is over")[0];
    assert!(whole(written).matches("Recommends: ").count() >= 9, "the writer sees all recommendations");
    // What all read stands first and is the same; who speaks comes last.
    let before = |request: &Request| {
        let mut messages = list(&request.body["messages"]).to_vec();
        messages.pop();
        messages
    };
    assert!(asked[3..6].iter().all(|request| before(request) == before(&asked[3])));
    let (earlier, later) = (before(&asked[3]), before(&asked[6]));
    assert_eq!(earlier[..earlier.len() - 1], later[..earlier.len() - 1], "it is only ever added to");
}

#[test]
fn what_the_user_says_is_everybodys_from_then_on_and_for_good() {
    let table = Table::large(Brain { stand: restless, ..Brain::default() });
    let lines = ["", "The fee is 40,000 euros.", "@qa what about 30 reports?", "", "/fact Nina decides.", "", "", ""];
    let session = table.hold(&["--cycles", "3", "--control", "--context", "Six people work here."], &lines).result();
    let asked = positions(&table);
    assert_eq!(asked.len(), 9);
    for request in &asked[3..] {
        let heard = whole(request);
        for part in [
            "U1: Six people work here.",
            "U2: The fee is 40,000 euros.",
            "what about 30 reports?",
            "The user asks QA Engineer",
        ] {
            assert!(heard.contains(part), "{part} in {heard}");
        }
    }
    assert!(asked[6..].iter().all(|request| whole(request).contains("Nina decides.")));
    for begins in [
        "You are a wise friend and an experienced adviser of the person who asks this",
        "Two answers to one request",
        "Several people answered this alone",
    ] {
        let found = table.prompts(begins);
        assert!(!found.is_empty(), "{begins}");
        for part in ["Six people", "40,000 euros", "30 reports", "Nina decides"] {
            assert!(found.iter().all(|request| request.prompt().contains(part)), "{begins}: {part}");
        }
    }
    let reviewers = table.prompts("hole: the one thing in it");
    assert!(!reviewers.is_empty());
    for part in ["40,000 euros", "what about 30 reports?", "Nina decides."] {
        assert!(reviewers.iter().all(|request| whole(request).contains(part)), "who dissents has heard it: {part}");
    }
    let said = list(&session["nietz"]["said"]);
    assert_eq!(each(said, "text"), ["The fee is 40,000 euros.", "what about 30 reports?", "Nina decides."]);
    assert_eq!((&said[1]["to"], &said[0]["after"]), (&"QA Engineer".into(), &3.into()));
    let left = each(list(&session["metadata"]["decision"]["leftOut"]), "text");
    for part in ["Six people work here.", "The fee is 40,000 euros.", "Nina decides."] {
        assert!(left.contains(&part), "what the answer does not tell is on the record: {left:?}");
    }
}

/// A small mind has no conversation: each prompt tells it where the others stand, what they recommend, and all that the user said.
#[test]
fn a_small_mind_hears_where_others_stand_and_what_was_said_two_cycles_ago() {
    let table = Table::with(Brain { stand: restless, ..Brain::default() });
    let lines = ["", "The fee is 40,000 euros.", "@qa what about 30 reports?", "", "", "", ""];
    table.hold(&["--cycles", "3"], &lines).exits(0);
    let mut asked = table.prompts("You sit in a council");
    asked.retain(|request| !request.prompt().contains("The user asks you"));
    assert_eq!(asked.len(), 9);
    for request in &asked[3..] {
        let prompt = request.prompt();
        for part in ["The fee is 40,000 euros.", "what about 30 reports?", "Where the others stand:\n- "] {
            assert!(prompt.contains(part), "{part} in {prompt}");
        }
        assert_eq!(prompt.matches(". Begin with the contract tests of ").count(), 2, "of both others: {prompt}");
    }
    let written = &table.prompts("Write down what this council decided")[0];
    assert!(written.prompt().contains("What those who stand for it recommend:\n- "), "{}", written.prompt());
}

/// In the second cycle QA amends the option that it stood for; the architect follows.
fn amends(name: &str, cycle: usize) -> Option<Value> {
    let text = "Split billing out in May, behind contract tests";
    (name == "QA Engineer" && cycle == 2)
        .then(|| json!({"what": "amend", "options": ["A"], "name": "Split in May", "text": text}))
}

#[test]
fn options_are_amended_in_the_debate_and_all_can_stand_for_them() {
    fn stand(name: &str, cycle: usize) -> (&'static str, u64) {
        match (name, cycle) {
            ("Devil's Advocate", _) => ("B", 60),
            (_, 1 | 2) => ("A", 70),
            _ => ("D", 80),
        }
    }
    let table = Table::large(Brain { stand, proposal: amends, ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--cycles", "3"], &[]);
    let session = ended.result();
    let options = list(&session["metadata"]["options"]);
    assert_eq!(each(options, "id"), ["A", "B", "C", "D"]);
    assert_eq!((&options[3]["from"], &options[3]["by"]), (&json!(["A"]), &json!(["QA Engineer"])));
    assert_eq!(options[0]["gone"], true, "nobody stands for what was amended");
    says(
        &ended,
        &[
            "**A new option, D** (from A): Split billing out in May, behind contract tests *(QA Engineer)*",
            "Option A (Split now) is no longer there by itself: it lives on in D, and nobody stands for it.",
        ],
    );
    let spoken = turns(&session, "discussion");
    assert_eq!((&spoken[4]["metadata"]["stance"], &spoken[6]["metadata"]["stance"]), (&"D".into(), &"D".into()));
    let third = &positions(&table)[6];
    assert!(
        whole(third).contains("A new option, D (from A) (\"Split in May\"): Split billing out in May"),
        "{}",
        whole(third)
    );
    assert_eq!(third.schema()["properties"]["stance"]["enum"], json!(["A", "B", "C", "D", "undecided", "proposal"]));
    let decision = &session["metadata"]["decision"];
    assert_eq!(decision["option"], "D");
    let answer = session["finalAnswer"].as_str().expect("an answer");
    assert!(!answer.contains("Split billing out in May"), "what was told whole is told by its name: {answer}");
}

/// What all want in the end is an option, so the council converges on it and all of them count.
#[test]
fn an_option_that_all_can_carry_ends_the_debate_with_all_of_them_behind_it() {
    fn stand(name: &str, cycle: usize) -> (&'static str, u64) {
        match (name, cycle) {
            ("Devil's Advocate", 1 | 2) => ("B", 60),
            (_, 1 | 2) => ("A", 70),
            _ => ("D", 80),
        }
    }
    let table = Table::large(Brain { stand, proposal: amends, ..Brain::default() });
    let session = table.hold(&["--no-pause"], &[]).result();
    assert_eq!((&session["metadata"]["outcome"], &session["debateCycles"]), (&"converged".into(), &3.into()));
    let decision = &session["metadata"]["decision"];
    assert_eq!(
        (&decision["option"], &decision["carried"]),
        (&"D".into(), &json!({"by": 3, "of": 3, "confidence": 80, "percent": 100}))
    );
}

#[test]
fn only_who_would_still_decide_otherwise_dissents() {
    let brain = Brain { stand: stuck, dissents: false, ..Brain::default() };
    let session = Table::large(brain).hold(&["--no-pause"], &[]).result();
    let decision = &session["metadata"]["decision"];
    assert_eq!(list(&decision["minorityReports"]).len(), 0);
    assert_eq!(decision["carriedAllTheSame"][0]["from"][0]["name"], "Devil's Advocate");
    let session = Table::large(Brain { stand: stuck, ..Brain::default() }).hold(&["--no-pause"], &[]).result();
    assert_eq!(list(&session["metadata"]["decision"]["minorityReports"]).len(), 1);
    let carried = &session["metadata"]["decision"]["carried"];
    assert_eq!(
        (&carried["by"], &carried["of"], &carried["confidence"], &carried["percent"]),
        (&2.into(), &3.into(), &70.into(), &67.into())
    );
    assert!(!session["finalAnswer"].as_str().expect("an answer").contains("67 %"));
    let ends = turns(&session, "conclusion");
    assert_eq!(ends.len(), 4, "each one's last position, and the answer");
    // What the specification derives of participants, and what it wants of turns.
    let [user, moderator, seat] = [0, 1, 2].map(|place| &session["participants"][place]);
    let derived = |one: &Value| (one["isPrimaryUser"] == true, one["isRelevantForRequest"] == true);
    assert_eq!([user, moderator, seat].map(derived), [(true, true), (false, false), (false, true)]);
    let tones: Vec<_> = turns(&session, "discussion").iter().map(|turn| turn["metadata"]["tone"].clone()).collect();
    assert_eq!((&tones[0], &tones[3]), (&"opening".into(), &"challenging".into()));
    assert!(session["metadata"]["featureFlags"].is_array());
    let timing = session["metadata"]["timing"].as_object().expect("times");
    assert!(["clarifying", "debating", "final", "completed"].iter().all(|status| timing.contains_key(*status)));
}

#[test]
fn everybody_undecided_is_an_outcome_and_no_decision_is_made_up() {
    let large = "# No decision on billing yet\n\nNobody has counted the outages.\n\n## What would decide it\n\n";
    for (table, told) in [
        (
            Table::with as fn(Brain) -> Table,
            "## No decision\n\n**Nobody has counted the outages.**\n\n### What to do, in this order\n\n",
        ),
        (Table::large, large),
    ] {
        let table = table(Brain { stand: |_, _| ("undecided", 40), ..Brain::default() });
        let ended = table.hold(&["--no-pause", "--save", "d.json"], &[]);
        let session = ended.result();
        assert_eq!((&session["metadata"]["outcome"], &session["status"]), (&"undecided".into(), &"completed".into()));
        says(&ended, &[told, "A month of outages, counted."]);
        assert_eq!(session["metadata"]["decision"]["option"], "undecided");
        assert!(!session["finalAnswer"].as_str().expect("one").contains("onfidence"), "nothing is carried");
    }
}
