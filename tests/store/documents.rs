//! The promise: a document is saved over what its writer has read and over nothing else; rows only grow.

use std::sync::Barrier;

use crate::support::postgres;

const CHANGED: &str = "NZ004";

#[test]
fn a_document_that_somebody_else_changed_is_left_as_it_is() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let save = |digest: &str, expected: &str| {
        format!("SELECT nietz.save_document(1, '', 'a.yaml', 'x', '{digest}', {expected})")
    };
    assert_eq!(session.say(&save("d1", "'d0'")), Err(CHANGED.to_owned()), "it is gone");
    assert_eq!(session.say(&save("d1", "NULL")), Ok(String::new()));
    assert_eq!(session.say(&save("d1", "NULL")), Err(CHANGED.to_owned()), "two that save the same are two");
    let again = save("d1", "NULL").replace(", NULL)", ", NULL, again => true)");
    assert_eq!(session.say(&again), Ok(String::new()), "the same one again");
    assert_eq!(session.say(&save("d2", "NULL")), Err(CHANGED.to_owned()), "somebody made it");
    assert_eq!(session.say(&save("d2", "'d1'")), Ok(String::new()));
    assert_eq!(session.say(&save("d3", "'d1'")), Err(CHANGED.to_owned()));
    assert_eq!(session.say("SELECT nietz.remove_document(1, '', 'a.yaml', 'd1')"), Err(CHANGED.to_owned()));
    assert_eq!(session.get("SELECT digest, convert_from(body, 'UTF8'), who FROM nietz.document"), "d2|x|nietz");
    assert_eq!(session.get("SELECT nietz.remove_document(1, '', 'a.yaml', 'd2')"), "t");
    assert_eq!(session.get("SELECT nietz.remove_document(1, '', 'a.yaml', 'd2')"), "f");
}

#[test]
fn of_writers_at_once_one_saves() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    for (round, expected) in ["NULL", "'first'"].into_iter().enumerate() {
        if round == 1 {
            owner.get("SELECT nietz.save_document(1, '', 'round1.yaml', 'x', 'first', NULL)");
        }
        let all = Barrier::new(8);
        let saved: Vec<bool> = std::thread::scope(|scope| {
            let each: Vec<_> = (0..8)
                .map(|at| {
                    let (database, all) = (&database, &all);
                    scope.spawn(move || {
                        let mut session = database.session();
                        all.wait();
                        let path = format!("round{round}.yaml");
                        let save = format!("SELECT nietz.save_document(1, '', '{path}', 'x', 'w{at}', {expected})");
                        match session.say(&save) {
                            Ok(_) => true,
                            Err(code) => {
                                assert_eq!(code, CHANGED);
                                false
                            }
                        }
                    })
                })
                .collect();
            each.into_iter().map(|one| one.join().expect("it does not panic")).collect()
        });
        let winner = saved.iter().position(|saved| *saved).expect("one saves");
        assert_eq!(saved.iter().filter(|saved| **saved).count(), 1);
        let there = owner.get(&format!("SELECT digest FROM nietz.document WHERE path = 'round{round}.yaml'"));
        assert_eq!(there, format!("w{winner}"));
    }
}

#[test]
fn rows_are_appended_once_however_often_it_is_tried() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let append = |row: &str, from: &str| format!("SELECT nietz.append_row(1, '', 'r.jsonl', '{row}', {from})");
    assert_eq!(session.get(&append("é", "NULL")), "0");
    assert_eq!(session.get(&append("b", "3")), "3", "places are bytes, with the end of the line");
    assert_eq!(session.get(&append("b", "3")), "3", "a second try finds the first");
    assert_eq!(session.get(&append("b", "5")), "5", "another row of the same text");
    assert_eq!(session.say(&append("c", "100")), Err("NZ012".to_owned()));
    assert_eq!(session.get("SELECT string_agg(body, ',' ORDER BY at) FROM nietz.document_row"), "é,b,b");
    session.get("SELECT nietz.save_document(1, '', 'a.yaml', 'x', 'd', NULL)");
    assert_eq!(session.say("SELECT nietz.append_row(1, '', 'a.yaml', 'x')"), Err("NZ011".to_owned()));
    let all = Barrier::new(8);
    std::thread::scope(|scope| {
        for at in 0..8 {
            let (database, all) = (&database, &all);
            scope.spawn(move || {
                let mut session = database.session();
                all.wait();
                for row in 0..25 {
                    session.get(&format!("SELECT nietz.append_row(1, '', 'many.jsonl', '{at}-{row}')"));
                }
            });
        }
    });
    let whole = "SELECT count(*), sum(octet_length(body) + 1) = max(at + octet_length(body) + 1) \
                 FROM nietz.document_row WHERE path = 'many.jsonl'";
    assert_eq!(session.get(whole), "200|t", "none is lost and none lies over another");
}
