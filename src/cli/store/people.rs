//! Who may do what in a workspace of the store, and what the team may use in a day.

use clap::Args;

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::run::machine::Machine;

/// Let a role of PostgreSQL into this workspace; as the schema's owner
#[derive(Args)]
pub(super) struct AdmitArgs {
    /// The role: a login, or one that logins are members of
    role: String,
    /// What it may do: begin, answer and cancel runs; take runs from the queue; or only look
    #[arg(value_parser = ["asker", "worker", "reader"])]
    kind: String,
    /// It also signs off what the team trusts and may use
    #[arg(long)]
    signs: bool,
}

/// Take from a role what it may do in this workspace; as the schema's owner
#[derive(Args)]
pub(super) struct DismissArgs {
    role: String,
    #[arg(value_parser = ["asker", "worker", "reader"])]
    kind: String,
}

/// Show what the team may use in a day (UTC) and has used; with options, set it
#[derive(Args)]
pub(super) struct BudgetArgs {
    /// So many model calls
    #[arg(long, value_name = "N")]
    calls: Option<i64>,
    /// So many tokens
    #[arg(long, value_name = "N")]
    tokens: Option<i64>,
    /// So many US dollars
    #[arg(long, value_name = "DOLLARS")]
    cost: Option<f64>,
    /// Take all limits away
    #[arg(long, conflicts_with_all = ["calls", "tokens", "cost"])]
    none: bool,
}

pub(super) fn admit(machine: &Machine, args: &AdmitArgs) -> Result<Exit> {
    let (server, _) = machine.team().needed("`nietz store admit`")?;
    server.admit(&args.role, &args.kind, args.signs)?;
    output::line(format!("{} is {} of {}", args.role, args.kind, server.name))?;
    Ok(Exit::Done)
}

pub(super) fn dismiss(machine: &Machine, args: &DismissArgs) -> Result<Exit> {
    let (server, _) = machine.team().needed("`nietz store dismiss`")?;
    server.dismiss(&args.role, &args.kind)?;
    output::line(format!("{} is no {} of {} any more", args.role, args.kind, server.name))?;
    Ok(Exit::Done)
}

pub(super) fn budget(machine: &Machine, args: &BudgetArgs) -> Result<Exit> {
    let (server, _) = machine.team().needed("`nietz store budget`")?;
    if args.none || args.calls.is_some() || args.tokens.is_some() || args.cost.is_some() {
        server.set_budget(args.calls, args.tokens, args.cost)?;
    }
    let rows = server.budget()?.into_iter().map(|day| {
        let limit = day.limit.map_or("no limit".to_owned(), |limit| format!("of {limit}"));
        vec![day.name.to_owned(), format!("{} used today", day.used), limit]
    });
    output::table(&rows.collect::<Vec<_>>())?;
    Ok(Exit::Done)
}
