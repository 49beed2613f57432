//! The promise: what a team may use in a day is set aside in the transaction of the call's own line.

use std::sync::Barrier;

use super::children::Team;
use super::hosts::expire;
use super::{held, lines};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};
use crate::support::postgres;

const SPENT: &str = "SELECT calls, tokens, cost, reserved_calls, reserved_tokens, reserved_cost FROM nietz.spent";

#[test]
fn a_call_is_reserved_with_its_intent_and_counted_with_its_outcome() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let (run, claim) = held(&mut session, "r1");
    session.get("SELECT nietz.set_budget(1, 10, 1000, 1.0)");
    let reserve = |key: &str, tokens: u32| {
        format!("[{{\"key\": \"{key}\", \"calls\": 1, \"tokens\": {tokens}, \"cost\": 0.25}}]")
    };
    let append = |seq: u32, line: &str, money: &str| {
        format!("SELECT nietz.append({run}, {claim}, {seq}, '{{{line}}}', '{money}')")
    };
    for _ in 0..2 {
        session.get(&append(2, "intent", &reserve("a", 400)));
        assert_eq!(session.get(SPENT), "0|0|0|1|400|0.25", "also when it is sent again");
    }
    assert_eq!(session.say(&append(3, "intent", &reserve("b", 601))), Err("NZ005".to_owned()));
    assert_eq!(lines(&mut session, &run), "open,intent", "without its reservation there is no intent");
    session.get(&append(3, "intent", &reserve("b", 600)));
    let used = "[{\"key\": \"a\", \"calls\": 1, \"tokens\": 30, \"cost\": 0.01, \"used\": true}]";
    for _ in 0..2 {
        session.get(&append(4, "outcome", used));
        assert_eq!(session.get(SPENT), "1|30|0.01|1|600|0.25");
    }
    // Whoever goes on makes the call again, and reserves it again.
    session.get(&format!("SELECT nietz.release({run}, {claim})"));
    assert_eq!(session.get(SPENT), "1|30|0.01|0|0|0.00");
}

#[test]
fn many_runs_at_once_stay_within_it() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    owner.get("SELECT nietz.set_budget(1, 20, NULL, NULL)");
    let runs: Vec<(String, String)> = (0..8).map(|at| held(&mut owner, &format!("r{at}"))).collect();
    let all = Barrier::new(runs.len());
    let made: usize = std::thread::scope(|scope| {
        let each: Vec<_> = runs
            .iter()
            .map(|(run, claim)| {
                let (database, all) = (&database, &all);
                scope.spawn(move || {
                    let mut session = database.session();
                    all.wait();
                    let mut made = 0;
                    let mut seq = 2;
                    while seq < 40 {
                        let money = "[{\"key\": \"c\", \"calls\": 1, \"tokens\": 1, \"cost\": 0}]";
                        let call = format!("SELECT nietz.append({run}, {claim}, {seq}, '{{i}}', '{money}')");
                        match session.say(&call) {
                            Ok(_) => made += 1,
                            Err(code) => {
                                assert_eq!(code, "NZ005");
                                break;
                            }
                        }
                        let used = money.replace("}]", ", \"used\": true}]");
                        session.get(&format!("SELECT nietz.append({run}, {claim}, {}, '{{o}}', '{used}')", seq + 1));
                        seq += 2;
                    }
                    made
                })
            })
            .collect();
        each.into_iter().map(|one| one.join().expect("it does not panic")).sum()
    });
    assert!((13..=20).contains(&made), "{made} calls of 20, of which up to seven were set aside at the last moment");
    assert_eq!(owner.get("SELECT calls, reserved_calls FROM nietz.spent"), format!("{made}|0"));
}

#[test]
fn calls_of_runs_on_all_machines_are_held_to_what_the_team_may_use_in_a_day() {
    let Some(team) = Team::new(None) else { return };
    let (one, other) = (team.machine(), team.machine());
    one.nietz(["store", "budget", "--calls", "4"]).go().exits(0);
    let first = one.run(["part", "1"]).go();
    assert_eq!(first.code, Some(0), "{first:?}");
    // Another run, on another machine.
    let second = other.run(["part", "2"]).var("NIETZ_RUN", "r2").go();
    assert_eq!((second.code, second.failure().as_str()), (Some(6), "budget-used-up"), "{second:?}");
    assert_eq!(team.server.chats(), 4);
    assert_eq!(team.ask("SELECT calls, reserved_calls FROM nietz.spent"), "4|0");
    let told = other.nietz(["store", "budget"]).go().exits(0).stdout;
    assert!(told.contains('4'), "{told}");
    one.nietz(["store", "budget", "--calls", "10"]).go().exits(0);
    let on = one.nietz(["resume", "r2", "--json"]).go();
    assert_eq!(on.code, Some(0), "{on:?}");
    assert_eq!((team.server.chats(), team.ask("SELECT calls FROM nietz.spent").as_str()), (6, "6"));
}

#[test]
fn what_a_run_used_on_one_machine_is_used_on_the_next_one() {
    let Some(team) = Team::new(None) else { return };
    let (one, other) = (team.machine(), team.machine());
    one.run(["part", "1", "--asks", "--max-calls", "2"]).go().exits(7);
    other.nietz(["answer", "r1", "apples"]).go().exits(0);
    let ended = other.resume().go().exits(6);
    assert_eq!((ended.failure().as_str(), team.server.chats()), ("budget-used-up", 2));
    // Of another machine it is no limit of its own.
    one.resume().go().exits(6);
    assert_eq!(team.server.chats(), 2);
    let ended = one.resume().args(["--max-calls", "3"]).go().exits(0);
    assert_eq!((ended.ending()["calls"].as_u64(), team.server.chats()), (Some(3), 3));
}

#[test]
fn what_a_run_spent_on_a_machine_that_was_lost_is_spent() {
    let Some(server) = postgres::shared() else { return };
    let database = server.database();
    database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
    // Each reply is as long as it may be: about a cent.
    let wordy = ModelServer::start(|request| {
        let limit = request.body["max_completion_tokens"].as_u64().or(request.body["max_tokens"].as_u64());
        Response::text("so it is").usage(50, limit.unwrap_or(1000).min(1000))
    });
    let team = Team { database, server: wordy };
    let machine = || -> Env { team.machine().config("models: {prices: {openai/test: {input: 2, output: 10}}}\n") };
    let (one, other) = (machine(), machine());
    let killed = one.run(["part", "1", "--max-cost", "0.02"]).var("NIETZ_FAULT", "kill@3").go();
    assert_eq!((killed.signal, team.server.chats()), (Some(9), 1), "{killed:?}");
    expire(&team.database, "r1");
    let ended = other.resume().go().exits(6);
    assert_eq!((ended.failure().as_str(), team.server.chats()), ("budget-used-up", 2));
    let spent = &ended.ending()["spent"][0];
    let cost = spent["cost"].as_f64().expect("its price is known");
    assert_eq!(spent["calls"], 2, "{spent}");
    assert!(cost <= 0.02 && cost > 0.015, "{cost}");
}
