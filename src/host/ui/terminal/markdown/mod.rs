//! Renders Markdown as lines for a terminal: headings, emphasis, lists, quotes, code, tables, rules.
//!
//! The parser is pulldown-cmark. The renderer walks over its events and writes the marks of the open
//! containers (quote bars, bullets) in front of each line. HTML is shown as source, and the target of a
//! link is shown beside its text, so that a link cannot hide where it leads.

mod table;

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use self::table::Table;
use super::style::{BOLD, DIM, StyledLine};
use super::wrap::{cells, hanging, wrap};
use crate::host::ui::out::safe;

/// The widest line of prose: longer lines are hard to read on wide screens.
const PROSE: usize = 100;

/// The longest text, in bytes, that is rendered as Markdown.
const LAID_OUT: usize = 256 * 1024;

const CODE: Style = AnsiColor::Cyan.on_default();

/// Returns the parser with the extensions that nietz shows.
pub(super) fn parser(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS)
}

/// Returns the lines that show this Markdown at this width. A very long text is shown as source.
pub(super) fn render(markdown: &str, width: usize) -> Vec<StyledLine> {
    if markdown.len() > LAID_OUT {
        let plain = |line: &str| line.chars().map(|letter| (letter, Style::new())).collect::<Vec<_>>();
        return safe(markdown).lines().flat_map(|line| wrap(&plain(line), width.max(10))).collect();
    }
    let mut renderer = Renderer { width: width.clamp(10, PROSE), screen: width.max(10), ..Renderer::default() };
    // The text is cleaned before it is measured: a control character takes no cell, its picture takes one.
    for event in parser(&safe(markdown)) {
        renderer.event(event);
    }
    renderer.flush();
    renderer.lines
}

/// Returns Markdown as text for a place that shows none. A paragraph is one line.
#[cfg(feature = "editors")]
pub(crate) fn plain(markdown: &str) -> String {
    if markdown.len() > LAID_OUT {
        return safe(markdown);
    }
    let mut renderer = Renderer { width: usize::MAX / 2, screen: 80, ..Renderer::default() };
    for event in parser(&safe(markdown)) {
        renderer.event(event);
    }
    renderer.flush();
    let line = |line: &StyledLine| line.chars().map(|(letter, _)| letter).collect::<String>().trim_end().to_owned();
    renderer.lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[derive(Default)]
struct Renderer {
    /// The width of prose, and that of the screen, which code may have.
    width: usize,
    screen: usize,
    lines: Vec<StyledLine>,
    /// The marks in front of each line, outermost first.
    marks: Vec<Mark>,
    /// For each open list, the number of its next item, or `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The styles of the open emphases; the last one applies.
    styles: Vec<Style>,
    /// The text of the open paragraph, heading or item.
    inline: Vec<(char, Style)>,
    /// The targets of the open links, and where their texts begin in `inline`.
    links: Vec<(String, usize)>,
    code: Option<String>,
    table: Option<Table>,
    /// Whether a blank line must come before the next line.
    gap: bool,
}

/// A container's mark: `first` before its first line, then `rest` before each further line.
struct Mark {
    first: Option<StyledLine>,
    rest: StyledLine,
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.text(&text, self.style()),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let style = self.style().fg_color(CODE.get_fg_color());
                self.text(&format!("`{text}`"), style);
            }
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.text("\n", self.style()),
            Event::Rule => {
                let room = self.room();
                self.emit(&[StyledLine::new(&"─".repeat(room), DIM)]);
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, DIM),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), DIM),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.styles.push(heading(level));
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.separate();
                self.marks.push(Mark { first: None, rest: StyledLine::new("│ ", DIM) });
                self.styles.push(self.style().italic());
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                if let CodeBlockKind::Fenced(language) = kind
                    // `text` means no language.
                    && !matches!(&*language, "" | "text")
                {
                    self.separate();
                    self.emit(&[StyledLine::new(&format!("  {language}"), DIM)]);
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                // A list inside an item belongs to the text before it, so no blank line separates them.
                self.gap &= self.lists.is_empty();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().strikethrough()),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.inline.len()));
                self.styles.push(self.style().underline());
            }
            Tag::Image { dest_url, .. } => {
                self.text("image: ", DIM);
                self.links.push((dest_url.to_string(), self.inline.len()));
                self.styles.push(self.style());
            }
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table::new(&alignments));
            }
            Tag::Paragraph | Tag::HtmlBlock => self.flush(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.marks.pop();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_of_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                if self.marks.last().is_some_and(|mark| mark.first.is_some()) {
                    self.emit(&[StyledLine::default()]);
                }
                self.marks.pop();
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_of_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_of_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.room());
                    self.emit(&lines);
                    self.gap = true;
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        let rest = StyledLine::new(&" ".repeat(mark.chars().count()), Style::new());
        self.marks.push(Mark { first: Some(StyledLine::new(&mark, DIM)), rest });
    }

    fn end_of_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let room = self.room_of(self.screen).saturating_sub(2);
        let mut lines = Vec::new();
        for source in code.trim_end_matches('\n').split('\n') {
            let chars: Vec<(char, Style)> = source.chars().map(|c| (c, CODE)).collect();
            let blanks: usize = source.chars().take_while(|c| c.is_whitespace()).map(cells).sum();
            for line in hanging(&chars, room, blanks + 2) {
                let mut indented = StyledLine::new("  ", Style::new());
                indented.append(&line);
                lines.push(indented);
            }
        }
        self.emit(&lines);
        self.gap = true;
    }

    fn end_of_link(&mut self) {
        self.styles.pop();
        if let Some((target, start)) = self.links.pop() {
            let text: String = self.inline.iter().skip(start).map(|(c, _)| *c).collect();
            if !target.is_empty() && text != target && format!("mailto:{text}") != target {
                self.text(&format!(" ({target})"), DIM);
            }
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str, style: Style) {
        self.inline.extend(text.chars().map(|c| (c, style)));
    }

    /// Returns the width that the marks of the open containers leave.
    fn room(&self) -> usize {
        self.room_of(self.width)
    }

    fn room_of(&self, width: usize) -> usize {
        let marks: usize = self.marks.iter().map(|mark| mark.rest.width()).sum();
        width.saturating_sub(marks).max(10)
    }

    /// Writes the collected text, wrapped.
    fn flush(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        let end = inline.iter().rposition(|(c, _)| !c.is_whitespace()).map_or(0, |last| last + 1);
        if end > 0 && self.table.is_none() {
            let lines = match is_marked(&inline) {
                true => {
                    inline[..end].split(|(c, _)| *c == '\n').flat_map(|line| hanging(line, self.room(), 2)).collect()
                }
                false => wrap(&inline[..end], self.room()),
            };
            self.emit(&lines);
            self.gap = true;
        }
    }

    /// Writes the blank line between two blocks, if one is due.
    fn separate(&mut self) {
        if std::mem::take(&mut self.gap) {
            let mut line = StyledLine::default();
            self.marks.iter().for_each(|mark| line.append(&mark.rest));
            self.lines.push(line.trimmed());
        }
    }

    fn emit(&mut self, lines: &[StyledLine]) {
        self.separate();
        for content in lines {
            let mut line = StyledLine::default();
            for mark in &mut self.marks {
                line.append(mark.first.take().as_ref().unwrap_or(&mark.rest));
            }
            line.append(content);
            self.lines.push(line.trimmed());
        }
    }
}

/// Tells whether a text begins with a mark of its own, behind which its further lines go on.
fn is_marked(text: &[(char, Style)]) -> bool {
    matches!(text, [(mark, _), (' ', _), ..] if "•✓✗→○●◐–·!".contains(*mark))
}

fn heading(level: HeadingLevel) -> Style {
    match level {
        HeadingLevel::H1 => BOLD.underline(),
        HeadingLevel::H2 => BOLD,
        _ => BOLD.italic(),
    }
}

#[cfg(test)]
mod tests;
