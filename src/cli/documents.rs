//! `nietz documents migrate [FLOW]`: brings documents of older versions up to date, all that are on disk.
//!
//! Each file is replaced in one step, and only by a document that is valid. So a migration that is killed is begun again
//! and goes on where it was: what is of today's version is left alone.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::documents::Store;
use crate::lua::flow::Flow;
use crate::lua::manifest::DeclaredCollection;
use crate::model::collection::{DocumentKey, Format};
use crate::model::difference::differences;
use crate::model::document::{Expect, VersionStatus};
use crate::model::text::line;
use crate::pack::resolve;
use crate::run::machine::Machine;
use crate::run::machine::team::Team;
use crate::run::session;

/// Work on the documents of flows
#[derive(Args)]
pub(super) struct DocumentsArgs {
    #[command(subcommand)]
    verb: DocumentsVerb,
}

#[derive(Subcommand)]
enum DocumentsVerb {
    Migrate(MigrateArgs),
    #[cfg(feature = "postgres")]
    Export(ExportArgs),
}

/// Write the documents of the store as files, at the paths that their flows name
#[cfg(feature = "postgres")]
#[derive(Args)]
struct ExportArgs {
    /// The folder that they are written below
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    into: std::path::PathBuf,
    /// Also over files that are there and differ
    #[arg(long)]
    replace: bool,
    /// One JSON object for each: its path, who wrote it last and when
    #[arg(long)]
    json: bool,
}

/// Bring documents of older versions up to date. What cannot be, or cannot be read, is told, and kept as it is (exit 4)
#[derive(Args)]
struct MigrateArgs {
    /// The flow that owns them; without one, all flows
    flow: Option<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// One JSON object for each document that is of an older version, or cannot be read
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &DocumentsArgs) -> Result<Exit> {
    match &args.verb {
        DocumentsVerb::Migrate(args) => migrate(machine, args),
        #[cfg(feature = "postgres")]
        DocumentsVerb::Export(args) => export(machine, args),
    }
}

/// Writes the documents that are shared, and those of this person.
#[cfg(feature = "postgres")]
fn export(machine: &Machine, args: &ExportArgs) -> Result<Exit> {
    use crate::disk::temp_file::TempFile;
    let (server, _) = machine.team().needed("`nietz documents export`")?;
    let me = server.workspace()?.me.clone();
    let root = machine.typed_path(&args.into);
    let (mut written, mut kept) = (0, 0);
    for (scope, path, who, at) in server.all_documents()? {
        let is_plain =
            std::path::Path::new(&path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !(scope.is_empty() || scope == me) || !is_plain || crate::model::path_template::is_of_others(&path) {
            continue;
        }
        let Some(bytes) = server.document(&scope, &path)? else { continue };
        let full = root.join(&path);
        let there = std::fs::read(&full).ok();
        let differs = there.as_ref().is_some_and(|there| *there != bytes) && !args.replace;
        if differs {
            kept += 1;
        } else if there.as_ref() != Some(&bytes) {
            let folder = full.parent().unwrap_or(&root);
            std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
            TempFile::write(&full, &bytes)?.publish(&full)?;
            written += 1;
        }
        if args.json {
            let shared = scope.is_empty();
            output::json(&json!({ "path": path, "shared": shared, "who": who, "at": at, "kept": differs }))?;
        } else {
            let note = if differs { ": the file that is there differs, and stays (--replace)" } else { "" };
            output::line(format!("{} ({}, {at}){note}", line(&path), line(&who)))?;
        }
    }
    if !args.json {
        output::line(format!("{written} written, {kept} kept as they were"))?;
    }
    Ok(if kept > 0 { Exit::Failed } else { Exit::Done })
}

/// What happened to the documents up to now.
#[derive(Default)]
struct MigrationCount {
    migrated: usize,
    kept: usize,
}

fn migrate(machine: &Machine, args: &MigrateArgs) -> Result<Exit> {
    let packs = machine.packs();
    let located = match &args.flow {
        Some(name) => vec![resolve::flow(name, &machine.workspace, &packs)?],
        None => resolve::all_flows(&machine.workspace, &packs)?,
    };
    let store = Team::documents(machine, None)?;
    let mut count = MigrationCount::default();
    for located in located {
        let flow = match session::load(machine, located) {
            Ok(flow) => flow,
            Err(failure) if args.flow.is_some() => return Err(failure),
            // `nietz check` tells what is wrong with it.
            Err(_) => continue,
        };
        // One without migrations is looked at, too: what is older there cannot be brought up to date, and that is told.
        let has_versions = |declared: &DeclaredCollection| {
            declared.collection.format != Format::Jsonl && declared.collection.version.is_some()
        };
        let has_older = |declared: &DeclaredCollection| {
            declared.collection.version.as_ref().is_some_and(|version| !version.migrates.is_empty())
        };
        let all = || flow.manifest.collections.iter().filter(|(_, declared)| has_versions(declared));
        if !args.dry_run && all().any(|(_, declared)| has_older(declared)) {
            refuse_beside_runs(machine, &flow)?;
        }
        for (name, _) in all() {
            migrate_collection(&flow, &store, name, args, &mut count)?;
        }
    }
    if !args.json {
        let MigrationCount { migrated, kept } = count;
        let done = if args.dry_run { "would be brought up to date" } else { "brought up to date" };
        output::line(match (migrated, kept) {
            (0, 0) => "all documents are of today's versions".to_owned(),
            (_, 0) => format!("{done}: {migrated}"),
            _ => format!("{done}: {migrated}; kept as they are: {kept}"),
        })?;
    }
    Ok(if count.kept > 0 { Exit::Invalid } else { Exit::Done })
}

/// Refuses to change documents that a run of the flow may have read.
fn refuse_beside_runs(machine: &Machine, flow: &Flow) -> Result<()> {
    for run in machine.runs().list()? {
        if run.busy && run.summary.flow == flow.manifest.name {
            let message =
                format!("run {} of {} is on, and may have read what would be changed", run.id, run.summary.flow);
            return Err(Failure::new(Code::RunBusy, message).hint("migrate when it has ended"));
        }
    }
    Ok(())
}

fn migrate_collection(
    flow: &Flow,
    store: &Store,
    name: &str,
    args: &MigrateArgs,
    count: &mut MigrationCount,
) -> Result<()> {
    let collection = &flow.manifest.collections[name].collection;
    let current = collection.version.as_ref().map(|version| text_of(&version.current)).unwrap_or_default();
    let mut after = None;
    loop {
        let page = store.scan(collection, None, after.as_deref())?;
        for scanned in page.entries {
            let Some(key) = store.match_path(collection, std::path::Path::new(&scanned.path)) else { continue };
            let path = scanned.path;
            let outcome = match (scanned.standing, scanned.failure) {
                (VersionStatus::Older(from), _) => migrate_one(flow, store, (name, &key), args.dry_run)
                    .map(|changed| changed.map(|changes| (from.clone(), changes)))
                    .map_err(|failure| (from, failure)),
                (_, Some(failure)) if matches!(failure.code, Code::DocumentVersion | Code::DocumentUnreadable) => {
                    Err((String::new(), failure))
                }
                // What else is wrong with a document has nothing to do with its version.
                (_, Some(_)) => continue,
                (_, None) if args.dry_run => continue,
                (_, None) => {
                    store.clear_backups(collection, &key)?;
                    continue;
                }
            };
            match outcome {
                // Somebody brought it up to date meanwhile.
                Ok(None) => {}
                Ok(Some((from, changes))) => {
                    count.migrated += 1;
                    tell(
                        args,
                        &json!({
                            "path": path, "flow": flow.manifest.name, "collection": name, "from": from, "to": current,
                            "migrated": !args.dry_run, "changes": changes,
                        }),
                    )?;
                }
                Err((from, failure)) => {
                    count.kept += 1;
                    tell(
                        args,
                        &json!({
                            "path": path, "flow": flow.manifest.name, "collection": name, "from": from, "to": current,
                            "migrated": false, "failure": failure,
                        }),
                    )?;
                }
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Migrates one document; returns its changes, or `None` if it is not of an older version any more.
fn migrate_one(
    flow: &Flow,
    store: &Store,
    (name, key): (&str, &DocumentKey),
    dry_run: bool,
) -> Result<Option<Vec<String>>> {
    let collection = &flow.manifest.collections[name].collection;
    let Some(loaded) = store.load(collection, key)? else { return Ok(None) };
    let VersionStatus::Older(_) = loaded.standing else { return Ok(None) };
    let document = brought_up(flow, store, (name, Some(key)), loaded.value.clone())?;
    if let Some(finding) = flow.rules(name, &document)?.iter().find(|finding| !finding.note) {
        let message = format!("it would break a rule of its flow: {}: {}", finding.pointer, finding.message);
        return Err(Failure::new(Code::DocumentInvalid, message));
    }
    let changes = differences(&loaded.value, &document);
    if !dry_run {
        store.save_migrated(collection, key, document, &Expect::Digest(loaded.digest))?;
    }
    Ok(Some(changes))
}

fn tell(args: &MigrateArgs, told: &Value) -> Result<()> {
    if args.json {
        return output::json(told);
    }
    let text = |name: &str| line(told[name].as_str().unwrap_or_default()).into_owned();
    let from = if text("from").is_empty() { "without a version".to_owned() } else { text("from") };
    match told["failure"]["message"].as_str() {
        Some(message) => {
            output::line(format!("{}: kept as it is: {}", text("path"), line(message)))?;
            for detail in told["failure"]["details"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                output::line(format!("  - {}", line(detail)))?;
            }
        }
        None => output::line(format!("{}: {from} → {}", text("path"), text("to")))?,
    }
    if args.dry_run {
        for change in told["changes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            output::line(format!("  {}", line(change)))?;
        }
    }
    Ok(())
}

fn text_of(version: &Value) -> String {
    version.as_str().map_or_else(|| version.to_string(), str::to_owned)
}

/// Migrates an older document to the current version, as which it could be saved.
pub(super) fn brought_up(
    flow: &Flow,
    store: &Store,
    (collection, key): (&str, Option<&DocumentKey>),
    document: Value,
) -> Result<Value> {
    let declared = &flow.manifest.collections[collection];
    let version = declared.collection.version.as_ref();
    let Some(found) = version.and_then(|version| version.older(&document)) else { return Ok(document) };
    let mut document = flow.migrate(collection, document, &found)?;
    let violations = store.check_to_save(&declared.collection, key, &mut document)?;
    let what = format!("version {found} migrates to a document that is not valid");
    Err(match violations.as_slice() {
        [] => return Ok(document),
        [violation] => Failure::new(Code::DocumentInvalid, format!("{what}: {violation}")),
        several => {
            let failure = Failure::new(Code::DocumentInvalid, format!("{what}: it has {} faults", several.len()));
            several.iter().fold(failure, Failure::because)
        }
    })
}
