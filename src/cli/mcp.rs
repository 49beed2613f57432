//! `nietz mcp`.

use std::net::SocketAddr;

use clap::Args;

use crate::cli::budget::BudgetArgs;
use crate::cli::output;
use crate::editors::{self, HttpListener, InFolder, McpOptions, McpServer, Place, Supervisor};
use crate::error::{Code, Exit, Failure, Result};
use crate::model::budget::{Budget, TimeLimit};
use crate::model::text::{clean, line};
use crate::run::machine::Machine;
use crate::run::machine::team::Team;
use crate::run::project::Found;
use crate::run::runtime;

/// The variable with the token of `--http`.
const TOKEN: &str = "NIETZ_MCP_TOKEN";
/// The shortest token of a user's own.
const LEAST: usize = 16;

/// Offer flows to an editor or an agent, as tools of the Model Context Protocol
///
/// The client starts this and speaks with it by standard input and output, or by HTTP at this machine's loopback (--http). Each flow is a tool and a prompt; each run is a process
/// of its own, which goes on when the client leaves, and can be gone on with by `nietz resume`. What a run may do is what you
/// granted beforehand: no client, model or prompt can add to it.
#[derive(Args)]
pub(super) struct McpArgs {
    #[command(flatten)]
    offered: OfferedArgs,
    /// How long a call stays open before it returns that its run is still under way; clients give up after a minute or so
    #[arg(long, value_name = "TIME", default_value = "45s")]
    patience: TimeLimit,
    /// Serve several clients of this machine by HTTP; print where, and the token that they send (`Authorization: Bearer TOKEN`); a port of 0 is any that is free
    /// [env: NIETZ_MCP_TOKEN has a token of your own]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Let a model answer questions in your place; such answers are recorded as the model's, and none of them approves anything
    #[arg(long)]
    model_may_answer: bool,
}

/// What is offered, and how its runs are made.
#[derive(Args)]
pub(super) struct OfferedArgs {
    /// Offer these flows alone; several with commas
    #[arg(long, value_name = "FLOW", value_delimiter = ',')]
    flows: Vec<String>,
    /// The model of all runs: `provider/model`, a provider, or an alias
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Let clients name this command where a flow runs one that its user gives; can be given several times
    #[arg(long, value_name = "COMMAND")]
    allow_command: Vec<String>,
    #[command(flatten)]
    budget: BudgetArgs,
}

pub(super) fn run(machine: &Machine, args: McpArgs) -> Result<Exit> {
    let place = Place { folder: machine.project.here.clone(), is_named: machine.project.found == Found::Named };
    let in_folder = args.offered.supervisor(machine, place)?;
    let options = McpOptions {
        patience: args.patience.0,
        allowed: args.offered.allowed(),
        model_may_answer: args.model_may_answer,
    };
    let server = McpServer::new(in_folder, options, (Team::documents(machine, None)?, machine.redactor()));
    match args.http {
        None => runtime()?.block_on(server.serve_stdio())?,
        Some(address) => serve_http(machine, server, address)?,
    }
    Ok(Exit::Done)
}

fn serve_http(machine: &Machine, server: McpServer, address: SocketAddr) -> Result<()> {
    let listener = HttpListener::bind(address)?;
    output::line(listener.address())?;
    let token = match machine.variable(TOKEN) {
        Some(own) if own.len() < LEAST => {
            let message = format!("{TOKEN} has fewer than {LEAST} letters: it could be guessed");
            return Err(Failure::new(Code::Usage, message).hint("without it a token is made and printed"));
        }
        Some(own) => own.to_owned(),
        None => {
            let made = uuid::Uuid::new_v4().simple().to_string();
            output::line(&made)?;
            made
        }
    };
    runtime()?.block_on(server.serve_http(listener, &token))
}

impl OfferedArgs {
    /// Returns what starts runs, and the flows that are offered.
    pub(super) fn supervisor(&self, machine: &Machine, place: Place) -> Result<InFolder> {
        let editors::Offers { offers, unread } = editors::find(machine, &self.flows)?;
        for Failure { code, message, .. } in unread {
            output::print_status(&format!("not offered: [{}] {}\n", code.name(), line(&message)));
        }
        let limits = options(self.budget.budget()?);
        let mut begin = limits.clone();
        if let Some(model) = &self.model {
            begin.push(format!("--model={}", clean(model)));
        }
        let mut environment = machine.environment.clone();
        // It is for clients, and no run needs it.
        environment.remove(TOKEN);
        let supervisor = Supervisor::new(machine.program()?, place, environment, machine.runs(), (begin, limits));
        Ok((supervisor, offers))
    }

    /// Returns the commands that clients may name.
    pub(super) fn allowed(&self) -> Vec<String> {
        self.allow_command.clone()
    }
}

/// Returns the options that stand for a budget.
fn options(budget: Budget) -> Vec<String> {
    let Budget { calls, tokens, cost, time } = budget;
    let number = |name: &str, value: Option<u64>| value.map(|value| format!("--max-{name}={value}"));
    let cost = cost.map(|cost| format!("--max-cost={cost}"));
    let time = time.map(|time| format!("--max-time={}s", time.0.as_secs()));
    [number("calls", calls), number("tokens", tokens), cost, time].into_iter().flatten().collect()
}
