//! The promise: what files, journals and locks are called and hold reaches no terminal raw, and looks like no line of
//! nietz's own, whatever lists it; and no verb that lists breaks down.
//!
//! Folders are drawn for a second, or for as many as `NIETZ_TEST_SECONDS` says, but no fewer than three; `NIETZ_TEST_SEED`
//! says which is the first.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lua::exact::Chance;
use crate::support::env::{Env, RUN};
use crate::support::journal::{Journal, sealed};
use crate::support::process::Ended;

/// What drives a terminal, hides, or ends a line.
const SIGNS: &[&str] = &[
    "\u{1b}[2J",
    "\u{1b}]0;owned\u{7}",
    "\r",
    "\u{8}\u{8}",
    "\n",
    "\u{9b}31m",
    "\u{85}",
    "\u{200b}",
    "\u{2028}",
    "\u{2029}",
    "\u{202e}",
    "\u{2066}",
    "\u{feff}",
    "\u{e0041}",
    "\u{7f}",
    "\u{61c}",
    "\u{ad}",
    "\u{3164}",
    "\t",
];
/// A line as nietz has them, which nobody else may say.
const FORGED: &str = "error[internal]: FORGED";

const VERBS: &[&[&str]] = &[
    &["runs"],
    &["runs", "--json"],
    &["flows"],
    &["flows", "--json"],
    &["personas"],
    &["personas", "--json"],
    &["quotes"],
    &["quotes", "--json"],
    &["check"],
    &["check", "--json"],
    &["log", RUN],
    &["log", RUN, "--json"],
    &["verify", RUN],
    &["pack", "list"],
    &["pack", "list", "--json"],
    &["pack", "add", "--locked"],
    &["run"],
    &["run", "nope"],
    &["run", "f", "--plan"],
    &["run", "f", "--help"],
    &["test"],
    &["test", "--json"],
    &["models"],
    &["why", RUN, "2"],
    &["resume"],
    &["resume", RUN],
    &["doctor"],
    &["trust", "list"],
    &["verify", RUN, "--json"],
];

#[track_caller]
fn is_safe(what: &str, ended: &Ended) {
    assert!(ended.signal.is_none() && ended.code != Some(101), "{what} broke down: {ended:?}");
    for text in [&ended.stdout, &ended.stderr] {
        let raw = text.chars().find(|c| !matches!(c, '\n' | '\t') && (c.is_control() || is_invisible(*c)));
        assert!(raw.is_none(), "{what} shows U+{:04X} raw: {text:?}", raw.map_or(0, u32::from));
        assert!(!text.lines().any(|line| line.starts_with(FORGED)), "{what} shows a forged line: {text}");
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

fn spoilt(chance: &mut Chance, name: &str) -> String {
    let sign = |chance: &mut Chance| SIGNS[chance.below(SIGNS.len() as u64) as usize];
    let (one, other) = (sign(chance), sign(chance));
    match chance.below(3) {
        0 => format!("{name}{one}{other}x"),
        1 => format!("{name}\n{FORGED}{one}"),
        _ => format!("{one}{name}{other}\n{FORGED}\n"),
    }
}

/// Puts something odd into some of the texts and numbers of a value.
fn spoil(value: &mut Value, chance: &mut Chance) {
    match value {
        Value::String(text) if chance.below(3) == 0 => *text = spoilt(chance, text),
        Value::Number(_) if chance.below(4) == 0 => {
            *value = [json!(0), json!(u64::MAX), json!(253_402_300_800_000_u64), json!(i64::MAX as u64)]
                [chance.below(4) as usize]
                .clone();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, chance)),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| spoil(member, chance)),
        _ => {}
    }
}

/// A folder in which everything that has a name has an odd one.
fn hostile(seed: u64, journal: &Journal) -> Env {
    let mut chance = Chance::new(seed);
    let flow = |name: &str, summary: &str| {
        let text = serde_json::to_string(summary).expect("text");
        format!("return require(\"@nietz\").flow {{ name = {}, summary = {text}, run = function() end }}", json!(name))
    };
    let env = Env::new().flow("f", &flow("f", "plain"));
    let place = |path: String| path.replace('/', "_");
    for folder in ["flows", "personas", "quotes", "tests/cassettes"] {
        let ending = [".lua", ".md", ".yaml", ".jsonl"][chance.below(4) as usize];
        let name = place(spoilt(&mut chance, "odd"));
        env.write(&format!("{folder}/{name}{ending}"), spoilt(&mut chance, "what stands in it"));
    }
    env.write(&format!("flows/{}.lua", place(spoilt(&mut chance, "g"))), flow("g", "plain"));
    env.write("personas/p.md", format!("---\nname: {}\n---\nx\n", json!(spoilt(&mut chance, "Name"))));
    env.write("quotes/q.yaml", format!("- {{ text: a, context: {} }}\n", json!(spoilt(&mut chance, "c"))));
    let mut lines = journal.lines.clone();
    lines.iter_mut().for_each(|line| spoil(&mut line["is"], &mut chance));
    env.write(&format!(".nietz/runs/{RUN}/journal.jsonl"), sealed(&lines));
    env.write(&format!(".nietz/runs/{}/journal.jsonl", place(spoilt(&mut chance, "r"))), sealed(&lines));
    let mut lock = json!({ "version": 1, "packs": { "p": {
        "version": "1.0.0", "source": spoilt(&mut chance, "here"), "commit": "a".repeat(40), "sha256": "b".repeat(64) } } });
    if chance.below(2) == 0 {
        spoil(&mut lock["packs"], &mut chance);
    }
    env.write("nietz.lock", lock.to_string());
    env
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn a_journal() -> Journal {
    let body =
        "local d = require('@nietz/documents') d.collection('c'):save({ k = 'a' }) require('@nietz/ui').say('hi')
        return require('@nietz/clock').now()";
    let flow = format!(
        "return require(\"@nietz\").flow {{ name = \"f\", summary = \"s\", collections = {{ c = {{ path = \"d/{{k}}.yaml\", \
         schema = {{ type = \"object\" }} }} }}, run = function() {body} end }}"
    );
    let env = Env::new().flow("f", &flow);
    env.nietz(["run", "f"]).go().exits(0);
    env.journal()
}

#[test]
fn hostile_folders_are_listed_and_nothing_of_them_reaches_the_terminal_raw() {
    let (first, seconds) = (number("NIETZ_TEST_SEED", 1), number("NIETZ_TEST_SECONDS", 1));
    let journal = a_journal();
    let until = Instant::now() + Duration::from_secs(seconds);
    for seed in (first..).take_while(|seed| *seed < first + 3 || Instant::now() < until) {
        let env = hostile(seed, &journal);
        for verb in VERBS {
            let ended = env.nietz(verb.iter().copied()).go();
            is_safe(&format!("seed {seed}: nietz {}", verb.join(" ")), &ended);
        }
    }
}

#[test]
fn a_time_that_no_calendar_has_is_no_reason_to_break_down() {
    let journal = a_journal();
    for at in [u64::MAX, i64::MAX as u64, 253_402_300_800_000, 8_210_266_876_800_000, 0] {
        let mut lines = journal.lines.clone();
        for line in &mut lines {
            for kind in ["effect", "intent", "outcome"] {
                if line["is"][kind].is_object() {
                    line["is"][kind]["at"] = at.into();
                }
            }
        }
        let env = Env::new().file(".nietz/runs/r1/journal.jsonl", sealed(&lines));
        let ended = env.nietz(["log", RUN]).go().exits(0);
        assert!(ended.stdout.lines().count() > 3, "{at}: {ended:?}");
    }
}

#[test]
fn a_declared_command_forges_no_line_and_hides_nothing() {
    let commands =
        ["true`; in a sandbox\n+ calls models (llm)\nflow other", "gi\u{200b}t", "l\u{2028}s", "e\u{e0041}cho"];
    let listed = commands.map(|command| serde_json::to_string(command).expect("text")).join(", ");
    // Luau reads other escapes than JSON has: the signs stand in the source as they are.
    let flow = format!(
        "return require(\"@nietz\").flow {{ name = \"p\", summary = \"s\", permissions = {{ git = true, exec = {{ {listed} }} }}, \
         run = function() end }}"
    );
    let about = json!({ "name": "p", "version": "1.0.0", "summary": "s", "licence": "MIT", "host_api": 1,
        "permissions": { "p": { "git": true, "exec": commands } } });
    let env = Env::new().file("pack/flows/p.lua", &flow).file("pack/pack.yaml", about.to_string());
    let ended = env.nietz(["pack", "add", "pack"]).stdin("no\n").go().exits(0);
    is_safe("pack add", &ended);
    assert!(ended.stdout.contains("true`; in a sandbox␊+ calls models (llm)␊flow other"), "{}", ended.stdout);
    assert!(ended.stdout.contains("gi�t") && ended.stdout.contains("e�cho"), "{}", ended.stdout);
    // The same is told when a flow of one's own begins.
    let own = Env::new().file("flows/p.lua", &flow);
    git_init(&own);
    is_safe("run", &own.nietz(["run", "p"]).go());
    is_safe("plan", &own.nietz(["run", "p", "--plan"]).go());
}

fn git_init(env: &Env) {
    crate::support::git::init(&env.workspace());
}

#[test]
fn a_declared_command_is_read_to_its_end() {
    for command in
        [format!("git{}; sh", " ".repeat(4000)), "git  status".to_owned(), "x".repeat(201), " git".to_owned()]
    {
        let flow = format!(
            "return require(\"@nietz\").flow {{ name = \"p\", summary = \"s\", permissions = {{ exec = {{ '{command}' }} }}, \
             run = function() end }}"
        );
        let env = Env::new().trusting("").flow("p", &flow);
        for arguments in [&["run", "p"][..], &["check"]] {
            let ended = env.nietz(arguments.iter().copied()).go();
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(ended.code != Some(0) && said.contains("cannot be read at a glance"), "{command}: {ended:?}");
        }
        env.nietz(["trust", "add"]).go().exits(0);
        assert!(!env.nietz(["trust", "list"]).go().exits(0).stdout.contains("exec"), "{command}");
    }
}

#[test]
fn what_a_flow_says_of_itself_begins_no_line_of_its_help() {
    let said = format!("s\\n{FORGED}\\n\\n{FORGED}");
    let flow = format!(
        "return require(\"@nietz\").flow {{ name = \"p\", summary = \"{said}\", params = {{ \
         a = {{ type = \"string\", help = \"{said}\", default = \"{said}\" }}, b = {{ type = \"string\", choices = {{ \"{said}\", \"plain\" }} }} }}, \
         commands = {{ go = {{ summary = \"{said}\", run = function() end }} }}, run = function() end }}"
    );
    let env = Env::new().flow("p", &flow);
    for arguments in
        [&["run", "p", "--help"][..], &["run", "p", "go", "--help"], &["run", "p", "--b", "x"], &["run", "p", "--plan"]]
    {
        let ended = env.nietz(arguments.iter().copied()).go();
        is_safe(&arguments.join(" "), &ended);
        let lines = ended.stdout.lines().chain(ended.stderr.lines());
        assert!(!lines.map(str::trim_start).any(|line| line.starts_with(FORGED)), "{arguments:?}: {ended:?}");
    }
    assert!(env.nietz(["run", "p", "--b", "x"]).go().exits(2).stderr.contains("plain"));
    let odd = flow.replace("go =", "[\"go\\nerror\"] =");
    let ended = env.flow("p", &odd).nietz(["run", "p", "--help"]).go();
    assert!(ended.stderr.contains("is not a valid name for a command"), "{ended:?}");
}

/// What a line that is proposed comes to in a shell: the words of the command.
fn pasted(line: &str) -> Vec<String> {
    let script = format!("nietz() {{ printf '%s\\n' \"$@\"; }}\ngit() {{ printf '%s\\n' \"$@\"; }}\n{line}\n");
    let ended = std::process::Command::new("sh").args(["-c", &script]).output().expect("there is a shell");
    String::from_utf8_lossy(&ended.stdout).lines().map(str::to_owned).collect()
}

/// Returns what stands between two texts.
#[track_caller]
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let from = text.find(start).unwrap_or_else(|| panic!("no `{start}` in {text}"));
    let rest = &text[from..];
    rest[..rest.find(end).unwrap_or(rest.len())].trim_end()
}

#[test]
fn a_line_to_paste_is_one_command_whatever_is_called_how() {
    const ODD: &str = "a';echo PWNED;'\\';echo PWNED;' $(echo PWNED)";
    let server =
        crate::support::model_server::ModelServer::start(|_| crate::support::model_server::Response::text("x"));
    let env = Env::with(&server).file("plain", "");
    let folder = env.path(ODD);
    let below = |path: &str| format!("{ODD}/{path}");
    let flow = |permissions: &str, body: &str| {
        format!(
            "return require('@nietz').flow {{ name = 'p', summary = 's', permissions = {{ {permissions} }}, run = function() {body} end }}"
        )
    };
    let here = |arguments: &[&str]| env.nietz(["-C", ODD].into_iter().chain(arguments.iter().copied())).go();
    let whole = folder.display().to_string();

    env.write(&below("flows/p.lua"), flow("files = true", ""));
    let said = here(&["run", "p"]).exits(5).stderr;
    assert_eq!(
        pasted(between(&said, "nietz trust add", "; for one run")),
        ["trust", "add", &whole, "--allow", "files"]
    );

    env.write(&below("personas/me.md"), "---\nname: me\nmodel: openai/dear\n---\nx\n");
    env.write(&below("flows/p.lua"), flow("llm = true", "require('@nietz/llm').chat { prompt = 'p' }"));
    let said = here(&["run", "p", "--model", "openai/cheap"]).exits(0).stderr;
    assert_eq!(pasted(between(&said, "nietz trust add", "` lets personas")), ["trust", "add", &whole]);

    env.write(&below("personas/me.md"), "---\nname: [\n---\n");
    env.write(&below(&format!("personas/{}.md", ODD.replace('/', "_"))), "---\nname: [\n---\n");
    let said = here(&["personas"]).exits(0).stdout;
    for line in said.lines().filter(|line| line.contains("(invalid:")) {
        let words = pasted(between(line, "nietz check", ") "));
        assert!(words.len() == 2 && words[1].ends_with(".md"), "{words:?} of {line}");
    }

    env.write("flows/p.lua", flow("files = true", &format!("require('@nietz/files').read([[/x/{ODD}/y]])")));
    let said = env.nietz(["run", "p", "--trust"]).var("NIETZ_RUN", "r2").go().exits(5).stderr;
    let line = between(&said, "--allow-read", "\n").to_owned();
    assert_eq!(pasted(&format!("nietz {line}")), ["--allow-read", &format!("/x/{ODD}")]);

    // The folder of a run has a name that is none.
    for name in [RUN.to_owned(), "2026;echo PWNED;".to_owned()] {
        env.write(&format!(".nietz/runs/{name}/journal.jsonl"), sealed(&a_journal().lines));
    }
    for verb in ["resume", "fork", "log", "verify", "why"] {
        let ended = env.nietz([verb, "2026", "2"].into_iter().take(if verb == "why" { 3 } else { 2 })).go().exits(2);
        assert!(
            ended.stderr.contains("is not a valid name for a run") && !ended.stderr.contains("nietz log 2026"),
            "{ended:?}"
        );
    }
}

#[test]
fn variables_that_are_no_text_break_nothing_down() {
    let env =
        Env::new().flow("f", "return require(\"@nietz\").flow { name = \"f\", summary = \"s\", run = function() end }");
    let odd = |name: &str| env.nietz(["flows"]).raw_var(name, OsStr::from_bytes(b"/tmp/\xff"));
    let ended = odd("ODD").go().exits(0);
    assert!(ended.stdout.contains('f'), "{ended:?}");
    odd("TMPDIR").go().exits(0);
    for name in ["HOME", "PATH", "NIETZ_HOME", "XDG_DATA_HOME"] {
        let ended = odd(name).go().exits(1);
        assert!(ended.stderr.contains(&format!("the variable {name} is not UTF-8")), "{ended:?}");
    }
}
