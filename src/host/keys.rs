//! Keys of providers that the user gave to nietz to keep: in the system's keyring where there is one, else in a file of their own.
//!
//! The keyring is asked through the program that comes with it (`secret-tool`, or `security` on macOS), because a library for all
//! keyrings would bring D-Bus along. `keys.yaml` says which providers have a key, so that nothing is asked before a key is
//! needed; where there is no keyring, it holds the keys themselves. No key is ever an argument of a program: others can read
//! those.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk::temp_file::{self, TempFile};
use crate::disk::{self, owner};
use crate::error::{Code, Failure, Result};
use crate::host::secret::{Secret, StoredKey, output_of};
use crate::model::collection::Format;
use crate::model::redact::Redactor;
use crate::model::text::excerpt;
use crate::schema::builtin;
use crate::schema::{source, text};

const VERSION: u32 = 1;
const HEAD: &str = "# Keys of model providers. `nietz models key PROVIDER` changes it.\n";
/// How long to wait for another process that changes the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest key that can be kept out of what nietz shows and writes: a shorter one would be found in ordinary text.
const SHORTEST: usize = 8;
/// The longest key. Tokens of large companies have a few thousand characters.
pub const LONGEST: usize = 16 << 10;
/// The mode bits by which others can read or write a file.
const OTHERS: u32 = 0o077;

/// A key that a user typed, checked and not stored yet.
pub struct NewKey(Secret);

/// What failures about the file of keys say of it.
const HAS_KEYS: &str = "which has your keys";
const NO_FILE_OF_KEYS: &str = "is no file of keys";

/// Tells whether a failure is about the file of keys, of which nothing may be shown.
pub(crate) fn is_about_keys(failure: &Failure) -> bool {
    [HAS_KEYS, NO_FILE_OF_KEYS].iter().any(|words| failure.message.contains(words))
}

impl NewKey {
    /// Returns the key in what was typed or piped, without the line end behind it. Failures do not show it.
    ///
    /// # Errors
    ///
    /// `usage` if it cannot be a key.
    pub fn parse(typed: &str) -> Result<NewKey> {
        let key = typed.strip_suffix('\n').unwrap_or(typed);
        let key = key.strip_suffix('\r').unwrap_or(key);
        let why = match key {
            "" => "it is empty",
            _ if key.len() > LONGEST => "it is longer than any key",
            _ if key.contains(['\n', '\r']) => "it has several lines",
            _ if key.contains(char::is_whitespace) => "it has a space in it",
            _ if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                "it has a character that keys do not have: an accent, a typographic dash, a control character"
            }
            _ if key.len() < SHORTEST => "it is shorter than 8 characters, so that it could not be kept out of texts",
            _ => return Secret::new(key).map(NewKey).ok_or_else(|| Failure::new(Code::Internal, "the key is blank")),
        };
        Err(Failure::new(Code::Usage, format!("this is no key: {why}"))
            .hint("copy the key alone, as the provider's console shows it"))
    }

    /// Makes the redactor hide the key.
    pub fn tell(&self, provider: &str, redactor: &Redactor) {
        self.0.tell(redactor, &shown_name(provider));
    }
}

/// Returns what is shown in place of a provider's stored key.
pub(in crate::host) fn shown_name(provider: &str) -> String {
    format!("key of {provider}")
}

/// The keyring of a system, as the program that asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Keyring {
    /// Of the desktops on Linux, by way of libsecret.
    SecretTool,
    /// Of macOS.
    Security,
}

impl Keyring {
    /// The keyring that new keys go to on this system.
    const HERE: Keyring = if cfg!(target_os = "macos") { Keyring::Security } else { Keyring::SecretTool };

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn lookup(self, provider: &str) -> Vec<String> {
        match self {
            Keyring::SecretTool => {
                Keyring::command(&["secret-tool", "lookup", "service", "nietz", "account", provider])
            }
            Keyring::Security => {
                Keyring::command(&["security", "find-generic-password", "-s", "nietz", "-a", provider, "-w"])
            }
        }
    }

    /// Returns the command that stores a key, and its input.
    fn store(self, provider: &str, key: &Secret) -> (Vec<String>, String) {
        match self {
            Keyring::SecretTool => {
                let label = format!("nietz: {provider}");
                let words = ["secret-tool", "store", "--label", &label, "service", "nietz", "account", provider];
                (Keyring::command(&words), key.expose().to_owned())
            }
            Keyring::Security => {
                // It takes a key as an argument alone, so it is told to read its arguments. In hexadecimal nothing has to
                // be quoted.
                let hex: String = key.expose().bytes().map(|byte| format!("{byte:02x}")).collect();
                let line = format!("add-generic-password -U -s nietz -a {provider} -X {hex}\n");
                (Keyring::command(&["security", "-i"]), line)
            }
        }
    }

    fn clear(self, provider: &str) -> Vec<String> {
        match self {
            Keyring::SecretTool => Keyring::command(&["secret-tool", "clear", "service", "nietz", "account", provider]),
            Keyring::Security => {
                Keyring::command(&["security", "delete-generic-password", "-s", "nietz", "-a", provider])
            }
        }
    }

    /// Stores a key and looks whether it is there: not every program says that it failed.
    async fn keep(self, provider: &str, key: &Secret, environment: &BTreeMap<String, String>) -> Result<(), String> {
        let (command, input) = self.store(provider, key);
        output_of(&command, environment, &input).await?;
        let found = output_of(&self.lookup(provider), environment, "").await?;
        match Secret::new(&found).as_ref() == Some(key) {
            true => Ok(()),
            false => Err(format!("{} gave back another key than it was given", command[0])),
        }
    }
}

/// What `keys.yaml` says of one provider.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged)]
enum Entry {
    Key { key: String },
    Keyring { keyring: Keyring },
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    version: u32,
    #[serde(default)]
    providers: BTreeMap<String, Entry>,
}

/// The keys that are stored, by provider. It has no `Debug`.
#[derive(Clone, Default)]
pub struct StoredKeys(BTreeMap<String, StoredKey>);

impl StoredKeys {
    pub(in crate::host) fn get(&self, provider: &str) -> Option<&StoredKey> {
        self.0.get(provider)
    }

    /// Makes the redactor hide the keys that are known so far. Those of a keyring become known when they are looked up.
    pub fn tell(&self, redactor: &Redactor) {
        for (provider, key) in &self.0 {
            if let StoredKey::InFile(key) = key {
                key.tell(redactor, &shown_name(provider));
            }
        }
    }
}

/// Where a key went, and what the user should know besides.
pub struct Kept {
    /// As the end of a sentence: "in the keyring".
    pub place: String,
    pub note: Option<String>,
}

/// The file of stored keys.
#[derive(Clone, Debug)]
pub struct KeysFile {
    pub path: PathBuf,
}

impl KeysFile {
    /// Reads which keys are stored; none if there is no file.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the file is wrong, or if others can read or write it.
    pub fn read(&self) -> Result<StoredKeys> {
        let stored = |(provider, entry): (String, Entry)| match entry {
            Entry::Key { key } => Secret::new(&key).map(|key| (provider, StoredKey::InFile(key))),
            Entry::Keyring { keyring } => {
                let lookup = keyring.lookup(&provider);
                Some((provider, StoredKey::InKeyring(lookup)))
            }
        };
        Ok(StoredKeys(self.keys()?.providers.into_iter().filter_map(stored).collect()))
    }

    /// Failures show nothing of the file: whatever is wrong with it, it may stand beside a key.
    fn keys(&self) -> Result<Keys> {
        let none = Keys { version: VERSION, providers: BTreeMap::new() };
        let Some(bytes) = owner::read(&self.path, disk::SETTINGS)? else { return Ok(none) };
        let shown = self.path.display();
        let found = std::fs::metadata(&self.path).map_err(|error| Failure::io(&self.path, "look at", &error))?;
        if found.mode() & OTHERS != 0 {
            let failure = Failure::new(Code::ConfigInvalid, format!("others can read {shown}, {HAS_KEYS}"));
            return Err(failure.hint("chmod 600 that file, and get new keys: others may have read these"));
        }
        let wrong = |why: String| {
            Failure::new(Code::ConfigInvalid, format!("{shown} {NO_FILE_OF_KEYS}: {why}"))
                .hint("correct it by its schema (`nietz types`), or remove it and store the keys anew")
        };
        let content = source::decode(&bytes, "").map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        let (value, located) = builtin::check(&builtin::KEYS, content, "")?;
        if value.is_null() && located.is_empty() {
            return Ok(none);
        }
        if let Some(violation) = located.first() {
            return Err(wrong(format!("line {} is not as its schema wants it", violation.line)));
        }
        serde_json::from_value(value).map_err(|_| wrong("it does not fit its schema".to_owned()))
    }

    fn write(&self, keys: &Keys) -> Result<()> {
        let value = serde_json::to_value(keys).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let content = format!("{HEAD}{}", text::to_text(&value, Format::Yaml));
        let folder = temp_file::parent_folder(&self.path);
        temp_file::remove_stale(folder);
        TempFile::with_mode(&self.path, content.as_bytes(), 0o600)?.publish(&self.path)
    }

    /// Stores a provider's key in the system's keyring, or in the file where there is no keyring or `in_file` says so. The
    /// environment is that of the keyring's program.
    ///
    /// # Errors
    ///
    /// `usage` for a provider whose name a keyring cannot have, `document-busy` if another process holds the file, and those of
    /// [`KeysFile::read`].
    pub async fn store(
        &self,
        provider: &str,
        NewKey(key): &NewKey,
        in_file: bool,
        environment: &BTreeMap<String, String>,
    ) -> Result<Kept> {
        let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if provider.is_empty() || provider.len() > 100 || !provider.chars().all(usual) {
            let message =
                format!("no key can be stored for {}: of its name, a keyring cannot be told", excerpt(provider));
            return Err(Failure::new(Code::Usage, message).hint("use key_command or key_env in config.yaml for it"));
        }
        let _held = owner::lock(&self.path.with_extension("lock"), PATIENCE)?;
        let mut keys = self.keys()?;
        let kept = match in_file {
            true => Err(None),
            false => Keyring::HERE.keep(provider, key, environment).await.map_err(Some),
        };
        let (entry, place, mut note) = match kept {
            Ok(()) => (Entry::Keyring { keyring: Keyring::HERE }, "in the keyring".to_owned(), None),
            Err(why) => {
                let place = format!("in {}, which only you can read", self.path.display());
                let note = why.map(|why| format!("there is no keyring that takes it: {why}"));
                (Entry::Key { key: key.expose().to_owned() }, place, note)
            }
        };
        let before = keys.providers.insert(provider.to_owned(), entry.clone());
        self.write(&keys)?;
        if let (Some(Entry::Keyring { keyring }), Entry::Key { .. }) = (before, entry)
            && let Err(why) = output_of(&keyring.clear(provider), environment, "").await
        {
            let left = format!("the older key is still in the keyring: {why}");
            note = Some(note.map_or(left.clone(), |note| format!("{note}; {left}")));
        }
        Ok(Kept { place, note })
    }

    /// Removes a provider's stored key; returns whether there was one.
    ///
    /// # Errors
    ///
    /// `command-failed` if the keyring does not give it up, `document-busy` if another process holds the file, and those of
    /// [`KeysFile::read`].
    pub async fn remove(&self, provider: &str, environment: &BTreeMap<String, String>) -> Result<bool> {
        let _held = owner::lock(&self.path.with_extension("lock"), PATIENCE)?;
        let mut keys = self.keys()?;
        let Some(entry) = keys.providers.remove(provider) else { return Ok(false) };
        if let Entry::Keyring { keyring } = entry {
            let command = keyring.clear(provider);
            output_of(&command, environment, "").await.map_err(|why| {
                Failure::new(Code::CommandFailed, format!("the keyring did not remove the key of {provider}: {why}"))
                    .hint(format!("unlock the keyring and try again; the command is `{}`", command.join(" ")))
            })?;
        }
        self.write(&keys)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_refused_and_never_shown() {
        for (typed, why) in [
            ("", "empty"),
            ("\n", "empty"),
            ("sk-one two-three", "space"),
            (" sk-one-two-three", "space"),
            ("sk-one-two\nsk-three-four\n", "several lines"),
            ("sk-one-two-\u{7}three", "character that keys do not have"),
            ("sk–one–two–three", "character that keys do not have"),
            ("sk-1234", "shorter"),
            (&"k".repeat(LONGEST + 1), "longer"),
        ] {
            let failure = NewKey::parse(typed).err().expect(typed);
            assert!(failure.code == Code::Usage && failure.message.contains(why), "{typed:?}: {failure}");
            assert!(!failure.to_string().contains("three"), "{failure}");
        }
        for typed in ["sk-one-two-three", "sk-one-two-three\n", "sk-one-two-three\r\n"] {
            assert!(NewKey::parse(typed).is_ok_and(|NewKey(key)| key.expose() == "sk-one-two-three"), "{typed:?}");
        }
    }

    #[test]
    fn no_key_is_an_argument_of_a_keyring_s_program() {
        let key = Secret::new("sk-one-two-three").expect("it is not blank");
        for keyring in [Keyring::SecretTool, Keyring::Security] {
            let (command, input) = keyring.store("openai", &key);
            let hex = "736b2d6f6e652d74776f2d7468726565";
            assert!(!command.iter().any(|word| word.contains("sk-one") || word.contains(hex)), "{command:?}");
            assert!(input.contains("sk-one-two-three") || input.ends_with(&format!("-a openai -X {hex}\n")), "{input}");
        }
    }
}
