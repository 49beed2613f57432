//! The settings of the local engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::server::choice::Engine;

/// How and where local models run.
#[derive(Clone, Debug)]
pub(crate) struct EngineSettings {
    /// The folder of the model files.
    pub dir: PathBuf,
    /// The program that runs as the engine if it gets [`arguments`](EngineSettings::arguments): this very binary.
    pub exe: PathBuf,
    /// The arguments that make the program call [`child::serve`](super::child::serve).
    pub arguments: Vec<String>,
    /// The user's environment variables. Pip gets some of them when it fetches weights.
    pub environment: BTreeMap<String, String>,
    /// The same without keys of models, for an installed server.
    pub program_environment: BTreeMap<String, String>,
    /// The engine that runs the models.
    pub engine: Engine,
    /// How many threads compute; if absent, the load of the machine decides.
    pub threads: Option<usize>,
}

impl EngineSettings {
    /// Returns settings for the engine as a hidden subcommand of this program.
    pub(crate) fn new(dir: &Path, exe: &Path) -> EngineSettings {
        EngineSettings {
            dir: dir.to_owned(),
            exe: exe.to_owned(),
            arguments: vec!["__engine".into()],
            environment: BTreeMap::new(),
            program_environment: BTreeMap::new(),
            engine: Engine::BuiltIn { wanted: false },
            threads: None,
        }
    }
}
