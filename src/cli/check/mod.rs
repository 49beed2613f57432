//! `nietz check [PATH…]`.

mod collections;
mod journal;
mod overriding;
mod sources;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::{documents, output};
use crate::disk::{self, Links};
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::host::documents::Store;
use crate::journal::reader;
use crate::lua::flow::Flow;
use crate::model::collection::Format;
use crate::pack::resolve;
use crate::run::machine::Machine;
use crate::run::project::Found;
use crate::run::session;
use crate::schema::report::{self, Severity};
use crate::schema::{Violation, expect, source};

/// Check files: flows, personas, quotes, packs, configuration and journals by their kind, documents by their collection
#[derive(Args)]
pub(super) struct CheckArgs {
    /// Files and folders; without one, the whole workspace
    #[arg(value_name = "PATH")]
    files: Vec<PathBuf>,
    /// The collection that the files belong to; without it, it is found by their path
    #[arg(long = "as", value_name = "FLOW:COLLECTION")]
    collection: Option<String>,
    /// One JSON object for each fault
    #[arg(long)]
    json: bool,
}

/// What was found in one file.
struct FileReport {
    text: String,
    located: Vec<report::LocatedViolation>,
    /// The error code of the violations, for `nietz explain`.
    code: Code,
}

pub(super) fn run(machine: &Machine, args: &CheckArgs) -> Result<Exit> {
    let mut invalid = 0;
    let mut flows = FlowCache { machine, loaded: None };
    // The workspace is told as what it is to the user: as `.` where they are in it.
    let is_here = machine.project.found == Found::Here;
    let here = [if is_here { PathBuf::from(".") } else { machine.workspace.clone() }];
    let wanted = if args.files.is_empty() { here.as_slice() } else { args.files.as_slice() };
    for file in wanted {
        let inside = machine.workspace.join(file);
        let file = if file.exists() || !inside.exists() { file.clone() } else { inside };
        // What the user wrote is told first, and of runs only what is wrong.
        let (files, journals) = match file.is_dir() {
            true => sources::below(&mut flows, &file).into_iter().partition(|file| !sources::is_of_a_run(file)),
            false => (vec![file.clone()], Vec::new()),
        };
        let mut valid_journals = 0;
        for (file, is_of_a_run) in
            files.iter().map(|file| (file, false)).chain(journals.iter().map(|file| (file, true)))
        {
            let name = file.display().to_string();
            match check(&mut flows, file, args.collection.as_deref()) {
                Ok(all) if is_of_a_run && all.iter().all(|report| report.located.is_empty()) => valid_journals += 1,
                Ok(all) => {
                    invalid += usize::from(all.iter().any(FileReport::is_invalid));
                    tell(&name, &all, args.json)?;
                }
                Err(failure) if failure.code == Code::Usage => return Err(failure),
                Err(failure) => {
                    invalid += 1;
                    tell_failure(&name, &failure, args.json)?;
                }
            }
        }
        match (valid_journals, args.json) {
            (0, false) if files.is_empty() && journals.is_empty() => {
                output::line(format!("{}: nothing here that nietz knows", file.display()))?;
            }
            (0, _) | (_, true) => {}
            (1, false) => output::line("1 journal valid")?,
            (count, false) => output::line(format!("{count} journals valid"))?,
        }
    }
    Ok(if invalid > 0 { Exit::Invalid } else { Exit::Done })
}

impl FileReport {
    fn is_invalid(&self) -> bool {
        self.located.iter().any(|violation| violation.severity == Severity::Error)
    }
}

fn tell(name: &str, all: &[FileReport], as_json: bool) -> Result<()> {
    if all.iter().all(|findings| findings.located.is_empty()) {
        return if as_json { Ok(()) } else { output::line(format!("{name}: valid")) };
    }
    for findings in all.iter().filter(|findings| !findings.located.is_empty()) {
        if !as_json {
            output::block(report::render(&findings.text, &findings.located, false))?;
            continue;
        }
        for violation in &findings.located {
            let mut value = serde_json::to_value(violation).unwrap_or_default();
            let own = value["keyword"].as_str().and_then(Code::parse);
            value["code"] = serde_json::json!(own.unwrap_or(findings.code));
            output::json(&value)?;
        }
    }
    Ok(())
}

fn tell_failure(name: &str, failure: &Failure, as_json: bool) -> Result<()> {
    if as_json {
        let place = failure.place.as_deref();
        return output::json(&serde_json::json!({
            "file": place.map_or(name, |place| &place.file), "line": place.and_then(|place| place.line),
            "excerpt": place.and_then(|place| place.excerpt.as_deref()),
            "code": failure.code, "message": failure.message, "details": failure.details, "hint": failure.hint,
        }));
    }
    output::block(crate::host::ui::ending::failure(failure, &crate::host::ui::ending::without_colour))
}

/// The flows of the workspace, which are loaded when the first document needs one.
struct FlowCache<'a> {
    machine: &'a Machine,
    loaded: Option<Vec<Flow>>,
}

impl FlowCache<'_> {
    fn all(&mut self) -> &[Flow] {
        let machine = self.machine;
        self.loaded.get_or_insert_with(|| {
            // A broken lock file or flow is reported by its own check; here it has no documents.
            let every = resolve::all_flows(&machine.workspace, &machine.packs()).unwrap_or_default();
            every.into_iter().filter_map(|located| session::load(machine, located).ok()).collect()
        })
    }
}

fn check(flows: &mut FlowCache<'_>, file: &Path, named: Option<&str>) -> Result<Vec<FileReport>> {
    let name = file.display().to_string();
    // A journal is the largest file that is checked.
    let bytes = disk::read(file, Links::All, reader::MAX_BYTES)?;
    let bytes = bytes.ok_or_else(|| Failure::new(Code::Usage, format!("there is no file {name}")))?;
    if named.is_none()
        && let Some(mut findings) = sources::check(flows.machine, file)?
    {
        sources::add_needs(flows, file, &mut findings)?;
        return Ok(findings);
    }
    let text = source::decode(&bytes, &name)?.to_owned();
    let machine = flows.machine;
    let store = Store::new(&machine.workspace)?.without(&machine.own_folders());
    if let Some(named) = named {
        let (flow, collection) = named.split_once(':').ok_or_else(|| {
            Failure::new(Code::Usage, format!("--as {named}: write FLOW:COLLECTION")).hint("such as `notes:entries`")
        })?;
        let flow = session::load(machine, resolve::flow(flow, &machine.workspace, &machine.packs())?)?;
        return check_document(&flow, &store, collection, file, text).map(|findings| vec![findings]);
    }
    let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
    for flow in flows.all() {
        for (collection, declared) in &flow.manifest.collections {
            if store.match_path(&declared.collection, &full).is_some() {
                return check_document(flow, &store, collection, file, text).map(|findings| vec![findings]);
            }
        }
    }
    if journal::is_journal(&text) {
        return journal::check(file, &name).map(|findings| vec![findings]);
    }
    Err(Failure::new(Code::Usage, format!("{name} belongs to no collection of any flow here"))
        .hint("say which: nietz check --as FLOW:COLLECTION FILE"))
}

fn check_document(flow: &Flow, store: &Store, collection: &str, file: &Path, text: String) -> Result<FileReport> {
    let Some(declared) = flow.manifest.collections.get(collection) else {
        let failure = Failure::new(Code::Usage, format!("{} has no collection `{collection}`", flow.manifest.name));
        return Err(match nearest(collection, flow.manifest.collections.keys().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure,
        });
    };
    let name = file.display().to_string();
    let mut located = store.check_text(&declared.collection, &text, &name)?;
    let broken = located.iter().any(|violation| violation.severity == Severity::Error);
    if broken {
        return Ok(FileReport { text, located, code: Code::DocumentInvalid });
    }
    if declared.collection.format == Format::Jsonl {
        let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
        if let Some(key) = store.match_path(&declared.collection, &full) {
            let all = flow.context().collections.borrow();
            located.extend(store.check_references(&declared.collection, &all, &key, &text, &name)?);
        }
        located.extend(expect::of_file(&declared.collection.expects, &text, &name));
    } else {
        let document = source::parse(&text, declared.collection.format, &name)?;
        if !store.is_newer(&declared.collection, &document) {
            let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
            let key = store.match_path(&declared.collection, &full);
            let document = documents::brought_up(flow, store, (collection, key.as_ref()), document)
                .map_err(|failure| failure.because(format!("in the migration of {name}")))?;
            located.extend(apply_rules(flow, collection, &document, &text, &name)?);
        }
    }
    located.sort_by_key(|violation| (violation.line, violation.column, violation.severity));
    Ok(FileReport { text, located, code: Code::DocumentInvalid })
}

/// Returns how a document that its schema accepts violates the collection's rules and expectations.
fn apply_rules(
    flow: &Flow,
    collection: &str,
    document: &serde_json::Value,
    text: &str,
    name: &str,
) -> Result<Vec<report::LocatedViolation>> {
    let declared = &flow.manifest.collections[collection].collection;
    let mut violations = Vec::new();
    let mut notes = expect::of_document(&declared.expects, document);
    let ruled = flow.rules(collection, document);
    for ruled in ruled.map_err(|failure| failure.because(format!("raised by the rules for {name}")))? {
        let target = if ruled.note { &mut notes } else { &mut violations };
        target.push(Violation::new(ruled.pointer, "rule", ruled.message));
    }
    // A note is dropped if a rule already reports an error at the same place.
    notes.retain(|note| violations.iter().all(|violation| violation.pointer != note.pointer));
    let mut located = report::locate(violations, Severity::Error, text, declared.format, name);
    located.extend(report::locate(notes, Severity::Note, text, declared.format, name));
    Ok(located)
}
