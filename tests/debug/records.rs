//! Past sessions: they are listed, shown and exported, and `nietz check` tells what is odd in their files.

use serde_json::{Value, json};

use super::desk::{Desk, said};
use super::growth::{id, session};

/// Three sessions: one solved with all that ours adds to it, one that was left, one that is open.
fn desk() -> Desk {
    let desk = Desk::new();
    let mut solved = session(0x1a2b, "2026-01-03T10:00:00Z", "solved", 7.0);
    solved["problemDescription"] =
        json!("TypeError in price.py\nTraceback (most recent call last):\n  price.py, line 4");
    solved["codeFiles"] = json!(["price.py"]);
    solved["transcript"][0]["response"] = json!("the log shows\nan old key");
    solved["transcript"][0]["behaviorTags"] = json!(["checked-logs"]);
    solved["transcript"][1]["response"] = json!("the key has no version");
    solved["behaviorTags"] = json!([{"turnNumber": 1, "tag": "checked-logs", "dimension": "evidenceGathering"}]);
    solved["nietz"] = json!({
        "version": 1, "state": "ended", "scoredBy": "model",
        "reflection": {"question": "What did you learn?", "answer": "look at the age of the key"},
        "verification": {"command": "cargo test price", "exit": 0, "holds": true},
    });
    let left = session(0x1a3c, "2026-01-02T10:00:00Z", "abandoned", 4.0);
    let mut open = session(0x77, "2026-01-04T10:00:00Z", "abandoned", 5.0);
    open["nietz"] = json!({"version": 1, "state": "open", "scoredBy": "tags", "voices": ["diogenes"]});
    for (number, document) in [(0x1a2b, solved), (0x1a3c, left), (0x77, open)] {
        desk.env.write(&format!(".nietzschian/sessions/{}.json", id(number)), document.to_string());
    }
    desk
}

fn say(desk: &Desk, arguments: &[&str]) -> String {
    said(&desk.talk(arguments.iter().copied(), &[]).exits(0))
}

#[test]
fn past_sessions_are_listed_and_found_by_what_they_were() {
    let desk = desk();
    insta::assert_snapshot!(say(&desk, &["list"]), @"
    ```
    id        day         outcome    voice      questions  kind       problem
    --------  ----------  ---------  ---------  ---------  ---------  ----------------------------------
    00000077  2026-01-04  open       diogenes   2          Other      it is slow
    00001a2b  2026-01-03  solved     nietzsche  2          TypeError  TypeError in price.py Traceback (…
    00001a3c  2026-01-02  abandoned  nietzsche  2          Other      it is slow
    ```
    ");
    for (filter, ids) in [
        (&["--outcome", "open"][..], &["00000077"][..]),
        (&["--outcome", "abandoned"], &["00001a3c"]),
        (&["--tag", "checked-logs"], &["00001a2b"]),
        (&["--kind", "TypeError"], &["00001a2b"]),
        (&["--voice", "diogenes"], &["00000077"]),
        (&["--voice", "nietzsche", "--since", "2026-01-03", "--until", "2026-01-03"], &["00001a2b"]),
        (&["--tag", "narrowed-scope"], &[]),
    ] {
        let found = desk.talk(["list"].into_iter().chain(filter.iter().copied()), &[]).exits(0).result();
        let found: Vec<&Value> = found["rows"].as_array().expect("rows").iter().map(|row| &row[0]).collect();
        assert_eq!(found, ids, "{filter:?}");
    }
    assert!(say(&desk, &["list", "--format", "csv"]).contains("00001a3c,2026-01-02,abandoned,nietzsche,2,"));
    assert!(say(&desk, &["list", "--format", "json"]).contains("\"kind\": \"TypeError\""));
    assert_eq!(say(&Desk::new(), &["list"]), "There is no such session.");
}

#[test]
fn a_session_is_shown_by_the_beginning_of_its_id_and_whole() {
    let desk = desk();
    insta::assert_snapshot!(say(&desk, &["show", "00001a2"]), @r"
    # TypeError in price.py

    Solved · 2026-01-03 · 2 questions · `00001a2b-0000-4000-8000-000000000000`

    ## Problem

    ```
    TypeError in price.py
    Traceback (most recent call last):
      price.py, line 4
    ```

    ## Evidence

    - `price.py`

    ## Questions and answers

    **1.** Why?

    > the log shows
    > an old key

    Seen in it: checked-logs

    **2.** Why?

    > the key has no version

    ## Verification

    `cargo test price` passes: the fix holds.

    ## What was learnt

    > look at the age of the key

    ## Scores

    - Checks assumptions: 7/10
    - Gathers evidence: 7/10
    - Narrows down: 7/10
    ");
    assert!(say(&desk, &["show"]).contains("Open · 2026-01-04"), "the latest, without an id");
    for (wrong, why) in
        [("00001a", "2 sessions begin with"), ("00001a2c", "did you mean 00001a2b?"), ("zzz", "debug list")]
    {
        let ended = desk.talk(["show", wrong], &[]).exits(2);
        assert!(ended.ending()["failure"].to_string().contains(why), "{wrong}: {ended:?}");
        let told = desk.env.nietz(["run", concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua"), "show", wrong]).go();
        assert!(!told.stderr.contains("-->") && !told.stderr.contains("resume"), "{}", told.stderr);
    }
    assert_eq!(Desk::new().talk(["show"], &[]).code, Some(2));
    assert!(desk.server.requests().is_empty(), "none of them asks a model");
}

#[test]
fn a_session_is_exported_as_an_issue_a_postmortem_notes_or_data() {
    let desk = desk();
    insta::assert_snapshot!(say(&desk, &["export", "00001a2b"]), @r"
    # TypeError in price.py

    ## Problem

    ```
    TypeError in price.py
    Traceback (most recent call last):
      price.py, line 4
    ```

    ## Evidence

    - `price.py`

    ## The cause, in the developer's words

    the key has no version

    ## Verification

    `cargo test price` passes: the fix holds.

    <details><summary>2 questions</summary>

    **1.** Why?

    > the log shows
    > an old key

    **2.** Why?

    > the key has no version

    </details>
    ");
    insta::assert_snapshot!(say(&desk, &["export", "00001a2b", "--format", "postmortem"]), @r"
    # Postmortem: TypeError in price.py

    Solved · 2026-01-03 · 2 questions

    ## What happened

    ```
    TypeError in price.py
    Traceback (most recent call last):
      price.py, line 4
    ```

    ## The cause, in the developer's words

    the key has no version

    ## Evidence

    - `price.py`

    ## Verification

    `cargo test price` passes: the fix holds.

    ## What was learnt

    > look at the age of the key

    <details><summary>2 questions</summary>

    **1.** Why?

    > the log shows
    > an old key

    **2.** Why?

    > the key has no version

    </details>
    ");
    assert_eq!(say(&desk, &["export", "00001a2b", "--format", "notes"]), say(&desk, &["show", "00001a2b"]));
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
    let piped = desk.env.nietz(["run", flow, "export", "00001a2b", "--format", "json"]).go().exits(0);
    let data: Value = serde_json::from_str(&piped.stdout).expect("what a pipe gets is JSON and nothing else");
    assert_eq!(data["id"], id(0x1a2b).as_str());
    let postmortem = say(&desk, &["export", "00001a3c", "--format", "postmortem", "--lang", "fr"]);
    assert!(
        postmortem.contains("Elle n'a pas été trouvée") && postmortem.contains("Abandonné · 2026-01-02"),
        "{postmortem}"
    );
}

#[test]
fn a_misspelt_command_is_no_paid_session() {
    for (word, meant) in
        [("lst", "list"), ("lsit", "list"), ("shwo", "show"), ("exprot", "export"), ("profil", "profile")]
    {
        let desk = Desk::new();
        let ended = desk.talk([word], &[]).exits(2);
        assert!(ended.stderr.contains(&format!("did you mean `{meant}`?")), "{word}: {ended:?}");
        assert!(desk.server.requests().is_empty());
    }
    let desk = Desk::new();
    desk.talk(["list of prices is stale"], &["exit", ""]).exits(0);
    assert_eq!(desk.saved()["problemDescription"], "list of prices is stale");
}

#[test]
fn what_is_odd_in_a_file_and_breaks_no_reader_is_told_by_check() {
    let good = session(1, "2026-01-01T10:00:00Z", "solved", 7.0);
    type Change<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let changes: [Change; 8] = [
        (&|doc| doc["behaviorTags"][0]["dimension"] = json!("rootCauseSpeed"), "counts for evidenceGathering"),
        (&|doc| doc["transcript"][1]["behaviorTags"] = json!(["checked-logs"]), "no tag of the session for turn 2"),
        (&|doc| doc["transcript"][0]["behaviorTags"] = json!([]), "turn 1 has no tag \"guessed-without-evidence\""),
        (
            &|doc| {
                doc["transcript"][0]["turnNumber"] = json!(7);
                doc["transcript"][1]["turnNumber"] = json!(8);
                doc["behaviorTags"][0]["turnNumber"] = json!(7);
            },
            "/transcript/0/turnNumber",
        ),
        (
            &|doc| {
                doc["behaviorTags"][0]["tag"] = json!("made-up");
                doc["transcript"][0]["behaviorTags"] = json!(["made-up"]);
            },
            "\"made-up\" is no dimension's tag in tags.yaml",
        ),
        (
            &|doc| {
                let scores = json!({"rootCauseSpeed": {"turns": [44], "reason": "You narrowed it down."}});
                doc["nietz"] = json!({"version": 1, "state": "ended", "scoredBy": "model", "scores": scores});
            },
            "there is no turn 44",
        ),
        (&|doc| doc["endTimestamp"] = json!("2025-12-31T10:00:00Z"), "/endTimestamp"),
        (&|doc| doc["schemaVersion"] = json!(99), "99 is newer than 1"),
    ];
    for (change, why) in changes {
        let desk = Desk::new();
        let mut document = good.clone();
        document["transcript"][0]["behaviorTags"] = json!(["guessed-without-evidence"]);
        let path = format!(".nietzschian/sessions/{}.json", id(1));
        desk.env.write(&path, document.to_string());
        let plain = desk.env.nietz(["check", &path]).go().exits(0);
        assert!(plain.stdout.contains("valid") && !plain.stdout.contains("note"), "{plain:?}");
        change(&mut document);
        desk.env.write(&path, document.to_string());
        let checked = desk.env.nietz(["check", &path]).go();
        assert_eq!(checked.code, Some(0), "a remark is no fault: {checked:?}");
        assert!(checked.stdout.contains(why), "{why} in {}", checked.stdout);
    }
}

#[test]
fn an_export_names_a_file_once_however_it_was_shown() {
    let desk = Desk::new().file("src/price.py", "price = None\n");
    desk.session(&["@src/price.py has it", "exit", ""]).exits(0);
    let told = say(&desk, &["export"]);
    assert_eq!(told.matches("- `src/price.py`").count() + told.matches("- src/price.py").count(), 1, "{told}");
    assert!(told.contains("price = None"), "and its text: {told}");
}
