//! `nietz verify RUN`.

use std::path::{Component, Path};

use clap::Args;
use serde_json::Value;

use crate::cli::{documents, output};
use crate::disk::{self, Links};
use crate::engine::verify::{self, RunWrites};
use crate::error::{Code, Exit, Failure, Result};
use crate::host::documents::Store;
use crate::lua::flow::Flow;
use crate::model::collection::DocumentKey;
use crate::model::text::excerpt;
use crate::run::machine::Machine;
use crate::run::{replay, session};
use crate::schema::source::{self, MAX_BYTES};
#[cfg(feature = "postgres")]
use crate::store::postgres::Server;

/// Hold what a run wrote against its journal: the chain of its lines, each row that was appended, each document
#[derive(Args)]
pub(super) struct VerifyArgs {
    /// The run's id, a part of it that only one has, or `latest`
    run: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &VerifyArgs) -> Result<Exit> {
    let runs = machine.runs();
    let id = runs.find(Some(&args.run))?;
    let journal = runs.journal(&id)?;
    let written = RunWrites::read(&journal)?;
    let mut migrations = Migrations { machine, run: &id, journal: &journal, loaded: None };
    let place = Place::of(machine, &id)?;
    let mut verdict =
        written.compare_with(&id, |path| place.read(path), |request, bytes| migrations.lead_to(request, bytes))?;
    verdict.add_strangers(&written, &id, |folder| place.names(folder))?;
    let torn = written.whole.torn;
    if args.json {
        output::json(&serde_json::json!({
            "run": id, "lines": written.whole.lines, "torn": torn, "documents": verdict.documents,
            "rows": verdict.rows, "differences": verdict.differences, "brought_up": verdict.brought_up,
        }))?;
    } else {
        let (lines, documents, rows) = (written.whole.lines, verdict.documents, verdict.rows);
        output::line(format!("{id}: {lines} lines in one chain, {documents} documents, {rows} rows"))?;
        for path in &verdict.brought_up {
            output::line(format!("  {path}: brought up to date since, by a migration of its flow"))?;
        }
        if torn > 0 {
            output::line(format!("  {torn} bytes of a torn last line, which resuming cuts off"))?;
        }
    }
    if verdict.differences.is_empty() {
        return Ok(Exit::Done);
    }
    let count = verdict.differences.len();
    let things = if count == 1 { "one thing is" } else { "some things are" };
    let failure = Failure::new(Code::RecordDiffers, format!("{things} not as the run {id} wrote it"))
        .hint("a later run or a person may have changed a document; rows are only ever appended: `nietz explain record-differs`");
    Err(verdict.differences.iter().fold(failure, Failure::because))
}

/// Where the documents of a run are.
enum Place<'a> {
    Folder(&'a Path),
    /// On a server: what is shared, and what is of who began the run.
    #[cfg(feature = "postgres")]
    Server(&'a Server, String),
}

impl Place<'_> {
    fn of<'a>(machine: &'a Machine, run: &str) -> Result<Place<'a>> {
        #[cfg(feature = "postgres")]
        if let Some(server) = machine.team().server() {
            let scope = server.find(run)?.map(|run| run.began_by);
            return Ok(Place::Server(server, scope.unwrap_or_default()));
        }
        let _ = run;
        Ok(Place::Folder(&machine.workspace))
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self {
            Place::Folder(folder) => read(folder, path),
            #[cfg(feature = "postgres")]
            Place::Server(server, scope) => match server.document(scope, path)? {
                Some(bytes) => Ok(Some(bytes)),
                None => server.document("", path),
            },
        }
    }

    /// Returns the names in a folder, sorted.
    fn names(&self, folder: &Path) -> Result<Vec<String>> {
        match self {
            Place::Folder(workspace) => names(&workspace.join(folder)),
            #[cfg(feature = "postgres")]
            Place::Server(server, scope) => {
                let start = format!("{}/", folder.to_string_lossy().trim_end_matches('/'));
                let mut found = Vec::new();
                for scope in [scope.as_str(), ""] {
                    let paths = server.documents(scope, &start)?.into_iter().map(|(path, _)| path);
                    let names = paths.filter_map(|path| path[start.len()..].split('/').next().map(str::to_owned));
                    found.extend(names);
                }
                found.sort();
                found.dedup();
                Ok(found)
            }
        }
    }
}

/// The flow of a run as it is today, loaded when the first document is not as the run saved it.
struct Migrations<'a> {
    machine: &'a Machine,
    run: &'a str,
    journal: &'a Path,
    loaded: Option<Option<(Flow, Store)>>,
}

impl Migrations<'_> {
    /// Tells whether a file is what the flow's migrations make of what the run saved. Where the flow is gone, or does not
    /// load, nothing is known of them.
    fn lead_to(&mut self, request: &Value, bytes: &[u8]) -> bool {
        let (machine, run, journal) = (self.machine, self.run, self.journal);
        let load = || -> Result<(Flow, Store)> {
            let located = replay::locate_flow(machine, run, &replay::read_ends(journal)?)?;
            Ok((session::load(machine, located)?, Store::new(&machine.workspace)?))
        };
        let Some((flow, store)) = self.loaded.get_or_insert_with(|| load().ok()) else { return false };
        let name = request["collection"].as_str().unwrap_or_default();
        let Some(declared) = flow.manifest.collections.get(name) else { return false };
        let (collection, saved) = (&declared.collection, &request["value"]);
        if store.is_current(collection, saved) {
            return false;
        }
        let key: Option<DocumentKey> = serde_json::from_value(request["key"].clone()).ok();
        let migrated = documents::brought_up(flow, store, (name, key.as_ref()), saved.clone());
        let found = source::decode(bytes, name).and_then(|text| source::parse(text, collection.format, name));
        matches!((migrated, found), (Ok(migrated), Ok(found)) if verify::same(&migrated, &found))
    }
}

/// Returns the names in a folder, sorted; none where it is gone.
fn names(folder: &Path) -> Result<Vec<String>> {
    let failed = |error: std::io::Error| Failure::io(folder, "list", &error);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        // Those with a dot are nietz's own, while it writes.
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Reads a file of the workspace. A journal that nietz wrote names no other files, so they are refused.
fn read(workspace: &Path, path: &str) -> Result<Option<Vec<u8>>> {
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        let shown = excerpt(path);
        return Err(Failure::new(
            Code::PathRefused,
            format!("the journal names a file outside of the workspace: {shown}"),
        ));
    }
    let full = workspace.join(path);
    disk::read(&full, Links::Below(workspace), MAX_BYTES)
}
