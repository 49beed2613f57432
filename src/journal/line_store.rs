//! What a store of lines is to whoever writes a journal.

use serde_json::Value;

use crate::error::{Code, Result};
use crate::model::event::EndStatus;

/// Where the lines of one journal are kept. It knows of a line its number and its bytes, and never changes one.
pub trait LineStore {
    /// Takes the next line, with its line end. Of one that cannot be taken, nothing stays. A process that is killed after this has
    /// lost no line that [`LineStore::sync`] has seen.
    ///
    /// # Errors
    ///
    /// `disk-failed` and the like, if it cannot be taken; `run-taken` if another process wrote a line of this number.
    fn append(&mut self, seq: u64, line: &[u8]) -> Result<()>;

    /// Waits until all lines that were taken outlive a power cut.
    ///
    /// # Errors
    ///
    /// As [`LineStore::append`].
    fn sync(&mut self) -> Result<()>;

    /// Takes the last line of this process, and says how it ends. Returns `false`, and takes nothing, where the run would wait for an
    /// answer that is there by now.
    ///
    /// # Errors
    ///
    /// As [`LineStore::append`].
    fn end(&mut self, seq: u64, line: &[u8], ending: &Ending) -> Result<bool> {
        let _ = ending;
        self.append(seq, line)?;
        self.sync().map(|()| true)
    }

    /// Notes that the lines that say what the run is are written. Nobody has acted on them yet.
    ///
    /// # Errors
    ///
    /// As [`LineStore::append`].
    fn begun(&mut self) -> Result<()> {
        Ok(())
    }

    /// Lets others see what the run asks now: requests of questions, each with the `key` of its effect.
    ///
    /// # Errors
    ///
    /// As [`LineStore::append`].
    fn asks(&mut self, questions: &[Value]) -> Result<()> {
        let _ = questions;
        Ok(())
    }

    /// Tells whether model calls are held to what a team may use, beside the run's own limits.
    fn is_limited(&self) -> bool {
        false
    }

    /// Notes, to be written together with the next lines, what a call may use at most or has used of what a team may use.
    fn spend(&mut self, money: Value) {
        let _ = money;
    }

    /// Returns what people call this journal.
    fn name(&self) -> String;
}

/// How a process ends that was at a run.
#[derive(Clone, Debug)]
pub struct Ending {
    pub status: EndStatus,
    /// The requests of questions that have no answer yet, each with the `key` of its effect.
    pub questions: Vec<Value>,
    /// The runs that it began and that are not over.
    pub awaits: Vec<String>,
    /// Why, if it is not done.
    pub code: Option<Code>,
}
