//! Failures, in the one form that people, flows and journals all get.
//!
//! There is one type, [`Failure`], because a failure is also data here: it is written to the journal as
//! the outcome of an effect, given to Lua as an error value, and printed at the edge with its hint.
//! Each [`Code`] is a promise: it keeps its name and its exit status, and has a page in `errors/`.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The exit status that a kind of failure ends the process with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Service = 3,
    Invalid = 4,
    Refused = 5,
    Budget = 6,
    Waiting = 7,
    /// The run is done, and its verdict is no.
    No = 8,
    Interrupted = 130,
}

macro_rules! codes {
    ($($variant:ident $name:literal $exit:ident),+ $(,)?) => {
        /// A stable name for one way to fail; `nietz explain NAME` prints its page.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($variant,)+
            /// A code that a newer version wrote, as an index into the unknown names that this process has seen.
            Unknown(u16),
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// Returns the name that people, flows and journals see.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)+ Code::Unknown(number) => unknown(number) }
            }

            /// Returns the exit status of a run that ended with this code.
            pub fn exit(self) -> Exit {
                match self { $(Code::$variant => Exit::$exit,)+ Code::Unknown(_) => Exit::Failed }
            }

            /// Returns the page that explains this code.
            pub fn page(self) -> &'static str {
                match self {
                    $(Code::$variant => include_str!(concat!("errors/", $name, ".md")),)+
                    Code::Unknown(_) => "",
                }
            }
        }
    };
}

codes! {
    FlowError "flow-error" Failed,
    FlowLimit "flow-limit" Failed,
    FlowMemory "flow-memory" Failed,
    FlowInvalid "flow-invalid" Invalid,
    FlowNotFound "flow-not-found" Usage,
    ModuleNotFound "module-not-found" Invalid,
    RequestInvalid "request-invalid" Failed,
    PersonaNotFound "persona-not-found" Failed,
    TemplateInvalid "template-invalid" Failed,
    ConfigInvalid "config-invalid" Failed,
    KeyMissing "key-missing" Failed,
    KeyRefused "key-refused" Failed,
    ModelUnknown "model-unknown" Failed,
    ModelRefused "model-refused" Failed,
    ContextExceeded "context-exceeded" Failed,
    AttachmentRefused "attachment-refused" Failed,
    AttachmentChanged "attachment-changed" Failed,
    PriceUnknown "price-unknown" Failed,
    ReplyInvalid "reply-invalid" Failed,
    RunBusy "run-busy" Failed,
    RunNotFound "run-not-found" Usage,
    RunForeign "run-foreign" Refused,
    RunTaken "run-taken" Failed,
    RunCancelled "run-cancelled" Failed,
    RunOver "run-over" Failed,
    RunAwaited "run-awaited" Waiting,
    StoreUnreachable "store-unreachable" Service,
    StoreRefused "store-refused" Refused,
    StoreVersion "store-version" Invalid,
    JournalBroken "journal-broken" Invalid,
    JournalVersion "journal-version" Invalid,
    RecordDiffers "record-differs" Invalid,
    CassetteMissed "cassette-missed" Failed,
    CassetteDiffers "cassette-differs" Failed,
    RecordingFailed "recording-failed" Failed,
    PackInvalid "pack-invalid" Invalid,
    PackNotFound "pack-not-found" Usage,
    PackChanged "pack-changed" Refused,
    PackUntrusted "pack-untrusted" Refused,
    FolderUntrusted "folder-untrusted" Refused,
    PackLockStale "pack-lock-stale" Failed,
    DiskFailed "disk-failed" Failed,
    Internal "internal" Failed,
    Usage "usage" Usage,
    ModelUnreachable "model-unreachable" Service,
    ModelOverloaded "model-overloaded" Service,
    ModelBroken "model-broken" Service,
    DocumentInvalid "document-invalid" Invalid,
    DocumentUnreadable "document-unreadable" Invalid,
    DocumentVersion "document-version" Invalid,
    DocumentChanged "document-changed" Failed,
    DocumentBusy "document-busy" Failed,
    PathRefused "path-refused" Refused,
    PermissionRefused "permission-refused" Refused,
    BudgetUsedUp "budget-used-up" Budget,
    AnswerMissing "answer-missing" Waiting,
    AnswerInvalid "answer-invalid" Usage,
    AnswerGiven "answer-given" Usage,
    GitMissing "git-missing" Failed,
    GitFailed "git-failed" Failed,
    CommandFailed "command-failed" Failed,
    CommandInDoubt "command-in-doubt" Failed,
    ServerMissing "server-missing" Failed,
    ServerFailed "server-failed" Service,
    ToolFailed "tool-failed" Failed,
    ToolChanged "tool-changed" Refused,
    ToolInDoubt "tool-in-doubt" Failed,
    SandboxMissing "sandbox-missing" Refused,
    TimedOut "timed-out" Failed,
    Stopped "stopped" Failed,
    Interrupted "interrupted" Interrupted,
}

impl Code {
    /// Returns the code with this name.
    pub fn parse(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }

    /// Tells whether it says that nobody knows how far something came which is not to be done twice.
    pub(crate) fn is_in_doubt(self) -> bool {
        matches!(self, Code::CommandInDoubt | Code::ToolInDoubt)
    }

    /// Returns the code with this name, even if only a newer version knows it.
    pub fn of(name: &str) -> Code {
        Code::parse(name).unwrap_or_else(|| {
            let mut names = UNKNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            let known = names.iter().position(|known| *known == name);
            // Each name is leaked once. No process sees enough names to run out of numbers.
            let number = known.or((names.len() < usize::from(u16::MAX)).then_some(names.len())).unwrap_or(0);
            if number == names.len() {
                names.push(Box::leak(name.to_owned().into_boxed_str()));
            }
            Code::Unknown(u16::try_from(number).unwrap_or(u16::MAX))
        })
    }
}

/// The names of the codes that only newer versions know.
static UNKNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

fn unknown(number: u16) -> &'static str {
    UNKNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(usize::from(number)).copied().unwrap_or("unknown")
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        String::deserialize(deserializer).map(|name| Code::of(&name))
    }
}

/// Where a failure is: in a file of a flow or of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub file: String,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// As a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The text of the line, for people, up to 160 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

impl Place {
    /// Returns a line of a file, counted from 1, or the whole file.
    pub fn line(file: impl Into<String>, line: Option<u64>) -> Place {
        Place { file: file.into(), line, field: None, excerpt: None }
    }
}

impl std::fmt::Display for Place {
    /// Formats it as compilers do: with the text of the line behind a gutter, if it is known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        let Some(line) = self.line else { return Ok(()) };
        write!(f, ":{line}")?;
        let Some(excerpt) = &self.excerpt else { return Ok(()) };
        let gutter = " ".repeat(line.to_string().len());
        write!(f, "\n{gutter} |\n{line} | {excerpt}\n{gutter} |")
    }
}

/// What attempts of a model call without a reply used. The server reports no usage for them, so it is estimated from the
/// bytes received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// How many attempts the server accepted and began to answer.
    pub attempts: u64,
    /// How many bytes of their replies arrived.
    pub bytes: u64,
}

/// One thing that went wrong: what, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub code: Code,
    /// One sentence that names the thing (file, line, field) that it is about.
    pub message: String,
    /// What the reader can do now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Causes, outermost first, or a list of single errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Box<Place>>,
    /// For a model call, what its attempts used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Box<Lost>>,
}

/// The result of most functions of this crate.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), hint: None, details: Vec::new(), place: None, lost: None }
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Adds one line about the cause of this failure.
    pub fn because(mut self, detail: impl std::fmt::Display) -> Failure {
        self.details.push(detail.to_string());
        self
    }

    /// Returns a `disk-failed` failure that names the path, with a hint for the usual causes.
    pub fn io(path: &std::path::Path, doing: &str, error: &std::io::Error) -> Failure {
        use std::io::ErrorKind as Kind;
        let failure = Failure::new(Code::DiskFailed, format!("cannot {doing} {}: {error}", path.display()));
        match error.kind() {
            Kind::StorageFull | Kind::QuotaExceeded => failure
                .hint("free some space on that disk, then do it again: a run that had begun goes on by `nietz resume`"),
            Kind::FileTooLarge => {
                failure.hint("files may not become that large: raise the limit (`ulimit -f`), then resume the run")
            }
            Kind::PermissionDenied if doing.contains("read") || doing.contains("open") => {
                failure.hint("make it readable for you, or name another file")
            }
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
                failure.hint("make it writable for you, or choose another workspace with --workspace")
            }
            _ => failure,
        }
    }
}

/// Returns the candidate that a misspelt word was most likely meant to be.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(beginning(word), beginning(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count().max(word.chars().count()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the first characters of a word, because the word may have any length.
fn beginning(word: &str) -> &str {
    word.char_indices().nth(64).map_or(word, |(end, _)| &word[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_its_neighbour_and_nonsense_finds_none() {
        assert_eq!(nearest("promt", ["prompt", "schema"]), Some("prompt"));
        assert_eq!(nearest("zzzzzz", ["prompt", "schema"]), None);
    }

    #[test]
    fn what_cannot_be_read_is_to_be_made_readable_and_not_writable() {
        let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let hint = |doing| Failure::io(std::path::Path::new("a"), doing, &error).hint.unwrap_or_default();
        assert!(hint("read").contains("readable") && hint("write to").contains("writable"));
    }

    #[test]
    fn every_code_has_a_page_that_names_it() {
        for code in Code::ALL {
            let page = code.page();
            assert!(page.starts_with(&format!("# {}\n", code.name())), "{} has no proper page", code.name());
            assert!(page.contains("## What to do"), "{} does not say what to do", code.name());
            let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
            let exit = format!("Exit status {}.", code.exit() as u8);
            assert!(words.contains(&exit), "{} does not say: {exit}", code.name());
        }
    }
}
