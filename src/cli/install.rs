//! `nietz install CLIENT` and `nietz uninstall CLIENT`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::cli::output;
use crate::editors::{Change, EditorClient, Scope};
use crate::error::{Code, Exit, Failure, Result};
use crate::host::ui::{self, AnswersFrom, Mode, Sources};
use crate::model::question::{Question, QuestionKind};
use crate::model::text::clean;
use crate::run::machine::Machine;
use crate::run::runtime;

/// Put nietz into the configuration of an editor or an agent, after showing what is written
///
/// claude-code, vscode, cursor, codex and gemini get flows as tools (`nietz mcp`), jetbrains gets an agent (`nietz acp`), zed both.
#[derive(Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    which: WhichArgs,
}

/// Take nietz out of the configuration of an editor or an agent
#[derive(Args)]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Args)]
struct WhichArgs {
    /// The editor or agent
    #[arg(value_parser = PossibleValuesParser::new(EditorClient::ALL.map(EditorClient::name)))]
    client: String,
    /// In this project's configuration, and not in your own
    #[arg(long)]
    project: bool,
    /// Write without asking
    #[arg(long)]
    yes: bool,
}

impl WhichArgs {
    fn client(&self) -> Result<(EditorClient, Scope)> {
        let unknown = || Failure::new(Code::Usage, format!("{} is no client that is known", clean(&self.client)));
        let client = EditorClient::named(&self.client).ok_or_else(unknown)?;
        Ok((client, if self.project { Scope::Project } else { Scope::User }))
    }
}

pub(super) fn install(machine: &Machine, args: &InstallArgs) -> Result<Exit> {
    let (client, scope) = args.which.client()?;
    let program = match scope {
        Scope::User => machine.program()?.display().to_string(),
        // What stands in a project is for others as well, whose programs are elsewhere.
        Scope::Project => "nietz".to_owned(),
    };
    let changes = client.install(&program, scope, &home(machine)?, &machine.workspace)?;
    if changes.is_empty() {
        output::line(format!("{} has nietz already", client.name()))?;
        return Ok(Exit::Done);
    }
    make(machine, &changes, args.which.yes)
}

pub(super) fn uninstall(machine: &Machine, args: &UninstallArgs) -> Result<Exit> {
    let (client, scope) = args.which.client()?;
    let changes = client.uninstall(scope, &home(machine)?, &machine.workspace)?;
    if changes.is_empty() {
        output::line(format!("{} has no entry of nietz's", client.name()))?;
        return Ok(Exit::Done);
    }
    make(machine, &changes, args.which.yes)
}

/// Returns the user's home.
pub(super) fn home(machine: &Machine) -> Result<PathBuf> {
    let missing = || Failure::new(Code::ConfigInvalid, "it is not known where your home is").hint("set HOME");
    machine.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute()).ok_or_else(missing)
}

/// Shows changes, asks, and makes them.
fn make(machine: &Machine, changes: &[Change], is_sure: bool) -> Result<Exit> {
    for change in changes {
        let what = if change.removes() { "remove" } else { "change" };
        output::line(format!("{what} {}", shown(&change.path)))?;
        let lines = change.shown.lines().map(|line| format!("  {}\n", clean(line)));
        output::block(lines.collect::<String>())?;
    }
    if !is_sure {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::new(Code::Usage, "nothing was written: nobody is there to say yes")
                .hint("--yes writes without asking"));
        }
        let question =
            Question { default: Some(true.into()), ..Question::new("write", QuestionKind::Confirm, "Write that?") };
        let front = ui::open(
            Mode::Auto,
            AnswersFrom::SaidPipe,
            "install",
            (&machine.environment, Sources::All),
            &machine.redactor(),
        );
        if runtime()?.block_on(front.ask(&question))? != true {
            return Ok(Exit::Done);
        }
    }
    changes.iter().try_for_each(Change::make)?;
    output::line("written; the client has to be started anew")?;
    Ok(Exit::Done)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
