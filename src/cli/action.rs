//! The arguments of a flow: `nietz run`, `nietz resume … -- FLOW` and `nietz test --record` read them in the same way.

use clap::parser::ValueSource;
use clap::{Arg, Args, Command, FromArgMatches};

use crate::cli::budget::BudgetArgs;
use crate::cli::effort::EffortArgs;
use crate::cli::front::FrontArgs;
use crate::cli::grants::{GrantArgs, ReadArgs, with_grant_options};
use crate::cli::texts::TextReader;
use crate::cli::{commands, named, output, params};
use crate::error::{Code, Exit, Failure, Result};
#[cfg(feature = "postgres")]
use crate::lua::manifest::Manifest;
use crate::model::choice::RunEfforts;
use crate::model::command::Grants;
use crate::model::text::{clean, shell};
use crate::pack::resolve;
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::session::Session;

/// Options of every run, beside those of the flow.
#[derive(Args, Clone, Debug)]
struct HostArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// The model for this run: `provider/model`, a provider, or an alias
    #[arg(long, value_name = "NAME", global = true)]
    model: Option<String>,
    #[command(flatten)]
    effort: EffortArgs,
    /// Language of the flow, two letters [default: from the locale]
    #[arg(long, value_name = "LANG", global = true)]
    lang: Option<String>,
    /// Seed of local models and, with the run's name, of chance
    #[arg(long, value_name = "N", global = true)]
    seed: Option<u64>,
    /// Show what the flow may do, with which models and within which limits, and end
    #[arg(long, global = true)]
    plan: bool,
    #[command(flatten)]
    budget: BudgetArgs,
}

/// How a run is left to a worker. These words are nietz's before the flow's name, and behind it where the flow has no param of that
/// name.
#[cfg(feature = "postgres")]
#[derive(Args, Clone, Debug, Default)]
pub(super) struct QueueArgs {
    /// Leave the run to a worker of the store, and end
    #[arg(long)]
    pub queue: bool,
    /// With --queue: leave it to a worker that has this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// With --queue: not before this time, such as 2026-11-30T06:00:00Z
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// With --queue: wait until it is over, and end as it does
    #[arg(long)]
    pub wait: bool,
}

#[cfg(feature = "postgres")]
impl QueueArgs {
    /// Takes its words out of a command line whose word `at` is the flow.
    fn take(rest: &mut Vec<String>, mut at: usize, manifest: &Manifest) -> Result<QueueArgs> {
        let mut found = QueueArgs::default();
        let mut next = 0;
        let actions = || std::iter::once(&manifest.main).chain(manifest.commands.values());
        while let Some(word) = rest.get(next).filter(|word| *word != "--") {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word.clone(), None),
            };
            let of_flow =
                || next > at && actions().any(|action| action.params.contains_key(name.trim_start_matches("--")));
            let takes_value = match name.as_str() {
                "--queue" | "--wait" if attached.is_none() && !of_flow() => false,
                "--tag" | "--at" if !of_flow() => true,
                _ => {
                    next += 1;
                    continue;
                }
            };
            let (value, words) = match (takes_value, attached) {
                (true, None) => (rest.get(next + 1).cloned(), 2),
                (_, attached) => (attached, 1),
            };
            if takes_value && value.is_none() {
                return Err(Failure::new(Code::Usage, format!("{name} needs a value")));
            }
            match name.as_str() {
                "--queue" => found.queue = true,
                "--wait" => found.wait = true,
                "--tag" => found.tag = value,
                _ => found.at = value,
            }
            rest.drain(next..next + words);
            at = if next < at { at - words } else { at };
        }
        if !found.queue && (found.wait || found.tag.is_some() || found.at.is_some()) {
            return Err(Failure::new(Code::Usage, "--tag, --at and --wait say how a run is queued").hint("add --queue"));
        }
        Ok(found)
    }
}

/// Loads the flow that the first plain word names, and parses its arguments. Returns `None` if no flow is named.
pub(super) fn load_action(machine: &Machine, mut rest: Vec<String>) -> Result<Option<(Session, RunAction)>> {
    let Some(at) = flow_at(&rest) else { return Ok(None) };
    let located = resolve::flow(&rest[at], &machine.workspace, &machine.packs())?;
    let session = Session::load(machine, located)?;
    #[cfg(feature = "postgres")]
    let queue = QueueArgs::take(&mut rest, at, &session.flow.manifest)?;
    let Some(at) = flow_at(&rest) else { return Ok(None) };
    let wanted = rest.remove(at);
    let action = parse_action(machine, &wanted, &session, rest)?;
    #[cfg(feature = "postgres")]
    if queue.queue
        && let RunAction::Run(begin, front) = action
    {
        return Ok(Some((session, RunAction::Queue(begin, front, queue))));
    }
    Ok(Some((session, action)))
}

/// What a command line asks for.
pub(super) enum RunAction {
    Run(Box<NewRun>, FrontArgs),
    Plan(Box<NewRun>, FrontArgs),
    #[cfg(feature = "postgres")]
    Queue(Box<NewRun>, FrontArgs, QueueArgs),
    /// The help or a usage error, which is already printed.
    Printed(Exit),
}

/// Parses the arguments of a flow.
pub(super) fn parse_action(machine: &Machine, wanted: &str, session: &Session, rest: Vec<String>) -> Result<RunAction> {
    let manifest = &session.flow.manifest;
    let runs_commands = !manifest.permissions.exec.is_empty();
    let reads_files = manifest.permissions.files;
    let command = flow_command(wanted, session)?;
    let is_explicit = rest.iter().any(|word| word == "--");
    let matches = match command.try_get_matches_from(std::iter::once("run".to_owned()).chain(rest)) {
        Ok(matches) => matches,
        Err(error) => {
            output::arguments(&error);
            return Ok(RunAction::Printed(if error.use_stderr() { Exit::Usage } else { Exit::Done }));
        }
    };
    if matches.contains_id("workspace") {
        return Err(Failure::new(
            Code::Usage,
            "-C names the folder of the whole command, and not of the flow's arguments",
        )
        .hint("put it before the `--`"));
    }
    let mut of_host =
        HostArgs::from_arg_matches(&matches).map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
    let grants = match runs_commands {
        true => GrantArgs::from_arg_matches(&matches).map_err(|error| Failure::new(Code::Usage, error.to_string()))?,
        false => GrantArgs::default(),
    }
    .added_to(Grants::default());
    let grants = match reads_files {
        true => ReadArgs::from_arg_matches(&matches)
            .map_err(|error| Failure::new(Code::Usage, error.to_string()))?
            .added_to(grants, machine),
        false => grants,
    };
    let mut texts = TextReader::default();
    let exec = &manifest.permissions.typed();
    let (name, mut params) = match matches.subcommand() {
        Some((name, own)) => {
            let given = |param: &&String| matches.value_source(param) == Some(ValueSource::CommandLine);
            if let Some(param) = manifest.main.params.keys().find(given) {
                let message = format!("`{}` takes no param `{}`", clean(name), clean(param));
                return Err(
                    Failure::new(Code::Usage, message).hint(format!("nietz run {} {name} --help", shell(wanted)))
                );
            }
            (Some(name.to_owned()), params::values(session.flow.command(Some(name))?, own, exec, &mut texts)?)
        }
        None => {
            let mut params = params::values(&manifest.main, &matches, exec, &mut texts)?;
            commands::tell_apart(manifest, &mut params, &texts.origins, is_explicit)?;
            (None, params)
        }
    };
    if let Some(param) = texts.taker_of_stdin()
        && of_host.front.answers_by_pipe()
    {
        let message = format!("standard input is the text of `{}`, and cannot answer questions as well", clean(param));
        return Err(Failure::new(Code::Usage, message).hint("give the text as @FILE, or the answers as a file"));
    }
    let own = session.flow.command(name.as_deref())?;
    if own.takes_pipe && of_host.front.leaves_the_pipe() {
        texts.attach_piped(&mut params)?;
    }
    of_host.front.stdin_taken = texts.taker_of_stdin().is_some();
    named::take_all(machine, &session.flow, own, &mut params)?;
    let begin = NewRun {
        command: name,
        params,
        origins: texts.origins,
        files: texts.files,
        files_from: None,
        by_name: !resolve::is_path(wanted),
        model: of_host.model,
        efforts: RunEfforts {
            run: of_host.effort.effort,
            default: machine.config.models.effort,
            ..RunEfforts::default()
        },
        only_model: false,
        lang: of_host.lang,
        seed: of_host.seed,
        budget: of_host.budget.budget()?,
        id: machine.variable("NIETZ_RUN").map(str::to_owned),
        grants,
        workspace: None,
        fork: None,
        of: None,
        replay_source: None,
        kept: true,
    };
    let action = if of_host.plan { RunAction::Plan } else { RunAction::Run };
    Ok(action(Box::new(begin), of_host.front))
}

/// Returns the command line of a flow: the options of every run, its own, and those by which its permissions are granted.
pub(super) fn flow_command(wanted: &str, session: &Session) -> Result<Command> {
    let manifest = &session.flow.manifest;
    let name = format!("nietz run {}", shell(wanted));
    let mut all = command(&name, "");
    if !manifest.permissions.exec.is_empty() {
        all = GrantArgs::augment_args(all);
    }
    if manifest.permissions.files {
        all = ReadArgs::augment_args(all);
    }
    let all = params::add(all.about(params::help_text(&manifest.summary)), manifest)?;
    Ok(with_usage(all, &name))
}

/// Makes the usage of a flow with commands say what is taken: in front of a command stand options, and none of the flow's
/// own texts.
fn with_usage(command: Command, name: &str) -> Command {
    // Rendering builds a command, and what is built takes no options of the commands above it any more.
    let usage = command.clone().render_usage().to_string();
    match usage.trim_start_matches("Usage:").trim().rsplit_once('\n') {
        Some((own, _)) if command.get_positionals().next().is_some() => {
            let own = own.trim_end();
            command.override_usage(format!("{own}\n       {name} [OPTIONS] <COMMAND>"))
        }
        _ => command,
    }
}

/// Returns the index of the flow's name: the first word that is neither an option nor an option's value.
pub(super) fn flow_at(rest: &[String]) -> Option<usize> {
    if !rest.first()?.starts_with('-') {
        return Some(0);
    }
    let all = with_grant_options(command("nietz run", ""));
    #[cfg(feature = "postgres")]
    let all = QueueArgs::augment_args(all);
    let takes_value = |word: &str| {
        let mut options = all.get_arguments().filter(|option| option.get_action().takes_values());
        options.any(|option| word.strip_prefix("--").is_some_and(|name| option.get_long() == Some(name)))
    };
    let mut skip = false;
    rest.iter().position(|word| {
        if std::mem::take(&mut skip) {
            return false;
        }
        skip = takes_value(word);
        !word.starts_with('-')
    })
}

/// Returns the options that all flows have in common, without the params of any flow.
pub(super) fn command(name: &str, flow: &'static str) -> Command {
    // A word that names a command of the flow selects that command, whatever options stand before it.
    let command = Command::new("run")
        .bin_name(name.to_owned())
        .max_term_width(100)
        .subcommand_negates_reqs(true)
        .subcommand_precedence_over_arg(true);
    let command = HostArgs::augment_args(command).arg(
        Arg::new("workspace")
            .short('C')
            .long("workspace")
            .value_name("FOLDER")
            .global(true)
            .help("Work for this folder"),
    );
    if flow.is_empty() {
        return command;
    }
    #[cfg(feature = "postgres")]
    let command = QueueArgs::augment_args(command);
    command.arg(Arg::new("FLOW").required(true))
}
