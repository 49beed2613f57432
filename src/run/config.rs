//! The user's `config.yaml` and the project's `nietz.yaml`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::disk::{self, Links, owner};
use crate::error::{Code, Failure, Result};
use crate::host::exec::with_defaults;
use crate::host::llm::{AGENT, ModelsConfig, weights_path};
use crate::host::mcp::ServersConfig;
use crate::host::notify::NotifyConfig;
use crate::model::budget::Budget;
use crate::model::choice::ModelChoice;
use crate::model::collection::Format;
use crate::model::command::{CleanupMethod, CommandLimits};
use crate::model::git;
use crate::model::setting::SettingLayer;
use crate::model::text::excerpt;
use crate::schema::builtin::{self, BuiltinSchema};
use crate::schema::source;
use crate::schema::spans::{Spans, pointer};

/// The user's configuration.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub models: ModelsConfig,
    /// Limits of every run, unless the command line gives others.
    pub budget: Budget,
    /// What commands of flows may use.
    pub commands: CommandsConfig,
    /// Where packs are looked for, and whose signatures of them count.
    pub packs: PacksConfig,
    /// What each call of git may take.
    pub git: git::GitLimits,
    /// How flows notify the user. Only their own file says it: it names a program, or where texts are sent.
    pub notify: Option<NotifyConfig>,
    /// The MCP servers that flows may use. Only the user's own file names them: they are programs that run, and addresses that data is
    /// sent to.
    pub mcp: ServersConfig,
    /// Where runs and documents are kept. Only the user's own file says it: a password is sent there.
    pub store: Option<StoreConfig>,
    /// The values of settings, by flow.
    flows: FlowSettings,
    #[serde(skip)]
    layers: Vec<BTreeMap<String, SettingLayer>>,
    #[serde(skip)]
    project_model: Option<String>,
}

/// Where runs and documents are kept: an address, or with more.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum StoreConfig {
    Address(String),
    Settings(StoreSettings),
}

/// A store, and how to get in there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// `files`, or `postgres://USER@HOST:PORT/DATABASE`.
    pub url: String,
    /// How the team calls this workspace; without it, the name of its folder.
    pub workspace: Option<String>,
    /// A command that prints the password.
    pub key_command: Option<Vec<String>>,
    /// A file with the password on its first line, which only the user can read.
    pub password_file: Option<String>,
}

type FlowSettings = BTreeMap<String, Map<String, Value>>;

/// What the user says of packs. No project's file says it: it decides whom the user believes.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PacksConfig {
    /// The git repository of the index, with its branch behind a `#`.
    pub index: Option<String>,
    /// The file of those whose signatures of tags count, as a whole path or below `~/`.
    pub signers: Option<String>,
    /// Whether a pack is added and updated only if one of them has signed its tag.
    pub signed: bool,
}

/// The user's configuration of the commands that flows run.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandsConfig {
    pub limits: CommandLimits,
    /// Folders and files that all of them may read.
    pub read: Vec<String>,
    /// How to make sure that commands end; without it, the surest way there is.
    pub ends: Option<CleanupMethod>,
}

/// The part of [`CommandsConfig`] that a project may set.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProjectCommands {
    limits: CommandLimits,
}

/// What a project may set. Its file comes with a checkout, so it may name models and limits, but no address that a key
/// is sent to.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Project {
    models: ProjectModels,
    budget: Budget,
    commands: ProjectCommands,
    flows: FlowSettings,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProjectModels {
    default: Option<String>,
    aliases: BTreeMap<String, ModelChoice>,
}

impl Config {
    /// Reads the user's `config.yaml`; the defaults if there is none.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the file is wrong, or if others can write it.
    pub fn read(path: &Path) -> Result<Config> {
        // The file names commands to run and addresses that keys are sent to, so only its owner may write it. It may be a
        // link to wherever the user keeps such files.
        let bytes = owner::read(path, disk::SETTINGS)?;
        let Some((mut config, text)) = parse::<Config>(path, bytes, &builtin::CONFIG)? else {
            return Ok(Config::default());
        };
        let flows = std::mem::take(&mut config.flows);
        config.layers.push(layers(path, &text, flows, false));
        if let Some(Err((field, why))) = config.notify.as_ref().map(NotifyConfig::check) {
            return Err(field_failure(path, &text, &["notify", field], &why).hint(NOTIFY_HINT));
        }
        for (name, server) in &config.mcp {
            if let Err((field, why)) = server.check() {
                return Err(field_failure(path, &text, &["mcp", name, field], &why).hint(SERVER_HINT));
            }
        }
        Ok(config)
    }

    /// Adds what the project's file says where the user's own says nothing.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the file breaks its schema, or if an alias would replace a model or a provider.
    pub fn take_project(&mut self, path: &Path) -> Result<()> {
        // The file comes with a checkout: no link may lead out of the project.
        let links = path.parent().map_or(Links::NotLast, Links::Below);
        let bytes = disk::read(path, links, disk::SETTINGS)?;
        bytes.as_deref().map_or(Ok(()), |bytes| refuse_users_alone(path, bytes))?;
        let Some((project, text)) = parse::<Project>(path, bytes, &builtin::PROJECT)? else { return Ok(()) };
        self.layers.push(layers(path, &text, project.flows, true));
        // A project may tighten what the user set, but not loosen it.
        self.budget = self.budget.tightened(project.budget);
        if project.commands.limits != CommandLimits::default() {
            self.commands.limits = with_defaults(self.commands.limits).tightened(project.commands.limits);
        }
        let means =
            |name: &str| self.models.aliases.get(name).map_or_else(|| name.to_owned(), |choice| choice.model.clone());
        if let Some(why) = project.models.default.as_ref().and_then(|name| users_own(&means(name))) {
            return Err(field_failure(path, &text, &["models", "default"], why).hint("take it out, or name another"));
        }
        if self.models.default.is_none() {
            self.models.default.clone_from(&project.models.default);
            self.project_model = project.models.default;
        }
        for (alias, model) in project.models.aliases {
            // The name of a model or a provider must mean the same to the user in every folder.
            if alias.contains('/') || self.models.is_provider(alias.trim()) {
                return Err(alias_failure(path, &text, &alias));
            }
            if let Some(why) = users_own(&model.model) {
                let place = ["models", "aliases", alias.as_str()];
                return Err(field_failure(path, &text, &place, why).hint("take it out, or name another"));
            }
            self.models.aliases.entry(alias).or_insert(model);
        }
        Ok(())
    }

    /// Returns the model that the project chooses, if the user's own configuration chooses none.
    pub fn project_model(&self) -> Option<&str> {
        let name = self.project_model.as_deref()?;
        // The user is asked about the model, not about its alias, which may stand for another model tomorrow.
        Some(self.models.aliases.get(name).map_or(name, |choice| choice.model.as_str()))
    }

    /// Returns what each file sets for a flow, the user's own first.
    pub fn settings(&self, flow: &str) -> Vec<SettingLayer> {
        self.layers.iter().filter_map(|layers| layers.get(flow).cloned()).collect()
    }
}

const NOTIFY_HINT: &str = "notify: {command: [PROGRAM]}, or notify: {url: https://…, secret_env: VARIABLE}";
const SERVER_HINT: &str = "mcp: {NAME: {command: [PROGRAM]}}, or mcp: {NAME: {url: https://…, key_env: VARIABLE}}";

/// Returns the failure for a field that is wrong; an empty last part means the field around it.
fn field_failure(path: &Path, text: &str, place: &[&str], why: &str) -> Failure {
    let place: Vec<&str> = place.iter().copied().filter(|part| !part.is_empty()).collect();
    let pointer = pointer(&place);
    let at = Spans::find(text, Format::Yaml, [pointer.as_str()]).key(&pointer);
    let (file, place) = (path.display(), place.join("."));
    Failure::new(Code::ConfigInvalid, format!("{file}:{}:{}: {place}: {why}", at.line, at.column))
}

/// Returns why no project may choose a model, if only the user may.
fn users_own(model: &str) -> Option<&'static str> {
    if model.trim().starts_with(AGENT) {
        return Some("an agent is a program with your own login: no project chooses one");
    }
    weights_path(model).map(|_| "a file of weights is read as it is: no project chooses one")
}

/// What a project's file cannot say, and why.
const USERS_ALONE: &[(&[&str], &str)] = &[
    (
        &["mcp"],
        "MCP servers are programs that run, or addresses that data is sent to: only your own config.yaml names them",
    ),
    (&["models", "agents"], "agents are programs with your own login: only your own config.yaml names them"),
    (&["models", "local"], "an engine is a program that runs: only your own config.yaml names it"),
];

/// Refuses what only the user's own file may say, in words of its own.
fn refuse_users_alone(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.display().to_string();
    // What is wrong with the text otherwise is said by whoever reads it next.
    let Ok(text) = source::decode(bytes, &name) else { return Ok(()) };
    let Ok(value) = source::parse(text, Format::Yaml, &name) else { return Ok(()) };
    match USERS_ALONE.iter().find(|(place, _)| value.pointer(&pointer(place)).is_some()) {
        Some((place, why)) => {
            Err(field_failure(path, text, place, why).hint("take it out; `nietz where` says where your own file is"))
        }
        None => Ok(()),
    }
}

/// Returns the failure for a project's alias that would replace a model or a provider.
fn alias_failure(path: &Path, text: &str, alias: &str) -> Failure {
    let pointer = pointer(&["models", "aliases", alias]);
    let at = Spans::find(text, Format::Yaml, [pointer.as_str()]).key(&pointer);
    let (file, shown) = (path.display(), excerpt(alias));
    let what = if alias.contains('/') { "looks like the name of a model" } else { "is the name of a provider" };
    Failure::new(Code::ConfigInvalid, format!("{file}:{}:{}: the alias `{shown}` {what}", at.line, at.column))
        .because("a project's alias takes the place of nothing that you can name without it")
        .hint("give it another name, without a slash")
}

/// Returns the content of a file, unless the file is missing or empty. The file is checked by its schema first, so that
/// every violation is reported with its line and field.
fn parse<T: serde::de::DeserializeOwned>(
    path: &Path,
    bytes: Option<Vec<u8>>,
    schema: &BuiltinSchema,
) -> Result<Option<(T, String)>> {
    let Some(bytes) = bytes else { return Ok(None) };
    let name = path.display().to_string();
    let wrong =
        |failure: Failure| Failure { code: Code::ConfigInvalid, hint: None, ..failure }.hint("mend it, or take it out");
    let text = source::decode(&bytes, &name).map_err(wrong)?;
    let value = builtin::read(schema, text, &name).map_err(wrong)?;
    if value.is_null() {
        return Ok(None);
    }
    let config = serde_json::from_value(value)
        .map_err(|error| wrong(Failure::new(Code::ConfigInvalid, format!("{name}: {error}"))))?;
    Ok(Some((config, text.to_owned())))
}

/// Returns what a file sets for the flows, and where each setting stands in it.
fn layers(path: &Path, text: &str, flows: FlowSettings, project: bool) -> BTreeMap<String, SettingLayer> {
    let file = path.display().to_string();
    let all: Vec<String> = flows
        .iter()
        .flat_map(|(flow, values)| values.keys().map(move |name| pointer(&["flows", flow, name])))
        .collect();
    let spans = Spans::find(text, Format::Yaml, all.iter().map(String::as_str));
    let layer = |flow: &str, values: Map<String, Value>| {
        let place = |name: &String| {
            let pointer = pointer(&["flows", flow, name]);
            let at = spans.key(&pointer);
            (name.clone(), format!("{file}:{}:{}: {pointer}", at.line, at.column))
        };
        SettingLayer { places: values.keys().map(place).collect(), values, project }
    };
    flows.into_iter().map(|(flow, values)| (flow.clone(), layer(&flow, values))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;
    use crate::host::llm::{AgentConfig, MaxTokensField, ProviderConfig, RetryConfig, Wire};
    use crate::host::mcp::ServerConfig;
    use crate::model::budget::{LongPrice, Price};

    /// Returns the known names that the message of serde's error lists.
    fn listed<T: DeserializeOwned>(wrong: Value) -> BTreeSet<String> {
        let error = serde_json::from_value::<T>(wrong).err().expect("it is refused").to_string();
        let (_, known) = error.split_once("expected ").unwrap_or_else(|| panic!("no names: {error}"));
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    fn keys<T: DeserializeOwned>() -> BTreeSet<String> {
        listed::<T>(json!({ " ": null }))
    }

    fn texts<'a>(values: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        values.map(str::to_owned).collect()
    }

    #[test]
    fn the_schemas_have_every_key_that_is_read_and_no_other() {
        let models = "/properties/models";
        let provider = "/properties/models/properties/providers/additionalProperties";
        let price = "/properties/models/properties/prices/additionalProperties";
        for (own, place, read) in [
            (&builtin::CONFIG, String::new(), keys::<Config>()),
            (&builtin::CONFIG, models.to_owned(), keys::<ModelsConfig>()),
            (&builtin::CONFIG, provider.to_owned(), keys::<ProviderConfig>()),
            (&builtin::CONFIG, format!("{models}/properties/agents/additionalProperties"), keys::<AgentConfig>()),
            (&builtin::CONFIG, format!("{models}/properties/retry"), keys::<RetryConfig>()),
            (&builtin::CONFIG, price.to_owned(), keys::<Price>()),
            (&builtin::CONFIG, format!("{price}/properties/long"), keys::<LongPrice>()),
            (&builtin::CONFIG, "/properties/budget".to_owned(), keys::<Budget>()),
            (&builtin::CONFIG, "/properties/commands".to_owned(), keys::<CommandsConfig>()),
            (&builtin::CONFIG, "/properties/commands/properties/limits".to_owned(), keys::<CommandLimits>()),
            (&builtin::CONFIG, "/properties/git".to_owned(), keys::<git::GitLimits>()),
            (&builtin::CONFIG, "/properties/notify".to_owned(), keys::<NotifyConfig>()),
            (&builtin::CONFIG, "/properties/mcp/additionalProperties".to_owned(), keys::<ServerConfig>()),
            (&builtin::PROJECT, "/properties/commands".to_owned(), keys::<ProjectCommands>()),
            (&builtin::PROJECT, "/properties/commands/properties/limits".to_owned(), keys::<CommandLimits>()),
            (&builtin::PROJECT, String::new(), keys::<Project>()),
            (&builtin::PROJECT, models.to_owned(), keys::<ProjectModels>()),
            (&builtin::PROJECT, "/properties/budget".to_owned(), keys::<Budget>()),
        ] {
            let schema = own.schema().expect("it is a schema");
            let here = schema.pointer(&place).unwrap_or_else(|| panic!("{} has no {place}", own.name));
            let known = here["properties"].as_object().unwrap_or_else(|| panic!("{place} names no properties"));
            assert_eq!(texts(known.keys().map(String::as_str)), read, "{} {place}", own.name);
            assert_eq!(here["additionalProperties"], false, "{} {place}", own.name);
        }
        for (field, read) in
            [("wire", listed::<Wire>(json!(" "))), ("max_tokens_field", listed::<MaxTokensField>(json!(" ")))]
        {
            let schema = builtin::CONFIG.schema().expect("it is a schema");
            let known = &schema.pointer(provider).expect("providers")["properties"][field]["enum"];
            assert_eq!(texts(known.as_array().into_iter().flatten().filter_map(Value::as_str)), read, "{field}");
        }
    }
}
