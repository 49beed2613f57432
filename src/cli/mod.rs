//! The command line: one file for each verb.
//!
//! [`main`] is the only place that knows exit codes of the process; verbs return failures. Options that all
//! verbs share stand here.

mod action;
mod budget;
mod check;
mod doctor;
mod explain;
mod flows;
mod foreign;
mod fork;
mod front;
mod generate;
mod grants;
mod listing;
mod log;
mod models;
mod new;
mod output;
mod pack;
mod params;
mod plan;
mod resume;
mod run;
mod runs;
mod start;
mod test;
mod trust;
mod types;
mod variables;
mod verify;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use rustix::process::Resource;

use crate::error::{Exit, Failure};
use crate::host::exec::helper;
use crate::run::interrupts;
use crate::run::machine::Machine;

/// The least stack that all work is done on, whatever the user's limit (`ulimit -s`) gives the first thread.
const STACK: usize = 8 << 20;

/// Runs flows: structured conversations with language models, written in Lua as plain files
#[derive(Parser)]
#[command(name = "nietz", version, max_term_width = 100)]
struct Cli {
    /// Work for this folder instead of the current one
    #[arg(short = 'C', long, value_name = "FOLDER", global = true)]
    workspace: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::RunArgs),
    Resume(resume::ResumeArgs),
    Runs(runs::RunsArgs),
    Log(log::LogArgs),
    Verify(verify::VerifyArgs),
    Check(check::CheckArgs),
    Test(test::TestArgs),
    New(new::NewArgs),
    Pack(pack::PackArgs),
    Trust(trust::TrustArgs),
    Fork(fork::ForkArgs),
    Why(fork::WhyArgs),
    Flows(flows::FlowsArgs),
    Personas(listing::PersonasArgs),
    Quotes(listing::QuotesArgs),
    Models(models::ModelsArgs),
    Types(types::TypesArgs),
    Doctor(doctor::DoctorArgs),
    Explain(explain::ExplainArgs),
    Completions(generate::CompletionsArgs),
    Man(generate::ManArgs),
    /// Serve the local model to the process that started this one
    #[cfg(feature = "local")]
    #[command(name = "__engine", hide = true)]
    Engine,
}

/// Parses the arguments, runs the verb and returns the exit code.
pub fn main(arguments: Vec<OsString>, environment: impl IntoIterator<Item = (OsString, OsString)>) -> ExitCode {
    // Before everything else: these are started for each command, and take nothing from the user's settings.
    match arguments.get(1).and_then(|verb| verb.to_str()) {
        Some(helper::VERB) => return helper::run(&arguments[2..]),
        Some(helper::INNER_VERB) => return helper::become_command(&arguments[2..]),
        _ => {}
    }
    let environment: Vec<(OsString, OsString)> = environment.into_iter().collect();
    // The usual limit. A thread of its own costs more with each block of memory.
    if rustix::process::getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= STACK as u64) {
        return work(arguments, environment);
    }
    let kept = (arguments.clone(), environment.clone());
    match std::thread::Builder::new()
        .name("work".to_owned())
        .stack_size(STACK)
        .spawn(move || work(arguments, environment))
    {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // There may be no more processes, or no room for its stack.
        Err(_) => work(kept.0, kept.1),
    }
}

fn work(arguments: Vec<OsString>, environment: Vec<(OsString, OsString)>) -> ExitCode {
    let environment = variables::texts(environment);
    let redactor = environment.as_ref().map(variables::redactor).unwrap_or_default();
    output::redact(redactor.clone());
    let mut cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
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
    // Arguments of a flow are read later, by what it declares. The folder that it is found in is not one of them.
    let behind = if let Verb::Run(args) = &mut cli.verb { args.take_workspace() } else { None };
    let machine = environment.and_then(|environment| {
        Machine::new(behind.or(cli.workspace), environment, redactor, std::env::current_exe().ok())
    });
    let machine = match machine {
        Ok(machine) => machine,
        Err(failure) => return failed(&failure),
    };
    let result = match cli.verb {
        Verb::Run(args) => run::run(&machine, args),
        Verb::Resume(args) => resume::run(&machine, args),
        Verb::Runs(args) => runs::run(&machine, args),
        Verb::Log(args) => log::run(&machine, &args),
        Verb::Verify(args) => verify::run(&machine, &args),
        Verb::Check(args) => check::run(&machine, &args),
        Verb::Test(args) => test::run(&machine, args),
        Verb::New(args) => new::run(&machine, &args),
        Verb::Pack(args) => pack::run(&machine, args),
        Verb::Trust(args) => trust::run(&machine, &args),
        Verb::Fork(args) => fork::run(&machine, args),
        Verb::Why(args) => fork::why(&machine, &args),
        Verb::Personas(args) => listing::personas(&machine, &args),
        Verb::Quotes(args) => listing::quotes(&machine, &args),
        Verb::Types(args) => types::run(&machine, &args),
        Verb::Completions(args) => generate::completions(&args, Cli::command()),
        Verb::Man(args) => generate::man(&machine, &args, Cli::command()),
        Verb::Flows(args) => flows::run(&machine, &args),
        Verb::Models(args) => models::run(&machine, &args),
        Verb::Doctor(args) => doctor::run(&machine, &args),
        Verb::Explain(args) => explain::run(&args),
        #[cfg(feature = "local")]
        Verb::Engine => Ok(Exit::Done),
    };
    match result {
        Ok(exit) => code(exit),
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    output::failure(failure);
    code(failure.code.exit())
}

fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit as u8)
}
