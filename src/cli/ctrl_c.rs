//! What ends a run from outside.

use futures_util::future::LocalBoxFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::session;
use crate::error::{Code, Failure, Result};
use crate::host::ui::hangup::Hangup;
use crate::lua::scheduler::Interrupts;

/// Ctrl-C, the request to end that a service manager sends, and a terminal that goes away.
pub(super) struct CtrlC {
    interrupt: Signal,
    terminate: Signal,
    /// Nothing where it does not count: it has happened, and comes in several ways, or the run is to outlive its
    /// terminal (`nohup`).
    hangup: Option<(Signal, Hangup)>,
}

impl CtrlC {
    pub(super) fn new() -> Result<CtrlC> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::new(Code::Internal, format!("cannot listen to signals: {error}")))
        };
        let hangup = match outlives_its_terminal() {
            true => None,
            false => Some((listen(SignalKind::hangup())?, Hangup::watch())),
        };
        Ok(CtrlC { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())?, hangup })
    }
}

impl Interrupts for CtrlC {
    fn next(&mut self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {
            let hangup = self.hangup.as_mut();
            let left_alone = async {
                match hangup {
                    Some((signal, terminal)) => tokio::select! {
                        _ = signal.recv() => {}
                        () = terminal.gone() => {}
                    },
                    None => std::future::pending().await,
                }
            };
            let hung_up = tokio::select! {
                _ = self.interrupt.recv() => false,
                _ = self.terminate.recv() => false,
                () = left_alone => true,
            };
            if hung_up {
                self.hangup = None;
            }
        })
    }
}

/// Lets a limit on the size of files (`ulimit -f`) fail the write that goes beyond, as a full disk does, instead of
/// ending this process without a word. What is listened to is not handed down: commands and git are ended as ever.
pub(super) fn outlive_file_limits() {
    // Without this the run goes on as before.
    let Ok(runtime) = session::runtime() else { return };
    let _inside = runtime.enter();
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// Tells whether this process was started with hang-ups ignored. Listening to them would end that.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // A bit for each signal, and hang-up is the first.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
