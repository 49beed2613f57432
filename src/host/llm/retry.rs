//! How often, how long and at what distance a call is tried again.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use chrono::{Local, TimeDelta};

use super::attempt_error::{AttemptError, RetryAdvice};
use super::settings::RetryLimits;
use crate::error::{Code, Failure};

/// The longest wait of our own choice.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The attempts of one call.
pub(super) struct Attempts<'a> {
    limits: &'a RetryLimits,
    waits: ExponentialBackoff,
    made: u32,
    /// When the first fault came. The time before it was the call's own.
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

    /// Returns the number of the attempt that comes next, from 1.
    pub(super) fn next_number(&self) -> u32 {
        self.made + 1
    }

    /// Decides about a fault: how long to wait before the next attempt, or that this was the last one.
    pub(super) fn wait_after(&mut self, fault: &AttemptError) -> Result<Duration, Failure> {
        self.made += 1;
        let left = self.limits.total.saturating_sub(self.since.get_or_insert_with(Instant::now).elapsed());
        let own = self.waits.next().unwrap_or(LONGEST_WAIT);
        let wait = match fault.retry {
            RetryAdvice::Never => return Err(fault.failure.clone()),
            RetryAdvice::Backoff => own,
            RetryAdvice::After(asked) if asked > left => return Err(too_long(fault, asked)),
            // A little of our own, so that calls that were refused together do not come back together.
            RetryAdvice::After(asked) => asked + own.min(asked / 4).min(left - asked),
        };
        if self.made >= self.limits.attempts || wait > left {
            return Err(self.exhausted_failure(fault));
        }
        Ok(wait)
    }

    fn exhausted_failure(&self, fault: &AttemptError) -> Failure {
        let mut failure = fault.failure.clone();
        if self.made > 1 {
            failure.message.push_str(&format!("; tried {} times", self.made));
        }
        failure
    }
}

/// The provider wants us to wait longer than a call may take: a quota, not a moment of much load.
fn too_long(fault: &AttemptError, asked: Duration) -> Failure {
    let until = TimeDelta::from_std(asked).ok().and_then(|asked| Local::now().checked_add_signed(asked));
    let failure = Failure::new(
        Code::BudgetUsedUp,
        format!("{}; the quota is used up for {}", fault.failure.message, describe_duration(asked)),
    );
    match until {
        // A minute more, as the seconds are not shown.
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

    fn fault(again: RetryAdvice) -> AttemptError {
        AttemptError { failure: Failure::new(Code::ModelOverloaded, "busy"), retry: again, refusal: None }
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
            let wait = attempts.wait_after(&fault(RetryAdvice::Backoff)).unwrap().as_millis();
            assert!((least..=2 * least).contains(&wait), "{wait} for {least}");
        }
        let last = attempts.wait_after(&fault(RetryAdvice::Backoff)).unwrap_err();
        assert_eq!((last.code, last.message.as_str()), (Code::ModelOverloaded, "busy; tried 4 times"));
    }

    #[test]
    fn a_wait_that_the_provider_asks_for_is_kept_to_and_never_shortened() {
        let limits = limits(5, 100, 1);
        let mut attempts = Attempts::new(&limits);
        let wait = attempts.wait_after(&fault(RetryAdvice::After(Duration::from_secs(8)))).unwrap();
        assert!((8.0..=8.1).contains(&wait.as_secs_f64()), "{wait:?}");
        assert_eq!(attempts.next_number(), 2);
    }

    #[test]
    fn a_wait_beyond_the_limit_is_a_quota_and_says_when_to_resume() {
        let limits = limits(5, 100, 1);
        let failure =
            Attempts::new(&limits).wait_after(&fault(RetryAdvice::After(Duration::from_secs(7200)))).unwrap_err();
        assert_eq!(failure.code, Code::BudgetUsedUp);
        assert!(failure.message.contains("for 2 hours"), "{failure}");
        assert!(failure.hint.unwrap().starts_with("resume the run after 2"));
        let never = TimeDelta::MAX.to_std().unwrap();
        assert_eq!(
            Attempts::new(&limits).wait_after(&fault(RetryAdvice::After(never))).unwrap_err().code,
            Code::BudgetUsedUp
        );
    }

    #[test]
    fn what_cannot_get_better_is_not_tried_again() {
        let limits = limits(5, 100, 1);
        assert_eq!(Attempts::new(&limits).wait_after(&fault(RetryAdvice::Never)).unwrap_err().message, "busy");
    }
}
