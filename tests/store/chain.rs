//! A flow of calls, each of which has what the one before said, and a service that says something else each time: whoever saw another
//! outcome than the recorded one says so in its next call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::hosts::journal;
use crate::support::model_server::{Gate, ModelServer, Response};
use crate::support::postgres::{Database, Session};

pub(crate) const FLOW: (&str, &str) = ("chain", SOURCE);
pub(crate) const STEPS: usize = 6;
const SOURCE: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "chain", summary = "Each call has what the one before said", permissions = { llm = true },
  params = { topic = { type = "string", positional = true } },
  run = function(ctx)
    local last, all = "nothing", {}
    for step = 1, 6 do
      if step == 4 then
        assert(ui.ask { id = "go", prompt = "Go on after " .. last .. "?" } == "yes")
      end
      last = llm.chat { prompt = ctx.params.topic .. " step " .. step .. " after " .. last }.text
      table.insert(all, last)
    end
    return all
  end,
}
"#;

/// A call that came: the run, its step, what it had of the step before, and what it was told.
#[derive(Clone, Debug)]
struct Came {
    run: String,
    step: usize,
    after: String,
    said: String,
    /// Whether an outcome of this very step was recorded then.
    late: bool,
}

/// The calls of a test.
pub(crate) struct Calls {
    came: Arc<Mutex<Vec<Came>>>,
    pub(crate) server: ModelServer,
}

impl Calls {
    /// Starts the service. It looks into the store at each call: what was recorded is not asked for again. Each second call of a run waits
    /// for the gate, if there is one.
    pub(crate) fn held(url: &str, gate: Option<Gate>) -> Calls {
        let came: Arc<Mutex<Vec<Came>>> = Arc::default();
        let (seen, url, session) = (Arc::clone(&came), url.to_owned(), Mutex::new(None));
        let server = ModelServer::start(move |request| {
            let prompt = request.prompt();
            let words: Vec<&str> = prompt.split(' ').collect();
            let [run, "step", step, "after", after] = words[..] else { panic!("{prompt}") };
            let step: usize = step.parse().expect("a number");
            let late = is_recorded(&url, &mut session.lock().unwrap_or_else(PoisonError::into_inner), run, &prompt);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let said = format!("n{}", seen.len() + 1);
            seen.push(Came { run: run.to_owned(), step, after: after.to_owned(), said: said.clone(), late });
            match &gate {
                Some(gate) if step == 2 => Response::text(said).held_by(gate),
                _ => Response::text(said),
            }
        });
        Calls { came, server }
    }

    pub(crate) fn count(&self) -> usize {
        self.came.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns what is wrong with these runs, which are over. `paused` processes may each have sent a call that it had written down
    /// before it was paused.
    pub(crate) fn judge(&self, database: &Database<'_>, runs: &[String], paused: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        let came = self.came.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let late: Vec<&Came> = came.iter().filter(|call| call.late && runs.contains(&call.run)).collect();
        if late.len() > paused {
            wrong.push(format!("{} calls of what was recorded, {paused} processes were paused: {late:?}", late.len()));
        }
        for run in runs {
            let journal = journal(database, run);
            let ends: Vec<usize> = (0..journal.lines.len()).filter(|at| is_last(&journal.lines[*at])).collect();
            if ends != [journal.lines.len() - 1] {
                wrong.push(format!("{run}: it ends at {ends:?} of {} lines", journal.lines.len()));
                continue;
            }
            let result = &journal.lines[ends[0]]["is"]["end"]["result"];
            let recorded: Vec<&str> = result.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
            for line in &journal.lines {
                if let Some(key) = line["is"]["outcome"]["key"].as_str() {
                    *outcomes.entry(key).or_default() += 1;
                }
            }
            if recorded.len() != STEPS || outcomes.values().any(|count| *count != 1) {
                wrong.push(format!("{run}: {recorded:?}, {outcomes:?}"));
                continue;
            }
            for call in came.iter().filter(|call| call.run == *run && call.step > 1) {
                if call.after != recorded[call.step - 2] {
                    wrong.push(format!("{run}: {call:?} saw another outcome than {}", recorded[call.step - 2]));
                }
            }
            for (at, said) in recorded.iter().enumerate() {
                if !came.iter().any(|call| call.run == *run && call.step == at + 1 && call.said == *said) {
                    wrong.push(format!("{run}: nobody said {said} at step {}", at + 1));
                }
            }
        }
        wrong
    }
}

/// Whether a line is the end of a run that is over.
fn is_last(line: &Value) -> bool {
    matches!(line["is"]["end"]["status"].as_str(), Some("done" | "failed"))
}

/// Whether the store has an outcome of the call with this prompt. A server that is away has recorded nothing that anybody could know.
fn is_recorded(url: &str, session: &mut Option<Session>, run: &str, prompt: &str) -> bool {
    let sql = format!(
        "SELECT count(*) FROM nietz.line i JOIN nietz.run r ON r.id = i.run JOIN nietz.line o ON o.run = i.run AND o.seq > i.seq \
         AND o.body LIKE '%\"is\":{{\"outcome\":{{\"key\":\"' || (i.body::jsonb->'is'->'intent'->>'key') || '\"%' \
         WHERE r.name = '{run}' AND i.body LIKE '%\"intent\":%' AND i.body LIKE '%{prompt}\"%'"
    );
    for _ in 0..2 {
        if session.is_none() {
            *session = Session::open(url).ok();
        }
        match session.as_mut().map(|session| session.say(&sql)) {
            Some(Ok(count)) => return count != "0",
            _ => *session = None,
        }
    }
    false
}
