//! Files with keys that the user gives to one command: those of package managers, for a private registry.

use std::path::{Path, PathBuf};

use super::copies::KEYS;
use crate::error::{Code, Failure, Result};
use crate::model::redact::Redactor;
use crate::model::text::line;

/// The largest of these files, in bytes.
const LARGEST: u64 = 1 << 20;
/// The file with the keys that nietz keeps for the user.
const KEPT_KEYS: &str = "keys.yaml";
/// The folder of configuration below the home; commands are told of their private home as both.
const CONFIGURATION: &str = ".config";

/// A file with keys that a command may read.
pub(crate) struct KeyFile {
    /// Its path as the user has it.
    pub place: PathBuf,
    /// The same with links resolved.
    resolved: PathBuf,
    /// Its path below the home.
    below: PathBuf,
}

impl KeyFile {
    /// Finds a file by the path that the user gave: a whole one, or one that begins with `~/`. `protected` are folders that
    /// no command reads.
    ///
    /// # Errors
    ///
    /// `usage` where it is no file, or none of the home's.
    pub(crate) fn find(named: &str, home: Option<&Path>, protected: &[PathBuf]) -> Result<KeyFile> {
        let home = home.ok_or_else(|| refused(named, "there is no home to find it in"))?;
        let place = named.strip_prefix("~/").map_or_else(|| PathBuf::from(named), |below| home.join(below));
        if !place.is_absolute() {
            return Err(refused(named, "it is no whole path"));
        }
        let below = place.strip_prefix(home).map(Path::to_owned);
        let below = below.map_err(|_| refused(named, "it is not in your home"))?;
        let resolved = place.canonicalize().map_err(|error| refused(named, &format!("it cannot be read: {error}")))?;
        let is_at_home = home.canonicalize().is_ok_and(|home| resolved.starts_with(home));
        let is_protected = protected.iter().any(|folder| {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            // A folder around the home is told by what it has of nietz's own.
            let own = if home.starts_with(&folder) { folder.join(KEPT_KEYS) } else { folder };
            resolved.starts_with(own)
        });
        let is_plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_plain || !is_at_home {
            return Err(refused(named, &format!("it leads to {}, out of your home", resolved.display())));
        } else if is_protected {
            return Err(refused(named, "it is in the workspace, or in a folder of nietz"));
        }
        let found = std::fs::metadata(&resolved).map_err(|error| refused(named, &error.to_string()))?;
        match (found.is_file(), found.len() <= LARGEST, resolved.to_str().is_some()) {
            (true, true, true) => Ok(KeyFile { place, resolved, below }),
            (false, ..) => Err(refused(named, "it is no file")),
            (_, false, _) => Err(refused(named, &format!("it has more than {} MB", LARGEST >> 20))),
            (.., false) => Err(refused(named, "its path is not UTF-8")),
        }
    }

    /// Returns the file that commands must be allowed to read.
    pub(super) fn resolved(&self) -> &Path {
        &self.resolved
    }

    /// Makes links in the private home, so that tools find the file where they look for it.
    pub(super) fn link(&self, private_home: &Path) -> Result<()> {
        let of_configuration = self.below.strip_prefix(CONFIGURATION).ok();
        for below in [Some(self.below.as_path()), of_configuration].into_iter().flatten() {
            let place = private_home.join(below);
            let failed = |error: std::io::Error| Failure::io(&place, "link", &error);
            std::fs::create_dir_all(place.parent().unwrap_or(private_home)).map_err(failed)?;
            match std::fs::remove_file(&place) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                // It was the copy without keys.
                _ => std::os::unix::fs::symlink(&self.resolved, &place).map_err(failed)?,
            }
        }
        Ok(())
    }

    /// Makes the redactor hide what is secret in the file, under the file's name.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be read.
    pub(super) fn tell(&self, redactor: &Redactor) -> Result<()> {
        let bytes = std::fs::read(&self.resolved).map_err(|error| Failure::io(&self.resolved, "read", &error))?;
        let text = String::from_utf8_lossy(&bytes);
        let name = self.place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        redactor.learn(&name, &text);
        for word in text.split_whitespace() {
            redactor.learn_address(&name, word.trim_matches(['"', '\'']));
            // The value of `index-url=https://…`, too.
            word.split_once('=').into_iter().for_each(|(_, value)| redactor.learn_address(&name, value));
        }
        keys(&text).for_each(|key| redactor.learn(&name, key));
        Ok(())
    }
}

/// Returns the words that stand behind a word that marks a key, in its line or, where nothing does, in the next.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let mut is_marked = false;
    text.lines().flat_map(move |line| {
        let words = words(line);
        let mark = words.iter().position(|word| {
            let lower = word.to_lowercase();
            KEYS.iter().any(|mark| lower.contains(mark))
        });
        let behind = match (mark, is_marked) {
            (Some(at), _) => words[at + 1..].to_vec(),
            (None, true) => words,
            (None, false) => Vec::new(),
        };
        is_marked = mark.is_some() && behind.is_empty();
        behind
    })
}

fn words(line: &str) -> Vec<&str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '=' | '"' | '\'' | ',' | ';' | '{' | '}' | '<' | '>');
    // A mark such as `//registry.example/:_authToken` is one word.
    line.split(ends).filter(|word| !word.is_empty()).collect()
}

fn refused(named: &str, why: &str) -> Failure {
    let why = line(why).into_owned();
    Failure::new(Code::Usage, format!("commands cannot be given the file {}: {why}", line(named)))
        .hint("name a file of your home by its whole path, such as ~/.npmrc")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_keys_of_usual_files_are_secrets_and_their_addresses_are_not() {
        // Put together here, so that this file itself holds nothing that looks like a key.
        let npm: &str =
            &["registry=https://npm.example/\n//npm.example/:_authToken=", "npm-key-1234\nalways-auth=true\n"].concat();
        let netrc =
            "machine git.example login alice-of-us password net-key-1234\nmachine b.example password\nnet-key-5678\n";
        let cargo: &str = &["[registries.ours]\ntoken = ", "\"cargo-key-1234\"\n"].concat();
        let pip: &str = &["[global]\nindex-url=https://me:", "pip-key-1234@pip.example/simple\n"].concat();
        for (name, text, said, expected) in [
            (".npmrc", npm, "npm-key-1234 npm.example/", "[redacted:.npmrc] npm.example/"),
            (
                ".netrc",
                netrc,
                "net-key-1234 net-key-5678 git.example",
                "[redacted:.netrc] [redacted:.netrc] git.example",
            ),
            ("credentials.toml", cargo, "cargo-key-1234", "[redacted:credentials.toml]"),
            ("pip.conf", pip, "pip-key-1234 pip.example", "[redacted:pip.conf] pip.example"),
        ] {
            let home = tempfile::tempdir().expect("a temporary folder can be made");
            std::fs::write(home.path().join(name), text).expect("it can be written");
            let redactor = Redactor::default();
            let file = KeyFile::find(&format!("~/{name}"), Some(home.path()), &[]).expect("it is there");
            file.tell(&redactor).expect("it is read");
            assert_eq!(redactor.text(said), expected);
        }
    }

    #[test]
    fn what_is_no_file_of_the_home_is_refused_by_its_name() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (home, other) = (folder.path().join("home"), folder.path().join("other"));
        for made in [home.join(".config/nietz"), home.join("project"), other.clone()] {
            std::fs::create_dir_all(made).expect("a folder can be made");
        }
        for file in [home.join(".config/nietz/keys.yaml"), home.join(".npmrc"), other.join("key")] {
            std::fs::write(file, "a key").expect("it can be written");
        }
        symlink(other.join("key"), home.join("out")).expect("a link can be made");
        symlink(home.join(".npmrc"), home.join("in")).expect("a link can be made");
        let find = |named: &str| KeyFile::find(named, Some(&home), &[home.join(".config/nietz")]);
        for (named, why) in [
            ("~/out", "out of your home"),
            ("~/../other/key", "out of your home"),
            ("~/project", "it is no file"),
            ("~/absent", "it cannot be read"),
            (".npmrc", "it is no whole path"),
            ("~/.config/nietz/keys.yaml", "in a folder of nietz"),
            ("/etc/passwd", "it is not in your home"),
        ] {
            let failure = find(named).map(drop).expect_err(named);
            assert!(failure.code == Code::Usage && failure.message.contains(why), "{named}: {}", failure.message);
            assert!(failure.message.contains(named), "{}", failure.message);
        }
        assert!(find("~/.npmrc").is_ok() && find("~/in").is_ok());
    }
}
