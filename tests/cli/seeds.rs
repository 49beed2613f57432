//! The promise: a seed gives one run the same chance each time, and another run its own: what they make does not collide.

use serde_json::Value;

use crate::support::env::{Env, RUN};

const DRAWS: &str = r#"
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local random = require("@nietz/random")
local drawn = documents.collection("drawn")
return nietz.flow {
	name = "draws", summary = "Draws an id and a number",
	collections = { drawn = { path = "drawn/{id}.json", format = "json", keys = { id = "/id" },
		schema = { type = "object" } } },
	run = function()
		local doc = { id = random.uuid(), number = random.integer(1, 1000000), stock = math.random(1000000) }
		drawn:save(doc)
		return doc
	end,
}
"#;

fn draw(env: &Env, run: &str) -> Value {
    env.run(["draws"]).var("NIETZ_RUN", run).go().result()
}

#[test]
fn two_runs_of_one_seed_work_in_one_folder() {
    let env = Env::new().flow("draws", DRAWS);
    let (first, second) = (draw(&env, RUN), draw(&env, "r2"));
    for part in ["id", "number", "stock"] {
        assert_ne!(first[part], second[part], "{part}");
    }
    assert_eq!(std::fs::read_dir(env.path("drawn")).expect("it is there").count(), 2);
    // The same run elsewhere draws the same.
    assert_eq!(draw(&Env::new().flow("draws", DRAWS), RUN), first);
}

#[test]
fn a_run_draws_the_same_wherever_it_was_killed_and_in_its_test() {
    let first = draw(&Env::new().flow("draws", DRAWS), RUN);
    for line in 1..=6 {
        let env = Env::new().flow("draws", DRAWS);
        let killed = env.run(["draws"]).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}");
        assert_eq!(env.resume().go().result(), first, "killed after line {line}");
        env.nietz(["test", "--from-run", RUN]).go().exits(0);
        env.nietz(["test"]).go().exits(0);
        // Recorded anew it is the same run.
        env.write("flows/draws.lua", DRAWS.replace("drawn:save(doc)", "doc.more = 1 drawn:save(doc)"));
        env.nietz(["test", "--record"]).go().exits(0);
        let cassette = env.read("tests/cassettes/draws/run.jsonl");
        assert!(cassette.contains(first["id"].as_str().expect("a text")), "{cassette}");
    }
}
