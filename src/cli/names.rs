//! Names of files that a user lets nietz write.

use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;

/// Refuses a name that could not be the name of a flow, a persona or a data file.
pub(super) fn require(name: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() <= 64 && name.chars().all(is_allowed) && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    let failure = Failure::new(Code::Usage, format!("`{}` is not a valid name", excerpt(name)));
    Err(failure.hint("use lower-case letters, digits and hyphens: `second-opinion`"))
}
