//! A flow's manifest: read from the table that its file returns, with every field checked.

mod collections;

use std::cell::RefCell;
use std::collections::BTreeMap;

use mlua::{Function, Lua, Table, Value as LuaValue};
use serde_json::Value;

use crate::error::{Code, Failure, Result, nearest};
use crate::lua::convert;
use crate::lua::limits::{FlowLimits, MOST};
use crate::model::attachment::{self, ATTACH};
use crate::model::budget::Budget;
use crate::model::collection::Collection;
use crate::model::command;
use crate::model::param::{Param, ParamKind};
use crate::model::permission::Permissions;
use crate::model::setting::Setting;
use crate::model::text::{excerpt, line};
use crate::pack::manifest::HOST_API;
use collections::read_collection;

/// The most characters of a command that a flow asks for: the person who grants it reads it.
const COMMAND: usize = 200;
/// The most commands that a flow may ask for: a person reads them.
const MOST_COMMANDS: usize = 100;

/// The longest name and the longest summary, in bytes.
const NAME: usize = 64;
const SUMMARY: usize = 500;
/// The longest text of any field, in bytes.
const SHORT: usize = 4096;
/// The most faults that are told at once.
const MOST_FAULTS: usize = 30;
/// The most params, settings, collections or commands.
const MOST_OF_A_KIND: usize = 200;

/// A flow's manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub name: String,
    pub summary: String,
    /// The version of the host API that the flow was written for.
    pub host_api: u64,
    pub permissions: Permissions,
    pub limits: Option<FlowLimits>,
    /// The most that each command of a run may use.
    pub exec_limits: command::CommandLimits,
    /// The most that a run of this flow should use.
    pub budget: Budget,
    pub collections: BTreeMap<String, DeclaredCollection>,
    /// What the flow needs of personas with a tag: the schema of their front matter, as a path until the flow is loaded.
    pub personas: BTreeMap<String, Value>,
    /// The settings that people may give for this flow in their configuration.
    pub settings: BTreeMap<String, Setting>,
    /// What `nietz run FLOW` runs.
    pub main: FlowCommand,
    /// What `nietz run FLOW NAME` runs.
    pub commands: BTreeMap<String, FlowCommand>,
    /// What shows a run of the flow as blocks, for `nietz report`.
    pub report: Option<Function>,
    /// What tells by name whether a run of the flow is as it should be, for `nietz compare`.
    pub checks: BTreeMap<String, RunCheck>,
    /// What of a run is held against others, for `nietz compare`.
    pub compared: Option<Function>,
}

/// What each run of a flow must be.
#[derive(Clone, Debug)]
pub enum RunCheck {
    /// A function that returns `true` where it holds.
    Computed(Function),
    /// A question about what came out, for a judge that the user names: yes or no.
    Judged(String),
}

/// The fields of a command of a flow.
const COMMAND_FIELDS: &[&str] = &["summary", "params", "attachments", "reads_only", "internal", "run"];

/// What a manifest says of its attachments where a pipe brings one, too.
const PIPED: &[u8] = b"piped";

/// A function of a flow that the user can run, with its params.
#[derive(Clone, Debug)]
pub struct FlowCommand {
    pub summary: String,
    pub params: BTreeMap<String, Param>,
    /// Whether what comes by a pipe is one of its attachments.
    pub takes_pipe: bool,
    /// Whether it only looks: it changes nothing, asks nobody and calls no model, and leaves no run.
    pub reads_only: bool,
    /// Whether only `task.spawn` begins it: nobody is shown it, and it is no word of the command line.
    pub internal: bool,
    pub run: Function,
}

impl Manifest {
    /// Returns the commands that people and clients can name.
    pub fn offered(&self) -> impl Iterator<Item = (&String, &FlowCommand)> {
        self.commands.iter().filter(|(_, command)| !command.internal)
    }
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
    /// What is accepted and should be written in another way.
    pub remarks: Vec<ManifestRemark>,
}

/// Something of a manifest that is accepted and should be written in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestRemark {
    /// The text that stands in the flow.
    pub found: String,
    pub message: String,
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
    /// Returns the paths of the documents that are read in the user's other folders, too.
    pub fn read_everywhere(&self) -> impl Iterator<Item = &str> {
        let everywhere = self.collections.values().filter(|declared| declared.collection.everywhere);
        everywhere.map(|declared| declared.collection.path.as_str())
    }

    /// Reads the table that `nietz.flow` was called with.
    ///
    /// # Errors
    ///
    /// `flow-invalid` if a field is missing, unknown or wrong; `request-invalid` if a value has no JSON form.
    pub fn read(lua: &Lua, table: &Table) -> Result<Manifest> {
        let reader = &ManifestReader { lua, budget: RefCell::default(), faults: RefCell::default() };
        let known = check_fields(
            table,
            "nietz.flow",
            &[
                "name",
                "summary",
                "host_api",
                "params",
                "attachments",
                "permissions",
                "settings",
                "collections",
                "personas",
                "commands",
                "limits",
                "exec_limits",
                "budget",
                "report",
                "checks",
                "compared",
                "run",
            ],
        );
        reader.keep(known);
        let name = reader.keep(read_name(table));
        let host_api = reader.keep(read_host_api(table)).unwrap_or(1);
        let permissions: Permissions =
            reader.keep(reader.part(table, "nietz.flow", "permissions")).flatten().unwrap_or_default();
        let main = reader.keep(read_command(reader, table, "nietz.flow"));
        if permissions.exec.len() > MOST_COMMANDS {
            let why =
                format!("nietz.flow: permissions.exec names more than {MOST_COMMANDS} commands, which nobody reads");
            return Err(invalid(why));
        }
        for server in &permissions.mcp {
            reader.keep(check_server(server));
        }
        for (grant, main) in permissions.exec.iter().zip(main.iter().cycle()) {
            reader.keep(check_grant(grant, main));
        }
        for (grant, main) in permissions.exec_read.iter().zip(main.iter().cycle()) {
            reader.keep(check_file_grant(grant, main));
        }
        let settings = reader.keep(read_settings(reader, table)).unwrap_or_default();
        let mut collections = BTreeMap::new();
        if let Some(declared) = reader.keep(maybe_table(table, "nietz.flow", "collections")).flatten() {
            for pair in declared.pairs::<String, Table>() {
                let (name, table) =
                    pair.map_err(|_| invalid("nietz.flow: collections must be `name = {…}`".to_owned()))?;
                if let Some(collection) = reader.keep(read_collection(reader, &name, &table)) {
                    collections.insert(name, collection);
                }
                check_count(collections.len(), "nietz.flow", "collections")?;
            }
        }
        let personas: BTreeMap<String, String> =
            reader.keep(reader.part(table, "nietz.flow", "personas")).flatten().unwrap_or_default();
        check_count(personas.len(), "nietz.flow", "personas")?;
        let mut commands = BTreeMap::new();
        if let Some(declared) = reader.keep(maybe_table(table, "nietz.flow", "commands")).flatten() {
            for pair in declared.pairs::<String, Table>() {
                let (name, table) =
                    pair.map_err(|_| invalid("nietz.flow: commands must be `name = {…}`".to_owned()))?;
                let what = format!("command `{name}`");
                if name.is_empty() || name.starts_with('-') || name.contains(' ') || line(&name) != name {
                    let shown = excerpt(&name);
                    return Err(invalid(format!("nietz.flow: `{shown}` is not a valid name for a command"))
                        .hint("it is one word, which is typed behind the flow's name"));
                }
                reader.keep(check_fields(&table, &what, COMMAND_FIELDS));
                if let Some(command) = reader.keep(read_command(reader, &table, &what)) {
                    commands.insert(name, command);
                }
                check_count(commands.len(), "nietz.flow", "commands")?;
            }
        }
        let limits = reader.keep(maybe_table(table, "nietz.flow", "limits")).flatten();
        let limits = limits.and_then(|limits| reader.keep(read_limits(&limits)));
        let budget: Budget = reader.keep(reader.part(table, "nietz.flow", "budget")).flatten().unwrap_or_default();
        if let Some(problem) = budget.problem() {
            reader.tell(invalid(format!("nietz.flow: budget.{problem}")));
        }
        for grant in &permissions.exec {
            for command in main.iter().chain(commands.values()) {
                reader.keep(check_default(grant, command, &permissions.exec));
            }
        }
        let exec_limits: command::CommandLimits =
            reader.keep(reader.part(table, "nietz.flow", "exec_limits")).flatten().unwrap_or_default();
        if let Some(problem) = exec_limits.problem() {
            reader.tell(invalid(format!("nietz.flow: exec_limits: {problem}")));
        }
        let report = reader.keep(read_function(table, "report"));
        let compared = reader.keep(read_function(table, "compared"));
        let checks = reader.keep(read_checks(table));
        let summary = main.as_ref().map(|main| main.summary.clone());
        match (reader.end(), name, summary, main) {
            (None, Some(name), Some(summary), Some(main)) => Ok(Manifest {
                name,
                summary,
                host_api,
                permissions,
                limits,
                exec_limits,
                budget,
                collections,
                personas: personas.into_iter().map(|(tag, path)| (tag, Value::String(path))).collect(),
                settings,
                main,
                commands,
                report: report.flatten(),
                checks: checks.unwrap_or_default(),
                compared: compared.flatten(),
            }),
            (failure, ..) => Err(failure.unwrap_or_else(|| invalid("nietz.flow cannot be read".to_owned()))),
        }
    }
}

/// Returns a function of the manifest that only computes.
fn read_function(table: &Table, name: &str) -> Result<Option<Function>> {
    match table.raw_get::<LuaValue>(name) {
        Ok(LuaValue::Nil) => Ok(None),
        Ok(LuaValue::Function(function)) => Ok(Some(function)),
        _ => Err(invalid(format!("nietz.flow: {name} must be a function"))),
    }
}

fn read_checks(table: &Table) -> Result<BTreeMap<String, RunCheck>> {
    let wrong = || invalid("nietz.flow: checks must be functions, or questions for a judge, by their names".to_owned());
    let declared = match table.raw_get::<LuaValue>("checks") {
        Ok(LuaValue::Nil) => return Ok(BTreeMap::new()),
        Ok(LuaValue::Table(checks)) => checks,
        _ => return Err(wrong()),
    };
    let mut checks = BTreeMap::new();
    for pair in declared.pairs::<String, LuaValue>() {
        let (name, check) = pair.map_err(|_| wrong())?;
        let check = match check {
            LuaValue::Function(check) => RunCheck::Computed(check),
            LuaValue::String(question) => RunCheck::Judged(question.to_string_lossy()),
            _ => return Err(wrong()),
        };
        checks.insert(name, check);
        check_count(checks.len(), "nietz.flow", "checks")?;
    }
    Ok(checks)
}

fn read_name(table: &Table) -> Result<String> {
    let name = text(table, "nietz.flow", "name")?;
    let kebab = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if name.is_empty() || name.len() > NAME || !kebab || name.starts_with('-') {
        return Err(invalid(format!("nietz.flow: name `{}` is not kebab-case", excerpt(&name)))
            .hint("use lower-case letters, digits and hyphens: `second-opinion`"));
    }
    Ok(name)
}

/// Returns the version of the host API that a flow was written for; 1 if it does not say.
fn read_host_api(table: &Table) -> Result<u64> {
    match table.raw_get::<Option<u64>>("host_api") {
        Ok(version) if (1..=HOST_API).contains(&version.unwrap_or(1)) => Ok(version.unwrap_or(1)),
        Ok(Some(version)) if version > HOST_API => {
            let why = format!("nietz.flow: it needs version {version} of the host API; this nietz has {HOST_API}");
            Err(invalid(why).hint("use a newer nietz"))
        }
        _ => Err(invalid(format!("nietz.flow: host_api must be a whole number from 1 to {HOST_API}"))),
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

/// Checks an entry of `permissions.mcp`: a name as configurations have it.
fn check_server(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with(['-', '_']) {
        return Ok(());
    }
    let why = format!("nietz.flow: permissions.mcp has `{}`, which is no name of an MCP server", excerpt(name));
    Err(invalid(why).hint("a name has small letters, digits, `-` and `_`, such as `docs`"))
}

/// Checks an entry of `permissions.exec_read`: `{NAME}` for the files that the user names in the param NAME. A flow names none
/// itself.
fn check_file_grant(grant: &str, main: &FlowCommand) -> Result<()> {
    let param = crate::model::command::placeholder(grant).and_then(|name| main.params.get(name));
    let is_given = |param: &&Param| match &param.default {
        None => true,
        // A table of Lua without entries may be either.
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    };
    match param.filter(|param| param.kind == ParamKind::String).filter(is_given) {
        Some(_) => Ok(()),
        None => {
            let why = format!(
                "nietz.flow: permissions.exec_read has `{}`, which is no param of texts without a default",
                excerpt(grant)
            );
            Err(invalid(why).hint("declare it: params = { NAME = { type = \"string\", many = true, default = {} } }"))
        }
    }
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
        Ok(LuaValue::Function(run)) => Ok(run),
        _ => Err(invalid(format!("{what}: run must be a function"))),
    };
    let (run, summary) = (reader.keep(run), reader.keep(summary(table, what)));
    let mut params = BTreeMap::new();
    let value = reader.json(&table.raw_get("params").unwrap_or(LuaValue::Nil), "params")?;
    if let Value::Object(declared) = value {
        for (name, param) in declared {
            let param = serde_json::from_value(param).map_err(|error| error.to_string());
            let param = param.and_then(|param: Param| param.check(&name).map(|()| param));
            let param = param.map_err(|why| invalid(format!("{what}: param `{name}`: {why}")));
            if let Some(param) = reader.keep(param) {
                params.insert(name, param);
            }
        }
    }
    let (takes_files, takes_pipe) = match table.raw_get("attachments") {
        Ok(LuaValue::Nil) => (false, false),
        Ok(LuaValue::Boolean(takes_files)) => (takes_files, false),
        Ok(LuaValue::String(word)) if word.as_bytes() == PIPED => (true, true),
        _ => reader
            .keep(Err(invalid(format!("{what}: attachments must be true, false or \"piped\""))))
            .unwrap_or_default(),
    };
    if takes_files && params.insert(ATTACH.to_owned(), attachment::param()).is_some() {
        reader.tell(invalid(format!("{what}: with attachments, `{ATTACH}` is no name for a param")));
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
    let flag = |name: &str| match table.raw_get(name) {
        Ok(LuaValue::Nil) => false,
        Ok(LuaValue::Boolean(flag)) => flag,
        _ => reader.keep(Err(invalid(format!("{what}: {name} must be true or false")))).unwrap_or_default(),
    };
    let (reads_only, internal) = (flag("reads_only"), flag("internal"));
    // What is missing was told, so that the manifest is not used.
    let nothing =
        || reader.lua.create_function(|_, ()| Ok(())).map_err(|error| crate::lua::vm_errors::from_error(&error));
    let run = run.map_or_else(nothing, Ok)?;
    Ok(FlowCommand { summary: summary.unwrap_or_default(), params, takes_pipe, reads_only, internal, run })
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
        for field in ["positional", "required", "many", "order", "short", "alone", "min_items", "max_items"] {
            if fields.contains_key(field) {
                return Err(wrong(format!("`{field}` is for params; a setting stands in a file")));
            }
        }
        let param: Param = serde_json::from_value(Value::Object(fields)).map_err(|error| wrong(error.to_string()))?;
        param.check(&name).map_err(&wrong)?;
        if matches!(param.kind, ParamKind::Revision | ParamKind::Persona | ParamKind::Model) {
            return Err(wrong(format!("the type `{}` is for params", param.kind.name())));
        }
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
    /// What is wrong, so that all of it is told at once.
    faults: RefCell<Vec<Failure>>,
}

impl ManifestReader<'_> {
    fn tell(&self, fault: Failure) {
        self.faults.borrow_mut().push(fault);
    }

    /// Returns what was read, or keeps what is wrong with it.
    fn keep<T>(&self, read: Result<T>) -> Option<T> {
        read.map_err(|fault| self.tell(fault)).ok()
    }

    /// Returns one failure for all faults.
    fn end(&self) -> Option<Failure> {
        let mut faults = std::mem::take(&mut *self.faults.borrow_mut());
        // What is too large as a whole is told for every part.
        faults.dedup_by(|fault, before| fault.code == before.code && fault.message == before.message);
        if faults.len() < 2 {
            return faults.pop();
        }
        let failure = Failure::new(Code::FlowInvalid, format!("the manifest has {} faults", faults.len()));
        Some(faults.into_iter().take(MOST_FAULTS).fold(failure, |failure, fault| {
            let hint = fault.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            failure.because(format!("{}{hint}", fault.message))
        }))
    }

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
