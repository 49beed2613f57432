//! Budgets of runs, prices, and what runs used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::chat::{Usage, is_nothing};

/// The most that a run may use. An absent limit means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Model calls, including failed ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Tokens of requests and replies together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Time of one process: a resumed run has all of it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLimit>,
}

/// The default limit on the model calls of a run.
const USUAL_CALLS: u64 = 1000;

impl Budget {
    /// Returns this budget with at least a limit on calls, so that no run calls models forever.
    #[must_use]
    pub fn bounded(self) -> Budget {
        Budget { calls: self.calls.or(Some(USUAL_CALLS)), ..self }
    }

    /// Tells whether no limit is set.
    pub fn is_unlimited(&self) -> bool {
        *self == Budget::default()
    }

    /// Returns the tighter limit of each kind.
    ///
    /// ```
    /// use nietz::model::budget::Budget;
    ///
    /// let (user, project) = (Budget { calls: Some(50), ..Budget::default() }, Budget { calls: Some(80), ..Budget::default() });
    /// assert_eq!(user.tightened(project).calls, Some(50));
    /// ```
    #[must_use]
    pub fn tightened(self, other: Budget) -> Budget {
        Budget {
            calls: tighter(self.calls, other.calls),
            tokens: tighter(self.tokens, other.tokens),
            cost: tighter(self.cost, other.cost),
            time: tighter(self.time, other.time),
        }
    }

    /// Returns this budget with each limit that `given` names replaced.
    #[must_use]
    pub fn replaced(self, given: Budget) -> Budget {
        Budget {
            calls: given.calls.or(self.calls),
            tokens: given.tokens.or(self.tokens),
            cost: given.cost.or(self.cost),
            time: given.time.or(self.time),
        }
    }

    /// Returns what is wrong with the budget, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let cost = self.cost.is_some_and(|cost| !cost.is_finite() || cost < 0.0);
        cost.then_some("cost must be a number of US dollars, 0 or more")
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.calls.map(|calls| format!("{} {}", calls, if calls == 1 { "call" } else { "calls" })));
        parts.extend(self.tokens.map(|tokens| format!("{tokens} tokens")));
        parts.extend(self.cost.map(|cost| format!("{} US dollars", dollars(cost))));
        parts.extend(self.time.map(|time| time.to_string()));
        if parts.is_empty() { f.write_str("no limit") } else { f.write_str(&parts.join(", ")) }
    }
}

fn tighter<T: PartialOrd>(left: Option<T>, right: Option<T>) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(if right < left { right } else { left }),
        (left, right) => left.or(right),
    }
}

/// A time limit, written in seconds or with units: `90`, `90s`, `10m`, `1h30m`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "RawTimeLimit", into = "String")]
pub struct TimeLimit(pub Duration);

#[derive(Deserialize)]
#[serde(untagged)]
enum RawTimeLimit {
    Seconds(f64),
    Text(String),
}

impl TryFrom<RawTimeLimit> for TimeLimit {
    type Error = String;

    fn try_from(written: RawTimeLimit) -> Result<TimeLimit, String> {
        match written {
            RawTimeLimit::Seconds(seconds) => seconds.to_string().parse(),
            RawTimeLimit::Text(text) => text.parse(),
        }
    }
}

impl std::str::FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeLimit, String> {
        let wrong = || "a time is written like 90s, 10m or 1h30m".to_owned();
        let mut seconds = 0.0;
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let count: f64 = rest[..end].parse().map_err(|_| wrong())?;
            let unit = rest[end..].chars().next();
            seconds += count
                * match unit {
                    None | Some('s') => 1.0,
                    Some('m') => 60.0,
                    Some('h') => 3600.0,
                    Some(_) => return Err(wrong()),
                };
            rest = &rest[end + unit.map_or(0, char::len_utf8)..];
        }
        if seconds <= 0.0 {
            return Err(wrong());
        }
        Duration::try_from_secs_f64(seconds).map(TimeLimit).map_err(|_| wrong())
    }
}

impl From<TimeLimit> for String {
    fn from(span: TimeLimit) -> String {
        span.to_string()
    }
}

impl std::fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let total = self.0.as_secs();
        let (hours, minutes) = (total / 3600, total / 60 % 60);
        let seconds = self.0.as_secs_f64() - (total / 60 * 60) as f64;
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if seconds > 0.0 || total == 0 { write!(f, "{seconds}s") } else { Ok(()) }
    }
}

/// A model's price, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// The price of input from the provider's cache; that of `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// The price of input that is written to the provider's cache; that of `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// The price of long requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// The price of a call with more input than `above` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    pub above: u64,
    pub input: f64,
    pub output: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// The price of models that cost nothing.
    pub const FREE: Price = Price::plain(0.0, 0.0);

    /// Returns a price that is the same for all input, cached or not, and for requests of any length.
    pub const fn plain(input: f64, output: f64) -> Price {
        Price { input, output, cached: None, cache_write: None, long: None }
    }

    /// Returns the price of a call with this many input tokens.
    fn at(&self, input: u64) -> Price {
        match self.long.filter(|long| input > long.above) {
            Some(LongPrice { input, output, cached, cache_write, .. }) => {
                Price { input, output, cached, cache_write, long: None }
            }
            None => *self,
        }
    }

    /// Returns the cost of one call, in US dollars.
    ///
    /// ```
    /// use nietz::model::budget::Price;
    /// use nietz::model::chat::Usage;
    ///
    /// let price = Price { cached: Some(0.2), cache_write: Some(2.5), ..Price::plain(2.0, 10.0) };
    /// let usage = Usage { input: 1_000_000, output: 100_000, cached: 500_000, cache_written: 100_000, ..Usage::default() };
    /// assert_eq!(price.of(usage), 0.8 + 0.1 + 0.25 + 1.0);
    /// ```
    pub fn of(&self, usage: Usage) -> f64 {
        let price = self.at(usage.input);
        // A server may report anything, and no token is read and written at once.
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        (price.input * count(usage.input - cached - written)
            + price.cached.unwrap_or(price.input) * count(cached)
            + price.cache_write.unwrap_or(price.input) * count(written)
            + price.output * count(usage.output))
            / 1e6
    }

    /// Returns how much more the call would have cost without the provider's cache, in US dollars. It is negative if what
    /// was written to the cache cost more than was saved by reading from it.
    pub fn saved(&self, usage: Usage) -> f64 {
        self.of(Usage { cached: 0, cache_written: 0, ..usage }) - self.of(usage)
    }

    /// Returns the most that a call with this much input and output can cost, in US dollars: all of its input may be written
    /// to the provider's cache.
    pub fn most(&self, input: u64, output: u64) -> f64 {
        let price = self.at(input);
        (price.dearest_input() * count(input) + price.output * count(output)) / 1e6
    }

    fn dearest_input(&self) -> f64 {
        self.input.max(self.cache_write.unwrap_or(self.input))
    }

    /// Returns how many tokens of reply these US dollars pay for, after paying for the input.
    pub fn room(&self, dollars: f64, input: u64) -> u64 {
        let price = self.at(input);
        let left = dollars * 1e6 - price.dearest_input() * count(input);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        match left {
            left if left < 0.0 => 0,
            _ if price.output <= 0.0 => u64::MAX,
            left => (left / price.output) as u64,
        }
    }

    /// Returns what is wrong with the price, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let parts = |price: &Price| [Some(price.input), Some(price.output), price.cached, price.cache_write];
        let long = self.long.map(|long| self.at(long.above.saturating_add(1)));
        let mut all = std::iter::once(*self).chain(long).flat_map(|price| parts(&price)).flatten();
        all.any(|part| !part.is_finite() || part < 0.0)
            .then_some("prices are US dollars for a million tokens, 0 or more")
    }
}

/// Converts a count of tokens to multiply it with a price.
#[allow(clippy::cast_precision_loss)]
pub fn count(tokens: u64) -> f64 {
    tokens as f64
}

/// What the calls of one persona to one model used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// As `provider/model`.
    pub model: String,
    /// The label of the calls: the persona's name, if there is one.
    pub label: String,
    /// How many calls got a reply.
    pub calls: u64,
    pub usage: Usage,
    /// The cost in US dollars; absent if the price of one of the calls is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How much more the calls would have cost without the provider's cache, in US dollars; it may be negative.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub saved: f64,
}

/// Returns the total cost in US dollars, if it is known.
pub fn cost(spent: &[Spent]) -> Option<f64> {
    spent.iter().map(|spent| spent.cost).sum()
}

/// Returns what the provider's cache saved in all, in US dollars; `None` if it saved nothing that can be shown.
pub fn saved(spent: &[Spent]) -> Option<f64> {
    let saved: f64 = spent.iter().map(|spent| spent.saved).sum();
    (saved >= 0.00005).then_some(saved)
}

/// Formats US dollars for people: in cents, with more digits for small amounts.
pub fn dollars(cost: f64) -> String {
    match cost {
        0.0 => "0".to_owned(),
        small if small < 0.0001 => "less than 0.0001".to_owned(),
        small if small < 0.1 => format!("{small:.4}"),
        _ => format!("{cost:.2}"),
    }
}

/// Formats US dollars with their sign, as [`dollars`].
pub fn dollars_with_sign(cost: f64) -> String {
    match dollars(cost).strip_prefix("less than ") {
        Some(least) => format!("less than ${least}"),
        None => format!("${}", dollars(cost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_money_has_its_sign_before_the_number() {
        assert_eq!([0.00002, 0.05, 12.0].map(dollars_with_sign), ["less than $0.0001", "$0.0500", "$12.00"]);
    }

    fn span(text: &str) -> Option<f64> {
        text.parse::<TimeLimit>().ok().map(|span| span.0.as_secs_f64())
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let read = ["90", "90s", "10m", "1h30m", "0.5s"].map(span);
        assert_eq!(read, [90.0, 90.0, 600.0, 5400.0, 0.5].map(Some));
        assert_eq!(["", "0", "ten", "10 m", "-1", "1d", "1e400"].map(span), [None; 7]);
        let shown = ["90", "10m", "1h30m", "0.5s"].map(|text| text.parse::<TimeLimit>().unwrap().to_string());
        assert_eq!(shown, ["1m30s", "10m", "1h30m", "0.5s"]);
    }

    #[test]
    fn the_tighter_limit_holds_and_a_given_one_replaces_it() {
        let user = Budget { calls: Some(10), cost: Some(1.0), ..Budget::default() };
        let flow = Budget { calls: Some(20), cost: Some(0.5), tokens: Some(100), ..Budget::default() };
        let both = user.tightened(flow);
        assert_eq!(both, Budget { calls: Some(10), cost: Some(0.5), tokens: Some(100), time: None });
        assert_eq!(both.replaced(Budget { calls: Some(99), ..Budget::default() }).calls, Some(99));
        assert_eq!(both.to_string(), "10 calls, 100 tokens, 0.50 US dollars");
    }

    #[test]
    fn cached_input_has_a_price_of_its_own() {
        let price = Price { cached: Some(0.5), ..Price::plain(2.0, 8.0) };
        let usage = Usage { input: 1_000_000, output: 500_000, cached: 400_000, ..Usage::default() };
        assert!((price.of(usage) - (1.2 + 0.2 + 4.0)).abs() < 1e-9);
    }

    #[test]
    fn what_is_written_to_a_cache_may_cost_more_and_what_was_saved_may_be_less_than_nothing() {
        let price = Price { cached: Some(0.2), cache_write: Some(2.5), ..Price::plain(2.0, 8.0) };
        let usage = |cached, cache_written| Usage { input: 1_000_000, cached, cache_written, ..Usage::default() };
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} is not {right}");
        close(price.of(usage(500_000, 400_000)), 0.1 + 1.0 + 0.2);
        close(price.saved(usage(500_000, 400_000)), 2.0 - 1.3);
        close(price.saved(usage(0, 1_000_000)), -0.5);
        close(price.most(1_000_000, 1_000_000), 2.5 + 8.0);
        assert_eq!((price.room(2.5, 1_000_000), price.room(2.4, 1_000_000)), (0, 0));
        // A server that says more than can be does not make a call cheaper than nothing.
        close(price.of(usage(u64::MAX, u64::MAX)), 0.2);
        // Without a price of its own, what is written costs what is read for the first time.
        close(Price::plain(2.0, 8.0).of(usage(0, 1_000_000)), 2.0);
    }

    #[test]
    fn long_requests_cost_more_and_leave_less_room() {
        let long = Some(LongPrice { above: 100, input: 4.0, output: 16.0, cached: None, cache_write: None });
        let price = Price { long, ..Price::plain(2.0, 8.0) };
        assert_eq!((price.room(0.001, 100), price.room(0.001, 101)), (100, 37));
        assert_eq!((price.room(0.0001, 100), Price::FREE.room(0.0, 100)), (0, u64::MAX));
    }
}
