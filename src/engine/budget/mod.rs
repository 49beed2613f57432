//! The budget of one run: before a call starts, its worst case is reserved; when it is over, what it really used is
//! counted. So concurrent calls cannot exceed the budget together.

pub(crate) mod parts;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::{Code, Failure, Lost, Result};
use crate::model::budget::{Budget, Price, Spent, cost, dollars};
use crate::model::chat::{ChatRequest, FinishReason, HashedMessage, Usage};
use crate::model::text::count;

/// The tokens of reply that are reserved for a call without a limit of its own.
const REPLY: u64 = 8192;

/// When no other call is under way, a call starts if the budget has room for at least this many tokens of reply.
const LEAST_REPLY: u64 = 512;

/// A token is seldom longer than this, in bytes. So a call counts for at least its bytes divided by this, whatever its
/// server reports.
const LONGEST_TOKEN: u64 = 8;

/// If the limit on calls is at least this, the user is told when four fifths of the calls are used.
const MANY_CALLS: u64 = 100;

/// Shows a notice to the user while calls are made.
pub type NoticeSink = Box<dyn Fn(String)>;

/// Counts what a run uses and holds it to its budget.
pub struct Meter {
    budget: Budget,
    tell: Option<NoticeSink>,
    since: Instant,
    spent: RefCell<BTreeMap<(String, String), Spent>>,
    /// Calls that ended, well or not.
    ended: Cell<u64>,
    reserved: Cell<UpperBound>,
    /// How many of the reserved calls are those of children that nobody waits for in this process.
    kept: Cell<u64>,
    /// How many children are about to get their part.
    claims: Cell<u64>,
    /// What calls that were given up half-way could have used at worst: what they really used is unknown.
    lost: Cell<UpperBound>,
    /// Tokens of all calls; each call counts for at least the tokens that its texts must have.
    tokens: Cell<u64>,
    /// The cost of all calls whose price was known, in US dollars.
    paid: Cell<f64>,
    /// At which cost the user is told next, in US dollars.
    next_cost: Cell<f64>,
    /// Whether the user was told that the calls are nearly used up.
    few_calls_told: Cell<bool>,
    /// Why no further call starts.
    closed: RefCell<Option<Failure>>,
    /// Notified when a reservation is released.
    freed: Notify,
}

/// The worst case of one call, or of several together.
#[derive(Clone, Copy, Debug, Default)]
struct UpperBound {
    calls: u64,
    tokens: u64,
    cost: f64,
}

/// The reservation of one call, released when the call is over. If the call is given up, it counts as lost.
struct Reservation {
    meter: Rc<Meter>,
    bound: UpperBound,
    finished: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.meter.reserved.get();
        reserved.calls -= self.bound.calls;
        reserved.tokens = reserved.tokens.saturating_sub(self.bound.tokens);
        reserved.cost = if reserved.calls == 0 { 0.0 } else { reserved.cost - self.bound.cost };
        self.meter.reserved.set(reserved);
        if !self.finished {
            let lost = self.meter.lost.get();
            let (tokens, cost) = (lost.tokens.saturating_add(self.bound.tokens), lost.cost + self.bound.cost);
            self.meter.lost.set(UpperBound { calls: lost.calls + 1, tokens, cost });
        }
        self.meter.freed.notify_waiters();
    }
}

impl Meter {
    pub fn new(budget: Budget) -> Rc<Meter> {
        Meter::of(budget, None)
    }

    /// Like [`Meter::new`], and tells the user what a long run has used.
    pub fn telling(budget: Budget, tell: NoticeSink) -> Rc<Meter> {
        Meter::of(budget, Some(tell))
    }

    fn of(budget: Budget, tell: Option<NoticeSink>) -> Rc<Meter> {
        Rc::new(Meter {
            budget,
            tell,
            tokens: Cell::new(0),
            next_cost: Cell::new(1.0),
            few_calls_told: Cell::new(false),
            since: Instant::now(),
            spent: RefCell::default(),
            ended: Cell::new(0),
            reserved: Cell::default(),
            kept: Cell::default(),
            claims: Cell::default(),
            lost: Cell::default(),
            paid: Cell::new(0.0),
            closed: RefCell::default(),
            freed: Notify::new(),
        })
    }

    /// Returns when the time limit of this process is reached, and the failure to end with.
    pub fn deadline(&self) -> Option<(Instant, Failure)> {
        let time = self.budget.time?;
        let failure = Failure::new(Code::BudgetUsedUp, format!("the time of this run is over: {time}"))
            .hint("go on with more: nietz resume --max-time …");
        Some((self.since.checked_add(time.0)?, failure))
    }

    /// Makes a call within the budget: waits until its worst case can be reserved, lowers the limit of its reply if the
    /// budget has room for less only, and counts what the call used.
    ///
    /// # Errors
    ///
    /// `budget-used-up` if the call cannot start or the lowered limit cut its reply, `price-unknown` if there is a limit on
    /// cost and the model has no price, and the failures of `perform`.
    pub async fn call<F: Future<Output = Result<Value>>>(
        self: Rc<Meter>,
        mut request: ChatRequest,
        conversation: &[Rc<HashedMessage>],
        (label, price): (String, Option<Price>),
        perform: impl FnOnce(ChatRequest) -> F,
    ) -> Result<Value> {
        let wanted = wanted_reply(&request);
        let mut reservation = Meter::reserve(&self, &mut request, conversation, price).await?;
        let lowered = request.max_tokens.filter(|&limit| u64::from(limit) < wanted);
        let lower_bound = CallLowerBound::new(&request, conversation);
        let outcome = perform(request).await;
        self.add(&lower_bound, &label, &outcome, price);
        self.add_lost(&lower_bound, &outcome, price);
        self.tell_what_is_used();
        reservation.finished = true;
        drop(reservation);
        match &outcome {
            Ok(reply) => {
                match (lowered, FinishReason::deserialize(&reply["finish"])) {
                    (Some(limit), Ok(FinishReason::Length)) => Err(self
                        .close(format!("the budget left room for {limit} tokens of reply, and the reply needed more"))),
                    _ => outcome,
                }
            }
            Err(failure) if failure.code == Code::BudgetUsedUp => {
                self.closed.borrow_mut().get_or_insert_with(|| failure.clone());
                outcome
            }
            Err(_) => outcome,
        }
    }

    /// Counts a recorded call. The cost of its reply is recorded with it; attempts without a reply are counted at today's price.
    pub fn count(
        &self,
        request: &ChatRequest,
        conversation: &[Rc<HashedMessage>],
        (label, price): (&str, Option<Price>),
        outcome: &Result<Value>,
    ) {
        let lower_bound = CallLowerBound::new(request, conversation);
        self.add(&lower_bound, label, outcome, None);
        self.add_lost(&lower_bound, outcome, price);
        while self.paid.get() >= self.next_cost.get() {
            self.next_cost.set(self.next_cost.get() * 2.0);
        }
    }

    fn add(&self, lower_bound: &CallLowerBound, label: &str, outcome: &Result<Value>, price: Option<Price>) {
        self.ended.set(self.ended.get() + 1);
        let Ok(reply) = outcome else { return };
        let mut all = self.spent.borrow_mut();
        let spent = all.entry((lower_bound.model.clone(), label.to_owned())).or_insert_with(|| Spent {
            model: lower_bound.model.clone(),
            label: label.to_owned(),
            calls: 0,
            usage: Usage::default(),
            cost: Some(0.0),
            saved: 0.0,
        });
        let reported = Usage::deserialize(&reply["usage"]).unwrap_or_default();
        let least = Usage { input: lower_bound.least, output: least_output(reply), ..Usage::default() };
        let counted =
            Usage { input: reported.input.max(least.input), output: reported.output.max(least.output), ..reported };
        spent.calls += 1;
        spent.usage += reported;
        self.tokens.set(self.tokens.get().saturating_add(counted.total()));
        let cost = reply["cost"].as_f64();
        // What the server says it read from its cache is not held to the full price.
        let least = Usage { cached: reported.cached, ..least };
        let least_cost = price.filter(|_| cost.is_some()).map_or(0.0, |price| price.of(least));
        self.paid.set(self.paid.get() + cost.unwrap_or_default().max(least_cost));
        spent.cost = spent.cost.zip(cost).map(|(sum, cost)| sum + cost);
        spent.saved += reply["saved"].as_f64().unwrap_or_default();
    }

    /// Counts what attempts without a reply used: a server that breaks off is paid all the same.
    fn add_lost(&self, lower_bound: &CallLowerBound, outcome: &Result<Value>, price: Option<Price>) {
        let lost = match outcome {
            Ok(reply) => Lost::deserialize(&reply["lost"]).ok(),
            Err(failure) => failure.lost.as_deref().copied(),
        };
        let Some(lost) = lost else { return };
        let input = lower_bound.least.saturating_mul(lost.attempts);
        let used = Usage { input, output: lost.bytes / LONGEST_TOKEN, ..Usage::default() };
        self.tokens.set(self.tokens.get().saturating_add(used.total()));
        self.paid.set(self.paid.get() + price.map_or(0.0, |price| price.of(used)));
    }

    /// Tells the user the cost of a run without a limit on cost, at one dollar and at each doubling, and tells when the
    /// calls are nearly used up.
    fn tell_what_is_used(&self) {
        let Some(tell) = &self.tell else { return };
        let (paid, next) = (self.paid.get(), self.next_cost.get());
        if self.budget.cost.is_none() && paid >= next {
            tell(format!("this run has cost {} US dollars so far; --max-cost limits it", dollars(paid)));
            while paid >= self.next_cost.get() {
                self.next_cost.set(self.next_cost.get() * 2.0);
            }
        }
        let ended = self.ended.get();
        if let Some(calls) = self.budget.calls.filter(|calls| *calls >= MANY_CALLS && ended >= calls / 5 * 4)
            && !self.few_calls_told.replace(true)
        {
            tell(format!("{ended} of the {calls} calls of this run are used; --max-calls allows more"));
        }
    }

    /// Returns what the run used so far, by model and label.
    pub fn spent(&self) -> Vec<Spent> {
        self.spent.borrow().values().cloned().collect()
    }

    async fn reserve(
        meter: &Rc<Meter>,
        request: &mut ChatRequest,
        conversation: &[Rc<HashedMessage>],
        price: Option<Price>,
    ) -> Result<Reservation> {
        let budget = meter.budget;
        let price = match (budget.cost, price) {
            (None, _) => None,
            (Some(_), Some(price)) => Some(price),
            (Some(_), None) => return Err(unknown_price(&request.model)),
        };
        let limits_reply = budget.tokens.is_some() || price.is_some();
        let input = if limits_reply { most_input(request, conversation) } else { 0 };
        let wanted = wanted_reply(request);
        loop {
            if let Some(failure) = &*meter.closed.borrow() {
                return Err(failure.clone());
            }
            let reserved = meter.reserved.get();
            let room = meter.room(reserved, input, price);
            let is_busy = meter.is_busy();
            let reply = match room {
                Ok(room) if room >= wanted => wanted,
                Ok(room) if !is_busy && room >= wanted.min(LEAST_REPLY) => room,
                _ if is_busy => {
                    meter.freed.notified().await;
                    continue;
                }
                Ok(_) => return Err(meter.close("the next call could go over the budget".to_owned())),
                Err(why) => return Err(meter.close(why)),
            };
            let mut worst = UpperBound { calls: 1, ..UpperBound::default() };
            if limits_reply {
                request.max_tokens = u32::try_from(reply).ok().or(request.max_tokens);
                worst.tokens = input.saturating_add(reply);
                worst.cost = price.map_or(0.0, |price| price.most(input, reply));
            }
            meter.reserved.set(UpperBound {
                calls: reserved.calls + worst.calls,
                tokens: reserved.tokens.saturating_add(worst.tokens),
                cost: reserved.cost + worst.cost,
            });
            return Ok(Reservation { meter: Rc::clone(meter), bound: worst, finished: false });
        }
    }

    /// Tells whether something of what is reserved will be free again.
    fn is_busy(&self) -> bool {
        self.reserved.get().calls > self.kept.get()
    }

    /// Returns how many tokens of reply the budget leaves for a call with this input, or why the call cannot start.
    fn room(&self, reserved: UpperBound, input: u64, price: Option<Price>) -> Result<u64, String> {
        let Budget { calls, tokens, cost: limit, .. } = self.budget;
        let lost = self.lost.get();
        if calls.is_some_and(|calls| self.ended.get() + lost.calls + reserved.calls >= calls) {
            return Err("the calls of this run are used up".to_owned());
        }
        let mut room = u64::MAX;
        if let Some(tokens) = tokens {
            let used = [self.tokens.get(), lost.tokens, reserved.tokens, input];
            room = used.into_iter().fold(tokens, u64::saturating_sub);
        }
        if let (Some(limit), Some(price)) = (limit, price) {
            // The cost of recorded calls without a known price is unknown; all other calls are held to the limit.
            room = room.min(price.room(limit - self.paid.get() - lost.cost - reserved.cost, input));
        }
        Ok(room)
    }

    /// Lets no further call start, and returns the failure that says why.
    fn close(&self, why: String) -> Failure {
        let spent = self.spent();
        let mut used = format!(
            "used so far: {}, {}",
            count(self.ended.get() + self.lost.get().calls, "call"),
            count(self.tokens.get(), "token")
        );
        if let Some(cost) = cost(&spent) {
            used += &format!(", {} US dollars", dollars(cost));
        }
        let failure = Failure::new(Code::BudgetUsedUp, why)
            .because(format!("the budget: {}", self.budget))
            .because(used)
            .hint("go on with more: nietz resume, with --max-calls, --max-tokens or --max-cost");
        self.closed.borrow_mut().get_or_insert(failure).clone()
    }
}

/// The least that a call can have used.
struct CallLowerBound {
    model: String,
    /// The least number of tokens that the request can have had.
    least: u64,
}

impl CallLowerBound {
    fn new(request: &ChatRequest, conversation: &[Rc<HashedMessage>]) -> CallLowerBound {
        let bytes = request.system.as_ref().map_or(0, String::len)
            + conversation.iter().map(|item| item.message.size()).sum::<usize>();
        CallLowerBound { model: request.model.clone(), least: bytes as u64 / LONGEST_TOKEN }
    }
}

/// Returns the least number of tokens that a reply can have had.
fn least_output(reply: &Value) -> u64 {
    let length = |value: &Value| value.as_str().map_or(0, str::len);
    let calls = reply["tool_calls"].as_array().into_iter().flatten().map(|call| length(&call["arguments"]));
    (length(&reply["text"]) + calls.sum::<usize>()) as u64 / LONGEST_TOKEN
}

/// Returns how many tokens a call can use at most, and what that costs in US dollars, as far as its price is known.
pub(crate) fn worst_case(
    request: &ChatRequest,
    conversation: &[Rc<HashedMessage>],
    price: Option<Price>,
) -> (u64, f64) {
    let (input, reply) = (most_input(request, conversation), wanted_reply(request));
    (input.saturating_add(reply), price.map_or(0.0, |price| price.most(input, reply)))
}

fn unknown_price(model: &str) -> Failure {
    Failure::new(Code::PriceUnknown, format!("there is a limit on cost, and what {model} costs is not known")).hint(
        format!("say it in config.yaml: models: {{ prices: {{ {model}: {{ input: …, output: … }} }} }}, in US dollars for a million tokens"),
    )
}

/// Returns the limit of a call's reply if the budget has room for it, in tokens.
fn wanted_reply(request: &ChatRequest) -> u64 {
    request.max_tokens.map_or(REPLY, u64::from)
}

/// Returns an upper bound of the request's tokens: no tokenizer makes more tokens than there are bytes of text, what
/// providers put around messages and tools is small, and what they count images and pages as is documented.
fn most_input(request: &ChatRequest, conversation: &[Rc<HashedMessage>]) -> u64 {
    let json = |value: &Value| value.to_string().len();
    let messages = conversation.iter().map(|item| {
        let calls =
            item.message.tool_calls.iter().map(|call| call.arguments.len() + call.name.len() + call.id.len() + 16);
        item.message.size() + calls.sum::<usize>() + 16
    });
    let attachments = conversation.iter().flat_map(|item| &item.message.attachments);
    let attached = attachments.map(|attachment| attachment.most_tokens() + attachment.name.len() as u64);
    let tools = request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + json(&tool.parameters) + 64);
    let bytes = messages.sum::<usize>()
        + request.system.as_ref().map_or(0, String::len)
        + tools.sum::<usize>()
        + if request.tools.is_empty() { 0 } else { 512 }
        // If a provider cannot enforce a schema, the schema is part of the prompt as well.
        + request.schema.as_ref().map_or(0, |schema| 2 * json(schema) + 512)
        + 64;
    attached.fold(bytes as u64, u64::saturating_add)
}

#[cfg(test)]
mod tests;
