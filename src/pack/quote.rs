//! Quote collections: YAML files of quotes with philosopher, context and source.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Failure, Result};
use crate::model::collection::Format;
use crate::pack::tree::PackTree;

/// One quote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quote {
    pub text: String,
    pub philosopher: String,
    pub context: String,
    pub source: String,
    #[serde(default = "english")]
    pub lang: String,
    #[serde(default)]
    pub collection: String,
}

fn english() -> String {
    "en".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuoteFile {
    #[serde(default)]
    #[allow(dead_code)]
    about: String,
    quotes: Vec<Quote>,
}

/// Reads the quotes of one file.
///
/// # Errors
///
/// `document-unreadable` if the text is no YAML; `document-invalid` if it does not hold quotes.
pub(crate) fn parse(text: &str, display: &str) -> Result<Vec<Quote>> {
    let value = crate::schema::source::parse(text, Format::Yaml, display)?;
    let file: QuoteFile = serde_json::from_value(value)
        .map_err(|error| Failure::new(Code::DocumentInvalid, format!("{display}: {error}")))?;
    Ok(file.quotes)
}

/// Returns the quotes of all trees in the order of their files; a collection of an earlier tree hides later
/// ones of the same name.
///
/// # Errors
///
/// Those of [`PackTree::text`] and [`parse`].
pub(crate) fn all(trees: &[PackTree]) -> Result<Vec<Quote>> {
    let mut seen = std::collections::BTreeSet::new();
    let mut quotes = Vec::new();
    for tree in trees {
        for path in tree.list("quotes", ".yaml") {
            let file = path.rsplit('/').next().unwrap_or(&path);
            let collection = file.strip_suffix(".yaml").unwrap_or(file).to_owned();
            if !seen.insert(collection.clone()) {
                continue;
            }
            let text = tree.text(&path)?.unwrap_or_default();
            let display = tree.display(&path);
            quotes.extend(
                parse(&text, &display)?.into_iter().map(|quote| Quote { collection: collection.clone(), ..quote }),
            );
        }
    }
    Ok(quotes)
}
