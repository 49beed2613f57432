//! The pages of runs in a browser, on this machine alone: `nietz view`.
//!
//! `routes` answers requests, after `guard` has looked at who asks: the address has a token that only the user knows, the host
//! and the origin are this server's. It reads journals and starts nothing. The one thing that it writes is an answer to a
//! question of the user's own run, which it keeps for the run (`host::ui::mailbox`). Pages are made by whoever started it
//! (`PageJob`): what a flow shows of its runs is made by the flow, and a VM belongs to one thread.

mod guard;
mod pages;
mod routes;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use crate::engine::runs::Runs;
use crate::error::{Code, Failure, Result};
use crate::report::LivePage;

/// What the user says of the pages.
pub(crate) struct ViewOptions {
    /// No question is answered here.
    pub read_only: bool,
    /// The port; 0 is any that is free.
    pub port: u16,
    /// The language of the list of runs.
    pub lang: String,
}

/// A server that runs, until the process ends.
pub(crate) struct Viewer {
    /// Where the list of runs is, with the token.
    pub address: String,
    /// The pages that are asked for.
    pub jobs: Receiver<PageJob>,
}

/// A page of a run that somebody has asked for.
pub(crate) struct PageJob {
    pub run: String,
    pub live: LivePage,
    /// Whether a process is at the run.
    pub busy: bool,
    reply: oneshot::Sender<Result<String>>,
}

impl PageJob {
    /// Gives the page to who asked for it.
    pub(crate) fn done(self, page: Result<String>) {
        // Who asked may be gone.
        let _ = self.reply.send(page);
    }
}

/// What all requests share.
struct View {
    runs: Runs,
    options: ViewOptions,
    /// 122 random bits in hex.
    token: String,
    /// What `Host` must be: an address of the loopback, or its name, with the port.
    hosts: [String; 2],
    jobs: Sender<PageJob>,
}

/// Starts the server in a thread of its own.
///
/// # Errors
///
/// `usage` if the port is taken, `internal` if the thread cannot be started.
pub(crate) fn start(runs: Runs, options: ViewOptions) -> Result<Viewer> {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let taken = |error: std::io::Error| {
        Failure::new(Code::Usage, format!("cannot listen at {wanted}: {error}")).hint("--port names another port")
    };
    let listener = std::net::TcpListener::bind(wanted).map_err(taken)?;
    listener.set_nonblocking(true).map_err(taken)?;
    let port = listener.local_addr().map_err(taken)?.port();
    let token = uuid::Uuid::new_v4().simple().to_string();
    let address = format!("http://127.0.0.1:{port}/{token}/");
    let (sender, jobs) = channel();
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let view = Arc::new(View { runs, options, token, hosts, jobs: sender });
    let started = std::thread::Builder::new().name("view".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            axum::serve(listener, routes::router(view)).await
        })
    });
    started.map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))?;
    Ok(Viewer { address, jobs })
}
