//! Notifications by HTTP: one signed POST, tried again where that can help.
//!
//! Source: Standard Webhooks 1.0.0 (headers, signature, secrets of 24 to 64 bytes as `whsec_` and base64).

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, Engine};
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::tls13::OkmBlock;

use super::config::place;
use crate::host::network::Network;

/// How long one attempt may take, how often it is tried, and the first wait, which doubles.
const ATTEMPT: Duration = Duration::from_secs(10);
const ATTEMPTS: usize = 3;
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// How a secret begins, and how many bytes it has.
const PREFIX: &str = "whsec_";
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The key of a webhook. It has no `Debug`.
pub(super) struct SigningKey(OkmBlock);

impl SigningKey {
    /// Reads a secret as receivers give it out.
    pub(super) fn read(secret: &str) -> Result<SigningKey, String> {
        let key = secret
            .strip_prefix(PREFIX)
            .and_then(|key| SECRET_BASE64.decode(key).ok())
            .filter(|key| KEY_BYTES.contains(&key.len()));
        let why = || format!("the secret is not `{PREFIX}` and the base64 of 24 to 64 bytes");
        key.map(|key| SigningKey(OkmBlock::new(&key))).ok_or_else(why)
    }

    /// Returns the header `webhook-signature`.
    fn sign(&self, id: &str, timestamp: u64, body: &str) -> Result<String, String> {
        let suite = TLS13_AES_128_GCM_SHA256.tls13().ok_or("this program has no HMAC-SHA256")?;
        let tag = suite.hkdf_provider.hmac_sign(&self.0, format!("{id}.{timestamp}.{body}").as_bytes());
        Ok(format!("v1,{}", STANDARD.encode(tag.as_ref())))
    }
}

/// Posts a payload. `now` returns milliseconds since 1970: each attempt is signed at its own time, so that receivers can refuse
/// what is old.
pub(super) async fn post(
    network: &Network,
    (url, key): (&Url, &SigningKey),
    id: &str,
    body: &str,
    now: &dyn Fn() -> u64,
) -> Result<(), String> {
    let client = network.client().map_err(|failure| failure.message)?;
    let client = client.redirect(reqwest::redirect::Policy::none()).build().map_err(|error| error.to_string())?;
    let waits = ExponentialBuilder::default().with_min_delay(FIRST_WAIT).with_max_times(ATTEMPTS - 1).with_jitter();
    let mut waits = waits.build();
    loop {
        let timestamp = now() / 1000;
        let request = client
            .post(url.clone())
            .timeout(ATTEMPT)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", key.sign(id, timestamp, body)?)
            .body(body.to_owned());
        let (why, again) = match request.send().await {
            Ok(response) => match response.status().as_u16() {
                200..=299 => return Ok(()),
                status @ 300..=399 => (format!("answered {status}, and redirects are not followed"), false),
                status => (format!("answered {status}"), matches!(status, 408 | 429 | 500..=599)),
            },
            Err(error) if error.is_timeout() => ("took too long".to_owned(), true),
            Err(_) => ("cannot be reached".to_owned(), true),
        };
        match waits.next().filter(|_| again) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(format!("{} {why}", place(url))),
        }
    }
}

/// Base64 as secrets are given out: padding may be left out.
const SECRET_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector that the libraries of the specification test themselves with.
    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        // In two parts: as one it would be taken for a secret.
        let secret = [PREFIX, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"].concat();
        let key = SigningKey::read(&secret).unwrap_or_else(|why| panic!("{why}"));
        let signed = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signed.as_deref(), Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn what_is_no_secret_of_a_webhook_is_refused_and_not_shown() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        for secret in
            ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_not base64 at all, but as long", &short, &long]
        {
            let why = SigningKey::read(secret).err().unwrap_or_default();
            assert!(why.contains("24 to 64 bytes") && !why.contains("MfKQ"), "{secret}: {why}");
        }
    }
}
