//! What a pack's flows may do: it is shown in words, granted by the user for exactly that content, and required for a run.

use crate::cli::grants::GrantFlags;
use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::ui::{self, AnswersFrom, Mode, Sources};
use crate::lua::flow::Flow;
use crate::lua::manifest::Manifest;
use crate::model::question::{Question, QuestionKind};
use crate::model::text::{excerpt, line, shell};
use crate::pack::lock::Lockfile;
use crate::pack::manifest::PackManifest;
use crate::pack::permission_items::{
    self, Items, ItemsByFlow, allows, describe_item, display_item, is_granted, is_known, subtract_items,
};
use crate::pack::seal::Seal;
use crate::pack::tree::PackTree;
use crate::run::machine::Machine;
use crate::run::runtime;

/// Trusts a pack of this project with the items that its flows ask for, or with those of them that `allow` names.
pub(super) fn add(machine: &Machine, name: &str, allow: &[String], for_team: bool) -> Result<Exit> {
    let lock = Lockfile::read(&machine.workspace)?;
    let locked = lock.get(name)?;
    let items =
        installed_items(&locked.folder(&machine.packs(), name), Seal::new(name, &locked.version, &locked.sha256))?;
    #[cfg(feature = "postgres")]
    if for_team {
        let flows = if allow.is_empty() { items } else { part(&items, allow)? };
        return super::team::sign_pack(machine, name, &locked.sha256, flows);
    }
    #[cfg(not(feature = "postgres"))]
    let _ = for_team;
    let granted = machine.trust().read()?.of_pack(&locked.sha256);
    let new = subtract_items(&items, &granted);
    if new.is_empty() {
        output::line(format!("{name} asks for nothing more than it is trusted with"))?;
        return Ok(Exit::Done);
    }
    let more = if allow.is_empty() { new.clone() } else { part(&new, allow)? };
    tell(&more, '+')?;
    tell_left(name, &new, &more)?;
    machine.trust().change(|trust| trust.set_pack(name, &locked.sha256, union(granted, more)))?;
    Ok(Exit::Done)
}

/// Returns the permission items that a flow asks for.
pub(in crate::cli) fn asked_items(manifest: &Manifest) -> Items {
    permission_items::items(
        &manifest.permissions,
        manifest
            .collections
            .values()
            .map(|declared| (declared.collection.path.as_str(), declared.collection.everywhere)),
    )
}

/// Returns the permission items that an installed pack asks for, after checking its content.
pub(in crate::cli) fn installed_items(folder: &std::path::Path, seal: Seal) -> Result<ItemsByFlow> {
    if !folder.is_dir() {
        return Err(Failure::new(Code::PackNotFound, format!("the pack {} is not installed here", seal.pack))
            .hint("install what nietz.lock names: nietz pack add --locked"));
    }
    Ok(PackManifest::read(&PackTree::sealed(folder.to_owned(), seal))?.items_by_flow())
}

/// Refuses a flow of a pack that asks for more than the user granted to exactly this content.
pub(super) fn require(machine: &Machine, flow: &Flow) -> Result<()> {
    let Some(seal) = flow.located.tree.seal() else { return Ok(()) };
    let granted = super::trusted(machine)?.of_pack(&seal.sha256).remove(&flow.manifest.name).unwrap_or_default();
    let asked = asked_items(&flow.manifest);
    let missing: Vec<&String> = asked.iter().filter(|item| !is_granted(&granted, item)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the flow {} of the pack {} {} asks for what you have not granted",
        flow.manifest.name, seal.pack, seal.version
    );
    let name = shell(&seal.pack);
    let mut hint = format!("look at it; if you trust it: nietz trust add {name}");
    #[cfg(feature = "postgres")]
    if super::team::is_of_team(machine) {
        hint = format!("a person signs it off for the team: nietz trust add {name} --team");
    }
    let failure = Failure::new(Code::PackUntrusted, message).hint(hint);
    Err(missing
        .into_iter()
        .fold(failure, |failure, item| failure.because(format!("it {} ({})", describe_item(item), display_item(item)))))
}

/// Prints what each flow asks for, in words.
pub(in crate::cli) fn tell(items_by_flow: &ItemsByFlow, sign: char) -> Result<()> {
    for (flow, items) in items_by_flow {
        output::line(format!("flow {flow}"))?;
        for item in items {
            output::line(format!("  {sign} {} ({})", describe_item(item), display_item(item)))?;
        }
    }
    Ok(())
}

/// Asks the user to grant the wanted items, or those of them that `--allow` names; `--yes` grants those without asking.
/// If there is nothing to grant, asks the question `otherwise`, if it is given. Returns the granted items, or `None` if the
/// answer is no.
pub(in crate::cli) fn ask(
    machine: &Machine,
    flags: &GrantFlags,
    pack: &str,
    wanted: &ItemsByFlow,
    otherwise: Option<&str>,
) -> Result<Option<ItemsByFlow>> {
    let partly = flags.yes || !flags.allow.is_empty();
    let named = if partly { part(wanted, &flags.allow)? } else { wanted.clone() };
    let left = tell_left(pack, wanted, &named)?;
    let asked: Vec<String> =
        named.iter().flat_map(|(flow, items)| items.iter().map(move |item| format!("{flow}:{item}"))).collect();
    let prompt = match (left, otherwise) {
        _ if flags.yes => return Ok(Some(named)),
        (_, None) if asked.is_empty() => return Ok(Some(named)),
        (_, Some(otherwise)) if asked.is_empty() => otherwise.to_owned(),
        (0, _) => format!("May {pack} do all of this?"),
        _ => format!("May {pack} do only this: {}?", line(&asked.join(", "))),
    };
    let front =
        ui::open(Mode::Auto, AnswersFrom::SaidPipe, "pack", (&machine.environment, Sources::All), &machine.redactor());
    let question = Question { default: Some(false.into()), ..Question::new("trust", QuestionKind::Confirm, prompt) };
    let answer = runtime()?.block_on(front.ask(&question)).map_err(|failure| match failure.code {
        Code::AnswerMissing => failure.hint("where nobody is: --yes, with --allow for what is granted"),
        _ => failure,
    })?;
    Ok((answer == true).then_some(named))
}

/// Returns those of the wanted items that `--allow` names.
fn part(wanted: &ItemsByFlow, allow: &[String]) -> Result<ItemsByFlow> {
    if let Some(unknown) = allow.iter().find(|allowed| !is_known(allowed, wanted)) {
        let all = wanted.iter().flat_map(|(flow, items)| items.iter().map(move |item| format!("{flow}:{item}")));
        let message = format!("--allow {}: nothing asks for that now", excerpt(unknown));
        let all = all.collect::<Vec<_>>().join(", ");
        return Err(Failure::new(Code::Usage, message)
            .hint(format!("asked for: {}", if all.is_empty() { "nothing" } else { &all })));
    }
    let is_allowed = |flow: &str, item: &str| allow.iter().any(|allowed| allows(allowed, flow, item));
    let of_flow = |flow: &String, items: &Items| -> Items {
        items.iter().filter(|item| is_allowed(flow, item)).cloned().collect()
    };
    Ok(wanted.iter().map(|(flow, items)| (flow.clone(), of_flow(flow, items))).collect())
}

/// Prints how many of the wanted items are not granted, and returns that number.
fn tell_left(pack: &str, wanted: &ItemsByFlow, named: &ItemsByFlow) -> Result<usize> {
    let left = subtract_items(wanted, named).values().map(Items::len).sum::<usize>();
    if left > 0 {
        output::line(format!("not granted: {left} of what it asks for; `nietz trust add {}` grants it", shell(pack)))?;
    }
    Ok(left)
}

/// Returns the items that are in either argument.
pub(in crate::cli) fn union(mut one: ItemsByFlow, other: ItemsByFlow) -> ItemsByFlow {
    for (flow, items) in other {
        one.entry(flow).or_default().extend(items);
    }
    one
}

/// Returns the items that are in both arguments.
pub(in crate::cli) fn intersection(one: &ItemsByFlow, other: &ItemsByFlow) -> ItemsByFlow {
    subtract_items(one, &subtract_items(one, other))
}
