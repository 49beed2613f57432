//! `nietz pack add SOURCE`.

use clap::Args;

use crate::cli::grants::GrantFlags;
use crate::cli::pack::source::{PackSource, with_reference};
use crate::cli::pack::vet::vet;
use crate::cli::pack::{search, signed};
use crate::cli::trust::packs::{ask, tell, union};
use crate::cli::{names, output};
use crate::error::{Code, Exit, Failure, Result};
use crate::model::text::excerpt;
use crate::pack::lock::{LockedPack, Lockfile};
use crate::pack::seal;
use crate::run::machine::Machine;

/// Add a pack to this project: look at it, play its tests, show what it may do, and ask
#[derive(Args)]
pub(super) struct PackAddArgs {
    /// URL#TAG or URL#COMMIT of a git repository, a folder, or a `.tar.gz`; with `--locked`, the name of a pack
    #[arg(required_unless_present = "locked")]
    source: Option<String>,
    /// Refuse the pack unless its tag is signed by somebody of `packs.signers` in config.yaml
    #[arg(long)]
    signed: bool,
    /// Install exactly what nietz.lock names, and grant nothing
    #[arg(long, conflicts_with = "yes")]
    locked: bool,
    #[command(flatten)]
    flags: GrantFlags,
}

pub(super) fn run(machine: &Machine, args: &PackAddArgs) -> Result<Exit> {
    if args.locked {
        return install_locked(machine, args.source.as_deref());
    }
    let typed = args.source.as_deref().unwrap_or_default();
    let indexed = if is_name(machine, typed) { Some(search::named(machine, typed)?) } else { None };
    let source = &indexed.as_ref().map_or_else(|| from_workspace(machine, typed), |entry| entry.source.clone());
    let mut lock = Lockfile::read(&machine.workspace)?;
    let vetted = vet(machine, &PackSource::parse(source, machine)?)?;
    if let Some(entry) = indexed.filter(|entry| entry.sha256 != vetted.sha256 || entry.name != vetted.about.name) {
        return Err(Failure::new(Code::PackChanged, format!("{source} has other content now than the index names"))
            .because(format!("the index: {} {}, {}", entry.name, entry.version, entry.sha256))
            .because(format!("the source: {} {}, {}", vetted.about.name, vetted.about.version, vetted.sha256))
            .hint("who keeps the index has to look at it again; nothing was installed"));
    }
    signed::require(machine, args.signed, &vetted.signature)?;
    let name = vetted.about.name.clone();
    if let Some(present) = lock.packs.get(&name) {
        let message = format!("this project has the pack {name} already, from {}", present.source);
        return Err(
            Failure::new(Code::Usage, message).hint(format!("nietz pack update {name}; or nietz pack remove {name}"))
        );
    }
    vetted.tell(machine, source)?;
    tell(&vetted.items, '+')?;
    let Some(granted) = ask(machine, &args.flags, &name, &vetted.items, None)? else {
        output::line("nothing was installed")?;
        return Ok(Exit::Done);
    };
    let locked = vetted.install(machine, source)?;
    machine.trust().change(|trust| {
        let before = trust.of_pack(&locked.sha256);
        trust.set_pack(&name, &locked.sha256, union(before, granted));
    })?;
    output::line(format!("added {name} {} to nietz.lock", locked.version))?;
    lock.packs.insert(name, locked);
    lock.write(&machine.workspace)?;
    Ok(Exit::Done)
}

/// Tells whether a typed source is the name of a pack in the index of the user's configuration.
fn is_name(machine: &Machine, typed: &str) -> bool {
    machine.config.packs.index.is_some() && names::require(typed).is_ok() && !machine.typed_path(typed).exists()
}

/// Returns a typed source as `nietz.lock` has it: a path there is relative to the workspace, and the user may be below it.
fn from_workspace(machine: &Machine, source: &str) -> String {
    let path = source.rsplit_once('#').map_or(source, |(path, _)| path);
    let typed = machine.typed_path(path);
    if machine.project.here == machine.workspace || path.is_empty() || !typed.exists() {
        return source.to_owned();
    }
    let whole = typed.canonicalize().unwrap_or(typed);
    let shown = whole.strip_prefix(&machine.workspace).unwrap_or(&whole);
    format!("{}{}", shown.display(), &source[path.len()..])
}

/// Installs the packs that nietz.lock names, or only the wanted one.
fn install_locked(machine: &Machine, wanted: Option<&str>) -> Result<Exit> {
    let lock = Lockfile::read(&machine.workspace)?;
    let all: Vec<(&String, &LockedPack)> = match wanted {
        Some(wanted) => {
            let entry = lock.packs.iter().find(|(name, locked)| *name == wanted || locked.source == wanted);
            vec![entry.ok_or_else(|| stale_lock(format!("nietz.lock has no pack `{}`", excerpt(wanted))))?]
        }
        None => lock.packs.iter().collect(),
    };
    if all.is_empty() {
        return Err(stale_lock("nietz.lock is missing, or names no pack".to_owned()));
    }
    for (name, locked) in all {
        let folder = locked.folder(&machine.packs(), name);
        if folder.is_dir() && seal::digest(&folder)? == locked.sha256 {
            output::line(format!("{name} {} is installed", locked.version))?;
            continue;
        }
        // Install the commit, not the tag, because a tag can be moved.
        let source = locked
            .commit
            .as_ref()
            .map_or_else(|| locked.source.clone(), |commit| with_reference(&locked.source, commit));
        let vetted = vet(machine, &PackSource::parse(&source, machine)?)?;
        if vetted.sha256 != locked.sha256 || vetted.about.name != **name {
            return Err(stale_lock(format!("{} has other content now than nietz.lock names", locked.source))
                .because(format!("nietz.lock: {}", locked.sha256))
                .because(format!("the source: {}", vetted.sha256)));
        }
        vetted.install(machine, &locked.source)?;
        output::line(format!("installed {name} {}", locked.version))?;
    }
    Ok(Exit::Done)
}

fn stale_lock(message: String) -> Failure {
    Failure::new(Code::PackLockStale, message).hint("without --locked, `nietz pack add` and `update` write the lock")
}
