//! Digests of 128 bits of BLAKE3, which identify texts, lists, effects and lines by their content.

/// A digest; written as 32 hex digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 16]);

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest::first_half(&blake3::hash(bytes))
    }

    /// Returns the digest of a value's JSON.
    pub fn of_json(value: &impl serde::Serialize) -> Digest {
        Digest::of(&serde_json::to_vec(value).expect("what is digested is plain data with text keys"))
    }

    /// Returns the digest of a hasher's input so far.
    pub fn so_far(hasher: &blake3::Hasher) -> Digest {
        Digest::first_half(&hasher.finalize())
    }

    fn first_half(hash: &blake3::Hash) -> Digest {
        let mut half = [0; 16];
        half.copy_from_slice(&hash.as_bytes()[..16]);
        Digest(half)
    }

    /// Parses 32 hex digits. Only lower-case digits are valid, so that each digest has one written form.
    pub fn parse(hex: &str) -> Option<Digest> {
        let mut bytes = [0; 16];
        if hex.len() != 32 {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let digit = |digit: u8| match digit {
                b'0'..=b'9' => Some(digit - b'0'),
                b'a'..=b'f' => Some(digit - b'a' + 10),
                _ => None,
            };
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        Some(Digest(bytes))
    }

    /// Returns the first 64 bits as a number.
    pub fn as_u64(self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(first)
    }

    /// Returns the bytes, to make randomness, ids or other digests from them.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 32];
        for (byte, digits) in self.0.iter().zip(hex.chunks_mut(2)) {
            digits[0] = DIGITS[usize::from(byte >> 4)];
            digits[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(str::from_utf8(&hex).expect("hex digits are ASCII"))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_back_from_its_digits_alone() {
        let digest = Digest::of(b"a");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse(&digest.to_string()[1..]), None);
        assert_eq!(Digest::parse(&digest.to_string().to_uppercase()), None);
        assert_eq!(Digest::parse("zz000000000000000000000000000000"), None);
    }
}
