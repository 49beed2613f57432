//! Parameters of flows and commands.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::regexes::CompiledRegex;

/// One parameter, as a manifest declares it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param {
    #[serde(rename = "type")]
    pub kind: ParamKind,
    #[serde(default)]
    pub help: String,
    #[serde(default)]
    pub positional: bool,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub order: Option<f64>,
    #[serde(default)]
    pub many: bool,
    #[serde(default)]
    pub default: Option<Value>,
    #[serde(default)]
    pub choices: Vec<String>,
    #[serde(default, alias = "minimum")]
    pub min: Option<f64>,
    #[serde(default, alias = "maximum")]
    pub max: Option<f64>,
    /// The least and the most items of a list.
    #[serde(default)]
    pub min_items: Option<usize>,
    #[serde(default)]
    pub max_items: Option<usize>,
    /// A regular expression that must be found in a text, as in a JSON Schema.
    #[serde(default)]
    pub pattern: Option<String>,
    /// What the pattern means, in words that follow "must be".
    #[serde(default)]
    pub pattern_means: Option<String>,
    #[serde(default)]
    pub short: Option<char>,
    /// What it is where the option is given without a value. Without this, it needs one.
    #[serde(default)]
    pub alone: Option<String>,
}

/// The type of a param's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    String,
    Integer,
    Number,
    Boolean,
    /// A finished run of the same flow; the flow gets its id and its result.
    Run,
    /// A commit, by any of its names; the flow gets the name.
    Revision,
    /// A persona, by its slug.
    Persona,
    /// A model, by its name or an alias; the flow gets the word, and `--plan` shows what it means.
    Model,
    /// The files that a flow takes as attachments. No manifest names this type: it says `attachments = true`.
    Attachment,
}

impl Param {
    /// Checks a declaration.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let valid = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-');
        if name.is_empty() || !valid {
            return Err("names are lower-case letters, digits and `_`".to_owned());
        }
        if self.kind == ParamKind::Attachment {
            return Err("attachments are no param: say `attachments = true` beside the params".to_owned());
        }
        if self.positional && self.kind == ParamKind::Boolean {
            return Err("a boolean cannot be positional".to_owned());
        }
        if self.kind == ParamKind::Run && (self.many || self.default.is_some()) {
            return Err("a run is given once, and has no default".to_owned());
        }
        if self.min.zip(self.max).is_some_and(|(min, max)| min > max) {
            return Err("its min is above its max".to_owned());
        }
        if self.min_items.or(self.max_items).is_some() && !self.many {
            return Err("min_items and max_items are for lists: say `many = true`".to_owned());
        }
        if self.min_items.zip(self.max_items).is_some_and(|(min, max)| min > max) {
            return Err("its min_items is above its max_items".to_owned());
        }
        if !self.choices.is_empty() && matches!(self.kind, ParamKind::Revision | ParamKind::Persona) {
            return Err("choices are for texts: give them `type = \"string\"`".to_owned());
        }
        match &self.pattern {
            Some(_) if self.kind != ParamKind::String => return Err("a pattern is for texts alone".to_owned()),
            Some(pattern) => {
                CompiledRegex::new(pattern).map_err(|why| format!("its pattern is no regular expression: {why}"))?;
            }
            None if self.pattern_means.is_some() => {
                return Err("`pattern_means` says what a pattern means, and there is none".to_owned());
            }
            None => {}
        }
        if let Some(alone) = &self.alone {
            if self.positional || self.many || self.kind == ParamKind::Boolean {
                return Err("`alone` is for an option that takes one value".to_owned());
            }
            self.parse(alone).map_err(|why| format!("its value alone {why}"))?;
        }
        match &self.default {
            Some(Value::Array(items)) if self.many => {
                let each = items.iter().try_for_each(|item| self.accepts(item));
                each.and_then(|()| self.accepts_count(items.len()))
            }
            Some(default) if !self.many => self.accepts(default),
            _ => Ok(()),
        }
        .map_err(|why| format!("its default {why}"))
    }

    /// Returns what a value must be besides its type and choices, in words for its help.
    pub fn bounds(&self) -> Option<String> {
        let count = match (self.min_items, self.max_items) {
            (Some(min), Some(max)) if min == max => Some(format!("{min} of them")),
            (Some(min), Some(max)) => Some(format!("{min} to {max} of them")),
            (Some(min), None) => Some(format!("at least {min} of them")),
            (None, Some(max)) => Some(format!("at most {max} of them")),
            (None, None) => None,
        };
        match (count, self.bounds_of_each()) {
            (Some(count), Some(each)) => Some(format!("{count}; {each}")),
            (count, each) => count.or(each),
        }
    }

    fn bounds_of_each(&self) -> Option<String> {
        match (self.min, self.max, &self.pattern) {
            (Some(min), Some(max), _) => Some(format!("{min} to {max}")),
            (Some(min), None, _) => Some(format!("at least {min}")),
            (None, Some(max), _) => Some(format!("at most {max}")),
            (None, None, Some(pattern)) => Some(match &self.pattern_means {
                Some(means) => means.clone(),
                None => format!("pattern: {pattern}"),
            }),
            (None, None, None) => None,
        }
    }

    /// Checks how many items a list has.
    ///
    /// # Errors
    ///
    /// Says how many it must have.
    pub fn accepts_count(&self, count: usize) -> Result<(), String> {
        if self.min_items.is_some_and(|min| count < min) {
            return Err(format!("must have at least {} items, and has {count}", self.min_items.unwrap_or_default()));
        }
        if self.max_items.is_some_and(|max| count > max) {
            return Err(format!("must have at most {} items, and has {count}", self.max_items.unwrap_or_default()));
        }
        Ok(())
    }

    /// Parses a text from the command line.
    ///
    /// # Errors
    ///
    /// Says why the text is not a value of this parameter.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let value = match self.kind {
            ParamKind::String
            | ParamKind::Run
            | ParamKind::Revision
            | ParamKind::Persona
            | ParamKind::Model
            | ParamKind::Attachment => Value::from(text),
            ParamKind::Integer => {
                text.parse::<i64>().map(Value::from).map_err(|_| "is not a whole number".to_owned())?
            }
            ParamKind::Number => text
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .map(Value::from)
                .ok_or_else(|| "is not a number".to_owned())?,
            ParamKind::Boolean => match text {
                "true" | "yes" | "on" => Value::from(true),
                "false" | "no" | "off" => Value::from(false),
                _ => return Err("is not true or false".to_owned()),
            },
        };
        self.accepts(&value).map(|()| value)
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Says why it is not a value of this parameter.
    pub fn accepts(&self, value: &Value) -> Result<(), String> {
        let has_type = match self.kind {
            ParamKind::String
            | ParamKind::Run
            | ParamKind::Revision
            | ParamKind::Persona
            | ParamKind::Model
            | ParamKind::Attachment => value.is_string(),
            ParamKind::Integer => value.is_i64() || value.is_u64(),
            ParamKind::Number => value.is_number(),
            ParamKind::Boolean => value.is_boolean(),
        };
        if !has_type {
            return Err(format!("must be of type {}", self.kind.name()));
        }
        if let Some(text) = value.as_str()
            && !self.choices.is_empty()
            && !self.choices.iter().any(|choice| choice == text)
        {
            return Err(format!("must be one of {}", self.choices.join(", ")));
        }
        if let Some((text, pattern)) = value.as_str().zip(self.pattern.as_deref()) {
            let compiled = CompiledRegex::new(pattern)?;
            if compiled.is_too_large_for(text.len()) || !compiled.regex.is_match(text) {
                return Err(match &self.pattern_means {
                    Some(means) => format!("must be {means}"),
                    None => format!("must match the pattern `{pattern}`"),
                });
            }
        }
        if let Some(number) = value.as_f64() {
            if self.min.is_some_and(|min| number < min) {
                return Err(format!("must be at least {}", self.min.unwrap_or_default()));
            }
            if self.max.is_some_and(|max| number > max) {
                return Err(format!("must be at most {}", self.max.unwrap_or_default()));
            }
        }
        Ok(())
    }
}

impl ParamKind {
    /// Returns the name of the type in manifests.
    pub fn name(self) -> &'static str {
        match self {
            ParamKind::String => "string",
            ParamKind::Integer => "integer",
            ParamKind::Number => "number",
            ParamKind::Boolean => "boolean",
            ParamKind::Run => "run",
            ParamKind::Revision => "revision",
            ParamKind::Persona => "persona",
            ParamKind::Model => "model",
            ParamKind::Attachment => "file",
        }
    }
}

/// The kinds of places that a text of a param comes from, if the user did not type it.
pub(crate) const FILE: &str = "file";
pub(crate) const PIPE: &str = "pipe";
/// The kind of the texts beside them in a list, as flows see it.
const TYPED: &str = "typed";

/// Where a text of a param came from that the user did not type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamOrigin {
    pub param: String,
    /// The index of the text, if the param is a list.
    pub item: Option<usize>,
    /// [`FILE`], [`PIPE`], or a kind that only a newer version knows.
    pub kind: String,
    /// The file's path, as the user wrote it.
    pub name: Option<String>,
}

impl ParamOrigin {
    /// Returns the place of the text in the params.
    pub fn text_in<'p>(&self, params: &'p mut Value) -> Option<&'p mut Value> {
        let value = params.get_mut(&self.param)?;
        match self.item {
            Some(item) => value.get_mut(item),
            None => Some(value),
        }
    }
}

/// Returns the params without the texts that the user did not type.
pub(crate) fn typed_params(params: &Value, origins: &[ParamOrigin]) -> Value {
    let mut params = params.clone();
    for origin in origins {
        if let Some(text) = origin.text_in(&mut params) {
            *text = Value::Null;
        }
    }
    params
}

/// Returns where texts came from, as flows see it: for each param with such a text, a list with an entry for each of its
/// texts.
pub(crate) fn origins_by_param(params: &Value, origins: &[ParamOrigin]) -> Value {
    let mut shown = serde_json::Map::new();
    for origin in origins {
        let texts = params[&origin.param].as_array().map_or(1, Vec::len);
        let entries = shown.entry(origin.param.clone()).or_insert_with(|| vec![json!({ "kind": TYPED }); texts].into());
        if let Some(entry) = entries.get_mut(origin.item.unwrap_or(0)) {
            *entry = match &origin.name {
                Some(name) => json!({ "kind": origin.kind, "name": name }),
                None => json!({ "kind": origin.kind }),
            };
        }
    }
    Value::Object(shown)
}

/// Returns what a run is about: the longest text that it was asked.
pub(crate) fn topic(params: &Value) -> &str {
    let params = params.as_object().into_iter().flat_map(|params| params.values());
    params.filter_map(Value::as_str).max_by_key(|text| text.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FILE, PIPE, Param, ParamOrigin, origins_by_param, typed_params};

    fn param(declared: serde_json::Value) -> Param {
        serde_json::from_value(declared).expect("it is a param")
    }

    #[test]
    fn bounds_and_patterns_are_checked_when_declared_and_when_given() {
        for (declared, wrong) in [
            (json!({"type": "string", "pattern": "("}), "its pattern is no regular expression"),
            (json!({"type": "integer", "pattern": "1"}), "a pattern is for texts alone"),
            (json!({"type": "string", "pattern_means": "a week"}), "and there is none"),
            (json!({"type": "string", "pattern": "^a", "default": "b"}), "its default must match the pattern `^a`"),
            (json!({"type": "string", "pattern": "^a", "many": true, "default": ["a", "b"]}), "its default must match"),
            (json!({"type": "integer", "min": 3, "max": 2}), "its min is above its max"),
            (json!({"type": "integer", "minimum": 3, "default": 2}), "its default must be at least 3"),
            (json!({"type": "string", "max_items": 2}), "are for lists"),
            (json!({"type": "string", "many": true, "min_items": 3, "max_items": 2}), "its min_items is above"),
            (json!({"type": "string", "many": true, "min_items": 2, "default": ["a"]}), "must have at least 2 items"),
            (json!({"type": "persona", "choices": ["a"]}), "choices are for texts"),
        ] {
            let why = param(declared.clone()).check("p").unwrap_err();
            assert!(why.contains(wrong), "{declared}: {why}");
        }
        let week =
            param(json!({"type": "string", "pattern": "^\\d{4}-W\\d{2}$", "pattern_means": "a week such as 2026-W47"}));
        assert_eq!(week.check("week"), Ok(()));
        assert_eq!(week.parse("2026-W47"), Ok(json!("2026-W47")));
        assert_eq!(week.parse("2026-47"), Err("must be a week such as 2026-W47".to_owned()));
        assert_eq!(week.bounds().as_deref(), Some("a week such as 2026-W47"));
        // As in a JSON Schema, a pattern without `^` and `$` is found anywhere.
        assert_eq!(param(json!({"type": "string", "pattern": "W"})).parse("2026-W47"), Ok(json!("2026-W47")));
        let few = param(json!({"type": "number", "minimum": 1, "maximum": 2.5}));
        assert_eq!(few.parse("3"), Err("must be at most 2.5".to_owned()));
        assert_eq!(few.bounds().as_deref(), Some("1 to 2.5"));
        let panel = param(json!({"type": "persona", "many": true, "min_items": 2, "max_items": 3}));
        assert_eq!(panel.bounds().as_deref(), Some("2 to 3 of them"));
        assert_eq!(panel.accepts_count(4), Err("must have at most 3 items, and has 4".to_owned()));
    }

    #[test]
    fn a_flow_sees_an_origin_for_each_text_and_what_was_typed_is_told_apart() {
        let params = json!({ "one": "from a file", "many": ["typed", "from the pipe"], "none": "typed" });
        let origins = [
            ParamOrigin { param: "one".into(), item: None, kind: FILE.into(), name: Some("a.md".into()) },
            ParamOrigin { param: "many".into(), item: Some(1), kind: PIPE.into(), name: None },
        ];
        let expected = json!({
            "one": [{ "kind": "file", "name": "a.md" }],
            "many": [{ "kind": "typed" }, { "kind": "pipe" }],
        });
        assert_eq!(origins_by_param(&params, &origins), expected);
        assert_eq!(typed_params(&params, &origins), json!({ "one": null, "many": ["typed", null], "none": "typed" }));
        // A journal that was brought along may name what is not there.
        let odd = [ParamOrigin { param: "many".into(), item: Some(9), kind: "odd".into(), name: None }];
        assert_eq!(typed_params(&params, &odd), params);
        assert_eq!(origins_by_param(&json!({}), &odd)["many"], json!([{ "kind": "typed" }]));
    }
}
