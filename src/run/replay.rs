//! Plays a journal again without the world: no model, no key, no network, no file of the workspace. This tests a
//! cassette, makes a cassette of a run, and shows what a change does before it costs anything.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture, ready};
use serde_json::Value;

use crate::engine::budget::Meter;
use crate::engine::gate::OpenJournal;
use crate::engine::history::History;
use crate::engine::replay_source::ReplaySource;
use crate::engine::run_records::Origin;
use crate::error::{Code, Failure, Result};
use crate::host::attachments::AttachmentStore;
use crate::host::{CallEvent, FrontEnd, Models};
use crate::journal::expander::TextExpander;
use crate::journal::key::EffectKey;
use crate::journal::lines::{EndRecord, OpenRecord, ReadRecord, Record};
use crate::journal::reader;
use crate::journal::writer::{JournalTail, JournalWriter};
use crate::model::budget::Budget;
use crate::model::chat::{ChatReply, ChatRequest};
use crate::model::difference::differences;
use crate::model::event::{EndStatus, Event, RunVerdict};
use crate::model::question::Question;
use crate::model::text::excerpt;
use crate::pack::path::below;
use crate::pack::permission_items::Items;
use crate::pack::resolve::ResolvedFlow;
use crate::pack::tree::{PackTree, Root};
use crate::run::assemble::{RunParts, assemble};
use crate::run::interrupts::CtrlC;
use crate::run::live::{ending, total_usage};
use crate::run::machine::Machine;
use crate::run::models::PinnedModels;
use crate::run::runtime;
use crate::run::session::Session;

/// The first and the last line of a journal.
pub(crate) struct JournalEnds {
    pub open: OpenRecord,
    pub end: Option<EndRecord>,
    /// The first line, as it stands in the file.
    pub first: Vec<u8>,
}

/// How a replay went.
pub(crate) struct ReplayResult {
    pub effects: usize,
    status: EndStatus,
    result: Option<Value>,
    failure: Option<Failure>,
    verdict: Option<RunVerdict>,
    unused: Vec<String>,
    replay_source: Option<ReplaySource>,
}

/// Reads the first and the last line of a journal.
///
/// # Errors
///
/// `journal-broken` if there is no first line, and those of [`reader::read`].
pub(crate) fn read_ends(path: &Path) -> Result<JournalEnds> {
    let bytes = reader::read_bytes(path)?;
    let (mut open, mut end): (Option<OpenRecord>, _) = (None, None);
    let mut texts = None;
    let broken = |why: String| Failure::new(Code::JournalBroken, format!("{}:1: {why}", path.display()));
    reader::read(path, &bytes, |_, record| {
        match record {
            ReadRecord::Open(first) => {
                texts = first.is_folded().then(TextExpander::default);
                open = Some(*first);
            }
            ReadRecord::End(last) => end = Some(*last),
            ReadRecord::Resume(_) => end = None,
            ReadRecord::Text(text) => {
                texts.as_mut().map_or(Ok(()), |texts| text.add_to(texts)).map_err(broken)?;
            }
            ReadRecord::Intent(_) | ReadRecord::Outcome(_) | ReadRecord::Effect(_) | ReadRecord::Given(_) => {}
        }
        Ok(())
    })?;
    let mut open =
        open.ok_or_else(|| Failure::new(Code::JournalBroken, format!("{}: it has no first line", path.display())))?;
    texts.as_mut().map_or(Ok(()), |texts| open.unfold(texts)).map_err(broken)?;
    Ok(JournalEnds { open, end, first: reader::first_line(&bytes).to_vec() })
}

/// Returns the flow of a run of this workspace. The path that a foreign journal names is not trusted.
///
/// # Errors
///
/// Those of [`Machine::find_flow`] and [`flow_of`].
pub(crate) fn locate_flow(machine: &Machine, id: &str, ends: &JournalEnds) -> Result<ResolvedFlow> {
    match machine.runs().origin(id, &ends.first) {
        Origin::Own => machine.find_flow(&ends.open.source),
        Origin::Foreign(_) => flow_of(&machine.workspace, &ends.open),
    }
}

/// Returns the flow of a journal below `root`, whatever machine recorded the journal.
///
/// # Errors
///
/// `path-refused` if the journal's path leads out of the pack; `flow-not-found` if there is no such flow.
pub(crate) fn flow_of(root: &Path, open: &OpenRecord) -> Result<ResolvedFlow> {
    let bundled = open.source.strip_prefix("bundled:");
    let source = bundled.unwrap_or(&open.source);
    // The path behind the last `flows/` is the same on every machine.
    let at = source.rfind("/flows/").map(|at| at + 1);
    let path = match at {
        Some(at) => &source[at..],
        None if bundled.is_some() || source.starts_with("flows/") => source,
        None => source.rsplit('/').next().unwrap_or(source),
    };
    if path.split('/').any(|part| part == "..") {
        let message = format!("the cassette names a flow outside of its pack: {}", excerpt(path));
        return Err(Failure::new(Code::PathRefused, message));
    }
    match (ResolvedFlow::from_source(&root.join(path).display().to_string()), bundled) {
        (Ok(found), _) => Ok(found),
        (Err(_), Some(_)) if crate::assets::read(path).is_some() => {
            Ok(ResolvedFlow { tree: PackTree::new(Root::Bundled), path: path.to_owned() })
        }
        (Err(failure), _) => Err(failure),
    }
}

/// Returns how a flow is named in a cassette: by its path in its pack, which is the same on every machine.
fn portable_source(located: &ResolvedFlow) -> String {
    match &located.tree.root {
        Root::Bundled => located.source(),
        Root::Disk(_) => located.path.clone(),
    }
}

/// Plays a journal for a flow. With `into`, the replay is written there as a journal of its own.
///
/// # Errors
///
/// The flow cannot be loaded, or a journal cannot be read or written; a failure of the flow is in the result.
pub(crate) fn play(
    machine: &Machine,
    (located, layers): (ResolvedFlow, Vec<PackTree>),
    (journal, open): (&Path, &OpenRecord),
    into: Option<&Path>,
) -> Result<ReplayResult> {
    let session = Session::load_with(machine, located, layers)?;
    play_on(machine, &session, (ReplaySource::cassette(journal)?, open), into)
}

/// As [`play`], from any replay source and for a flow that is loaded.
///
/// # Errors
///
/// As [`play`].
pub(crate) fn play_on(
    machine: &Machine,
    session: &Session,
    (replay_source, open): (ReplaySource, &OpenRecord),
    into: Option<&Path>,
) -> Result<ReplayResult> {
    let source = portable_source(&session.flow.located);
    let no_model = || Failure::new(Code::KeyMissing, "the run was recorded without a model");
    *session.pinned.borrow_mut() = PinnedModels {
        default: Some(open.model.clone().ok_or_else(no_model)),
        aliases: open.aliases.clone(),
        efforts: open.efforts.clone(),
    };
    let flow = &session.flow;
    flow.context().personas.set_ignore_models(open.only_model);
    let at = chrono::DateTime::parse_from_rfc3339(&open.at).map_or(0, |time| time.timestamp_millis());
    let at = u64::try_from(at).unwrap_or_default();
    let mut writer =
        JournalWriter::open(into.unwrap_or(Path::new("/dev/null")), JournalTail::default(), None)?.without_sync();
    let mut open = open.clone();
    open.files = flow.sources();
    open.source = source;
    (open.fork, open.anew_of) = (None, None);
    machine.redactor().value(&mut open.params);
    let (first, texts) = open.folded();
    writer.append(&Record::Open(Box::new(first)))?;
    writer.append_texts(texts)?;
    let recorded = OpenJournal { writer, history: History::default(), resume: None };
    let parts = RunParts {
        models: Box::new(Nobody),
        front: Rc::new(Nobody),
        details: false,
        filters: Items::new(),
        now: Box::new(move || at),
        meter: Meter::new(Budget::default()),
        // No model is called, so that nothing is sent.
        attachments: AttachmentStore::default(),
    };
    let (gate, input) = assemble(machine, session, &open, parts, recorded)?;
    gate.set_replay_source(replay_source);
    let outcome = runtime()?.block_on(async {
        let mut interrupts = CtrlC::new(Some(&open.run))?;
        flow.run(open.command.as_deref(), &input, Rc::clone(&gate), &mut interrupts).await
    });
    let replay_source = gate.take_replay_source();
    let unused = replay_source.as_ref().map(ReplaySource::unused).transpose()?.unwrap_or_default();
    let (status, result, failure, verdict) = ending(outcome);
    let spent = gate.spent();
    let (usage, calls) = total_usage(&spent);
    let (ended, shown, said) = (result.clone(), failure.clone(), verdict.clone());
    let (at, void, more) = (open.at.clone(), Vec::new(), serde_json::Map::new());
    gate.close(EndRecord {
        status,
        result: ended,
        failure: shown,
        usage,
        calls,
        void,
        spent,
        verdict: said,
        at,
        more,
    })?;
    let effects = replay_source.as_ref().map_or(0, ReplaySource::replayed_count);
    Ok(ReplayResult { effects, status, result, failure, verdict, unused, replay_source })
}

impl ReplayResult {
    /// Tells whether the flow asked for the effect with this key.
    pub(crate) fn asked_for(&self, key: EffectKey) -> bool {
        self.replay_source.as_ref().is_some_and(|source| source.has_replayed(key))
    }

    /// Tells whether the effect with this key, as journals write it, was given back.
    pub(crate) fn has_given_back(&self, key: &str) -> bool {
        EffectKey::parse(key).is_some_and(|key| self.asked_for(key))
    }

    /// Returns what the flow asked for and a plan's source does not have, and the failure that the flow ended with, if it did.
    pub(crate) fn missed(&self) -> (&[Failure], Option<&Failure>) {
        let missed = self.replay_source.as_ref().map(ReplaySource::missed).unwrap_or_default();
        (missed, self.failure.as_ref().filter(|_| self.status == EndStatus::Failed))
    }

    /// Returns the failure of an effect that is not recorded, if the replay met one.
    pub(crate) fn cassette_miss(&self) -> Option<&Failure> {
        self.failure.as_ref().filter(|failure| failure.code == Code::CassetteMissed)
    }

    /// Forgets what the replay source had and the flow did not ask for.
    pub(crate) fn forget_unused(&mut self) {
        self.unused.clear();
    }

    /// Compares this replay with the recorded end; `path` names the journal in messages.
    ///
    /// # Errors
    ///
    /// `cassette-differs` if the ends differ, or the failure that the replay ended with in place of the recorded end.
    pub(crate) fn compare_with(&self, path: &Path, recorded: &EndRecord) -> Result<()> {
        let differs = |what: &str| {
            Failure::new(Code::CassetteDiffers, format!("{}: {what}", path.display()))
                .hint("if that is as it should be, record it anew: nietz test --record")
        };
        if let Some(missed) = self.failure.as_ref().filter(|failure| {
            matches!(failure.code, Code::CassetteMissed | Code::Interrupted)
                || recorded.failure.is_none() && self.status == EndStatus::Failed
        }) {
            return Err(missed.clone());
        }
        if self.status != recorded.status {
            let failure =
                differs(&format!("it ended {}, and was recorded {}", self.status.name(), recorded.status.name()));
            return Err(self.failure.iter().fold(failure, |failure, own| failure.because(own)));
        }
        let code_and_message = |failure: &Option<Failure>| failure.as_ref().map(|it| (it.code, it.message.clone()));
        if code_and_message(&self.failure) != code_and_message(&recorded.failure) {
            let describe =
                |failure: &Option<Failure>| failure.as_ref().map_or("nothing".to_owned(), |it| it.to_string());
            return Err(differs("it failed with something else")
                .because(format!("- {}", describe(&recorded.failure)))
                .because(format!("+ {}", describe(&self.failure))));
        }
        let (before, after) = (recorded.result.clone().unwrap_or_default(), self.result.clone().unwrap_or_default());
        if before != after {
            return Err(differs("the result is another").because(differences(&before, &after).join("\n")));
        }
        if self.verdict != recorded.verdict {
            let describe =
                |verdict: &Option<RunVerdict>| verdict.as_ref().map_or("none".to_owned(), RunVerdict::to_string);
            return Err(differs("the verdict is another")
                .because(format!("- {}", describe(&recorded.verdict)))
                .because(format!("+ {}", describe(&self.verdict))));
        }
        if !self.unused.is_empty() {
            let failure = differs("the flow does not ask any more for all that is recorded");
            return Err(self.unused.iter().fold(failure, Failure::because));
        }
        Ok(())
    }
}

/// Returns the folder of a pack's cassettes.
pub(crate) fn cassette_folder(root: &Path) -> PathBuf {
    root.join("tests/cassettes")
}

/// Returns the cassettes below a folder, sorted, each with its name. A folder that is a link has none.
pub(crate) fn cassettes(folder: &Path) -> Vec<(String, PathBuf)> {
    walkdir::WalkDir::new(folder)
        .follow_root_links(false)
        .max_depth(8)
        .sort_by_file_name()
        .into_iter()
        .filter_map(std::result::Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| {
            let name = below(folder, entry.path())?.strip_suffix(".jsonl")?.to_owned();
            Some((name, entry.into_path()))
        })
        .collect()
}

/// A world without models and people.
struct Nobody;

fn nobody<T: 'static>() -> LocalBoxFuture<'static, Result<T>> {
    ready(Err(Failure::new(Code::Internal, "a replay asked the world"))).boxed_local()
}

impl Models for Nobody {
    fn chat<'a>(
        &'a self,
        _: &'a ChatRequest,
        _: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>> {
        nobody()
    }
}

impl FrontEnd for Nobody {
    fn show(&self, _: &Event) {}

    fn ask<'a>(&'a self, _: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        nobody()
    }

    fn attended(&self) -> bool {
        false
    }
}
