//! What a provider serves now: its own list of models, asked for when the user wants to see it or when a model was refused.
//!
//! The list comes from a stranger. Its size, the time that it takes and the number of its models are bounded, and a name that
//! is no plain name is left out. Nothing here chooses a model: a list is shown to people alone.

mod form;

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Method, Request, Url};

use super::attempt_error::CallContext;
use super::cache::Marks;
use super::families::ModelProfile;
use super::http;
use super::provider::{Provider, Wire};
use crate::error::{Failure, Result};
use crate::host::secret::Secret;
use crate::model::budget::Price;

/// How long a whole list may take.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// How long a refused call waits for the list that its failure tells of.
pub(super) const TIME_LIMIT_OF_A_REFUSAL: Duration = Duration::from_secs(5);

/// The most bytes of a list, all of its pages together.
const LARGEST: usize = 4 << 20;

/// The most models of a list. The largest providers have some hundreds.
const MOST: usize = 5000;

/// The most pages of a list, each with up to a thousand models.
const MOST_PAGES: usize = 10;

/// How many of the nearest names a failure tells of.
const NEAREST: usize = 3;

/// A model that a provider says it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedModel {
    /// Its name without the provider's.
    pub name: String,
    /// The most tokens of a call, if the provider says so.
    pub window: Option<u64>,
    /// Its price, if the provider says so.
    pub price: Option<Price>,
    /// The day on which it ends or ended, if the provider says so.
    pub retires: Option<String>,
}

/// Asks a provider for the list of its models, sorted by name.
pub(super) async fn list(
    client: &reqwest::Client,
    provider: &Provider,
    key: Option<&Secret>,
) -> Result<Vec<ServedModel>> {
    let profile = ModelProfile::default();
    let marks = Marks::default();
    let context = CallContext { provider, model: "", key, profile: &profile, marks, wants_thoughts: false };
    match tokio::time::timeout(TIME_LIMIT, pages(client, context)).await {
        Ok(listed) => listed,
        Err(_) => Err(context.silence_error(TIME_LIMIT).failure),
    }
}

async fn pages(client: &reqwest::Client, context: CallContext<'_>) -> Result<Vec<ServedModel>> {
    let provider = context.provider;
    if provider.base.path().contains("%7Bmodel%7D") {
        return Err(context.no_list("has an address for each model, and so no list of them"));
    }
    let mut models = BTreeMap::new();
    let (mut after, mut left) = (None, LARGEST);
    for _ in 0..MOST_PAGES {
        let body = page(client, context, after.as_deref(), &mut left).await?;
        let page =
            form::read(&body).ok_or_else(|| context.no_list("answered with something else than a list of models"))?;
        models.extend(page.models.into_iter().map(|model| (model.name.clone(), model)).take(MOST - models.len()));
        // The next page of an honest list begins elsewhere.
        after = page.next.filter(|next| after.as_ref() != Some(next));
        if after.is_none() || models.len() >= MOST {
            break;
        }
    }
    Ok(models.into_values().collect())
}

/// Asks for one page, and takes its size from what is left.
async fn page(
    client: &reqwest::Client,
    context: CallContext<'_>,
    after: Option<&str>,
    left: &mut usize,
) -> Result<Vec<u8>> {
    let mut request = Request::new(Method::GET, address(context.provider, after));
    http::authorize(context, request.headers_mut())?;
    let failed = |error: reqwest::Error| http::send_error(context, &error).failure;
    let mut response = client.execute(request).await.map_err(failed)?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(context.list_failure(status, &super::stream::read_start(response).await));
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        *left = left
            .checked_sub(piece.len())
            .ok_or_else(|| context.no_list("sent a list that is larger than any should be"))?;
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn address(provider: &Provider, after: Option<&str>) -> Url {
    if let Some(path) = provider.models_path {
        let mut url = provider.base.clone();
        url.set_path(path);
        return url;
    }
    match provider.wire {
        Wire::OpenAi | Wire::Responses => http::endpoint(&provider.base, "", "models"),
        Wire::Anthropic => {
            let mut url = http::endpoint(&provider.base, "", "v1/models");
            url.query_pairs_mut().append_pair("limit", "1000").extend_pairs(after.map(|after| ("after_id", after)));
            url
        }
    }
}

/// Returns the failure of a refused model, with what its provider serves.
pub(super) fn with_served(failure: Failure, provider: &Provider, model: &str, served: &[String]) -> Failure {
    if served.is_empty() || served.iter().any(|name| name == model) {
        return failure;
    }
    let near = nearest(model, served);
    let more = match served.len() - near.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let failure = failure.because(format!("{} serves {}{more}", provider.name, near.join(", ")));
    match provider.models_path {
        // What its own hint says comes first.
        Some(_) => failure,
        None => failure.hint(format!("name one of these; `nietz models list {}` shows all", provider.name)),
    }
}

/// Returns the names that are most like a name, the likest first.
fn nearest<'n>(model: &str, names: &'n [String]) -> Vec<&'n str> {
    let mut near: Vec<(f64, &str)> =
        names.iter().map(|name| (strsim::jaro_winkler(model, name), name.as_str())).collect();
    // Of names that are as like, the one that sorts last is mostly the newest.
    near.sort_by(|(one, name), (other, other_name)| other.total_cmp(one).then(other_name.cmp(name)));
    near.into_iter().take(NEAREST).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_never_more_than_three() {
        let names = ["gpt-6-luna", "gpt-6.1-terra", "whisper-2", "gpt-6.1-sol", "sora-3"].map(str::to_owned);
        assert_eq!(nearest("gpt-6.1-tera", &names), ["gpt-6.1-terra", "gpt-6.1-sol", "gpt-6-luna"]);
        assert_eq!(nearest("x", &names[..1]), ["gpt-6-luna"]);
    }
}
