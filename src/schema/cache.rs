//! Compiled schemas, kept by their content: compiling costs a hundred times what validating does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::check::{Formats, Schema};
use crate::error::Result;
use crate::model::canonical;

/// How many schemas are kept; a run has a handful.
const LIMIT: usize = 256;

type CompiledSchemas = HashMap<(blake3::Hash, Formats), Arc<Schema>>;

/// The compiled schemas of a host.
#[derive(Debug, Default)]
pub struct SchemaCache(Mutex<CompiledSchemas>);

impl SchemaCache {
    /// Returns the compiled form of a schema, compiling it the first time.
    ///
    /// # Errors
    ///
    /// Those of [`Schema::compile_with`].
    pub fn get(&self, schema: &Value, formats: Formats) -> Result<Arc<Schema>> {
        let mut bytes = Vec::new();
        canonical::write(schema, &mut bytes);
        let key = (blake3::hash(&bytes), formats);
        // A panic elsewhere cannot leave a broken entry: only finished ones are inserted.
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let compiled = Arc::new(Schema::compile_with(schema, formats)?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= LIMIT {
            known.clear();
        }
        known.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }
}
