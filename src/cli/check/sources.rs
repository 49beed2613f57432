//! Checks nietz's own files: those that people write (flows, personas, quotes, packs, configuration) and those that nietz
//! writes (journals, cassettes, lock files, trust, records of runs).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cli::check::{FileReport, FlowCache, collections, journal, overriding};
use crate::cli::pack::vet;
use crate::cli::trust::packs as trust;
use crate::disk::{self, Links};
use crate::engine::run_records::RunRecords;
use crate::error::{Code, Failure, Result};
use crate::host::documents::Store;
use crate::lua::audit;
use crate::lua::limits::FlowLimits;
use crate::lua::vm::Vm;
use crate::pack::ejected::Ejected;
use crate::pack::lock;
use crate::pack::permission_items::ItemsByFlow;
use crate::pack::persona::{Persona, PersonaNeeds};
use crate::pack::resolve;
use crate::pack::tree::{PackTree, Root};
use crate::run::machine::Machine;
use crate::run::session;
use crate::schema::builtin::{self, BuiltinSchema};
use crate::schema::report::{self, Severity};
use crate::schema::source::MAX_BYTES;
use crate::schema::{TextPosition, source};
use crate::template;

/// How many levels deep a folder is searched.
const DEPTH: usize = 12;
/// Folders that are not searched.
const PASSED_OVER: &[&str] = &[".git", "target", "node_modules"];
/// Folders below `.nietz` that are not searched, because they are generated from other files.
const MADE_ANEW: &[&str] = &["index", "types"];

/// Returns the files below a folder that nietz can check: its own files by kind, documents by the flows' collections.
pub(super) fn below(flows: &mut FlowCache<'_>, folder: &Path) -> Vec<PathBuf> {
    let Ok(full) = folder.canonicalize() else { return Vec::new() };
    let machine = flows.machine;
    let store = Store::new(&machine.workspace).ok().map(|store| store.without(&machine.own_folders()));
    let walk = walkdir::WalkDir::new(&full).max_depth(DEPTH).sort_by_file_name().into_iter();
    let files: Vec<PathBuf> = walk
        .filter_entry(|entry| entry.depth() == 0 || !is_passed_over(entry.path()))
        .filter_map(std::result::Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .collect();
    // Flows are loaded for the first file that is nothing else.
    let mut is_document = |path: &Path| {
        let store = store.as_ref();
        let mut collections = flows.all().iter().flat_map(|flow| flow.manifest.collections.values());
        store.is_some_and(|store| collections.any(|declared| store.match_path(&declared.collection, path).is_some()))
    };
    let known = files.into_iter().filter(|path| kind(machine, path).is_some() || is_document(path));
    // Paths begin with the folder as the user wrote it, and messages show them in that form.
    known.map(|path| path.strip_prefix(&full).map_or_else(|_| path.clone(), |below| folder.join(below))).collect()
}

/// Tells whether a file is the journal of a run that is kept here.
pub(super) fn is_of_a_run(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "journal.jsonl") && path.iter().any(|part| part == ".nietz")
}

fn is_passed_over(path: &Path) -> bool {
    let is = |names: &[&str]| path.file_name().is_some_and(|name| names.iter().any(|one| name == *one));
    let below = path.parent().and_then(Path::file_name).is_some_and(|parent| parent == ".nietz");
    is(PASSED_OVER) || (below && is(MADE_ANEW))
}

/// The kind of a file, by its name and folder.
enum FileKind {
    Flow,
    Module,
    Persona,
    Journal,
    /// A prompt or data file that may override one of a flow from elsewhere.
    Data,
    Own(&'static BuiltinSchema),
}

fn kind(machine: &Machine, file: &Path) -> Option<FileKind> {
    let full = file.canonicalize().ok()?;
    let within = |folder: &str| full.iter().any(|part| part == folder);
    let name = full.file_name()?.to_str()?;
    let parent = full.parent()?;
    let is = |path: PathBuf| path.file_name() == full.file_name() && path.canonicalize().is_ok_and(|path| path == full);
    if is(machine.config_path()) {
        return Some(FileKind::Own(&builtin::CONFIG));
    }
    let trust = machine.trust();
    if is(trust.path) {
        return Some(FileKind::Own(&builtin::TRUST));
    }
    if is(machine.keys_file().path) {
        return Some(FileKind::Own(&builtin::KEYS));
    }
    if is(trust.legacy) {
        return Some(FileKind::Own(&builtin::GRANTS));
    }
    if machine.records().canonicalize().is_ok_and(|records| records == parent) && RunRecords::is_record(name) {
        return Some(FileKind::Own(&builtin::RECORD));
    }
    if name == "nietz.lock" {
        return Some(FileKind::Own(&builtin::LOCK));
    }
    if is(Ejected::path(&machine.workspace)) {
        return Some(FileKind::Own(&builtin::EJECTED));
    }
    if overriding::is_overriding(machine, &full) {
        return Some(FileKind::Data);
    }
    Some(match full.extension()?.to_str()? {
        "lua" if parent.file_name().is_some_and(|name| name == "flows") => FileKind::Flow,
        "lua" | "luau" if within("flows") => FileKind::Module,
        "md" if within("personas") => FileKind::Persona,
        "yaml" if name == "pack.yaml" => FileKind::Own(&builtin::PACK),
        "yaml" if name == "nietz.yaml" => FileKind::Own(&builtin::PROJECT),
        "yaml" if within("quotes") => FileKind::Own(&builtin::QUOTES),
        "jsonl" if name == "journal.jsonl" && within(".nietz") => FileKind::Journal,
        "jsonl" if full.iter().zip(full.iter().skip(1)).any(|(one, next)| one == "tests" && next == "cassettes") => {
            FileKind::Journal
        }
        _ => return None,
    })
}

/// Checks a file of nietz's own. Returns `None` for other files.
pub(super) fn check(machine: &Machine, file: &Path) -> Result<Option<Vec<FileReport>>> {
    let name = file.display().to_string();
    let missing = || Failure::io(file, "read", &std::io::ErrorKind::NotFound.into());
    let bytes = || disk::read(file, Links::All, MAX_BYTES)?.ok_or_else(missing);
    Ok(Some(match kind(machine, file) {
        None if file.extension().is_some_and(|ending| ending == "lua") => flow(machine, file)?,
        None => return Ok(None),
        Some(FileKind::Flow) => flow(machine, file)?,
        Some(FileKind::Module) => vec![module(source::decode(&bytes()?, &name)?, &name)?],
        Some(FileKind::Persona) => vec![persona(source::decode(&bytes()?, &name)?, &name)?],
        Some(FileKind::Journal) => vec![journal::check(file, &name)?],
        Some(FileKind::Data) => match overriding::check(machine, file)? {
            Some(report) => vec![report],
            None => return Ok(None),
        },
        Some(FileKind::Own(own)) => {
            let findings = check_own_file(own, source::decode(&bytes()?, &name)?, &name)?;
            if own.name == "pack" && findings.located.is_empty() {
                pack(machine, file)?;
            }
            vec![findings]
        }
    }))
}

fn check_own_file(own: &BuiltinSchema, text: &str, name: &str) -> Result<FileReport> {
    let (value, located) = builtin::check(own, text, name)?;
    if own.name == "lock" {
        lock::known_version(&value, name)?;
    }
    Ok(FileReport { text: text.to_owned(), located, code: own.code })
}

/// Loads a flow, and audits all code that it reaches.
fn flow(machine: &Machine, file: &Path) -> Result<Vec<FileReport>> {
    let located = machine.find_flow(&file.display().to_string())?;
    let (tree, path) = (located.tree.clone(), located.path.clone());
    let flow = session::load(machine, located)?;
    let found = audit::flow(&tree, &path, &flow.manifest);
    let mut files: BTreeMap<String, FileReport> = BTreeMap::new();
    for finding in found {
        let text = tree.text(&finding.path)?.unwrap_or_default().to_string();
        let shown = if finding.path == path { file.display().to_string() } else { tree.display(&finding.path) };
        let place = TextPosition { line: finding.line, column: finding.column };
        let mut located = report::LocatedViolation::unreadable(&shown, place, finding.one_line());
        finding.code.name().clone_into(&mut located.keyword);
        if finding.is_remark {
            located.severity = Severity::Note;
        }
        let findings =
            files.entry(finding.path).or_insert_with(|| FileReport { text, located: Vec::new(), code: finding.code });
        findings.located.push(located);
    }
    for (path, located) in data_faults(&tree)? {
        let text = tree.text(&path)?.unwrap_or_default().to_string();
        files.insert(path, FileReport { text, located, code: Code::DocumentInvalid });
    }
    let store = Store::new(&machine.workspace)?;
    let collections = || flow.manifest.collections.values();
    let remarks = collections().flat_map(|declared| &declared.remarks);
    let remarks = remarks.map(|remark| (remark.found.clone(), remark.message.clone(), Severity::Note));
    let faults = collections().flat_map(|declared| collections::faults(&store, declared));
    let told: Vec<_> = remarks.chain(faults.map(|fault| (fault.found, fault.message, Severity::Error))).collect();
    if !told.is_empty() {
        let text = tree.text(&path)?.unwrap_or_default().to_string();
        let name = file.display().to_string();
        let located = told.into_iter().map(|(found, message, severity)| {
            let mut located = report::LocatedViolation::unreadable(&name, place_of(&text, &found), message);
            located.severity = severity;
            Code::FlowInvalid.name().clone_into(&mut located.keyword);
            located
        });
        let located: Vec<_> = located.collect();
        let findings =
            files.entry(path).or_insert_with(|| FileReport { text, located: Vec::new(), code: Code::FlowInvalid });
        findings.located.extend(located);
    }
    Ok(files.into_values().collect())
}

/// Returns where a text stands in a flow, in quotes, or in the brackets that it has itself. One that is put together in
/// another way is told at the beginning of the file.
fn place_of(text: &str, found: &str) -> TextPosition {
    let spelt = match found.starts_with('[') {
        true => vec![found.to_owned()],
        false => ['"', '\''].map(|quote| format!("{quote}{found}{quote}")).to_vec(),
    };
    let at = text.lines().zip(1..).find_map(|(line, number)| {
        let column = spelt.iter().find_map(|found| line.find(found.as_str()))?;
        Some(TextPosition { line: number, column: line[..column].chars().count() + 1 })
    });
    at.unwrap_or(TextPosition { line: 1, column: 1 })
}

/// Returns what is wrong with files of the folders that a flow reads whole, by their paths. Those of a project that stand
/// beside files from elsewhere are checked by themselves.
fn data_faults(tree: &PackTree) -> Result<Vec<(String, Vec<report::LocatedViolation>)>> {
    let mut all = Vec::new();
    for folder in tree.folders() {
        for path in folder.files(tree) {
            let located = folder.faults(tree, &path)?;
            if !located.is_empty() {
                all.push((path, located));
            }
        }
    }
    Ok(all)
}

/// Checks whether a module is valid Lua. The rest is checked with the flows that require it.
fn module(text: &str, name: &str) -> Result<FileReport> {
    Vm::new(FlowLimits::default())?.compile(name, text)?;
    Ok(FileReport { text: text.to_owned(), located: Vec::new(), code: Code::FlowInvalid })
}

fn persona(text: &str, name: &str) -> Result<FileReport> {
    let plain = text.replace("\r\n", "\n");
    let mut located = Vec::new();
    if let Some((front, body)) = plain.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) {
        // The front matter starts on the file's second line.
        located = builtin::check(&builtin::PERSONA, &format!("\n{front}"), name)?.1;
        let before = front.matches('\n').count() + 3;
        if let Err(failure) = template::names(name, &format!("{}{body}", "\n".repeat(before))) {
            // The message is `FILE:LINE: what` if it names a line.
            let rest = failure.message.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')?.split_once(": "));
            let line = rest.and_then(|(line, _)| line.parse().ok()).unwrap_or(1);
            let what = rest.map_or(failure.message.as_str(), |(_, what)| what);
            let mut violation = report::LocatedViolation::unreadable(name, TextPosition { line, column: 1 }, what);
            failure.code.name().clone_into(&mut violation.keyword);
            located.push(violation);
        }
    }
    if located.is_empty() {
        Persona::parse("persona", text, name)?;
    }
    Ok(FileReport { text: plain, located, code: Code::DocumentInvalid })
}

/// Adds what the flows here need of a persona by its tags, if the file is one and nothing else is wrong with it.
pub(super) fn add_needs(flows: &mut FlowCache<'_>, file: &Path, reports: &mut [FileReport]) -> Result<()> {
    let [report] = reports else { return Ok(()) };
    if !report.located.is_empty() || !matches!(kind(flows.machine, file), Some(FileKind::Persona)) {
        return Ok(());
    }
    let name = file.display().to_string();
    for flow in flows.all() {
        report.located.extend(PersonaNeeds::compile(&flow.manifest.personas)?.faults_of_any(&report.text, &name));
    }
    Ok(())
}

/// Checks that the `pack.yaml` of a pack lists the permissions that its flows declare.
fn pack(machine: &Machine, file: &Path) -> Result<()> {
    let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
    let tree = PackTree::new(Root::Disk(full.parent().unwrap_or(Path::new("/")).to_owned()));
    let manifest = crate::pack::manifest::PackManifest::read(&tree)?;
    let mut declared = ItemsByFlow::new();
    for located in resolve::flows(&tree) {
        // A flow that does not load is reported by its own check.
        if let Ok(flow) = session::load(machine, located) {
            declared.insert(flow.manifest.name.clone(), trust::asked_items(&flow.manifest));
        }
    }
    vet::compare(&manifest.items_by_flow(), &declared)
}
