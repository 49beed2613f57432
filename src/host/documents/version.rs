//! Compares the version of a document with the versions that its flow knows.

use std::cmp::Ordering;

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, Version, version_at, version_text};
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
    let Some(text) = version_at(value, &version.field) else {
        return Ok(malformed(value, &version.field, &version.current));
    };
    let current = version_text(&version.current);
    if let Some(older) = version.older(value) {
        return Ok(VersionCheck::Known(VersionStatus::Older(older)));
    }
    if text == current {
        return check_own(version, value, file);
    }
    if version.is_foreign(value) {
        return Ok(VersionCheck::Known(VersionStatus::Current));
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

/// Checks the version of the part that the flow adds to a document of today's version.
fn check_own(version: &Version, value: &Value, file: &str) -> Result<VersionCheck> {
    let Some(own) = &version.own else { return Ok(VersionCheck::Known(VersionStatus::Current)) };
    let Some(text) = version_at(value, &own.field) else { return Ok(malformed(value, &own.field, &own.current)) };
    let current = version_text(&own.current);
    match compare(&text, &current) {
        _ if text.is_empty() || text == current => Ok(VersionCheck::Known(VersionStatus::Current)),
        Some(Ordering::Equal) => Ok(VersionCheck::Known(VersionStatus::Current)),
        Some(Ordering::Greater) if version.read_newer => Ok(VersionCheck::Known(VersionStatus::Newer(text))),
        Some(Ordering::Greater) => Err(newer_failure(file, &text, &current)),
        Some(Ordering::Less) | None => {
            let message = format!("{file} has {} \"{}\", which does not exist", own.field, excerpt(&text));
            Err(Failure::new(Code::DocumentVersion, message).hint(format!("known is {current}")))
        }
    }
}

fn malformed(value: &Value, field: &str, current: &Value) -> VersionCheck {
    let found = value.pointer(field).map(Value::to_string).unwrap_or_default();
    let message = format!("must be a version such as {current}; found {}", excerpt(&found));
    VersionCheck::Missing(Violation::new(field, "version", message))
}

/// Returns the version of a document, or of the flow's own part in it, if it is newer than its flow; `None` also if the
/// versions cannot be compared.
pub(super) fn newer_than(collection: &Collection, value: &Value) -> Option<String> {
    let version = collection.version.as_ref()?;
    let own = version.own.as_ref().map(|own| (&own.field, &own.current));
    [(&version.field, &version.current)].into_iter().chain(own).find_map(|(field, current)| {
        let text = version_at(value, field)?;
        (compare(&text, &version_text(current)) == Some(Ordering::Greater)).then_some(text)
    })
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
    use crate::model::collection::OwnVersion;

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

    /// A collection of somebody else's format at version 1.2, to which the flow adds a part of version 2.
    fn with_a_part_of_our_own() -> Collection {
        let mut collection = versioned();
        let version = collection.version.as_mut().unwrap();
        version.migrates = vec!["1.0".to_owned(), "1.2+".to_owned(), "1.2+1".to_owned()];
        let formerly = vec!["/score".to_owned()];
        version.own = Some(OwnVersion { field: "/ours/version".to_owned(), current: json!(2), formerly });
        collection
    }

    #[test]
    fn a_part_of_our_own_has_a_version_beside_the_documents() {
        let collection = with_a_part_of_our_own();
        let judged = |value: Value| check_version(&collection, &value, "f");
        let older = |name: &str| VersionCheck::Known(VersionStatus::Older(name.to_owned()));
        let current = VersionCheck::Known(VersionStatus::Current);
        assert_eq!(judged(json!({"format_version": "1.2", "ours": {"version": 2}})).unwrap(), current);
        // Another program wrote it, by the format alone.
        assert_eq!(judged(json!({"format_version": "1.2"})).unwrap(), current);
        // We wrote it, before our part had a version.
        assert_eq!(judged(json!({"format_version": "1.2", "score": 3})).unwrap(), older("1.2+"));
        assert_eq!(judged(json!({"format_version": "1.2", "ours": {"version": 1}})).unwrap(), older("1.2+1"));
        assert_eq!(judged(json!({"format_version": "1.0", "score": 3})).unwrap(), older("1.0"));
        let newer = json!({"format_version": "1.2", "ours": {"version": 3}});
        assert_eq!(judged(newer.clone()).unwrap_err().code, Code::DocumentVersion);
        assert_eq!(newer_than(&collection, &newer).as_deref(), Some("3"));
        let odd = json!({"format_version": "1.2", "ours": {"version": []}});
        assert!(matches!(judged(odd).unwrap(), VersionCheck::Missing(_)));
    }

    #[test]
    fn a_document_of_another_program_is_no_older_one() {
        let mut collection = versioned();
        let version = collection.version.as_mut().unwrap();
        version.migrates.insert(0, String::new());
        version.formerly = vec!["/score".to_owned()];
        let judged = |value: Value| check_version(&collection, &value, "f").unwrap();
        assert_eq!(judged(json!({"slug": "a"})), VersionCheck::Known(VersionStatus::Current));
        assert_eq!(judged(json!({"score": 3})), VersionCheck::Known(VersionStatus::Older(String::new())));
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
