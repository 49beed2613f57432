//! The promise to models: what they read is whole, nothing in it runs together, and no path leads where their tools cannot go.

use insta::assert_snapshot;
use serde_json::json;

use super::{call, debug, has, is_analysis, project, step, task};
use crate::support::model_server::{ModelServer, Request, Response};

const FILES: &[(&str, &str)] = &[
    (
        "shelf/fines.py",
        "import json\n\n\ndef days_late(loan):\n    return loan['returned'] - loan['due']\n\n\ndef load(text):\n    return json.loads(text)\n",
    ),
    ("shelf/__init__.py", ""),
    (
        "test_shelf.py",
        "import unittest\nfrom shelf.fines import days_late, load\n\n\nclass Test(unittest.TestCase):\n    def test_late(self):\n        \
         self.assertEqual(days_late({'due': 3, 'returned': 5}), 3)\n\n    def test_out(self):\n        days_late({'due': 3, 'returned': None})\n\n    \
         def test_load(self):\n        load('{')\n\n    @unittest.skip('no printer')\n    def test_print(self):\n        pass\n\n    \
         def test_fine(self):\n        self.assertTrue(True)\n",
    ),
];

/// Two attempts for `test_out`: one that helps nothing, one that mends.
fn script(request: &Request) -> Response {
    let tried = task(request).contains("It did not help: ");
    let mended = task(request).contains("or loan['due']");
    match (is_analysis(request), step(request)) {
        (true, 0) => call("read_file", &json!({ "path": "shelf/fines.py" })),
        (true, _) => Response::text(
            json!({
                "root_cause": "days_late takes the day of a loan that is still out, which is None",
                "root_cause_category": "null_undefined_access",
                "location": { "file": "shelf/fines.py", "line": 5 },
                "fix_strategy": if tried { "take the day on which it is due: (loan['returned'] or loan['due'])" }
                    else { "take the day from the loan with get in days_late" },
                "confidence": 0.9,
                "related_failures": ["test_out (test_shelf.Test.test_out)"],
                "pattern": "open_end_is_none",
                "fix_template": "Say what an open end counts as before it is used",
            })
            .to_string(),
        ),
        (_, 0) if mended => call(
            "replace_in_file",
            &json!({ "path": "shelf/fines.py", "old": "loan.get('returned')", "new": "(loan.get('returned') or loan['due'])" }),
        ),
        (_, 0) => call(
            "replace_in_file",
            &json!({ "path": "shelf/fines.py", "old": "loan['returned'] -", "new": "loan.get('returned') -" }),
        ),
        _ => Response::text("I took it with get."),
    }
}

#[test]
fn an_analysis_and_a_fix_read_all_of_it_and_nothing_runs_together() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(script);
    let env = project(&server, FILES);
    let arguments = ["--test", "python3 -B -m unittest -v", "--wont-fix", "test_load", "--protect", "test_*.py"];
    debug(&env, "r1", &arguments);
    let prompts: Vec<String> = server.requests().iter().filter(|request| step(request) == 0).map(task).collect();
    let top = env.workspace().display().to_string();
    assert!(prompts.iter().all(|prompt| !prompt.contains(&top) && !prompt.contains("/worktrees/")), "{prompts:?}");
    assert_snapshot!(prompts[0], @r#"
    You find out why tests fail in this git repository. You look at it with tools, and change nothing yet.

    `python3 -B -m unittest -v` was run: 1 passed, 2 failed, 1 skipped.

    - test_out (test_shelf.Test.test_out) (test_shelf.py:10): TypeError
      TypeError: unsupported operand type(s) for -: 'NoneType' and 'int'
      at shelf/fines.py:5 in days_late
      trace, as far as it goes through the project:
        Traceback (most recent call last):
          File "test_shelf.py", line 10, in test_out
            days_late({'due': 3, 'returned': None})
          File "shelf/fines.py", line 5, in days_late
            return loan['returned'] - loan['due']

    - test_late (test_shelf.Test.test_late) (test_shelf.py:7): AssertionError
      AssertionError: 2 != 3
      expected: 3
      actual: 2
      at test_shelf.py:7 in test_late
      trace, as far as it goes through the project:
        Traceback (most recent call last):
          File "test_shelf.py", line 7, in test_late
            self.assertEqual(days_late({'due': 3, 'returned': 5}), 3)

    Skipped: test_print (test_shelf.Test.test_print)

    Leave these failures as they are; they are not yours to mend:
    - test_load

    The files of the repository:
    shelf/__init__.py
    shelf/fines.py
    test_shelf.py

    Read the code before you judge. You may run `python3 -B -m unittest -v`, and single tests as `python3 -B -m unittest -v MODULE.CLASS.NAME`; what they write is thrown away. Then answer with one JSON value:

    - `root_cause`: why it fails, in one or two sentences: the mechanism, not the symptom. Name the function or the line.
    - `root_cause_category`: one of the allowed words.
    - `location`: the file, and if you know it the line, where the cause is. Not the test.
    - `fix_strategy`: the concrete change, and where.
    - `confidence`: from 0 to 1.
    - `related_failures`: the names of those tests above that fail for this cause, and of no others. One cause at a time: others have their turn.
    - `pattern`: a short name for this kind of mistake, such as `null_access_without_check`.
    - `fix_template`: how mistakes of this kind are mended in general, in one line.
    - `prevention`: what would keep mistakes of this kind out of this project in future, in one line: a check, a rule, a test.
    - `security`: only if the cause lets somebody do, read or change what they must not: `critical`, `major` or `minor`.
    - `issues`: what you saw besides the cause that is wrong, each with its `issue`, its `location` as `path:line`, its `severity` (`critical`, `major` or `minor`), and `security`, true if it is a matter of that. Leave it out where there is nothing.

    You have 50 tool calls. Answer with the JSON value alone.
    "#);
    assert_snapshot!(prompts[1], @r#"
    You mend one thing in this git repository, in a worktree of your own.

    These tests fail:

    - test_out (test_shelf.Test.test_out) (test_shelf.py:10): TypeError
      TypeError: unsupported operand type(s) for -: 'NoneType' and 'int'
      at shelf/fines.py:5 in days_late
      trace, as far as it goes through the project:
        Traceback (most recent call last):
          File "test_shelf.py", line 10, in test_out
            days_late({'due': 3, 'returned': None})
          File "shelf/fines.py", line 5, in days_late
            return loan['returned'] - loan['due']

    Tests that fail for other causes have their turn later: 1.

    The root cause: days_late takes the day of a loan that is still out, which is None
    The strategy: take the day from the loan with get in days_late

    shelf/fines.py there, with the numbers of its lines:
    ```
    1: import json
    2: 
    3: 
    4: def days_late(loan):
    5:     return loan['returned'] - loan['due']
    6: 
    7: 
    8: def load(text):
    9:     return json.loads(text)
    ```

    Read for the analysis: shelf/fines.py

    The files of the repository:
    shelf/__init__.py
    shelf/fines.py
    test_shelf.py

    Do that, and nothing else: change as little as it needs. Do not weaken, skip or delete tests:
    what ran before must run again.

    These files are taken from the original commit when the tests are run, so changing them does not help:
    - `test_*.py`

    You may run `python3 -B -m unittest -v`, and single tests as `python3 -B -m unittest -v MODULE.CLASS.NAME`. You have 50 tool calls. Your work is committed for you. When you are done, stop calling tools and
    say in one or two sentences what you changed.
    "#);
    assert_snapshot!(prompts[2], @r#"
    You find out why tests fail in this git repository. You look at it with tools, and change nothing yet.

    `python3 -B -m unittest -v` was run: 1 passed, 2 failed, 1 skipped.

    - test_out (test_shelf.Test.test_out) (test_shelf.py:10): TypeError
      TypeError: unsupported operand type(s) for -: 'NoneType' and 'int'
      at shelf/fines.py:5 in days_late
      trace, as far as it goes through the project:
        Traceback (most recent call last):
          File "test_shelf.py", line 10, in test_out
            days_late({'due': 3, 'returned': None})
          File "shelf/fines.py", line 5, in days_late
            return loan.get('returned') - loan['due']

    - test_late (test_shelf.Test.test_late) (test_shelf.py:7): AssertionError
      AssertionError: 2 != 3
      expected: 3
      actual: 2
      at test_shelf.py:7 in test_late
      trace, as far as it goes through the project:
        Traceback (most recent call last):
          File "test_shelf.py", line 7, in test_late
            self.assertEqual(days_late({'due': 3, 'returned': 5}), 3)

    Skipped: test_print (test_shelf.Test.test_print)

    Leave these failures as they are; they are not yours to mend:
    - test_load

    What this session has tried already:
    - Cause: days_late takes the day of a loan that is still out, which is None (shelf/fines.py:5). Strategy: take the day from the loan with get in days_late. It did not help: I took it with get.
    Do not propose again what did not help.

    The files of the repository:
    shelf/__init__.py
    shelf/fines.py
    test_shelf.py

    Read the code before you judge. You may run `python3 -B -m unittest -v`, and single tests as `python3 -B -m unittest -v MODULE.CLASS.NAME`; what they write is thrown away. Then answer with one JSON value:

    - `root_cause`: why it fails, in one or two sentences: the mechanism, not the symptom. Name the function or the line.
    - `root_cause_category`: one of the allowed words.
    - `location`: the file, and if you know it the line, where the cause is. Not the test.
    - `fix_strategy`: the concrete change, and where.
    - `confidence`: from 0 to 1.
    - `related_failures`: the names of those tests above that fail for this cause, and of no others. One cause at a time: others have their turn.
    - `pattern`: a short name for this kind of mistake, such as `null_access_without_check`.
    - `fix_template`: how mistakes of this kind are mended in general, in one line.
    - `prevention`: what would keep mistakes of this kind out of this project in future, in one line: a check, a rule, a test.
    - `security`: only if the cause lets somebody do, read or change what they must not: `critical`, `major` or `minor`.
    - `issues`: what you saw besides the cause that is wrong, each with its `issue`, its `location` as `path:line`, its `severity` (`critical`, `major` or `minor`), and `security`, true if it is a matter of that. Leave it out where there is nothing.

    You have 50 tool calls. Answer with the JSON value alone.
    "#);
    // A later session is told what was learnt.
    let server = ModelServer::start(script);
    let env = env.var("OPENAI_BASE_URL", &server.url());
    debug(&env, "r2", &["a goal", "--test", "python3 -B -m unittest -v", "--no-fix"]);
    let prompt = task(&server.requests()[0]);
    assert!(prompt.starts_with("You find out why tests fail"), "{prompt}");
    assert!(prompt.contains("\nWhat is to be reached: a goal\n\n`python3"), "{prompt}");
}
