//! Where runs and documents are kept, if that is a server of a team's, and how this process is known there.

#[cfg(feature = "postgres")]
use crate::disk::owner;
#[cfg(feature = "postgres")]
use crate::engine::runs::Runs;
#[cfg(feature = "postgres")]
use crate::engine::runs::server::Process;
use crate::error::{Code, Failure, Result};
use crate::host::documents::Store;
#[cfg(feature = "postgres")]
use crate::host::network::Network;
#[cfg(feature = "postgres")]
use crate::host::secret;
use crate::run::config::{StoreConfig, StoreSettings};
use crate::run::machine::Machine;
use crate::store::address::{self, StoreAddress};
#[cfg(feature = "postgres")]
use crate::store::postgres::Server;
#[cfg(feature = "postgres")]
use crate::store::postgres::connection::Connection;
#[cfg(feature = "postgres")]
use crate::store::postgres::runs::Claim;

/// The variables with the address of the store and the file of its password, and those by which a worker tells a process of its run and its workspace.
pub(crate) const STORE: &str = "NIETZ_STORE";
pub(crate) const PASSWORD_FILE: &str = "NIETZ_STORE_PASSWORD_FILE";
pub(crate) const WORKSPACE: &str = "NIETZ_STORE_WORKSPACE";
pub(crate) const CLAIM: &str = "NIETZ_CLAIM";

/// The largest file with a password, in bytes.
#[cfg(feature = "postgres")]
const LARGEST: u64 = 4 << 10;

/// The store of one workspace; none where files of this machine are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Team {
    #[cfg(feature = "postgres")]
    server: Option<(Server, Process)>,
}

impl Team {
    /// Finds out which store is meant: what the command line or `NIETZ_STORE` says counts before the configuration. Nothing is
    /// connected yet.
    ///
    /// # Errors
    ///
    /// `usage` or `config-invalid` if it is no store, or not one that this program was built for.
    pub(crate) fn of(machine: &Machine) -> Result<Team> {
        let mut settings = match &machine.config.store {
            Some(StoreConfig::Address(url)) => StoreSettings { url: url.clone(), ..StoreSettings::default() },
            Some(StoreConfig::Settings(settings)) => settings.clone(),
            None => StoreSettings { url: "files".to_owned(), ..StoreSettings::default() },
        };
        if let Some(url) = machine.variable(STORE) {
            // The password of one server is not for another one.
            if url != settings.url {
                (settings.key_command, settings.password_file) = (None, None);
            }
            url.clone_into(&mut settings.url);
        }
        if let Some(file) = machine.variable(PASSWORD_FILE) {
            (settings.key_command, settings.password_file) = (None, Some(file.to_owned()));
        }
        if let Some(password) = address::password(&settings.url) {
            machine.redactor().learn("store", password);
        }
        machine.redactor().learn_address("store", &settings.url);
        match StoreAddress::parse(&settings.url)? {
            StoreAddress::Files => Ok(Team::default()),
            StoreAddress::Postgres(address) => Team::on_server(machine, &address, settings),
        }
    }

    #[cfg(not(feature = "postgres"))]
    fn on_server(_: &Machine, address: &str, _: StoreSettings) -> Result<Team> {
        let message = format!("the store {}: this nietz was built without PostgreSQL", address::shown(address));
        Err(Failure::new(Code::ConfigInvalid, message).hint("build it with the feature `postgres`"))
    }

    #[cfg(feature = "postgres")]
    fn on_server(machine: &Machine, address: &str, settings: StoreSettings) -> Result<Team> {
        let StoreSettings { workspace, key_command, password_file, .. } = settings;
        let (environment, redactor) = (machine.environment.clone(), machine.redactor());
        let find_password = move || -> Result<Option<String>> {
            if let Some(command) = &key_command {
                return secret::printed_by("store.key_command", command, &environment, &redactor).map(Some);
            }
            let Some(file) = &password_file else { return Ok(None) };
            let missing = || Failure::new(Code::KeyMissing, format!("store.password_file: {file} has no password"));
            let bytes = owner::read(std::path::Path::new(file), LARGEST)?.ok_or_else(missing)?;
            let text = String::from_utf8(bytes).map_err(|_| missing())?;
            let password = text.lines().next().map(str::trim).filter(|line| !line.is_empty()).ok_or_else(missing)?;
            redactor.learn("store.password_file", password);
            Ok(Some(password.to_owned()))
        };
        let tls = Network::from_environment(&machine.environment)?.tls()?;
        let connection = Connection::new(address, tls, Box::new(find_password))?;
        let named = machine.variable(WORKSPACE).map(str::to_owned).or(workspace);
        let server = Server::new(connection, &named.unwrap_or_else(|| machine.workspace_name()));
        let [_, _, state, cache] = machine.own_folders();
        let process = Process {
            worker: format!("{}@{}", uuid::Uuid::new_v4().simple(), host()),
            person: machine.variable("USER").or_else(|| machine.variable("LOGNAME")).unwrap_or_default().to_owned(),
            given: machine.variable(CLAIM).map(claim).transpose()?,
            tags: state.join("tags"),
            copies: cache.join("runs"),
        };
        Ok(Team { server: Some((server, process)) })
    }

    /// Tells whether runs are kept in files of this machine.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_here(&self) -> bool {
        self.server.is_none()
    }

    /// Tells whether runs are kept in files of this machine.
    #[cfg(not(feature = "postgres"))]
    pub(crate) fn is_here(&self) -> bool {
        true
    }

    /// Returns the server, if the store is one.
    #[cfg(feature = "postgres")]
    pub(crate) fn server(&self) -> Option<&Server> {
        self.server.as_ref().map(|(server, _)| server)
    }

    /// Returns how this process is known at the server.
    #[cfg(feature = "postgres")]
    pub(crate) fn process(&self) -> Option<&Process> {
        self.server.as_ref().map(|(_, process)| process)
    }

    /// Returns the server.
    ///
    /// # Errors
    ///
    /// `usage` if the store is in files.
    #[cfg(feature = "postgres")]
    pub(crate) fn needed(&self, what: &str) -> Result<(&Server, &Process)> {
        self.server.as_ref().map(|(server, process)| (server, process)).ok_or_else(|| {
            Failure::new(
                Code::Usage,
                format!("{what} needs a store that others reach, and runs are kept in files here"),
            )
            .hint("name one: --store postgres://USER@HOST/DATABASE, NIETZ_STORE, or `store:` in your configuration")
        })
    }

    /// Returns the documents of the workspace, as a run sees them; without one, as this person does.
    ///
    /// # Errors
    ///
    /// Those of [`Store::new`], and those of a server.
    pub(crate) fn documents(machine: &Machine, run: Option<&str>) -> Result<Store> {
        let store = Store::new(&machine.workspace)?
            .without(&machine.own_folders())
            .with_indexes(&machine.indexes())
            .with_folders(machine.folders_with());
        #[cfg(feature = "postgres")]
        if let Some(server) = machine.team().server() {
            // What a worker writes is of who began the run.
            let found = run.map(|run| server.find(run)).transpose()?.flatten();
            let (scope, id) = match &found {
                Some(run) => (run.began_by.as_str(), Some(run.id)),
                None => (server.workspace()?.me.as_str(), None),
            };
            return Ok(store.on_server(server.clone(), scope, id));
        }
        let _ = run;
        Ok(store)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn runs(&self, _: &Machine) -> Option<Runs> {
        let (server, process) = self.server.as_ref()?;
        Some(Runs::on_server(server.clone(), process.clone()))
    }
}

#[cfg(feature = "postgres")]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Reads `RUN:CLAIM`, as a worker gives it to the process of a run.
#[cfg(feature = "postgres")]
fn claim(text: &str) -> Result<Claim> {
    let parsed = text.split_once(':').and_then(|(run, claim)| Some((run.parse().ok()?, claim.parse().ok()?)));
    let (run, claim) = parsed.ok_or_else(|| Failure::new(Code::Usage, format!("{CLAIM} is not set by hand")))?;
    Ok(Claim { run, claim })
}
