//! The environment as text. Variables that are not UTF-8 are left out, or are an error if nietz itself uses them.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::error::{Code, Failure, Result};
use crate::model::redact::Redactor;
use crate::model::text::line;

/// Returns the variables that are text. Those that say where files of the user or of nietz are must be text: if nietz
/// silently left them out, it would use another folder.
pub(super) fn texts(all: impl IntoIterator<Item = (OsString, OsString)>) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for (name, value) in all {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => drop(texts.insert(name, value)),
            Err(_) if is_used_by_nietz(&name) => {
                let message = format!("the variable {} is not UTF-8", line(&name));
                return Err(Failure::new(Code::ConfigInvalid, message)
                    .hint("unset it, or set it to a path whose name is UTF-8; a link can give a folder such a name"));
            }
            Err(_) => {}
        }
    }
    Ok(texts)
}

/// Returns a redactor that knows the secrets among the variables.
pub(super) fn redactor(variables: &BTreeMap<String, String>) -> Redactor {
    let secrets = variables.iter().filter(|(_, value)| !names_a_file(value));
    Redactor::new(secrets.map(|(name, value)| (name.clone(), value.clone())))
}

/// Tells whether a value is the path of an existing file, and therefore not a secret itself.
fn names_a_file(value: &str) -> bool {
    value.starts_with('/') && std::path::Path::new(value).exists()
}

fn is_used_by_nietz(name: &str) -> bool {
    matches!(name, "HOME" | "PATH") || ["NIETZ_", "XDG_"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn what_is_no_text_is_left_out_or_told() {
        let odd = || OsString::from_vec(b"/t\xff".to_vec());
        let plain = || (OsString::from("LANG"), OsString::from("C"));
        let all = texts([plain(), ("ODD".into(), odd()), (odd(), "x".into())]).expect("nobody needs them");
        assert_eq!(all.into_iter().collect::<Vec<_>>(), [("LANG".to_owned(), "C".to_owned())]);
        for name in ["HOME", "PATH", "NIETZ_HOME", "XDG_DATA_HOME"] {
            let failure = texts([plain(), (name.into(), odd())]).expect_err("nietz goes by it");
            assert!(failure.message.contains(name), "{failure}");
        }
    }
}
