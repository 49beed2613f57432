//! Every flag of the launch does what `--help` says of it.

use serde_json::Value;

use super::model::Brain;
use super::table::{FULL, MORE, SLUG, TOPIC, Table, prompts, read, said, says, task};

/// The names of the schemas that were asked for, by what is in them.
fn wanted(table: &Table, name: &str) -> usize {
    let has = |body: &Value| !body["response_format"]["json_schema"]["schema"]["properties"][name].is_null();
    table.server.requests().iter().filter(|request| has(&request.body)).count()
}

fn brief(table: &Table) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md"))
}

#[test]
fn help_tells_every_flag() {
    let table = Table::new();
    let help = table.call(["--help"]).go().exits(0).stdout;
    for flag in [
        "template",
        "quick",
        "turbo",
        "lite",
        "random",
        "progressive",
        "party",
        "panel",
        "no-hmw",
        "no-security",
        "no-plan",
        "no-technique",
        "no-clarify",
        "force-clarify",
        "no-suggest",
        "competitive",
        "c7",
        "seq",
        "continue",
        "name",
        "persona",
        "diverge",
        "about",
        "format",
    ] {
        assert!(help.contains(&format!("--{flag}")), "{flag}: {help}");
    }
}

#[test]
fn flags_that_exclude_each_other_are_wrong_usage() {
    for (arguments, message) in [
        (vec![TOPIC, "--party", "--panel"], "--party and --panel exclude each other"),
        (vec![TOPIC, "--random", "--progressive"], "--random and --progressive exclude each other"),
        (vec![TOPIC, "--force-clarify", "--no-clarify"], "--force-clarify and --no-clarify exclude each other"),
        (vec![TOPIC, "--lite", "--turbo"], "--lite and --turbo exclude each other"),
        (vec![TOPIC, "--continue", SLUG], "--continue and a topic exclude each other"),
        (vec!["--continue", "no-such-session"], "there is no session \"no-such-session\""),
        (vec![TOPIC, "--persona", "nobody"], "Nobody here is called `nobody`"),
        (vec![TOPIC, "--persona", "backend"], "has the tag `facilitator`"),
        (vec![TOPIC, "--template", "poem"], "poem"),
    ] {
        let table = Table::new();
        let ended = table.talk(arguments.iter().copied(), &[]).exits(2);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(told.contains(&message.replace('"', "\\\"")) || told.contains(message), "{arguments:?}: {told}");
        assert!(!table.env.path(".project-memory").exists(), "{arguments:?} left something behind");
    }
}

#[test]
fn name_persona_and_template_shape_the_session_and_last() {
    let table = Table::new();
    let arguments =
        [TOPIC, "--no-clarify", "--no-hmw", "--name", "Ma Caisse", "--persona", "pragmatique", "--template", "problem"];
    table.talk(arguments, &["quit"]).exits(0);
    let session = table.session_of("ma-caisse");
    assert_eq!((&session["persona"], &session["id"]), (&"pragmatique".into(), &"ma-caisse-2026-01-09".into()));
    let before = table.server.calls();
    table.talk(["--continue", "ma-caisse"], &["/dive costs", "quit"]).exits(0);
    let asked = read(&table.server.requests()[before]);
    assert!(asked.contains("It is a problem: what is seen"), "{asked}");
}

#[test]
fn lite_asks_one_question_and_shows_no_bars() {
    let table = Table::new();
    let ended = table.talk([TOPIC, "--lite"], &[FULL, MORE, "a", "quit"]).exits(0);
    assert!(prompts(&ended).iter().all(|prompt| !prompt.contains("Question 1 of")), "{:?}", prompts(&ended));
    assert!(!said(&ended).contains('█') && said(&ended).contains("EMS "), "{}", said(&ended));
    assert_eq!(wanted(&table, "how_might_we"), 0);
}

#[test]
fn quick_ends_after_three_iterations_and_a_standard_session_after_ten() {
    for (flag, iterations) in [("--quick", 3), ("--no-suggest", 10)] {
        let table = Table::new();
        let mut lines = vec!["continue"; iterations];
        lines.push("pause");
        let ended = table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-technique", flag], &lines).exits(0);
        let last = prompts(&ended).pop().unwrap_or_default();
        assert!(last.contains(&format!("That was iteration {iterations}, the last of this session.")), "{last}");
        assert_eq!(table.session()["iteration"], iterations);
    }
}

#[test]
fn turbo_takes_suggestions_for_ok_and_enter_and_proposes_the_end_at_sixty() {
    let table = Table::with(Brain { claims: 65, ..Brain::default() });
    let ended = table.talk([TOPIC, "--turbo"], &[FULL, "ok", MORE, "ok"]).exits(7);
    let session = table.session();
    let (history, offered) = (&session["history"], &table.own()["offered"]);
    for index in 1..3 {
        assert_eq!(
            history[0]["responses"][index], offered[index]["suggestions"][0],
            "`ok` takes what is left: {ended:?}"
        );
    }
    assert!(ended.asked().contains(&"checkpoint".to_owned()), "{:?}", ended.asked());
    assert!(session["ems"].as_u64() < Some(70) && session["ems"].as_u64() >= Some(60), "{}", session["ems"]);
    let table = Table::new();
    table.talk([TOPIC, "--turbo"], &["", "", ""]).exits(7);
    assert_eq!(table.session()["history"][0]["responses"][0], table.own()["offered"][0]["suggestions"][0]);
}

#[test]
fn random_and_progressive_choose_techniques_by_themselves_and_keep_their_state() {
    let table = Table::new();
    table
        .talk([TOPIC, "--no-clarify", "--no-hmw", "--random", "--no-suggest"], &["continue", "continue", "quit"])
        .exits(0);
    let session = table.session();
    let entry = &session["techniques_history"][0];
    assert_eq!((&entry["source"], &entry["applied"]), (&"random".into(), &true.into()));
    assert_eq!(session["random_state"]["last_category"], session["techniques_history"][1]["category"]);
    assert_ne!(entry["category"], session["techniques_history"][1]["category"]);
    // Resumed without the flag, it stays what it is.
    table.talk(["--continue", SLUG, "--no-suggest"], &["continue", "quit"]).exits(0);
    assert_eq!(table.session()["techniques_history"][2]["source"], "random");

    let table = Table::with(Brain { claims: 70, ..Brain::default() });
    let arguments = [TOPIC, "--no-clarify", "--no-hmw", "--progressive", "--no-suggest"];
    table.talk(arguments, &["quit"]).exits(0);
    assert_eq!(table.session()["progressive_state"]["divergent_completed"], false);
    table.go_on(&[FULL, "", "", FULL, "", "", "1", "quit"]);
    let session = table.session();
    assert_eq!(session["techniques_history"][0]["source"], "progressive");
    let state = &session["progressive_state"];
    assert_eq!(state["divergent_completed"], true, "{session:#}");
    assert_eq!(state["transition_summary"]["questions"], 2);
}

#[test]
fn the_questions_before_the_first_one_can_be_forced_and_left_out() {
    let clear = "Let every customer of our shop keep an order when the payment provider is down";
    for (topic, flags, ways, restated) in [
        (clear, vec![], true, false),
        (clear, vec!["--no-hmw"], false, false),
        (clear, vec!["--force-clarify"], true, true),
        ("payment", vec![], true, true),
        ("payment", vec!["--no-clarify"], true, false),
    ] {
        let table = Table::new();
        let ended = table.talk([topic].into_iter().chain(flags.iter().copied()), &["", "quit"]);
        assert_eq!(said(&ended).contains("How might we keep selling"), ways, "{topic} {flags:?}");
        let asked =
            prompts(&ended)[0].contains("I understand: **You want a checkout that survives an outage of payments.**");
        assert_eq!(asked, restated, "{topic} {flags:?}");
    }
}

#[test]
fn no_technique_and_no_suggest_are_quiet() {
    let lines = ["the ledger keeps orders", "", "", "a worker retries them", "", ""];
    let loud = Table::new().begin(&lines).exits(7);
    assert!(loud.asked().contains(&"technique".to_owned()) && said(&loud).contains("Weakest now"), "{loud:?}");
    for flag in ["--no-technique", "--no-suggest"] {
        let quiet = Table::new().talk([TOPIC, "--no-clarify", "--no-hmw", flag], &lines).exits(7);
        assert!(!quiet.asked().contains(&"technique".to_owned()), "{flag}");
        assert_eq!(said(&quiet).contains("Weakest now"), flag == "--no-technique");
    }
}

#[test]
fn competitive_begins_with_what_there_is_and_c7_ends_with_what_to_look_up() {
    let table = Table::new();
    let ended =
        table.talk([TOPIC, "--no-clarify", "--no-hmw", "--competitive", "--c7"], &[FULL, "", "", "finish"]).exits(0);
    says(&ended, &["A second provider: Takes over at once; but it costs twice"]);
    let questions = table
        .server
        .requests()
        .iter()
        .find(|request| task(request).starts_with("Ask the user the next"))
        .expect("one")
        .prompt();
    assert!(questions.contains("where \"it costs twice\""), "{questions}");
    let brief = table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md"));
    assert!(brief.contains("The provider's API: How long does an idempotency key live?"), "{brief}");
    assert_eq!(wanted(&table, "lookups"), 1);
    let plain = Table::new();
    plain.begin(&[FULL, "", "", "finish"]).exits(0);
    assert_eq!((wanted(&plain, "rivals"), wanted(&plain, "lookups")), (0, 0));
}

#[test]
fn seq_lets_the_model_think_in_steps_that_come_first() {
    let table = Table::new();
    table.talk([TOPIC, "--no-clarify", "--no-hmw", "--seq"], &[FULL, "", "", "quit"]).exits(0);
    let requests = table.server.requests();
    assert_eq!(wanted(&table, "_steps"), requests.len());
    for request in requests {
        let schema = request.body["response_format"]["json_schema"]["schema"].clone();
        assert_eq!(schema["properties"].as_object().expect("names").keys().next().map(String::as_str), Some("_steps"));
        assert!(request.prompt().contains("First think in _steps"));
    }
}

#[test]
fn no_plan_and_no_security_leave_their_parts_out_of_the_brief() {
    let table = Table::new();
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    assert_eq!(wanted(&table, "threats"), 1, "payments are worth a look");
    assert!(brief(&table).contains("| Write down the ledger's key |"), "{}", brief(&table));
    let table = Table::new();
    table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-plan", "--no-security"], &[FULL, "", "", "finish"]).exits(0);
    assert_eq!(wanted(&table, "threats"), 0);
    assert!(!brief(&table).contains("Write down the ledger's key"), "{}", brief(&table));
}
