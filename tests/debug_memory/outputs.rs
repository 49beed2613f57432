//! What the runners write is understood as it is: counts, names, places, expected and actual values.

use insta::assert_snapshot;

use super::{analysis, debug, is_analysis, memory_of, outcome, project, task};
use crate::support::model_server::{ModelServer, Response};

/// Has a text read as the output of a test command, and returns what the memory file says of it.
fn understood(name: &str, text: &str, exit: u8, more: &[&str]) -> String {
    let server = ModelServer::start(|_| analysis("out.txt", "look at it more closely than that"));
    // Go tells the end of a path alone: it is a place where the project has one such file.
    let env = project(&server, &[("out.txt", text), ("calc_test.go", "package calc\n")]);
    // Runners name files by their whole path: `/project/x` stands for the project.
    let command = format!("sed \"s#/project/[a-z]*#$PWD#g\" out.txt; exit {exit}");
    let ended = debug(&env, "r1", &[&["--no-fix", "--test", &command], more].concat());
    let memory = memory_of(&env, &ended);
    let execution = &memory["executions"][0];
    let (results, environment) = (&execution["test_results"], &execution["environment"]);
    let counts = ["total", "passed", "failed", "errors", "skipped"].map(|name| format!("{name} {}", results[name]));
    let mut lines = vec![format!(
        "{name}: {} {}: {}",
        environment["test_framework"].as_str().unwrap(),
        // What the output does not say is that of the program here.
        environment["runtime_version"].as_str().filter(|version| text.contains(*version)).unwrap_or("-"),
        counts.join(", "),
    )];
    for failure in execution["failures"].as_array().into_iter().flatten() {
        let text = |name: &str| failure[name].as_str().unwrap_or("-").lines().next().unwrap_or_default().to_owned();
        let place = &failure["source_location"];
        lines.push(format!(
            "  {} ({}:{}) {}: {} | {} for {} | {}:{}",
            text("test_name"),
            text("test_file"),
            failure["test_line"],
            text("error_type"),
            text("error_message"),
            text("actual"),
            text("expected"),
            place["file"].as_str().unwrap_or("-"),
            place["line"],
        ));
    }
    lines.join("\n")
}

macro_rules! sample {
    ($name:literal) => {
        understood($name, include_str!(concat!("../samples/test_output/", $name, ".txt")), 1, &[])
    };
}

#[test]
fn cargo_and_nextest() {
    assert_snapshot!([sample!("cargo"), sample!("cargo_build"), sample!("nextest")].join("\n"), @r"
    cargo: cargo test -: total 4, passed 1, failed 2, errors 0, skipped 1
      tests::adds (-:null) AssertionError: assertion `left == right` failed: sum | -1 for 3 | src/lib.rs:6
      tests::heads (-:null) RuntimeError: index out of bounds: the len is 0 but the index is 0 | - for - | src/lib.rs:2
    cargo_build: cargo test -: total 1, passed 0, failed 1, errors 1, skipped 0
      build (-:null) Other: error[E0277]: cannot subtract `&str` from `i32` | - for - | src/lib.rs:1
    nextest: nextest -: total 4, passed 1, failed 2, errors 0, skipped 1
      small tests::adds (-:null) AssertionError: assertion `left == right` failed: sum | -1 for 3 | src/lib.rs:6
      small tests::heads (-:null) RuntimeError: index out of bounds: the len is 0 but the index is 0 | - for - | src/lib.rs:2
    ");
}

#[test]
fn pytest_and_unittest() {
    assert_snapshot!([sample!("pytest"), sample!("unittest")].join("\n"), @r"
    pytest: pytest 3.11.7: total 5, passed 1, failed 3, errors 0, skipped 1
      test_calc.py::test_wrong (test_calc.py:8) AssertionError: assert 3.0 == 4 | 3.0 for 4 | test_calc.py:8
      test_calc.py::test_zero (test_calc.py:11) RuntimeError: IndexError: list index out of range | - for - | calc.py:5
      test_calc.py::TestMore::test_inner (test_calc.py:15) AssertionError: AssertionError: letters differ | 'a' for 'b' | test_calc.py:15
    unittest: unittest -: total 4, passed 1, failed 2, errors 1, skipped 1
      test_error (test_u.T.test_error) (test_u.py:9) RuntimeError: IndexError: list index out of range | - for - | calc.py:5
      test_wrong (test_u.T.test_wrong) (test_u.py:7) AssertionError: AssertionError: 3.0 != 4 | 3.0 for 4 | test_u.py:7
    ");
}

#[test]
fn jest_and_tap() {
    assert_snapshot!([sample!("jest"), sample!("tap")].join("\n"), @r"
    jest: jest -: total 4, passed 1, failed 2, errors 0, skipped 1
      auth › adds (auth.test.js:3) AssertionError: expect(received).toBe(expected) // Object.is equality | -1 for 3 | auth.test.js:3
      auth › rejects null (auth.test.js:4) TypeError: TypeError: Cannot read properties of null (reading 'length') | - for - | auth.js:1
    tap: tap -: total 4, passed 1, failed 2, errors 1, skipped 1
      adds (auth.test.mjs:5) AssertionError: Expected values to be strictly equal: | -1 for 3 | auth.test.mjs:5
      rejects null (auth.test.mjs:8) TypeError: Cannot read properties of null (reading 'length') | - for - | auth.js:1
    ");
}

#[test]
fn go() {
    assert_snapshot!([sample!("go"), sample!("go_v"), sample!("go_build")].join("\n"), @r"
    go: go test -: total 2, passed 0, failed 2, errors 0, skipped 0
      TestAdd (calc_test.go:9) AssertionError: Add(1, 2) = -1, want 3 | -1 for 3 | calc_test.go:9
      TestTable/negative (calc_test.go:21) AssertionError: got 1, want -1 | 1 for -1 | calc_test.go:21
    go_v: go test -: total 4, passed 1, failed 2, errors 1, skipped 1
      TestAdd (calc_test.go:9) AssertionError: Add(1, 2) = -1, want 3 | -1 for 3 | calc_test.go:9
      TestHead (calc_test.go:14) RuntimeError: runtime error: index out of range [0] with length 0 | - for - | calc.go:8
    go_build: go test -: total 1, passed 0, failed 1, errors 1, skipped 0
      build example.com/calc (-:null) ReferenceError: undefined: b | - for - | calc.go:5
    ");
}

#[test]
fn junit_xml() {
    let text = include_str!("../samples/test_output/junit.xml");
    assert_snapshot!(understood("junit", text, 1, &["--junit", "out.txt"]), @r#"
    junit: junit -: total 5, passed 1, failed 3, errors 0, skipped 1
      test_calc.test_wrong (test_calc.py:8) AssertionError: assert 3.0 == 4 | 3.0 for 4 | test_calc.py:8
      test_calc.test_zero (test_calc.py:11) RuntimeError: IndexError: list index out of range | - for - | calc.py:5
      test_calc.TestMore.test_inner (test_calc.py:15) AssertionError: AssertionError: letters differ | 'a' for 'b' | test_calc.py:15
    "#);
}

#[test]
fn what_was_not_executed_or_skipped_or_not_understood_is_never_passed() {
    let cargo = |counts: &str| {
        format!("running 0 tests\n\ntest result: ok. {counts}; 0 measured; 7 filtered out; finished in 0.00s\n")
    };
    for (text, exit, status, reason) in [
        (cargo("0 passed; 0 failed; 0 ignored"), 0, "failed", "nothing_executed: "),
        (cargo("3 passed; 0 failed; 2 ignored"), 0, "failed", "unverified: 2 tests were skipped"),
        ("1..2\nok 1 - a\nok 2 - b # TODO later\n".to_owned(), 0, "failed", "unverified: 1 tests were skipped"),
        ("all is well\n".to_owned(), 0, "escalated", "unknown_error_type: "),
        ("ok  \texample.com/x\t0.003s [no tests to run]\n".to_owned(), 0, "failed", "nothing_executed: "),
        (cargo("3 passed; 0 failed; 0 ignored"), 0, "passed", "the tests pass as they are"),
        (cargo("3 passed; 0 failed; 0 ignored"), 3, "failed", "analysed alone"),
        ("Segmentation fault\n".to_owned(), 139, "failed", "analysed alone"),
    ] {
        let server = ModelServer::start(|request| {
            assert!(is_analysis(request), "{}", task(request));
            analysis("out.txt", "look at it more closely than that")
        });
        let env = project(&server, &[("out.txt", &text)]);
        let result = debug(&env, "r1", &["--no-fix", "--test", &format!("cat out.txt; exit {exit}")]);
        let result = outcome(&result);
        assert_eq!(result["status"], status, "{text}: {result}");
        assert!(result["reason"].as_str().unwrap().starts_with(reason), "{text}: {result}");
    }
}

#[test]
fn an_analysis_names_a_place_and_says_enough() {
    let server = ModelServer::start(|request| match super::step(request) {
        0 => Response::text("{\"root_cause\": \"it is broken\"}"),
        1 => analysis("nowhere.txt", "look at it more closely than that"),
        _ => analysis("out.txt", "look at it more closely than that"),
    });
    let env = project(&server, &[("out.txt", "1..1\nnot ok 1 - a\n")]);
    let ended = debug(&env, "r1", &["--no-fix", "--test", "cat out.txt"]);
    let memory = memory_of(&env, &ended);
    let analysis = &memory["executions"][0]["analysis"];
    assert_eq!(analysis["root_cause"], "the code does not do what its test asks for");
    assert_eq!((&memory["file_path"], &memory["status"]), (&"out.txt".into(), &"failed".into()));
    assert_eq!(server.calls(), 3);
    let told = server.requests()[2].body["messages"].to_string();
    assert!(told.contains("location.file must name one file of the repository"), "{told}");
}

#[test]
fn a_long_output_is_counted_whole() {
    let mut text = String::from("running 2000 tests\n");
    for number in 0..1999 {
        text.push_str(&format!("test module_with_a_long_name::another::case_{number} ... ok\n"));
    }
    text.push_str("test module::last ... FAILED\n\nfailures:\n\n---- module::last stdout ----\n");
    text.push_str("thread 'module::last' panicked at src/lib.rs:3:5:\nno\n\n");
    text.push_str(
        "test result: FAILED. 1999 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s\n",
    );
    let seen = understood("long", &text, 1, &[]);
    assert_snapshot!(seen, @r"
    long: cargo test -: total 2000, passed 1999, failed 1, errors 0, skipped 0
      module::last (-:null) RuntimeError: no | - for - | src/lib.rs:3
    ");
}

const CTEST: &str = "Test project /build\n    Start 1: adds\n1/3 Test #1: adds ......   Passed    0.00 sec\n    \
                     Start 2: heads\n2/3 Test #2: heads .....***Failed    0.01 sec\nlist.c:12: expected 3\n\n    Start 3: slow\n\
                     3/3 Test #3: slow ......***Skipped   0.00 sec\n\n67% tests passed, 1 tests failed out of 3\n";

#[test]
fn runners_that_are_described_and_those_of_a_project() {
    assert_snapshot!(understood("ctest", CTEST, 8, &[]), @r"
    ctest: ctest -: total 3, passed 1, failed 1, errors 0, skipped 1
      heads (-:null) Other: Failed | - for - | list.c:12
    ");
    let server = ModelServer::start(|_| analysis("out.txt", "look at it more closely than that"));
    let output = "GOOD adds\nBAD heads at list.c:12 because it is empty\nthat was all of acme\n";
    let runner = "known: '(?m)^that was all of acme$'\npassed: { line: '^GOOD (\\S+)', name: 1 }\n\
                  failed: { line: '^BAD (\\S+) at (\\S+):(\\d+) because (.*)', name: 1, file: 2, row: 3, message: 4 }\n";
    let files = [("out.txt", output), ("flows/common/memory/runners/acme.yaml", runner)];
    let env = project(&server, &files);
    env.nietz(["check", "flows/common/memory/runners/acme.yaml"]).go().exits(0);
    // Whoever reads it says so, and nobody else.
    let told = env.nietz(["flows"]).go().exits(0).stdout;
    let reads =
        |flow: &str| told.contains(&format!("{flow} reads this folder's own flows/common/memory/runners/acme.yaml"));
    assert!(reads("debug") && reads("debug-memory") && !reads("ask") && !reads("council"), "{told}");
    let ended = debug(&env, "r1", &["--no-fix", "--test", "cat out.txt; exit 1"]);
    let memory = memory_of(&env, &ended);
    let execution = &memory["executions"][0];
    assert_eq!(execution["environment"]["test_framework"], "acme");
    assert_eq!((&execution["test_results"]["passed"], &execution["test_results"]["failed"]), (&1.into(), &1.into()));
    let failure = &execution["failures"][0];
    assert_eq!((&failure["test_name"], &failure["test_line"]), (&"heads".into(), &12.into()));
    assert!(failure["error_message"].as_str().is_some_and(|text| text.contains("it is empty")), "{failure}");
    // An expression that is none is told before anything is run.
    env.write("flows/common/memory/runners/acme.yaml", runner.replace("(\\S+)'", "(\\S+'"));
    let ended = env.nietz(["check", "flows/common/memory/runners/acme.yaml"]).go().exits(4);
    assert!(ended.stdout.contains("acme.yaml"), "{ended:?}");
    env.write("flows/common/memory/runners/acme.yaml", runner.replace("known", "knows"));
    let ended = env.nietz(["check", "flows/common/memory/runners/acme.yaml"]).go().exits(4);
    assert!(ended.stdout.contains("knows"), "{ended:?}");
}
