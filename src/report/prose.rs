//! Markdown of others as HTML. It brings no HTML, no pictures from elsewhere, and no addresses but those of pages and mail;
//! what a link hides is shown beside it.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

use crate::model::text::clean;

/// What an address may begin with.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// Returns the HTML of a text in Markdown.
pub(super) fn html(markdown: &str) -> String {
    let markdown = clean(markdown);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut out = String::with_capacity(markdown.len() * 3 / 2);
    // The address of each open link that is not kept, or a picture's.
    let mut hidden: Vec<Option<String>> = Vec::new();
    let mut diff: Option<String> = None;
    let events = Parser::new_ext(&markdown, options).flat_map(|event| match (event, &mut diff) {
        (Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))), None) if info.as_ref() == "diff" => {
            diff = Some(String::new());
            Vec::new()
        }
        (Event::Text(text), Some(diff)) => {
            diff.push_str(&text);
            Vec::new()
        }
        (Event::End(TagEnd::CodeBlock), Some(text)) => {
            let lines: String = text.trim_end().lines().map(diff_line).collect();
            diff = None;
            vec![Event::Html(format!("<pre class=\"diff\" tabindex=\"0\">{lines}</pre>\n").into())]
        }
        (other, _) => shown(other, &mut hidden),
    });
    html::push_html(&mut out, events);
    // What can be scrolled can be reached by the keyboard. A text has no `<` of its own any more.
    out.replace("<pre>", "<pre tabindex=\"0\">")
}

/// Returns the HTML of a short text that is no Markdown, as names and paths are: what stands between backticks is code.
pub(super) fn inline(text: &str) -> String {
    let escaped = escaped(&clean(text));
    let mut parts = escaped.split('`');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(after) => out += &format!("<code>{code}</code>{after}"),
            None => out += &format!("`{code}"),
        }
    }
    out
}

/// Returns text as HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns how a line of a unified diff is shown.
pub(super) fn diff_class(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'+') if !text.starts_with("+++") => "new",
        Some(b'-') if !text.starts_with("---") => "old",
        Some(b'@') => "place",
        _ => "same",
    }
}

/// Returns a line of a unified diff as HTML of this program's own.
fn diff_line(line: &str) -> String {
    format!("<span class=\"{}\">{}</span>", diff_class(line), escaped(line))
}

/// Returns what is shown in the place of an event.
fn shown<'a>(event: Event<'a>, hidden: &mut Vec<Option<String>>) -> Vec<Event<'a>> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text)],
        Event::Start(Tag::HtmlBlock) => vec![Event::Start(Tag::Paragraph)],
        Event::End(TagEnd::HtmlBlock) => vec![Event::End(TagEnd::Paragraph)],
        // The page's own headings are above those of its texts.
        Event::Start(Tag::Heading { level, .. }) => {
            vec![Event::Start(Tag::Heading { level: lower(level), id: None, classes: Vec::new(), attrs: Vec::new() })]
        }
        Event::End(TagEnd::Heading(level)) => vec![Event::End(TagEnd::Heading(lower(level)))],
        Event::Start(Tag::Link { link_type, dest_url, .. }) => {
            let safe = SCHEMES.iter().any(|scheme| dest_url.to_ascii_lowercase().starts_with(scheme));
            let bare = matches!(link_type, LinkType::Autolink | LinkType::Email);
            let target =
                if link_type == LinkType::Email { format!("mailto:{dest_url}").into() } else { dest_url.clone() };
            let keep = safe || link_type == LinkType::Email;
            hidden.push((!bare || !keep).then(|| dest_url.to_string()));
            match keep {
                true => vec![Event::Start(link(target))],
                false => Vec::new(),
            }
        }
        Event::End(TagEnd::Link) => {
            let address = hidden.pop().flatten();
            let kept = address
                .as_deref()
                .is_none_or(|address| SCHEMES.iter().any(|scheme| address.to_ascii_lowercase().starts_with(scheme)));
            let mut events = if kept { vec![Event::End(TagEnd::Link)] } else { Vec::new() };
            events.extend(address.map(|address| Event::Text(format!(" ({address})").into())));
            events
        }
        Event::Start(Tag::Image { dest_url, .. }) => {
            hidden.push(Some(dest_url.to_string()));
            vec![Event::Text(CowStr::Borrowed("["))]
        }
        Event::End(TagEnd::Image) => {
            let address = hidden.pop().flatten().unwrap_or_default();
            vec![Event::Text(format!("] ({address})").into())]
        }
        // People saw these lines apart.
        Event::SoftBreak => vec![Event::HardBreak],
        Event::FootnoteReference(name) => vec![Event::Text(format!("[{name}]").into())],
        other => vec![other],
    }
}

fn link(target: CowStr<'_>) -> Tag<'_> {
    Tag::Link { link_type: LinkType::Inline, dest_url: target, title: CowStr::Borrowed(""), id: CowStr::Borrowed("") }
}

fn lower(level: pulldown_cmark::HeadingLevel) -> pulldown_cmark::HeadingLevel {
    use pulldown_cmark::HeadingLevel::{H4, H5, H6};
    match level as usize {
        1 | 2 => H4,
        3 | 4 => H5,
        _ => H6,
    }
}

#[cfg(test)]
mod tests {
    use super::{html, inline};

    #[test]
    fn a_name_has_code_between_backticks_and_nothing_else() {
        assert_eq!(inline("`a<b` in __init__.py & *all*"), "<code>a&lt;b</code> in __init__.py &amp; *all*");
        assert_eq!(inline("one ` and `two`"), "one <code> and </code>two`");
    }

    #[test]
    fn markup_of_others_is_text() {
        assert_eq!(html("<script>alert(1)</script>"), "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n");
        assert_eq!(html("a <img src=x onerror=y> b"), "<p>a &lt;img src=x onerror=y&gt; b</p>\n");
        assert_eq!(html("![cat](https://x.test/cat.png)"), "<p>[cat] (https://x.test/cat.png)</p>\n");
        assert_eq!(html("[go](javascript:alert)"), "<p>go (javascript:alert)</p>\n");
        assert_eq!(html("[go](https://x.test/)"), "<p><a href=\"https://x.test/\">go</a> (https://x.test/)</p>\n");
        assert_eq!(html("<https://x.test/>"), "<p><a href=\"https://x.test/\">https://x.test/</a></p>\n");
        assert_eq!(html("# Head"), "<h4>Head</h4>\n");
        assert_eq!(
            html("```diff\n-a <b>\n+c\n```"),
            "<pre class=\"diff\" tabindex=\"0\"><span class=\"old\">-a &lt;b&gt;</span><span class=\"new\">+c</span></pre>\n"
        );
    }
}
