//! What can be read: each run as Markdown, and as a page.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::Shared;
use crate::error::{Failure, Result};
use crate::model::text::{clean, excerpt};

const RUNS: &str = "nietz://runs/";
/// The end of the address of a run's page.
const PAGE: &str = "/report";
/// The most runs that are listed.
const MOST: usize = 50;

/// Returns a failure as the protocol has it.
pub(super) fn refused(failure: &Failure) -> ErrorData {
    ErrorData::internal_error(format!("[{}] {}", failure.code.name(), clean(&failure.message)), None)
}

/// Returns the latest runs, newest first.
///
/// # Errors
///
/// Those of [`Runs::list`](crate::engine::runs::Runs::list).
pub(super) fn list(shared: &Shared) -> Result<Vec<Resource>> {
    let runs = shared.supervisor.runs.list()?;
    let resource = |run: &crate::engine::runs::ListedRun| {
        let about = format!("{}, {}: {}", run.summary.flow, run.status(), excerpt(&run.summary.topic));
        Resource::new(format!("{RUNS}{}", run.id), clean(&run.id))
            .with_description(clean(&about))
            .with_mime_type("text/markdown")
    };
    Ok(runs.iter().rev().take(MOST).map(resource).collect())
}

/// Returns how all others are addressed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |address: &str, name: &str, about: &str, kind: &str| {
        ResourceTemplate::new(address, name).with_description(about).with_mime_type(kind)
    };
    vec![
        template("nietz://runs/{run}", "run", "What a run did and said", "text/markdown"),
        template("nietz://runs/{run}/report", "report", "The page of a run", "text/html"),
    ]
}

/// Reads one.
pub(super) async fn read(shared: &Shared, address: &str) -> std::result::Result<ReadResourceResult, ErrorData> {
    let missing = || ErrorData::resource_not_found(format!("there is nothing at {}", excerpt(address)), None);
    let rest = address.strip_prefix(RUNS).ok_or_else(missing)?;
    let (run, form, kind): (&str, &[&str], &str) = match rest.strip_suffix(PAGE) {
        Some(run) => (run, &["-o", "-"], "text/html"),
        None => (rest, &["--markdown"], "text/markdown"),
    };
    let run = shared.supervisor.runs.named(run).map_err(|_| missing())?;
    let arguments: Vec<&str> = ["report", run.as_str()].into_iter().chain(form.iter().copied()).collect();
    let text = shared.supervisor.verb(&arguments).await.map_err(|failure| refused(&failure))?;
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, address).with_mime_type(kind)]))
}
