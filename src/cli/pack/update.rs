//! `nietz pack update NAME`.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;

use crate::cli::grants::GrantFlags;
use crate::cli::output;
use crate::cli::pack::signed;
use crate::cli::pack::source::{PackSource, newest, with_reference};
use crate::cli::pack::vet::vet;
use crate::cli::trust::packs::{ask, installed_items, intersection, tell, union};
use crate::error::{Code, Exit, Failure, Result};
use crate::model::text::line;
use crate::pack::lock::{LockedPack, Lockfile};
use crate::pack::permission_items::{ItemsByFlow, subtract_items};
use crate::pack::seal::{self, Seal};
use crate::run::machine::Machine;

/// How many of the differing files are listed.
const SHOWN: usize = 100;

/// Update a pack: show which files and permissions differ, and ask
#[derive(Args)]
pub(super) struct UpdateArgs {
    name: String,
    /// The tag or commit to go to [default: the newest version among the tags; else what the source is now]
    #[arg(long, value_name = "TAG")]
    to: Option<String>,
    /// Refuse the new version unless its tag is signed by somebody of `packs.signers` in config.yaml
    #[arg(long)]
    signed: bool,
    #[command(flatten)]
    flags: GrantFlags,
}

pub(super) fn run(machine: &Machine, args: &UpdateArgs) -> Result<Exit> {
    let name = &args.name;
    let mut lock = Lockfile::read(&machine.workspace)?;
    let before = lock.get(name)?.clone();
    let mut text = before.source.clone();
    match (PackSource::parse(&text, machine)?, &args.to) {
        (PackSource::Git { .. }, Some(reference)) => text = with_reference(&text, reference),
        (_, Some(_)) => {
            return Err(Failure::new(Code::Usage, format!("{name} comes from {text}, which has no tags and commits")));
        }
        (PackSource::Git { url, reference }, None) => {
            if let Some(tag) = newest(machine, &url, &reference)? {
                text = with_reference(&text, &tag);
            }
        }
        (PackSource::Folder(_) | PackSource::Archive(_), None) => {}
    }
    let vetted = vet(machine, &PackSource::parse(&text, machine)?)?;
    if vetted.about.name != *name {
        let message = format!("{text} is the pack {} now, and not {name}", vetted.about.name);
        return Err(Failure::new(Code::PackInvalid, message).hint("remove the one, and add the other"));
    }
    signed::require(machine, args.signed, &vetted.signature)?;
    let moved = moved_tag_notice(&before, &text, vetted.commit.as_deref());
    if let Some(moved) = &moved {
        output::line(moved)?;
    }
    if vetted.sha256 == before.sha256 {
        output::line(format!("{name} {} is the newest", before.version))?;
        return Ok(Exit::Done);
    }
    output::line(format!("{name} {} → {}", before.version, vetted.about.version))?;
    vetted.tell(machine, &text)?;
    tell_differences(&before.folder(&machine.packs(), name), &vetted.root)?;
    let seal = Seal::new(name, &before.version, &before.sha256);
    let old_items = match installed_items(&before.folder(&machine.packs(), name), seal) {
        Ok(items) => items,
        // If there is nothing to compare with, all items count as new.
        Err(failure) if matches!(failure.code, Code::PackNotFound | Code::PackChanged) => ItemsByFlow::new(),
        Err(failure) => return Err(failure),
    };
    let (more, less) = (subtract_items(&vetted.items, &old_items), subtract_items(&old_items, &vetted.items));
    if more.is_empty() && less.is_empty() {
        output::line("its permissions are as they were")?;
    }
    tell(&less, '-')?;
    tell(&more, '+')?;
    let kept = intersection(&vetted.items, &machine.trust().read()?.of_pack(&before.sha256));
    // Other content is other code, so the user is asked even if the pack asks for no new permission.
    let question = match moved {
        Some(_) => format!("May {name} be what its moved tag names now?"),
        None => format!("May {name} {} take the place of {}?", line(&vetted.about.version), line(&before.version)),
    };
    let Some(granted) = ask(machine, &args.flags, name, &more, Some(&question))? else {
        output::line(format!("not updated: {name} stays at {}", before.version))?;
        return Ok(Exit::Done);
    };
    let locked = vetted.install(machine, &text)?;
    machine.trust().change(|trust| trust.set_pack(name, &locked.sha256, union(kept, granted)))?;
    output::line(format!("updated {name} to {}", locked.version))?;
    lock.packs.insert(name.clone(), locked);
    lock.write(&machine.workspace)?;
    Ok(Exit::Done)
}

/// Returns a notice if the locked tag names another commit now: tags of releases do not move by accident.
fn moved_tag_notice(before: &LockedPack, source: &str, commit: Option<&str>) -> Option<String> {
    let (was, is) = (before.commit.as_deref()?, commit?);
    let tag = source.rsplit_once('#')?.1;
    (source == before.source && was != is)
        .then(|| format!("{tag} was moved since nietz.lock was written: it named the commit {was}, and names {is} now"))
}

/// Prints which files differ between two versions.
fn tell_differences(before: &Path, now: &Path) -> Result<()> {
    let none = BTreeMap::new();
    // If the old version is not installed, all files differ. If it was changed on disk, it is compared as it is.
    let before = if before.is_dir() { seal::files(before)? } else { none };
    let now = seal::files(now)?;
    let removed = before.keys().filter(|path| !now.contains_key(*path)).map(|path| ('-', path));
    let changed = now.iter().filter(|(path, content)| before.get(*path) != Some(content));
    let mut all: Vec<(char, &String)> =
        changed.map(|(path, _)| (if before.contains_key(path) { '~' } else { '+' }, path)).chain(removed).collect();
    all.sort_by_key(|(_, path)| *path);
    output::line(format!("files that differ: {}", all.len()))?;
    for (sign, path) in all.iter().take(SHOWN) {
        output::line(format!("  {sign} {path}"))?;
    }
    match all.len() > SHOWN {
        true => output::line(format!("  and {} more", all.len() - SHOWN)),
        false => Ok(()),
    }
}
