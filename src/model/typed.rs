//! What a line means that a person typed at a question: an answer, a command, or neither. One rule for a terminal, a pipe,
//! a file of answers and an editor, and for the flow that gets the line, whether it was just typed or is recorded.
//!
//! A command has a slash, or is the whole line and one of the words that the question offers. A backslash makes an answer of
//! anything. What is one letter off a command is neither: whoever typed it is asked.

use crate::model::question::TypedCommand;
use crate::model::text::{excerpt, fold};

/// The command that every question has.
const HELP: &str = "help";

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypedLine {
    Answer(String),
    /// A command, and the text, number or word behind it, or nothing.
    Command {
        name: String,
        argument: String,
    },
    /// The user wants to know what can be typed.
    Help,
    /// Neither an answer nor a command.
    Refused(Refusal),
}

/// Why a line is neither an answer nor a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    why: String,
    /// The line that was probably meant.
    pub(crate) meant: Option<String>,
    /// The line by which it is an answer all the same, where any is.
    escaped: Option<String>,
}

impl Refusal {
    /// Returns what a person is told who has `meant` before them already, and only has to take it.
    pub(crate) fn told_with_meant(&self) -> String {
        match &self.escaped {
            Some(escaped) => format!("{} Enter takes that; `{escaped}` answers with it", self.why),
            None => format!("{} Enter takes that", self.why),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)?;
        match (&self.meant, &self.escaped) {
            (Some(meant), Some(escaped)) if !meant.starts_with('/') => {
                write!(f, " Type that, or `{escaped}` to answer with it")
            }
            (_, Some(escaped)) => write!(f, " `{escaped}` answers with it"),
            (Some(_), None) => f.write_str(" Type that"),
            (None, None) => Ok(()),
        }
    }
}

/// Returns what a line means at a question with these commands.
pub(crate) fn read(line: &str, commands: &[TypedCommand]) -> TypedLine {
    let line = line.trim();
    if commands.is_empty() {
        return read_without_commands(line);
    }
    match (line.strip_prefix('\\'), line.strip_prefix('/')) {
        (Some(""), _) => TypedLine::Answer(line.to_owned()),
        (Some(answer), _) => TypedLine::Answer(answer.to_owned()),
        (_, Some(behind)) => read_slash(line, behind, commands),
        (None, None) => read_words(line, commands),
    }
}

/// Returns what a line means at a question that has only commands for answers: there the slash may be left out of each.
pub(crate) fn read_command(line: &str, commands: &[TypedCommand]) -> TypedLine {
    let line = line.trim();
    let behind = line.strip_prefix('/').unwrap_or(line);
    let ended = behind.trim_end_matches(['.', '!']).trim_end();
    // An end belongs to a text, and to nothing else.
    let with_text = begun(behind, commands).filter(|(command, _)| command.text.is_some());
    if let Some((command, argument)) = with_text.or_else(|| begun(ended, commands)) {
        return with_argument(command, argument).unwrap_or_else(|why| refused(why, None, None));
    }
    if fold(behind) == HELP {
        return TypedLine::Help;
    }
    let (first, rest) = behind.split_once(char::is_whitespace).unwrap_or((behind, ""));
    let near = forms(commands).chain([HELP]).find(|form| form.chars().count() >= 3 && is_one_off(form, first));
    if let Some(near) = near {
        let meant = format!("{near} {}", rest.trim_start()).trim_end().to_owned();
        return refused(format!("`{}`: did you mean `{}`?", excerpt(line), excerpt(&meant)), Some(meant), None);
    }
    refused(format!("`{}` is no command here; this question takes {}", excerpt(line), usages(commands)), None, None)
}

/// Returns how each command is typed, as the end of a sentence.
pub(crate) fn usages(commands: &[TypedCommand]) -> String {
    let all: Vec<String> = commands.iter().map(|command| format!("`{}`", usage(command))).collect();
    match all.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        few => few.join(""),
    }
}

/// Returns the line by which a person answers with this text at a question with these commands.
pub(crate) fn line_for(answer: &str, commands: &[TypedCommand]) -> String {
    match read(answer, commands) {
        TypedLine::Answer(said) if said == answer => said,
        TypedLine::Answer(_) | TypedLine::Command { .. } | TypedLine::Help | TypedLine::Refused(_) => {
            format!("\\{answer}")
        }
    }
}

/// Only `/help` is a command here, and only `\/help` an answer in disguise: all other lines are what they are.
fn read_without_commands(line: &str) -> TypedLine {
    match line.trim_start_matches('\\') {
        plain if fold(plain) != "/help" => TypedLine::Answer(line.to_owned()),
        plain if plain.len() == line.len() => TypedLine::Help,
        _ => TypedLine::Answer(line[1..].to_owned()),
    }
}

/// Returns the command that a line begins with, and what stands behind it. The longest form counts: one may begin like another.
fn begun<'a, 'c>(behind: &'a str, commands: &'c [TypedCommand]) -> Option<(&'c TypedCommand, &'a str)> {
    let begun = commands.iter().flat_map(|command| {
        let forms = std::iter::once(&command.name).chain(&command.words);
        forms.filter_map(move |form| Some((form.len(), command, rest_after(behind, form)?)))
    });
    begun.max_by_key(|(length, ..)| *length).map(|(_, command, argument)| (command, argument))
}

fn forms(commands: &[TypedCommand]) -> impl Iterator<Item = &str> {
    commands.iter().flat_map(|command| std::iter::once(&command.name).chain(&command.words)).map(String::as_str)
}

fn refused(why: String, meant: Option<String>, escaped: Option<String>) -> TypedLine {
    TypedLine::Refused(Refusal { why, meant, escaped })
}

fn read_slash(line: &str, behind: &str, commands: &[TypedCommand]) -> TypedLine {
    if let Some((command, argument)) = begun(behind, commands) {
        return with_argument(command, argument).unwrap_or_else(|why| refused(why, None, Some(escape(line))));
    }
    if let Some(argument) = rest_after(behind, HELP) {
        return match argument {
            "" => TypedLine::Help,
            argument => refused(misused("/help", argument, "/help"), None, Some(escape(line))),
        };
    }
    let first = behind.split_whitespace().next().unwrap_or_default();
    let could_be_a_name = behind.starts_with(first) && first.chars().all(|c| c.is_alphanumeric() || "-_'’".contains(c));
    if first.is_empty() || !could_be_a_name {
        return TypedLine::Answer(line.to_owned());
    }
    let near = forms(commands).chain([HELP]).find(|form| is_one_off(form, first));
    let typed = excerpt(first);
    match near {
        Some(near) => {
            let meant = format!("/{near}{}", &behind[first.len()..]);
            let why = format!("there is no command `/{typed}`: did you mean `/{near}`?");
            refused(why, Some(meant), Some(escape(line)))
        }
        None => {
            let why = format!("there is no command `/{typed}`; `/help` lists those that there are.");
            refused(why, None, Some(escape(line)))
        }
    }
}

fn read_words(line: &str, commands: &[TypedCommand]) -> TypedLine {
    let ended = line.trim_end_matches(['.', '!']).trim_end();
    let said = if ended.is_empty() { line } else { ended };
    if let Some((command, argument)) = commands.iter().find_map(|command| Some((command, whole(said, command)?))) {
        return with_argument(command, argument).unwrap_or_else(|why| refused(why, None, Some(escape(line))));
    }
    let (first, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    // A name that is not offered as a word means something else here, such as an option of the prompt: it is no slip.
    if commands.iter().any(|command| plain(&command.name) == plain(first)) {
        return TypedLine::Answer(line.to_owned());
    }
    for command in commands {
        for word in &command.words {
            let head = word.split_whitespace().next().unwrap_or_default();
            let mended = format!("{head} {rest}");
            if is_slip(head, first) && whole(&mended, command).is_some() {
                let meant = mended.trim().to_owned();
                let why = format!("`{}`: did you mean `{meant}`?", excerpt(line));
                return refused(why, Some(meant), Some(escape(line)));
            }
        }
    }
    TypedLine::Answer(line.to_owned())
}

/// Returns what stands behind a command's word in a line that is nothing else: nothing, a number or a choice that it takes.
fn whole<'a>(line: &'a str, command: &TypedCommand) -> Option<&'a str> {
    let mut arguments = command.words.iter().filter_map(|word| rest_after(line, word));
    arguments.find(|argument| argument.is_empty() || takes_without_slash(command, argument))
}

fn takes_without_slash(command: &TypedCommand, argument: &str) -> bool {
    numbers(command, argument).is_some() || command.choices.iter().any(|choice| fold(choice) == fold(argument))
}

/// Returns the numbers that stand behind a command, as far as it takes them.
fn numbers(command: &TypedCommand, argument: &str) -> Option<String> {
    let name = command.number.as_ref()?;
    let takes_several = name.trim_matches(['[', ']']).ends_with('…');
    let numbers: Vec<&str> = match takes_several {
        true => argument.split([' ', ',']).filter(|part| !part.is_empty()).collect(),
        false => vec![argument],
    };
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (!numbers.is_empty() && numbers.iter().all(is_number)).then(|| numbers.join(" "))
}

/// Returns the command with what stands behind it, or why that is not what it takes.
fn with_argument(command: &TypedCommand, argument: &str) -> Result<TypedLine, String> {
    if command.name == HELP && argument.is_empty() {
        return Ok(TypedLine::Help);
    }
    if argument.is_empty() && needs_argument(command) {
        let what = if command.text.is_some() { "text" } else { "number" };
        return Err(format!("`/{}` needs a {what}: `{}`.", command.name, usage(command)));
    }
    if !argument.is_empty() && command.text.is_none() && !takes_without_slash(command, argument) {
        return Err(misused(&format!("/{}", command.name), argument, &usage(command)));
    }
    let argument = numbers(command, argument).unwrap_or_else(|| argument.to_owned());
    Ok(TypedLine::Command { name: command.name.clone(), argument })
}

fn misused(command: &str, argument: &str, usage: &str) -> String {
    format!("`{command}` does not take `{}`: `{usage}`.", excerpt(argument))
}

/// Returns the line that answers with what was typed.
fn escape(line: &str) -> String {
    format!("\\{}", excerpt(line))
}

/// Returns how a command is typed: `/idea TEXT`, `/drop N…`, `/back [N]`.
pub(crate) fn usage(command: &TypedCommand) -> String {
    let bare = |part: &String| part.trim_matches(['[', ']']).to_owned();
    let parts: Vec<String> = command
        .choices
        .iter()
        .cloned()
        .chain([&command.text, &command.number].into_iter().flatten().map(bare))
        .collect();
    match parts.join("|") {
        none if none.is_empty() => format!("/{}", command.name),
        text if needs_argument(command) => format!("/{} {text}", command.name),
        text => format!("/{} [{text}]", command.name),
    }
}

fn needs_text(command: &TypedCommand) -> bool {
    command.text.as_ref().is_some_and(|text| !is_optional(text))
}

/// Whether a text or a number has to stand behind the command. Where choices are offered, too, a number may be left out.
fn needs_argument(command: &TypedCommand) -> bool {
    let needs_number = || command.number.as_ref().is_some_and(|number| !is_optional(number));
    needs_text(command) || command.choices.is_empty() && needs_number()
}

/// Whether what stands behind a command may be left out, as its name says.
fn is_optional(name: &str) -> bool {
    name.starts_with('[')
}

/// Puts the name of a number into brackets, which says that it may be left out.
pub(crate) fn bracketed(name: &str) -> String {
    if is_optional(name) { name.to_owned() } else { format!("[{name}]") }
}

/// Returns what follows a form of a command, which may be several words; nothing if the line does not begin with it.
fn rest_after<'a>(line: &'a str, form: &str) -> Option<&'a str> {
    let mut rest = line;
    for word in form.split_whitespace() {
        let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        // The folded length is bounded by that of the line, so that a long word costs nothing.
        if first.len() > 4 * word.len() + 4 || plain(first) != plain(word) {
            return None;
        }
        rest = after.trim_start();
    }
    Some(rest)
}

/// Returns a word for comparing: letter case, accents and the shape of an apostrophe are no difference.
fn plain(word: &str) -> String {
    fold(word).replace('’', "'")
}

/// Whether a word without a slash is probably meant as this one. Words of four letters have too many neighbours that are
/// words, too (`five` and `dive`, `safe` and `save`): there, only two letters that changed places count.
fn is_slip(meant: &str, typed: &str) -> bool {
    let sorted = |word: &str| {
        let mut letters: Vec<char> = plain(word).chars().collect();
        letters.sort_unstable();
        letters
    };
    match meant.chars().count() {
        0..4 => false,
        4 => is_one_off(meant, typed) && sorted(meant) == sorted(typed),
        5.. => is_one_off(meant, typed),
    }
}

/// Whether a word of a command line is probably meant as this command of a flow. A text is rarely one word there, so a letter
/// more or less counts in words of four letters, too.
pub(crate) fn is_slip_of_command(meant: &str, typed: &str) -> bool {
    let letters = |word: &str| word.chars().count();
    let is_longer_or_shorter = letters(meant) == 4 && letters(meant) != letters(typed) && is_one_off(meant, typed);
    is_slip(meant, typed) || is_longer_or_shorter
}

/// Whether one letter was added, left out or replaced, or two changed places.
fn is_one_off(meant: &str, typed: &str) -> bool {
    meant.chars().count().abs_diff(typed.chars().count()) <= 1
        && strsim::osa_distance(&plain(meant), &plain(typed)) == 1
}

/// Says what is wrong with the commands that a flow offers.
///
/// # Errors
///
/// A sentence with the command's name.
pub(crate) fn check(commands: &[TypedCommand]) -> Result<(), String> {
    let mut forms: Vec<String> = Vec::new();
    for command in commands {
        let name = &command.name;
        let parts = || name.split('-');
        let is_name =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'));
        if !parts().all(is_name) {
            return Err(format!("`{}` is no name of a command: lower-case words with `-` between them", excerpt(name)));
        }
        let no_line = |text: &String| text.trim().is_empty() || text.contains('\n');
        let argument = [&command.text, &command.number].into_iter().flatten();
        if [&command.summary].into_iter().chain(argument).chain(&command.choices).any(no_line) {
            return Err(format!(
                "the command `{name}` has a summary, a text, a number or a choice that is not one line"
            ));
        }
        let takes = command.text.is_some() || command.number.is_some() || !command.choices.is_empty();
        if name == HELP && takes {
            return Err("the command `help` is nietz's own: a flow can only give it more words".to_owned());
        }
        if command.text.is_some() && command.number.is_some() {
            return Err(format!("the command `{name}` takes a text or a number, not both"));
        }
        if needs_text(command) && !command.words.is_empty() {
            return Err(format!("the command `{name}` needs a text, so it needs its slash and has no words"));
        }
        let own = std::iter::once(name).filter(|name| !command.words.contains(name)).chain(&command.words);
        for form in own {
            if no_line(form) || form.starts_with(['/', '\\']) {
                return Err(format!("`{}` of the command `{name}` is no word that can be typed", excerpt(form)));
            }
            let form = plain(&form.split_whitespace().collect::<Vec<_>>().join(" "));
            if forms.contains(&form) {
                return Err(format!("`{form}` is two commands"));
            }
            forms.push(form);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TypedLine, check, line_for, read, usage};
    use crate::model::question::TypedCommand;

    fn commands() -> Vec<TypedCommand> {
        let list = json!([
            {"name": "idea", "summary": "adds an idea", "text": "TEXT"},
            {"name": "dive", "summary": "goes deeper", "text": "[ABOUT]", "words": ["dive"]},
            {"name": "back", "summary": "goes back", "number": "[N]", "words": ["back"]},
            {"name": "panel", "summary": "asks experts", "choices": ["debate", "exit"], "words": ["panel"]},
            {"name": "solved", "summary": "ends", "words": ["solved", "found it", "résolu", "c'est résolu"]},
            {"name": "quit", "summary": "leaves", "words": ["quit", "exit", "I give up"]},
            {"name": "security-check", "summary": "looks for attacks", "words": ["security-check"]},
            {"name": "plan-preview", "summary": "shows the plan", "words": ["plan-preview"]},
            {"name": "spike", "summary": "tries it", "text": "[TEXT]", "words": ["spike"]},
        ]);
        serde_json::from_value(list).expect("the test's commands are well formed")
    }

    /// `=answer`, `!command argument`, `?` for help, `x` and the reason for what is refused.
    fn meaning(line: &str, commands: &[TypedCommand]) -> String {
        match read(line, commands) {
            TypedLine::Answer(text) => format!("={text}"),
            TypedLine::Command { name, argument } => format!("!{name} {argument}").trim_end().to_owned(),
            TypedLine::Help => "?".to_owned(),
            TypedLine::Refused(why) => format!("x{why}"),
        }
    }

    #[test]
    fn a_command_has_a_slash_or_is_the_whole_line_and_offered() {
        for (line, expected) in [
            // The whole line, in any case, with or without accents and an end.
            ("solved", "!solved"),
            ("  Found  It! ", "!solved"),
            ("resolu.", "!solved"),
            ("C’est résolu", "!solved"),
            ("I give up", "!quit"),
            ("back", "!back"),
            ("back 3", "!back 3"),
            ("panel exit", "!panel exit"),
            ("dive", "!dive"),
            // Answers that begin like a command, or have its word in them.
            ("security", "=security"),
            ("plan", "=plan"),
            ("spike in traffic at noon", "=spike in traffic at noon"),
            ("idea", "=idea"),
            ("idea about caching", "=idea about caching"),
            ("solved it by restarting", "=solved it by restarting"),
            ("back to the old design", "=back to the old design"),
            ("panel of judges", "=panel of judges"),
            ("dive deeper", "=dive deeper"),
            ("help", "=help"),
            ("!", "=!"),
            ("", "="),
            // With a slash, by a name or a word.
            ("/solved", "!solved"),
            (
                "/SOLVED by restarting",
                "x`/solved` does not take `by restarting`: `/solved`. `\\/SOLVED by restarting` answers with it",
            ),
            ("/i give up", "!quit"),
            ("/idea use a  cache\nand a queue", "!idea use a  cache\nand a queue"),
            ("/dive", "!dive"),
            ("/dive tokens", "!dive tokens"),
            ("/back 2", "!back 2"),
            ("/panel debate", "!panel debate"),
            ("/help", "?"),
            (" /HELP ", "?"),
            ("/help me", "x`/help` does not take `me`: `/help`. `\\/help me` answers with it"),
            ("/idea", "x`/idea` needs a text: `/idea TEXT`. `\\/idea` answers with it"),
            ("/back x", "x`/back` does not take `x`: `/back [N]`. `\\/back x` answers with it"),
            (
                "/panel of judges",
                "x`/panel` does not take `of judges`: `/panel [debate|exit]`. `\\/panel of judges` answers with it",
            ),
            // No command, and nothing that could be one.
            ("/solvd", "xthere is no command `/solvd`: did you mean `/solved`? `\\/solvd` answers with it"),
            ("/hepl", "xthere is no command `/hepl`: did you mean `/help`? `\\/hepl` answers with it"),
            ("/xyzzy", "xthere is no command `/xyzzy`; `/help` lists those that there are. `\\/xyzzy` answers with it"),
            ("/usr/lib/x.so is missing", "=/usr/lib/x.so is missing"),
            ("/ is full", "=/ is full"),
            ("/", "=/"),
            ("/v1.2", "=/v1.2"),
            // A backslash makes an answer of anything, and is taken off once.
            ("\\solved", "=solved"),
            ("\\/quit", "=/quit"),
            ("\\\\server", "=\\server"),
            ("\\", "=\\"),
        ] {
            assert_eq!(meaning(line, &commands()), expected, "{line:?}");
        }
        for answer in ["back 3", "solvd", "/idea", "\\solved", "plan", "/etc/hosts", ""] {
            assert_eq!(meaning(&line_for(answer, &commands()), &commands()), format!("={answer}"));
        }
    }

    #[test]
    fn what_is_one_letter_off_is_asked_about() {
        for (line, meant) in [
            ("solvd", "solved"),
            ("sloved", "solved"),
            ("sollved", "solved"),
            ("sulved", "solved"),
            ("fuond it", "found it"),
            ("bakc 3", "back 3"),
            ("qiut", "quit"),
            ("painel exit", "panel exit"),
            ("securty-check", "security-check"),
        ] {
            let why = format!("x`{line}`: did you mean `{meant}`? Type that, or `\\{line}` to answer with it");
            assert_eq!(meaning(line, &commands()), why);
            assert_eq!(meaning(&format!("\\{line}"), &commands()), format!("={line}"));
        }
        // Two letters off, a short word, a neighbour of a word of four letters, more than the form.
        for line in ["solvt", "exi", "five", "black", "pack", "suit", "bakc to it", "solvd by me", "foudn", "j give up"]
        {
            assert_eq!(meaning(line, &commands()), format!("={line}"));
        }
    }

    #[test]
    fn without_commands_only_help_is_one() {
        for (line, expected) in [
            ("/help", "?"),
            ("\\/help", "=/help"),
            ("\\\\/help", "=\\/help"),
            ("\\n", "=\\n"),
            ("/quit", "=/quit"),
            ("help", "=help"),
            ("/help me", "=/help me"),
        ] {
            assert_eq!(meaning(line, &[]), expected);
        }
    }

    #[test]
    fn what_a_flow_offers_is_checked() {
        assert_eq!(check(&commands()), Ok(()));
        assert_eq!(
            commands().iter().map(usage).collect::<Vec<_>>()[..4],
            ["/idea TEXT", "/dive [ABOUT]", "/back [N]", "/panel [debate|exit]"]
        );
        for (wrong, why) in [
            (json!([{"name": "Go on", "summary": "x"}]), "`Go on` is no name of a command"),
            (json!([{"name": "go-", "summary": "x"}]), "`go-` is no name of a command"),
            (json!([{"name": "go", "summary": " "}]), "a summary, a text, a number or a choice that is not one line"),
            (
                json!([{"name": "go", "summary": "x"}, {"name": "on", "summary": "x", "words": ["GO"]}]),
                "`go` is two commands",
            ),
            (json!([{"name": "go", "summary": "x", "words": ["/go"]}]), "is no word that can be typed"),
            (json!([{"name": "go", "summary": "x", "text": "T", "words": ["go"]}]), "needs its slash"),
            (json!([{"name": "go", "summary": "x", "text": "T", "number": "N"}]), "not both"),
            (json!([{"name": "help", "summary": "x", "text": "[T]"}]), "`help` is nietz's own"),
        ] {
            let commands: Vec<TypedCommand> = serde_json::from_value(wrong).expect("well formed");
            assert!(check(&commands).is_err_and(|told| told.contains(why)), "{why}: {:?}", check(&commands));
        }
        let words = json!([{"name": "help", "summary": "x", "words": ["help", "aide"]}]);
        let words: Vec<TypedCommand> = serde_json::from_value(words).expect("well formed");
        assert_eq!(
            (check(&words), meaning("aide", &words), meaning("/help", &words)),
            (Ok(()), "?".to_owned(), "?".to_owned())
        );
    }
}
