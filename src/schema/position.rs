//! A place in a text.

use serde::Serialize;

/// A line and a column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TextPosition {
    pub line: usize,
    pub column: usize,
}
