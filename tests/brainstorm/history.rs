//! `back [n]` and `continue`: what they restore, how far they go, and that no iteration is ever lost.

use serde_json::Value;

use super::table::{SLUG, TOPIC, Table, says};

/// Four iterations answered, the fifth open.
fn grown() -> Table {
    let table = Table::new();
    let lines = [
        "first the ledger",
        "",
        "",
        "then the worker",
        "",
        "",
        "also the refunds",
        "",
        "",
        "last the support",
        "",
        "",
        "quit",
    ];
    // Without advice and techniques, nothing is asked between two iterations.
    table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"], &lines).exits(0);
    assert_eq!(table.session()["iteration"], 5, "{:#}", table.session());
    table
}

#[test]
fn back_restores_an_iteration_and_shows_where_it_jumped() {
    let table = grown();
    let before = table.session();
    let ended = table.go_on(&["back 2", "quit"]).exits(0);
    let third = &before["history"][2];
    let delta = third["ems"].as_i64().unwrap_or_default() - before["ems"].as_i64().unwrap_or_default();
    says(
        &ended,
        &[
            "Back by 2 iterations\n   Iteration: 5 → 3\n",
            &format!(
                "EMS: {}/100 → {}/100 ({})",
                before["ems"],
                third["ems"],
                if delta == 0 { "±0".to_owned() } else { format!("{delta:+}") }
            ),
            "Phase: divergent → divergent",
            "Questions restored (iteration 3):\n   - ",
        ],
    );
    let after = table.session();
    assert_eq!((&after["iteration"], &after["ems"], &after["phase"]), (&3.into(), &third["ems"], &third["phase"]));
    assert_eq!(after["history"], before["history"], "history is preserved");
}

#[test]
fn in_french_the_jump_reads_as_specified() {
    let table = grown();
    let ended = table.talk(["--continue", SLUG, "--lang", "fr"], &["back 2", "back 10", "quit"]).exits(0);
    says(
        &ended,
        &[
            "-------------------------------------------------------\nRetour de 2 iterations\n   Iteration: 5 → 3\n",
            "Questions restaurees (iteration 3):",
            "Impossible de revenir de 10 iterations: iteration actuelle 3.\nMaximum possible: back 2",
        ],
    );
}

#[test]
fn nobody_goes_back_further_than_there_is_or_than_five() {
    let table = grown();
    let before = table.session();
    let ended = table.go_on(&["back 5", "back 10", "back 0", "back 4", "back", "quit"]).exits(0);
    says(
        &ended,
        &[
            "Cannot go back 5 iterations: this is iteration 5.\nFurthest possible: back 4",
            "Cannot go back 0",
            "This is the first iteration",
        ],
    );
    assert_eq!(table.session()["iteration"], 1);
    assert_eq!(table.session()["history"], before["history"]);
}

#[test]
fn continue_after_back_goes_forward_one_by_one_to_exactly_where_it_was() {
    let table = grown();
    let before = table.session();
    let axes = table.own()["axes"].clone();
    let ended = table.go_on(&["converge", "back 2", "continue", "continue", "quit"]).exits(0);
    says(&ended, &["Forward by 1 iteration\n   Iteration: 3 → 4\n", "Iteration: 4 → 5\n"]);
    let after = table.session();
    assert_eq!(after["iteration"], 5);
    assert_eq!(after["phase"], "convergent", "what was decided in the last iteration holds again");
    assert_eq!((&after["ems"], &table.own()["axes"]), (&before["ems"], &axes));
    assert_eq!(table.own()["tip"], Value::Null);
    // The questions of the open iteration are asked as they were left.
    assert_eq!(after["history"].as_array().map(Vec::len), Some(5));
}

#[test]
fn what_the_last_iteration_earned_is_not_lost_by_going_back_between_two_iterations() {
    let lines = ["orders stay in our own ledger", "", "", "a worker retries each payment", "", ""];
    let stayed = Table::new();
    // The second iteration ends with the offer of a technique: the session stands after it, scored.
    let there = stayed.begin(&lines).exits(7);
    assert_eq!(there.asked().last().map(String::as_str), Some("technique"));
    let earned = stayed.session();

    let table = Table::new();
    table.begin(&[&lines[..], &["back", "quit"]].concat()).exits(0);
    assert_eq!((&table.session()["iteration"], &table.session()["ems"]), (&1.into(), &22.into()));
    table.go_on(&["continue", "quit"]).exits(0);
    let after = table.session();
    // The next iteration is open now, and begins with what was earned.
    assert_eq!(after["iteration"], 3);
    assert_eq!((&after["ems"], &table.own()["axes"]), (&earned["ems"], &stayed.own()["axes"]));
    assert!(after["ems"].as_u64() > Some(22));
}

#[test]
fn other_answers_after_back_are_a_new_iteration_and_the_same_ones_lead_forward() {
    let table = grown();
    let before = table.session();
    // Enter gives the earlier answer.
    table.go_on(&["back", "", "", "", "quit"]).exits(0);
    assert_eq!(table.session()["iteration"], 5, "the same answers");
    assert_eq!(table.session()["history"], before["history"]);

    table.go_on(&["back", "another way altogether", "", "", "quit"]).exits(0);
    let after = table.session();
    let history = after["history"].as_array().expect("a list");
    assert_eq!(history[..5], before["history"].as_array().expect("a list")[..5], "nothing is overwritten");
    assert_eq!(history[5]["questions"], history[3]["questions"]);
    assert_eq!(history[5]["responses"][0], "another way altogether");
    assert_eq!(after["iteration"], 6);
}
