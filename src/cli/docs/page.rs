//! The reference as one HTML page. All of its texts are nietz's own; it asks for nothing from elsewhere.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::modules::Module;
use super::{PAGES, title};
use crate::error::Code;

const STYLE: &str = include_str!("page.css");
/// The glossary.
const WORDS: &str = include_str!("../../WORDS.md");

/// Returns the page: the pages of text, the modules, the words and the error codes, with a list of all at its beginning.
pub(super) fn html(modules: &[Module]) -> String {
    let mut chapters: Vec<(String, String, String)> = Vec::new();
    for (name, text) in PAGES {
        chapters.push((name.to_owned(), title(text).to_owned(), text.to_owned()));
    }
    for module in modules {
        chapters.push((module.name.clone(), format!("Module {}", module.name), module.markdown()));
    }
    chapters.push((
        "words".to_owned(),
        "Words".to_owned(),
        format!("# Words\n{}", WORDS.trim_start_matches("# Words")),
    ));
    let codes: String = Code::ALL
        .iter()
        .map(|code| format!("\n## {} (exit {})\n{}\n", code.name(), code.exit() as u8, below(code.page())))
        .collect();
    chapters.push(("errors".to_owned(), "Error codes".to_owned(), format!("# Error codes\n{codes}")));
    let list: String =
        chapters.iter().map(|(id, title, _)| format!("<li><a href=\"#{id}\">{title}</a></li>\n")).collect();
    let body: String = chapters.iter().map(|(id, _, text)| section(id, text)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>nietz {version}: the reference</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <nav aria-label=\"Contents\">\n<p>nietz {version}</p>\n<ul>\n{list}</ul>\n</nav>\n<main>\n{body}</main>\n</body>\n</html>",
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// Returns a page of an error code without its first line, which is the code.
fn below(page: &str) -> &str {
    page.split_once('\n').map_or(page, |(_, rest)| rest)
}

fn section(id: &str, markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut out = format!("<section id=\"{id}\">\n");
    // A heading below a chapter can be linked to by the chapter's name and its own.
    let mut names = headings(markdown).into_iter();
    // Links lead to files of the source, which a page elsewhere does not have: their texts say what they are.
    let is_elsewhere = |address: &str| address.starts_with("https://");
    let mut open_links = Vec::new();
    let events = Parser::new_ext(markdown, options).filter_map(move |event| match event {
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            open_links.push(is_elsewhere(dest_url));
            is_elsewhere(dest_url).then_some(event)
        }
        Event::End(TagEnd::Link) => open_links.pop().unwrap_or_default().then_some(event),
        event => Some(event),
    });
    let events = events.map(|event| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let own = names.next().filter(|_| level != HeadingLevel::H1).map(|name| format!("{id}-{name}").into());
            Event::Start(Tag::Heading { level, id: own, classes, attrs })
        }
        event => event,
    });
    html::push_html(&mut out, events);
    // What can be scrolled can be reached by the keyboard.
    out.replace("<pre>", "<pre tabindex=\"0\">") + "</section>\n"
}

/// Returns the texts of the headings as parts of addresses.
fn headings(markdown: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Option<String> = None;
    for event in Parser::new(markdown) {
        match (event, &mut open) {
            (Event::Start(Tag::Heading { .. }), open) => *open = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(name)) => name.push_str(&text),
            (Event::End(TagEnd::Heading(_)), open) => {
                let name = open.take().unwrap_or_default();
                let kept = |c: char| if c.is_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
                names.push(name.chars().map(kept).collect());
            }
            _ => {}
        }
    }
    names
}
