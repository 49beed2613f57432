//! `nietz personas` and `nietz quotes`: what there is, where it comes from, and what hides what.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde_json::json;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::model::text::{excerpt, shell};
use crate::pack::persona::Persona;
use crate::pack::quote;
use crate::pack::tree::PackTree;
use crate::run::machine::Machine;
use crate::template;

/// List the personas that flows can use here, where each comes from, and what hides it; or show one, with its text
#[derive(Args)]
pub(super) struct PersonasArgs {
    /// The persona to show
    #[arg(conflicts_with = "tag")]
    slug: Option<String>,
    /// Only those with this tag
    #[arg(long)]
    tag: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// List the collections of quotes that flows can use here, where each comes from, and what hides it
#[derive(Args)]
pub(super) struct QuotesArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// The origin of each name. If several trees have a name, the first tree wins.
#[derive(Default)]
struct NameOrigins(BTreeMap<String, String>);

impl NameOrigins {
    /// Returns the origin that already has the name; if there is none, `origin` takes the name.
    fn hidden_by(&mut self, name: &str, origin: &str) -> Option<String> {
        if let Some(first) = self.0.get(name) {
            return Some(first.clone());
        }
        self.0.insert(name.to_owned(), origin.to_owned());
        None
    }
}

pub(super) fn personas(machine: &Machine, args: &PersonasArgs) -> Result<Exit> {
    if let Some(slug) = &args.slug {
        return persona(machine, slug, args.json);
    }
    let mut seen = NameOrigins::default();
    let mut rows = Vec::new();
    for tree in machine.trees()? {
        let origin = tree.origin(&machine.workspace);
        for path in tree.list("personas", ".md") {
            let slug = stem(&path, ".md");
            let source = tree.display(&path);
            let hidden = seen.hidden_by(slug, &origin);
            let persona = tree.text(&path).and_then(|text| Persona::parse(slug, &text.unwrap_or_default(), &source));
            let problem = persona.as_ref().err().map(|failure| failure.message.clone());
            let (summary, tags) = persona.map_or_else(
                |_| (format!("(invalid: nietz check {})", shell(&source)), Vec::new()),
                |persona| (persona.summary, persona.tags),
            );
            if args.tag.as_ref().is_some_and(|tag| !tags.contains(tag)) {
                continue;
            }
            if args.json {
                output::json(&json!({
                    "slug": slug, "summary": summary, "tags": tags, "origin": origin, "source": source,
                    "hidden_by": hidden, "problem": problem,
                }))?;
            } else {
                rows.push(vec![slug.to_owned(), summary, tags.join(" "), describe_origin(&origin, hidden)]);
            }
        }
    }
    print(["PERSONA", "WHAT IT MINDS", "TAGS", "FROM"], rows)
}

/// A persona's file: its tree, and its path in it.
pub(super) type PersonaFile = (PackTree, String);

/// Returns the files that have this slug, or this path, in the order in which they hide one another.
pub(super) fn persona_files(machine: &Machine, wanted: &str) -> Result<Vec<PersonaFile>> {
    let slug = stem(wanted, ".md");
    let (mut found, mut known) = (Vec::new(), Vec::new());
    for tree in machine.trees()? {
        for path in tree.list("personas", ".md") {
            match stem(&path, ".md") == slug {
                true => found.push((tree.clone(), path)),
                false => known.push(stem(&path, ".md").to_owned()),
            }
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let failure = Failure::new(Code::PersonaNotFound, format!("there is no persona `{}`", excerpt(slug)));
    Err(match nearest(slug, known.iter().map(String::as_str)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`nietz personas` lists them"),
    })
}

/// Shows one persona: where it comes from, what it is for, which names its text needs, and the text.
fn persona(machine: &Machine, wanted: &str, as_json: bool) -> Result<Exit> {
    let all = persona_files(machine, wanted)?;
    let [(tree, path), hidden @ ..] = all.as_slice() else { return Ok(Exit::Done) };
    let (source, origin) = (tree.display(path), tree.origin(&machine.workspace));
    let text = tree.text(path)?.unwrap_or_default();
    let persona = Persona::parse(stem(path, ".md"), &text, &source)?;
    let needs = template::names(&source, &persona.body)?;
    let hidden: Vec<String> = hidden.iter().map(|(tree, path)| tree.display(path)).collect();
    if as_json {
        let mut value = persona.value();
        value["origin"] = json!(origin);
        value["needs"] = json!(needs);
        value["hides"] = json!(hidden);
        output::json(&value)?;
        return Ok(Exit::Done);
    }
    let mut rows = vec![
        vec!["persona".to_owned(), format!("{}: {}", persona.slug, persona.summary)],
        vec!["from".to_owned(), format!("{source} ({origin})")],
        vec!["tags".to_owned(), persona.tags.join(" ")],
    ];
    rows.extend(persona.model.map(|model| vec!["model".to_owned(), model]));
    rows.extend(hidden.into_iter().map(|hidden| vec!["hides".to_owned(), hidden]));
    let needs: Vec<String> = needs.into_iter().collect();
    let needs = if needs.is_empty() { "no names: its text is rendered as it is".to_owned() } else { needs.join(", ") };
    rows.push(vec!["needs".to_owned(), needs]);
    output::table(&rows)?;
    output::block(format!("\n{}", persona.body))?;
    Ok(Exit::Done)
}

pub(super) fn quotes(machine: &Machine, args: &QuotesArgs) -> Result<Exit> {
    let mut seen = NameOrigins::default();
    let mut rows = Vec::new();
    for tree in machine.trees()? {
        let origin = tree.origin(&machine.workspace);
        for path in tree.list("quotes", ".yaml") {
            let name = stem(&path, ".yaml");
            let source = tree.display(&path);
            let hidden = seen.hidden_by(name, &origin);
            let all = tree.text(&path).and_then(|text| quote::parse(&text.unwrap_or_default(), &source));
            let problem = all.as_ref().err().map(|failure| failure.message.clone());
            let all = all.unwrap_or_default();
            let contexts: BTreeSet<&str> = all.iter().map(|quote| quote.context.as_str()).collect();
            let contexts: Vec<&str> = contexts.into_iter().collect();
            if args.json {
                output::json(&json!({
                    "collection": name, "quotes": all.len(), "contexts": contexts, "origin": origin, "source": source,
                    "hidden_by": hidden, "problem": problem,
                }))?;
            } else {
                let about = match problem {
                    Some(_) => format!("(invalid: nietz check {})", shell(&source)),
                    None => format!("{}: {}", all.len(), contexts.join(", ")),
                };
                rows.push(vec![name.to_owned(), about, describe_origin(&origin, hidden)]);
            }
        }
    }
    print(["QUOTES", "HOW MANY, ABOUT WHAT", "FROM"], rows)
}

fn describe_origin(origin: &str, hidden: Option<String>) -> String {
    match hidden {
        Some(by) => format!("{origin} (hidden by that of: {by})"),
        None => origin.to_owned(),
    }
}

/// Prints what was found below what its columns are; nothing where nothing was.
fn print<const N: usize>(head: [&str; N], mut rows: Vec<Vec<String>>) -> Result<Exit> {
    if !rows.is_empty() {
        rows.insert(0, head.map(str::to_owned).to_vec());
    }
    output::table(&rows)?;
    Ok(Exit::Done)
}

fn stem<'a>(path: &'a str, ending: &str) -> &'a str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(ending).unwrap_or(file)
}
