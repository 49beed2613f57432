//! Before the debate: one question at a time, skips that become assumptions, at most three rounds, revisiting.

use super::model::{Brain, stuck, whole};
use super::table::{Table, each, list, said, says, turns};

const TWO: [(&str, &str); 2] =
    [("Which deadline binds the migration?", "None before June"), ("Who pays for outages today?", "")];

fn asking(rounds: &[&[(&'static str, &'static str)]]) -> Table {
    Table::with(Brain { rounds: rounds.iter().map(|round| round.to_vec()).collect(), ..Brain::default() })
}

#[test]
fn one_question_at_a_time_says_why_and_a_default_and_answers_reach_the_council() {
    let table = asking(&[&TWO]);
    let ended = table.hold(&["--no-pause"], &["", "I don't know"]);
    let session = ended.result();
    let asked = ended.of_type("asked");
    assert_eq!(asked.len(), 2);
    let prompt = asked[0]["question"]["prompt"].as_str().expect("a prompt");
    for part in [
        "Round 1 of 3, question 1 of 2.",
        TWO[0].0,
        "*Why:* It changes the costs.",
        "*Enter:* None before June",
        "`skip all`",
    ] {
        assert!(prompt.contains(part), "{prompt}");
    }
    let questions = list(&session["clarificationQuestions"]);
    assert_eq!(each(questions, "status"), ["answered", "answered"]);
    let answers: Vec<_> = questions.iter().map(|question| &question["userAnswer"]).collect();
    assert_eq!(each(answers.iter().copied(), "answer"), ["None before June", "I don't know"]);
    assert_eq!(each(answers, "confidence"), ["medium", "low"], "not knowing is an answer");
    assert_eq!((&session["clarificationRounds"], list(&session["assumptionLog"]).len()), (&1.into(), 0));
    assert_eq!(each(turns(&session, "question"), "content"), [TWO[0].0, TWO[1].0]);
    let debated = table.prompts("You sit in a council");
    assert!(debated.len() >= 3 && debated.iter().all(|request| request.prompt().contains("→ None before June")));
    assert_eq!(table.prompts("Judge whether it can decide").len(), 2, "judged again with the answers");
}

#[test]
fn a_skipped_question_is_a_stated_assumption_and_is_not_asked_again() {
    let table =
        asking(&[&TWO, &[TWO[0], ("Which deadline binds that migration?", "x"), ("What may it cost?", "Two months")]]);
    let ended = table.hold(&["--no-pause"], &["skip", "defer", "about three"]);
    let session = ended.result();
    let questions = list(&session["clarificationQuestions"]);
    assert_eq!(each(questions, "status"), ["skipped", "deferred", "answered"], "what was asked is not asked again");
    assert_eq!(questions[2]["roundNumber"], 2);
    let log = list(&session["assumptionLog"]);
    let assumed = "Assuming: None before June (asked: \"Which deadline binds the migration?\")";
    assert_eq!(log[0]["assumption"], assumed);
    assert!(log[0]["rationale"].as_str().expect("a text").contains("was skipped"), "{}", log[0]);
    assert!(log[1]["assumption"].as_str().expect("a text").starts_with("Left open, with nothing assumed: scope"));
    let decision = &session["metadata"]["decision"];
    assert_eq!(decision["assumptions"][0]["text"], assumed);
    assert_eq!(decision["assumptions"][0]["from"][0]["name"], "Moderator");
    assert_eq!(decision["open"][0]["text"], TWO[1].0, "what was left for later is open");
    says(&ended, &[&format!("*{assumed}.*"), &format!("- {assumed}\n"), &format!("### Still open\n\n- {}", TWO[1].0)]);
}

#[test]
fn what_is_left_for_later_is_open_and_its_default_is_no_assumption() {
    for table in [Table::with, Table::large] {
        let table = table(Brain { rounds: vec![vec![TWO[0]]], ..Brain::default() });
        let session = table.hold(&["--consider", "never", "--cycles", "2"], &["defer", "", "", "", ""]).result();
        let told = session["assumptionLog"][0]["assumption"].as_str().expect("it is on the record");
        assert!(told.starts_with("Left open, with nothing assumed") && told.contains(TWO[0].0), "{told}");
        let answer = session["finalAnswer"].as_str().expect("an answer");
        let (_, open) = answer.split_once("## Still open").expect("it is open");
        assert!(open.contains(TWO[0].0) && !answer.contains(TWO[0].1), "{answer}");
    }
}

#[test]
fn defaults_are_accepted_only_where_there_are_any_and_then_nothing_more_is_asked() {
    let three = [TWO[0], ("Who decides about the schema?", "The team"), TWO[1]];
    let table = asking(&[&three, &[("What may it cost?", "x")]]);
    let ended = table.hold(&["--no-pause"], &["proceed with defaults", "proceed with defaults", "We do"]);
    let session = ended.result();
    assert_eq!(each(list(&session["clarificationQuestions"]), "status"), ["skipped", "skipped", "answered"]);
    assert_eq!(ended.asked().len(), 3, "a gap without a default is still put");
    says(&ended, &["This question has no default to proceed with"]);
    assert_eq!(session["clarificationRounds"], 1);

    let table = asking(&[&three, &[("What may it cost?", "x")]]);
    let ended = table.hold(&["--no-pause"], &["skip all"]);
    assert_eq!(each(list(&ended.result()["clarificationQuestions"]), "status"), ["skipped", "skipped", "skipped"]);
    assert_eq!(ended.asked().len(), 1);
}

/// Nobody who skips all questions has asked for the answer: the debate follows, and each who takes part, is compared with it or judges
/// it knows what was assumed, and for which question.
#[test]
fn where_the_rest_is_skipped_the_debate_follows_and_all_know_what_was_assumed_for_which_question() {
    for table in [Table::with, Table::large] {
        let table = table(Brain { rounds: vec![TWO.to_vec()], stand: stuck, ..Brain::default() });
        let session = table.hold(&["--no-pause", "--cycles", "2", "--control"], &["skip all"]).result();
        assert_eq!((&session["debateCycles"], &session["status"]), (&2.into(), &"completed".into()));
        assert_eq!(turns(&session, "discussion").len(), 6);
        let is_told = |properties: &[&str]| {
            let mut asked = table.server.requests();
            asked.retain(|request| properties.iter().any(|name| !request.schema()["properties"][*name].is_null()));
            assert!(!asked.is_empty(), "{properties:?}");
            for request in asked {
                let all = whole(&request);
                assert!(all.contains(TWO[0].0) && all.contains(TWO[0].1), "{properties:?}: {all}");
            }
        };
        for properties in [&["sure"][..], &["report"], &["memo", "decision"], &["better"]] {
            is_told(properties);
        }
    }
}

#[test]
fn an_empty_line_is_no_answer_where_there_is_no_default_and_long_ones_are_refused() {
    let table = asking(&[&[TWO[1]]]);
    let long = "x".repeat(2001);
    let ended = table.hold(&["--no-pause"], &["", &long, "The shop"]);
    says(&ended, &["This question has no default: answer it, or `skip` it.", "longer than 2000 letters"]);
    assert_eq!(ended.result()["clarificationQuestions"][0]["userAnswer"]["answer"], "The shop");
}

#[test]
fn words_that_begin_like_a_command_or_look_like_one_are_answers() {
    for (typed, answer) in [
        ("security", "security"),
        ("plan", "plan"),
        ("spike in traffic at noon", "spike in traffic at noon"),
        ("\\skip", "skip"),
    ] {
        let ended = asking(&[&[TWO[1]]]).hold(&["--cycles", "2"], &[typed, "", typed, "/stop", ""]);
        let session = ended.result();
        let question = &session["clarificationQuestions"][0];
        assert_eq!((&question["status"], &question["userAnswer"]["answer"]), (&"answered".into(), &answer.into()));
        assert_eq!(session["nietz"]["said"][0]["text"], answer);
        assert_eq!((&session["metadata"]["outcome"], &session["debateCycles"]), (&"stopped".into(), &1.into()));
    }
}

#[test]
fn three_rounds_are_the_most_and_that_is_said() {
    let table = asking(&[
        &[("Which deadline binds us?", "June")],
        &[("Who pays for an outage?", "The shop")],
        &[("What may it cost?", "Two months")],
        &[("Where do invoices live?", "Here")],
    ]);
    let ended = table.hold(&["--no-pause"], &["a", "b", "c"]);
    let session = ended.result();
    assert_eq!((&session["clarificationRounds"], ended.asked().len()), (&3.into(), 3));
    says(&ended, &["That was round 3 of 3: nothing more is asked."]);
    assert_eq!(list(&session["metadata"]["ambiguity"]).len(), 3, "each judgement is kept with its reasons");
}

#[test]
fn clarification_can_be_wanted_or_not() {
    let never = asking(&[&TWO]).hold(&["--no-pause", "--clarify", "never"], &[]);
    assert!(never.asked().is_empty() && never.result()["clarificationRounds"] == 0);
    // Nothing is ambiguous, and no question comes from the model: the plain ones are asked.
    let always = asking(&[]).hold(&["--no-pause", "--clarify", "always"], &["goal", "skip", "me"]);
    let session = always.result();
    assert_eq!(each(list(&session["clarificationQuestions"]), "targetAmbiguity"), ["goal", "constraints", "audience"]);
    let auto = asking(&[]).hold(&["--no-pause"], &[]);
    assert!(auto.asked().is_empty());
}

#[test]
fn revisiting_asks_what_was_skipped_and_answers_anew() {
    let table = asking(&[&TWO]);
    let ended = table.hold(&["--cycles", "1"], &["skip", "skip", "", "", "what?", "revisit", "In May", "skip", ""]);
    let session = ended.result();
    says(&ended, &["Revisiting 2 skipped questions.", "The debate is over: type `/fact` before what is new"]);
    assert_eq!(each(list(&session["clarificationQuestions"]), "status"), ["answered", "skipped"]);
    let log = list(&session["assumptionLog"]);
    assert_eq!(log.len(), 1, "what was answered is assumed no more");
    assert_eq!(log[0]["relatedQuestion"], session["clarificationQuestions"][1]["questionId"]);
    let written = table.prompts("Write down what this council decided");
    assert_eq!(written.len(), 2);
    assert!(!written[0].prompt().contains("In May") && written[1].prompt().contains("→ In May"));
    assert_eq!(turns(&session, "conclusion").iter().filter(|turn| turn["metadata"]["status"] == "final").count(), 1);
    assert!(!session["finalAnswer"].as_str().expect("an answer").contains("None before June"), "{}", said(&ended));
}
