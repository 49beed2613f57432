//! `nietz store`: the server that keeps a team's runs and documents.

mod people;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::run::machine::Machine;
use crate::store::postgres::migrations;

/// Look at, make and open to others the server that keeps runs and documents (`--store`, NIETZ_STORE)
#[derive(Args)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    verb: StoreVerb,
}

#[derive(Subcommand)]
enum StoreVerb {
    Migrate(MigrateArgs),
    Status(StatusArgs),
    Check,
    Admit(people::AdmitArgs),
    Dismiss(people::DismissArgs),
    Budget(people::BudgetArgs),
}

/// Make the schema `nietz` and this workspace, or bring the schema up to date; as the schema's owner
#[derive(Args)]
struct MigrateArgs {
    /// Make no workspace
    #[arg(long)]
    no_workspace: bool,
}

/// Say what the store is: its versions, who you are there, the workspaces and who may do what in this one
#[derive(Args)]
struct StatusArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &StoreArgs) -> Result<Exit> {
    match &args.verb {
        StoreVerb::Migrate(args) => migrate(machine, args),
        StoreVerb::Status(args) => status(machine, args),
        StoreVerb::Check => check(machine),
        StoreVerb::Admit(args) => people::admit(machine, args),
        StoreVerb::Dismiss(args) => people::dismiss(machine, args),
        StoreVerb::Budget(args) => people::budget(machine, args),
    }
}

fn migrate(machine: &Machine, args: &MigrateArgs) -> Result<Exit> {
    let (server, _) = machine.team().needed("`nietz store migrate`")?;
    let done = server.migrate(&Machine::version())?;
    done.iter().try_for_each(|name| output::line(format!("done: {name}")))?;
    if !args.no_workspace {
        server.make_workspace()?;
    }
    server.check()?;
    let what = if done.is_empty() { "was up to date" } else { "is up to date" };
    output::line(format!("the store {} {what}: schema {}", server.connection.shown, migrations::newest()))?;
    Ok(Exit::Done)
}

/// Refuses a store that this nietz cannot work with, and says which versions it has.
fn check(machine: &Machine) -> Result<Exit> {
    let (server, _) = machine.team().needed("`nietz store check`")?;
    let state = server.schema()?;
    state.check()?;
    let (queue, way) = state.queue.unwrap_or_default();
    let number = state.number.unwrap_or_default();
    output::line(format!(
        "schema {number}, pgmq {queue} ({way}), PostgreSQL {}: this nietz works with it",
        state.server
    ))?;
    server.workspace()?;
    output::line(format!("the workspace {} is there, and you are {}", server.name, server.workspace()?.me))?;
    Ok(Exit::Done)
}

fn status(machine: &Machine, args: &StatusArgs) -> Result<Exit> {
    let (server, _) = machine.team().needed("`nietz store status`")?;
    let state = server.schema()?;
    let usable = state.check();
    let queue = state.queue.as_ref().map(|(version, way)| json!({ "version": version, "way": way }));
    let mut all = json!({
        "store": server.connection.shown, "server": state.server, "schema": state.number, "needs": migrations::newest(),
        "pgmq": queue, "usable": usable.is_ok(), "why": usable.as_ref().err().map(|failure| failure.message.clone()),
        "workspace": server.name,
    });
    if usable.is_ok() {
        let (me, workspaces) = server.seen_workspaces()?;
        (all["you"], all["workspaces"]) = (json!(me), json!(workspaces));
        if workspaces.contains(&server.name) {
            let members = server.members()?;
            let member = |it: &crate::store::postgres::people::Member| json!({ "role": it.role, "kind": it.kind, "signs": it.signs });
            all["members"] = members.iter().map(member).collect();
            all["runs"] = server.counts()?.into_iter().map(|(status, count)| (status, json!(count))).collect();
        }
    }
    if args.json {
        output::json(&all)?;
        return usable.map(|()| Exit::Done);
    }
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut rows = Vec::new();
    for (name, value) in all.as_object().into_iter().flatten() {
        match value {
            serde_json::Value::Null => {}
            serde_json::Value::Array(items) if name == "members" => {
                for it in items {
                    let signs = if it["signs"] == true { ", signs off" } else { "" };
                    rows.push(vec![
                        "member".to_owned(),
                        format!("{}: {}{signs}", text(&it["role"]), text(&it["kind"])),
                    ]);
                }
            }
            serde_json::Value::Array(items) => {
                rows.push(vec![name.clone(), items.iter().map(text).collect::<Vec<_>>().join(", ")])
            }
            serde_json::Value::Object(members) if name == "pgmq" => {
                rows.push(vec![name.clone(), format!("{} ({})", text(&members["version"]), text(&members["way"]))]);
            }
            serde_json::Value::Object(members) => {
                let parts = members.iter().map(|(name, value)| format!("{value} {name}")).collect::<Vec<_>>();
                rows.push(vec![name.clone(), parts.join(", ")]);
            }
            other => rows.push(vec![name.clone(), text(other)]),
        }
    }
    output::table(&rows)?;
    usable.map(|()| Exit::Done)
}
