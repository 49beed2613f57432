//! `nietz pack search [WORD…]`, and the index that it looks into.

use std::io::Read;

use clap::Args;

use crate::cli::output;
use crate::cli::pack::source::PackSource;
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::host::git::fetch::{self, FetchedEntry, FetchedKind, TreeVisitor};
use crate::model::text::{count, excerpt, shell};
use crate::pack::index::IndexEntry;
use crate::run::machine::Machine;

/// The most entries of an index, and the most bytes of one.
const ENTRIES: usize = 5_000;
const ENTRY: u64 = 64 << 10;

/// Find packs in an index: a git repository with a YAML file for each pack
///
/// `packs: { index: URL }` in config.yaml names it; any team can have one of its own. Nothing is installed.
#[derive(Args)]
pub(super) struct SearchArgs {
    /// Words that stand in a pack's name, summary, tags or flows; without them, all packs
    words: Vec<String>,
    /// The index, in place of the configured one: URL, or URL#BRANCH
    #[arg(long, value_name = "URL")]
    index: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &SearchArgs) -> Result<Exit> {
    let mut found = read(machine, args.index.as_deref())?;
    found.retain(|entry| entry.has(&args.words));
    if args.json {
        let mut lines = found.iter().map(|entry| serde_json::to_value(entry).unwrap_or_default());
        lines.try_for_each(|line| output::json(&line))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        output::line("no pack of the index is like that")?;
        return Ok(Exit::Done);
    }
    let row = |entry: &IndexEntry| {
        let tested = format!("{} with nietz {}", count(entry.tests as u64, "test"), entry.tested);
        vec![entry.name.clone(), entry.version.clone(), entry.summary.clone(), tested, entry.source.clone()]
    };
    output::table(&found.iter().map(row).collect::<Vec<_>>())?;
    output::line(format!("look at one, and be asked before it is there: nietz pack add {}", shell(&found[0].name)))?;
    Ok(Exit::Done)
}

/// Returns the entry of the configured index with this name.
pub(super) fn named(machine: &Machine, name: &str) -> Result<IndexEntry> {
    let all = read(machine, None)?;
    let names: Vec<String> = all.iter().map(|entry| entry.name.clone()).collect();
    all.into_iter().find(|entry| entry.name == name).ok_or_else(|| {
        let failure = Failure::new(Code::PackNotFound, format!("the index has no pack `{}`", excerpt(name)));
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`nietz pack search` lists those that it has"),
        }
    })
}

/// Reads an index, sorted by name. What is wrong in it is told, and left out.
fn read(machine: &Machine, index: Option<&str>) -> Result<Vec<IndexEntry>> {
    let Some(index) = index.or(machine.config.packs.index.as_deref()) else {
        return Err(Failure::new(Code::Usage, "no index of packs is known")
            .hint("name one in config.yaml, `packs: { index: URL }`, or by --index URL"));
    };
    let source = if index.contains('#') { index.to_owned() } else { format!("{index}#HEAD") };
    let PackSource::Git { url, reference } = PackSource::parse(&source, machine)? else {
        return Err(Failure::new(Code::Usage, format!("{}: an index is a git repository", excerpt(index))));
    };
    let scratch = tempfile::tempdir()
        .map_err(|error| Failure::new(Code::DiskFailed, format!("cannot make a temporary folder: {error}")))?;
    let mut files = IndexFiles::default();
    fetch::fetch(&machine.environment, (&url, &reference), scratch.path(), |name| name.ends_with(".yaml"), &mut files)?;
    let mut entries = Vec::new();
    for (path, content) in files.read {
        match IndexEntry::parse(&content, &path) {
            Ok(entry) if path == format!("{}.yaml", entry.name) => entries.push(entry),
            Ok(entry) => output::line(format!("{path} is left out: it has the pack {}", entry.name))?,
            Err(failure) => output::line(format!("{path} is left out: {}", failure.message))?,
        }
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// The YAML files at the top of an index.
#[derive(Default)]
struct IndexFiles {
    read: Vec<(String, String)>,
    listed: usize,
}

impl TreeVisitor for IndexFiles {
    fn visit_entry(&mut self, listed: &FetchedEntry) -> Result<()> {
        self.listed += 1;
        if self.listed > ENTRIES {
            return Err(Failure::new(Code::PackInvalid, format!("the index has more than {ENTRIES} entries")));
        }
        match listed.kind {
            FetchedKind::File if listed.size <= ENTRY => Ok(()),
            _ => {
                let path = String::from_utf8_lossy(&listed.path);
                let message = format!("{} in the index is no file of at most {} kB", excerpt(&path), ENTRY >> 10);
                Err(Failure::new(Code::PackInvalid, message))
            }
        }
    }

    fn visit_content(&mut self, listed: &FetchedEntry, content: &mut dyn Read) -> Result<()> {
        let path = String::from_utf8_lossy(&listed.path).into_owned();
        let mut text = Vec::new();
        content
            .read_to_end(&mut text)
            .map_err(|error| Failure::new(Code::GitFailed, format!("{}: {error}", excerpt(&path))))?;
        self.read.push((path, String::from_utf8_lossy(&text).into_owned()));
        Ok(())
    }
}
