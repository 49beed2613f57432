//! What workers saw and what the journal says in the end, held against each other.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::support::postgres::Session;

/// What all workers of a history noted, in no order.
#[derive(Default)]
pub(crate) struct Noted {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Lines whose writing was acknowledged: run, number, text.
    acknowledged: Vec<(String, u64, String)>,
    /// Outcomes that somebody went on with, by run and step.
    seen: BTreeMap<(String, u64), Vec<String>>,
}

impl Noted {
    pub(crate) fn acknowledged(&self, run: &str, seq: u64, body: &str) {
        self.lock().acknowledged.push((run.to_owned(), seq, body.to_owned()));
    }

    pub(crate) fn saw(&self, run: &str, step: u64, outcome: &str) {
        self.lock().seen.entry((run.to_owned(), step)).or_default().push(outcome.to_owned());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is wrong: with `i:STEP` for intents, `o:STEP:OUTCOME` for outcomes and `end` for the end of a run.
    pub(crate) fn judge(&self, session: &mut Session, steps: u64) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in session.get("SELECT run, seq, body FROM nietz.line ORDER BY run, seq").lines() {
            let (run, rest) = row.split_once('|').expect("three columns");
            let (seq, body) = rest.split_once('|').expect("three columns");
            let of_run = lines.entry(run.to_owned()).or_default();
            of_run.push(body.to_owned());
            if seq != of_run.len().to_string() {
                wrong.push(format!("run {run}: a line is missing before line {seq}"));
            }
        }
        let inner = self.lock();
        for (run, seq, body) in &inner.acknowledged {
            let there = usize::try_from(*seq).ok().and_then(|seq| lines.get(run)?.get(seq - 1));
            if there != Some(body) {
                wrong.push(format!("run {run}: line {seq} was acknowledged as `{body}` and is {there:?}"));
            }
        }
        for row in session.get("SELECT id, status, message FROM nietz.run ORDER BY id").lines() {
            let columns: Vec<&str> = row.split('|').collect();
            let [run, status, message] = columns[..] else { panic!("{row}") };
            let own = lines.get(run).map(Vec::as_slice).unwrap_or_default();
            if !message.is_empty() {
                wrong.push(format!("run {run} is {status} and still in the queue"));
            }
            let ends = own.iter().filter(|line| *line == "end").count();
            match status {
                "done" if ends == 1 && own.last().is_some_and(|line| line == "end") => {}
                "cancelled" if ends == 0 => {}
                _ => wrong.push(format!("run {run} is {status} with {ends} ends: {own:?}")),
            }
            for step in 1..=steps {
                let outcome = format!("o:{step}:");
                let at: Vec<usize> = (0..own.len()).filter(|at| own[*at].starts_with(&outcome)).collect();
                if at.len() > 1 || at.is_empty() && status == "done" {
                    wrong.push(format!("run {run}: step {step} has {} outcomes", at.len()));
                }
                let again = at.first().is_some_and(|at| own[*at..].contains(&format!("i:{step}")));
                if again {
                    wrong.push(format!("run {run}: step {step} was done again after its outcome was recorded"));
                }
                let recorded = at.first().map(|at| &own[*at][outcome.len()..]);
                for saw in inner.seen.get(&(run.to_owned(), step)).into_iter().flatten() {
                    if recorded != Some(saw) {
                        wrong.push(format!("run {run}: somebody saw `{saw}` of step {step}, recorded is {recorded:?}"));
                    }
                }
            }
        }
        let left = session.get("SELECT count(*) FROM pgmq.q_nietz_1");
        if left != "0" {
            wrong.push(format!("{left} messages are left"));
        }
        wrong
    }
}
