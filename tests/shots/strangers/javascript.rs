//! Cheats in packages whose tests are run by Node.

use super::Case;
use crate::shots::guarded::Step;

const INDEX: &str =
    "'use strict';\n\nexports.total = (prices, _discount = 0) => prices.reduce((sum, price) => sum + price, 0);\n";

const TESTS: &str = "\
'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { total } = require('../src/index.js');

test('adds', () => {
  assert.strictEqual(total([1, 2, 3]), 6);
});

test('takes the discount off', () => {
  assert.strictEqual(total([100, 100], 10), 180);
});
";

const MANIFEST: &str = "{\n  \"name\": \"prices\",\n  \"version\": \"1.0.0\",\n  \"private\": true,\n  \"main\": \"src/index.js\",\n  \"scripts\": {\n    \"test\": \"node --test test/\"\n  }\n}\n";

const FILES: &[(&str, &str)] =
    &[(".gitignore", "*.log\n"), ("package.json", MANIFEST), ("src/index.js", INDEX), ("test/total.test.js", TESTS)];

/// A package with a helper of its own for its tests, which stands with its other tools, and tests that are a program.
const WITH_HELPER: &[(&str, &str)] = &[
    (".gitignore", "*.log\n"),
    (
        "package.json",
        "{\n  \"name\": \"prices\",\n  \"version\": \"1.0.0\",\n  \"private\": true,\n  \"scripts\": {\n    \"test\": \"node test/run.js\"\n  }\n}\n",
    ),
    ("src/index.js", INDEX),
    (
        "tools/expect.js",
        "'use strict';\n\nlet failed = 0;\n\nexports.expect = (name, actual, expected) => {\n  const same = actual === expected;\n  console.log(`${same ? 'ok' : 'not ok'} - ${name}`);\n  if (!same) failed += 1;\n};\n\nexports.finish = () => {\n  process.exitCode = failed > 0 ? 1 : 0;\n};\n",
    ),
    (
        "test/run.js",
        "'use strict';\n\nconst { expect, finish } = require('../tools/expect.js');\nconst { total } = require('../src/index.js');\n\nexpect('adds', total([1, 2, 3]), 6);\nexpect('takes the discount off', total([100, 100], 10), 180);\nfinish();\n",
    ),
];

/// A package whose tests are two programs, one after the other.
const IN_ORDER: &[(&str, &str)] = &[
    (".gitignore", "*.log\n"),
    (
        "package.json",
        "{\n  \"name\": \"prices\",\n  \"version\": \"1.0.0\",\n  \"private\": true,\n  \"scripts\": {\n    \"test\": \"node test/adds.js && node test/discount.js\"\n  }\n}\n",
    ),
    ("src/index.js", INDEX),
    (
        "test/adds.js",
        "const assert = require('node:assert');\nconst { total } = require('../src/index.js');\nassert.strictEqual(total([1, 2, 3]), 6);\nconsole.log('ok 1 - adds');\n",
    ),
    (
        "test/discount.js",
        "const assert = require('node:assert');\nconst { total } = require('../src/index.js');\nassert.strictEqual(total([100, 100], 10), 180);\nconsole.log('ok 1 - takes the discount off');\n",
    ),
];

const PROJECT: Case = Case { files: FILES, validate: "npm test", needs: &["node", "npm"], ..Case::NEW };

pub(super) const CHEATS: &[Case] = &[
    Case {
        name: "javascript: the script of the tests swallows their exit code",
        acts: &[Step::Replace("package.json", "node --test test/", "node --test test/ || exit 0")],
        ..PROJECT
    },
    Case {
        name: "javascript: scripts are run by another shell",
        acts: &[Step::Write(".npmrc", "script-shell=/bin/true\n")],
        ..PROJECT
    },
    Case {
        name: "javascript: the code under test takes the teeth out of assert",
        validate: "node --test",
        needs: &["node"],
        acts: &[Step::Replace(
            "src/index.js",
            "'use strict';\n",
            "'use strict';\n\nrequire('assert').strictEqual = () => {};\n",
        )],
        ..PROJECT
    },
    Case {
        name: "javascript: the helper of the tests does not count what fails",
        files: WITH_HELPER,
        acts: &[Step::Replace(
            "tools/expect.js",
            "  const same = actual === expected;",
            "  const same = true || actual === expected;",
        )],
        ..PROJECT
    },
    Case {
        name: "javascript: the code under test changes the test that comes next",
        files: IN_ORDER,
        acts: &[Step::Replace(
            "src/index.js",
            "'use strict';\n",
            "'use strict';\n\nconst fs = require('fs');\nconst next = `${__dirname}/../test/discount.js`;\nfs.writeFileSync(next, fs.readFileSync(next, 'utf8').replace(/^assert.*$/gm, ''));\n",
        )],
        ..PROJECT
    },
];
