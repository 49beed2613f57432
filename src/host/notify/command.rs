//! Notifications by a program of the user's: it gets the payload on standard input, and its exit status says how that went.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::pin_mut;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::model::redact::Redactor;
use crate::model::text::excerpt;

/// How long a program may take, and how long its last words are waited for once it has ended.
const LIMIT: Duration = Duration::from_secs(30);
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many bytes are kept of what it says to standard error.
const SAID: usize = 4096;

/// Runs the program, without a shell, in the home folder: relative paths mean the user's own files.
pub(super) async fn run(
    command: &[String],
    payload: String,
    environment: &BTreeMap<String, String>,
    redactor: &Redactor,
) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else { return Err("the command is empty".to_owned()) };
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir(environment.get("HOME").map_or("/", String::as_str))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    let mut group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let said = RefCell::new(Vec::new());
    let feed = async {
        // A program that does not read it may still have done what it is for.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(payload.as_bytes()).await;
        }
    };
    let ended = async { tokio::join!(feed, child.wait()).1 };
    let listened = async {
        let Some(mut stderr) = stderr else { return };
        let mut piece = [0; 1024];
        while let Ok(read @ 1..) = stderr.read(&mut piece).await {
            let mut said = said.borrow_mut();
            let room = SAID.saturating_sub(said.len()).min(read);
            said.extend_from_slice(&piece[..room]);
        }
    };
    pin_mut!(ended, listened);
    let status = tokio::time::timeout(LIMIT, async {
        match select(ended, listened).await {
            Either::Left((status, listened)) => {
                if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
                    // What it left running may keep standard error open.
                    let _ = tokio::time::timeout(LAST_WORDS, listened).await;
                }
                status
            }
            Either::Right(((), ended)) => ended.await,
        }
    })
    .await;
    let status = match status {
        Err(_) => return Err(format!("{program} took longer than {} seconds", LIMIT.as_secs())),
        Ok(status) => status.map_err(|error| format!("{program} cannot be waited for: {error}"))?,
    };
    group.0 = None;
    if status.success() {
        return Ok(());
    }
    let said = said.borrow();
    let said = String::from_utf8_lossy(&said);
    Err(match said.trim() {
        "" => format!("{program} ended with {status}"),
        // A secret that is cut would not be known any more.
        said => format!("{program} ended with {status}: {}", excerpt(&redactor.text(said))),
    })
}

/// Ends the program and what it started, unless the program has ended by itself.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // It may have ended in this moment.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
