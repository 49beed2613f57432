//! A pack that was taken in and looked at, and is not installed yet: every file read, every flow loaded (which performs
//! nothing), its own tests played with no permission at all.

use std::path::PathBuf;

use crate::cli::host::Host;
use crate::cli::pack::source::Source;
use crate::cli::pack::trust;
use crate::cli::session::Session;
use crate::cli::{output, test};
use crate::error::{Code, Failure, Result};
use crate::lua::api;
use crate::pack::about::About;
use crate::pack::asks::{Asks, Items, without};
use crate::pack::lock::Locked;
use crate::pack::persona::Persona;
use crate::pack::tree::{Root, Tree};
use crate::pack::{audit, quote, resolve, seal};

pub(super) struct Ready {
    /// Gone with all that is in it, unless it was installed.
    _scratch: tempfile::TempDir,
    pub root: PathBuf,
    pub about: About,
    pub asks: Asks,
    pub sha256: String,
    pub commit: Option<String>,
    contents: String,
}

/// Takes a pack in and looks at all of it.
pub(super) fn ready(host: &Host, source: &Source) -> Result<Ready> {
    let packs = host.packs();
    std::fs::create_dir_all(&packs).map_err(|error| Failure::io(&packs, "create", &error))?;
    // Beside the others, so that installing it is one renaming.
    let scratch = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(&packs)
        .map_err(|error| Failure::io(&packs, "write to", &error))?;
    let root = scratch.path().join("pack");
    let commit = source.take(host, scratch.path(), &root)?;
    let tree = Tree::new(Root::Disk(root.clone()));
    let about = About::read(&tree)?;
    let asks = look_at_flows(&tree)?;
    compare(&about.asks(), &asks)?;
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
    let tests = test::play_all(host, &root).map_err(as_invalid("its own test fails"))?;
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
    Ok(Ready { _scratch: scratch, root, about, asks, sha256, commit, contents })
}

/// Loads each flow, and returns what it asks for.
fn look_at_flows(tree: &Tree) -> Result<Asks> {
    let modules = api::names();
    let mut asks = Asks::new();
    for located in resolve::flows(tree) {
        let path = located.path.clone();
        let session =
            Session::load_with(located, vec![tree.clone(), Tree::new(Root::Bundled)]).map_err(as_invalid(&path))?;
        let manifest = &session.flow.manifest;
        if path != format!("flows/{}.lua", manifest.name) {
            let message = format!("{path}: it calls itself `{}`; a flow has the name of its file", manifest.name);
            return Err(Failure::new(Code::PackInvalid, message));
        }
        let found = audit::flow(tree, &path, &manifest.permissions, &modules);
        if !found.is_empty() {
            let failure = Failure::new(Code::PackInvalid, format!("{path} cannot work as it is"));
            return Err(found.iter().fold(failure, |failure, found| {
                failure.because(format!("{}:{}:{}: {}", found.path, found.line, found.column, found.message))
            }));
        }
        asks.insert(manifest.name.clone(), trust::asked(manifest));
    }
    Ok(asks)
}

/// What `pack.yaml` says of the flows' permissions is what people read: it must be so.
pub(in crate::cli) fn compare(told: &Asks, asked: &Asks) -> Result<()> {
    let mut differ = Vec::new();
    let list = |asks: Asks, what: &str| -> Vec<String> {
        let one = |(flow, items): (String, Items)| items.into_iter().map(move |item| format!("{flow}: {item} {what}"));
        asks.into_iter().flat_map(one).collect()
    };
    differ.extend(list(without(asked, told), "is declared by the flow, and not told in pack.yaml"));
    differ.extend(list(without(told, asked), "is told in pack.yaml, and not declared by the flow"));
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

impl Ready {
    /// Tells what the pack is.
    pub(super) fn tell(&self, source: &str) -> Result<()> {
        let About { name, version, summary, licence, .. } = &self.about;
        let clean = crate::model::text::clean;
        output::line(format!("{name} {version}: {} ({})", clean(summary), clean(licence)))?;
        let commit = self.commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
        output::line(format!("  from {}{commit}", clean(source)))?;
        output::line(format!("  {}", self.contents))
    }

    /// Puts the tree where the packs are, whole or not at all, and returns its line of the lock.
    pub(super) fn install(&self, host: &Host, source: &str) -> Result<Locked> {
        let locked = Locked {
            version: self.about.version.clone(),
            source: source.to_owned(),
            commit: self.commit.clone(),
            sha256: self.sha256.clone(),
        };
        let folder = locked.folder(&host.packs(), &self.about.name);
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
