//! Whose signature the tag of a pack has, and whether one is required.

use std::path::{Path, PathBuf};

use crate::cli::pack::source::PackSource;
use crate::error::{Code, Failure, Result};
use crate::host::git::signature::{self, TagSignature};
use crate::run::machine::Machine;

/// Returns who has signed the tag that a pack was fetched by; `scratch` is where it was fetched.
pub(super) fn signature(
    machine: &Machine,
    source: &PackSource,
    commit: Option<&str>,
    scratch: &Path,
) -> Result<TagSignature> {
    let (PackSource::Git { url, reference }, Some(commit)) = (source, commit) else { return Ok(TagSignature::None) };
    let signers = signers(machine)?;
    signature::of_tag(&machine.environment, (url, reference, commit), &scratch.join("git"), signers.as_deref())
}

/// Returns the file of those whose signatures count, if the user names one.
fn signers(machine: &Machine) -> Result<Option<PathBuf>> {
    let Some(named) = machine.config.packs.signers.as_deref() else { return Ok(None) };
    let path = match (named.strip_prefix("~/"), machine.variable("HOME")) {
        (Some(below), Some(home)) => Path::new(home).join(below),
        _ => PathBuf::from(named),
    };
    match path.is_file() {
        true => Ok(Some(path)),
        false => Err(Failure::new(Code::ConfigInvalid, format!("packs.signers: there is no file {}", path.display()))
            .hint("write a line for each: NAME ssh-ed25519 KEY (see ALLOWED SIGNERS in the manual of ssh-keygen)")),
    }
}

/// Says who has signed a tag.
pub(super) fn describe(signature: &TagSignature) -> String {
    match signature {
        TagSignature::None => "its tag is not signed".to_owned(),
        TagSignature::Unchecked => {
            "its tag is signed; `packs.signers` in config.yaml says whose signatures count".to_owned()
        }
        TagSignature::Good { by, key } => format!("its tag is signed by {by} ({key})"),
        TagSignature::Bad(told) => format!("its tag is signed by nobody of packs.signers: {told}"),
    }
}

/// Refuses a pack without a signature that counts, if the user wishes that, here or in the configuration.
pub(super) fn require(machine: &Machine, wished: bool, signature: &TagSignature) -> Result<()> {
    if !(wished || machine.config.packs.signed) || matches!(signature, TagSignature::Good { .. }) {
        return Ok(());
    }
    let hint = match machine.config.packs.signers {
        Some(_) => "ask its author for a signed tag, or add their key to packs.signers",
        None => "name the file of whose signatures count in config.yaml: packs: { signers: ~/.ssh/allowed_signers }",
    };
    let message = format!("a signature is required: {}; nothing was installed", describe(signature));
    Err(Failure::new(Code::PackUntrusted, message).hint(hint))
}
