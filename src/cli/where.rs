//! `nietz where`: the project and the folders and files that nietz uses, and how the project was found.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::run::machine::Machine;
use crate::run::project::Found;

/// Tell where everything is: the project, configuration, data, state, cache, models, runs
///
/// The project is the nearest folder from here upwards with `nietz.yaml`, `nietz.lock`, `.nietz` or a flow in `flows`, else this
/// one; the search ends at a repository's top, at your home, and below a folder that others can write. -C names another.
#[derive(Args)]
pub(super) struct WhereArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &WhereArgs) -> Result<Exit> {
    let (configs, places) = (configs(machine), places(machine));
    let how = how(machine);
    if args.json {
        let file =
            |(path, holds): &(PathBuf, &str)| json!({"path": shown(path), "exists": path.is_file(), "holds": holds});
        let mut all = json!({
            "project": shown(&machine.workspace), "found": how, "here": shown(&machine.project.here),
            "config": configs.iter().map(file).collect::<Vec<_>>(),
        });
        for (name, path) in places {
            all[name] = shown(&path).into();
        }
        output::json(&all)?;
        return Ok(Exit::Done);
    }
    let mut rows = vec![row("project", &machine.workspace, &how)];
    for (path, holds) in &configs {
        rows.push(row("config", path, &format!("{holds}{}", if path.is_file() { "" } else { "; not there" })));
    }
    for (name, path) in &places {
        rows.push(row(name, path, if path.exists() { "" } else { "not there yet" }));
    }
    output::table(&rows)?;
    Ok(Exit::Done)
}

fn row(name: &str, path: &Path, note: &str) -> Vec<String> {
    vec![name.to_owned(), shown(path), note.to_owned()]
}

/// Returns a path as text, whatever bytes are in its name.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Tells how the project was found.
fn how(machine: &Machine) -> String {
    let project = &machine.project;
    let how = match project.found {
        Found::Named => "named by -C".to_owned(),
        Found::Here => "the current folder".to_owned(),
        Found::Above(marker) => format!("above the current folder: it has {marker}"),
    };
    match &project.closed {
        Some((folder, why)) => format!("{how}; not looked at: {}, which {why}", folder.display()),
        None => how,
    }
}

/// Returns the configuration files in their order: what a later one says holds only where the earlier ones say nothing, or
/// where it is tighter.
fn configs(machine: &Machine) -> Vec<(PathBuf, &'static str)> {
    vec![(machine.config_path(), "yours"), (machine.project_config_path(), "the project's")]
}

fn places(machine: &Machine) -> Vec<(&'static str, PathBuf)> {
    let [_, data, state, cache] = machine.own_folders();
    let mut places = vec![
        ("data", data),
        ("packs", machine.packs()),
        ("state", state),
        ("trust", machine.trust().path),
        ("keys", machine.keys_file().path),
        ("cache", cache),
    ];
    #[cfg(feature = "local")]
    places.push(("models", machine.models_folder()));
    places.push(("runs", machine.runs().folder().to_owned()));
    places
}
