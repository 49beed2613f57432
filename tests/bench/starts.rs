//! What a person waits for first: commands that look, do nothing else, and end. Beside each stands this program, which does nothing.

use crate::measure::{Row, cost, pairs};
use crate::subject::Subject;

/// A command, and in how many milliseconds it shall be over.
const COMMANDS: [(&[&str], f64); 3] = [(&["--version"], 2.0), (&["flows"], 25.0), (&["check"], 40.0)];

pub(crate) fn rows(count: usize) -> Vec<Row> {
    let subject = Subject::new("http://127.0.0.1:1/v1");
    let empty = tempfile::tempdir().expect("a temporary folder");
    let mut rows = Vec::new();
    for (words, most) in COMMANDS {
        let ours = || cost(subject.nietz().args(words).current_dir(empty.path()));
        let (ours, floors) = pairs(count * 5, ours, || subject.floor(&["nothing"]));
        let name = format!("nietz {}, in an empty folder", words.join(" "));
        rows.push(Row::wall(&name, &ours, most));
        rows.push(Row::ratio("the same, beside a process that does nothing", &ours, &floors, f64::INFINITY));
    }
    rows
}
