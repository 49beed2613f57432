//! `nietz models key`: takes a key from a terminal or a pipe, and gives it to the keyring or to a file.

use std::io::{IsTerminal, Read};

use clap::Args;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::keys::{self, NewKey};
use crate::host::llm::{KeyState, without_keys};
use crate::host::ui;
use crate::model::text::line;
use crate::run::machine::Machine;

/// Keep a provider's key, so that no variable has to hold it
///
/// The key is typed at the terminal, where it is not shown, or comes by a pipe (`pass show lab | nietz models key openai`). It
/// goes into the system's keyring where there is one, else into a file that only you can read. A variable or a `key_command`
/// comes before it.
#[derive(Args)]
pub(super) struct KeyArgs {
    /// The provider, such as openai
    provider: String,
    /// Remove the key that is kept
    #[arg(long)]
    remove: bool,
    /// Keep it in the file, also where there is a keyring
    #[arg(long, conflicts_with = "remove")]
    file: bool,
}

pub(super) fn run(machine: &Machine, args: &KeyArgs) -> Result<Exit> {
    let provider = args.provider.as_str();
    let client = crate::run::models::client(machine)?;
    let state = client.key_state(provider)?;
    let file = machine.keys_file();
    // The keyring's program has no need of other keys.
    let environment = without_keys(&machine.environment, &machine.config.models);
    let runtime = crate::run::runtime()?;
    if args.remove {
        let what = match runtime.block_on(file.remove(provider, &environment))? {
            true => "is not kept any more",
            false => "was not kept",
        };
        output::line(format!("the key of {provider} {what}"))?;
        return Ok(Exit::Done);
    }
    let key = NewKey::parse(&typed(provider)?)?;
    key.tell(provider, &machine.redactor());
    let kept = runtime.block_on(file.store(provider, &key, args.file, &environment))?;
    output::line(format!("the key of {provider} is {}", kept.place))?;
    if let Some(note) = kept.note {
        output::print_status(&format!("note: {}\n", line(&note)));
    }
    let before = match state {
        KeyState::Variable(name) => Some(name),
        KeyState::Command
            if machine.config.models.providers.get(provider).is_some_and(|it| it.key_command.is_some()) =>
        {
            Some(format!("models.providers.{provider}.key_command"))
        }
        _ => None,
    };
    if let Some(before) = before {
        output::print_status(&format!("note: {before} comes before it\n"));
    }
    Ok(Exit::Done)
}

/// Returns what is typed at the terminal, or what comes by the pipe.
fn typed(provider: &str) -> Result<String> {
    if std::io::stdin().is_terminal() {
        let prompt = || output::print_status(&format!("key of {provider} (it is not shown): "));
        let typed = ui::hidden_line(keys::LONGEST, prompt);
        output::print_status("\n");
        return typed;
    }
    let mut text = Vec::new();
    // One byte more than any key and its line end: what is longer is refused, and not read to its end.
    let most = keys::LONGEST as u64 + 3;
    std::io::stdin()
        .take(most)
        .read_to_end(&mut text)
        .map_err(|error| Failure::new(Code::Usage, format!("the key cannot be read from standard input: {error}")))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
