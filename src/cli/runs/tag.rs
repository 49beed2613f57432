//! `nietz runs tag`.

use clap::Args;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::run::machine::Machine;

/// Give a run tags, words of your own by which `nietz runs --tag` and `nietz view` find it
///
/// They are kept for you alone, and go with the run when it is removed.
#[derive(Args)]
pub(super) struct TagArgs {
    /// The run's id, a part of it that only one has, or `latest`
    run: String,
    /// The tags; without any, those that it has are told
    tags: Vec<String>,
    /// Take this tag away; several times for several
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
}

pub(super) fn run(machine: &Machine, args: &TagArgs) -> Result<Exit> {
    let runs = machine.runs();
    let id = runs.find(Some(&args.run))?;
    let had = runs.one(&id)?.map(|run| run.tags).unwrap_or_default();
    if let Some(other) = args.remove.iter().find(|tag| !had.contains(*tag)) {
        return Err(Failure::new(Code::Usage, format!("{id} has no tag `{}`", crate::model::text::excerpt(other))));
    }
    let tags = match args.tags.is_empty() && args.remove.is_empty() {
        true => had,
        false => runs.tag(&id, &args.tags, &args.remove)?,
    };
    let tags: Vec<String> = tags.into_iter().collect();
    output::line(format!("{id}: {}", if tags.is_empty() { "no tags".to_owned() } else { tags.join(", ") }))?;
    Ok(Exit::Done)
}
