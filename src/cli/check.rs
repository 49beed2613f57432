//! `nietz check FILE…`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::host::Host;
use crate::cli::{output, session};
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::host::documents::Store;
use crate::lua::flow::Flow;
use crate::model::collection::Format;
use crate::pack::resolve::{self, Located};
use crate::schema::report::{self, Severity};
use crate::schema::{Fault, source};

/// Check files: documents by their collection, flows, personas and quotes by their kind
#[derive(Args)]
pub(super) struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The collection that the files belong to; without it, it is found by their path
    #[arg(long = "as", value_name = "FLOW:COLLECTION")]
    collection: Option<String>,
    /// One JSON object for each fault
    #[arg(long)]
    json: bool,
}

/// What was found in one file.
struct Findings {
    text: String,
    located: Vec<report::Located>,
}

pub(super) fn run(host: &Host, args: &CheckArgs) -> Result<Exit> {
    let mut invalid = 0;
    let mut flows = Flows { host, loaded: None };
    for file in &args.files {
        let found = check(&mut flows, file, args.collection.as_deref());
        let name = file.display().to_string();
        match found {
            Ok(findings) => {
                let errors = findings.located.iter().filter(|fault| fault.severity == Severity::Error).count();
                invalid += usize::from(errors > 0);
                if args.json {
                    for fault in &findings.located {
                        output::line(serde_json::to_string(fault).unwrap_or_default())?;
                    }
                } else if findings.located.is_empty() {
                    output::line(format!("{name}: valid"))?;
                } else {
                    output::line(report::render(&findings.text, &findings.located, false).trim_end())?;
                }
            }
            Err(failure) if failure.code == Code::Usage => return Err(failure),
            Err(failure) => {
                invalid += 1;
                if args.json {
                    output::line(serde_json::json!({
                        "file": name, "code": failure.code, "message": failure.message, "details": failure.details,
                        "hint": failure.hint,
                    }))?;
                } else {
                    output::line(
                        crate::host::ui::ending::failure(&failure, &crate::host::ui::ending::plain).trim_end(),
                    )?;
                }
            }
        }
    }
    Ok(if invalid > 0 { Exit::Invalid } else { Exit::Done })
}

/// Flows are loaded when the first document needs one.
struct Flows<'a> {
    host: &'a Host,
    loaded: Option<Vec<Flow>>,
}

impl Flows<'_> {
    fn all(&mut self) -> &[Flow] {
        let host = self.host;
        self.loaded.get_or_insert_with(|| {
            let every = resolve::every(&host.workspace, &host.packs());
            every.into_iter().filter_map(|located| session::load(host, located).ok()).collect()
        })
    }
}

fn check(flows: &mut Flows<'_>, file: &Path, named: Option<&str>) -> Result<Findings> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(Code::Usage, format!("there is no file {name}")),
        _ => Failure::io(file, "read", &error),
    })?;
    if named.is_none()
        && let Some(findings) = check_source(flows.host, file)?
    {
        return Ok(findings);
    }
    let text = source::decode(&bytes, &name)?.to_owned();
    let host = flows.host;
    let store = Store::new(&host.workspace)?;
    if let Some(named) = named {
        let (flow, collection) = named.split_once(':').ok_or_else(|| {
            Failure::new(Code::Usage, format!("--as {named}: write FLOW:COLLECTION")).hint("such as `notes:entries`")
        })?;
        let flow = session::load(host, resolve::flow(flow, &host.workspace, &host.packs())?)?;
        return check_document(&flow, &store, collection, file, text);
    }
    let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
    for flow in flows.all() {
        for (collection, declared) in &flow.manifest.collections {
            if store.match_path(&declared.collection, &full).is_some() {
                return check_document(flow, &store, collection, file, text);
            }
        }
    }
    Err(Failure::new(Code::Usage, format!("{name} belongs to no collection of any flow here"))
        .hint("say which: nietz check --as FLOW:COLLECTION FILE"))
}

/// Checks flows, personas and quotes; nothing for other files.
fn check_source(host: &Host, file: &Path) -> Result<Option<Findings>> {
    let within = |folder: &str| file.canonicalize().is_ok_and(|path| path.iter().any(|part| part == folder));
    let ending = file.extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    match ending {
        "lua" => {
            session::load(host, Located::from_source(&file.display().to_string())?)?;
        }
        "md" if within("personas") => {
            let text = std::fs::read_to_string(file).map_err(|error| Failure::io(file, "read", &error))?;
            crate::pack::persona::Persona::parse("persona", &text, &file.display().to_string())?;
        }
        "yaml" if within("quotes") => {
            let text = std::fs::read_to_string(file).map_err(|error| Failure::io(file, "read", &error))?;
            crate::pack::quote::parse(&text, &file.display().to_string())?;
        }
        _ => return Ok(None),
    }
    Ok(Some(Findings { text: String::new(), located: Vec::new() }))
}

fn check_document(flow: &Flow, store: &Store, collection: &str, file: &Path, text: String) -> Result<Findings> {
    let Some(declared) = flow.manifest.collections.get(collection) else {
        let failure = Failure::new(Code::Usage, format!("{} has no collection `{collection}`", flow.manifest.name));
        return Err(match nearest(collection, flow.manifest.collections.keys().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure,
        });
    };
    let name = file.display().to_string();
    let mut located = store.check_text(&declared.collection, &text, &name)?;
    let broken = located.iter().any(|fault| fault.severity == Severity::Error);
    if !broken && declared.collection.format == Format::Jsonl {
        let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
        if let Some(key) = store.match_path(&declared.collection, &full) {
            let all = flow.context().collections.borrow();
            located.extend(store.check_references(&declared.collection, &all, &key, &text, &name)?);
        }
    }
    if !broken && declared.collection.format != Format::Jsonl {
        let document = source::parse(&text, declared.collection.format, &name)?;
        let document = migrated(flow, store, collection, document)?;
        let rules = flow.rules(collection, &document)?;
        for (severity, note) in [(Severity::Error, false), (Severity::Note, true)] {
            let told = rules.iter().filter(|ruled| ruled.note == note);
            let faults = told.map(|ruled| Fault::new(ruled.pointer.clone(), "rule", ruled.message.clone())).collect();
            located.extend(report::locate(faults, severity, &text, declared.collection.format, &name));
        }
    }
    Ok(Findings { text, located })
}

/// Brings an older document up to the current version, which must be valid then.
fn migrated(flow: &Flow, store: &Store, collection: &str, document: serde_json::Value) -> Result<serde_json::Value> {
    let declared = &flow.manifest.collections[collection];
    let Some(version) = &declared.collection.version else { return Ok(document) };
    let found = match document.pointer(&version.field) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    if !version.migrates.contains(&found) {
        return Ok(document);
    }
    let document = flow.migrate(collection, document, &found)?;
    match store.validate(&declared.collection, &document)?.first() {
        None => Ok(document),
        Some(fault) => Err(Failure::new(
            Code::DocumentInvalid,
            format!("version {found} migrates to a document that is not valid: {}: {}", fault.pointer, fault.message),
        )),
    }
}
