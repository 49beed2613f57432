//! How the local model is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How the local model is run.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Where model files lie.
    pub dir: PathBuf,
    /// The program that serves as the engine with [`arguments`](EngineSettings::arguments): this one.
    pub exe: PathBuf,
    /// What makes that program call [`child::serve`](super::child::serve).
    pub arguments: Vec<String>,
    /// The user's variables, of which pip sees some where it fetches the weights.
    pub environment: BTreeMap<String, String>,
    /// How many threads compute; chosen by how busy the machine is where it is absent.
    pub threads: Option<usize>,
}

impl EngineSettings {
    /// Returns settings for the engine as a hidden subcommand of this program.
    pub fn new(dir: &Path, exe: &Path) -> EngineSettings {
        EngineSettings {
            dir: dir.to_owned(),
            exe: exe.to_owned(),
            arguments: vec!["__engine".into()],
            environment: BTreeMap::new(),
            threads: None,
        }
    }
}
