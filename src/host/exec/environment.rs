//! The environment of a command: what builds need of the machine, without keys.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::protected_places::ProtectedPlaces;
use crate::host::path;
use crate::model::command::Grants;

/// Variables that are passed on unchanged. A list of what may pass, because nobody knows all names of keys.
const PASSED: &[&str] = &[
    "CC",
    "CFLAGS",
    "CXX",
    "CXXFLAGS",
    "GOFLAGS",
    "GONOSUMDB",
    "GOPATH",
    "GOPRIVATE",
    "GOROOT",
    "GOTOOLCHAIN",
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

/// A toolchain's folder: the variable that names it, its default below the home, and the parts that a command may read.
/// Cargo's folder also holds the registry's key.
struct Toolchain {
    variable: &'static str,
    home: &'static str,
    parts: &'static [&'static str],
    export: ExportRule,
}

/// When a command gets the variable of a toolchain's folder. Without it, the tool would look below the private home.
#[derive(PartialEq, Eq)]
enum ExportRule {
    Always,
    /// With the network, the tool would download into the folder, which the command cannot write: it uses its private home, or
    /// a view that [`caches`] names.
    WithoutNetwork,
    /// Only through [`PASSED`], if the user's own environment names the folder.
    IfNamed,
}

/// The index of Cargo in [`TOOLCHAINS`].
const CARGO: usize = 1;

const TOOLCHAINS: &[Toolchain] = &[
    Toolchain { variable: "RUSTUP_HOME", home: ".rustup", parts: &[""], export: ExportRule::Always },
    Toolchain {
        variable: "CARGO_HOME",
        home: ".cargo",
        parts: &["bin", "registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"],
        export: ExportRule::WithoutNetwork,
    },
    Toolchain { variable: "GOPATH", home: "go", parts: &["pkg", "bin"], export: ExportRule::WithoutNetwork },
    Toolchain { variable: "GOROOT", home: "sdk", parts: &[""], export: ExportRule::IfNamed },
    Toolchain {
        variable: "NVM_DIR",
        home: ".nvm",
        parts: &["versions", "nvm.sh", "alias"],
        export: ExportRule::Always,
    },
    Toolchain {
        variable: "PYENV_ROOT",
        home: ".pyenv",
        parts: &["versions", "shims", "libexec", "bin", "version"],
        export: ExportRule::Always,
    },
    Toolchain { variable: "JAVA_HOME", home: ".sdkman", parts: &[""], export: ExportRule::IfNamed },
];

/// Returns the environment of a command. Its home is its private folder; variables name the toolchains' folders.
pub(super) fn of(
    ours: &BTreeMap<String, String>,
    kept: &ProtectedPlaces,
    temporary: &Path,
    grants: &Grants,
) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for name in PASSED {
        if let Some(value) = ours.get(*name) {
            variables.insert((*name).to_owned(), value.clone());
        }
    }
    let folders =
        path::folders(ours).into_iter().filter(|folder| grants.no_sandbox || kept.resolve_visible(folder).is_some());
    let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
    variables.insert("PATH".to_owned(), folders.join(":"));
    for toolchain in TOOLCHAINS {
        let exported = match toolchain.export {
            ExportRule::Always => true,
            ExportRule::WithoutNetwork => !grants.net || grants.no_sandbox,
            ExportRule::IfNamed => false,
        };
        if exported && let Some(folder) = folder(ours, toolchain).filter(|folder| folder.is_dir()) {
            variables.insert(toolchain.variable.to_owned(), folder.display().to_string());
        }
    }
    let private = temporary.display().to_string();
    for name in ["HOME", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        variables.insert(name.to_owned(), private.clone());
    }
    // Python would write compiled files beside the sources, and they would be committed.
    // A leak detector traces its program, which the sandbox refuses.
    for (name, value) in [
        ("ASAN_OPTIONS", "detect_leaks=0"),
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("CI", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    if !grants.net {
        variables.insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
    }
    variables
}

/// Where Cargo keeps what it builds, if nobody says otherwise: scripts look for programs there.
pub(super) const TARGET: &str = "target";

/// Variables that name folders for what is built, Cargo's first, and the folder of each below the worktree's folder for builds.
pub(super) const BUILDS: &[(&str, &str)] =
    &[("CARGO_TARGET_DIR", "cargo"), ("GOCACHE", "go"), ("XDG_CACHE_HOME", "cache")];

/// Caches below the home that tools write while they read: commands may, too, and change nothing by it. The variable that
/// names one, if commands do not find it by themselves.
const CACHES: &[(&str, Option<&str>)] = &[
    (".cache/go-build", Some("GOCACHE")),
    (".gradle/caches", None),
    (".gradle/wrapper", None),
    (".m2/repository", None),
    (".m2/wrapper", None),
];

/// A cache of the user's that is shown, and the variable with its value by which commands find it.
pub(super) struct Cache {
    pub place: PathBuf,
    pub variable: Option<(&'static str, PathBuf)>,
}

/// Returns the caches that are there and may be shown. With the network, Cargo's registry is one: it downloads into it.
pub(super) fn caches(ours: &BTreeMap<String, String>, kept: &ProtectedPlaces, grants: &Grants) -> Vec<Cache> {
    let home = ours.get("HOME").map(Path::new);
    let below_home = CACHES.iter().filter_map(|(place, variable)| {
        let place = kept.resolve_visible(&home?.join(place))?;
        Some(Cache { variable: variable.map(|name| (name, place.clone())), place })
    });
    let cargo = folder(ours, &TOOLCHAINS[CARGO]).filter(|_| grants.net);
    let of_cargo = cargo.iter().flat_map(|folder| ["registry", "git"].map(|part| (folder, folder.join(part))));
    let of_cargo = of_cargo.filter_map(|(folder, place)| {
        let place = kept.resolve_visible(&place)?;
        Some(Cache { place, variable: Some((TOOLCHAINS[CARGO].variable, folder.clone())) })
    });
    below_home.chain(of_cargo).collect()
}

/// Returns the folders of programs and toolchains that a command may read, with links resolved.
pub(super) fn readable(ours: &BTreeMap<String, String>, kept: &ProtectedPlaces) -> Vec<PathBuf> {
    let toolchains = TOOLCHAINS.iter().flat_map(|toolchain| {
        let folder = folder(ours, toolchain);
        folder.into_iter().flat_map(|folder| toolchain.parts.iter().map(move |part| folder.join(part)))
    });
    let path = path::folders(ours);
    let around = path.iter().filter_map(|folder| runtime_folder(folder)).collect::<Vec<_>>();
    path.into_iter().chain(around).chain(toolchains).filter_map(|place| kept.resolve_visible(&place)).collect()
}

/// Returns the Python, Conda or Node environment around a folder of `PATH`: its programs do not run without it.
fn runtime_folder(programs: &Path) -> Option<PathBuf> {
    let parent = programs.parent().filter(|_| programs.file_name().is_some_and(|name| name == "bin"))?;
    let is_runtime = ["pyvenv.cfg", "conda-meta", "lib/node_modules"].iter().any(|marker| parent.join(marker).exists());
    is_runtime.then(|| parent.to_owned())
}

/// Returns the folder of the Python that an environment is made of.
pub(super) fn python_base(environment: &Path) -> Option<PathBuf> {
    let program =
        environment.join("bin/python").canonicalize().ok().filter(|_| environment.join("pyvenv.cfg").exists())?;
    Some(program.parent()?.parent()?.to_owned())
}

/// Returns the paths of Cargo's configuration, by both of its names: builds need it, and it may hold keys.
pub(super) fn cargo_configuration(ours: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let folder = folder(ours, &TOOLCHAINS[CARGO]);
    folder.iter().flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name))).collect()
}

/// Returns the configuration files of other tools that look for them in the home: each path, and the path of its copy
/// below the private home.
pub(super) fn configuration(ours: &BTreeMap<String, String>) -> Vec<(PathBuf, &'static str)> {
    let Some(home) = ours.get("HOME").map(Path::new) else { return Vec::new() };
    [(".npmrc", ".npmrc"), (".pip/pip.conf", "pip/pip.conf"), (".config/pip/pip.conf", "pip/pip.conf")]
        .map(|(from, to)| (home.join(from), to))
        .into()
}

fn folder(ours: &BTreeMap<String, String>, toolchain: &Toolchain) -> Option<PathBuf> {
    let named = ours.get(toolchain.variable).map(PathBuf::from);
    let folder = named.or_else(|| Some(Path::new(ours.get("HOME")?).join(toolchain.home)))?;
    folder.is_absolute().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_and_no_folder_of_the_model_is_passed_on() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let home = folder.path().canonicalize().expect("it is there");
        std::fs::create_dir_all(home.join(".cargo/registry")).expect("a folder can be made");
        let name = home.display().to_string();
        let path = format!("/usr/bin:.:bin:{name}:/usr/lib");
        let ours = [
            ("PATH", path.as_str()),
            ("HOME", &name),
            ("OPENAI_API_KEY", "k"),
            ("GITHUB_PAT", "k"),
            ("LD_PRELOAD", "x.so"),
            ("GOROOT", &name),
            ("LANG", "fr_FR.UTF-8"),
        ];
        let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let kept = ProtectedPlaces::new(Some(&home), []);
        let theirs = of(&ours, &kept, Path::new("/tmp/private"), &Grants::default());
        assert_eq!(theirs["PATH"], "/usr/bin:/usr/lib");
        assert_eq!((theirs["HOME"].as_str(), theirs["LANG"].as_str()), ("/tmp/private", "fr_FR.UTF-8"));
        assert!(["OPENAI_API_KEY", "GITHUB_PAT", "LD_PRELOAD"].iter().all(|name| !theirs.contains_key(*name)));
        assert_eq!(theirs["PYTHONDONTWRITEBYTECODE"], "1");
        let shown = readable(&ours, &kept);
        assert!(shown.contains(&home.join(".cargo/registry")));
        assert!(!shown.contains(&home.join(".cargo")) && !shown.contains(&home));
    }
}
