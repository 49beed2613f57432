//! Fetches a model file from its publisher's own address: one request, resumed by `Range` where it broke off.
//!
//! A machine that cannot reach the address has another source, so this one gives up fast: no further attempt after one that brought nothing.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::StatusCode;
use reqwest::header::RANGE;

use super::{Progress, size};
use crate::error::{Code, Failure, Result};
use crate::host::llm::local::catalogue::Model;
use crate::host::network::Network;

/// The longest silence in the middle of a body.
const SILENCE: Duration = Duration::from_secs(20);

pub(super) async fn fetch(
    model: &Model,
    network: &Network,
    part: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let client = network.client()?.read_timeout(SILENCE).build().map_err(|error| unreachable(model, &error))?;
    report(Progress::Source("the publisher's address"));
    loop {
        let present = size(part).unwrap_or(0);
        if present == model.bytes {
            return Ok(());
        }
        let failure = match attempt(&client, model, part, present, report).await {
            Ok(()) => Failure::new(Code::ModelUnreachable, format!("{} ended too early", model.https)),
            Err(failure) => failure,
        };
        let after = size(part).unwrap_or(0);
        if after != model.bytes && (failure.code == Code::DiskFailed || after <= present) {
            return Err(failure);
        }
    }
}

async fn attempt(
    client: &reqwest::Client,
    model: &Model,
    part: &Path,
    present: u64,
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut request = client.get(&model.https);
    if present > 0 {
        request = request.header(RANGE, format!("bytes={present}-"));
    }
    let response = request.send().await.and_then(reqwest::Response::error_for_status);
    let response = response.map_err(|error| unreachable(model, &error))?;
    let disk = |error: std::io::Error| Failure::io(part, "write", &error);
    let mut file = File::options().create(true).append(true).open(part).map_err(disk)?;
    let mut done = present;
    if response.status() != StatusCode::PARTIAL_CONTENT {
        // The server ignored `Range` and sends the whole file.
        file.set_len(0).map_err(disk)?;
        done = 0;
    }
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| unreachable(model, &error))?;
        // A server may send more bytes than the file has; the rest is ignored.
        let room = usize::try_from(model.bytes - done).unwrap_or(usize::MAX).min(piece.len());
        file.write_all(&piece[..room]).map_err(disk)?;
        done += room as u64;
        report(Progress::Bytes { done, total: model.bytes });
        if done == model.bytes {
            break;
        }
    }
    Ok(())
}

fn unreachable(model: &Model, error: &reqwest::Error) -> Failure {
    // The innermost cause is the telling one ("connection refused", a status).
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    Failure::new(Code::ModelUnreachable, format!("{}: {cause}", model.https))
}
