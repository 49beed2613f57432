//! Implements `require`, which reaches the host's modules and the pack's own files, and nothing else.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{Function, MultiValue, Value as LuaValue};

use crate::error::{Code, Failure, Result, nearest};
use crate::lua::vm::{Vm, answer};
use crate::lua::{api, error_values, vm_errors};
use crate::model::text::excerpt;
use crate::pack::path::join;
use crate::pack::tree::PackTree;

/// The state of a file that was required.
enum ModuleState {
    /// The file's top level runs now: requiring it again is a cycle.
    Loading,
    Loaded(LuaValue),
}

struct ModuleLoader {
    tree: PackTree,
    /// The host's modules that were required so far.
    host: RefCell<HashMap<&'static str, LuaValue>>,
    files: RefCell<HashMap<String, ModuleState>>,
}

/// Adds `require` to the VM's globals, and replaces the stock functions for time, chance and output.
pub(crate) fn install(vm: &Rc<Vm>, tree: &PackTree) -> mlua::Result<()> {
    let modules = Rc::new(ModuleLoader { tree: tree.clone(), host: RefCell::default(), files: RefCell::default() });
    api::replace_stock(vm)?;
    let weak = Rc::downgrade(vm);
    let finder = Rc::clone(&modules);
    let find = vm.lua.create_function(move |lua, (from, path): (String, LuaValue)| {
        let found = match weak.upgrade() {
            Some(vm) => finder.find(&vm, &from, &path),
            None => Err(Failure::new(Code::Internal, "the machine is gone")),
        };
        answer(lua, found)
    })?;
    let keep = vm.lua.create_function(move |lua, (name, value): (String, LuaValue)| {
        answer(lua, modules.keep(&name, value).map(|value| MultiValue::from_iter([value])))
    })?;
    let require: Function = vm.bridge.require.call((find, keep))?;
    vm.lua.globals().raw_set("require", require)
}

impl ModuleLoader {
    /// Returns a module of the host. Each is built when it is first required.
    fn host(&self, vm: &Rc<Vm>, wanted: &str) -> mlua::Result<Option<LuaValue>> {
        let Some((name, make, _)) = api::ALL.iter().find(|(name, ..)| *name == wanted) else { return Ok(None) };
        if let Some(module) = self.host.borrow().get(name) {
            return Ok(Some(module.clone()));
        }
        let module = LuaValue::Table(make(vm)?);
        self.host.borrow_mut().insert(name, module.clone());
        Ok(Some(module))
    }

    fn find(&self, vm: &Rc<Vm>, from: &str, path: &LuaValue) -> Result<MultiValue> {
        let path = match path {
            LuaValue::String(path) => path.to_string_lossy(),
            other => {
                return Err(not_found(&format!("require expects a text, not a {}", other.type_name())));
            }
        };
        if path.starts_with('@') {
            let found = self.host(vm, &path).map_err(|error| vm_errors::from_error(&error))?;
            return found.map(|module| MultiValue::from_iter([module])).ok_or_else(|| {
                let failure = not_found(&format!("there is no module `{}`", excerpt(&path)));
                match nearest(&path, api::ALL.iter().map(|(name, ..)| *name)) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure.hint("the host's modules begin with `@nietz/`"),
                }
            });
        }
        let plain = join(from, &path).ok_or_else(|| {
            not_found(&format!("`{}` is not a module of this pack", excerpt(&path))).hint(
                "require a file of the pack by a path such as `./rooms/score`, or a host module such as `@nietz/llm`",
            )
        })?;
        for name in [plain.clone(), format!("{plain}.lua"), format!("{plain}.luau")] {
            if !error_values::is_author(&name) {
                continue;
            }
            if let Some(module) = self.files.borrow().get(&name) {
                return match module {
                    ModuleState::Loaded(value) => Ok(MultiValue::from_iter([value.clone()])),
                    ModuleState::Loading => Err(not_found(&format!("`{name}` requires itself, by way of other files"))
                        .hint("move what both need into a third file")),
                };
            }
            if let Some(text) = self.tree.text(&name)? {
                let chunk = vm.compile(&name, &text)?;
                self.files.borrow_mut().insert(name.clone(), ModuleState::Loading);
                let name = vm.lua.create_string(&name).map_err(|error| vm_errors::from_error(&error))?;
                return Ok(MultiValue::from_iter([LuaValue::Nil, LuaValue::Function(chunk), LuaValue::String(name)]));
            }
        }
        Err(not_found(&format!("there is no file `{plain}.lua` in this pack")))
    }

    fn keep(&self, name: &str, value: LuaValue) -> Result<LuaValue> {
        if value.is_nil() {
            return Err(not_found(&format!("`{name}` returns nothing")).hint("end it with `return` and its table"));
        }
        if let LuaValue::Table(table) = &value {
            // All files that require a module share it, so none of them may change it.
            table.set_readonly(true);
        }
        self.files.borrow_mut().insert(name.to_owned(), ModuleState::Loaded(value.clone()));
        Ok(value)
    }
}

fn not_found(message: &str) -> Failure {
    Failure::new(Code::ModuleNotFound, message)
}
