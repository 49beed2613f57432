//! A flow's manifest: read from the table that its file returns, with every field checked.

use std::cell::RefCell;
use std::collections::BTreeMap;

use mlua::{Function, Lua, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Code, Failure, Result, nearest};
use crate::lua::convert;
use crate::lua::limits::{FlowLimits, MOST};
use crate::model::budget::Budget;
use crate::model::collection::{Collection, Expectation, Format, IndexTable, Version};
use crate::model::command;
use crate::model::param::{Param, ParamKind};
use crate::model::permission::Permissions;
use crate::model::setting::Setting;
use crate::model::text::{excerpt, line};

/// The most characters of a command that a flow asks for: the person who grants it reads it.
const COMMAND: usize = 200;
/// The most commands that a flow may ask for: a person reads them.
const MOST_COMMANDS: usize = 100;

/// The longest name and the longest summary, in bytes.
const NAME: usize = 64;
const SUMMARY: usize = 500;
/// The longest text of any field, in bytes.
const SHORT: usize = 4096;
/// The most params, settings, collections or commands.
const MOST_OF_A_KIND: usize = 200;

/// A flow's manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub name: String,
    pub summary: String,
    pub permissions: Permissions,
    pub limits: Option<FlowLimits>,
    /// The most that each command of a run may use.
    pub exec_limits: command::CommandLimits,
    /// The most that a run of this flow should use.
    pub budget: Budget,
    pub collections: BTreeMap<String, DeclaredCollection>,
    /// The settings that people may give for this flow in their configuration.
    pub settings: BTreeMap<String, Setting>,
    /// What `nietz run FLOW` runs.
    pub main: FlowCommand,
    /// What `nietz run FLOW NAME` runs.
    pub commands: BTreeMap<String, FlowCommand>,
}

/// A function of a flow that the user can run, with its params.
#[derive(Clone, Debug)]
pub struct FlowCommand {
    pub summary: String,
    pub params: BTreeMap<String, Param>,
    /// Whether it only looks: it changes nothing, asks nobody and calls no model, and leaves no run.
    pub reads_only: bool,
    pub run: Function,
}

/// A collection with the functions that belong to it.
#[derive(Clone, Debug)]
pub struct DeclaredCollection {
    pub collection: Collection,
    /// The schema's path, if the manifest gives a path and not a table.
    pub schema_path: Option<String>,
    /// `on-save` if the schema's formats bind only what is written, `never` if they bind nothing.
    pub formats: Option<String>,
    pub migrations: BTreeMap<String, Function>,
    pub rules: Option<Function>,
}

/// Refuses a field that is not known, and names the nearest known field.
fn check_fields(table: &Table, what: &str, known: &[&str]) -> Result<()> {
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (key, _) = pair.map_err(|error| crate::lua::vm_errors::from_error(&error))?;
        let name = match &key {
            LuaValue::String(name) => name.to_string_lossy(),
            other => return Err(invalid(format!("{what} has a key of type {}", other.type_name()))),
        };
        if !known.contains(&name.as_str()) {
            let failure = invalid(format!("{what} has no field `{}`", excerpt(&name)));
            return Err(match nearest(&name, known.iter().copied()) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("known are {}", known.join(", "))),
            });
        }
    }
    Ok(())
}

impl Manifest {
    /// Reads the table that `nietz.flow` was called with.
    ///
    /// # Errors
    ///
    /// `flow-invalid` if a field is missing, unknown or wrong; `request-invalid` if a value has no JSON form.
    pub fn read(lua: &Lua, table: &Table) -> Result<Manifest> {
        let reader = &ManifestReader { lua, budget: RefCell::default() };
        check_fields(
            table,
            "nietz.flow",
            &[
                "name",
                "summary",
                "params",
                "permissions",
                "settings",
                "collections",
                "commands",
                "limits",
                "exec_limits",
                "budget",
                "run",
            ],
        )?;
        let name = text(table, "nietz.flow", "name")?;
        let kebab = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if name.is_empty() || name.len() > NAME || !kebab || name.starts_with('-') {
            return Err(invalid(format!("nietz.flow: name `{}` is not kebab-case", excerpt(&name)))
                .hint("use lower-case letters, digits and hyphens: `second-opinion`"));
        }
        let permissions: Permissions = reader.part(table, "nietz.flow", "permissions")?.unwrap_or_default();
        let main = read_command(reader, table, "nietz.flow")?;
        if permissions.exec.len() > MOST_COMMANDS {
            let why =
                format!("nietz.flow: permissions.exec names more than {MOST_COMMANDS} commands, which nobody reads");
            return Err(invalid(why));
        }
        for grant in &permissions.exec {
            check_grant(grant, &main)?;
        }
        let settings = read_settings(reader, table)?;
        let mut collections = BTreeMap::new();
        if let Some(declared) = maybe_table(table, "nietz.flow", "collections")? {
            for pair in declared.pairs::<String, Table>() {
                let (name, table) =
                    pair.map_err(|_| invalid("nietz.flow: collections must be `name = {…}`".to_owned()))?;
                collections.insert(name.clone(), read_collection(reader, &name, &table)?);
                check_count(collections.len(), "nietz.flow", "collections")?;
            }
        }
        let mut commands = BTreeMap::new();
        if let Some(declared) = maybe_table(table, "nietz.flow", "commands")? {
            for pair in declared.pairs::<String, Table>() {
                let (name, table) =
                    pair.map_err(|_| invalid("nietz.flow: commands must be `name = {…}`".to_owned()))?;
                let what = format!("command `{name}`");
                if name.is_empty() || name.starts_with('-') || name.contains(' ') || line(&name) != name {
                    let shown = excerpt(&name);
                    return Err(invalid(format!("nietz.flow: `{shown}` is not a valid name for a command"))
                        .hint("it is one word, which is typed behind the flow's name"));
                }
                check_fields(&table, &what, &["summary", "params", "reads_only", "run"])?;
                commands.insert(name, read_command(reader, &table, &what)?);
                check_count(commands.len(), "nietz.flow", "commands")?;
            }
        }
        let limits = maybe_table(table, "nietz.flow", "limits")?.map(|limits| read_limits(&limits)).transpose()?;
        let budget: Budget = reader.part(table, "nietz.flow", "budget")?.unwrap_or_default();
        if let Some(problem) = budget.problem() {
            return Err(invalid(format!("nietz.flow: budget.{problem}")));
        }
        for grant in &permissions.exec {
            for command in std::iter::once(&main).chain(commands.values()) {
                check_default(grant, command, &permissions.exec)?;
            }
        }
        let exec_limits: command::CommandLimits = reader.part(table, "nietz.flow", "exec_limits")?.unwrap_or_default();
        if let Some(problem) = exec_limits.problem() {
            return Err(invalid(format!("nietz.flow: exec_limits: {problem}")));
        }
        let summary = summary(table, "nietz.flow")?;
        Ok(Manifest { name, summary, permissions, limits, exec_limits, budget, collections, settings, main, commands })
    }
}

/// Checks an entry of `permissions.exec`: a command, or `{NAME}` for what the user gives in the param NAME.
fn check_grant(grant: &str, main: &FlowCommand) -> Result<()> {
    let Some(name) = crate::model::command::placeholder(grant) else {
        return match grant.trim() {
            "" => Err(invalid("nietz.flow: permissions.exec has an empty command".to_owned())),
            trimmed if trimmed != grant || is_easy_to_overlook(grant) => {
                let shown = excerpt(grant);
                let why =
                    format!("nietz.flow: permissions.exec has a command that cannot be read at a glance: `{shown}`");
                Err(invalid(why).hint(format!("a command has at most {COMMAND} characters, and single blanks in it")))
            }
            _ => Ok(()),
        };
    };
    if main.params.get(name).is_some_and(|param| param.kind == ParamKind::String) {
        return Ok(());
    }
    let failure = invalid(format!(
        "nietz.flow: permissions.exec names `{{{}}}`, and there is no such param with texts",
        excerpt(name)
    ));
    Err(match nearest(name, main.params.keys().map(String::as_str)) {
        Some(near) => failure.hint(format!("did you mean `{{{near}}}`?")),
        None => failure.hint("declare it: params = { NAME = { type = \"string\", many = true } }"),
    })
}

/// Checks that the manifest declares the default of a param that holds commands: the default is not the user's choice, so
/// the user must be asked about it.
fn check_default(grant: &str, command: &FlowCommand, declared: &[String]) -> Result<()> {
    let default = crate::model::command::placeholder(grant).and_then(|name| command.params.get(name)?.default.as_ref());
    let texts = match default {
        Some(serde_json::Value::Array(items)) => items.iter().filter_map(serde_json::Value::as_str).collect(),
        Some(serde_json::Value::String(text)) => vec![text.as_str()],
        _ => Vec::new(),
    };
    let Some(text) = texts.into_iter().find(|text| !declared.iter().any(|one| one == text)) else { return Ok(()) };
    let shown = excerpt(text);
    Err(invalid(format!(
        "nietz.flow: `{shown}` is run where nobody gives `{grant}`, and permissions.exec does not name it"
    ))
    .hint("add it to permissions.exec, so that who grants it reads it"))
}

/// Tells whether a person may overlook a part of a command, because it is long or has blanks in a row.
fn is_easy_to_overlook(grant: &str) -> bool {
    let blanks = |two: (char, char)| two.0.is_whitespace() && two.1.is_whitespace();
    grant.chars().count() > COMMAND || grant.chars().zip(grant.chars().skip(1)).any(blanks)
}

fn read_command(reader: &ManifestReader<'_>, table: &Table, what: &str) -> Result<FlowCommand> {
    let run = match table.raw_get::<LuaValue>("run") {
        Ok(LuaValue::Function(run)) => run,
        _ => return Err(invalid(format!("{what}: run must be a function"))),
    };
    let mut params = BTreeMap::new();
    let value = reader.json(&table.raw_get("params").unwrap_or(LuaValue::Nil), "params")?;
    if let Value::Object(declared) = value {
        for (name, param) in declared {
            let param: Param =
                serde_json::from_value(param).map_err(|error| invalid(format!("{what}: param `{name}`: {error}")))?;
            param.check(&name).map_err(|why| invalid(format!("{what}: param `{name}`: {why}")))?;
            params.insert(name, param);
        }
    }
    let mut shorts = vec!['h', 'C'];
    for (name, param) in &params {
        if let Some(short) = param.short {
            if shorts.contains(&short) || !short.is_ascii_alphanumeric() {
                return Err(invalid(format!("{what}: param `{name}`: `-{}` cannot be used", short.escape_default())));
            }
            shorts.push(short);
        }
    }
    check_count(params.len(), what, "params")?;
    let reads_only = match table.raw_get("reads_only") {
        Ok(LuaValue::Nil) => false,
        Ok(LuaValue::Boolean(reads_only)) => reads_only,
        _ => return Err(invalid(format!("{what}: reads_only must be true or false"))),
    };
    Ok(FlowCommand { summary: summary(table, what)?, params, reads_only, run })
}

fn read_settings(reader: &ManifestReader<'_>, table: &Table) -> Result<BTreeMap<String, Setting>> {
    let mut settings = BTreeMap::new();
    let declared: BTreeMap<String, serde_json::Map<String, Value>> =
        reader.part(table, "nietz.flow", "settings")?.unwrap_or_default();
    for (name, mut fields) in declared {
        let wrong = |why: String| invalid(format!("nietz.flow: setting `{name}`: {why}"));
        let limit = match fields.remove("limit") {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(_) => return Err(wrong("limit must be true or false".to_owned())),
        };
        for field in ["positional", "required", "many", "order", "short"] {
            if fields.contains_key(field) {
                return Err(wrong(format!("`{field}` is for params; a setting stands in a file")));
            }
        }
        let param: Param = serde_json::from_value(Value::Object(fields)).map_err(|error| wrong(error.to_string()))?;
        param.check(&name).map_err(&wrong)?;
        let number = matches!(param.kind, ParamKind::Integer | ParamKind::Number);
        if limit && !(number && param.default.is_some()) {
            return Err(wrong("a limit is a number with a default".to_owned()));
        }
        settings.insert(name, Setting { param, limit });
        check_count(settings.len(), "nietz.flow", "settings")?;
    }
    Ok(settings)
}

fn read_limits(table: &Table) -> Result<FlowLimits> {
    check_fields(table, "limits", &["seconds", "megabytes"])?;
    let mut limits = FlowLimits::default();
    if let Ok(Some(seconds)) = table.raw_get::<Option<f64>>("seconds") {
        limits.seconds = seconds;
    }
    if let Ok(Some(megabytes)) = table.raw_get::<Option<u64>>("megabytes") {
        limits.megabytes = megabytes;
    }
    if !(0.01..=MOST.seconds).contains(&limits.seconds) || !(1..=MOST.megabytes).contains(&limits.megabytes) {
        return Err(invalid(format!("limits: seconds go up to {}, megabytes up to {}", MOST.seconds, MOST.megabytes)));
    }
    Ok(limits)
}

/// The fields of a collection's `version`, without the migrations.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionData {
    field: String,
    current: Value,
    #[serde(default)]
    read_newer: bool,
}

fn read_collection(reader: &ManifestReader<'_>, name: &str, table: &Table) -> Result<DeclaredCollection> {
    let what = format!("collection `{name}`");
    check_fields(
        table,
        &what,
        &["path", "format", "schema", "formats", "keys", "version", "rules", "index", "expects"],
    )?;
    let path = text(table, &what, "path")?;
    let format = match table.raw_get::<Option<String>>("format").ok().flatten().as_deref() {
        Some(format) => Format::parse(format)
            .ok_or_else(|| invalid(format!("{what}: format must be yaml, json, jsonl or text, found `{format}`")))?,
        None => Format::of_path(&path).ok_or_else(|| {
            invalid(format!("{what}: the path's ending says no format")).hint("add `format = \"yaml\"` or the like")
        })?,
    };
    let (schema, schema_path) = match table.raw_get::<LuaValue>("schema") {
        Ok(LuaValue::String(_)) => (Value::Null, Some(text(table, &what, "schema")?)),
        Ok(LuaValue::Table(schema)) => (reader.json(&LuaValue::Table(schema), "schema")?, None),
        _ => return Err(invalid(format!("{what}: schema must be a table or the path of one"))),
    };
    let keys: BTreeMap<String, String> = reader.part(table, &what, "keys")?.unwrap_or_default();
    let mut migrations = BTreeMap::new();
    let version = match maybe_table(table, &what, "version")? {
        Some(declared) => {
            let mut data = convert_without(reader, &declared, "migrations", &mut migrations)?;
            let data: VersionData =
                serde_json::from_value(data.take()).map_err(|error| invalid(format!("{what}: version: {error}")))?;
            let mut migrates: Vec<String> = migrations.keys().cloned().collect();
            migrates.sort_by_key(|version| version_parts(version));
            Some(Version { field: data.field, current: data.current, migrates, read_newer: data.read_newer })
        }
        None => None,
    };
    let rules = match table.raw_get::<LuaValue>("rules") {
        Ok(LuaValue::Function(rules)) => Some(rules),
        Ok(LuaValue::Nil) => None,
        _ => return Err(invalid(format!("{what}: rules must be a function"))),
    };
    let expects = read_expects(&what, reader.part(table, &what, "expects")?.unwrap_or_default())?;
    let index = read_index(&what, format, reader.part(table, &what, "index")?.unwrap_or_default())?;
    let formats = match table.raw_get::<LuaValue>("formats") {
        Ok(LuaValue::Nil) => None,
        Ok(LuaValue::String(word)) if ["on-save", "never"].contains(&&*word.to_string_lossy()) => {
            Some(word.to_string_lossy())
        }
        _ => return Err(invalid(format!("{what}: formats must be on-save or never"))),
    };
    let collection = Collection { name: name.to_owned(), path, format, schema, version, keys, index, expects };
    Ok(DeclaredCollection { collection, schema_path, formats, migrations, rules })
}

/// An item of a collection's `expects`: one of the first four fields, and `within` for `numbered` and `rising`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectData {
    numbered: Option<String>,
    rising: Option<String>,
    ordered: Option<(String, String)>,
    follows: Option<String>,
    #[serde(default)]
    within: Vec<String>,
}

fn read_expects(what: &str, data: Vec<ExpectData>) -> Result<Vec<Expectation>> {
    let mut expects = Vec::new();
    for ExpectData { numbered, rising, ordered, follows, within } in data {
        let places = [&numbered, &rising, &follows].into_iter().flatten();
        let pair = ordered.iter().flat_map(|(first, second)| [first, second]);
        if let Some(place) = places.chain(pair).chain(&within).find(|place| !place.starts_with('/')) {
            let place = excerpt(place);
            return Err(invalid(format!(
                "{what}: expects: `{place}` must be a JSON pointer, such as `/turns/*/number`"
            )));
        }
        expects.push(match (numbered, rising, ordered, follows) {
            (Some(at), None, None, None) => Expectation::Numbered { at, within },
            (None, Some(at), None, None) => Expectation::Rising { at, within },
            (None, None, Some((first, second)), None) if within.is_empty() => Expectation::Ordered { first, second },
            (None, None, None, Some(at)) if within.is_empty() => Expectation::Follows { at },
            _ => {
                let message = format!("{what}: expects: each is one of numbered, rising, ordered and follows");
                return Err(invalid(message).hint("`within` goes with numbered and rising"));
            }
        });
    }
    Ok(expects)
}

/// A table of a collection's `index`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexData {
    #[serde(default)]
    each: String,
    columns: BTreeMap<String, String>,
}

fn read_index(what: &str, format: Format, data: BTreeMap<String, IndexData>) -> Result<Vec<IndexTable>> {
    if !data.is_empty() && !matches!(format, Format::Yaml | Format::Json) {
        return Err(invalid(format!(
            "{what}: only documents in YAML or JSON have an index; rows can be asked as they are"
        )));
    }
    let steps = |path: &str| path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let is_word = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut tables = Vec::new();
    for (name, table) in data {
        for word in table.columns.keys().chain([&name]) {
            if !is_word(word) || word == "document" {
                let word = excerpt(word);
                return Err(invalid(format!(
                    "{what}: index: `{word}` must be a name of letters, digits and _, and not `document`"
                )));
            }
        }
        let columns = table.columns.iter().map(|(column, path)| (column.clone(), steps(path))).collect();
        tables.push(IndexTable { each: steps(&table.each), name, columns });
    }
    Ok(tables)
}

/// Returns a version's numbers, for sorting: `1.10` comes after `1.9`.
fn version_parts(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// Returns a table as JSON without one member, whose functions go to `functions`.
fn convert_without(
    reader: &ManifestReader<'_>,
    table: &Table,
    without: &str,
    functions: &mut BTreeMap<String, Function>,
) -> Result<Value> {
    let mut members = serde_json::Map::new();
    for pair in table.pairs::<String, LuaValue>() {
        let (name, value) = pair.map_err(|_| invalid("version must be a table of named fields".to_owned()))?;
        if name != without {
            let value = reader.json(&value, &name)?;
            members.insert(name, value);
        } else if let LuaValue::Table(declared) = value {
            for pair in declared.pairs::<String, Function>() {
                let (version, function) =
                    pair.map_err(|_| invalid("migrations must be `[\"1.0\"] = function(doc) … end`".to_owned()))?;
                functions.insert(version, function);
            }
        }
    }
    Ok(Value::Object(members))
}

fn text(table: &Table, what: &str, name: &str) -> Result<String> {
    match table.raw_get::<LuaValue>(name) {
        Ok(LuaValue::String(text)) if text.as_bytes().len() <= SHORT => Ok(text.to_string_lossy()),
        Ok(LuaValue::String(_)) => Err(invalid(format!("{what}: {name} is longer than {SHORT} bytes"))),
        Ok(LuaValue::Nil) => Err(invalid(format!("{what} needs a {name}"))),
        _ => Err(invalid(format!("{what}: {name} must be a text"))),
    }
}

fn summary(table: &Table, what: &str) -> Result<String> {
    let summary = text(table, what, "summary")?;
    if summary.len() > SUMMARY {
        return Err(invalid(format!("{what}: the summary is longer than {SUMMARY} bytes; one line is enough")));
    }
    Ok(summary)
}

fn check_count(count: usize, what: &str, kind: &str) -> Result<()> {
    if count > MOST_OF_A_KIND {
        return Err(invalid(format!("{what} has more than {MOST_OF_A_KIND} {kind}")));
    }
    Ok(())
}

/// Converts parts of a manifest to JSON. All of them share one budget, so that a table that occurs many times counts each time.
struct ManifestReader<'a> {
    lua: &'a Lua,
    budget: RefCell<convert::ConversionBudget>,
}

impl ManifestReader<'_> {
    fn json(&self, value: &LuaValue, what: &str) -> Result<Value> {
        convert::to_json_within(self.lua, value, what, &mut self.budget.borrow_mut())
    }

    fn part<T: serde::de::DeserializeOwned>(&self, table: &Table, what: &str, name: &str) -> Result<Option<T>> {
        let value = self.json(&table.raw_get(name).unwrap_or(LuaValue::Nil), name)?;
        if value.is_null() {
            return Ok(None);
        }
        serde_json::from_value(value).map(Some).map_err(|error| invalid(format!("{what}: {name}: {error}")))
    }
}

fn maybe_table(table: &Table, what: &str, name: &str) -> Result<Option<Table>> {
    match table.raw_get::<LuaValue>(name) {
        Ok(LuaValue::Table(table)) => Ok(Some(table)),
        Ok(LuaValue::Nil) => Ok(None),
        _ => Err(invalid(format!("{what}: {name} must be a table"))),
    }
}

fn invalid(message: String) -> Failure {
    Failure::new(Code::FlowInvalid, message)
}
