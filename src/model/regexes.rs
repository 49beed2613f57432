//! Compiles regular expressions and caches them within a memory limit.

use std::collections::VecDeque;

use regex::{Regex, RegexBuilder};

/// The memory limits of a regular expression, in bytes: for its compiled form, and for each of the two lazy DFAs that it
/// builds while it searches.
struct SizeClass {
    compiled: usize,
    machine: usize,
}

/// Most expressions fit into the first size; those larger than the last one are refused.
const SIZES: [SizeClass; 4] = [
    SizeClass { compiled: 16 << 10, machine: 128 << 10 },
    SizeClass { compiled: 64 << 10, machine: 192 << 10 },
    SizeClass { compiled: 160 << 10, machine: 384 << 10 },
    SizeClass { compiled: 1 << 20, machine: 1 << 20 },
];

/// How much memory the cached expressions may take, in bytes.
const ROOM: usize = 96 << 20;

/// The largest product of a text's length and a regular expression's size for which a search begins, both in bytes.
const WORK: usize = 640 << 30;

/// A compiled regular expression with its size.
#[derive(Clone)]
pub struct CompiledRegex {
    pub regex: Regex,
    /// The index of its size in [`SIZES`].
    size: usize,
}

impl CompiledRegex {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// Says why the pattern is invalid or too large.
    pub fn new(pattern: &str) -> Result<CompiledRegex, String> {
        let mut why = String::new();
        for (size, SizeClass { compiled, machine }) in SIZES.iter().enumerate() {
            match RegexBuilder::new(pattern).size_limit(*compiled).dfa_size_limit(*machine).build() {
                Ok(regex) => return Ok(CompiledRegex { regex, size }),
                Err(error @ regex::Error::CompiledTooBig(_)) => why = error.to_string(),
                Err(error) => {
                    let message = error.to_string();
                    return Err(message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned());
                }
            }
        }
        Err(why)
    }

    fn takes(&self) -> usize {
        let SizeClass { compiled, machine } = SIZES[self.size];
        compiled + 2 * machine
    }

    /// Tells whether searching a text of this many bytes could take too long: the time grows with the length of the text times
    /// the size of the expression.
    pub fn is_too_large_for(&self, text: usize) -> bool {
        text.saturating_mul(SIZES[self.size].compiled) > WORK
    }
}

/// The expressions that were used last.
#[derive(Default)]
pub struct RegexCache {
    /// The patterns with their expressions, the last used at the end.
    known: VecDeque<(String, CompiledRegex)>,
    taken: usize,
}

impl RegexCache {
    /// Returns the compiled expression of a pattern.
    ///
    /// # Errors
    ///
    /// As [`CompiledRegex::new`].
    pub fn get(&mut self, pattern: &str) -> Result<CompiledRegex, String> {
        // Searches from the end, where frequently used expressions are.
        if let Some(at) = self.known.iter().rposition(|(known, _)| known == pattern) {
            let found = self.known.remove(at).expect("it was found there");
            let compiled = found.1.clone();
            self.known.push_back(found);
            return Ok(compiled);
        }
        let compiled = CompiledRegex::new(pattern)?;
        self.taken += compiled.takes() + pattern.len();
        self.known.push_back((pattern.to_owned(), compiled.clone()));
        while self.taken > ROOM {
            let Some((pattern, dropped)) = self.known.pop_front() else { break };
            self.taken -= dropped.takes() + pattern.len();
        }
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::{ROOM, RegexCache};

    #[test]
    fn many_large_ones_take_no_more_than_their_room_and_the_last_one_stays() {
        let mut cache = RegexCache::default();
        cache.get("a+").expect("it is one");
        for count in 0..500 {
            cache.get("a+").expect("it is known");
            cache.get(&format!("[a-z]*y[ab]{{{}}}[cd]", 9000 + count)).expect("it is one");
            assert!(cache.taken <= ROOM);
        }
        assert!(cache.known.len() < 160 && cache.known.iter().any(|(known, _)| known == "a+"));
    }

    #[test]
    fn what_counts_far_is_not_searched_for_in_a_long_text() {
        let mut cache = RegexCache::default();
        assert!(cache.get("[ab]*a[ab]{9000}[cd]").expect("it is one").is_too_large_for(3_600_000));
        for honest in ["error|warning", r"(\w+)@(\w+)\.\w+", r"\d{4}-\d{2}-\d{2}", "[ab]{20}"] {
            assert!(!cache.get(honest).expect("it is one").is_too_large_for(4 << 20), "{honest}");
        }
    }
}
