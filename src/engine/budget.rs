//! The budget of one run: what a call could use at worst is set aside before it starts, and what it did use
//! is counted when it is over. So calls side by side cannot overshoot together.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::{Code, Failure, Result};
use crate::model::budget::{Budget, Price, Spent, cost, dollars};
use crate::model::chat::{ChatRequest, Finish, Said, Usage};

/// The longest reply, in tokens, that is set aside for a call that names no limit of its own.
const REPLY: u64 = 8192;

/// When nothing else is under way, a call starts with no less than this of its reply affordable.
const LEAST_REPLY: u64 = 512;

/// Counts what a run uses and holds it to its budget.
pub struct Meter {
    budget: Budget,
    since: Instant,
    spent: RefCell<BTreeMap<(String, String), Spent>>,
    /// Calls that ended, well or not.
    ended: Cell<u64>,
    aside: Cell<Worst>,
    /// What calls that were given up half-way could have used: nobody says what they did use.
    lost: Cell<Worst>,
    /// US dollars of all calls whose price was known.
    paid: Cell<f64>,
    /// Why no further call starts.
    closed: RefCell<Option<Failure>>,
    /// Told when something that was set aside is free again.
    freed: Notify,
}

/// What calls under way could use at worst.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    calls: u64,
    tokens: u64,
    cost: f64,
}

/// What was set aside for one call. It is free again when the call is over, and lost when it is given up.
struct Aside {
    meter: Rc<Meter>,
    worst: Worst,
    over: bool,
}

impl Drop for Aside {
    fn drop(&mut self) {
        let mut aside = self.meter.aside.get();
        aside.calls -= self.worst.calls;
        aside.tokens -= self.worst.tokens;
        aside.cost = if aside.calls == 0 { 0.0 } else { aside.cost - self.worst.cost };
        self.meter.aside.set(aside);
        if !self.over {
            let lost = self.meter.lost.get();
            let (tokens, cost) = (lost.tokens.saturating_add(self.worst.tokens), lost.cost + self.worst.cost);
            self.meter.lost.set(Worst { calls: lost.calls + 1, tokens, cost });
        }
        self.meter.freed.notify_waiters();
    }
}

impl Meter {
    pub fn new(budget: Budget) -> Rc<Meter> {
        Rc::new(Meter {
            budget,
            since: Instant::now(),
            spent: RefCell::default(),
            ended: Cell::new(0),
            aside: Cell::default(),
            lost: Cell::default(),
            paid: Cell::new(0.0),
            closed: RefCell::default(),
            freed: Notify::new(),
        })
    }

    /// Returns when the time of this process is over, and what is said then.
    pub fn deadline(&self) -> Option<(Instant, Failure)> {
        let time = self.budget.time?;
        let failure = Failure::new(Code::BudgetUsedUp, format!("the time of this run is over: {time}"))
            .hint("go on with more: nietz resume --max-time …");
        Some((self.since.checked_add(time.0)?, failure))
    }

    /// Makes a call within the budget: waits until its worst case can be set aside, lowers the limit of its
    /// reply where less can be afforded, and counts what it used.
    pub async fn call<F: Future<Output = Result<Value>>>(
        self: Rc<Meter>,
        mut request: ChatRequest,
        conversation: &[Rc<Said>],
        (label, price): (String, Option<Price>),
        perform: impl FnOnce(ChatRequest) -> F,
    ) -> Result<Value> {
        let wanted = wanted_reply(&request);
        let mut aside = Meter::set_aside(&self, &mut request, conversation, price).await?;
        let lowered = request.max_tokens.filter(|&limit| u64::from(limit) < wanted);
        let model = request.model.clone();
        let outcome = perform(request).await;
        self.count(&model, &label, &outcome);
        aside.over = true;
        drop(aside);
        match &outcome {
            Ok(reply) => {
                match (lowered, Finish::deserialize(&reply["finish"])) {
                    (Some(limit), Ok(Finish::Length)) => Err(self
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

    /// Counts a call that is over, now or in the past.
    pub fn count(&self, model: &str, label: &str, outcome: &Result<Value>) {
        self.ended.set(self.ended.get() + 1);
        let Ok(reply) = outcome else { return };
        let mut all = self.spent.borrow_mut();
        let spent = all.entry((model.to_owned(), label.to_owned())).or_insert_with(|| Spent {
            model: model.to_owned(),
            label: label.to_owned(),
            calls: 0,
            usage: Usage::default(),
            cost: Some(0.0),
        });
        spent.calls += 1;
        spent.usage += Usage::deserialize(&reply["usage"]).unwrap_or_default();
        let cost = reply["cost"].as_f64();
        self.paid.set(self.paid.get() + cost.unwrap_or_default());
        spent.cost = spent.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }

    /// Returns what the run used so far, by model and label.
    pub fn spent(&self) -> Vec<Spent> {
        self.spent.borrow().values().cloned().collect()
    }

    async fn set_aside(
        meter: &Rc<Meter>,
        request: &mut ChatRequest,
        conversation: &[Rc<Said>],
        price: Option<Price>,
    ) -> Result<Aside> {
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
            let aside = meter.aside.get();
            let room = meter.room(aside, input, price);
            let reply = match room {
                Ok(room) if room >= wanted => wanted,
                Ok(room) if aside.calls == 0 && room >= wanted.min(LEAST_REPLY) => room,
                _ if aside.calls > 0 => {
                    meter.freed.notified().await;
                    continue;
                }
                Ok(_) => return Err(meter.close("the next call could go over the budget".to_owned())),
                Err(why) => return Err(meter.close(why)),
            };
            let mut worst = Worst { calls: 1, ..Worst::default() };
            if limits_reply {
                request.max_tokens = u32::try_from(reply).ok().or(request.max_tokens);
                worst.tokens = input.saturating_add(reply);
                worst.cost = price.map_or(0.0, |price| price.of(Usage { input, output: reply, cached: 0 }));
            }
            meter.aside.set(Worst {
                calls: aside.calls + worst.calls,
                tokens: aside.tokens + worst.tokens,
                cost: aside.cost + worst.cost,
            });
            return Ok(Aside { meter: Rc::clone(meter), worst, over: false });
        }
    }

    /// Returns how many tokens of reply a call with this input could have, or why it cannot start.
    fn room(&self, aside: Worst, input: u64, price: Option<Price>) -> Result<u64, String> {
        let Budget { calls, tokens, cost: limit, .. } = self.budget;
        let lost = self.lost.get();
        if calls.is_some_and(|calls| self.ended.get() + lost.calls + aside.calls >= calls) {
            return Err("the calls of this run are used up".to_owned());
        }
        let mut room = u64::MAX;
        let spent = self.spent.borrow();
        if let Some(tokens) = tokens {
            let used: u64 = spent.values().map(|spent| spent.usage.input + spent.usage.output).sum();
            let taken = [used, lost.tokens, aside.tokens, input];
            room = taken.into_iter().fold(tokens, u64::saturating_sub);
        }
        if let (Some(limit), Some(price)) = (limit, price) {
            // What a recorded call of an unknown price did cost, nobody knows: the rest is held to the limit.
            room = room.min(price.room(limit - self.paid.get() - lost.cost - aside.cost, input));
        }
        Ok(room)
    }

    /// Starts no further call, and returns why.
    fn close(&self, why: String) -> Failure {
        let spent = self.spent();
        let usage = spent.iter().fold(Usage::default(), |mut sum, spent| {
            sum += spent.usage;
            sum
        });
        let mut used = format!(
            "used so far: {} calls, {} tokens",
            self.ended.get() + self.lost.get().calls,
            usage.input + usage.output
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

fn unknown_price(model: &str) -> Failure {
    Failure::new(Code::PriceUnknown, format!("there is a limit on cost, and what {model} costs is not known")).hint(
        format!("say it in config.yaml: models: {{ prices: {{ {model}: {{ input: …, output: … }} }} }}, in US dollars for a million tokens"),
    )
}

/// Returns the longest reply that a call may have where the budget has room for it.
fn wanted_reply(request: &ChatRequest) -> u64 {
    request.max_tokens.map_or(REPLY, u64::from)
}

/// Returns more tokens than the request can have: no tokenizer makes more tokens than there are bytes, and
/// what providers put around messages and tools is small.
fn most_input(request: &ChatRequest, conversation: &[Rc<Said>]) -> u64 {
    let json = |value: &Value| value.to_string().len();
    let messages = conversation.iter().map(|said| {
        let calls =
            said.message.tool_calls.iter().map(|call| call.arguments.len() + call.name.len() + call.id.len() + 16);
        said.message.size() + calls.sum::<usize>() + 16
    });
    let tools = request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + json(&tool.parameters) + 64);
    let bytes = messages.sum::<usize>()
        + request.system.as_ref().map_or(0, String::len)
        + tools.sum::<usize>()
        + if request.tools.is_empty() { 0 } else { 512 }
        // Where a provider does not hold a reply to a schema by itself, it stands in the prompt as well.
        + request.schema.as_ref().map_or(0, |schema| 2 * json(schema) + 512)
        + 64;
    bytes as u64
}

#[cfg(test)]
#[path = "budget/tests.rs"]
mod tests;
