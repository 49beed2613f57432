//! A run that can be repeated: models whose replies follow from a seed get theirs from the run's.

use nietz::lua::limits::FlowLimits;
use serde_json::{Value, json};

use crate::lua::bench::Bench;

#[test]
fn a_seeded_model_draws_from_the_seed_of_the_run_and_other_models_get_none() {
    let run = || -> Vec<Value> {
        let bench = Bench::new();
        let flow = r#"
            local nietz, llm = require("@nietz"), require("@nietz/llm")
            local function seed(model, prompt)
                return llm.chat({ model = model, prompt = prompt }).text
            end
            return nietz.flow { name = "f", summary = "f", permissions = { llm = true }, run = function()
                return {
                    seed("seeded/echo", "once"), seed("seeded/echo", "once"), seed("seeded/echo", "twice"),
                    seed("fake/echo", "once"),
                }
            end }"#;
        bench.file("flows/f.lua", flow);
        let (result, _) = bench.run("flows/f.lua", json!({}), FlowLimits::default());
        result.expect("it runs").as_array().expect("a list").clone()
    };
    let seeds = run();
    assert_eq!(seeds, run(), "the same seed, the same replies");
    assert!(seeds[0] != seeds[1] && seeds[0] != seeds[2], "each call has its own chance: {seeds:?}");
    assert_eq!(seeds[3], "None", "a provider may refuse a seed");
}
