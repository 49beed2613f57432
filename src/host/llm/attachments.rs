//! Which models take images and PDFs. A call with one to a model that is known to take none is refused before it is made;
//! what is not known is sent, and the server says whether it takes it.

use super::agents::ACP;
use super::families;
use super::provider::LOCAL;
use super::settings::ClientSettings;
use crate::error::{Code, Failure, Result};
use crate::host::secret::KeySource;
use crate::model::chat::ChatRequest;
use crate::model::media;

/// How many models a message names.
const NAMED: usize = 5;

/// Refuses a request with an attachment that its model does not take.
///
/// # Errors
///
/// `attachment-refused`, with the models of the configuration that take it.
pub(super) fn check(settings: &ClientSettings, request: &ChatRequest) -> Result<()> {
    let mut attachments = request.messages.iter().flat_map(|message| &message.attachments);
    let Some(refused) =
        attachments.find(|attachment| takes(settings, &request.model, &attachment.media_type) == Some(false))
    else {
        return Ok(());
    };
    let what = if refused.media_type == media::PDF { "no PDF" } else { "no such image" };
    let (model, name, kind) = (&request.model, &refused.name, &refused.media_type);
    let failure = Failure::new(Code::AttachmentRefused, format!("{model} takes {what}: {name} ({kind}) is not sent"));
    Err(failure.hint(match able(settings, kind).as_slice() {
        [] => {
            "none of your models is known to take it: give the text itself, or set the key of a provider that takes it"
                .to_owned()
        }
        able => format!("these of yours take it: {}", able.join(", ")),
    }))
}

/// Tells whether a model takes files of this type, or `None` if that is not known.
fn takes(settings: &ClientSettings, model: &str, media_type: &str) -> Option<bool> {
    let (name, model) = model.split_once('/')?;
    if name == LOCAL || name == ACP {
        return Some(false);
    }
    let provider = settings.providers.iter().find(|provider| provider.name == name)?;
    families::profile(provider, model).takes_file(media_type)
}

/// Returns the models of the configuration that take files of this type: aliases, and what providers with a key are asked for.
fn able(settings: &ClientSettings, media_type: &str) -> Vec<String> {
    let is_usable = |key: &KeySource| !matches!(key, KeySource::Missing(_) | KeySource::NoAddress(_));
    let usable = settings.providers.iter().filter(|provider| is_usable(&provider.key));
    let models = usable.filter_map(|provider| Some(format!("{}/{}", provider.name, provider.model.as_deref()?)));
    let named = settings.aliases.values().map(|choice| choice.model.clone());
    let mut able: Vec<String> =
        named.chain(models).filter(|model| takes(settings, model, media_type) == Some(true)).collect();
    able.sort();
    able.dedup();
    able.truncate(NAMED);
    able
}

#[cfg(test)]
mod tests {
    use super::takes;
    use crate::host::llm::{ClientSettings, ModelsConfig};

    #[test]
    fn the_local_model_takes_none_and_of_a_stranger_nothing_is_known() {
        let settings = ClientSettings::from_environment(&Default::default(), &ModelsConfig::default());
        let settings = settings.expect("nothing is set");
        let takes = |model: &str, kind: &str| takes(&settings, model, kind);
        assert_eq!(takes("local/qwen", "image/png"), Some(false));
        assert_eq!(takes("lab/qwen", "image/png"), None);
        assert_eq!(takes("anthropic/claude-sonnet-5-5", "application/pdf"), Some(true));
        assert_eq!(takes("xai/grok-4.20", "image/jpeg"), Some(true));
        assert_eq!(takes("xai/grok-4.20", "application/pdf"), Some(false));
        assert_eq!(takes("groq/openai/gpt-oss-20b", "image/png"), Some(false));
    }
}
