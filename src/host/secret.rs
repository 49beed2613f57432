//! Secrets that cannot be shown by accident, and where they come from.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use reqwest::header::HeaderValue;
use tokio::io::AsyncWriteExt;

use crate::error::{Code, Failure, Result};
use crate::model::redact::Redactor;

/// How long a key command may take: enough for a person to unlock a key ring.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A key. It has neither `Display` nor serde, and its `Debug` shows nothing of the key.
#[derive(Clone, PartialEq)]
pub(in crate::host) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Returns the secret in this text; `None` if the text is blank.
    pub(in crate::host) fn new(text: &str) -> Option<Secret> {
        let text = text.trim();
        (!text.is_empty()).then(|| Secret(text.to_owned()))
    }

    /// Returns the secret as a header value that HTTP logs do not show; `None` if no header can have it.
    pub(in crate::host) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns the secret itself, for what is computed from it.
    pub(in crate::host) fn expose(&self) -> &str {
        &self.0
    }

    /// Makes the redactor hide this secret under a name.
    pub(in crate::host) fn tell(&self, redactor: &Redactor, name: &str) {
        redactor.learn(name, &self.0);
    }

    /// Redacts this secret, and whatever else looks like one, in a provider's words.
    pub(in crate::host) fn remove_from(secret: Option<&Secret>, text: &str) -> String {
        let text = match secret {
            Some(Secret(secret)) => text.replace(secret.as_str(), "[redacted]"),
            None => text.to_owned(),
        };
        Redactor::default().text(&text).into_owned()
    }
}

/// A key that the user gave to nietz to keep.
#[derive(Clone, Debug)]
pub(in crate::host) enum StoredKey {
    /// In nietz's own file of keys.
    InFile(Secret),
    /// In the system's keyring, where this command looks it up.
    InKeyring(Vec<String>),
}

impl StoredKey {
    /// Returns where it is, as the end of a sentence.
    pub(in crate::host) fn place(&self) -> &'static str {
        match self {
            StoredKey::InFile(_) => "in keys.yaml",
            StoredKey::InKeyring(_) => "in the keyring",
        }
    }
}

/// Where a provider's key comes from.
#[derive(Clone, Debug)]
pub(in crate::host) enum KeySource {
    /// The provider needs none.
    NotNeeded,
    Variable {
        name: String,
        key: Secret,
    },
    Command(Vec<String>),
    Stored(StoredKey),
    /// None of these variables is set.
    Missing(Vec<String>),
    /// The provider has no address without these variables.
    NoAddress(Vec<String>),
}

impl KeySource {
    /// Tells whether the provider is sent a key.
    pub(in crate::host) fn has_key(&self) -> bool {
        matches!(self, KeySource::Variable { .. } | KeySource::Command(_) | KeySource::Stored(_))
    }

    /// Returns where the user finds the key, for messages about a refused key.
    pub(in crate::host) fn describe(&self, provider: &str) -> String {
        match self {
            KeySource::NotNeeded => format!("{provider} (none is configured)"),
            KeySource::Variable { name, .. } => name.clone(),
            KeySource::Command(_) => format!("models.providers.{provider}.key_command"),
            KeySource::Stored(key) => key.place().trim_start_matches("in ").to_owned(),
            KeySource::Missing(variables) => variables.join(" or "),
            KeySource::NoAddress(variables) => variables.join(" and "),
        }
    }
}

/// Runs a command that prints a secret, without a shell, and returns the secret. `place` is where the configuration names it. It
/// runs in the home folder, so that relative paths mean the user's own files and not files in the folder that `nietz` was
/// started in.
pub(in crate::host) async fn run_command(
    place: &str,
    command: &[String],
    environment: &BTreeMap<String, String>,
) -> Result<Secret> {
    let failed = |why: String| {
        Failure::new(Code::KeyMissing, format!("the command of {place} gave no key: {why}"))
            .hint("run that command yourself to see why")
    };
    let printed = output_of(command, environment, "").await.map_err(failed)?;
    // Password stores print the secret on the first line, and notes below.
    Secret::new(printed.trim().lines().next().unwrap_or_default())
        .ok_or_else(|| failed(format!("{} printed nothing", command.first().map(String::as_str).unwrap_or_default())))
}

/// As [`run_command`], for whoever waits for it: what it prints is learnt by the redactor, and returned.
///
/// # Errors
///
/// `key-missing` if it prints nothing.
pub(crate) fn printed_by(
    place: &str,
    command: &[String],
    environment: &BTreeMap<String, String>,
    redactor: &Redactor,
) -> Result<String> {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))?;
        runtime.block_on(run_command(place, command, environment))
    };
    // The caller may be within a runtime already.
    let ended = std::thread::scope(|scope| scope.spawn(work).join());
    let secret =
        ended.map_err(|_| Failure::new(Code::Internal, "the command of a password cannot be waited for"))??;
    secret.tell(redactor, place);
    Ok(secret.0)
}

/// Looks a provider's stored key up in the keyring.
pub(in crate::host) async fn look_up(
    provider: &str,
    command: &[String],
    environment: &BTreeMap<String, String>,
) -> Result<Secret> {
    let found = output_of(command, environment, "").await;
    found.and_then(|found| Secret::new(&found).ok_or_else(|| "it has none".to_owned())).map_err(|why| {
        Failure::new(Code::KeyMissing, format!("the keyring did not give the key of {provider}: {why}"))
            .hint(format!("unlock the keyring, or store the key again: nietz models key {provider}"))
    })
}

/// Runs a program without a shell, gives it `input`, and returns what it prints.
///
/// # Errors
///
/// Why there is no output, for a sentence that says what the program was for.
pub(in crate::host) async fn output_of(
    command: &[String],
    environment: &BTreeMap<String, String>,
    input: &str,
) -> Result<String, String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("it is empty".to_owned());
    };
    let child = tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir(environment.get("HOME").map_or("/", String::as_str))
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|error| format!("{program} cannot be run: {error}"))?;
    let stdin = child.stdin.take();
    let talk = async move {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input says so by its status.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await
    };
    let output = match tokio::time::timeout(COMMAND_LIMIT, talk).await {
        Err(_) => return Err(format!("it took longer than {} seconds", COMMAND_LIMIT.as_secs())),
        Ok(Err(error)) => return Err(format!("{program} cannot be run: {error}")),
        Ok(Ok(output)) => output,
    };
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program} ended with {}", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing_of_itself() {
        let key = Secret::new(" planted \n").unwrap();
        assert_eq!(format!("{key:?}"), "Secret(…)");
        assert_eq!(format!("{:?}", key.header("Bearer ").unwrap()), "Sensitive");
        assert_eq!(Secret::remove_from(Some(&key), "your planted key"), "your [redacted] key");
    }

    #[tokio::test]
    async fn a_key_command_gives_the_key_or_says_why_not() {
        let run = async |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
            run_command("gate", &command, &BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())])).await
        };
        assert_eq!(run(&["echo", "abc"]).await, Ok(Secret("abc".into())));
        for (command, why) in [
            (&["false"] as &[&str], "exit status: 1"),
            (&["true"], "printed nothing"),
            (&[], "it is empty"),
            (&["no-such-program-at-all"], "cannot be run"),
        ] {
            let failure = run(command).await.unwrap_err();
            assert_eq!(failure.code, Code::KeyMissing);
            assert!(failure.message.contains(why), "{failure}");
        }
    }
}
