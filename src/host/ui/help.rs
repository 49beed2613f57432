//! What `/help` shows at a question: the ways to answer it. It is recorded nowhere.

use super::answer;
use crate::model::question::{Question, QuestionKind, TypedCommand};
use crate::model::text::line;
use crate::model::typed;

/// What help says in one language.
struct Words {
    any_text: &'static str,
    any_text_but: &'static str,
    a_command: &'static str,
    an_option: &'static str,
    enter: &'static str,
    enter_too: &'static str,
    or: &'static str,
    shows_this: &'static str,
    answers_with: &'static str,
}

const ENGLISH: Words = Words {
    any_text: "Any text is an answer.",
    any_text_but: "Any text is an answer, but for these commands:",
    a_command: "One of these commands, with or without its slash:",
    an_option: "One of these, by its number, its name or its beginning:",
    enter: "Enter alone:",
    enter_too: "Enter alone is an answer, too",
    or: "or",
    shows_this: "shows this",
    answers_with: "answers with TEXT, whatever it begins with",
};

const FRENCH: Words = Words {
    any_text: "Tout texte est une réponse.",
    any_text_but: "Tout texte est une réponse, sauf ces commandes :",
    a_command: "Une de ces commandes, avec ou sans sa barre :",
    an_option: "L'un d'eux, par son numéro, son nom ou son début :",
    enter: "Entrée seule :",
    enter_too: "Entrée seule est une réponse aussi",
    or: "ou",
    shows_this: "montre ceci",
    answers_with: "répond TEXT, quel que soit son début",
};

/// Returns the help for a question, in lines, in a language; in English where there are no words of it.
pub(super) fn lines(question: &Question, lang: &str) -> Vec<String> {
    let words = if lang == "fr" { &FRENCH } else { &ENGLISH };
    let mut out = match question.kind {
        QuestionKind::Ask if question.commands.is_empty() => vec![words.any_text.to_owned()],
        QuestionKind::Ask if question.commands_only => vec![words.a_command.to_owned()],
        QuestionKind::Ask => vec![words.any_text_but.to_owned()],
        QuestionKind::Confirm => {
            let or = format!(" {} ", words.or);
            let keys = answer::yes_and_no_keys(question).map(String::from);
            vec![format!("{}, {}", answer::yes_and_no(question).join(&or), keys.join(&or))]
        }
        QuestionKind::Choose => options(question, words),
    };
    out.extend(commands(question, words));
    let default = answer::default(question);
    out.extend(match default.map(|value| answer::display_text(question, &value)) {
        Some(shown) if !shown.is_empty() => Some(format!("{} {}", words.enter, line(&shown))),
        Some(_) => Some(words.enter_too.to_owned()),
        None if question.kind == QuestionKind::Ask && question.optional => Some(words.enter_too.to_owned()),
        None => None,
    });
    out
}

fn options(question: &Question, words: &Words) -> Vec<String> {
    let mut out = vec![words.an_option.to_owned()];
    for (index, option) in question.options.iter().enumerate() {
        let (value, label) = (line(&option.value), line(&option.label));
        let name = if value == label { String::new() } else { format!("{value}: ") };
        let hint = option.hint.as_ref().map(|hint| format!(" – {}", line(hint))).unwrap_or_default();
        out.push(format!("  {}. {name}{label}{hint}", index + 1));
    }
    out
}

fn commands(question: &Question, words: &Words) -> Vec<String> {
    if question.commands.is_empty() {
        return Vec::new();
    }
    let own: Vec<(String, String)> =
        question.commands.iter().map(|command| (line(&typed::usage(command)).into_owned(), summary(command))).collect();
    let others = [("/help", words.shows_this), ("\\TEXT", words.answers_with)];
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
            [next(), plain, shape(), save()].iter().map(|question| lines(question, "en").join("\n")).collect();
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
