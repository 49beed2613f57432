//! The lines of one run, on their way to the server: those between two syncs go in one transaction.

use serde::Deserialize;
use serde_json::Value;

use super::hold::Hold;
use crate::engine::runs::HeldRun;
use crate::engine::runs::summary::RunSummary;
use crate::error::{Code, Failure, Result};
use crate::host::attachments::AttachmentStore;
use crate::journal::fault_injection::InjectedFault;
use crate::journal::line_store::{Ending, LineStore};
use crate::journal::lines::ReadRecord;
use crate::journal::lines::{EndRecord, OpenRecord};
use crate::journal::writer::{JournalTail, JournalWriter};
use crate::model::event::EndStatus;
use crate::store::postgres::runs::Beginning;

/// Lines beyond this length go without being synced, in bytes.
const MUCH: usize = 1 << 20;
/// How long a run waits that no person can help on: a model's quota, in minutes.
const QUOTA: i64 = 10;

/// The end of a journal on a server.
pub(super) struct ServerLines {
    hold: Hold,
    summary: RunSummary,
    /// The number of the first line that the server does not have, and these lines.
    first: u64,
    pending: Vec<String>,
    length: usize,
    /// Whether the team has limits, once that is known; and what is told of money with the next lines.
    limited: std::cell::OnceCell<bool>,
    money: Vec<Value>,
    /// Why nothing is written any more.
    broken: Option<Failure>,
    fault: Option<InjectedFault>,
}

#[derive(Deserialize)]
struct WrittenLine<'a> {
    #[serde(borrow)]
    is: ReadRecord<'a>,
}

impl ServerLines {
    pub(super) fn new(hold: Hold, summary: RunSummary, fault: Option<InjectedFault>) -> ServerLines {
        ServerLines {
            hold,
            summary,
            first: 0,
            pending: Vec::new(),
            length: 0,
            limited: std::cell::OnceCell::new(),
            money: Vec::new(),
            broken: None,
            fault,
        }
    }

    fn push(&mut self, seq: u64, line: &[u8]) -> Result<()> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        if let Err(failure) = self.hold.check() {
            return Err(self.broken.insert(failure).clone());
        }
        let text = std::str::from_utf8(line).map(|text| text.trim_end_matches('\n').to_owned());
        let text = text.map_err(|error| Failure::new(Code::Internal, format!("a line is not UTF-8: {error}")))?;
        if self.pending.is_empty() {
            self.first = seq;
        }
        self.length += text.len();
        self.pending.push(text);
        Ok(())
    }

    /// Gives the pending lines to `give`. After a failure nothing is written any more: what the server has is what counts.
    fn give<T>(&mut self, give: impl FnOnce(&mut ServerLines, i64, &[String]) -> Result<T>) -> Result<T> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        let lines = std::mem::take(&mut self.pending);
        self.length = 0;
        let first = i64::try_from(self.first).unwrap_or(i64::MAX);
        give(self, first, &lines).map_err(|failure| self.broken.insert(failure).clone())
    }

    fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return self.broken.clone().map_or(Ok(()), Err);
        }
        let money = std::mem::take(&mut self.money);
        if let (false, Some(claim)) = (money.is_empty(), self.hold.claim.get().copied()) {
            let text = json(&money)?;
            let mut refused = None;
            self.give(|own, first, lines| match own.hold.server.append_with(claim, first, lines, &text) {
                // The lines stand all the same: what was asked is part of the run, and is asked again when there is room.
                Err(failure) if failure.code == Code::BudgetUsedUp => {
                    refused = Some(failure);
                    own.hold.server.append(claim, first, lines)
                }
                done => done,
            })?;
            return refused.map_or(Ok(()), Err);
        }
        self.give(|own, first, lines| match own.hold.claim.get() {
            Some(claim) => own.hold.server.append(*claim, first, lines),
            None => own.begin(lines),
        })
    }

    fn begin(&mut self, lines: &[String]) -> Result<()> {
        let hold = &self.hold;
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (summary, failure) = RunSummary::read(std::path::Path::new(&hold.run), text.as_bytes());
        failure.map_or(Ok(()), Err)?;
        let claim = hold.server.begin(&Beginning {
            name: &hold.run,
            flow: &summary.flow,
            lines,
            summary: &json(&summary)?,
            began_as: &hold.process.person,
            held_by: Some(&hold.process.worker),
            ..Beginning::default()
        })?;
        self.summary = summary;
        // Nobody else begins the run of this value.
        let _ = hold.claim.set(claim);
        hold.beat(claim)
    }

    /// Returns the summary of a run whose last line this is.
    fn ended(&self, line: &[u8]) -> Result<RunSummary> {
        let parsed: std::result::Result<WrittenLine<'_>, _> = serde_json::from_slice(line);
        match parsed.map(|line| line.is) {
            Ok(ReadRecord::End(end)) => Ok(self.summary.clone().ended(&end)),
            _ => Err(Failure::new(Code::Internal, "the last line of a journal does not say how it ends")),
        }
    }
}

impl LineStore for ServerLines {
    fn append(&mut self, seq: u64, line: &[u8]) -> Result<()> {
        if self.fault == Some(InjectedFault::FullAt(seq)) {
            let failure = Failure::new(Code::StoreUnreachable, "the server's disk is full, says a test");
            return Err(self.broken.insert(failure).clone());
        }
        self.push(seq, line)?;
        if self.length > MUCH || self.fault == Some(InjectedFault::KillAfter(seq)) {
            self.flush()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()
    }

    fn begun(&mut self) -> Result<()> {
        self.flush()
    }

    fn asks(&mut self, questions: &[Value]) -> Result<()> {
        self.flush()?;
        let (hold, text) = (&self.hold, json(&questions)?);
        match hold.claim.get() {
            Some(claim) => hold.server.asked(*claim, &text),
            None => Ok(()),
        }
    }

    fn end(&mut self, seq: u64, line: &[u8], ending: &Ending) -> Result<bool> {
        if self.hold.claim.get().is_none() {
            self.flush()?;
        }
        self.push(seq, line)?;
        let summary = json(&self.ended(line)?)?;
        let questions = json(&ending.questions)?;
        let is_given = self.hold.claim.get().copied() == self.hold.process.given;
        let written = self.give(|own, first, lines| {
            let Some(claim) = own.hold.claim.get().copied() else {
                return Err(Failure::new(Code::Internal, "a run ends that never began"));
            };
            let server = &own.hold.server;
            match ending.status {
                EndStatus::Done => server.finish(claim, first, lines, "done", &summary).map(|()| true),
                EndStatus::Failed => server.finish(claim, first, lines, "failed", &summary).map(|()| true),
                EndStatus::Waiting if !ending.awaits.is_empty() => {
                    // One that could not be begun is not waited for.
                    let found = ending.awaits.iter().map(|name| server.find(name)).collect::<Result<Vec<_>>>()?;
                    let ids: Vec<i64> = found.into_iter().flatten().map(|child| child.id).collect();
                    server.park(claim, (first, lines), (&questions, &summary), None, &ids)
                }
                EndStatus::Waiting if ending.questions.is_empty() && ending.code == Some(Code::ModelOverloaded) => {
                    let wake = chrono::Utc::now() + chrono::TimeDelta::minutes(QUOTA);
                    server.park(claim, (first, lines), (&questions, &summary), Some(&wake.to_rfc3339()), &[])
                }
                // A budget that is used up is a matter for a person, as a question is; nobody can answer it.
                EndStatus::Waiting if ending.questions.is_empty() => {
                    let why = json(&vec![serde_json::json!({ "key": "", "prompt": ending.code.map(Code::name) })])?;
                    server.park(claim, (first, lines), (&why, &summary), None, &[])
                }
                EndStatus::Waiting => server.park(claim, (first, lines), (&questions, &summary), None, &[]),
                EndStatus::Interrupted => {
                    server.append(claim, first, lines)?;
                    // A worker that ends hands its runs on by itself.
                    if !is_given {
                        server.release(claim, true)?;
                    }
                    Ok(true)
                }
            }
        })?;
        if written {
            self.hold.leave();
        }
        Ok(written)
    }

    fn is_limited(&self) -> bool {
        // A server that does not say it is asked again with the next call; until then its own limits hold.
        *self
            .limited
            .get_or_init(|| self.hold.server.budget().is_ok_and(|days| days.iter().any(|day| day.limit.is_some())))
    }

    fn spend(&mut self, money: Value) {
        self.money.push(money);
    }

    fn name(&self) -> String {
        format!("the journal of {}", self.hold.run)
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Failure::new(Code::Internal, format!("this is no JSON: {error}")))
}

impl HeldRun for Hold {
    fn writer(&self, tail: JournalTail, fault: Option<InjectedFault>) -> Result<JournalWriter> {
        let summary = match self.claim.get() {
            Some(claim) => {
                // What its first line says stands in the summary from the beginning.
                let found = self.server.find(&self.run)?.filter(|found| found.id == claim.run);
                found.and_then(|found| serde_json::from_str(&found.summary).ok()).unwrap_or_default()
            }
            None => RunSummary::default(),
        };
        let lines = ServerLines::new(self.clone(), summary, fault);
        Ok(JournalWriter::over(Box::new(lines), tail, fault))
    }

    fn keep_whole_part(&self) -> Result<()> {
        Err(Failure::new(Code::Usage, "a journal on a server is never cut: its lines were written by nietz alone")
            .hint("`nietz runs export` writes it as a file, and a copy of that can be cut"))
    }

    fn was_cut(&self) -> bool {
        false
    }

    fn attachments(&self) -> AttachmentStore {
        super::attachments(&self.server, &self.run)
    }

    /// The server has it with the last line.
    fn note_end(&self, _: &OpenRecord, _: &EndRecord) {}
}
