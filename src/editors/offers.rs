//! Which flows are offered to editors and agents: those that come with nietz, and those of folders and packs that the user
//! trusts. A stranger's flow is not, because its summary would be read by a model before anybody has looked at it.

use std::collections::{BTreeMap, BTreeSet};

use crate::editors::offer::Offer;
use crate::error::{Code, Failure, Result};
use crate::lua::manifest::Manifest;
use crate::model::text::excerpt;
use crate::pack::permission_items::{describe_item, items};
use crate::pack::persona::Personas;
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::Root;
use crate::pack::trust::{Trust, folder_name};
use crate::run::flow_cache::FlowCache;
use crate::run::machine::Machine;
use crate::run::session;

/// The file of the cache that keeps what flows offer.
const CACHE: &str = "offers.json";

/// The flows that are offered, and why others could not be read.
pub(crate) struct Offers {
    pub offers: Vec<Offer>,
    pub unread: Vec<Failure>,
}

/// Finds the flows that are offered here; `only` narrows them to these names.
///
/// # Errors
///
/// `flow-not-found` if one of the names is no flow that is offered, and those of what the user trusts.
pub(crate) fn find(machine: &Machine, only: &[String]) -> Result<Offers> {
    let trust = machine.trust().read()?;
    let mut cache = FlowCache::open(machine, CACHE);
    let mut found = Offers { offers: Vec::new(), unread: Vec::new() };
    let mut names = BTreeSet::new();
    for located in resolve::all_flows(&machine.workspace, &machine.packs())? {
        if !is_trusted(&trust, &located) {
            continue;
        }
        let offer: Offer = match cache.of(&located, |located| load(machine, located)) {
            Ok(offer) => offer,
            Err(failure) => {
                found.unread.push(failure);
                continue;
            }
        };
        let full_name = located.full_name();
        let name = name_for(&offer.flow, full_name.as_deref(), &names);
        names.insert(name.clone());
        found.offers.push(Offer { name, wanted: full_name.unwrap_or_else(|| located.source()), ..offer });
    }
    cache.keep();
    if let Some(unknown) = only.iter().find(|name| !found.offers.iter().any(|offer| offer.is_called(name))) {
        let known: Vec<&str> = found.offers.iter().map(|offer| offer.name.as_str()).collect();
        let message = format!("`{}` is no flow that is offered here", excerpt(unknown));
        return Err(Failure::new(Code::FlowNotFound, message).hint(format!(
            "offered are {}; `nietz trust add` lets a folder's own flows be offered",
            known.join(", ")
        )));
    }
    if !only.is_empty() {
        found.offers.retain(|offer| only.iter().any(|name| offer.is_called(name)));
    }
    Ok(found)
}

impl Offer {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.wanted == name || self.flow == name
    }
}

/// Returns a name that no other flow has. The first with a name has it; others have the name of their pack before it.
fn name_for(flow: &str, full_name: Option<&str>, taken: &BTreeSet<String>) -> String {
    if !taken.contains(flow) {
        return flow.to_owned();
    }
    let mut name = full_name.unwrap_or(flow).replace('/', "_");
    while taken.contains(&name) {
        name.push('_');
    }
    name
}

fn is_trusted(trust: &Trust, located: &ResolvedFlow) -> bool {
    match (&located.tree.root, located.tree.seal()) {
        (Root::Bundled, _) => true,
        (Root::Disk(_), Some(seal)) => trust.packs.contains_key(&seal.sha256),
        (Root::Disk(root), None) => {
            folder_name(root).is_ok_and(|name| trust.folders.contains_key(&name) && trust.is_same(&name))
        }
    }
}

fn load(machine: &Machine, located: ResolvedFlow) -> Result<Offer> {
    let origin = located.tree.origin(&machine.workspace);
    let flow = session::load(machine, located)?;
    let manifest = &flow.manifest;
    let collections = manifest.collections.values();
    let paths = collections.map(|own| (own.collection.path.as_str(), own.collection.everywhere));
    let asks = items(&manifest.permissions, paths).iter().map(|item| describe_item(item)).collect();
    let personas = personas(machine, manifest);
    Ok(Offer { personas, ..Offer::of(manifest, asks, origin) })
}

/// Returns, for each param that has the name of a tag of personas, those that have it.
fn personas(machine: &Machine, manifest: &Manifest) -> BTreeMap<String, Vec<String>> {
    let tags: Vec<&String> = manifest.personas.keys().filter(|tag| manifest.main.params.contains_key(*tag)).collect();
    if tags.is_empty() {
        return BTreeMap::new();
    }
    // They are only suggested: a persona that cannot be read is none here.
    let all = machine.trees().and_then(|trees| Personas::new(trees).list()).unwrap_or_default();
    let with = |tag: &String| all.iter().filter(|own| own.tags.contains(tag)).map(|own| own.slug.clone()).collect();
    tags.into_iter().map(|tag| (tag.clone(), with(tag))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::name_for;

    #[test]
    fn flows_of_the_same_name_are_told_apart_by_their_packs() {
        let mut taken = BTreeSet::new();
        let mut name = |flow: &str, full: Option<&str>| {
            let name = name_for(flow, full, &taken);
            taken.insert(name.clone());
            name
        };
        assert_eq!(name("review", Some("ours/review")), "review");
        assert_eq!(name("review", Some("theirs/review")), "theirs_review");
        assert_eq!(name("review", Some("theirs/review")), "theirs_review_");
        assert_eq!(name("review", None), "review_");
    }
}
