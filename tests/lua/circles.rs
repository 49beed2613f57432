//! No file needs itself by way of others: each can be read with nothing in mind but what stands below it.
//!
//! A file needs those whose names it uses, whoever passes them on. What a file takes from that of a module around it
//! (`super::Store`) does not count: the two are one thing in several files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::structure::files;

type Path = Vec<String>;

/// What one file says of modules and names.
#[derive(Default)]
struct Source {
    file: String,
    children: BTreeSet<String>,
    /// What it imports or passes on, by the name that it has here.
    imports: BTreeMap<String, Path>,
    /// All paths in it, from the crate's root.
    paths: Vec<Path>,
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("it is a regular expression")
}

static COMMENTS: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*//.*$"));
static TEXTS: LazyLock<Regex> = LazyLock::new(|| regex(r#""(?:[^"\\\n]|\\.)*""#));
static USES: LazyLock<Regex> = LazyLock::new(|| regex(r"(?ms)^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);"));
static CHILDREN: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);"));
static PATHS: LazyLock<Regex> = LazyLock::new(|| regex(r"\w+(?:::\w+)+"));
/// Modules of tests: those that stand in a file, and those that are one.
static TESTS: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"{ONLY_FOR_TESTS}mod \w+ \{{(?s:.*?)^\}}")));
static FILES_OF_TESTS: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"{ONLY_FOR_TESTS}mod (\w+);")));
const ONLY_FOR_TESTS: &str = r"(?m)^#\[cfg\([^\n]*\btest\b[^\n]*\)\]\n(?:#\[[^\n]*\n)*(?:pub[^\n]* )?";

fn parts(path: &str) -> Path {
    path.split("::").map(str::to_owned).collect()
}

/// Returns the module that a file is: `host::git` of `src/host/git/mod.rs`.
fn module(file: &str) -> Path {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.trim_end_matches("mod").trim_end_matches("lib").trim_end_matches('/');
    path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Returns each path of a `use`, and the name that it has there.
fn expanded(tree: &str) -> Vec<(String, String)> {
    let tree = tree.trim();
    let Some((start, list)) = tree.strip_suffix('}').and_then(|tree| tree.split_once('{')) else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap_or(tree)));
        return vec![(path.to_owned(), name.to_owned())];
    };
    let mut all = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let of_part = expanded(&list[from..at]).into_iter().filter(|(path, _)| !path.is_empty());
                all.extend(of_part.map(|(path, name)| match path.as_str() {
                    "self" => {
                        let path = start.trim_end_matches("::");
                        (path.to_owned(), path.rsplit("::").next().unwrap_or(path).to_owned())
                    }
                    _ => (format!("{start}{path}"), name),
                }));
                from = at + 1;
            }
            _ => {}
        }
    }
    all
}

impl Source {
    fn new(file: &str, text: &str) -> Source {
        let code = COMMENTS.replace_all(text, "");
        let code = TEXTS.replace_all(&code, "\"\"");
        let code = TESTS.replace_all(&code, "");
        let mut source = Source { file: file.to_owned(), ..Source::default() };
        source.children.extend(CHILDREN.captures_iter(&code).map(|found| found[1].to_owned()));
        let this = module(file);
        for (path, name) in USES.captures_iter(&code).flat_map(|found| expanded(&found[1])) {
            let Some(path) = source.absolute(&this, &parts(&path)) else { continue };
            source.paths.push(path.clone());
            source.imports.insert(name, path);
        }
        for found in PATHS.find_iter(&USES.replace_all(&code, "")) {
            source.paths.extend(source.absolute(&this, &parts(found.as_str())));
        }
        source
    }

    /// Returns a path from the crate's root; nothing of another crate's.
    fn absolute(&self, this: &Path, path: &[String]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let from = match first.as_str() {
            "crate" => Path::new(),
            "self" => this.clone(),
            "super" => {
                let supers = path.iter().take_while(|part| *part == "super").count();
                let from = this.get(..this.len().checked_sub(supers)?)?;
                return Some([from, &path[supers..]].concat());
            }
            name => match self.imports.get(name) {
                Some(path) => path.clone(),
                None if self.children.contains(name) => [this.clone(), vec![name.to_owned()]].concat(),
                None => return None,
            },
        };
        Some([from.as_slice(), rest].concat())
    }
}

/// Returns the module in which what a path means was defined.
fn home(sources: &BTreeMap<Path, Source>, path: &[String], hops: usize) -> Option<Path> {
    let end = (0..=path.len()).rev().find(|end| sources.contains_key(&path[..*end]))?;
    let (module, rest) = path.split_at(end);
    let passed_on = rest.first().and_then(|name| sources[module].imports.get(name));
    match passed_on {
        Some(other) if hops > 0 => home(sources, &[other, &rest[1..]].concat(), hops - 1),
        _ => Some(module.to_vec()),
    }
}

/// Returns the files of the first circle that there is, each needing the next.
fn circle(files: &[(String, String)]) -> Option<Vec<String>> {
    let sources: BTreeMap<Path, Source> = files
        .iter()
        .filter(|(file, _)| file != "src/main.rs")
        .map(|(file, text)| (module(file), Source::new(file, text)))
        .collect();
    let mut needs: BTreeMap<&Path, BTreeSet<Path>> = BTreeMap::new();
    for (this, source) in &sources {
        let homes = source.paths.iter().filter_map(|path| home(&sources, path, 8));
        let others = homes.filter(|other| !this.starts_with(other));
        needs.insert(this, others.collect());
    }
    let mut done = BTreeSet::new();
    let found = sources.keys().find_map(|start| walk(start, &needs, &mut Vec::new(), &mut done))?;
    Some(found.iter().map(|module| sources[module].file.clone()).collect())
}

fn walk(
    at: &Path,
    needs: &BTreeMap<&Path, BTreeSet<Path>>,
    way: &mut Vec<Path>,
    done: &mut BTreeSet<Path>,
) -> Option<Vec<Path>> {
    if let Some(begin) = way.iter().position(|module| module == at) {
        return Some([&way[begin..], std::slice::from_ref(at)].concat());
    }
    if done.contains(at) {
        return None;
    }
    way.push(at.clone());
    let found = needs[at].iter().find_map(|next| walk(next, needs, way, done));
    way.pop();
    done.insert(at.clone());
    found
}

/// The files of the program, without those of its tests.
fn sources() -> Vec<(String, String)> {
    let all = files(&["src"], &["rs"]);
    let modules: BTreeSet<Path> = all
        .iter()
        .flat_map(|(file, text)| {
            FILES_OF_TESTS.captures_iter(text).map(|found| [module(file), vec![found[1].to_owned()]].concat())
        })
        .collect();
    let is_test = |file: &str| modules.iter().any(|tests| module(file).starts_with(tests));
    all.into_iter().filter(|(file, _)| !is_test(file)).collect()
}

#[test]
fn no_file_needs_itself_by_way_of_others() {
    let found = circle(&sources());
    assert!(found.is_none(), "these files need each other: {}", found.unwrap_or_default().join(" → "));
}

#[test]
fn circles_are_found_with_their_files() {
    let of = |files: &[(&str, &str)]| {
        let files: Vec<_> = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        circle(&files).map(|files| files.join(" "))
    };
    let room = ("src/a/mod.rs", "mod x;\nmod y;\npub use x::One;\nstruct Own;");
    // By way of who passes a name on, and by a path without an import.
    let found =
        of(&[room, ("src/a/x.rs", "fn one() { super::y::two(); }"), ("src/a/y.rs", "use crate::a::{One, Own};")]);
    assert_eq!(found.as_deref(), Some("src/a/x.rs src/a/y.rs src/a/x.rs"));
    // By way of a module that was imported.
    let found =
        of(&[room, ("src/a/x.rs", "use super::y;"), ("src/a/y.rs", "use crate::a;\nfn two() { a::x::one(); }")]);
    assert_eq!(found.as_deref(), Some("src/a/x.rs src/a/y.rs src/a/x.rs"));
    let tests =
        "use super::Own;\n// super::y\n#[cfg(test)]\nmod tests {\n    use super::super::y;\n    use super::y;\n}\n";
    assert_eq!(of(&[room, ("src/a/x.rs", tests), ("src/a/y.rs", "use super::{One, Own};")]), None);
}
