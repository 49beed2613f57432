//! Puts a run into the queue of a store, in place of running it here.

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::runs::RunSummary;
use crate::error::{Code, Failure, Result};
use crate::journal::line_store::LineStore;
use crate::journal::lines::Record;
use crate::journal::writer::{JournalTail, JournalWriter};
use crate::run::children::check_bounds;
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::models::{FrontEndSlot, listening_client};
use crate::run::runtime;
use crate::run::session::Session;
use crate::store::postgres::Server;
use crate::store::postgres::runs::{Beginning, Claim};

/// For whom and when a run is queued.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueTerms {
    /// Only workers with this tag take it; empty for all.
    pub(crate) tag: String,
    /// Not before this time: ISO 8601.
    pub(crate) at: Option<String>,
    /// The run that begins it as a part of its own.
    pub(crate) parent: Option<Claim>,
}

/// Lines that are kept in memory, until all of them are given away together.
struct Collected(Rc<RefCell<Vec<String>>>);

impl LineStore for Collected {
    fn append(&mut self, _: u64, line: &[u8]) -> Result<()> {
        let text = std::str::from_utf8(line).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        self.0.borrow_mut().push(text.trim_end_matches('\n').to_owned());
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn name(&self) -> String {
        "a run that is queued".to_owned()
    }
}

impl Session {
    /// Queues a new run, with what its first line pins here and now: params, model, language, seed, digests of files. Returns its name.
    ///
    /// # Errors
    ///
    /// The model is unknown, or the store refuses it.
    pub(crate) fn enqueue(
        &self,
        machine: &Machine,
        server: &Server,
        mut new_run: NewRun,
        person: &str,
        terms: &QueueTerms,
    ) -> Result<String> {
        if self.flow.command(new_run.command.as_deref())?.reads_only {
            return Err(Failure::new(Code::Usage, "a command that only looks leaves no run: run it here"));
        }
        new_run.replay_source = None;
        let (files, files_from) = (std::mem::take(&mut new_run.files), new_run.files_from.take());
        let client = listening_client(machine, &FrontEndSlot::default())?;
        let runtime = runtime()?;
        let open = self.open_record(machine, &client, &runtime, new_run)?;
        check_bounds(&self.flow, &open)?;
        let lines = Rc::new(RefCell::new(Vec::new()));
        let mut writer = JournalWriter::over(Box::new(Collected(Rc::clone(&lines))), JournalTail::default(), None);
        let (first, texts) = open.folded();
        writer.append(&Record::Open(Box::new(first)))?;
        writer.append_texts(texts)?;
        // They are there before the run is.
        let attachments = machine.runs().attachments(&open.run);
        files_from.map_or(Ok(()), |other| attachments.take_from(&other))?;
        files.iter().try_for_each(|bytes| attachments.put(bytes))?;
        let summary = RunSummary::begun(&open);
        let summary =
            serde_json::to_string(&summary).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        server.begin(&Beginning {
            name: &open.run,
            flow: &open.flow,
            lines: &lines.borrow(),
            summary: &summary,
            tag: &terms.tag,
            at: terms.at.as_deref(),
            began_as: person,
            parent: terms.parent,
            ..Beginning::default()
        })?;
        Ok(open.run)
    }
}
