//! Checks the files of a project that override prompts and data of a flow from elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::cli::check::FileReport;
use crate::cli::eject;
use crate::error::{Code, Failure, Result};
use crate::lua::audit;
use crate::model::collection::Format;
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
    for located in resolve::all_flows(&machine.workspace, &machine.packs())? {
        if let Some(overriding) = located.tree.overriding()?.into_iter().find(|file| file.path == path) {
            return Ok(Some((located, overriding)));
        }
    }
    Ok(None)
}

/// Checks a file that overrides one; `None` if it overrides nothing.
pub(super) fn check(machine: &Machine, file: &Path) -> Result<Option<FileReport>> {
    let name = file.display().to_string();
    let full = file.canonicalize().map_err(|error| Failure::io(file, "read", &error))?;
    let Some((flow, overriding)) = find(machine, &full)? else { return Ok(None) };
    let mut located = faults(machine, flow, &overriding, &name)?;
    if overriding.is_different() {
        let (told, difference) = eject::describe(&overriding, &Ejected::read(&machine.workspace)?);
        let all: Vec<String> =
            std::iter::once(format!("stands in place of the flow's own {told}")).chain(difference).collect();
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
        // The original was read before it was packed: what cannot be read there has no members.
        let original = file.original.as_deref().and_then(|text| source::read(text, format).ok()).unwrap_or_default();
        // The flow reads its data and schemas while it is loaded, and says what is wrong with them.
        session::load(machine, located)?;
        let lacking = missing_members(&original, &value);
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

/// Returns the pointers of the members that an original has and what overrides it has not.
fn missing_members(original: &Value, value: &Value) -> Vec<String> {
    let (Some(original), Some(value)) = (original.as_object(), value.as_object()) else { return Vec::new() };
    let below = |(name, original): (&String, &Value)| match value.get(name) {
        None => vec![format!("/{name}")],
        Some(value) => missing_members(original, value).into_iter().map(|rest| format!("/{name}{rest}")).collect(),
    };
    original.iter().flat_map(below).collect()
}
