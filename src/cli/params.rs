//! Turns the params of a flow's manifest into options of the command line, and parsed options into params.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value};

use crate::cli::grants::with_grant_options;
use crate::cli::texts::{self, TextReader};
use crate::error::{Code, Failure, Result, nearest};
use crate::lua::manifest::{self, Manifest};
use crate::model::attachment::ATTACH;
use crate::model::param::{Param, ParamKind};
use crate::model::text::{excerpt, line};

/// The heading of a flow's own options in its help.
const OWN: &str = "Options of this flow";

/// Adds a flow's params and commands to the command that parses its run.
pub(super) fn add(mut command: Command, manifest: &Manifest) -> Result<Command> {
    // The names of the grant options are taken in every command of a flow, even if the flow needs no grants yet.
    let grants = with_grant_options(Command::new("run"));
    let grants: Vec<&str> = grants.get_arguments().filter_map(Arg::get_long).collect();
    let mut commands = Vec::with_capacity(manifest.commands.len());
    for (name, own) in manifest.offered() {
        let sub = Command::new(name.clone()).about(help_text(&own.summary));
        let is_taken = |flag: &str| grants.contains(&flag) || has_option(&command, flag);
        commands.push(with_help_of_texts(add_params(sub, own, is_taken)?, own, manifest));
    }
    command = add_params(command, &manifest.main, |flag| grants.contains(&flag))?;
    command = with_help_of_texts(command, &manifest.main, manifest);
    command = command.subcommands(commands);
    Ok(command)
}

/// Says in the help how a text comes from elsewhere, if a param takes one.
fn with_help_of_texts(command: Command, own: &manifest::FlowCommand, manifest: &Manifest) -> Command {
    let takes = |(name, param): (&String, &Param)| texts::takes_texts(name, param, &manifest.permissions.typed());
    if own.params.iter().any(takes) { command.after_help(texts::HELP) } else { command }
}

fn has_option(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(flag))
}

fn add_params(mut command: Command, own: &manifest::FlowCommand, is_taken: impl Fn(&str) -> bool) -> Result<Command> {
    let mut params: Vec<(&String, &Param)> = own.params.iter().collect();
    params.sort_by(|a, b| a.1.order.unwrap_or(f64::MAX).total_cmp(&b.1.order.unwrap_or(f64::MAX)));
    for (name, param) in params {
        let flag = name.replace('_', "-");
        let is_duplicate =
            has_option(&command, &flag) || command.get_arguments().any(|arg| arg.get_id() == name.as_str());
        if is_duplicate || flag == "help" || is_taken(&flag) {
            return Err(Failure::new(
                Code::FlowInvalid,
                format!("param `{name}`: the host has an option `--{flag}` itself"),
            )
            .hint("give the param another name"));
        }
        command = command.arg(argument(name, &flag, param));
    }
    Ok(command)
}

fn argument(name: &str, flag: &str, param: &Param) -> Arg {
    let mut help = help_text(&param.help);
    let default = param.default.as_ref().filter(|default| !matches!(default, Value::Null | Value::Bool(false)));
    let default = default.filter(|default| !default.as_array().is_some_and(Vec::is_empty));
    if let Some(default) = default
        && param.kind != ParamKind::Boolean
    {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown = default
            .as_array()
            .map_or_else(|| text(default), |items| items.iter().map(text).collect::<Vec<_>>().join(", "));
        help = format!("{help} [default: {}]", help_text(&shown)).trim().to_owned();
    }
    if let Some(bounds) = param.bounds() {
        help = format!("{help} [{}]", help_text(&bounds)).trim().to_owned();
    }
    let mut arg = Arg::new(name.to_owned()).help(help);
    if param.kind == ParamKind::Boolean {
        let on = param.default == Some(Value::Bool(true));
        let flag = if on { format!("no-{flag}") } else { flag.to_owned() };
        return match param.short {
            Some(short) => arg.long(flag).short(short),
            None => arg.long(flag),
        }
        .action(ArgAction::SetTrue)
        .help_heading(OWN);
    }
    if param.kind == ParamKind::Attachment {
        return arg.long(flag.to_owned()).num_args(1..).action(ArgAction::Append).value_name("FILE").help_heading(OWN);
    }
    let check = param.clone();
    arg = match param.choices.is_empty() {
        // A text may stand for what is in a file: it is looked at once it is there.
        true if param.kind == ParamKind::String => arg,
        true => arg.value_parser(move |text: &str| check.parse(text).map(|_| text.to_owned())),
        false => arg.value_parser(PossibleValuesParser::new(param.choices.iter().map(|text| choice(text)))),
    };
    if param.positional {
        arg = arg.value_name(name.to_uppercase()).required(param.required);
        return if param.many { arg.num_args(0..) } else { arg };
    }
    arg = arg
        .long(flag.to_owned())
        .required(param.required)
        .help_heading(OWN)
        .value_name(param.kind.name().to_uppercase());
    if let Some(short) = param.short {
        arg = arg.short(short);
    }
    match &param.alone {
        Some(alone) => arg.num_args(0..=1).default_missing_value(alone.clone()),
        None if param.many => arg.action(ArgAction::Append),
        None => arg,
    }
}

/// Returns a text of a flow as a single line for nietz's help, so that the text cannot imitate other lines of the help.
pub(super) fn help_text(text: &str) -> String {
    line(&text.replace(['\n', '\t'], " ")).into_owned()
}

/// Returns a choice of a param. If a choice cannot be shown as it is, the help hides it, and the user can still give it.
fn choice(text: &str) -> PossibleValue {
    PossibleValue::new(text.to_owned()).hide(line(text) != text)
}

/// Returns the params that the command line gives, with defaults for the others. `exec` are the commands that the flow may
/// run.
pub(super) fn values(
    own: &manifest::FlowCommand,
    matches: &ArgMatches,
    exec: &[String],
    texts: &mut TextReader,
) -> Result<Value> {
    let mut params = Map::new();
    for (name, param) in &own.params {
        let value = if param.kind == ParamKind::Boolean {
            let on = param.default == Some(Value::Bool(true));
            Value::Bool(matches.get_flag(name) != on)
        } else if param.many {
            let mut given: Vec<Value> = Vec::new();
            for text in matches.get_many::<String>(name).into_iter().flatten() {
                given.extend(parse_value((name, param), Some(given.len()), text, exec, texts)?);
            }
            // What a run did not use does not stand in its journal.
            if given.is_empty() && param.kind == ParamKind::Attachment {
                continue;
            }
            if !given.is_empty() {
                check_count(name, param, given.len())?;
            }
            match given.is_empty() {
                true => param.default.clone().unwrap_or(Value::Array(Vec::new())),
                false => Value::Array(given),
            }
        } else {
            match matches.get_one::<String>(name) {
                Some(text) => parse_value((name, param), None, text, exec, texts)?.ok_or_else(|| {
                    let message = format!("{name}: {} is an image or a PDF, and no text", excerpt(text));
                    Failure::new(Code::Usage, message).hint("flows that take such files take them by --attach FILE")
                })?,
                None => param.default.clone().unwrap_or(Value::Null),
            }
        };
        params.insert(name.clone(), value);
    }
    let takes_files = own.params.get(ATTACH).is_some_and(|param| param.kind == ParamKind::Attachment);
    texts.place_moved(takes_files, &mut params)?;
    Ok(Value::Object(params))
}

/// Returns the params of a run that gets them as data: those that are missing have their defaults.
pub(super) fn given(own: &manifest::FlowCommand, given: &Map<String, Value>) -> Result<Value> {
    let usage = |message: String| Failure::new(Code::Usage, message);
    if let Some(unknown) = given.keys().find(|name| !own.params.contains_key(*name)) {
        let failure = usage(format!("there is no param `{}`", excerpt(unknown)));
        return Err(match nearest(unknown, own.params.keys().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure,
        });
    }
    let mut params = Map::new();
    for (name, param) in &own.params {
        let refused = |why: String| usage(format!("{name}: {why}"));
        let value = match given.get(name).filter(|value| !value.is_null()) {
            Some(_) if param.kind == ParamKind::Attachment => {
                return Err(refused("images and PDFs are not handed on to another run".to_owned()));
            }
            Some(Value::Array(items)) if param.many => {
                check_count(name, param, items.len())?;
                items.iter().try_for_each(|item| param.accepts(item)).map_err(refused)?;
                Value::Array(items.clone())
            }
            // In Lua, an empty table is a list, too.
            Some(Value::Object(none)) if param.many && none.is_empty() => Value::Array(Vec::new()),
            Some(_) if param.many => return Err(refused("it is a list".to_owned())),
            Some(value) => param.accepts(value).map(|()| value.clone()).map_err(refused)?,
            None if param.kind == ParamKind::Attachment => continue,
            None if param.required => return Err(refused("it is needed".to_owned())),
            None if param.kind == ParamKind::Boolean => param.default.clone().unwrap_or(Value::Bool(false)),
            None if param.many => param.default.clone().unwrap_or(Value::Array(Vec::new())),
            None => param.default.clone().unwrap_or(Value::Null),
        };
        params.insert(name.clone(), value);
    }
    Ok(Value::Object(params))
}

/// Refuses a list that has more or fewer items than its param takes.
pub(super) fn check_count(name: &str, param: &Param, count: usize) -> Result<()> {
    param.accepts_count(count).map_err(|why| Failure::new(Code::Usage, format!("{name}: {why}")))
}

/// Returns the value that a word of the command line stands for, or `None` if it is an image or a PDF where a text can stand.
pub(super) fn parse_value(
    (name, param): (&str, &Param),
    item: Option<usize>,
    text: &str,
    exec: &[String],
    texts: &mut TextReader,
) -> Result<Option<Value>> {
    if param.kind == ParamKind::Attachment {
        return texts.attach(name, item, text).map(Some);
    }
    let refused = |why: String| Failure::new(Code::Usage, format!("{name}: `{}` {why}", excerpt(text)));
    if texts::takes_texts(name, param, exec) {
        let Some(value) = texts.take(name, item, text)? else { return Ok(None) };
        return param.accepts(&value).map(|()| Some(value)).map_err(refused);
    }
    param.parse(text).map(Some).map_err(refused)
}
