//! Flows that try to hang, exhaust, escape or corrupt.
//!
//! Each file of `hostile/` is one of them, named by what it tries. Its first line names the error that must end
//! it (`-- expect: flow-limit`; `or` where the machine's speed decides which limit comes first), or `done` where the attempt must come to nothing. A file that contains
//! `nietz.flow` is a whole flow; any other is the body of a flow's `run`, with every module required.
//!
//! They run one after another in a few child processes, so that one that kills its process is found, and
//! after each a good flow must run unharmed in the same process. A flow gets 0.6 s. What is held against the
//! 2 s is the CPU time of the whole process, because the machine may be busy with other things; the wall
//! clock gets more slack, and only catches what sleeps or is stuck.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nietz::lua::limits::FlowLimits;
use serde_json::{Value, json};

use crate::lua::bench::Bench;

const LIMITS: FlowLimits = FlowLimits { seconds: 0.6, megabytes: 64 };
/// What each script may take, of CPU time and of memory on top of what the process had.
const CPU: Duration = Duration::from_secs(2);
const GROWTH: u64 = 100 * 1024;
/// When a script counts as stuck.
const STUCK: Duration = Duration::from_secs(20);
/// How many processes the scripts are dealt out to.
const BATCHES: usize = 4;
/// Tells a child which scripts are its own, by their names.
const BATCH: &str = "NIETZ_TEST_HOSTILE";

const GOOD: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
local json = require("@nietz/json")
local documents = require("@nietz/documents")
return nietz.flow { name = "good", summary = "Works", permissions = { llm = true },
  collections = { notes = { path = "notes/{slug}.yaml", schema = { type = "object" } } },
  run = function()
    local notes = documents.collection("notes")
    notes:save({ slug = "good", list = json.array {} }, { overwrite = true })
    local parts = string.split("a,b", ",")
    table.sort(parts, function(a, b) return a > b end)
    assert(string.find("a.b", ".", 1, true) == 2 and not pcall(error, "x"))
    return { parts = parts, name = ui.ask { id = "n", prompt = "?" }, note = notes:load("good") }
  end }
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lua/hostile")
}

/// Returns every script: its name, and its text.
fn scripts() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("the scripts are there");
    let mut scripts: Vec<(String, String)> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
            assert!(name.ends_with(".lua"), "{name} is no script");
            (name.trim_end_matches(".lua").to_owned(), std::fs::read_to_string(&path).expect("it is text"))
        })
        .collect();
    scripts.sort();
    scripts
}

fn expected(name: &str, text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let code = first.strip_prefix("-- expect: ").unwrap_or_else(|| panic!("{name} does not say what it expects"));
    for code in code.split(" or ") {
        assert!(code == "done" || nietz::error::Code::parse(code).is_some(), "{name}: `{code}` is no code");
    }
    code.to_owned()
}

fn whole(text: &str) -> String {
    if text.contains("nietz.flow") {
        return text.to_owned();
    }
    let modules = nietz::lua::api::ALL.iter().map(|(path, _, _)| {
        let name = path.rsplit(['/', '@']).next().unwrap();
        format!("local {name} = require('{path}') ")
    });
    let modules: String = modules.collect();
    format!(
        "{modules} return nietz.flow {{ name = 'hostile', summary = 'Hostile', permissions = {{ llm = true }}, \
         collections = {{ notes = {{ path = 'notes/{{slug}}.yaml', schema = {{}} }}, \
         rows = {{ path = 'rows.jsonl', schema = {{}} }} }}, run = function(ctx)\n{text}\nend }}\n"
    )
}

/// Runs one batch; only a child does.
#[test]
fn child() {
    let Ok(batch) = std::env::var(BATCH) else { return };
    let names: Vec<&str> = batch.split(',').collect();
    let bench = Bench::new();
    stage(&bench);
    bench.file("flows/good.lua", GOOD);
    good(&bench);
    for (name, text) in scripts().into_iter().filter(|(name, _)| names.contains(&name.as_str())) {
        println!("{}", json!({ "start": name }));
        bench.file("flows/hostile.lua", whole(&text));
        let before = Usage::now();
        let (result, _) = bench.run("flows/hostile.lua", json!({}), LIMITS);
        let after = Usage::now();
        let (code, failure) = match &result {
            Ok(_) => ("done".to_owned(), Value::Null),
            Err(failure) => (failure.code.name().to_owned(), json!(failure)),
        };
        println!(
            "{}",
            json!({
                "name": name, "code": code, "failure": failure, "cpu": (after.cpu - before.cpu).as_millis() as u64,
                "wall": (after.wall - before.wall).as_millis() as u64, "growth": after.peak.saturating_sub(before.rss),
            })
        );
        good(&bench);
    }
    println!("{}", json!({ "over": true }));
}

fn good(bench: &Bench) {
    let (result, _) = bench.run("flows/good.lua", json!({}), FlowLimits { seconds: 10.0, ..LIMITS });
    let wanted = json!({ "parts": ["b", "a"], "name": "x", "note": { "slug": "good", "list": [] } });
    assert_eq!(result, Ok(wanted), "the flow after it was harmed");
}

/// Puts the files that scripts try to misuse into the pack, and one outside of it.
fn stage(bench: &Bench) {
    let entries = std::fs::read_dir(folder().join("files")).expect("the files are there");
    for path in entries.map(|entry| entry.expect("the folder can be read").path()) {
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        bench.file(&format!("flows/files/{name}"), std::fs::read(&path).expect("it can be read"));
    }
    bench.file("flows/files/bytecode.lua", [6, 3, 0, 1, 2, 255, 255, 255, 255, 0]);
    bench.file("flows/files/bytecode_text.lua", "\u{6}\u{3}\0\u{1}\u{2}\u{7f}\u{7f}\u{7f}");
    bench.file("flows/files/long.lua", format!("return {{\n{}}}\n", "{ 1, 'a', x = 2 },\n".repeat(200_000)));
    bench.file("flows/files/nested.lua", format!("return {}1{}\n", "(".repeat(100_000), ")".repeat(100_000)));
    // What nests, repeats or does not end, as long as a source may be.
    let long = |text: &str| text.repeat(260_000 / text.len());
    for (name, text) in [
        ("table", format!("return {}", long("{"))),
        ("functions", format!("return {}", long("function() return "))),
        ("blocks", long("do ")),
        ("not", format!("return {}true", long("not "))),
        ("powers", format!("return {}1", long("2^"))),
        ("joined", format!("return {}''", long("''.."))),
        ("sum", format!("local a = 1 return {}a", long("a+"))),
        ("calls", format!("local f = print return f{}", long("()"))),
        ("members", format!("local t = {{}} return t{}", long(".a"))),
        ("type", format!("type T = {}", long("("))),
        ("generic", format!("type T = {}", long("A<"))),
        ("union", format!("type T = n{} return 1", long("|n"))),
        ("interpolated", format!("return {}", long("`{"))),
        ("branches", format!("local a = 1 if a == 0 then {} end return 1", long("elseif a==1 then "))),
        ("conditions", format!("local a = 1 return {}2", long("if a then 1 else "))),
        ("casts", format!("return 1{}", long("::any "))),
        ("faults", long(") ")),
        ("values", format!("return {{{}}}", long("1,"))),
        ("loops", format!("return function() {}local x = 1 {}end", "for i = 1, 2 do ".repeat(60), "end ".repeat(60))),
        ("inlined", inlined()),
    ] {
        bench.file(&format!("flows/files/source_{name}.lua"), format!("{text}\n"));
    }
    bench.file("flows/files/laughs.yaml", laughs());
    let outside = bench.path().parent().expect("it is in a folder").join("nietz-test-outside.lua");
    std::fs::write(&outside, "return { secret = true }").expect("files can be written");
    std::os::unix::fs::symlink(&outside, bench.path().join("flows/files/link.lua")).expect("links can be made");
    std::os::unix::fs::symlink("/tmp", bench.path().join("linked")).expect("links can be made");
    bench.file("secret.env", "KEY=1\n");
    bench.file("secret.lua", "return { secret = true }\n");
}

/// Functions that a compiler could put into one another.
fn inlined() -> String {
    let one = |n: usize| format!("local function f{n}(a) return f{0}(a) + f{0}(a) + f{0}(a) end\n", n - 1);
    "local function f0(a) return a end\n".to_owned() + &(1..180).map(one).collect::<String>() + "return 1"
}

fn laughs() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let alias = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    text
}

/// What this process has used.
struct Usage {
    cpu: Duration,
    wall: Instant,
    rss: u64,
    peak: u64,
}

impl Usage {
    /// Reads the figures, and starts the peak anew.
    fn now() -> Usage {
        let read = |path| std::fs::read_to_string(path).expect("this test needs Linux's /proc");
        let status = read("/proc/self/status");
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says it");
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("it is a number")
        };
        let stat = read("/proc/self/stat");
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks: u64 = [fields[11], fields[12]].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
        let usage = Usage {
            cpu: Duration::from_millis(ticks * 10),
            wall: Instant::now(),
            rss: kilobytes("VmRSS"),
            peak: kilobytes("VmHWM"),
        };
        std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be started anew");
        usage
    }
}

/// Runs one batch in a child, and again from where a child died or got stuck. Returns what is wrong.
fn run_batch(batch: usize) -> Vec<String> {
    let mut names: Vec<String> = scripts().into_iter().map(|(name, _)| name).skip(batch).step_by(BATCHES).collect();
    if let Ok(only) = std::env::var("HOSTILE") {
        names.retain(|name| name.contains(&only));
    }
    let mut wrong = Vec::new();
    while !names.is_empty() {
        let Some(fatal) = run_child(&names, &mut wrong) else { break };
        let at = names.iter().position(|name| *name == fatal).unwrap_or(names.len() - 1);
        names.drain(..=at);
    }
    wrong
}

/// Runs scripts in one child, and returns the name of the one that ended it.
fn run_child(names: &[String], wrong: &mut Vec<String>) -> Option<String> {
    let mut child = Command::new(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", "lua::hostile::child", "--nocapture"])
        .env(BATCH, names.join(","))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child can be started");
    let (send, lines) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let reader = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if let Ok(value) = serde_json::from_str::<Value>(&line) {
                let _ = send.send(value);
            }
        }
    });
    let expectations: std::collections::BTreeMap<String, String> =
        scripts().into_iter().map(|(name, text)| (name.clone(), expected(&name, &text))).collect();
    let mut current = "the start".to_owned();
    let mut over = false;
    loop {
        match lines.recv_timeout(STUCK) {
            Ok(line) if line["over"] == true => over = true,
            Ok(line) if line["start"].is_string() => current = line["start"].as_str().unwrap_or_default().to_owned(),
            Ok(line) if line["name"].is_string() => judge(&line, &expectations, wrong),
            Ok(_) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                wrong.push(format!("{current}: still running after {STUCK:?}"));
                let _ = child.kill();
                break;
            }
        }
    }
    let status = child.wait().expect("a child ends");
    let _ = reader.join();
    if over {
        return None;
    }
    wrong.push(format!("{current}: the process ended: {status}"));
    Some(current)
}

fn judge(line: &Value, expectations: &std::collections::BTreeMap<String, String>, wrong: &mut Vec<String>) {
    let name = line["name"].as_str().unwrap_or_default();
    let number = |field: &str| line[field].as_u64().unwrap_or(u64::MAX);
    println!(
        "{name:30} {:20} {:5} ms cpu {:5} ms wall {:6} kB  {}",
        line["code"].as_str().unwrap_or_default(),
        number("cpu"),
        number("wall"),
        number("growth"),
        line["failure"]["message"].as_str().unwrap_or_default().chars().take(100).collect::<String>(),
    );
    let mut fault = |what: String| wrong.push(format!("{name}: {what}"));
    let code = line["code"].as_str().unwrap_or_default();
    if !expectations.get(name).is_some_and(|expected| expected.split(" or ").any(|expected| expected == code)) {
        fault(format!("ended with {}, expected {:?}", line["failure"], expectations.get(name)));
    }
    if Duration::from_millis(number("cpu")) > CPU {
        fault(format!("took {} ms", number("cpu")));
    }
    if number("growth") > GROWTH {
        fault(format!("took {} kB of memory", number("growth")));
    }
    let size = line["failure"].to_string().len();
    if size > 40_000 {
        fault(format!("its error is {size} bytes long"));
    }
    if line["failure"].to_string().contains("[nietz]") {
        fault(format!("its error shows frames of the host: {}", line["failure"]));
    }
}

fn check(batch: usize) {
    let wrong = run_batch(batch);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn batch_0() {
    check(0);
}

#[test]
fn batch_1() {
    check(1);
}

#[test]
fn batch_2() {
    check(2);
}

#[test]
fn batch_3() {
    check(3);
}

#[test]
fn there_are_at_least_sixty() {
    let count = scripts().len();
    assert!(count >= 60, "only {count}");
}
