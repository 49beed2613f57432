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
    ## Decision

    **Split billing out, behind contract tests.** *(Senior Architect #1, Devil's Advocate #9)*

    Option A: Split billing out now. Carried by 2 of 3, with confidence 70 of 100; 67 % of all confidence. In the end the council is in deadlock, after 3 cycles.

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

    - **Devil's Advocate #9** Nobody has shown that two deployments are cheaper than one. *What would convince me:* A month of deploys with the time each of them took.
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
