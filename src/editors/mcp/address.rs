//! Names and paths as parts of addresses, and why there is nothing at one.

use rmcp::ErrorData;

use crate::error::Failure;
use crate::model::text::{clean, excerpt};

/// Returns a path as an address has it: what is no letter, digit or plain sign is written by its bytes.
pub(super) fn written(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Returns the path that an address means; nothing if it is none.
pub(super) fn read(written: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = written.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                digit()? * 16 + digit()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns a failure as the protocol has it.
pub(super) fn refused(failure: &Failure) -> ErrorData {
    ErrorData::internal_error(format!("[{}] {}", failure.code.name(), clean(&failure.message)), None)
}

/// Returns the failure of an address at which there is nothing.
pub(super) fn missing(address: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("there is nothing at {}", excerpt(address)), None)
}

#[cfg(test)]
mod tests {
    use super::{read, written};

    #[test]
    fn a_path_comes_back_from_its_address() {
        for path in ["a/b-1_c.yaml", "Zürich 100%/x?.md", ".project/notes/ä#1.yaml"] {
            assert!(written(path).bytes().all(|byte| byte.is_ascii_graphic() && !b"?# ".contains(&byte)), "{path}");
            assert_eq!(read(&written(path)).as_deref(), Some(path));
        }
        for wrong in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
