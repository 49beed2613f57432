//! Questions to the user, and their possible answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One question. `--answers FILE`, pipes and editors refer to it by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: QuestionKind,
    pub prompt: String,
    /// The answer that an empty line stands for; shown to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// For `choose`: the options. For `confirm`: what people say for yes and for no, if it is not that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
    /// For `ask`: whether an empty line is an answer. If not, and without a default, the question is asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// For `ask`: words that a terminal completes with Tab.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complete: Vec<String>,
    /// For `ask`: what may be typed in place of an answer. [`crate::model::typed`] says which line is which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<TypedCommand>,
    /// For `ask`: whether only a command is an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands_only: bool,
    /// The answer that the same question had in a dialogue which has become another. An empty line gives it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Value>>,
    /// Whether an answer approves something, so that the person has to give it themselves. A yes to a `confirm` always does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
    /// What a person is shown above the question if they come back to it in another process, in place of what was said since
    /// the last answer. It is no part of the question, and recorded nowhere.
    #[serde(skip)]
    pub recap: Option<String>,
    /// The key of the effect that asks it, by which an answer that is given elsewhere is found. It is no part of the question.
    #[serde(skip)]
    pub effect: Option<String>,
}

impl Question {
    /// Returns a question without anything that it may have beside its prompt.
    pub fn new(id: impl Into<String>, kind: QuestionKind, prompt: impl Into<String>) -> Question {
        Question {
            id: id.into(),
            kind,
            prompt: prompt.into(),
            default: None,
            options: Vec::new(),
            optional: false,
            complete: Vec::new(),
            commands: Vec::new(),
            commands_only: false,
            before: None,
            approval: false,
            recap: None,
            effect: None,
        }
    }

    /// Returns the question whether a model may call a tool with these arguments. Few stand in its line; more have a line each, and
    /// lines of their own are further in, so that no text of a model looks like the question.
    pub fn may_call(tool: &str, arguments: &Value) -> Question {
        // An empty table of Lua is a list, and arguments are an object.
        let is_empty = arguments.as_array().is_some_and(Vec::is_empty);
        let short = if is_empty { "{}".to_owned() } else { arguments.to_string() };
        let prompt = match arguments.as_object() {
            Some(members) if short.chars().count() > SHORT => {
                let lines: Vec<String> = members.iter().map(|(name, value)| argument(name, value)).collect();
                format!(
                    "The model wants to call `{tool}` with:\n{}\nMay the model call `{tool}` with that?",
                    lines.join("\n")
                )
            }
            _ => format!("May the model call `{tool}` with {short}?"),
        };
        Question::new(format!("approve-{tool}"), QuestionKind::Confirm, prompt)
    }
}

/// The longest arguments, in characters, that are read well in one line.
const SHORT: usize = 80;

/// Returns an argument as a person reads it: its name, and text as it would be, not as JSON has it.
fn argument(name: &str, value: &Value) -> String {
    match value.as_str() {
        None => format!("  {name}: {value}"),
        Some("") => format!("  {name}: \"\""),
        Some(text) if text.trim_end().contains(['\n', '\r']) => {
            let lines: Vec<String> =
                text.trim_end().lines().map(|line| format!("    {line}").trim_end().to_owned()).collect();
            format!("  {name}:\n{}", lines.join("\n"))
        }
        Some(text) => format!("  {name}: {}", text.trim_end()),
    }
}

/// Who gave an answer, where it was not the person, who is asked, themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnsweredBy {
    /// A model told what the person had said.
    Relayed,
    /// A model answered in place of the person, who allowed that.
    Model,
}

impl AnsweredBy {
    /// Returns the name that journals have.
    pub fn name(self) -> &'static str {
        match self {
            AnsweredBy::Relayed => "relayed",
            AnsweredBy::Model => "model",
        }
    }
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionKind {
    /// Free text; the answer is a string.
    Ask,
    /// One of the options; the answer is the option's value.
    Choose,
    /// Yes or no; the answer is a boolean.
    Confirm,
}

/// One option of a choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionOption {
    /// What the flow gets, and what scripts answer with.
    pub value: String,
    /// What people read.
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A command that may be typed in place of an answer: with a slash by its name, and without one by a word of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypedCommand {
    pub name: String,
    pub summary: String,
    /// What the text behind it is called, if it takes one. It may be left out where this is in brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the number behind it is called, if it takes one: in brackets where it may be left out, with `…` where several may
    /// stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// Words of which one may stand behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Lines that are this command without a slash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Question;

    #[test]
    fn what_a_model_wants_to_do_is_read_as_text_and_not_as_json() {
        let short = Question::may_call("note", &json!({ "name": "a" }));
        assert_eq!(short.prompt, r#"May the model call `note` with {"name":"a"}?"#);
        assert_eq!(Question::may_call("now", &json!([])).prompt, "May the model call `now` with {}?");
        let text = "# Prices\n\nRounded once, in `price.py`.\nMay the model call `nothing`?\n";
        let long =
            Question::may_call("note", &json!({ "name": "prices", "text": text, "tags": ["a", "b"], "lines": 3 }));
        insta::assert_snapshot!(long.prompt, @r###"
        The model wants to call `note` with:
          name: prices
          text:
            # Prices

            Rounded once, in `price.py`.
            May the model call `nothing`?
          tags: ["a","b"]
          lines: 3
        May the model call `note` with that?
        "###);
    }
}
