//! Which MCP servers there are: the part of the user's own `config.yaml` that says so, and what each of them may read, reach and be
//! told.

use std::collections::BTreeMap;

use reqwest::Url;
use serde::Deserialize;

use crate::host::network;
use crate::model::text::excerpt;

/// How long a request may take, in seconds, unless the user says otherwise.
const SECONDS: f64 = 60.0;
/// The longest that they can say: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// The servers, by the names that flows know them by.
pub type ServersConfig = BTreeMap<String, ServerConfig>;

/// One server: a program of this machine, or an address.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// A program and its arguments, which is run in the sandbox of commands.
    pub command: Option<Vec<String>>,
    /// An address that speaks streamable HTTP.
    pub url: Option<String>,
    /// The variable that holds the key for that address.
    pub key_env: Option<String>,
    /// A command that prints it.
    pub key_command: Option<Vec<String>>,
    /// The user's variables that the program is told.
    pub env: Vec<String>,
    /// Further variables, with their values.
    pub set: BTreeMap<String, String>,
    /// Folders and files that the program may read.
    pub read: Vec<String>,
    /// Whether it may read the workspace.
    pub workspace: bool,
    /// Whether it has the network.
    pub network: bool,
    /// How long each request may take.
    pub seconds: f64,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            command: None,
            url: None,
            key_env: None,
            key_command: None,
            env: Vec::new(),
            set: BTreeMap::new(),
            read: Vec::new(),
            workspace: false,
            network: true,
            seconds: SECONDS,
        }
    }
}

/// How a server is spoken to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Route<'a> {
    Program(&'a [String]),
    Address(Url),
}

/// A field that is wrong, and why.
type WrongField = (&'static str, String);

impl ServerConfig {
    /// Checks that it names one way to a server, and nothing that is not for that way.
    ///
    /// # Errors
    ///
    /// The field that is wrong, and why.
    pub fn check(&self) -> Result<(), WrongField> {
        let route = self.route()?;
        if !(self.seconds > 0.0 && self.seconds <= MOST_SECONDS) {
            return Err(("seconds", format!("it must be above 0 and at most {MOST_SECONDS}")));
        }
        let is_program = matches!(route, Route::Program(_));
        let given = [
            ("key_env", is_program && self.key_env.is_some()),
            ("key_command", is_program && self.key_command.is_some()),
            ("env", !is_program && !self.env.is_empty()),
            ("set", !is_program && !self.set.is_empty()),
            ("read", !is_program && !self.read.is_empty()),
            ("workspace", !is_program && self.workspace),
            ("network", !is_program && !self.network),
        ];
        match given.into_iter().find(|(_, is_wrong)| *is_wrong) {
            Some((field, _)) if is_program => {
                Err((field, "a command has no key: name its variable in `env`".to_owned()))
            }
            Some((field, _)) => Err((field, "it is for a command, and this is a url".to_owned())),
            None if self.key_env.is_some() && self.key_command.is_some() => {
                Err(("key_command", "key_env is there already: name one".to_owned()))
            }
            None => Ok(()),
        }
    }

    pub(super) fn route(&self) -> Result<Route<'_>, WrongField> {
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => Err(("url", "a command is there already: name one".to_owned())),
            (Some(command), None) => Ok(Route::Program(command)),
            (None, Some(url)) => network::safe_address(url).map(Route::Address).map_err(|why| ("url", why)),
            (None, None) => Err(("", "it needs a command or a url".to_owned())),
        }
    }

    /// Returns the program that is started, if it is one.
    pub fn program(&self) -> Option<&str> {
        self.command.as_ref()?.first().map(String::as_str)
    }

    /// Returns what it may do, for people: nothing of an address but its host, because its path may be a secret.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        match self.route() {
            Ok(Route::Program(command)) => parts.push(format!("`{}` in a sandbox", excerpt(&command.join(" ")))),
            Ok(Route::Address(url)) => return network::place(&url),
            Err((_, why)) => return why,
        }
        parts.push(if self.network { "with the network" } else { "without a network" }.to_owned());
        if self.workspace {
            parts.push("reads the project".to_owned());
        }
        if !self.read.is_empty() {
            parts.push(format!("reads {}", self.read.join(", ")));
        }
        let told: Vec<&str> = self.env.iter().chain(self.set.keys()).map(String::as_str).collect();
        if !told.is_empty() {
            parts.push(format!("is told {}", told.join(", ")));
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ServerConfig {
        serde_yaml::from_str(text).expect("it has the right fields")
    }

    #[test]
    fn a_server_has_the_network_a_private_home_and_nothing_of_the_user_s_unless_they_say_more() {
        let usual = read("{command: [docs, --stdio]}");
        assert_eq!(usual.check(), Ok(()));
        assert_eq!(usual.describe(), "`docs --stdio` in a sandbox, with the network");
        let more = read("{command: [docs], network: false, workspace: true, read: [~/notes], env: [A], set: {B: c}}");
        assert_eq!(
            more.describe(),
            "`docs` in a sandbox, without a network, reads the project, reads ~/notes, is told A, B"
        );
    }

    #[test]
    fn it_names_one_way_and_nothing_that_is_for_another() {
        for (text, field) in [
            ("{}", ""),
            ("{command: [a], url: 'https://a.example'}", "url"),
            ("{url: 'http://a.example'}", "url"),
            ("{url: 'https://a.example', env: [A]}", "env"),
            ("{url: 'https://a.example', workspace: true}", "workspace"),
            ("{url: 'https://a.example', network: false}", "network"),
            ("{url: 'https://a.example', key_env: A, key_command: [b]}", "key_command"),
            ("{command: [a], key_env: A}", "key_env"),
            ("{command: [a], seconds: 0}", "seconds"),
        ] {
            assert_eq!(read(text).check().map_err(|wrong| wrong.0), Err(field), "{text}");
        }
        assert_eq!(read("{url: 'http://127.0.0.1:9/mcp', key_env: A}").check(), Ok(()));
    }

    #[test]
    fn no_path_of_an_address_is_shown() {
        assert_eq!(read("{url: 'https://mcp.example:8443/t0ken'}").describe(), "https://mcp.example:8443");
    }
}
