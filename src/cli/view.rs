//! `nietz view [RUN]`.

use clap::Args;

use crate::cli::{output, report as reports};
use crate::error::{Code, Exit, Failure, Result};
use crate::report::{self, OwnPart, RunHistory};
use crate::run::machine::Machine;
use crate::view::{self, PageJob, ViewOptions};

/// Show the runs of this workspace in a browser, on this machine alone, while they go on
///
/// It reads journals and starts nothing. A question that waits can be answered there: a run that is alive takes the answer at
/// once, another one when `nietz resume` goes on with it.
#[derive(Args)]
pub(super) struct ViewArgs {
    /// The run to begin with: its id, or a part of it that only one has; without it, the list of all
    run: Option<String>,
    /// Only show: no question is answered there
    #[arg(long)]
    read_only: bool,
    /// Listen at this port of 127.0.0.1, instead of any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Print the address, and open no browser
    #[arg(long)]
    no_browser: bool,
}

pub(super) fn run(machine: &Machine, args: &ViewArgs) -> Result<Exit> {
    let run = args.run.as_deref().map(|wanted| machine.runs().find(Some(wanted))).transpose()?;
    let options = ViewOptions { read_only: args.read_only, port: args.port, lang: machine.lang() };
    let viewer = view::start(machine.runs(), options)?;
    let address = match run {
        Some(run) => format!("{}run/{run}", viewer.address),
        None => viewer.address.clone(),
    };
    output::line(&address)?;
    if !args.no_browser {
        open_browser(machine, &address);
    }
    // Each page is made here: what a flow shows of its run is made by its VM.
    for job in viewer.jobs {
        let page = page(machine, &job);
        job.done(page);
    }
    Err(Failure::new(Code::Internal, "the server has ended"))
}

fn page(machine: &Machine, job: &PageJob) -> Result<String> {
    let journal = machine.runs().journal(&job.run)?;
    let mut history = RunHistory::read(&journal)?;
    if job.busy {
        "running".clone_into(&mut history.status);
    }
    let own = OwnPart::new(reports::own_part(machine, &journal, &history));
    report::live_page(&history, &own, &job.live)
}

/// Opens the address where there is a desktop. Where there is none, or it does not, the user has the address.
fn open_browser(machine: &Machine, address: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| machine.variable(name).is_some());
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if !has_desktop && !cfg!(target_os = "macos") {
        return;
    }
    let mut command = std::process::Command::new(program);
    command.env_clear().envs(&machine.environment).arg(address);
    let quiet = std::process::Stdio::null;
    let _ = command.stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
}
