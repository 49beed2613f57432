//! Which files are checked, and what `require` means in them: as `src/lua/modules.rs` resolves it.

use std::fs;
use std::path::Path;

use walkdir::WalkDir;

use crate::samples::{self, Source};

/// Folders whose Lua is meant to be right: what `tests/lua/hostile` has is not, and what `tests/journals` has stays as it was.
const FOLDERS: &[&str] = &["flows", "src", "tests/api", "tests/lua/flows", "tests/support/flows"];

/// Lua that is no flow's: it runs before there are modules, with what only the host has.
const OF_THE_HOST: &[&str] = &[
    "src/lua/bridge.luau",
    "src/lua/api/documents.luau",
    "src/lua/api/git.luau",
    "src/lua/api/llm.luau",
    "src/lua/api/os.luau",
    "src/lua/api/random.luau",
];

/// Returns everything that is checked, in the order of the names.
pub fn sources(root: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    let folders = FOLDERS.iter().flat_map(|folder| WalkDir::new(root.join(folder)).sort_by_file_name());
    for entry in folders {
        let entry = entry.expect("a folder of the tree can be listed");
        let path = entry.path().strip_prefix(root).expect("it is below").to_str().expect("names are UTF-8").to_owned();
        if !(path.ends_with(".lua") || path.ends_with(".luau")) || OF_THE_HOST.contains(&path.as_str()) {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a file of the tree can be read");
        if path.ends_with(".d.luau") {
            sources.extend(samples::examples(&path, &text));
        }
        let requires_from = if path.starts_with("tests/api/") { "script".to_owned() } else { path.clone() };
        sources.push(Source::whole(path, requires_from, text));
    }
    for page in ["README.md", "src/docs/flows.md"] {
        let text = fs::read_to_string(root.join(page)).expect("the page can be read");
        sources.extend(samples::fenced(page, &text));
    }
    sources
}

/// Returns the names that a required path may have, the likeliest first.
pub fn candidates(from: &str, path: &str) -> Vec<String> {
    if let Some(module) = path.strip_prefix('@') {
        let plain = module.strip_prefix("nietz/").unwrap_or(module);
        return vec![format!("src/lua/api/{plain}.d.luau")];
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            // An example of a flow has the folder of its name beside it as `flow`.
            "NAME" => parts.push("flow"),
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let plain = parts.join("/");
    vec![format!("{plain}.lua"), format!("{plain}.luau"), plain]
}
