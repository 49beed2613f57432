//! Prompt templates: minijinja, strict about missing names, and bounded in time and size.
//!
//! A template inserts, chooses and repeats; it does not compute. Fuel stops loops and recursion. To double a text in
//! each step, a template would need an operator that makes texts or a tag that captures them; `syntax` refuses both, and
//! everything that is nested too deep for the stack. The filters are a chosen few, and those that make texts share one
//! budget.

mod filters;
mod syntax;

use std::collections::BTreeSet;
use std::time::Duration;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::Value;

use crate::cpu::{Overrun, run_within};
use crate::error::{Code, Failure, Result};
use crate::model::text::clean;
use crate::pack::path::join;
use crate::pack::tree::PackTree;

/// Steps that one rendering may take.
const FUEL: u64 = 200_000;
/// The longest text that a template may make, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;
/// The longest template, in bytes.
const SOURCE: usize = 128 * 1024;

/// The largest product of [`size`] and of the steps of a template that is rendered on the calling thread: each step can
/// go through all variables.
const AT_ONCE: usize = 1 << 26;
/// How long rendering on a helper thread may compute.
const PATIENCE: Duration = Duration::from_secs(10);

/// Renders a template. Files that it includes are looked for beside it, in its pack.
///
/// ```
/// use nietz::template::render;
/// use serde_json::json;
///
/// let source = "{% for name in names %}{{ name }}.{% endfor %}";
/// assert_eq!(render(None, "list.md", source, &json!({ "names": ["Ada", "Max"] })).unwrap(), "Ada.Max.");
/// assert!(render(None, "list.md", source, &json!({})).is_err(), "a name that is not given is an error");
/// ```
///
/// # Errors
///
/// `template-invalid` if the template is wrong or too long, needs a name that is not given, or takes too many steps,
/// bytes or seconds.
pub fn render(tree: Option<&PackTree>, path: &str, source: &str, vars: &Value) -> Result<String> {
    if source.len() > SOURCE {
        return Err(Failure::new(Code::TemplateInvalid, format!("{path}: longer than {SOURCE} bytes")));
    }
    syntax::check(source).map_err(|why| refused(path, &why))?;
    // Without a loop or another file, a template takes no more steps than it has letters.
    let mut tags = source.split("{%").skip(1).map(|tag| tag.trim_start_matches(['-', '+']).trim_start());
    let repeats = tags.any(|tag| tag.starts_with("for") || tag.starts_with("include"));
    let steps = if repeats { FUEL as usize } else { source.len() };
    if size(vars).saturating_mul(steps) <= AT_ONCE {
        return render_source(tree, path, source, vars);
    }
    let (tree, name, source, vars) = (tree.cloned(), path.to_owned(), source.to_owned(), vars.clone());
    run_within(PATIENCE, move || render_source(tree.as_ref(), &name, &source, &vars)).unwrap_or_else(|Overrun| {
        Err(Failure::new(Code::TemplateInvalid, format!("{path}: it takes too long with what it was given"))
            .hint("compare, count and search in Lua, and give the template the results"))
    })
}

/// Returns how many values one step of a template may have to go through; 256 bytes of text count as one value.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 256,
        Value::Array(items) => items.iter().fold(1, |sum, item| sum + size(item)),
        Value::Object(members) => members.iter().fold(1, |sum, (_, member)| sum + 1 + size(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn render_source(tree: Option<&PackTree>, path: &str, source: &str, vars: &Value) -> Result<String> {
    let mut environment = environment();
    if let Some(tree) = tree.cloned() {
        environment
            .set_path_join_callback(|name, parent| join(parent, name).unwrap_or_else(|| "\0outside".to_owned()).into());
        environment.set_loader(move |name| {
            let invalid = |why: String| Error::new(ErrorKind::InvalidOperation, why);
            let Some(text) = tree.text(name).map_err(|failure| invalid(failure.message))? else { return Ok(None) };
            if text.len() > SOURCE {
                return Err(invalid(format!("{name} is longer than {SOURCE} bytes")));
            }
            syntax::check(&text).map_err(|(line, why)| invalid(format!("{name}:{line}: {why}")))?;
            Ok(Some(text.to_string()))
        });
    }
    let template = environment.template_from_named_str(path, source).map_err(|error| invalid(path, &error))?;
    let mut out = BoundedWriter(Vec::new());
    template
        .render_captured_to(minijinja::Value::from(minijinja::value::Serde(vars)), &mut out)
        .map_err(|error| named(invalid(path, &error), &undefined_names(&environment, &template, &error, vars)))?;
    let text = String::from_utf8_lossy(&out.0);
    Ok(text.trim().to_owned())
}

/// Returns the names that a template needs, without those that it tests or has a default for.
///
/// # Errors
///
/// `template-invalid` if the template is wrong or too long.
pub fn names(path: &str, source: &str) -> Result<BTreeSet<String>> {
    if source.len() > SOURCE {
        return Err(Failure::new(Code::TemplateInvalid, format!("{path}: longer than {SOURCE} bytes")));
    }
    syntax::check(source).map_err(|why| refused(path, &why))?;
    let environment = environment();
    let template = environment.template_from_named_str(path, source).map_err(|error| invalid(path, &error))?;
    let pattern =
        regex::Regex::new(r"([\w.]+)\s*(?:\|\s*default\b|is\s+(?:not\s+)?(?:un)?defined\b)").expect("a valid pattern");
    let tested = pattern.captures_iter(source).map(|found| found.extract::<1>().1[0]);
    let tested: BTreeSet<&str> = tested.flat_map(|path| path.split('.')).collect();
    Ok(template.undeclared_variables(false).into_iter().filter(|name| !tested.contains(name.as_str())).collect())
}

/// Returns the files that a template includes by name, with their lines.
pub fn includes(source: &str) -> Vec<(usize, String)> {
    let pattern = regex::Regex::new(r#"\{%[-+]?\s*include\s*["']([^"']*)["']"#).expect("a valid pattern");
    let line = |at: usize| 1 + source[..at].matches('\n').count();
    pattern
        .captures_iter(source)
        .map(|found| (line(found.get(0).map_or(0, |all| all.start())), found[1].to_owned()))
        .collect()
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(40);
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    filters::add(&mut environment, LONGEST);
    environment
}

fn refused(path: &str, (line, why): &(usize, String)) -> Failure {
    Failure::new(Code::TemplateInvalid, format!("{path}:{line}: {why}"))
        .hint("a template inserts, chooses and repeats; compute in Lua, and give it the result by a name")
}

/// A text that is being made, up to [`LONGEST`].
struct BoundedWriter(Vec<u8>);

impl std::io::Write for BoundedWriter {
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

/// Returns the names that are undefined at the place of an error: those that the line needs and nobody gives.
fn undefined_names(
    environment: &Environment<'_>,
    template: &minijinja::Template<'_, '_>,
    error: &Error,
    vars: &serde_json::Value,
) -> Vec<String> {
    if error.kind() != ErrorKind::UndefinedError {
        return Vec::new();
    }
    let part =
        error.name().filter(|name| *name != template.name()).and_then(|name| environment.get_template(name).ok());
    let template = part.as_ref().unwrap_or(template);
    let line = error.line().and_then(|line| template.source().lines().nth(line.checked_sub(1)?)).unwrap_or_default();
    let is_given = |name: &str| name.split('.').try_fold(vars, |value, part| value.get(part)).is_some();
    let words = regex::Regex::new(r"[A-Za-z_][\w.]*").expect("a valid pattern");
    let words: BTreeSet<&str> = words.find_iter(line).map(|word| word.as_str().trim_end_matches('.')).collect();
    let needed = template.undeclared_variables(true);
    let missing: Vec<String> =
        needed.into_iter().filter(|name| words.contains(name.as_str()) && !is_given(name)).collect();
    if !missing.is_empty() {
        return missing;
    }
    // A part of what a loop goes through, such as `vote.whom`.
    words.into_iter().filter(|word| word.contains('.') && !is_given(word)).map(str::to_owned).collect()
}

/// Adds to a failure which names are undefined.
fn named(mut failure: Failure, names: &[String]) -> Failure {
    if !names.is_empty() {
        let mut shown: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        shown.sort();
        // The library names what it found at most; a part of a value it does not name.
        let what = ErrorKind::UndefinedError.to_string();
        let place = failure.message.split_once(&what).map_or("", |(place, _)| place);
        failure.message = format!("{place}{what}: {}", shown.join(" or "));
    }
    failure
}

/// Returns the failure for a template's error, with its file and line.
fn invalid(path: &str, error: &Error) -> Failure {
    let at = match (error.name(), error.line()) {
        (Some(name), Some(line)) => format!("{name}:{line}"),
        (_, Some(line)) => format!("{path}:{line}"),
        _ => path.to_owned(),
    };
    let what = error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    let failure = Failure::new(Code::TemplateInvalid, format!("{at}: {}", clean(&what)));
    match error.kind() {
        ErrorKind::UndefinedError => {
            failure.hint("give every name that the template uses, or test it with `is defined`")
        }
        ErrorKind::OutOfFuel => failure.hint("the template loops too long"),
        ErrorKind::TemplateNotFound => failure.hint("includes are relative to the file: `./part.md`"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn what_is_undefined_is_named() {
        let vars = json!({ "a": { "b": 1 }, "votes": [{ "who": "Ann" }] });
        for (source, names) in [
            ("one\n{{ a.b }} {{ nobody }}", "t:2: undefined value: `nobody`"),
            ("{{ a.c }}", "t:1: undefined value: `a.c`"),
            (
                "{% for vote in votes %}\n{{ vote.whom }} of {{ a.b }}\n{% endfor %}",
                "t:2: undefined value: `vote.whom`",
            ),
        ] {
            let failure = render(None, "t", source, &vars).expect_err(source);
            assert_eq!(failure.message, names, "{source}");
        }
    }

    /// Renders on a test's thread, whose stack is small: a template that recurses too deep ends the process.
    fn rendered(source: &str) -> Result<String, String> {
        render(None, "t", source, &json!({ "a": { "b": 1 }, "x": [1] })).map_err(|failure| failure.message)
    }

    #[test]
    fn no_template_is_so_deep_that_going_through_it_or_dropping_it_fills_the_stack() {
        let many = |before: &str, repeated: &str, behind: &str| {
            let count = (120_000 - before.len()) / (repeated.len() + behind.len()).max(1);
            format!("{before}{}{}", repeated.repeat(count), behind.repeat(count))
        };
        let in_braces = |repeated: &str| format!("{} }}}}", many("{{ a", repeated, ""));
        let mut deep: Vec<String> = [
            ".b",
            ".0",
            "[0]",
            "()",
            "(1)",
            "|upper",
            "|default(1)",
            " is defined",
            " is not defined",
            " is eq 1",
            " - 1",
            " / 1",
            " // 1",
            " % 1",
            " and a",
            " or a",
            " == 1",
            " < 1",
            " in x",
            " not in x",
            " if a",
            " if a else a",
            "[a.b]",
            ".b|length",
            "[0].b()",
        ]
        .iter()
        .map(|repeated| in_braces(repeated))
        .collect();
        // An expression that is not closed becomes a tree, too, before it is refused.
        deep.extend(
            ["{{ a", "{% if a", "{% for y in a", "{% set y = a", "{{ f(a", "{{ [a"].map(|at| many(at, ".b", "")),
        );
        deep.extend(
            ["not ", "- ", "-", "1 if 1 else ", "(", "[", "{'a':", "f(", "x|f(", "x["].map(|of| many("{{ ", of, "")),
        );
        deep.extend(
            [("(", ")"), ("[", "]"), ("{1:", "}"), ("x[", "]")]
                .map(|(open, close)| format!("{{{{ {} }}}}", many("", open, close))),
        );
        deep.push(many("{% if 0 %}", "{% elif 0 %}", "") + "{% endif %}");
        deep.push(many("", "{% if 1 %}", "{% endif %}"));
        deep.push(many("", "{% for y in x %}", "{% endfor %}"));
        deep.push(many("", "{% if 1 %}{% else %}", "{% endif %}"));
        // A tag that only seems to end one.
        deep.push(many("{% if 0 %}", "{% raw %}{% endif %}{% endraw %}{% elif 0 %}", "") + "{% endif %}");
        // Values as deep, or as large, as there are steps.
        let sets = |set: &str| format!("{{% set y = 1 %}}{}{{{{ y }}}}", set.repeat(5000));
        deep.extend(
            ["[y]", "{1: y}", "(y, 1)", "y, 1", "1 and [y]", "[y]|list"]
                .map(|to| sets(&format!("{{% set y = {to} %}}"))),
        );
        deep.push(
            "{% for i in range(9000) %}{% if loop.first %}{% set y = 1 %}{% endif %}{% set y = [y] %}{% endfor %}"
                .into(),
        );
        deep.push("{% for y in [1] recursive %}{{ loop([[y, y]]) }}{% endfor %}".into());
        for source in deep {
            assert!(rendered(&source).is_err(), "{}…", &source[..60]);
        }
        for source in
            ["{{ a.b }}", "{{ [a.b, x[0], a['b']]|join(' ') }}", "{% if a.b == 1 and x[0] in [1, a.b] %}1{% endif %}"]
        {
            assert!(rendered(source).is_ok_and(|text| text.starts_with('1')), "{source}");
        }
        let honest = format!("{{{{ {} }}}}", vec!["a.b"; 90].join(" or "));
        assert_eq!(rendered(&honest), Ok("1".to_owned()));
    }
}
