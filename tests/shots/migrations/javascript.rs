//! Three migrations of packages for Node.

use super::project::{Files, GROUPS, Kind, Language, Migration, Sketch, check, filled};

const IN: Language = Language::JavaScript;

const MANIFEST: &str = "{\n  \"name\": \"office\",\n  \"version\": \"1.0.0\",\n  \"private\": true,\n  \"scripts\": {\n    \"test\": \"node --test test/\"\n  }\n}\n";

/// What tests load modules by, whatever they are, and what calls them, however they answer.
const LOAD: &str = "\
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

/// Loads a module of src by its name without an ending.
export const load = async (name) => {
  const places = ['js', 'mjs', 'cjs'].map((ending) => new URL(`../../src/${name}.${ending}`, import.meta.url));
  return import(places.find((place) => existsSync(place)));
};

/// Calls what takes a callback, and what returns a promise.
export const call = (f, ...values) => (f.length > values.length ? promisify(f)(...values) : f(...values));

/// Makes a thing by a class or by a function.
export const make = (f, ...values) => (String(f).startsWith('class') ? new f(...values) : f(...values));
";

/// Puts a project together whose modules have one ending before and another one after.
fn assemble(sketch: &Sketch, [old, new]: [&str; 2]) -> Migration {
    let mut before = Files::from([
        ("README.md".to_owned(), "# office\n\n`npm test` tests it.\n".to_owned()),
        ("package.json".to_owned(), MANIFEST.to_owned()),
        ("check.sh".to_owned(), check("src", sketch.pattern)),
        ("test/helpers/load.mjs".to_owned(), LOAD.to_owned()),
    ]);
    let head = "import assert from 'node:assert';\nimport test from 'node:test';\nimport { call, load, make } from './helpers/load.mjs';\n";
    for (group, _) in GROUPS {
        let tests = sketch.texts(Some(group), |kind| kind.test);
        before.insert(format!("test/{group}.test.mjs"), format!("{head}{tests}"));
    }
    let mut after = before.clone();
    for (group, name, kind) in sketch.modules() {
        before.insert(format!("src/{group}/{name}.{old}"), filled(kind.old, group, name));
        after.insert(format!("src/{group}/{name}.{new}"), filled(kind.new, group, name));
    }
    let hidden = format!("{head}{}{}", sketch.hidden, sketch.texts(None, |kind| kind.hidden));
    Migration {
        name: sketch.name,
        language: IN,
        goal: sketch.goal,
        before,
        after,
        validate: vec!["npm test".to_owned(), "sh check.sh".to_owned()],
        parts: sketch
            .parts(|group| vec![format!("src/{group}/")], |group| format!("node --test test/{group}.test.mjs")),
        hidden: ("test/hidden.test.mjs", hidden, "node --test test/"),
    }
}

pub(super) fn all() -> Vec<Migration> {
    vec![assemble(&MODULES, ["cjs", "mjs"]), assemble(&ASYNC, ["js", "js"]), assemble(&FUNCTIONS, ["js", "js"])]
}

const MODULES: Sketch = Sketch {
    name: "CommonJS to modules",
    goal: "make modules with import and export, in files that end in .mjs, of the .cjs files below src",
    pattern: r"require\(|exports",
    hidden: "import { readdirSync } from 'node:fs';\n\ntest('no file of before is left', () => {\n  const left = readdirSync(new URL('../src', import.meta.url), { recursive: true });\n  assert.deepStrictEqual(left.filter((name) => name.endsWith('.cjs')), []);\n});\n",
    kinds: [
        Kind {
            old: "'use strict';\n\nconst { basename, join } = require('node:path');\n\nconst NAME = (root, key) => join(root, 'NAME', key);\n\nmodule.exports = { NAME, title: (path) => basename(path, '.txt') };\n",
            new: "import { basename, join } from 'node:path';\n\nexport const NAME = (root, key) => join(root, 'NAME', key);\n\nexport const title = (path) => basename(path, '.txt');\n",
            test: "\ntest('places of NAME', async () => {\n  const { default: all, ...named } = await load('GROUP/NAME');\n  assert.strictEqual({ ...all, ...named }.NAME('/r', 'k'), '/r/NAME/k');\n});\n",
            hidden: "\ntest('places of NAME', async () => {\n  const NAME = await load('GROUP/NAME');\n  assert.deepStrictEqual(Object.keys(NAME).sort(), ['NAME', 'title'].sort());\n  assert.strictEqual(NAME.title('/r/a.txt'), 'a');\n});\n",
        },
        Kind {
            old: "'use strict';\n\nconst crypto = require('node:crypto');\n\nexports.digest = (text) => crypto.createHash('sha256').update(text).digest('hex').slice(0, 8);\n\nexports.same = (a, b) => exports.digest(a) === exports.digest(b);\n",
            new: "import crypto from 'node:crypto';\n\nexport const digest = (text) => crypto.createHash('sha256').update(text).digest('hex').slice(0, 8);\n\nexport const same = (a, b) => digest(a) === digest(b);\n",
            test: "\ntest('digests of NAME', async () => {\n  const NAME = await load('GROUP/NAME');\n  assert.strictEqual(NAME.same('a', 'a'), true);\n});\n",
            hidden: "\ntest('digests of NAME', async () => {\n  const NAME = await load('GROUP/NAME');\n  assert.deepStrictEqual(Object.keys(NAME), ['digest', 'same']);\n  assert.strictEqual(NAME.digest(''), 'e3b0c442');\n});\n",
        },
        Kind {
            old: "'use strict';\n\nconst { same } = require('./SECOND.cjs');\n\nexports.changed = (before, after) => Object.keys(after).filter((key) => !same(String(before[key]), String(after[key])));\n",
            new: "import { same } from './SECOND.mjs';\n\nexport const changed = (before, after) => Object.keys(after).filter((key) => !same(String(before[key]), String(after[key])));\n",
            test: "\ntest('changes of NAME', async () => {\n  const NAME = await load('GROUP/NAME');\n  assert.deepStrictEqual(NAME.changed({ a: 1, b: 2 }, { a: 1, b: 3 }), ['b']);\n});\n",
            hidden: "\ntest('changes of NAME', async () => {\n  const NAME = await load('GROUP/NAME');\n  assert.deepStrictEqual(Object.keys(NAME), ['changed']);\n  assert.deepStrictEqual(NAME.changed({}, { c: 'x' }), ['c']);\n});\n",
        },
    ],
};

const ASYNC: Sketch = Sketch {
    name: "callbacks to async",
    goal: "make async functions of those that take a callback",
    pattern: r"\bdone\b",
    hidden: "",
    kinds: [
        Kind {
            old: "'use strict';\n\nconst table = new Map();\n\nexports.save = (key, value, done) => {\n  if (key === '') return setImmediate(done, new Error('NAME: a key is needed'));\n  table.set(key, value);\n  setImmediate(done, null, table.size);\n};\n\nexports.load = (key, done) => setImmediate(done, null, table.get(key));\n",
            new: "'use strict';\n\nconst table = new Map();\n\nexports.save = async (key, value) => {\n  if (key === '') throw new Error('NAME: a key is needed');\n  table.set(key, value);\n  return table.size;\n};\n\nexports.load = async (key) => table.get(key);\n",
            test: "\ntest('what NAME keeps', async () => {\n  const { default: NAME } = await load('GROUP/NAME');\n  assert.strictEqual(await call(NAME.save, 'a', 1), 1);\n  assert.strictEqual(await call(NAME.load, 'a'), 1);\n});\n",
            hidden: "\ntest('what NAME keeps', async () => {\n  const { default: NAME } = await load('GROUP/NAME');\n  assert.ok(NAME.load('b') instanceof Promise);\n  await assert.rejects(NAME.save('', 1), /NAME: a key is needed/);\n});\n",
        },
        Kind {
            old: "'use strict';\n\nconst fs = require('node:fs');\n\nexports.lines = (path, done) => {\n  fs.readFile(path, 'utf8', (error, text) => {\n    if (error) return done(error);\n    done(null, text.split('\\n').filter((line) => line !== ''));\n  });\n};\n",
            new: "'use strict';\n\nconst fs = require('node:fs/promises');\n\nexports.lines = async (path) => {\n  const text = await fs.readFile(path, 'utf8');\n  return text.split('\\n').filter((line) => line !== '');\n};\n",
            test: "\ntest('lines of NAME', async () => {\n  const { default: NAME } = await load('GROUP/NAME');\n  assert.strictEqual((await call(NAME.lines, 'README.md'))[0], '# office');\n});\n",
            hidden: "\ntest('lines of NAME', async () => {\n  const { default: NAME } = await load('GROUP/NAME');\n  await assert.rejects(NAME.lines('gone'), { code: 'ENOENT' });\n  assert.strictEqual((await NAME.lines('README.md')).length, 2);\n});\n",
        },
        Kind {
            old: "'use strict';\n\nexports.each = (values, one, done) => {\n  const results = [];\n  const next = (index) => {\n    if (index === values.length) return setImmediate(done, null, results);\n    one(values[index], (error, result) => {\n      if (error) return done(error);\n      results.push(result);\n      next(index + 1);\n    });\n  };\n  next(0);\n};\n",
            new: "'use strict';\n\nexports.each = async (values, one) => {\n  const results = [];\n  for (const value of values) results.push(await one(value));\n  return results;\n};\n",
            test: "\ntest('each of NAME', async () => {\n  const { default: NAME } = await load('GROUP/NAME');\n  assert.deepStrictEqual(await call(NAME.each, [], () => {}), []);\n});\n",
            hidden: "\ntest('each of NAME', async () => {\n  const { default: NAME } = await load('GROUP/NAME');\n  const order = [];\n  const one = async (value) => {\n    await new Promise((go) => setTimeout(go, 3 - value));\n    order.push(value);\n    return value * 2;\n  };\n  assert.deepStrictEqual(await NAME.each([1, 2, 3], one), [2, 4, 6]);\n  assert.deepStrictEqual(order, [1, 2, 3]);\n});\n",
        },
    ],
};

const FUNCTIONS: Sketch = Sketch {
    name: "classes to functions",
    goal: "make functions that return plain objects of the classes: no class, no new and no this",
    pattern: r"\bclass\b|\bthis\b",
    hidden: "",
    kinds: [
        Kind {
            old: "'use strict';\n\n/// The last values of NAME.\nexports.last = class {\n  constructor(size) {\n    this.size = size;\n    this.values = [];\n  }\n\n  push(value) {\n    this.values.push(value);\n    if (this.values.length > this.size) this.values.shift();\n    return this.values.length;\n  }\n\n  all() {\n    return [...this.values];\n  }\n};\n",
            new: "'use strict';\n\n/// The last values of NAME.\nexports.last = (size) => {\n  const values = [];\n  return {\n    push(value) {\n      values.push(value);\n      if (values.length > size) values.shift();\n      return values.length;\n    },\n    all: () => [...values],\n  };\n};\n",
            test: "\ntest('the last of NAME', async () => {\n  const last = make((await load('GROUP/NAME')).default.last, 2);\n  for (const value of [1, 2, 3]) last.push(value);\n  assert.deepStrictEqual(last.all(), [2, 3]);\n});\n",
            hidden: "\ntest('the last of NAME', async () => {\n  const { push, all } = (await load('GROUP/NAME')).default.last(1);\n  assert.deepStrictEqual([push('a'), push('b'), all()], [1, 1, ['b']]);\n});\n",
        },
        Kind {
            old: "'use strict';\n\n/// Counts in NAME.\nexports.counter = class {\n  constructor(step = 1) {\n    this.step = step;\n    this.count = 0;\n  }\n\n  next() {\n    this.count += this.step;\n    return this.count;\n  }\n\n  back() {\n    this.count -= this.step;\n    return this.count;\n  }\n};\n",
            new: "'use strict';\n\n/// Counts in NAME.\nexports.counter = (step = 1) => {\n  let count = 0;\n  return { next: () => (count += step), back: () => (count -= step) };\n};\n",
            test: "\ntest('counter of NAME', async () => {\n  const counter = make((await load('GROUP/NAME')).default.counter, 2);\n  assert.deepStrictEqual([counter.next(), counter.next(), counter.back()], [2, 4, 2]);\n});\n",
            hidden: "\ntest('counter of NAME', async () => {\n  const { counter } = (await load('GROUP/NAME')).default;\n  const [{ next }, other] = [counter(), counter(10)];\n  assert.deepStrictEqual([next(), next(), other.next()], [1, 2, 10]);\n});\n",
        },
        Kind {
            old: "'use strict';\n\n/// Who listens to NAME.\nexports.listeners = class {\n  constructor() {\n    this.all = new Set();\n  }\n\n  add(listener) {\n    this.all.add(listener);\n    return () => this.all.delete(listener);\n  }\n\n  tell(value) {\n    for (const listener of this.all) listener(value);\n    return this.all.size;\n  }\n};\n",
            new: "'use strict';\n\n/// Who listens to NAME.\nexports.listeners = () => {\n  const all = new Set();\n  return {\n    add(listener) {\n      all.add(listener);\n      return () => all.delete(listener);\n    },\n    tell(value) {\n      for (const listener of all) listener(value);\n      return all.size;\n    },\n  };\n};\n",
            test: "\ntest('listeners of NAME', async () => {\n  const listeners = make((await load('GROUP/NAME')).default.listeners);\n  const heard = [];\n  const gone = listeners.add((value) => heard.push(value));\n  listeners.tell(1);\n  gone();\n  assert.deepStrictEqual([listeners.tell(2), heard], [0, [1]]);\n});\n",
            hidden: "\ntest('listeners of NAME', async () => {\n  const { add, tell } = (await load('GROUP/NAME')).default.listeners();\n  let heard = 0;\n  add((value) => (heard += value));\n  assert.deepStrictEqual([tell(2), tell(3), heard], [1, 1, 5]);\n});\n",
        },
    ],
};
