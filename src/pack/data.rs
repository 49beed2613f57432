//! Folders of a flow whose files it reads all, so that a project can add files of its own: techniques, biases, languages.
//!
//! What each file must be is told where the flow reads the folder: by a schema, or by another file that it must be like.

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::model::collection::Format;
use crate::pack::data_folder::{DataFolder, ENDING};
use crate::pack::tree::PackTree;
use crate::schema::report::{self, LocatedViolation, Severity};
use crate::schema::{Schema, Violation, source};

/// A file of such a folder.
pub(crate) struct DataFile {
    /// The name of the file without its ending.
    pub name: String,
    /// The path by which a person finds it.
    pub file: String,
    pub value: Value,
    /// What breaks the schema, or cannot be read at all.
    pub violations: Vec<LocatedViolation>,
    /// The pointers of the members that the file it must be like has, and it has not.
    pub lacks: Vec<String>,
}

impl DataFolder {
    /// Returns the paths of the folder's files, sorted: the flow's own, and those that a project has in place of them or
    /// beside them.
    pub(crate) fn files(&self, tree: &PackTree) -> Vec<String> {
        let top = self.path.split('/').next().unwrap_or_default();
        tree.list(top, ENDING).into_iter().filter(|path| self.has(path)).collect()
    }

    /// Reads all of the files, sorted by their paths.
    ///
    /// # Errors
    ///
    /// `module-not-found` if a file that the rule names is not there, and those of [`PackTree::text`] and
    /// [`Schema::compile`].
    pub(crate) fn read(&self, tree: &PackTree) -> Result<Vec<DataFile>> {
        let rule = self.compiled(tree)?;
        self.files(tree).iter().map(|path| self.read_file(tree, path, &rule)).collect()
    }

    /// Returns everything that is wrong with one of the files.
    ///
    /// # Errors
    ///
    /// Those of [`DataFolder::read`].
    pub(crate) fn faults(&self, tree: &PackTree, path: &str) -> Result<Vec<LocatedViolation>> {
        let read = self.read_file(tree, path, &self.compiled(tree)?)?;
        let like = self.like.as_deref().and_then(|like| self.name(like)).unwrap_or_default();
        let told = |pointer: &String| {
            // What is missing has no place but that of what it is missing in.
            let within = pointer.rsplit_once('/').map_or("", |(within, _)| within);
            Violation::new(within, "lacks", format!("lacks {pointer}, which {like}{ENDING} has"))
        };
        let lacks = read.lacks.iter().map(told).collect();
        let text = text(tree, path)?;
        let mut all = read.violations;
        all.extend(report::locate(lacks, Severity::Error, &text, Format::Yaml, &tree.display(path)));
        Ok(all)
    }

    fn read_file(&self, tree: &PackTree, path: &str, rule: &CompiledRule) -> Result<DataFile> {
        let (text, file) = (text(tree, path)?, tree.display(path));
        let name = self.name(path).unwrap_or(path).to_owned();
        let value = match source::read(&text, Format::Yaml) {
            Ok(value) => value,
            Err((place, reason)) => {
                let violations = vec![LocatedViolation::unreadable(&file, place, reason)];
                return Ok(DataFile { name, file, value: Value::Null, violations, lacks: Vec::new() });
            }
        };
        let found = rule.schema.as_ref().map(|schema| schema.violations(&value)).unwrap_or_default();
        let violations = report::locate(found, Severity::Error, &text, Format::Yaml, &file);
        let lacks = rule.like.as_ref().map(|like| lacking(like, &value)).unwrap_or_default();
        Ok(DataFile { name, file, value, violations, lacks })
    }

    fn compiled(&self, tree: &PackTree) -> Result<CompiledRule> {
        let schema = self.schema.as_deref().map(|path| compiled(tree, path)).transpose()?;
        let like = self.like.as_deref().map(|path| parsed(tree, path)).transpose()?;
        Ok(CompiledRule { schema, like })
    }
}

/// What the files of a folder must be, ready to be held against each.
struct CompiledRule {
    schema: Option<Schema>,
    like: Option<Value>,
}

fn compiled(tree: &PackTree, path: &str) -> Result<Schema> {
    Schema::compile(&parsed(tree, path)?).map_err(|failure| {
        let message = format!("{}: {}", tree.display(path), failure.message);
        Failure { message, ..failure }
    })
}

fn text(tree: &PackTree, path: &str) -> Result<std::sync::Arc<str>> {
    let missing = || Failure::new(Code::ModuleNotFound, format!("there is no file `{path}` in this pack"));
    tree.text(path)?.ok_or_else(missing)
}

fn parsed(tree: &PackTree, path: &str) -> Result<Value> {
    let format = Format::of_path(path).unwrap_or(Format::Json);
    source::parse(&text(tree, path)?, format, &tree.display(path))
}

/// Returns the pointers of the members that one value has, and another one has not, or not of the same kind.
pub(crate) fn lacking(original: &Value, value: &Value) -> Vec<String> {
    let Some(original) = original.as_object() else { return Vec::new() };
    let below = |(name, original): (&String, &Value)| match value.get(name) {
        Some(value) if std::mem::discriminant(value) == std::mem::discriminant(original) => {
            lacking(original, value).into_iter().map(|rest| format!("/{name}{rest}")).collect()
        }
        _ => vec![format!("/{name}")],
    };
    original.iter().flat_map(below).collect()
}
