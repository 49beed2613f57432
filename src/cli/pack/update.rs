//! `nietz pack update NAME`.

use clap::Args;

use crate::cli::host::Host;
use crate::cli::output;
use crate::cli::pack::GrantFlags;
use crate::cli::pack::ready::ready;
use crate::cli::pack::source::{Source, at, newest};
use crate::cli::trust::packs::{ask, installed_asks, joined, shared, tell};
use crate::error::{Code, Exit, Failure, Result};
use crate::pack::asks::{Asks, without};
use crate::pack::lock::Lock;
use crate::pack::seal::Seal;

/// Update a pack: show how its permissions differ, and ask
#[derive(Args)]
pub(super) struct UpdateArgs {
    name: String,
    /// The tag or commit to go to [default: the newest version among the tags; else what the source is now]
    #[arg(long, value_name = "TAG")]
    to: Option<String>,
    #[command(flatten)]
    flags: GrantFlags,
}

pub(super) fn run(host: &Host, args: &UpdateArgs) -> Result<Exit> {
    let name = &args.name;
    let mut lock = Lock::read(&host.workspace)?;
    let before = lock.get(name)?.clone();
    let mut text = before.source.clone();
    match (Source::parse(&text, &host.workspace)?, &args.to) {
        (Source::Git { .. }, Some(reference)) => text = at(&text, reference),
        (_, Some(_)) => {
            return Err(Failure::new(Code::Usage, format!("{name} comes from {text}, which has no tags and commits")));
        }
        (Source::Git { url, reference }, None) => {
            if let Some(tag) = newest(host, &url, &reference)? {
                text = at(&text, &tag);
            }
        }
        (Source::Folder(_) | Source::Archive(_), None) => {}
    }
    let ready = ready(host, &Source::parse(&text, &host.workspace)?)?;
    if ready.about.name != *name {
        let message = format!("{text} is the pack {} now, and not {name}", ready.about.name);
        return Err(Failure::new(Code::PackInvalid, message).hint("remove the one, and add the other"));
    }
    if ready.sha256 == before.sha256 {
        output::line(format!("{name} {} is the newest", before.version))?;
        return Ok(Exit::Done);
    }
    output::line(format!("{name} {} → {}", before.version, ready.about.version))?;
    ready.tell(host, &text)?;
    let seal = Seal::new(name, &before.version, &before.sha256);
    let asked = match installed_asks(&before.folder(&host.packs(), name), seal) {
        Ok(asks) => asks,
        // What cannot be compared is all new.
        Err(failure) if matches!(failure.code, Code::PackNotFound | Code::PackChanged) => Asks::new(),
        Err(failure) => return Err(failure),
    };
    let (more, less) = (without(&ready.asks, &asked), without(&asked, &ready.asks));
    if more.is_empty() && less.is_empty() {
        output::line("its permissions are as they were")?;
    }
    tell(&less, '-')?;
    tell(&more, '+')?;
    let kept = shared(&ready.asks, &host.trust().read()?.of_pack(&before.sha256));
    let Some(granted) = ask(host, &args.flags, name, &more)? else {
        output::line(format!("not updated: {name} stays at {}", before.version))?;
        return Ok(Exit::Done);
    };
    let locked = ready.install(host, &text)?;
    host.trust().change(|trust| trust.set_pack(name, &locked.sha256, joined(kept, granted)))?;
    output::line(format!("updated {name} to {}", locked.version))?;
    lock.packs.insert(name.clone(), locked);
    lock.write(&host.workspace)?;
    Ok(Exit::Done)
}
