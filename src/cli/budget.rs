//! The options that limit what a run may use.

use clap::Args;

use crate::error::{Code, Failure, Result};
use crate::model::budget::{Budget, TimeLimit};

/// Limits of one run. Each stands for the same limit of the flow and of the configuration.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct BudgetArgs {
    /// The most model calls
    #[arg(long, value_name = "N", global = true, help_heading = "Budget", value_parser = whole)]
    max_calls: Option<u64>,
    /// The most tokens, of requests and replies together
    #[arg(long, value_name = "N", global = true, help_heading = "Budget", value_parser = whole)]
    max_tokens: Option<u64>,
    /// The most that the calls may cost, in US dollars
    #[arg(long, value_name = "USD", global = true, help_heading = "Budget", value_parser = dollars)]
    max_cost: Option<f64>,
    /// The longest that this process may take: 90s, 10m, 1h30m
    #[arg(long, value_name = "TIME", global = true, help_heading = "Budget")]
    max_time: Option<TimeLimit>,
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a whole number is needed, such as 50".to_owned())
}

fn dollars(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "an amount of US dollars is needed, such as 0.50".to_owned())
}

impl BudgetArgs {
    pub(super) fn budget(self) -> Result<Budget> {
        let BudgetArgs { max_calls, max_tokens, max_cost, max_time } = self;
        let budget = Budget { calls: max_calls, tokens: max_tokens, cost: max_cost, time: max_time };
        match budget.problem() {
            Some(problem) => Err(Failure::new(Code::Usage, format!("--max-{problem}"))),
            None => Ok(budget),
        }
    }
}
