//! A flow as it is offered: plain data, from which the schema of its tool is made, and command lines are made by it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::editors::collections::OfferedCollection;
use crate::error::nearest;
use crate::lua::manifest::{FlowCommand, Manifest};
use crate::model::command::placeholder;
use crate::model::param::{Param, ParamKind};
use crate::model::permission::Permission;
use crate::model::text::{clean, excerpt};

/// The longest text, in bytes, that stands in a command line; the system takes little more.
const LONGEST_WORD: usize = 100_000;

/// A flow that can be run from elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The name that no other has: of the tool, the prompt and the slash command, without what stands before it.
    pub name: String,
    /// The name in the manifest.
    pub flow: String,
    /// What `nietz run` is given.
    pub wanted: String,
    pub summary: String,
    /// Where it comes from.
    pub origin: String,
    /// What it may do, in sentences without their subject.
    pub asks: Vec<String>,
    pub main: OfferedCommand,
    pub commands: BTreeMap<String, OfferedCommand>,
    /// The params whose texts are run as commands, or grant files. Only the user gives them.
    pub typed: BTreeSet<String>,
    /// Whether it changes anything but its own documents.
    pub works: bool,
    /// Its documents.
    pub collections: Vec<OfferedCollection>,
    /// What params can be, of those that name a persona by its tag: the personas that had it.
    pub personas: BTreeMap<String, Vec<String>>,
}

/// What one command of a flow takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OfferedCommand {
    pub summary: String,
    pub params: BTreeMap<String, Param>,
    pub reads_only: bool,
}

/// A command line of a flow.
#[derive(Debug, Default)]
pub(crate) struct CommandLine {
    pub words: Vec<String>,
    /// Files with texts that are too long for a command line; they have to be there until the run has begun.
    pub files: Vec<tempfile::NamedTempFile>,
}

impl From<&FlowCommand> for OfferedCommand {
    fn from(command: &FlowCommand) -> OfferedCommand {
        OfferedCommand {
            summary: command.summary.clone(),
            params: command.params.clone(),
            reads_only: command.reads_only,
        }
    }
}

impl Offer {
    /// Returns the offer of a flow; who offers it adds the names.
    pub(crate) fn of(manifest: &Manifest, asks: Vec<String>, origin: String) -> Offer {
        let typed = manifest.permissions.typed();
        let works = [Permission::Git, Permission::Exec, Permission::Notify, Permission::Mcp];
        Offer {
            name: String::new(),
            flow: manifest.name.clone(),
            wanted: String::new(),
            summary: manifest.summary.clone(),
            origin,
            asks,
            main: OfferedCommand::from(&manifest.main),
            commands: manifest.offered().map(|(name, own)| (name.clone(), own.into())).collect(),
            typed: typed.iter().filter_map(|grant| placeholder(grant)).map(str::to_owned).collect(),
            works: works.into_iter().any(|permission| manifest.permissions.declares(permission)),
            collections: manifest.collections.values().map(|own| (&own.collection).into()).collect(),
            personas: BTreeMap::new(),
        }
    }

    /// Returns the name of the member that says which command is meant, if there are several.
    pub(crate) fn command_member(&self) -> Option<&'static str> {
        let mut all = std::iter::once(&self.main).chain(self.commands.values());
        let is_taken = all.any(|command| command.params.contains_key("command"));
        (!self.commands.is_empty()).then_some(if is_taken { "flow_command" } else { "command" })
    }

    /// Returns the JSON Schema of what the flow takes. Of params that are run as commands it takes those that the user allows.
    pub(crate) fn schema(&self, allowed: &[String]) -> Map<String, Value> {
        let mut properties = Map::new();
        // In the order in which a form shows them: what the flow is about, how it is done, and what takes its place.
        for (name, param, of) in self.all_params() {
            if properties.contains_key(name) {
                continue;
            }
            if let Some(property) = self.property(name, param, of, allowed) {
                properties.insert(name.to_owned(), property);
            }
        }
        if let Some(member) = self.command_member() {
            let names: Vec<&String> = self.commands.keys().collect();
            let told: Vec<String> =
                self.commands.iter().map(|(name, own)| format!("{name}: {}", own.summary)).collect();
            let text = format!("Another command of the flow, in place of running it. {}", told.join(". "));
            properties.insert(member.to_owned(), json!({ "type": "string", "enum": names, "description": text }));
        }
        let required: Vec<&String> = match self.commands.is_empty() {
            true => self.main.params.iter().filter(|(_, param)| param.required).map(|(name, _)| name).collect(),
            // Its commands take other params.
            false => Vec::new(),
        };
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    /// Returns all params, each with the command that takes it, if it is not the flow itself.
    fn all_params(&self) -> impl Iterator<Item = (&str, &Param, Option<&str>)> {
        let main = sorted(&self.main.params).into_iter().map(|(name, param)| (name, param, None));
        let others = self.commands.iter().flat_map(|(command, own)| {
            sorted(&own.params).into_iter().map(|(name, param)| (name, param, Some(command.as_str())))
        });
        main.chain(others)
    }

    fn property(&self, name: &str, param: &Param, of: Option<&str>, allowed: &[String]) -> Option<Value> {
        let is_typed = self.typed.contains(name);
        if param.kind == ParamKind::Attachment || is_typed && allowed.is_empty() {
            return None;
        }
        let mut one = Map::new();
        let kind = match param.kind {
            ParamKind::Integer => "integer",
            ParamKind::Number => "number",
            ParamKind::Boolean => "boolean",
            _ => "string",
        };
        one.insert("type".to_owned(), kind.into());
        let choices = if is_typed { allowed } else { &param.choices };
        if !choices.is_empty() {
            one.insert("enum".to_owned(), choices.into());
        }
        for (member, bound) in [("minimum", param.min), ("maximum", param.max)] {
            bound.map(|bound| one.insert(member.to_owned(), number(bound)));
        }
        let is_on = param.default == Some(Value::Bool(true));
        // Of what is done unless it is forbidden, the help tells of the option that forbids it.
        let mut text = if is_on { format!("false: {}", clean(&param.help)) } else { clean(&param.help) };
        if let Some(command) = of {
            text = format!("Of `{command}`: {text}");
        }
        if let Some(bounds) = param.bounds() {
            text = format!("{text} [{}]", clean(&bounds));
        }
        let mut property = match param.many {
            true => Map::from_iter([("type".to_owned(), "array".into()), ("items".to_owned(), Value::Object(one))]),
            false => one,
        };
        for (member, bound) in [("minItems", param.min_items), ("maxItems", param.max_items)] {
            bound.map(|bound| property.insert(member.to_owned(), bound.into()));
        }
        property.insert("description".to_owned(), text.trim().into());
        // Forms send back what they begin with, and another command takes none of it.
        let default = param.default.as_ref().filter(|default| !default.is_null() && of.is_none());
        if let Some(default) = default {
            let is_empty = default.as_object().is_some_and(Map::is_empty);
            // An empty table of Lua is a list, and an object in JSON.
            let default = if param.many && is_empty { Value::Array(Vec::new()) } else { default.clone() };
            property.insert("default".to_owned(), default);
        }
        Some(Value::Object(property))
    }

    /// Returns whether an argument is what a form sends of a field that nobody filled in, of a param of another command.
    fn is_blank(&self, name: &str, value: &Value) -> bool {
        let is_empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        let is_of = |param: &Param| match (&param.default, param.kind) {
            (Some(default), _) => default == value,
            (None, ParamKind::Boolean) => *value == Value::Bool(false),
            (None, _) => false,
        };
        self.all_params().any(|(known, param, _)| known == name && (is_empty || is_of(param)))
    }

    /// Returns the command that these arguments mean.
    ///
    /// # Errors
    ///
    /// Says which commands there are.
    pub(crate) fn command(&self, arguments: &Map<String, Value>) -> Result<(Option<&str>, &OfferedCommand), String> {
        let Some(named) = self.command_member().and_then(|member| arguments.get(member)).filter(|it| !it.is_null())
        else {
            return Ok((None, &self.main));
        };
        let named = named.as_str().unwrap_or_default();
        let found = self.commands.get_key_value(named).map(|(name, own)| (Some(name.as_str()), own));
        found.ok_or_else(|| {
            let known: Vec<&str> = self.commands.keys().map(String::as_str).collect();
            format!("{} has no command `{}`; it has {}", self.flow, excerpt(named), known.join(", "))
        })
    }

    /// Returns the params among arguments whose texts are run as commands, each with its text.
    pub(crate) fn commands_in(&self, arguments: &Map<String, Value>) -> Vec<(String, String)> {
        let typed = arguments.iter().filter(|(name, _)| self.typed.contains(*name));
        let texts = |value: &Value| match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            one => Vec::from_iter(one.as_str().map(str::to_owned)),
        };
        typed.flat_map(|(name, value)| texts(value).into_iter().map(|text| (name.clone(), text))).collect()
    }

    /// Returns the words behind `nietz run` for these arguments. Nothing in them can become an option, a file or a command that
    /// the user has not allowed.
    ///
    /// # Errors
    ///
    /// Says what is wrong with an argument.
    pub(crate) fn command_line(
        &self,
        arguments: &Map<String, Value>,
        allowed: &[String],
    ) -> Result<CommandLine, String> {
        let (name, own) = self.command(arguments)?;
        let mut line = CommandLine { words: vec![self.wanted.clone()], files: Vec::new() };
        line.words.extend(name.map(str::to_owned));
        let member = self.command_member();
        let given = |argument: &&String| Some(argument.as_str()) != member;
        for argument in arguments.keys().filter(given) {
            if !own.params.contains_key(argument) && !self.is_blank(argument, &arguments[argument]) {
                let near = nearest(argument, own.params.keys().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(format!("it takes no `{}`{hint}", excerpt(argument)));
            }
        }
        let (mut positional, mut left_out) = (Vec::new(), None);
        for (param_name, param) in sorted(&own.params) {
            let given = arguments.get(param_name).filter(|value| !value.is_null());
            // Forms send a list that nobody filled in, too.
            let Some(value) = given.filter(|value| !(param.many && is_empty_list(value))) else {
                if param.required {
                    return Err(format!("`{param_name}` is missing: {}", clean(&param.help)));
                }
                left_out = left_out.or(param.positional.then_some(param_name));
                continue;
            };
            let refused = |why: &str| format!("`{param_name}` {why}");
            if param.kind == ParamKind::Attachment {
                return Err(refused("takes files, which nobody gives from here"));
            }
            let flag = param_name.replace('_', "-");
            if param.kind == ParamKind::Boolean {
                let is_on = param.default == Some(Value::Bool(true));
                let wanted = value.as_bool().ok_or_else(|| refused("must be true or false"))?;
                if wanted != is_on {
                    line.words.push(if is_on { format!("--no-{flag}") } else { format!("--{flag}") });
                }
                continue;
            }
            let items = match (value, param.many) {
                (Value::Array(items), true) => items.iter().collect(),
                (Value::Array(_), false) => return Err(refused("takes one value, and no list")),
                (one, _) => vec![one],
            };
            if param.many {
                param.accepts_count(items.len()).map_err(|why| refused(&why))?;
            }
            if let (true, Some(before)) = (param.positional, left_out) {
                return Err(refused(&format!("needs `{before}` before it")));
            }
            for item in items {
                param.accepts(item).map_err(|why| refused(&why))?;
                let is_typed = self.typed.contains(param_name);
                if is_typed && !allowed.iter().any(|allowed| item == allowed) {
                    return Err(refused(&format!(
                        "is run as a command, and `{}` was not permitted: the user permits it when they are asked, or \
                         beforehand by --allow-command",
                        item.as_str().map(excerpt).unwrap_or_default()
                    )));
                }
                let is_text = param.kind == ParamKind::String && param.choices.is_empty() && !is_typed;
                let word = line.word(item, is_text)?;
                match param.positional {
                    true => positional.push(word),
                    false => line.words.push(format!("--{flag}={word}")),
                }
            }
        }
        if !positional.is_empty() {
            line.words.push("--".to_owned());
            line.words.append(&mut positional);
        }
        Ok(line)
    }
}

impl CommandLine {
    /// Returns the word that stands for a value. A text means itself, whatever it begins with.
    fn word(&mut self, value: &Value, is_text: bool) -> Result<String, String> {
        let Value::String(text) = value else { return Ok(value.to_string()) };
        if text.contains('\0') {
            return Err("a text has a NUL in it".to_owned());
        }
        if !is_text {
            return Ok(text.clone());
        }
        if text.len() > LONGEST_WORD {
            let failed = |error: std::io::Error| format!("a long text cannot be kept: {error}");
            let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
            let word = format!("@{}", file.path().display());
            self.files.push(file);
            return Ok(word);
        }
        let rest = text.trim_start_matches('\\');
        Ok(if rest.starts_with('@') || rest == "-" { format!("\\{text}") } else { text.clone() })
    }
}

/// Returns whether a value is a list without items, as a client may write one.
fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// Returns params as a command line has them: in their order, and what is said without an option first.
fn sorted(params: &BTreeMap<String, Param>) -> Vec<(&str, &Param)> {
    let mut sorted: Vec<(&str, &Param)> = params.iter().map(|(name, param)| (name.as_str(), param)).collect();
    sorted.sort_by(|a, b| {
        let order = |param: &Param| param.order.unwrap_or(f64::MAX);
        b.1.positional.cmp(&a.1.positional).then(order(a.1).total_cmp(&order(b.1)))
    });
    sorted
}

/// Returns a bound without the fraction that it does not have.
#[allow(clippy::cast_possible_truncation)]
fn number(bound: f64) -> Value {
    if bound.fract() == 0.0 && bound.abs() < 1e15 { Value::from(bound as i64) } else { Value::from(bound) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Offer, OfferedCommand};

    fn offer() -> Offer {
        let params = json!({
            "topic": { "type": "string", "positional": true, "required": true, "order": 1 },
            "more": { "type": "string", "positional": true, "order": 2 },
            "depth": { "type": "integer", "min": 1, "max": 5 },
            "pause": { "type": "boolean", "default": true, "help": "Go on at once" },
            "quick": { "type": "boolean" },
            "who": { "type": "persona", "many": true, "max_items": 2, "default": {} },
            "test": { "type": "string" },
            "attach": { "type": "attachment", "many": true },
        });
        let other = json!({
            "all": { "type": "boolean", "default": false },
            "format": { "type": "string", "choices": ["text", "issue"], "default": "text" },
            "since": { "type": "string" },
        });
        let command = |params: Value| OfferedCommand {
            summary: "Lists".into(),
            params: serde_json::from_value(params).expect("they are params"),
            reads_only: true,
        };
        Offer {
            name: "hello".into(),
            flow: "hello".into(),
            wanted: "bundled/hello".into(),
            summary: "Says hello".into(),
            origin: "bundled".into(),
            asks: Vec::new(),
            main: command(params),
            commands: [("list".into(), command(other))].into(),
            typed: ["test".into()].into(),
            works: false,
            collections: Vec::new(),
            personas: std::collections::BTreeMap::new(),
        }
    }

    fn words(arguments: Value, allowed: &[&str]) -> Result<String, String> {
        let allowed: Vec<String> = allowed.iter().map(|&word| word.to_owned()).collect();
        let line = offer().command_line(arguments.as_object().expect("an object"), &allowed)?;
        Ok(line.words.join(" "))
    }

    #[test]
    fn a_text_becomes_neither_an_option_nor_a_file_nor_another_command() {
        for (topic, word) in [
            ("tea", "tea"),
            ("@/etc/passwd", r"\@/etc/passwd"),
            (r"\@x", r"\\@x"),
            ("-", r"\-"),
            ("--allow-net", "--allow-net"),
            ("list", "list"),
            ("$(id) `id`", "$(id) `id`"),
        ] {
            assert_eq!(words(json!({ "topic": topic }), &[]), Ok(format!("bundled/hello -- {word}")));
        }
        let all = json!({ "topic": "a", "more": "-", "depth": 2, "pause": false, "quick": true, "who": ["x", "y"] });
        let expected = r"bundled/hello --depth=2 --no-pause --quick --who=x --who=y -- a \-";
        assert_eq!(words(all, &[]).as_deref(), Ok(expected));
        assert_eq!(
            words(json!({ "command": "list", "since": "1d" }), &[]).as_deref(),
            Ok("bundled/hello list --since=1d")
        );
    }

    #[test]
    fn what_is_wrong_is_said_and_commands_are_the_user_s_own() {
        for (arguments, why) in [
            (json!({}), "`topic` is missing"),
            (json!({ "topic": 7 }), "`topic` must be of type string"),
            (json!({ "topic": "a\0b" }), "NUL"),
            (json!({ "topic": ["a"] }), "takes one value"),
            (json!({ "topic": "a", "depth": 9 }), "must be at most 5"),
            (json!({ "topic": "a", "dept": 1 }), "did you mean `depth`?"),
            (json!({ "topic": "a", "who": ["x", "y", "z"] }), "at most 2 items"),
            (json!({ "topic": "a", "test": "rm -rf /" }), "`rm -rf /` was not permitted"),
            (json!({ "topic": "a", "since": "2d" }), "it takes no `since`"),
            // To forbid what another command does by itself is meant, and not what a form begins with.
            (json!({ "command": "list", "pause": false }), "it takes no `pause`"),
            (json!({ "topic": "a", "attach": ["/etc/passwd"] }), "takes files"),
            (json!({ "command": "clean" }), "it has list"),
        ] {
            let told = words(arguments.clone(), &["cargo test"]).expect_err("it is wrong");
            assert!(told.contains(why), "{arguments}: {told}");
        }
        let given = json!({ "topic": "a", "test": "cargo test" });
        assert_eq!(words(given, &["cargo test"]).as_deref(), Ok("bundled/hello --test=cargo test -- a"));
        assert!(offer().schema(&[])["properties"]["test"].is_null());
        assert_eq!(offer().schema(&["cargo test".into()])["properties"]["test"]["enum"], json!(["cargo test"]));
    }

    #[test]
    fn a_form_that_is_sent_back_as_it_is_begins_a_run() {
        let offer = offer();
        let schema = offer.schema(&[]);
        let names: Vec<&str> =
            schema["properties"].as_object().expect("an object").keys().map(String::as_str).collect();
        let expected = ["topic", "more", "depth", "pause", "quick", "who", "all", "format", "since", "command"];
        assert_eq!(names, expected, "what it is about first, other commands last");
        assert_eq!(schema["properties"]["pause"]["description"], "false: Go on at once");
        assert_eq!(schema["properties"]["who"]["default"], json!([]));
        // What a form of many clients sends: its defaults, and of fields without one what they begin with.
        let mut sent = serde_json::Map::new();
        for (name, property) in schema["properties"].as_object().expect("an object") {
            let kind = property["type"].as_str().unwrap_or_default();
            let blank = match kind {
                "boolean" => json!(false),
                "array" => json!([]),
                "string" if name == "format" => json!("text"),
                _ => Value::Null,
            };
            sent.insert(name.clone(), property.get("default").cloned().unwrap_or(blank));
        }
        sent.insert("topic".to_owned(), json!("tea"));
        assert_eq!(words(Value::Object(sent), &[]).as_deref(), Ok("bundled/hello -- tea"));
    }

    #[test]
    fn a_long_text_goes_by_a_file_that_is_gone_afterwards() {
        let arguments = json!({ "topic": "x".repeat(300_000) });
        let line = offer().command_line(arguments.as_object().expect("an object"), &[]).expect("it fits");
        let path = line.words.last().and_then(|word| word.strip_prefix('@')).expect("a file").to_owned();
        assert_eq!(std::fs::read_to_string(&path).map(|text| text.len()).ok(), Some(300_000));
        drop(line);
        assert!(!std::path::Path::new(&path).exists());
    }
}
