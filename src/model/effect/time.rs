//! Time and randomness.

use serde_json::{Value, json};

use super::{EffectFacts, Recovery, ReplayClass};
use crate::model::redact::Cleaner;

/// What a flow asks of time and chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOp {
    /// The current time, in milliseconds since 1970.
    Clock,
    /// 128 random bits, made from the run's seed and name and the effect's key.
    Random,
}

impl EffectFacts for TimeOp {
    fn kind(&self) -> &'static str {
        match self {
            TimeOp::Clock => "clock",
            TimeOp::Random => "random",
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::SingleLine
    }

    fn only_looks(&self) -> bool {
        true
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Chance
    }

    fn request(&self) -> Value {
        json!({})
    }

    fn redact(&mut self, _: &Cleaner) {}
}
