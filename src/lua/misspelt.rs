//! Finds names that mean nothing, without running a flow: globals that there are not, and fields that neither the host's
//! tables nor the flow's params have.
//!
//! It follows values through the compiled code of each function, from top to bottom: what a name holds is known until
//! something else may be written there. What is not known is passed over, so that whatever is told is wrong on some way
//! through the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::nearest;
use crate::lua::bytecode::{Bytecode, Constant, FunctionCode, Instruction, Op};
use crate::lua::manifest::Manifest;
use crate::lua::type_files::{Record, TypeFiles};
use crate::model::param::{Param, ParamKind};

/// The globals that flow code has; those that are tables, with their fields.
pub(super) type Globals = BTreeMap<String, Option<BTreeSet<String>>>;

/// What a name at a place means nothing for.
#[derive(Debug, PartialEq)]
pub(super) struct Misspelt {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// A place where a flow means something else once it says `host_api = 2`.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) message: String,
}

/// What is known of all names.
pub(super) struct KnownNames<'a> {
    pub(super) globals: Globals,
    pub(super) types: TypeFiles,
    pub(super) manifest: &'a Manifest,
    /// Whether a file is the flow's own. What several flows share knows the params of none.
    pub(super) is_own: bool,
}

/// What is found in a source.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) misspelt: Vec<Misspelt>,
    pub(super) changes: Vec<Change>,
    /// The files that are loaded and given as a `schema`, by their paths as they are written.
    pub(super) schemas: BTreeSet<String>,
}

/// Returns what is misspelt in a source, what would change in it, and which schemas it loads.
pub(super) fn find(source: &str, known: &KnownNames<'_>) -> Findings {
    let Some(bytecode) = Bytecode::of(source) else { return Findings::default() };
    let mut search = Search { bytecode: &bytecode, known, found: Findings::default(), depth: 0 };
    search.function(bytecode.main, &[]);
    search.found
}

/// What a register holds.
#[derive(Clone, Debug, Default, PartialEq)]
enum Held {
    #[default]
    Unknown,
    Text(String),
    Global(String),
    Module(&'static str),
    Function(&'static str, String),
    Method(Record, String),
    Record(Record),
    Params,
    Settings,
    Param(String),
    /// What stands in a data file, by its path.
    Loaded(String),
    /// A table that is made here, with its fields, and the file that its `schema` was loaded from.
    Table(BTreeSet<String>, Option<String>),
}

/// Notes what a table's `schema` was loaded from, if that is the field that is written.
fn set_schema(registers: &mut [Held], (value, table): (usize, usize), name: &str) {
    let loaded = match &registers[value] {
        Held::Loaded(path) => Some(path.clone()),
        _ => None,
    };
    if let (Held::Table(_, schema), "schema") = (&mut registers[table], name) {
        *schema = loaded;
    }
}

/// How deep functions stand in one another at most.
const DEEPEST: usize = 100;

struct Search<'a> {
    bytecode: &'a Bytecode,
    known: &'a KnownNames<'a>,
    found: Findings,
    depth: usize,
}

impl Search<'_> {
    fn function(&mut self, index: usize, upvalues: &[Held]) {
        let bytecode = self.bytecode;
        let Some(function) = bytecode.functions.get(index).filter(|_| self.depth < DEEPEST) else { return };
        self.depth += 1;
        let mut registers = vec![Held::Unknown; 256];
        for (register, name) in &function.parameter_names {
            if name == "ctx"
                && let Some(context) = self.known.types.record("@nietz", "Context")
            {
                registers[usize::from(*register)] = Held::Record(context);
            }
        }
        // Where ways come together, what was written on one of them is not known.
        let mut written = vec![0; registers.len()];
        let mut joins: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, instruction) in function.code.iter().enumerate() {
            if let Some(from) = joins.remove(&instruction.word) {
                let changed = registers.iter_mut().zip(&written).filter(|(_, written)| **written > from);
                changed.for_each(|(register, _)| *register = Held::Unknown);
            }
            if let Some(target) = instruction.jumps_to {
                joins.entry(target).or_insert(instruction.word);
            }
            self.step(function, at, *instruction, (&mut registers, upvalues));
            if !instruction.op.writes() {
                continue;
            }
            let writes_more = matches!(instruction.op, Op::Call | Op::WritesAll | Op::Method);
            let last = if writes_more { written.len() } else { usize::from(instruction.a) + 1 };
            written[usize::from(instruction.a)..last].fill(instruction.word);
        }
        self.depth -= 1;
    }

    fn step(
        &mut self,
        function: &FunctionCode,
        at: usize,
        instruction: Instruction,
        (registers, upvalues): (&mut Vec<Held>, &[Held]),
    ) {
        let Instruction { op, a, b, line, aux, .. } = instruction;
        let (a, b) = (usize::from(a), usize::from(b));
        let text = |index: usize| match function.constants.get(index) {
            Some(Constant::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let held = match op {
            Op::LoadConstant => text(instruction.d()).map(Held::Text),
            Op::Move => Some(registers[b].clone()),
            Op::GetGlobal => text(aux).map(|name| self.global(name, line)),
            Op::SetGlobal => {
                if let Some(name) = text(aux) {
                    self.set_global(name, line);
                }
                return;
            }
            Op::GetUpvalue => upvalues.get(b).cloned(),
            Op::GetField => text(aux).map(|name| {
                let held = self.field(&registers[b], &name, line);
                if let Held::Param(name) = &held {
                    self.absent_param(function, at, instruction, name);
                }
                held
            }),
            Op::SetField => {
                if let Some(name) = text(aux) {
                    set_schema(registers, (a, b), &name);
                    if let Held::Table(fields, _) = &mut registers[b] {
                        fields.insert(name);
                    }
                }
                return;
            }
            Op::SetNamed => {
                // The fields of the table were known when it was made.
                if let Held::Text(name) = registers[usize::from(instruction.c)].clone() {
                    set_schema(registers, (a, b), &name);
                }
                return;
            }
            Op::NewFunction | Op::NewFunctionOfConstant => {
                let child = match (op, function.constants.get(instruction.d())) {
                    (Op::NewFunctionOfConstant, Some(Constant::Function(child))) => Some(*child),
                    (Op::NewFunction, _) => function.children.get(instruction.d()).copied(),
                    _ => None,
                };
                let captures = function.code[at + 1..].iter().take_while(|next| next.op == Op::Capture);
                let captured: Vec<Held> = captures
                    .map(|capture| match capture.a {
                        0 => registers[usize::from(capture.b)].clone(),
                        2 => upvalues.get(usize::from(capture.b)).cloned().unwrap_or_default(),
                        // It may be assigned to.
                        _ => Held::Unknown,
                    })
                    .collect();
                if let Some(child) = child {
                    self.function(child, &captured);
                }
                None
            }
            Op::Method => {
                let value = registers[b].clone();
                let name = text(aux).unwrap_or_default();
                let method = match &value {
                    Held::Record(record) => {
                        self.field(&value, &name, line);
                        Held::Method(record.clone(), name)
                    }
                    _ => Held::Unknown,
                };
                registers[a + 1..].iter_mut().take(1).for_each(|register| *register = value.clone());
                Some(method)
            }
            Op::Call => {
                let first = registers.get(a + 1).cloned().filter(|_| b != 1).unwrap_or_default();
                let held = self.call(&registers[a].clone(), &first, line);
                registers[a..].fill(Held::Unknown);
                Some(held)
            }
            Op::NewTable => Some(Held::Table(BTreeSet::new(), None)),
            Op::NewTableOfConstant => match function.constants.get(instruction.d()) {
                Some(Constant::Fields(fields)) => {
                    Some(Held::Table(fields.iter().filter_map(|index| text(*index)).collect(), None))
                }
                _ => None,
            },
            Op::Nothing | Op::Capture | Op::JumpIf | Op::JumpIfNot => return,
            Op::Writes | Op::Not => None,
            Op::WritesAll => {
                registers[a..].fill(Held::Unknown);
                None
            }
        };
        registers[a] = held.unwrap_or_default();
    }

    fn tell(&mut self, line: usize, name: &str, message: String, hint: Option<String>) {
        let misspelt = Misspelt { line, name: name.to_owned(), message, hint };
        if !self.found.misspelt.contains(&misspelt) {
            self.found.misspelt.push(misspelt);
        }
    }

    fn global(&mut self, name: String, line: usize) -> Held {
        if !self.known.globals.contains_key(&name) {
            let near = nearest(&name, self.known.globals.keys().map(String::as_str));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.tell(line, &name, format!("there is no `{name}`: neither a local nor a global of this name"), hint);
        }
        Held::Global(name)
    }

    fn set_global(&mut self, name: String, line: usize) {
        let message = format!("`{name}` is no local, and globals cannot be set");
        self.tell(line, &name, message, Some(format!("write `local {name} = …`")));
    }

    /// Tells a field that a table does not have, and what is near it.
    fn unknown_field<'n>(&mut self, line: usize, name: &str, what: &str, names: impl Iterator<Item = &'n str> + Clone) {
        let hint = match nearest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.clone().next().is_none() => "it has none".to_owned(),
            None => format!("it has {}", names.collect::<Vec<_>>().join(", ")),
        };
        self.tell(line, name, format!("{what} has no `{name}`"), Some(hint));
    }

    /// Returns what a field of a value holds.
    fn field(&mut self, value: &Held, name: &str, line: usize) -> Held {
        let known = self.known;
        match value {
            // A field of a module that is not there is found word by word.
            Held::Module(module) => Held::Function(module, name.to_owned()),
            Held::Global(global) => {
                if let Some(Some(fields)) = known.globals.get(global)
                    && !fields.contains(name)
                {
                    self.unknown_field(line, name, &format!("`{global}`"), fields.iter().map(String::as_str));
                }
                Held::Unknown
            }
            Held::Record(record) => {
                if !record.fields.contains_key(name) {
                    let what = format!("{} ({})", record.name, record.module);
                    self.unknown_field(line, name, &what, record.fields.keys().map(String::as_str));
                    return Held::Unknown;
                }
                match (record.module, record.name.as_str(), name) {
                    ("@nietz", "Context", "params") if known.is_own => Held::Params,
                    ("@nietz", "Context", "settings") if known.is_own => Held::Settings,
                    _ => known.types.held_by(record, name).map_or(Held::Unknown, Held::Record),
                }
            }
            Held::Params => {
                if self.params(name).next().is_none() {
                    let all: Vec<String> = self.all_params().map(|(name, _)| name.clone()).collect();
                    self.unknown_field(line, name, "the flow's `params`", all.iter().map(String::as_str));
                    return Held::Unknown;
                }
                Held::Param(name.to_owned())
            }
            Held::Settings => {
                let settings = &known.manifest.settings;
                if !settings.contains_key(name) {
                    self.unknown_field(line, name, "the flow's `settings`", settings.keys().map(String::as_str));
                }
                Held::Unknown
            }
            _ => Held::Unknown,
        }
    }

    fn all_params(&self) -> impl Iterator<Item = (&String, &Param)> {
        let manifest = self.known.manifest;
        let commands = std::iter::once(&manifest.main).chain(manifest.commands.values());
        commands.flat_map(|command| &command.params)
    }

    fn params(&self, name: &str) -> impl Iterator<Item = &Param> {
        self.all_params().filter(move |(known, _)| *known == name).map(|(_, param)| param)
    }

    /// Returns what a call returns first.
    fn call(&mut self, called: &Held, first: &Held, line: usize) -> Held {
        let types = &self.known.types;
        match (called, first) {
            (Held::Global(global), Held::Text(path)) if global == "require" => {
                let module = crate::lua::api::ALL.iter().find(|(name, ..)| name == path);
                module.map_or(Held::Unknown, |(name, ..)| Held::Module(name))
            }
            (Held::Function("@nietz/json" | "@nietz/yaml", name), Held::Text(path)) if name == "load" => {
                Held::Loaded(path.clone())
            }
            (Held::Function(module, name), _) => {
                let returned = types.returned_by(module, name).map_or(Held::Unknown, Held::Record);
                // A manifest was read whole when the flow was loaded.
                let taken = types.taken_by(module, name).filter(|_| *module != "@nietz");
                if let (Held::Table(_, Some(path)), Some(record)) = (first, &taken)
                    && record.fields.contains_key("schema")
                {
                    self.found.schemas.insert(path.clone());
                }
                if let (Held::Table(fields, _), Some(record)) = (first, taken) {
                    for field in fields.iter().filter(|field| !record.fields.contains_key(*field)) {
                        let what = format!("what `{name}` of {module} takes");
                        self.unknown_field(line, field, &what, record.fields.keys().map(String::as_str));
                    }
                }
                self.changed_task((module, name), first, line);
                returned
            }
            (Held::Method(record, name), _) => {
                types.returned_by_method(record, name).map_or(Held::Unknown, Held::Record)
            }
            _ => Held::Unknown,
        }
    }

    /// Notes a call of `@nietz/task` that gives something else with `host_api = 2`.
    fn changed_task(&mut self, (module, name): (&str, &str), first: &Held, line: usize) {
        if module != "@nietz/task" || self.known.manifest.host_api >= 2 {
            return;
        }
        let is_named = matches!(first, Held::Table(fields, _) if !fields.is_empty());
        let change = |message: &str| Change { line, name: name.to_owned(), message: message.to_owned() };
        if name == "settle" {
            self.found
                .changes
                .push(change("an `error` that was raised as a text is a table with `code` and `message`"));
        }
        if (name == "all" || name == "settle") && !is_named {
            self.found.changes.push(change("a list of functions gives a list, in the same order"));
        }
    }

    /// Notes a read of a param that is nil with `host_api = 2` where it is not given.
    fn absent_param(&mut self, function: &FunctionCode, at: usize, instruction: Instruction, name: &str) {
        if self.known.manifest.host_api >= 2 {
            return;
        }
        let absent = |param: &Param| param.default.is_none() && !param.required;
        let (mut list, mut switch) = (false, false);
        for param in self.params(name).filter(|param| absent(param)) {
            list |= param.many;
            switch |= param.kind == ParamKind::Boolean && !param.many;
        }
        // Nil is as good as false where it is only tested.
        let is_tested = function.code.get(at + 1).is_some_and(|next| match next.op {
            Op::JumpIf | Op::JumpIfNot => next.a == instruction.a,
            Op::Not => next.b == instruction.a,
            _ => false,
        });
        let was = match (list, switch && !is_tested) {
            (true, _) => "an empty list",
            (_, true) => "false",
            _ => return,
        };
        let message = format!("the param `{name}` is nil where it is not given; up to now it is {was}");
        self.found.changes.push(Change { line: instruction.line, name: name.to_owned(), message });
    }
}
