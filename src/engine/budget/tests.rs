//! The promise: whatever calls a run makes, and however many at once, it never uses more than its budget.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;

use super::{Meter, most_input};
use crate::error::{Code, Result};
use crate::model::budget::{Budget, Price, cost};
use crate::model::chat::{ChatRequest, HashedMessage, Message, Role, Usage};

const PRICE: Price = Price { cached: Some(0.2), cache_write: Some(2.5), ..Price::plain(2.0, 8.0) };

fn request(max_tokens: Option<u32>) -> ChatRequest {
    serde_json::from_value(json!({ "model": "lab/m", "messages": [], "max_tokens": max_tokens })).expect("it is whole")
}

fn conversation(text: &str) -> Vec<Rc<HashedMessage>> {
    let message = Message {
        attachments: Vec::new(),
        content: text.to_owned(),
        role: Role::User,
        state: None,
        tool_call_id: None,
        tool_calls: Vec::new(),
    };
    vec![Rc::new(HashedMessage::new(message))]
}

/// Makes a call that uses a share of its worst case, after letting others go first.
async fn call(meter: Rc<Meter>, text: &str, max_tokens: Option<u32>, share: f64) -> Result<serde_json::Value> {
    let messages = conversation(text);
    let input = most_input(&request(max_tokens), &messages);
    meter
        .call(request(max_tokens), &messages, ("Max".to_owned(), Some(PRICE)), |request| async move {
            tokio::task::yield_now().await;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let of = |most: u64| (most as f64 * share) as u64;
            let (input, limit) = (of(input), request.max_tokens.map_or(100_000, u64::from));
            let output = of(limit);
            let finish = if output == limit { "length" } else { "stop" };
            // The dearest that a call can be: all of it is written to a cache.
            let usage = Usage { input, output, cache_written: input, ..Usage::default() };
            Ok(json!({ "usage": usage, "finish": finish, "cost": PRICE.of(usage) }))
        })
        .await
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("it starts").block_on(future)
}

proptest! {
    #[test]
    fn calls_side_by_side_never_overshoot(
        tokens in prop::option::of(0u64..40_000),
        dollars in prop::option::of(0.0..0.2f64),
        calls in prop::option::of(0u64..8),
        all in prop::collection::vec((0usize..4000, prop::option::of(1u32..9000), 0.0..=1.0f64), 1..12),
    ) {
        let budget = Budget { calls, tokens, cost: dollars, time: None };
        let meter = Meter::new(budget);
        let done = Cell::new(0);
        run(join_all(all.iter().map(|&(bytes, max_tokens, share)| {
            let (meter, done) = (Rc::clone(&meter), &done);
            async move {
                let text = "x".repeat(bytes);
                match call(meter, &text, max_tokens, share).await {
                    Ok(_) => done.set(done.get() + 1),
                    Err(failure) => assert_eq!(failure.code, Code::BudgetUsedUp),
                }
            }
        })));
        let spent = meter.spent();
        let used: u64 = spent.iter().map(|spent| spent.usage.input + spent.usage.output).sum();
        prop_assert!(tokens.is_none_or(|tokens| used <= tokens), "{used} of {tokens:?}");
        let paid = cost(&spent).unwrap_or_default();
        prop_assert!(dollars.is_none_or(|dollars| paid <= dollars + 1e-9), "{paid} of {dollars:?}");
        prop_assert!(calls.is_none_or(|calls| meter.ended.get() <= calls));
        // Without limits no call is held back.
        prop_assert!(budget != Budget::default() || done.get() == all.len());
    }
}

#[test]
fn calls_wait_for_each_other_where_their_worst_cases_do_not_fit_together() {
    let meter = Meter::new(Budget { tokens: Some(10_000), ..Budget::default() });
    let four = (0..4).map(|_| call(Rc::clone(&meter), "hello", Some(6000), 0.1));
    let results = run(join_all(four));
    assert!(results.iter().all(Result::is_ok), "one after the other they fit: {results:?}");
}

#[test]
fn a_reply_that_only_the_budget_cut_is_not_taken_for_whole() {
    let meter = Meter::new(Budget { tokens: Some(1000), ..Budget::default() });
    let failure = run(call(Rc::clone(&meter), "hello", None, 1.0)).unwrap_err();
    assert_eq!(failure.code, Code::BudgetUsedUp);
    assert!(failure.message.contains("the reply needed more"), "{failure:?}");
    let after = run(call(meter, "hello", None, 0.0)).unwrap_err();
    assert_eq!(after.message, failure.message, "no further call starts");
}

#[test]
fn a_call_that_is_given_up_counts_as_the_worst_that_it_could_use() {
    let meter = Meter::new(Budget { calls: Some(2), tokens: Some(10_000), ..Budget::default() });
    run(async {
        let messages = conversation("hello");
        let by = ("Max".to_owned(), None);
        let endless = Rc::clone(&meter).call(request(Some(4000)), &messages, by, |_| std::future::pending());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), endless).await.is_err());
    });
    assert!(run(call(Rc::clone(&meter), "hello", Some(4000), 0.0)).is_ok());
    let third = run(call(Rc::clone(&meter), "hello", Some(1), 0.0)).unwrap_err();
    assert!(third.message.contains("calls"), "{third:?}");
    assert!(meter.lost.get().tokens > 4000);
}

#[test]
fn costs_are_held_to_the_limit_after_a_call_of_an_unknown_price() {
    let meter = Meter::new(Budget { cost: Some(0.1), ..Budget::default() });
    // A call that was recorded before its price was known.
    meter.count(&request(None), &[], ("Max", None), &Ok(json!({ "usage": { "input": 10, "output": 10 } })));
    let calls = (0..40).map(|_| call(Rc::clone(&meter), "hello", Some(2000), 0.9));
    let succeeded = run(join_all(calls)).into_iter().filter(Result::is_ok).count();
    assert!((1..40).contains(&succeeded), "{succeeded}");
    assert!(meter.paid.get() <= 0.1, "{}", meter.paid.get());
}

#[test]
fn a_limit_on_cost_needs_a_price() {
    let meter = Meter::new(Budget { cost: Some(1.0), ..Budget::default() });
    let none = ("Max".to_owned(), None);
    let failure =
        run(meter.call(request(None), &conversation("hello"), none, |_| async { Ok(json!({})) })).unwrap_err();
    assert_eq!(failure.code, Code::PriceUnknown);
}
