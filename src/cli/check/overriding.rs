//! Checks the files of a project that override prompts and data of a flow from elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cli::check::FileReport;
use crate::cli::eject;
use crate::error::{Code, Failure, Result};
use crate::lua::audit;
use crate::model::collection::Format;
use crate::pack::data::lacking;
use crate::pack::ejected::Ejected;
use crate::pack::overlay::is_data;
use crate::pack::path::below;
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::OverridingFile;
use crate::run::machine::Machine;
use crate::run::session;
use crate::schema::report::LocatedViolation;
use crate::schema::{TextPosition, source};
use crate::template;

/// Tells whether a file overrides one of a flow from elsewhere.
pub(super) fn is_overriding(machine: &Machine, full: &Path) -> bool {
    // What is wrong with the lock or with a pack is told where they are checked.
    find(machine, full).is_ok_and(|found| found.is_some())
}

/// Returns the flow that a file overrides a part of, and the file.
fn find(machine: &Machine, full: &Path) -> Result<Option<(ResolvedFlow, OverridingFile)>> {
    let Some(path) = below(&machine.workspace, full) else { return Ok(None) };
    // Most files are told apart by their paths alone.
    if !is_data(&path) || !path.starts_with("flows/") || path.matches('/').count() < 2 {
        return Ok(None);
    }
    let mut found = None;
    for located in resolve::all_flows(&machine.workspace, &machine.packs())? {
        let Some(overriding) = located.tree.overriding()?.into_iter().find(|file| file.path == path) else { continue };
        // Of flows that share the file, one that reads it says what is wrong with it. What is wrong with the flow is told later.
        let _ = session::load(machine, located.clone());
        let is_reached = located.tree.reached_overriding()?.iter().any(|file| file.path == path);
        if is_reached || found.is_none() {
            found = Some((located, overriding));
        }
        if is_reached {
            break;
        }
    }
    Ok(found)
}

/// Checks a file that overrides one; `None` if it overrides nothing.
pub(super) fn check(machine: &Machine, file: &Path) -> Result<Option<FileReport>> {
    let name = file.display().to_string();
    let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
    let Some((flow, overriding)) = find(machine, &full)? else { return Ok(None) };
    let tree = flow.tree.clone();
    let mut located = faults(machine, flow, &overriding, &name)?;
    if overriding.is_different() {
        let (told, difference) = eject::describe(&tree, &overriding, &Ejected::read(&machine.workspace)?);
        let how =
            if overriding.original.is_some() { "stands in place of the flow's own" } else { "is this folder's own:" };
        let all: Vec<String> = std::iter::once(format!("{how} {told}")).chain(difference).collect();
        located.push(LocatedViolation::remark(&name, "overrides", all.join("\n")));
    }
    Ok(Some(FileReport { text: overriding.text.to_string(), located, code: Code::DocumentInvalid }))
}

/// Returns what is wrong with an overriding file, and what of its original it lacks.
fn faults(
    machine: &Machine,
    located: ResolvedFlow,
    file: &OverridingFile,
    name: &str,
) -> Result<Vec<LocatedViolation>> {
    let format = Format::of_path(&file.path).filter(|format| matches!(format, Format::Yaml | Format::Json));
    if let Some(format) = format {
        let value = match source::read(&file.text, format) {
            Ok(value) => value,
            Err((place, reason)) => return Ok(vec![LocatedViolation::unreadable(name, place, reason)]),
        };
        let tree = located.tree.clone();
        // The flow reads its data and schemas while it is loaded, and says what is wrong with them.
        let loaded = session::load(machine, located);
        let found = match tree.folder_of(&file.path) {
            Some(folder) => folder.faults(&tree, &file.path)?,
            None => Vec::new(),
        };
        if !found.is_empty() {
            return Ok(found.into_iter().map(|fault| LocatedViolation { file: name.to_owned(), ..fault }).collect());
        }
        loaded?;
        // The original was read before it was packed: what cannot be read there has no members.
        let original = file.original.as_deref().and_then(|text| source::read(text, format).ok()).unwrap_or_default();
        let lacking = lacking(&original, &value);
        let note =
            |names: String| LocatedViolation::remark(name, "lacks", format!("lacks what its original has: {names}"));
        return Ok((!lacking.is_empty()).then(|| note(lacking.join(", "))).into_iter().collect());
    }
    let names = match template::names(&file.path, &file.text) {
        Ok(names) => names,
        Err(failure) => {
            let rest = failure
                .message
                .strip_prefix(file.path.as_str())
                .and_then(|rest| rest.strip_prefix(':')?.split_once(": "));
            let line = rest.and_then(|(line, _)| line.parse().ok()).unwrap_or(1);
            let what = rest.map_or(failure.message.as_str(), |(_, what)| what);
            return Ok(vec![LocatedViolation::unreadable(name, TextPosition { line, column: 1 }, what)]);
        }
    };
    let known = file.original.as_deref().map(|text| template::names(&file.path, text)).transpose()?.unwrap_or_default();
    let new: BTreeSet<&str> = names.difference(&known).map(String::as_str).collect();
    let (tree, flow_path) = (located.tree.clone(), located.path.clone());
    let flow = session::load(machine, located)?;
    let audited = audit::flow(&tree, &flow_path, &flow.manifest);
    let mut all: Vec<LocatedViolation> = audited
        .iter()
        .filter(|finding| finding.path == file.path && !finding.is_remark)
        .map(|finding| {
            let place = TextPosition { line: finding.line, column: finding.column };
            LocatedViolation::unreadable(name, place, finding.one_line())
        })
        .collect();
    if !new.is_empty() {
        let new = new.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("uses names that its original does not: {new}; one that the flow does not give fails");
        all.push(LocatedViolation::remark(name, "names", message));
    }
    Ok(all)
}
