//! The promise: the run that began last need not be looked up.

use crate::support::env::Env;

const FLOW: &str = r#"
local nietz = require("@nietz")
return nietz.flow { name = "tea", summary = "s", params = { kind = { type = "string", positional = true } },
  run = function(ctx) return ctx.params.kind end }
"#;

#[test]
fn latest_is_the_run_that_began_last_whatever_it_has_come_to() {
    let env = Env::new().flow("tea", FLOW);
    let none = env.nietz(["log", "latest"]).go().exits(2).stderr;
    assert!(none.contains("there is no run of yours here") && none.contains("hint: "), "{none}");
    for (run, clock, kind) in [("r9", "2026-01-09T10:30:00Z", "green"), ("r1", "2026-01-09T10:31:00Z", "black")] {
        env.run(["tea", kind]).var("NIETZ_RUN", run).var("NIETZ_CLOCK", clock).go().exits(0);
    }
    assert!(env.nietz(["log", "latest"]).go().exits(0).stdout.contains("black"));
    env.nietz(["test", "--from-run", "latest"]).go().exits(0);
    assert!(env.read("tests/cassettes/tea/run.jsonl").contains("black"));
    assert!(env.nietz(["report", "latest", "--json"]).go().exits(0).stdout.contains("black"));
    assert!(env.nietz(["verify", "latest"]).go().exits(0).stderr.is_empty());
    env.nietz(["runs", "tag", "latest", "good"]).go().exits(0);
    assert!(env.nietz(["runs", "--tag", "good"]).go().exits(0).stdout.contains("r1"));
    // What somebody else began is not meant.
    env.write(".nietz/runs/zz/journal.jsonl", env.read(".nietz/runs/r1/journal.jsonl"));
    assert!(env.nietz(["log", "latest"]).go().exits(0).stdout.contains("black"));
    // A run of that very name is.
    env.run(["tea", "white"]).var("NIETZ_RUN", "latest").var("NIETZ_CLOCK", "2026-01-08T10:31:00Z").go().exits(0);
    assert!(env.nietz(["log", "latest"]).go().exits(0).stdout.contains("white"));
}
