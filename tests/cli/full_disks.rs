//! The promise: wherever in its files a disk ends, or the limit on their size, a run says so and is whole: with room again
//! it goes on to the same documents, and nothing stray is left.

use std::path::Path;
use std::process::Command;

use crate::support::env::Env;
use crate::support::kills;
use crate::support::model_server::{ModelServer, Request, Response};

/// Saves and rows of some size, some of which the flow does not give up over.
const FLOW: &str = include_str!("../support/flows/fills.lua");

fn server() -> ModelServer {
    ModelServer::start(|request: &Request| Response::text(format!("{} ", request.prompt()).repeat(150)))
}

#[test]
fn a_limit_on_the_size_of_files_is_told_and_a_run_goes_on_without_it() {
    let calm = server();
    let reference = Env::with(&calm).flow("fills", FLOW);
    let result = reference.run(["fills"]).go().result();
    let whole = std::fs::metadata(reference.journal_path()).expect("it is there").len();
    let sizes: Vec<u64> = (0..14).map(|step| 700 + step * whole / 13).collect();
    kills::for_each(&sizes, |size| {
        let server = server();
        let env = Env::with(&server).flow("fills", FLOW);
        let limited = env.run(["fills"]).by("prlimit", [format!("--fsize={size}").as_str()]).go();
        if limited.code == Some(0) {
            // The journal stayed below it, and the flow does without the one document that may have not.
            return;
        }
        assert_eq!(limited.code, Some(1), "{size}: {limited:?}");
        let said = format!("{}{}", limited.stdout, limited.stderr);
        assert!(said.contains("disk-failed") && said.contains("ulimit -f"), "{size}: {said}");
        goes_on(&env, &server, &reference, &result, &size.to_string());
    });
}

/// Resumes a run, or begins it again where not even its first line could be written.
fn goes_on(env: &Env, server: &ModelServer, reference: &Env, result: &serde_json::Value, what: &str) {
    let begun = std::fs::read(env.journal_path()).is_ok_and(|bytes| bytes.contains(&b'\n'));
    let ended = if begun { env.resume().go() } else { env.run(["fills"]).go() };
    assert_eq!(&ended.result(), result, "{what}");
    assert_eq!(env.documents(), reference.documents(), "{what}");
    assert_eq!(kills::strays(env), Vec::<String>::new(), "{what}");
    // The outcome of one call may have been what did not fit.
    assert!(server.calls() <= 4, "{what}: {} calls", server.calls());
}

/// What a flow went on after because the disk was full is tried again as soon as there is room.
#[test]
fn a_save_that_a_full_disk_refused_is_made_when_the_run_goes_on() {
    let calm = server();
    let reference = Env::with(&calm).flow("fills", FLOW);
    let result = reference.run(["fills"]).go().result();
    assert_eq!(result["kept"], true);
    let server = server();
    let env = Env::with(&server).flow("fills", FLOW);
    // The large document does not fit; the journal does for a while.
    let limited = env.run(["fills"]).by("prlimit", ["--fsize=6000"]).go().exits(1);
    let refused = env.journal().of_kind("save").into_iter().any(|effect| effect.failed());
    assert!(refused, "the save was refused, and the flow went on: {limited:?}");
    goes_on(&env, &server, &reference, &result, "resumed");
}

/// The script runs in namespaces of its own, in which it may mount a small disk.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs -o size=$SIZE,nr_inodes=0 none "$DISK"
cp -r "$FROM"/. "$DISK"
cd "$DISK"
code=0
"$@" run --json --seed 1 --model openai/test fills > "$OUT/first" 2>&1 || code=$?
echo $code > "$OUT/code"
mount -o remount,size=64m "$DISK"
if grep -q . .nietz/runs/r1/journal.jsonl 2> /dev/null; then "$@" resume r1 --json > "$OUT/second" 2>&1 || true
else "$@" run --json --seed 1 --model openai/test fills > "$OUT/second" 2>&1 || true; fi
rm -rf "$OUT/left"
cp -a "$DISK" "$OUT/left"
"#;

#[test]
fn a_disk_that_is_full_at_any_size_is_told_and_a_run_goes_on_when_there_is_room() {
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        // The limit on sizes above is met everywhere.
        return;
    }
    let calm = server();
    let reference = Env::with(&calm).flow("fills", FLOW);
    let result = reference.run(["fills"]).go().result();
    // In pages of 4 KiB: the folders, the flow, the journal and the documents grow over these.
    let sizes: Vec<u64> = (2..=15).map(|pages| pages * 4096).collect();
    let full = std::sync::atomic::AtomicUsize::new(0);
    kills::for_each(&sizes, |size| {
        let server = server();
        let env = Env::with(&server).flow("fills", FLOW);
        let folder = |name: &str| {
            let path = env.home().join(name);
            std::fs::create_dir_all(&path).expect("it can be made");
            path.display().to_string()
        };
        let (disk, out) = (folder("disk"), folder("out"));
        let program = env!("CARGO_BIN_EXE_nietz");
        let script = env.nietz([]).by("unshare", ["-rm", "sh", "-c", SCRIPT, "sh"]);
        script
            .var("SIZE", &size.to_string())
            .var("DISK", &disk)
            .var("OUT", &out)
            .var("FROM", &env.workspace().display().to_string())
            .go()
            .exits(0);
        let read = |name: &str| std::fs::read_to_string(Path::new(&out).join(name)).unwrap_or_default();
        let (code, first, second) = (read("code"), read("first"), read("second"));
        assert!(matches!(code.trim(), "0" | "1"), "{size}: {program} {code}: {first}");
        if code.trim() == "1" {
            full.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            assert!(first.contains("disk-failed") && first.contains("free some space"), "{size}: {first}");
        }
        let last =
            second.lines().rev().find(|line| line.contains("run_ended")).unwrap_or_else(|| panic!("{size}: {second}"));
        let last: serde_json::Value = serde_json::from_str(last).expect("it is JSON");
        if code.trim() == "1" {
            assert_eq!(last["result"], result, "{size}: {second}");
            // The workspace of the test is what the disk held in the end.
            std::fs::remove_dir_all(env.workspace()).expect("it can be removed");
            std::fs::rename(Path::new(&out).join("left"), env.workspace()).expect("it can be moved");
            assert_eq!(env.documents(), reference.documents(), "{size}");
            assert_eq!(kills::strays(&env), Vec::<String>::new(), "{size}");
        }
    });
    assert!(full.into_inner() >= 5, "the sizes are those at which a run does not fit");
}

/// What a killed save left is cleared at the next save in that folder; what a living process writes is not.
#[test]
fn what_a_killed_save_left_is_cleared_at_the_next() {
    let server = server();
    let env = Env::with(&server).flow("fills", FLOW).file("notes/.nietz-abc123.tmp", "half of a doc");
    let living = std::fs::File::create(env.path("notes/.nietz-lives0.tmp")).expect("it can be made");
    living.lock().expect("it can be locked");
    env.run(["fills"]).go().exits(0);
    assert_eq!(kills::strays(&env), ["notes/.nietz-lives0.tmp"]);
    drop(living);
    std::fs::remove_dir_all(env.path(".nietz")).expect("it can be removed");
    env.run(["fills"]).go().exits(0);
    assert_eq!(kills::strays(&env), Vec::<String>::new());
}
