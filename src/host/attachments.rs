//! The images and PDFs of one run, each in a file that is named by the digest of its bytes, in a folder beside the journal.
//!
//! The journal says what was sent, and is not made larger by it. What is read back is held against its digest, so that a
//! file is sent as it was when the run was given it, or not at all.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::temp_file::TempFile;
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::model::attachment::{Attachment, FileBytes};
use crate::model::digest::Digest;
use crate::model::media;
use crate::model::text::excerpt;

/// The name of the folder, in that of the run.
pub(crate) const FOLDER: &str = "files";
/// The most that is kept for one run, in bytes.
const MOST_KEPT: u64 = 256 << 20;
/// What people said is for the user alone, and so is what they showed.
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// Where a run keeps its images and PDFs. Without a place nothing is kept: so it is where no model is called.
#[derive(Clone, Debug, Default)]
pub struct AttachmentStore {
    place: Option<Arc<dyn FilePlace>>,
}

/// Where the files of one run are, by the digests of their bytes.
trait FilePlace: fmt::Debug + Send + Sync {
    fn read(&self, digest: Digest) -> Result<Option<Vec<u8>>>;
    /// Returns all that are there, each with its length in bytes.
    fn list(&self) -> Result<Vec<(Digest, u64)>>;
    fn write(&self, digest: Digest, bytes: &[u8]) -> Result<()>;
}

/// A folder beside the journal.
#[derive(Debug)]
struct FileFolder(PathBuf);

/// A server that has the run.
#[cfg(feature = "postgres")]
#[derive(Debug)]
struct ServerFiles {
    server: crate::store::postgres::Server,
    /// The role of who began the run.
    scope: String,
    run: String,
}

impl FilePlace for FileFolder {
    fn read(&self, digest: Digest) -> Result<Option<Vec<u8>>> {
        disk::read(&self.0.join(digest.to_string()), Links::NotLast, media::LARGEST)
    }

    fn list(&self) -> Result<Vec<(Digest, u64)>> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| Failure::io(&self.0, "list", &error))?,
        };
        let entry = |entry: std::fs::DirEntry| {
            Some((Digest::parse(entry.file_name().to_str()?)?, entry.metadata().ok()?.len()))
        };
        Ok(entries.flatten().filter_map(entry).collect())
    }

    fn write(&self, digest: Digest, bytes: &[u8]) -> Result<()> {
        make(&self.0)?;
        let path = self.0.join(digest.to_string());
        TempFile::with_mode(&path, bytes, PRIVATE_FILE)?.publish(&path)
    }
}

#[cfg(feature = "postgres")]
impl ServerFiles {
    fn folder(&self) -> String {
        format!(".nietz/files/{}/", self.run)
    }
}

#[cfg(feature = "postgres")]
impl FilePlace for ServerFiles {
    fn read(&self, digest: Digest) -> Result<Option<Vec<u8>>> {
        self.server.document(&self.scope, &format!("{}{digest}", self.folder()))
    }

    fn list(&self) -> Result<Vec<(Digest, u64)>> {
        let folder = self.folder();
        let known = self.server.documents(&self.scope, &folder)?;
        let file = |(path, stamp): (String, String)| {
            Some((Digest::parse(&path[folder.len()..])?, stamp.rsplit(' ').next()?.parse().ok()?))
        };
        Ok(known.into_iter().filter_map(file).collect())
    }

    fn write(&self, digest: Digest, bytes: &[u8]) -> Result<()> {
        let path = format!("{}{digest}", self.folder());
        let of = blake3::hash(bytes).to_hex().to_string();
        self.server.save_document((&self.scope, &path), (bytes, &of), None, None)
    }
}

impl AttachmentStore {
    /// Keeps the files of the run that has this folder for itself.
    pub fn in_run(folder: &Path) -> AttachmentStore {
        AttachmentStore { place: Some(Arc::new(FileFolder(folder.join(FOLDER)))) }
    }

    /// Keeps the files of a run that is on a server, for the runs of who began it: a role.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_server(server: crate::store::postgres::Server, scope: &str, run: &str) -> AttachmentStore {
        AttachmentStore { place: Some(Arc::new(ServerFiles { server, scope: scope.to_owned(), run: run.to_owned() })) }
    }

    /// Keeps a file. It is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// `request-invalid` if the run's files become too large, `path-refused` if something else is in their place,
    /// `disk-failed` if the disk refuses, and those of a server.
    pub fn put(&self, bytes: &[u8]) -> Result<()> {
        let Some(place) = &self.place else { return Ok(()) };
        let digest = Digest::of(bytes);
        if place.read(digest)?.is_some_and(|kept| Digest::of(&kept) == digest) {
            return Ok(());
        }
        let kept: u64 = place.list()?.iter().map(|(_, length)| length).sum();
        if kept.saturating_add(bytes.len() as u64) > MOST_KEPT {
            let message = format!("the images and PDFs of this run have more than {} MB", MOST_KEPT >> 20);
            return Err(Failure::new(Code::RequestInvalid, message).hint("attach fewer of them, or smaller ones"));
        }
        place.write(digest, bytes)
    }

    /// Keeps what another run has kept, for a run that takes outcomes from it. What is not what its name says is left out.
    ///
    /// # Errors
    ///
    /// Those of [`AttachmentStore::put`].
    pub fn take_from(&self, other: &AttachmentStore) -> Result<()> {
        let Some(place) = &other.place else { return Ok(()) };
        for (digest, _) in place.list()? {
            let found = place.read(digest).ok().flatten().filter(|bytes| Digest::of(bytes) == digest);
            found.map_or(Ok(()), |bytes| self.put(&bytes))?;
        }
        Ok(())
    }

    /// Adds its bytes to an attachment that is to be sent.
    ///
    /// # Errors
    ///
    /// `attachment-changed` if they are not there, or are not those that the digest was made of.
    pub fn load(&self, attachment: &mut Attachment) -> Result<()> {
        let changed = |why: &str| {
            Failure::new(Code::AttachmentChanged, format!("{} {why}: it is not sent", excerpt(&attachment.name)))
                .hint("give it again: `nietz fork RUN --set attach=FILE`, or a run of its own")
        };
        let digest = Digest::parse(&attachment.digest).ok_or_else(|| changed("has no digest"))?;
        let kept = self.place.as_ref().map_or(Ok(None), |place| place.read(digest))?;
        let bytes = kept.ok_or_else(|| changed("is not kept beside the journal of this run"))?;
        if Digest::of(&bytes) != digest {
            return Err(changed("has changed since this run was given it"));
        }
        if media::taken_type(&bytes) != Some(attachment.media_type.as_str()) {
            return Err(changed(&format!("is no {}", excerpt(&attachment.media_type))));
        }
        attachment.data = Some(FileBytes(bytes.into()));
        Ok(())
    }
}

/// Makes the folder, for the user alone.
fn make(folder: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(PRIVATE_FOLDER).create(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let is_folder = std::fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
            if is_folder { Ok(()) } else { Err(disk::refused(folder, "is no folder")) }
        }
        Err(error) => Err(Failure::io(folder, "create", &error)),
    }
}

/// Removes the files of a run that did nothing yet.
pub(crate) fn remove(run: &Path) -> std::io::Result<()> {
    let folder: PathBuf = run.join(FOLDER);
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::model::attachment::AttachedFile;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0";

    fn attachment(bytes: &[u8]) -> Attachment {
        let file = AttachedFile::of_media("a.png", bytes).unwrap();
        serde_json::from_value(serde_json::to_value(file).unwrap()).unwrap()
    }

    #[test]
    fn a_file_comes_back_as_it_was_given_or_not_at_all() {
        let run = tempfile::tempdir().unwrap();
        let store = AttachmentStore::in_run(run.path());
        let mut given = attachment(PNG);
        let code = |store: &AttachmentStore, given: &mut Attachment| store.load(given).map_err(|failure| failure.code);
        assert_eq!(code(&store, &mut given), Err(Code::AttachmentChanged), "nothing is kept yet");
        store.put(PNG).unwrap();
        store.put(PNG).unwrap();
        store.load(&mut given).unwrap();
        assert_eq!(given.data.as_ref().map(|data| &*data.0), Some(PNG));
        let path = run.path().join(FOLDER).join(&given.digest);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (PRIVATE_FILE, PRIVATE_FOLDER));
        // Another run takes it over, and nothing that is not what its name says.
        let fork = tempfile::tempdir().unwrap();
        let forked = AttachmentStore::in_run(fork.path());
        std::fs::write(path.with_file_name("0".repeat(32)), PNG).unwrap();
        forked.take_from(&store).unwrap();
        assert_eq!(std::fs::read_dir(fork.path().join(FOLDER)).unwrap().count(), 1);
        let mut other = Attachment { media_type: media::PDF.to_owned(), ..attachment(PNG) };
        assert_eq!(code(&forked, &mut other), Err(Code::AttachmentChanged));
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n\x01").unwrap();
        assert_eq!(code(&store, &mut given), Err(Code::AttachmentChanged));
        std::fs::remove_file(&path).unwrap();
        symlink(fork.path().join(FOLDER).join(&given.digest), &path).unwrap();
        assert_eq!(code(&store, &mut given), Err(Code::PathRefused));
        remove(run.path()).unwrap();
        assert!(!run.path().join(FOLDER).exists() && remove(run.path()).is_ok());
    }
}
