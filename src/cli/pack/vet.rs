//! A pack that was taken in and looked at, and is not installed yet: every file read, every flow loaded (which performs
//! nothing), its own tests played with no permission at all.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::cli::pack::source::PackSource;
use crate::cli::trust::packs as trust;
use crate::cli::{output, test};
use crate::disk::owner;
use crate::error::{Code, Failure, Result};
use crate::lua::audit;
use crate::pack::lock::LockedPack;
use crate::pack::manifest::PackManifest;
use crate::pack::permission_items::{Items, ItemsByFlow, subtract_items};
use crate::pack::persona::Persona;
use crate::pack::tree::{PackTree, Root};
use crate::pack::{quote, resolve, seal};
use crate::run::machine::Machine;
use crate::run::session::Session;

/// How folders begin that are not installed yet.
pub(super) const UNFINISHED: &str = ".new-";

pub(super) struct VettedPack {
    /// Gone with all that is in it, unless it was installed.
    _scratch: tempfile::TempDir,
    pub root: PathBuf,
    pub about: PackManifest,
    pub asks: ItemsByFlow,
    pub sha256: String,
    pub commit: Option<String>,
    contents: String,
}

/// Takes a pack in and looks at all of it.
pub(super) fn vet(machine: &Machine, source: &PackSource) -> Result<VettedPack> {
    let packs = machine.packs();
    owner::make_folder(&packs)?;
    // Beside the others, so that installing it is one renaming.
    let scratch = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(&packs)
        .map_err(|error| Failure::io(&packs, "write to", &error))?;
    let root = scratch.path().join("pack");
    let commit = source.take(machine, scratch.path(), &root)?;
    let tree = PackTree::new(Root::Disk(root.clone()));
    let about = PackManifest::read(&tree)?;
    let asks = look_at_flows(machine, &tree)?;
    compare(&about.items_by_flow(), &asks)?;
    let (personas, quotes) = (tree.list("personas", ".md"), tree.list("quotes", ".yaml"));
    for path in &personas {
        Persona::parse("persona", &tree.text(path)?.unwrap_or_default(), path).map_err(as_invalid(path))?;
    }
    for path in &quotes {
        quote::parse(&tree.text(path)?.unwrap_or_default(), path).map_err(as_invalid(path))?;
    }
    if asks.is_empty() && personas.is_empty() && quotes.is_empty() {
        return Err(Failure::new(Code::PackInvalid, "the pack has neither flows nor personas nor quotes"));
    }
    let tests = test::play_all(machine, &root).map_err(as_invalid("its own test fails"))?;
    let parts =
        [(asks.len(), "flow"), (personas.len(), "persona"), (quotes.len(), "quote collection"), (tests, "test")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" })).collect();
    let passed = match tests {
        0 => "it has no test of its own",
        _ => "its tests pass, with no permission at all",
    };
    let contents = format!("{}; {passed}", parts.join(", "));
    let sha256 = seal::digest(&root)?;
    Ok(VettedPack { _scratch: scratch, root, about, asks, sha256, commit, contents })
}

/// Loads each flow, and returns what it asks for.
fn look_at_flows(machine: &Machine, tree: &PackTree) -> Result<ItemsByFlow> {
    let mut asks = ItemsByFlow::new();
    for located in resolve::flows(tree) {
        let path = located.path.clone();
        let session = Session::load_with(machine, located, vec![tree.clone(), PackTree::new(Root::Bundled)])
            .map_err(as_invalid(&path))?;
        let manifest = &session.flow.manifest;
        if path != format!("flows/{}.lua", manifest.name) {
            let message = format!("{path}: it calls itself `{}`; a flow has the name of its file", manifest.name);
            return Err(Failure::new(Code::PackInvalid, message));
        }
        let found = audit::flow(tree, &path, &manifest.permissions);
        if !found.is_empty() {
            let failure = Failure::new(Code::PackInvalid, format!("{path} cannot work as it is"));
            return Err(found.iter().fold(failure, |failure, found| {
                failure.because(format!("{}:{}:{}: {}", found.path, found.line, found.column, found.one_line()))
            }));
        }
        asks.insert(manifest.name.clone(), trust::asked_items(manifest));
    }
    Ok(asks)
}

/// Returns what of a tree is found by its name.
fn names(tree: &PackTree) -> BTreeSet<String> {
    let stem = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned()
    };
    let flows = resolve::flows(tree).into_iter().map(|located| format!("flow {}", stem(&located.path)));
    let personas = tree.list("personas", ".md").into_iter().map(|path| format!("persona {}", stem(&path)));
    let quotes = tree.list("quotes", ".yaml").into_iter().map(|path| format!("quote collection {}", stem(&path)));
    flows.chain(personas).chain(quotes).collect()
}

/// What `pack.yaml` says of the flows' permissions is what people read: it must be so.
pub(in crate::cli) fn compare(told: &ItemsByFlow, asked: &ItemsByFlow) -> Result<()> {
    let mut differ = Vec::new();
    let list = |asks: ItemsByFlow, what: &str| -> Vec<String> {
        let one = |(flow, items): (String, Items)| items.into_iter().map(move |item| format!("{flow}: {item} {what}"));
        asks.into_iter().flat_map(one).collect()
    };
    differ.extend(list(subtract_items(asked, told), "is declared by the flow, and not told in pack.yaml"));
    differ.extend(list(subtract_items(told, asked), "is told in pack.yaml, and not declared by the flow"));
    let strangers = told.keys().filter(|flow| !asked.contains_key(*flow));
    differ.extend(strangers.map(|flow| format!("{flow}: there is no such flow")));
    if differ.is_empty() {
        return Ok(());
    }
    let failure =
        Failure::new(Code::PackInvalid, "pack.yaml says something else of its flows' permissions than the flows do");
    let failure = differ.into_iter().fold(failure, Failure::because);
    Err(failure.hint(
        "under `permissions`, write for each flow what it declares; `documents` are the paths of its collections",
    ))
}

fn as_invalid(what: &str) -> impl Fn(Failure) -> Failure + '_ {
    move |failure| {
        let message = format!("{what}: {}", failure.message);
        Failure { code: Code::PackInvalid, message, ..failure }
    }
}

impl VettedPack {
    /// Tells what the pack is.
    pub(super) fn tell(&self, machine: &Machine, source: &str) -> Result<()> {
        let PackManifest { name, version, summary, licence, .. } = &self.about;
        output::line(format!("{name} {version}: {} ({})", summary, licence))?;
        let commit = self.commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
        output::line(format!("  from {source}{commit}"))?;
        output::line(format!("  {}", self.contents))?;
        for shared in self.name_conflicts(machine)? {
            output::line(format!("  {shared}"))?;
        }
        Ok(())
    }

    /// Says which names others have as well: who takes whose place has to be known beforehand.
    fn name_conflicts(&self, machine: &Machine) -> Result<Vec<String>> {
        let own = names(&PackTree::new(Root::Disk(self.root.clone())));
        let mut told = Vec::new();
        for other in machine.trees()? {
            let how = match (other.seal(), &other.root) {
                (Some(seal), _) if seal.pack == self.about.name => continue,
                (Some(seal), _) if seal.pack < self.about.name => {
                    format!("is hidden by that of the pack {}", seal.pack)
                }
                (Some(seal), _) => format!("takes the place of that of the pack {}", seal.pack),
                (None, Root::Disk(_)) => "is hidden by the project's own".to_owned(),
                (None, Root::Bundled) => "takes the place of the bundled one".to_owned(),
            };
            told.extend(names(&other).intersection(&own).map(|name| format!("its {name} {how}")));
        }
        Ok(told)
    }

    /// Puts the tree where the packs are, whole or not at all, and returns its line of the lock.
    pub(super) fn install(&self, machine: &Machine, source: &str) -> Result<LockedPack> {
        let locked = LockedPack {
            version: self.about.version.clone(),
            source: source.to_owned(),
            commit: self.commit.clone(),
            sha256: self.sha256.clone(),
        };
        let folder = locked.folder(&machine.packs(), &self.about.name);
        if folder.exists() {
            if seal::digest(&folder)? == self.sha256 {
                return Ok(locked);
            }
            // Somebody changed it: it was refused until now, and is made whole again.
            std::fs::remove_dir_all(&folder).map_err(|error| Failure::io(&folder, "remove", &error))?;
        }
        std::fs::rename(&self.root, &folder).map_err(|error| Failure::io(&folder, "install into", &error))?;
        Ok(locked)
    }
}
