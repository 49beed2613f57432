//! A flow that is loaded into its VM, with its manifest read, ready to run.

use std::rc::Rc;

use mlua::{MultiValue, Table, Value as LuaValue};
use serde_json::{Value, json};

use crate::engine::gate::Gate;
use crate::error::{Code, Failure, Place, Result, nearest};
use crate::lua::api::{Context, DeclaredCollections, GivenAttachments, HostApi, OnlyLooks, is_flow};
use crate::lua::limits::FlowLimits;
use crate::lua::manifest::{DeclaredCollection, FlowCommand, Manifest, RunCheck};
use crate::lua::scheduler::{Interrupts, LuaOutcome, Scheduler};
use crate::lua::vm::Vm;
use crate::lua::{convert, error_values, modules, vm_errors};
use crate::model::attachment::{self, ATTACH};
use crate::model::collection::{Collection, Format};
use crate::model::effect::Sources;
use crate::model::event::RunVerdict;
use crate::model::param::ParamKind;
use crate::model::text::{clean, excerpt};
use crate::pack::path::join;
use crate::pack::persona::PersonaNeeds;
use crate::pack::resolve::ResolvedFlow;
use crate::schema::report::{self, Severity};
use crate::schema::{Formats, SCHEMA_HINT, Schema, source};

/// Returns the length of the texts in the params that the user did not type, in bytes.
fn param_text_lengths(input: &FlowInput) -> usize {
    let length = |value: &Value| value.as_str().map_or(0, str::len);
    let names = input.origins.as_object().into_iter().flat_map(serde_json::Map::keys);
    names
        .map(|name| match &input.params[name] {
            Value::Array(items) => items.iter().map(length).sum(),
            one => length(one),
        })
        .sum()
}

/// A loaded flow.
pub struct Flow {
    vm: Rc<Vm>,
    context: Rc<Context>,
    pub manifest: Manifest,
    pub located: ResolvedFlow,
}

/// The input of a flow's `run` function.
pub struct FlowInput {
    pub params: Value,
    /// Where texts of the params came from that the user did not type.
    pub origins: Value,
    /// The commands that the run may run.
    pub commands: Vec<String>,
    /// What the user gave the run beside its params, when it began.
    pub options: Value,
    pub settings: Value,
    pub run: String,
    pub lang: String,
    pub workspace: String,
}

impl Flow {
    /// Loads a flow. The top level of its file runs within the limits, and cannot perform effects.
    ///
    /// # Errors
    ///
    /// `flow-not-found` if the file is gone; `flow-invalid` if the code or the manifest is wrong; `flow-limit` or
    /// `flow-memory` if the top level uses too much.
    pub fn load(located: ResolvedFlow, context: Context, limits: FlowLimits) -> Result<Flow> {
        let vm = Rc::new(Vm::new(limits)?);
        let context = Rc::new(context);
        vm.lua.set_app_data(Rc::clone(&context));
        modules::install(&vm, &located.tree).map_err(|error| vm_errors::from_error(&error))?;
        vm.close()?;
        let text = located
            .tree
            .text(&located.path)?
            .ok_or_else(|| Failure::new(Code::FlowNotFound, format!("{} is not there any more", located.source())))?;
        let chunk = vm.compile(&located.path, &text).map_err(|failure| snippet(&located, failure))?;
        let thread = vm.lua.create_thread(vm.bridge.guard.clone()).map_err(|error| vm_errors::from_error(&error))?;
        let resumed = vm.slice(|| thread.resume::<MultiValue>((vm.bridge.load.clone(), chunk)))?;
        let mut values = resumed.map_err(|error| vm_errors::from_error(&error))?.into_iter();
        if thread.is_resumable() {
            return Err(Failure::new(Code::FlowInvalid, "coroutine.yield was called while the file was loaded"));
        }
        let succeeded = matches!(values.next(), Some(LuaValue::Boolean(true)));
        let value = values.next().unwrap_or(LuaValue::Nil);
        if !succeeded {
            return Err(snippet(&located, raised_failure(&vm, &value)));
        }
        let manifest = read_manifest(&vm, &located, &value).map_err(|failure| snippet(&located, failure))?;
        if let Some(limits) = manifest.limits {
            vm.limit(limits)?;
        }
        context.personas.set_needs(PersonaNeeds::compile(&manifest.personas)?);
        let collections = manifest.collections.iter();
        *context.collections.borrow_mut() =
            collections.map(|(name, declared)| (name.clone(), declared.collection.clone())).collect();
        vm.lua.set_app_data(HostApi(manifest.host_api));
        vm.lua.set_app_data(DeclaredCollections(manifest.collections.clone()));
        Ok(Flow { vm, context, manifest, located })
    }

    /// Returns the command of this name; without a name, the flow's own `run`.
    ///
    /// # Errors
    ///
    /// `usage` if the flow has no such command.
    pub fn command(&self, name: Option<&str>) -> Result<&FlowCommand> {
        let Some(name) = name else { return Ok(&self.manifest.main) };
        self.manifest.commands.get(name).ok_or_else(|| {
            let failure = Failure::new(Code::Usage, format!("{} has no command `{name}`", self.manifest.name));
            match nearest(name, self.manifest.offered().map(|(known, _)| known.as_str())) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            }
        })
    }

    /// Returns the digests of the flow's files: its main file, those in the folder of its name, and those that it read.
    pub fn sources(&self) -> Sources {
        let tree = &self.located.tree;
        let folder = format!("{}/", self.located.path.trim_end_matches(".lua"));
        let top = folder.split('/').next().unwrap_or_default().to_owned();
        for path in tree.list(&top, "").iter().filter(|path| path.starts_with(&folder)) {
            // A file that is no text is no source, and a file that cannot be read fails where it is needed.
            let _ = tree.text(path);
        }
        tree.digests()
    }

    /// Returns what the flow's modules know of the run.
    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    /// Runs a command of the flow to its end.
    ///
    /// # Errors
    ///
    /// `usage` if there is no such command, and those of [`Scheduler::run`]; other failures are outcomes.
    pub async fn run(
        &self,
        command: Option<&str>,
        input: &FlowInput,
        gate: Rc<Gate>,
        interrupts: &mut dyn Interrupts,
    ) -> Result<FlowOutcome> {
        let command = self.command(command)?;
        let run = command.run.clone();
        self.vm.lua.set_app_data(OnlyLooks(command.reads_only));
        let from_elsewhere = param_text_lengths(input);
        if from_elsewhere > 0 {
            // What the user gives is none of the flow's making: it has room for that, and for a prompt made of it.
            self.vm.make_room(from_elsewhere.saturating_mul(3))?;
        }
        let mut params = input.params.clone();
        let mut origins = input.origins.clone();
        let attachments = match command.params.get(ATTACH) {
            Some(param) if param.kind == ParamKind::Attachment => attachment::take(&mut params, &mut origins),
            _ => Vec::new(),
        };
        self.vm.lua.set_app_data(GivenAttachments(attachments.clone()));
        if self.manifest.host_api >= 2 {
            forget_absent(&mut params, command);
        }
        let context = json!({
            "params": params, "settings": input.settings, "run": input.run, "lang": input.lang,
            "workspace": input.workspace, "origins": origins, "attachments": attachments,
            "commands": input.commands, "options": input.options,
        });
        let argument = self.argument(&context).map_err(|error| vm_errors::from_error(&error))?;
        match Scheduler::new(&self.vm, gate).run(run, argument, interrupts).await? {
            LuaOutcome::Returned(value, verdict) => match convert::to_json(&self.vm.lua, &value, "the flow's result") {
                Ok(result) => Ok(FlowOutcome::Returned(result, verdict)),
                Err(failure) => Ok(FlowOutcome::Failed(failure)),
            },
            LuaOutcome::Raised(failure) => Ok(FlowOutcome::Failed(snippet(&self.located, failure))),
            LuaOutcome::Parked(failure) => Ok(FlowOutcome::Parked(failure)),
            LuaOutcome::Interrupted(failure) => Ok(FlowOutcome::Interrupted(failure)),
        }
    }

    /// Returns the table that `run` is called with; params and settings that were not given are nil, not null.
    fn argument(&self, context: &Value) -> mlua::Result<LuaValue> {
        let mut context = context.clone();
        for part in ["params", "settings"] {
            if let Some(members) = context[part].as_object_mut() {
                members.retain(|_, value| !value.is_null());
            }
        }
        convert::to_lua(&self.vm.lua, &context)
    }

    /// Migrates an older document to the current version. Migrations are pure functions: they perform no effects.
    ///
    /// # Errors
    ///
    /// The failure that the migration raised; `flow-invalid` if it yields an effect.
    pub fn migrate(&self, collection: &str, mut document: Value, from: &str) -> Result<Value> {
        let Some(declared) = self.manifest.collections.get(collection) else { return Ok(document) };
        let order = declared.collection.version.as_ref().map(|version| version.migrates.clone()).unwrap_or_default();
        for version in order.iter().skip_while(|version| version.as_str() != from) {
            if let Some(migrate) = declared.migrations.get(version) {
                document = self.pure(migrate, &document)?;
                if !document.is_object() && !document.is_array() {
                    return Err(no_document(version, &document));
                }
            }
        }
        Ok(document)
    }

    /// Returns the findings of the collection's rules about a valid document.
    ///
    /// # Errors
    ///
    /// The failure that the rules raised; `flow-invalid` if they yield an effect.
    pub fn rules(&self, collection: &str, document: &Value) -> Result<Vec<RuleFinding>> {
        let rules = self.manifest.collections.get(collection).and_then(|declared| declared.rules.clone());
        let Some(rules) = rules else { return Ok(Vec::new()) };
        let findings = self.pure(&rules, document)?;
        let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        Ok(findings
            .as_array()
            .map(|findings| {
                let read = |finding: &Value| RuleFinding {
                    pointer: text(finding, "pointer"),
                    message: text(finding, "message"),
                    note: finding["severity"] == "note",
                };
                findings.iter().map(read).collect()
            })
            .unwrap_or_default())
    }

    /// Returns what the flow shows of a run in a report: blocks, or null where it shows nothing of its own.
    ///
    /// # Errors
    ///
    /// The failure that its function raised; `flow-invalid` if it yields an effect.
    pub fn report(&self, run: &Value) -> Result<Value> {
        self.manifest.report.as_ref().map_or(Ok(Value::Null), |report| self.pure(report, run))
    }

    /// Returns which of the flow's computed checks hold for a run, by their names: those that return `true`.
    ///
    /// # Errors
    ///
    /// As [`Flow::report`].
    pub fn computed_checks(&self, run: &Value) -> Result<Vec<(String, bool)>> {
        let computed = self.manifest.checks.iter().filter_map(|(name, check)| match check {
            RunCheck::Computed(check) => Some((name, check)),
            RunCheck::Judged(_) => None,
        });
        computed.map(|(name, check)| Ok((name.clone(), self.pure(check, run)? == true))).collect()
    }

    /// Returns what the flow wants a judge to be asked about its runs: names and questions.
    pub fn judged_checks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.manifest.checks.iter().filter_map(|(name, check)| match check {
            RunCheck::Judged(question) => Some((name.as_str(), question.as_str())),
            RunCheck::Computed(_) => None,
        })
    }

    /// Returns what of a run is held against others: its result, unless the flow says otherwise.
    ///
    /// # Errors
    ///
    /// As [`Flow::report`].
    pub fn compared(&self, run: &Value) -> Result<Value> {
        self.manifest.compared.as_ref().map_or_else(|| Ok(run["result"].clone()), |compared| self.pure(compared, run))
    }

    /// Runs a function that must not perform effects.
    fn pure(&self, function: &mlua::Function, argument: &Value) -> Result<Value> {
        let lua = &self.vm.lua;
        let argument = convert::to_lua(lua, argument).map_err(|error| vm_errors::from_error(&error))?;
        let thread = lua.create_thread(self.vm.bridge.guard.clone()).map_err(|error| vm_errors::from_error(&error))?;
        let resumed = self.vm.slice(|| thread.resume::<MultiValue>((function.clone(), argument)))?;
        let mut values = resumed.map_err(|error| vm_errors::from_error(&error))?.into_iter();
        if thread.is_resumable() {
            return Err(Failure::new(
                Code::FlowInvalid,
                "migrations, rules and reports may only compute: no effect in them",
            ));
        }
        let succeeded = matches!(values.next(), Some(LuaValue::Boolean(true)));
        let value = values.next().unwrap_or(LuaValue::Nil);
        if succeeded {
            convert::to_json(lua, &value, "result")
        } else {
            Err(snippet(&self.located, raised_failure(&self.vm, &value)))
        }
    }
}

/// A finding of a collection's rules about a document.
pub struct RuleFinding {
    pub pointer: String,
    pub message: String,
    /// Whether the finding is only a remark: the document is valid all the same.
    pub note: bool,
}

/// How a flow's run ended.
pub enum FlowOutcome {
    Returned(Value, Option<RunVerdict>),
    Failed(Failure),
    Parked(Failure),
    Interrupted(Failure),
}

/// Returns the failure of a migration that gave something else than a document.
fn no_document(version: &str, returned: &Value) -> Failure {
    let what = match returned {
        Value::Null => "nothing".to_owned(),
        other => format!("no document, but {}", excerpt(&other.to_string())),
    };
    Failure::new(Code::FlowError, format!("the migration from \"{version}\" returned {what}"))
        .hint("a migration ends with `return doc`")
}

/// Takes params out that were not given and have no default: a list that is empty, and a switch that is off.
fn forget_absent(params: &mut Value, command: &FlowCommand) {
    let Some(members) = params.as_object_mut() else { return };
    members.retain(|name, value| {
        let absent = value.as_array().is_some_and(Vec::is_empty) || *value == Value::Bool(false);
        !absent || command.params.get(name).is_none_or(|param| param.default.is_some())
    });
}

fn raised_failure(vm: &Vm, value: &LuaValue) -> Failure {
    let (problem, trace) = match value {
        LuaValue::Table(table) => (
            table.raw_get("problem").unwrap_or(LuaValue::Nil),
            table.raw_get::<Option<String>>("trace").ok().flatten().unwrap_or_default(),
        ),
        other => (other.clone(), String::new()),
    };
    let mut failure = error_values::from_lua(&vm.lua, &problem, &trace);
    if failure.code == Code::FlowError {
        failure.code = Code::FlowInvalid;
    }
    failure
}

fn read_manifest(vm: &Vm, located: &ResolvedFlow, value: &LuaValue) -> Result<Manifest> {
    let table: &Table = match value {
        LuaValue::Table(table) if is_flow(&vm.lua, table) => table,
        _ => {
            return Err(Failure::new(Code::FlowInvalid, format!("{} does not return a flow", located.path))
                .hint("end the file with `return nietz.flow { name = …, summary = …, run = function(ctx) … end }`"));
        }
    };
    let mut manifest = Manifest::read(&vm.lua, table)?;
    let mut left = convert::TEXT;
    let collections = manifest.collections.iter_mut().filter_map(|(name, declared)| {
        let path = declared.schema_path.clone()?;
        Some((format!("collection `{name}`"), path, &mut declared.collection.schema))
    });
    let personas = manifest.personas.iter_mut().map(|(tag, schema)| {
        let path = schema.as_str().unwrap_or_default().to_owned();
        (format!("personas with the tag `{tag}`"), path, schema)
    });
    for (what, relative, schema) in collections.chain(personas) {
        let invalid = |why: String| Failure::new(Code::FlowInvalid, format!("{what}: {why}"));
        let path = join(&located.path, &relative)
            .ok_or_else(|| invalid(format!("`{relative}` is not a path in this pack")))?;
        let text = located.tree.text(&path)?.ok_or_else(|| invalid(format!("there is no file `{path}`")))?;
        left =
            left.checked_sub(text.len()).ok_or_else(|| invalid("the schemas have more than 4 MB in all".to_owned()))?;
        let format = Format::of_path(&path).unwrap_or(Format::Json);
        *schema = source::parse(&text, format, &located.tree.display(&path))?;
    }
    for declared in manifest.collections.values_mut() {
        if let (Some(formats), Some(schema)) = (&declared.formats, declared.collection.schema.as_object_mut()) {
            schema.insert(crate::schema::FORMATS.to_owned(), formats.as_str().into());
        }
    }
    for declared in manifest.collections.values() {
        schema_fault(located, declared)?;
        crate::model::path_template::PathTemplate::of(&declared.collection)?;
    }
    Ok(manifest)
}

/// Refuses a collection whose schema is none, with the place in the schema's file.
fn schema_fault(located: &ResolvedFlow, declared: &DeclaredCollection) -> Result<()> {
    let Collection { name, schema, .. } = &declared.collection;
    let Err(wrong) = Schema::try_compile(schema, Formats::Asserted) else { return Ok(()) };
    let file = declared.schema_path.as_ref().map(|path| format!(" ({path})")).unwrap_or_default();
    let failure = Failure::new(Code::FlowInvalid, format!("collection `{name}`: its schema{file} is wrong: {wrong}"));
    let mut failure = failure.hint(SCHEMA_HINT);
    let path = declared.schema_path.as_ref().and_then(|relative| join(&located.path, relative));
    if let Some(path) = path
        && let Some(text) = located.tree.text(&path)?
    {
        let format = Format::of_path(&path).unwrap_or(Format::Json);
        let place = report::locate(vec![wrong], Severity::Error, &text, format, &path);
        let line = place.first().and_then(|place| u64::try_from(place.line).ok());
        failure.place = Some(Box::new(Place::line(path, line)));
    }
    Err(failure)
}

/// Adds the source line to a failure that was raised in a file of the pack, and names the file by its path for people.
fn snippet(located: &ResolvedFlow, mut failure: Failure) -> Failure {
    let Some(place) = &mut failure.place else { return failure };
    let Some(line) = place.line.and_then(|line| usize::try_from(line).ok()) else { return failure };
    let Ok(Some(text)) = located.tree.text(&place.file) else { return failure };
    if let Some(source) = text.lines().nth(line.saturating_sub(1)) {
        let source = clean(source.trim_end());
        place.excerpt = Some(source.chars().take(160).collect());
        place.file = located.tree.display(&place.file);
    }
    failure
}
