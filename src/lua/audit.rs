//! Finds mistakes in a flow's files without running them: modules that do not exist or are not in the pack, functions
//! that the host does not have, permissions that are used but not declared, prompts that are missing, and names that a
//! prompt needs but does not get.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mlua::{Table, Value as LuaValue};

use crate::error::{Code, nearest};
use crate::lua::limits::FlowLimits;
use crate::lua::manifest::Manifest;
use crate::lua::misspelt::{self, Change, Findings, Globals, KnownNames, Misspelt};
use crate::lua::scan::{Word, WordKind, words};
use crate::lua::type_files::TypeFiles;
use crate::lua::vm::Vm;
use crate::lua::{api, looking, modules};
use crate::model::collection::Format;
use crate::model::permission::{self, Permission, Permissions};
use crate::pack::path::join;
use crate::pack::tree::{PackTree, Root};
use crate::schema::report::{self, Severity};
use crate::schema::{Formats, SCHEMA_HINT, Schema, source};
use crate::template;

/// The modules of the host, each with the names that it offers.
type HostModules = BTreeMap<&'static str, BTreeSet<String>>;

/// A mistake at a place in a file of the pack.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub path: String,
    pub line: usize,
    pub column: usize,
    pub code: Code,
    pub message: String,
    pub hint: Option<String>,
    /// Whether it is no fault: it tells what would change if the flow said that it is of a newer version of the host API.
    pub is_remark: bool,
}

/// Checks all Lua files that a flow reaches by `require`, and the prompts that they render.
pub fn flow(tree: &PackTree, path: &str, manifest: &Manifest) -> Vec<Diagnostic> {
    let permissions = &manifest.permissions;
    let mut audit = Audit {
        tree,
        modules: api::names(),
        permissions,
        required: BTreeSet::new(),
        methods: Vec::new(),
        defined: BTreeSet::new(),
        diagnostics: Vec::new(),
    };
    let (main, own_folder) = (path.to_owned(), format!("{}/", path.trim_end_matches(".lua")));
    let mut known = KnownNames { globals: globals(), types: TypeFiles::read(), manifest, is_own: true };
    let mut pending = vec![path.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(path) = pending.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        // A file that cannot be read was reported where it is required.
        if let Ok(Some(text)) = tree.text(&path) {
            pending.extend(audit.file(&path, &text));
            known.is_own = path == main || path.starts_with(&own_folder);
            audit.names(&path, &text, &known);
        }
    }
    audit.methods();
    let mut diagnostics = audit.diagnostics;
    diagnostics.sort_by(|one, other| (&one.path, one.line, one.column).cmp(&(&other.path, other.line, other.column)));
    diagnostics
}

struct Audit<'a> {
    tree: &'a PackTree,
    modules: HostModules,
    permissions: &'a Permissions,
    /// The modules of the host that any file requires.
    required: BTreeSet<&'static str>,
    /// Calls of methods that have the name of a host's method that needs a permission.
    methods: Vec<(String, Word, &'static str, Permission)>,
    /// The methods that the files define themselves.
    defined: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Diagnostic {
    /// Returns the message and the hint in one line.
    pub fn one_line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

impl Audit<'_> {
    fn tell(&mut self, path: &str, word: &Word, code: Code, message: String, hint: Option<String>) {
        let (line, column) = (word.line, word.column);
        self.diagnostics.push(Diagnostic {
            path: path.to_owned(),
            line,
            column,
            code,
            message,
            hint,
            is_remark: false,
        });
    }

    /// Checks the names of one file.
    fn names(&mut self, path: &str, text: &str, known: &KnownNames<'_>) {
        let Findings { misspelt, changes, schemas } = misspelt::find(text, known);
        schemas.iter().for_each(|wanted| self.schema(path, wanted));
        let place = |line: usize, name: &str| Word {
            kind: WordKind::Name(name.to_owned()),
            line,
            column: text.lines().nth(line.saturating_sub(1)).and_then(|text| column_of(text, name)).unwrap_or(1),
        };
        for Misspelt { line, name, message, hint } in misspelt {
            self.tell(path, &place(line, &name), Code::FlowInvalid, message, hint);
        }
        for Change { line, name, message } in changes {
            self.tell_change(path, &place(line, &name), &message);
        }
        if known.manifest.host_api < 2 {
            for (word, number) in numbers_of_commands(&words(text)) {
                let message = format!(
                    "the number of this command must be given; `number = \"[{number}]\"` says that it may be left out"
                );
                self.tell_change(path, &word, &message);
            }
        }
    }

    /// Remarks what would change with version 2 of the host API.
    fn tell_change(&mut self, path: &str, word: &Word, message: &str) {
        self.tell(path, word, Code::FlowInvalid, format!("with `host_api = 2`, {message}"), None);
        self.diagnostics.iter_mut().rev().take(1).for_each(|told| told.is_remark = true);
    }

    /// Checks a file that is loaded and given to a call as its schema.
    fn schema(&mut self, path: &str, wanted: &str) {
        // A file that is not there, or cannot be parsed, is no matter of schemas.
        let Some(file) = join(path, wanted) else { return };
        let Ok(Some(text)) = self.tree.text(&file) else { return };
        let format = Format::of_path(&file).unwrap_or(Format::Json);
        let Ok(schema) = source::read(&text, format) else { return };
        let Err(wrong) = Schema::try_compile(&schema, Formats::Asserted) else { return };
        let message = format!("this schema is wrong: {wrong}");
        for place in report::locate(vec![wrong], Severity::Error, &text, format, &file) {
            let word = Word { kind: WordKind::Sign('"'), line: place.line, column: place.column };
            if !self.diagnostics.iter().any(|told| told.path == file && told.line == place.line) {
                self.tell(&file, &word, Code::FlowInvalid, message.clone(), Some(SCHEMA_HINT.to_owned()));
            }
        }
    }

    /// Checks one file, and returns the files that it requires.
    fn file(&mut self, path: &str, text: &str) -> Vec<String> {
        let words = words(text);
        let mut required = Vec::new();
        // The host's module that each local name holds.
        let mut hosts: BTreeMap<String, &'static str> = BTreeMap::new();
        for at in 0..words.len() {
            let word = &words[at];
            if word.name() == Some("require") && !after_dot(&words, at) {
                let in_brackets = words.get(at + 1).is_some_and(|next| next.is_sign('('));
                let place = at + 1 + usize::from(in_brackets);
                let Some((argument, wanted)) = words.get(place).and_then(|word| Some((word, word.text()?))) else {
                    continue;
                };
                match self.require(path, argument, wanted) {
                    Some(Ok(module)) => {
                        self.required.insert(module);
                        let behind = place + 1 + usize::from(in_brackets);
                        if !self.check_member_use(path, module, &words[behind.min(words.len())..])
                            && let Some(name) = local_name(&words, at)
                        {
                            hosts.insert(name.to_owned(), module);
                        }
                    }
                    Some(Err(file)) => required.push(file),
                    None => {}
                }
            } else if let Some(name) = word.name()
                && let Some(module) = hosts.get(name).copied()
                && !after_dot(&words, at)
            {
                let behind = &words[at + 1..];
                // `local other = git` gives the module another name, if the expression ends there.
                let ends_there = behind.first().is_none_or(|next| {
                    next.line > word.line && next.name().is_some_and(|name| name != "and" && name != "or")
                });
                if !self.check_member_use(path, module, behind)
                    && ends_there
                    && let Some(other) = local_name(&words, at)
                {
                    hosts.insert(other.to_owned(), module);
                }
            } else if is_method(&words, at) {
                self.method(path, word);
            } else if let Some(name) = defined_name(&words, at) {
                self.defined.insert(name.to_owned());
            }
        }
        for (word, what) in looking::acting(&words, &hosts) {
            let refused = permission::only_looks_failure(&what);
            self.tell(path, word, refused.code, refused.message, refused.hint);
        }
        required
    }

    /// Checks the member of a host's module that the words behind the module's name select; returns false if they select none.
    fn check_member_use(&mut self, path: &str, module: &'static str, behind: &[Word]) -> bool {
        let (member, called, rest) = match behind {
            [dot, member, rest @ ..] if dot.is_sign('.') => (member, member.name(), rest),
            [open, member, close, rest @ ..] if open.is_sign('[') && close.is_sign(']') => {
                (member, member.text(), rest)
            }
            _ => return false,
        };
        let Some(called) = called else { return false };
        // A name that begins with a capital is a type, such as `git.Handle`.
        if called.starts_with(char::is_uppercase) {
            return true;
        }
        let bare = matches!(rest, [open, close, ..] if open.is_sign('(') && close.is_sign(')'));
        self.member(path, member, module, called, bare);
        if (module, called) == ("@nietz/template", "render") {
            self.check_render(path, rest);
        }
        true
    }

    /// Finds a required module: `Ok` has the name of a host's module, `Err` the path of a file.
    fn require(&mut self, path: &str, word: &Word, wanted: &str) -> Option<Result<&'static str, String>> {
        if wanted.starts_with('@') {
            if let Some((name, _)) = self.modules.get_key_value(wanted) {
                return Some(Ok(*name));
            }
            let hint = match nearest(wanted, self.modules.keys().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "the host's modules begin with `@nietz/`".to_owned(),
            };
            self.tell(path, word, Code::ModuleNotFound, format!("there is no module `{wanted}`"), Some(hint));
            return None;
        }
        let Some(plain) = join(path, wanted) else {
            let message = format!("`{wanted}` leads out of this pack, or is not a valid path");
            let hint = "require a file of the pack by a path such as `./rooms/score`".to_owned();
            self.tell(path, word, Code::ModuleNotFound, message, Some(hint));
            return None;
        };
        let names = [plain.clone(), format!("{plain}.lua"), format!("{plain}.luau")];
        let file = names.into_iter().find(|name| {
            (name.ends_with(".lua") || name.ends_with(".luau")) && matches!(self.tree.text(name), Ok(Some(_)))
        });
        if file.is_none() {
            self.tell(path, word, Code::ModuleNotFound, format!("there is no file `{plain}.lua` in this pack"), None);
        }
        file.map(Err)
    }

    /// Checks a use of `module.called`; `bare` means that it is called without an argument.
    fn member(&mut self, path: &str, word: &Word, module: &'static str, called: &str, bare: bool) {
        let known = &self.modules[module];
        if !known.contains(called) {
            let hint = match nearest(called, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", known.iter().cloned().collect::<Vec<_>>().join(", ")),
            };
            self.tell(path, word, Code::FlowInvalid, format!("{module} has no `{called}`"), Some(hint));
        }
        if let Some(needed) = permission::of_function(module, called, bare) {
            self.needs(path, word, needed);
        }
    }

    /// Notes a call `:name(…)` if a host's method of that name needs a permission. A scanner does not know the type of
    /// the value, so the call is reported at the end, and only if the flow defines no method of that name.
    fn method(&mut self, path: &str, word: &Word) {
        let Some(called) = word.name() else { return };
        for (module, name, needed) in permission::methods() {
            if name == called {
                self.methods.push((path.to_owned(), word.clone(), module, needed));
            }
        }
    }

    fn methods(&mut self) {
        for (path, word, module, needed) in std::mem::take(&mut self.methods) {
            if self.required.contains(module) && !self.defined.contains(word.name().unwrap_or_default()) {
                self.needs(&path, &word, needed);
            }
        }
    }

    /// Reports a permission that is used at a place but not declared.
    fn needs(&mut self, path: &str, word: &Word, needed: Permission) {
        if !self.permissions.declares(needed) {
            let refused = needed.undeclared_failure();
            self.tell(path, word, refused.code, refused.message, refused.hint);
        }
    }

    /// Checks `render("./prompt.md", { … })`; the words begin behind `render`.
    fn check_render(&mut self, path: &str, words: &[Word]) {
        let [open, file, rest @ ..] = words else { return };
        let (true, Some(wanted)) = (open.is_sign('('), file.text()) else { return };
        let prompt = join(path, wanted).and_then(|plain| Some((plain.clone(), self.tree.text(&plain).ok()??)));
        let Some((prompt, text)) = prompt else {
            let message = format!("there is no prompt `{wanted}` in this pack");
            self.tell(path, file, Code::TemplateInvalid, message, None);
            return;
        };
        for (line, included) in template::includes(&text) {
            if join(&prompt, &included).is_none_or(|plain| !matches!(self.tree.text(&plain), Ok(Some(_)))) {
                let message = format!("it includes `{included}`, which is not in this pack");
                let at = Word { line, column: 1, ..file.clone() };
                self.tell(&prompt, &at, Code::TemplateInvalid, message, None);
            }
        }
        let needed = match template::names(&prompt, &text) {
            Ok(needed) => needed,
            Err(failure) => {
                self.tell(path, file, failure.code, failure.message, failure.hint);
                return;
            }
        };
        let given = match rest {
            [comma, brace, rest @ ..] if comma.is_sign(',') && brace.is_sign('{') => keys(rest),
            [close, ..] if close.is_sign(')') => Some(BTreeSet::new()),
            _ => None,
        };
        let Some(given) = given else { return };
        let missing: Vec<&str> = needed.iter().map(String::as_str).filter(|name| !given.contains(name)).collect();
        if !missing.is_empty() {
            let message = format!("`{wanted}` needs {}, and is not given it", missing.join(", "));
            self.tell(
                path,
                file,
                Code::TemplateInvalid,
                message,
                Some("give every name, or test it with `is defined`".to_owned()),
            );
        }
    }
}

/// Returns where commands of a question take a number that is not in brackets, and what it is called.
fn numbers_of_commands(words: &[Word]) -> Vec<(Word, String)> {
    let mut found = Vec::new();
    // Of each open table: whether it has a summary, as commands have, and its number.
    let mut tables: Vec<(bool, Option<(Word, String)>)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_key = words.get(at + 1).is_some_and(|next| next.is_sign('='));
        match (word.name(), tables.last_mut()) {
            _ if word.is_sign('{') => tables.push((false, None)),
            _ if word.is_sign('}') => {
                found.extend(tables.pop().filter(|(is_command, _)| *is_command).and_then(|(_, number)| number));
            }
            (Some("summary"), Some((is_command, _))) if is_key => *is_command = true,
            (Some("number"), Some((_, number))) if is_key => {
                let name = words.get(at + 2).and_then(Word::text).filter(|name| !name.starts_with('['));
                *number = name.map(|name| (word.clone(), name.to_owned()));
            }
            _ => {}
        }
    }
    found
}

/// Returns the globals of flow code, as a VM has them.
fn globals() -> Globals {
    let Ok(vm) = Vm::new(FlowLimits::default()).map(Rc::new) else { return Globals::new() };
    let tree = PackTree::new(Root::Bundled);
    if modules::install(&vm, &tree).is_err() {
        return Globals::new();
    }
    let names = |table: &Table| {
        let pairs = table.pairs::<String, LuaValue>().filter_map(std::result::Result::ok);
        pairs.collect::<Vec<_>>()
    };
    let fields = |value: &LuaValue| match value {
        LuaValue::Table(table) => Some(names(table).into_iter().map(|(name, _)| name).collect()),
        _ => None,
    };
    names(&vm.lua.globals()).into_iter().map(|(name, value)| (name, fields(&value))).collect()
}

/// Returns the column of a word in a line, from 1.
fn column_of(line: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let at = line.match_indices(name).map(|(at, _)| at).find(|&at| {
        !line[..at].chars().next_back().is_some_and(is_part)
            && !line[at + name.len()..].chars().next().is_some_and(is_part)
    })?;
    Some(line[..at].chars().count() + 1)
}

fn after_dot(words: &[Word], at: usize) -> bool {
    at > 0 && (words[at - 1].is_sign('.') || words[at - 1].is_sign(':')) && !(at > 1 && words[at - 2].is_sign('.'))
}

/// Tells whether this is the name in `value:NAME(…)`, for all forms of a call.
fn is_method(words: &[Word], at: usize) -> bool {
    let called = |next: &Word| next.is_sign('(') || next.is_sign('{') || next.text().is_some();
    let defined = defined_name(words, at).is_some();
    at > 0 && words[at - 1].is_sign(':') && words.get(at + 1).is_some_and(called) && !defined
}

/// Returns the name in `function value:NAME(…)`, `function value.NAME(…)` and `NAME = function(…)`.
fn defined_name(words: &[Word], at: usize) -> Option<&str> {
    let name = words[at].name()?;
    let is = |at: usize, wanted: &str| words.get(at).and_then(Word::name) == Some(wanted);
    if words.get(at + 1).is_some_and(|next| next.is_sign('=')) && is(at + 2, "function") {
        return Some(name);
    }
    let joins = |word: &Word| word.is_sign('.') || word.is_sign(':');
    let mut start = at;
    while start >= 2 && joins(&words[start - 1]) && words[start - 2].name().is_some() {
        start -= 2;
    }
    (start < at && start > 0 && is(start - 1, "function")).then_some(name)
}

/// Returns the name in `local NAME = require…`.
fn local_name(words: &[Word], at: usize) -> Option<&str> {
    let [.., local, name, equals] = &words[..at] else { return None };
    (local.name() == Some("local") && equals.is_sign('=')).then(|| name.name()).flatten()
}

/// Returns the keys of a table literal, whose words begin behind its brace; `None` if a key is computed.
fn keys(words: &[Word]) -> Option<BTreeSet<&str>> {
    let mut keys = BTreeSet::new();
    let mut depth = 0;
    let mut start = true;
    for (at, word) in words.iter().enumerate() {
        match &word.kind {
            WordKind::Sign('}') if depth == 0 => return Some(keys),
            WordKind::Sign('{' | '(' | '[') if start && depth == 0 && word.is_sign('[') => {
                // `["name"] = …` is a known key, too; any other `[…]` is computed.
                keys.insert(words.get(at + 1)?.text()?);
                depth += 1;
            }
            WordKind::Sign('{' | '(' | '[') => depth += 1,
            WordKind::Sign('}' | ')' | ']') => depth -= 1,
            WordKind::Sign(',' | ';') if depth == 0 => {
                start = true;
                continue;
            }
            WordKind::Name(name) if start && depth == 0 => {
                if words.get(at + 1).is_some_and(|next| next.is_sign('=')) {
                    keys.insert(name);
                }
                // Functions and blocks have commas of their own.
                if name == "function" {
                    return None;
                }
            }
            WordKind::Name(name) if name == "function" => return None,
            _ => {}
        }
        start = false;
    }
    None
}
