//! What a command is told of the machine: what builds need, and no key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::command::Grants;

/// Variables that are passed on as they are. A list of what may pass, because nobody knows all names of keys.
const PASSED: &[&str] = &[
    "CC",
    "CFLAGS",
    "CXX",
    "CXXFLAGS",
    "GOFLAGS",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LDFLAGS",
    "LOGNAME",
    "NVM_DIR",
    "PKG_CONFIG_PATH",
    "PYENV_ROOT",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "TZ",
    "USER",
];

/// A toolchain's folder: the variable that names it, where it is below the home otherwise, and what of it is shown.
/// Cargo's own holds the registry's key.
struct Toolchain {
    variable: &'static str,
    home: &'static str,
    parts: &'static [&'static str],
}

const TOOLCHAINS: &[Toolchain] = &[
    Toolchain { variable: "RUSTUP_HOME", home: ".rustup", parts: &[""] },
    Toolchain {
        variable: "CARGO_HOME",
        home: ".cargo",
        parts: &["bin", "registry", "git", "config.toml", ".package-cache", ".package-cache-mutate", ".global-cache"],
    },
    Toolchain { variable: "GOPATH", home: "go", parts: &["pkg", "bin"] },
    Toolchain { variable: "GOROOT", home: "sdk", parts: &[""] },
    Toolchain { variable: "NVM_DIR", home: ".nvm", parts: &["versions"] },
    Toolchain { variable: "PYENV_ROOT", home: ".pyenv", parts: &["versions", "shims", "libexec", "bin", "version"] },
    Toolchain { variable: "JAVA_HOME", home: ".sdkman", parts: &[""] },
];

/// Returns the environment of a command. Its home is its private folder; toolchains are told where they live.
pub(super) fn of(ours: &BTreeMap<String, String>, temporary: &Path, grants: &Grants) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for name in PASSED {
        if let Some(value) = ours.get(*name) {
            variables.insert((*name).to_owned(), value.clone());
        }
    }
    let folders: Vec<String> = path(ours).iter().map(|folder| folder.display().to_string()).collect();
    variables.insert("PATH".to_owned(), folders.join(":"));
    for toolchain in &TOOLCHAINS[..2] {
        if let Some(folder) = folder(ours, toolchain).filter(|folder| folder.is_dir()) {
            variables.insert(toolchain.variable.to_owned(), folder.display().to_string());
        }
    }
    let private = temporary.display().to_string();
    for name in ["HOME", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        variables.insert(name.to_owned(), private.clone());
    }
    // What Python compiles would stand beside the sources, and be committed with them.
    for (name, value) in [("TERM", "dumb"), ("NO_COLOR", "1"), ("CI", "1"), ("PYTHONDONTWRITEBYTECODE", "1")] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    if !grants.net {
        variables.insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
    }
    variables
}

/// Returns the folders in which programs are looked for; one that is not absolute would be the model's own.
pub(super) fn path(ours: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let path = ours.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    path.split(':').map(PathBuf::from).filter(|folder| folder.is_absolute()).collect()
}

/// Returns the parts of toolchains that a command may read.
pub(super) fn toolchains(ours: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let of = |toolchain| {
        let folder = folder(ours, toolchain);
        folder.into_iter().flat_map(|folder| toolchain.parts.iter().map(move |part| folder.join(part)))
    };
    TOOLCHAINS.iter().flat_map(of).collect()
}

fn folder(ours: &BTreeMap<String, String>, toolchain: &Toolchain) -> Option<PathBuf> {
    let named = ours.get(toolchain.variable).map(PathBuf::from);
    let folder = named.or_else(|| Some(Path::new(ours.get("HOME")?).join(toolchain.home)))?;
    // A home that is the toolchain's folder would show all of it.
    let home = ours.get("HOME").map(PathBuf::from);
    (folder.is_absolute() && Some(&folder) != home.as_ref() && folder != Path::new("/")).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_and_no_folder_of_the_model_is_passed_on() {
        let ours = [
            ("PATH", "/usr/bin:.:bin:/opt/x/bin"),
            ("HOME", "/home/somebody"),
            ("OPENAI_API_KEY", "k"),
            ("GITHUB_PAT", "k"),
            ("LD_PRELOAD", "x.so"),
            ("LANG", "fr_FR.UTF-8"),
        ];
        let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let theirs = of(&ours, Path::new("/tmp/private"), &Grants::default());
        assert_eq!(theirs["PATH"], "/usr/bin:/opt/x/bin");
        assert_eq!((theirs["HOME"].as_str(), theirs["LANG"].as_str()), ("/tmp/private", "fr_FR.UTF-8"));
        assert!(["OPENAI_API_KEY", "GITHUB_PAT", "LD_PRELOAD"].iter().all(|name| !theirs.contains_key(*name)));
        assert_eq!(theirs["PYTHONDONTWRITEBYTECODE"], "1");
        let shown = toolchains(&ours);
        assert!(shown.contains(&PathBuf::from("/home/somebody/.cargo/registry")));
        assert!(!shown.contains(&PathBuf::from("/home/somebody/.cargo")));
        let home_only = [("HOME".to_owned(), "/h".to_owned()), ("GOROOT".to_owned(), "/h".to_owned())].into();
        assert!(!toolchains(&home_only).contains(&PathBuf::from("/h")));
    }
}
