//! Budgets of runs, prices, and what runs used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::chat::Usage;

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
}

impl Price {
    /// The price of models that cost nothing.
    pub const FREE: Price = Price { input: 0.0, output: 0.0, cached: None, long: None };

    /// Returns the price of a call with this many input tokens.
    fn at(&self, input: u64) -> Price {
        match self.long.filter(|long| input > long.above) {
            Some(LongPrice { input, output, cached, .. }) => Price { input, output, cached, long: None },
            None => *self,
        }
    }

    /// Returns the cost of one call, in US dollars.
    ///
    /// ```
    /// use nietz::model::budget::Price;
    /// use nietz::model::chat::Usage;
    ///
    /// let price = Price { input: 2.0, output: 10.0, cached: Some(0.2), long: None };
    /// let usage = Usage { input: 1_000_000, output: 100_000, cached: 500_000, ..Usage::default() };
    /// assert_eq!(price.of(usage), 1.0 + 0.1 + 1.0);
    /// ```
    pub fn of(&self, usage: Usage) -> f64 {
        let price = self.at(usage.input);
        let cached = usage.cached.min(usage.input);
        (price.input * count(usage.input - cached)
            + price.cached.unwrap_or(price.input) * count(cached)
            + price.output * count(usage.output))
            / 1e6
    }

    /// Returns how many tokens of reply these US dollars pay for, after paying for the input.
    pub fn room(&self, dollars: f64, input: u64) -> u64 {
        let price = self.at(input);
        let left = dollars * 1e6 - price.input * count(input);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        match left {
            left if left < 0.0 => 0,
            _ if price.output <= 0.0 => u64::MAX,
            left => (left / price.output) as u64,
        }
    }

    /// Returns what is wrong with the price, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let long = self.long.iter().flat_map(|long| [Some(long.input), Some(long.output), long.cached]);
        let mut all = [Some(self.input), Some(self.output), self.cached].into_iter().chain(long).flatten();
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
}

/// Returns the total cost in US dollars, if it is known.
pub fn cost(spent: &[Spent]) -> Option<f64> {
    spent.iter().map(|spent| spent.cost).sum()
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let price = Price { input: 2.0, output: 8.0, cached: Some(0.5), long: None };
        let usage = Usage { input: 1_000_000, output: 500_000, cached: 400_000, ..Usage::default() };
        assert!((price.of(usage) - (1.2 + 0.2 + 4.0)).abs() < 1e-9);
    }

    #[test]
    fn long_requests_cost_more_and_leave_less_room() {
        let long = Some(LongPrice { above: 100, input: 4.0, output: 16.0, cached: None });
        let price = Price { input: 2.0, output: 8.0, cached: None, long };
        assert_eq!((price.room(0.001, 100), price.room(0.001, 101)), (100, 37));
        assert_eq!((price.room(0.0001, 100), Price::FREE.room(0.0, 100)), (0, u64::MAX));
    }
}
