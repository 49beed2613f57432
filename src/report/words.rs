//! The words of a report's frame, in the language of its run.

use serde_json::Value;

use crate::error::Result;
use crate::model::collection::Format;
use crate::schema::source;

const ENGLISH: &str = include_str!("words/en.yaml");
const FRENCH: &str = include_str!("words/fr.yaml");

/// Returns the words of a language; English for one that has none.
///
/// # Errors
///
/// `yaml-invalid` where a file of the program is broken, which a test excludes.
pub(crate) fn of(lang: &str) -> Result<Value> {
    let (source, name) = if lang.starts_with("fr") { (FRENCH, "fr.yaml") } else { (ENGLISH, "en.yaml") };
    source::parse(source, Format::Yaml, name)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn both_languages_have_the_same_words() {
        let names = |lang| of(lang).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names("en"), names("fr"));
    }
}
