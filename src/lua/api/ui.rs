//! `@nietz/ui`: talking with the user.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Result;
use crate::lua::api::args::{Args, data, invalid};
use crate::lua::api::{ModuleBuilder, is_written_for, vm_error};
use crate::lua::convert;
use crate::lua::request::{Request, outcome_to_nil};
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::ui::UiOp;
use crate::model::question::{Question, QuestionKind, QuestionOption, TypedCommand};
use crate::model::typed::{self, TypedLine};

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let native = ModuleBuilder::new(vm)?.effect("ask", ask)?.pure("read", read)?.build();
    Ok(ModuleBuilder::new(vm)?
        .luau(include_str!("ui.luau"), native)?
        .effect("say", say)?
        .effect("choose", choose)?
        .effect("confirm", confirm)?
        .effect("attended", attended)?
        .effect("status", status)?
        .effect("progress", progress)?
        .build())
}

/// Replaces `print` with a function that says its arguments.
pub(super) fn replace(vm: &Rc<Vm>) -> mlua::Result<()> {
    vm.lua.globals().raw_set("print", super::effect(vm, print)?)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SayOptions {
    from: Option<String>,
}

fn say(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "ui.say", values);
    let options: Option<SayOptions> = args.data(1, "options")?;
    let effect = Effect::Ui(UiOp::Say { markdown: args.text(0)?, from: options.unwrap_or_default().from });
    Ok(Request::Effect(Box::new(effect), outcome_to_nil))
}

/// `print`, for authors who look for a mistake: shows its arguments in one line.
fn print(lua: &Lua, values: MultiValue) -> Result<Request> {
    let mut budget = convert::ConversionBudget::default();
    let mut shown = Vec::new();
    for value in &values {
        shown.push(match value {
            LuaValue::String(_) | LuaValue::Table(_) => {
                match convert::to_json_within(lua, value, "print: what it shows", &mut budget) {
                    Ok(Value::String(text)) => text,
                    Ok(json) => json.to_string(),
                    Err(failure) if budget.is_used_up() => return Err(failure),
                    Err(_) => value.type_name().to_owned(),
                }
            }
            LuaValue::Nil => "nil".to_owned(),
            LuaValue::Boolean(flag) => flag.to_string(),
            LuaValue::Integer(number) => number.to_string(),
            LuaValue::Number(number) => number.to_string(),
            other => other.type_name().to_owned(),
        });
    }
    Ok(Request::Effect(Box::new(Effect::Ui(UiOp::Say { markdown: shown.join("  "), from: None })), outcome_to_nil))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskOptions {
    id: String,
    prompt: String,
    default: Option<String>,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    complete: Vec<String>,
    #[serde(default)]
    commands: Vec<TypedCommand>,
    #[serde(default = "yes")]
    text: bool,
    recap: Option<String>,
    #[serde(default)]
    approval: bool,
}

fn yes() -> bool {
    true
}

/// Returns commands as the rule of [`typed`] has them. In flows of version 1 a number may always be left out.
fn commands(lua: &Lua, mut commands: Vec<TypedCommand>) -> Vec<TypedCommand> {
    if !is_written_for(lua, 2) {
        let numbers = commands.iter_mut().filter_map(|command| command.number.as_mut());
        numbers.for_each(|number| *number = typed::bracketed(number));
    }
    commands
}

/// The most commands that a question may offer.
const COMMANDS: usize = 100;

fn ask(lua: &Lua, values: MultiValue) -> Result<Request> {
    let asked: AskOptions = Args::new(lua, "ui.ask", values).data(0, "question")?;
    if asked.commands.len() > COMMANDS {
        return Err(invalid(format!("ui.ask: {} commands are more than {COMMANDS}", asked.commands.len())));
    }
    typed::check(&asked.commands).map_err(|why| invalid(format!("ui.ask: {why}")))?;
    let commands = commands(lua, asked.commands);
    if !asked.text {
        check_commands_only(&commands, asked.default.as_deref(), asked.optional)
            .map_err(|why| invalid(format!("ui.ask: with `text = false`, {why}")))?;
    }
    question(Question {
        default: asked.default.map(Value::from),
        optional: asked.optional,
        complete: asked.complete,
        commands,
        commands_only: !asked.text,
        recap: asked.recap,
        approval: asked.approval,
        ..Question::new(asked.id, QuestionKind::Ask, asked.prompt)
    })
}

/// Says what is wrong with a question that takes commands alone.
fn check_commands_only(
    commands: &[TypedCommand],
    default: Option<&str>,
    optional: bool,
) -> std::result::Result<(), String> {
    let is_command = |line: &str| matches!(typed::read_command(line, commands), TypedLine::Command { .. });
    match default {
        _ if commands.is_empty() => Err("a question needs `commands`".to_owned()),
        _ if optional => Err("an empty line is no command: `default` says which one it stands for".to_owned()),
        Some(default) if !is_command(default) => {
            Err(format!("the default is one of the commands: {}", typed::usages(commands)))
        }
        Some(_) | None => Ok(()),
    }
}

/// What a line is to a flow. A recorded one that the rule refuses today was an answer when it was accepted.
fn read(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "ui.ask", values);
    let line = args.text(0)?;
    let commands = commands(lua, args.data(1, "commands")?);
    let only: Option<bool> = args.data(2, "text")?;
    let read = if only == Some(false) { typed::read_command } else { typed::read };
    let (said, name) = match read(&line, &commands) {
        TypedLine::Answer(said) => (said, None),
        TypedLine::Command { name, argument } => (argument, Some(name)),
        TypedLine::Help | TypedLine::Refused(_) => (line.clone(), None),
    };
    let table = lua.create_table().map_err(vm_error)?;
    table.raw_set("said", said).map_err(vm_error)?;
    table.raw_set("name", name).map_err(vm_error)?;
    Ok(LuaValue::Table(table))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChooseOptions {
    id: String,
    prompt: String,
    /// A text each, or a whole option.
    options: Vec<Value>,
    default: Option<String>,
    #[serde(default)]
    approval: bool,
}

fn choose(lua: &Lua, values: MultiValue) -> Result<Request> {
    let asked: ChooseOptions = Args::new(lua, "ui.choose", values).data(0, "question")?;
    if asked.options.is_empty() {
        return Err(invalid("ui.choose: there is nothing to choose from"));
    }
    let options: Vec<QuestionOption> = (asked.options.into_iter().zip(1..))
        .map(|(option, number)| match option {
            Value::String(text) => Ok(QuestionOption { value: text.clone(), label: text, hint: None }),
            whole => data(whole, &format!("ui.choose: option {number}")),
        })
        .collect::<Result<_>>()?;
    if let Some(default) = &asked.default
        && !options.iter().any(|option| option.value == *default)
    {
        return Err(invalid(format!("ui.choose: the default `{default}` is none of the options")));
    }
    question(Question {
        default: asked.default.map(Value::from),
        options,
        approval: asked.approval,
        ..Question::new(asked.id, QuestionKind::Choose, asked.prompt)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfirmOptions {
    id: String,
    prompt: String,
    default: Option<bool>,
    yes: Option<String>,
    no: Option<String>,
}

fn confirm(lua: &Lua, values: MultiValue) -> Result<Request> {
    let asked: ConfirmOptions = Args::new(lua, "ui.confirm", values).data(0, "question")?;
    let word = |value: &str, label: String| QuestionOption { value: value.to_owned(), label, hint: None };
    let options = match (asked.yes, asked.no) {
        (None, None) => Vec::new(),
        (Some(yes), Some(no)) if ![&yes, &no].iter().any(|word| word.trim().is_empty()) && yes != no => {
            vec![word("true", yes), word("false", no)]
        }
        _ => return Err(invalid("ui.confirm: give both words, `yes` and `no`, or none of them")),
    };
    question(Question {
        default: asked.default.map(Value::from),
        options,
        ..Question::new(asked.id, QuestionKind::Confirm, asked.prompt)
    })
}

/// Asks a question.
pub(super) fn question(question: Question) -> Result<Request> {
    if question.id.is_empty() || question.prompt.trim().is_empty() {
        return Err(invalid("a question needs an id and a prompt"));
    }
    Ok(Request::Effect(Box::new(Effect::Ui(UiOp::Ask(Box::new(question)))), convert::to_lua))
}

fn attended(lua: &Lua, values: MultiValue) -> Result<Request> {
    Args::new(lua, "ui.attended", values);
    Ok(Request::Effect(Box::new(Effect::Ui(UiOp::Attended)), convert::to_lua))
}

fn status(lua: &Lua, values: MultiValue) -> Result<Request> {
    let text = Args::new(lua, "ui.status", values).text(0)?;
    Ok(Request::Effect(Box::new(Effect::Ui(UiOp::Status { text })), outcome_to_nil))
}

fn progress(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "ui.progress", values);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let count = |index| args.number(index).map(|number| number.max(0.0) as u64);
    let effect = Effect::Ui(UiOp::Progress { label: args.text(0)?, done: count(1)?, total: count(2)? });
    Ok(Request::Effect(Box::new(effect), outcome_to_nil))
}
