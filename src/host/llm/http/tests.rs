//! Tests addresses, and the headers by which a provider asks to wait.

use super::*;
use crate::host::network::Network;

#[test]
fn base_urls_are_taken_as_people_write_them() {
    for (base, path, whole) in [
        ("https://api.openai.com/v1", openai::PATH, "https://api.openai.com/v1/chat/completions"),
        ("http://127.0.0.1:8000/v1/", openai::PATH, "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000", openai::PATH, "http://127.0.0.1:8000/chat/completions"),
        ("https://api.anthropic.com", anthropic::PATH, "https://api.anthropic.com/v1/messages"),
        (
            "https://a.example/openai/deployments/{model}?api-version=2024-10-21",
            openai::PATH,
            "https://a.example/openai/deployments/small/chat/completions?api-version=2024-10-21",
        ),
        ("https://gate.example/a/v1/", anthropic::PATH, "https://gate.example/a/v1/messages"),
    ] {
        assert_eq!(endpoint(&base.parse().unwrap(), "small", path).as_str(), whole);
    }
}

#[test]
fn each_form_of_retry_after_is_understood() {
    let now = DateTime::parse_from_rfc2822("Wed, 21 Oct 2015 07:28:00 GMT").unwrap().with_timezone(&Utc);
    let wait = |pairs: &[(&'static str, &'static str)]| {
        let headers = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        retry_after(&headers, now).map(|wait| wait.as_millis())
    };
    assert_eq!(wait(&[]), None);
    assert_eq!(wait(&[("retry-after", "2")]), Some(2000));
    assert_eq!(wait(&[("retry-after", "0.5")]), Some(500));
    assert_eq!(wait(&[("retry-after", "9"), ("retry-after-ms", "15")]), Some(15));
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")]), Some(30_000));
    assert_eq!(wait(&[("retry-after", "Wednesday, 21-Oct-15 07:28:30 GMT")]), Some(30_000));
    assert_eq!(wait(&[("retry-after", "Wed Oct 21 07:28:30 2015")]), Some(30_000));
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT")]), Some(0), "it has passed");
    let date = ("date", "Wed, 21 Oct 2015 07:00:00 GMT");
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:00:05 GMT"), date]), Some(5000), "its clock counts");
    for nonsense in ["soon", "-3", "NaN", "inf", "1e300", "18446744073709551616", ""] {
        assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
    }
}

#[test]
fn the_client_can_be_built_without_a_default_provider_of_cryptography() {
    client(&Network::default()).unwrap();
}

#[test]
fn a_key_in_the_header_authorization_goes_by_its_scheme_on_each_wire() {
    let config = "providers: {a: {base_url: 'http://a.example', wire: anthropic, key_env: K, key_header: authorization}, \
                  b: {base_url: 'http://b.example', key_env: K, key_header: api-key}}";
    let variables = [("K".to_owned(), "planted".to_owned())].into();
    let config = serde_yaml::from_str(config).expect("it is valid");
    let settings = crate::host::llm::ClientSettings::from_environment(&variables, &config).unwrap();
    let key = crate::host::secret::Secret::new("planted");
    for (name, header, value) in [("a", "authorization", "Bearer planted"), ("b", "api-key", "planted")] {
        let provider = settings.providers.iter().find(|provider| provider.name == name).unwrap();
        let profile = Default::default();
        let marks = Default::default();
        let context =
            CallContext { provider, model: "m", key: key.as_ref(), profile: &profile, marks, wants_thoughts: false };
        let http = request(context, &crate::host::llm::tests::request(&format!("{name}/m"), "x")).unwrap();
        assert_eq!(http.headers()[header], value);
    }
}
