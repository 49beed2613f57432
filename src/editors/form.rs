//! A question as a form with one field, for clients that show forms.

use serde_json::{Map, Value, json};

use crate::host::ui::answer;
use crate::host::ui::terminal::markdown;
use crate::model::question::{Question, QuestionKind};
use crate::model::text::{clean, excerpt};

/// The name of the one field.
pub(crate) const FIELD: &str = "answer";
/// The most of what was said before a question that a form shows, in letters.
const MOST: usize = 6000;

/// Returns the schema of the form. `titled` says whether the client knows options whose titles differ from their values.
pub(crate) fn schema(question: &Question, titled: bool) -> Value {
    let mut field = Map::new();
    let default = answer::default(question);
    match question.kind {
        QuestionKind::Ask => {
            field.insert("type".to_owned(), "string".into());
        }
        QuestionKind::Confirm => {
            field.insert("type".to_owned(), "boolean".into());
        }
        QuestionKind::Choose => {
            field.insert("type".to_owned(), "string".into());
            let values: Vec<&str> = question.options.iter().map(|option| option.value.as_str()).collect();
            let labels: Vec<String> = question.options.iter().map(label).collect();
            if titled && values.iter().zip(&labels).any(|(value, label)| value != label) {
                let options =
                    values.iter().zip(&labels).map(|(value, label)| json!({ "const": value, "title": label }));
                field.insert("oneOf".to_owned(), options.collect());
            } else {
                field.insert("enum".to_owned(), json!(values));
                if !titled {
                    field.insert("enumNames".to_owned(), json!(labels));
                }
            }
        }
    }
    // The question itself stands above the form.
    let title = match question.kind {
        QuestionKind::Ask => "Your answer",
        QuestionKind::Choose => "Your choice",
        QuestionKind::Confirm => "Yes",
    };
    field.insert("title".to_owned(), title.into());
    if let Some(about) = about(question) {
        field.insert("description".to_owned(), about.into());
    }
    let is_optional = default.is_some() || question.optional;
    // What a default reads like is for a person; the value itself goes back.
    if let Some(default) = default.filter(|default| *default != "") {
        field.insert("default".to_owned(), default);
    }
    let required: &[&str] = if is_optional { &[] } else { &[FIELD] };
    json!({ "type": "object", "properties": { FIELD: field }, "required": required })
}

fn label(option: &crate::model::question::QuestionOption) -> String {
    match &option.hint {
        Some(hint) => format!("{} ({})", clean(&option.label), clean(hint)),
        None => clean(&option.label),
    }
}

/// Returns what may be said besides an answer.
fn about(question: &Question) -> Option<String> {
    let commands: Vec<String> =
        question.commands.iter().map(|command| format!("/{} {}", command.name, clean(&command.summary))).collect();
    (!commands.is_empty()).then(|| format!("Or a command: {}", commands.join("; ")))
}

/// Returns what stands above the form: what was said, and the question. Clients show it as it is, and no Markdown.
pub(crate) fn message(question: &Question, said: &str) -> String {
    let (prompt, said) = (markdown::plain(question.prompt.trim()), markdown::plain(said));
    if said.is_empty() {
        return prompt;
    }
    let length = said.chars().count();
    let said: String = match length > MOST {
        true => format!("…{}", said.chars().skip(length - MOST).collect::<String>()),
        false => said,
    };
    format!("{said}\n\n{prompt}")
}

/// Returns the question as text, with what can be answered.
pub(crate) fn text(question: &Question) -> String {
    let mut out = clean(question.prompt.trim());
    match question.kind {
        QuestionKind::Choose => {
            for option in &question.options {
                out += &format!("\n- `{}`: {}", clean(&option.value), label(option));
            }
        }
        QuestionKind::Confirm => out += "\n(yes or no)",
        QuestionKind::Ask => {}
    }
    if let Some(default) = answer::default(question).filter(|default| *default != "") {
        out += &format!("\nWithout an answer: {}", excerpt(&answer::display_text(question, &default)));
    }
    if let Some(about) = about(question) {
        out += &format!("\n{about}");
    }
    out
}
