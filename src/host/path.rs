//! Where a path leads, and in which folders programs are looked for: whole paths alone. One that is not is a folder of
//! whoever wrote the files in the current folder: a stranger's checkout, or a worktree of a model.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Where programs are looked for without a `PATH`.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns where a place is; as far as it is there, and without `..` behind that.
pub fn resolved(place: &Path) -> PathBuf {
    if let Ok(place) = place.canonicalize() {
        return place;
    }
    match (place.parent(), place.components().next_back()) {
        (Some(above), Some(Component::Normal(name))) => resolved(above).join(name),
        _ => place.to_owned(),
    }
}

/// Returns the folders in which programs are looked for.
pub fn folders(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    std::env::split_paths(&search_path(environment)).collect()
}

/// Returns the same as the value of `PATH`.
pub fn search_path(environment: &BTreeMap<String, String>) -> String {
    absolute_folders(environment.get("PATH").map_or("", String::as_str))
}

/// Returns the folders of a `PATH` that are whole paths. An empty entry is the current folder; where nothing is left, it is
/// the usual folders.
pub fn absolute_folders(path: &str) -> String {
    let folders: Vec<&str> = path.split(':').filter(|folder| Path::new(folder).is_absolute()).collect();
    if folders.is_empty() { USUAL.to_owned() } else { folders.join(":") }
}

/// Returns which of these folders are below another one or are it, as the system resolves them, there or not yet.
pub fn below(root: &Path, folders: &[PathBuf]) -> Vec<PathBuf> {
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
