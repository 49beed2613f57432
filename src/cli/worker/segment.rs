//! One run in the hands of a worker: the process that does it, and the store's word that it is this worker's.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Event, Place, WorkerArgs};
use crate::error::{Code, Exit, Failure, Result};
use crate::run::machine::Machine;
use crate::run::machine::team;
use crate::store::postgres::Server;
use crate::store::postgres::runs::{HELD, Taken};

/// A process that was started for a run.
pub(super) struct Segment {
    pub(super) taken: Taken,
    pub(super) workspace: String,
    pub(super) next_beat: Instant,
    server: Server,
    pid: Pid,
    last_beat: Instant,
    /// Whether it was asked to end, so that another worker goes on.
    stopping: bool,
    /// Why the run is this worker's no more.
    lost: Option<String>,
}

/// How a process has ended.
pub(super) enum SegmentEnd {
    /// The run is over, waits, or is somebody else's; or it is delivered again.
    Left(String),
    /// It goes on at once, here.
    GoesOn(String),
    /// Another worker goes on.
    HandedOn,
}

fn held() -> Duration {
    Duration::from_secs(u64::try_from(HELD).unwrap_or_default())
}

impl Segment {
    /// Starts the process of a run.
    ///
    /// # Errors
    ///
    /// `internal` if it cannot be started.
    pub(super) fn start(
        machine: &Machine,
        (args, place): (&WorkerArgs, &Place),
        taken: Taken,
        events: Sender<Event>,
    ) -> Result<Segment> {
        let mut command = Command::new(machine.program()?);
        command.env_clear().envs(&machine.environment);
        command.env(team::CLAIM, format!("{}:{}", taken.claim.run, taken.claim.claim));
        command.env(team::WORKSPACE, &place.server.name);
        command.arg("-C").arg(&place.folder).arg("resume").arg(&taken.name).arg("--json");
        command.args(args.grants.words()).args(args.read.words(machine));
        // Ctrl-C is for the worker, who tells the runs.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let failed =
            |error: std::io::Error| Failure::new(Code::Internal, format!("cannot start a run's process: {error}"));
        let mut child = command.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        let run = taken.claim.run;
        let wait = move || {
            let ended = child.wait();
            let _ = events.send(Event::Ended(run, ended));
        };
        std::thread::Builder::new().name("child".to_owned()).spawn(wait).map_err(failed)?;
        let now = Instant::now();
        Ok(Segment {
            taken,
            workspace: place.server.name.clone(),
            next_beat: now + held() / 3,
            server: place.server.clone(),
            pid,
            last_beat: now,
            stopping: false,
            lost: None,
        })
    }

    /// Holds the run for longer. Returns what is wrong, if anything is: a process whose run is lost is ended at once.
    pub(super) fn beat(&mut self) -> Option<String> {
        self.next_beat = Instant::now() + held() / 3;
        let name = &self.taken.name;
        let why = match self.server.beat(self.taken.claim) {
            Ok(true) => {
                self.last_beat = Instant::now();
                return None;
            }
            Ok(false) => {
                let state = self.state().unwrap_or_else(|failure| failure.to_string());
                // It has just come to its end, and says so by itself.
                if matches!(state.as_str(), "done" | "failed" | "waiting") {
                    return None;
                }
                format!("it is {state}")
            }
            Err(failure) if self.last_beat.elapsed() >= held() => {
                format!("the store was not told for {HELD} s that it lives: {failure}")
            }
            Err(failure) => {
                self.next_beat = Instant::now() + Duration::from_secs(1);
                return Some(format!("{name}: the store cannot be told that it lives: {failure}"));
            }
        };
        if self.lost.is_none() {
            self.lost = Some(why.clone());
            // A process that is gone already is no failure.
            let _ = kill_process(self.pid, Signal::KILL);
        }
        Some(format!("{name}: ended here: {why}"))
    }

    /// Returns what the store says of the run: `held`, what became of it here, or `fenced` where that is another one's doing.
    fn state(&self) -> Result<String> {
        let state = self.server.state(self.taken.claim)?;
        if state == "held" {
            return Ok(state);
        }
        let found = self.server.find(&self.taken.name)?;
        let is_own = found.is_none_or(|run| run.claim == self.taken.claim.claim);
        Ok(if is_own { state } else { "fenced".to_owned() })
    }

    /// Asks the process to end at its next line, or ends it.
    pub(super) fn stop(&mut self, at_once: bool) {
        self.stopping = true;
        let _ = kill_process(self.pid, if at_once { Signal::KILL } else { Signal::TERM });
    }

    /// Finds out how its process has left the run.
    pub(super) fn ended(&self, status: std::io::Result<ExitStatus>) -> SegmentEnd {
        if let Some(why) = &self.lost {
            return SegmentEnd::Left(format!("left: {why}"));
        }
        let state = match self.state() {
            Ok(state) => state,
            Err(failure) => return SegmentEnd::Left(format!("left, and the store does not say how: {failure}")),
        };
        if state != "held" {
            return SegmentEnd::Left(state);
        }
        let code = status.as_ref().ok().and_then(ExitStatus::code);
        if self.stopping {
            return match self.server.release(self.taken.claim, false) {
                Ok(()) => SegmentEnd::HandedOn,
                Err(failure) => SegmentEnd::Left(format!("not handed on, and delivered again later: {failure}")),
            };
        }
        if code == Some(Exit::Waiting as i32) {
            return SegmentEnd::GoesOn("answered while it was about to wait".to_owned());
        }
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        SegmentEnd::Left(format!("its process has ended ({how}) and the run has not: it is delivered again"))
    }
}
