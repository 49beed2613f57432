//! Three migrations of Rust crates without dependencies of others.

use super::project::{Files, GROUPS, Kind, Language, Migration, Sketch, check, filled};

const IN: Language = Language::Rust;

const MANIFEST: &str = "[package]\nname = \"office\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";

/// The files of `modules` below a folder, with the file that names them.
fn folder(sketch: &Sketch, group: &str, below: &str, top: &str, of: impl Fn(&Kind) -> &'static str) -> Files {
    let mut files = Files::new();
    let mut named = format!("//! The part {group} of a shop's back office.\n\n");
    for (_, name, kind) in sketch.modules().filter(|(of_group, ..)| *of_group == group) {
        named += &format!("pub mod {name};\n");
        files.insert(format!("{below}/{name}.rs"), filled(of(kind), group, name));
    }
    files.insert(format!("{below}/{top}"), named);
    files
}

/// What is the same in all: tests, and what says how they are run.
fn common(sketch: &Sketch) -> Files {
    let mut files = Files::from([
        ("README.md".to_owned(), "# office\n\n`cargo test` tests it.\n".to_owned()),
        (".gitignore".to_owned(), "target\nCargo.lock\n".to_owned()),
    ]);
    for (group, names) in GROUPS {
        let tests = sketch.texts(Some(group), |kind| kind.test);
        let head = format!("use office::{group}::{{{}}};\n", names.join(", "));
        files.insert(format!("tests/{group}.rs"), format!("{head}{tests}"));
    }
    files
}

fn hidden(sketch: &Sketch) -> String {
    let imports: String =
        GROUPS.iter().map(|(group, names)| format!("use office::{group}::{{{}}};\n", names.join(", "))).collect();
    format!("{}{imports}{}", sketch.hidden, sketch.texts(None, |kind| kind.hidden))
}

/// Puts a project together whose modules stay where they are.
fn assemble(sketch: &Sketch) -> Migration {
    let mut before = common(sketch);
    let named: String = GROUPS.iter().map(|(group, _)| format!("pub mod {group};\n")).collect();
    before.insert("Cargo.toml".to_owned(), MANIFEST.to_owned());
    before.insert("check.sh".to_owned(), check("src", sketch.pattern));
    before.insert("src/error.rs".to_owned(), ERROR.to_owned());
    before.insert("src/lib.rs".to_owned(), format!("//! A shop's back office.\n\npub mod error;\n{named}"));
    let mut after = before.clone();
    for (group, _) in GROUPS {
        before.extend(folder(sketch, group, &format!("src/{group}"), "mod.rs", |kind| kind.old));
        after.extend(folder(sketch, group, &format!("src/{group}"), "mod.rs", |kind| kind.new));
    }
    Migration {
        name: sketch.name,
        language: IN,
        goal: sketch.goal,
        before,
        after,
        validate: vec!["cargo test --offline".to_owned(), "sh check.sh".to_owned()],
        parts: sketch
            .parts(|group| vec![format!("src/{group}/")], |group| format!("cargo test --offline --test {group}")),
        hidden: ("tests/hidden.rs", hidden(sketch), "cargo test --offline -q"),
    }
}

/// Puts the project together whose parts become crates of a workspace. The crates are there, and empty.
fn split(sketch: &Sketch) -> Migration {
    let mut before = common(sketch);
    let mut manifest = format!("{MANIFEST}\n[workspace]\nmembers = [\"crates/*\"]\n\n[dependencies]\n");
    let mut check = "#!/bin/sh\n# Exits with 0 when all parts are crates, or those that are named.\n".to_owned();
    check += "for part in ${*:-billing mail reports storage}; do\n  [ ! -e src/$part ] || { echo \"src/$part is there\"; exit 1; }\n  cargo build --offline -p $part || exit 1\ndone\n";
    let [mut old_library, mut new_library] =
        ["//! A shop's back office.\n", "//! A shop's back office.\n"].map(str::to_owned);
    for (group, _) in GROUPS {
        manifest += &format!("{group} = {{ path = \"crates/{group}\" }}\n");
        let own = format!("[package]\nname = \"{group}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        before.insert(format!("crates/{group}/Cargo.toml"), own);
        let comment = format!("\n// The part {group},\n// which others of the office use.\n");
        old_library += &format!("{comment}pub mod {group};\n");
        new_library += &format!("{comment}pub use ::{group};\n");
    }
    before.insert("Cargo.toml".to_owned(), manifest);
    before.insert("check.sh".to_owned(), check);
    let mut after = before.clone();
    before.insert("src/lib.rs".to_owned(), old_library);
    after.insert("src/lib.rs".to_owned(), new_library);
    for (group, _) in GROUPS {
        before.insert(format!("crates/{group}/src/lib.rs"), "//! Nothing yet.\n".to_owned());
        before.extend(folder(sketch, group, &format!("src/{group}"), "mod.rs", |kind| kind.old));
        after.extend(folder(sketch, group, &format!("crates/{group}/src"), "lib.rs", |kind| kind.new));
    }
    let below = |group: &str| vec![format!("src/{group}/"), format!("crates/{group}/")];
    let mut parts = sketch.parts(below, |group| format!("cargo test --offline --test {group}"));
    for (part, (group, _)) in parts.iter_mut().zip(GROUPS) {
        part.edits.push(["src/lib.rs".to_owned(), format!("pub mod {group};"), format!("pub use ::{group};")]);
    }
    Migration {
        name: sketch.name,
        language: IN,
        goal: sketch.goal,
        before,
        after,
        validate: vec!["cargo test --offline".to_owned(), "sh check.sh".to_owned()],
        parts,
        hidden: ("tests/hidden.rs", hidden(sketch), "cargo test --offline -q"),
    }
}

pub(super) fn all() -> Vec<Migration> {
    vec![assemble(&ERRORS), assemble(&ORDER), split(&CRATES)]
}

/// The errors that the parts are to have; it is there from the beginning, and nobody uses it.
const ERROR: &str = "\
//! What can go wrong in the office.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    NotANumber(String),
    TooLarge(u32),
    Missing(String),
    Empty,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotANumber(text) => write!(f, \"not a number: {text}\"),
            Error::TooLarge(value) => write!(f, \"too large: {value}\"),
            Error::Missing(key) => write!(f, \"nothing is called {key}\"),
            Error::Empty => write!(f, \"nothing to add up\"),
        }
    }
}

impl std::error::Error for Error {}
";

const ERRORS: Sketch = Sketch {
    name: "String errors to an enum",
    goal: "return crate::error::Error in the place of String wherever something fails",
    pattern: ", String>",
    hidden: "use office::error::Error;\n",
    kinds: [
        Kind {
            old: r#"//! NAME: numbers in texts.

/// Reads a number of up to two digits.
pub fn number(text: &str) -> Result<u32, String> {
    let value = text.trim().parse::<u32>().map_err(|_| format!("not a number: {text}"))?;
    if value > 99 {
        return Err(format!("too large: {value}"));
    }
    Ok(value)
}
"#,
            new: r#"//! NAME: numbers in texts.

use crate::error::Error;

/// Reads a number of up to two digits.
pub fn number(text: &str) -> Result<u32, Error> {
    let value = text.trim().parse::<u32>().map_err(|_| Error::NotANumber(text.to_owned()))?;
    if value > 99 {
        return Err(Error::TooLarge(value));
    }
    Ok(value)
}
"#,
            test: r#"
#[test]
fn numbers_of_NAME() {
    assert_eq!(NAME::number(" 7 ").unwrap(), 7);
    assert_eq!(NAME::number("x").unwrap_err().to_string(), "not a number: x");
}
"#,
            hidden: r#"
#[test]
fn numbers_of_NAME() {
    assert_eq!(NAME::number("100"), Err(Error::TooLarge(100)));
    assert_eq!(NAME::number("-1"), Err(Error::NotANumber("-1".to_owned())));
}
"#,
        },
        Kind {
            old: r#"//! NAME: what is called how.

/// Finds a value by its name.
pub fn find(key: &str, table: &[(&str, u32)]) -> Result<u32, String> {
    let found = table.iter().find(|(name, _)| *name == key);
    found.map(|(_, value)| *value).ok_or_else(|| format!("nothing is called {key}"))
}
"#,
            new: r#"//! NAME: what is called how.

use crate::error::Error;

/// Finds a value by its name.
pub fn find(key: &str, table: &[(&str, u32)]) -> Result<u32, Error> {
    let found = table.iter().find(|(name, _)| *name == key);
    found.map(|(_, value)| *value).ok_or_else(|| Error::Missing(key.to_owned()))
}
"#,
            test: r#"
#[test]
fn names_of_NAME() {
    assert_eq!(NAME::find("b", &[("a", 1), ("b", 2)]).unwrap(), 2);
    assert_eq!(NAME::find("c", &[]).unwrap_err().to_string(), "nothing is called c");
}
"#,
            hidden: r#"
#[test]
fn names_of_NAME() {
    assert_eq!(NAME::find("c", &[("a", 1)]), Err(Error::Missing("c".to_owned())));
}
"#,
        },
        Kind {
            old: r#"//! NAME: sums.

/// Adds up numbers in texts.
pub fn sum(texts: &[&str]) -> Result<u32, String> {
    if texts.is_empty() {
        return Err("nothing to add up".to_owned());
    }
    texts.iter().map(|text| text.parse::<u32>().map_err(|_| format!("not a number: {text}"))).sum()
}
"#,
            new: r#"//! NAME: sums.

use crate::error::Error;

/// Adds up numbers in texts.
pub fn sum(texts: &[&str]) -> Result<u32, Error> {
    if texts.is_empty() {
        return Err(Error::Empty);
    }
    texts.iter().map(|text| text.parse::<u32>().map_err(|_| Error::NotANumber((*text).to_owned()))).sum()
}
"#,
            test: r#"
#[test]
fn sums_of_NAME() {
    assert_eq!(NAME::sum(&["1", "2"]).unwrap(), 3);
    assert_eq!(NAME::sum(&[]).unwrap_err().to_string(), "nothing to add up");
}
"#,
            hidden: r#"
#[test]
fn sums_of_NAME() {
    let failed: Box<dyn std::error::Error> = NAME::sum(&["1", "x"]).unwrap_err().into();
    assert_eq!(failed.downcast_ref::<Error>(), Some(&Error::NotANumber("x".to_owned())));
    assert_eq!(NAME::sum(&[]), Err(Error::Empty));
}
"#,
        },
    ],
};

const ORDER: Sketch = Sketch {
    name: "HashMap to BTreeMap",
    goal: "keep an order: use BTreeMap in the place of HashMap, and BTreeSet in the place of HashSet",
    pattern: "Hash(Map|Set)",
    hidden: "",
    kinds: [
        Kind {
            old: r#"//! NAME: how often each word is said.

use std::collections::HashMap;

pub fn counts(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}
"#,
            new: r#"//! NAME: how often each word is said.

use std::collections::BTreeMap;

pub fn counts(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}
"#,
            test: r#"
#[test]
fn counts_of_NAME() {
    assert_eq!(NAME::counts("a b a")["a"], 2);
}
"#,
            hidden: r#"
#[test]
fn counts_of_NAME() {
    let counts = NAME::counts("z a z m");
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["a", "m", "z"]);
    assert_eq!(counts.last_key_value(), Some((&"z".to_owned(), &2)));
}
"#,
        },
        Kind {
            old: r#"//! NAME: words by their first letters.

use std::collections::{HashMap, HashSet};

pub fn initials<'a>(words: &[&'a str]) -> HashMap<char, HashSet<&'a str>> {
    let mut initials: HashMap<char, HashSet<&str>> = HashMap::with_capacity(words.len());
    for word in words {
        if let Some(first) = word.chars().next() {
            initials.entry(first).or_default().insert(word);
        }
    }
    initials
}
"#,
            new: r#"//! NAME: words by their first letters.

use std::collections::{BTreeMap, BTreeSet};

pub fn initials<'a>(words: &[&'a str]) -> BTreeMap<char, BTreeSet<&'a str>> {
    let mut initials: BTreeMap<char, BTreeSet<&str>> = BTreeMap::new();
    for word in words {
        if let Some(first) = word.chars().next() {
            initials.entry(first).or_default().insert(word);
        }
    }
    initials
}
"#,
            test: r#"
#[test]
fn initials_of_NAME() {
    assert_eq!(NAME::initials(&["ab", "ac", "b"])[&'a'].len(), 2);
}
"#,
            hidden: r##"
#[test]
fn initials_of_NAME() {
    let initials = NAME::initials(&["ba", "", "ac", "ab"]);
    assert_eq!(format!("{initials:?}"), r#"{'a': {"ab", "ac"}, 'b': {"ba"}}"#);
}
"##,
        },
        Kind {
            old: r#"//! NAME: what is there once.

use std::collections::HashSet;

pub fn distinct(numbers: &[u32]) -> usize {
    numbers.iter().collect::<HashSet<_>>().len()
}

pub fn line(numbers: &[u32]) -> String {
    let mut all: Vec<u32> = numbers.iter().copied().collect::<HashSet<u32>>().into_iter().collect();
    all.sort_unstable();
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
"#,
            new: r#"//! NAME: what is there once.

use std::collections::BTreeSet;

pub fn distinct(numbers: &[u32]) -> usize {
    numbers.iter().collect::<BTreeSet<_>>().len()
}

pub fn line(numbers: &[u32]) -> String {
    numbers.iter().collect::<BTreeSet<_>>().into_iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
"#,
            test: r#"
#[test]
fn what_is_once_in_NAME() {
    assert_eq!(NAME::distinct(&[1, 2, 1]), 2);
}
"#,
            hidden: r#"
#[test]
fn what_is_once_in_NAME() {
    assert_eq!(NAME::line(&[10, 9, 10, 2]), "2 9 10");
    assert_eq!(NAME::line(&[]), "");
}
"#,
        },
    ],
};

/// Modules that stay as they are, and move.
const fn moved(text: &'static str, test: &'static str, hidden: &'static str) -> Kind {
    Kind { old: text, new: text, test, hidden }
}

const CRATES: Sketch = Sketch {
    name: "one crate to a workspace",
    goal: "move the parts billing, mail, reports and storage into the crates of their names, and re-export them",
    pattern: "",
    hidden: "",
    kinds: [
        moved(
            "//! NAME: sums.\n\n/// Adds up.\npub fn sum(values: &[i64]) -> i64 {\n    values.iter().sum()\n}\n",
            "\n#[test]\nfn sums_of_NAME() {\n    assert_eq!(NAME::sum(&[1, 2]), 3);\n}\n",
            "\n#[test]\nfn sums_of_NAME() {\n    assert_eq!(::GROUP::NAME::sum(&[-1, 1]), NAME::sum(&[]));\n}\n",
        ),
        moved(
            "//! NAME: what is shortened.\n\n/// The first letters, and how many are left out.\npub fn shortened(text: &str, most: usize) -> String {\n    let left = text.chars().count().saturating_sub(most);\n    let first: String = text.chars().take(most).collect();\n    if left > 0 { format!(\"{first}+{left}\") } else { first }\n}\n",
            "\n#[test]\nfn what_NAME_shortens() {\n    assert_eq!(NAME::shortened(\"abc\", 2), \"ab+1\");\n}\n",
            "\n#[test]\nfn what_NAME_shortens() {\n    assert_eq!(::GROUP::NAME::shortened(\"éé\", 2), \"éé\");\n}\n",
        ),
        moved(
            "//! NAME: a stack.\n\nuse super::SECOND;\n\n/// Numbers, last in first out.\n#[derive(Debug, Default)]\npub struct Stack(Vec<u32>);\n\nimpl Stack {\n    pub fn push(&mut self, value: u32) -> &mut Self {\n        self.0.push(value);\n        self\n    }\n\n    pub fn pop(&mut self) -> Option<u32> {\n        self.0.pop()\n    }\n\n    /// What it shows of itself.\n    pub fn label(&self) -> String {\n        SECOND::shortened(&format!(\"{:?}\", self.0), 8)\n    }\n}\n",
            "\n#[test]\nfn stack_of_NAME() {\n    assert_eq!(NAME::Stack::default().push(1).push(2).pop(), Some(2));\n}\n",
            "\n#[test]\nfn stack_of_NAME() {\n    assert_eq!(::GROUP::NAME::Stack::default().push(1).push(2).label(), \"[1, 2]\");\n}\n",
        ),
    ],
};
