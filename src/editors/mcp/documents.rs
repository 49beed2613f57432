//! The documents of flows, and the schemas that they are held to.

use std::path::Path;

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::address::refused;
use super::{Shared, address};
use crate::editors::collections::OfferedCollection;
use crate::editors::offer::Offer;
use crate::error::Result;
use crate::model::text::{clean, excerpt};

pub(super) const DOCUMENTS: &str = "nietz://documents/";
pub(super) const SCHEMAS: &str = "nietz://schemas/";
/// The media type of a schema.
const SCHEMA: &str = "application/schema+json";
/// The most documents of one collection that are listed.
const MOST: usize = 50;

/// Returns the first documents of each collection by their paths, and the schemas of those that have any.
///
/// # Errors
///
/// Those of a folder that cannot be listed.
pub(super) fn list(shared: &Shared) -> Result<Vec<Resource>> {
    let mut all = Vec::new();
    for (offer, own) in collections(shared) {
        let paths = shared.documents.paths(&own.collection())?;
        if paths.is_empty() {
            continue;
        }
        let schema = schema_of(offer, own);
        let what = format!("{} of {}", own.name, offer.flow);
        let about = format!("The JSON Schema of {what}, which stand at {}", own.path);
        all.push(Resource::new(&schema, clean(&what)).with_description(clean(&about)).with_mime_type(SCHEMA));
        for path in paths.iter().take(MOST) {
            let uri = format!("{DOCUMENTS}{}/{}/{}", address::written(&offer.name), own.name, address::written(path));
            let about = format!("One of {what}; its schema is {schema}");
            all.push(Resource::new(uri, clean(path)).with_description(clean(&about)).with_mime_type(own.media_type()));
        }
    }
    Ok(all)
}

/// Returns how all of them are addressed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let document = ResourceTemplate::new(format!("{DOCUMENTS}{{flow}}/{{collection}}/{{+path}}"), "document");
    let schema = ResourceTemplate::new(format!("{SCHEMAS}{{flow}}/{{collection}}"), "schema");
    vec![
        document.with_description("A document of a flow's, by its path below the workspace"),
        schema.with_description("The JSON Schema of a collection's documents").with_mime_type(SCHEMA),
    ]
}

/// Reads a document, `FLOW/COLLECTION/PATH`.
pub(super) fn read(shared: &Shared, rest: &str, uri: &str) -> std::result::Result<ReadResourceResult, ErrorData> {
    let missing = || address::missing(uri);
    let (flow, rest) = rest.split_once('/').ok_or_else(missing)?;
    let (name, path) = rest.split_once('/').ok_or_else(missing)?;
    let own = find(shared, flow, name).ok_or_else(missing)?;
    let path = address::read(path).ok_or_else(missing)?;
    let collection = own.collection();
    // Only a path of the collection's own pattern is one of its documents.
    let key = shared.documents.match_path(&collection, Path::new(&path)).ok_or_else(missing)?;
    let text = shared.documents.text(&collection, &key).map_err(|failure| refused(&failure))?.ok_or_else(missing)?;
    let text = shared.redactor.text(&text).into_owned();
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(own.media_type())]))
}

/// Reads a schema, `FLOW/COLLECTION`.
pub(super) fn schema(shared: &Shared, rest: &str, uri: &str) -> std::result::Result<ReadResourceResult, ErrorData> {
    let found = rest.split_once('/').and_then(|(flow, name)| find(shared, flow, name));
    let own = found.ok_or_else(|| address::missing(uri))?;
    let text = serde_json::to_string_pretty(&own.schema).map_err(|error| {
        ErrorData::internal_error(format!("the schema of {} is none: {}", own.name, excerpt(&error.to_string())), None)
    })?;
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(SCHEMA)]))
}

fn collections(shared: &Shared) -> impl Iterator<Item = (&Offer, &OfferedCollection)> {
    shared.offers.iter().flat_map(|offer| offer.collections.iter().map(move |own| (offer, own)))
}

fn find<'s>(shared: &'s Shared, flow: &str, name: &str) -> Option<&'s OfferedCollection> {
    let flow = address::read(flow)?;
    collections(shared).find(|(offer, own)| offer.name == flow && own.name == name).map(|(_, own)| own)
}

fn schema_of(offer: &Offer, own: &OfferedCollection) -> String {
    format!("{SCHEMAS}{}/{}", address::written(&offer.name), own.name)
}
