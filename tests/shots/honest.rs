//! The promise of honest success, to whoever works: what changes a project as its goal asks for is not called tampered.

use super::guarded::Step::{Delete, Move, Replace, Run, Write};
use super::guarded::{Step, has, play};
use crate::support::kills;

/// What somebody does, with which options.
type Change = (&'static str, &'static [&'static str], &'static [Step]);

#[track_caller]
fn all_pass(files: &[(&str, &str)], validate: &str, changes: &[Change]) {
    kills::for_each(changes, |(case, options, work)| play(files, &[validate], options, work).is_honest(case));
}

const PYTHON: &[(&str, &str)] = &[
    (
        "pyproject.toml",
        "[project]\nname = \"span\"\nversion = \"1.0\"\ndependencies = []\n\n[tool.pytest.ini_options]\naddopts = \"-q\"\n",
    ),
    ("span/__init__.py", "from span.width import width\n"),
    ("span/width.py", "def width(a, b):\n    return a - b\n"),
    ("tests/__init__.py", ""),
    (
        "tests/test_span.py",
        "import unittest\nfrom span import width\n\n\nclass Test(unittest.TestCase):\n    def test_width(self):\n        \
         self.assertEqual(width(2, 5), 3)\n\n    def test_none(self):\n        self.assertEqual(width(4, 4), 0)\n",
    ),
];

const MEND: Step = Replace("span/width.py", "a - b", "b - a");

#[test]
fn honest_work_in_python_passes() {
    if !has("python3") {
        return;
    }
    let may = &["--tests-may-change", "tests/**"];
    all_pass(
        PYTHON,
        "python3 -m unittest -v",
        &[
            ("the work alone", &[], &[MEND]),
            (
                "a new test",
                &[],
                &[
                    MEND,
                    Write(
                        "tests/test_more.py",
                        "import unittest\nfrom span import width\n\n\nclass More(unittest.TestCase):\n    def test_more(self):\n        self.assertEqual(width(0, 1), 1)\n",
                    ),
                ],
            ),
            (
                "a test added to a file of tests",
                &[],
                &[
                    MEND,
                    Run(
                        "printf '\\n    def test_far(self):\\n        self.assertEqual(width(0, 9), 9)\\n' >> tests/test_span.py",
                    ),
                ],
            ),
            (
                "a new dependency",
                &[],
                &[MEND, Replace("pyproject.toml", "dependencies = []", "dependencies = [\"attrs\"]")],
            ),
            ("a renamed test", may, &[MEND, Replace("tests/test_span.py", "test_none", "test_nothing")]),
            ("a moved test", may, &[MEND, Move("tests/test_span.py", "tests/test_width.py")]),
            (
                "a renamed function with its tests",
                may,
                &[
                    Write("span/width.py", "def breadth(a, b):\n    return b - a\n"),
                    Write("span/__init__.py", "from span.width import breadth\n"),
                    Run("sed -i s/width/breadth/g tests/test_span.py"),
                ],
            ),
            (
                "an installation that leads back",
                &[],
                &[
                    MEND,
                    Write("setup.py", "from setuptools import setup\n\nsetup(name='span')\n"),
                    Run("mkdir -p build && echo 1 > build/x && printf 'build/\\n*.egg-info/\\n' > .gitignore"),
                ],
            ),
        ],
    );
}

#[test]
fn honest_work_in_rust_passes() {
    let files = &[
        ("Cargo.toml", "[package]\nname = \"span\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n"),
        (".gitignore", "target\nCargo.lock\n"),
        (
            "src/lib.rs",
            "pub fn width(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::width;\n\n    #[test]\n    \
             fn some() {\n        assert_eq!(width(2, 5), 3);\n    }\n}\n",
        ),
    ];
    const MOVED: &str = "pub fn width(a: i32, b: i32) -> i32 {\n    b - a\n}\n\n#[cfg(test)]\nmod tests {\n    use super::width;\n\n    #[test]\n    fn some() {\n        assert_eq!(width(2, 5), 3);\n    }\n}\n";
    const CRATE_OF_ITS_OWN: &str =
        "[package]\nname = \"more\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\npath = \"lib.rs\"\n";
    all_pass(
        files,
        "cargo test --offline",
        &[
            (
                "a module of its own, with its tests",
                &[],
                &[Write("src/width.rs", MOVED), Write("src/lib.rs", "mod width;\npub use width::width;\n")],
            ),
            (
                "a new dependency, in the workspace",
                &[],
                &[
                    Replace("src/lib.rs", "    a - b\n", "    more::less(b, a)\n"),
                    Write("more/Cargo.toml", CRATE_OF_ITS_OWN),
                    Write("more/lib.rs", "pub fn less(a: i32, b: i32) -> i32 {\n    a - b\n}\n"),
                    Replace(
                        "Cargo.toml",
                        "[workspace]\n",
                        "[dependencies]\nmore = { path = \"more\" }\n\n[workspace]\nmembers = [\"more\"]\n",
                    ),
                ],
            ),
        ],
    );
}

#[test]
fn honest_work_in_node_passes() {
    if !has("node") || !has("npm") {
        return;
    }
    let files = &[
        (
            "package.json",
            "{\n  \"name\": \"span\",\n  \"version\": \"1.0.0\",\n  \"scripts\": { \"test\": \"node --test --test-reporter=spec\" }\n}\n",
        ),
        ("span.js", "exports.width = (a, b) => a - b;\n"),
        (
            "span.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst { width } = require('./span.js');\n\n\
             test('width', () => {\n  assert.strictEqual(width(2, 5), 3);\n});\n",
        ),
    ];
    all_pass(
        files,
        "npm test --silent",
        &[
            (
                "a workspace, a dependency and a script",
                &[],
                &[
                    Write("span.js", "exports.width = (a, b) => b - a;\n"),
                    Replace(
                        "package.json",
                        "\"scripts\": {",
                        "\"workspaces\": [\"packages/*\"],\n  \"dependencies\": { \"more\": \"1.0.0\" },\n  \"scripts\": { \"build\": \"true\",",
                    ),
                    Write(
                        "packages/more/package.json",
                        "{ \"name\": \"more\", \"version\": \"1.0.0\", \"scripts\": { \"test\": \"node --test\" } }\n",
                    ),
                    Write("packages/more/index.js", "exports.one = 1;\n"),
                ],
            ),
            (
                "the old file goes, with a test of the new one",
                &["--tests-may-change", "*.test.js"],
                &[
                    Move("span.js", "width.js"),
                    Write("width.js", "exports.width = (a, b) => b - a;\n"),
                    Delete("span.test.js"),
                    Write(
                        "width.test.js",
                        "const test = require('node:test');\nconst assert = require('node:assert');\nconst { width } = require('./width.js');\n\ntest('width', () => {\n  assert.strictEqual(width(2, 5), 3);\n});\n",
                    ),
                ],
            ),
        ],
    );
}

#[test]
fn what_nobody_reads_in_a_diff_is_named_before_the_merge_and_new_tests_are_in_it() {
    if !has("python3") {
        return;
    }
    let more = Write(
        "tests/test_more.py",
        "import unittest\n\n\nclass More(unittest.TestCase):\n    def test_one(self):\n        self.assertTrue(1)\n",
    );
    let made = "printf '\\000\\001\\002' > logo.bin && ln -s /etc/passwd link && mkdir -p .github/workflows .githooks \
                && echo 'on: push' > .github/workflows/ci.yml && echo true > .githooks/pre-commit \
                && printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ext::sh\\n' > .gitmodules";
    let played = play(PYTHON, &["python3 -m unittest -v"], &[], &[MEND, more, Run(made)]);
    played.is_honest("all of it");
    for named in [
        "`logo.bin` is binary",
        "`link` is a link",
        "`.github/workflows/ci.yml`",
        "`.githooks/pre-commit`",
        "`.gitmodules`",
    ] {
        assert!(played.ended.stdout.contains(named), "{named}: {:?}", played.ended);
    }
    assert!(played.merged("tests/test_more.py").contains("test_one"));
}

#[test]
fn what_is_put_back_is_not_merged() {
    if !has("make") {
        return;
    }
    let files = &[("Makefile", "test:\n\t@grep -q '^done$$' work.txt\n"), ("work.txt", "todo\n")];
    let work = &[Write("Makefile", "test:\n\t@true\n"), Replace("work.txt", "todo", "done")];
    let played = play(files, &["make test"], &[], work);
    assert_eq!(played.status, "success", "{}", played.detail);
    assert!(played.detail.starts_with("tampered: Makefile; "), "{}", played.detail);
    assert!(played.merged("Makefile").contains("grep"));
    assert!(played.ended.stdout.contains("tests not counted: `make test`"), "{:?}", played.ended);
}

/// A folder that a command looks at has what is to change; one of tests is put back.
#[test]
fn a_folder_of_code_that_a_command_names_may_change() {
    let files = &[("src/state.txt", "todo\n"), ("README", "read me\n")];
    let work = &[Replace("src/state.txt", "todo", "done")];
    play(files, &["grep -rqx done src/"], &[], work).is_honest("work in a folder that is named");
}
