//! The modules that flows can require: one file each, with its types beside it in `<module>.d.luau`.
//!
//! A module is a table of contents: names and the functions behind them. A pure function computes; an effect's
//! function only describes a request, which the scheduler takes to the gate.

mod args;
mod clock;
mod documents;
mod files;
mod git;
mod json;
mod llm;
mod mcp;
mod nietz;
mod personas;
mod quotes;
mod random;
mod schema;
mod task;
mod template;
mod text;
mod ui;
mod xml;
mod yaml;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

use crate::error::{Failure, Result};
use crate::lua::request::Request;
use crate::lua::vm::{Vm, YieldedRequest, answer};
use crate::lua::{error_values, vm_errors};
use crate::model::choice::ModelChoice;
use crate::model::collection::Collection;
use crate::pack::persona::Personas;
use crate::pack::tree::PackTree;

/// Builds a module's table.
type Make = fn(&Rc<Vm>) -> mlua::Result<Table>;

/// Every module: its name, its builder, its types.
pub const ALL: &[(&str, Make, &str)] = &[
    ("@nietz", nietz::module, include_str!("nietz.d.luau")),
    ("@nietz/llm", llm::module, include_str!("llm.d.luau")),
    ("@nietz/ui", ui::module, include_str!("ui.d.luau")),
    ("@nietz/documents", documents::module, include_str!("documents.d.luau")),
    ("@nietz/files", files::module, include_str!("files.d.luau")),
    ("@nietz/git", git::module, include_str!("git.d.luau")),
    ("@nietz/mcp", mcp::module, include_str!("mcp.d.luau")),
    ("@nietz/personas", personas::module, include_str!("personas.d.luau")),
    ("@nietz/quotes", quotes::module, include_str!("quotes.d.luau")),
    ("@nietz/template", template::module, include_str!("template.d.luau")),
    ("@nietz/task", task::module, include_str!("task.d.luau")),
    ("@nietz/clock", clock::module, include_str!("clock.d.luau")),
    ("@nietz/random", random::module, include_str!("random.d.luau")),
    ("@nietz/schema", schema::module, include_str!("schema.d.luau")),
    ("@nietz/json", json::module, include_str!("json.d.luau")),
    ("@nietz/yaml", yaml::module, include_str!("yaml.d.luau")),
    ("@nietz/xml", xml::module, include_str!("xml.d.luau")),
    ("@nietz/text", text::module, include_str!("text.d.luau")),
];

/// Returns the names that each module offers, read from its types.
pub(in crate::lua) fn names() -> BTreeMap<&'static str, BTreeSet<String>> {
    let named = |module: &str, types: &str| -> BTreeSet<String> {
        let of = module.rsplit(['/', '@']).next().unwrap_or(module);
        let (function, field) = (format!("function {of}."), format!("{of}."));
        let names = types.lines().filter_map(|line| {
            let rest = line.strip_prefix(&function).or_else(|| line.strip_prefix(&field))?;
            Some(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned())
        });
        names.collect()
    };
    ALL.iter().map(|(name, _, types)| (*name, named(name, types))).collect()
}

/// Replaces the stock functions for time, chance and output with recorded effects.
pub fn replace_stock(vm: &Rc<Vm>) -> mlua::Result<()> {
    clock::replace(vm)?;
    random::replace(vm)?;
    ui::replace(vm)
}

/// Returns the full name of a model for a name or an alias, and the effort of calls that say nothing of it; without a name,
/// those of the run's default model.
pub type Resolve = Box<dyn Fn(Option<&str>) -> Result<ModelChoice>>;

/// Returns how many tokens a model takes in one call.
pub type Window = Box<dyn Fn(&str) -> Option<u64>>;

/// What the modules need to know of the run.
pub struct Context {
    /// The flow's own pack.
    pub tree: PackTree,
    pub personas: Personas,
    /// Where quotes come from, nearest first.
    pub layers: Vec<PackTree>,
    /// Resolves a model's name or alias to `provider/model`; without a name, returns the run's default model.
    pub resolve: Resolve,
    /// How many tokens a model, by its full name, takes in one call (request and reply together), if that is known.
    pub window: Window,
    /// Filled when the manifest is read.
    pub collections: RefCell<BTreeMap<String, Collection>>,
}

/// The files that the user attached to the run, as the flow sees them.
pub(in crate::lua) struct GivenAttachments(pub Vec<serde_json::Value>);

/// The version of the host API that the flow was written for.
pub(in crate::lua) struct HostApi(pub u64);

/// Returns whether the flow was written for this version of the host API, or a later one.
pub(in crate::lua) fn is_written_for(lua: &Lua, version: u64) -> bool {
    lua.app_data_ref::<HostApi>().is_some_and(|flow| flow.0 >= version)
}

/// Returns the run's context.
fn context(lua: &Lua) -> Result<Rc<Context>> {
    lua.app_data_ref::<Rc<Context>>()
        .map(|context| Rc::clone(&context))
        .ok_or_else(|| Failure::new(crate::error::Code::Internal, "the machine has no context"))
}

/// A pure function of a module.
type Compute = fn(&Lua, MultiValue) -> Result<LuaValue>;
/// A pure function that is told which file calls it.
type LocatedCompute = fn(&Lua, &str, MultiValue) -> Result<LuaValue>;
/// A function that describes the request for an effect.
type Describe = fn(&Lua, MultiValue) -> Result<Request>;

/// Builds a module's table.
struct ModuleBuilder<'a> {
    vm: &'a Rc<Vm>,
    table: Table,
}

impl<'a> ModuleBuilder<'a> {
    fn new(vm: &'a Rc<Vm>) -> mlua::Result<ModuleBuilder<'a>> {
        Ok(ModuleBuilder { vm, table: vm.lua.create_table()? })
    }

    fn pure(self, name: &str, compute: Compute) -> mlua::Result<ModuleBuilder<'a>> {
        let function = pure(self.vm, compute)?;
        self.table.raw_set(name, function)?;
        Ok(self)
    }

    fn located(self, name: &str, compute: LocatedCompute) -> mlua::Result<ModuleBuilder<'a>> {
        let native = self.vm.lua.create_function(move |lua, mut arguments: MultiValue| {
            let from = match arguments.pop_front() {
                Some(LuaValue::String(from)) => from.to_string_lossy(),
                _ => String::new(),
            };
            answer(lua, compute(lua, &from, arguments).map(one))
        })?;
        let function: Function = self.vm.bridge.located.call(native)?;
        self.table.raw_set(name, function)?;
        Ok(self)
    }

    fn effect(self, name: &str, describe: Describe) -> mlua::Result<ModuleBuilder<'a>> {
        let function = effect(self.vm, describe)?;
        self.table.raw_set(name, function)?;
        Ok(self)
    }

    fn value(self, name: &str, value: LuaValue) -> mlua::Result<ModuleBuilder<'a>> {
        self.table.raw_set(name, value)?;
        Ok(self)
    }

    /// Adds the functions that a chunk of Luau returns, which take several steps. The chunk gets the table `native`
    /// and the bridge's `raise`.
    fn luau(self, source: &str, native: Table) -> mlua::Result<ModuleBuilder<'a>> {
        let steps: Table = self
            .vm
            .lua
            .load(source)
            .set_name(error_values::HOST_CHUNK)
            .set_mode(mlua::chunk::ChunkMode::Text)
            .call((native, self.vm.bridge.raise.clone()))?;
        for pair in steps.pairs::<String, LuaValue>() {
            let (name, value) = pair?;
            self.table.raw_set(name, value)?;
        }
        Ok(self)
    }

    fn build(self) -> Table {
        self.table.set_readonly(true);
        self.table
    }
}

fn pure(vm: &Vm, compute: Compute) -> mlua::Result<Function> {
    let native =
        vm.lua.create_function(move |lua, arguments: MultiValue| answer(lua, compute(lua, arguments).map(one)))?;
    vm.bridge.pure.call(native)
}

fn effect(vm: &Vm, describe: Describe) -> mlua::Result<Function> {
    let native = vm.lua.create_function(move |lua, arguments: MultiValue| {
        let described = describe(lua, arguments);
        let described = match described {
            Ok(request) => {
                Ok(one(LuaValue::UserData(lua.create_userdata(YieldedRequest(RefCell::new(Some(request))))?)))
            }
            Err(failure) => Err(failure),
        };
        answer(lua, described)
    })?;
    vm.bridge.effect.call(native)
}

/// Returns a function of a module that is built when the function is first called.
fn lazy(vm: &Rc<Vm>, make: Make, name: &str) -> mlua::Result<Function> {
    let weak = Rc::downgrade(vm);
    let make = vm.lua.create_function(move |_, ()| {
        let vm = weak.upgrade().ok_or_else(|| mlua::Error::runtime("the machine is gone"))?;
        make(&vm)
    })?;
    vm.bridge.lazy.call((make, name))
}

fn one(value: LuaValue) -> MultiValue {
    MultiValue::from_iter([value])
}

/// Turns an error of the VM itself, such as running out of memory, into a failure.
fn vm_error(error: mlua::Error) -> Failure {
    vm_errors::from_error(&error)
}

pub(in crate::lua) use documents::{DeclaredCollections, OnlyLooks};
pub(in crate::lua) use nietz::is_flow;
pub(in crate::lua) use task::CHILD_FAILURE;
