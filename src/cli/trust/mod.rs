//! `nietz trust`: what folders and packs may do. Only this module asks for trust, grants, requires and revokes it.
//!
//! `wants` computes what a flow asks for in the folder that it comes from and in the workspace; `packs` handles packs.

pub(super) mod packs;
#[cfg(feature = "postgres")]
mod team;
mod wants;

use std::io::IsTerminal;
use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::front::FrontArgs;
use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::ui::{self, AnswersFrom, Mode, Sources};
use crate::lua::flow::Flow;
use crate::model::question::{Question, QuestionKind};
use crate::model::text::{excerpt, line, shell};
use crate::pack::lock::Lockfile;
use crate::pack::permission_items::{FILTER, Items, allows, describe_item, display_item, split_allowed};
use crate::pack::trust::{ALL, Trust, folder_name};
use crate::run::machine::Machine;
use crate::run::project::Found;
use crate::run::runtime;

use wants::PERSONA_MODELS;
pub(super) use wants::{Invocation, overriding_files};

/// The longest permission item that is put into a command line to copy, in bytes.
const MOST_SHOWN: usize = 200;

/// Tell and change what you trust: folders with flows and settings of their own, and packs
#[derive(Args)]
pub(super) struct TrustArgs {
    #[command(subcommand)]
    verb: TrustVerb,
}

#[derive(Subcommand)]
enum TrustVerb {
    /// List what you trust, and with what
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    Add(TrustAddArgs),
    /// Take back all that a folder or a pack may do
    Revoke {
        /// A folder, or the name of a pack
        #[arg(value_name = "FOLDER|PACK")]
        what: String,
        /// Of what the team trusts: a pack's name, or `.` for the folder
        #[cfg(feature = "postgres")]
        #[arg(long)]
        team: bool,
    },
}

/// Trust a folder, or a pack of this project, with what it asks for now; what it asks for later is asked again
#[derive(Args)]
struct TrustAddArgs {
    /// A folder, or the name of a pack; without one, the workspace
    #[arg(value_name = "FOLDER|PACK")]
    what: Option<String>,
    /// This alone, and nothing else: `files`, `git`, `exec=cargo`, `persona=NAME`, several with commas; a filter of git's by its
    /// whole command, `filter=NAME.clean=COMMAND`; of a pack also `FLOW:llm`
    #[arg(long, value_name = "WHAT")]
    allow: Vec<String>,
    /// Of a folder: also all that it asks for later
    #[arg(long, conflicts_with = "allow")]
    all: bool,
    /// Sign it off for the team, whose workers go by that: the workspace's folder, or a pack of this project
    #[cfg(feature = "postgres")]
    #[arg(long)]
    team: bool,
}

impl TrustAddArgs {
    fn is_for_team(&self) -> bool {
        #[cfg(feature = "postgres")]
        return self.team;
        #[cfg(not(feature = "postgres"))]
        false
    }

    /// Returns what the user names; without a name, the workspace.
    fn target(&self, machine: &Machine) -> String {
        match (&self.what, machine.project.found) {
            (Some(what), _) => what.clone(),
            (None, Found::Above(_)) => machine.workspace.to_string_lossy().into_owned(),
            (None, Found::Named | Found::Here) => ".".to_owned(),
        }
    }
}

pub(super) fn run(machine: &Machine, args: &TrustArgs) -> Result<Exit> {
    match &args.verb {
        TrustVerb::List { json } => list(machine, *json),
        TrustVerb::Add(args) => match pack(machine, &args.target(machine))? {
            Some(pack) if args.all => {
                Err(Failure::new(Code::Usage, format!("--all is for folders, and {pack} is a pack"))
                    .hint("what a new version of a pack asks for is asked when it is updated"))
            }
            Some(pack) => {
                let allow = split_allowed(&args.allow, |_| false).into_iter().map(str::to_owned);
                packs::add(machine, &pack, &allow.collect::<Vec<_>>(), args.is_for_team())
            }
            None => add_folder(machine, args, &args.target(machine)),
        },
        #[cfg(feature = "postgres")]
        TrustVerb::Revoke { what, team: true } => {
            team::revoke(machine, Some(what.as_str()).filter(|what| *what != "."))
        }
        TrustVerb::Revoke { what, .. } => revoke(machine, what),
    }
}

/// Returns the pack that a word names. A word means a folder if it has a slash or a leading dot, or if no pack has that name.
fn pack(machine: &Machine, what: &str) -> Result<Option<String>> {
    if what.contains('/') || what.starts_with('.') {
        return Ok(None);
    }
    let lock = Lockfile::read(&machine.workspace)?;
    let is_pack = lock.packs.contains_key(what);
    if !is_pack && !machine.typed_path(what).is_dir() {
        let message = format!("`{}` is not a folder, and this project has no pack of that name", excerpt(what));
        return Err(Failure::new(Code::Usage, message).hint("`nietz pack list` shows its packs"));
    }
    Ok(is_pack.then(|| what.to_owned()))
}

fn list(machine: &Machine, json: bool) -> Result<Exit> {
    #[cfg(feature = "postgres")]
    team::list(machine, json)?;
    let trust = machine.trust().read()?;
    for (folder, items) in &trust.folders {
        if json {
            output::json(&json!({ "folder": folder, "allowed": items }))?;
            continue;
        }
        let note = if trust.is_same(folder) { "" } else { ", which is not there or belongs to somebody else now" };
        output::line(format!("folder {}{note}", line(folder)))?;
        tell(items, ' ')?;
    }
    for (sha256, trusted) in &trust.packs {
        if json {
            output::json(&json!({ "pack": trusted.pack, "sha256": sha256, "allowed": trusted.flows }))?;
            continue;
        }
        output::line(format!("pack {}, content {}", line(&trusted.pack), &sha256[..16]))?;
        packs::tell(&trusted.flows, ' ')?;
    }
    if !json && trust.folders.is_empty() && trust.packs.is_empty() {
        output::line("you trust no folder and no pack with more than models, questions and documents")?;
    }
    Ok(Exit::Done)
}

fn add_folder(machine: &Machine, args: &TrustAddArgs, what: &str) -> Result<Exit> {
    let folder = machine.typed_path(what);
    if !folder.is_dir() {
        return Err(Failure::new(Code::Usage, format!("{} is not a folder", excerpt(&folder.to_string_lossy()))));
    }
    let name = folder_name(&folder)?;
    if args.all {
        machine.trust().change(|trust| trust.add_folder(&name, [ALL.to_owned()].into()))?;
        output::line(format!("{} may do whatever it asks for, now and later", line(&name)))?;
        return Ok(Exit::Done);
    }
    let (wanted, unread) = wants::of_folder(&machine.in_folder(Path::new(&name))?)?;
    for failure in unread {
        output::line(format!("not looked at: {}", line(&failure.message)))?;
    }
    let allow = split_allowed(&args.allow, |text| wanted.contains(text));
    if let Some(unknown) = allow.iter().find(|item| !wanted.contains(**item)) {
        let all = if wanted.is_empty() { "nothing".to_owned() } else { in_a_row(&wanted) };
        return Err(Failure::new(Code::Usage, format!("--allow {}: nothing there asks for that", excerpt(unknown)))
            .hint(format!("asked for: {all}")));
    }
    // A command that git runs as a filter is granted only if `--allow` names it, not by a bare `nietz trust add`.
    let is_granted = |item: &String| match allow.as_slice() {
        [] => !item.starts_with(FILTER),
        some => some.iter().any(|name| allows(name, "", item)),
    };
    let (granted, left): (Items, Items) = wanted.into_iter().partition(is_granted);
    #[cfg(feature = "postgres")]
    if args.team {
        return team::sign_folder(machine, &granted);
    }
    machine.trust().change(|trust| trust.add_folder(&name, granted.clone()))?;
    output::line(format!("trusted: {}", line(&name)))?;
    tell(&granted, '+')?;
    if granted.is_empty() && left.is_empty() {
        output::line(
            "  it asks for nothing but models, questions and documents; what it asks for later is asked again",
        )?;
    }
    let trusted = machine.trust().read()?.of_folder(&name);
    for filter in left.iter().filter(|item| item.starts_with(FILTER) && !trusted.contains(*item)) {
        output::line(format!("not trusted: it {} ({})", describe_item(filter), display_item(filter)))?;
        output::line(format!(
            "  if you trust this command: nietz trust add {} --allow {}",
            shell(what),
            shell(filter)
        ))?;
    }
    Ok(Exit::Done)
}

fn revoke(machine: &Machine, what: &str) -> Result<Exit> {
    let trust = machine.trust().read()?;
    let folder = machine.typed_path(what);
    // A folder that no longer exists is named as `nietz trust list` shows it.
    let name = folder_name(&folder).unwrap_or_else(|_| folder.to_string_lossy().into_owned());
    let is_pack = trust.packs.values().any(|trusted| trusted.pack == what);
    let mut found = false;
    machine.trust().change(|trust| {
        found = if is_pack && !trust.folders.contains_key(&name) {
            trust.revoke_pack(what)
        } else {
            trust.revoke_folder(&name)
        };
    })?;
    let shown = line(if is_pack { what } else { &name });
    output::line(match found {
        true => format!("{shown} is not trusted any more"),
        false => format!("{shown} was not trusted"),
    })?;
    Ok(Exit::Done)
}

/// Returns what this process goes by.
fn trusted(machine: &Machine) -> Result<Trust> {
    #[cfg(feature = "postgres")]
    return team::trusted(machine);
    #[cfg(not(feature = "postgres"))]
    machine.trust().read()
}

/// Refuses a flow that asks for more than the user trusts its pack or folder with. In a terminal, the user is asked first.
/// Returns notices for the user.
pub(super) fn require(
    machine: &Machine,
    flow: &Flow,
    invocation: &Invocation,
    front: &FrontArgs,
) -> Result<Vec<String>> {
    packs::require(machine, flow)?;
    let mut notices: Vec<String> = wants::not_the_bundled_one(machine, flow, invocation).into_iter().collect();
    notices.extend(wants::overriding_notices(flow)?);
    let wanted = wants::of_flow(machine, flow, invocation)?;
    if wanted.is_empty() {
        return Ok(notices);
    }
    let trust = trusted(machine)?;
    for (folder, items) in wanted {
        let missing = trust.missing(&folder, &items);
        if missing.is_empty() {
            continue;
        }
        if front.trust {
            notices.push(format!("trusted for this run: {} with {}", line(&folder), in_a_row(&missing)));
            continue;
        }
        let may_ask = !front.json && front.answers.is_none();
        if may_ask && std::io::stdin().is_terminal() && ask(machine, &flow.manifest.name, &folder, &missing)? {
            machine.trust().change(|trust| trust.add_folder(&folder, missing))?;
            continue;
        }
        let message = format!("{} asks for what you do not trust {} with", line(&flow.manifest.name), line(&folder));
        #[cfg(feature = "postgres")]
        if team::is_of_team(machine) {
            let failure = Failure::new(Code::FolderUntrusted, message)
                .hint("a person signs it off for the team: nietz trust add --team");
            return Err(missing.iter().fold(failure, |failure, item| failure.because(asked_for(item))));
        }
        let failure = Failure::new(Code::FolderUntrusted, message).hint(format!(
            "look at it; if you trust it with this: nietz trust add {}{}; for one run alone: --trust",
            shell(&folder),
            allow_options(&missing)
        ));
        return Err(missing.iter().fold(failure, |failure, item| failure.because(asked_for(item))));
    }
    Ok(notices)
}

/// Returns a notice that the model which the user named holds for all personas, if some personas name another model and the
/// workspace is not trusted to let them choose.
pub(super) fn only_model(machine: &Machine, flow: &Flow, front: &FrontArgs) -> Result<Option<String>> {
    let slugs = wants::with_models(machine, flow)?;
    let name = folder_name(&machine.workspace)?;
    if slugs.is_empty() || front.trust {
        return Ok(None);
    }
    if machine.trust().read()?.missing(&name, &[PERSONA_MODELS.to_owned()].into()).is_empty() {
        return Ok(None);
    }
    let text = format!(
        "--model holds for all personas, also for {}, which names another: `nietz trust add {}` lets personas choose",
        slugs.join(", "),
        shell(&name)
    );
    Ok(Some(line(&text).into_owned()))
}

fn ask(machine: &Machine, flow: &str, folder: &str, items: &Items) -> Result<bool> {
    let list: String = items.iter().map(|item| format!("\n  {}", asked_for(item))).collect();
    let prompt = format!("{} asks in {}:{list}\nDo you trust this folder with that?", line(flow), line(folder));
    let question = Question { default: Some(false.into()), ..Question::new("trust", QuestionKind::Confirm, prompt) };
    let front =
        ui::open(Mode::Auto, AnswersFrom::SaidPipe, "trust", (&machine.environment, Sources::All), &machine.redactor());
    Ok(runtime()?.block_on(front.ask(&question))? == true)
}

fn asked_for(item: &str) -> String {
    format!("it {} ({})", describe_item(item), display_item(item))
}

fn tell(items: &Items, sign: char) -> Result<()> {
    items.iter().try_for_each(|item| output::line(format!("  {sign} {} ({})", describe_item(item), display_item(item))))
}

/// Returns the `--allow` options that grant just these items, or a placeholder if any item cannot be shown as it is.
fn allow_options(items: &Items) -> String {
    if items.iter().any(|item| item.len() > MOST_SHOWN || line(item) != item.as_str()) {
        return " --allow …".to_owned();
    }
    match items.iter().any(|item| item.contains(',')) {
        true => items.iter().map(|item| format!(" --allow {}", shell(item))).collect(),
        false => format!(" --allow {}", shell(&items.iter().map(String::as_str).collect::<Vec<_>>().join(","))),
    }
}

fn in_a_row(items: &Items) -> String {
    items.iter().map(|item| display_item(item)).collect::<Vec<_>>().join(", ")
}
