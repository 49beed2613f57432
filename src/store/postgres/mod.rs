//! The store on a server of PostgreSQL. See the room's page for what is where.

pub(crate) mod connection;
pub(crate) mod documents;
mod failures;
pub(crate) mod migrations;
pub(crate) mod people;
pub(crate) mod runs;
mod tls;

use std::sync::{Arc, OnceLock};

use connection::Connection;

use crate::error::{Code, Failure, Result};

/// The store of one workspace, as one process uses it.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) connection: Arc<Connection>,
    /// The workspace's name.
    pub(crate) name: String,
    workspace: Arc<OnceLock<Workspace>>,
}

/// A workspace, as the server knows it.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(crate) id: i32,
    /// Where changes of its runs are told.
    pub(crate) channel: String,
    /// The role that this process is.
    pub(crate) me: String,
}

impl Server {
    pub(crate) fn new(connection: Connection, workspace: &str) -> Server {
        Server { connection: Arc::new(connection), name: workspace.to_owned(), workspace: Arc::default() }
    }

    /// Returns the same server's store of another workspace.
    pub(crate) fn of_workspace(&self, name: &str) -> Server {
        Server { name: name.to_owned(), workspace: Arc::default(), ..self.clone() }
    }

    /// Returns the workspace. The schema is looked at first.
    ///
    /// # Errors
    ///
    /// `store-version` if the schema is not one that this nietz can work with, `store-refused` if there is no such workspace for this
    /// role, `store-unreachable`.
    pub(crate) fn workspace(&self) -> Result<&Workspace> {
        if let Some(known) = self.workspace.get() {
            return Ok(known);
        }
        self.check()?;
        let found = self.connection.query(
            "SELECT id, channel, session_user::text FROM nietz.workspace WHERE id = nietz.workspace($1)",
            &[&self.name],
        );
        let found = found.map_err(|failure| match failure.code {
            Code::StoreRefused => Failure { hint: None, ..failure }
                .because(format!("the workspace is called `{}`", self.name))
                .hint("the owner of the store makes it, and admits you: `nietz store admit`; `store: {workspace: NAME}` names another"),
            _ => failure,
        })?;
        let row = found.first().ok_or_else(|| {
            Failure::new(Code::StoreRefused, format!("there is no workspace `{}` for this role", self.name))
                .hint("the owner of the store makes it, and admits you: `nietz store admit`")
        })?;
        let found = Workspace { id: row.get(0), channel: row.get(1), me: row.get(2) };
        Ok(self.workspace.get_or_init(|| found))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({}, {})", self.connection.shown, self.name)
    }
}
