//! What a team trusts: rows of its store, each signed off by a person. Workers go by these, and by nothing of their own.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::model::text::line;
use crate::pack::permission_items::{Items, ItemsByFlow};
use crate::pack::trust::{Trust, TrustedPack, folder_name};
use crate::run::machine::Machine;

/// What rows of folders and of packs are called.
const FOLDER: &str = "folder";
const PACK: &str = "pack:";

/// Returns what this process goes by: what the team trusts where a worker has started it, else what the user does.
///
/// # Errors
///
/// Those of the file of trust, and those of a server.
pub(super) fn trusted(machine: &Machine) -> Result<Trust> {
    match machine.team().process().is_some_and(|process| process.given.is_some()) {
        true => of_team(machine),
        false => machine.trust().read(),
    }
}

/// Returns where to trust something, for whoever is refused.
pub(super) fn is_of_team(machine: &Machine) -> bool {
    machine.team().process().is_some_and(|process| process.given.is_some())
}

fn of_team(machine: &Machine) -> Result<Trust> {
    let (server, _) = machine.team().needed("what a team trusts")?;
    let (mut folder, mut packs) = (Items::new(), BTreeMap::new());
    for (subject, items, _) in server.trusted()? {
        let wrong = |error: serde_json::Error| {
            Failure::new(Code::StoreVersion, format!("what the team trusts of {subject} cannot be read: {error}"))
                .hint("sign it off anew: nietz trust add --team")
        };
        match subject.strip_prefix(PACK) {
            Some(sha256) => {
                drop(packs.insert(sha256.to_owned(), serde_json::from_str::<TrustedPack>(&items).map_err(wrong)?))
            }
            None if subject == FOLDER => folder = serde_json::from_str(&items).map_err(wrong)?,
            None => {}
        }
    }
    Ok(Trust::of_team(&folder_name(&machine.workspace)?, folder, packs))
}

/// Signs off items of the workspace's folder.
pub(super) fn sign_folder(machine: &Machine, items: &Items) -> Result<Exit> {
    let (server, _) = machine.team().needed("`--team`")?;
    let mut all = of_team(machine)?.of_folder(&folder_name(&machine.workspace)?);
    all.extend(items.iter().cloned());
    let text = serde_json::to_string(&all).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    server.sign(FOLDER, &text)?;
    output::line(format!(
        "signed off for {}: {}",
        line(&server.name),
        if all.is_empty() {
            "nothing more than all flows may".to_owned()
        } else {
            all.iter().map(|item| line(item).into_owned()).collect::<Vec<_>>().join(", ")
        }
    ))?;
    Ok(Exit::Done)
}

/// Signs off what the flows of a pack may do.
pub(super) fn sign_pack(machine: &Machine, pack: &str, sha256: &str, flows: ItemsByFlow) -> Result<Exit> {
    let (server, _) = machine.team().needed("`--team`")?;
    let trusted = TrustedPack { pack: pack.to_owned(), flows };
    let text = serde_json::to_string(&trusted).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    server.sign(&format!("{PACK}{sha256}"), &text)?;
    output::line(format!("signed off for {}: the pack {}", line(&server.name), line(pack)))?;
    Ok(Exit::Done)
}

/// Takes back what was signed off of the folder, or of a pack by its name.
pub(super) fn revoke(machine: &Machine, what: Option<&str>) -> Result<Exit> {
    let (server, _) = machine.team().needed("`--team`")?;
    let mut found = false;
    for (subject, items, _) in server.trusted()? {
        let name = serde_json::from_str::<TrustedPack>(&items).ok().map(|trusted| trusted.pack);
        if (subject == FOLDER && what.is_none()) || (name.is_some() && name.as_deref() == what) {
            found |= server.revoke(&subject)?;
        }
    }
    output::line(if found { "the team does not trust it any more" } else { "the team did not trust it" })?;
    Ok(Exit::Done)
}

/// Lists what the team trusts, and who signed it off.
pub(super) fn list(machine: &Machine, json: bool) -> Result<()> {
    let Some(server) = machine.team().server() else { return Ok(()) };
    for (subject, items, who) in server.trusted()? {
        let items: serde_json::Value = serde_json::from_str(&items).unwrap_or_default();
        match json {
            true => {
                output::json(&json!({ "team": server.name, "subject": subject, "allowed": items, "signed_by": who }))?
            }
            false => output::line(format!(
                "team {}: {}, signed off by {}: {items}",
                line(&server.name),
                line(&subject),
                line(&who)
            ))?,
        }
    }
    Ok(())
}
