//! Checks who can have written a file that grants something: whom the user trusts, where keys are sent, which commands print
//! keys. A file that others could have written does not count as the user's word.

use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::{Links, open, read_open, require_plain_file, temp_file};
use crate::error::{Code, Failure, Result};

/// How long to wait between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(5);

/// The mode bits that let others write, and the one that keeps them from replacing files of other users.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Returns the bytes of a file that only the user can have written, or `None` if there is no file.
///
/// # Errors
///
/// As [`super::read`], and `config-invalid` if others can write the file, or replace it in its folder.
pub(crate) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let Some(file) = open(path, Links::All)? else { return Ok(None) };
    let metadata = file.metadata().map_err(|error| Failure::io(path, "look at", &error))?;
    let folder = temp_file::parent_folder(path);
    let of_folder = folder.metadata().map_err(|error| Failure::io(folder, "look at", &error))?;
    for (place, metadata) in [(path, &metadata), (folder, &of_folder)] {
        if let Some(why) = problem(metadata) {
            return Err(refused(place, &why));
        }
    }
    read_open(file, path, most).map(Some)
}

/// Makes a folder that nobody else can read, if it does not exist.
///
/// # Errors
///
/// `disk-failed` if it cannot be made.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Failure::io(folder, "create", &error))
}

/// Locks the file at `path`, which is made if it does not exist, and waits up to `patience` while another process holds
/// the lock.
///
/// # Errors
///
/// `document-busy` if the lock is still held then, `path-refused` if the path is no plain file, `disk-failed` otherwise.
pub(crate) fn lock(path: &Path, patience: Duration) -> Result<File> {
    make_folder(temp_file::parent_folder(path))?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(0o600).custom_flags(flags);
    let file = options.open(path).map_err(|error| Failure::io(path, "lock", &error))?;
    require_plain_file(&file, path)?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process holds {} and does not let go", path.display());
                return Err(Failure::new(Code::DocumentBusy, message).hint("wait for it or end it, then try again"));
            }
            Err(TryLockError::Error(error)) => return Err(Failure::io(path, "lock", &error)),
        }
    }
}

/// Tells why somebody else could have written a file or folder; `None` if only the user, the system, or the user's
/// private group can write it.
pub(crate) fn problem(metadata: &Metadata) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode());
    let sticky = metadata.is_dir() && mode & STICKY != 0;
    match () {
        () if owner != user && owner != 0 => Some(format!("belongs to another user (number {owner})")),
        () if mode & OTHERS != 0 && !sticky => Some("can be written by everybody".to_owned()),
        () if mode & GROUP != 0 && !sticky && !is_private(group, user) => {
            Some(format!("can be written by a group (number {group})"))
        }
        () => None,
    }
}

fn refused(place: &Path, why: &str) -> Failure {
    Failure::new(
        Code::ConfigInvalid,
        format!("{} {why}, and what stands there is taken for your word", place.display()),
    )
    .hint("look at what is in it; then make it yours alone: chown it to you, and chmod go-w")
}

/// Tells whether a group is the private group of the user: it has the user's name and no other members. Many systems make
/// one for each user, with a `umask` of 002, so that the group can write all of the user's files.
#[cfg(target_os = "linux")]
fn is_private(group: u32, user: u32) -> bool {
    use std::ffi::CStr;

    /// A buffer larger than any entry, in bytes.
    const MOST: usize = 1 << 20;

    // SAFETY: zeroed entries are valid; all buffers are local, outlive the calls and are passed with their lengths. The
    // entries point into `texts`, and are read before `texts` is changed.
    unsafe {
        let mut texts: Vec<libc::c_char> = vec![0; 1 << 12];
        let mut found = std::ptr::null_mut();
        let mut entry: libc::passwd = std::mem::zeroed();
        while libc::getpwuid_r(user, &raw mut entry, texts.as_mut_ptr(), texts.len(), &raw mut found) == libc::ERANGE
            && texts.len() < MOST
        {
            texts.resize(texts.len() * 4, 0);
        }
        if found.is_null() || entry.pw_name.is_null() || entry.pw_gid != group {
            return false;
        }
        let name = CStr::from_ptr(entry.pw_name).to_owned();
        let mut found = std::ptr::null_mut();
        let mut entry: libc::group = std::mem::zeroed();
        while libc::getgrgid_r(group, &raw mut entry, texts.as_mut_ptr(), texts.len(), &raw mut found) == libc::ERANGE
            && texts.len() < MOST
        {
            texts.resize(texts.len() * 4, 0);
        }
        if found.is_null() || entry.gr_name.is_null() || CStr::from_ptr(entry.gr_name) != name.as_c_str() {
            return false;
        }
        let mut member = entry.gr_mem;
        while !member.is_null() && !(*member).is_null() {
            if CStr::from_ptr(*member) != name.as_c_str() {
                return false;
            }
            member = member.add(1);
        }
        true
    }
}

/// On other systems, users share groups.
#[cfg(not(target_os = "linux"))]
fn is_private(_: u32, _: u32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_others_can_write_or_replace_is_not_taken_for_the_users_word() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("nietz");
        let path = folder.join("config.yaml");
        assert_eq!(read(&path, 10), Ok(None));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&path, "four").unwrap();
        for (of_folder, of_file, fine) in [
            (0o700, 0o600, true),
            (0o755, 0o644, true),
            (0o755, 0o666, false),
            (0o755, 0o646, false),
            (0o777, 0o600, false),
            // As in a folder for temporary files: nobody can replace files of other users.
            (0o1777, 0o600, true),
        ] {
            mode(&folder, of_folder);
            mode(&path, of_file);
            let read = read(&path, 10).map_err(|failure| failure.code);
            let expected = if fine { Ok(Some(b"four".to_vec())) } else { Err(Code::ConfigInvalid) };
            assert_eq!(read, expected, "{of_folder:o} {of_file:o}");
        }
    }
}
