//! Lua that stands in other files: samples of the README and the examples of the host's functions.

/// A piece of Lua.
pub struct Source {
    /// What it is called by those who require it.
    pub name: String,
    /// The file in which it stands, at the same lines.
    pub file: String,
    pub text: String,
    /// The file from which its paths are resolved.
    pub requires_from: String,
    /// Whether it is a file of its own, of which more is asked than that its types are right.
    pub is_whole: bool,
}

impl Source {
    /// A file of its own, or what is one to those who read it.
    pub fn whole(name: String, requires_from: String, text: String) -> Self {
        Self { file: name.clone(), name, text, requires_from, is_whole: true }
    }

    /// Whether it stands in this file or folder.
    pub fn is_below(&self, path: &str) -> bool {
        let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
        self.file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Returns the Lua blocks of a Markdown text.
pub fn fenced(file: &str, text: &str) -> Vec<Source> {
    blocks(file, text.lines(), "--!strict ")
}

/// Returns the examples in the comments of a module's types, which know all modules by their names.
pub fn examples(file: &str, text: &str) -> Vec<Source> {
    let modules = [
        "llm",
        "ui",
        "documents",
        "files",
        "git",
        "personas",
        "quotes",
        "template",
        "task",
        "clock",
        "mcp",
        "random",
        "schema",
        "json",
        "yaml",
        "xml",
        "text",
    ];
    let known: String = modules.iter().map(|name| format!("local {name} = require('@nietz/{name}') ")).collect();
    let lines = text.lines().map(|line| line.strip_prefix("--- ").unwrap_or_default());
    // What an example expects to fail gives an error, and not what it would give else.
    let fails = "local pcall: (...any) -> (boolean, any) = pcall :: any";
    blocks(file, lines, &format!("--!strict\n{fails} local nietz = require('@nietz') {known}"))
}

/// Returns what stands between fences, each behind as many empty lines as stand before it in its file.
fn blocks<'a>(file: &str, lines: impl Iterator<Item = &'a str>, head: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for (index, line) in lines.enumerate() {
        match &mut block {
            None if line == "```lua" => {
                block = Some(format!("{head}{}", "\n".repeat((index + 1).saturating_sub(head.matches('\n').count()))));
            }
            None => {}
            Some(text) if line == "```" => {
                let name = format!("{file}:{}", index + 1);
                found.push(Source {
                    name,
                    file: file.to_owned(),
                    text: std::mem::take(text),
                    requires_from: file.to_owned(),
                    is_whole: false,
                });
                block = None;
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    found
}
