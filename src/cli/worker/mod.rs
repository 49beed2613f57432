//! `nietz worker`: takes runs from the queue of a store, and lets a process of its own do each.
//!
//! The worker holds each run for 15 seconds, again and again, and the process writes its lines. Who is paused or cut off for
//! longer loses the run to another worker, and is ended; what it wrote in between, the store refuses.

mod checkout;
mod metrics;
mod notices;
mod segment;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use clap::Args;

use crate::cli::grants::{GrantArgs, ReadArgs};
use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::run::machine::Machine;
use crate::store::postgres::Server;
use crate::store::postgres::connection::Connection;
use checkout::Checkout;
use metrics::Metrics;
use notices::Notices;
use segment::{Segment, SegmentEnd};

/// How often queues are looked at, beside what is told: for runs whose time has come, and for those that were left.
const POLL: Duration = Duration::from_secs(1);
/// How long a call of the worker itself is tried: it has other runs to look after.
const PATIENCE: Duration = Duration::from_secs(1);

/// Take runs from the queue of the store and do them, until SIGTERM: each goes on elsewhere then
#[derive(Args)]
pub(super) struct WorkerArgs {
    /// A workspace of the store, and its folder here, or the address of its repository, of which a checkout is kept;
    /// without it, the one that is worked for. Can be given several times
    #[arg(long = "workspace-of", alias = "for", value_name = "NAME=PATH|URL")]
    workspaces: Vec<String>,
    /// How many runs at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    /// Take runs with this tag, too; can be given several times
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Take no runs without a tag
    #[arg(long, requires = "tag")]
    only_tagged: bool,
    /// Show metrics for Prometheus at this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR")]
    metrics: Option<std::net::SocketAddr>,
    /// End when no run is due
    #[arg(long)]
    until_idle: bool,
    #[command(flatten)]
    grants: GrantArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// What a worker waits for.
enum Event {
    /// Something changed in a workspace: `work TAG`, or `run ID STATUS`.
    Told(String),
    /// The connection that hears such things is lost.
    Deaf,
    /// The process of this run has ended.
    Ended(i64, std::io::Result<std::process::ExitStatus>),
    /// Somebody asks the worker to end.
    Signal,
}

/// A workspace of the store with its folder here.
struct Place {
    server: Server,
    folder: PathBuf,
    checkout: Option<Checkout>,
}

struct Worker<'a> {
    machine: &'a Machine,
    args: &'a WorkerArgs,
    name: String,
    places: Vec<Place>,
    tags: Vec<String>,
    segments: HashMap<i64, Segment>,
    events: (Sender<Event>, Receiver<Event>),
    metrics: Arc<Metrics>,
    notices: Notices,
    /// When the channels are listened to again, if they are not.
    deaf_since: Option<Instant>,
    /// How often somebody asked it to end.
    asked: usize,
}

pub(super) fn run(machine: &Machine, args: &WorkerArgs) -> Result<Exit> {
    let (server, process) = machine.team().needed("`nietz worker`")?;
    server.connection.set_patience(PATIENCE);
    let mut places = Vec::new();
    for given in &args.workspaces {
        let (name, path) =
            given.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty()).ok_or_else(|| {
                Failure::new(Code::Usage, format!("`{given}` is no workspace and folder"))
                    .hint("--workspace-of NAME=PATH, or NAME=URL")
            })?;
        if checkout::is_url(path) {
            let checkout = Checkout::of(machine, path)?;
            let (server, folder) = (server.of_workspace(name), checkout.folder.clone());
            places.push(Place { server, folder, checkout: Some(checkout) });
            continue;
        }
        let folder = machine.typed_path(path);
        let folder = folder.canonicalize().map_err(|error| Failure::io(&folder, "find", &error))?;
        places.push(Place { server: server.of_workspace(name), folder, checkout: None });
    }
    if places.is_empty() {
        places.push(Place { server: server.clone(), folder: machine.workspace.clone(), checkout: None });
    }
    places.iter().try_for_each(|place| place.server.workspace().map(drop))?;
    let mut tags = args.tag.clone();
    if !args.only_tagged {
        tags.push(String::new());
    }
    let metrics = Arc::new(Metrics::default());
    if let Some(address) = args.metrics {
        let servers = places.iter().map(|place| place.server.clone()).collect();
        let at = metrics::serve(Arc::clone(&metrics), servers, address)?;
        output::line(format!("metrics: http://{at}/metrics"))?;
    }
    let mut worker = Worker {
        machine,
        args,
        name: process.worker.clone(),
        places,
        tags,
        segments: HashMap::new(),
        events: mpsc::channel(),
        metrics,
        notices: Notices::default(),
        deaf_since: None,
        asked: 0,
    };
    worker.hear_signals()?;
    worker.listen();
    let names: Vec<&str> = worker.places.iter().map(|place| place.server.name.as_str()).collect();
    output::line(format!(
        "worker {} takes runs of {} from {}",
        worker.name,
        names.join(", "),
        server.connection.shown
    ))?;
    worker.work()
}

impl Worker<'_> {
    fn work(&mut self) -> Result<Exit> {
        loop {
            let took = self.asked == 0 && self.take()?;
            self.beat();
            let is_idle = self.segments.is_empty() && !took;
            if self.asked > 0 && self.segments.is_empty() || self.args.until_idle && is_idle {
                output::line("worker ends: it holds nothing")?;
                return Ok(Exit::Done);
            }
            let next = self.segments.values().map(|segment| segment.next_beat).min();
            let wait = next.map_or(POLL, |next| next.saturating_duration_since(Instant::now()).min(POLL));
            match self.events.1.recv_timeout(if took { Duration::ZERO } else { wait }) {
                Ok(event) => {
                    self.handle(event)?;
                    let more: VecDeque<Event> = self.events.1.try_iter().collect();
                    more.into_iter().try_for_each(|event| self.handle(event))?;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.deaf_since.is_some_and(|since| since.elapsed() > POLL) {
                        self.listen();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new(Code::Internal, "nobody tells the worker anything any more"));
                }
            }
        }
    }

    /// Takes one run, if there is room for it and one is due. Returns whether it did.
    fn take(&mut self) -> Result<bool> {
        if self.segments.len() >= usize::from(self.args.parallel) {
            return Ok(false);
        }
        let holding: Vec<i64> = self.segments.keys().copied().collect();
        for at in 0..self.places.len() {
            self.bring_up(at)?;
            let place = &self.places[at];
            match place.server.take(&self.tags, &self.name, &holding) {
                Ok(None) => {}
                Ok(Some(taken)) => {
                    let (run, name) = (taken.claim.run, taken.name.clone());
                    let again = if taken.deliveries > 1 {
                        format!(", delivered {} times", taken.deliveries)
                    } else {
                        String::new()
                    };
                    output::line(format!("{name}: taken ({} of {}){again}", taken.flow, taken.began_by))?;
                    self.metrics.taken();
                    match Segment::start(self.machine, (self.args, place), taken, self.events.0.clone()) {
                        Ok(segment) => drop(self.segments.insert(run, segment)),
                        // It is delivered again, perhaps to a worker that can.
                        Err(failure) => output::line(format!("{name}: cannot be done here: {failure}"))?,
                    }
                    return Ok(true);
                }
                // Who goes away comes back; meanwhile this worker can only wait.
                Err(failure) if failure.code == Code::StoreUnreachable => {
                    self.metrics.lost();
                    output::line(format!("{failure}"))?;
                    return Ok(false);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(false)
    }

    /// Brings the checkout of a workspace up to its repository, if it is one and no run is at it.
    fn bring_up(&mut self, at: usize) -> Result<()> {
        let place = &mut self.places[at];
        let is_used = self.segments.values().any(|segment| segment.workspace == place.server.name);
        match &mut place.checkout {
            Some(checkout) if !is_used => match checkout.bring_up(self.machine) {
                // It goes on with what it has.
                Err(failure) => output::line(format!("{}: {failure}", place.server.name)),
                Ok(()) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Tells the user what a run asks.
    fn notify(&mut self, run: &str, workspace: &str) -> Result<()> {
        match self.places.iter().find(|place| place.server.name == workspace) {
            Some(place) => self.notices.tell(self.machine, &place.server, run),
            None => Ok(()),
        }
    }

    /// Holds all runs for longer whose time it is.
    fn beat(&mut self) {
        for segment in self.segments.values_mut() {
            if Instant::now() >= segment.next_beat
                && let Some(told) = segment.beat()
            {
                self.metrics.lost();
                let _ = output::line(told);
            }
        }
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Told(what) => {
                let words: Vec<&str> = what.split(' ').collect();
                let ["run", id, how] = words[..] else { return Ok(()) };
                let Some(segment) = id.parse().ok().and_then(|id: i64| self.segments.get_mut(&id)) else {
                    return Ok(());
                };
                match how {
                    "cancelled" => segment.next_beat = Instant::now(),
                    "asked" => {
                        let (run, workspace) = (segment.taken.name.clone(), segment.workspace.clone());
                        self.notify(&run, &workspace)?;
                    }
                    _ => {}
                }
            }
            Event::Deaf => self.deaf_since = Some(Instant::now()),
            Event::Signal => self.end()?,
            Event::Ended(run, status) => self.ended(run, status)?,
        }
        Ok(())
    }

    /// Lets all runs end at their next lines; the second time, at once.
    fn end(&mut self) -> Result<()> {
        self.asked += 1;
        output::line(format!("worker ends: {} under way", self.segments.len()))?;
        let at_once = self.asked > 1;
        self.segments.values_mut().for_each(|segment| segment.stop(at_once));
        Ok(())
    }

    fn ended(&mut self, run: i64, status: std::io::Result<std::process::ExitStatus>) -> Result<()> {
        let Some(segment) = self.segments.remove(&run) else { return Ok(()) };
        let name = segment.taken.name.clone();
        match segment.ended(status) {
            SegmentEnd::Left(how) => {
                self.metrics.ended(&how);
                output::line(format!("{name}: {how}"))?;
                if matches!(how.as_str(), "waiting" | "stuck") {
                    self.notify(&name, &segment.workspace)?;
                }
            }
            SegmentEnd::GoesOn(why) => {
                output::line(format!("{name}: {why}"))?;
                let place = self.places.iter().find(|place| place.server.name == segment.workspace);
                if let Some(place) = place {
                    let again = Segment::start(self.machine, (self.args, place), segment.taken, self.events.0.clone())?;
                    self.segments.insert(run, again);
                }
            }
            SegmentEnd::HandedOn => {
                self.metrics.ended("handed on");
                output::line(format!("{name}: handed on"))?;
            }
        }
        Ok(())
    }

    /// Listens to what is told in the workspaces.
    fn listen(&mut self) {
        self.deaf_since = None;
        let Some(place) = self.places.first() else { return };
        let connection: Arc<Connection> = Arc::clone(&place.server.connection);
        let channels: Result<Vec<String>> =
            self.places.iter().map(|place| Ok(place.server.workspace()?.channel.clone())).collect();
        let sender = self.events.0.clone();
        match channels.and_then(|channels| connection.listen(&channels)) {
            Ok(listening) => {
                let work = move || {
                    while let Ok(told) = listening.heard.recv() {
                        if sender.send(Event::Told(told)).is_err() {
                            return;
                        }
                    }
                    let _ = sender.send(Event::Deaf);
                };
                if std::thread::Builder::new().name("listen".to_owned()).spawn(work).is_err() {
                    self.deaf_since = Some(Instant::now());
                }
            }
            // It looks each second all the same.
            Err(_) => self.deaf_since = Some(Instant::now()),
        }
    }

    fn hear_signals(&self) -> Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error: std::io::Error| Failure::new(Code::Internal, format!("cannot listen to signals: {error}"));
        let sender = self.events.0.clone();
        let runtime = crate::run::runtime()?;
        let (mut terminate, mut interrupt) = {
            let _within = runtime.enter();
            (signal(SignalKind::terminate()).map_err(failed)?, signal(SignalKind::interrupt()).map_err(failed)?)
        };
        let work = move || {
            runtime.block_on(async move {
                loop {
                    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
                    if sender.send(Event::Signal).is_err() {
                        return;
                    }
                }
            });
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(work).map(drop).map_err(failed)
    }
}
