//! The command line: one file for each verb.
//!
//! Verbs return failures; only [`main`] turns them into exit codes of the process. Options that all verbs share are
//! defined here.

#[cfg(feature = "editors")]
mod acp;
mod action;
mod budget;
mod child;
mod commands;
mod complete;
mod columns;
mod compare;
mod check;
mod diff;
mod doctor;
mod docs;
mod documents;
mod effort;
mod early;
mod eject;
mod explain;
mod flows;
mod foreign;
mod fork;
mod front;
mod generate;
mod grants;
mod inbox;
#[cfg(feature = "editors")]
mod install;
mod listing;
mod log;
#[cfg(feature = "editors")]
mod mcp;
mod models;
mod named;
mod names;
mod new;
mod output;
mod pack;
mod params;
#[cfg(feature = "postgres")]
mod queue;
mod plan;
mod recorded;
mod report;
mod resume;
mod run;
mod runs;
mod start;
#[cfg(feature = "postgres")]
mod store;
mod test;
mod texts;
mod trust;
mod types;
mod variables;
mod verify;
#[cfg(feature = "view")]
mod view;
#[cfg(feature = "postgres")]
mod whereabouts;
#[cfg(feature = "postgres")]
mod worker;
mod r#where;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use rustix::process::Resource;

use crate::error::{Code, Exit, Failure};
use crate::host::exec::helper;
use crate::host::keys;
use crate::model::redact::Redactor;
use crate::model::text;
use crate::run::interrupts;
use crate::run::machine::Machine;
use crate::run::machine::team;
use crate::run::project::Found;

/// The smallest stack, in bytes, on which verbs run, whatever the user's limit (`ulimit -s`) gives the first thread.
const STACK: usize = 8 << 20;

/// What stands below the list of all commands, for whoever does not know one yet.
const TO_BEGIN: &str = "To begin: `nietz run ask \"What could break?\" @FILE`, `nietz flows` for what else there is, `nietz new flow NAME` for \
    one of your own, `nietz docs` for the reference, `nietz doctor` if something does not work.";

/// Runs flows: structured conversations with language models, written in Lua as plain files
#[derive(Parser)]
#[command(name = "nietz", version, max_term_width = 100, after_help = TO_BEGIN)]
struct Cli {
    /// Work for this folder, instead of the nearest project from the current folder upwards
    #[arg(short = 'C', long, value_name = "FOLDER", global = true)]
    workspace: Option<PathBuf>,
    /// Keep runs and documents there: `files`, or postgres://USER@HOST/DATABASE [env: NIETZ_STORE]
    #[arg(long, value_name = "STORE", global = true)]
    store: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

// A verb's own flags are built where it is asked for: a start need not make those of all the others.
#[derive(Subcommand)]
#[command(defer = true)]
enum Verb {
    Run(run::RunArgs),
    Resume(resume::ResumeArgs),
    Runs(runs::RunsArgs),
    Inbox(inbox::InboxArgs),
    Answer(inbox::AnswerArgs),
    Cancel(inbox::CancelArgs),
    Log(log::LogArgs),
    Diff(diff::DiffArgs),
    Compare(compare::CompareArgs),
    Report(report::ReportArgs),
    #[cfg(feature = "view")]
    View(view::ViewArgs),
    #[cfg(feature = "editors")]
    Mcp(mcp::McpArgs),
    #[cfg(feature = "editors")]
    Acp(acp::AcpArgs),
    #[cfg(feature = "editors")]
    Install(install::InstallArgs),
    #[cfg(feature = "editors")]
    Uninstall(install::UninstallArgs),
    Verify(verify::VerifyArgs),
    Check(check::CheckArgs),
    Documents(documents::DocumentsArgs),
    #[cfg(feature = "postgres")]
    Store(store::StoreArgs),
    #[cfg(feature = "postgres")]
    Worker(worker::WorkerArgs),
    Test(test::TestArgs),
    New(new::NewArgs),
    Pack(pack::PackArgs),
    Trust(trust::TrustArgs),
    Fork(fork::ForkArgs),
    Why(fork::WhyArgs),
    Flows(flows::FlowsArgs),
    Eject(eject::EjectArgs),
    Personas(listing::PersonasArgs),
    Quotes(listing::QuotesArgs),
    Models(models::ModelsArgs),
    Types(types::TypesArgs),
    Docs(docs::DocsArgs),
    Doctor(doctor::DoctorArgs),
    Where(r#where::WhereArgs),
    Explain(explain::ExplainArgs),
    Completions(generate::CompletionsArgs),
    Man(generate::ManArgs),
    /// Do a run that another run begins as a part of its own
    #[command(name = "__child", hide = true)]
    Child,
    /// Serve the local model to the process that started this one
    #[cfg(feature = "local")]
    #[command(name = "__engine", hide = true)]
    Engine,
}

/// Parses the arguments, runs the verb and returns the exit code.
pub fn main(arguments: Vec<OsString>, environment: impl IntoIterator<Item = (OsString, OsString)>) -> ExitCode {
    // These helpers come first: nietz starts them for each command of a flow, and they depend on no setting of the user's.
    match arguments.get(1).and_then(|verb| verb.to_str()) {
        Some(helper::VERB) => return helper::run(&arguments[2..]),
        Some(helper::INNER_VERB) => return helper::become_command(&arguments[2..]),
        #[cfg(feature = "local")]
        Some(crate::host::llm::local::server::VERB) => {
            return crate::host::llm::local::server::become_server(&arguments[2..]);
        }
        // Whoever asks for nothing else waits for nothing else.
        Some("--version" | "-V") if arguments.len() == 2 => {
            return match output::line(concat!("nietz ", env!("CARGO_PKG_VERSION"))) {
                Ok(()) => code(Exit::Done),
                Err(failure) => failed(&failure),
            };
        }
        _ => {}
    }
    let environment: Vec<(OsString, OsString)> = environment.into_iter().collect();
    // This is the usual case. A separate thread would make each allocation more expensive.
    if rustix::process::getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= STACK as u64) {
        return work(arguments, environment);
    }
    let copies = (arguments.clone(), environment.clone());
    match std::thread::Builder::new()
        .name("work".to_owned())
        .stack_size(STACK)
        .spawn(move || work(arguments, environment))
    {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // The thread cannot start: the user has too many processes, or there is no memory for its stack.
        Err(_) => work(copies.0, copies.1),
    }
}

fn work(arguments: Vec<OsString>, environment: Vec<(OsString, OsString)>) -> ExitCode {
    let completes = complete::is_asked(&environment);
    let environment = variables::texts(environment);
    let redactor = environment.as_ref().map(variables::redactor).unwrap_or_default();
    output::redact(redactor.clone());
    if completes {
        return complete(arguments, environment, redactor);
    }
    if early::wants_events(&arguments) {
        output::for_a_program();
    }
    let mut cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // What all verbs are for is told where somebody asks, or errs.
            let error = match error.kind() {
                clap::error::ErrorKind::DisplayVersion => error,
                _ => whole_command().try_get_matches_from(&arguments).err().unwrap_or(error),
            };
            let machine = environment.and_then(|environment| Machine::unconfigured(None, environment, redactor, None));
            if let Some(failure) = machine.ok().and_then(|machine| early::flow_as_verb(&error, &arguments, &machine)) {
                return failed(&failure);
            }
            output::arguments(&error);
            return code(if error.use_stderr() { Exit::Usage } else { Exit::Done });
        }
    };
    #[cfg(feature = "local")]
    if let Verb::Engine = cli.verb {
        return code(crate::host::llm::local::child::serve(std::io::stdin(), std::io::stdout()));
    }
    crate::lua::limits::last_resort(interrupts::give_up);
    interrupts::outlive_file_limits();
    // A flow's arguments are parsed later, as the flow declares them. The workspace is needed before, to find the flow.
    let (run_workspace, run_store) = match &mut cli.verb {
        Verb::Run(args) => (args.take_workspace(), args.take_store()),
        _ => (None, None),
    };
    let workspace = run_workspace.or(cli.workspace);
    let environment = environment.map(|mut environment| {
        // Processes that this one starts go by the same store.
        if let Some(store) = run_store.or(cli.store) {
            redactor.learn_address("--store", &store);
            environment.insert(team::STORE.to_owned(), store);
        }
        environment
    });
    // It tells where the configuration is, also while that is broken.
    let open = if matches!(cli.verb, Verb::Where(_)) { Machine::unconfigured } else { Machine::new };
    let (bare_environment, bare_workspace, bare_redactor) = (environment.clone(), workspace.clone(), redactor.clone());
    let machine =
        environment.and_then(|environment| open(workspace, environment, redactor, std::env::current_exe().ok()));
    let mut is_misconfigured = false;
    let machine = match machine {
        Ok(machine) => machine,
        // What is checked may be that very file, and it is invalid as any other one is.
        Err(failure)
            if matches!(cli.verb, Verb::Check(_))
                && failure.code == Code::ConfigInvalid
                && !keys::is_about_keys(&failure) =>
        {
            output::failure(&failure);
            is_misconfigured = true;
            let bare = |environment| {
                Machine::unconfigured(bare_workspace, environment, bare_redactor, std::env::current_exe().ok())
            };
            match bare_environment.and_then(bare) {
                Ok(machine) => machine,
                Err(failure) => return failed(&failure),
            }
        }
        Err(failure) => return failed(&failure),
    };
    tell_project(&machine, &cli.verb);
    let result = match cli.verb {
        Verb::Run(args) => run::run(&machine, args),
        Verb::Resume(args) => resume::run(&machine, args),
        Verb::Runs(args) => runs::run(&machine, args),
        Verb::Inbox(args) => inbox::inbox(&machine, &args),
        Verb::Answer(args) => inbox::answer(&machine, &args),
        Verb::Cancel(args) => inbox::cancel(&machine, &args),
        Verb::Log(args) => log::run(&machine, &args),
        Verb::Diff(args) => diff::run(&machine, &args),
        Verb::Compare(args) => compare::run(&machine, &args),
        Verb::Report(args) => report::run(&machine, &args),
        #[cfg(feature = "view")]
        Verb::View(args) => view::run(&machine, &args),
        #[cfg(feature = "editors")]
        Verb::Mcp(args) => mcp::run(&machine, args),
        #[cfg(feature = "editors")]
        Verb::Acp(args) => acp::run(&machine, &args),
        #[cfg(feature = "editors")]
        Verb::Install(args) => install::install(&machine, &args),
        #[cfg(feature = "editors")]
        Verb::Uninstall(args) => install::uninstall(&machine, &args),
        Verb::Verify(args) => verify::run(&machine, &args),
        Verb::Check(args) => check::run(&machine, &args),
        Verb::Documents(args) => documents::run(&machine, &args),
        #[cfg(feature = "postgres")]
        Verb::Store(args) => store::run(&machine, &args),
        #[cfg(feature = "postgres")]
        Verb::Worker(args) => worker::run(&machine, &args),
        Verb::Test(args) => test::run(&machine, args),
        Verb::New(args) => new::run(&machine, &args),
        Verb::Pack(args) => pack::run(&machine, args),
        Verb::Trust(args) => trust::run(&machine, &args),
        Verb::Fork(args) => fork::run(&machine, args),
        Verb::Why(args) => fork::why(&machine, &args),
        Verb::Personas(args) => listing::personas(&machine, &args),
        Verb::Quotes(args) => listing::quotes(&machine, &args),
        Verb::Types(args) => types::run(&machine, &args),
        Verb::Docs(args) => docs::run(&machine, &args),
        Verb::Completions(args) => generate::completions(&args),
        Verb::Man(args) => generate::man(&machine, &args, Cli::command(), &whole_command()),
        Verb::Eject(args) => eject::run(&machine, &args),
        Verb::Flows(args) => flows::run(&machine, &args),
        Verb::Models(args) => models::run(&machine, &args),
        Verb::Doctor(args) => doctor::run(&machine, &args),
        Verb::Where(args) => r#where::run(&machine, &args),
        Verb::Explain(args) => explain::run(&machine, &args),
        Verb::Child => child::run(&machine),
        #[cfg(feature = "local")]
        Verb::Engine => Ok(Exit::Done),
    };
    match result {
        Ok(Exit::Done) if is_misconfigured => code(Exit::Invalid),
        Ok(exit) => code(exit),
        Err(failure) => failed(&failure),
    }
}

/// Returns the command line with all verbs and their flags, which a start does not build.
fn whole_command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Answers a shell that completes. A configuration that is wrong keeps nobody from typing: then there are fewer names.
fn complete(
    arguments: Vec<OsString>,
    environment: crate::error::Result<BTreeMap<String, String>>,
    redactor: Redactor,
) -> ExitCode {
    let workspace = complete::workspace(&arguments);
    let opened = environment.and_then(|environment| {
        let bare = Machine::unconfigured(workspace.clone(), environment.clone(), redactor.clone(), None);
        Machine::new(workspace, environment, redactor, None).or(bare)
    });
    match opened {
        Ok(machine) => complete::answer(arguments, &machine, &whole_command()),
        Err(failure) => code(failure.code.exit()),
    }
}

/// Says which folder is worked for, if it is neither the current one nor named. Verbs that need no project say nothing.
fn tell_project(machine: &Machine, verb: &Verb) {
    let needs_none =
        matches!(verb, Verb::Where(_) | Verb::Explain(_) | Verb::Docs(_) | Verb::Completions(_) | Verb::Man(_));
    if let Found::Above(marker) = machine.project.found
        && !needs_none
    {
        let folder = text::line(&machine.workspace.to_string_lossy()).into_owned();
        output::print_status(&format!("working for {folder}, which has {marker}; -C FOLDER names another\n"));
    }
}

fn failed(failure: &Failure) -> ExitCode {
    output::failure(failure);
    code(failure.code.exit())
}

/// Returns the exit code of the process. What a run said and could not be written is a failure: who has sent it to a file
/// believes to have it.
fn code(exit: Exit) -> ExitCode {
    let Some(why) = crate::host::ui::lost_output() else { return ExitCode::from(exit as u8) };
    output::failure(&output::unwritten(why));
    ExitCode::from(if matches!(exit, Exit::Done | Exit::No) { Exit::Failed } else { exit } as u8)
}
