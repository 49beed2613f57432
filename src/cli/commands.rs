//! Tells a command of a flow from a text of its params. A word that is one letter off a command is neither, and whoever typed
//! it is asked: the rule that typed lines have (`model::typed`).

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::lua::manifest::Manifest;
use crate::model::param::{Param, ParamKind, ParamOrigin};
use crate::model::text::{clean, shell};
use crate::model::typed;

/// Refuses a text that was probably meant as a command, unless the command line says that it is none: by a `\` in front of
/// it, which is taken off, or by a `--`.
///
/// # Errors
///
/// `usage` with the command that was meant.
pub(super) fn tell_apart(
    manifest: &Manifest,
    params: &mut Value,
    origins: &[ParamOrigin],
    is_explicit: bool,
) -> Result<()> {
    let texts = manifest.main.params.iter().filter(|(_, param)| param.positional);
    let first = texts.min_by(|(_, left), (_, right)| order(left).total_cmp(&order(right)));
    let Some((name, param)) = first.filter(|(_, param)| param.kind == ParamKind::String && param.choices.is_empty())
    else {
        return Ok(());
    };
    let is_typed = !origins.iter().any(|origin| origin.param == *name && origin.item.unwrap_or(0) == 0);
    let value = params.get_mut(name).and_then(|value| if param.many { value.get_mut(0) } else { Some(value) });
    let Some(Value::String(text)) = value.filter(|_| is_typed) else { return Ok(()) };
    let meant =
        |word: &str| manifest.offered().map(|(name, _)| name).find(|name| typed::is_slip_of_command(name, word));
    if let Some(word) = text.strip_prefix('\\')
        && (manifest.offered().any(|(name, _)| name == word) || meant(word).is_some())
    {
        *text = word.to_owned();
        return Ok(());
    }
    let Some(command) =
        meant(text).filter(|_| !is_explicit && param.default.as_ref() != Some(&Value::from(text.as_str())))
    else {
        return Ok(());
    };
    let (word, flow) = (clean(text), clean(&manifest.name));
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || c == '-');
    let escaped = if is_plain { format!("'\\{text}'") } else { shell(&format!("\\{text}")) };
    let param = clean(&name.to_uppercase());
    Err(Failure::new(Code::Usage, format!("`{word}` is no command of {flow}: did you mean `{command}`?"))
        .hint(format!("as {param}, it is written {escaped}")))
}

fn order(param: &Param) -> f64 {
    param.order.unwrap_or(f64::MAX)
}
