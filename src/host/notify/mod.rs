//! Tells the user something where they are: by a program or a webhook that their own configuration names. What is sent is
//! redacted once more on its way, and nothing here ends a run.

mod command;
mod config;
mod webhook;

use std::cell::Cell;
use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::host::network::Network;
use crate::host::secret::{Secret, run_command};
use crate::model::effect::notify::{Notification, Urgency};
use crate::model::redact::Redactor;
use config::{Route, SecretPlace};
use webhook::SigningKey;

pub use config::{NotifyConfig, WrongField};

/// The most notifications that one process sends: a flow that goes round in circles is no reason to ring all night.
const MOST: u32 = 100;

/// Sends the notifications of one run.
pub struct Notifier {
    /// How the user wants to be notified, if they do.
    pub config: Option<NotifyConfig>,
    pub run: String,
    pub flow: String,
    /// The command that goes on with the run.
    pub resume: String,
    /// The environment of the user's commands.
    pub environment: BTreeMap<String, String>,
    /// What the variable of `secret_env` has.
    pub secret: Option<String>,
    pub redactor: Redactor,
    pub progress: NotifierProgress,
}

/// What a notifier remembers from one notification to the next.
#[derive(Default)]
pub struct NotifierProgress {
    /// How many were sent.
    sent: Cell<u32>,
    /// What the command of the secret printed: it may ask a person to unlock something.
    printed: OnceCell<Secret>,
}

/// What a program or a receiver gets.
#[derive(Serialize)]
struct Payload<'a> {
    v: u32,
    id: &'a str,
    run: &'a str,
    flow: &'a str,
    title: &'a str,
    text: &'a str,
    urgency: Urgency,
    time: String,
    resume: &'a str,
}

impl Notifier {
    /// Sends a notification, and returns whether it was handed over: `false` if the user named no way. One with the same `id`
    /// may have been sent before.
    ///
    /// # Errors
    ///
    /// Why it was not sent, for people.
    pub async fn send(
        &self,
        notification: &Notification,
        id: &str,
        now: &(dyn Fn() -> u64 + '_),
    ) -> Result<bool, String> {
        let Some(config) = &self.config else { return Ok(false) };
        let route = config.route().map_err(|(field, why)| format!("notify.{field}: {why}"))?;
        let sent = &self.progress.sent;
        if sent.get() >= MOST {
            return Err(format!("this run has sent {MOST} since it was started"));
        }
        sent.set(sent.get() + 1);
        let body = self.payload(notification, id, now())?;
        match route {
            Route::Command(command) => command::run(&command, body, &self.environment, &self.redactor).await?,
            Route::Webhook { url, secret } => {
                let network = Network::from_environment(&self.environment).map_err(|failure| failure.message)?;
                webhook::post(&network, (&url, &self.signing_key(&secret).await?), id, &body, now).await?;
            }
        }
        Ok(true)
    }

    fn payload(&self, notification: &Notification, id: &str, at: u64) -> Result<String, String> {
        let time = i64::try_from(at).ok().and_then(DateTime::<Utc>::from_timestamp_millis).unwrap_or_default();
        let mut clean = notification.clone();
        for part in [&mut clean.title, &mut clean.text] {
            *part = self.redactor.text(part).into_owned();
        }
        let (title, text) = clean.cut();
        let payload = Payload {
            v: 1,
            id,
            run: &self.run,
            flow: &self.flow,
            title: &title,
            text: &text,
            urgency: notification.urgency,
            time: time.to_rfc3339_opts(SecondsFormat::Secs, true),
            resume: &self.resume,
        };
        let mut payload: Value = serde_json::to_value(payload).map_err(|error| error.to_string())?;
        self.redactor.value(&mut payload);
        Ok(payload.to_string())
    }

    async fn signing_key(&self, place: &SecretPlace) -> Result<SigningKey, String> {
        let (name, secret) = match place {
            SecretPlace::Variable(name) => {
                let secret = self.secret.as_deref().and_then(Secret::new);
                let missing = || format!("the variable {name} of notify.secret_env is not set");
                ("notify.secret_env", secret.ok_or_else(missing)?)
            }
            SecretPlace::Command(command) => {
                let place = "notify.secret_command";
                let print = || run_command(place, command, &self.environment);
                let printed = self.progress.printed.get_or_try_init(print).await;
                (place, printed.map_err(|failure| failure.message)?.clone())
            }
        };
        secret.tell(&self.redactor, name);
        SigningKey::read(secret.expose()).map_err(|why| format!("{name}: {why}"))
    }
}
