//! The promise: the same flow files, unchanged. Every cassette of the bundled flows plays on the server as it does in files.

use std::path::Path;

use super::hosts::{journal, on, status};
use crate::support::env::Env;
use crate::support::journal::Journal;
use crate::support::postgres;

#[test]
fn all_cassettes_of_the_bundled_flows_play_on_the_server() {
    let Some(server) = postgres::shared() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes");
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        seen += 1;
        let name = entry.path().display().to_string();
        let text = std::fs::read_to_string(entry.path()).expect("it is text");
        let recorded = Journal::read(entry.path());
        let open = &recorded.lines[0]["is"]["open"];
        let (run, flow) = (open["run"].as_str().expect("it has a name"), open["flow"].as_str().expect("it has a flow"));
        let database = server.database();
        // All but its last line: as one that somebody stopped there, it is taken to its end from what is recorded.
        let kept =
            recorded.lines.iter().rposition(|line| line["is"].get("end").is_some()).expect("it was taken to its end");
        let rows: Vec<String> = text.lines().take(kept).map(|line| format!("$line${line}$line$")).collect();
        let summary =
            format!("{{\"flow\": \"{flow}\", \"topic\": \"\", \"started\": \"\", \"calls\": 0, \"usage\": {{}}}}");
        database.session().get(&format!(
            "SELECT nietz.keep(1, '{run}', '{flow}', 'stopped', ARRAY[{}], '{summary}')",
            rows.join(",")
        ));
        let env = on(&database, Env::new());
        let ended = env.nietz(["resume", run, "--json"]).go();
        let end = recorded.lines.iter().rev().find_map(|line| line["is"].get("end")).expect("it was taken to its end");
        // A flow whose answer is no is done, too.
        assert!(matches!(ended.code, Some(0 | 8)), "{name}: {ended:?}");
        assert_eq!(ended.ending()["result"], end["result"], "{name}");
        let after = journal(&database, run);
        assert!(after.lines.starts_with(&recorded.lines[..kept]), "{name}: a line was rewritten");
        assert_eq!(after.of_kind("chat").len(), recorded.of_kind("chat").len(), "{name}: nothing was called");
        assert_eq!(status(&database, run), "done", "{name}");
        server.drop_database(&database);
    }
    assert!(seen >= 17, "{seen} cassettes");
}
