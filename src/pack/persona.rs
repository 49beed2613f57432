//! Personas: Markdown files with front matter (who) and a prompt body (how it speaks).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{Code, Failure, Result, nearest};
use crate::model::chat::Effort;
use crate::model::collection::Format;
use crate::model::text::excerpt;
use crate::pack::tree::{PackTree, Root};
use crate::schema::report::{self, LocatedViolation, Severity};
use crate::schema::{Schema, source};

/// A persona: who speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Persona {
    pub slug: String,
    pub name: String,
    pub summary: String,
    pub tags: Vec<String>,
    pub model: Option<String>,
    pub temperature: Option<f64>,
    /// How much a model is to think when it speaks as this persona.
    pub effort: Option<Effort>,
    pub meta: Map<String, Value>,
    pub body: String,
    pub source: String,
}

/// The front matter. Other members are the persona's own and reach the flow as `meta`.
#[derive(Deserialize)]
struct FrontMatter {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    tags: Vec<String>,
    model: Option<String>,
    temperature: Option<f64>,
    effort: Option<Effort>,
    #[serde(flatten)]
    meta: Map<String, Value>,
}

impl Persona {
    /// Reads a persona from its file's text.
    ///
    /// # Errors
    ///
    /// `document-unreadable` if the front matter is no YAML; `document-invalid` if a part of the persona is missing.
    pub fn parse(slug: &str, text: &str, source: &str) -> Result<Persona> {
        let invalid = |why: String| Failure::new(Code::DocumentInvalid, format!("{source}: {why}"));
        let text = text.replace("\r\n", "\n");
        let (front, body) = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"))
            .ok_or_else(|| invalid("a persona begins with front matter between two lines of `---`".to_owned()))?;
        // The front matter starts on the file's second line.
        let front = source::parse(&format!("\n{front}"), Format::Yaml, source)?;
        let front: FrontMatter =
            serde_json::from_value(front).map_err(|error| invalid(format!("front matter: {error}")))?;
        let body = body.trim().to_owned();
        if body.is_empty() || front.name.is_empty() {
            return Err(invalid("a persona needs a name and a prompt below its front matter".to_owned()));
        }
        Ok(Persona {
            slug: slug.to_owned(),
            name: front.name,
            summary: front.summary,
            tags: front.tags,
            model: front.model,
            temperature: front.temperature,
            effort: front.effort,
            meta: front.meta,
            body,
            source: source.to_owned(),
        })
    }

    /// Returns the persona as a flow gets it.
    pub fn value(&self) -> Value {
        json!({
            "slug": self.slug, "name": self.name, "summary": self.summary, "tags": self.tags, "model": self.model,
            "temperature": self.temperature, "effort": self.effort, "meta": self.meta, "body": self.body, "source": self.source,
        })
    }
}

/// The personas of several trees; the first tree that has a slug wins.
pub struct Personas {
    trees: Vec<PackTree>,
    /// Whether to ignore the models and efforts that personas name, except for bundled personas.
    ignores_models: Cell<bool>,
    /// What the flow needs of personas.
    needs: RefCell<PersonaNeeds>,
}

/// What stands for any persona in the place of a tag: those that the flow may be told to use have no tag of its own.
const ANY: &str = "*";

/// What a flow needs of the personas that have a tag: the schema of their front matter.
#[derive(Debug, Default)]
pub(crate) struct PersonaNeeds(BTreeMap<String, Schema>);

impl PersonaNeeds {
    /// Compiles the schemas, by tag.
    ///
    /// # Errors
    ///
    /// Those of [`Schema::compile`].
    pub(crate) fn compile(schemas: &BTreeMap<String, Value>) -> Result<PersonaNeeds> {
        let compile = |(tag, schema): (&String, &Value)| {
            let named = |failure: Failure| {
                let message = format!("personas with the tag `{tag}`: {}", failure.message);
                Failure { message, ..failure }
            };
            Ok((tag.clone(), Schema::compile(schema).map_err(named)?))
        };
        schemas.iter().map(compile).collect::<Result<_>>().map(PersonaNeeds)
    }

    /// Returns what a persona's text lacks of what is needed of its tags.
    pub(crate) fn faults(&self, text: &str, source: &str) -> Vec<LocatedViolation> {
        self.faults_of(text, source, false)
    }

    /// Returns what a persona's text lacks of what is needed of its tags, or where it has none of them, of any persona.
    pub(crate) fn faults_of_any(&self, text: &str, source: &str) -> Vec<LocatedViolation> {
        self.faults_of(text, source, true)
    }

    fn faults_of(&self, text: &str, source: &str, any: bool) -> Vec<LocatedViolation> {
        let text = text.replace("\r\n", "\n");
        let front = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
        // The front matter starts on the file's second line.
        let Some(front) = front.map(|(front, _)| format!("\n{front}")) else { return Vec::new() };
        let Ok(value) = source::read(&front, Format::Yaml) else { return Vec::new() };
        let tags = value["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut schemas: Vec<&Schema> = tags.filter_map(|tag| self.0.get(tag)).collect();
        if any && schemas.is_empty() {
            schemas.extend(self.0.get(ANY));
        }
        let needed = schemas.into_iter().flat_map(|schema| schema.violations(&value)).collect();
        report::locate(needed, Severity::Error, &front, Format::Yaml, source)
    }
}

impl Personas {
    pub fn new(trees: Vec<PackTree>) -> Personas {
        Personas { trees, ignores_models: Cell::new(false), needs: RefCell::default() }
    }

    /// Sets what personas that are not bundled must have, to be found.
    pub(crate) fn set_needs(&self, needs: PersonaNeeds) {
        *self.needs.borrow_mut() = needs;
    }

    /// Sets whether to ignore the models that personas name, because the user named one for all.
    pub fn set_ignore_models(&self, ignore: bool) {
        self.ignores_models.set(ignore);
    }

    /// Returns the persona with this slug.
    ///
    /// # Errors
    ///
    /// Those of [`PackTree::text`] and [`Persona::parse`].
    pub fn find(&self, slug: &str) -> Result<Option<Persona>> {
        for tree in &self.trees {
            for path in tree.list("personas", ".md") {
                if self::slug(&path) == slug {
                    return self.load(tree, &path).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// Returns the persona with this slug.
    ///
    /// # Errors
    ///
    /// `persona-not-found`, with the nearest slug, and those of [`Personas::find`].
    pub fn get(&self, wanted: &str) -> Result<Persona> {
        if let Some(persona) = self.find(wanted)? {
            return Ok(persona);
        }
        let paths: Vec<String> = self.trees.iter().flat_map(|tree| tree.list("personas", ".md")).collect();
        let failure = Failure::new(Code::PersonaNotFound, format!("there is no persona `{}`", excerpt(wanted)));
        Err(match nearest(wanted, paths.iter().map(|path| slug(path))) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("a persona is a Markdown file in `personas/`, named by its slug"),
        })
    }

    /// Returns all personas, sorted by slug.
    ///
    /// # Errors
    ///
    /// Those of [`Personas::find`], for any of the personas.
    pub fn list(&self) -> Result<Vec<Persona>> {
        let mut personas = BTreeMap::new();
        for tree in &self.trees {
            for path in tree.list("personas", ".md") {
                if !personas.contains_key(slug(&path)) {
                    personas.insert(slug(&path).to_owned(), self.load(tree, &path)?);
                }
            }
        }
        Ok(personas.into_values().collect())
    }

    fn load(&self, tree: &PackTree, path: &str) -> Result<Persona> {
        let text = tree.text(path)?.unwrap_or_default();
        let mut persona = Persona::parse(slug(path), &text, &tree.display(path))?;
        if tree.root != Root::Bundled {
            let faults = self.needs.borrow().faults(&text, &persona.source);
            if !faults.is_empty() {
                return Err(report::failure(&persona.source, &faults));
            }
        }
        if self.ignores_models.get() && tree.root != Root::Bundled {
            persona.model = None;
            // It was chosen for that model.
            persona.effort = None;
        }
        Ok(persona)
    }
}

/// Returns a persona's slug: its file's name without the ending.
fn slug(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(".md").unwrap_or(file)
}
