//! Lists of runs, beside opening each journal and reading its ends.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::measure::{Row, cost, pairs};
use crate::subject::Subject;

/// The effects of each run.
const EFFECTS: usize = 400;

pub(crate) fn rows(count: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (runs, most) in [(60, 20.0), (1000, 100.0)] {
        let subject = Subject::new("http://127.0.0.1:1/v1");
        let one = subject.effects(EFFECTS);
        let journal = std::fs::read(subject.path(&one.journal())).expect("it has a journal");
        for number in 1..runs {
            let folder = subject.path(&format!(".nietz/runs/copy-{number:04}"));
            std::fs::create_dir(&folder).expect("a folder");
            std::fs::write(folder.join("journal.jsonl"), &journal).expect("a file");
        }
        // What is known is younger than its journals by more than what counts as the same moment.
        std::thread::sleep(std::time::Duration::from_millis(200));
        cost(subject.nietz().arg("runs"));
        let floor = || subject.floor(&["journals", ".nietz/runs"]);
        let (ours, floors) = pairs(count, || cost(subject.nietz().arg("runs")), floor);
        rows.push(Row::wall(&format!("a list of {runs} runs of {EFFECTS} effects"), &ours, most));
        rows.push(Row::ratio("the same, beside opening their journals", &ours, &floors, f64::INFINITY));
        if runs < 1000 {
            continue;
        }
        for words in [
            &["log"][..],
            &["log", "copy-0500"],
            &["log", "copy-0500", "12"],
            &["diff", "copy-0001", "copy-0002"],
            &["runs", "prune", "--older", "30d"],
        ] {
            let (ours, _) = pairs(count, || cost(subject.nietz().args(words)), || subject.floor(&["sleep", "0"]));
            rows.push(Row::wall(&format!("nietz {} among {runs}", words.join(" ")), &ours, most));
        }
    }
    rows
}

/// Opens each journal and reads how it begins and ends.
pub(crate) fn floor(folder: &str) {
    let mut read = 0;
    for entry in std::fs::read_dir(Path::new(folder)).expect("a folder").flatten() {
        let file = std::fs::File::open(entry.path().join("journal.jsonl")).expect("a journal");
        let length = file.metadata().expect("it is there").len();
        let mut piece = [0; 4096];
        read += file.read_at(&mut piece, 0).expect("it can be read");
        read += file.read_at(&mut piece[..64], length - 64).expect("it can be read");
    }
    assert!(read > 0);
}
