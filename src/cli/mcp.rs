//! `nietz mcp`.

use clap::Args;

use crate::cli::budget::BudgetArgs;
use crate::cli::output;
use crate::editors::{self, InFolder, McpOptions, McpServer, Place, Supervisor};
use crate::error::{Exit, Failure, Result};
use crate::model::budget::{Budget, TimeLimit};
use crate::model::text::{clean, line};
use crate::run::machine::Machine;
use crate::run::project::Found;
use crate::run::runtime;

/// Offer flows to an editor or an agent, as tools of the Model Context Protocol
///
/// The client starts this and speaks with it by standard input and output. Each flow is a tool and a prompt; each run is a process
/// of its own, which goes on when the client leaves, and can be gone on with by `nietz resume`. What a run may do is what you
/// granted beforehand: no client, model or prompt can add to it.
#[derive(Args)]
pub(super) struct McpArgs {
    #[command(flatten)]
    offered: OfferedArgs,
    /// How long a call stays open before it returns that its run is still under way; clients give up after a minute or so
    #[arg(long, value_name = "TIME", default_value = "45s")]
    patience: TimeLimit,
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
    let (supervisor, offers) = args.offered.supervisor(machine, place)?;
    let options = McpOptions {
        patience: args.patience.0,
        allowed: args.offered.allowed(),
        model_may_answer: args.model_may_answer,
    };
    let server = McpServer::new(supervisor, offers, options);
    runtime()?.block_on(server.serve_stdio())?;
    Ok(Exit::Done)
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
        let environment = machine.environment.clone();
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
