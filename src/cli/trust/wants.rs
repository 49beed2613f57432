//! What a flow asks of the folder that it comes from, and of the one that it works in.
//!
//! Models, questions and documents ask for nothing. Commands, git and files do, and so does whatever of a folder stands
//! in place of what comes with nietz or with a pack: a flow, a persona, quotes, a setting, a model.

use std::collections::BTreeMap;
use std::path::Path;

use crate::assets;
use crate::error::{Failure, Result};
use crate::host::git::Repository;
use crate::lua::flow::Flow;
use crate::model::digest::Digest;
use crate::model::permission::Permission;
use crate::pack::permission_items::{self, Items};
use crate::pack::persona::Persona;
use crate::pack::resolve;
use crate::pack::tree::{PackTree, Root};
use crate::pack::trust::folder_name;
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::session;

/// Models that a folder's personas name, where the user named one.
pub(in crate::cli) const PERSONA_MODELS: &str = "persona-models";

/// How a run is called, as far as it decides what is asked for.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Invocation {
    /// By its name, and not by a path.
    pub by_name: bool,
    /// With the user's own choice of a model.
    pub with_model: bool,
}

impl Invocation {
    pub(in crate::cli) fn of(begin: &NewRun, by_name: bool) -> Invocation {
        Invocation { by_name, with_model: begin.model.is_some() }
    }
}

/// Returns what a flow asks for, by folder.
pub(super) fn of_flow(machine: &Machine, flow: &Flow, called: &Invocation) -> Result<BTreeMap<String, Items>> {
    let mut wanted: BTreeMap<String, Items> = BTreeMap::new();
    let mut add = |folder: &Path, items: Items| -> Result<()> {
        if !items.is_empty() {
            wanted.entry(folder_name(folder)?).or_default().extend(items);
        }
        Ok(())
    };
    let own = own_folder(flow);
    if let Some(folder) = own {
        let mut items = permissions(flow);
        items.extend(hidden_flow(flow, called).map(|name| format!("hides={name}")));
        add(folder, items)?;
    }
    if own.is_none_or(|folder| folder != machine.workspace) {
        add(&machine.workspace, overrides(machine, flow, &machine.workspace, own)?)?;
        add(&machine.workspace, settings(machine, flow, called))?;
    }
    // A copy of a bundled flow is the bundled one, and what lies beside it is somebody's own.
    if let Some(folder) = own_place(flow).filter(|folder| own.is_none() && *folder != machine.workspace) {
        add(folder, overrides(machine, flow, folder, own)?)?;
    }
    Ok(wanted)
}

/// Returns all that the flows, personas and settings of a folder can ask for, and what could not be looked at.
pub(super) fn of_folder(machine: &Machine) -> Result<(Items, Vec<Failure>)> {
    let (mut items, mut unread) = (Items::new(), Vec::new());
    let by_name = Invocation { by_name: true, with_model: false };
    let tree = PackTree::new(Root::Disk(machine.workspace.clone()));
    for located in resolve::flows(&tree).into_iter().chain(resolve::flows(&PackTree::new(Root::Bundled))) {
        match session::load(machine, located) {
            Ok(flow) => items.extend(of_flow(machine, &flow, &by_name)?.into_values().flatten()),
            Err(failure) => unread.push(failure),
        }
    }
    if !naming_models(&tree).is_empty() {
        items.insert(PERSONA_MODELS.to_owned());
    }
    // A folder that is no repository, or none that can be read, has none.
    let repository =
        Repository::new(&machine.workspace, &machine.worktrees(), "", &machine.environment, machine.config.git);
    items.extend(repository.filters().unwrap_or_default());
    Ok((items, unread))
}

/// Returns the slugs of the personas that name a model of their own, those that come with nietz aside.
pub(super) fn with_models(machine: &Machine, flow: &Flow) -> Result<Vec<String>> {
    let mut trees = machine.trees()?;
    trees.extend(own_folder(flow).map(|folder| PackTree::new(Root::Disk(folder.to_owned()))));
    let mut found: Vec<String> =
        trees.iter().filter(|tree| tree.root != Root::Bundled).flat_map(naming_models).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// Those that cannot be read name none: whoever wants one is told what is wrong with it.
fn naming_models(tree: &PackTree) -> Vec<String> {
    let named = |path: &String| {
        let text = tree.text(path).ok().flatten()?;
        let persona = Persona::parse(path.rsplit('/').next()?.trim_end_matches(".md"), &text, path).ok()?;
        persona.model.is_some().then_some(persona.slug)
    };
    tree.list("personas", ".md").iter().filter_map(named).collect()
}

/// Says that a name means another flow than the bundled one.
pub(super) fn not_the_bundled_one(machine: &Machine, flow: &Flow, called: &Invocation) -> Option<String> {
    let name = hidden_flow(flow, called)?;
    let of = flow.located.tree.origin(&machine.workspace);
    let told = format!("{name} is {} ({of}), and not the bundled flow", flow.located.source());
    Some(crate::model::text::line(&told).into_owned())
}

/// Returns the folder that a flow comes from; nothing where it is a pack's, or is the bundled one in each byte.
fn own_folder(flow: &Flow) -> Option<&Path> {
    own_place(flow).filter(|_| !is_bundled(flow))
}

/// Returns the folder that a flow lies in; nothing where it is a pack's or comes with nietz.
fn own_place(flow: &Flow) -> Option<&Path> {
    match &flow.located.tree.root {
        Root::Disk(folder) if flow.located.tree.seal().is_none() => Some(folder),
        Root::Disk(_) | Root::Bundled => None,
    }
}

fn is_bundled(flow: &Flow) -> bool {
    let same =
        |path: &str, digest: &str| assets::read(path).is_some_and(|bytes| Digest::of(bytes).to_string() == digest);
    let Root::Disk(folder) = &flow.located.tree.root else { return true };
    // Most flows are told apart by their name already.
    if assets::read(&flow.located.path).is_none() {
        return false;
    }
    // Modules can be required later: those that it could take in place of the bundled ones have to be these.
    let modules = PackTree::new(Root::Disk(folder.clone()));
    let module = |path: &String| match modules.text(path) {
        Ok(text) => text.is_none_or(|text| same(path, &Digest::of(text.as_bytes()).to_string())),
        Err(_) => false,
    };
    flow.sources().iter().all(|(path, digest)| same(path, digest))
        && assets::list("flows").iter().filter(|path| path.matches('/').count() > 1).all(module)
}

/// Returns the name of the bundled flow that this one stands in place of.
fn hidden_flow<'a>(flow: &'a Flow, called: &Invocation) -> Option<&'a str> {
    let name = flow.located.path.strip_prefix("flows/")?.strip_suffix(".lua")?;
    let may_hide = called.by_name && flow.located.tree.root != Root::Bundled;
    (may_hide && assets::read(&flow.located.path).is_some() && !is_bundled(flow)).then_some(name)
}

fn permissions(flow: &Flow) -> Items {
    let mut items = permission_items::items(&flow.manifest.permissions, std::iter::empty());
    items.remove(Permission::Llm.name());
    items
}

/// Returns which personas and quotes of a folder stand in place of what the flow would have without it: its own, those of
/// packs, and those that come with nietz. `own` is the folder of a flow that has one.
fn overrides(machine: &Machine, flow: &Flow, folder: &Path, own: Option<&Path>) -> Result<Items> {
    let mut items = Items::new();
    let here = PackTree::new(Root::Disk(folder.to_owned()));
    let mut others = machine.layers(&flow.located.tree)?;
    others.retain(|tree| match &tree.root {
        Root::Bundled => true,
        // A stranger's persona is no other one for lying in two of their folders.
        Root::Disk(at) => tree.seal().is_some() || at != folder && own == Some(at.as_path()),
    });
    for (top, ending, item) in [("personas", ".md", "persona"), ("quotes", ".yaml", "quotes")] {
        let of_others: Vec<(&PackTree, String)> =
            others.iter().flat_map(|tree| tree.list(top, ending).into_iter().map(move |path| (tree, path))).collect();
        for path in here.list(top, ending) {
            let name = |path: &str| path.rsplit('/').next().unwrap_or(path).trim_end_matches(ending).to_owned();
            let Some((tree, other)) = of_others.iter().find(|(_, other)| name(other) == name(&path)) else { continue };
            if here.text(&path)? != tree.text(other)? {
                items.insert(format!("{item}={}", name(&path)));
            }
        }
    }
    Ok(items)
}

/// Returns what the workspace's file sets for a flow that is not its own.
fn settings(machine: &Machine, flow: &Flow, called: &Invocation) -> Items {
    let manifest = &flow.manifest;
    let mut items = Items::new();
    for layer in machine.config.settings(&manifest.name).iter().filter(|layer| layer.project) {
        let free = |name: &&String| manifest.settings.get(*name).is_some_and(|setting| !setting.limit);
        items.extend(layer.values.keys().filter(free).map(|name| format!("setting={}.{name}", manifest.name)));
    }
    if manifest.permissions.llm && !called.with_model {
        items.extend(machine.config.project_model().map(|model| format!("model={model}")));
    }
    items
}
