//! Reads files that exist before a run: those of the workspace, and those of folders that the user grants.
//!
//! Each path is opened beneath its folder, so that no link and no `..` leads out. Files of git and of nietz and files
//! that are made to hold secrets are not read, unless the user names the very file. For a link, the file that it leads
//! to decides.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::attachments::AttachmentStore;
use super::confined::{Access, ConfinedDir, SizeLimit, invalid};
use super::file_lines;
use super::globs::{globs, limit_files};
use super::grep::grep_files;
use super::path;
use crate::error::{Code, Failure, Result};
use crate::model::attachment::AttachedFile;
use crate::model::collection::Collection;
use crate::model::effect::files::{FileLines, FileOp, FileOutcome, FileText};
use crate::model::effect::search::{Matches, SearchPart};
use crate::model::media;
use crate::model::path_template::PathTemplate;
use crate::model::text::{excerpt, shell};

/// The largest text that a flow can read.
const LARGEST: SizeLimit = SizeLimit { megabytes: 2, hint: None };
/// The largest file that a flow can attach to a message.
const LARGEST_ATTACHED: SizeLimit = SizeLimit { megabytes: media::LARGEST >> 20, hint: None };
/// How many directory entries one search looks at.
const MOST_SEEN: usize = 100_000;
/// Folders of generated files and of tools: nobody means a file in them by its bare name.
const SKIPPED: &[&str] = &["node_modules", "target", "__pycache__", "dist", "build", "vendor"];

/// The files that one run may read.
#[derive(Clone, Debug)]
pub struct Files {
    workspace: PathBuf,
    /// Folders and files outside of the workspace that the user granted.
    granted: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Files that the user named in an argument of the flow.
    named: Vec<PathBuf>,
    /// The flow's own collections: it may read their documents, wherever they are.
    collections: Vec<Collection>,
    /// nietz's own folders, which may lie below the workspace.
    excluded: Vec<PathBuf>,
    /// Where images and PDFs are kept that go with a message.
    attachments: AttachmentStore,
}

/// A file that a flow may read.
struct OpenedFile {
    file: File,
    full: PathBuf,
    /// Its path as flows see it.
    shown: String,
}

impl Files {
    pub fn new(workspace: &Path, granted: &[String], home: Option<&str>) -> Files {
        let home = home.map(PathBuf::from);
        let granted =
            granted.iter().map(|path| normalize_path(&workspace.join(expand(path, home.as_deref())))).collect();
        Files {
            workspace: workspace.to_owned(),
            granted,
            home,
            named: Vec::new(),
            collections: Vec::new(),
            excluded: Vec::new(),
            attachments: AttachmentStore::default(),
        }
    }

    /// Sets where images and PDFs are kept that go with a message.
    pub fn keeping(self, attachments: AttachmentStore) -> Files {
        Files { attachments, ..self }
    }

    /// Sets nietz's own folders, whose files are not read wherever they are.
    pub fn without(mut self, folders: &[PathBuf]) -> Files {
        self.excluded = path::below(&self.workspace, folders);
        self
    }

    /// Adds further files that a flow may read: documents of its own collections, and files that the user named in
    /// `params`.
    pub fn of_flow(mut self, params: &Value, collections: impl Iterator<Item = Collection>) -> Files {
        let texts = |param: &Value| match param {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let paths = params.as_object().into_iter().flat_map(|params| params.values().flat_map(texts));
        self.named =
            paths.map(|path| normalize_path(&self.workspace.join(expand(&path, self.home.as_deref())))).collect();
        self.collections = collections.collect();
        self
    }

    /// Reads or finds files.
    ///
    /// # Errors
    ///
    /// `permission-refused` outside of the readable folders, `path-refused` for files of git or nietz and for secrets,
    /// `request-invalid` if a file is no readable text or a glob is wrong, `disk-failed` if the disk refuses.
    pub fn perform(&self, op: &FileOp) -> Result<FileOutcome> {
        Ok(match op {
            FileOp::Read { path } => FileOutcome::Read(self.read(path)?),
            FileOp::ReadLines { path, from, count } => FileOutcome::ReadLines(self.read_lines(path, *from, *count)?),
            FileOp::Attach { path } => FileOutcome::Attach(self.attach(path)?),
            FileOp::Find { glob } => FileOutcome::Find(limit_files(self.find(glob)?)),
            FileOp::Grep { pattern, glob, part } => {
                FileOutcome::Grep(self.grep(pattern, glob.as_deref().unwrap_or("**"), part)?)
            }
        })
    }

    /// Returns path and text of a file; `None` if it does not exist.
    fn read(&self, path: &str) -> Result<Option<FileText>> {
        let Some(OpenedFile { file, full, shown }) = self.open(path)? else { return Ok(None) };
        let bytes = LARGEST.contents(file, path, |error| Failure::io(&full, "read", &error))?;
        let text = String::from_utf8(bytes).map_err(|_| invalid(path, "is not UTF-8 text"))?;
        Ok(Some(FileText { path: shown, text }))
    }

    /// Returns some lines of a file, which may be larger than what [`Files::read`] takes; `None` if it does not exist.
    fn read_lines(&self, path: &str, from: i64, count: u64) -> Result<Option<FileLines>> {
        let Some(OpenedFile { file, full, shown }) = self.open(path)? else { return Ok(None) };
        let found = file_lines::read(file, (path, from, count), |error| Failure::io(&full, "read", &error))?;
        let file_lines::ReadLines { text, first, count, cut, lines, bytes, sha256 } = found;
        Ok(Some(FileLines { path: shown, text, first, count, cut, lines, bytes, sha256 }))
    }

    /// Returns a file that is to go with a message, and keeps an image or a PDF; `None` if it does not exist.
    fn attach(&self, path: &str) -> Result<Option<AttachedFile>> {
        let Some(OpenedFile { file, full, shown }) = self.open(path)? else { return Ok(None) };
        let bytes = LARGEST_ATTACHED.contents(file, path, |error| Failure::io(&full, "read", &error))?;
        if let Some(attached) = AttachedFile::of_media(&shown, &bytes) {
            self.attachments.put(&bytes)?;
            return Ok(Some(attached));
        }
        if bytes.len() as u64 > LARGEST.megabytes << 20 {
            return Err(invalid(path, &format!("is a text of more than {} MB", LARGEST.megabytes)));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let kind = media::binary_type(error.as_bytes());
            invalid(path, &format!("is neither text nor an image or a PDF that models take ({kind})"))
        })?;
        Ok(Some(AttachedFile::of_text(&shown, &text)))
    }

    /// Opens a file that the flow may read; `None` if it does not exist.
    fn open(&self, path: &str) -> Result<Option<OpenedFile>> {
        let full = normalize_path(&self.workspace.join(expand(path, self.home.as_deref())));
        let Some((folder, below)) = self.place(&full) else {
            let message = format!("`{}` is outside of the workspace", excerpt(path));
            let folder = full.parent().unwrap_or(&full).display().to_string();
            return Err(Failure::new(Code::PermissionRefused, message)
                .hint(format!("to let the flow read it: --allow-read {}", shell(&folder))));
        };
        if !full.exists() {
            return Ok(None);
        }
        if !self.may_read(&full) {
            return Err(held_back(path, "is", path));
        }
        let confined = ConfinedDir::open(&folder)?;
        let file = confined.file(&below, Access::Read).map_err(|failure| match failure.code {
            Code::PathRefused => {
                Failure::new(Code::PathRefused, format!("`{}` cannot be read", excerpt(path))).because(failure.message)
            }
            _ => failure,
        })?;
        // If a link was followed, the file that it leads to must be allowed.
        match confined.path_of(&file) {
            Some(real) if real == below => {}
            Some(real) if self.may_read(&folder.join(&real)) => {}
            Some(real) => return Err(held_back(path, "leads to what is", &folder.join(real).display().to_string())),
            None => {
                return Err(Failure::new(Code::PathRefused, format!("where `{}` leads cannot be told", excerpt(path))));
            }
        }
        let shown = match full.strip_prefix(&self.workspace) {
            Ok(below) => below.display().to_string(),
            Err(_) => full.display().to_string(),
        };
        Ok(Some(OpenedFile { file, full, shown }))
    }

    /// Returns the readable folder that holds the path, and the path below that folder.
    fn place(&self, full: &Path) -> Option<(PathBuf, String)> {
        let below = |folder: &Path| {
            let below = full.strip_prefix(folder).ok()?.to_str()?;
            Some((folder.to_owned(), below.to_owned())).filter(|(_, below)| !below.is_empty())
        };
        std::iter::once(&self.workspace).chain(&self.granted).find_map(|folder| below(folder)).or_else(|| {
            // The user may have granted the very file.
            let itself = self.granted.iter().any(|granted| granted == full);
            itself.then(|| below(full.parent()?)).flatten()
        })
    }

    /// Tells whether a flow may read a file, given that it may read the folder.
    fn may_read(&self, full: &Path) -> bool {
        let lowercase = |part: Component<'_>| part.as_os_str().to_string_lossy().to_lowercase();
        let below = full.strip_prefix(&self.workspace).ok();
        let of_nietz = full.components().map(lowercase).any(|part| part == ".nietz");
        let held_back = of_nietz
            || self.excluded.iter().any(|folder| full.starts_with(folder))
            || full.components().next_back().map(lowercase).is_some_and(|name| is_secret(&name));
        let is_own = |path: &str| {
            self.collections
                .iter()
                .any(|collection| PathTemplate::of(collection).is_ok_and(|pattern| pattern.matches(path).is_some()))
        };
        !held_back
            || below.and_then(Path::to_str).is_some_and(is_own)
            || self.named.iter().chain(&self.granted).any(|path| path == full)
    }

    /// Returns the lines that match in the files that match a glob; files that cannot be read as text are skipped.
    fn grep(&self, pattern: &str, glob: &str, part: &SearchPart) -> Result<Matches> {
        grep_files(self.find(glob)?.into_iter(), pattern, part, |path| {
            let OpenedFile { file, full, .. } = self.open(path).ok()??;
            LARGEST.contents(file, path, |error| Failure::io(&full, "read", &error)).ok()
        })
    }

    /// Returns the paths of the files that match a glob, sorted.
    fn find(&self, glob: &str) -> Result<Vec<String>> {
        let matcher = globs(&[glob.to_owned()])?;
        let mut paths = Vec::new();
        let mut open = VecDeque::from([self.workspace.clone()]);
        let mut seen = 0;
        while let Some(folder) = open.pop_front() {
            // A folder that vanished or cannot be read is skipped.
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                seen += 1;
                let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
                let Some(name) = name.to_str() else { continue };
                if seen > MOST_SEEN || name == ".git" || name == ".nietz" {
                    continue;
                }
                if kind.is_dir() {
                    if !SKIPPED.contains(&name) && !name.starts_with('.') {
                        open.push_back(entry.path());
                    }
                } else if kind.is_file()
                    && !is_secret(&name.to_lowercase())
                    && let Some(below) = entry.path().strip_prefix(&self.workspace).ok().and_then(Path::to_str)
                    && matcher.is_match(below)
                {
                    paths.push(below.to_owned());
                }
            }
        }
        paths.sort();
        Ok(paths)
    }
}

fn held_back(path: &str, how: &str, real: &str) -> Failure {
    let message =
        format!("`{}` {how} of git or of nietz, or made to hold secrets: flows do not read it", excerpt(path));
    Failure::new(Code::PathRefused, message)
        .hint(format!("to let this flow read it all the same: --allow-read {}", shell(real)))
}

/// Tells whether files of this name, given in lower case, are made to hold secrets.
fn is_secret(name: &str) -> bool {
    const PLAIN: &[&str] = &["example", "sample", "template", "dist"];
    const NAMES: &[&str] = &[
        ".netrc",
        "_netrc",
        ".git-credentials",
        ".htpasswd",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".my.cnf",
        "credentials",
        "credentials.json",
        ".dockercfg",
        ".dockerconfigjson",
        ".s3cfg",
        ".boto",
        "kubeconfig",
        "service-account.json",
        "service_account.json",
    ];
    // These count with any ending: `id_rsa.bak`, `secrets.yaml`.
    const STEMS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "secrets"];
    const ENDINGS: &[&str] = &["env", "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk", "asc", "gpg"];
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    if name.starts_with(".env") {
        return !ending.is_some_and(|ending| PLAIN.contains(&ending));
    }
    let stem = name.split('.').next().unwrap_or(name);
    NAMES.contains(&name)
        || (STEMS.contains(&stem)
            && !["rs", "py", "js", "ts", "go", "pub", "md"].iter().any(|plain| ending == Some(plain)))
        || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

fn expand(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(path),
    }
}

/// Returns a path without `.` and `..`, without a look at the disk: this is safe because files are opened beneath their
/// folder.
fn normalize_path(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn text(path: &str, text: &str) -> Option<FileText> {
        Some(FileText { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn nothing_outside_of_the_workspace_is_read_without_a_grant() {
        let (work, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, other) = (work.path().canonicalize().unwrap(), beside.path().canonicalize().unwrap());
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join("src/a.rs"), "one\n").unwrap();
        fs::write(root.join(".git/config"), "x").unwrap();
        fs::write(root.join("blob"), [0xff, 0xfe]).unwrap();
        fs::write(other.join("b.rs"), "two\n").unwrap();
        fs::write(other.join("secret"), "three\n").unwrap();
        symlink(other.join("secret"), root.join("src/link")).unwrap();
        let home = other.display().to_string();
        let files = Files::new(&root, &[], Some(&home));
        assert_eq!(files.read("./src/../src/a.rs").unwrap(), text("src/a.rs", "one\n"));
        assert_eq!(files.read(&root.join("src/a.rs").display().to_string()).unwrap(), text("src/a.rs", "one\n"));
        assert_eq!(files.read("src/none.rs").unwrap(), None);
        let outside = other.join("b.rs").display().to_string();
        for (path, code) in [
            (outside.as_str(), Code::PermissionRefused),
            ("../x", Code::PermissionRefused),
            ("~/b.rs", Code::PermissionRefused),
            (".git/config", Code::PathRefused),
            ("src/link", Code::PathRefused),
            ("src", Code::RequestInvalid),
            ("blob", Code::RequestInvalid),
        ] {
            assert_eq!(files.read(path).unwrap_err().code, code, "{path}");
        }
        let granted = Files::new(&root, &["~/b.rs".to_owned()], Some(&home));
        assert_eq!(granted.read(&outside).unwrap(), text(&outside, "two\n"));
        assert_eq!(granted.read("~/secret").unwrap_err().code, Code::PermissionRefused);
        let folder = Files::new(&root, std::slice::from_ref(&home), None);
        assert_eq!(folder.read(&outside).unwrap(), text(&outside, "two\n"));
    }

    #[test]
    fn lines_of_a_file_are_read_as_far_as_it_may_be_read() {
        let work = tempfile::tempdir().unwrap();
        fs::create_dir_all(work.path().join(".git")).unwrap();
        fs::write(work.path().join("a.log"), "one\ntwo\nthree\n").unwrap();
        fs::write(work.path().join(".git/config"), "x").unwrap();
        fs::write(work.path().join("blob"), [0, 1]).unwrap();
        let files = Files::new(work.path(), &[], None);
        let found = files.read_lines("a.log", -2, 2).unwrap().unwrap();
        assert_eq!((found.path.as_str(), found.text.as_str(), found.first, found.lines), ("a.log", "two\nthree", 2, 3));
        assert_eq!(files.read_lines("none.log", 1, 1).unwrap(), None);
        for (path, code) in
            [(".git/config", Code::PathRefused), ("blob", Code::RequestInvalid), ("../x", Code::PermissionRefused)]
        {
            assert_eq!(files.read_lines(path, 1, 1).unwrap_err().code, code, "{path}");
        }
    }

    #[test]
    fn files_are_found_by_globs_and_not_in_folders_of_tools() {
        let work = tempfile::tempdir().unwrap();
        for path in ["a.rs", "src/a.rs", "target/a.rs", ".hidden/a.rs", ".nietz/a.rs"] {
            let path = work.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let files = Files::new(work.path(), &[], None);
        assert_eq!(files.find("**/a.rs").unwrap(), ["a.rs", "src/a.rs"]);
    }

    #[test]
    fn lines_are_found_in_files_that_may_be_read_and_nowhere_else() {
        let (work, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = work.path().canonicalize().unwrap();
        for (path, text) in [("src/a.rs", "one\nfee = 2\n"), (".env", "fee = 3\n"), ("target/a.rs", "fee = 4\n")] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(root.join("blob"), b"fee\0").unwrap();
        fs::write(beside.path().join("out.rs"), "fee = 5\n").unwrap();
        symlink(beside.path().join("out.rs"), root.join("src/link.rs")).unwrap();
        let files = Files::new(&root, &[], None);
        let found = files.grep("^fee", "**", &SearchPart::default()).unwrap();
        let lines: Vec<_> =
            found.lines.iter().map(|line| (line.path.as_str(), line.line, line.text.as_str())).collect();
        assert_eq!((lines, found.cut), (vec![("src/a.rs", 2, "fee = 2")], false));
        assert_eq!(files.grep("(", "**", &SearchPart::default()).unwrap_err().code, Code::RequestInvalid);
    }
}
