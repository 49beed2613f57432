//! How the user is notified: the part of their own `config.yaml` that says so.

use reqwest::Url;
use serde::Deserialize;

pub(super) use crate::host::network::place;
use crate::host::network::safe_address;

/// What stands under `notify`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// A program and its arguments: it gets the payload as JSON on standard input.
    pub command: Option<Vec<String>>,
    /// An address that the payload is posted to.
    pub url: Option<String>,
    /// The variable that holds the secret that posts are signed with.
    pub secret_env: Option<String>,
    /// A command that prints that secret.
    pub secret_command: Option<Vec<String>>,
}

/// The way that a notification takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Route {
    Command(Vec<String>),
    Webhook { url: Url, secret: SecretPlace },
}

/// Where the secret of a webhook stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SecretPlace {
    Variable(String),
    Command(Vec<String>),
}

/// A field that is wrong, and why.
pub type WrongField = (&'static str, String);

impl NotifyConfig {
    /// Checks that it names one way that can be used.
    ///
    /// # Errors
    ///
    /// The field that is wrong, and why.
    pub fn check(&self) -> Result<(), WrongField> {
        self.route().map(drop)
    }

    /// Returns where notifications go, for people: nothing of an address but its host, because its path may be a secret.
    pub fn describe(&self) -> String {
        match self.route() {
            Ok(Route::Command(command)) => format!("to the program {}", command[0]),
            Ok(Route::Webhook { url, .. }) => format!("to {}, signed", place(&url)),
            Err((_, why)) => why,
        }
    }

    pub(super) fn route(&self) -> Result<Route, WrongField> {
        let secret = match (&self.secret_env, &self.secret_command) {
            (Some(_), Some(_)) => return Err(("secret_command", "secret_env is there already: name one".to_owned())),
            (Some(name), None) => Some(SecretPlace::Variable(name.clone())),
            (None, Some(command)) => Some(SecretPlace::Command(command.clone())),
            (None, None) => None,
        };
        match (&self.command, &self.url, secret) {
            (Some(_), Some(_), _) => Err(("url", "a command is there already: name one".to_owned())),
            (Some(_), None, Some(_)) => Err(("command", "a command gets no secret: only a url is signed".to_owned())),
            (Some(command), None, None) => Ok(Route::Command(command.clone())),
            (None, Some(url), Some(secret)) => Ok(Route::Webhook { url: address(url)?, secret }),
            (None, Some(_), None) => {
                Err(("url", "posts are signed: name the secret with secret_env or secret_command".to_owned()))
            }
            (None, None, _) => Err(("", "it needs a command or a url".to_owned())),
        }
    }
}

/// Returns an address that may be posted to.
fn address(text: &str) -> Result<Url, WrongField> {
    safe_address(text).map_err(|why| ("url", why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Route, WrongField> {
        serde_yaml::from_str::<NotifyConfig>(text).expect("it has the right fields").route()
    }

    #[test]
    fn an_address_is_secret_on_its_way_or_on_this_machine() {
        for url in ["https://a.example/x", "http://127.0.0.1:9/x", "http://localhost/", "http://[::1]:1/"] {
            assert!(read(&format!("{{url: '{url}', secret_env: S}}")).is_ok(), "{url}");
        }
        for url in [
            "http://a.example/x",
            "http://localhost.a.example/",
            "http://localhost:x@a.example/",
            "http://127.0.0.1@a.example/",
            "https://me:pw@a.example/",
            "ftp://a.example/",
            "file:///etc/passwd",
            "a.example",
        ] {
            assert_eq!(read(&format!("{{url: '{url}', secret_env: S}}")).map_err(|wrong| wrong.0), Err("url"), "{url}");
        }
    }

    #[test]
    fn it_names_one_way_and_one_secret() {
        for (text, field) in [
            ("{}", ""),
            ("{secret_env: S}", ""),
            ("{command: [a], url: 'https://a.example'}", "url"),
            ("{command: [a], secret_env: S}", "command"),
            ("{url: 'https://a.example'}", "url"),
            ("{url: 'https://a.example', secret_env: S, secret_command: [a]}", "secret_command"),
        ] {
            assert_eq!(read(text).map_err(|wrong| wrong.0), Err(field), "{text}");
        }
        assert_eq!(read("{command: [a, b]}"), Ok(Route::Command(vec!["a".into(), "b".into()])));
    }

    #[test]
    fn no_path_of_an_address_is_shown() {
        let config = NotifyConfig {
            url: Some("https://hooks.example:8443/services/T0/secret?token=x".into()),
            secret_env: Some("S".into()),
            ..NotifyConfig::default()
        };
        assert_eq!(config.describe(), "to https://hooks.example:8443, signed");
    }
}
