//! Tests the settings that follow from the environment and the configuration.

use super::*;

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn settings(pairs: &[(&str, &str)], config: &str) -> Result<ClientSettings> {
    let config = serde_yaml::from_str(config).expect("the test's configuration is readable");
    ClientSettings::from_environment(&variables(pairs), &config)
}

fn provider(settings: &ClientSettings, name: &str) -> Provider {
    settings.providers.iter().find(|provider| provider.name == name).expect("it is known").clone()
}

#[test]
fn with_nothing_said_each_provider_has_its_own_address_and_misses_its_key() {
    let settings = settings(&[("OPENAI_API_KEY", "  ")], "{}").unwrap();
    assert_eq!(settings.providers.len(), provider_defaults::ALL.len());
    let openai = provider(&settings, "openai");
    assert_eq!(openai.base.as_str(), "https://api.openai.com/v1");
    assert!(matches!(&openai.key, KeySource::Missing(names) if names == &["OPENAI_API_KEY"]), "a blank is no key");
    assert_eq!((openai.max_parallel, openai.may_ignore_schemas), (PARALLEL_PUBLIC, false));
    assert!(matches!(provider(&settings, "ollama").key, KeySource::NotNeeded));
}

#[test]
fn variables_move_a_provider_and_less_is_taken_for_granted_there() {
    let settings =
        settings(&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/"), ("GOOGLE_API_KEY", "planted")], "{}").unwrap();
    let openai = provider(&settings, "openai");
    assert_eq!(openai.base.as_str(), "http://127.0.0.1:9/v1/");
    assert_eq!((openai.max_parallel, openai.may_ignore_schemas), (PARALLEL_OWN, true));
    assert_eq!((openai.max_tokens_field, openai.wire_by_family), (MaxTokensField::MaxTokens, false));
    assert!(matches!(provider(&settings, "gemini").key, KeySource::Variable { name, .. } if name == "GOOGLE_API_KEY"));
    assert!(!format!("{settings:?}").contains("planted"), "{settings:?}");
}

#[test]
fn the_configuration_wins_over_variables_and_adds_providers() {
    let settings = settings(
        &[("OPENAI_BASE_URL", "http://a.example"), ("CORP_KEY", "planted"), ("HOME", "/h")],
        "providers:\n  openai: {base_url: 'http://b.example', key_env: CORP_KEY, max_parallel: 3}\n  \
         mine: {base_url: 'http://c.example', timeout_seconds: 0.5}\n",
    )
    .unwrap();
    let openai = provider(&settings, "openai");
    assert_eq!(openai.base.host_str(), Some("b.example"));
    assert!(matches!(openai.key, KeySource::Variable { name, .. } if name == "CORP_KEY"));
    assert_eq!(openai.max_parallel, 3);
    let mine = provider(&settings, "mine");
    assert!(matches!(mine.key, KeySource::NotNeeded));
    assert_eq!(mine.silence, Duration::from_millis(500));
    assert_eq!(settings.child_environment, variables(&[("OPENAI_BASE_URL", "http://a.example"), ("HOME", "/h")]));
}

#[test]
fn addresses_are_filled_from_variables_or_there_is_none() {
    let none = settings(&[], "{}").unwrap();
    let unset = |name: &str| match &provider(&none, name).key {
        KeySource::NoAddress(names) => names.join(" "),
        other => format!("{other:?}"),
    };
    assert_eq!(unset("bedrock"), "AWS_REGION");
    assert_eq!(unset("vertex"), "GOOGLE_CLOUD_LOCATION GOOGLE_CLOUD_PROJECT");
    let all = settings(
        &[
            ("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/"),
            ("AWS_REGION", "eu-central-1"),
            ("GOOGLE_CLOUD_LOCATION", "europe-west4"),
            ("GOOGLE_CLOUD_PROJECT", "p1"),
        ],
        "{}",
    )
    .unwrap();
    for (name, base) in [
        ("azure", "https://mine.openai.azure.com/openai/v1"),
        ("bedrock", "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1"),
        (
            "vertex",
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west4/endpoints/openapi",
        ),
    ] {
        assert_eq!(provider(&all, name).base.as_str(), base);
    }
    assert!(matches!(&provider(&all, "azure").key, KeySource::Missing(names) if names == &["AZURE_OPENAI_API_KEY"]));
    assert!(matches!(&provider(&all, "vertex").key, KeySource::Command(command) if command[0] == "gcloud"));
    let global = [("GOOGLE_CLOUD_LOCATION", "global"), ("GOOGLE_CLOUD_PROJECT", "p1")];
    assert_eq!(
        provider(&settings(&global, "{}").unwrap(), "vertex").base.as_str(),
        "https://aiplatform.googleapis.com/v1/projects/p1/locations/global/endpoints/openapi"
    );
    assert!(settings(&[], "providers: {mine: {base_url: 'http://c.example', key_header: 'a b'}}").is_err());
}

#[test]
fn ollama_host_may_be_what_the_server_listens_on() {
    for (given, meant) in [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("box:9999", "http://box:9999/v1"),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1/v1"),
        ("https://ollama.example", "https://ollama.example/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
    ] {
        assert_eq!(ollama_address(given), meant);
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_place_it_stands_in() {
    for (variable, config, place) in [
        ("http://user:planted@", "{}", "OPENAI_BASE_URL is not an address"),
        ("ftp://x", "{}", "neither http:// nor https://"),
        ("http://x/?key=planted#here", "{}", "a # part"),
        ("", "providers: {opnai: {}}", "models.providers.opnai: it has no base_url"),
        ("", "providers: {local: {base_url: 'http://x'}}", "models.providers.local"),
        ("", "providers: {a/b: {base_url: 'http://x'}}", "no slash"),
        ("", "providers: {openai: {timeout_seconds: -1}}", "models.providers.openai.timeout_seconds is -1"),
        ("", "retry: {attempts: 0}", "models.retry.attempts"),
    ] {
        let failure = settings(&[("OPENAI_BASE_URL", variable)], config).unwrap_err();
        assert_eq!(failure.code, Code::ConfigInvalid);
        assert!(failure.message.contains(place), "{failure}");
        assert!(!format!("{failure:?}").contains("planted"), "{failure:?}");
    }
}
