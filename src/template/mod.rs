//! Prompt templates: minijinja, strict about names that are not given, and bounded in time and size.
//!
//! Loops and recursion are stopped by fuel; the filters and operators that could blow up a text within a few
//! steps are replaced by ones that look at the size (`replace`, `join`, `indent`), or taken away.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::pack::tree::{Tree, join};

/// Steps that one rendering may take.
const FUEL: u64 = 200_000;
/// The longest text that a template may make, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;
/// The longest template, in bytes.
const SOURCE: usize = 512 * 1024;

/// Renders a template. Files that it includes are looked for beside it, in its pack.
pub fn render(tree: Option<&Tree>, path: &str, source: &str, vars: &Value) -> Result<String> {
    if source.len() > SOURCE {
        return Err(Failure::new(Code::TemplateInvalid, format!("{path}: longer than {SOURCE} bytes")));
    }
    let mut environment = environment();
    if let Some(tree) = tree.cloned() {
        environment
            .set_path_join_callback(|name, parent| join(parent, name).unwrap_or_else(|| "\0outside".to_owned()).into());
        environment.set_loader(move |name| {
            tree.text(name)
                .map(|text| text.map(|text| text.to_string()))
                .map_err(|failure| Error::new(ErrorKind::InvalidOperation, failure.message))
        });
    }
    let template = environment.template_from_named_str(path, source).map_err(|error| invalid(path, &error))?;
    let mut out = Bounded(Vec::new());
    template
        .render_captured_to(minijinja::Value::from(minijinja::value::Serde(vars)), &mut out)
        .map_err(|error| invalid(path, &error))?;
    let text = String::from_utf8_lossy(&out.0);
    Ok(text.trim().to_owned())
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(40);
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.add_filter("replace", replace);
    environment.add_filter("join", join_items);
    environment.remove_filter("indent");
    environment.add_filter("indent", indent);
    environment.remove_global("namespace");
    environment.remove_filter("format");
    environment
}

/// A text that is being made, up to [`LONGEST`].
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(std::io::Error::other("the text is too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("the text gets longer than {LONGEST} bytes"))
}

fn replace(text: &str, from: &str, to: &str) -> std::result::Result<String, Error> {
    let count = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    if text.len() + count * to.len() > LONGEST {
        return Err(too_long());
    }
    Ok(text.replace(from, to))
}

#[allow(clippy::needless_pass_by_value)]
fn join_items(items: minijinja::Value, separator: Option<String>) -> std::result::Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let mut out = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        if index > 0 {
            out.push_str(&separator);
        }
        out.push_str(&item.to_string());
        if out.len() > LONGEST {
            return Err(too_long());
        }
    }
    Ok(out)
}

fn indent(text: &str, width: usize) -> std::result::Result<String, Error> {
    let lines = text.lines().count();
    if text.len() + lines.saturating_mul(width) > LONGEST {
        return Err(too_long());
    }
    let pad = " ".repeat(width);
    Ok(text
        .lines()
        .enumerate()
        .map(|(index, line)| if index == 0 { line.to_owned() } else { format!("{pad}{line}") })
        .collect::<Vec<_>>()
        .join("\n"))
}

/// Returns a template's error with its file and line, and what was wrong.
fn invalid(path: &str, error: &Error) -> Failure {
    let at = match (error.name(), error.line()) {
        (Some(name), Some(line)) => format!("{name}:{line}"),
        (_, Some(line)) => format!("{path}:{line}"),
        _ => path.to_owned(),
    };
    let what = error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    let failure = Failure::new(Code::TemplateInvalid, format!("{at}: {}", crate::model::text::clean(&what)));
    match error.kind() {
        ErrorKind::UndefinedError => {
            failure.hint("give every name that the template uses, or test it with `is defined`")
        }
        ErrorKind::OutOfFuel => failure.hint("the template loops too long"),
        ErrorKind::TemplateNotFound => failure.hint("includes are relative to the file: `./part.md`"),
        _ => failure,
    }
}
