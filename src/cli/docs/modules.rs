//! The modules of the host API, read from their files of types: comments that begin with `---` stand before what they are
//! about, and a type's fields have theirs inside of it.

/// A module as its file has it.
pub(super) struct Module {
    /// What flows require: `@nietz/llm`.
    path: String,
    /// What examples call it: `llm`.
    pub(super) name: String,
    doc: String,
    pub(super) items: Vec<Item>,
}

/// A function, a field or a type of a module.
pub(super) struct Item {
    pub(super) name: String,
    /// How it is written: a function without its body, a type with the comments of its fields.
    text: String,
    doc: String,
    is_type: bool,
}

impl Module {
    pub(super) fn read(path: &str, types: &str) -> Module {
        let name = path.rsplit(['/', '@']).next().unwrap_or(path).to_owned();
        let mut module = Module { path: path.to_owned(), doc: String::new(), items: Vec::new(), name };
        let mut doc = String::new();
        let mut lines = types.lines().skip_while(|line| line.starts_with("--!")).peekable();
        while let Some(line) = lines.next() {
            if let Some(text) = line.strip_prefix("---") {
                doc.push_str(text.strip_prefix(' ').unwrap_or(text));
                doc.push('\n');
                continue;
            }
            let doc = std::mem::take(&mut doc);
            // What stands at the head of the file, and about nothing behind it, is about the module.
            if line.is_empty() {
                if module.doc.is_empty() && module.items.is_empty() {
                    module.doc = doc;
                }
                continue;
            }
            // What is indented, and the bracket that closes it, belongs to the line before.
            let mut text = line.to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with('\t') || *line == "}" || *line == "end") {
                text.push('\n');
                text.push_str(more);
            }
            if let Some(item) = module.item(&text, doc) {
                module.items.push(item);
            }
        }
        module
    }

    /// Returns what a piece of the file is; `None` for what only Luau needs.
    fn item(&self, text: &str, doc: String) -> Option<Item> {
        let word = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
        if let Some(rest) = text.strip_prefix("export type ") {
            let text = text.trim_start_matches("export ").to_owned();
            return Some(Item { name: word(rest), text, doc, is_type: true });
        }
        if let Some(rest) = text.strip_prefix(&format!("function {}.", self.name)) {
            let first = text.lines().next().unwrap_or_default();
            let text = first.trim_start_matches("function ").trim_end_matches(" end").to_owned();
            return Some(Item { name: word(rest), text, doc, is_type: false });
        }
        let rest = text.strip_prefix(&format!("{}.", self.name))?;
        let name = word(rest);
        // A function with a type for each way to call it, or a value.
        let written = text.split_once(" :: any) :: ").map(|(_, types)| format!("{}.{name}: {types}", self.name));
        let written = written.unwrap_or_else(|| text.split(" = ").next().unwrap_or(text).to_owned());
        Some(Item { name, text: written, doc, is_type: false })
    }

    /// Returns the first sentence of what the module is.
    pub(super) fn summary(&self) -> String {
        let text = self.doc.replace('\n', " ");
        let end = text.find(". ").map_or(text.len(), |end| end + 1);
        text[..end].trim().to_owned()
    }

    /// Returns the whole module.
    pub(super) fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n{}\n", self.path, self.doc);
        for item in self.items.iter().filter(|item| !item.is_type) {
            out += &self.of(item);
        }
        let types: Vec<&Item> = self.items.iter().filter(|item| item.is_type).collect();
        if !types.is_empty() {
            out += "\n## Types\n";
        }
        types.iter().for_each(|item| out += &self.of(item));
        out
    }

    /// Returns one item with the types that it names, and those that these name.
    pub(super) fn one(&self, name: &str) -> Option<String> {
        let first = self.items.iter().find(|item| item.name == name)?;
        let mut shown = vec![first];
        let mut at = 0;
        while let Some(item) = shown.get(at) {
            let names = |other: &Item| {
                let words = |c: char| !c.is_alphanumeric() && c != '_';
                let code = item.text.lines().filter(|line| !line.trim_start().starts_with("---"));
                code.flat_map(|line| line.split(words)).any(|word| word == other.name)
            };
            let more = self.items.iter().filter(|other| other.is_type && names(other));
            let more: Vec<&Item> = more.filter(|other| shown.iter().all(|item| item.name != other.name)).collect();
            shown.extend(more);
            at += 1;
        }
        Some(shown.iter().map(|item| self.of(item)).collect())
    }

    fn of(&self, item: &Item) -> String {
        let name = if item.is_type { item.name.clone() } else { format!("{}.{}", self.name, item.name) };
        let space = if item.doc.is_empty() { "" } else { "\n" };
        // Editors show tabs in their own width; a page and a terminal have four columns for them.
        let text = item.text.replace('\t', "    ");
        format!("\n### {name}\n\n```luau\n{text}\n```\n{space}{}", item.doc)
    }
}

#[cfg(test)]
mod tests {
    use super::Module;
    use crate::lua::api;

    fn module(wanted: &str) -> Module {
        let (path, _, types) = api::ALL.iter().find(|(path, ..)| *path == wanted).expect("it is there");
        Module::read(path, types)
    }

    #[test]
    fn each_function_and_type_of_each_module_is_found() {
        for (path, _, types) in api::ALL {
            let module = Module::read(path, types);
            let named = types.lines().filter(|line| {
                ["export type ", "function "].iter().any(|start| line.starts_with(start))
                    || line.starts_with(&format!("{}.", module.name))
            });
            assert_eq!(module.items.len(), named.count(), "{path}");
            assert!(
                module
                    .items
                    .iter()
                    .filter(|item| !item.is_type && item.text.contains('('))
                    .all(|item| item.doc.contains("```lua\n")),
                "{path}"
            );
            assert!(module.summary().ends_with('.') && module.doc.contains("require"), "{path}: {}", module.summary());
        }
    }

    #[test]
    fn one_function_comes_with_the_types_that_it_needs() {
        let chat = module("@nietz/llm").one("chat").expect("it is there");
        for part in
            ["### llm.chat\n", "llm.chat(options: Chat): Reply\n", "### Chat\n", "### Usage\n", "context-exceeded"]
        {
            assert!(chat.contains(part), "{part}");
        }
        let ask = module("@nietz/ui").one("ask").expect("it is there");
        assert!(ask.contains("ui.ask: ((question: AskWithCommands)") && ask.contains("### AskWithCommands"), "{ask}");
        assert!(!ask.contains("### Confirm"), "{ask}");
    }
}
