//! Counts the lines that a change adds and deletes, file by file.

use super::Repository;
use crate::error::Result;
use crate::model::effect::git::{ChangeStat, FileStat};

/// The most files that a flow gets; all are counted.
const MOST: usize = 1000;

/// The command that counts.
const COUNTED: [&str; 7] = ["diff-tree", "-r", "-z", "--numstat", "-M", "--no-ext-diff", "--no-textconv"];

impl Repository {
    pub(super) fn stat(&self, from: &str, to: &str) -> Result<ChangeStat> {
        let (from, to) = (self.need_commit(from)?, self.need_commit(to)?);
        let listed = self.read_only_call()?.args(COUNTED).args([from.as_str(), &to]).bytes()?;
        Ok(read(&listed))
    }
}

/// Reads what git lists: the lines added and deleted and the path, or an empty path and the old and the new one.
fn read(listed: &[u8]) -> ChangeStat {
    let mut stat = ChangeStat::default();
    let mut parts = listed.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    while let Some(head) = parts.next() {
        let mut fields = head.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(deleted), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let count = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
        let (added, deleted) = (count(added), count(deleted));
        let (old_path, path) = match path.is_empty() {
            true => (parts.next().map(text), text(parts.next().unwrap_or_default())),
            false => (None, text(path)),
        };
        stat.count += 1;
        stat.added += added.unwrap_or_default();
        stat.deleted += deleted.unwrap_or_default();
        if stat.files.len() < MOST {
            stat.files.push(FileStat { path, old_path, added, deleted });
        }
    }
    stat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_text_binaries_and_renames_are_counted() {
        let stat = read(b"2\t1\ta\tb.txt\x00-\t-\tpic\xff.png\x001\t0\t\x00old name\x00new name\x00");
        let file = |path: &str, old: Option<&str>, added, deleted| FileStat {
            path: path.to_owned(),
            old_path: old.map(str::to_owned),
            added,
            deleted,
        };
        assert_eq!(
            stat.files,
            [
                file("a\tb.txt", None, Some(2), Some(1)),
                file("pic\u{fffd}.png", None, None, None),
                file("new name", Some("old name"), Some(1), Some(0)),
            ]
        );
        assert_eq!((stat.count, stat.added, stat.deleted), (3, 3, 1));
    }
}
