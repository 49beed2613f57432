//! The option by which the user says how much models are to think.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::model::chat::Effort;

/// How much models are to think.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct EffortArgs {
    /// How much models are to think before they answer, where the flow and its personas say nothing of it
    #[arg(long, value_name = "LEVEL", global = true, value_parser = levels())]
    pub effort: Option<Effort>,
}

fn levels() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(Effort::ALL.map(Effort::name)).try_map(|name| name.parse::<Effort>())
}
