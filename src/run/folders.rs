//! The user's folders: configuration, data, state and cache.
//!
//! None of them is ever found relative to the folder that `nietz` was started in, which may be a stranger's checkout:
//! these folders hold addresses, commands and permissions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Code, Failure, Result};
use crate::host::{path, user};
use crate::model::text::excerpt;

/// Variables that name one of the user's folders.
const CONFIG: &str = "XDG_CONFIG_HOME";
const DATA: &str = "XDG_DATA_HOME";
const STATE: &str = "XDG_STATE_HOME";
const CACHE: &str = "XDG_CACHE_HOME";

/// The folders in which nietz keeps the user's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserFolders {
    pub config: PathBuf,
    pub data: PathBuf,
    pub state: PathBuf,
    pub cache: PathBuf,
}

impl UserFolders {
    /// Finds the folders, and cleans the environment for all others that use it: removes the variables of folders whose
    /// paths are relative, sets a missing `HOME` to what the system says, and keeps only the absolute paths of `PATH`.
    ///
    /// # Errors
    ///
    /// `config-invalid` if `NIETZ_HOME` is relative, or if neither the environment nor the system knows a home.
    pub(crate) fn of(environment: &mut BTreeMap<String, String>) -> Result<UserFolders> {
        UserFolders::with(environment, user::home)
    }

    fn with(environment: &mut BTreeMap<String, String>, home: impl Fn() -> Option<PathBuf>) -> Result<UserFolders> {
        for name in ["HOME", CONFIG, DATA, STATE, CACHE] {
            if environment.get(name).is_some_and(|path| !Path::new(path).is_absolute()) {
                environment.remove(name);
            }
        }
        if let Some(path) = environment.get_mut("PATH") {
            *path = path::absolute_folders(path);
        }
        if !environment.contains_key("HOME")
            && let Some(home) = home().and_then(|home| home.into_os_string().into_string().ok())
        {
            environment.insert("HOME".to_owned(), home);
        }
        if let Some(all) = environment.get("NIETZ_HOME").filter(|all| !all.is_empty()) {
            if !Path::new(all).is_absolute() {
                let shown = excerpt(all);
                let message = format!("NIETZ_HOME is `{shown}`, and has to be a whole path");
                return Err(Failure::new(Code::ConfigInvalid, message).hint("such as NIETZ_HOME=\"$PWD/home\""));
            }
            let all = PathBuf::from(all);
            return Ok(UserFolders { config: all.clone(), data: all.clone(), state: all.clone(), cache: all });
        }
        let folder = |name: &str, below: &str| {
            let configured = environment.get(name).map(PathBuf::from);
            let home = || environment.get("HOME").map(|home| Path::new(home).join(below));
            configured.or_else(home).map(|folder| folder.join("nietz")).ok_or_else(|| {
                Failure::new(Code::ConfigInvalid, "it is not known where your home is: HOME is not set to a whole path")
                    .because("the system's list of users has no home for you either")
                    .hint("set HOME, or NIETZ_HOME to a folder for all that nietz keeps")
            })
        };
        Ok(UserFolders {
            config: folder(CONFIG, ".config")?,
            data: folder(DATA, ".local/share")?,
            state: folder(STATE, ".local/state")?,
            cache: folder(CACHE, ".cache")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)], home: Option<&str>) -> (Result<UserFolders>, BTreeMap<String, String>) {
        let mut environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let folders = UserFolders::with(&mut environment, || home.map(PathBuf::from));
        (folders, environment)
    }

    fn config(variables: &[(&str, &str)], home: Option<&str>) -> String {
        found(variables, home)
            .0
            .map_or_else(|failure| failure.code.name().to_owned(), |all| all.config.display().to_string())
    }

    #[test]
    fn a_folder_of_the_user_s_is_a_whole_path_or_the_system_s_or_none() {
        for (variables, home, expected) in [
            (&[("HOME", "/h")][..], None, "/h/.config/nietz"),
            (&[("HOME", "/h"), (CONFIG, "/c")], None, "/c/nietz"),
            (&[("HOME", "/h"), (CONFIG, "c")], None, "/h/.config/nietz"),
            (&[("HOME", "/h"), (CONFIG, "")], None, "/h/.config/nietz"),
            (&[("HOME", "")], Some("/p"), "/p/.config/nietz"),
            (&[("HOME", ".")], Some("/p"), "/p/.config/nietz"),
            (&[], Some("/p"), "/p/.config/nietz"),
            (&[], None, "config-invalid"),
            (&[("HOME", "h"), (CONFIG, "c")], None, "config-invalid"),
            (&[("NIETZ_HOME", "/n")], None, "/n"),
            (&[("NIETZ_HOME", "n"), ("HOME", "/h")], None, "config-invalid"),
            (&[("NIETZ_HOME", ""), ("HOME", "/h")], None, "/h/.config/nietz"),
        ] {
            assert_eq!(config(variables, home), expected, "{variables:?}");
        }
        let (_, environment) = found(&[("HOME", "h"), (CONFIG, "c"), (CACHE, "/x")], Some("/p"));
        let left: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(left, [("HOME", "/p"), (CACHE, "/x")]);
    }
}
