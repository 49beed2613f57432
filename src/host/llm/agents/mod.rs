//! Agents as models: programs that the user has installed and logged in to, driven by the Agent Client Protocol.
//!
//! Nobody is given one unasked: a name counts only if the user has said it, in their own configuration or on the command line, and
//! neither a flow nor a project nor a persona can. Each call is a session of its own, in an empty private folder; the agent is
//! offered no files and no terminal, and what it asks permission for is refused and told. It is the user's own program with
//! their own login, and what it does without asking, nobody here can keep it from.

mod config;
mod process;
mod prompt;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::stop_texts::StopTexts;
use crate::error::{Code, Failure, Result, nearest};
use crate::host::{CallEvent, path};
use crate::model::chat::{ChatReply, ChatRequest};
use crate::model::redact::Redactor;
use crate::model::text::excerpt;
pub use config::AgentConfig;
use config::{KNOWN, SECONDS};
use process::AgentProcess;

/// The provider's name.
pub(super) const ACP: &str = "acp";
/// How a model's name begins that is an agent.
pub(crate) const PREFIX: &str = "acp/";

/// What agents are started with.
#[derive(Clone, Default)]
pub(super) struct AgentSettings {
    /// Those of the user's configuration, by name.
    pub(super) configured: BTreeMap<String, AgentConfig>,
    /// All variables; which of them an agent gets, its configuration says.
    pub(super) variables: BTreeMap<String, String>,
    /// The variables without keys.
    pub(super) child_environment: BTreeMap<String, String>,
    /// What the user's configuration calls its models by.
    pub(super) named: Vec<String>,
}

/// The agents of one run.
pub(super) struct Agents {
    settings: AgentSettings,
    /// The names that the user has said.
    allowed: RefCell<BTreeSet<String>>,
    /// Those that wait for their next call, by name. An agent has one call at a time.
    idle: RefCell<BTreeMap<String, Vec<AgentProcess>>>,
}

/// How an agent is started.
pub(super) struct AgentCommand {
    pub(super) words: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) limit: Duration,
}

impl Agents {
    pub(super) fn new(settings: AgentSettings) -> Agents {
        let agents = Agents { allowed: RefCell::default(), idle: RefCell::default(), settings };
        for model in &agents.settings.named {
            agents.allow(model);
        }
        agents
    }

    /// Notes that the user has said this name. It is passed over if it means no agent.
    pub(super) fn allow(&self, model: &str) {
        if let Some(name) = model.trim().strip_prefix(PREFIX) {
            self.allowed.borrow_mut().insert(name.to_owned());
        }
    }

    /// Checks that a name is one of an agent: of the configuration, a known one, or a command.
    ///
    /// # Errors
    ///
    /// `model-unknown` if no such program is there.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        self.command(name).map(drop)
    }

    /// Returns the names of the agents that are known or configured, each with the program that it is, if that is there.
    pub(super) fn list(&self) -> Vec<(String, Option<String>)> {
        let known = KNOWN.iter().map(|(name, ..)| *name);
        let names: BTreeSet<&str> = known.chain(self.settings.configured.keys().map(String::as_str)).collect();
        let program = |name: &str| self.command(name).ok().map(|command| command.words.join(" "));
        names.into_iter().map(|name| (name.to_owned(), program(name))).collect()
    }

    fn command(&self, name: &str) -> Result<AgentCommand> {
        let configured = self.settings.configured.get(name);
        let limit = Duration::from_secs_f64(configured.and_then(|config| config.seconds).unwrap_or(SECONDS));
        let mut environment = self.settings.child_environment.clone();
        for variable in configured.into_iter().flat_map(|config| &config.env) {
            let value = self.settings.variables.get_key_value(variable);
            environment.extend(value.map(|(name, value)| (name.clone(), value.clone())));
        }
        let with = |words: Vec<String>| AgentCommand { words, environment: environment.clone(), limit };
        if let Some(words) = configured.and_then(|config| config.command.clone()) {
            self.find(&words[0]).ok_or_else(|| missing(name, &words[0], "config.yaml names it"))?;
            return Ok(with(words));
        }
        if let Some((_, commands, install)) = KNOWN.iter().find(|(known, ..)| *known == name) {
            let here = commands.iter().find(|words| self.find(words[0]).is_some());
            let words = here.ok_or_else(|| missing(name, commands[0][0], install))?;
            return Ok(with(words.iter().map(|&word| word.to_owned()).collect()));
        }
        let words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
        match words.first() {
            Some(program) if self.find(program).is_some() => Ok(with(words)),
            _ => {
                let message = format!("there is no agent named {}, and no program", excerpt(name));
                let failure = Failure::new(Code::ModelUnknown, message);
                let names: Vec<String> = self.list().into_iter().map(|(name, _)| name).collect();
                Err(match nearest(name, names.iter().map(String::as_str)) {
                    Some(near) => failure.hint(format!("did you mean acp/{near}?")),
                    None => failure.hint(format!(
                        "known are {}; else write acp/ and a command: its program in PATH, or by its whole path",
                        names.join(", ")
                    )),
                })
            }
        }
    }

    /// Returns where a program is: in a folder of `PATH`, or at a whole path.
    fn find(&self, program: &str) -> Option<std::path::PathBuf> {
        let is_there = |path: &std::path::PathBuf| path.is_file();
        match program.contains('/') {
            true => Some(std::path::PathBuf::from(program)).filter(|path| path.is_absolute() && is_there(path)),
            false => path::folders(&self.settings.child_environment)
                .into_iter()
                .map(|folder| folder.join(program))
                .find(is_there),
        }
    }

    /// Asks an agent, in a session of its own.
    pub(super) async fn chat(
        &self,
        name: &str,
        request: &ChatRequest,
        redactor: &Redactor,
        report: &mut dyn FnMut(CallEvent<'_>),
    ) -> Result<ChatReply> {
        if !self.allowed.borrow().contains(name) {
            let message = format!("acp/{} is an agent with a login of yours, and only you can name it", excerpt(name));
            return Err(Failure::new(Code::PermissionRefused, message)
                .hint("name it with --model, or as an alias or the default in your own config.yaml"));
        }
        if let Some(tool) = request.tools.first() {
            let message = format!("acp/{name} takes no tools of flows: `{}` is one", excerpt(&tool.name));
            return Err(Failure::new(Code::ModelRefused, message)
                .hint("name another model for this flow; an agent answers with texts and data"));
        }
        let command = self.command(name)?;
        let idle = self.idle.borrow_mut().get_mut(name).and_then(Vec::pop);
        let mut agent = match idle {
            Some(agent) => agent,
            None => AgentProcess::start(name, &command, redactor.clone()).await?,
        };
        let (prompt, mut stops) = (prompt::of(request), StopTexts::new(&request.stop));
        let asked = agent.ask(&prompt, &mut stops, report);
        let reply = match tokio::time::timeout(command.limit, asked).await {
            Ok(reply) => reply?,
            Err(_) => {
                let seconds = command.limit.as_secs_f64();
                let message = format!("acp/{name} took longer than {seconds} seconds");
                return Err(Failure::new(Code::ModelUnreachable, message).hint(format!(
                    "more is allowed in config.yaml: models: {{ agents: {{ {name}: {{ seconds: … }} }} }}"
                )));
            }
        };
        // One that failed, took too long or was given up is gone by now.
        self.idle.borrow_mut().entry(name.to_owned()).or_default().push(agent);
        Ok(ChatReply { text: self::prompt::reply(request, reply.text), model: request.model.clone(), ..reply })
    }
}

fn missing(name: &str, program: &str, how: &str) -> Failure {
    let message = format!("acp/{} is not installed: there is no program {}", excerpt(name), excerpt(program));
    Failure::new(Code::ModelUnknown, message).hint(how)
}
