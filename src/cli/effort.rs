//! The option by which the user says how much models are to think.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::model::chat::Effort;

/// How much models are to think.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct EffortArgs {
    /// How much models think, where the flow says nothing of it: none, minimal, low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL", global = true, value_parser = levels(), hide_possible_values = true)]
    pub effort: Option<Effort>,
}

fn levels() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(Effort::ALL.map(Effort::name)).try_map(|name| name.parse::<Effort>())
}
