//! `nietz docs`: the reference. Modules of the host API, read from the same files that editors read, and pages of text that
//! are compiled in; in the terminal, or all of it as one HTML page.

mod modules;
mod page;

use std::path::PathBuf;

use clap::Args;

use self::modules::{Item, Module};
use crate::cli::output;
use crate::disk;
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::lua::api;
use crate::model::text::excerpt;
use crate::run::machine::Machine;

/// The pages of text: a name to ask for, and the text, whose first line says what it is about.
pub(super) const PAGES: [(&str, &str); 15] = [
    ("commands", include_str!("../../docs/commands.md")),
    ("answers", include_str!("../../docs/answers.md")),
    ("permissions", include_str!("../../docs/permissions.md")),
    ("models", include_str!("../../docs/models.md")),
    ("limits", include_str!("../../docs/limits.md")),
    ("flows", include_str!("../../docs/flows.md")),
    ("tools", include_str!("../../docs/tools.md")),
    ("documents", include_str!("../../docs/documents.md")),
    ("tests", include_str!("../../docs/tests.md")),
    ("packs", include_str!("../../docs/packs.md")),
    ("reports", include_str!("../../docs/reports.md")),
    ("editors", include_str!("../../docs/editors.md")),
    ("team", include_str!("../../docs/team.md")),
    ("modes", include_str!("../../docs/modes.md")),
    ("building", include_str!("../../docs/building.md")),
];

/// Show the reference: modules that flows use, and pages about everything else
///
/// `nietz docs llm` shows a module, `nietz docs llm.chat` one function with its types, `nietz docs permissions` a page.
/// `nietz explain` has the error codes and the words.
#[derive(Args)]
pub(super) struct DocsArgs {
    /// A module, one of its functions or types, or a page; without it, all there are
    #[arg(value_name = "MODULE|PAGE")]
    wanted: Option<String>,
    /// Write all of it as one HTML page that needs nothing else
    #[arg(long, conflicts_with = "wanted")]
    html: bool,
    /// Where to write the page; without it, to standard output
    #[arg(short, long, value_name = "FILE", requires = "html")]
    output: Option<PathBuf>,
}

pub(super) fn run(machine: &Machine, args: &DocsArgs) -> Result<Exit> {
    let modules: Vec<Module> = api::ALL.iter().map(|(path, _, types)| Module::read(path, types)).collect();
    if args.html {
        return html(machine, &modules, args.output.as_deref());
    }
    match &args.wanted {
        Some(wanted) => output::prose(&find(&modules, wanted)?, &machine.environment)?,
        None => list(&modules)?,
    }
    Ok(Exit::Done)
}

fn html(machine: &Machine, modules: &[Module], to: Option<&std::path::Path>) -> Result<Exit> {
    let text = page::html(modules);
    match to {
        Some(path) => {
            let path = machine.typed_path(path);
            disk::write(&path, text.as_bytes())?;
            output::line(format!("wrote {}", path.display()))?;
        }
        None => output::block(text)?,
    }
    Ok(Exit::Done)
}

fn list(modules: &[Module]) -> Result<()> {
    output::line("pages:")?;
    output::table(&PAGES.map(|(name, text)| vec![format!("  {name}"), title(text).to_owned()]))?;
    output::line("")?;
    output::line("modules of the host API:")?;
    let rows: Vec<Vec<String>> =
        modules.iter().map(|module| vec![format!("  {}", module.name), module.summary()]).collect();
    output::table(&rows)?;
    output::line("")?;
    output::line(
        "nietz docs NAME shows one, nietz docs llm.chat a part of one, nietz docs --html -o docs.html writes all",
    )
}

/// Returns what a page's first line says that it is about.
fn title(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

/// Returns the Markdown of what somebody asks for.
fn find(modules: &[Module], wanted: &str) -> Result<String> {
    if let Some((_, text)) = PAGES.iter().find(|(name, _)| *name == wanted) {
        return Ok((*text).to_owned());
    }
    let plain = wanted.trim_start_matches("@nietz/").trim_start_matches('@');
    if let Some(module) = modules.iter().find(|module| module.name == plain) {
        return Ok(module.markdown());
    }
    let (of, name) = plain.split_once('.').unwrap_or(("", plain));
    let is_meant = |module: &&Module| of.is_empty() || module.name == of;
    let found: Vec<String> = modules.iter().filter(is_meant).filter_map(|module| module.one(name)).collect();
    if !found.is_empty() {
        return Ok(found.join("\n"));
    }
    let failure = Failure::new(Code::Usage, format!("nothing is called `{}` in the reference", excerpt(wanted)));
    let all: Vec<String> =
        modules.iter().flat_map(|module| module.items.iter().map(|item| full(module, item))).collect();
    let names = PAGES.iter().map(|(name, _)| *name).chain(modules.iter().map(|module| module.name.as_str()));
    Err(match nearest(plain, names.chain(all.iter().map(String::as_str))) {
        Some(near) => failure.hint(format!("did you mean `nietz docs {near}`?")),
        None => failure.hint("`nietz docs` lists what there is; `nietz explain` has error codes and words"),
    })
}

fn full(module: &Module, item: &Item) -> String {
    format!("{}.{}", module.name, item.name)
}
