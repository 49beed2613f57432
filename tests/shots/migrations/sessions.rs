//! Whole sessions on migrations: how they are run, and what came of them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::agents::{Agent, Strength};
use super::project::{Language, Migration};
use crate::shots::basics::rows;
use crate::shots::guarded::with_cargo;
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::ModelServer;
use crate::support::model_server::cache::Cache;

/// How a session is played.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Play {
    /// One attempt.
    Alone,
    /// Three attempts side by side.
    Thrice,
    /// Attempts, breakdowns by the other model, and parts.
    PingPong,
}

impl Play {
    pub(super) const ALL: [Play; 3] = [Play::Alone, Play::Thrice, Play::PingPong];

    pub(super) fn name(self) -> &'static str {
        match self {
            Play::Alone => "A alone",
            Play::Thrice => "A × 3",
            Play::PingPong => "A and B, with breakdown",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Play::Alone => &["--max-breakdowns", "0"],
            Play::Thrice => &["--max-breakdowns", "0", "--shots", "3"],
            Play::PingPong => &[],
        }
    }
}

/// Who plays: scripted agents, or models of the user's by their names, at the addresses and with the keys of the environment.
pub(super) enum Players {
    Scripted(Strength),
    Real { a: String, b: String },
}

/// What came of sessions. Figures of several are added up.
#[derive(Clone, Copy, Default)]
pub(super) struct Figures {
    pub(super) sessions: u64,
    /// The session says so.
    pub(super) validated: u64,
    /// Checks that it has never seen pass.
    pub(super) reached: u64,
    pub(super) attempts: u64,
    pub(super) calls: u64,
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
    pub(super) cost: f64,
    pub(super) wall: Duration,
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        self.sessions += other.sessions;
        self.validated += other.validated;
        self.reached += other.reached;
        self.attempts += other.attempts;
        self.calls += other.calls;
        self.input += other.input;
        self.cached += other.cached;
        self.output += other.output;
        self.cost += other.cost;
        self.wall += other.wall;
    }
}

/// The head of a table of figures.
pub(super) const HEAD: &str = "\
| who | how | reached | validated | attempts | calls | tokens in | of them cached | out | USD | s |
|---|---|---|---|---|---|---|---|---|---|---|
";

impl Figures {
    /// A line of the table.
    pub(super) fn line(&self, who: &str, how: &str) -> String {
        let mut line = String::new();
        let _ = writeln!(
            line,
            "| {who} | {how} | {} of {} | {} | {} | {} | {} | {} | {} | {:.3} | {:.1} |",
            self.reached,
            self.sessions,
            self.validated,
            self.attempts,
            self.calls,
            self.input,
            self.cached,
            self.output,
            self.cost,
            self.wall.as_secs_f64()
        );
        line
    }
}

/// What scripted agents cost: as much as a strong model did in 2026, for a million tokens.
const PRICES: &str = "models: {prices: {openai/a: {input: 2, output: 10, cached: 0.2}, openai/b: {input: 2, output: 10, cached: 0.2}}}\n";

/// Plays one session, and looks at what came out.
pub(super) fn play(migration: &Arc<Migration>, players: &Players, how: Play) -> (Figures, Env) {
    let (env, server, [a, b]) = match players {
        Players::Scripted(strength) => {
            let agent = Agent::new(migration.clone(), *strength);
            let cache = Cache::default();
            let server = ModelServer::start(cache.before(move |request| agent.reply(request)));
            (Env::with(&server).config(PRICES), Some(server), ["openai/a".to_owned(), "openai/b".to_owned()])
        }
        Players::Real { a, b } => {
            let theirs = std::env::vars().filter(|(name, _)| name.ends_with("_BASE_URL") || name.ends_with("_API_KEY"));
            let env = theirs.fold(Env::new(), |env, (name, value)| env.var(&name, &value));
            (env, None, [a.clone(), b.clone()])
        }
    };
    let env = if migration.language == Language::Rust { with_cargo(env) } else { env };
    for (path, text) in &migration.before {
        env.write(path, text);
    }
    init(&env.workspace());
    let began = Instant::now();
    let mut call = env.run(["shots-on-goal", migration.goal, "--model-a", &a, "--model-b", &b]).patient();
    for command in &migration.validate {
        call = call.args(["--validate", command]);
    }
    let ended = call.args(how.options().iter().copied()).go();
    let wall = began.elapsed();
    let result = ended.ending()["result"].clone();
    let validated = result["status"] == "success";
    let mut figures = Figures {
        sessions: 1,
        validated: u64::from(validated),
        reached: u64::from(validated && passes_hidden(migration, &env)),
        attempts: rows(&env, "attempt").len() as u64,
        wall,
        ..Figures::default()
    };
    for row in rows(&env, "attempt_usage") {
        let count = |name: &str| row[name].as_u64().unwrap_or(0);
        figures.input += count("input_tokens");
        figures.cached += count("cached_tokens");
        figures.output += count("output_tokens");
        figures.cost += row["cost"].as_f64().unwrap_or(0.0);
    }
    figures.calls = match server {
        Some(server) => server.chats() as u64,
        None => env.journal().of_kind("chat").len() as u64,
    };
    (figures, env)
}

/// Tells whether what a session has merged passes the checks that it has never seen.
fn passes_hidden(migration: &Migration, env: &Env) -> bool {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    let clone = place.path().join("clone");
    git(&env.workspace(), ["clone", "-q", "-b", "nietz/r1", ".", &clone.display().to_string()]);
    run_hidden(migration, &clone)
}

/// Puts the hidden checks into a folder and runs them.
pub(super) fn run_hidden(migration: &Migration, folder: &Path) -> bool {
    let (path, text, command) = &migration.hidden;
    std::fs::write(folder.join(path), text).expect("it can be written");
    run(command, folder)
}

/// Runs a command of a migration outside of any session; tells whether it exits with 0.
pub(super) fn run(command: &str, folder: &Path) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1").env_remove("RUSTFLAGS");
    shell.env("CARGO_TARGET_DIR", folder.join("target"));
    shell.output().expect("there is a shell").status.success()
}
