//! The promise: runs are found again by what they were about, what became of them and what they cost; a list of a thousand
//! reads no journal that it has read before, and never says what a journal does not.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "talk", summary = "Talks", host_api = 2, permissions = { llm = true },
  params = { about = { type = "string", positional = true, required = true }, asks = { type = "boolean", default = false } },
  run = function(ctx)
    local reply = llm.chat { prompt = "Say something of " .. ctx.params.about }
    if ctx.params.asks then ui.ask { id = "more", prompt = "More?" } end
    return { text = reply.text }
  end,
}"#;

const MODEL: &str = "openai/gpt-4.1";

fn env() -> (ModelServer, Env) {
    let server = ModelServer::start(|request| match request.prompt().contains("coffee") {
        true => Response::text("It wakes.").usage(1000, 50),
        false => Response::text("It calms.").usage(2000, 100),
    });
    let prices = "models: {prices: {openai/gpt-4.1: {input: 2, output: 8}}}\n";
    let env = Env::with(&server).flow("talk", FLOW).config(prices);
    (server, env)
}

fn begin(env: &Env, run: &str, at: &str, words: &[&str]) -> i32 {
    let call = env.run_on(MODEL, ["talk"].iter().chain(words).copied());
    call.var("NIETZ_RUN", run).var("NIETZ_CLOCK", at).go().code.expect("it ended")
}

fn three(env: &Env) {
    assert_eq!(begin(env, "one", "2025-11-01T08:00:00Z", &["coffee\nand what it does"]), 0);
    assert_eq!(begin(env, "two", "2025-12-24T08:00:00Z", &["tea", "--asks"]), 7);
    let fork = env.nietz(["fork", "one", "--set", "about=green tea", "--json"]).var("NIETZ_RUN", "three");
    fork.var("NIETZ_CLOCK", "2026-01-09T08:00:00Z").go().exits(0);
}

fn list(env: &Env, words: &[&str]) -> String {
    env.nietz(["runs"].iter().chain(words).copied()).go().exits(0).stdout
}

fn names(env: &Env, words: &[&str]) -> Vec<String> {
    let lines = list(env, words);
    let rows = lines.lines().skip(1).map(|line| line.split_whitespace().next().unwrap_or_default().to_owned());
    rows.collect()
}

#[test]
fn a_list_says_what_each_run_is_about_what_became_of_it_and_what_it_cost() {
    let (_server, env) = env();
    three(&env);
    assert_snapshot!(list(&env, &[]), @r"
    RUN    FLOW  STATUS               CALLS  COST     STARTED           TOPIC
    one    talk  done                 1      $0.0024  2025-11-01 08:00  coffee
    two    talk  waits for an answer  1      $0.0048  2025-12-24 08:00  tea
    three  talk  done                 1      $0.0048  2026-01-09 08:00  fork of one: green tea
    ");
    let lines: Vec<Value> =
        list(&env, &["--json"]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[2]["parent"], &lines[2]["topic"]), (&"one".into(), &"green tea".into()));
    assert_eq!((&lines[1]["status"], &lines[1]["code"]), (&"waiting".into(), &"answer-missing".into()));
}

#[test]
fn a_list_can_be_narrowed_and_says_when_nothing_is_left() {
    let (_server, env) = env();
    three(&env);
    assert_eq!(names(&env, &["--status", "waiting"]), ["two"]);
    assert_eq!(names(&env, &["--grep", "TEA"]), ["two", "three"]);
    assert_eq!(names(&env, &["--grep", "tea", "--status", "done"]), ["three"]);
    assert_eq!(names(&env, &["--since", "2025-12-24"]), ["two", "three"]);
    // The clock of the test stands at the ninth of January.
    assert_eq!(names(&env, &["--since", "24h"]), ["three"]);
    assert_eq!(names(&env, &["--flow", "talk", "--since", "90d"]), ["one", "two", "three"]);
    assert_eq!(list(&env, &["--flow", "other"]), "no run here is like that\n");
    for wrong in [["--since", "soon"], ["--status", "asleep"]] {
        env.nietz(["runs"].into_iter().chain(wrong)).go().exits(2);
    }
}

#[test]
fn a_list_fits_the_terminal() {
    let (_server, env) = env();
    begin(&env, "one", "2025-11-01T08:00:00Z", &[&"a very long topic, 茶 and more. ".repeat(20)]);
    let mut seat = env.nietz(["runs"]).at_a_terminal();
    seat.sees("…");
    let shown = seat.shown().to_owned();
    assert_eq!(seat.end(), Some(0));
    for line in shown.lines() {
        let width: usize = unicode_width::UnicodeWidthStr::width(line.trim_end_matches('\r'));
        // The test's terminal has a hundred columns.
        assert!(width <= 100, "{width}: {line}");
    }
}

/// Replaces one byte in the middle, and gives the file its old time of change back.
fn forge(env: &Env, run: &str) {
    let path = env.path(&format!(".nietz/runs/{run}/journal.jsonl"));
    let modified = std::fs::metadata(&path).and_then(|found| found.modified()).expect("it is there");
    let text = std::fs::read_to_string(&path).expect("it is text");
    std::fs::write(&path, text.replacen("Say something", "Say somethinG", 1)).expect("it can be written");
    let file = std::fs::File::options().write(true).open(&path).expect("it can be opened");
    file.set_modified(modified).expect("times can be set");
}

#[test]
fn a_journal_counts_more_than_what_is_kept_of_it() {
    let (_server, env) = env();
    three(&env);
    let before = list(&env, &[]);
    let index = std::fs::read_dir(env.home().join("index/runs")).expect("it is kept").flatten().next();
    let index = index.expect("one workspace").path();
    assert_eq!(std::fs::metadata(&index).expect("it is there").mode() & 0o777, 0o600);
    // Without it, with a part of it, and with nonsense in its place, the list is the same.
    for text in [None, Some(""), Some("nonsense\n{}\n{\"v\":1}\n")] {
        match text {
            Some(text) => std::fs::write(&index, text).expect("it can be written"),
            None => std::fs::remove_file(&index).expect("it can be removed"),
        }
        assert_eq!(list(&env, &[]), before);
    }
    // Of the same length and the same time, but it is not what was written.
    forge(&env, "two");
    assert!(
        list(&env, &[]).lines().any(|line| line.starts_with("two") && line.contains("broken")),
        "{}",
        list(&env, &[])
    );
    let broken = list(&env, &["--json", "--status", "broken"]);
    assert!(broken.contains("was changed after it was written"), "{broken}");
    // A run that went on is read again.
    env.nietz(["fork", "one", "--json"]).var("NIETZ_RUN", "four").var("NIETZ_FAULT", "kill@2").go();
    assert_eq!(names(&env, &["--status", "stopped"]), ["four"]);
    env.nietz(["resume", "four", "--json"]).go().exits(0);
    assert_eq!(names(&env, &["--status", "stopped"]), [""; 0]);
}

#[test]
fn what_a_killed_run_used_is_counted_from_its_journal() {
    let (_server, env) = env();
    // Its reply is recorded, its end is not.
    let killed = env.run_on(MODEL, ["talk", "coffee", "--asks"]).var("NIETZ_FAULT", "kill@4").go();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    let line = list(&env, &[]);
    assert!(line.contains("stopped half-way") && line.contains("$0.0024"), "{line}");
}

#[test]
fn a_thousand_runs_are_listed_without_reading_their_journals() {
    let (_server, env) = env();
    let flow = "local ui = require('@nietz/ui')\n\
        return require('@nietz').flow { name = 'says', summary = 's', run = function()\n\
        for index = 1, 400 do ui.say('line ' .. index .. (' of a long text'):rep(10)) end end }";
    let env = env.flow("says", flow);
    env.run(["says"]).go().exits(0);
    let journal = std::fs::read(env.journal_path()).expect("there is a journal");
    for number in 0..1000 {
        env.write(&format!(".nietz/runs/copy-{number:04}/journal.jsonl"), &journal);
    }
    list(&env, &[]);
    // What is read of a journal that is known are its ends: with nothing in between that can be read, nobody notices.
    let begun = Instant::now();
    let lines = list(&env, &[]);
    let took = begun.elapsed();
    assert_eq!(lines.lines().count(), 1002);
    // Twenty times what an idle machine may take, for the program as it is built for tests.
    assert!(took < Duration::from_secs(2), "{took:?}");
    for words in [&["log"][..], &["log", "copy-0500"], &["log", "copy-0500", "12"], &["diff", "copy-0001", "copy-0002"]]
    {
        let begun = Instant::now();
        env.nietz(words.iter().copied()).go().exits(0);
        assert!(begun.elapsed() < Duration::from_secs(2), "{words:?}: {:?}", begun.elapsed());
    }
}

#[test]
fn runs_are_removed_after_they_were_shown_and_none_that_waits_or_is_somebody_else_s() {
    let (_server, env) = env();
    three(&env);
    env.write(".nietz/runs/brought/journal.jsonl", std::fs::read(env.path(".nietz/runs/one/journal.jsonl")).unwrap());
    let shown = env.nietz(["runs", "prune", "--older", "1d"]).go().exits(0).stdout;
    assert!(shown.contains("one") && shown.ends_with("1 run; with --yes it is removed\n"), "{shown}");
    assert!(!shown.contains("two") && !shown.contains("brought"), "one waits, the other is not the user's: {shown}");
    assert_eq!(names(&env, &[]).len(), 4, "nothing was removed");
    assert!(env.nietz(["runs", "prune", "--keep", "3"]).go().exits(0).stdout.contains("no run to remove"));
    assert_eq!(env.nietz(["runs", "prune", "--older", "1d", "--yes"]).go().exits(0).stdout, "removed one\n");
    assert_eq!(names(&env, &[]), ["brought", "two", "three"]);
    assert!(!env.path(".nietz/runs/one").exists());
    // By name, any may go that no process is at.
    env.nietz(["runs", "prune", "tw", "--yes"]).go().exits(2);
    env.nietz(["runs", "prune"]).go().exits(2);
    assert_eq!(
        env.nietz(["runs", "prune", "two", "brought", "--yes"]).go().exits(0).stdout,
        "removed brought\nremoved two\n"
    );
    assert_eq!(names(&env, &[]), ["three"]);
}

#[test]
fn a_run_that_a_process_is_at_is_not_removed() {
    let (_server, env) = env();
    let mut running = env.run_on(MODEL, ["talk", "tea", "--asks"]).spawn();
    running.wait_for("asked");
    assert!(env.nietz(["runs", "prune", "--keep", "0"]).go().exits(0).stdout.contains("no run to remove"));
    let refused = env.nietz(["runs", "prune", RUN, "--yes"]).go().exits(1);
    assert!(refused.stderr.contains("error[run-busy]"), "{}", refused.stderr);
    running.say("no\n");
    running.close();
    running.end().exits(0);
    // What an earlier removal left half-way is no run, and goes with the next.
    env.write(".nietz/runs/.removed-old/journal.jsonl", "{}\n");
    assert_eq!(names(&env, &[]), [RUN]);
    env.nietz(["runs", "prune", "--keep", "0", "--yes"]).go().exits(0);
    assert!(std::fs::read_dir(env.path(".nietz/runs")).expect("it stays").next().is_none());
}

#[test]
fn one_effect_is_shown_whole_and_tool_calls_are_told() {
    let server = ModelServer::start(|request| match request.number {
        1 => Response::text("").tool_call("t1", "look", "{\"at\":\"the kettle\"}"),
        _ => Response::text(format!("It boils. {}", "Very much so. ".repeat(20))),
    });
    let flow = "local llm = require('@nietz/llm')\n\
        return require('@nietz').flow { name = 'looks', summary = 's', permissions = { llm = true }, run = function()\n\
        return llm.chat { system = 'You look.', prompt = 'Does it boil?', label = 'Ada', tools = { look = { description = 'd',\n\
        parameters = { type = 'object' }, run = function() return 'steam' end } } }.text end }";
    let env = Env::with(&server).flow("looks", flow);
    env.run(["looks"]).go().exits(0);
    let log = env.nietz(["log"]).go().exits(0).stdout;
    assert!(log.contains("calls look({\"at\":\"the kettle\"})"), "{log}");
    assert!(log.contains("a tool's result: steam"), "{log}");
    let line = log.lines().filter(|line| line.contains(" chat ")).nth(1).expect("two calls");
    let number = line.split_whitespace().next().expect("a number").to_owned();
    let whole = env.nietz(["log", RUN, &number]).go().exits(0).stdout;
    for part in
        ["for Ada", "-- system\nYou look.", "-- user\nDoes it boil?", "calls look(", "-- tool\nsteam", "It boils."]
    {
        assert!(whole.contains(part), "{part} is missing: {whole}");
    }
    assert!(whole.contains(&"Very much so. ".repeat(20).trim_end().to_owned()), "nothing is cut: {whole}");
    assert_eq!(env.nietz(["log", &number]).go().exits(0).stdout, whole, "a number alone is a line of the newest run");
    let lines = env.nietz(["log", RUN, &number, "--json"]).go().exits(0).stdout;
    let kinds: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].clone()).collect();
    assert_eq!(kinds, ["intent", "outcome"]);
    env.nietz(["log", RUN, "999"]).go().exits(2);
}

#[test]
fn two_runs_are_held_against_each_other() {
    let (_server, env) = env();
    three(&env);
    assert_snapshot!(env.nietz(["diff", "one", "three"]).go().exits(0).stdout, @r#"
    - one
    + three
    what they were asked, and with what:
      /params/about:
        - coffee
        - and what it does
        + green tea
    0 effects are the same, 0 of them before the runs went apart
    - line 2 chat model Say something of coffee and what it does
    + line 2 chat model Say something of green tea
    how they ended:
    - /tokens: 1050
    + /tokens: 2100
    - /cost: "$0.0024"
    + /cost: "$0.0048"
    what came out:
    - /text: "It wakes."
    + /text: "It calms."
    "#);
    let same = env.nietz(["diff", "one", "one", "--json"]).go().exits(0).stdout;
    let same: Value = serde_json::from_str(&same).expect("JSON");
    assert_eq!((&same["changed"], &same["only"]), (&serde_json::json!([]), &serde_json::json!([[], []])));
    assert_eq!((&same["head"], &same["result"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[test]
fn runs_are_found_by_tags_of_the_users_own_which_stand_in_no_journal() {
    let (_server, env) = env();
    three(&env);
    let tag = |words: &[&str], code: i32| env.nietz(["runs", "tag"].iter().chain(words).copied()).go().exits(code);
    let before = std::fs::read(env.path(".nietz/runs/one/journal.jsonl")).expect("a journal");
    assert_eq!(tag(&["one", "good", "release-7"], 0).stdout, "one: good, release-7\n");
    assert_eq!(tag(&["three", "good"], 0).stdout, "three: good\n");
    assert_eq!(names(&env, &["--tag", "good"]), ["one", "three"]);
    assert_eq!(names(&env, &["--tag", "release-7"]), ["one"]);
    assert!(list(&env, &["--tag", "bad"]).contains("no run here is like that"));
    assert!(list(&env, &["--tag", "release-7"]).contains("[good] [release-7] coffee"));
    assert!(list(&env, &["--tag", "good", "--json"]).contains(r#""tags":["good","release-7"]"#));
    assert_eq!(tag(&["one", "--remove", "good"], 0).stdout, "one: release-7\n");
    assert_eq!(tag(&["two"], 0).stdout, "two: no tags\n");
    for (words, why) in [
        (&["one", "two words"][..], "`two words` is no tag"),
        (&["one", ""], "is no tag"),
        (&["one", "\u{202e}x"], "is no tag"),
        (&["nobody", "good"], "nobody"),
        (&["one", "--remove", "good"], "has no tag `good`"),
    ] {
        assert!(tag(words, 2).stderr.contains(why), "{words:?}");
    }
    assert_eq!(std::fs::read(env.path(".nietz/runs/one/journal.jsonl")).expect("a journal"), before);
    // They go with their run: another one of its name has none.
    env.nietz(["runs", "prune", "one", "--yes"]).go().exits(0);
    begin(&env, "one", "2026-01-10T08:00:00Z", &["milk"]);
    assert_eq!(tag(&["one"], 0).stdout, "one: no tags\n");
}
