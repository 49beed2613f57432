//! Compiled regular expressions, kept as long as there is room for all of them.

use std::collections::VecDeque;

use regex::{Regex, RegexBuilder};

/// What a regular expression of one size may take: compiled, for each of the two machines that it makes while it
/// searches, and so altogether, in bytes.
struct SizeClass {
    compiled: usize,
    machine: usize,
}

/// Most are of the first size; what is larger than the last one is refused.
const SIZES: [SizeClass; 4] = [
    SizeClass { compiled: 16 << 10, machine: 128 << 10 },
    SizeClass { compiled: 64 << 10, machine: 192 << 10 },
    SizeClass { compiled: 160 << 10, machine: 384 << 10 },
    SizeClass { compiled: 1 << 20, machine: 1 << 20 },
];

/// What all that are kept may take, in bytes.
const ROOM: usize = 96 << 20;

/// The largest product of a text's length and a regular expression's size for which a search begins, both in bytes.
const WORK: usize = 640 << 30;

/// One that is ready to be used.
#[derive(Clone)]
pub struct CompiledRegex {
    pub regex: Regex,
    /// Its place in [`SIZES`].
    size: usize,
}

impl CompiledRegex {
    /// Compiles a pattern, or says why it is none.
    pub fn new(pattern: &str) -> Result<CompiledRegex, String> {
        let mut why = String::new();
        for (size, SizeClass { compiled, machine }) in SIZES.iter().enumerate() {
            match RegexBuilder::new(pattern).size_limit(*compiled).dfa_size_limit(*machine).build() {
                Ok(regex) => return Ok(CompiledRegex { regex, size }),
                Err(error @ regex::Error::CompiledTooBig(_)) => why = error.to_string(),
                Err(error) => {
                    let said = error.to_string();
                    return Err(said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned());
                }
            }
        }
        Err(why)
    }

    fn takes(&self) -> usize {
        let SizeClass { compiled, machine } = SIZES[self.size];
        compiled + 2 * machine
    }

    /// Tells whether a text is so long that going through it could take very long: each sign of it can meet each state
    /// of the expression.
    pub fn is_too_large_for(&self, text: usize) -> bool {
        text.saturating_mul(SIZES[self.size].compiled) > WORK
    }
}

/// Those that were used last.
#[derive(Default)]
pub struct RegexCache {
    /// By their text, the one that was used last at the end.
    known: VecDeque<(String, CompiledRegex)>,
    taken: usize,
}

impl RegexCache {
    /// Returns the regular expression of a text, or why it is none.
    pub fn get(&mut self, pattern: &str) -> Result<CompiledRegex, String> {
        // Those that are used again and again stand at the end.
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
            let Some((pattern, gone)) = self.known.pop_front() else { break };
            self.taken -= gone.takes() + pattern.len();
        }
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::{ROOM, RegexCache};

    #[test]
    fn many_large_ones_take_no_more_than_their_room_and_the_last_one_stays() {
        let mut kept = RegexCache::default();
        kept.get("a+").expect("it is one");
        for count in 0..500 {
            kept.get("a+").expect("it is known");
            kept.get(&format!("[a-z]*y[ab]{{{}}}[cd]", 9000 + count)).expect("it is one");
            assert!(kept.taken <= ROOM);
        }
        assert!(kept.known.len() < 160 && kept.known.iter().any(|(known, _)| known == "a+"));
    }

    #[test]
    fn what_counts_far_is_not_searched_for_in_a_long_text() {
        let mut kept = RegexCache::default();
        assert!(kept.get("[ab]*a[ab]{9000}[cd]").expect("it is one").is_too_large_for(3_600_000));
        for honest in ["error|warning", r"(\w+)@(\w+)\.\w+", r"\d{4}-\d{2}-\d{2}", "[ab]{20}"] {
            assert!(!kept.get(honest).expect("it is one").is_too_large_for(4 << 20), "{honest}");
        }
    }
}
