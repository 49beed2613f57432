//! Resolves paths, and finds the folders in which programs are looked for. Only absolute folders count: a relative one
//! may hold programs of whoever wrote the files in the current folder, such as a stranger's checkout or a model's worktree.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The folders in which programs are looked for if there is no `PATH`.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns a path with the links of its existing part resolved. A missing part with `..` stays as it is.
pub(crate) fn resolved(place: &Path) -> PathBuf {
    if let Ok(place) = place.canonicalize() {
        return place;
    }
    match (place.parent(), place.components().next_back()) {
        (Some(above), Some(Component::Normal(name))) => resolved(above).join(name),
        _ => place.to_owned(),
    }
}

/// Returns the folders in which programs are looked for.
pub(crate) fn folders(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    std::env::split_paths(&search_path(environment)).collect()
}

/// Returns the same folders as a value for `PATH`.
pub(crate) fn search_path(environment: &BTreeMap<String, String>) -> String {
    absolute_folders(environment.get("PATH").map_or("", String::as_str))
}

/// Returns the absolute folders of a `PATH`, or the usual folders if none is left. An empty entry would be the current
/// folder, so it is left out, too.
pub(crate) fn absolute_folders(path: &str) -> String {
    let folders: Vec<&str> = path.split(':').filter(|folder| Path::new(folder).is_absolute()).collect();
    if folders.is_empty() { USUAL.to_owned() } else { folders.join(":") }
}

/// Returns those of these folders that are `root` or lie below it, with links resolved. They need not exist yet.
pub(crate) fn below(root: &Path, folders: &[PathBuf]) -> Vec<PathBuf> {
    folders.iter().map(|folder| resolved(folder)).filter(|folder| folder.starts_with(root)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_is_looked_for_where_one_happens_to_be() {
        for (path, left) in [
            ("/a:.:b::/c:", "/a:/c"),
            (":/a", "/a"),
            ("./x:../y:~/z", USUAL),
            ("", USUAL),
            (".", USUAL),
            ("/a/../b", "/a/../b"),
        ] {
            assert_eq!(absolute_folders(path), left, "{path}");
        }
        assert_eq!(folders(&BTreeMap::new()), ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    }
}
