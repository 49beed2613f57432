//! What real runners wrote, read whole: each file of `tests/samples/test_output/<runner>/` with the results that stand beside it.
//! After a change that is meant, `NIETZ_RECORD=1 cargo test samples` writes them anew; `git diff` then shows what it means.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::support::env::Env;

/// How a sample came to be: `index.yaml` has one for each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    /// What was typed; for what was not run here, whose form it has.
    command: String,
    /// The exit status of it.
    exit: i64,
    /// Its version, and what it ran on.
    version: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/test_output")
}

fn index() -> BTreeMap<String, Sample> {
    let text = std::fs::read_to_string(folder().join("index.yaml")).expect("the samples have an index");
    serde_yaml::from_str(&text).expect("the index is YAML of the right form")
}

/// A flow that reads all samples, as `debug-memory` reads the output of a run in `/tmp/shop`.
const READER: &str = r#"
local files = require("@nietz/files")
local nietz = require("@nietz")
local results = require("./common/memory/results")

-- Some runners tell only the end of a path: these are the files of the project that such an end may mean.
local PROJECT = {
    "cart/cart_test.go", "list/list_test.go", "list/list.go", "src/main/java/com/acme/shop/Cart.java",
    "src/test/java/com/acme/shop/CartTest.java", "src/test/java/com/acme/shop/SetUpTest.java",
}

local function find(glob: string): { string }
    local tail = string.gsub(string.gsub(glob, "^%*%*", ""), "%[(.)%]", "%1")
    local found = {}
    for _, path in PROJECT do
        if string.sub("/" .. path, -#tail) == tail then
            table.insert(found, path)
        end
    end
    return found
end

return nietz.flow({
    name = "reader",
    summary = "Reads samples of test output",
    permissions = { files = true },
    limits = { seconds = 60, megabytes = 512 },
    run = function(): any
        local out = {}
        for name, exit in EXITS do
            local text = (files.read("samples/" .. name) :: any).text
            local xml = if string.find(name, "%.xml$") then text else nil
            local ran: any = { exit = exit, output = text, over = "exit", seconds = 1 }
            out[name] = results.read(ran, "/tmp/shop", xml, find)
        end
        return out
    end,
})
"#;

/// A workspace with the flows, the samples and the reader; returns the results by sample.
fn read_all(index: &BTreeMap<String, Sample>) -> Value {
    let mut env = Env::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in walkdir::WalkDir::new(repository.join("flows/common/memory")) {
        let entry = entry.expect("flows can be listed");
        if entry.file_type().is_file() {
            let below = entry.path().strip_prefix(repository).expect("it is below").to_str().expect("UTF-8");
            env = env.file(below, std::fs::read(entry.path()).expect("a flow can be read"));
        }
    }
    let mut exits = String::from("{");
    for (name, sample) in index {
        env = env.file(&format!("samples/{name}"), std::fs::read(folder().join(name)).expect("a sample can be read"));
        write!(exits, "[{name:?}]={},", sample.exit).expect("a text grows");
    }
    exits.push('}');
    let env = env.flow("reader", &READER.replace("EXITS", &exits));
    env.run(["reader", "--trust"]).go().exits(0).result()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| if value.is_null() { "-".to_owned() } else { value.to_string() }, ToOwned::to_owned)
}

fn place(value: &Value) -> String {
    let named = value["function"].as_str().map(|name| format!(" in {name}")).unwrap_or_default();
    format!("{}:{}{named}", text(&value["file"]), text(&value["line"]))
}

/// The results as a person reads them; of a trace, how long it is.
fn render(results: &Value) -> String {
    let mut out = String::new();
    let of = |name: &str| text(&results[name]);
    writeln!(
        out,
        "{}: {} {}, {} {}\ntotal {}, passed {}, failed {}, errors {}, skipped {}, ran {}, ms {}, coverage {}",
        of("verdict"),
        of("framework"),
        of("framework_version"),
        of("runtime"),
        of("runtime_version"),
        of("total"),
        of("passed"),
        of("failed"),
        of("errors"),
        of("skipped"),
        of("ran"),
        of("duration_ms"),
        of("coverage_percent"),
    )
    .expect("a text grows");
    for test in results["tests"].as_array().into_iter().flatten() {
        let at = if test["file"].is_null() { String::new() } else { format!(" ({})", place(test)) };
        let took = test["duration_ms"].as_f64().map(|took| format!(" {took} ms")).unwrap_or_default();
        writeln!(out, "\n{}: {}{at}{took}", text(&test["outcome"]), text(&test["name"])).expect("a text grows");
        let failure = &test["failure"];
        if failure.is_null() {
            continue;
        }
        let message = text(&failure["error_message"]).replace('\n', "\n    ");
        writeln!(out, "  {}: {message}", text(&failure["error_type"])).expect("a text grows");
        for side in ["expected", "actual"] {
            if !failure[side].is_null() {
                writeln!(out, "  {side}: {}", text(&failure[side]).replace('\n', "\n    ")).expect("a text grows");
            }
        }
        let source = &failure["source_location"];
        writeln!(out, "  source: {}", if source.is_null() { "-".to_owned() } else { place(source) })
            .expect("a text grows");
        for frame in test["frames"].as_array().into_iter().flatten() {
            writeln!(out, "  at {}", place(frame)).expect("a text grows");
        }
        let trace = failure["stack_trace"].as_str().unwrap_or_default().lines().count();
        writeln!(out, "  trace of {trace} lines").expect("a text grows");
    }
    out
}

#[test]
fn each_sample_of_a_runner_is_read_as_the_results_beside_it_say() {
    let index = index();
    let read = read_all(&index);
    let mut wrong = Vec::new();
    for name in index.keys() {
        let rendered = render(&read[name]);
        let beside = folder().join(format!("{name}.results"));
        if std::env::var_os("NIETZ_RECORD").is_some() {
            std::fs::write(&beside, &rendered).expect("results can be written");
        }
        let wanted = std::fs::read_to_string(&beside).unwrap_or_default();
        if wanted != rendered {
            let line = wanted.lines().zip(rendered.lines()).position(|(a, b)| a != b).unwrap_or_default();
            let at = |text: &str| text.lines().nth(line).unwrap_or_default().to_owned();
            wrong.push(format!("{name}, line {}: wanted {:?}, read {:?}", line + 1, at(&wanted), at(&rendered)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_sample_is_forgotten_and_none_has_a_path_of_a_machine() {
    let index = index();
    assert!(index.len() > 60, "samples were lost: {}", index.len());
    for sample in index.values() {
        assert!(!sample.command.is_empty() && !sample.version.is_empty());
    }
    for entry in walkdir::WalkDir::new(folder()).min_depth(2) {
        let entry = entry.expect("samples can be listed");
        if !entry.file_type().is_file() {
            continue;
        }
        let name = entry.path().strip_prefix(folder()).expect("it is below").to_str().expect("UTF-8").to_owned();
        let sample = name.strip_suffix(".results").unwrap_or(&name);
        assert!(index.contains_key(sample), "{name} is not in index.yaml");
        let text = std::fs::read_to_string(entry.path()).expect("a sample is text");
        for machine in ["/root/", "/work/", "/tmp/m/", "/project/"] {
            assert!(!text.contains(machine), "{name} has {machine}");
        }
    }
}

/// The specification: a failure's place is the innermost frame in the project, for an assertion as for an exception.
#[test]
fn a_source_is_in_the_project_and_never_in_a_library() {
    let read = read_all(&index());
    let mut sources = 0;
    for (name, results) in read.as_object().expect("there are results") {
        for failure in results["failures"].as_array().into_iter().flatten() {
            let Some(file) = failure["source_location"]["file"].as_str() else { continue };
            sources += 1;
            for foreign in ["node_modules", "site-packages", "/usr/", "/rustc/", ".cargo", "/lib/python"] {
                assert!(!file.contains(foreign) && !file.starts_with('/'), "{name}: {file}");
            }
            assert!(failure["source_location"]["line"].is_u64(), "{name}: {failure}");
        }
    }
    assert!(sources > 300, "{sources}");
}
