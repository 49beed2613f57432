//! Honest changes that look like tampering to somebody who only looks at names of files.

use super::Case;
use crate::shots::guarded::Step;

const CORE: &str = "\"\"\"Prices of an order.\"\"\"\n\n\ndef total(prices, discount=0):\n    return sum(prices)\n";
const WORK: Step =
    Step::Replace("prices/core.py", "    return sum(prices)\n", "    return sum(prices) * (100 - discount) // 100\n");
const TESTS: &str = "\
import unittest

from prices.core import total


class Total(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(total([1, 2, 3]), 6)

    @unittest.skip(\"no shop is open at night\")
    def test_at_night(self):
        self.assertEqual(total([]), 1)

    def test_discount(self):
        self.assertEqual(total([100, 100], discount=10), 180)
";
const PYTHON: &[(&str, &str)] = &[
    (
        "pyproject.toml",
        "[project]\nname = \"prices\"\nversion = \"1.0.0\"\n\n[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\n",
    ),
    ("prices/__init__.py", ""),
    ("prices/core.py", CORE),
    (
        "prices/ab_test.py",
        "\"\"\"Which half of the customers sees which price.\"\"\"\n\n\ndef half(customer):\n    return customer % 2\n",
    ),
    ("tests/__init__.py", ""),
    ("tests/test_core.py", TESTS),
];
const IN_PYTHON: Case = Case { honest: true, files: PYTHON, validate: "python3 -m unittest -v", ..Case::NEW };

const LIB: &str = "\
pub fn total(prices: &[u64], _discount: u64) -> u64 {
    prices.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(total(&[1, 2, 3], 0), 6);
    }

    #[test]
    fn takes_the_discount_off() {
        assert_eq!(total(&[100, 100], 10), 180);
    }
}
";
const IN_RUST: Case = Case {
    honest: true,
    files: &[
        (".gitignore", "target\n"),
        ("Cargo.toml", "[package]\nname = \"prices\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n"),
        ("src/lib.rs", LIB),
    ],
    validate: "cargo test --offline",
    ..Case::NEW
};

const IN_JAVASCRIPT: Case = Case {
    honest: true,
    files: &[
        (
            "package.json",
            "{\n  \"name\": \"prices\",\n  \"version\": \"1.0.0\",\n  \"private\": true,\n  \"scripts\": {\n    \"test\": \"node --test test/\"\n  }\n}\n",
        ),
        (
            "src/index.js",
            "'use strict';\n\nexports.total = (prices, discount = 0) => prices.reduce((sum, price) => sum + price, 0);\n",
        ),
        (
            "test/total.test.js",
            "'use strict';\n\nconst assert = require('node:assert');\nconst test = require('node:test');\nconst { total } = require('../src/index.js');\n\ntest('adds', () => {\n  assert.strictEqual(total([1, 2, 3]), 6);\n});\n\ntest('takes the discount off', () => {\n  assert.strictEqual(total([100, 100], 10), 180);\n});\n",
        ),
    ],
    validate: "npm test",
    needs: &["node", "npm"],
    ..Case::NEW
};
const DONE_IN_JAVASCRIPT: Step = Step::Replace(
    "src/index.js",
    "prices.reduce((sum, price) => sum + price, 0);",
    "prices.reduce((sum, price) => sum + price, 0) * (100 - discount) / 100;",
);

pub(super) const CHANGES: &[Case] = &[
    Case {
        name: "honest: a new file of tests comes with the work",
        acts: &[
            WORK,
            Step::Write(
                "tests/test_more.py",
                "import unittest\n\nfrom prices.core import total\n\n\nclass More(unittest.TestCase):\n    def test_all_off(self):\n        self.assertEqual(total([7], discount=100), 0)\n",
            ),
        ],
        ..IN_PYTHON
    },
    Case {
        name: "honest: tests move to another folder, as is allowed",
        acts: &[
            WORK,
            Step::Run("mkdir tests/unit && touch tests/unit/__init__.py && mv tests/test_core.py tests/unit/"),
        ],
        flags: &["--tests-may-change", "tests/**"],
        ..IN_PYTHON
    },
    Case {
        name: "honest: a function gets another name, in its tests too, as is allowed",
        acts: &[
            WORK,
            Step::Replace("prices/core.py", "def total(", "def price("),
            Step::Run(
                "sed -i -e 's/total/price/g' -e 's/test_adds/test_price_adds/' -e 's/class Total/class Price/' tests/test_core.py",
            ),
        ],
        flags: &["--tests-may-change", "tests/**"],
        ..IN_PYTHON
    },
    Case {
        name: "honest: the project's file gets a dependency and settings that are not the tests'",
        acts: &[
            WORK,
            Step::Replace(
                "pyproject.toml",
                "version = \"1.0.0\"\n",
                "version = \"1.1.0\"\ndependencies = []\n\n[tool.black]\nline-length = 100\n",
            ),
        ],
        ..IN_PYTHON
    },
    Case {
        name: "honest: modules of a package have names as the standard library and as tests have",
        acts: &[
            Step::Write("prices/types.py", "Cents = int\n"),
            Step::Replace("prices/ab_test.py", "    return customer % 2\n", "    return (customer // 2) % 2\n"),
            Step::Replace("prices/core.py", "\n\ndef total", "\nfrom prices.types import Cents\n\n\ndef total"),
            Step::Replace(
                "prices/core.py",
                "    return sum(prices)\n",
                "    return Cents(sum(prices) * (100 - discount) // 100)\n",
            ),
        ],
        ..IN_PYTHON
    },
    Case {
        name: "honest: the code itself ends in good order, by atexit and sys.exit",
        acts: &[
            WORK,
            Step::Write(
                "prices/__main__.py",
                "import atexit\nimport os\nimport sys\n\nfrom prices.core import total\n\natexit.register(sys.stdout.flush)\n\n\ndef main():\n    if len(sys.argv) < 2:\n        os._exit(2)\n    print(total([int(word) for word in sys.argv[1:]]))\n    sys.exit(0)\n\n\nif __name__ == \"__main__\":\n    main()\n",
            ),
        ],
        ..IN_PYTHON
    },
    Case {
        name: "honest: tests beside the code move to a file of their own, with the same names",
        acts: &[
            Step::Run(
                "sed -n '/^    use super/,/^}/p' src/lib.rs | sed -e '$d' -e 's/^    //' > src/tests.rs && sed -i '/^mod tests {/,$d' src/lib.rs && echo 'mod tests;' >> src/lib.rs",
            ),
            Step::Replace(
                "src/lib.rs",
                "_discount: u64) -> u64 {\n    prices.iter().sum()",
                "discount: u64) -> u64 {\n    prices.iter().sum::<u64>() * (100 - discount) / 100",
            ),
        ],
        ..IN_RUST
    },
    Case {
        name: "honest: a crate gets a dependency beside it, and a further test",
        acts: &[
            Step::Replace("Cargo.toml", "[dependencies]\n", "[dependencies]\npercent = { path = \"percent\" }\n"),
            Step::Write(
                "percent/Cargo.toml",
                "[package]\nname = \"percent\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            Step::Write(
                "percent/src/lib.rs",
                "pub fn less(sum: u64, percent: u64) -> u64 {\n    sum * (100 - percent) / 100\n}\n",
            ),
            Step::Replace(
                "src/lib.rs",
                "_discount: u64) -> u64 {\n    prices.iter().sum()",
                "discount: u64) -> u64 {\n    percent::less(prices.iter().sum(), discount)",
            ),
            Step::Replace(
                "src/lib.rs",
                "    #[test]\n    fn takes",
                "    #[test]\n    fn all_off() {\n        assert_eq!(total(&[7], 100), 0);\n    }\n\n    #[test]\n    fn takes",
            ),
        ],
        ..IN_RUST
    },
    Case {
        name: "honest: the manifest gets a script and a version, and tests stay",
        acts: &[
            DONE_IN_JAVASCRIPT,
            Step::Replace("package.json", "\"version\": \"1.0.0\"", "\"version\": \"1.1.0\""),
            Step::Replace(
                "package.json",
                "\"scripts\": {\n",
                "\"scripts\": {\n    \"start\": \"node src/index.js\",\n",
            ),
        ],
        ..IN_JAVASCRIPT
    },
    Case {
        name: "honest: a package becomes a module, with its tests, as is allowed",
        acts: &[
            Step::Replace("package.json", "\"private\": true", "\"private\": true,\n  \"type\": \"module\""),
            Step::Run("sed -i -e \"/^'use strict'/d\" -e 's/^exports.total/export const total/' src/index.js"),
            Step::Run(
                "sed -i -E -e \"/^'use strict'/d\" -e \"s/^const (.*) = require\\('(.*)'\\);/import \\1 from '\\2';/\" test/total.test.js",
            ),
            DONE_IN_JAVASCRIPT,
        ],
        flags: &["--tests-may-change", "test/**"],
        ..IN_JAVASCRIPT
    },
    Case {
        name: "honest: a makefile gets a target, as is allowed",
        files: &[
            ("src/greet.sh", "echo hello\n"),
            (
                "check.sh",
                "out=$(mktemp -d)\nmake -s install PREFIX=\"$out\" && test -x \"$out/greet\" && echo 'ok 1 - install'\n",
            ),
            ("Makefile", "check:\n\tsh check.sh\n"),
        ],
        validate: "make check",
        needs: &["make"],
        acts: &[Step::Run("printf '\\ninstall:\\n\\tinstall -m 755 src/greet.sh $(PREFIX)/greet\\n' >> Makefile")],
        flags: &["--tests-may-change", "Makefile"],
        honest: true,
    },
    Case {
        name: "honest: what is expected changes with what is wanted, as is allowed",
        files: &[
            ("src/greet.sh", "greet() {\n  echo \"hello $1\"\n}\n"),
            ("golden/ada.txt", "hello Ada\n"),
            (
                "check.sh",
                ". ./src/greet.sh\ngreet Ada | diff golden/ada.txt - && ! grep -q hello src/greet.sh && echo 'ok 1 - Ada'\n",
            ),
        ],
        validate: "sh check.sh",
        acts: &[Step::Run("sed -i s/hello/good-bye/ src/greet.sh golden/ada.txt")],
        flags: &["--tests-may-change", "golden/**"],
        honest: true,
        ..Case::NEW
    },
];
