//! The promise: whatever stands where nietz looks for a file of its own, it neither waits for it, nor reads it without end,
//! nor follows it out of its folder: it says what stands there.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const SHORT: &str = include_str!("../support/flows/short.lua");

/// Something that is no plain file.
#[derive(Clone, Copy, Debug)]
enum Odd {
    Pipe,
    Zero,
    Huge,
    Outside,
}

fn put(odd: Odd, path: &Path, outside: &Path) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    let _ = std::fs::remove_file(path);
    match odd {
        Odd::Pipe => assert!(Command::new("mkfifo").arg(path).status().expect("it is there").success()),
        Odd::Zero => symlink("/dev/zero", path).expect("it can be made"),
        Odd::Huge => std::fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("it can be made"),
        Odd::Outside => {
            std::fs::write(outside, "secret: outside\n").expect("it can be written");
            symlink(outside, path).expect("it can be made");
        }
    }
}

/// A call that would take all memory, or all time, is ended and fails the test.
#[track_caller]
fn said(env: &Env, arguments: &[&str]) -> (Option<i32>, String) {
    let ended = env.nietz(arguments.iter().copied()).by("prlimit", ["--data=2000000000", "--cpu=20"]).go();
    assert_eq!(ended.signal, None, "{arguments:?}: {ended:?}");
    assert_ne!(ended.code, Some(101), "{ended:?}");
    (ended.code, format!("{}{}", ended.stdout, ended.stderr))
}

#[test]
fn what_is_no_plain_small_file_is_refused_by_its_name_wherever_nietz_reads() {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let all = [Odd::Pipe, Odd::Zero, Odd::Huge, Odd::Outside];
    let named = [Odd::Pipe, Odd::Zero, Odd::Huge];
    type Place = fn(&Env) -> PathBuf;
    let cases: [(&str, Place, &[&str], &[Odd]); 9] = [
        ("nietz.yaml", |env| env.path("nietz.yaml"), &["models"], &all),
        ("nietz.lock", |env| env.path("nietz.lock"), &["pack", "list"], &all),
        ("config.yaml", |env| env.home().join("config.yaml"), &["models"], &named),
        ("answers.yaml", |env| env.path("answers.yaml"), &["run", "short", "--answers", "answers.yaml"], &named),
        ("checked.yaml", |env| env.path("checked.yaml"), &["check", "checked.yaml"], &named),
        ("short.lua", |env| env.path("flows/short.lua"), &["run", "short"], &all),
        ("odd.md", |env| env.path("personas/odd.md"), &["personas", "odd"], &all),
        ("odd.yaml", |env| env.path("quotes/odd.yaml"), &["check", "quotes/odd.yaml"], &named),
        (
            "journal.jsonl",
            |env| env.path(".nietz/runs/r7/journal.jsonl"),
            &["check", ".nietz/runs/r7/journal.jsonl"],
            &named,
        ),
    ];
    for (name, place, arguments, odds) in cases {
        for odd in odds {
            let env = Env::with(&server).flow("short", SHORT);
            put(*odd, &place(&env), &env.home().join("outside.txt"));
            let (code, said) = said(&env, arguments);
            assert!(!said.contains("secret"), "{name} {odd:?}: {said}");
            assert!(code != Some(0) || !said.contains("valid"), "{name} {odd:?}: {said}");
            let told = code.is_some_and(|code| code != 0) && said.contains(name.trim_end_matches(".lua"));
            // A persona that cannot be read is not there.
            assert!(told || name == "odd.md", "{name} {odd:?}: {code:?} {said}");
        }
    }
    assert_eq!(server.calls(), 0);
}

/// What people do: a configuration that is kept elsewhere, and a project's file that leads to another of the project.
#[test]
fn links_that_a_user_makes_go_on_working() {
    let env = Env::new().file("settings/nietz.yaml", "models: {default: openai/of-the-project}\n");
    symlink("settings/nietz.yaml", env.path("nietz.yaml")).expect("it can be made");
    let kept = env.home().join("kept.yaml");
    std::fs::rename(env.home().join("config.yaml"), &kept).expect("it can be moved");
    symlink(&kept, env.home().join("config.yaml")).expect("it can be made");
    let told = env.nietz(["models"]).go().exits(0).stdout;
    assert!(told.contains("of-the-project"), "{told}");
}

/// The lock is written beside and renamed: what a checkout put there is not written through.
#[test]
fn a_lock_is_written_through_no_link() {
    let env = Env::new();
    let outside = env.home().join("outside.txt");
    std::fs::write(&outside, "mine").expect("it can be written");
    let digest = "a".repeat(64);
    env.write(
        "nietz.lock",
        format!("version: 1\npacks:\n  retro:\n    version: 1.0.0\n    source: x\n    sha256: {digest}\n"),
    );
    symlink(&outside, env.path("nietz.lock.new")).expect("it can be made");
    env.nietz(["pack", "remove", "retro"]).go().exits(0);
    assert_eq!(std::fs::read_to_string(outside).expect("it is there"), "mine");
    assert!(!env.read("nietz.lock").contains("retro"));
}

/// `nietz types` and `nietz new` write files that are not there yet: never through a link.
#[test]
fn what_is_generated_is_written_through_no_link() {
    let env = Env::new();
    let outside = env.home().join("outside.txt");
    for (link, arguments) in [(".luaurc", ["types"].as_slice()), ("flows/fresh.lua", &["new", "fresh"])] {
        std::fs::create_dir_all(env.path("flows")).expect("it can be made");
        symlink(&outside, env.path(link)).expect("it can be made");
        env.nietz(arguments.iter().copied()).go();
        assert!(!outside.exists(), "{link}");
        std::fs::remove_file(env.path(link)).expect("it is still the link");
    }
}
