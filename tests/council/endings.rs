//! How a council ends, and what it leaves behind: cancelled at any moment with what was said kept; one file, if one was
//! asked for, and nothing else.

use super::model::{Brain, stuck};
use super::table::{REQUEST, Table, complaint, list, says, turns};
use crate::support::env::RUN;
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer};

fn asking() -> Brain {
    Brain {
        rounds: vec![vec![("Which deadline binds the migration?", "June"), ("Who pays for outages?", "")]],
        ..Brain::default()
    }
}

#[test]
fn the_word_cancel_ends_it_at_every_prompt_and_keeps_what_was_said() {
    for (lines, turns) in [
        (&["cancel"][..], 1),
        (&["skip", "cancel"], 4),
        (&["a", "b", "cancel"], 4),
        (&["a", "b", "", "cancel"], 7),
        (&["skip", "b", "", "", "cancel"], 11),
    ] {
        let ended = Table::with(asking()).hold(&[], lines);
        let session = ended.result();
        assert_eq!(
            (&session["status"], list(&session["messageTurns"]).len()),
            (&"cancelled".into(), turns),
            "{lines:?}"
        );
        assert!(session["finalAnswer"].is_null());
        says(&ended, &["**Cancelled.** What was said is kept in the run."]);
    }
}

#[test]
fn an_interrupted_council_goes_on_and_asks_nobody_again_who_was_heard() {
    let gate = Gate::default();
    let (held, brain) = (gate.clone(), Brain { stand: stuck, ..asking() });
    let server = ModelServer::start(move |request| {
        let reply = brain.answer(request);
        let slow = brain.speaker(request) == "QA Engineer" && request.prompt().contains("What was said so far");
        if slow { reply.held_by(&held) } else { reply }
    });
    let table = Table::of(server);
    let call = table.call([REQUEST, "--no-pause", "--cycles", "2", "--save", "kept.yaml"]);
    // At a prompt, and then in the second cycle: two are heard, and one is not.
    let mut running = call.spawn();
    running.wait_for("asked");
    running.interrupt();
    let ended = running.end().exits(130);
    assert_eq!(ended.ending()["status"], "interrupted");
    assert!(table.env.documents().is_empty(), "nothing is saved as cancelled");
    let mut running = table.env.resume().spawn();
    running.say("b\nThe shop\n");
    let heard = |table: &Table| table.env.journal().of_kind("chat").iter().filter(|call| call.finished()).count();
    running.until(|| table.prompts("What was said so far").len() == 3 && heard(&table) + 1 == table.server.calls());
    running.interrupt();
    running.end().exits(130);
    gate.open();
    let before = table.server.calls();
    let session = table.env.resume().go().result();
    let chats = table.env.journal().of_kind("chat").len();
    assert_eq!(table.server.calls(), chats + 1, "only the call that was under way at {before} is made again");
    assert_eq!((&session["status"], turns(&session, "discussion").len()), (&"completed".into(), 6));
    table.env.nietz(["check", "--as", "council:sessions", "kept.yaml"]).go().exits(0);
}

#[test]
fn nothing_is_written_but_the_file_that_was_asked_for_and_it_is_valid() {
    let table = Table::with(Brain { stand: stuck, ..Brain::default() });
    let session = table.hold(&["--no-pause"], &[]).result();
    assert!(table.env.documents().is_empty(), "{:?}", table.env.documents().keys());
    assert_eq!(session["metadata"]["correlationId"], RUN);
    for file in ["out/decision.json", "decision.yaml"] {
        let ended = table
            .env
            .nietz(["run", "council", "export", RUN, file])
            .var("NIETZ_RUN", &file.replace('/', "-"))
            .go()
            .exits(0);
        assert!(ended.stdout.contains(file), "{ended:?}");
        let format = if file.ends_with("json") {
            nietz::model::collection::Format::Json
        } else {
            nietz::model::collection::Format::Yaml
        };
        let written = nietz::schema::source::parse(&table.env.read(file), format, file).expect("it can be read");
        assert_eq!(written, session, "{file}");
        let checked = table.env.nietz(["check", "--as", "council:sessions", file]).go().exits(0);
        assert!(checked.stdout.contains("valid"), "{checked:?}");
    }
    assert_eq!(table.env.documents().len(), 2);
}

#[test]
fn a_file_that_is_there_is_not_written_over_and_that_is_said_before_anything_is_spent() {
    let mut table = Table::with(Brain::default());
    table.env = table.env.file("there.yaml", "a: 1\n");
    for (file, message) in [
        ("there.yaml", "there.yaml is there already"),
        ("x.txt", "is neither .json, .yaml nor .md"),
        ("../x.yaml", "not a plain path below the workspace"),
    ] {
        let ended = table.hold(&["--save", file], &[]);
        assert!(ended.code != Some(0) && complaint(&ended).contains(message), "{ended:?}");
    }
    assert_eq!((table.server.calls(), table.env.read("there.yaml").as_str()), (0, "a: 1\n"));
}

#[test]
fn a_request_is_asked_for_and_has_a_length() {
    let table = Table::with(Brain::default());
    let ended = table.call(["--no-pause", "--cycles", "1"]).stdin("Blue or red?\n").go();
    assert_eq!((&ended.result()["requestText"], ended.asked()), (&"Blue or red?".into(), vec!["request".to_owned()]));
    let table = Table::with(Brain::default());
    let long = "x".repeat(5001);
    let ended = table.call([long.as_str()]).go().exits(2);
    assert!(complaint(&ended).contains("the request is longer than 5000 letters"), "{}", complaint(&ended));
}

#[test]
fn facts_are_known_to_everybody() {
    let table = Table::with(Brain::default());
    table.hold(&["--no-pause", "--cycles", "1", "--context", "42,000 lines, 3 people"], &[]).exits(0);
    assert!(table.server.requests().iter().all(|request| request.prompt().contains("Facts: 42,000 lines, 3 people")));
}

#[test]
fn a_run_that_is_killed_in_the_middle_of_a_cycle_pays_for_no_call_twice() {
    let gate = Gate::default();
    let (held, brain) = (gate.clone(), asking());
    let server = ModelServer::start(move |request| {
        let reply = brain.answer(request);
        if brain.speaker(request) == "QA Engineer" { reply.held_by(&held) } else { reply }
    });
    let table = Table::of(server);
    let mut running = table.call([REQUEST, "--no-pause", "--cycles", "1"]).spawn();
    running.say("skip\nThe shop\n");
    running.until(|| {
        table.server.requests().iter().filter(|request| request.prompt().starts_with("You sit")).count() >= 3
            && table.env.journal().of_kind("chat").iter().filter(|call| call.finished()).count() >= 5
    });
    running.kill();
    gate.open();
    let before = table.server.calls();
    let session = table.env.resume().go().result();
    assert_eq!(session["status"], "completed");
    let chats = table.env.journal().of_kind("chat").len();
    assert_eq!(table.server.calls(), chats + 1, "only the call that was under way at {before} is made again");
    assert_eq!(turns(&session, "discussion").len(), 3);
}

#[test]
fn killed_at_any_moment_a_council_comes_to_the_same_file_and_leaves_nothing() {
    let arguments = [REQUEST, "--no-pause", "--cycles", "2", "--save", "kept.yaml"];
    // What is said depends on what is asked, and not on how often.
    let table = || {
        Table::of(ModelServer::start(|request| {
            let brain = Brain { stand: stuck, ..Brain::default() };
            if request.prompt().contains("What was said so far") {
                let name = brain.speaker(request).to_owned();
                brain.spoken.lock().expect("it is new").insert(name, 1);
            }
            brain.answer(request)
        }))
    };
    let calm = table();
    let result = calm.call(arguments).go().result();
    let length = std::fs::metadata(calm.env.journal_path()).expect("it is there").len();
    let (seeds, times) = kills::rounds();
    kills::for_each(&seeds, |seed| {
        let table = table();
        let resume = || table.env.resume();
        let ended =
            kills::anywhere(&table.env, &mut kills::Chance(seed), (times, length), table.call(arguments), resume);
        assert_eq!(ended.result(), result, "seed {seed}");
        assert_eq!(table.env.documents(), calm.env.documents(), "seed {seed}");
        assert_eq!(kills::strays(&table.env), Vec::<String>::new(), "seed {seed}");
    });
}
