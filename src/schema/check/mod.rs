//! Checks whether a value is valid by its schema, and describes in words everything that is wrong.
//!
//! The jsonschema crate validates, offline: a schema cannot make us fetch anything. This module adds the
//! language: a violation says what is wanted and what was found, in the terms of the file's author, and
//! quotes at most a short, cleaned piece of a value.

use jsonschema::error::{ValidationError, ValidationErrorKind as Kind};
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

use super::words;
use super::{cost, subschema, value_builder};
use crate::error::{Code, Failure, Result, nearest};
use crate::model::text::{clean, excerpt};

/// How far a pattern may search before it counts as failed; the default would take a second.
const BACKTRACKS: usize = 2_000;
/// How large a pattern may become when it is compiled, in bytes.
const COMPILED: usize = 128 * 1024;

/// What those who write a schema have to know.
pub(crate) const HINT: &str =
    "schemas are JSON Schema 2020-12; references may only lead to places inside the same schema";

/// The most violations that are reported.
const MOST: usize = 1000;

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The JSON pointer of what the violation is about; empty for the whole value.
    pub pointer: String,
    pub message: String,
    /// The rule that was broken: `required`, `enum` …
    pub keyword: String,
}

impl Violation {
    pub fn new(pointer: impl Into<String>, keyword: &str, message: impl Into<String>) -> Violation {
        Violation { pointer: pointer.into(), keyword: keyword.to_owned(), message: message.into() }
    }

    /// Tells whether the violation is about a member's name, and not about its value.
    pub fn is_about_key(&self) -> bool {
        matches!(self.keyword.as_str(), "additionalProperties" | "unevaluatedProperties" | "propertyNames" | "unknown")
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "{}: {}", clean(pointer), self.message),
        }
    }
}

/// Whether `format` (uuid, date-time …) is a rule or a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Formats {
    Asserted,
    Annotations,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    source: Value,
    /// The most steps for each part of a value, if the schema is plain.
    steps: Option<u64>,
}

impl Schema {
    /// Compiles a schema; formats are asserted.
    ///
    /// # Errors
    ///
    /// Those of [`Schema::compile_with`].
    pub fn compile(schema: &Value) -> Result<Schema> {
        Schema::compile_with(schema, Formats::Asserted)
    }

    /// Compiles a schema. Without `$schema` it is of the draft 2020-12.
    ///
    /// # Errors
    ///
    /// `flow-invalid` if the schema is wrong, too large or endless, or refers to anything outside of itself.
    pub fn compile_with(schema: &Value, formats: Formats) -> Result<Schema> {
        Schema::try_compile(schema, formats).map_err(|wrong| {
            let place = if wrong.pointer.is_empty() { String::new() } else { format!(" at {}", clean(&wrong.pointer)) };
            Failure::new(Code::FlowInvalid, format!("a schema is wrong{place}: {}", wrong.message)).hint(HINT)
        })
    }

    /// Compiles a schema, or returns what is wrong with it, and where in it.
    ///
    /// # Errors
    ///
    /// What keeps it from being a schema.
    pub(crate) fn try_compile(schema: &Value, formats: Formats) -> Result<Schema, Violation> {
        if let Some(why) = cost::refuse(schema) {
            return Err(Violation::new("", "schema", why));
        }
        let patterns =
            PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS).size_limit(COMPILED).dfa_size_limit(COMPILED);
        let built = jsonschema::options()
            .offline()
            .should_validate_formats(formats == Formats::Asserted)
            .with_pattern_options(patterns)
            .build(schema);
        match built {
            Ok(validator) => Ok(Schema { validator, source: schema.clone(), steps: cost::plain_steps(schema) }),
            Err(error) => {
                let pointer = error.instance_path().as_str();
                Err(Violation::new(pointer, "schema", words::wrong_schema(pointer, schema, &error)))
            }
        }
    }

    /// Returns the schema as it was written.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Tells whether checking the value would take too long; it counts as invalid then.
    pub fn is_too_much(&self, value: &Value) -> bool {
        !self.steps.is_some_and(|steps| cost::is_small(value, steps)) && cost::is_too_much(&self.source, value)
    }

    /// Tells whether the value is valid, without saying why not.
    pub fn is_valid(&self, value: &Value) -> bool {
        !value_builder::is_too_deep(value) && !self.is_too_much(value) && self.validator.is_valid(value)
    }

    /// Returns all violations of a value; an empty list means that the value is valid.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        if value_builder::is_too_deep(value) {
            let message = format!("lists and objects stand more than {} deep in one another", value_builder::DEPTH);
            return vec![Violation::new("", "depth", message)];
        }
        if self.is_too_much(value) {
            return vec![Violation::new("", "cost", "is too large to be checked by its schema")];
        }
        let mut violations = Vec::new();
        // Most values are valid, and asking only that is several times faster.
        if !self.validator.is_valid(value) {
            for error in self.validator.iter_errors(value).take(MOST) {
                self.describe(&error, &mut violations);
            }
        }
        violations
    }

    /// Adds the violations that one error stands for, without repeating any.
    fn describe(&self, error: &ValidationError<'_>, violations: &mut Vec<Violation>) {
        let pointer = error.instance_path().as_str();
        let keyword = error.kind().keyword();
        let mut add = |pointer: String, message: String| {
            let violation = Violation { pointer, message, keyword: keyword.to_owned() };
            // A number that breaks its range at both keywords gets one sentence.
            if !violations
                .iter()
                .rev()
                .take(8)
                .any(|other| other.pointer == violation.pointer && other.message == violation.message)
            {
                violations.push(violation);
            }
        };
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    add(format!("{pointer}/{}", value_builder::escape(name)), self.unknown_member(name, error));
                }
            }
            Kind::PropertyNames { error: inner } => {
                let name = inner.instance().as_str().unwrap_or_default();
                add(
                    format!("{pointer}/{}", value_builder::escape(name)),
                    format!("the name \"{}\" is not allowed: it {}", excerpt(name), self.sentence(inner)),
                );
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.alternatives(error, context, violations),
            _ => add(pointer.to_owned(), self.sentence(error)),
        }
    }

    /// Returns the sentence for one error.
    fn sentence(&self, error: &ValidationError<'_>) -> String {
        let value = error.instance().as_ref();
        let found = words::describe_value(value);
        let nothing = Map::new();
        let schema = self.enclosing_schema(error).unwrap_or(&nothing);
        match error.kind() {
            Kind::Type { .. } | Kind::Minimum { .. } | Kind::Maximum { .. } => {
                format!("must be {}; found {found}{}", words::describe_type(schema), quoted_number(schema, value))
            }
            Kind::ExclusiveMinimum { .. } | Kind::ExclusiveMaximum { .. } => {
                format!("must be {}; found {found}", words::describe_type(schema))
            }
            Kind::Enum { options } => {
                let known = options.as_array().into_iter().flatten().filter_map(Value::as_str);
                let near = value.as_str().and_then(|word| nearest(word, known));
                let near = near.map(|near| format!("; did you mean {}?", excerpt(near))).unwrap_or_default();
                format!("must be one of {}; found {found}{near}", words::options(options))
            }
            Kind::Constant { expected_value } => format!("must be {}; found {found}", words::literal(expected_value)),
            Kind::Required { property } => format!("is missing required {}", words::literal(property)),
            Kind::Pattern { pattern } => format!("must match the pattern {}; found {found}", excerpt(pattern)),
            Kind::Format { format } => format!("must be {}; found {found}", words::format(format)),
            Kind::MinLength { limit: 1 } => "must not be empty".to_owned(),
            Kind::MinLength { limit } => {
                format!("must be at least {} long; found {found}", words::count(*limit, "character"))
            }
            Kind::MaxLength { limit } => {
                let length = value.as_str().map_or(0, |text| text.chars().count());
                format!("must be at most {} long; has {length}", words::count(*limit, "character"))
            }
            Kind::MinItems { limit } => {
                format!("must have at least {}; has {}", words::count(*limit, "item"), size(value))
            }
            Kind::MaxItems { limit } => {
                format!("must have at most {}; has {}", words::count(*limit, "item"), size(value))
            }
            Kind::MinProperties { limit } => {
                format!("must have at least {}; has {}", words::count(*limit, "entry"), size(value))
            }
            Kind::MaxProperties { limit } => {
                format!("must have at most {}; has {}", words::count(*limit, "entry"), size(value))
            }
            Kind::AdditionalItems { limit } => format!("must have at most {limit} items; has {}", size(value)),
            Kind::UnevaluatedItems { .. } => "has items that are not known here".to_owned(),
            Kind::UniqueItems => "must not hold the same item twice".to_owned(),
            Kind::Contains => "does not hold as many items of the required kind as it must".to_owned(),
            Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}; found {found}"),
            Kind::FalseSchema => "is not allowed here".to_owned(),
            Kind::Not { .. } => format!("has a form that is forbidden here; found {found}"),
            Kind::OneOfMultipleValid { .. } => "fits several forms of which only one is allowed".to_owned(),
            Kind::ContentEncoding { content_encoding } => format!("must be text in {}", excerpt(content_encoding)),
            Kind::ContentMediaType { content_media_type } => format!("must be {}", excerpt(content_media_type)),
            Kind::FromUtf8 { .. } => "must be encoded UTF-8".to_owned(),
            Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
                "cannot be compared with its pattern: that takes too long".to_owned()
            }
            Kind::Custom { message, .. } => excerpt(message),
            Kind::Referencing(error) => format!("cannot be checked: {}", excerpt(&error.to_string())),
            Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => format!("has none of the allowed forms; found {found}"),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let names: Vec<String> = unexpected.iter().map(|name| self.unknown_member(name, error)).collect();
                names.join("; ")
            }
            Kind::PropertyNames { error } => self.sentence(error),
        }
    }

    /// Describes a value that fits no branch by the violations of the branch that was most likely meant.
    fn alternatives(
        &self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        violations: &mut Vec<Violation>,
    ) {
        let pointer = error.instance_path().as_str();
        // A branch that wants another type, or another constant member, was not meant.
        let meant = |branch: &&Vec<ValidationError<'static>>| {
            !branch.iter().any(|inner| {
                let path = inner.instance_path().as_str();
                let one_deeper = path.strip_prefix(pointer).is_some_and(|rest| rest.matches('/').count() <= 1);
                match inner.kind() {
                    Kind::Type { .. } | Kind::FalseSchema => path == pointer,
                    Kind::Constant { .. } => one_deeper,
                    _ => false,
                }
            })
        };
        let branches: Vec<_> = context.iter().filter(meant).collect();
        if let Some(branch) = branches.iter().min_by_key(|branch| branch.len()) {
            for inner in branch.iter() {
                self.describe(inner, violations);
            }
            return;
        }
        let mut wanted: Vec<String> = Vec::new();
        for inner in context.iter().flatten() {
            let here = inner.instance_path().as_str() == pointer;
            let phrase = match (inner.kind(), self.enclosing_schema(inner)) {
                (Kind::Type { .. }, Some(schema)) if here => words::describe_type(schema),
                (Kind::Constant { expected_value }, _) if here => words::literal(expected_value),
                _ => continue,
            };
            if !wanted.contains(&phrase) {
                wanted.push(phrase);
            }
        }
        let found = words::describe_value(error.instance());
        let message = match wanted.as_slice() {
            [] => format!("has none of the {} allowed forms; found {found}", context.len()),
            wanted => format!("must be {}; found {found}", wanted.join(" or ")),
        };
        violations.push(Violation::new(pointer, error.kind().keyword(), message));
    }

    fn unknown_member(&self, name: &str, error: &ValidationError<'_>) -> String {
        let named = self.enclosing_schema(error).into_iter().flat_map(subschema::named_members);
        let near = nearest(name, named.map(|(name, _)| name.as_str()));
        let near = near.map(|near| format!("; did you mean \"{}\"?", excerpt(near))).unwrap_or_default();
        format!("\"{}\" is not known here{near}", excerpt(name))
    }

    /// Returns the object of the schema in which the broken rule stands.
    fn enclosing_schema(&self, error: &ValidationError<'_>) -> Option<&Map<String, Value>> {
        let path = error.schema_path().as_str();
        self.source.pointer(&path[..path.rfind('/')?])?.as_object()
    }
}

/// Returns a remark on the most common slip: a number or boolean in quotes.
fn quoted_number(schema: &Map<String, Value>, value: &Value) -> &'static str {
    let wants = |name: &str| schema.get("type").is_some_and(|kind| kind == name);
    match value {
        Value::String(text) if (wants("integer") || wants("number")) && text.parse::<f64>().is_ok() => {
            ", which is text because of its quotes"
        }
        Value::String(text) if wants("boolean") && matches!(text.as_str(), "true" | "false") => {
            ", which is text because of its quotes"
        }
        Value::Number(_) if wants("string") => ", which is a number; put it in quotes",
        _ => "",
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
