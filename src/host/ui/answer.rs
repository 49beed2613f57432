//! Turns typed text, or an entry of a file, into the answer that a flow gets.
//!
//! Every front end uses these functions, so that `2`, `Round`, `round` and `ro` mean the same option at a
//! terminal, in a pipe, in a JSON line and in an answers file. Nothing here reads or prints.

use serde_json::Value;

use crate::error::{Code, Failure};
use crate::model::question::{AnsweredBy, Question, QuestionKind, QuestionOption};
use crate::model::text::{clean, excerpt, excerpt_within};
use crate::model::typed::{self, Refusal, TypedLine};

/// What was said to a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Answer(Value),
    /// The user wants to know what can be typed. The question stays open.
    Help,
}

/// Returns what this text says. Where the question has commands, one of them is an answer, too: the flow gets the line as it
/// was typed, and reads it by the same rule.
///
/// An empty text means the default, or an empty answer if the question is optional.
///
/// # Errors
///
/// A sentence that says why the text is no answer.
pub(crate) fn parse(question: &Question, text: &str) -> Result<Said, String> {
    let text = text.trim();
    if text.is_empty() {
        return empty_answer(question).map(Said::Answer);
    }
    let line = if question.kind == QuestionKind::Ask { clean(text) } else { text.to_owned() };
    let said = match read(question, &line) {
        TypedLine::Help => return Ok(Said::Help),
        TypedLine::Refused(refusal) => return Err(refusal.to_string()),
        TypedLine::Answer(answer) if question.commands.is_empty() => answer,
        TypedLine::Answer(_) | TypedLine::Command { .. } => line,
    };
    match question.kind {
        QuestionKind::Ask => Ok(Value::from(said)),
        QuestionKind::Choose => choose(&question.options, &said).map(|choice| Value::from(choice.value.as_str())),
        QuestionKind::Confirm => confirm(question, &said),
    }
    .map(Said::Answer)
}

fn read(question: &Question, line: &str) -> TypedLine {
    match question.commands_only {
        true => typed::read_command(line, &question.commands),
        false => typed::read(line, &question.commands),
    }
}

/// Returns the refusal of a text that was probably meant as another one.
pub(crate) fn slip(question: &Question, text: &str) -> Option<Refusal> {
    match read(question, &clean(text.trim())) {
        TypedLine::Refused(refusal) => Some(refusal).filter(|refusal| refusal.meant.is_some()),
        TypedLine::Answer(_) | TypedLine::Command { .. } | TypedLine::Help => None,
    }
}

/// Returns what this JSON value says.
///
/// `null` is the empty answer. A number or a boolean counts as its text where a text is wanted, except
/// a fraction: the YAML parser has already turned `1.10` into 1.1.
///
/// # Errors
///
/// A sentence that says why the value is no answer.
pub(crate) fn check(question: &Question, value: &Value) -> Result<Said, String> {
    match value {
        Value::Null => empty_answer(question).map(Said::Answer),
        Value::String(text) => parse(question, text),
        Value::Bool(yes) if question.kind == QuestionKind::Confirm => Ok(Said::Answer(Value::from(*yes))),
        Value::Bool(yes) => parse(question, if *yes { "true" } else { "false" }),
        Value::Number(number) if !number.is_f64() => parse(question, &number.to_string()),
        Value::Number(number) => Err(format!("{number} may have lost digits; put it in quotes")),
        Value::Array(_) | Value::Object(_) => Err(format!("{} is not a single answer", excerpt(&value.to_string()))),
    }
}

/// Tells whether this answer counts from whoever gives it: what approves something is the person's own to say.
///
/// # Errors
///
/// A sentence that says what the person can do instead.
pub(crate) fn counts_from(question: &Question, answer: &Value, by: Option<AnsweredBy>) -> Result<(), String> {
    let approves = question.approval || (question.kind == QuestionKind::Confirm && *answer == Value::Bool(true));
    match by {
        Some(_) if approves => {
            Err("this answer approves something, and counts only from the person themselves: in a form \
            of their editor, by `nietz answer` or `nietz resume` in a terminal, or in `nietz view`"
                .to_owned())
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the answer that an empty text means: that of an earlier dialogue, or the default; `None` if there is none.
pub(crate) fn default(question: &Question) -> Option<Value> {
    if let Some(before) = question.before.as_deref().filter(|before| is_answer_still(question, before)) {
        return Some(before.clone());
    }
    match question.default.as_ref() {
        // A null default is no default; without this arm, `check` and `default` would call each other forever.
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => {
            (question.kind == QuestionKind::Ask).then(|| Value::from(""))
        }
        // The default is an answer, whatever it reads like: a command only with its slash, or where nothing else is an answer.
        Some(Value::String(text)) if question.kind == QuestionKind::Ask => {
            let text = clean(text.trim());
            let is_command = text.starts_with('/') && matches!(read(question, &text), TypedLine::Command { .. });
            Some(Value::from(if question.commands.is_empty() || question.commands_only || is_command {
                text
            } else {
                typed::line_for(&text, &question.commands)
            }))
        }
        Some(value) => match check(question, value) {
            Ok(Said::Answer(value)) => Some(value),
            Ok(Said::Help) | Err(_) => None,
        },
    }
}

/// Tells whether an answer of an earlier dialogue is one by today's commands.
fn is_answer_still(question: &Question, before: &Value) -> bool {
    let alone = Question { before: None, ..question.clone() };
    question.commands.is_empty() || matches!(check(&alone, before), Ok(Said::Answer(_)))
}

/// Returns a hint for the end of a prompt that shows what an empty line means, and that there are commands. It uses signs
/// rather than words, because the prompt is in the language of the flow.
pub(crate) fn hint(question: &Question) -> String {
    let default = default(question);
    let empty = match (question.kind, &default) {
        (QuestionKind::Confirm, default) => {
            let [yes, no] = yes_and_no_keys(question);
            match default {
                Some(Value::Bool(true)) => format!(" ({}/{no})", yes.to_uppercase()),
                Some(_) => format!(" ({yes}/{})", no.to_uppercase()),
                None => format!(" ({yes}/{no})"),
            }
        }
        (QuestionKind::Ask, Some(value)) => match display_text(question, value) {
            text if text.is_empty() => " [↵]".to_owned(),
            text if question.before.is_some() => format!(" [{}]", excerpt(&text)),
            text => format!(" [{text}]"),
        },
        (QuestionKind::Ask, None) if question.optional => " [↵]".to_owned(),
        (QuestionKind::Ask | QuestionKind::Choose, _) => String::new(),
    };
    if question.commands.is_empty() { empty } else { empty + " [/help]" }
}

/// Returns the allowed answers, as the end of a sentence.
pub(crate) fn allowed_answers(question: &Question) -> String {
    match question.kind {
        QuestionKind::Ask if question.commands_only => typed::usages(&question.commands),
        QuestionKind::Ask if !question.commands.is_empty() => "any text, or a command (`/help` lists them)".to_owned(),
        QuestionKind::Ask if question.optional => "any text, or nothing".to_owned(),
        QuestionKind::Ask => "any text".to_owned(),
        QuestionKind::Confirm => yes_and_no(question).join(" or "),
        QuestionKind::Choose => {
            let values: Vec<String> = question.options.iter().map(|choice| excerpt(&choice.value)).collect();
            match values.as_slice() {
                [] => "nothing, as there are no options".to_owned(),
                [one] => one.clone(),
                [first @ .., last] => format!("{} or {last}", first.join(", ")),
            }
        }
    }
}

/// Returns why something is no answer, and what is one. What is said of a command says it already.
pub(crate) fn refusal(question: &Question, why: &str) -> String {
    if question.commands.is_empty() {
        format!("{why}; answer with {}", allowed_answers(question))
    } else {
        why.to_owned()
    }
}

/// Returns an answer as a person reads it: the label of an option, yes or no, or the text itself.
pub(crate) fn display_text(question: &Question, answer: &Value) -> String {
    match answer {
        Value::Bool(said) => yes_and_no(question)[usize::from(!said)].clone(),
        Value::String(text) => {
            let chosen = question.options.iter().find(|choice| choice.value == *text);
            clean(chosen.map_or(text, |choice| &choice.label))
        }
        other => clean(&other.to_string()),
    }
}

/// The most letters of a question, and of its answer, where the answer was given back.
const TOLD: usize = 200;

/// Returns the line of a question whose recorded answer was given back: the last line of its prompt, and the answer.
pub(crate) fn given_back_text(question: &Question, answer: &Value) -> String {
    let (_, last) = split_prompt(&question.prompt);
    format!("? {} › {} (as before)", excerpt_within(last, TOLD), excerpt_within(&display_text(question, answer), TOLD))
}

/// Splits a prompt into the introduction and its last line, the question itself.
pub(crate) fn split_prompt(prompt: &str) -> (&str, &str) {
    let prompt = prompt.trim();
    prompt.rsplit_once('\n').map_or(("", prompt), |(before, last)| (before, last.trim()))
}

/// Returns the failure for an invalid answer that nobody can correct.
pub(crate) fn invalid_failure(question: &Question, why: &str) -> Failure {
    let id = excerpt(&question.id);
    Failure::new(Code::AnswerInvalid, format!("the answer to `{id}` is not valid: {why}"))
        .hint(format!("`{id}` may be answered with {}", allowed_answers(question)))
        .because(format!("the question: {}", excerpt(&question.prompt)))
}

/// Returns the failure for a question that nobody answers; the run waits and can be resumed.
pub(crate) fn missing_failure(question: &Question, run: &str) -> Failure {
    let id = excerpt(&question.id);
    Failure::new(Code::AnswerMissing, format!("nobody is there to answer `{id}`: {}", excerpt(&question.prompt)))
        .hint(format!(
            "go on with `nietz resume {run}` at a terminal, or put `{id}: ANSWER` (or `{id}: [ANSWER, ANSWER]`, if it is asked \
             more than once) into a file and use `nietz resume {run} --answers FILE`"
        ))
        .because(format!("it may be answered with {}", allowed_answers(question)))
}

/// Returns the failure for a question that was interrupted by Ctrl-C, or whose terminal is gone.
pub(crate) fn interrupted_failure(question: &Question, run: &str) -> Failure {
    Failure::new(Code::Interrupted, format!("interrupted at the question `{}`", excerpt(&question.id)))
        .hint(format!("`nietz resume {run}` asks it again; everything before it is kept"))
}

fn empty_answer(question: &Question) -> Result<Value, String> {
    match default(question) {
        Some(value) => Ok(value),
        None if question.kind == QuestionKind::Ask && question.optional => Ok(Value::from("")),
        None => Err("an answer is needed".to_owned()),
    }
}

/// Finds an option by value, label, number or prefix, in that order: the value `2` takes precedence over the second option.
fn choose<'a>(options: &'a [QuestionOption], text: &str) -> Result<&'a QuestionOption, String> {
    let lower = text.to_lowercase();
    let exact = options
        .iter()
        .find(|choice| choice.value == text)
        .or_else(|| options.iter().find(|choice| choice.value.to_lowercase() == lower))
        .or_else(|| options.iter().find(|choice| choice.label.trim().to_lowercase() == lower));
    if let Some(choice) = exact {
        return Ok(choice);
    }
    if let Ok(number) = text.trim_end_matches(['.', ')']).parse::<usize>() {
        return number
            .checked_sub(1)
            .and_then(|index| options.get(index))
            .ok_or_else(|| format!("there is no option {number}; there are {}", options.len()));
    }
    let begins = |choice: &&QuestionOption| {
        choice.value.to_lowercase().starts_with(&lower) || choice.label.to_lowercase().starts_with(&lower)
    };
    let found: Vec<&QuestionOption> = options.iter().filter(begins).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("`{}` is none of the options", excerpt(text))),
        [first, second, ..] => {
            let (first, second) = (excerpt(&first.label), excerpt(&second.label));
            Err(format!("`{}` may mean {first} or {second}", excerpt(text)))
        }
    }
}

/// Returns what people say for yes and for no: the flow's words, else the English ones.
pub(crate) fn yes_and_no(question: &Question) -> [String; 2] {
    match question.options.as_slice() {
        [yes, no] if question.kind == QuestionKind::Confirm => [clean(yes.label.trim()), clean(no.label.trim())],
        _ => ["yes".to_owned(), "no".to_owned()],
    }
}

/// Returns the letters for yes and no: the first ones of the words, if they differ.
pub(crate) fn yes_and_no_keys(question: &Question) -> [char; 2] {
    let first = |word: &String| word.chars().next().and_then(|letter| letter.to_lowercase().next());
    match yes_and_no(question).each_ref().map(first) {
        [Some(yes), Some(no)] if yes != no => [yes, no],
        _ => ['y', 'n'],
    }
}

/// Returns the answer that a letter is, if it is one. The English letters count where the flow's own words leave them free.
pub(crate) fn confirmed_by(question: &Question, letter: char) -> Option<bool> {
    let [yes, no] = yes_and_no_keys(question);
    match letter.to_lowercase().next()? {
        letter if letter == yes => Some(true),
        letter if letter == no => Some(false),
        'y' => Some(true),
        'n' => Some(false),
        _ => None,
    }
}

fn confirm(question: &Question, text: &str) -> Result<Value, String> {
    let (lower, words) = (text.to_lowercase(), yes_and_no(question));
    let mut letters = lower.chars();
    let said = match (letters.next(), letters.next()) {
        (Some(letter), None) if letter.is_alphabetic() => confirmed_by(question, letter),
        _ if lower == words[0].to_lowercase() => Some(true),
        _ if lower == words[1].to_lowercase() => Some(false),
        _ => match lower.as_str() {
            "yes" | "true" | "1" => Some(true),
            "no" | "false" | "0" => Some(false),
            _ => None,
        },
    };
    said.map(Value::from).ok_or_else(|| format!("`{}` is neither {}", excerpt(text), words.join(" nor ")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Said, allowed_answers, default, hint, invalid_failure};
    use crate::model::question::Question;

    fn parse(question: &Question, text: &str) -> Result<Value, String> {
        super::parse(question, text).map(answer)
    }

    fn check(question: &Question, value: &Value) -> Result<Value, String> {
        super::check(question, value).map(answer)
    }

    fn answer(said: Said) -> Value {
        match said {
            Said::Answer(value) => value,
            Said::Help => panic!("it asked for help"),
        }
    }

    fn question(json: serde_json::Value) -> Question {
        serde_json::from_value(json).expect("the test's question is well formed")
    }

    fn shape() -> Question {
        question(json!({"id": "shape", "type": "choose", "prompt": "Which shape?", "options": [
            {"value": "round", "label": "Round"},
            {"value": "square", "label": "With corners"},
            {"value": "rough", "label": "Rough"},
        ]}))
    }

    #[test]
    fn an_option_is_found_by_value_label_number_and_beginning() {
        for (text, value) in [
            ("square", "square"),
            ("WITH CORNERS", "square"),
            ("2", "square"),
            ("2.", "square"),
            ("w", "square"),
            (" rou ", ""),
            ("roun", "round"),
        ] {
            let found = parse(&shape(), text);
            assert_eq!(found.ok().unwrap_or(json!("")), json!(value), "{text}");
        }
        assert_eq!(parse(&shape(), "ro"), Err("`ro` may mean Round or Rough".to_owned()));
        assert_eq!(parse(&shape(), "4"), Err("there is no option 4; there are 3".to_owned()));
        assert_eq!(parse(&shape(), "0"), Err("there is no option 0; there are 3".to_owned()));
        assert_eq!(parse(&shape(), "blue\u{1b}[2J"), Err("`blue␛[2J` is none of the options".to_owned()));
        assert_eq!(parse(&shape(), ""), Err("an answer is needed".to_owned()));
    }

    #[test]
    fn a_value_that_is_a_number_beats_the_place_in_the_list() {
        let question = question(json!({"id": "n", "type": "choose", "prompt": "?", "options": [
            {"value": "2", "label": "two"}, {"value": "1", "label": "one"},
        ]}));
        assert_eq!(parse(&question, "1"), Ok(json!("1")));
    }

    #[test]
    fn an_empty_answer_is_the_default_or_nothing_or_refused() {
        let ask = |more: serde_json::Value| {
            let mut fields = json!({"id": "topic", "type": "ask", "prompt": "Topic?"});
            if let (Some(all), Some(more)) = (fields.as_object_mut(), more.as_object()) {
                all.extend(more.clone());
            }
            question(fields)
        };
        assert!(parse(&ask(json!({})), " ").is_err());
        assert_eq!(parse(&ask(json!({"optional": true})), ""), Ok(json!("")));
        assert_eq!(parse(&ask(json!({"default": "tea"})), ""), Ok(json!("tea")));
        assert_eq!(default(&ask(json!({"default": null}))), None);
        let confirm = question(json!({"id": "c", "type": "confirm", "prompt": "Sure?", "default": false}));
        assert_eq!(parse(&confirm, ""), Ok(json!(false)));
        assert_eq!(parse(&confirm, "Y"), Ok(json!(true)));
        assert!(parse(&confirm, "perhaps").is_err());
    }

    #[test]
    fn yes_and_no_are_said_in_the_words_of_the_flow_and_in_english() {
        let sure = |yes: &str, no: &str| {
            question(json!({"id": "a", "type": "confirm", "prompt": "?", "default": true, "options": [
                {"value": "true", "label": yes}, {"value": "false", "label": no},
            ]}))
        };
        let french = sure("oui", "non");
        for (typed, said) in
            [("oui", true), ("O", true), ("yes", true), ("y", true), ("Non", false), ("n", false), ("no", false)]
        {
            assert_eq!(parse(&french, typed), Ok(json!(said)), "{typed}");
        }
        assert_eq!(super::hint(&french), " (O/n)");
        assert_eq!(super::display_text(&french, &json!(true)), "oui");
        assert_eq!(parse(&french, "si"), Err("`si` is neither oui nor non".to_owned()));
        // Words that begin alike have no letters of their own, and a letter of the flow's comes before an English one.
        let alike = sure("na klar", "nein");
        assert_eq!((super::hint(&alike), parse(&alike, "n")), (" (Y/n)".to_owned(), Ok(json!(false))));
        assert_eq!(parse(&sure("nai", "ochi"), "n"), Ok(json!(true)));
    }

    #[test]
    fn what_an_empty_line_means_is_shown_in_no_language() {
        let put = |fields| hint(&question(fields));
        assert_eq!(put(json!({"id": "a", "type": "ask", "prompt": "?"})), "");
        assert_eq!(put(json!({"id": "a", "type": "ask", "prompt": "?", "optional": true})), " [↵]");
        assert_eq!(put(json!({"id": "a", "type": "ask", "prompt": "?", "default": "tea"})), " [tea]");
        assert_eq!(put(json!({"id": "a", "type": "ask", "prompt": "?", "default": ""})), " [↵]");
        assert_eq!(put(json!({"id": "a", "type": "confirm", "prompt": "?", "default": true})), " (Y/n)");
        assert_eq!(put(json!({"id": "a", "type": "confirm", "prompt": "?"})), " (y/n)");
    }

    #[test]
    fn an_earlier_answer_is_offered_again_unless_its_command_is_gone() {
        let asked = |before: &str, commands: serde_json::Value| {
            let fields = json!({"id": "a", "type": "ask", "prompt": "?", "default": "tea", "before": before, "commands": commands});
            default(&question(fields))
        };
        let back = json!([{"name": "back", "summary": "goes back"}]);
        assert_eq!(asked("/back", back.clone()), Some(json!("/back")));
        assert_eq!(asked("/gone", back), Some(json!("tea")));
        assert_eq!(asked("/gone", json!([])), Some(json!("/gone")));
    }

    #[test]
    fn values_of_a_file_stand_for_their_text_where_nothing_was_lost() {
        assert_eq!(check(&shape(), &json!(3)), Ok(json!("rough")));
        assert_eq!(check(&shape(), &json!(1.5)), Err("1.5 may have lost digits; put it in quotes".to_owned()));
        assert!(check(&shape(), &json!({"value": "round"})).is_err());
        let confirm = question(json!({"id": "c", "type": "confirm", "prompt": "Sure?"}));
        assert_eq!(check(&confirm, &json!(true)), Ok(json!(true)));
        assert_eq!(check(&confirm, &json!("no")), Ok(json!(false)));
        assert!(check(&confirm, &json!(null)).is_err());
    }

    #[test]
    fn a_refusal_names_the_question_and_what_is_allowed() {
        let failure = invalid_failure(&shape(), "`blue` is none of the options");
        assert_eq!(failure.message, "the answer to `shape` is not valid: `blue` is none of the options");
        assert_eq!(failure.hint.as_deref(), Some("`shape` may be answered with round, square or rough"));
        assert_eq!(allowed_answers(&shape()), "round, square or rough");
    }
}
