//! Decides how often, for how long and after which waits a call is repeated.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use chrono::{Local, TimeDelta};

use super::attempt_error::{AttemptError, RetryAdvice};
use super::settings::RetryLimits;
use crate::error::{Code, Failure};

/// The longest wait that no provider asked for.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The attempts of one call.
pub(super) struct Attempts<'a> {
    limits: &'a RetryLimits,
    waits: ExponentialBackoff,
    made: u32,
    /// When the first attempt failed. The time before counts as the call's own.
    since: Option<Instant>,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(limits: &'a RetryLimits) -> Attempts<'a> {
        let waits = ExponentialBuilder::default()
            .with_min_delay(limits.base_delay)
            .with_max_delay(LONGEST_WAIT)
            .without_max_times()
            .with_jitter()
            .build();
        Attempts { limits, waits, made: 0, since: None }
    }

    /// Returns the number of the next attempt, counted from 1.
    pub(super) fn next_number(&self) -> u32 {
        self.made + 1
    }

    /// Returns how long to wait before the next attempt, or the failure if this attempt was the last.
    pub(super) fn wait_after(&mut self, error: &AttemptError) -> Result<Duration, Failure> {
        self.made += 1;
        let remaining = self.limits.total.saturating_sub(self.since.get_or_insert_with(Instant::now).elapsed());
        let backoff = self.waits.next().unwrap_or(LONGEST_WAIT);
        let wait = match error.retry {
            RetryAdvice::Never => return Err(error.failure.clone()),
            RetryAdvice::Backoff => backoff,
            RetryAdvice::After(requested) if requested > remaining => return Err(too_long(error, requested)),
            // A little more than requested, so that calls that were refused together do not return together.
            RetryAdvice::After(requested) => requested + backoff.min(requested / 4).min(remaining - requested),
        };
        if self.made >= self.limits.attempts || wait > remaining {
            return Err(self.exhausted_failure(error));
        }
        Ok(wait)
    }

    fn exhausted_failure(&self, error: &AttemptError) -> Failure {
        let mut failure = error.failure.clone();
        if self.made > 1 {
            failure.message.push_str(&format!("; tried {} times", self.made));
        }
        failure
    }
}

/// Returns the failure for a requested wait that is longer than a call may take: a quota, not a moment of high load.
fn too_long(error: &AttemptError, requested: Duration) -> Failure {
    let until = TimeDelta::from_std(requested).ok().and_then(|requested| Local::now().checked_add_signed(requested));
    let failure = Failure::new(
        Code::BudgetUsedUp,
        format!("{}; the quota is used up for {}", error.failure.message, describe_duration(requested)),
    );
    match until {
        // A minute later, since the seconds are not shown.
        Some(until) => failure.hint(format!(
            "resume the run after {}, or name another model",
            (until + TimeDelta::minutes(1)).format("%Y-%m-%d %H:%M")
        )),
        None => failure.hint("name another model"),
    }
}

fn describe_duration(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=119 => format!("{seconds} seconds"),
        120..=7199 => format!("{} minutes", seconds.div_ceil(60)),
        _ => format!("{} hours", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(retry: RetryAdvice) -> AttemptError {
        AttemptError { failure: Failure::new(Code::ModelOverloaded, "busy"), retry, refusal: None }
    }

    fn limits(attempts: u32, total: u64, base_delay: u64) -> RetryLimits {
        let base_delay = Duration::from_millis(base_delay);
        RetryLimits { attempts, total: Duration::from_secs(total), base_delay }
    }

    #[test]
    fn waits_grow_with_jitter_until_the_attempts_are_used_up() {
        let limits = limits(4, 100, 100);
        let mut attempts = Attempts::new(&limits);
        for least in [100, 200, 400] {
            let wait = attempts.wait_after(&error(RetryAdvice::Backoff)).unwrap().as_millis();
            assert!((least..=2 * least).contains(&wait), "{wait} for {least}");
        }
        let last = attempts.wait_after(&error(RetryAdvice::Backoff)).unwrap_err();
        assert_eq!((last.code, last.message.as_str()), (Code::ModelOverloaded, "busy; tried 4 times"));
    }

    #[test]
    fn a_wait_that_the_provider_asks_for_is_kept_to_and_never_shortened() {
        let limits = limits(5, 100, 1);
        let mut attempts = Attempts::new(&limits);
        let wait = attempts.wait_after(&error(RetryAdvice::After(Duration::from_secs(8)))).unwrap();
        assert!((8.0..=8.1).contains(&wait.as_secs_f64()), "{wait:?}");
        assert_eq!(attempts.next_number(), 2);
    }

    #[test]
    fn a_wait_beyond_the_limit_is_a_quota_and_says_when_to_resume() {
        let limits = limits(5, 100, 1);
        let failure =
            Attempts::new(&limits).wait_after(&error(RetryAdvice::After(Duration::from_secs(7200)))).unwrap_err();
        assert_eq!(failure.code, Code::BudgetUsedUp);
        assert!(failure.message.contains("for 2 hours"), "{failure}");
        assert!(failure.hint.unwrap().starts_with("resume the run after 2"));
        let never = TimeDelta::MAX.to_std().unwrap();
        assert_eq!(
            Attempts::new(&limits).wait_after(&error(RetryAdvice::After(never))).unwrap_err().code,
            Code::BudgetUsedUp
        );
    }

    #[test]
    fn what_cannot_get_better_is_not_tried_again() {
        let limits = limits(5, 100, 1);
        assert_eq!(Attempts::new(&limits).wait_after(&error(RetryAdvice::Never)).unwrap_err().message, "busy");
    }
}
