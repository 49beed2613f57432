//! The answer: attributed point by point, dissent in its own words; and whether the council was worth it.

use serde_json::{Value, json};

use super::model::{Brain, STEP, memo, restless, stuck, whole};
use super::table::{LARGE, Table, each, list, said, says, turns};
use crate::support::model_server::{ModelServer, Request, Response};

#[test]
fn each_point_names_who_said_it_in_a_turn_that_exists() {
    let table = Table::with(Brain { stand: stuck, ..Brain::default() });
    let ended = table.hold(&["--no-pause"], &[]);
    let session = ended.result();
    let decision = &session["metadata"]["decision"];
    assert_eq!((&decision["option"], &decision["confidence"]), (&"A".into(), &70.into()), "of those who stand for it");
    let mut points = vec![&decision["decision"]];
    for part in ["tradeoffs", "assumptions", "rejected", "nextSteps", "minorityReports"] {
        assert!(!list(&decision[part]).is_empty(), "{part}");
        points.extend(list(&decision[part]));
    }
    for point in points {
        for from in list(&point["from"]) {
            let turn = list(&session["messageTurns"]).iter().find(|turn| turn["turnId"] == from["turnId"]);
            assert_eq!(turn.expect("the turn exists")["sender"]["name"], from["name"]);
        }
    }
    assert_eq!(list(&decision["rejected"]).len(), 2, "each other option is rejected with a reason");
    let ends = turns(&session, "conclusion");
    let report = ends.iter().find(|turn| turn["sender"]["name"] == "Devil's Advocate").expect("a last position");
    assert_eq!((&report["metadata"]["dissents"], &report["metadata"]["stance"]), (&true.into(), &"B".into()));
    assert_eq!(table.prompts("Your dissent goes on the record").len(), 1, "only dissent is asked for");
    let answer = session["finalAnswer"].as_str().expect("an answer");
    insta::assert_snapshot!(answer, @r"
    ## The answer

    **Split billing out, behind contract tests.**

    ### What to do, in this order

    1. Write the contract tests.

    ### What it costs, and what is done about it

    - Two deployments instead of one.

    ### What was turned down, and why

    - **Leave billing where it is**: It only moves the problem.
    - **Draw the boundary inside the monolith first**: It only moves the problem.

    ### Where the advisers disagree, and why it matters

    - **Devil's Advocate would still decide otherwise**: Nobody has shown that two deployments are cheaper than one. *What would convince me:* A month of deploys with the time each of them took.

    ### Assumed, and not checked

    - Two people can work on nothing else.

    *How this came about: 3 advisers who see such things differently debated it in 3 rounds (Senior Architect, QA Engineer, Devil's Advocate). Of these, 2 would decide so. It ended because the council is in deadlock.*
    ");
    assert_eq!(turns(&session, "conclusion").last().expect("one")["content"], answer);
    says(&ended, &[answer]);
}

#[test]
fn who_is_convinced_or_undecided_writes_no_minority_report() {
    let table = Table::with(Brain {
        stand: |name, _| if name == "QA Engineer" { ("undecided", 10) } else { ("A", 80) },
        ..Brain::default()
    });
    let session = table.hold(&["--no-pause"], &[]).result();
    assert_eq!(list(&session["metadata"]["decision"]["minorityReports"]).len(), 0);
    assert!(turns(&session, "conclusion").iter().all(|turn| turn["metadata"]["dissents"] != true));
    assert_eq!(turns(&session, "conclusion").len(), 4, "where each of them stands, and the answer");
}

/// A small mind that hardly stands elsewhere would have to make its dissent up.
#[test]
fn who_hardly_stands_elsewhere_is_not_made_to_write_a_dissent() {
    let stand: super::model::Stand = |name, _| if name == "Devil's Advocate" { ("B", 10) } else { ("A", 80) };
    let table = Table::with(Brain { stand, ..Brain::default() });
    let session = table.hold(&["--no-pause"], &[]).result();
    assert!(table.prompts("Your dissent goes on the record").is_empty());
    assert_eq!(list(&session["metadata"]["decision"]["minorityReports"]).len(), 0);
    let ends = turns(&session, "conclusion");
    let last = ends.iter().find(|turn| turn["sender"]["name"] == "Devil's Advocate").expect("a last position");
    assert_eq!(last["metadata"]["dissents"], false);
    assert!(last["content"].as_str().is_some_and(|said| said.contains("(confidence 10)")), "{last}");
}

/// The answer of a council of a large mind, whose moderator mends it so, where reviewers find this hole.
fn mended(context: &str, hole: &'static str, mend: fn(&str, &[&str]) -> Value) -> (Table, Value, String) {
    held(Brain { stand: stuck, hole, mend, ..Brain::default() }, context)
}

/// A council of a large mind, its session, which is valid, and its answer.
fn held(brain: Brain, context: &str) -> (Table, Value, String) {
    let table = Table::large(brain);
    let session = table.hold(&["--no-pause", "--cycles", "2", "--context", context], &[]).result();
    let answer = session["finalAnswer"].as_str().expect("an answer").to_owned();
    table.env.write("kept.json", session.to_string());
    table.env.nietz(["check", "--as", "council:sessions", "kept.json"]).go().exits(0);
    (table, session, answer)
}

const HOLE: &str = "Nobody has said who looks after it at night.";

#[test]
fn reviewers_read_the_whole_memo_and_a_hole_is_mended_kept_open_or_refused_with_why() {
    let (table, session, answer) = mended("", HOLE, |prompt, ids| {
        assert!(
            prompt.contains("H1 (Devil's Advocate): Nobody has said who looks after it at night.") && ids == ["H1"]
        );
        let named = memo("P1").replace(STEP, "| Name who is called at night | Ann *(suggested)* | today |");
        json!({"memo": named, "holes": [{"id": "H1", "how": "mended", "why": ""}]})
    });
    let reviewed = &table.prompts("hole: the one thing")[0];
    let draft = "# A first draft of the answer, by one who has heard none of you\n\nTitle: Split it?\n\nSplit it, alone.\n\n## Why\n";
    for part in [draft, "\nThe debate decides for A (\"Split now\")."] {
        assert!(whole(reviewed).contains(part), "{part}: {}", whole(reviewed));
    }
    assert!(answer.contains("| Name who is called at night | Ann *(suggested)* | today |"), "{answer}");
    assert!(!answer.contains("looks after it"), "{answer}");
    let hole = &session["metadata"]["decision"]["holes"][0];
    assert_eq!((&hole["how"], &hole["name"]), (&"mended".into(), &"Devil's Advocate".into()));
    // Refused: then the memo has nothing of it, and why stands below it on the screen.
    let brain = Brain {
        stand: stuck,
        hole: HOLE,
        mend: |_, _| json!({"holes": [{"id": "H1", "how": "refused", "why": "You named Ann for that."}]}),
        ..Brain::default()
    };
    let table = Table::large(brain);
    let ended = table.hold(&["--no-pause", "--cycles", "2"], &[]);
    says(
        &ended,
        &[
            "- **Devil's Advocate**: Nobody has said who looks after it at night. *Why it does not hold:* You named Ann for that.",
        ],
    );
    assert!(!ended.result()["finalAnswer"].to_string().contains("at night."), "{ended:?}");
    // Nobody answers it: it stands among what is open, and is told below the memo.
    let (_, session, answer) = mended("", HOLE, |_, _| json!({"holes": []}));
    assert_eq!(session["metadata"]["decision"]["open"][0]["text"], HOLE);
    assert_eq!(session["metadata"]["decision"]["holes"][0]["how"], "open");
    assert!(!answer.contains("looks after it"), "{answer}");
}

#[test]
fn a_reply_that_has_only_a_part_of_the_memo_is_asked_for_as_a_whole() {
    let (table, _, answer) = mended("", HOLE, |prompt, _| {
        let part = "Name who is called at night.";
        let whole = format!("{}\n\nIt saves 71,350 in all.", memo("P1"));
        let text = if prompt.contains("Write it anew, whole") { part } else { &whole };
        json!({"memo": text, "holes": [{"id": "H1", "how": "mended", "why": ""}]})
    });
    assert!(!table.reads("memo: the whole memo, from its first sentence to its last").is_empty());
    assert!(answer.contains("## What speaks against it"), "what was there stays: {answer}");
}

#[test]
fn what_its_reader_misses_is_worked_in_and_what_is_told_nowhere_stands_in_the_session() {
    let context = "Ann owns the ledger of 40,000 rows. We have decided that Bob decides. I feel a bit lost.";
    let misses: fn(&str) -> Vec<String> = |prompt| {
        assert!(prompt.contains("- U1: Ann owns the ledger of 40,000 rows.\n- U2: We have"), "{prompt}");
        ["U1", "U2", "U9"].map(str::to_owned).to_vec()
    };
    let mend: fn(&str, &[&str]) -> Value = |prompt, _| {
        assert!(prompt.contains("- [U1] Ann owns the ledger of 40,000 rows.\n- [U2] We have decided"), "{prompt}");
        json!({"memo": memo("P1").replace("## Why\n\n", "## Why\n\nAnn owns the ledger of 40,000 rows [U1]. ")})
    };
    let table = Table::large(Brain { stand: stuck, misses, mend, ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--cycles", "2", "--context", context], &[]);
    let session = ended.result();
    assert_eq!(table.prompts("Write the memo that goes out").len(), 1);
    let answer = session["finalAnswer"].as_str().expect("an answer");
    assert!(answer.contains("Ann owns the ledger of 40,000 rows.") && !answer.contains("lost"), "{answer}");
    let left = list(&session["metadata"]["decision"]["leftOut"]);
    assert_eq!(each(left, "text"), ["We have decided that Bob decides.", "I feel a bit lost."]);
    assert_eq!((&left[0]["missed"], &left[1]["missed"]), (&true.into(), &Value::Null));
    says(&ended, &["- You said, and the answer still does not tell: “We have decided that Bob decides.”"]);
}

/// What is decided is kept as it was written, and nothing of it is cut.
#[test]
fn a_decision_is_kept_however_long_it_is() {
    const LONG: &str = "Split billing out behind contract tests that both sides agree on before anybody moves a table, let the ledger \
                        and the nightly export run side by side until nobody finds a difference between them, keep the old way \
                        open for as long as the team of the shop wants it, and stop all of it on the day on which the tests of \
                        either side fail and nobody can say why they do.";
    assert!(LONG.len() > 300);
    let brain = Brain { stand: stuck, mend: |_, _| json!({"decision": LONG}), ..Brain::default() };
    let (_, session, _) = held(brain, "");
    assert_eq!(session["metadata"]["decision"]["decision"]["text"], LONG);
}

/// What players of strong models and their users saw on 2026-11-26: two places of an answer that disagreed.
#[test]
fn a_reader_says_where_it_stumbles_and_the_memo_is_written_anew() {
    let brain = Brain {
        stand: stuck,
        stumbles: vec![json!({"words": "May", "why": "The gate says April: write April."})],
        mend: |prompt, _| {
            assert!(prompt.contains("- \"May\": The gate says April: write April."), "{prompt}");
            json!({"memo": memo("P1").replace("May", "April"), "title": "Billing alone?"})
        },
        ..Brain::default()
    };
    let (table, session, answer) = held(brain, "");
    assert!(answer.starts_with("# Billing alone?\n\nSplit billing out") && answer.contains("April"), "{answer}");
    assert_eq!(session["metadata"]["decision"]["title"], "Billing alone?");
    assert!(whole(&table.prompts("stumbles: where they would stumble")[0]).contains("# A first draft of the answer"));
}

#[test]
fn a_figure_nobody_said_goes_unless_it_follows_from_what_was_said_or_is_suggested() {
    let brain = Brain { stand: stuck, mend: |_, _| json!({}), ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if value["against"].is_string() {
            value["memo"] = "It costs 19,200 a year [U1]. It saves 71,350 in all. Say how many fail; 41 are too many. \
                             I would stop at 250 failures."
                .into();
        }
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let ended = table.hold(&["--no-pause", "--cycles", "2", "--context", "The fee is 1,600 a month."], &[]);
    let session = ended.result();
    let answer = session["finalAnswer"].as_str().expect("an answer");
    let kept = "It costs 19,200 a year. Say how many fail; 41 are too many. I would stop at 250 failures.";
    assert_eq!(answer, format!("# Billing on its own?\n\n{kept}"));
    // A small one may be a limit that it proposes: it stays, and is told below the memo.
    assert_eq!(session["metadata"]["decision"]["figures"][0]["figure"], "41");
    says(&ended, &["- Figures that nobody said, to be checked: 41."]);
}

#[test]
fn options_that_nobody_tells_apart_are_one_and_so_are_their_votes() {
    fn proposal(name: &str, cycle: usize) -> Option<Value> {
        let text = match name {
            "QA Engineer" => "Begin in May with a pilot for one tenant",
            "Senior Architect" => "Run one customer first as a trial from May on",
            _ => return None,
        };
        (cycle == 1).then(|| json!({"what": "add", "options": [], "name": text.split(' ').next(), "text": text}))
    }
    fn stand(name: &str, cycle: usize) -> (&'static str, u64) {
        match (name, cycle) {
            ("Senior Architect", 2) => ("D", 70),
            ("QA Engineer", 2) => ("D", 70),
            _ => ("B", 60),
        }
    }
    let alike: fn(&str) -> Value = |prompt| {
        assert!(prompt.contains("- D: ") && prompt.contains("- E: "), "{prompt}");
        json!([{"options": ["D", "E"], "name": "Pilot in May", "text": "Begin in May with one tenant, and stop when it hurts"}])
    };
    let table = Table::large(Brain { stand, proposal, alike, ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--cycles", "2", "--save", "d.json"], &[]);
    let session = ended.result();
    says(&ended, &["Options E and D are one from now on, D (Pilot in May), and so are the votes for them"]);
    let options = list(&session["metadata"]["options"]);
    assert_eq!((&options[4]["into"], &options[4]["gone"]), (&"D".into(), &true.into()));
    let measures = list(&session["metadata"]["measures"]);
    assert_eq!(measures[0]["leading"], "D", "two votes for one option: {}", measures[0]);
    assert_eq!(session["metadata"]["decision"]["option"], "D");
    let second = table.reads("\nCycle 2.");
    assert!(
        second.iter().all(|request| whole(request).contains("# Options that are one from now on")),
        "members hear it"
    );
    assert_eq!(
        second[0].schema()["properties"]["stance"]["enum"],
        json!(["A", "B", "C", "D", "undecided", "proposal"])
    );
    table.env.nietz(["check", "--as", "council:sessions", "d.json"]).go().exits(0);
}

#[test]
fn somebody_argues_against_what_leads_and_says_so_without_having_to_stand_elsewhere() {
    let table = Table::large(Brain { stand: |_, _| ("A", 60), ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--cycles", "3"], &[]);
    says(&ended, &["*Argues against A (Split now), as is their office.*"]);
    assert_eq!(table.prompts("You stand for what it decides. Your office is the case against it").len(), 1);
    let brain = Brain { stand: restless, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if brain.speaker(request) == "Devil's Advocate" && value["responds"].is_array() {
            value["responds"][0]["how"] = "builds_on".into();
        }
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    table.hold(&["--no-pause", "--cycles", "2"], &[]).result();
    assert!(!table.reads("your office is the case against what leads: challenge one point").is_empty());
}

#[test]
fn the_day_is_known_and_whether_a_council_is_worth_it_is_said() {
    let table = Table::large(Brain { stand: stuck, ..Brain::default() });
    let ended = table.hold(&["--cycles", "1"], &["", ""]);
    says(&ended, &["*Is a council worth it? Yes: Two sides can be argued.*"]);
    assert!(table.server.requests().iter().all(|request| whole(request).contains("Today is 2026-01-09.")));
}

#[test]
fn what_later_words_replaced_is_marked_among_the_facts() {
    let brain = Brain { stand: stuck, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if request.prompt().contains("what of all that the user said holds no longer") {
            value["taken_back"] = json!([{"quote": "1,450 a month", "by": "It is 1,600 now"}]);
        }
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let context = "The rent is 1,450 a month. It is 1,600 now.";
    let ended = table
        .hold(&["--consider", "never", "--cycles", "2", "--context", context], &["facts", "facts", "", "", "", ""]);
    says(
        &ended,
        &[
            "- **1** The rent is 1,450 a month. *(holds no longer: \"1,450 a month\"; you said later: \"It is 1,600 now\")*\n- **2** It is 1,600 now.",
        ],
    );
    assert_eq!(
        table.prompts("what of all that the user said holds no longer").len(),
        1,
        "asked once while nothing is new"
    );
    assert!(said(&ended).matches("holds no longer").count() >= 2);
    assert!(!ended.result()["finalAnswer"].as_str().expect("an answer").contains("1,450"));
}

fn controlled(judge: fn(&str, &str) -> &'static str) -> (Table, Value, String) {
    let table = Table::with(Brain { judge, ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--control"], &[]);
    let session = ended.result();
    let said = super::table::said(&ended);
    (table, session, said)
}

#[test]
fn the_control_arm_spends_the_same_tokens_and_is_judged_blind_in_both_orders() {
    let (table, session, said) =
        controlled(|first, _| if first.contains("behind contract tests") { "first" } else { "second" });
    let report = &session["metadata"]["control"];
    assert_eq!(report["verdict"], "council");
    let tokens = |name: &str| report["tokens"][name].as_u64().expect("a number");
    let (council, control) = (tokens("council"), tokens("control"));
    assert!(control * 20 <= council * 21 && control * 10 >= council * 7, "{control} of {council}");
    let alone = table.prompts("Decide this, alone");
    assert_eq!(alone.len() as u64, report["answers"].as_u64().expect("a number") + 1, "and the plain answer");
    assert!(alone.len() >= 2, "independent answers");
    assert!(alone.iter().all(|request| !request.prompt().contains("Senior Architect")));
    let judged = table.prompts("Two answers to one request");
    assert_eq!(judged.len(), 4, "against the control and against the plain answer, in both orders");
    let order = |prompt: &str| {
        prompt.find("behind contract tests").expect("ours") < prompt.find("Split it, alone.").expect("theirs")
    };
    assert_ne!(order(&judged[0].prompt()), order(&judged[1].prompt()), "swapped");
    for request in &judged {
        for name in
            ["Senior Architect", "QA Engineer", "Devil", "council", "Moderator", "Minority", "A, ", "B, ", "Option"]
        {
            assert!(!request.prompt().contains(name), "{name} gives it away: {}", request.prompt());
        }
    }
    assert!(
        said.contains("**yes, by this judge**") && said.contains(&format!("Cost: council {council} tokens")),
        "{said}"
    );
}

/// A memo may name a member or an option by its letter; whoever judges it reads neither, but what the option is called.
#[test]
fn a_judge_reads_no_members_and_no_letters_in_a_memo_but_what_options_are_called() {
    let mend: fn(&str, &[&str]) -> Value = |_, _| {
        let words =
            "## Why\n\nQA Engineer and Senior Architect prefer option A to Option B, as the Devil's Advocate knows. ";
        json!({"memo": memo("P1").replace("## Why\n\n", words)})
    };
    let table = Table::large(Brain { stand: stuck, mend, ..Brain::default() });
    let session = table.hold(&["--no-pause", "--cycles", "2", "--control"], &[]).result();
    let answer = session["finalAnswer"].as_str().expect("an answer");
    assert!(answer.contains("QA Engineer") && answer.contains("option A to Option B"), "{answer}");
    let judged = table.prompts("Two answers to one request");
    assert_eq!(judged.len(), 4);
    for request in &judged {
        let prompt = request.prompt();
        for name in ["Senior Architect", "QA Engineer", "Devil", "option A", "Option B"] {
            assert!(!prompt.contains(name), "{name} gives it away: {prompt}");
        }
        assert!(prompt.contains("prefer \"Split now\" to \"Leave it\""), "{prompt}");
    }
}

/// Whoever is compared with the council, and whoever judges, knows what the user took back: a claim that rests on it counts against
/// an answer.
#[test]
fn the_control_the_plain_answer_and_the_judge_are_told_what_was_taken_back() {
    let lines = [
        "",
        "We make 410,000 a year and what stays is about 38,000. The oven is full.",
        "/strike what stays is about 38,000",
        "/strike 2",
        "",
        "stop",
        "",
    ];
    let told = "They hold no longer: what stays is about 38,000";
    for (table, alone) in
        [(Table::with as fn(Brain) -> Table, "Decide this, alone"), (Table::large, "You are a wise friend and an")]
    {
        let table = table(Brain { stand: restless, ..Brain::default() });
        let session = table.hold(&["--consider", "never", "--control"], &lines).result();
        assert!(session["metadata"]["control"]["plain"].is_object(), "{}", session["metadata"]["control"]);
        // Of those who answer alone one is the plain answer, and for a large mind one the draft.
        for (begins, least) in
            [(alone, 3), ("Several people answered this alone", 1), ("Two answers to one request", 4)]
        {
            let found = table.prompts(begins);
            assert!(found.len() >= least, "{begins}: {}", found.len());
            for prompt in found.iter().map(Request::prompt) {
                assert!(prompt.contains(told) && !prompt.contains("The oven"), "{begins}: {prompt}");
            }
        }
        let second = table.prompts("What was said so far, with ids");
        assert!(second.iter().all(|request| request.prompt().contains(told)), "a small mind is told in each prompt");
    }
}

#[test]
fn the_report_is_honest_where_the_council_was_not_worth_it() {
    let (_, session, said) = controlled(|first, _| if first.contains("alone") { "first" } else { "second" });
    assert_eq!(session["metadata"]["control"]["verdict"], "control");
    assert!(said.contains("**no, by this judge**"), "{said}");
    let (_, session, said) = controlled(|_, _| "first");
    assert_eq!(session["metadata"]["control"]["verdict"], "undecided");
    assert!(
        said.contains("**not shown**: the judge did not prefer the same answer when their order was swapped"),
        "{said}"
    );
    let (_, session, _) = controlled(|_, _| "equal");
    assert_eq!(
        (&session["metadata"]["control"]["verdict"], &session["status"]),
        (&"equal".into(), &"completed".into())
    );
}
