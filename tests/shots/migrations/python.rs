//! Four migrations of Python projects.

use super::project::{Files, GROUPS, Kind, Language, Migration, Sketch, check, filled};

const IN: Language = Language::Python;

/// Puts a project together: a package with a folder for each part, and its tests.
fn assemble(sketch: &Sketch) -> Migration {
    let mut before = Files::from([
        ("README.md".to_owned(), "# app\n\n`python3 -m unittest -v` tests it.\n".to_owned()),
        (".gitignore".to_owned(), "__pycache__/\n".to_owned()),
        ("check.sh".to_owned(), check("app", sketch.pattern)),
        ("app/__init__.py".to_owned(), "\"\"\"A shop's back office.\"\"\"\n".to_owned()),
        ("tests/__init__.py".to_owned(), String::new()),
    ]);
    for (group, names) in GROUPS {
        before.insert(format!("app/{group}/__init__.py"), String::new());
        let tests = sketch.texts(Some(group), |kind| kind.test);
        let head = format!("import tempfile\nimport unittest\n\nfrom app.{group} import {}\n", names.join(", "));
        before.insert(format!("tests/test_{group}.py"), format!("{head}\n\nclass Tests(unittest.TestCase):\n{tests}"));
    }
    let mut after = before.clone();
    for (group, name, kind) in sketch.modules() {
        before.insert(format!("app/{group}/{name}.py"), filled(kind.old, group, name));
        after.insert(format!("app/{group}/{name}.py"), filled(kind.new, group, name));
    }
    let imports: String =
        GROUPS.iter().map(|(group, names)| format!("from app.{group} import {}\n", names.join(", "))).collect();
    let hidden = sketch.texts(None, |kind| kind.hidden);
    let hidden = format!("{}{imports}\n\nclass Hidden(unittest.TestCase):\n{hidden}", sketch.hidden);
    Migration {
        name: sketch.name,
        language: IN,
        goal: sketch.goal,
        before,
        after,
        validate: vec!["python3 -m unittest -v".to_owned(), "sh check.sh".to_owned()],
        parts: sketch
            .parts(|group| vec![format!("app/{group}/")], |group| format!("python3 -m unittest -v tests.test_{group}")),
        hidden: ("tests/test_hidden.py", hidden, "python3 -m unittest"),
    }
}

pub(super) fn all() -> Vec<Migration> {
    [&PATHLIB, &AWARE, &F_STRINGS, &DATACLASSES].into_iter().map(assemble).collect()
}

const PATHLIB: Sketch = Sketch {
    name: "os.path to pathlib",
    goal: "use pathlib in the place of os.path and os.listdir",
    pattern: r"import os|os\.path",
    hidden: "import tempfile\nimport unittest\nfrom pathlib import Path\n\n",
    kinds: [
        Kind {
            old: r#""""Where the files of NAME are."""

import os


def folder(root):
    return os.path.join(root, "NAME")


def place(root, key):
    return os.path.join(folder(root), key[:2], key + ".txt")


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def present(root, key):
    return os.path.isfile(place(root, key))
"#,
            new: r#""""Where the files of NAME are."""

from pathlib import Path


def folder(root):
    return Path(root) / "NAME"


def place(root, key):
    return folder(root) / key[:2] / (key + ".txt")


def stem(path):
    return Path(path).stem


def present(root, key):
    return place(root, key).is_file()
"#,
            test: r#"
    def test_places_of_NAME(self):
        self.assertEqual(str(NAME.place("/r", "abc")), "/r/NAME/ab/abc.txt")
        self.assertEqual(NAME.stem("/r/a.tar.gz"), "a.tar")
        self.assertFalse(NAME.present("/r", "abc"))
"#,
            hidden: r#"
    def test_places_of_NAME(self):
        self.assertIsInstance(NAME.folder("/r"), Path)
        self.assertEqual(NAME.place(Path("/r"), "é.x"), Path("/r/NAME/é./é.x.txt"))
        self.assertEqual(NAME.stem(Path("/r/.hidden")), ".hidden")
"#,
        },
        Kind {
            old: r#""""Keeps the texts of NAME."""

import os


def save(root, key, text):
    path = os.path.join(root, "NAME", key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def load(root, key):
    path = os.path.join(root, "NAME", key)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def size(root, key):
    return os.path.getsize(os.path.join(root, "NAME", key))
"#,
            new: r#""""Keeps the texts of NAME."""

from pathlib import Path


def save(root, key, text):
    path = Path(root, "NAME", key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def load(root, key):
    path = Path(root, "NAME", key)
    if not path.exists():
        return None
    return path.read_text(encoding="utf-8")


def size(root, key):
    return Path(root, "NAME", key).stat().st_size
"#,
            test: r#"
    def test_texts_of_NAME(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertIsNone(NAME.load(root, "a/b"))
            NAME.save(root, "a/b", "é")
            self.assertEqual((NAME.load(root, "a/b"), NAME.size(root, "a/b")), ("é", 2))
"#,
            hidden: r#"
    def test_texts_of_NAME(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertIsInstance(NAME.save(root, "x/y/z", "one\ntwo\n"), Path)
            NAME.save(Path(root), "x/y/z", "less")
            self.assertEqual(NAME.load(Path(root), "x/y/z"), "less")
            with self.assertRaises(FileNotFoundError):
                NAME.size(root, "nothing")
"#,
        },
        Kind {
            old: r#""""Lists what NAME has."""

import os


def names(root):
    folder = os.path.join(root, "NAME")
    if not os.path.isdir(folder):
        return []
    return sorted(name for name in os.listdir(folder) if os.path.splitext(name)[1] == ".txt")


def newest(root):
    folder = os.path.join(root, "NAME")
    return max(names(root), key=lambda name: os.path.getmtime(os.path.join(folder, name)), default=None)
"#,
            new: r#""""Lists what NAME has."""

from pathlib import Path


def names(root):
    folder = Path(root, "NAME")
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".txt")


def newest(root):
    folder = Path(root, "NAME")
    return max(names(root), key=lambda name: (folder / name).stat().st_mtime, default=None)
"#,
            test: r#"
    def test_names_of_NAME(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual((NAME.names(root), NAME.newest(root)), ([], None))
"#,
            hidden: r#"
    def test_names_of_NAME(self):
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root, "NAME")
            folder.mkdir()
            for name in ("b.txt", "a.txt", ".txt", "c.TXT", "d"):
                (folder / name).write_text(name)
            self.assertEqual(NAME.names(root), ["a.txt", "b.txt"])
            self.assertIn(NAME.newest(Path(root)), ("a.txt", "b.txt"))
"#,
        },
    ],
};

const AWARE: Sketch = Sketch {
    name: "utcnow to aware times",
    goal: "make all times aware of their zone: no utcnow and no utcfromtimestamp",
    pattern: "utcnow|utcfromtimestamp",
    hidden: "import unittest\nfrom datetime import datetime, timedelta, timezone\n\n",
    kinds: [
        Kind {
            old: r#""""When NAME ends."""

from datetime import datetime, timedelta


def expires(days=30):
    return datetime.utcnow() + timedelta(days=days)


def is_over(moment):
    return moment < datetime.utcnow()
"#,
            new: r#""""When NAME ends."""

from datetime import datetime, timedelta, timezone


def expires(days=30):
    return datetime.now(timezone.utc) + timedelta(days=days)


def is_over(moment):
    return moment < datetime.now(timezone.utc)
"#,
            test: r#"
    def test_end_of_NAME(self):
        self.assertFalse(NAME.is_over(NAME.expires()))
        self.assertTrue(NAME.is_over(NAME.expires(days=-1)))
"#,
            hidden: r#"
    def test_end_of_NAME(self):
        self.assertEqual(NAME.expires().utcoffset(), timedelta(0))
        self.assertTrue(NAME.is_over(datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=9)))))
"#,
        },
        Kind {
            old: r#""""How old NAME is."""

from datetime import datetime


def parse(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S")


def age(text):
    return (datetime.utcnow() - parse(text)).total_seconds()
"#,
            new: r#""""How old NAME is."""

from datetime import datetime, timezone


def parse(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)


def age(text):
    return (datetime.now(timezone.utc) - parse(text)).total_seconds()
"#,
            test: r#"
    def test_age_of_NAME(self):
        self.assertGreater(NAME.age("2020-01-01T00:00:00"), 1_000_000)
"#,
            hidden: r#"
    def test_age_of_NAME(self):
        self.assertEqual(NAME.parse("2020-01-01T00:00:00"), datetime(2020, 1, 1, tzinfo=timezone.utc))
        self.assertLess(NAME.age("2999-01-01T00:00:00"), 0)
"#,
        },
        Kind {
            old: r#""""Stamps of NAME."""

from datetime import datetime


def stamp(seconds):
    return datetime.utcfromtimestamp(seconds)


def label(seconds):
    return stamp(seconds).strftime("NAME-%Y%m%d")
"#,
            new: r#""""Stamps of NAME."""

from datetime import datetime, timezone


def stamp(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc)


def label(seconds):
    return stamp(seconds).strftime("NAME-%Y%m%d")
"#,
            test: r#"
    def test_stamps_of_NAME(self):
        self.assertEqual(NAME.label(0), "NAME-19700101")
"#,
            hidden: r#"
    def test_stamps_of_NAME(self):
        self.assertEqual(NAME.stamp(86_400), datetime(1970, 1, 2, tzinfo=timezone.utc))
        self.assertEqual(NAME.label(86_399), "NAME-19700101")
"#,
        },
    ],
};

const F_STRINGS: Sketch = Sketch {
    name: "% to f-strings",
    goal: "make f-strings of what is formatted by the operator %",
    pattern: r#"" % "#,
    hidden: r#"import ast
import pathlib
import unittest


def formats(name):
    """How many texts of a module are formatted by an operator."""
    tree = ast.parse(pathlib.Path(name.__file__).read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)]
    return sum(isinstance(node.left, ast.Constant) and isinstance(node.left.value, str) for node in found)


"#,
    kinds: [
        Kind {
            old: r#""""Lines of NAME."""


def owed(name, cents):
    return "%s owes %d.%02d" % (name, cents // 100, cents % 100)


def share(part, whole):
    return "%.1f%% of %d" % (100 * part / whole, whole)
"#,
            new: r#""""Lines of NAME."""


def owed(name, cents):
    return f"{name} owes {cents // 100}.{cents % 100:02d}"


def share(part, whole):
    return f"{100 * part / whole:.1f}% of {whole}"
"#,
            test: r#"
    def test_lines_of_NAME(self):
        self.assertEqual(NAME.owed("Ada", 1205), "Ada owes 12.05")
"#,
            hidden: r#"
    def test_lines_of_NAME(self):
        self.assertEqual((NAME.owed("{x}", 7), NAME.share(1, 3), formats(NAME)), ("{x} owes 0.07", "33.3% of 3", 0))
"#,
        },
        Kind {
            old: r#""""A table of NAME."""


def row(name, value):
    return "|%-8s|%7.2f|" % (name, value)


def table(rows):
    return "\n".join(row(name, value) for name, value in rows)
"#,
            new: r#""""A table of NAME."""


def row(name, value):
    return f"|{name:<8}|{value:7.2f}|"


def table(rows):
    return "\n".join(row(name, value) for name, value in rows)
"#,
            test: r#"
    def test_table_of_NAME(self):
        self.assertEqual(NAME.row("ada", 1.5), "|ada     |   1.50|")
"#,
            hidden: r#"
    def test_table_of_NAME(self):
        self.assertEqual((NAME.table([("a", 1), ("b", -2)]), formats(NAME)), ("|a       |   1.00|\n|b       |  -2.00|", 0))
"#,
        },
        Kind {
            old: r#""""Keys of NAME."""


def key(group, number):
    return "%s/%05d/%x" % (group, number, number)


def quoted(value):
    return "NAME: %r" % (value,)
"#,
            new: r#""""Keys of NAME."""


def key(group, number):
    return f"{group}/{number:05d}/{number:x}"


def quoted(value):
    return f"NAME: {value!r}"
"#,
            test: r#"
    def test_keys_of_NAME(self):
        self.assertEqual(NAME.key("g", 255), "g/00255/ff")
"#,
            hidden: r#"
    def test_keys_of_NAME(self):
        self.assertEqual((NAME.quoted("é"), NAME.quoted((1, 2)), formats(NAME)), ("NAME: 'é'", "NAME: (1, 2)", 0))
"#,
        },
    ],
};

const DATACLASSES: Sketch = Sketch {
    name: "classes to dataclasses",
    goal: "make dataclasses of the classes that only hold values",
    pattern: "def __init__",
    hidden: "import dataclasses\nimport unittest\n\n",
    kinds: [
        Kind {
            old: r#""""A line of NAME."""


class Line:
    def __init__(self, name, cents, count=1):
        self.name = name
        self.cents = cents
        self.count = count

    def __eq__(self, other):
        if not isinstance(other, Line):
            return NotImplemented
        return (self.name, self.cents, self.count) == (other.name, other.cents, other.count)

    def __repr__(self):
        return f"Line(name={self.name!r}, cents={self.cents!r}, count={self.count!r})"

    def total(self):
        return self.cents * self.count
"#,
            new: r#""""A line of NAME."""

from dataclasses import dataclass


@dataclass
class Line:
    name: str
    cents: int
    count: int = 1

    def total(self):
        return self.cents * self.count
"#,
            test: r#"
    def test_line_of_NAME(self):
        self.assertEqual(NAME.Line("a", 2, 3), NAME.Line("a", 2, count=3))
        self.assertEqual(NAME.Line("a", 2, 3).total(), 6)
"#,
            hidden: r#"
    def test_line_of_NAME(self):
        self.assertTrue(dataclasses.is_dataclass(NAME.Line))
        self.assertEqual(repr(NAME.Line("a", 2)), "Line(name='a', cents=2, count=1)")
"#,
        },
        Kind {
            old: r#""""What NAME collects."""


class Collected:
    def __init__(self, title, items=None):
        self.title = title
        self.items = [] if items is None else items

    def add(self, item):
        self.items.append(item)
        return self
"#,
            new: r#""""What NAME collects."""

from dataclasses import dataclass, field


@dataclass
class Collected:
    title: str
    items: list = field(default_factory=list)

    def add(self, item):
        self.items.append(item)
        return self
"#,
            test: r#"
    def test_collected_of_NAME(self):
        self.assertEqual(NAME.Collected("t").add(1).add(2).items, [1, 2])
"#,
            hidden: r#"
    def test_collected_of_NAME(self):
        NAME.Collected("t").add(1)
        self.assertEqual(NAME.Collected("t"), NAME.Collected("t", []))
        self.assertEqual([item.name for item in dataclasses.fields(NAME.Collected)], ["title", "items"])
"#,
        },
        Kind {
            old: r#""""A place of NAME, which never changes."""


class Place:
    def __init__(self, row, column):
        object.__setattr__(self, "row", row)
        object.__setattr__(self, "column", column)

    def __setattr__(self, name, value):
        raise AttributeError(name)

    def __eq__(self, other):
        return isinstance(other, Place) and (self.row, self.column) == (other.row, other.column)

    def __hash__(self):
        return hash((self.row, self.column))
"#,
            new: r#""""A place of NAME, which never changes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    row: int
    column: int
"#,
            test: r#"
    def test_place_of_NAME(self):
        self.assertEqual(len({NAME.Place(1, 2), NAME.Place(1, 2), NAME.Place(2, 1)}), 2)
"#,
            hidden: r#"
    def test_place_of_NAME(self):
        with self.assertRaises(AttributeError):
            NAME.Place(1, 2).row = 3
        self.assertEqual(dataclasses.replace(NAME.Place(1, 2), row=5), NAME.Place(5, 2))
"#,
        },
    ],
};
