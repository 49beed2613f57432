//! The entries by which editors and agents know nietz: where each has its configuration, what stands there, and what is written
//! to put an entry in or to take it out. Nothing else of a configuration is changed; one that is not plain JSON is left alone.

mod json;
mod toml;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::disk::temp_file::TempFile;
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};

/// The name of the entry.
pub(crate) const NAME: &str = "nietz";
/// The skills that an agent gets, each with its folder: how a flow is written, and how one is run. They are slash commands, too.
const SKILLS: [(&str, &str); 2] =
    [("nietz", include_str!("run_flows.md")), ("nietz-flows", include_str!("write_flows.md"))];
/// The largest configuration, in bytes.
const LARGEST: u64 = 16 << 20;

/// A program that can start nietz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditorClient {
    ClaudeCode,
    VsCode,
    Cursor,
    Zed,
    JetBrains,
    Codex,
    Gemini,
}

/// Whose configuration is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    User,
    Project,
}

/// A change of one file.
#[derive(Debug)]
pub(crate) struct Change {
    pub path: PathBuf,
    /// What stands there after it; nothing where the file goes.
    after: Option<String>,
    /// What is added or taken out, for who reads it.
    pub shown: String,
}

/// An entry in a file: the members that lead to it, and its value.
struct Entry {
    keys: &'static [&'static str],
    value: Value,
}

impl EditorClient {
    pub(crate) const ALL: [EditorClient; 7] = [
        EditorClient::ClaudeCode,
        EditorClient::VsCode,
        EditorClient::Cursor,
        EditorClient::Zed,
        EditorClient::JetBrains,
        EditorClient::Codex,
        EditorClient::Gemini,
    ];

    /// Returns the name in command lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            EditorClient::ClaudeCode => "claude-code",
            EditorClient::VsCode => "vscode",
            EditorClient::Cursor => "cursor",
            EditorClient::Zed => "zed",
            EditorClient::JetBrains => "jetbrains",
            EditorClient::Codex => "codex",
            EditorClient::Gemini => "gemini",
        }
    }

    /// Returns the client that a word names.
    pub(crate) fn named(name: &str) -> Option<EditorClient> {
        EditorClient::ALL.into_iter().find(|client| client.name() == name)
    }

    /// Returns the file of its configuration.
    ///
    /// # Errors
    ///
    /// `usage` if it has none for projects.
    pub(crate) fn path(self, scope: Scope, home: &Path, workspace: &Path) -> Result<PathBuf> {
        let below = match (self, scope) {
            (EditorClient::ClaudeCode, Scope::User) => ".claude.json",
            (EditorClient::ClaudeCode, Scope::Project) => ".mcp.json",
            (EditorClient::VsCode, Scope::User) if cfg!(target_os = "macos") => {
                "Library/Application Support/Code/User/mcp.json"
            }
            (EditorClient::VsCode, Scope::User) => ".config/Code/User/mcp.json",
            (EditorClient::VsCode, Scope::Project) => ".vscode/mcp.json",
            (EditorClient::Cursor, _) => ".cursor/mcp.json",
            (EditorClient::Zed, Scope::User) => ".config/zed/settings.json",
            (EditorClient::Zed, Scope::Project) => ".zed/settings.json",
            (EditorClient::JetBrains, Scope::User) => ".jetbrains/acp.json",
            (EditorClient::JetBrains, Scope::Project) => {
                return Err(Failure::new(Code::Usage, "jetbrains has no configuration of agents for a project")
                    .hint("leave --project out"));
            }
            (EditorClient::Codex, _) => ".codex/config.toml",
            (EditorClient::Gemini, _) => ".gemini/settings.json",
        };
        Ok(match scope {
            Scope::User => home.join(below),
            Scope::Project => workspace.join(below),
        })
    }

    /// Returns the entries, with this program.
    fn entries(self, program: &str) -> Vec<Entry> {
        let plain = json!({ "command": program, "args": ["mcp"] });
        let entry = |keys: &'static [&'static str], value: Value| Entry { keys, value };
        match self {
            EditorClient::ClaudeCode | EditorClient::VsCode => {
                let keys: &[&str] = if self == EditorClient::VsCode { &["servers"] } else { &["mcpServers"] };
                vec![entry(keys, json!({ "type": "stdio", "command": program, "args": ["mcp"] }))]
            }
            EditorClient::Cursor | EditorClient::Gemini => vec![entry(&["mcpServers"], plain)],
            EditorClient::Codex => vec![entry(&["mcp_servers"], plain)],
            EditorClient::Zed => vec![
                entry(&["agent_servers"], json!({ "type": "custom", "command": program, "args": ["acp"], "env": {} })),
                entry(&["context_servers"], json!({ "command": program, "args": ["mcp"], "env": {} })),
            ],
            EditorClient::JetBrains => {
                vec![entry(&["agent_servers"], json!({ "command": program, "args": ["acp"], "env": {} }))]
            }
        }
    }

    /// Returns the files of the skills, in a client that has skills.
    fn skills(self, scope: Scope, home: &Path, workspace: &Path) -> Vec<(PathBuf, &'static str)> {
        let folder = match (self, scope) {
            (EditorClient::ClaudeCode, _) => ".claude/skills",
            (EditorClient::VsCode, Scope::User) => ".copilot/skills",
            (EditorClient::VsCode, Scope::Project) => ".github/skills",
            (EditorClient::Cursor, _) => ".cursor/skills",
            (EditorClient::Codex, _) => ".agents/skills",
            (EditorClient::Gemini, _) => ".gemini/skills",
            (EditorClient::Zed | EditorClient::JetBrains, _) => return Vec::new(),
        };
        let root = if scope == Scope::User { home } else { workspace };
        SKILLS.map(|(name, text)| (root.join(folder).join(name).join("SKILL.md"), text)).into()
    }

    /// Returns what would be changed to put the entries in. Nothing is where all stand there already.
    ///
    /// # Errors
    ///
    /// `usage` if the file is not one that can be changed without a loss; the failure shows what to add by hand.
    pub(crate) fn install(self, program: &str, scope: Scope, home: &Path, workspace: &Path) -> Result<Vec<Change>> {
        let path = self.path(scope, home, workspace)?;
        let before = read(&path)?;
        let entries = self.entries(program);
        let mut after = before.clone().unwrap_or_default();
        let mut shown = String::new();
        for entry in &entries {
            let (text, added) = match self {
                EditorClient::Codex => (toml::with(&after, &entry.value), toml::table(&entry.value)),
                _ => json::with(&path, &after, entry.keys, &entry.value)?,
            };
            after = text;
            shown += &added;
        }
        let mut changes = Vec::new();
        if before.as_deref() != Some(after.as_str()) {
            changes.push(Change { path, after: Some(after), shown });
        }
        for (path, text) in self.skills(scope, home, workspace) {
            if read(&path)?.as_deref() != Some(text) {
                changes.push(Change { path, after: Some(text.to_owned()), shown: text.to_owned() });
            }
        }
        Ok(changes)
    }

    /// Returns what would be changed to take the entries out.
    ///
    /// # Errors
    ///
    /// As [`EditorClient::install`].
    pub(crate) fn uninstall(self, scope: Scope, home: &Path, workspace: &Path) -> Result<Vec<Change>> {
        let path = self.path(scope, home, workspace)?;
        let mut changes = Vec::new();
        if let Some(before) = read(&path)? {
            let mut after = before.clone();
            for entry in self.entries("") {
                after = match self {
                    EditorClient::Codex => toml::without(&after),
                    _ => json::without(&path, &after, entry.keys)?,
                };
            }
            if after != before {
                let shown = format!("the entry `{NAME}`\n");
                let is_empty = matches!(after.trim(), "" | "{}");
                changes.push(Change { path, after: (!is_empty).then_some(after), shown });
            }
        }
        for (path, _) in self.skills(scope, home, workspace) {
            if read(&path)?.is_some() {
                changes.push(Change { path, after: None, shown: "a skill of nietz's\n".to_owned() });
            }
        }
        Ok(changes)
    }

    /// Returns the program that the entry names, if there is an entry that can be read.
    pub(crate) fn installed(self, scope: Scope, home: &Path, workspace: &Path) -> Option<String> {
        let text = read(&self.path(scope, home, workspace).ok()?).ok()??;
        if self == EditorClient::Codex {
            return toml::command(&text);
        }
        let all: Value = serde_json::from_str(&text).ok()?;
        self.entries("").iter().find_map(|entry| {
            let at = entry.keys.iter().try_fold(&all, |at, key| at.get(key))?;
            at.get(NAME)?["command"].as_str().map(str::to_owned)
        })
    }

    /// Tells whether the client has anything of its own in this home.
    pub(crate) fn is_here(self, home: &Path) -> bool {
        let traces: &[&str] = match self {
            EditorClient::ClaudeCode => &[".claude.json", ".claude"],
            EditorClient::VsCode => &[".config/Code", "Library/Application Support/Code"],
            EditorClient::Cursor => &[".cursor"],
            EditorClient::Zed => &[".config/zed"],
            EditorClient::JetBrains => &[".config/JetBrains", ".jetbrains"],
            EditorClient::Codex => &[".codex"],
            EditorClient::Gemini => &[".gemini"],
        };
        traces.iter().any(|trace| home.join(trace).exists())
    }
}

impl Change {
    /// Makes the change.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be written.
    pub(crate) fn make(&self) -> Result<()> {
        let failed = |doing: &str, error: std::io::Error| Failure::io(&self.path, doing, &error);
        let Some(after) = &self.after else {
            std::fs::remove_file(&self.path).map_err(|error| failed("remove", error))?;
            // A folder that held nothing else goes, too; any other stays.
            let _ = self.path.parent().map(std::fs::remove_dir);
            return Ok(());
        };
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed("make the folder of", error))?;
        }
        // What it leads to is written, and not the link, which somebody keeps elsewhere.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        TempFile::with_mode(&path, after.as_bytes(), 0o600)?.publish(&path)
    }

    /// Tells whether the file goes.
    pub(crate) fn removes(&self) -> bool {
        self.after.is_none()
    }
}

fn read(path: &Path) -> Result<Option<String>> {
    let bytes = disk::read(path, Links::All, LARGEST)?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| Failure::new(Code::Usage, format!("{} is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests {
    use super::{EditorClient, Scope};

    #[test]
    fn an_entry_goes_in_and_out_and_all_else_stays_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (home, workspace) = (folder.path().join("home"), folder.path().join("work"));
        for client in EditorClient::ALL {
            let path = client.path(Scope::User, &home, &workspace).expect("it has one");
            let before = match client {
                EditorClient::Codex => "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"o\"\n",
                _ => "{\n    \"mine\": [1, 2.5],\n    \"servers\": {\n        \"other\": {}\n    }\n}\n",
            };
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            std::fs::write(&path, before).expect("it can be written");
            assert_eq!(client.installed(Scope::User, &home, &workspace), None);
            for _ in 0..2 {
                let changes = client.install("/opt/my \"nietz\"", Scope::User, &home, &workspace).expect("it can be");
                changes.iter().for_each(|change| change.make().expect("it can be written"));
            }
            assert_eq!(
                client.installed(Scope::User, &home, &workspace).as_deref(),
                Some("/opt/my \"nietz\""),
                "{client:?}"
            );
            assert!(client.install("/opt/my \"nietz\"", Scope::User, &home, &workspace).expect("it can be").is_empty());
            let changes = client.uninstall(Scope::User, &home, &workspace).expect("it can be");
            changes.iter().for_each(|change| change.make().expect("it can be written"));
            assert_eq!(client.installed(Scope::User, &home, &workspace), None);
            let after = std::fs::read_to_string(&path).expect("it is there");
            assert_eq!(after.split_whitespace().collect::<String>(), before.split_whitespace().collect::<String>());
        }
    }

    #[test]
    fn a_configuration_with_comments_is_left_alone_and_what_to_add_is_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = EditorClient::Zed.path(Scope::User, folder.path(), folder.path()).expect("it has one");
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(&path, "{\n  // my theme\n  \"theme\": \"x\",\n}\n").expect("it can be written");
        let refused = EditorClient::Zed.install("nietz", Scope::User, folder.path(), folder.path());
        let failure = refused.expect_err("a comment would be lost");
        assert!(failure.hint.is_some_and(|hint| hint.contains("\"agent_servers\"")));
    }
}
