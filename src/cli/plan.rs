//! `nietz run FLOW --plan`: shows what a run may do, with which models and within which limits, without starting it.

use serde_json::{Value, json};

use crate::cli::output;
use crate::cli::trust::overriding_files;
use crate::error::{Exit, Failure, Result};
use crate::host::Models;
use crate::host::llm::{Client, catalogue_as_of};
use crate::host::mcp::ServerConfig;
use crate::host::notify::NotifyConfig;
use crate::lua::limits::FlowLimits;
use crate::model::budget::{Budget, Price};
use crate::model::chat::Effort;
use crate::model::choice::{ModelChoice, RunEfforts};
use crate::model::command::{self, Grants};
use crate::model::param::ParamKind;
use crate::model::permission::{GitAccess, Permission, Permissions};
use crate::pack::permission_items::{describe_item, everywhere_item};
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::runtime;
use crate::run::session::Session;

/// What `--plan` shows of a run that has not begun.
struct Plan {
    name: String,
    summary: String,
    source: String,
    command: Option<String>,
    /// The model of calls that name none, and why it was chosen.
    model: Option<Result<(String, String), Failure>>,
    /// Where that model's provider is asked; absent for a model that runs on this machine.
    address: Option<String>,
    /// The models that params name: the option, the word that was given, and the model that it means.
    named: Vec<(String, Result<String, Failure>)>,
    prices: Vec<(String, Option<Price>)>,
    /// How much models are to think, where calls and personas say nothing of that.
    effort: Option<Effort>,
    aliases: Vec<(String, ModelChoice)>,
    /// Path below the workspace of each collection, by name.
    documents: Vec<(String, String)>,
    /// The paths of those that are read in the user's other folders, too.
    everywhere: Vec<String>,
    permissions: Permissions,
    /// What the user grants in addition.
    grants: Grants,
    /// Where notifications go.
    notify: String,
    /// The MCP servers that it uses, and what each may do.
    servers: Vec<(String, String)>,
    limits: FlowLimits,
    budget: Budget,
    settings: Vec<(String, String)>,
    /// The files of the workspace that it reads in place of its own, or beside them.
    overriding: Vec<String>,
}

pub(super) fn show(session: &Session, machine: &Machine, begin: &NewRun, json: bool) -> Result<Exit> {
    let client = crate::run::models::client(machine)?;
    let manifest = &session.flow.manifest;
    let named = begin.model.as_deref();
    let model = manifest.permissions.llm.then(|| runtime()?.block_on(choose_model(&client, named)));
    let aliases: Vec<(String, ModelChoice)> = match manifest.permissions.llm {
        true => client.aliases().clone().into_iter().collect(),
        false => Vec::new(),
    };
    let own = session.flow.command(begin.command.as_deref())?;
    let mut params = Vec::new();
    for (name, param) in own.params.iter().filter(|(_, param)| param.kind == ParamKind::Model) {
        let words = begin.params.get(name).map(words_of).unwrap_or_default();
        let option = if param.positional { name.to_uppercase() } else { format!("--{}", name.replace('_', "-")) };
        for word in words {
            params.push((option.clone(), runtime()?.block_on(client.resolve(Some(word)))));
        }
    }
    let mut names: Vec<String> = model.iter().flatten().map(|(model, _)| model.clone()).collect();
    names.extend(params.iter().filter_map(|(_, model)| model.as_ref().ok().cloned()));
    names.extend(aliases.iter().map(|(_, choice)| choice.model.clone()));
    names.sort();
    names.dedup();
    let address = model.as_ref().and_then(|model| {
        let (model, _) = model.as_ref().ok()?;
        client.facts(Some(model)).ok()?.provider?.address
    });
    let plan = Plan {
        address,
        name: manifest.name.clone(),
        summary: manifest.summary.clone(),
        source: session.flow.located.source(),
        command: begin.command.clone(),
        prices: names.into_iter().map(|name| (name.clone(), client.price(&name))).collect(),
        model,
        named: params,
        effort: RunEfforts { model: client.effort_of(named), ..begin.efforts.clone() }.of(None),
        aliases,
        documents: manifest
            .collections
            .iter()
            .map(|(name, declared)| (name.clone(), declared.collection.path.clone()))
            .collect(),
        everywhere: manifest.read_everywhere().map(str::to_owned).collect(),
        permissions: manifest.permissions.with_params(&begin.params, !begin.grants.no_sandbox),
        grants: begin.grants.clone(),
        notify: machine
            .config
            .notify
            .as_ref()
            .map_or_else(|| "nowhere: your config.yaml has no `notify`".to_owned(), NotifyConfig::describe),
        servers: manifest.permissions.mcp.iter().map(|name| (name.clone(), describe_server(machine, name))).collect(),
        limits: manifest.limits.unwrap_or_default(),
        budget: session.budget(machine, begin.budget),
        settings: session.settings(machine)?.into_iter().map(|(name, value)| (name, value.to_string())).collect(),
        overriding: overriding_files(&session.flow)?,
    };
    match json {
        true => output::json(&plan.json())?,
        false => output::table(&plan.rows())?,
    }
    Ok(Exit::Done)
}

fn describe_server(machine: &Machine, name: &str) -> String {
    let missing = || "your config.yaml names no such server".to_owned();
    machine.config.mcp.get(name).map_or_else(missing, ServerConfig::describe)
}

/// Returns the texts of a param: one, or those of a list.
fn words_of(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

async fn choose_model(client: &Client, wanted: Option<&str>) -> Result<(String, String)> {
    match wanted {
        Some(name) => Ok((client.resolve(Some(name)).await?, "it was asked for with --model".to_owned())),
        None => client.default_model().await.map(|choice| (choice.model.clone(), choice.why.clone())),
    }
}

impl Plan {
    fn rows(&self) -> Vec<Vec<String>> {
        let mut rows: Vec<[String; 2]> = Vec::new();
        let mut add = |head: &str, text: String| rows.push([head.to_owned(), text]);
        add("flow", format!("{}: {}", self.name, self.summary));
        add("from", self.source.clone());
        let mut head = "this folder's";
        for path in &self.overriding {
            add(std::mem::take(&mut head), format!("{path} (read with the flow's own files)"));
        }
        if let Some(command) = &self.command {
            add("command", command.clone());
        }
        for permission in Permission::ALL {
            self.permission(*permission, &mut add);
        }
        let mut head = "documents";
        for (name, path) in &self.documents {
            let place = if path == "{*}" { "the file that you name" } else { path };
            add(std::mem::take(&mut head), format!("reads and writes {place} ({name})"));
        }
        for path in &self.everywhere {
            add("", describe_item(&everywhere_item(path)));
        }
        if self.documents.is_empty() {
            add(head, "none".to_owned());
        }
        let FlowLimits { seconds, megabytes } = self.limits;
        add("Lua", format!("{seconds} s without an effect, {megabytes} MB of memory"));
        add("budget", self.budget.bounded().to_string());
        let mut head = "settings";
        for (name, value) in &self.settings {
            add(std::mem::take(&mut head), format!("{name}: {value}"));
        }
        if self.permissions.commands().is_empty() {
            add("nothing else", "no other file, no other address, no process".to_owned());
        }
        rows.into_iter().map(Vec::from).collect()
    }

    /// Adds rows that say what a permission lets the flow do.
    fn permission(&self, permission: Permission, add: &mut impl FnMut(&str, String)) {
        let declared = self.permissions.declares(permission);
        match permission {
            Permission::Llm => self.models(add),
            Permission::Files if declared => {
                add("files", "reads any of this folder".to_owned());
                for path in &self.grants.read {
                    add("", format!("and {path}"));
                }
            }
            Permission::GitRead if self.permissions.git == GitAccess::Read => {
                add("git", permission.consent_text().to_owned());
            }
            Permission::Git if declared => {
                add("git", "reads the whole repository and uncommitted work; branches of its own in it, and worktrees beside it".to_owned());
            }
            Permission::Exec if !self.permissions.commands().is_empty() => {
                add("commands", command::describe_commands(self.permissions.commands(), &self.grants));
            }
            Permission::ExecRead if !self.permissions.files_of_commands().is_empty() => {
                add("", command::describe_files(self.permissions.files_of_commands()));
            }
            Permission::Notify if declared => add("notify", format!("sends you notifications {}", self.notify)),
            Permission::Mcp => {
                let mut head = "MCP";
                for (name, server) in &self.servers {
                    add(std::mem::take(&mut head), format!("calls tools of {name}: {server}"));
                }
            }
            Permission::Files
            | Permission::GitRead
            | Permission::Git
            | Permission::Exec
            | Permission::ExecRead
            | Permission::Notify => {}
        }
    }

    fn models(&self, add: &mut impl FnMut(&str, String)) {
        match &self.model {
            None => add("models", "none: the flow does not declare that it calls models".to_owned()),
            Some(Ok((model, why))) => add("model", format!("{model} ({why})")),
            Some(Err(failure)) => add("model", format!("none: {}", failure.message)),
        }
        if let Some(address) = &self.address {
            add("", format!("asked at {address}"));
        }
        for (option, model) in &self.named {
            match model {
                Ok(model) => add("", format!("{model} ({option})")),
                Err(failure) => add("", format!("none for {option}: {}", failure.message)),
            }
        }
        if let Some(effort) = self.effort {
            add("effort", effort.name().to_owned());
        }
        for (alias, choice) in &self.aliases {
            add("", format!("{alias} means {choice}"));
        }
        let mut head = "prices";
        for (model, price) in &self.prices {
            add(std::mem::take(&mut head), format!("{model}: {}", describe_price(*price)));
        }
    }

    fn json(&self) -> Value {
        let model = match &self.model {
            Some(Ok((model, why))) => json!({ "model": model, "why": why }),
            Some(Err(failure)) => json!({ "failure": failure }),
            None => Value::Null,
        };
        let aliases: Value = self.aliases.iter().map(|(alias, choice)| (alias.clone(), choice.to_string())).collect();
        let map = |pairs: &[(String, String)]| -> Value { pairs.iter().cloned().collect() };
        json!({
            "flow": self.name, "summary": self.summary, "source": self.source, "command": self.command,
            "model": model, "address": self.address, "named_models": self.named.iter().map(|(option, model)| match model {
                Ok(model) => json!({ "option": option, "model": model }),
                Err(failure) => json!({ "option": option, "failure": failure }),
            }).collect::<Vec<_>>(), "effort": self.effort, "aliases": aliases, "documents": map(&self.documents), "everywhere": self.everywhere,
            "prices": self.prices.iter().map(|(model, price)| (model.clone(), json!(price))).collect::<Value>(),
            "files": self.permissions.files, "git": self.permissions.git, "commands": self.permissions.commands(),
            "files_of_commands": self.permissions.files_of_commands(), "grants": self.grants, "notify": self.permissions.notify.then_some(&self.notify),
            "mcp": map(&self.servers),
            "limits": { "seconds": self.limits.seconds, "megabytes": self.limits.megabytes },
            "budget": self.budget.bounded(), "settings": map(&self.settings), "overrides": self.overriding,
        })
    }
}

fn describe_price(price: Option<Price>) -> String {
    match price {
        None => "not known; a limit on cost cannot be kept with it".to_owned(),
        Some(price) if price == Price::FREE => "free".to_owned(),
        Some(Price { input, output, .. }) => {
            format!("{input} US dollars for a million tokens in, {output} out (known as of {})", catalogue_as_of())
        }
    }
}
