//! What is measured: `nietz` as a process, in a folder of its own.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use nietz::host::documents::Store;
use nietz::model::collection::{Collection, DocumentKey, Format};
use nietz::model::document::Expect;
use serde_json::{Value, json};

use crate::measure::{Cost, Row, cost, cost_with_children};

/// A workspace with flows and a model server to call.
pub(crate) struct Subject {
    folder: tempfile::TempDir,
    url: String,
    next: Cell<u32>,
}

/// Four personas in turn, each of whom sees all that was said.
const DEBATE: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local names = { "architect", "security", "product", "tester" }
return nietz.flow {
  name = "debate", summary = "A debate", permissions = { llm = true },
  params = { calls = { type = "integer", default = 40 } },
  run = function(ctx)
    local messages = { { role = "user", content = "How should a checkout survive a payment outage?" } }
    for call = 1, ctx.params.calls do
      local name = names[(call - 1) % 4 + 1]
      local reply = llm.chat { system = "You are the " .. name .. ".", messages = messages }
      table.insert(messages, { role = "user", content = name .. ": " .. reply.text })
    end
    return #messages
  end,
}
"#;

/// The same, as many people write it: each prompt is all that was said so far, joined.
const JOINED: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local names = { "architect", "security", "product", "tester" }
return nietz.flow {
  name = "joined", summary = "A debate in one prompt", permissions = { llm = true },
  params = { calls = { type = "integer", default = 40 } },
  run = function(ctx)
    local log = { "How should a checkout survive a payment outage?" }
    for call = 1, ctx.params.calls do
      local name = names[(call - 1) % 4 + 1]
      local reply = llm.chat { system = "You are the " .. name .. ".", prompt = table.concat(log, "\n") }
      table.insert(log, name .. ": " .. reply.text)
    end
    return #log
  end,
}
"#;

/// Many small effects.
const EFFECTS: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
local clock = require("@nietz/clock")
return nietz.flow {
  name = "effects", summary = "Many effects",
  params = { count = { type = "integer", default = 10000 } },
  run = function(ctx)
    for index = 1, ctx.params.count / 2 do
      ui.say("Line " .. index .. " of a text that somebody reads, at " .. clock.now())
    end
    return true
  end,
}
"#;

/// One long reply of a local model, the likeliest word each time.
const LOCAL: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
return nietz.flow {
  name = "one", summary = "One reply", permissions = { llm = true },
  run = function()
    return llm.chat {
      model = "local/smollm2-135m", system = "You tell stories.", prompt = "Tell a very long story of the sea.",
      max_tokens = 200, temperature = 0,
    }.text
  end,
}
"#;

/// The file of that model, and the length of its reply in tokens.
pub(crate) const WEIGHTS: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
pub(crate) const TOKENS: u32 = 200;

const SIDE_BY_SIDE: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local task = require("@nietz/task")
return nietz.flow {
  name = "side", summary = "Side by side", permissions = { llm = true },
  params = { calls = { type = "integer", default = 100 } },
  run = function(ctx)
    local branches = {}
    for index = 1, ctx.params.calls do
      branches["b" .. index] = function() return llm.chat { prompt = "slowly, " .. index }.text end
    end
    task.all(branches)
    return true
  end,
}
"#;

impl Subject {
    pub(crate) fn new(url: &str) -> Subject {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let flows = folder.path().join("flows");
        std::fs::create_dir(&flows).expect("a folder");
        for (name, source) in
            [("debate", DEBATE), ("joined", JOINED), ("effects", EFFECTS), ("side", SIDE_BY_SIDE), ("one", LOCAL)]
        {
            std::fs::write(flows.join(format!("{name}.lua")), source).expect("a file");
        }
        Subject { folder, url: url.to_owned(), next: Cell::new(0) }
    }

    /// Returns a path below its folder.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn nietz(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nietz"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("NIETZ_HOME", self.folder.path().join("home"))
            .env("OPENAI_API_KEY", "a-key-that-opens-nothing")
            .env("OPENAI_BASE_URL", &self.url);
        command
    }

    fn new_run(&self, flow: &str, flag: &str, count: usize) -> (Command, String) {
        self.next.set(self.next.get() + 1);
        let run = format!("bench-{}", self.next.get());
        let mut command = self.nietz();
        command.args(["run", flow, flag, &count.to_string()]).env("NIETZ_RUN", &run);
        (command, run)
    }

    /// `flow` is `debate` or `joined`.
    pub(crate) fn calls(&self, flow: &str, calls: usize) -> Cost {
        cost(&mut self.new_run(flow, "--calls", calls).0)
    }

    /// Returns the size of a run's journal in megabytes.
    pub(crate) fn journal(&self, flow: &str, calls: usize) -> f64 {
        let (mut command, run) = self.new_run(flow, "--calls", calls);
        cost(&mut command);
        let path = self.folder.path().join(format!(".nietz/runs/{run}/journal.jsonl"));
        std::fs::metadata(path).expect("it has a journal").len() as f64 / 1e6
    }

    /// Puts the weights where the program looks for them, and returns their path; nothing if there are none.
    pub(crate) fn weights(&self, models: Option<std::ffi::OsString>) -> Option<String> {
        let found = PathBuf::from(models?).join(WEIGHTS).canonicalize().ok()?;
        let folder = self.folder.path().join("home/models");
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(WEIGHTS);
        std::os::unix::fs::symlink(found, &path).expect("a link");
        Some(path.display().to_string())
    }

    pub(crate) fn local(&self) -> Cost {
        self.next.set(self.next.get() + 1);
        cost_with_children(self.nietz().args(["run", "one"]).env("NIETZ_RUN", format!("bench-{}", self.next.get())))
    }

    pub(crate) fn side_by_side(&self, calls: usize) -> Cost {
        cost(&mut self.new_run("side", "--calls", calls).0)
    }

    /// A floor in a process of its own.
    pub(crate) fn floor(&self, words: &[&str]) -> Cost {
        let this = std::env::current_exe().expect("this program has a path");
        cost(Command::new(this).arg("floor").args(words).arg(&self.url).current_dir(self.folder.path()))
    }

    pub(crate) fn replay_of(&self, flow: &str, calls: usize) -> Replay<'_> {
        let (mut command, run) = self.new_run(flow, "--calls", calls);
        cost(&mut command);
        Replay { subject: self, run }
    }

    pub(crate) fn effects(&self, count: usize) -> Replay<'_> {
        let (mut command, run) = self.new_run("effects", "--count", count);
        cost(&mut command);
        Replay { subject: self, run }
    }
}

/// A finished run that is gone through again.
pub(crate) struct Replay<'a> {
    subject: &'a Subject,
    run: String,
}

impl Replay<'_> {
    pub(crate) fn run(&self) -> Cost {
        cost(self.subject.nietz().args(["resume", &self.run]))
    }

    pub(crate) fn journal(&self) -> String {
        format!(".nietz/runs/{}/journal.jsonl", self.run)
    }
}

/// A validated save of 20 kB beside writing the same bytes, both in this process.
pub(crate) fn saves(count: usize) -> Row {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::new(folder.path()).expect("the folder is there");
    let collection = sessions();
    let key = DocumentKey::from([("slug".to_owned(), "bench".to_owned())]);
    let mut expect = Expect::Absent;
    let mut one = |round: usize| {
        let document = session(round);
        let start = Instant::now();
        let saved = store.save(&collection, &key, document, &expect).expect("it is valid");
        expect = Expect::Digest(saved.digest);
        Cost { wall: start.elapsed(), memory: 0.0 }
    };
    let mut ours = Vec::new();
    let mut floors = Vec::new();
    for round in 0..count {
        ours.push(one(round));
        let text = std::fs::read(folder.path().join("sessions/bench.yaml")).expect("it was saved");
        floors.push(write_sync_rename(folder.path(), &text));
    }
    Row::ratio("a validated save of a 20 kB document", &ours, &floors, 1.3)
}

fn write_sync_rename(folder: &Path, bytes: &[u8]) -> Cost {
    let start = Instant::now();
    let temporary: PathBuf = folder.join("floor.tmp");
    let mut file = std::fs::File::create(&temporary).expect("a file");
    std::io::Write::write_all(&mut file, bytes).expect("written");
    file.sync_all().expect("synced");
    std::fs::rename(&temporary, folder.join("floor.yaml")).expect("renamed");
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).expect("the folder is synced");
    Cost { wall: start.elapsed(), memory: 0.0 }
}

fn sessions() -> Collection {
    let entry = json!({ "type": "object", "required": ["iteration", "ems"], "additionalProperties": false, "properties": {
        "iteration": { "type": "integer", "minimum": 1 }, "ems": { "type": "integer", "minimum": 0, "maximum": 100 },
        "questions": { "type": "array", "items": { "type": "string" } },
        "responses": { "type": "array", "items": { "type": "string" } },
        "timestamp": { "type": "string", "format": "date-time" },
    }});
    Collection {
        name: "sessions".to_owned(),
        path: "sessions/{slug}.yaml".to_owned(),
        format: Format::Yaml,
        schema: json!({ "type": "object", "required": ["slug", "history"], "properties": {
            "slug": { "type": "string" }, "history": { "type": "array", "items": entry },
        }}),
        version: None,
        keys: std::collections::BTreeMap::new(),
        index: Vec::new(),
        expects: Vec::new(),
        everywhere: false,
        shared: false,
    }
}

fn session(round: usize) -> Value {
    let line = "What happens to an order that was paid twice because the gateway answered late?";
    let history: Vec<Value> = (1..=40)
        .map(|iteration| {
            json!({ "iteration": iteration, "ems": (iteration + round) % 100, "questions": [line, line, line],
                    "responses": [line, line], "timestamp": "2026-01-09T10:30:00Z" })
        })
        .collect();
    json!({ "slug": "bench", "history": history })
}
