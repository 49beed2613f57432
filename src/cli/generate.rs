//! `nietz completions` and `nietz man`, made from the commands themselves.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::output;
use crate::disk;
use crate::error::{Exit, Failure, Result};
use crate::run::machine::Machine;

/// Print the completions for a shell
///
/// For example: nietz completions bash > ~/.local/share/bash-completion/completions/nietz
#[derive(Args)]
pub(super) struct CompletionsArgs {
    shell: Shell,
}

/// Write the manual pages of all commands into a folder
#[derive(Args)]
pub(super) struct ManArgs {
    folder: PathBuf,
}

pub(super) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "nietz", &mut text);
    output::block(String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

pub(super) fn man(machine: &Machine, args: &ManArgs, command: Command) -> Result<Exit> {
    let folder = machine.typed_path(&args.folder);
    std::fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, "create", &error))?;
    // The pages are generated elsewhere first, because clap_mangen would follow links in the target folder.
    let generated = tempfile::tempdir().map_err(|error| Failure::io(&folder, "write", &error))?;
    clap_mangen::generate_to(command, generated.path()).map_err(|error| Failure::io(&folder, "write", &error))?;
    for page in walkdir::WalkDir::new(generated.path()).min_depth(1).into_iter().flatten() {
        let text = std::fs::read(page.path()).map_err(|error| Failure::io(&folder, "write", &error))?;
        disk::write(&folder.join(page.file_name()), &text)?;
    }
    output::line(format!("wrote the manual pages to {}", folder.display()))?;
    Ok(Exit::Done)
}
