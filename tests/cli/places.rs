//! The promise: `-C FOLDER` means the same wherever it stands on the line, for each verb.

use crate::support::env::Env;

const FLOW: &str = r#"
return require("@nietz").flow {
  name = "greet", summary = "Greets",
  params = { who = { type = "string", positional = true, default = "you" }, loud = { type = "boolean", default = false } },
  commands = { twice = { summary = "Greets twice", params = { who = { type = "string", positional = true, required = true } },
    run = function(ctx) return ctx.params.who .. ctx.params.who end } },
  run = function(ctx) return ctx.params.who .. (if ctx.params.loud then "!" else "") end,
}
"#;

#[test]
fn a_flow_is_found_in_the_folder_that_is_named_before_or_behind_it() {
    let env = Env::new().file("elsewhere/flows/greet.lua", FLOW);
    let lines: [(&[&str], &str); 12] = [
        (&["-C", "elsewhere", "run", "greet", "--json"], "you"),
        (&["run", "-C", "elsewhere", "greet", "--json"], "you"),
        (&["run", "--json", "-C", "elsewhere", "greet", "me"], "me"),
        (&["run", "greet", "-C", "elsewhere", "--json"], "you"),
        (&["run", "greet", "me", "--loud", "--json", "-C", "elsewhere"], "me!"),
        (&["run", "greet", "--json", "--workspace", "elsewhere", "me"], "me"),
        (&["run", "greet", "--json", "--workspace=elsewhere"], "you"),
        (&["run", "greet", "--json", "-Celsewhere", "me"], "me"),
        (&["run", "--json", "flows/greet.lua", "-C=elsewhere"], "you"),
        (&["run", "greet", "twice", "me", "--json", "-C", "elsewhere"], "meme"),
        (&["-C", "nowhere-at-all", "run", "greet", "--json", "-C", "elsewhere"], "you"),
        // Behind `--` stand words of the flow alone.
        (&["run", "greet", "--json", "-C", "elsewhere", "--", "-C"], "-C"),
    ];
    for (line, result) in lines {
        let ended = env.nietz(line.iter().copied()).go();
        assert_eq!(ended.result(), result, "{line:?}");
        // A command that changed nothing leaves no run.
        if result != "meme" {
            std::fs::remove_dir_all(env.path("elsewhere/.nietz")).expect("the run is in the folder that was named");
        }
    }
    let help = env.nietz(["run", "greet", "--help", "-C", "elsewhere"]).go().exits(0);
    assert!(help.stdout.contains("--loud") && help.stdout.contains("-C, --workspace <FOLDER>"), "{}", help.stdout);
    for wrong in [&["run", "greet", "-C"][..], &["run", "greet", "-C", "nowhere"], &["run", "-C"]] {
        let ended = env.nietz(wrong.iter().copied()).go().exits(2);
        assert!(!ended.stderr.is_empty(), "{wrong:?}");
    }
    assert!(!env.path(".nietz").exists());
}

#[test]
fn every_verb_takes_it_before_and_behind() {
    let verbs: [&[&str]; 17] = [
        &["runs"],
        &["log", "r1"],
        &["resume", "r1"],
        &["why", "r1", "2"],
        &["check"],
        &["test", "--from-run", "r1"],
        &["test"],
        &["flows"],
        &["personas"],
        &["quotes"],
        &["models"],
        &["types"],
        &["new", "flow", "another"],
        &["new", "pack", "retro"],
        &["pack", "add", "retro", "--yes"],
        &["pack", "list"],
        &["fork", "r1", "--set", "who=them"],
    ];
    let seen = |front: bool| {
        let env = Env::new().file("elsewhere/flows/greet.lua", FLOW);
        env.nietz(["run", "greet", "-C", "elsewhere"]).go().exits(0);
        let mut told = Vec::new();
        for verb in verbs {
            let place = ["-C", "elsewhere"];
            let (before, behind) = if front { (&place[..], &[][..]) } else { (&[][..], &place[..]) };
            let call = env.nietz(before.iter().chain(verb).chain(behind).copied()).var("NIETZ_RUN", "r2");
            let ended = call.go();
            let lines: Vec<String> =
                env.normal(&format!("{}{}", ended.stdout, ended.stderr)).lines().map(str::to_owned).collect();
            assert!(ended.code != Some(2) || verb[0] == "why", "{verb:?}: {lines:#?}");
            // How long it took differs.
            told.push((verb, ended.code, lines.into_iter().filter(|line| !line.contains("ms")).collect::<Vec<_>>()));
        }
        assert!(
            !env.path(".nietz").exists() && !env.path("nietz.lock").exists(),
            "all of it is in the folder that was named"
        );
        told
    };
    assert_eq!(seen(true), seen(false));
}

#[test]
fn a_recording_s_arguments_name_no_folder() {
    let env = Env::new().flow("greet", FLOW);
    let ended = env.nietz(["test", "--record", "greet", "--", "me", "-C", "elsewhere"]).go().exits(2);
    assert!(ended.stderr.contains("put it before the `--`"), "{}", ended.stderr);
}
