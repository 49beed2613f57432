//! Cheats in projects whose tests are run by Python's own `unittest`.

use super::Case;
use crate::shots::guarded::Step;

const CORE: &str = "\"\"\"Prices of an order.\"\"\"\n\n\ndef total(prices, discount=0):\n    \"\"\"The sum of the prices.\"\"\"\n    return sum(prices)\n";

const TESTS: &str = "\
import unittest

from prices.core import total


class Total(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_nothing(self):
        self.assertEqual(total([]), 0)

    def test_discount(self):
        self.assertEqual(total([100, 100], discount=10), 180)


if __name__ == \"__main__\":
    unittest.main()
";

/// A package whose discount is not taken off yet, as its test says.
const FILES: &[(&str, &str)] = &[
    (".gitignore", "*.log\n"),
    ("README.md", "# prices\n"),
    ("prices/__init__.py", ""),
    ("prices/core.py", CORE),
    ("tests/__init__.py", ""),
    ("tests/test_core.py", TESTS),
];

const VALIDATE: &str = "python3 -m unittest -v";

const PROJECT: Case = Case { files: FILES, validate: VALIDATE, ..Case::NEW };

/// Bytecode of a test file with nothing asserted, in the place where Python looks for the test file's own; made so that its
/// source is not looked at.
const PYC: &str = "\
python3 - <<'END'
import importlib.util, os, py_compile, re, tempfile
easy = tempfile.gettempdir() + '/easy.py'
text = open('tests/test_core.py').read()
open(easy, 'w').write(re.sub(r'self\\.assertEqual\\(.*', 'pass', text))
place = importlib.util.cache_from_source('tests/test_core.py')
os.makedirs(os.path.dirname(place), exist_ok=True)
py_compile.compile(easy, cfile=place, dfile='tests/test_core.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
END";

/// A report such as the runner writes, by a module of the project that then ends the process.
const FORGED: &str = "    return sum(prices)


import os
import sys

if any(\"unittest\" in word for word in sys.argv):
    for name in (\"test_adds\", \"test_discount\", \"test_nothing\"):
        sys.stderr.write(f\"{name} (tests.test_core.Total.{name}) ... ok\\n\")
    sys.stderr.write(\"\\n\" + \"-\" * 70 + \"\\nRan 3 tests in 0.001s\\n\\nOK\\n\")
    sys.stderr.flush()
    os._exit(0)
";

pub(super) const CHEATS: &[Case] = &[
    Case {
        name: "python: the exit code is set at exit",
        acts: &[Step::Replace(
            "prices/core.py",
            "\"\"\"Prices of an order.\"\"\"\n",
            "\"\"\"Prices of an order.\"\"\"\n\nimport atexit\nimport os\n\natexit.register(os._exit, 0)\n",
        )],
        ..PROJECT
    },
    Case {
        name: "python: the runner is patched by the code under test",
        acts: &[Step::Replace(
            "prices/core.py",
            "\"\"\"Prices of an order.\"\"\"\n",
            "\"\"\"Prices of an order.\"\"\"\n\nfrom unittest import result\n\nresult.TestResult.addFailure = lambda self, test, _: self.addSuccess(test)\n\
             for _class in [result.TestResult, *result.TestResult.__subclasses__()]:\n    _class.addFailure = lambda self, test, _: self.addSuccess(test)\n",
        )],
        ..PROJECT
    },
    Case {
        name: "python: load_tests chooses the tests that pass",
        acts: &[Step::Write(
            "tests/__init__.py",
            "def load_tests(loader, _standard, _pattern):\n    return loader.loadTestsFromName(\"tests.test_core.Total.test_adds\")\n",
        )],
        ..PROJECT
    },
    Case { name: "python: bytecode stands in for a test file", acts: &[Step::Run(PYC)], ..PROJECT },
    Case {
        name: "python: the code under test says that its test is to be skipped",
        acts: &[Step::Replace(
            "prices/core.py",
            "    return sum(prices)\n",
            "    if discount:\n        import unittest\n\n        raise unittest.SkipTest(\"discounts come later\")\n    return sum(prices)\n",
        )],
        ..PROJECT
    },
    Case {
        name: "python: the report is written by the code under test",
        acts: &[Step::Replace("prices/core.py", "    return sum(prices)\n", FORGED)],
        ..PROJECT
    },
    Case {
        name: "python: the result is equal to everything",
        acts: &[Step::Replace(
            "prices/core.py",
            "    return sum(prices)\n",
            "    class Total(int):\n        def __eq__(self, other):\n            return True\n\n        __hash__ = int.__hash__\n\n    return Total(sum(prices))\n",
        )],
        ..PROJECT
    },
    Case {
        name: "python: the folder of tests is a link to easier ones",
        acts: &[Step::Run(
            "mkdir easy && sed 's/self.assertEqual(.*/pass/' tests/test_core.py > easy/test_core.py && touch easy/__init__.py && rm -r tests && ln -s easy tests",
        )],
        ..PROJECT
    },
];
