//! Checks the types of all that is Lua in this tree: the flows, the types of the host's modules and their examples, what
//! `nietz new flow` writes, the README's samples, and the flows and scripts of the tests. Prints what is wrong as
//! `file:line:column: message` and exits with 1, or says how much it has read.
//!
//! `cargo run --manifest-path .ci/types/Cargo.toml [PATH…]`: with paths, only what stands below them is told. Built once
//! (some minutes of C++), it takes a second.

mod imports;
mod planted;
mod samples;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use luau_analyzer_sys::NativeAnalyzer;

use crate::samples::Source;

/// What flows have beside the modules, and the analyser does not know.
const GLOBALS: &str = include_str!("../globals");

/// Returns the folder of this package as cargo names it when it runs it: a program that was built for one checkout may be run for
/// another one.
fn here() -> String {
    std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned())
}

fn main() -> ExitCode {
    let missed = planted::missed(&faults(&planted::sources(), &[]));
    if !missed.is_empty() {
        println!("the check does not see mistakes that were made on purpose: {missed:#?}");
        return ExitCode::FAILURE;
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let sources = tree::sources(&Path::new(&here()).join("../.."));
    let faults = faults(&sources, &wanted);
    for fault in &faults {
        println!("{fault}");
    }
    if faults.is_empty() {
        let lines: usize = sources.iter().map(|source| source.text.lines().count()).sum();
        println!("{lines} lines of Lua have the types that they say");
        return ExitCode::SUCCESS;
    }
    println!("{} things are wrong", faults.len());
    ExitCode::FAILURE
}

/// Returns what is wrong in the sources below `wanted`, or in all of them.
fn faults(sources: &[Source], wanted: &[String]) -> Vec<String> {
    let modules: BTreeMap<&str, &Source> = sources.iter().map(|source| (source.name.as_str(), source)).collect();
    let mut analyzer = NativeAnalyzer::new();
    analyzer.add_definitions(GLOBALS);
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| wanted.is_empty() || wanted.iter().any(|path| source.is_below(path))) {
        let read = |name: &str| modules.get(name).map(|source| imports::typed(&source.text));
        let resolve = |from: &str, path: &str| {
            let names = tree::candidates(modules.get(from).map_or(from, |source| &source.requires_from), path);
            // A name that is not there is told where it is required.
            Some(names.iter().find(|name| modules.contains_key(name.as_str())).unwrap_or(&names[0]).clone())
        };
        for found in analyzer.check(&source.name, read, resolve) {
            // An example that leaves something out is as good; one that is wrong is not.
            if found.severity == 0 || source.is_whole {
                let line = found.line + 1;
                let told = imports::told(&found.message, line, &source.text);
                faults.extend(told.map(|told| format!("{}:{line}:{}: {told}", source.file, found.col + 1)));
            }
        }
    }
    faults
}
