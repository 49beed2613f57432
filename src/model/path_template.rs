//! Path templates: from a key such as `{ slug = "checkout" }` to a path by `sessions/{slug}.yaml`, and back.
//!
//! Key values come from flows and from people, so they are limited to characters that are safe in every
//! file system and cannot lead out of a folder. A template must match a path in one way only, because
//! `nietz check FILE` and listings start from the path. The one exception is `{*}`: there the key is the
//! whole path, the user says where documents go, and no file is recognized by its path.

use crate::error::{Code, Failure, Result, nearest};
use crate::model::collection::{Collection, DocumentKey};
use crate::model::text::excerpt;

/// The longest value of a key, in bytes; with an extension it stays below the limit of file names.
const LONGEST: usize = 120;

/// The parsed path of a collection.
pub struct PathTemplate<'c> {
    collection: &'c str,
    /// Empty if the key is the whole path.
    segments: Vec<Vec<TemplatePiece<'c>>>,
}

/// The template that stands for any path, and the name of its key.
const ANY: &str = "{*}";
const FILE: &str = "file";

enum TemplatePiece<'c> {
    Text(&'c str),
    Placeholder(&'c str),
}

impl<'c> PathTemplate<'c> {
    /// Parses the path of a collection.
    ///
    /// # Errors
    ///
    /// `flow-invalid` if the path could leave the workspace, leads to reserved files or is ambiguous.
    pub fn of(collection: &'c Collection) -> Result<PathTemplate<'c>> {
        let refuse = |reason: String| {
            Failure::new(
                Code::FlowInvalid,
                format!("the path \"{}\" of the collection {} {reason}", excerpt(&collection.path), collection.name),
            )
            .hint("a path looks like `.project/sessions/{slug}.yaml`")
        };
        let mut segments = Vec::new();
        if collection.path == ANY {
            return Ok(PathTemplate { collection: &collection.name, segments });
        }
        for segment in collection.path.split('/') {
            if matches!(segment, "" | "." | "..") {
                return Err(refuse("is not a plain path below the workspace".to_owned()));
            }
            if is_reserved(segment) && !(segments.is_empty() && is_for_flows(&collection.path)) {
                return Err(refuse("leads to files of the repository or of nietz itself".to_owned()));
            }
            if segment.contains(['\\', ':', '\0']) || segment.contains(char::is_control) {
                return Err(refuse("has a character that does not belong into file names".to_owned()));
            }
            segments.push(pieces(segment).map_err(|reason| refuse(reason.to_owned()))?);
        }
        Ok(PathTemplate { collection: &collection.name, segments })
    }

    /// Returns the path of a key, relative to the workspace.
    ///
    /// # Errors
    ///
    /// `request-invalid` if the key lacks a field or has an unknown one, `path-refused` if a value is unsafe.
    pub fn fill(&self, key: &DocumentKey) -> Result<String> {
        let placeholders: Vec<&str> = self.placeholders().collect();
        if let Some(name) = key.keys().find(|name| !placeholders.contains(&name.as_str())) {
            let failure = Failure::new(
                Code::RequestInvalid,
                format!("the collection {} has no key \"{}\"", self.collection, excerpt(name)),
            );
            return Err(match nearest(name, placeholders.iter().copied()) {
                Some(near) => failure.hint(format!("did you mean \"{near}\"?")),
                None => failure.hint(format!("its keys are: {}", placeholders.join(", "))),
            });
        }
        if self.segments.is_empty() {
            return self.free_path(key);
        }
        let mut path = String::new();
        for segment in &self.segments {
            if !path.is_empty() {
                path.push('/');
            }
            for piece in segment {
                path.push_str(match piece {
                    TemplatePiece::Text(text) => text,
                    TemplatePiece::Placeholder(name) => self.value(key, name)?,
                });
            }
        }
        Ok(path)
    }

    /// Returns the path that a user gave, if it is a plain path below the workspace.
    fn free_path(&self, key: &DocumentKey) -> Result<String> {
        let path = key.get(FILE).map(String::as_str).unwrap_or_default();
        let path = path.strip_prefix("./").unwrap_or(path);
        let refuse = |why: &str| Failure::new(Code::PathRefused, format!("\"{}\" {why}", excerpt(path)));
        for segment in path.split('/') {
            if matches!(segment, "" | "." | "..") || segment.len() > 2 * LONGEST {
                return Err(refuse("is not a plain path below the workspace").hint("such as `out/decision.yaml`"));
            }
            if is_reserved(segment) {
                return Err(refuse("leads to files of the repository or of nietz itself"));
            }
            if segment.contains(['\\', ':']) || segment.contains(char::is_control) {
                return Err(refuse("has a character that does not belong into file names"));
            }
        }
        Ok(path.to_owned())
    }

    fn value<'k>(&self, key: &'k DocumentKey, name: &str) -> Result<&'k str> {
        let Some(value) = key.get(name) else {
            let message = format!("a document of the collection {} needs the key \"{name}\"", self.collection);
            return Err(Failure::new(Code::RequestInvalid, message));
        };
        match is_safe(value) {
            true => Ok(value),
            false => Err(Failure::new(
                Code::PathRefused,
                format!("\"{}\" cannot be the {name} of a file in the collection {}", excerpt(value), self.collection),
            )
            .hint(format!("use 1 to {LONGEST} of the characters A-Z a-z 0-9 . _ - and do not start with a point"))),
        }
    }

    /// Returns the key of a path, if the template matches the path.
    pub fn matches(&self, path: &str) -> Option<DocumentKey> {
        let mut key = DocumentKey::new();
        let mut names = path.split('/');
        if self.segments.is_empty() {
            return None;
        }
        for segment in &self.segments {
            let mut rest = names.next()?;
            for (index, piece) in segment.iter().enumerate() {
                match piece {
                    TemplatePiece::Text(text) => rest = rest.strip_prefix(text)?,
                    TemplatePiece::Placeholder(name) => {
                        let end = match segment.get(index + 1) {
                            Some(TemplatePiece::Text(text)) if index + 2 == segment.len() => {
                                rest.strip_suffix(text)?.len()
                            }
                            Some(TemplatePiece::Text(text)) => rest.find(text)?,
                            _ => rest.len(),
                        };
                        let value = rest.get(..end).filter(|value| is_safe(value))?;
                        if key.insert((*name).to_owned(), value.to_owned()).is_some_and(|other| other != value) {
                            return None;
                        }
                        rest = &rest[end..];
                    }
                }
            }
            if !rest.is_empty() {
                return None;
            }
        }
        names.next().is_none().then_some(key)
    }

    /// Returns the folder that contains all paths of this template; empty for the workspace itself.
    pub fn folder(&self) -> String {
        let fixed = self.segments.iter().take(self.segments.len().saturating_sub(1)).map_while(|segment| match segment
            .as_slice()
        {
            [TemplatePiece::Text(text)] => Some(*text),
            _ => None,
        });
        fixed.collect::<Vec<_>>().join("/")
    }

    /// Returns how many parts the template's paths have.
    pub fn depth(&self) -> usize {
        self.segments.len()
    }

    /// Returns the names of the placeholders, in their order.
    pub fn placeholders(&self) -> impl Iterator<Item = &'c str> {
        let any = self.segments.is_empty().then_some(FILE);
        any.into_iter().chain(self.segments.iter().flatten().filter_map(|piece| match piece {
            TemplatePiece::Placeholder(name) => Some(*name),
            TemplatePiece::Text(_) => None,
        }))
    }
}

/// Splits one part of a path into fixed text and placeholders.
fn pieces(segment: &str) -> std::result::Result<Vec<TemplatePiece<'_>>, &'static str> {
    let mut pieces = Vec::new();
    let mut rest = segment;
    while let Some(start) = rest.find('{') {
        let length = rest[start..].find('}').ok_or("has a `{` without its `}`")?;
        let name = &rest[start + 1..start + length];
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err("has a hole whose name is not made of letters, digits and _");
        }
        let text = &rest[..start];
        // Between two placeholders, only a character that no key can have shows where the first one ends.
        if matches!(pieces.last(), Some(TemplatePiece::Placeholder(_))) && text.chars().all(is_key_character) {
            return Err("has two holes that run into each other; put a `/` or another sign such as `@` between them");
        }
        if !text.is_empty() {
            pieces.push(TemplatePiece::Text(text));
        }
        pieces.push(TemplatePiece::Placeholder(name));
        rest = &rest[start + length + 1..];
    }
    if rest.contains('}') || pieces.iter().any(|piece| matches!(piece, TemplatePiece::Text(text) if text.contains('}')))
    {
        return Err("has a `}` without its `{`");
    }
    if !rest.is_empty() {
        pieces.push(TemplatePiece::Text(rest));
    }
    Ok(pieces)
}

/// Tells whether a path below the workspace leads to files of version control or of nietz itself.
pub fn is_of_others(path: &str) -> bool {
    let own = is_for_flows(path);
    path.split('/').enumerate().any(|(at, segment)| is_reserved(segment) && !(at == 0 && own))
}

/// Tells whether a folder or file belongs to version control or to nietz itself. Its contents can make other programs run
/// commands (hooks, filters, workflows), or be the record that a run is resumed from.
fn is_reserved(segment: &str) -> bool {
    let segment = segment.to_ascii_lowercase();
    segment.starts_with(".git") || matches!(segment.as_str(), ".hg" | ".svn" | ".jj" | ".nietz" | "nietz.yaml")
}

/// Tells whether flows may keep files at a path below `.nietz`: in a folder with a fixed name other than `runs` and
/// `index`, which nietz itself uses.
fn is_for_flows(path: &str) -> bool {
    let mut names = path.split('/');
    let own = (names.next(), names.next(), names.next());
    matches!(own, (Some(".nietz"), Some(folder), Some(_)) if !["runs", "index"].contains(&folder.to_ascii_lowercase().as_str()) && !folder.contains('{'))
}

fn is_key_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn is_safe(value: &str) -> bool {
    (1..=LONGEST).contains(&value.len()) && !value.starts_with('.') && value.chars().all(is_key_character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::collection::Format;

    fn collection(path: &str) -> Collection {
        Collection {
            name: "notes".to_owned(),
            path: path.to_owned(),
            format: Format::Yaml,
            schema: serde_json::Value::Bool(true),
            version: None,
            keys: DocumentKey::new(),
            index: Vec::new(),
            expects: Vec::new(),
            everywhere: false,
            shared: false,
        }
    }

    fn key(pairs: &[(&str, &str)]) -> DocumentKey {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn filled(path: &str, keys: &[(&str, &str)]) -> Result<String> {
        PathTemplate::of(&collection(path))?.fill(&key(keys))
    }

    #[test]
    fn a_key_becomes_a_path_and_back() {
        for (path, keys, expected) in [
            (".data/notes/{slug}.yaml", &[("slug", "a-1")][..], ".data/notes/a-1.yaml"),
            ("{group}/rows-{slug}.x.jsonl", &[("group", "g"), ("slug", "v1.2_b")], "g/rows-v1.2_b.x.jsonl"),
            ("{slug}@{day}.json", &[("slug", "a-b"), ("day", "2026-01-09")], "a-b@2026-01-09.json"),
            ("{slug}/{slug}.json", &[("slug", "a")], "a/a.json"),
            ("fixed.yaml", &[], "fixed.yaml"),
            (".nietz/votes/{slug}.jsonl", &[("slug", "a")], ".nietz/votes/a.jsonl"),
        ] {
            let collection = collection(path);
            let pattern = PathTemplate::of(&collection).unwrap();
            assert_eq!(pattern.fill(&key(keys)).unwrap(), expected);
            assert_eq!(pattern.matches(expected), Some(key(keys)), "{expected}");
        }
    }

    #[test]
    fn other_paths_do_not_match() {
        let collection = collection(".data/{slug}/{slug}.yaml");
        let pattern = PathTemplate::of(&collection).unwrap();
        for path in [".data/a/b.yaml", ".data/a", ".data/a/a.yml", ".data/a/a.yaml/b", "x/a/a.yaml", ".data/.a/.a.yaml"]
        {
            assert_eq!(pattern.matches(path), None, "{path}");
        }
        assert_eq!(pattern.folder(), ".data");
    }

    #[test]
    fn unsafe_keys_are_refused() {
        let long = "x".repeat(121);
        for value in ["", ".", "..", ".a", "a/b", "../a", "a\\b", "a b", "é", "a\0", "\u{1b}[2J", long.as_str()] {
            let failure = filled("d/{slug}.yaml", &[("slug", value)]).unwrap_err();
            assert_eq!(failure.code, Code::PathRefused, "{value}");
        }
    }

    #[test]
    fn a_user_may_say_any_plain_path() {
        let any = |path: &str| filled(ANY, &[(FILE, path)]);
        for (path, expected) in
            [("a.yaml", "a.yaml"), ("./out/Ünser Plan.json", "out/Ünser Plan.json"), (".x/y", ".x/y")]
        {
            assert_eq!(any(path).unwrap(), expected);
        }
        for path in [
            "",
            "/etc/passwd",
            "../a",
            "a/../b",
            "a//b",
            ".git/config",
            "a/.GIT/b",
            ".nietz/runs/r",
            "nietz.yaml",
            "a\\b",
            "c:a",
            "a\nb",
        ] {
            assert_eq!(any(path).unwrap_err().code, Code::PathRefused, "{path}");
        }
        let collection = collection(ANY);
        let pattern = PathTemplate::of(&collection).unwrap();
        assert_eq!((pattern.matches("a.yaml"), pattern.folder(), pattern.depth()), (None, String::new(), 0));
        assert_eq!(pattern.placeholders().collect::<Vec<_>>(), [FILE]);
    }

    #[test]
    fn wrong_keys_and_wrong_patterns_are_named() {
        assert_eq!(filled("{slug}.yaml", &[]).unwrap_err().code, Code::RequestInvalid);
        let failure = filled("{slug}.yaml", &[("slgu", "a")]).unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean \"slug\"?"));
        for path in [
            "/etc/{a}",
            "../{a}",
            "a/../{b}",
            "",
            "a//b",
            "a/{",
            "a}",
            "{}",
            "{a}{b}",
            "{a}-{b}",
            "C:\\a",
            "./a",
            ".git/config",
            "x/.GIT/{a}",
            ".nietz/runs/{a}",
            ".nietz/Runs/{a}",
            ".nietz/{a}/b",
            ".nietz/{a}",
            "a/.nietz/b/{a}",
        ] {
            assert_eq!(filled(path, &[("a", "x"), ("b", "y")]).unwrap_err().code, Code::FlowInvalid, "{path}");
        }
    }
}
