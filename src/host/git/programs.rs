//! What a repository's configuration would have git run, and what is put in its place: `.git/config` may have come with
//! an archive or lie in a shared folder, and a command that it names may be a file that a model has written.
//!
//! - Filters are emptied for every name that is configured, unless the user's own configuration (or the machine's) has
//!   that name: then it is the filter as it stands there, whatever the repository says. (A `process` that only the
//!   repository has cannot be taken away from it, so that such a filter is emptied, too.) Whether a filter is required
//!   stays: git then fails rather than taking a file unfiltered.
//! - Merge drivers become the merge of texts that git does itself.
//! - Hooks that are configured are switched off; those in folders are by `call`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::Repository;
use super::call::Call;
use crate::error::Result;
use crate::model::text::{excerpt, shell};

/// What of a repository's configuration is listed.
pub(super) const LISTED: &str = r"^(filter|merge|hook)\.";
/// The commands of a filter.
const FILTER: &[&str] = &["clean", "smudge", PROCESS];
const PROCESS: &str = "process";
const REQUIRED: &str = "required";
/// Of how many filters it is asked which files have them.
const MOST_ASKED: usize = 20;
/// What git does with texts that no driver is configured for; what is no text is in conflict.
const MERGE: &str = "git merge-file -q --marker-size=%L %A %O %B || exit 1";

/// Settings for one repository, and which filters they let through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Programs {
    pub settings: Vec<(OsString, OsString)>,
    /// Filters of the user's own.
    pub own: BTreeSet<Vec<u8>>,
    /// Filters of the repository alone.
    pub emptied: BTreeSet<Vec<u8>>,
}

/// A variable of the configuration: `filter.NAME.clean`.
struct Entry<'a> {
    /// Whether the repository says so, and not the user or the machine.
    repository: bool,
    section: &'a [u8],
    name: &'a [u8],
    variable: &'a [u8],
    value: Option<&'a [u8]>,
}

impl Programs {
    /// Reads what `git config -z --show-scope` lists.
    pub(super) fn of(listing: &[u8]) -> Programs {
        let mut programs = Programs::default();
        let mut own: BTreeMap<&[u8], BTreeMap<&[u8], &[u8]>> = BTreeMap::new();
        let entries: Vec<Entry<'_>> = entries(listing).collect();
        for entry in entries.iter().filter(|entry| !entry.repository && entry.section == b"filter") {
            own.entry(entry.name).or_default().insert(entry.variable, entry.value.unwrap_or_default());
        }
        let theirs = || entries.iter().filter(|entry| entry.repository);
        let say = |name: &[u8], variable: &str| {
            theirs().any(|entry| (entry.section, entry.name, entry.variable) == (b"filter", name, variable.as_bytes()))
        };
        for (name, variables) in &own {
            // An empty `process` takes the place of the other two, and nothing can be taken back.
            if !variables.contains_key(PROCESS.as_bytes()) && say(name, PROCESS) {
                continue;
            }
            for variable in FILTER {
                match variables.get(variable.as_bytes()) {
                    Some(value) => programs.set(b"filter", name, variable, value),
                    None if say(name, variable) => programs.set(b"filter", name, variable, b""),
                    None => {}
                }
            }
            if let Some(required) = variables.get(REQUIRED.as_bytes()) {
                programs.set(b"filter", name, REQUIRED, required);
            }
            programs.own.insert(name.to_vec());
        }
        // A name without a driver of its own may be that of one of git's.
        let theirs = theirs().filter(|entry| entry.section != b"merge" || entry.variable == b"driver");
        let theirs: BTreeSet<(&[u8], &[u8])> = theirs.map(|entry| (entry.section, entry.name)).collect();
        for (section, name) in theirs {
            match section {
                b"filter" if !programs.own.contains(name) => {
                    for variable in FILTER {
                        programs.set(section, name, variable, b"");
                    }
                    programs.emptied.insert(name.to_vec());
                }
                b"merge" => programs.set(section, name, "driver", MERGE.as_bytes()),
                b"hook" => programs.set(section, name, "enabled", b"false"),
                _ => {}
            }
        }
        programs
    }

    /// Returns what helps where git fails for want of a filter.
    pub(super) fn hint(&self) -> Option<String> {
        let name = shown(self.emptied.first()?);
        Some(format!("filters of the repository's own configuration are not run; {}", to_allow(&name)))
    }

    fn set(&mut self, section: &[u8], name: &[u8], variable: &str, value: &[u8]) {
        let key = [section, name, variable.as_bytes()].join(&b'.');
        self.settings.push((OsString::from_vec(key), OsString::from_vec(value.to_vec())));
    }
}

impl Repository {
    /// Tells the user which filters files have: those that run, outside of any sandbox, and those that do not. `call` is
    /// one for a checkout.
    pub(super) fn tell_filters(&self, git_dir: &Path, call: impl Fn() -> Result<Call>) -> Result<()> {
        let programs = self.programs_at(git_dir)?;
        let used = |name: &[u8]| -> Result<bool> {
            let name = String::from_utf8_lossy(name);
            let files =
                call()?.patterns().args(["ls-files", "-z", "--", &format!(":(attr:filter={name})")]).output()?;
            // A name that git cannot be asked for this way may be used.
            Ok(!files.status.success() || !files.stdout.is_empty())
        };
        for name in programs.own.iter().take(MOST_ASKED) {
            if used(name)? {
                let name = shown(name);
                self.remark(format!("git runs the filter `{name}` of your own configuration, outside of the sandbox"));
            }
        }
        for name in programs.emptied.iter().take(MOST_ASKED) {
            if used(name)? {
                let name = shown(name);
                let (what, how) = (format!("the filter `{name}` of the repository's configuration"), to_allow(&name));
                self.remark(format!("{what} is not run: files stay as they are; {how}"));
            }
        }
        if programs.emptied.len() > MOST_ASKED {
            let count = programs.emptied.len();
            self.remark(format!("none of the {count} filters of the repository's configuration is run"));
        }
        Ok(())
    }
}

fn shown(name: &[u8]) -> String {
    excerpt(&String::from_utf8_lossy(name))
}

fn to_allow(name: &str) -> String {
    format!("if you trust it, put it into your own: git config --global {} …", shell(&format!("filter.{name}.clean")))
}

/// Returns the entries of a listing: a scope, NUL, a name, a line end and the value if there is one, NUL.
fn entries(listing: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut parts = listing.split(|byte| *byte == 0);
    std::iter::from_fn(move || Some((parts.next()?, parts.next()?))).filter_map(|(scope, entry)| {
        let (key, value) = match memchr::memchr(b'\n', entry) {
            Some(end) => (&entry[..end], Some(&entry[end + 1..])),
            None => (entry, None),
        };
        let (first, last) = (memchr::memchr(b'.', key)?, memchr::memrchr(b'.', key)?);
        // `merge.tool` has no name: nothing that is named is meant.
        let name = key.get(first + 1..last)?;
        let repository = !matches!(scope, b"system" | b"global");
        Some(Entry { repository, section: &key[..first], name, variable: &key[last + 1..], value })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(listing: &str) -> (Vec<String>, usize, usize) {
        let programs = Programs::of(listing.replace('|', "\0").as_bytes());
        let settings = programs.settings.iter();
        let settings = settings.map(|(key, value)| format!("{}={}", key.display(), value.display())).collect();
        (settings, programs.own.len(), programs.emptied.len())
    }

    #[test]
    fn only_what_the_user_has_configured_is_run() {
        let (settings, own, emptied) = told(
            "global|filter.lfs.clean\ngit-lfs clean -- %f|system|filter.lfs.required\ntrue|\
             local|filter.lfs.clean\nevil|local|filter.lfs.smudge\nevil|\
             global|filter.own.process\nown|local|filter.own.clean\nevil|\
             global|filter.both.clean\nown|local|filter.both.process\nevil|\
             local|filter.a.b=c.smudge\nevil\nevil|worktree|filter.a.b=c.required\ntrue|local|filter.clean\nevil|\
             local|merge.union.driver\nevil %A|local|merge.tool\nvimdiff|local|merge.x.name\nX|\
             local|hook.lint.command\nevil|",
        );
        assert_eq!(
            settings,
            [
                "filter.lfs.clean=git-lfs clean -- %f",
                "filter.lfs.smudge=",
                "filter.lfs.required=true",
                "filter.own.clean=",
                "filter.own.process=own",
                "filter.a.b=c.clean=",
                "filter.a.b=c.smudge=",
                "filter.a.b=c.process=",
                "filter.both.clean=",
                "filter.both.smudge=",
                "filter.both.process=",
                "hook.lint.enabled=false",
                &format!("merge.union.driver={MERGE}"),
            ]
        );
        assert_eq!((own, emptied), (2, 2));
        assert_eq!(told(""), (Vec::new(), 0, 0));
    }
}
