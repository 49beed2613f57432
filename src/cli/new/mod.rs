//! `nietz new KIND NAME`: writes a small example that works at once, with its test. Its templates lie beside this file.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::{names, output};
use crate::disk::{self, Links};
use crate::error::{Code, Exit, Failure, Result};
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::Root;
use crate::run::machine::Machine;
use crate::run::{project, replay};

const FLOW: &str = include_str!("flow.lua");
const SIDE: &str = include_str!("side.md");
const VERDICT: &str = include_str!("verdict.md");
const PERSONA: &str = include_str!("persona.md");
const QUOTES: &str = include_str!("quotes.yaml");
const PACK: &str = include_str!("pack.yaml");
const README: &str = include_str!("README.md");
/// The model of the example's cassette. No provider has this name: when users record the cassette anew, their own model
/// takes its place.
pub(super) const NO_MODEL: &str = "example/model";
/// A recorded run of the example. Its requests do not contain the flow's name, so it fits every flow made from the example.
const CASSETTE: &str = include_str!("cassette.jsonl");

const GITIGNORE: &str = ".gitignore";
/// What a repository does not keep: runs, which hold what people said, and generated types.
const IGNORED: &str = ".nietz/";

/// Write a small example that works: a flow, a persona, quotes, or a pack with all of them
#[derive(Args)]
pub(super) struct NewArgs {
    kind: ExampleKind,
    /// Lower-case letters, digits and hyphens: `second-opinion`
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExampleKind {
    /// `flows/NAME.lua` with its prompts and a test
    Flow,
    /// `personas/NAME.md`
    Persona,
    /// `quotes/NAME.yaml`
    Quotes,
    /// The folder `NAME/` with all of them and a `pack.yaml`
    Pack,
}

pub(super) fn run(machine: &Machine, args: &NewArgs) -> Result<Exit> {
    let name = args.name.as_str();
    names::require(name)?;
    let root = match args.kind {
        ExampleKind::Pack => base(machine, args.kind).join(name),
        ExampleKind::Flow | ExampleKind::Persona | ExampleKind::Quotes => base(machine, args.kind).to_owned(),
    };
    let mut files = Vec::new();
    if matches!(args.kind, ExampleKind::Flow | ExampleKind::Pack) {
        files.push((format!("flows/{name}.lua"), FLOW));
        files.push((format!("flows/{name}/prompts/side.md"), SIDE));
        files.push((format!("flows/{name}/prompts/verdict.md"), VERDICT));
    }
    if matches!(args.kind, ExampleKind::Persona | ExampleKind::Pack) {
        files.push((format!("personas/{name}.md"), PERSONA));
    }
    if matches!(args.kind, ExampleKind::Quotes | ExampleKind::Pack) {
        files.push((format!("quotes/{name}.yaml"), QUOTES));
    }
    if args.kind == ExampleKind::Pack {
        files.push(("pack.yaml".to_owned(), PACK));
        files.push(("README.md".to_owned(), README));
    }
    // All paths are checked before the first write: no file is overwritten, and no example is left half written.
    for (path, _) in &files {
        if root.join(path).symlink_metadata().is_ok() {
            return Err(Failure::new(Code::Usage, format!("{} is there already", root.join(path).display()))
                .hint("choose another name"));
        }
    }
    let base = base(machine, args.kind);
    let mut written = Vec::new();
    for (path, text) in files {
        let text = text.replace("NAME", name).replace("TITLE", &title(name));
        disk::write_below(base, &root.join(&path), text.as_bytes())?;
        written.push(root.join(path));
    }
    if matches!(args.kind, ExampleKind::Flow | ExampleKind::Pack) {
        written.push(cassette(machine, (base, &root), name)?);
    }
    for path in &written {
        output::line(format!("wrote {}", path.strip_prefix(base).unwrap_or(path).display()))?;
    }
    if ignore_runs(&machine.workspace)? {
        output::line(format!("added {IGNORED} to .gitignore"))?;
    }
    for hidden in hidden(machine, args.kind, name)? {
        output::line(format!("it hides {hidden}"))?;
    }
    output::line(match args.kind {
        ExampleKind::Flow => {
            format!("run it: nietz run flows/{name}.lua \"Tabs or spaces?\"   test it: nietz test flows/{name}.lua")
        }
        ExampleKind::Persona => format!("check it: nietz check personas/{name}.md   see it: nietz personas"),
        ExampleKind::Quotes => format!("check it: nietz check quotes/{name}.yaml   see it: nietz quotes"),
        ExampleKind::Pack => {
            format!("check it: nietz check {name}   test it: nietz test {name}   then commit and tag it")
        }
    })?;
    Ok(Exit::Done)
}

/// Returns the folder that an example is written below: a pack is a project of its own, and stands where the user is.
fn base(machine: &Machine, kind: ExampleKind) -> &Path {
    match kind {
        ExampleKind::Pack => &machine.project.here,
        ExampleKind::Flow | ExampleKind::Persona | ExampleKind::Quotes => &machine.workspace,
    }
}

/// Adds the folder of runs to the project's `.gitignore`, if the project is in a repository and nothing ignores it yet.
fn ignore_runs(workspace: &Path) -> Result<bool> {
    let Some(top) = project::repository(workspace) else { return Ok(false) };
    for folder in workspace.ancestors().take_while(|folder| folder.starts_with(top)) {
        let path = folder.join(GITIGNORE);
        let text = disk::read(&path, Links::Below(folder), disk::SETTINGS)?.unwrap_or_default();
        if String::from_utf8_lossy(&text).lines().any(|line| line.trim().trim_matches('/') == ".nietz") {
            return Ok(false);
        }
    }
    let path = workspace.join(GITIGNORE);
    let mut text = disk::read(&path, Links::Below(workspace), disk::SETTINGS)?.unwrap_or_default();
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.extend_from_slice(format!("{IGNORED}\n").as_bytes());
    disk::write(&path, &text).map(|()| true)
}

/// Returns what has the name of a new flow, persona or quote collection elsewhere, and is found no more by it.
fn hidden(machine: &Machine, kind: ExampleKind, name: &str) -> Result<Vec<String>> {
    let (top, ending, what) = match kind {
        ExampleKind::Flow => {
            let all = resolve::all_flows(&machine.workspace, &machine.packs())?;
            let same = all.iter().filter(|located| located.name() == name).filter_map(ResolvedFlow::full_name);
            return Ok(same.map(|full_name| format!("{full_name}, which can be run by this name")).collect());
        }
        ExampleKind::Persona => ("personas", ".md", "persona"),
        ExampleKind::Quotes => ("quotes", ".yaml", "quote collection"),
        // A pack hides nothing before it is added to a project.
        ExampleKind::Pack => return Ok(Vec::new()),
    };
    let file = format!("/{name}{ending}");
    let mut trees = machine.trees()?;
    trees.retain(|tree| tree.root != Root::Disk(machine.workspace.clone()));
    trees.retain(|tree| tree.list(top, ending).iter().any(|path| path.ends_with(&file)));
    Ok(trees.iter().map(|tree| format!("the {what} {name} ({})", tree.origin(&machine.workspace))).collect())
}

/// Replays the example's cassette with the new flow, and keeps the resulting journal as the flow's test.
fn cassette(machine: &Machine, (base, root): (&Path, &Path), name: &str) -> Result<PathBuf> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::new(Code::DiskFailed, format!("cannot make a temporary folder: {error}")))?;
    let example = folder.path().join("example.jsonl");
    disk::write(&example, CASSETTE.as_bytes())?;
    let mut open = replay::read_ends(&example)?.open;
    open.flow = name.to_owned();
    let path = replay::cassette_folder(root).join(name).join("run.jsonl");
    disk::write_below(base, &path, b"")?;
    let located = ResolvedFlow::from_source(&root.join(format!("flows/{name}.lua")).display().to_string())?;
    let layers = vec![located.tree.clone()];
    replay::play(machine, (located, layers), (&example, &open), Some(&path))?;
    Ok(path)
}

/// Returns a slug as a person would write it: `second-opinion` is `Second Opinion`.
fn title(slug: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    slug.split('-').filter(|word| !word.is_empty()).map(capital).collect::<Vec<_>>().join(" ")
}
