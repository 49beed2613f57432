//! The answer: attributed point by point, dissent in its own words; and whether the council was worth it.

use serde_json::Value;

use super::model::{Brain, stuck};
use super::table::{Table, list, says, turns};

#[test]
fn each_point_names_who_said_it_in_a_turn_that_exists() {
    let table = Table::with(Brain { stand: stuck, ..Brain::default() });
    let ended = table.hold(&["--no-pause"], &[]);
    let session = ended.result();
    let decision = &session["metadata"]["decision"];
    assert_eq!(
        (&decision["option"], &decision["confidence"]),
        (&"A".into(), &47.into()),
        "who stands elsewhere counts 0"
    );
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
    let report = &turns(&session, "conclusion")[0];
    assert_eq!((&report["sender"]["name"], &report["metadata"]["stance"]), (&"Devil's Advocate".into(), &"B".into()));
    assert_eq!(table.prompts("Your dissent goes on the record").len(), 1, "only dissent is asked for");
    let answer = session["finalAnswer"].as_str().expect("an answer");
    insta::assert_snapshot!(answer, @r"
    ## Decision

    **Split billing out, behind contract tests.** *(Senior Architect #1, Devil's Advocate #9)*

    Option A: Split billing out now. Confidence 47 of 100; the council is in deadlock, after 3 cycles.

    ### Trade-offs

    - Two deployments instead of one. *(Devil's Advocate #9)*

    ### Assumptions

    - Two people can work on nothing else. *(Senior Architect #1)*

    ### Rejected

    - B, Leave billing where it is: It only moves the problem. *(Senior Architect #1)*
    - C, Draw the boundary inside the monolith first: It only moves the problem. *(Senior Architect #1)*

    ### Next steps

    - Write the contract tests. *(Senior Architect #1)*

    ### Minority reports

    - **Devil's Advocate #10** Nobody has shown that two deployments are cheaper than one. *What would convince me:* A month of deploys with the time each of them took.
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
    assert_eq!(turns(&session, "conclusion").len(), 1, "the answer alone");
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
    assert_eq!(alone.len() as u64, report["answers"].as_u64().expect("a number"));
    assert!(alone.len() >= 2, "independent answers");
    assert!(alone.iter().all(|request| !request.prompt().contains("Senior Architect")));
    let judged = table.prompts("Two answers to one request");
    assert_eq!(judged.len(), 2);
    let order = |prompt: &str| {
        prompt.find("behind contract tests").expect("ours") < prompt.find("Split it, alone.").expect("theirs")
    };
    assert_ne!(order(&judged[0].prompt()), order(&judged[1].prompt()), "swapped");
    for request in &judged {
        for name in ["Senior Architect", "QA Engineer", "Devil", "council", "Moderator", "Minority"] {
            assert!(!request.prompt().contains(name), "{name} gives it away: {}", request.prompt());
        }
    }
    assert!(
        said.contains("**Yes, by this judge.**") && said.contains(&format!("The council used {council} tokens")),
        "{said}"
    );
}

#[test]
fn the_report_is_honest_where_the_council_was_not_worth_it() {
    let (_, session, said) = controlled(|first, _| if first.contains("alone") { "first" } else { "second" });
    assert_eq!(session["metadata"]["control"]["verdict"], "control");
    assert!(said.contains("**No, by this judge.**"), "{said}");
    let (_, session, said) = controlled(|_, _| "first");
    assert_eq!(session["metadata"]["control"]["verdict"], "undecided");
    assert!(
        said.contains("**Not shown.** The judge did not prefer the same answer when their order was swapped."),
        "{said}"
    );
    let (_, session, _) = controlled(|_, _| "equal");
    assert_eq!(
        (&session["metadata"]["control"]["verdict"], &session["status"]),
        (&"equal".into(), &"completed".into())
    );
}
