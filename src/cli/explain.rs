//! `nietz explain CODE` and `nietz explain WORD`.

use clap::Args;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::model::text::excerpt;
use crate::run::machine::Machine;

/// The glossary: the only place that defines the words that nietz uses.
const WORDS: &str = include_str!("../WORDS.md");

/// Explain an error code or a word: what it means, why it happens, what to do
#[derive(Args)]
pub(super) struct ExplainArgs {
    /// Such as `document-invalid` or `cassette`; all codes are listed without one, all words with `words`
    #[arg(value_name = "CODE|WORD", num_args = 0..)]
    wanted: Vec<String>,
}

pub(super) fn run(machine: &Machine, args: &ExplainArgs) -> Result<Exit> {
    let wanted = args.wanted.join(" ");
    if wanted.is_empty() {
        let rows: Vec<Vec<String>> = Code::ALL
            .iter()
            .map(|code| vec![code.name().to_owned(), format!("exit {}", code.exit() as u8), summary(*code)])
            .collect();
        output::table(&rows)?;
        return Ok(Exit::Done);
    }
    if wanted == "words" {
        output::prose(WORDS, &machine.environment)?;
        return Ok(Exit::Done);
    }
    if let Some(code) = Code::parse(&wanted) {
        output::prose(code.page(), &machine.environment)?;
        return Ok(Exit::Done);
    }
    // A word that is told beside another one, such as `answer` beside `question`, stands there in bold.
    let bold = format!("**{wanted}**");
    // `foreign` is half of one.
    let is_part = |word: &str| word.split(' ').any(|part| part == wanted);
    let found = (words().find(|(word, _)| *word == wanted))
        .or_else(|| words().find(|(_, meaning)| meaning.contains(&bold)))
        .or_else(|| words().find(|(word, _)| is_part(word)));
    if let Some((word, meaning)) = found {
        output::prose(&format!("{word}: {meaning}"), &machine.environment)?;
        return Ok(Exit::Done);
    }
    let failure = Failure::new(Code::Usage, format!("there is no error code and no word `{}`", excerpt(&wanted)));
    let known = Code::ALL.iter().map(|code| code.name()).chain(words().map(|(word, _)| word));
    Err(match nearest(&wanted, known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`nietz explain` lists the codes, `nietz explain words` the words"),
    })
}

/// Returns each word of the glossary with its meaning.
fn words() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORDS.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**: "))
}

/// Returns the first sentence of a code's page.
pub(super) fn summary(code: Code) -> String {
    let paragraph = code.page().lines().skip(1).skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    let text = paragraph.collect::<Vec<_>>().join(" ");
    text.split_once(". ").map_or(text.as_str(), |(first, _)| first).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_code_is_told_in_a_whole_sentence() {
        let told = "The flow's own Lua code raised an error that it did not handle, or called a function in a way that Lua \
                    cannot carry out";
        assert_eq!(summary(Code::FlowError), told);
        for code in Code::ALL {
            let page = code.page().replace('\n', " ");
            assert!(page.contains(&format!("{}.", summary(*code))), "{}: {}", code.name(), summary(*code));
        }
    }

    #[test]
    fn each_word_is_there_once_and_none_is_a_code() {
        let items = WORDS.lines().filter(|line| line.starts_with("- ")).count();
        let all: BTreeSet<&str> = words().map(|(word, _)| word).collect();
        assert!(all.len() == items && items > 40, "{items} items, {} words", all.len());
        assert!(words().all(|(word, meaning)| Code::parse(word).is_none() && meaning.ends_with('.')));
    }
}
