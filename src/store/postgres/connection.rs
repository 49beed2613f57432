//! One connection to the server, made anew when it is lost.
//!
//! Whoever calls waits for the answer, as for a disk: a journal's sync is a wait, too. A thread drives the connection, so that calls can
//! come from any thread and from within any runtime. A call that has no answer in time counts as lost, which finds a connection
//! that was cut silently.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use futures_util::future::poll_fn;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Row, Statement};

use super::failures::Trouble;
use super::tls::Tls;
use crate::error::{Code, Failure, Result};
use crate::store::address::shown;

/// How long a call may take, and how long a lost connection is tried to be made again. The address can name others.
const TIMEOUT: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the first connection of a process is tried to be made: somebody waits at the command line.
const AT_FIRST: Duration = Duration::from_secs(3);
/// How long connecting may take, each time.
const CONNECT: Duration = Duration::from_secs(5);
/// The pauses between tries.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What is passed to a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What gives the password, when one is needed that does not stand in the address.
pub(crate) type FindPassword = dyn Fn() -> Result<Option<String>> + Send + Sync;

/// The connection of one process to one server.
pub(crate) struct Connection {
    config: Config,
    tls: Tls,
    find_password: Box<FindPassword>,
    /// The address, for people to see.
    pub(crate) shown: String,
    timeout: Duration,
    patience: Mutex<Duration>,
    live: Mutex<Option<Arc<Live>>>,
    was_there: Mutex<bool>,
}

/// A connection that was made.
struct Live {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
}

impl Connection {
    /// Prepares a connection; it is made when it is first used.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the address is wrong.
    pub(crate) fn new(
        address: &str,
        tls: rustls::ClientConfig,
        find_password: Box<FindPassword>,
    ) -> Result<Connection> {
        let (address, own) = own_options(address);
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::new(Code::ConfigInvalid, format!("the store {}: {why}", shown(&address)))
                .hint("postgres://USER@HOST:5432/DATABASE, as libpq has it")
        };
        // Certificates are always verified, whole.
        let plain =
            address.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config =
            plain.parse().map_err(|error: tokio_postgres::Error| match std::error::Error::source(&error) {
                Some(source) => wrong(&source),
                None => wrong(&error),
            })?;
        let is_near = |host: &Host| match host {
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
            Host::Unix(_) => true,
        };
        // What leaves this machine is encrypted, unless the address says that it need not be.
        if !address.contains("sslmode=") {
            config.ssl_mode(if config.get_hosts().iter().all(is_near) { SslMode::Disable } else { SslMode::Require });
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("nietz");
        }
        let seconds = |name: &str, usual: Duration| match own.get(name) {
            Some(text) => {
                text.parse().map(Duration::from_secs_f64).map_err(|_| wrong(&format!("{name} is no number of seconds")))
            }
            None => Ok(usual),
        };
        let (timeout, patience) = (seconds("nietz_timeout", TIMEOUT)?, seconds("nietz_patience", PATIENCE)?);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(timeout);
        }
        let tls = Tls(Arc::new(tls));
        let shown = shown(&address);
        Ok(Connection {
            config,
            tls,
            find_password,
            shown,
            timeout,
            patience: Mutex::new(patience),
            live: Mutex::default(),
            was_there: Mutex::new(false),
        })
    }

    /// Sets how long a lost connection is tried to be made again.
    pub(crate) fn set_patience(&self, patience: Duration) {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = patience;
    }

    /// Runs a statement, and returns its rows. It is run again if the connection is lost meanwhile, so it must be one that can be repeated.
    ///
    /// # Errors
    ///
    /// What the server refuses, by its code; `store-unreachable` if it was not there for too long.
    pub(super) fn query(&self, statement: &str, params: Params<'_>) -> Result<Vec<Row>> {
        self.tried(&|live| live.query(statement, params, self.timeout)).map(|(rows, _)| rows)
    }

    /// As [`Connection::query`]; also tells whether the statement may have been performed more than once.
    pub(super) fn query_again(&self, statement: &str, params: Params<'_>) -> Result<(Vec<Row>, bool)> {
        self.tried(&|live| live.query(statement, params, self.timeout))
    }

    /// As [`Connection::query`], for many rows: each is taken while the server sends the next ones.
    pub(super) fn each<T>(&self, statement: &str, params: Params<'_>, take: &dyn Fn(&Row) -> T) -> Result<Vec<T>> {
        self.tried(&|live| live.each(statement, params, self.timeout, take)).map(|(taken, _)| taken)
    }

    /// As [`Connection::query`], for a statement that must not be run again where nobody knows whether it was.
    pub(super) fn once(&self, statement: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let live = self.live(Instant::now() + CONNECT).map_err(|trouble| self.failure(trouble))?;
        live.query(statement, params, self.timeout).map_err(|trouble| {
            if matches!(trouble, Trouble::Lost(_)) {
                self.drop_live(&live);
            }
            self.failure(trouble)
        })
    }

    /// Returns the one row of a statement.
    pub(super) fn one(&self, statement: &str, params: Params<'_>) -> Result<Row> {
        self.query(statement, params)?
            .pop()
            .ok_or_else(|| Failure::new(Code::Internal, "the store has answered with no row"))
    }

    /// Runs a script, which must be whole in itself, and must not be repeated where nobody knows whether it was run.
    pub(super) fn script(&self, text: &str) -> Result<()> {
        let live = self.live(Instant::now() + AT_FIRST).map_err(|trouble| self.failure(trouble))?;
        match wait(live.client.batch_execute(text), Duration::from_secs(600)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.failure(Trouble::of(&error))),
            None => Err(self.failure(Trouble::Lost("no answer".to_owned()))),
        }
    }

    /// Tries a call until it is done or refused, or patience is over. Also tells whether it was lost before.
    fn tried<T>(&self, call: &dyn Fn(&Live) -> std::result::Result<T, Trouble>) -> Result<(T, bool)> {
        let was_there = *self.was_there.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = *self.patience.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + if was_there { patience } else { AT_FIRST.min(patience) };
        let (mut pause, mut lost) = (PAUSE, false);
        loop {
            let trouble = match self.live(deadline) {
                Ok(live) => match call(&live) {
                    Ok(done) => return Ok((done, lost)),
                    Err(Trouble::Lost(why)) => {
                        lost = true;
                        self.drop_live(&live);
                        Trouble::Lost(why)
                    }
                    Err(other) => other,
                },
                Err(trouble) => trouble,
            };
            if matches!(trouble, Trouble::Refused(_)) || Instant::now() + pause >= deadline {
                return Err(self.failure(trouble));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn failure(&self, trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Refused(failure) => failure,
            Trouble::Lost(why) => {
                Failure::new(Code::StoreUnreachable, format!("the store {} cannot be reached: {why}", self.shown))
                    .hint("nothing is lost: what it has acknowledged is there, and `nietz resume` goes on from it")
            }
            Trouble::Moment(why) => {
                Failure::new(Code::StoreUnreachable, format!("the store {} cannot do it now: {why}", self.shown))
                    .hint("try again later; `nietz resume` goes on from what is recorded")
            }
        }
    }

    fn live(&self, deadline: Instant) -> std::result::Result<Arc<Live>, Trouble> {
        let mut held = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = held.as_ref().filter(|live| !live.client.is_closed()) {
            return Ok(Arc::clone(live));
        }
        let limit = CONNECT.min(deadline.saturating_duration_since(Instant::now())).max(PAUSE);
        let config = self.with_password().map_err(Trouble::Refused)?;
        let client = connect(&config, &self.tls, limit, None)?;
        *self.was_there.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let live = Arc::new(Live { client, statements: Mutex::default() });
        *held = Some(Arc::clone(&live));
        Ok(live)
    }

    fn with_password(&self) -> Result<Config> {
        let mut config = self.config.clone();
        if config.get_password().is_none()
            && let Some(password) = (self.find_password)()?
        {
            config.password(password);
        }
        Ok(config)
    }

    fn drop_live(&self, lost: &Arc<Live>) {
        let mut held = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_some_and(|live| Arc::ptr_eq(live, lost)) {
            *held = None;
        }
    }

    /// Opens a second connection, which hears what is told in these channels until it is lost: then the receiver ends.
    ///
    /// # Errors
    ///
    /// As [`Connection::query`].
    pub(crate) fn listen(&self, channels: &[String]) -> Result<Listening> {
        let (sender, heard) = mpsc::channel();
        let connected = connect(&self.with_password()?, &self.tls, CONNECT, Some(sender));
        let client = connected.map_err(|trouble| self.failure(trouble))?;
        // A channel's name cannot be a parameter; it is made by the server, of letters and digits.
        let plain = |name: &String| name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
        let listen: String = channels.iter().map(|name| format!("LISTEN {};", plain(name))).collect();
        match wait(client.batch_execute(&listen), self.timeout) {
            Some(Ok(())) => Ok(Listening { _client: client, heard }),
            Some(Err(error)) => Err(self.failure(Trouble::of(&error))),
            None => Err(self.failure(Trouble::Lost("no answer".to_owned()))),
        }
    }
}

/// A connection that hears what is told in a channel.
pub(crate) struct Listening {
    _client: Client,
    pub(crate) heard: Receiver<String>,
}

impl Live {
    fn query(&self, text: &str, params: Params<'_>, limit: Duration) -> std::result::Result<Vec<Row>, Trouble> {
        let statement = self.prepared(text, limit)?;
        let rows = wait(self.client.query(&statement, params), limit).ok_or_else(|| late(limit))?;
        rows.map_err(|error| Trouble::of(&error))
    }

    fn each<T>(
        &self,
        text: &str,
        params: Params<'_>,
        limit: Duration,
        take: &dyn Fn(&Row) -> T,
    ) -> std::result::Result<Vec<T>, Trouble> {
        let statement = self.prepared(text, limit)?;
        let work = async {
            let mut rows = pin!(self.client.query_raw(&statement, params.iter().copied()).await?);
            let mut taken = Vec::new();
            while let Some(row) = rows.try_next().await? {
                taken.push(take(&row));
            }
            Ok::<_, tokio_postgres::Error>(taken)
        };
        wait(work, limit).ok_or_else(|| late(limit))?.map_err(|error| Trouble::of(&error))
    }

    fn prepared(&self, text: &str, limit: Duration) -> std::result::Result<Statement, Trouble> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let made = wait(self.client.prepare(text), limit).ok_or_else(|| late(limit))?;
        let made = made.map_err(|error| Trouble::of(&error))?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned(), made.clone());
        Ok(made)
    }
}

fn late(limit: Duration) -> Trouble {
    Trouble::Lost(format!("no answer within {} s", limit.as_secs_f64()))
}

/// Connects, and lets a thread drive the connection until it ends.
fn connect(
    config: &Config,
    tls: &Tls,
    limit: Duration,
    heard: Option<Sender<String>>,
) -> std::result::Result<Client, Trouble> {
    let (sender, receiver) = mpsc::channel();
    let (config, tls) = (config.clone(), tls.clone());
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(sender.send(Err(Trouble::Lost(error.to_string())))),
        };
        runtime.block_on(async move {
            let mut connection = match config.connect(tls).await {
                Ok((client, connection)) => {
                    if sender.send(Ok(client)).is_err() {
                        return;
                    }
                    connection
                }
                Err(error) => return drop(sender.send(Err(Trouble::of(&error)))),
            };
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let (AsyncMessage::Notification(told), Some(heard)) = (message, &heard)
                    && heard.send(told.payload().to_owned()).is_err()
                {
                    return;
                }
            }
        });
    };
    let started = thread::Builder::new().name("store".to_owned()).spawn(work);
    started.map_err(|error| Trouble::Lost(error.to_string()))?;
    match receiver.recv_timeout(limit) {
        Ok(connected) => connected,
        Err(_) => Err(Trouble::Lost(format!("no answer within {} s", limit.as_secs_f64()))),
    }
}

/// Takes nietz's own options out of an address: `nietz_timeout` and `nietz_patience`, both in seconds.
fn own_options(address: &str) -> (String, HashMap<String, String>) {
    let Some((before, query)) = address.split_once('?') else { return (address.to_owned(), HashMap::new()) };
    let (own, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|part| part.starts_with("nietz_"));
    let own = own.iter().filter_map(|part| part.split_once('='));
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let rest = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    (format!("{before}{rest}"), own)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for what another thread brings about; `None` if it takes too long. It needs no runtime, and may be called within one.
fn wait<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    let waker: Waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let deadline = Instant::now() + limit;
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        let left = deadline.checked_duration_since(Instant::now())?;
        thread::park_timeout(left);
    }
}
