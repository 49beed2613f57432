//! What two people found who played sessions, one as the model from the prompts alone, one as its user: each line has a name, a hint
//! misleads nobody, and nothing that is needed is cut.

use serde_json::{Value, json};

use super::desk::{Desk, For, PROBLEM, all_of, response, said, says};
use crate::support::git;
use crate::support::model_server::Request;

const FLOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");

/// A failing test as Python tells it: it names the test, and not where the fault is.
const TRACE: &str = "Traceback (most recent call last):\n  File \"tests/test_shop.py\", line 6, in test_total\n    \
                     self.assertEqual(total([1, 2]), 3)\nAssertionError: 2 != 3\n";

/// A desk whose model reads responses so: by a part of the response, what it says of it.
fn reading(script: Vec<(&'static str, Value)>) -> Desk {
    Desk::with(move |what, request| {
        let heard = response(request);
        (what == For::Tags).then(|| {
            let found = script.iter().find(|(part, _)| heard.contains(part));
            found.map_or_else(|| json!({"tags": []}), |(_, found)| found.clone()).to_string()
        })
    })
}

fn believes(quotes: &[&str]) -> Value {
    let entries: Vec<Value> = quotes.iter().map(|quote| json!({"what": "believed", "quote": quote})).collect();
    json!({"tags": [], "entries": entries})
}

/// Where two texts begin alike.
fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let end = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    &one[..(0..=end).rev().find(|end| one.is_char_boundary(*end)).unwrap_or_default()]
}

/// The project of `TRACE`: the test imports `shop.prices`, which imports a third file.
fn shop() -> Desk {
    Desk::new()
        .file(
            "tests/test_shop.py",
            "import unittest\nfrom shop.prices import total\n\nclass Test(unittest.TestCase):\n    def test_total(self):\n        \
             self.assertEqual(total([1, 2]), 3)\n",
        )
        .file("shop/prices.py", "from shop.rates import RATE\n\ndef total(prices):\n    return sum(prices[1:]) * RATE\n")
        .file("shop/rates.py", "RATE = 1\n")
        .file("shop/other.py", "unrelated = True\n")
}

fn piped(desk: &Desk, text: &str, arguments: &[&str]) {
    let call = desk.env.nietz(["run", "--seed", "1", "--model", "openai/test", FLOW]).args(arguments.iter().copied());
    call.stdin(text).go().exits(7);
}

#[test]
fn each_block_has_a_name_and_the_one_who_asks_and_the_one_who_judges_begin_with_the_same() {
    let desk = shop().file("server.log", "boot\nstale key\n").file(".gitignore", ".nietzschian/\n");
    git::init(&desk.env.workspace());
    let arguments =
        ["it is wrong, see shop/other.py and @server.log", "--run", "echo a; exit 2", "--verify", "echo b; exit 1"];
    let ended = desk.talk(arguments, &["exit", ""]).exits(0);
    says(&ended, &["which questions name `run`:", "which questions name `check`:"]);
    let (question, verdict) = (desk.asked(For::Question)[0].system(), desk.asked(For::Verdict)[0].system());
    insta::assert_snapshot!(common(&question, &verdict).trim_end(), @"
    Shown by the developer. A line is named as `run:1`.

    --- run: what `echo a; exit 2` printed, exit code 2
        1  a

    --- check: what `echo b; exit 1` printed, exit code 1
        1  b

    --- server.log
        1  boot
        2  stale key

    --- shop/other.py
        1  unrelated = True
    ");
    let piped_one = shop();
    piped(&piped_one, TRACE, &["why?"]);
    let shown = all_of(&piped_one.asked(For::Question)[0]);
    assert!(shown.contains("--- traceback: what came by a pipe\n    1  Traceback"), "{shown}");
    assert_eq!(piped_one.saved()["nietz"]["evidence"][0]["block"], "traceback");
}

#[test]
fn two_outputs_of_one_command_have_two_names() {
    let desk = Desk::new().file(".gitignore", ".nietzschian/\n.count\n");
    git::init(&desk.env.workspace());
    desk.talk([PROBLEM, "--run", "date +%N; exit 1"], &["/again", "hm", "exit", ""]).exits(0);
    let second = all_of(&desk.asked(For::Question)[1]);
    assert!(second.contains("--- run: what") && second.contains("--- run-2: what"), "{second}");
}

/// The names of the members that a request's schema has.
fn members(request: &Request) -> Vec<String> {
    let schema = request.schema();
    let mut names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

#[test]
fn the_first_reading_is_asked_for_nothing_that_refers_to_what_is_not_there_yet() {
    let desk = reading(vec![("new", believes(&["the cache is new"]))]);
    desk.session(&["the cache is new", "hm", "exit", ""]).exits(0);
    let asked = desk.asked(For::Tags);
    assert_eq!(members(&asked[0]), ["entries", "tags"]);
    let first = asked[0].schema().to_string() + &asked[0].prompt();
    assert!(!["rests_on", "moved", "apart"].iter().any(|word| first.contains(word)), "{first}");
    assert_eq!(members(&asked[1]), ["apart", "entries", "moved", "tags"]);
    assert!(asked[1].schema().to_string().contains("rests_on"));
}

/// The three alarms that a strong verifier was misled by, and one that was none.
#[test]
fn a_hint_to_the_verifier_is_a_question_and_none_takes_up_the_developers_own_words() {
    let hints = |problem: &str, answer: &str, reply: &'static str| {
        let desk = Desk::with(move |what, request| {
            let second = request.body["messages"].as_array().map_or(0, Vec::len) > 2;
            (what == For::Question && second).then(|| reply.to_owned())
        })
        .file("tests/test_ttl.py", "def test_prices_expire_after_one_hour():\n    assert expires(cache) == 3600\n");
        desk.talk([problem], &[answer, "exit", ""]).exits(0);
        let prompt = desk.asked(For::Verdict)[1].prompt();
        assert!(prompt.contains(reply), "{prompt}");
        prompt.split("Questions to check.").nth(1).unwrap_or_default().trim().to_owned()
    };
    let concept = "A write-through cache stores each value in both places. Which of the two does your deploy touch?";
    assert_eq!(hints("stale prices, see tests/test_ttl.py", "what is a write-through cache?", concept), "");
    let quoted = "Your test says that prices expire after one hour. What did the clock say?";
    assert_eq!(hints("stale prices, see tests/test_ttl.py", "it fails", quoted), "");
    let blame = "You blame the TTL. What have you seen of it?";
    assert_eq!(hints(PROBLEM, "it must be the TTL", blame), "");
    let stated = "The deploy never clears the entry. What did you see there?";
    insta::assert_snapshot!(hints(PROBLEM, "hm", stated), @r#"
    Patterns raised them, which understand nothing; to most of them the answer is no:
    - "The deploy never clears the entry.": is it so that it states how the developer's code or system behaves, beyond what they have said and shown?
    "#);
}

#[test]
fn a_belief_is_kept_without_its_wrapper_and_a_question_is_none() {
    let desk = reading(vec![
        ("cache is new", believes(&["I think that the cache is new", "maybe the TTL should be per currency"])),
        ("je crois", believes(&["je crois que le cache est vidé"])),
        ("in the log", believes(&["I believe in the log"])),
    ]);
    let lines = [
        "I think that the cache is new. Hm, maybe the TTL should be per currency?",
        "je crois que le cache est vidé",
        "I believe in the log",
        "exit",
        "",
    ];
    desk.session(&lines).exits(0);
    let ledger = desk.saved()["nietz"]["ledger"].clone();
    let quotes: Vec<&Value> = ledger["believed"].as_array().expect("a list").iter().map(|one| &one["quote"]).collect();
    assert_eq!(quotes, ["the cache is new", "le cache est vidé", "I believe in the log"]);
    assert_eq!(ledger["dropped"], 0, "a question was said, and is no belief");
    let asked = desk.asked(For::Question);
    assert!(asked[2].prompt().contains("Not checked: “the cache is new”."), "{}", asked[2].prompt());
}

#[test]
fn a_note_names_no_belief_that_the_same_answer_may_settle() {
    let desk = reading(vec![("I think", believes(&["the deploy empties the cache", "the replica lags behind"]))]);
    let lines = [
        "I think the deploy empties the cache, and the replica lags behind",
        "the cache is emptied by each deploy, the log says so",
        "hm",
        "well",
        "exit",
        "",
    ];
    desk.session(&lines).exits(0);
    let notes: Vec<String> = desk
        .asked(For::Question)
        .iter()
        .map(|asked| asked.prompt().lines().find(|line| line.contains("Not checked")).unwrap_or("-").to_owned())
        .collect();
    insta::assert_snapshot!(notes.join("\n"), @"
    -
    -
    [Not checked: “the replica lags behind”. Unless just settled, ask what they would see if it were false.]
    [Not checked: “the deploy empties the cache”. Unless just settled, ask what they would see if it were false.]
    [Not checked: “the replica lags behind”. Unless just settled, ask what they would see if it were false.]
    ");
}

#[test]
fn of_a_failure_the_files_are_read_that_its_test_imports_and_no_more() {
    let desk = shop();
    piped(&desk, TRACE, &["why?"]);
    assert_eq!(desk.saved()["codeFiles"], json!(["tests/test_shop.py", "shop/prices.py"]));
    assert!(all_of(&desk.asked(For::Question)[0]).contains("return sum(prices[1:]) * RATE"));
    // A trace that was typed is one, too; a file that is named in passing brings in nothing else.
    let problem = format!("it fails:\n{TRACE}");
    let typed_one = shop();
    typed_one.talk([problem.as_str()], &["exit", ""]).exits(0);
    assert_eq!(typed_one.saved()["codeFiles"], json!(["tests/test_shop.py", "shop/prices.py"]));
    let plain = shop();
    plain.talk(["see tests/test_shop.py:6"], &["exit", ""]).exits(0);
    assert_eq!(plain.saved()["codeFiles"], json!(["tests/test_shop.py"]));
    // However much a file imports, few files come in.
    let many: String = (1..=9).map(|number| format!("import part{number}\n")).collect();
    let mut large = Desk::new().file("tests/test_shop.py", &format!("{many}def test_total(): pass\n"));
    for number in 1..=9 {
        large = large.file(&format!("tests/part{number}.py"), "x = 1\n");
    }
    piped(&large, TRACE, &["why?"]);
    assert_eq!(large.saved()["codeFiles"].as_array().map(Vec::len), Some(1 + 3));
}

#[test]
fn what_a_test_imports_is_found_in_other_languages() {
    let project = |files: &[(&str, &str)], output: &str| {
        let mut desk = Desk::new();
        for (path, text) in files {
            desk = desk.file(path, text);
        }
        piped(&desk, output, &["why?"]);
        desk.saved()["codeFiles"].clone()
    };
    let read = project(
        &[
            ("test/cart.test.js", "const fs = require('fs');\nimport { total } from '../src/cart.js';\n"),
            ("src/cart.js", "export const total = 1;\n"),
        ],
        "not ok 1 - totals\n    at Object.<anonymous> (test/cart.test.js:4:10)\n",
    );
    assert_eq!(read, json!(["test/cart.test.js", "src/cart.js"]));
    let read = project(
        &[("cart/cart_test.go", "package cart\n\nimport \"testing\"\n"), ("cart/cart.go", "package cart\n")],
        "--- FAIL: TestTotal (0.00s)\n    cart/cart_test.go:7: got 2, want 3\n",
    );
    assert_eq!(read, json!(["cart/cart_test.go", "cart/cart.go"]));
    let read = project(
        &[("tests/cart.rs", "use shop::cart;\n"), ("src/cart.rs", "pub fn total() {}\n")],
        "thread 'totals' panicked at tests/cart.rs:4:5:\nassertion failed\n",
    );
    assert_eq!(read, json!(["tests/cart.rs", "src/cart.rs"]));
}

#[test]
fn a_recap_begins_with_the_problem_and_the_open_question_and_cuts_nothing() {
    let desk = Desk::new();
    let long = "the log has a line about the key, and it says noon; ".repeat(12) + "and that is the end of it";
    assert_eq!(desk.talk([PROBLEM], &[long.as_str(), "it is written once"]).code, Some(7));
    let resumed = desk.env.resume().stdin("exit\n\n").go().exits(0);
    let first = resumed.of_type("said")[0]["markdown"].as_str().expect("a text").to_owned();
    let place = |part: &str| first.find(part).unwrap_or_else(|| panic!("{part:?} is missing in\n{first}"));
    assert!(place(PROBLEM) < place("[Turn 3]") && place("[Turn 3]") < place("and that is the end of it"), "{first}");
    // As people see it, nothing stands before the recap.
    let seen = Desk::new();
    let call = || seen.env.nietz(["run", "--model", "openai/test", FLOW, PROBLEM, "--answers", "-"]);
    call().stdin("the key is old\n").go().exits(7);
    let run = seen.env.nietz(["runs", "--json"]).go().stdout;
    let run: Value = serde_json::from_str(run.lines().next().expect("a run")).expect("it is JSON");
    let name = run["run"].as_str().or(run["name"].as_str()).expect("it has a name").to_owned();
    let ended = seen.env.nietz(["resume", &name, "--answers", "-"]).stdin("exit\n\n").go().exits(0);
    assert!(
        ended.stdout.trim_start().starts_with("**The problem:**") && !ended.stdout.contains("as before"),
        "{ended:?}"
    );
}

#[test]
fn a_hint_uses_nothing_that_was_ruled_out() {
    let ruled_out = json!({"tags": [], "entries": [{"what": "ruled_out", "quote": "the TTL is not per currency"}]});
    let desk = reading(vec![("is not per", ruled_out), ("per currency", believes(&["the TTL is set per currency"]))]);
    let lines = ["the TTL is set per currency", "I looked: the TTL is not per currency", "/hint", "/hint", "exit", ""];
    let ended = desk.session(&lines).exits(0);
    let told: Vec<String> = said(&ended).lines().filter(|line| line.starts_with("Hint:")).map(str::to_owned).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(!told.join("").contains("currency"), "{told:?}");
}

#[test]
fn a_hint_that_comes_too_early_says_how_many_answers_are_missing() {
    let ended = Desk::new().session(&["/hint", "a", "/hint", "exit", ""]).exits(0);
    says(&ended, &["give 2 more answers first", "give one more answer first"]);
}

#[test]
fn help_tells_how_to_show_a_file_and_has_the_words_of_one_language() {
    let desk = Desk::new().file("notes.txt", "one\ntwo\n");
    let help = |lang: &str, run: &str| {
        let call = desk.env.nietz(["run", "--model", "openai/test", FLOW, PROBLEM, "--answers", "-", "--lang", lang]);
        call.var("NIETZ_RUN", run).stdin("/help\nexit\n\n").go().exits(0).stdout
    };
    let english = help("en", "r1");
    assert!(english.contains("/attach FILE") && english.contains("@FILE"), "{english}");
    assert!(!english.contains("trouvé") && !english.contains("indice"), "{english}");
    let french = help("fr", "r2");
    assert!(french.contains("trouvé") && french.contains("@FICHIER"), "{french}");
    // The command shows it, and costs nothing by itself.
    let shown = Desk::new().file("notes.txt", "one\ntwo\n");
    let ended = shown.session(&["/attach notes.txt:2-2", "/attach gone.txt", "hm", "exit", ""]).exits(0);
    says(&ended, &["Evidence: `notes.txt`, lines 2 to 2.", "There is no file `gone.txt`."]);
    assert_eq!(shown.asked(For::Question).len(), 2);
    assert!(all_of(&shown.asked(For::Question)[1]).contains("    2  two"));
}
