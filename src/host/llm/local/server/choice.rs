//! Which engine runs local models, and why.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{Code, Failure, Result};
use crate::host::llm::local_config::{EngineName, LocalConfig};
use crate::host::path;
use crate::model::text::excerpt;

/// The variable that says which engine to use, for one command.
pub(crate) const VARIABLE: &str = "NIETZ_LOCAL_ENGINE";
/// The server's usual name.
const PROGRAM: &str = "llama-server";

/// The engine that is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Engine {
    /// `wanted` if the user asked for it.
    BuiltIn {
        wanted: bool,
    },
    Server(Server),
    /// Local models are switched off.
    Off,
}

/// An installed server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Whether the user asked for it, so that nothing else answers in its place.
    pub(crate) wanted: bool,
}

/// The engine, and why it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EngineChoice {
    pub(crate) engine: Engine,
    pub(crate) why: String,
}

impl EngineChoice {
    /// Chooses by the user's variables and configuration. No program is started.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the variable names no engine, or if the server that the user wants is not there.
    pub(crate) fn new(variables: &BTreeMap<String, String>, config: &LocalConfig) -> Result<EngineChoice> {
        let (name, said) = match variables.get(VARIABLE).map(|value| value.trim()).filter(|value| !value.is_empty()) {
            Some(value) => (parse(value)?, Some(format!("{VARIABLE} says so"))),
            None if config.engine == EngineName::Auto => (EngineName::Auto, None),
            None => (config.engine, Some("models.local.engine says so".to_owned())),
        };
        let said_or = |other: &str| said.clone().unwrap_or_else(|| other.to_owned());
        let choice = |engine, why| Ok(EngineChoice { engine, why });
        match name {
            EngineName::None => choice(Engine::Off, said_or("")),
            EngineName::BuiltIn => choice(Engine::BuiltIn { wanted: true }, said_or("")),
            EngineName::Auto | EngineName::LlamaServer => {
                let wanted = name == EngineName::LlamaServer;
                let server = |program| Engine::Server(Server { program, arguments: config.arguments.clone(), wanted });
                match (&config.server, in_path(variables)) {
                    (Some(program), _) if program.is_absolute() && program.is_file() => {
                        choice(server(program.clone()), said_or("models.local.server names it"))
                    }
                    (Some(program), _) => Err(missing(&format!("{} is no file of a whole path", program.display()))),
                    (None, Some(program)) => choice(server(program), said_or("it is in PATH")),
                    (None, None) if wanted => Err(missing("there is none in PATH")),
                    (None, None) => choice(Engine::BuiltIn { wanted: false }, format!("there is no {PROGRAM} in PATH")),
                }
            }
        }
    }

    /// Tells people what is used and why.
    pub(crate) fn describe(&self) -> String {
        match &self.engine {
            Engine::BuiltIn { .. } => format!("the built-in engine: {}", self.why),
            Engine::Server(server) => format!("{}: {}", server.program.display(), self.why),
            Engine::Off => format!("none: {}", self.why),
        }
    }
}

fn parse(value: &str) -> Result<EngineName> {
    serde_json::from_value(value.into()).map_err(|_| {
        Failure::new(Code::ConfigInvalid, format!("{VARIABLE} is `{}`, which is no engine", excerpt(value)))
            .hint("write auto, built-in, llama-server or none")
    })
}

fn in_path(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    path::folders(variables).into_iter().map(|folder| folder.join(PROGRAM)).find(|program| program.is_file())
}

fn missing(why: &str) -> Failure {
    Failure::new(Code::ConfigInvalid, format!("{PROGRAM} is to run local models, and {why}"))
        .hint("install llama.cpp, name the program in config.yaml (models.local.server), or take the built-in engine")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variable: Option<&str>, path: &str, config: &LocalConfig) -> Result<EngineChoice> {
        let mut variables = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
        variables.extend(variable.map(|value| (VARIABLE.to_owned(), value.to_owned())));
        EngineChoice::new(&variables, config)
    }

    #[test]
    fn an_installed_server_is_used_unless_the_user_says_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(PROGRAM);
        std::fs::write(&program, "").expect("writable");
        let (with, without) = (folder.path().display().to_string(), "/nowhere");
        let auto = LocalConfig::default();
        let engine = |variable, path: &str, config: &LocalConfig| chosen(variable, path, config).map(|it| it.engine);
        let server = |wanted| Engine::Server(Server { program: program.clone(), arguments: Vec::new(), wanted });
        assert_eq!(engine(None, &with, &auto).expect("a choice"), server(false));
        assert_eq!(engine(None, without, &auto).expect("a choice"), Engine::BuiltIn { wanted: false });
        assert_eq!(engine(Some("built-in"), &with, &auto).expect("a choice"), Engine::BuiltIn { wanted: true });
        assert_eq!(engine(Some("none"), &with, &auto).expect("a choice"), Engine::Off);
        let never = LocalConfig { engine: EngineName::None, ..LocalConfig::default() };
        assert_eq!(engine(None, &with, &never).expect("a choice"), Engine::Off);
        assert_eq!(engine(Some("llama-server"), &with, &never).expect("a choice"), server(true));
        for (variable, path, config) in [
            (Some("llama-server"), without, &auto),
            (Some("fast"), without, &auto),
            (None, without, &LocalConfig { server: Some(PathBuf::from("llama-server")), ..LocalConfig::default() }),
        ] {
            assert_eq!(engine(variable, path, config).expect_err("no choice").code, Code::ConfigInvalid);
        }
    }
}
