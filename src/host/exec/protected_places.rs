//! Decides which of the user's places a command may read. Places are compared with links resolved, because a name alone
//! does not say where it leads.

use std::path::{Path, PathBuf};

use crate::host::path::resolved;

/// Places below the home that are never shown: keys, and files of other programs.
const SECRET: &[&str] = &[
    ".aws",
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/containers",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/hub",
    ".config/nietz",
    ".config/op",
    ".config/pip",
    ".config/rclone",
    ".docker",
    ".gem/credentials",
    ".git-credentials",
    ".gitconfig",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".local/share/keyrings",
    ".local/share/nietz",
    ".local/state/nietz",
    ".m2/settings.xml",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d",
    ".yarnrc.yml",
];

/// System folders of which `PATH` or a toolchain's variable makes no part visible. The sandbox shows some parts anyway.
const SYSTEM: &[&str] = &["/boot", "/dev", "/etc", "/proc", "/run", "/sys"];

/// The places that are kept from commands, with links resolved.
pub(super) struct ProtectedPlaces(Vec<PathBuf>);

impl ProtectedPlaces {
    /// `own` are places of the user and of nietz: a folder that contains one of them is not shown.
    pub(super) fn new<'a>(home: Option<&Path>, own: impl IntoIterator<Item = &'a Path>) -> ProtectedPlaces {
        let mut kept: Vec<PathBuf> = own.into_iter().map(resolved).collect();
        for home in home.into_iter().map(Path::to_owned).chain(crate::host::user::home()) {
            kept.push(resolved(&home));
            kept.extend(SECRET.iter().map(|place| resolved(&home.join(place))));
        }
        kept.sort();
        kept.dedup();
        ProtectedPlaces(kept)
    }

    /// Returns the resolved path of a place, if it may be shown with everything below it.
    pub(super) fn resolve_visible(&self, place: &Path) -> Option<PathBuf> {
        if !place.is_absolute() {
            return None;
        }
        let place = place.canonicalize().ok()?;
        // A path that is not UTF-8 cannot be passed to the helper.
        place.to_str()?;
        let above = self.0.iter().any(|kept| kept.starts_with(&place));
        let system = SYSTEM.iter().any(|system| place.starts_with(system));
        (!above && !system && !self.is_secret(&place) && place.parent().is_some()).then_some(place)
    }

    /// Returns whether a place is one of [`SECRET`] or below one. Places below the other protected folders, such as the
    /// home, may be shown.
    fn is_secret(&self, place: &Path) -> bool {
        let secret = |kept: &PathBuf| SECRET.iter().any(|secret| kept.ends_with(secret));
        self.0.iter().any(|kept| secret(kept) && place.starts_with(kept))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::ProtectedPlaces;

    #[test]
    fn what_would_show_the_home_or_a_key_is_not_shown_whatever_it_is_called() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let top = folder.path().canonicalize().expect("it is there");
        let home = top.join("home");
        for place in [".cargo/bin", ".cargo/credentials.toml", ".ssh/bin", "sub", ".config/gh", ".local/bin"] {
            fs::create_dir_all(home.join(place)).expect("a folder can be made");
        }
        symlink(&home, top.join("link")).expect("a link can be made");
        symlink(home.join(".ssh"), top.join("keys")).expect("a link can be made");
        let kept = ProtectedPlaces::new(Some(&home), []);
        for place in [
            "home",
            "home/sub/..",
            "link",
            "link/.",
            ".",
            "home/.ssh",
            "home/.ssh/bin",
            "keys",
            "keys/bin",
            "home/.config",
            "home/.cargo",
            "absent",
        ] {
            assert_eq!(kept.resolve_visible(&top.join(place)), None, "{place}");
        }
        for place in ["/", "/usr/..", "/etc", "/proc/self", "/dev", "relative"] {
            assert_eq!(kept.resolve_visible(place.as_ref()), None, "{place}");
        }
        for place in ["home/.cargo/bin", "home/sub", "home/.local/bin", "link/.local/bin"] {
            let shown = home.join(place.split_once('/').expect("it is below").1);
            assert_eq!(kept.resolve_visible(&top.join(place)), Some(shown), "{place}");
        }
        assert!(kept.resolve_visible("/usr/bin".as_ref()).is_some());
    }
}
