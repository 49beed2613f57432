//! What was found in council and brainstorm, and the tests that keep it (`tests/found.md`).

use std::collections::BTreeSet;
use std::path::Path;

/// The list tells of no test that is gone: one that was renamed is renamed there, too.
#[test]
fn every_test_that_found_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(root.join("tests/found.md")).expect("the list");
    let rows = list.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what"));
    let mut named = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, tests, why] = cells[..] else { panic!("three cells: {row}") };
        assert!(!tests.is_empty() || !why.is_empty(), "a test, or why there is none: {row}");
        named.extend(tests.split(", ").filter(|name| !name.is_empty()).map(|name| name.trim_matches('`').to_owned()));
    }
    assert!(named.len() > 70, "{}", named.len());
    let gone: Vec<&String> = named
        .iter()
        .filter(|name| {
            let (file, function) = name.rsplit_once("::").expect("a file and a function");
            let path = match file.strip_suffix(".rs") {
                Some(_) => root.join(file),
                None => root.join("tests").join(file.replace("::", "/")).with_extension("rs"),
            };
            let source = std::fs::read_to_string(path).unwrap_or_default();
            !source.contains(&format!("fn {function}("))
        })
        .collect();
    assert!(gone.is_empty(), "{gone:#?}");
}
