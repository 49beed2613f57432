//! What every command starts from: the workspace, the user's folders, the configuration.

pub(crate) mod team;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::NaiveDate;

use self::team::Team;
use crate::engine::run_records::RunRecords;
use crate::engine::runs::Runs;
use crate::error::{Code, Failure, Result};
use crate::host::documents::elsewhere::FindFolders;
use crate::host::keys::{KeysFile, StoredKeys};
use crate::journal::fault_injection::InjectedFault;
use crate::model::digest::Digest;
use crate::model::redact::Redactor;
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::{PackTree, Root};
use crate::pack::trust::TrustFile;
use crate::run::config::Config;
use crate::run::folders::UserFolders;
use crate::run::project::{self, Found, Project};

/// How the journal of a team's run names a flow of the workspace, and one of a pack: `workspace:/flows/notes.lua`,
/// `pack:ours/flows/review.lua`.
const OF_WORKSPACE: &str = "workspace:/";
const OF_PACK: &str = "pack:";

/// The machine and the user, as this process found them.
pub struct Machine {
    pub workspace: PathBuf,
    /// How the workspace was found.
    pub project: Project,
    pub environment: BTreeMap<String, String>,
    pub config: Config,
    /// The keys of providers that the user gave to nietz to keep.
    pub keys: StoredKeys,
    /// The path of this program, if the system knows it.
    pub program: Option<PathBuf>,
    /// How long this process has loaded flows only to look at them.
    pub inspection_time: Cell<Duration>,
    folders: UserFolders,
    redactor: Redactor,
    team: Team,
}

impl Machine {
    /// Finds the workspace and the user's folders, and reads the configuration. Without a named workspace, it is the nearest
    /// project from the current folder upwards.
    ///
    /// # Errors
    ///
    /// Those of [`Machine::unconfigured`] and [`Machine::configure`].
    pub fn new(
        workspace: Option<PathBuf>,
        environment: BTreeMap<String, String>,
        redactor: Redactor,
        program: Option<PathBuf>,
    ) -> Result<Machine> {
        let mut machine = Machine::unconfigured(workspace, environment, redactor, program)?;
        machine.configure()?;
        machine.learn_configured();
        Ok(machine)
    }

    /// Like [`Machine::new`], without reading the configuration.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the user's folders are not known, `usage` if the workspace cannot be used.
    pub fn unconfigured(
        workspace: Option<PathBuf>,
        mut environment: BTreeMap<String, String>,
        redactor: Redactor,
        program: Option<PathBuf>,
    ) -> Result<Machine> {
        let folders = UserFolders::of(&mut environment)?;
        let home = environment.get("HOME").map(Path::new);
        let project = Project::find(workspace.as_deref(), home)?;
        Ok(Machine {
            workspace: project.folder.clone(),
            project,
            environment,
            config: Config::default(),
            keys: StoredKeys::default(),
            program,
            inspection_time: Cell::default(),
            folders,
            redactor,
            team: Team::default(),
        })
    }

    /// Reads the user's configuration, their stored keys and the project's configuration.
    ///
    /// # Errors
    ///
    /// Those of [`Config::read`], [`KeysFile::read`] and [`Config::take_project`].
    fn configure(&mut self) -> Result<()> {
        self.config = Config::read(&self.config_path())?;
        self.keys = self.keys_file().read()?;
        self.config.take_project(&self.project_config_path())?;
        self.team = Team::of(self)?;
        Ok(())
    }

    /// Returns the top of the workspace's repository, and the way from there to the workspace. A workspace that the user named is
    /// the top itself, or has no repository.
    pub(crate) fn repository(&self) -> (PathBuf, PathBuf) {
        if self.project.found == Found::Named || self.workspace != self.project.folder {
            return (self.workspace.clone(), PathBuf::new());
        }
        let home = self.variable("HOME").and_then(|home| Path::new(home).canonicalize().ok());
        project::repository_around(&self.workspace, home.as_deref())
    }

    /// Returns the same user and machine with another workspace.
    pub fn in_workspace(&self, workspace: PathBuf) -> Machine {
        let same = workspace == self.workspace;
        Machine {
            workspace,
            project: self.project.clone(),
            environment: self.environment.clone(),
            config: self.config.clone(),
            keys: self.keys.clone(),
            program: self.program.clone(),
            inspection_time: self.inspection_time.clone(),
            folders: self.folders.clone(),
            redactor: self.redactor.clone(),
            // A store has the workspace that was named for it, and no other folder.
            team: if same { self.team.clone() } else { Team::default() },
        }
    }

    /// Teaches the redactor the stored keys and the secrets that the configuration names: the variables that hold keys, and
    /// the passwords in addresses. What a key command prints becomes known when the command has run.
    fn learn_configured(&self) {
        self.keys.tell(&self.redactor);
        for (name, provider) in &self.config.models.providers {
            if let Some((variable, key)) =
                provider.key_env.as_ref().and_then(|name| self.environment.get_key_value(name))
            {
                self.redactor.learn(variable, key);
            }
            if let Some(address) = &provider.base_url {
                self.redactor.learn_address(&format!("models.providers.{name}.base_url"), address);
            }
        }
        for (name, server) in &self.config.mcp {
            let key = server.key_env.as_deref().and_then(|name| Some((name, self.variable(name)?)));
            if let Some((variable, key)) = key {
                self.redactor.learn(variable, key);
            }
            server.set.iter().for_each(|(variable, value)| self.redactor.learn_variable(variable, value));
            if let Some(address) = &server.url {
                self.redactor.learn_address(&format!("mcp.{name}.url"), address);
            }
        }
        if let Some(secret) = self.notify_secret() {
            self.redactor.learn("notify.secret_env", secret);
        }
    }

    /// Returns the secret that notifications are signed with, if a variable has it.
    pub fn notify_secret(&self) -> Option<&str> {
        self.variable(self.config.notify.as_ref()?.secret_env.as_deref()?)
    }

    /// Returns the same user and machine with another folder as the project, and that project's configuration.
    ///
    /// # Errors
    ///
    /// Those of [`Config::read`] and [`Config::take_project`].
    pub fn in_folder(&self, folder: &Path) -> Result<Machine> {
        let mut machine = self.in_workspace(folder.to_owned());
        machine.configure()?;
        Ok(machine)
    }

    /// Returns the path of this program.
    ///
    /// # Errors
    ///
    /// `internal` if the system does not know the path.
    pub fn program(&self) -> Result<PathBuf> {
        self.program.clone().ok_or_else(|| Failure::new(Code::Internal, "this program cannot find itself"))
    }

    /// Returns the name of the workspace's folder.
    pub fn workspace_name(&self) -> String {
        self.workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Returns a variable of the environment, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the user's own configuration file.
    pub fn config_path(&self) -> PathBuf {
        self.folders.config.join("config.yaml")
    }

    /// Returns the file of stored keys.
    pub fn keys_file(&self) -> KeysFile {
        KeysFile { path: self.folders.state.join("keys.yaml") }
    }

    /// Returns the project's configuration file.
    pub fn project_config_path(&self) -> PathBuf {
        self.workspace.join("nietz.yaml")
    }

    /// Returns a path that the user typed as a whole one: it is relative to the folder that `-C` names, else to the current
    /// folder, which may be below the workspace.
    pub fn typed_path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.project.here.join(path)
    }

    /// Returns the folder of installed packs.
    pub fn packs(&self) -> PathBuf {
        self.folders.data.join("packs")
    }

    /// Returns the folder for the worktrees of runs.
    pub fn worktrees(&self) -> PathBuf {
        self.folders.cache.join("worktrees")
    }

    /// Returns the folders that no command of a flow may read as a whole.
    pub fn protected_folders(&self) -> Vec<PathBuf> {
        std::iter::once(self.workspace.clone()).chain(self.own_folders()).collect()
    }

    /// Returns nietz's own folders.
    pub fn own_folders(&self) -> [PathBuf; 4] {
        let UserFolders { config, data, state, cache } = self.folders.clone();
        [config, data, state, cache]
    }

    /// Returns the paths that the user lets all commands read.
    pub fn commands_read(&self) -> Vec<PathBuf> {
        let home = self.variable("HOME").map(PathBuf::from);
        let expand_home = |path: &String| match (path.strip_prefix("~/"), &home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(path),
        };
        self.config.commands.read.iter().map(expand_home).collect()
    }

    /// Returns the folder with the homes of MCP servers.
    pub fn server_homes(&self) -> PathBuf {
        self.folders.state.join("servers")
    }

    /// Returns the folder for the indexes of documents.
    pub fn indexes(&self) -> PathBuf {
        self.folders.cache.join("index")
    }

    /// Returns a file of the user's cache, which may be gone at any time.
    pub(crate) fn cache_file(&self, name: &str) -> PathBuf {
        self.folders.cache.join(name)
    }

    /// Returns the folder of local model files.
    #[cfg(feature = "local")]
    pub fn models_folder(&self) -> PathBuf {
        self.folders.cache.join("models")
    }

    /// Returns the folder for forks that were made to compare models.
    pub fn comparisons(&self) -> PathBuf {
        let workspace = Digest::of(self.workspace.as_os_str().as_encoded_bytes()).to_string();
        self.folders.data.join("comparisons").join(workspace)
    }

    /// Returns where this workspace's runs and documents are kept, and how this process is known there.
    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// Returns the runs of the workspace.
    pub fn runs(&self) -> Runs {
        #[cfg(feature = "postgres")]
        if let Some(runs) = self.team.runs(self) {
            return runs;
        }
        let indexes = self.folders.cache.join("index").join("runs");
        Runs::new(&self.workspace, RunRecords::new(&self.folders.state), Some(indexes))
    }

    /// Returns the folder of the records of the runs that the user began.
    pub fn records(&self) -> PathBuf {
        RunRecords::new(&self.folders.state).folder().to_owned()
    }

    /// Returns what finds the user's folders with documents of a kind that is read everywhere.
    pub fn folders_with(&self) -> Arc<FindFolders> {
        let records = RunRecords::new(&self.folders.state);
        Arc::new(move |path| records.workspaces_with(path))
    }

    /// Returns the trees that a flow's personas and quotes come from, nearest first.
    ///
    /// # Errors
    ///
    /// Those of [`resolve::installed`].
    pub fn layers(&self, flow: &PackTree) -> Result<Vec<PackTree>> {
        let mut layers = vec![PackTree::new(Root::Disk(self.workspace.clone()))];
        layers.push(flow.clone());
        layers.extend(resolve::installed(&self.workspace, &self.packs())?);
        layers.push(PackTree::new(Root::Bundled));
        Ok(layers)
    }

    /// Returns every tree of this project, nearest first.
    ///
    /// # Errors
    ///
    /// Those of [`resolve::installed`].
    pub fn trees(&self) -> Result<Vec<PackTree>> {
        resolve::trees(&self.workspace, &self.packs())
    }

    /// Returns how a run's journal names a flow. Each machine of a team has the workspace and the packs in places of its own.
    pub(crate) fn source_of(&self, located: &ResolvedFlow) -> String {
        let Root::Disk(root) = &located.tree.root else { return located.source() };
        let is_workspace =
            || root.canonicalize().is_ok_and(|root| self.workspace.canonicalize().is_ok_and(|own| own == root));
        match located.tree.seal() {
            _ if self.team.is_here() => located.source(),
            Some(seal) => format!("{OF_PACK}{}/{}", seal.pack, located.path),
            None if is_workspace() => format!("{OF_WORKSPACE}{}", located.path),
            None => located.source(),
        }
    }

    /// Finds the flow that a run's journal names.
    ///
    /// # Errors
    ///
    /// `flow-not-found` if the flow is gone; `pack-untrusted` if it is in a pack that this project does not have.
    pub fn find_flow(&self, source: &str) -> Result<ResolvedFlow> {
        if let Some((pack, path)) = source.strip_prefix(OF_PACK).and_then(|rest| rest.split_once('/')) {
            let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".lua");
            return resolve::flow(&format!("{pack}/{name}"), &self.workspace, &self.packs());
        }
        let inside = source.strip_prefix(OF_WORKSPACE).map(|path| self.workspace.join(path).display().to_string());
        let source = inside.as_deref().unwrap_or(source);
        resolve::as_installed(ResolvedFlow::from_source(source)?, &self.workspace, &self.packs())
    }

    /// Returns the file that keeps what the user trusts.
    pub fn trust(&self) -> TrustFile {
        TrustFile { path: self.folders.state.join("trust.yaml"), legacy: self.folders.data.join("grants.yaml") }
    }

    /// Returns the user's language as two letters.
    pub fn lang(&self) -> String {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| self.variable(name));
        let lang: String = locale.unwrap_or("en").chars().take_while(char::is_ascii_alphabetic).collect();
        if lang.len() == 2 { lang.to_lowercase() } else { "en".to_owned() }
    }

    /// Returns a clock in milliseconds since 1970; `NIETZ_CLOCK`, an ISO 8601 time, stops the clock there for tests.
    ///
    /// # Errors
    ///
    /// `usage` if `NIETZ_CLOCK` is not an ISO 8601 time.
    pub fn clock(&self) -> Result<Box<dyn Fn() -> u64>> {
        let Some(fixed) = self.variable("NIETZ_CLOCK") else {
            return Ok(Box::new(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }));
        };
        let time = chrono::DateTime::parse_from_rfc3339(fixed)
            .map_err(|error| Failure::new(Code::Usage, format!("NIETZ_CLOCK is not an ISO 8601 time: {error}")))?;
        let millis = u64::try_from(time.timestamp_millis()).unwrap_or(0);
        Ok(Box::new(move || millis))
    }

    /// Returns the day that the clock shows, in UTC.
    ///
    /// # Errors
    ///
    /// Those of [`Machine::clock`].
    pub fn today(&self) -> Result<NaiveDate> {
        let millis = i64::try_from(self.clock()?()).unwrap_or(i64::MAX);
        Ok(chrono::DateTime::from_timestamp_millis(millis).unwrap_or_default().date_naive())
    }

    /// Returns the redactor of this process. All copies of it share the secrets that any of them learns.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// Returns the fault that a test injects with `NIETZ_FAULT`.
    pub fn fault(&self) -> Option<InjectedFault> {
        self.variable("NIETZ_FAULT").and_then(InjectedFault::parse)
    }

    /// Returns the version of this program, as it stands in journals.
    pub fn version() -> String {
        format!("nietz {}", env!("CARGO_PKG_VERSION"))
    }
}

/// Returns a time in milliseconds as ISO 8601; an empty text for a time beyond the calendar.
pub fn iso(millis: u64) -> String {
    format_time(millis, "%Y-%m-%dT%H:%M:%SZ")
}

/// Returns the hour, minute and second of a time in milliseconds; an empty text for a time beyond the calendar.
pub fn time_of_day(millis: u64) -> String {
    format_time(millis, "%H:%M:%S")
}

fn format_time(millis: u64, format: &str) -> String {
    let time = i64::try_from(millis).ok().and_then(chrono::DateTime::<chrono::Utc>::from_timestamp_millis);
    time.map(|time| time.format(format).to_string()).unwrap_or_default()
}
