//! Runs of a team, on a server. Of each journal that is read there is a copy in the user's cache.

mod answers;
mod copies;
mod hold;
mod lines;

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::summary::RunSummary;
use super::tags::TagFile;
use super::{ListedRun, LockedRun, RunStore};
use crate::engine::run_records::Origin;
use crate::error::{Code, Failure, Result};
use crate::host::attachments::AttachmentStore;
use crate::host::ui::mailbox::AnswerStore;
use crate::model::event::EndStatus;
use crate::store::postgres::Server;
use crate::store::postgres::runs::{Claim, ListedRow, StoredRun};
use answers::ServerAnswers;
use copies::Copies;
use hold::Hold;

/// What this process is to a server.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// A name that no other process has.
    pub(crate) worker: String,
    /// How the person is called who uses it.
    pub(crate) person: String,
    /// The run that a worker has taken and lets this process do: the worker holds it, and says what becomes of it.
    pub(crate) given: Option<Claim>,
    /// Where tags are kept, and copies of journals.
    pub(crate) tags: PathBuf,
    pub(crate) copies: PathBuf,
}

/// The runs of one workspace.
pub(super) struct ServerRuns {
    server: Server,
    process: Process,
    copies: Copies,
    tags: TagFile,
}

impl ServerRuns {
    pub(super) fn new(server: Server, process: Process) -> ServerRuns {
        let place = PathBuf::from(format!("{}/{}", server.connection.shown, server.name));
        let tags = TagFile::new(&process.tags, &place);
        ServerRuns { copies: Copies::new(&process.copies, &place), server, process, tags }
    }

    fn found(&self, id: &str) -> Result<StoredRun> {
        self.server.find(id)?.ok_or_else(|| Failure::new(Code::RunNotFound, format!("there is no run `{id}` here")))
    }

    fn is_given(&self, run: &StoredRun) -> bool {
        self.process.given.is_some_and(|given| given.run == run.id)
    }

    fn origin_of(&self, run: &StoredRun) -> Result<Origin> {
        // A worker acts for whoever began the run, as far as it was told that it may.
        if self.is_given(run) || run.began_by == self.server.workspace()?.me {
            return Ok(Origin::Own);
        }
        Ok(Origin::Foreign(format!("{} began it", who(&run.began_by, &run.began_as))))
    }

    /// Returns all runs of the list, or the one of this name.
    fn list(&self, name: Option<&str>) -> Result<Vec<ListedRun>> {
        let me = self.server.workspace()?.me.clone();
        let given = self.process.given.map(|given| given.run);
        // Without them a list is a list all the same; whoever changes them is told what is wrong with their file.
        let mut tags = self.tags.read().unwrap_or_default();
        let mut runs = self.server.listed(name, &|row| {
            let own = row.began_by == me || given == Some(row.id);
            listed_run(row, own)
        })?;
        if !tags.is_empty() {
            runs.iter_mut().for_each(|run| run.tags = tags.remove(&run.id).unwrap_or_default());
        }
        Ok(runs)
    }
}

/// Returns how who began a run is called.
fn who<'a>(role: &'a str, name: &'a str) -> &'a str {
    if name.is_empty() { role } else { name }
}

fn listed_run(row: &ListedRow<'_>, own: bool) -> ListedRun {
    let who = who(row.began_by, row.began_as);
    let (summary, failure) = match serde_json::from_str::<RunSummary>(row.summary) {
        Ok(summary) => (summary, None),
        Err(error) => {
            let message = format!("the store's summary of run {} cannot be read: {error}", row.name);
            let known = RunSummary { flow: row.flow.to_owned(), started: row.began(), ..RunSummary::default() };
            (known, Some(Failure::new(Code::StoreVersion, message).hint("a newer nietz wrote it")))
        }
    };
    ListedRun {
        id: row.name.to_owned(),
        summary,
        busy: row.status == "running",
        origin: if own { Origin::Own } else { Origin::Foreign(format!("{who} began it")) },
        tags: BTreeSet::new(),
        stored: Some(row.status.to_owned()),
        began_by: Some(who.to_owned()),
        failure,
    }
}

impl RunStore for ServerRuns {
    fn create(&self, id: &str) -> Result<LockedRun> {
        if self.server.find(id)?.is_some() {
            return Err(Failure::new(Code::Usage, format!("there is a run {id} already"))
                .hint(format!("go on with it: nietz resume {id}")));
        }
        let hold = Hold::new(self.server.clone(), self.process.clone(), id, Arc::new(OnceLock::new()));
        Ok(LockedRun { id: id.to_owned(), journal: self.copies.path(id), held: Box::new(hold) })
    }

    fn lock(&self, id: &str) -> Result<LockedRun> {
        let run = self.found(id)?;
        if run.status == "done" {
            let hold =
                Hold::new(self.server.clone(), self.process.clone(), id, Arc::new(OnceLock::new())).over(&run.status);
            let journal = self.copies.bring_up(&self.server, &run)?;
            return Ok(LockedRun { id: id.to_owned(), journal, held: Box::new(hold) });
        }
        let claim = match self.process.given.filter(|given| given.run == run.id) {
            Some(given) => given,
            None => self.server.hold(run.id, &self.process.worker)?,
        };
        let hold = Hold::new(self.server.clone(), self.process.clone(), id, Arc::new(OnceLock::from(claim)));
        hold.beat(claim)?;
        // The claim is taken: what is there now is all that there is.
        let journal = self.copies.bring_up(&self.server, &run)?;
        Ok(LockedRun { id: id.to_owned(), journal, held: Box::new(hold) })
    }

    fn discard(&self, run: LockedRun) {
        let LockedRun { id, held, .. } = run;
        drop(held);
        // What cannot be removed stays and is listed.
        let _ = self.remove(&id);
    }

    fn remove(&self, id: &str) -> Result<()> {
        let Some(run) = self.server.find(id)? else { return Ok(()) };
        self.server.remove(run.id)?;
        self.tags.forget(id);
        self.copies.remove(id);
        Ok(())
    }

    fn sweep(&self) {}

    fn tag(&self, id: &str, more: &[String], less: &[String]) -> Result<BTreeSet<String>> {
        self.tags.change(id, more, less)
    }

    /// The server knows who begins a run.
    fn note_own(&self, _: &str, _: &[u8], _: &[&str]) -> Result<Option<File>> {
        Ok(None)
    }

    fn origin(&self, id: &str, _: &[u8]) -> Origin {
        self.found(id).and_then(|run| self.origin_of(&run)).unwrap_or_else(|failure| Origin::Foreign(failure.message))
    }

    fn ids(&self) -> Result<Vec<String>> {
        self.server.names()
    }

    /// Whoever takes a run in counts as who began it, so that only their own can be gone on with.
    fn import(&self, id: &str, lines: &[u8], own: bool) -> Result<()> {
        let (summary, failure) = RunSummary::read(Path::new(id), lines);
        failure.map_or(Ok(()), Err)?;
        let status = match summary.end {
            Some(EndStatus::Done) => "done",
            Some(EndStatus::Failed) => "failed",
            _ => "stopped",
        };
        if !own && status != "done" {
            return Err(Failure::new(
                Code::RunForeign,
                format!("the run {id} is not done, and would be yours to go on with"),
            )
            .hint("if you trust what its first line grants and names: --own"));
        }
        let text = String::from_utf8_lossy(lines);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let of = serde_json::to_string(&summary).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        self.server.keep(id, &summary.flow, status, &lines, &of).map(drop)
    }

    fn has(&self, id: &str) -> Result<bool> {
        Ok(self.server.find(id)?.is_some())
    }

    fn is_busy(&self, id: &str) -> Result<bool> {
        Ok(self.server.find(id)?.is_some_and(|run| run.status == "running"))
    }

    fn all(&self) -> Result<Vec<ListedRun>> {
        self.list(None)
    }

    fn listed(&self, ids: Vec<String>) -> Result<Vec<ListedRun>> {
        if let [one] = ids.as_slice() {
            return self.list(Some(one));
        }
        let wanted: HashSet<&String> = ids.iter().collect();
        let mut runs = self.list(None)?;
        runs.retain(|run| wanted.contains(&run.id));
        Ok(runs)
    }

    fn folder(&self) -> &Path {
        self.copies.folder()
    }

    fn journal(&self, id: &str) -> Result<PathBuf> {
        match self.server.find(id)? {
            Some(run) => self.copies.bring_up(&self.server, &run),
            None => Ok(self.copies.missing(id)),
        }
    }

    fn attachments(&self, id: &str) -> AttachmentStore {
        attachments(&self.server, id)
    }

    fn answers(&self, id: &str) -> Arc<dyn AnswerStore> {
        Arc::new(ServerAnswers::new(self.server.clone(), id, self.process.clone()))
    }
}

/// Returns where the images and PDFs of a run are: with who began it, or begins it now.
fn attachments(server: &Server, id: &str) -> AttachmentStore {
    // A server that does not say it refuses what follows, too.
    let began_by = server.find(id).ok().flatten().map(|run| run.began_by);
    let me = || server.workspace().map(|workspace| workspace.me.clone()).unwrap_or_default();
    AttachmentStore::on_server(server.clone(), &began_by.unwrap_or_else(me), id)
}
