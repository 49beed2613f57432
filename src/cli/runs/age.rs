//! Times as people write them: how long ago, or a day.

use crate::run::machine::iso;

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// A moment in the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// So many seconds ago.
    Ago(u64),
    /// The beginning of a day, or a time: ISO 8601, UTC.
    At(String),
}

impl Moment {
    /// Returns it as ISO 8601, for a clock in milliseconds since 1970.
    pub(super) fn iso(&self, now: u64) -> String {
        match self {
            Moment::Ago(seconds) => iso(now.saturating_sub(seconds.saturating_mul(1000))),
            Moment::At(time) => time.clone(),
        }
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let wrong = || "a time is written like 12h, 30d, 4w, or as a day: 2026-11-01".to_owned();
        let is_day = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok() && text.len() == 10;
        let is_time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%SZ").is_ok() && text.len() == 20;
        if is_day || is_time {
            return Ok(Moment::At(text.to_owned()));
        }
        let (count, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
        let seconds = match unit {
            "m" => 60,
            "h" => 60 * 60,
            "d" => DAY,
            "w" => 7 * DAY,
            _ => return Err(wrong()),
        };
        let count: u64 = count.parse().map_err(|_| wrong())?;
        count.checked_mul(seconds).map(Moment::Ago).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = 1_767_954_600_000; // 2026-01-09T10:30:00Z
        for (text, expected) in [
            ("30m", Some("2026-01-09T10:00:00Z")),
            ("12h", Some("2026-01-08T22:30:00Z")),
            ("30d", Some("2025-12-10T10:30:00Z")),
            ("1w", Some("2026-01-02T10:30:00Z")),
            ("2026-01-05", Some("2026-01-05")),
            ("2026-01-05T12:00:00Z", Some("2026-01-05T12:00:00Z")),
            ("2026-1-5", None),
            ("5", None),
            ("d", None),
            ("", None),
            ("-3d", None),
            ("3é", None),
            ("99999999999999999999d", None),
        ] {
            let read = text.parse::<Moment>().ok().map(|moment| moment.iso(now));
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
