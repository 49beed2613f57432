//! The promise of params and settings: what is declared of a value is shown, and a value that is none is refused before a run
//! begins.

use crate::support::env::Env;

const FLOW: &str = r#"return require("@nietz").flow {
  name = "weeks", summary = "Weeks",
  params = {
    week = { type = "string", pattern = "^\\d{4}-W\\d{2}$", pattern_means = "a week such as 2026-W47", help = "Which" },
    tags = { type = "string", many = true, pattern = "^[a-z]+$" },
    rounds = { type = "integer", minimum = 1, maximum = 5 },
    share = { type = "number", min = 0.5 },
    tone = { type = "string", choices = { "dry", "warm" } },
  },
  settings = { day = { type = "string", pattern = "^(mon|tue)$", default = "mon" }, most = { type = "integer", default = 3, maximum = 9 } },
  run = function(ctx) return { ctx.params.week or "none", ctx.settings.day } end,
}"#;

#[test]
fn a_value_that_is_none_is_refused_before_a_run_begins() {
    let env = Env::new().flow("weeks", FLOW).file("week.txt", "2026-W47\n").file("wrong.txt", "last week\n");
    for (given, said) in [
        (["--week", "2026-47"], "must be a week such as 2026-W47"),
        (["--week", "@wrong.txt"], "must be a week such as 2026-W47"),
        (["--tags", "Big"], "must match the pattern `^[a-z]+$`"),
        (["--rounds", "6"], "must be at most 5"),
        (["--rounds", "0"], "must be at least 1"),
        (["--share", "0.1"], "must be at least 0.5"),
        (["--tone", "loud"], "dry, warm"),
    ] {
        let refused = env.run(["weeks"]).args(given).go().exits(2);
        assert!(format!("{}{}", refused.stdout, refused.stderr).contains(said), "{given:?}: {refused:?}");
        assert!(!env.path(".nietz/runs").exists(), "{given:?} left a run");
    }
    for given in [["--week", "2026-W47"], ["--week", "@week.txt"]] {
        let result =
            env.run(["weeks", "--rounds", "5", "--tags", "a", "--tags", "b"]).args(given).var("NIETZ_RUN", "").go();
        assert_eq!(result.result(), serde_json::json!(["2026-W47", "mon"]), "{given:?}");
    }
}

#[test]
fn what_is_declared_stands_in_the_help_and_a_setting_is_held_to_it() {
    let env = Env::new().flow("weeks", FLOW);
    let help = env.nietz(["run", "weeks", "--help"]).go().exits(0).stdout;
    for shown in ["Which [a week such as 2026-W47]", "[pattern: ^[a-z]+$]", "[1 to 5]", "[at least 0.5]", "dry, warm"] {
        assert!(help.contains(shown), "{shown}: {help}");
    }
    for (setting, said) in [("day: wed", "must match the pattern"), ("most: 10", "must be at most 9")] {
        let env = Env::new().flow("weeks", FLOW).file("nietz.yaml", format!("flows: {{ weeks: {{ {setting} }} }}\n"));
        let refused = env.run(["weeks"]).go();
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(refused.code != Some(0) && told.contains(said) && told.contains("nietz.yaml"), "{refused:?}");
    }
}

#[test]
fn a_declaration_that_is_wrong_is_told_when_the_flow_is_loaded() {
    for (param, said) in [
        (r#"{ type = "string", pattern = "(" }"#, "is no regular expression"),
        (r#"{ type = "integer", pattern = "1" }"#, "a pattern is for texts alone"),
        (r#"{ type = "string", pattern = "^a", default = "b" }"#, "its default must match"),
        (r#"{ type = "integer", minimum = 5, maximum = 1 }"#, "above its max"),
    ] {
        let flow = format!(
            "return require('@nietz').flow {{ name = 'wrong', summary = 'Wrong', params = {{ p = {param} }}, run = function() end }}"
        );
        let env = Env::new().flow("wrong", &flow);
        let told = env.nietz(["check", "flows/wrong.lua"]).go().exits(4);
        assert!(format!("{}{}", told.stdout, told.stderr).contains(said), "{told:?}");
    }
}
