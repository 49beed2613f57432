//! `nietz pack publish SOURCE`: prepares the entry of an index for a pack that others can reach.

use std::path::PathBuf;

use clap::Args;

use crate::cli::output;
use crate::cli::pack::source::PackSource;
use crate::cli::pack::vet::vet;
use crate::disk;
use crate::error::{Code, Exit, Failure, Result};
use crate::pack::index::IndexEntry;
use crate::run::machine::Machine;

/// Prepare the entry of an index for a pack: fetch it as others will, look at all of it, play its tests
#[derive(Args)]
pub(super) struct PublishArgs {
    /// Where others find it: URL#TAG
    source: String,
    /// Words to find it by
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    tags: Vec<String>,
    /// A checkout of the index, to write the entry into; without it, the entry is printed
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

pub(super) fn run(machine: &Machine, args: &PublishArgs) -> Result<Exit> {
    let source = PackSource::parse(&args.source, machine)?;
    if !matches!(source, PackSource::Git { .. }) {
        return Err(Failure::new(Code::Usage, "an index names repositories: others do not have this folder or file")
            .hint("commit the pack, tag it, push both: nietz pack publish URL#v1.0.0"));
    }
    let vetted = vet(machine, &source)?;
    let entry = IndexEntry {
        name: vetted.about.name.clone(),
        version: vetted.about.version.clone(),
        summary: vetted.about.summary.clone(),
        licence: vetted.about.licence.clone(),
        source: args.source.clone(),
        commit: vetted.commit.clone(),
        sha256: vetted.sha256.clone(),
        tested: env!("CARGO_PKG_VERSION").to_owned(),
        tests: vetted.tests,
        tags: args.tags.clone(),
        asks: vetted.items.clone(),
    };
    let yaml = entry.yaml()?;
    let file = format!("{}.yaml", entry.name);
    // What others would refuse to read is not handed to them.
    IndexEntry::parse(&yaml, &file)?;
    let Some(folder) = &args.into else {
        output::block(yaml)?;
        return Ok(Exit::Done);
    };
    let folder = machine.typed_path(folder);
    disk::write_below(&folder, &folder.join(&file), yaml.as_bytes())?;
    output::line(format!("wrote {}", folder.join(&file).display()))?;
    output::line(format!("then: git -C {} add {file}, commit, and send it to the index", folder.display()))?;
    Ok(Exit::Done)
}
