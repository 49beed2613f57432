//! Paths of files in a pack, with `/` between their parts.

use std::collections::BTreeSet;
use std::path::Path;

/// Returns a path below `root`, with `/` between its parts.
pub(crate) fn below(root: &Path, path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.strip_prefix(root).ok()?.iter().map(std::ffi::OsStr::to_str).collect();
    parts.map(|parts| parts.join("/"))
}

/// Returns the folder that a path stands in: `a` for `a/b`.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Tells whether a flow that has read these files can read a file that it shares with other flows: it stands beside modules
/// that were read, or in a folder of data beside them.
pub(crate) fn is_reached(path: &str, theirs: &[String], read: &BTreeSet<String>) -> bool {
    let place = folder(path);
    let has_modules = theirs.iter().any(|other| is_code(other) && folder(other) == place);
    let beside = if has_modules { place } else { folder(place) };
    read.iter().any(|other| is_code(other) && folder(other) == beside)
}

/// Tells whether a file is a module.
pub(crate) fn is_code(path: &str) -> bool {
    path.ends_with(".lua") || path.ends_with(".luau")
}

/// Returns the path that `relative` means when it stands in the file `from`, or nothing when it leaves the pack.
///
/// Both `./x` and `../x` are taken from the folder of `from`; no other form is relative.
pub(crate) fn join(from: &str, relative: &str) -> Option<String> {
    if relative.len() > 1000 || !(relative.starts_with("./") || relative.starts_with("../")) || relative.contains('\\')
    {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            part if part.contains('\0') => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_stays_in_its_pack() {
        assert_eq!(join("flows/a.lua", "./a/b").as_deref(), Some("flows/a/b"));
        assert_eq!(join("flows/a/b.lua", "../c").as_deref(), Some("flows/c"));
        assert_eq!(join("flows/a.lua", "../../etc/passwd"), None);
        assert_eq!(join("flows/a.lua", "/etc/passwd"), None);
        assert_eq!(join("flows/a.lua", "etc/passwd"), None);
    }
}
