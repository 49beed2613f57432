//! What runs need of a store.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ListedRun, LockedRun};
use crate::engine::run_records::Origin;
use crate::error::Result;
use crate::host::attachments::AttachmentStore;
use crate::host::ui::mailbox::AnswerStore;
use crate::journal::fault_injection::InjectedFault;
use crate::journal::lines::{EndRecord, OpenRecord};
use crate::journal::writer::{JournalTail, JournalWriter};

/// The runs of one workspace. Names are checked before they come here. [`super::Runs`] says what each is for.
pub(crate) trait RunStore: Send + Sync {
    fn create(&self, id: &str) -> Result<LockedRun>;
    fn lock(&self, id: &str) -> Result<LockedRun>;
    fn discard(&self, run: LockedRun);
    fn remove(&self, id: &str) -> Result<()>;
    fn sweep(&self);
    fn tag(&self, id: &str, more: &[String], less: &[String]) -> Result<BTreeSet<String>>;
    fn note_own(&self, id: &str, first_line: &[u8], everywhere: &[&str]) -> Result<Option<File>>;
    fn origin(&self, id: &str, first_line: &[u8]) -> Origin;
    /// By name.
    fn ids(&self) -> Result<Vec<String>>;
    fn has(&self, id: &str) -> Result<bool>;
    fn is_busy(&self, id: &str) -> Result<bool>;
    /// All of them, as [`RunStore::listed`].
    fn all(&self) -> Result<Vec<ListedRun>> {
        self.listed(self.ids()?)
    }
    /// Oldest first. One that cannot be read is there with its failure.
    fn listed(&self, ids: Vec<String>) -> Result<Vec<ListedRun>>;
    /// Takes in a run with these lines, which are whole. `own`: the user says that it is theirs.
    fn import(&self, id: &str, lines: &[u8], own: bool) -> Result<()>;
    fn folder(&self) -> &Path;
    fn journal(&self, id: &str) -> Result<PathBuf>;
    fn attachments(&self, id: &str) -> AttachmentStore;
    fn answers(&self, id: &str) -> Arc<dyn AnswerStore>;
}

/// A run that this process holds.
pub(crate) trait HeldRun {
    fn writer(&self, tail: JournalTail, fault: Option<InjectedFault>) -> Result<JournalWriter>;
    /// Cuts a broken journal before its first broken line, and keeps a copy of it.
    fn keep_whole_part(&self) -> Result<()>;
    /// Tells whether that was ever done.
    fn was_cut(&self) -> bool;
    fn attachments(&self) -> AttachmentStore;
    fn note_end(&self, open: &OpenRecord, end: &EndRecord);
}
