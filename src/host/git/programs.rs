//! Replaces the programs that a repository's configuration would have git run. `.git/config` may have come with an
//! archive or lie in a shared folder, and a command that it names may be a file that a model has written.
//!
//! - Every configured filter is emptied, unless the user's own configuration (or the machine's) has a filter of that name:
//!   then the user's filter runs, whatever the repository says. (A `process` that only the repository has cannot be
//!   unset, so such a filter is emptied, too.) `required` stays: git then fails rather than taking a file unfiltered.
//!   A filter runs in the root folder, so that a relative path in its command is no file of the worktree; a command that
//!   still refers to a file of the worktree is refused.
//! - Merge drivers are replaced by git's own merge of texts.
//! - Programs that a repository has git-lfs run (extensions, transfer agents) are replaced by `false`.
//! - Configured hooks are switched off here, hooks in folders by `call`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::Repository;
use super::call::GitCall;
use super::stage::summarize_names;
use crate::error::{Code, Failure, Result};
use crate::model::text::{excerpt, line, shell};

/// The settings of a repository's configuration that are listed.
pub(super) const LISTED: &str = r"^(filter|merge|hook|lfs)\.";
/// The commands of a filter.
const FILTER: &[&str] = &["clean", "smudge", PROCESS];
const PROCESS: &str = "process";
const REQUIRED: &str = "required";
/// Put before a filter's command: git would run it in the worktree, whose files a model may have written.
const LEAVE_WORKTREE: &[u8] = b"cd /; ";
/// Parts of a command that lead to the worktree, wherever the command runs.
const LEADING: &[&str] = &["--show-toplevel", "--show-cdup", "--show-prefix", "GIT_WORK_TREE", "GIT_PREFIX"];
/// How the variables end by which git-lfs chooses a program for transfers.
const AGENT: &str = ".standalonetransferagent";
/// The filter that `git lfs install` configures.
const LFS: &str = "lfs";
/// The longest value, in bytes, that is shown for copying.
const LONGEST_SHOWN: usize = 500;
/// For how many filters git is asked which files use them.
const MOST_ASKED: usize = 20;
/// Merges as git does without a configured driver; binary files conflict.
const MERGE: &str = "git merge-file -q --marker-size=%L %A %O %B || exit 1";

/// Settings for one repository, and the filters that they let run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Programs {
    pub settings: Vec<(OsString, OsString)>,
    /// Filters of the user's own configuration, with their commands.
    pub user_filters: BTreeMap<Vec<u8>, Vec<(&'static str, String)>>,
    /// Filters that only the repository has and the user trusts, with their commands.
    pub trusted: BTreeMap<Vec<u8>, Vec<(&'static str, String)>>,
    /// The repository's variables that would have git-lfs run programs.
    pub lfs: BTreeSet<String>,
    /// Filters of the repository that the user does not trust.
    pub disabled_filters: BTreeSet<Vec<u8>>,
    /// For each disabled filter, how the user can allow it.
    pub allowed_by: BTreeMap<Vec<u8>, String>,
}

/// A variable of the configuration: `filter.NAME.clean`.
struct ConfigEntry<'a> {
    /// Whether the repository's configuration has it, and not the user's or the machine's.
    repository: bool,
    section: &'a [u8],
    name: &'a [u8],
    variable: &'a [u8],
    value: Option<&'a [u8]>,
}

impl Programs {
    /// Parses the listing of `git config -z --show-scope`. `trusted` are commands of the repository in the form of [`item`].
    pub(super) fn of(listing: &[u8], trusted: &BTreeSet<String>) -> Programs {
        let mut programs = Programs::default();
        let mut own: BTreeMap<&[u8], BTreeMap<&[u8], &[u8]>> = BTreeMap::new();
        let entries: Vec<ConfigEntry<'_>> = entries(listing).collect();
        for entry in entries.iter().filter(|entry| !entry.repository && entry.section == b"filter") {
            own.entry(entry.name).or_default().insert(entry.variable, entry.value.unwrap_or_default());
        }
        let theirs = || entries.iter().filter(|entry| entry.repository);
        let is_set = |name: &[u8], variable: &str| {
            theirs().any(|entry| (entry.section, entry.name, entry.variable) == (b"filter", name, variable.as_bytes()))
        };
        for (name, variables) in &own {
            // An emptied `process` would still replace `clean` and `smudge`, and a setting cannot be unset.
            if !variables.contains_key(PROCESS.as_bytes()) && is_set(name, PROCESS) {
                continue;
            }
            let mut commands = Vec::new();
            for variable in FILTER {
                match variables.get(variable.as_bytes()) {
                    Some([]) => programs.set(b"filter", name, variable, b""),
                    Some(value) => {
                        programs.set(b"filter", name, variable, &[LEAVE_WORKTREE, value].concat());
                        commands.push((*variable, String::from_utf8_lossy(value).into_owned()));
                    }
                    None if is_set(name, variable) => programs.set(b"filter", name, variable, b""),
                    None => {}
                }
            }
            if let Some(required) = variables.get(REQUIRED.as_bytes()) {
                programs.set(b"filter", name, REQUIRED, required);
            }
            programs.user_filters.insert(name.to_vec(), commands);
        }
        for key in keys_of_lfs(listing) {
            let value = if key.to_lowercase().ends_with(AGENT) { "" } else { "false" };
            programs.settings.push((key.clone().into(), value.into()));
            programs.lfs.insert(key);
        }
        // A merge section without a `driver` may be for one of git's built-in drivers.
        let theirs = theirs().filter(|entry| entry.section != b"merge" || entry.variable == b"driver");
        let theirs: BTreeSet<(&[u8], &[u8])> = theirs.map(|entry| (entry.section, entry.name)).collect();
        for (section, name) in theirs {
            match section {
                b"filter" if !programs.user_filters.contains_key(name) => {
                    let commands = commands_of(&entries, name);
                    let is_trusted = |(variable, command): &(&'static str, String)| {
                        item(name, variable, command).is_some_and(|item| trusted.contains(&item))
                    };
                    if !commands.is_empty() && commands.iter().all(is_trusted) {
                        for (variable, command) in &commands {
                            programs.set(section, name, variable, &[LEAVE_WORKTREE, command.as_bytes()].concat());
                        }
                        programs.trusted.insert(name.to_vec(), commands);
                        continue;
                    }
                    for variable in FILTER {
                        programs.set(section, name, variable, b"");
                    }
                    programs.disabled_filters.insert(name.to_vec());
                    programs.allowed_by.insert(name.to_vec(), to_allow(&entries, name));
                }
                b"merge" => programs.set(section, name, "driver", MERGE.as_bytes()),
                b"hook" => programs.set(section, name, "enabled", b"false"),
                _ => {}
            }
        }
        programs
    }

    /// Returns the hint for a failure of git for want of a filter.
    pub(super) fn hint(&self) -> Option<String> {
        let (_, how) = self.allowed_by.first_key_value()?;
        Some(format!("filters of the repository's own configuration are not run; {how}"))
    }

    /// Returns whether git may run any filter.
    pub(super) fn run_filters(&self) -> bool {
        !self.user_filters.is_empty() || !self.trusted.is_empty()
    }

    fn set(&mut self, section: &[u8], name: &[u8], variable: &str, value: &[u8]) {
        let key = [section, name, variable.as_bytes()].join(&b'.');
        self.settings.push((OsString::from_vec(key), OsString::from_vec(value.to_vec())));
    }
}

/// Returns the commands of a filter that only the repository has. Bytes that are not UTF-8 may be lost: [`item`] trusts no
/// such command.
fn commands_of(entries: &[ConfigEntry<'_>], name: &[u8]) -> Vec<(&'static str, String)> {
    let last = |variable: &&'static str| {
        let mut all = entries.iter().filter(|entry| entry.section == b"filter" && entry.name == name);
        let found = all.rfind(|entry| entry.variable == variable.as_bytes())?.value.unwrap_or_default();
        (!found.is_empty()).then(|| (*variable, String::from_utf8_lossy(found).into_owned()))
    };
    FILTER.iter().filter_map(last).collect()
}

/// Returns the permission item by which the user trusts a command of the repository: `filter=NAME.clean=COMMAND`. `None`
/// for an ambiguous name or command, which cannot be trusted.
fn item(name: &[u8], variable: &str, command: &str) -> Option<String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let name = std::str::from_utf8(name).ok().filter(|name| name.as_bytes().iter().all(plain))?;
    let clear = !command.contains([char::REPLACEMENT_CHARACTER, '\n']);
    clear.then(|| format!("filter={name}.{variable}={command}"))
}

impl Repository {
    /// Returns the permission items for the filter commands of the repository's own configuration.
    ///
    /// # Errors
    ///
    /// `git-missing` without a repository, `git-failed` if git cannot read its configuration.
    pub fn filters(&self) -> Result<BTreeSet<String>> {
        let own = self.git_folders()?.own.clone();
        let listed = self.program_settings(&own)?;
        let entries: Vec<ConfigEntry<'_>> = entries(&listed).collect();
        let programs = Programs::of(&listed, &BTreeSet::new());
        let items = programs.disabled_filters.iter().flat_map(|name| {
            commands_of(&entries, name).into_iter().filter_map(|(variable, command)| item(name, variable, &command))
        });
        Ok(items.collect())
    }

    /// Tells the user which filters the files of a folder use: those that run, outside of any sandbox, and those that do
    /// not. Refuses a filter that would run and whose command refers to a file of the folder. `call` makes a command for it.
    pub(super) fn tell_filters(&self, git_dir: &Path, folder: &Path, call: impl Fn() -> Result<GitCall>) -> Result<()> {
        let programs = self.programs_at(git_dir)?;
        let used = |name: &[u8]| -> Result<bool> {
            let name = String::from_utf8_lossy(name);
            let files =
                call()?.patterns().args(["ls-files", "-z", "--", &format!(":(attr:filter={name})")]).output()?;
            // If git cannot search for the name, the filter may be in use.
            Ok(!files.status.success() || !files.stdout.is_empty())
        };
        let own = programs.user_filters.iter().map(|filter| (filter, "your own configuration"));
        let trusted = programs.trusted.iter().map(|filter| (filter, "the repository's configuration, which you trust"));
        for ((name, commands), whose) in own.take(MOST_ASKED).chain(trusted.take(MOST_ASKED)) {
            if used(name)? {
                let name = display_name(name);
                for (variable, command) in commands {
                    if let Some(word) = word_within(command, folder) {
                        return Err(refused(&format!("filter.{name}.{variable}"), command, word));
                    }
                }
                self.remark(format!("git runs the filter `{name}` of {whose}, outside of the sandbox"));
            }
        }
        for name in programs.disabled_filters.iter().take(MOST_ASKED) {
            if used(name)? {
                let how = programs.allowed_by.get(name).map_or("", String::as_str);
                let what = format!("the filter `{}` of the repository's configuration", display_name(name));
                self.remark(format!("{what} is not run: files stay as they are; {how}"));
            }
        }
        if !programs.lfs.is_empty() && !programs.user_filters.is_empty() {
            let named = summarize_names(programs.lfs.iter().map(|key| format!("`{}`", excerpt(key))));
            self.remark(format!("what the repository's configuration has git-lfs run is not run: {named}"));
        }
        if programs.disabled_filters.len() > MOST_ASKED {
            let count = programs.disabled_filters.len();
            self.remark(format!("none of the {count} filters of the repository's configuration is run"));
        }
        Ok(())
    }
}

/// Returns the first word of a command that may refer to a file of the folder.
fn word_within<'c>(command: &'c str, folder: &Path) -> Option<&'c str> {
    let ends =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | '&' | '(' | ')' | '<' | '>' | '=');
    let mut words = command.split(ends).filter(|word| !word.is_empty());
    let first = words.clone().next();
    words.find(|word| {
        let plain = !word.starts_with(['/', '~', '$', '%', '-']);
        let exists = || std::fs::symlink_metadata(folder.join(word)).is_ok();
        // A word without `/` counts only if it looks like a file name, with a dot, and such a file exists.
        let named = word.contains('/') && (Some(*word) == first || word.starts_with('.') || exists());
        LEADING.iter().any(|leading| word.contains(leading)) || plain && (named || word.contains('.') && exists())
    })
}

fn refused(entry: &str, command: &str, word: &str) -> Failure {
    let (command, word) = (excerpt(command), excerpt(word));
    let message =
        format!("`{entry}` of git's configuration is `{command}`, and `{word}` is a file that a model may write");
    Failure::new(Code::PermissionRefused, message).hint(format!(
        "put the program outside of the repository, and name it by its whole path: git config --global '{entry}' …"
    ))
}

/// Returns the variables by which a repository has git-lfs run programs.
fn keys_of_lfs(listing: &[u8]) -> Vec<String> {
    let mut parts = listing.split(|byte| *byte == 0);
    let pairs = std::iter::from_fn(|| Some((parts.next()?, parts.next()?)));
    let keys = pairs.filter(|(scope, _)| !matches!(*scope, b"system" | b"global")).map(|(_, entry)| {
        let end = memchr::memchr(b'\n', entry).unwrap_or(entry.len());
        String::from_utf8_lossy(&entry[..end]).into_owned()
    });
    let runs = |key: &String| {
        let key = key.to_lowercase();
        let ends = |start: &str, ends: &[&str]| key.starts_with(start) && ends.iter().any(|end| key.ends_with(end));
        ends("lfs.extension.", &[".clean", ".smudge"])
            || ends("lfs.customtransfer.", &[".path"])
            || ends("lfs.", &[AGENT])
    };
    keys.filter(runs).collect()
}

fn display_name(name: &[u8]) -> String {
    excerpt(&String::from_utf8_lossy(name))
}

/// Returns how the user can allow a filter of the repository: as lines to copy, if all of it can be shown unchanged.
fn to_allow(entries: &[ConfigEntry<'_>], name: &[u8]) -> String {
    let mut all = commands_of(entries, name);
    let required = entries
        .iter()
        .rfind(|entry| (entry.section, entry.name, entry.variable) == (b"filter", name, REQUIRED.as_bytes()));
    let items: Option<Vec<String>> = all.iter().map(|(variable, command)| item(name, variable, command)).collect();
    all.extend(required.map(|entry| (REQUIRED, String::from_utf8_lossy(entry.value.unwrap_or(b"true")).into_owned())));
    let clear =
        |text: &str| text.len() <= LONGEST_SHOWN && line(text) == text && !text.contains(char::REPLACEMENT_CHARACTER);
    let allowed = items.filter(|items| !items.is_empty() && items.iter().all(|item| clear(item)));
    let allowed = allowed.map(|items| items.iter().map(|item| format!(" --allow {}", shell(item))).collect::<String>());
    let trust = format!(
        "if you trust its command: nietz trust add .{}, or put it into your own",
        allowed.unwrap_or_else(|| " (it tells how)".to_owned())
    );
    if name == LFS.as_bytes() && all.iter().all(|(_, value)| value.starts_with("git-lfs ") || value == "true") {
        return format!("{trust}: git lfs install");
    }
    let name = String::from_utf8_lossy(name);
    if all.is_empty() || !clear(&name) || !all.iter().all(|(_, value)| clear(value)) {
        return format!(
            "{trust}: git config --global {} …",
            shell(&format!("filter.{}.clean", display_name(name.as_bytes())))
        );
    }
    let lines = all.iter().map(|(variable, value)| {
        format!("\ngit config --global {} {}", shell(&format!("filter.{name}.{variable}")), shell(value))
    });
    format!("{trust}:{}", lines.collect::<String>())
}

/// Parses the entries of a listing. Each is a scope, NUL, a name, a line end and the value if there is one, NUL.
fn entries(listing: &[u8]) -> impl Iterator<Item = ConfigEntry<'_>> {
    let mut parts = listing.split(|byte| *byte == 0);
    std::iter::from_fn(move || Some((parts.next()?, parts.next()?))).filter_map(|(scope, entry)| {
        let (key, value) = match memchr::memchr(b'\n', entry) {
            Some(end) => (&entry[..end], Some(&entry[end + 1..])),
            None => (entry, None),
        };
        let (first, last) = (memchr::memchr(b'.', key)?, memchr::memrchr(b'.', key)?);
        // A setting such as `merge.tool` has no middle part, and configures no program.
        let name = key.get(first + 1..last)?;
        let repository = !matches!(scope, b"system" | b"global");
        Some(ConfigEntry { repository, section: &key[..first], name, variable: &key[last + 1..], value })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(listing: &str) -> (Vec<String>, usize, usize) {
        let programs = Programs::of(listing.replace('|', "\0").as_bytes(), &BTreeSet::new());
        let settings = programs.settings.iter();
        let settings = settings.map(|(key, value)| format!("{}={}", key.display(), value.display())).collect();
        (settings, programs.user_filters.len(), programs.disabled_filters.len())
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
                "filter.lfs.clean=cd /; git-lfs clean -- %f",
                "filter.lfs.smudge=",
                "filter.lfs.required=true",
                "filter.own.clean=",
                "filter.own.process=cd /; own",
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

    #[test]
    fn a_command_that_means_a_file_of_the_worktree_is_found() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for file in ["clean", "strip.sh", "tools/strip.py"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
            std::fs::write(path, "").expect("a file can be written");
        }
        for (command, word) in [
            ("git-lfs clean -- %f", None),
            ("\"git-crypt\" smudge", None),
            ("/opt/x/strip.sh %f", None),
            ("sed -e 's/a/b/'", None),
            ("~/bin/x; $HOME/y.sh", None),
            ("indent -kr other.sh", None),
            ("./x", Some("./x")),
            ("not/there %f", Some("not/there")),
            ("sh strip.sh", Some("strip.sh")),
            ("python3 'tools/strip.py' %f", Some("tools/strip.py")),
            ("sh -c \"cat | ../x\"", Some("../x")),
            ("$(git rev-parse --show-toplevel)/x", Some("--show-toplevel")),
            ("\"$GIT_WORK_TREE\"/x", Some("$GIT_WORK_TREE")),
        ] {
            assert_eq!(word_within(command, folder.path()), word, "{command}");
        }
    }
}
