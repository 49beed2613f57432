//! Client, server or run is killed while anything goes on: nothing is asked twice once it was answered, and no call is paid twice.

use serde_json::{Value, json};

use super::acp::Editor;
use super::client::{Client, data};
use super::{journal, talk};
use crate::support::env::Env;
use crate::support::kills::points;

/// Who is killed at a question.
#[derive(Clone, Copy, Debug)]
enum Killed {
    Client,
    Server,
    Run,
}

/// What a journal says of questions and calls: keys and outcomes, in their order.
fn outcomes(journal: &[Value]) -> Vec<(String, Value)> {
    let outcome = journal.iter().filter_map(|line| line.get("outcome"));
    outcome.map(|own| (own["key"].to_string(), own["ok"].clone())).collect()
}

#[test]
fn whoever_is_killed_at_any_question_the_journal_is_the_same() {
    let mut all = Vec::new();
    for killed in [None, Some(Killed::Client), Some(Killed::Server), Some(Killed::Run)] {
        for at in 0..3 {
            let (server, env) = talk();
            let env = env.var("NIETZ_RUN", "r1");
            let answers = [json!("red"), json!("milk"), json!(false)];
            let mut client = Client::legacy(&env, &[], true);
            let mut id = client.send("tools/call", json!({ "name": "flow_talk", "arguments": { "about": "tea" } }));
            for (number, answer) in answers.iter().enumerate() {
                let mut form = client.until_asked();
                if let Some(killed) = killed.filter(|_| number == at) {
                    match killed {
                        Killed::Client => drop(client.leave()),
                        Killed::Server => client.kill(),
                        Killed::Run => {
                            kill_run(&env, "r1");
                            client.kill();
                        }
                    }
                    client = Client::legacy(&env, &[], true);
                    // The process that was left may take a moment to end.
                    loop {
                        id = client.send("tools/call", json!({ "name": "resume", "arguments": { "run": "r1" } }));
                        let message = client.read().expect("the server goes on");
                        if message["method"] == "elicitation/create" {
                            form = message;
                            break;
                        }
                    }
                }
                client.fill(&form, answer);
            }
            let done = client.reply(id)["result"].clone();
            assert_eq!(data(&done, "status"), "done", "{killed:?} at {at}: {done}");
            assert_eq!(server.chats(), 2, "{killed:?} at {at}");
            all.push(outcomes(&journal(&env, "r1")));
            if killed.is_none() {
                break;
            }
        }
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:#?}");
    assert_eq!(all[0].len(), 5, "three answers and two replies: {:?}", all[0]);
}

/// The same in an editor's session, where what is said next answers.
#[test]
fn whoever_is_killed_in_a_session_its_journal_is_the_same() {
    let mut all = Vec::new();
    for killed in [None, Some(Killed::Client), Some(Killed::Server), Some(Killed::Run)] {
        for at in 0..3 {
            let (server, env) = talk();
            let mut editor = Editor::start(&env, false);
            let session = editor.session.clone();
            editor.say("/talk tea");
            for (number, answer) in ["red", "milk", "no"].into_iter().enumerate() {
                if let Some(killed) = killed.filter(|_| number == at) {
                    match killed {
                        Killed::Client => drop(editor.client.leave()),
                        Killed::Server => editor.client.kill(),
                        Killed::Run => {
                            kill_run(&env, &session);
                            editor.client.kill();
                        }
                    }
                    editor = Editor::again(&env, &session);
                }
                // The process that was left may take a moment to end.
                while editor.say(answer).1.contains("run-busy") {}
            }
            assert_eq!(server.chats(), 2, "{killed:?} at {at}");
            all.push(outcomes(&journal(&env, &session)));
            if killed.is_none() {
                break;
            }
        }
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:#?}");
    assert_eq!(all[0].len(), 5, "three answers and two replies: {:?}", all[0]);
}

/// Kills the process that has the run's journal open.
fn kill_run(env: &Env, run: &str) {
    let journal = env.path(&format!(".nietz/runs/{run}/journal.jsonl")).canonicalize().expect("it is there");
    for process in std::fs::read_dir("/proc").expect("it is Linux").flatten() {
        let files = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let has_it = files.map(|file| std::fs::read_link(file.path())).any(|to| to.is_ok_and(|to| to == journal));
        if has_it {
            let id = process.file_name();
            std::process::Command::new("kill").arg("-KILL").arg(id).status().ok();
        }
    }
}

/// The run is killed after a line of its journal while the client looks on; another client goes on with it.
#[test]
fn a_run_that_is_killed_after_any_line_asks_and_pays_for_nothing_twice() {
    const LINES: u64 = 14;
    let played = |killed: Option<u64>| {
        let (server, env) = talk();
        let mut env = env.var("NIETZ_RUN", "r1");
        if let Some(line) = killed {
            env = env.var("NIETZ_FAULT", &format!("kill@{line}"));
        }
        let mut client = Client::legacy(&env, &[], true);
        client.answers = [json!("red"), json!("milk"), json!(false)].into();
        let begun = client.call("flow_talk", json!({ "about": "tea" }));
        if begun["structuredContent"]["status"] != "done" {
            let (answers, forms) = (std::mem::take(&mut client.answers), client.forms.len());
            client.leave();
            let env = env.without("NIETZ_FAULT");
            client = Client::legacy(&env, &[], true);
            client.answers = answers;
            let done = client.call("resume", json!({ "run": "r1" }));
            assert_eq!(data(&done, "status"), "done", "{killed:?}: {done}");
            assert_eq!(client.forms.len() + forms, 3, "{killed:?}: each question is asked once");
            assert_eq!(server.chats(), 2, "{killed:?}");
            return outcomes(&journal(&env, "r1"));
        }
        assert_eq!(server.chats(), 2, "{killed:?}");
        outcomes(&journal(&env, "r1"))
    };
    let whole = played(None);
    // Before the second line nothing is there to go on with.
    for line in points(LINES, 5).into_iter().filter(|line| *line > 1) {
        assert_eq!(played(Some(line)), whole, "killed after line {line}");
    }
}
