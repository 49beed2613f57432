//! Where a pack comes from: a git repository at a tag or commit, a folder, an archive.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Code, Failure, Result};
use crate::host::git::fetch::{self, FetchedEntry, FetchedKind, TreeVisitor};
use crate::model::text::excerpt;
use crate::pack::intake::{self, Intake};
use crate::run::machine::Machine;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum PackSource {
    Git { url: String, reference: String },
    Folder(PathBuf),
    Archive(PathBuf),
}

impl PackSource {
    /// Parses `URL#TAG`, a folder or a `.tar.gz`; paths are relative to the workspace. Sources with a secret are refused,
    /// because the text is written to `nietz.lock`, which is committed.
    pub(super) fn parse(text: &str, machine: &Machine) -> Result<PackSource> {
        let workspace = &machine.workspace;
        if matches!(machine.redactor().text(text), Cow::Owned(_)) {
            return Err(secret_failure());
        }
        let unknown = |why: &str| {
            Failure::new(Code::PackNotFound, format!("`{}`: {why}", excerpt(text)))
                .hint("a source is URL#TAG, URL#COMMIT, a folder, a file NAME.tar.gz, or a name in an index (`nietz docs packs`)")
        };
        let remote = |text: &str| text.contains("://") || text.starts_with("git@") || text.ends_with(".git");
        if let Some((url, reference)) = text.rsplit_once('#') {
            if url.is_empty() || url.starts_with('-') || reference.is_empty() {
                return Err(unknown("this is not an address with a tag or commit"));
            }
            if names_a_user(url) {
                return Err(secret_failure());
            }
            let local = workspace.join(url);
            let url = if local.exists() { local.display().to_string() } else { url.to_owned() };
            return Ok(PackSource::Git { url, reference: reference.to_owned() });
        }
        let path = workspace.join(text);
        if path.is_dir() {
            return Ok(PackSource::Folder(path));
        }
        if path.is_file() && (text.ends_with(".tar.gz") || text.ends_with(".tgz")) {
            return Ok(PackSource::Archive(path));
        }
        Err(unknown(if remote(text) {
            "say which tag or commit: put `#v1.0.0` behind it"
        } else {
            "there is no such folder or archive"
        }))
    }

    /// Fills `pack` with the files of the pack; `scratch` is an empty folder. Returns the commit of a git source.
    pub(super) fn take(&self, machine: &Machine, scratch: &Path, pack: &Path) -> Result<Option<String>> {
        let raw = scratch.join("raw");
        for folder in [&raw, pack] {
            std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
        }
        match self {
            PackSource::Folder(folder) => intake::copy_folder(folder, pack).map(|()| None),
            PackSource::Archive(path) => {
                let file = File::open(path).map_err(|error| Failure::io(path, "read", &error))?;
                intake::unpack_archive(flate2::read::GzDecoder::new(file), &raw)?;
                intake::copy_folder(&intake::top(&raw), pack).map(|()| None)
            }
            PackSource::Git { url, reference } => {
                let git = scratch.join("git");
                let mut git_intake = GitIntake(Intake::new(&raw));
                let commit =
                    fetch::fetch(&machine.environment, (url, reference), &git, intake::is_part, &mut git_intake)?;
                intake::copy_folder(&raw, pack).map(|()| Some(commit))
            }
        }
    }
}

/// Returns the failure for an address with a secret. It does not show the address.
fn secret_failure() -> Failure {
    Failure::new(Code::PackNotFound, "the address has a password or a token in it, which would stand in nietz.lock")
        .hint("leave it out: git reads it from ~/.netrc; or use an address of ssh")
}

/// Tells whether an address has a user name or a password that may be secret. A user name alone is often a token, except for
/// ssh, whose keys are elsewhere and whose users mostly share one name.
fn names_a_user(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '\\']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':') || !scheme.to_ascii_lowercase().contains("ssh"))
}

/// Copies a fetched git tree into a folder.
struct GitIntake<'a>(Intake<'a>);

impl TreeVisitor for GitIntake<'_> {
    fn visit_entry(&mut self, listed: &FetchedEntry) -> Result<()> {
        let kind = match listed.kind {
            FetchedKind::File | FetchedKind::Folder => "",
            FetchedKind::Link => "a link",
            FetchedKind::Submodule => "another repository",
        };
        self.0.path(Path::new(OsStr::from_bytes(&listed.path)), kind.is_empty(), kind)?;
        self.0.expects(listed.size)
    }

    fn visit_content(&mut self, listed: &FetchedEntry, content: &mut dyn Read) -> Result<()> {
        // `visit_entry` has checked that the path is UTF-8.
        self.0.file(&String::from_utf8_lossy(&listed.path), listed.executable, listed.size, content)
    }
}

/// Returns a source of `nietz.lock` with another tag or commit.
pub(super) fn with_reference(source: &str, reference: &str) -> String {
    let url = source.rsplit_once('#').map_or(source, |(url, _)| url);
    format!("{url}#{reference}")
}

/// Returns the newest version among the tags of a repository, if `present` is a version and older.
pub(super) fn newest(machine: &Machine, url: &str, present: &str) -> Result<Option<String>> {
    let Some(now) = version(present) else { return Ok(None) };
    let tags = fetch::tags(&machine.environment, url)?;
    let newest = tags.into_iter().filter_map(|tag| Some((version(&tag)?, tag))).max();
    Ok(newest.filter(|(version, _)| *version > now).map(|(_, tag)| tag))
}

/// Returns the numbers of a tag such as `v1.2.3`; `None` if the tag is not a released version.
fn version(tag: &str) -> Option<Vec<u64>> {
    let numbers = tag.strip_prefix('v').unwrap_or(tag).split('.').map(|part| part.parse().ok());
    numbers.collect::<Option<Vec<u64>>>().filter(|numbers| numbers.len() >= 2)
}
