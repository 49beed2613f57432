//! `nietz types`: what an editor needs to complete and check flows, packs and configuration.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::output;
use crate::disk::{self, Links};
use crate::error::{Exit, Result};
use crate::lua::api;
use crate::run::machine::Machine;
use crate::schema::builtin;

/// The folder of the generated files, below the workspace.
const TYPES: &str = ".nietz/types";

/// The files of flows and of modules beside them.
const LUA: &str = "**/flows/**/*.lua";
const NEOVIM: &str = include_str!("neovim.txt");

/// Write types, schemas and settings for VS Code, Zed and Neovim: luau-lsp then completes and checks every call of the host
///
/// Existing settings stay as they are. `nietz check` checks no types. In CI: nietz types && luau-lsp analyze --platform=standard flows, with luau-lsp from
/// <https://github.com/JohnnyMorganz/luau-lsp/releases>
#[derive(Args)]
pub(super) struct TypesArgs {}

pub(super) fn run(machine: &Machine, _: &TypesArgs) -> Result<Exit> {
    let write = |path: &str, text: &str| {
        disk::write_below(&machine.workspace, &machine.workspace.join(TYPES).join(path), text.as_bytes())
    };
    // The files belong to this version of nietz, and are not committed.
    write(".gitignore", "*\n")?;
    for (name, _, types) in api::ALL {
        // `@nietz` is a folder; `@nietz/llm` a file in it.
        let file = name.strip_prefix("@nietz/").unwrap_or("init");
        write(&format!("nietz/{file}.luau"), types)?;
    }
    let mut yaml = Map::new();
    for own in builtin::ALL {
        let path = format!("schemas/{}.schema.json", own.name);
        write(&path, own.text)?;
        if !own.files.is_empty() {
            yaml.insert(format!("./{TYPES}/{path}"), json!(own.files));
        }
    }
    output::line(format!("wrote {TYPES}: {} modules, {} schemas", api::ALL.len(), builtin::ALL.len()))?;
    let luaurc = json!({ "languageMode": "strict", "aliases": { "nietz": format!("{TYPES}/nietz") } });
    merge(machine, ".luaurc", &luaurc)?;
    let settings = json!({
        "luau-lsp.platform.type": "standard",
        // Without it, an extension for another Lua takes the files.
        "files.associations": { LUA: "luau" },
        "yaml.schemas": yaml,
    });
    merge(machine, ".vscode/settings.json", &settings)?;
    merge(machine, ".zed/settings.json", &zed(&yaml))?;
    write("nvim.lua", &neovim(&yaml))?;
    output::line("VS Code needs the extension `luau-lsp`, Zed the extension `Luau`; both find their settings here")?;
    output::line(format!(
        "Neovim (0.11 or newer, with luau-lsp in PATH): dofile(\"{TYPES}/nvim.lua\") in your init.lua"
    ))?;
    Ok(Exit::Done)
}

/// Returns the settings of Zed and its extension for Luau.
fn zed(yaml: &Map<String, Value>) -> Value {
    json!({
        "file_types": { "Luau": [LUA] },
        "lsp": {
            "luau-lsp": { "settings": { "luau-lsp": { "platform": { "type": "standard" } } } },
            "yaml-language-server": { "settings": { "yaml": { "schemas": yaml } } },
        },
    })
}

/// Returns what Neovim runs: its own client of language servers, without a plugin.
fn neovim(yaml: &Map<String, Value>) -> String {
    let schemas: String = yaml
        .iter()
        .map(|(schema, files)| {
            let files: Vec<String> = files.as_array().into_iter().flatten().map(Value::to_string).collect();
            format!("  [{}] = {{ {} }},\n", Value::from(schema.as_str()), files.join(", "))
        })
        .collect();
    NEOVIM.replace("SCHEMAS", schemas.trim_end())
}

/// Adds the missing members to a JSON file of the user's; existing members stay as they are.
fn merge(machine: &Machine, file: &str, wanted: &Value) -> Result<()> {
    let path = machine.workspace.join(file);
    let before = disk::read(&path, Links::Below(&machine.workspace), disk::SETTINGS)?;
    let before = before.unwrap_or_else(|| b"{}".to_vec());
    let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(&before) else {
        // Writing the file would lose its comments, so the user edits it.
        output::block(format!("{file} is not plain JSON; add this to it:\n{wanted:#}"))?;
        return Ok(());
    };
    let mut after = value.clone();
    add(&mut after, wanted);
    if after == value {
        return output::line(format!("{file} is as it should be"));
    }
    disk::write_below(&machine.workspace, &path, format!("{after:#}\n").as_bytes())?;
    output::line(format!("wrote {file}"))
}

fn add(to: &mut Value, wanted: &Value) {
    let (Value::Object(to), Value::Object(wanted)) = (to, wanted) else { return };
    for (name, value) in wanted {
        match to.get_mut(name) {
            Some(present) => add(present, value),
            None => drop(to.insert(name.clone(), value.clone())),
        }
    }
}
