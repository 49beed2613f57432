//! All Lua of the tree is Luau, and so are the samples of its pages: what does not parse is of no use to whoever copies it,
//! runs it or reads it in an editor.

use nietz::lua::limits::FlowLimits;
use nietz::lua::vm::Vm;

use crate::lua::structure::files;
use crate::support::env::Env;

/// A sample of a page: where it stands, its language, and its text without what it is indented by.
struct Sample {
    place: String,
    language: String,
    text: String,
}

/// Returns what stands between fences in a page.
fn samples(page: &str, markdown: &str) -> Vec<Sample> {
    let mut found: Vec<Sample> = Vec::new();
    let mut open: Option<usize> = None;
    for (index, line) in markdown.lines().enumerate() {
        match (open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(line.len() - line.trim_start().len());
                let place = format!("{page}:{}", index + 1);
                found.push(Sample { place, language: language.to_owned(), text: String::new() });
            }
            (Some(_), Some(_)) => open = None,
            (Some(indent), None) => {
                let sample = found.last_mut().expect("one is open");
                sample.text.push_str(line.get(indent..).unwrap_or_default());
                sample.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert_eq!(open, None, "{page} has a fence that does not end");
    found
}

/// Returns the samples of all pages.
fn all_samples() -> Vec<Sample> {
    let mut pages = files(&["src", "flows"], &["md"]);
    pages.push(("README.md".to_owned(), include_str!("../../README.md").to_owned()));
    // What models read is no page.
    let pages = pages.iter().filter(|(name, _)| !name.contains("/prompts/"));
    pages.flat_map(|(name, text)| samples(name, text)).collect()
}

fn compile(name: &str, source: &str) {
    let compiled = Vm::new(FlowLimits::default()).and_then(|vm| vm.compile(name, source).map(|_| ()));
    compiled.unwrap_or_else(|failure| panic!("{name}: {failure:#?}"));
}

#[test]
fn every_source_is_luau() {
    let sources = files(&["src", "flows", "tests"], &["lua", "luau"]);
    let mut count = 0;
    // Attacks are as wrong as they like to be.
    for (name, source) in sources.iter().filter(|(name, _)| !name.starts_with("tests/lua/hostile/")) {
        compile(name, source);
        count += 1;
    }
    assert!(count > 150, "only {count} were found");
}

#[test]
fn every_sample_of_a_page_can_be_read() {
    let (mut lua, mut yaml) = (0, 0);
    for sample in all_samples() {
        match sample.language.as_str() {
            "lua" => {
                compile(&sample.place, &sample.text);
                lua += 1;
            }
            "yaml" => {
                let read: Result<serde_json::Value, _> = serde_yaml::from_str(&sample.text);
                read.unwrap_or_else(|error| panic!("{}: {error}", sample.place));
                yaml += 1;
            }
            "sh" | "text" | "json" => {}
            other => panic!("{}: samples are lua, yaml, json, sh or text, and not `{other}`", sample.place),
        }
    }
    assert!(lua >= 1 && yaml >= 3, "{lua} and {yaml}");
}

#[test]
fn every_flow_of_a_page_is_one() {
    let mut count = 0;
    for sample in all_samples().into_iter().filter(|sample| sample.text.contains("nietz.flow")) {
        let name =
            sample.text.split("name = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("it has a name");
        let env = Env::new().flow(name, &sample.text);
        env.nietz(["check", &format!("flows/{name}.lua")]).go().exits(0);
        count += 1;
    }
    assert!(count >= 1);
}
