//! What `/help` shows at a question: the ways to answer it. It is recorded nowhere.

use super::answer;
use crate::model::question::{Question, QuestionKind, TypedCommand};
use crate::model::text::line;
use crate::model::typed;

/// Returns the help for a question, in lines.
pub(super) fn lines(question: &Question) -> Vec<String> {
    let mut out = match question.kind {
        QuestionKind::Ask if question.commands.is_empty() => vec!["Any text is an answer.".to_owned()],
        QuestionKind::Ask if question.commands_only => {
            vec!["One of these commands, with or without its slash:".to_owned()]
        }
        QuestionKind::Ask => vec!["Any text is an answer, but for these commands:".to_owned()],
        QuestionKind::Confirm => vec!["yes or no, y or n".to_owned()],
        QuestionKind::Choose => options(question),
    };
    out.extend(commands(question));
    let default = answer::default(question);
    out.extend(match default.map(|value| answer::display_text(question, &value)) {
        Some(shown) if !shown.is_empty() => Some(format!("Enter alone: {}", line(&shown))),
        Some(_) => Some("Enter alone is an answer, too".to_owned()),
        None if question.kind == QuestionKind::Ask && question.optional => {
            Some("Enter alone is an answer, too".to_owned())
        }
        None => None,
    });
    out
}

fn options(question: &Question) -> Vec<String> {
    let mut out = vec!["One of these, by its number, its name or its beginning:".to_owned()];
    for (index, option) in question.options.iter().enumerate() {
        let (value, label) = (line(&option.value), line(&option.label));
        let name = if value == label { String::new() } else { format!("{value}: ") };
        let hint = option.hint.as_ref().map(|hint| format!(" – {}", line(hint))).unwrap_or_default();
        out.push(format!("  {}. {name}{label}{hint}", index + 1));
    }
    out
}

fn commands(question: &Question) -> Vec<String> {
    if question.commands.is_empty() {
        return Vec::new();
    }
    let own: Vec<(String, String)> =
        question.commands.iter().map(|command| (line(&typed::usage(command)).into_owned(), summary(command))).collect();
    let others = [("/help", "shows this"), ("\\TEXT", "answers with TEXT, whatever it begins with")];
    let others = &others[..if question.commands_only { 1 } else { 2 }];
    let others = others.iter().filter(|(usage, _)| !own.iter().any(|(own, _)| own == usage));
    let others: Vec<(String, String)> = others.map(|(usage, told)| ((*usage).to_owned(), (*told).to_owned())).collect();
    let rows = || own.iter().chain(&others);
    let width = rows().map(|(usage, _)| usage.chars().count()).filter(|width| *width <= 24).max().unwrap_or_default();
    rows().map(|(usage, told)| format!("  {usage:width$}  {told}")).collect()
}

/// Returns what a command does, and the words that stand for it.
fn summary(command: &TypedCommand) -> String {
    let words: Vec<_> = command.words.iter().map(|word| line(word)).collect();
    match words.join(", ") {
        none if none.is_empty() => line(&command.summary).into_owned(),
        words => format!("{} ({words})", line(&command.summary)),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::lines;
    use crate::host::ui::samples::{next, question, save, shape};

    #[test]
    fn help_tells_the_ways_to_answer() {
        let plain = question(json!({"id": "a", "type": "ask", "prompt": "?", "default": "Bob"}));
        let all: Vec<String> =
            [next(), plain, shape(), save()].iter().map(|question| lines(question).join("\n")).collect();
        assert_snapshot!(all.join("\n\n"), @r"
        Any text is an answer, but for these commands:
          /idea TEXT            adds an idea of yours
          /back [N]             goes back (back)
          /panel [debate|exit]  asks experts (panel)
          /help                 shows this
          \TEXT                 answers with TEXT, whatever it begins with
        Enter alone is an answer, too

        Any text is an answer.
        Enter alone: Bob

        One of these, by its number, its name or its beginning:
          1. round: Round – no corners
          2. square: Square

        yes or no, y or n
        Enter alone: no
        ");
    }
}
