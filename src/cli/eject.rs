//! `nietz eject FLOW [FILE…]`: writes prompts and data of a flow from elsewhere into the project, to be changed there.

use clap::Args;

use crate::cli::{listing, names, output};
use crate::disk;
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::model::difference::text_differences;
use crate::model::text::excerpt;
use crate::pack::ejected::{Ejected, Original, OriginalState};
use crate::pack::overlay::{folder, is_data};
use crate::pack::path::join;
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::{OverridingFile, PackTree, Root};
use crate::run::machine::Machine;
use crate::run::session;

/// Write prompts and data of a bundled flow, or of one of a pack, into this folder: the copies are read in their place
///
/// A persona is written by `nietz eject personas/SLUG.md`.
#[derive(Args)]
pub(super) struct EjectArgs {
    /// The flow's name, or `personas/SLUG.md`
    flow: String,
    /// What is written, such as `prompts/select.md`; without it, all files that can be overridden and are not yet
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Write nothing but that these files, which are here, have what is new in their originals
    #[arg(long)]
    merged: bool,
    /// Write FILE beside it under this name: `techniques/what-if --as my-technique` begins a technique of your own
    #[arg(long = "as", value_name = "NAME", requires = "files", conflicts_with = "merged")]
    name: Option<String>,
}

pub(super) fn run(machine: &Machine, args: &EjectArgs) -> Result<Exit> {
    if args.flow.starts_with("personas/") {
        return persona(machine, args);
    }
    let located =
        resolve::flow(&args.flow, &machine.workspace, &machine.packs()).map_err(
            |failure| match listing::persona_files(machine, &args.flow) {
                Ok(_) => failure.hint(format!("for the persona: nietz eject personas/{}.md", args.flow)),
                Err(_) => failure,
            },
        )?;
    require_overridable(machine, &located)?;
    let mut ejected = Ejected::read(&machine.workspace)?;
    let wanted = wanted(&located, &args.files)?;
    if let Some(name) = &args.name {
        return begin(machine, located, &wanted, name);
    }
    let is_there = |path: &String| machine.workspace.join(path).symlink_metadata().is_ok();
    let (there, missing): (Vec<String>, Vec<String>) = wanted.into_iter().partition(is_there);
    if args.merged {
        return merged(machine, &located, ejected, &there);
    }
    if let Some(path) = there.first().filter(|_| !args.files.is_empty()) {
        return Err(Failure::new(Code::Usage, format!("{path} is here already"))
            .hint("edit it; `nietz flows` tells whether its original has changed"));
    }
    for path in &missing {
        ejected.files.insert(path.clone(), original(&located, path)?);
    }
    if !missing.is_empty() {
        // A record of a file that was not written does no harm, and a file without a record cannot be told of.
        ejected.write(&machine.workspace)?;
    }
    for path in &missing {
        let text = &ejected.files[path].text;
        disk::write_below(&machine.workspace, &machine.workspace.join(path), text.as_bytes())?;
        output::line(format!("wrote {path}"))?;
    }
    for path in &there {
        output::line(format!("{path} is here already: it was left as it is"))?;
    }
    if let Some(path) = missing.first() {
        let from = &ejected.files[path].from;
        let name = located.name();
        output::line(format!(
            "from {from}; what you change is read in place of it: nietz run {name}   nietz check {path}"
        ))?;
    }
    Ok(Exit::Done)
}

/// Writes a persona of a pack, or a bundled one, into the project, where it stands in place of the original.
fn persona(machine: &Machine, args: &EjectArgs) -> Result<Exit> {
    if !args.files.is_empty() || args.merged {
        return Err(Failure::new(Code::Usage, "a persona is one file").hint("nietz eject personas/SLUG.md"));
    }
    let all = listing::persona_files(machine, &args.flow)?;
    let own = Root::Disk(machine.workspace.clone());
    if let Some((tree, path)) = all.iter().find(|(tree, _)| tree.root == own) {
        return Err(Failure::new(Code::Usage, format!("{} is here already", tree.display(path))).hint("edit it"));
    }
    let Some((tree, path)) = all.first() else { return Ok(Exit::Done) };
    let target = format!("personas/{}", path.rsplit('/').next().unwrap_or(path));
    let text = tree.text(path)?.unwrap_or_default();
    disk::write_below(&machine.workspace, &machine.workspace.join(&target), text.as_bytes())?;
    output::line(format!("wrote {target}"))?;
    let from = tree.origin(&machine.workspace);
    output::line(format!("from {from}; it is read in place of that one: nietz check {target}"))?;
    Ok(Exit::Done)
}

/// Refuses flows whose files would not be read from here.
fn require_overridable(machine: &Machine, located: &ResolvedFlow) -> Result<()> {
    let name = located.name();
    if located.is_of_folder() {
        let message = format!("{} is no flow of a pack, and not bundled", located.source());
        return Err(Failure::new(Code::Usage, message).hint("its files can be edited where they are"));
    }
    let meant = resolve::flow(name, &machine.workspace, &machine.packs())?;
    if meant.source() != located.source() {
        let message =
            format!("{name} means {} here: what overrides another flow of that name is not read", meant.source());
        return Err(Failure::new(Code::Usage, message).hint("rename or remove that flow first"));
    }
    Ok(())
}

/// Returns the paths of the files to write: those that were named, relative to the flow's folder, or all.
fn wanted(located: &ResolvedFlow, named: &[String]) -> Result<Vec<String>> {
    let own = folder(&located.path);
    let all: Vec<String> = located.tree.own_list("flows", "").into_iter().filter(|path| is_data(path)).collect();
    let here: Vec<&str> = all.iter().filter_map(|path| path.strip_prefix(&own)).collect();
    if named.is_empty() {
        return Ok(all.iter().filter(|path| path.starts_with(&own)).cloned().collect());
    }
    let find = |name: &String| {
        let relative = join(&own, &format!("./{name}")).filter(|path| all.contains(path));
        let found = relative.or_else(|| all.contains(name).then(|| name.clone())).or_else(|| {
            // A file may be named without its ending, and one that flows share by the end of its path.
            let endings = [format!("/{name}"), format!("/{name}.yaml")];
            let mut fitting = all.iter().filter(|path| endings.iter().any(|ending| path.ends_with(ending.as_str())));
            fitting.next().filter(|_| fitting.next().is_none()).cloned()
        });
        found.ok_or_else(|| {
            if name.ends_with(".lua") || name.ends_with(".luau") {
                return Failure::new(
                    Code::Usage,
                    format!("{} is a module: what a flow does is not overridden", excerpt(name)),
                )
                .hint("its prompts and data are; for other code, write a flow of your own: nietz new flow NAME");
            }
            let failure = Failure::new(Code::Usage, format!("{} has no file {}", located.name(), excerpt(name)));
            match nearest(name, here.iter().copied()) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint(format!("it has {}", here.join(", "))),
            }
        })
    };
    named.iter().map(find).collect()
}

/// Writes a copy of a file under another name beside it, where the flow reads all files of that folder.
fn begin(machine: &Machine, located: ResolvedFlow, wanted: &[String], name: &str) -> Result<Exit> {
    names::require(name)?;
    let [path] = wanted else {
        return Err(Failure::new(Code::Usage, "--as takes one file").hint("nietz eject FLOW FOLDER/FILE --as NAME"));
    };
    let flow = located.name().to_owned();
    let tree = located.tree.clone();
    // The flow says which folders it reads whole while it is loaded; what is wrong with one of their files is told by `check`.
    let loaded = session::load(machine, located);
    let Some(folder) = tree.folder_of(path) else {
        loaded?;
        let folders: Vec<String> = tree.folders().into_iter().map(|folder| folder.path).collect();
        let failure = Failure::new(Code::Usage, format!("{flow} reads {path} by its name: nothing reads another one"));
        return Err(match folders.as_slice() {
            [] => failure.hint("without --as, your copy of it is read in its place"),
            folders => failure.hint(format!("it reads whatever stands in {}", folders.join(", "))),
        });
    };
    let new = folder.file(name);
    if machine.workspace.join(&new).symlink_metadata().is_ok() || tree.own_text(&new)?.is_some() {
        let failure = Failure::new(Code::Usage, format!("{new} is there already"));
        return Err(failure.hint("choose another name; without --as, your copy of a file is read in its place"));
    }
    let text = tree.own_text(path)?.unwrap_or_default();
    disk::write_below(&machine.workspace, &machine.workspace.join(&new), text.as_bytes())?;
    output::line(format!("wrote {new}"))?;
    output::line(format!("as {path} is; {flow} reads it with its own: nietz check {new}"))?;
    Ok(Exit::Done)
}

fn original(located: &ResolvedFlow, path: &str) -> Result<Original> {
    let text = located.tree.own_text(path)?.unwrap_or_default().to_string();
    let from = match located.tree.seal() {
        Some(seal) => format!("pack {} {}", seal.pack, seal.version),
        None => Machine::version(),
    };
    Ok(Original { from, text })
}

/// Notes the originals of now for files that are here.
fn merged(machine: &Machine, located: &ResolvedFlow, mut ejected: Ejected, paths: &[String]) -> Result<Exit> {
    if paths.is_empty() {
        return Err(Failure::new(Code::Usage, "none of these files is here").hint("without --merged, they are written"));
    }
    for path in paths {
        ejected.files.insert(path.clone(), original(located, path)?);
    }
    ejected.write(&machine.workspace)?;
    for path in paths {
        output::line(format!("noted: {path} has what is new in {}", ejected.files[path].from))?;
    }
    Ok(Exit::Done)
}

/// Describes an overriding file in one line, and how its original has changed since it was made from it.
pub(super) fn describe(tree: &PackTree, file: &OverridingFile, ejected: &Ejected) -> (String, Vec<String>) {
    let path = &file.path;
    let (told, was, now) = match (ejected.state(file), &file.original) {
        (OriginalState::Same(was), _) => (format!("from {}", was.from), None, None),
        (OriginalState::Changed(was), Some(now)) => {
            let edited =
                if was.text == *file.text { "; this file was not edited: without it, the new one is read" } else { "" };
            (format!("from {}; its original has changed since{edited}", was.from), Some(&was.text), Some(now))
        }
        (OriginalState::Gone(was) | OriginalState::Changed(was), _) => {
            (format!("from {}; the flow has no such file any more", was.from), None, None)
        }
        (OriginalState::Unknown, Some(_)) => ("not ejected: its original is not known".to_owned(), None, None),
        (OriginalState::Unknown, None) if tree.folder_of(path).is_some() => {
            ("one more of those in its folder".to_owned(), None, None)
        }
        (OriginalState::Unknown, None) => ("the flow has no such file of its own".to_owned(), None, None),
    };
    let difference = was.zip(now).map(|(was, now)| text_differences(was, now));
    (format!("{path} ({told})"), difference.unwrap_or_default())
}
