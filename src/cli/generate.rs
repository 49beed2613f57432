//! `nietz completions` and `nietz man`, made from the commands themselves.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::env::Shells;

use crate::cli::{action, complete, docs, output};
use crate::disk;
use crate::error::{Code, Exit, Failure, Result};
use crate::pack::resolve;
use crate::pack::tree::{PackTree, Root};
use crate::run::machine::Machine;
use crate::run::session::Session;

/// Print what a shell needs to complete verbs, options, flows, runs, models, personas and packs
///
/// The shell asks nietz itself when Tab is pressed, so it also knows a flow's own options. For bash, put this into
/// ~/.bashrc: source <(nietz completions bash). Likewise for zsh; for fish: nietz completions fish | source
#[derive(Args)]
pub(super) struct CompletionsArgs {
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

/// Write the manual pages of all commands and bundled flows into a folder
#[derive(Args)]
pub(super) struct ManArgs {
    folder: PathBuf,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<Exit> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).expect("the command line takes no other names");
    let mut text = Vec::new();
    shell
        .write_registration(complete::VARIABLE, "nietz", "nietz", "nietz", &mut text)
        .map_err(|error| Failure::new(Code::Internal, format!("the completions cannot be made: {error}")))?;
    output::block(String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

/// The parts of each page that all have: the heading of a page of the reference, and how manuals call it.
const PARTS: [(&str, &str); 3] = [("Exit codes", "EXIT STATUS"), ("Variables", "ENVIRONMENT"), ("Files", "FILES")];

/// Writes the pages of a command line. `whole` is the same with all that it says, which the generator builds by itself.
pub(super) fn man(machine: &Machine, args: &ManArgs, command: Command, whole: &Command) -> Result<Exit> {
    let folder = machine.typed_path(&args.folder);
    let wrong = |error: std::io::Error| Failure::io(&folder, "write", &error);
    std::fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, "create", &error))?;
    let flows = bundled_flows(machine)?;
    let about = whole.find_subcommand("run").and_then(Command::get_about).cloned().unwrap_or_default();
    let command =
        command.mut_subcommand("run", |_| action::command("nietz run", "FLOW").about(about).subcommands(flows));
    let (_, reference) = docs::PAGES.iter().find(|(name, _)| *name == "commands").expect("it is one of the pages");
    let parts: String = PARTS.iter().map(|(heading, name)| part(reference, heading, name)).collect();
    // The pages are generated elsewhere first, because clap_mangen would follow links in the target folder.
    let generated = tempfile::tempdir().map_err(wrong)?;
    clap_mangen::generate_to(command, generated.path()).map_err(wrong)?;
    for page in walkdir::WalkDir::new(generated.path()).min_depth(1).into_iter().flatten() {
        let mut text = std::fs::read(page.path()).map_err(wrong)?;
        text.extend_from_slice(parts.as_bytes());
        disk::write(&folder.join(page.file_name()), &text)?;
    }
    output::line(format!("wrote the manual pages to {}", folder.display()))?;
    Ok(Exit::Done)
}

/// Returns the command lines of the flows that come with nietz.
fn bundled_flows(machine: &Machine) -> Result<Vec<Command>> {
    let mut flows = Vec::new();
    for located in resolve::flows(&PackTree::new(Root::Bundled)) {
        let session = Session::load(machine, located)?;
        let name = session.flow.manifest.name.clone();
        flows.push(action::flow_command(&name, &session)?.name(name));
    }
    Ok(flows)
}

/// Returns a part of a manual page from a table with two columns below a heading of the reference.
fn part(reference: &str, heading: &str, name: &str) -> String {
    let behind = reference.split_once(&format!("\n## {heading}\n")).map_or("", |(_, behind)| behind);
    let own = behind.split("\n## ").next().unwrap_or_default();
    let mut out = format!(".SH {name}\n");
    for row in own.lines().filter(|line| line.starts_with("| ")).skip(1) {
        if let Some((item, meaning)) = row.trim_matches('|').split_once('|') {
            let plain = |text: &str| text.trim().replace('`', "").replace('\\', "\\e").replace('-', "\\-");
            out += &format!(".TP\n\\fB{}\\fR\n{}\n", plain(item), plain(meaning));
        }
    }
    out
}
