//! A run of another flow that a flow starts as a part of its own, and whose end it waits for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{EffectFacts, Recovery, ReplayClass};
use crate::model::budget::Budget;
use crate::model::redact::Cleaner;

/// What a flow asks of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Spawn {
    /// The flow's name, with a command of its behind it, if it is not the flow itself: `poll vote`.
    pub flow: String,
    pub params: Map<String, Value>,
    pub options: SpawnOptions,
}

/// How a child is done. None of it is part of what is asked: another budget or another machine makes no other child.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpawnOptions {
    /// What it may use at most; without it, an equal part of what is left.
    pub budget: Budget,
    /// In a store, only workers with this tag take it.
    pub tag: Option<String>,
}

impl EffectFacts for Spawn {
    fn kind(&self) -> &'static str {
        "spawn"
    }

    /// After a crash the child is gone on with: it has the name of its effect.
    fn recovery(&self) -> Recovery {
        Recovery::Retry
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Said
    }

    fn only_looks(&self) -> bool {
        false
    }

    fn can_be_stopped(&self) -> bool {
        true
    }

    fn request(&self) -> Value {
        json!({ "flow": self.flow, "params": self.params })
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        cleaner.text(&mut self.flow);
        let mut params = Value::Object(std::mem::take(&mut self.params));
        cleaner.value(&mut params);
        if let Value::Object(params) = params {
            self.params = params;
        }
    }
}
