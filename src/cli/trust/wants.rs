//! The permission items that a flow asks for in the folder that it comes from and in the workspace.
//!
//! Models, questions and documents need no trust. Commands, git, files and documents of other folders do, and so does everything in a folder that
//! overrides what is bundled or belongs to a pack: a flow, a persona, quotes, a prompt or data file, a setting, a model.

use std::collections::BTreeMap;
use std::path::Path;

use crate::assets;
use crate::error::{Failure, Result};
use crate::host::git::Repository;
use crate::lua::flow::Flow;
use crate::model::digest::Digest;
use crate::model::permission::Permission;
use crate::model::text::line;
use crate::pack::permission_items::{self, Items};
use crate::pack::persona::Persona;
use crate::pack::resolve;
use crate::pack::tree::{OverridingFile, PackTree, Root};
use crate::pack::trust::folder_name;
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::session;

/// The item that lets a folder's personas choose their models even if the user named one.
pub(in crate::cli) const PERSONA_MODELS: &str = "persona-models";

/// How the user called a flow, as far as that decides which items it asks for.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Invocation {
    /// The flow was called by its name, and not by a path.
    pub by_name: bool,
    /// The user chose the model.
    pub with_model: bool,
}

impl Invocation {
    pub(in crate::cli) fn of(begin: &NewRun, by_name: bool) -> Invocation {
        Invocation { by_name, with_model: begin.model.is_some() }
    }
}

/// Returns the items that a flow asks for, by folder.
pub(super) fn of_flow(machine: &Machine, flow: &Flow, invocation: &Invocation) -> Result<BTreeMap<String, Items>> {
    let mut wanted: BTreeMap<String, Items> = BTreeMap::new();
    let mut add = |folder: &Path, items: Items| -> Result<()> {
        if !items.is_empty() {
            wanted.entry(folder_name(folder)?).or_default().extend(items);
        }
        Ok(())
    };
    let flow_folder = own_folder(flow);
    if let Some(folder) = flow_folder {
        let mut items = permissions(flow);
        items.extend(hidden_flow(flow, invocation).map(|name| format!("hides={name}")));
        add(folder, items)?;
    }
    if flow_folder.is_none_or(|folder| folder != machine.workspace) {
        add(&machine.workspace, overrides(machine, flow, &machine.workspace, flow_folder)?)?;
        add(&machine.workspace, settings(machine, flow, invocation))?;
        add(&machine.workspace, overriding_files(flow)?.into_iter().map(|path| format!("data={path}")).collect())?;
    }
    // A copy of a bundled flow counts as the bundled flow, but anybody may have written the files beside it.
    if let Some(folder) = own_place(flow).filter(|folder| flow_folder.is_none() && *folder != machine.workspace) {
        add(folder, overrides(machine, flow, folder, flow_folder)?)?;
    }
    Ok(wanted)
}

/// Returns all items that the flows, personas and settings of a folder can ask for, and why some flows could not be loaded.
pub(super) fn of_folder(machine: &Machine) -> Result<(Items, Vec<Failure>)> {
    let (mut items, mut unread) = (Items::new(), Vec::new());
    let by_name = Invocation { by_name: true, with_model: false };
    let tree = PackTree::new(Root::Disk(machine.workspace.clone()));
    for located in resolve::all_flows(&machine.workspace, &machine.packs())? {
        match session::load(machine, located) {
            Ok(flow) => items.extend(of_flow(machine, &flow, &by_name)?.into_values().flatten()),
            Err(failure) => unread.push(failure),
        }
    }
    if !naming_models(&tree).is_empty() {
        items.insert(PERSONA_MODELS.to_owned());
    }
    // A folder that is not a repository, or not a readable one, has no filters.
    let repository =
        Repository::new(&machine.repository().0, &machine.worktrees(), "", &machine.environment, machine.config.git);
    items.extend(repository.filters().unwrap_or_default());
    Ok((items, unread))
}

/// Returns the slugs of the personas that name a model of their own, except for bundled personas.
pub(super) fn with_models(machine: &Machine, flow: &Flow) -> Result<Vec<String>> {
    let mut trees = machine.trees()?;
    trees.extend(own_folder(flow).map(|folder| PackTree::new(Root::Disk(folder.to_owned()))));
    let mut slugs: Vec<String> =
        trees.iter().filter(|tree| tree.root != Root::Bundled).flat_map(naming_models).collect();
    slugs.sort();
    slugs.dedup();
    Ok(slugs)
}

/// Returns the slugs of a tree's personas that name a model. Invalid personas are left out: using one says what is wrong.
fn naming_models(tree: &PackTree) -> Vec<String> {
    let slug = |path: &String| {
        let text = tree.text(path).ok().flatten()?;
        let persona = Persona::parse(path.rsplit('/').next()?.trim_end_matches(".md"), &text, path).ok()?;
        persona.model.is_some().then_some(persona.slug)
    };
    tree.list("personas", ".md").iter().filter_map(slug).collect()
}

/// Returns a notice if the name that the user gave means another flow than the bundled one.
pub(super) fn not_the_bundled_one(machine: &Machine, flow: &Flow, invocation: &Invocation) -> Option<String> {
    let name = hidden_flow(flow, invocation)?;
    let of = flow.located.tree.origin(&machine.workspace);
    let notice = format!("{name} is {} ({of}), and not the bundled flow", flow.located.source());
    Some(line(&notice).into_owned())
}

/// Returns a notice if a flow from elsewhere reads files of the workspace in place of its own, and another if modules stand
/// beside them, which it does not read.
pub(super) fn overriding_notices(flow: &Flow) -> Result<Vec<String>> {
    let name = &flow.manifest.name;
    let files = overriding_files(flow)?;
    let files = (!files.is_empty()).then(|| format!("{name} reads this folder's own {}", files.join(", ")));
    let unused = flow.located.tree.unused_modules();
    let unused = (!unused.is_empty()).then(|| {
        format!("{name} does not use {}: its prompts and data can be overridden, its modules cannot", unused.join(", "))
    });
    Ok(files.into_iter().chain(unused).map(|text| line(&text).into_owned()).collect())
}

/// Returns the paths of the workspace's files that a flow from elsewhere reads in place of its own, or beside them.
pub(in crate::cli) fn overriding_files(flow: &Flow) -> Result<Vec<String>> {
    let files = flow.located.tree.reached_overriding()?;
    Ok(files.into_iter().filter(OverridingFile::is_different).map(|file| file.path).collect())
}

/// Returns the folder that a flow comes from; `None` for flows of packs, and for flows that equal bundled ones byte by byte.
fn own_folder(flow: &Flow) -> Option<&Path> {
    own_place(flow).filter(|_| !is_bundled(flow))
}

/// Returns the folder that a flow lies in; `None` for flows of packs and bundled flows.
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
    // Most flows already differ from the bundled ones by their names.
    if assets::read(&flow.located.path).is_none() {
        return false;
    }
    // Modules can be required later, so each module that the folder has in place of a bundled one must equal it.
    let modules = PackTree::new(Root::Disk(folder.clone()));
    let module = |path: &String| match modules.text(path) {
        Ok(text) => text.is_none_or(|text| same(path, &Digest::of(text.as_bytes()).to_string())),
        Err(_) => false,
    };
    flow.sources().iter().all(|(path, digest)| same(path, digest))
        && assets::list("flows").iter().filter(|path| path.matches('/').count() > 1).all(module)
}

/// Returns the name of the bundled flow that this flow hides.
fn hidden_flow<'a>(flow: &'a Flow, invocation: &Invocation) -> Option<&'a str> {
    let name = flow.located.path.strip_prefix("flows/")?.strip_suffix(".lua")?;
    let may_hide = invocation.by_name && flow.located.tree.root != Root::Bundled;
    (may_hide && assets::read(&flow.located.path).is_some() && !is_bundled(flow)).then_some(name)
}

fn permissions(flow: &Flow) -> Items {
    let mut items = permission_items::items(&flow.manifest.permissions, std::iter::empty());
    items.remove(Permission::Llm.name());
    items.extend(flow.manifest.read_everywhere().map(permission_items::everywhere_item));
    items
}

/// Returns an item for each persona and each quote collection of a folder that overrides one of the flow's own folder
/// (`flow_folder`), of a pack, or a bundled one.
fn overrides(machine: &Machine, flow: &Flow, folder: &Path, flow_folder: Option<&Path>) -> Result<Items> {
    let mut items = Items::new();
    let here = PackTree::new(Root::Disk(folder.to_owned()));
    let mut others = machine.layers(&flow.located.tree)?;
    others.retain(|tree| match &tree.root {
        Root::Bundled => true,
        // Of folders that are not packs, only the flow's own can be overridden: another one may have the same author.
        Root::Disk(at) => tree.seal().is_some() || at != folder && flow_folder == Some(at.as_path()),
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

/// Returns an item for each setting, and for the model, that the workspace's configuration chooses for a flow from elsewhere.
fn settings(machine: &Machine, flow: &Flow, invocation: &Invocation) -> Items {
    let manifest = &flow.manifest;
    let mut items = Items::new();
    for layer in machine.config.settings(&manifest.name).iter().filter(|layer| layer.project) {
        let free = |name: &&String| manifest.settings.get(*name).is_some_and(|setting| !setting.limit);
        items.extend(layer.values.keys().filter(free).map(|name| format!("setting={}.{name}", manifest.name)));
    }
    if manifest.permissions.llm && !invocation.with_model {
        items.extend(machine.config.project_model().map(|model| format!("model={model}")));
    }
    items
}
