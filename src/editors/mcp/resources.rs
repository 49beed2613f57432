//! What can be read: each run as Markdown and as a page, and what `documents` has.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::{Shared, address, documents};
use crate::error::Result;
use crate::model::text::{clean, excerpt};

const RUNS: &str = "nietz://runs/";
/// The end of the address of a run's page.
const PAGE: &str = "/report";
/// The app by which a client that shows pages of servers shows a run's report.
pub(super) const APP: &str = "ui://nietz/report";
const APP_TYPE: &str = "text/html;profile=mcp-app";
const APP_PAGE: &str = include_str!("report.html");
/// The most runs that are listed.
const MOST: usize = 50;

/// Returns the address of a run's page.
pub(super) fn page(run: &str) -> String {
    format!("{RUNS}{run}{PAGE}")
}

/// Returns the latest runs, newest first, and documents behind them.
///
/// # Errors
///
/// Those of [`Runs::list`](crate::engine::runs::Runs::list), and of a folder of documents that cannot be listed.
pub(super) fn list(shared: &Shared) -> Result<Vec<Resource>> {
    let runs = shared.supervisor.runs.list()?;
    let resource = |run: &crate::engine::runs::ListedRun| {
        let about = format!("{}, {}: {}", run.summary.flow, run.status(), excerpt(&run.summary.topic));
        let topic = excerpt(&run.summary.topic);
        let title = if topic.is_empty() { run.summary.flow.clone() } else { format!("{}: {topic}", run.summary.flow) };
        Resource::new(format!("{RUNS}{}", run.id), clean(&run.id))
            .with_title(clean(&title))
            .with_description(clean(&about))
            .with_mime_type("text/markdown")
    };
    let mut all: Vec<Resource> = runs.iter().rev().take(MOST).map(resource).collect();
    all.push(
        Resource::new(APP, "report-app")
            .with_title("For clients that show apps: a run's report beside its call")
            .with_description("An empty page by itself; what it shows is `nietz://runs/RUN/report`")
            .with_mime_type(APP_TYPE),
    );
    all.extend(documents::list(shared)?);
    Ok(all)
}

/// Returns how all others are addressed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |address: &str, name: &str, about: &str, kind: &str| {
        ResourceTemplate::new(address, name).with_description(about).with_mime_type(kind)
    };
    let mut all = vec![
        template("nietz://runs/{run}", "run", "What a run did and said", "text/markdown"),
        template("nietz://runs/{run}/report", "report", "The page of a run", "text/html"),
    ];
    all.extend(documents::templates());
    all
}

/// Reads one.
pub(super) async fn read(shared: &Shared, uri: &str) -> std::result::Result<ReadResourceResult, ErrorData> {
    let missing = || address::missing(uri);
    if let Some(rest) = uri.strip_prefix(documents::DOCUMENTS) {
        return documents::read(shared, rest, uri);
    }
    if let Some(rest) = uri.strip_prefix(documents::SCHEMAS) {
        return documents::schema(shared, rest, uri);
    }
    if uri == APP {
        return Ok(ReadResourceResult::new(vec![ResourceContents::text(APP_PAGE, uri).with_mime_type(APP_TYPE)]));
    }
    let rest = uri.strip_prefix(RUNS).ok_or_else(missing)?;
    let (run, form, kind): (&str, &[&str], &str) = match rest.strip_suffix(PAGE) {
        Some(run) => (run, &["-o", "-"], "text/html"),
        None => (rest, &["--markdown"], "text/markdown"),
    };
    let run = shared.supervisor.runs.named(run).map_err(|_| missing())?;
    let arguments: Vec<&str> = ["report", run.as_str()].into_iter().chain(form.iter().copied()).collect();
    let text = shared.supervisor.verb(&arguments).await.map_err(|failure| address::refused(&failure))?;
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(kind)]))
}
