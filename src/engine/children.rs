//! Children: runs that a run starts as parts of its own. What they use is of its budget, and how they end is an outcome of its effect.

use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::budget::Meter;
use crate::engine::world::{Heartbeat, World};
use crate::error::{Code, Failure, Result};
use crate::host::children::{ChildEnd, ChildWatch};
use crate::journal::key::EffectKey;
use crate::model::budget::{Budget, Spent};
use crate::model::child::{ChildRequest, ParentRun, bounds};
use crate::model::digest::Digest;
use crate::model::effect::spawn::Spawn;
use crate::model::event::{EndStatus, Event};
use crate::model::permission::Permissions;

/// The longest name of a run that stands in those of its children, in bytes.
const LONGEST: usize = 64;
/// How many digits of its effect's key stand in a child's name.
const DIGITS: usize = 12;

/// Returns the name of a child: whoever asks for it again finds it.
pub(crate) fn child_name(run: &str, key: EffectKey) -> String {
    let key = key.to_string();
    let digits = &key[..DIGITS.min(key.len())];
    match run.len() {
        ..=LONGEST => format!("{run}-{digits}"),
        _ => format!("{}-{digits}", &Digest::of(run.as_bytes()).to_string()[..DIGITS]),
    }
}

/// Does a child, or goes on with it.
pub(super) fn perform(
    world: Rc<World>,
    meter: &Rc<Meter>,
    permissions: &Permissions,
    spawn: Spawn,
    key: EffectKey,
    heartbeat: Heartbeat,
) -> LocalBoxFuture<'static, Result<Value>> {
    let claim = meter.claim_part();
    let of = ParentRun { run: world.run.clone(), key: key.to_string(), permissions: bounds(permissions) };
    async move {
        let part = claim.take(spawn.options.budget).await?;
        let request = ChildRequest {
            run: child_name(&world.run, key),
            flow: spawn.flow,
            params: spawn.params,
            tag: spawn.options.tag.unwrap_or_default(),
            of,
            budget: part.budget,
            terms: world.children.terms.clone(),
            process: i32::try_from(std::process::id()).unwrap_or_default(),
        };
        let text = format!("{}: a run of {}, as a part of this one", request.run, request.flow);
        world.front.show(&Event::Notice { text });
        let watch = ChildWatch {
            front: &*world.front,
            beat: &|| heartbeat.beat(),
            calls: &part.calls,
            tokens: &part.tokens,
            holds: &|budget: Budget| part.hold(budget),
        };
        let end = world.children.run(&request, &watch).await?;
        let outcome = outcome(&request, &end);
        let waits = matches!(end.status, EndStatus::Waiting | EndStatus::Interrupted);
        // What one has used that waits is counted when it is over.
        if waits {
            part.keep()
        } else {
            part.over(end.calls, &end.spent)
        }
        outcome
    }
    .boxed_local()
}

/// Returns what the end of a child is to its parent. Where it waits, the parent waits, and nothing is recorded.
fn outcome(request: &ChildRequest, end: &ChildEnd) -> Result<Value> {
    let run = &request.run;
    let failure = || {
        end.failure.clone().unwrap_or_else(|| {
            Failure::new(Code::Internal, format!("the run {run} ended as {} without a word", end.status.name()))
        })
    };
    let mut recorded = json!({ "run": run, "calls": end.calls, "spent": end.spent });
    match end.status {
        EndStatus::Done => {
            recorded["result"] = end.result.clone().unwrap_or_default();
            if let Some(verdict) = &end.verdict {
                recorded["verdict"] = json!(verdict);
            }
            Ok(recorded)
        }
        EndStatus::Failed => {
            let failure = failure();
            // A store that is lost is no end of the child.
            if matches!(failure.code, Code::StoreUnreachable | Code::RunTaken) {
                return Err(failure);
            }
            recorded["failure"] = json!(failure.because(format!("in the run {run}, of {}", request.flow)));
            Ok(recorded)
        }
        EndStatus::Waiting => {
            let failure = failure();
            Err(match failure.code {
                Code::AnswerMissing | Code::BudgetUsedUp | Code::RunAwaited => failure,
                _ => Failure::new(Code::RunAwaited, format!("the run {run} waits: {}", failure.message)),
            })
        }
        EndStatus::Interrupted => Err(Failure::new(Code::RunAwaited, format!("the run {run} was stopped"))
            .hint("resume this run: it goes on with that one")),
    }
}

/// Counts what a recorded child has used.
pub(super) fn count(meter: &Meter, outcome: &Result<Value>) {
    if let Ok(recorded) = outcome {
        let spent = Vec::<Spent>::deserialize(&recorded["spent"]).unwrap_or_default();
        meter.count_child(recorded["calls"].as_u64().unwrap_or_default(), &spent);
    }
}

#[cfg(test)]
mod tests {
    use super::child_name;
    use crate::engine::runs::check_name;
    use crate::journal::key::EffectKey;

    #[test]
    fn the_name_of_a_child_is_a_name_of_a_run_however_deep_it_is() {
        let key = EffectKey::parse(&"0123456789abcdef".repeat(2)).expect("a key");
        let mut run = "20261126-163000-ab12".to_owned();
        for _ in 0..20 {
            let child = child_name(&run, key);
            check_name(&child).expect("it is a name");
            assert_ne!(child, run);
            run = child;
        }
    }
}
