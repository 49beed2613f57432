//! The fork of a run onto one model, in a folder of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::CONTROL;
use crate::engine::runs::check_name;
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;
use crate::report::RunHistory;
use crate::run::machine::Machine;

pub(super) struct Fork {
    /// The run that it was made from.
    run: String,
    /// Its own name.
    name: String,
    model: String,
    is_control: bool,
    pub(super) folder: PathBuf,
}

impl Fork {
    pub(super) fn of(machine: &Machine, run: &str, recorded: &RunHistory, model: &str, number: u32) -> Result<Fork> {
        let is_control = model == CONTROL;
        let own = recorded.model.clone().filter(|_| is_control);
        let model_name = if is_control { own.unwrap_or_default() } else { model.to_owned() };
        let slug: String = model.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
        // Names of models that have one slug are told apart.
        let digest = Digest::of(format!("{model_name}\n{is_control}").as_bytes()).to_string();
        let name = format!("{}-{slug}-{}-{number}", run.chars().take(40).collect::<String>(), &digest[..6]);
        check_name(&name)?;
        Ok(Fork { run: run.to_owned(), folder: machine.comparisons().join(&name), name, model: model_name, is_control })
    }

    /// Tells whether it is there and done: it costs nothing again.
    pub(super) fn is_done(&self, machine: &Machine) -> bool {
        let journal = machine.in_workspace(self.folder.clone()).runs().journal(&self.name);
        RunHistory::read(&journal).is_ok_and(|history| history.status == "done")
    }

    /// Returns what the fork did; takes it to its end if it is not done.
    pub(super) fn history(&self, machine: &Machine) -> Result<RunHistory> {
        let journal = machine.in_workspace(self.folder.clone()).runs().journal(&self.name);
        let is_there = journal.is_file();
        if !self.is_done(machine) {
            std::fs::create_dir_all(&self.folder).map_err(|error| Failure::io(&self.folder, "create", &error))?;
            let mut command = Command::new(machine.program()?);
            command.env_clear().envs(&machine.environment).env("NIETZ_RUN", &self.name);
            if is_there {
                command.arg("-C").arg(&self.folder).args(["resume", &self.name, "--json"]);
            } else {
                command
                    .arg("-C")
                    .arg(&machine.workspace)
                    .args(["fork", &self.run, "--json", "--into"])
                    .arg(&self.folder);
                match self.is_control {
                    true => command.arg("--calls-anew"),
                    false => command.args(["--model", &self.model]),
                };
            }
            let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
            let ended = ended.map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))?;
            if !journal.is_file() {
                let told = String::from_utf8_lossy(&ended.stderr).into_owned();
                let failure = Failure::new(Code::Usage, format!("{} cannot be forked onto {}", self.run, self.model));
                return Err(told.lines().take(5).fold(failure, |failure, line| failure.because(line)));
            }
        }
        RunHistory::read(&journal)
    }
}
