//! The list of `tests/mutations`, held to what it names: each mutation fits to its file, each promise has one, each test is there.
//! `.ci/long mutants` tries them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::lua::structure::files;

/// What the code does for a promise, and what takes it away.
#[derive(Default)]
struct Mutation {
    name: String,
    file: String,
    promise: String,
    old: Vec<String>,
    new: Vec<String>,
    tests: Vec<String>,
}

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn mutations() -> Vec<Mutation> {
    let (mut all, mut promise) = (Vec::<Mutation>::new(), String::new());
    for line in text("tests/mutations").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (mark, rest) = (&line[..1], line.get(2..).unwrap_or_default().to_owned());
        match (mark, all.last_mut()) {
            ("p", _) => promise = rest,
            ("=", _) => {
                let (name, file) = rest.split_once(' ').unwrap_or_else(|| panic!("`{line}` names no file"));
                let (name, file, promise) = (name.to_owned(), file.to_owned(), promise.clone());
                all.push(Mutation { name, file, promise, ..Mutation::default() });
            }
            ("-", Some(last)) => last.old.push(rest),
            ("+", Some(last)) => last.new.push(rest),
            ("t", Some(last)) => last.tests.push(rest),
            _ => panic!("tests/mutations: `{line}` begins with no known mark"),
        }
    }
    all
}

#[test]
fn each_mutation_fits_to_its_file() {
    let mut names = BTreeSet::new();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for Mutation { name, file, old, new, .. } in mutations() {
        assert!(names.insert(name.clone()), "there are two mutations {name}");
        let (old, new) = (old.join("\n"), new.join("\n"));
        let count = texts.entry(file.clone()).or_insert_with(|| text(&file)).matches(&old).count();
        assert!(count == 1 && old != new, "{name}: {file} has this {count} times, and once is needed:\n{old}");
    }
}

#[test]
fn each_promise_has_a_mutation() {
    let page = text("src/ARCHITECTURE.md");
    let leads = page.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    let leads: BTreeSet<&str> = leads.map(|(lead, _)| lead.trim_end_matches('.')).collect();
    let titles: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    let all = mutations();
    let promises: BTreeSet<&str> = all.iter().map(|mutation| mutation.promise.as_str()).collect();
    assert!(leads.len() > 20, "the promises are not found: {leads:?}");
    let without: Vec<_> = leads.difference(&promises).collect();
    assert!(without.is_empty(), "no mutation takes away what the code does for {without:?}");
    let unknown = promises.iter().find(|promise| !leads.contains(**promise) && !titles.contains(**promise));
    assert_eq!(unknown, None, "no promise of src/ARCHITECTURE.md, and none of its titles");
}

/// Each guard of the page has its tests: files of them, or one of them.
#[test]
fn the_tests_of_the_security_page_are_there() {
    let (page, cli) = (text("src/SECURITY.md"), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli"));
    let mut count = 0;
    for told in
        page.split("Test").skip(1).filter_map(|rest| rest.split_once(": ").filter(|(s, _)| matches!(*s, "" | "s")))
    {
        let names = told.1.split(['.', '\n']).take(2).collect::<String>();
        for name in names.split('`').skip(1).step_by(2) {
            count += 1;
            let (file, test) = name.split_once("::").unwrap_or((name, ""));
            let found = match file {
                "lua" | "fuzz" => text(&format!("tests/{file}/{test}.rs")),
                other if other.starts_with("src/") => continue,
                other => std::fs::read_to_string(cli.join(format!("{other}.rs"))).unwrap_or_default(),
            };
            let there = if matches!(file, "lua" | "fuzz") || test.is_empty() {
                "#[test]".to_owned()
            } else {
                format!("fn {test}(")
            };
            assert!(found.contains(&there), "src/SECURITY.md names {name}, which is not there");
        }
    }
    assert!(count > 20, "the tests are not found: {count}");
}

#[test]
fn each_test_that_is_to_fall_is_there() {
    let known: Vec<String> = files(&["src", "tests"], &["rs"]).into_iter().map(|(_, text)| text).collect();
    for Mutation { name, tests, .. } in mutations() {
        assert!(!tests.is_empty(), "{name} names no test");
        for test in tests {
            let function = format!("fn {}(", test.rsplit("::").next().unwrap_or_default());
            assert!(known.iter().any(|text| text.contains(&function)), "{name}: there is no test {test}");
        }
    }
}
