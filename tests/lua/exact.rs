//! The promise: kill a run at any instant, as often as you like, and resume it. It comes to an end that a run without a
//! kill could have come to, and everything that any of its processes saw is a part of that one history.
//!
//! Flows are generated: branches in branches that share a counter and a history, effects that are over at once and
//! effects that take their time, failures that are handled, limits. Each row and each prompt of a flow holds the history
//! as it is then. A process that is given another interleaving than the one before it asks for something else, or
//! writes a row twice.
//!
//! `NIETZ_TEST_CASES` says how many flows (40), `NIETZ_TEST_SEED` which are the first.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture};
use nietz::engine::gate::OpenJournal;
use nietz::engine::history::History;
use nietz::error::{Code, Failure, Result};
use nietz::host::{CallEvent, Models};
use nietz::journal::fault_injection::InjectedFault;
use nietz::journal::lines::ResumeRecord;
use nietz::journal::writer::{JournalTail, JournalWriter};
use nietz::lua::flow::FlowOutcome;
use nietz::lua::limits::FlowLimits;
use nietz::model::chat::{ChatReply, ChatRequest, FinishReason, Usage};
use nietz::run::assemble::RunParts;
use serde_json::{Value, json};

use crate::lua::bench::{Bench, Front, parts};
use crate::support::journal::Journal;

/// A generator of numbers, the same from the same seed (xorshift).
#[derive(Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end.max(1)
    }
}

/// Writes a flow.
struct Writing {
    chance: Chance,
    text: String,
    /// Steps written so far: each has a label of its own.
    steps: u64,
}

pub(crate) fn flow(seed: u64) -> String {
    let mut writing = Writing { chance: Chance::new(seed), text: String::new(), steps: 0 };
    writing.block(0, 1);
    // At the end there is something to compare, whatever was drawn.
    writing.text.push_str("add(history())\n");
    around(&writing.text)
}

/// A flow whose steps can see and add.
fn around(steps: &str) -> String {
    format!(
        r#"local nietz, clock, documents = require("@nietz"), require("@nietz/clock"), require("@nietz/documents")
local llm, random, task, ui = require("@nietz/llm"), require("@nietz/random"), require("@nietz/task"), require("@nietz/ui")
return nietz.flow {{ name = "exact", summary = "Drawn", permissions = {{ llm = true }},
  collections = {{
    rows = {{ path = "rows.jsonl", schema = {{ type = "object" }} }},
    notes = {{ path = "notes/{{slug}}.json", schema = {{ type = "object" }} }} }},
  run = function()
    local trace, count = {{}}, 0
    local rows, notes = documents.collection("rows"), documents.collection("notes")
    local function see(what) table.insert(trace, what) end
    local function history() return table.concat(trace, " ") end
    local function add(seen)
      count += 1
      rows:append {{ id = count, seen = seen }}
    end
{steps}
    return {{ trace = history(), count = count }}
  end }}
"#
    )
}

/// Branches of which the first to end stops the others, whatever those wait for, and all go on behind it.
fn race() -> String {
    around(
        "local function racer(name, steps)
          return function()
            local ok, err = pcall(task.stoppable, 'race', function()
              for at = 1, steps do
                see(llm.chat { prompt = name .. at .. '|' .. history() }.text)
                add(history())
              end
            end)
            if ok then task.stop('race') end
            see(name .. ':' .. (if ok then 'first' else err.code))
            add(history())
            see(llm.chat { prompt = name .. 'after|' .. history() }.text)
          end
        end
        task.settle { a = racer('a', 3), b = racer('b', 4), c = racer('c', 3) }
        add(history())",
    )
}

impl Writing {
    fn block(&mut self, depth: u64, least: u64) {
        let steps = least + self.chance.below(5);
        for _ in 0..steps {
            self.step(depth);
        }
    }

    fn step(&mut self, depth: u64) {
        self.steps += 1;
        let label = format!("s{}", self.steps);
        let kinds = if depth < 3 && self.steps < 60 { 16 } else { 11 };
        let line = match self.chance.below(kinds) {
            0 => format!("see('{label}')"),
            1 => format!("see('{label}:' .. random.integer(1, 1000))"),
            2 => format!("clock.now() see('{label}')"),
            3 => format!("ui.status(history()) see('{label}')"),
            4 => format!("see(llm.chat {{ prompt = '{label}' }}.text)"),
            5 | 6 => format!("see(llm.chat {{ prompt = '{label}|' .. history() }}.text)"),
            7 => format!(
                "do local ok, err = pcall(llm.chat, {{ prompt = 'refuse {label}' }}) see('{label}:' .. err.code) end"
            ),
            8 => "add(history())".to_owned(),
            9 => format!("notes:save({{ slug = '{label}', by = '{label}' }}, {{ overwrite = true }}) see('{label}')"),
            10 => format!("see('{label}:' .. tostring(notes:load('{label}')))"),
            11..=13 => return self.branches(depth),
            14 => return self.wrapped(&format!("task.scope('{label}', function()"), "end)", depth),
            _ => {
                let (open, shut) = (
                    format!("do local ok, err = pcall(function() see('{label}')"),
                    format!("error('{label}') end) see('{label}!') end"),
                );
                return self.wrapped(&open, &shut, depth);
            }
        };
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn wrapped(&mut self, open: &str, shut: &str, depth: u64) {
        self.text.push_str(open);
        self.text.push('\n');
        self.block(depth + 1, 1);
        self.text.push_str(shut);
        self.text.push('\n');
    }

    fn branches(&mut self, depth: u64) {
        let settle = self.chance.below(2) == 0;
        self.text.push_str(if settle { "task.settle {\n" } else { "task.all {\n" });
        for branch in 0..2 + self.chance.below(2) {
            self.text.push_str(&format!("b{branch} = function()\n"));
            self.block(depth + 1, 1);
            if settle && self.chance.below(3) == 0 {
                self.text.push_str(&format!("error('b{branch}')\n"));
            }
            self.text.push_str("end,\n");
        }
        self.text.push_str("}\n");
    }
}

/// A model that takes its time: each call as many turns of the runtime as chance says, in each process others.
struct Slow {
    chance: RefCell<Chance>,
    calls: Rc<RefCell<Vec<String>>>,
}

impl Models for Slow {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply, Failure>> {
        let prompt = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
        self.calls.borrow_mut().push(prompt.clone());
        let turns = self.chance.borrow_mut().below(8);
        async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            if prompt.starts_with("refuse") {
                return Err(Failure::new(Code::ModelRefused, "it refuses"));
            }
            Ok(reply(request, format!("r-{}", prompt.split('|').next().unwrap_or_default())))
        }
        .boxed_local()
    }
}

/// What a run came to.
struct Run {
    result: Value,
    rows: Vec<Value>,
    notes: BTreeMap<String, String>,
    calls: Vec<String>,
    /// How many model calls kills found under way, at most.
    cut_off: usize,
    journal: Journal,
    bench: Bench,
}

impl Run {
    /// Runs a flow, killed `kills` times at lines that chance says, to its end.
    fn new(source: &str, chance: &mut Chance, kills: u64) -> Run {
        let bench = Bench::new();
        bench.file("flows/exact.lua", source);
        std::fs::create_dir_all(bench.path().join(".nietz")).expect("folders can be made");
        let calls = Rc::default();
        let (mut left, mut cut_off) = (kills, 0);
        let result = loop {
            let kill = (left > 0).then(|| 1 + chance.below(20));
            left = left.saturating_sub(1);
            match process(&bench, chance, &calls, kill) {
                Ok(value) => break value,
                Err(failure) => assert_eq!(failure.code, Code::DiskFailed, "{failure:?}\n{source}"),
            }
            cut_off += under_way(&Journal::read(&journal(&bench)));
        };
        let rows = std::fs::read_to_string(bench.path().join("rows.jsonl")).expect("it has rows");
        let rows = rows.lines().map(|row| serde_json::from_str(row).expect("it is JSON")).collect();
        let calls = calls.take();
        let journal = Journal::read(&journal(&bench));
        Run { result, rows, notes: notes(&bench), calls, cut_off, journal, bench }
    }

    fn trace(&self) -> &str {
        self.result["trace"].as_str().expect("it says it")
    }

    /// Holds everything that was seen on the way against the history in the end.
    fn is_one_history(&self, source: &str) {
        self.saw_one_history(source);
        self.calls_once(source, |over| over);
    }

    fn saw_one_history(&self, source: &str) {
        let trace = self.trace();
        let begins = |seen: &str| trace == seen || seen.is_empty() || trace.starts_with(&format!("{seen} "));
        for (at, row) in self.rows.iter().enumerate() {
            assert_eq!(row["id"], at + 1, "rows are there once and in order: {:#?}\n{source}", self.rows);
            let seen = row["seen"].as_str().expect("it says it");
            assert!(begins(seen), "row {}: {seen}\nthe end: {trace}\n{source}", at + 1);
        }
        assert_eq!(self.result["count"], self.rows.len(), "{source}");
        for prompt in &self.calls {
            let Some((_, seen)) = prompt.split_once('|') else { continue };
            assert!(begins(seen), "asked: {prompt}\nthe end: {trace}\n{source}");
        }
    }

    /// No call was made twice, but those that a kill found under way. At least so many of those that are over were made.
    fn calls_once(&self, source: &str, least: impl Fn(usize) -> usize) {
        let over = self.journal.of_kind("chat").iter().filter(|chat| chat.finished() || chat.failed()).count();
        let most = over + self.cut_off;
        assert!(
            (least(over)..=most).contains(&self.calls.len()),
            "{over} to {most} calls, not {:#?}\n{source}",
            self.calls
        );
    }
}

/// Counts the model calls that have no outcome, and those whose failure nothing followed: they are made again.
fn under_way(journal: &Journal) -> usize {
    let goes_on = |line: &Value| line["is"].get("intent").is_some() || line["is"].get("effect").is_some();
    let last = journal.lines.iter().rposition(goes_on).unwrap_or_default();
    let behind = journal.lines[last..].iter().filter(|line| line["is"]["outcome"].get("failure").is_some()).count();
    let mut open = BTreeSet::new();
    for line in &journal.lines {
        if line["is"]["intent"]["kind"] == "chat" {
            open.insert(line["is"]["intent"]["key"].as_str().unwrap_or_default());
        }
        open.remove(line["is"]["outcome"]["key"].as_str().unwrap_or_default());
    }
    behind + open.len()
}

fn journal(bench: &Bench) -> std::path::PathBuf {
    bench.path().join(".nietz/exact.jsonl")
}

fn notes(bench: &Bench) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(bench.path().join("notes")).into_iter().flatten().flatten();
    entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(name, _)| name.ends_with(".json"))
        .map(|(name, path)| (name, std::fs::read_to_string(path).expect("it is text")))
        .collect()
}

/// One process of a run: to the flow's end, or until the journal takes no more lines.
fn process(bench: &Bench, chance: &mut Chance, calls: &Rc<RefCell<Vec<String>>>, kill: Option<u64>) -> Result<Value> {
    let path = journal(bench);
    let (past, tail, resume) = match path.exists() {
        true => {
            let (past, tail) = History::read(&path)?;
            let (host, at) = ("nietz".to_owned(), "2026-01-09T10:30:00Z".to_owned());
            (past, tail, Some(ResumeRecord { host, changed: BTreeMap::new(), torn: 0, at }))
        }
        false => (History::default(), JournalTail::default(), None),
    };
    let fault = kill.map(|lines| InjectedFault::FullAt(tail.seq + lines));
    let writer = JournalWriter::open(&path, tail, fault)?.without_sync();
    let session = bench.load("flows/exact.lua", FlowLimits { seconds: 20.0, megabytes: 64 })?;
    let slow = Slow { chance: RefCell::new(Chance::new(chance.below(1 << 30))), calls: Rc::clone(calls) };
    let parts = parts(Box::new(slow), Rc::new(Front::default()));
    match bench.go(&session, json!({}), parts, OpenJournal { writer, history: past, resume })? {
        FlowOutcome::Returned(value, _) => Ok(value),
        FlowOutcome::Failed(failure) | FlowOutcome::Parked(failure) | FlowOutcome::Interrupted(failure) => Err(failure),
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn sorted(trace: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = trace.split(' ').collect();
    parts.sort_unstable();
    parts
}

fn case(seed: u64, seen: &Cell<(u64, u64)>) {
    let source = flow(seed);
    let mut chance = Chance::new(seed ^ 0xdead_beef);
    let calm = Run::new(&source, &mut chance, 0);
    calm.is_one_history(&source);
    let kills = 1 + chance.below(4);
    let killed = Run::new(&source, &mut chance, kills);
    killed.is_one_history(&source);
    // Which branch comes first is up to the world; what they do is not.
    assert_eq!(sorted(killed.trace()), sorted(calm.trace()), "seed {seed}\n{source}");
    assert_eq!((killed.rows.len(), &killed.notes), (calm.rows.len(), &calm.notes), "seed {seed}\n{source}");
    let chats = |run: &Run| run.journal.of_kind("chat").len();
    assert_eq!(chats(&killed), chats(&calm), "seed {seed}\n{source}");
    // Once more, with nothing left to do.
    let before = std::fs::read(journal(&killed.bench)).expect("it is there");
    let again = process(&killed.bench, &mut chance, &Rc::default(), None);
    assert_eq!(again.as_ref(), Ok(&killed.result), "seed {seed}\n{source}");
    assert_eq!(std::fs::read(journal(&killed.bench)).expect("it is there"), before, "seed {seed}: nothing is new");
    let (together, resumed) = seen.get();
    let is = |line: &&Value, kind: &str| line["is"].get(kind).is_some();
    let held = killed.journal.lines.iter().filter(|line| line["is"]["outcome"]["held"] == true).count() as u64;
    let begun = killed.journal.lines.iter().filter(|line| is(line, "resume")).count() as u64;
    seen.set((together + held, resumed + begun));
}

#[test]
fn what_a_flow_has_stopped_is_stopped_wherever_it_is_killed() {
    let source = race();
    let (mut stopped, mut kills, cases) = (0, 0, number("NIETZ_TEST_CASES", 40) as usize);
    for seed in 1..=cases as u64 {
        let mut chance = Chance::new(seed ^ 0xface);
        let run = Run::new(&source, &mut chance, 1 + seed % 4);
        run.saw_one_history(&source);
        // What was stopped before it was performed has an outcome, and was never asked.
        run.calls_once(&source, |over| over.saturating_sub(2));
        let ends = |how: &str| run.trace().split(' ').filter(|step| step.ends_with(how)).count();
        assert_eq!((ends(":first") > 0, ends(":first") + ends(":stopped")), (true, 3), "{}", run.trace());
        stopped += ends(":stopped");
        kills += run.journal.lines.iter().filter(|line| line["is"].get("resume").is_some()).count();
        let before = std::fs::read(journal(&run.bench)).expect("it is there");
        assert_eq!(process(&run.bench, &mut chance, &Rc::default(), None).as_ref(), Ok(&run.result));
        assert_eq!(std::fs::read(journal(&run.bench)).expect("it is there"), before, "seed {seed}: nothing is new");
    }
    assert!(stopped > cases && kills > cases, "what is drawn is no test: {stopped} stopped, {kills} kills");
}

#[test]
fn a_run_killed_anywhere_and_resumed_has_one_history() {
    let (first, cases) = (number("NIETZ_TEST_SEED", 1), number("NIETZ_TEST_CASES", 40));
    let seen = Cell::default();
    (first..first + cases).for_each(|seed| case(seed, &seen));
    let (together, resumed) = seen.get();
    println!("{cases} flows, {resumed} kills, {together} outcomes given together with a later one");
    assert!(together > cases && resumed > cases, "what is drawn is no test: {together} together, {resumed} kills");
}

/// The time that earlier processes used counts in the limit of a scope.
#[test]
fn a_limit_is_over_when_all_processes_together_have_used_it_up() {
    let bench = Bench::new();
    let source = "local llm, task = require('@nietz/llm'), require('@nietz/task')
        return require('@nietz').flow { name = 'limit', summary = 'Limits', permissions = { llm = true },
          run = function()
            local ok, err = pcall(task.limit, 60, function()
              llm.chat { prompt = 'a' }
              llm.chat { prompt = 'b' }
              return llm.chat { prompt = 'never' }
            end)
            return { ok = ok, code = err.code }
          end }";
    bench.file("flows/exact.lua", source);
    std::fs::create_dir_all(bench.path().join(".nietz")).expect("folders can be made");
    let session = bench.load("flows/exact.lua", FlowLimits { seconds: 20.0, megabytes: 64 }).expect("it is a flow");
    // Each look at the clock is 40 s later than the one before.
    let times = Rc::new(Cell::new(0));
    let process = |kill: Option<u64>| {
        let path = journal(&bench);
        let (past, tail) = if path.exists() { History::read(&path)? } else { Default::default() };
        let resume = (tail.seq > 0).then(|| ResumeRecord {
            host: "nietz".to_owned(),
            changed: BTreeMap::new(),
            torn: 0,
            at: String::new(),
        });
        let writer = JournalWriter::open(&path, tail, kill.map(InjectedFault::FullAt))?.without_sync();
        let times = Rc::clone(&times);
        let now = Box::new(move || times.replace(times.get() + 40_000));
        let parts = RunParts { now, ..parts(Box::new(Never), Rc::new(Front::default())) };
        bench.go(&session, json!({}), parts, OpenJournal { writer, history: past, resume })
    };
    // After the second outcome: two calls of 40 s each.
    assert!(matches!(process(Some(5)), Err(failure) if failure.code == Code::DiskFailed));
    let begun = std::time::Instant::now();
    let Ok(FlowOutcome::Returned(result, _)) = process(None) else { panic!("it returns") };
    assert_eq!(result, json!({ "ok": false, "code": "timed-out" }));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "nothing was left to wait for");
}

/// A model that answers all but `never`.
struct Never;

impl Models for Never {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply, Failure>> {
        match request.messages.iter().any(|message| message.content == "never") {
            true => futures_util::future::pending().boxed_local(),
            false => futures_util::future::ready(Ok(reply(request, "x".to_owned()))).boxed_local(),
        }
    }
}

fn reply(request: &ChatRequest, text: String) -> ChatReply {
    let usage = Usage { input: 1, output: 1, ..Usage::default() };
    let model = request.model.clone();
    ChatReply {
        text,
        tool_calls: Vec::new(),
        state: None,
        usage,
        model,
        finish: FinishReason::Stop,
        cost: None,
        saved: 0.0,
        refused: Vec::new(),
        retries: Vec::new(),
        lost: None,
    }
}

/// For whoever wants to read one.
#[test]
fn a_flow_that_is_drawn_is_the_same_each_time() {
    assert_eq!(flow(7), flow(7));
    assert_ne!(flow(7), flow(8));
}
