//! A run that is killed between a call and its outcome.

use std::process::Command;

use super::{CALLER, calls, config, with};
use crate::support::env::Env;

/// The line of the journal with the call's intent: behind the first line, and the look at the tools.
const INTENT: &str = "kill@4";

fn killed_before_the_outcome_of(tool: &str) -> Env {
    let env = with("good");
    let killed =
        env.run(["caller", "--tool", tool, "--arguments", "{\"query\": \"a\"}"]).var("NIETZ_FAULT", INTENT).go();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    let open: Vec<_> = env.journal().of_kind("mcp").into_iter().filter(|effect| effect.outcome.is_null()).collect();
    assert!(open.len() == 1 && open[0].request["tool"] == tool, "the call began and has no outcome: {open:?}");
    env
}

#[test]
fn what_changes_the_world_is_not_called_again_and_the_flow_is_told_that_it_is_in_doubt() {
    let env = killed_before_the_outcome_of("note");
    let resumed = env.resume().go().exits(1);
    assert!(resumed.stdout.contains("tool-in-doubt"), "{resumed:?}");
    assert!(
        resumed.stdout.contains("whether `note` of the MCP server `docs` did its work is not known"),
        "{resumed:?}"
    );
    assert_eq!(calls(&env), 0);
}

#[test]
fn what_only_reads_and_what_can_be_done_again_is_called_again() {
    for tool in ["search", "put"] {
        let env = killed_before_the_outcome_of(tool);
        env.resume().go().exits(0);
        assert_eq!(calls(&env), 1, "{tool}");
    }
}

/// A pipe in the server's home, by which its tool says that it has begun.
fn pipe(env: &Env) -> std::path::PathBuf {
    let home = env.home().join("servers/docs");
    std::fs::create_dir_all(&home).expect("a folder can be made");
    let pipe = home.join("held");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    pipe
}

#[test]
fn a_call_that_is_under_way_when_nietz_is_killed_ends_with_it_and_is_in_doubt() {
    for (tool, doubt) in [("hold", true), ("hold_again", false)] {
        let env = Env::new().flow("caller", CALLER).config(&config("good", ", seconds: 50"));
        let pipe = pipe(&env);
        let running = env.run(["caller", "--tool", tool, "--arguments", "{}"]).spawn();
        assert_eq!(std::fs::read_to_string(&pipe).expect("the tool began"), "held");
        running.kill();
        if doubt {
            let resumed = env.resume().go().exits(1);
            assert!(resumed.stdout.contains("tool-in-doubt"), "{resumed:?}");
            assert_eq!(calls(&env), 1);
        } else {
            let running = env.resume().spawn();
            assert_eq!(std::fs::read_to_string(&pipe).expect("the tool is called again"), "held");
            running.kill();
            assert_eq!(calls(&env), 2);
        }
    }
}

#[test]
fn a_limit_of_time_leaves_a_call_in_doubt_unless_it_can_be_made_again() {
    for (tool, code) in [("hold", "tool-in-doubt"), ("hold_again", "server-failed")] {
        let env = with("good");
        let ended = env.run(["caller", "--tool", tool, "--arguments", "{}", "--catch", "--seconds", "1"]).go().exits(0);
        let result = ended.result();
        assert_eq!(result["code"], code, "{result}");
        assert!(result["message"].as_str().is_some_and(|told| told.contains("within 1 s")), "{result}");
        assert_eq!(env.journal().of_kind("mcp").iter().filter(|effect| effect.failed()).count(), 1);
    }
}
