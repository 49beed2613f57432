//! The bundled flows, personas and quotes. They are packed into the binary, so that it runs anywhere.

use include_dir::{Dir, include_dir};

static FLOWS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/flows");
static PERSONAS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/personas");
static QUOTES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/quotes");

/// Returns the bytes of a bundled file: `flows/hello.lua`.
pub fn read(path: &str) -> Option<&'static [u8]> {
    let (top, rest) = path.split_once('/')?;
    file(folder(top)?, rest)
}

/// Returns the bytes of a file. Compares paths as texts: `Dir::get_file` splits each, which costs 3 % of a run's start.
fn file(dir: &'static Dir<'static>, path: &str) -> Option<&'static [u8]> {
    let found = dir.files().find(|file| file.path().as_os_str() == path).map(include_dir::File::contents);
    let below = |dir: &&Dir<'_>| {
        path.strip_prefix(dir.path().to_str().unwrap_or(path)).is_some_and(|rest| rest.starts_with('/'))
    };
    found.or_else(|| file(dir.dirs().find(below)?, path))
}

/// Returns the paths of all bundled files in `flows`, `personas` or `quotes`, sorted.
pub fn list(top: &str) -> Vec<String> {
    fn walk(dir: &Dir<'_>, top: &str, out: &mut Vec<String>) {
        out.extend(dir.files().filter_map(|file| Some(format!("{top}/{}", file.path().to_str()?))));
        dir.dirs().for_each(|dir| walk(dir, top, out));
    }
    let mut out = Vec::new();
    if let Some(dir) = folder(top) {
        walk(dir, top, &mut out);
    }
    out.sort();
    out
}

fn folder(top: &str) -> Option<&'static Dir<'static>> {
    match top {
        "flows" => Some(&FLOWS),
        "personas" => Some(&PERSONAS),
        "quotes" => Some(&QUOTES),
        _ => None,
    }
}
