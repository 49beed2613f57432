//! `nietz pack export`: an archive of a pack, the same bytes for the same content.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::output;
use crate::cli::pack::source::PackSource;
use crate::cli::pack::vet::vet;
use crate::error::{Exit, Failure, Result};
use crate::run::machine::Machine;

/// Check a pack of your own and write it as `NAME-VERSION.tar.gz`
#[derive(Args)]
pub(super) struct ExportArgs {
    /// The folder of the pack [default: the workspace]
    folder: Option<PathBuf>,
    /// The file to write, instead of `NAME-VERSION.tar.gz` in this folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(machine: &Machine, args: &ExportArgs) -> Result<Exit> {
    let folder = args.folder.as_ref().map_or_else(|| machine.workspace.clone(), |folder| machine.typed_path(folder));
    let vetted = vet(machine, &PackSource::Folder(folder))?;
    let name = format!("{}-{}", vetted.about.name, vetted.about.version);
    let path = args.output.clone().unwrap_or_else(|| machine.typed_path(format!("{name}.tar.gz")));
    write(&vetted.root, &name, &path).map_err(|error| Failure::io(&path, "write", &error))?;
    output::line(format!("wrote {}: the tree has the sha256 {}", path.display(), vetted.sha256))?;
    Ok(Exit::Done)
}

fn write(root: &Path, name: &str, path: &Path) -> std::io::Result<()> {
    let temporary = path.with_added_extension("new");
    let mut gz = flate2::GzBuilder::new().mtime(0).write(File::create(&temporary)?, flate2::Compression::best());
    {
        let mut tar = tar::Builder::new(&mut gz);
        for entry in walkdir::WalkDir::new(root).min_depth(1).sort_by_file_name() {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let content = std::fs::read(entry.path())?;
            let executable = entry.metadata()?.permissions().mode() & 0o111 != 0;
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(if executable { 0o755 } else { 0o644 });
            header.set_mtime(0);
            let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
            tar.append_data(&mut header, Path::new(name).join(below), content.as_slice())?;
        }
        tar.finish()?;
    }
    gz.finish()?.flush()?;
    std::fs::rename(&temporary, path)
}
