//! The files of one pack, read by paths that cannot leave it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::assets;
use crate::disk;
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;
use crate::model::effect::Sources;
use crate::model::text::excerpt;
use crate::pack::data_folder::DataFolder;
use crate::pack::path::{below, is_reached};
use crate::pack::seal::Seal;

/// Source files with more bytes than this are refused: people are meant to read them.
const LARGEST: u64 = 4 * 1024 * 1024;
/// The most bytes of text that are kept of one pack.
const MOST_TEXT: usize = 64 << 20;

/// The root of a pack: the folder that holds `flows/`, `personas/` and `quotes/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    Disk(PathBuf),
    Bundled,
}

/// The files of one pack. The texts that were read are remembered, and the journal records their digests.
#[derive(Clone)]
pub struct PackTree {
    pub root: Root,
    /// The name of a flow that stands in no pack, without its ending.
    single_flow: Option<String>,
    /// What an installed tree must be; the tree is checked before anything of it is used.
    seal: Option<Arc<Seal>>,
    /// What a project has in place of files of the flow that this tree was found for.
    overlay: Option<Arc<Overlay>>,
    texts: Arc<Mutex<BTreeMap<String, Arc<str>>>>,
    /// The folders that the flow has read whole, also where it could not be loaded in the end.
    folders: Arc<Mutex<BTreeMap<String, DataFolder>>>,
}

/// The files of a project that override those of one flow.
pub(crate) struct Overlay {
    /// The project's files.
    pub tree: PackTree,
    /// The folder of the flow's own files: `flows/hello/`.
    pub folder: String,
    pub files: BTreeSet<String>,
    /// The modules that stand beside them, and that nothing reads.
    pub unused: Vec<String>,
}

/// A file of a project that overrides one of a flow.
pub(crate) struct OverridingFile {
    /// The path, which is the same in the project and in the flow's pack.
    pub path: String,
    pub text: Arc<str>,
    /// The text of the flow's own file; none if the flow has no file there.
    pub original: Option<Arc<str>>,
}

impl PackTree {
    pub fn new(root: Root) -> PackTree {
        PackTree { root, single_flow: None, seal: None, overlay: None, texts: Arc::default(), folders: Arc::default() }
    }

    /// Returns the files of an installed pack.
    pub fn sealed(folder: PathBuf, seal: Seal) -> PackTree {
        PackTree { seal: Some(Arc::new(seal)), ..PackTree::new(Root::Disk(folder)) }
    }

    /// Returns which installed pack this is, if it is one.
    pub fn seal(&self) -> Option<&Seal> {
        self.seal.as_deref()
    }

    /// Returns the files of a flow that stands in no pack: Lua files beside it, and the folder of its name.
    pub fn for_single_flow(root: Root, name: &str) -> PackTree {
        PackTree { single_flow: Some(name.to_owned()), ..PackTree::new(root) }
    }

    /// Returns the same files with those of a project over them.
    pub(crate) fn under(&self, overlay: Option<Overlay>) -> PackTree {
        // Other flows of the tree keep the texts that they have read.
        PackTree { overlay: overlay.map(Arc::new), texts: Arc::default(), folders: Arc::default(), ..self.clone() }
    }

    /// Returns the files of a project that a flow reads in place of its own, or beside them: all of those over its own folder,
    /// and of those that flows share what the modules reach that it has read. So the flow was loaded before.
    ///
    /// # Errors
    ///
    /// Those of [`PackTree::text`].
    pub(crate) fn reached_overriding(&self) -> Result<Vec<OverridingFile>> {
        let mut files = self.overriding()?;
        let Some(overlay) = self.overlay.as_ref().filter(|_| !files.is_empty()) else { return Ok(files) };
        let theirs = self.own_list("flows", "");
        let read = self.lock_texts().keys().cloned().collect();
        files.retain(|file| file.path.starts_with(&overlay.folder) || is_reached(&file.path, &theirs, &read));
        Ok(files)
    }

    /// Returns the files of a project that are over those of this tree, sorted by their paths.
    ///
    /// # Errors
    ///
    /// Those of [`PackTree::text`].
    pub(crate) fn overriding(&self) -> Result<Vec<OverridingFile>> {
        let Some(overlay) = &self.overlay else { return Ok(Vec::new()) };
        let read = |path: &String| {
            let Some(text) = overlay.text(path)? else { return Ok(None) };
            Ok(Some(OverridingFile { path: path.clone(), text, original: self.own_text(path)? }))
        };
        overlay.files.iter().filter_map(|path| read(path).transpose()).collect()
    }

    /// Returns the modules of a project that stand where its overriding files do, and are not read.
    pub(crate) fn unused_modules(&self) -> &[String] {
        self.overlay.as_ref().map_or(&[], |overlay| &overlay.unused)
    }

    /// Returns the text of a file by its path below the root, if there is such a file. A project's file that overrides it
    /// comes first.
    ///
    /// # Errors
    ///
    /// `path-refused` if the path or a link leads out of the pack; `document-unreadable` if the file is too large or not
    /// UTF-8; `pack-changed` if an installed pack is not as it was.
    pub fn text(&self, path: &str) -> Result<Option<Arc<str>>> {
        if let Some(text) = self.lock_texts().get(path) {
            return Ok(Some(text.clone()));
        }
        let overriding = self.overlay.as_ref().map(|overlay| overlay.text(path)).transpose()?.flatten();
        let Some(text) = overriding.map_or_else(|| self.own_text(path), |text| Ok(Some(text)))? else {
            return Ok(None);
        };
        let mut seen = self.lock_texts();
        if seen.values().map(|text| text.len()).sum::<usize>() + text.len() > MOST_TEXT {
            let message = format!("the files that were read here have more than {} MB in all", MOST_TEXT >> 20);
            return Err(Failure::new(Code::DocumentUnreadable, message).because(format!("the last of them is {path}")));
        }
        seen.insert(path.to_owned(), text.clone());
        Ok(Some(text))
    }

    /// Returns the text of a file of the tree itself, whatever overrides it.
    ///
    /// # Errors
    ///
    /// Those of [`PackTree::text`].
    pub(crate) fn own_text(&self, path: &str) -> Result<Option<Arc<str>>> {
        let Some(bytes) = self.bytes(path)? else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|error| {
            Failure::new(
                Code::DocumentUnreadable,
                format!("{path}: byte {} is not UTF-8", error.utf8_error().valid_up_to()),
            )
            .hint("save the file as UTF-8")
        })?;
        Ok(Some(text.trim_start_matches('\u{feff}').into()))
    }

    fn lock_texts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<str>>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let root = match &self.root {
            Root::Bundled => return Ok(assets::read(path).map(<[u8]>::to_vec)),
            Root::Disk(root) => root,
        };
        let sealed = self.seal.as_ref().map(|seal| seal.contents(root)).transpose()?;
        if !self.is_of_pack(path) {
            return Err(Failure::new(Code::PathRefused, format!("{} is not a file of its pack", excerpt(path)))
                .hint("a pack is what stands in flows/, personas/, quotes/ and tests/; copy the file there"));
        }
        if let Some(contents) = sealed {
            return Ok(contents.get(path).cloned());
        }
        let full = root.join(path);
        let real = match full.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::io(&full, "read", &error)),
        };
        let base = root.canonicalize().map_err(|error| Failure::io(root, "read", &error))?;
        if !real.starts_with(&base) {
            return Err(Failure::new(Code::PathRefused, format!("{path} is a link that leads out of its pack"))
                .hint("copy the file into the pack"));
        }
        let metadata = real.metadata().map_err(|error| Failure::io(&full, "read", &error))?;
        if !metadata.is_file() {
            return Ok(None);
        }
        if metadata.len() > LARGEST {
            return Err(Failure::new(Code::DocumentUnreadable, format!("{path} is larger than {LARGEST} bytes")));
        }
        crate::disk::read(&real, crate::disk::Links::NotLast, LARGEST)
    }

    /// Tells whether a path can be a file of this pack. A whole project or a user's downloads may stand beside the pack's
    /// folders, and the flow must not read them.
    fn is_of_pack(&self, path: &str) -> bool {
        if path.split('/').any(|part| part.starts_with('.')) {
            return false;
        }
        match (path.split_once('/'), &self.single_flow) {
            (Some((first, _)), Some(name)) => first == name,
            (None, Some(_)) => path.ends_with(".lua") || path.ends_with(".luau"),
            (Some((first, _)), None) => matches!(first, "flows" | "personas" | "quotes" | "tests"),
            (None, None) => path == "pack.yaml",
        }
    }

    /// Returns the paths of all files in one top folder with this ending, sorted. For an installed pack that was changed,
    /// these are the files that are there now; reading any of them fails. A top folder that is a link out of the tree has
    /// no files.
    pub fn list(&self, top: &str, ending: &str) -> Vec<String> {
        let mut paths = self.own_list(top, ending);
        if let Some(overlay) = &self.overlay {
            let start = format!("{top}/");
            paths.extend(
                overlay.files.iter().filter(|path| path.starts_with(&start) && path.ends_with(ending)).cloned(),
            );
            paths.sort();
            paths.dedup();
        }
        paths
    }

    /// Returns what [`PackTree::list`] does, without what a project has over the tree.
    pub(crate) fn own_list(&self, top: &str, ending: &str) -> Vec<String> {
        if let (Some(seal), Root::Disk(root)) = (&self.seal, &self.root)
            && let Ok(contents) = seal.contents(root)
        {
            let start = format!("{top}/");
            let all = contents.keys().filter(|path| path.starts_with(&start) && path.ends_with(ending));
            return all.cloned().collect();
        }
        match &self.root {
            Root::Bundled => assets::list(top).into_iter().filter(|path| path.ends_with(ending)).collect(),
            Root::Disk(root) if !disk::is_below(root, &root.join(top)) => Vec::new(),
            Root::Disk(root) => walkdir::WalkDir::new(root.join(top))
                .max_depth(8)
                .sort_by_file_name()
                .into_iter()
                .filter_map(std::result::Result::ok)
                .filter(|entry| entry.file_type().is_file())
                .filter_map(|entry| below(root, entry.path()))
                .filter(|path| path.ends_with(ending))
                .collect(),
        }
    }

    /// Notes that the flow reads all files of this folder.
    pub(crate) fn note_folder(&self, folder: &DataFolder) {
        self.lock_folders().insert(folder.path.clone(), folder.clone());
    }

    /// Returns the folder that a file is read with, if the flow has read that folder whole.
    pub(crate) fn folder_of(&self, path: &str) -> Option<DataFolder> {
        self.lock_folders().values().find(|folder| folder.has(path)).cloned()
    }

    /// Returns the folders that the flow has read whole.
    pub(crate) fn folders(&self) -> Vec<DataFolder> {
        self.lock_folders().values().cloned().collect()
    }

    fn lock_folders(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, DataFolder>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the digests of all files that were read.
    pub fn digests(&self) -> Sources {
        self.lock_texts().iter().map(|(path, text)| (path.clone(), Digest::of(text.as_bytes()).to_string())).collect()
    }

    /// Returns where this tree comes from, for lists.
    pub fn origin(&self, workspace: &Path) -> String {
        match (&self.seal, &self.root) {
            (Some(seal), _) => format!("pack {} {}", seal.pack, seal.version),
            (None, Root::Bundled) => "bundled".to_owned(),
            (None, Root::Disk(root)) if root == workspace => "project".to_owned(),
            (None, Root::Disk(root)) => root.display().to_string(),
        }
    }

    /// Returns how a person finds this file: a path on disk, or `bundled:` and its path.
    pub fn display(&self, path: &str) -> String {
        if let Some(overriding) = self.overlay.as_ref().and_then(|overlay| overlay.display(path)) {
            return overriding;
        }
        match &self.root {
            Root::Bundled => format!("bundled:{path}"),
            Root::Disk(root) => root.join(path).display().to_string(),
        }
    }
}

impl Overlay {
    /// Returns the text that stands in place of a file's, if there is one.
    ///
    /// # Errors
    ///
    /// Those of [`PackTree::text`].
    fn text(&self, path: &str) -> Result<Option<Arc<str>>> {
        if self.files.contains(path) { self.tree.text(path) } else { Ok(None) }
    }

    /// Returns the path on disk of a file that overrides another.
    fn display(&self, path: &str) -> Option<String> {
        self.files.contains(path).then(|| self.tree.display(path))
    }
}

impl OverridingFile {
    /// Tells whether the flow reads something else than its own file.
    pub(crate) fn is_different(&self) -> bool {
        self.original.as_ref() != Some(&self.text)
    }
}
