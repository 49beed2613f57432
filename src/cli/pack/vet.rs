//! Checks a pack before it is installed: reads its files, loads every flow (which performs no effect), and replays its own
//! tests without any permission.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::cli::pack::signed;
use crate::cli::pack::source::PackSource;
use crate::cli::trust::packs as trust;
use crate::cli::{output, test};
use crate::disk::owner;
use crate::error::{Code, Failure, Result};
use crate::host::git::signature::TagSignature;
use crate::lua::audit;
use crate::pack::lock::LockedPack;
use crate::pack::manifest::PackManifest;
use crate::pack::permission_items::{Items, ItemsByFlow, subtract_items};
use crate::pack::persona::Persona;
use crate::pack::tree::{PackTree, Root};
use crate::pack::{quote, resolve, seal};
use crate::run::machine::Machine;
use crate::run::session::Session;

/// The prefix of folders whose packs are not installed yet.
pub(super) const UNFINISHED: &str = ".new-";

/// A pack that passed all checks and is not installed yet.
pub(super) struct VettedPack {
    /// The temporary folder around `root`, which is removed at the end.
    _scratch: tempfile::TempDir,
    pub root: PathBuf,
    pub about: PackManifest,
    /// The permission items that its flows ask for.
    pub items: ItemsByFlow,
    pub sha256: String,
    pub commit: Option<String>,
    pub signature: TagSignature,
    /// How many tests of its own it has.
    pub tests: usize,
    contents: String,
}

/// Fetches a pack and checks all of it.
pub(super) fn vet(machine: &Machine, source: &PackSource) -> Result<VettedPack> {
    let packs = machine.packs();
    owner::make_folder(&packs)?;
    // The temporary folder lies beside the installed packs, so that installing is a single rename.
    let scratch = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(&packs)
        .map_err(|error| Failure::io(&packs, "write to", &error))?;
    let root = scratch.path().join("pack");
    let commit = source.take(machine, scratch.path(), &root)?;
    let signature = signed::signature(machine, source, commit.as_deref(), scratch.path())?;
    let tree = PackTree::new(Root::Disk(root.clone()));
    let about = PackManifest::read(&tree)?;
    let items = look_at_flows(machine, &tree)?;
    compare(&about.items_by_flow(), &items)?;
    let (personas, quotes) = (tree.list("personas", ".md"), tree.list("quotes", ".yaml"));
    for path in &personas {
        Persona::parse("persona", &tree.text(path)?.unwrap_or_default(), path).map_err(as_invalid(path))?;
    }
    for path in &quotes {
        quote::parse(&tree.text(path)?.unwrap_or_default(), path).map_err(as_invalid(path))?;
    }
    if items.is_empty() && personas.is_empty() && quotes.is_empty() {
        return Err(Failure::new(Code::PackInvalid, "the pack has neither flows nor personas nor quotes"));
    }
    let tests = test::play_all(machine, &root).map_err(as_invalid("its own test fails"))?;
    let parts =
        [(items.len(), "flow"), (personas.len(), "persona"), (quotes.len(), "quote collection"), (tests, "test")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" })).collect();
    let version = env!("CARGO_PKG_VERSION");
    let by_author = match &about.tested {
        Some(tested) if tested != version => format!("; its author played them with {tested}"),
        Some(_) => "; so did its author".to_owned(),
        None => String::new(),
    };
    let passed = match tests {
        0 => "it has no test of its own".to_owned(),
        _ => format!("its tests pass with nietz {version}, with no permission at all{by_author}"),
    };
    let contents = format!("{}; {passed}", parts.join(", "));
    let sha256 = seal::digest(&root)?;
    Ok(VettedPack { _scratch: scratch, root, about, items, sha256, commit, signature, tests, contents })
}

/// Loads and audits each flow, and returns the permission items that it asks for.
fn look_at_flows(machine: &Machine, tree: &PackTree) -> Result<ItemsByFlow> {
    let mut items = ItemsByFlow::new();
    for located in resolve::flows(tree) {
        let path = located.path.clone();
        let session = Session::load_with(machine, located, vec![tree.clone(), PackTree::new(Root::Bundled)])
            .map_err(as_invalid(&path))?;
        let manifest = &session.flow.manifest;
        if path != format!("flows/{}.lua", manifest.name) {
            let message = format!("{path}: it calls itself `{}`; a flow has the name of its file", manifest.name);
            return Err(Failure::new(Code::PackInvalid, message));
        }
        let mut findings = audit::flow(tree, &path, manifest);
        findings.retain(|finding| !finding.is_remark);
        if !findings.is_empty() {
            let failure = Failure::new(Code::PackInvalid, format!("{path} cannot work as it is"));
            return Err(findings.iter().fold(failure, |failure, finding| {
                failure.because(format!("{}:{}:{}: {}", finding.path, finding.line, finding.column, finding.one_line()))
            }));
        }
        items.insert(manifest.name.clone(), trust::asked_items(manifest));
    }
    Ok(items)
}

/// Returns the names of a tree's flows, personas and quote collections.
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

/// Checks that `pack.yaml` lists exactly the permissions that the flows declare, because people read only `pack.yaml`.
pub(in crate::cli) fn compare(listed: &ItemsByFlow, declared: &ItemsByFlow) -> Result<()> {
    let mut differences = Vec::new();
    let list = |items_by_flow: ItemsByFlow, what: &str| -> Vec<String> {
        let describe =
            |(flow, items): (String, Items)| items.into_iter().map(move |item| format!("{flow}: {item} {what}"));
        items_by_flow.into_iter().flat_map(describe).collect()
    };
    differences.extend(list(subtract_items(declared, listed), "is declared by the flow, and not told in pack.yaml"));
    differences.extend(list(subtract_items(listed, declared), "is told in pack.yaml, and not declared by the flow"));
    let unknown = listed.keys().filter(|flow| !declared.contains_key(*flow));
    differences.extend(unknown.map(|flow| format!("{flow}: there is no such flow")));
    if differences.is_empty() {
        return Ok(());
    }
    let failure =
        Failure::new(Code::PackInvalid, "pack.yaml says something else of its flows' permissions than the flows do");
    let failure = differences.into_iter().fold(failure, Failure::because);
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
    /// Prints what the pack is, where it comes from, and which names it shares with others.
    pub(super) fn tell(&self, machine: &Machine, source: &str) -> Result<()> {
        let PackManifest { name, version, summary, licence, .. } = &self.about;
        output::line(format!("{name} {version}: {} ({})", summary, licence))?;
        let commit = self.commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
        output::line(format!("  from {source}{commit}"))?;
        if self.commit.is_some() {
            output::line(format!("  {}", signed::describe(&self.signature)))?;
        }
        output::line(format!("  {}", self.contents))?;
        for shared in self.name_conflicts(machine)? {
            output::line(format!("  {shared}"))?;
        }
        Ok(())
    }

    /// Describes which of its names are already in use, because the user must know beforehand which one hides the other.
    fn name_conflicts(&self, machine: &Machine) -> Result<Vec<String>> {
        let own = names(&PackTree::new(Root::Disk(self.root.clone())));
        let mut conflicts = Vec::new();
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
            conflicts.extend(names(&other).intersection(&own).map(|name| format!("its {name} {how}")));
        }
        Ok(conflicts)
    }

    /// Installs the pack in a single step, and returns its entry for `nietz.lock`.
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
            // Somebody changed the installed pack, so nietz refused to load it: replace it.
            std::fs::remove_dir_all(&folder).map_err(|error| Failure::io(&folder, "remove", &error))?;
        }
        std::fs::rename(&self.root, &folder).map_err(|error| Failure::io(&folder, "install into", &error))?;
        Ok(locked)
    }
}
