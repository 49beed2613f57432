//! Compares the version of a document with the versions that its flow knows.

use std::cmp::Ordering;

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, Version};
use crate::model::document::VersionStatus;
use crate::model::text::excerpt;
use crate::schema::Violation;

/// What a document's version means.
#[derive(Debug, PartialEq)]
pub(super) enum VersionCheck {
    Known(VersionStatus),
    /// The version is missing or malformed, so the document is invalid, for this reason.
    Missing(Violation),
}

/// Checks the version of a document. Fails with `document-version` if the flow cannot read this version.
pub(super) fn check_version(collection: &Collection, value: &Value, file: &str) -> Result<VersionCheck> {
    let Some(version) = &collection.version else { return Ok(VersionCheck::Known(VersionStatus::Current)) };
    let text = match value.pointer(&version.field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => {
            let message =
                format!("must be a version such as {}; found {}", version.current, excerpt(&other.to_string()));
            return Ok(VersionCheck::Missing(Violation::new(version.field.as_str(), "version", message)));
        }
    };
    let current = version_text(&version.current);
    if text == current {
        return Ok(VersionCheck::Known(VersionStatus::Current));
    }
    if version.migrates.contains(&text) {
        return Ok(VersionCheck::Known(VersionStatus::Older(text)));
    }
    if text.is_empty() {
        let (parent, name) = version.field.rsplit_once('/').unwrap_or(("", &version.field));
        let message = format!("is missing its version \"{}\"", excerpt(name));
        return Ok(VersionCheck::Missing(Violation::new(parent, "version", message)));
    }
    match compare(&text, &current) {
        Some(Ordering::Equal) => Ok(VersionCheck::Known(VersionStatus::Current)),
        Some(Ordering::Greater) if version.read_newer => Ok(VersionCheck::Known(VersionStatus::Newer(text))),
        Some(Ordering::Greater) => Err(newer_failure(file, &text, &current)),
        Some(Ordering::Less) | None => Err(unknown(file, &text, &current, version)),
    }
}

/// Returns the version of a document if it is newer than its flow; `None` also if the versions cannot be compared.
pub(super) fn newer_than(collection: &Collection, value: &Value) -> Option<String> {
    let version = collection.version.as_ref()?;
    let text = match value.pointer(&version.field)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (compare(&text, &version_text(&version.current)) == Some(Ordering::Greater)).then_some(text)
}

pub(super) fn newer_failure(file: &str, found: &str, current: &str) -> Failure {
    let message =
        format!("{file} has the version {}, newer than {}, the newest known here", excerpt(found), excerpt(current));
    Failure::new(Code::DocumentVersion, message)
        .hint("update the flow, or work with the newer tool that wrote the file")
}

fn unknown(file: &str, found: &str, current: &str, version: &Version) -> Failure {
    let mut known: Vec<String> =
        version.migrates.iter().filter(|known| !known.is_empty()).map(|known| excerpt(known)).collect();
    known.push(excerpt(current));
    let message = format!("{file} has the version \"{}\", which does not exist", excerpt(found));
    Failure::new(Code::DocumentVersion, message).hint(format!("the known versions are: {}", known.join(", ")))
}

/// Returns a version as text: `1.2` for `"1.2"`, `1` for `1`.
pub(super) fn version_text(version: &Value) -> String {
    version.as_str().map_or_else(|| version.to_string(), str::to_owned)
}

/// Compares two dotted numbers: `1.10` is after `1.9`, `1` equals `1.0`. Returns `None` if either is no dotted number.
fn compare(a: &str, b: &str) -> Option<Ordering> {
    let (mut a, mut b) = (numbers(a)?, numbers(b)?);
    let longest = a.len().max(b.len());
    a.resize(longest, 0);
    b.resize(longest, 0);
    Some(a.cmp(&b))
}

fn numbers(version: &str) -> Option<Vec<u64>> {
    version
        .split('.')
        .map(|part| part.parse().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit())))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::versioned;
    use super::*;

    fn judged(version: Value) -> Result<VersionCheck> {
        check_version(&versioned(), &json!({"format_version": version, "slug": "a"}), "f")
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        assert_eq!(judged(json!("1.2")).unwrap(), VersionCheck::Known(VersionStatus::Current));
        assert_eq!(judged(json!(1.2)).unwrap(), VersionCheck::Known(VersionStatus::Current));
        assert_eq!(judged(json!("1.0")).unwrap(), VersionCheck::Known(VersionStatus::Older("1.0".to_owned())));
        assert_eq!(judged(json!("1.10")).unwrap_err().code, Code::DocumentVersion);
        assert_eq!(judged(json!("2")).unwrap_err().code, Code::DocumentVersion);
        assert!(matches!(judged(json!(null)).unwrap(), VersionCheck::Missing(_)));
        assert!(matches!(judged(json!([])).unwrap(), VersionCheck::Missing(_)));
    }

    #[test]
    fn a_version_that_never_was_is_refused_by_name() {
        for version in ["1.1", "0.9", "draft", "1.x", "1..2", "+2"] {
            let failure = judged(json!(version)).unwrap_err();
            assert_eq!(failure.code, Code::DocumentVersion);
            assert!(failure.message.contains(&format!("\"{version}\"")), "{failure}");
            assert_eq!(failure.hint.as_deref(), Some("the known versions are: 1.0, 1.2"));
        }
    }

    #[test]
    fn newer_ones_are_read_where_the_flow_says_so() {
        let mut collection = versioned();
        collection.version.as_mut().unwrap().read_newer = true;
        let value = json!({"format_version": "1.3"});
        let newer = VersionCheck::Known(VersionStatus::Newer("1.3".to_owned()));
        assert_eq!(check_version(&collection, &value, "f").unwrap(), newer);
        assert_eq!(newer_than(&collection, &value).as_deref(), Some("1.3"));
    }
}
