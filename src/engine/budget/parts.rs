//! Parts of a run's budget for its children: each is set aside as a whole until its child is over, so that a run and all that it has
//! begun stay within the run's budget together.

use std::cell::Cell;
use std::rc::Rc;

use tokio::time::Instant;

use super::{Meter, UpperBound};
use crate::error::Result;
use crate::model::budget::{Budget, Spent, TimeLimit};

/// A child that is about to get its part. Those that ask together share what there is.
pub(crate) struct PartClaim {
    meter: Rc<Meter>,
}

/// What is set aside for a child. What it has used is counted when it is over; where nobody knows that, all of it.
pub(crate) struct Part {
    meter: Rc<Meter>,
    /// The limits of the child.
    pub(crate) budget: Budget,
    bound: Cell<UpperBound>,
    /// What the child is known to have used, while it is not over.
    pub(crate) calls: Cell<u64>,
    pub(crate) tokens: Cell<u64>,
    /// Whether it is over, or stays set aside.
    is_settled: bool,
}

impl Drop for PartClaim {
    fn drop(&mut self) {
        self.meter.claims.set(self.meter.claims.get() - 1);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let (bound, lost) = (self.bound.get(), self.meter.lost.get());
        self.meter.release(bound);
        let calls = self.calls.get();
        // What a call that was under way has cost is not known.
        let cost = if calls > 0 { bound.cost } else { 0.0 };
        self.meter.lost.set(UpperBound {
            calls: lost.calls + calls,
            tokens: lost.tokens.saturating_add(self.tokens.get()),
            cost: lost.cost + cost,
        });
    }
}

impl Meter {
    /// Notes that a child is about to ask for its part.
    pub(crate) fn claim_part(self: &Rc<Meter>) -> PartClaim {
        self.claims.set(self.claims.get() + 1);
        PartClaim { meter: Rc::clone(self) }
    }

    /// Counts what a child that is over has used.
    pub(crate) fn count_child(&self, calls: u64, spent: &[Spent]) {
        self.ended.set(self.ended.get() + calls);
        let mut all = self.spent.borrow_mut();
        for one in spent {
            self.tokens.set(self.tokens.get().saturating_add(one.usage.total()));
            self.paid.set(self.paid.get() + one.cost.unwrap_or_default());
            match all.get_mut(&(one.model.clone(), one.label.clone())) {
                Some(sum) => {
                    sum.calls += one.calls;
                    sum.usage += one.usage;
                    sum.cost = sum.cost.zip(one.cost).map(|(sum, cost)| sum + cost);
                    sum.saved += one.saved;
                }
                None => drop(all.insert((one.model.clone(), one.label.clone()), one.clone())),
            }
        }
    }

    fn release(&self, bound: UpperBound) {
        let reserved = self.reserved.get();
        let calls = reserved.calls.saturating_sub(bound.calls);
        let cost = if calls == 0 { 0.0 } else { reserved.cost - bound.cost };
        self.reserved.set(UpperBound { calls, tokens: reserved.tokens.saturating_sub(bound.tokens), cost });
        self.freed.notify_waiters();
    }

    fn set_aside(&self, bound: UpperBound) {
        let reserved = self.reserved.get();
        self.reserved.set(UpperBound {
            calls: reserved.calls.saturating_add(bound.calls),
            tokens: reserved.tokens.saturating_add(bound.tokens),
            cost: reserved.cost + bound.cost,
        });
    }

    /// Returns what is neither used nor set aside.
    fn left(&self) -> Budget {
        let (lost, reserved) = (self.lost.get(), self.reserved.get());
        let Budget { calls, tokens, cost, time } = self.budget;
        let whole = |limit: u64, used: [u64; 3]| used.into_iter().fold(limit, u64::saturating_sub);
        let since = Instant::now().saturating_duration_since(self.since);
        Budget {
            calls: calls.map(|limit| whole(limit, [self.ended.get(), lost.calls, reserved.calls])),
            tokens: tokens.map(|limit| whole(limit, [self.tokens.get(), lost.tokens, reserved.tokens])),
            cost: cost.map(|limit| (limit - self.paid.get() - lost.cost - reserved.cost).max(0.0)),
            time: time.map(|limit| TimeLimit(limit.0.saturating_sub(since))),
        }
    }
}

impl PartClaim {
    /// Waits until there is a part for the child, which is at most what is `wanted`, and sets it aside.
    ///
    /// # Errors
    ///
    /// `budget-used-up` if nothing is left.
    pub(crate) async fn take(self, wanted: Budget) -> Result<Part> {
        let meter = Rc::clone(&self.meter);
        loop {
            if let Some(failure) = &*meter.closed.borrow() {
                return Err(failure.clone());
            }
            let (left, sharers) = (meter.left(), meter.claims.get().max(1));
            let equal = Budget {
                calls: left.calls.map(|calls| calls.div_ceil(sharers)),
                tokens: left.tokens.map(|tokens| tokens / sharers),
                // The number of children is far below what a float tells apart.
                cost: left.cost.map(|cost| cost / sharers as f64),
                time: left.time,
            };
            // Whoever says how much is wanted takes that in place of an equal part.
            let asked = equal.replaced(wanted).tightened(left);
            let is_nothing =
                asked.calls == Some(0) || asked.tokens == Some(0) || left.cost.is_some_and(|cost| cost <= 0.0);
            if !is_nothing {
                let bound = bound_of(asked, meter.budget);
                meter.set_aside(bound);
                return Ok(Part {
                    meter,
                    budget: asked,
                    bound: Cell::new(bound),
                    calls: Cell::default(),
                    tokens: Cell::default(),
                    is_settled: false,
                });
            }
            if !meter.is_busy() {
                return Err(meter.close("nothing of the budget is left for another run".to_owned()));
            }
            meter.freed.notified().await;
        }
    }
}

/// Returns what is set aside for a child with these limits: of what the parent has no limit of, nothing.
fn bound_of(budget: Budget, of_parent: Budget) -> UpperBound {
    UpperBound {
        calls: budget.calls.unwrap_or_default(),
        tokens: budget.tokens.filter(|_| of_parent.tokens.is_some()).unwrap_or_default(),
        cost: budget.cost.filter(|_| of_parent.cost.is_some()).unwrap_or_default(),
    }
}

impl Part {
    /// Sets aside what the child may use, where that was said when it was begun.
    pub(crate) fn hold(&self, budget: Budget) {
        let bound = bound_of(budget, self.meter.budget);
        self.meter.release(self.bound.replace(bound));
        self.meter.set_aside(bound);
    }

    /// Leaves it set aside: the child goes on, and this process waits for it no longer.
    pub(crate) fn keep(mut self) {
        self.is_settled = true;
        self.meter.kept.set(self.meter.kept.get().saturating_add(self.bound.get().calls));
        self.meter.freed.notify_waiters();
    }

    /// Counts what a child has used that is over.
    pub(crate) fn over(mut self, calls: u64, spent: &[Spent]) {
        self.is_settled = true;
        self.meter.count_child(calls, spent);
        self.meter.release(self.bound.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::model::chat::Usage;

    fn calls(calls: u64) -> Budget {
        Budget { calls: Some(calls), ..Budget::default() }
    }

    fn spent(calls: u64, cost: f64) -> Vec<Spent> {
        let usage = Usage { input: 10 * calls, output: calls, ..Usage::default() };
        vec![Spent { model: "m".to_owned(), label: String::new(), calls, usage, cost: Some(cost), saved: 0.0 }]
    }

    #[tokio::test]
    async fn children_that_ask_together_share_what_is_left() {
        let meter = Meter::new(Budget { cost: Some(3.0), ..calls(10) });
        let claims: Vec<PartClaim> = (0..3).map(|_| meter.claim_part()).collect();
        let mut parts = Vec::new();
        for claim in claims {
            parts.push(claim.take(Budget::default()).await.expect("there is enough"));
        }
        assert_eq!(parts.iter().filter_map(|part| part.budget.calls).collect::<Vec<_>>(), [4, 3, 3]);
        assert!(parts.iter().all(|part| (part.budget.cost.unwrap_or_default() - 1.0).abs() < 1e-9));
        // All is set aside: another one waits until one of them is over, and gets what that one has left.
        let waiting = meter.claim_part().take(Budget::default());
        let (next, ()) = tokio::join!(waiting, async { parts.remove(0).over(1, &spent(1, 0.25)) });
        let next = next.expect("there is some again");
        assert_eq!((next.budget.calls, next.budget.cost), (Some(3), Some(0.75)));
        assert_eq!(meter.spent(), spent(1, 0.25));
    }

    #[tokio::test]
    async fn a_child_gets_what_is_wanted_and_no_more_than_is_left() {
        let meter = Meter::new(calls(10));
        let (one, other) = (meter.claim_part(), meter.claim_part());
        let one = one.take(calls(2)).await.expect("there is enough");
        let other = other.take(calls(50)).await.expect("there is some");
        assert_eq!((one.budget.calls, other.budget.calls), (Some(2), Some(8)));
        // Stopped half-way: what it has begun is used.
        other.calls.set(3);
        drop(other);
        one.over(2, &spent(2, 0.0));
        let rest = meter.claim_part().take(Budget::default()).await.expect("there is some");
        assert_eq!(rest.budget.calls, Some(5));
        rest.over(5, &spent(5, 0.0));
        let none = meter.claim_part().take(Budget::default()).await.map(drop).unwrap_err();
        assert_eq!(none.code, Code::BudgetUsedUp);
    }

    #[tokio::test]
    async fn what_a_child_was_given_before_counts() {
        let meter = Meter::new(calls(10));
        let part = meter.claim_part().take(Budget::default()).await.expect("there is enough");
        part.hold(calls(4));
        let other = meter.claim_part().take(Budget::default()).await.expect("there is enough");
        assert_eq!(other.budget.calls, Some(6));
        other.over(0, &[]);
        part.keep();
        let other = meter.claim_part().take(Budget::default()).await.expect("there is enough");
        assert_eq!(other.budget.calls, Some(6), "the child goes on, and its part stays set aside");
        other.keep();
        let none = meter.claim_part().take(Budget::default()).await.map(drop).unwrap_err();
        assert_eq!(none.code, Code::BudgetUsedUp, "nothing comes back in this process, so nobody waits for it");
    }
}
