//! Injected faults, so that a test can end the process at an exact line of the journal.
//!
//! `NIETZ_FAULT=kill@7` kills the process with SIGKILL right after line 7 was written (before it is synced);
//! `NIETZ_FAULT=full@7` makes the write of line 7 fail half-way, as on a full disk; `NIETZ_FAULT=power@7` kills the
//! process after line 7 and leaves only the synced part of the journal, as after a power cut; `NIETZ_FAULT=stop@7` stops the
//! process by SIGSTOP before line 7 is given away, until somebody continues it.

/// What fails, and at which line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    KillAfter(u64),
    FullAt(u64),
    PowerCutAfter(u64),
    StopBefore(u64),
}

impl InjectedFault {
    /// Parses `kill@N`, `full@N`, `power@N` or `stop@N`.
    pub fn parse(text: &str) -> Option<InjectedFault> {
        let (kind, line) = text.split_once('@')?;
        let line = line.parse().ok()?;
        match kind {
            "kill" => Some(InjectedFault::KillAfter(line)),
            "full" => Some(InjectedFault::FullAt(line)),
            "power" => Some(InjectedFault::PowerCutAfter(line)),
            "stop" => Some(InjectedFault::StopBefore(line)),
            _ => None,
        }
    }
}

/// Ends this process as `kill -9` does: no destructor runs and nothing is flushed.
pub fn kill_this_process() -> ! {
    signal_this_process("-KILL");
    std::process::abort()
}

/// Stops this process where it is, with all of its threads, until somebody sends it SIGCONT.
pub fn stop_this_process() {
    signal_this_process("-STOP");
}

fn signal_this_process(signal: &str) {
    #[cfg(unix)]
    {
        let pid = std::process::id().to_string();
        let _ = std::process::Command::new("kill").args([signal, &pid]).status();
    }
}
