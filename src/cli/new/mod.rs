//! `nietz new KIND NAME`: writes a small example that works at once, with its test. Its templates lie beside this file.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use include_dir::{Dir, include_dir};

use crate::cli::{names, output};
use crate::disk::{self, Links};
use crate::error::{Code, Exit, Failure, Result};
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::Root;
use crate::run::machine::Machine;
use crate::run::{project, replay};

/// A folder for each example of a flow: `flow.lua`, what stands beside it (`flow`), its `personas`, recorded runs
/// (`cassettes`), and the arguments to try it with. `NAME` stands for the name of the new flow. The requests of a recorded run do not contain it, so
/// that it fits to every flow that is made from the example.
static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/cli/new/examples");
/// Where a project has its personas.
const PERSONAS: &str = "personas/";
const FIRST_EXAMPLE: &str = "two-sides";
const PERSONA: &str = include_str!("persona.md");
const QUOTES: &str = include_str!("quotes.yaml");
const PACK: &str = include_str!("pack.yaml");
const README: &str = include_str!("README.md");
/// The model of the example's cassette. No provider has this name: when users record the cassette anew, their own model
/// takes its place.
pub(super) const NO_MODEL: &str = "example/model";

const GITIGNORE: &str = ".gitignore";
/// What a repository does not keep: runs, which hold what people said, and generated types.
const IGNORED: &str = ".nietz/";

/// Write a small example that works: a flow, a persona, quotes, or a pack with all of them
#[derive(Args)]
pub(super) struct NewArgs {
    kind: ExampleKind,
    /// Lower-case letters, digits and hyphens: `second-opinion`
    name: String,
    /// For a flow: the example that it begins as
    #[arg(long, value_name = "EXAMPLE", value_parser = PossibleValuesParser::new(examples()))]
    like: Option<String>,
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
    let like = args.like.as_deref();
    if like.is_some() && args.kind != ExampleKind::Flow {
        return Err(Failure::new(Code::Usage, "--like is for flows").hint(format!("nietz new flow {name} --like …")));
    }
    let example = example(like.unwrap_or(FIRST_EXAMPLE));
    let mut files = Vec::new();
    if matches!(args.kind, ExampleKind::Flow | ExampleKind::Pack) {
        files.extend(example_files(example, name));
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
    // A persona of another flow that was made from the same example is this one's, too.
    if args.kind == ExampleKind::Flow {
        files.retain(|(path, text)| !path.starts_with(PERSONAS) || !has_text(&root, path, text));
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
        let text =
            text.replace("NAME", name).replace("TITLE", &title(name)).replace("VERSION", env!("CARGO_PKG_VERSION"));
        disk::write_below(base, &root.join(&path), text.as_bytes())?;
        written.push(root.join(path));
    }
    if matches!(args.kind, ExampleKind::Flow | ExampleKind::Pack) {
        for (file, recorded) in texts(example, "cassettes") {
            written.push(cassette(machine, (base, &root), name, (file, recorded))?);
        }
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
            let arguments = text(example, "arguments").trim_end();
            format!("run it: nietz run flows/{name}.lua {arguments}   test it: nietz test flows/{name}.lua")
        }
        ExampleKind::Persona => format!("check it: nietz check personas/{name}.md   see it: nietz personas"),
        ExampleKind::Quotes => format!("check it: nietz check quotes/{name}.yaml   see it: nietz quotes"),
        ExampleKind::Pack => {
            format!("check it: nietz check {name}   test it: nietz test {name}   then commit and tag it")
        }
    })?;
    Ok(Exit::Done)
}

/// Tells whether just this text stands in a file below a folder.
fn has_text(root: &Path, path: &str, text: &str) -> bool {
    let found = disk::read(&root.join(path), Links::Below(root), disk::SETTINGS);
    found.is_ok_and(|found| found.is_some_and(|bytes| bytes == text.as_bytes()))
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

fn examples() -> Vec<&'static str> {
    EXAMPLES.dirs().filter_map(|example| example.path().to_str()).collect()
}

/// Returns the example of this name; the command line takes no other names.
fn example(name: &str) -> &'static Dir<'static> {
    EXAMPLES.get_dir(name).expect("it is one of the names that the command line takes")
}

/// Returns the text of a file of an example.
fn text(example: &'static Dir<'static>, path: &str) -> &'static str {
    let file = example.get_file(example.path().join(path)).expect("each example has this file");
    file.contents_utf8().expect("examples are text")
}

/// Returns the files below a folder of an example, with their paths in it.
fn texts(example: &'static Dir<'static>, folder: &str) -> Vec<(&'static str, &'static str)> {
    fn walk(dir: &'static Dir<'static>, top: &Path, out: &mut Vec<(&'static str, &'static str)>) {
        out.extend(
            dir.files().filter_map(|file| Some((file.path().strip_prefix(top).ok()?.to_str()?, file.contents_utf8()?))),
        );
        dir.dirs().for_each(|dir| walk(dir, top, out));
    }
    let mut out = Vec::new();
    if let Some(dir) = example.get_dir(example.path().join(folder)) {
        walk(dir, dir.path(), &mut out);
    }
    out
}

/// Returns the files of a new flow.
fn example_files(example: &'static Dir<'static>, name: &str) -> Vec<(String, &'static str)> {
    let beside = texts(example, "flow").into_iter().map(|(path, text)| (format!("flows/{name}/{path}"), text));
    let personas = texts(example, "personas").into_iter().map(|(path, text)| (format!("{PERSONAS}{path}"), text));
    std::iter::once((format!("flows/{name}.lua"), text(example, "flow.lua"))).chain(beside).chain(personas).collect()
}

/// Replays a recorded run of the example with the new flow, and keeps the resulting journal as a test of the flow.
fn cassette(
    machine: &Machine,
    (base, root): (&Path, &Path),
    name: &str,
    (file, recorded): (&str, &str),
) -> Result<PathBuf> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::new(Code::DiskFailed, format!("cannot make a temporary folder: {error}")))?;
    let example = folder.path().join("example.jsonl");
    disk::write(&example, recorded.as_bytes())?;
    let mut open = replay::read_ends(&example)?.open;
    open.flow = name.to_owned();
    let path = replay::cassette_folder(root).join(name).join(file);
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
