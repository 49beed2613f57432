//! An open question at the terminal: what each key does to it, and how it looks.
//!
//! A pure state, like the editor: keys go in, lines and at last an answer come out.

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use super::editor::Editor;
use super::keys::Key;
use super::style::{BOLD, DIM, Line};
use super::wrap::wrap_text;
use crate::host::ui::answer;
use crate::model::question::{Question, QuestionKind};

/// What a key led to.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// The question is still open.
    Open,
    /// Like `Open`, and the screen is to be drawn anew from its top.
    Clear,
    Answered(Value),
    Interrupted,
    /// Nobody will answer: the input is over.
    Over,
}

/// Lines to show, and where in them the cursor stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    pub(super) lines: Vec<Line>,
    pub(super) cursor: Option<(usize, usize)>,
}

/// A question while it is open.
pub(super) struct Prompt {
    question: Question,
    editor: Editor,
    /// For `choose`: the option that Enter takes.
    chosen: usize,
    /// Why the last answer would not do, or what Tab may become.
    note: Option<Line>,
}

const MARK: &str = "› ";
const FAULT: Style = AnsiColor::Red.on_default();
const ANSWER: Style = AnsiColor::Cyan.on_default();

impl Prompt {
    pub(super) fn new(question: &Question, history: Vec<String>) -> Prompt {
        let default = answer::default(question);
        let value = default.as_ref().and_then(Value::as_str);
        let chosen = question.options.iter().position(|choice| Some(choice.value.as_str()) == value).unwrap_or(0);
        Prompt { question: question.clone(), editor: Editor::new(history), chosen, note: None }
    }

    pub(super) fn press(&mut self, key: &Key) -> Step {
        self.note = None;
        match key {
            Key::Ctrl('c') if self.editor.text().is_empty() => return Step::Interrupted,
            Key::Ctrl('c') => {
                self.editor.clear();
                return Step::Open;
            }
            Key::Ctrl('d') if self.editor.text().is_empty() => return Step::Over,
            Key::Ctrl('l') => return Step::Clear,
            Key::Enter => return self.enter(),
            _ => {}
        }
        match self.question.kind {
            QuestionKind::Ask => self.edit(key),
            QuestionKind::Choose => self.choose(key),
            QuestionKind::Confirm => return self.confirm(key),
        }
        Step::Open
    }

    /// Returns the question with what has been typed so far.
    pub(super) fn view(&self, width: usize, height: usize) -> View {
        let mut lines = self.head(width);
        let cursor = match self.question.kind {
            QuestionKind::Choose => {
                self.options(width, height.saturating_sub(lines.len() + 2).max(3), &mut lines);
                let typed = self.editor.text();
                if self.note.is_none() {
                    let help = if typed.is_empty() {
                        "↑ ↓ or a number, then Enter"
                    } else {
                        "Enter takes it, Esc forgets it"
                    };
                    let line = Line::new(MARK, DIM).with(typed, ANSWER).with("  ", Style::new());
                    lines.push(line.with(help, DIM));
                }
                None
            }
            QuestionKind::Ask | QuestionKind::Confirm => {
                let (rows, (row, column)) = self.editor.rows(width.saturating_sub(2));
                let cursor = (lines.len() + row, column + 2);
                for (index, row) in rows.iter().enumerate() {
                    lines.push(Line::new(if index == 0 { MARK } else { "  " }, DIM).with(row, Style::new()));
                }
                Some(cursor)
            }
        };
        lines.extend(self.note.clone());
        View { lines: lines.iter().map(|line| line.cut(width)).collect(), cursor }
    }

    fn head(&self, width: usize) -> Vec<Line> {
        head(&self.question, true, width)
    }

    fn enter(&mut self) -> Step {
        if self.question.kind == QuestionKind::Ask && self.editor.continued() {
            return Step::Open;
        }
        let typed = self.editor.text().to_owned();
        let text = match self.question.options.get(self.chosen) {
            Some(choice) if self.question.kind == QuestionKind::Choose && typed.is_empty() => &choice.value,
            _ => &typed,
        };
        match answer::parse(&self.question, text) {
            Ok(value) => Step::Answered(value),
            Err(why) => {
                self.note = Some(Line::new(&why, FAULT));
                if self.question.kind == QuestionKind::Choose {
                    self.editor.delete_to_start();
                }
                Step::Open
            }
        }
    }

    fn edit(&mut self, key: &Key) {
        let editor = &mut self.editor;
        match key {
            Key::Char(c) => editor.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => editor.insert(text.trim_end_matches('\n')),
            Key::NewLine => editor.insert("\n"),
            Key::Backspace | Key::Ctrl('h') => editor.backspace(),
            Key::Delete | Key::Ctrl('d') => editor.delete(),
            Key::DeleteWord | Key::Ctrl('w') => editor.delete_word(),
            Key::Ctrl('u') => editor.delete_to_start(),
            Key::Ctrl('k') => editor.delete_to_end(),
            Key::Left | Key::Ctrl('b') => editor.left(),
            Key::Right | Key::Ctrl('f') => editor.right(),
            Key::WordLeft => editor.go_word_left(),
            Key::WordRight => editor.go_word_right(),
            Key::Home | Key::Ctrl('a') => editor.home(),
            Key::End | Key::Ctrl('e') => editor.end(),
            Key::Up | Key::Ctrl('p') => editor.up(),
            Key::Down | Key::Ctrl('n') => editor.down(),
            Key::Tab => {
                let words = editor.complete(&self.question.complete);
                if !words.is_empty() {
                    self.note = Some(Line::new(&words.join("  "), DIM));
                }
            }
            Key::Enter | Key::BackTab | Key::Escape | Key::Ctrl(_) => {}
        }
    }

    /// Arrows move; what is typed is looked up like an answer, and moves to what it means.
    fn choose(&mut self, key: &Key) {
        let last = self.question.options.len().saturating_sub(1);
        match key {
            Key::Up | Key::BackTab | Key::Ctrl('p') => self.go(self.chosen.checked_sub(1).unwrap_or(last)),
            Key::Down | Key::Tab | Key::Ctrl('n') => self.go(if self.chosen >= last { 0 } else { self.chosen + 1 }),
            Key::Home => self.go(0),
            Key::End => self.go(last),
            Key::Escape => self.go(self.chosen),
            Key::Char(_) | Key::Backspace | Key::Paste(_) => {
                self.edit(key);
                let meant = answer::parse(&self.question, self.editor.text()).ok();
                let place = |value: &Value| self.question.options.iter().position(|choice| *value == choice.value);
                if let Some(place) = meant.as_ref().and_then(place) {
                    self.chosen = place;
                }
            }
            _ => {}
        }
    }

    fn go(&mut self, place: usize) {
        self.chosen = place;
        self.editor.end();
        self.editor.delete_to_start();
    }

    fn confirm(&mut self, key: &Key) -> Step {
        match key {
            Key::Char('y' | 'Y') if self.editor.text().is_empty() => Step::Answered(Value::from(true)),
            Key::Char('n' | 'N') if self.editor.text().is_empty() => Step::Answered(Value::from(false)),
            Key::Char(_) => {
                self.note = Some(Line::new("press y or n", FAULT));
                Step::Open
            }
            _ => Step::Open,
        }
    }

    /// Adds the options that have room around the chosen one.
    fn options(&self, width: usize, room: usize, lines: &mut Vec<Line>) {
        let options = &self.question.options;
        let first = self.chosen.saturating_sub(room / 2).min(options.len().saturating_sub(room));
        let digits = options.len().to_string().len();
        for (index, choice) in options.iter().enumerate().skip(first).take(room) {
            let here = index == self.chosen;
            let style = if here { ANSWER } else { Style::new() };
            let mut line = Line::new(if here { "❯ " } else { "  " }, ANSWER);
            line.push(&format!("{:>digits$}. ", index + 1), DIM);
            line.push(&choice.label, style);
            if let Some(hint) = &choice.hint {
                line.push(&format!("  {hint}"), DIM);
            }
            lines.push(line.cut(width));
        }
        if options.len() > room {
            lines.push(Line::new(&format!("  … {} of {}", self.chosen + 1, options.len()), DIM));
        }
    }
}

/// Returns the lines of a question that was answered, here or elsewhere, or left.
pub(super) fn closed(question: &Question, answer: Option<&Value>, width: usize) -> Vec<Line> {
    let mut lines = head(question, false, width);
    let (text, style) = match answer {
        Some(answer) => (answer::shown(question, answer), ANSWER),
        None => ("^C".to_owned(), DIM),
    };
    for (index, line) in wrap_text(&text, style, width.saturating_sub(2)).iter().enumerate() {
        let mut row = Line::new(if index == 0 { MARK } else { "  " }, DIM);
        row.append(line);
        lines.push(row);
    }
    lines
}

/// Returns the last paragraph of the prompt; what stands before it was shown as Markdown.
fn head(question: &Question, open: bool, width: usize) -> Vec<Line> {
    let (_, last) = split(&question.prompt);
    let mut chars: Vec<(char, Style)> = "? ".chars().map(|c| (c, AnsiColor::Green.on_default().bold())).collect();
    chars.extend(last.chars().map(|c| (c, BOLD)));
    if open {
        chars.extend(answer::on_empty(question).chars().map(|c| (c, DIM)));
    }
    super::wrap::wrap(&chars, width)
}

/// Splits a prompt into what leads up to the question, and the question.
pub(super) fn split(prompt: &str) -> (&str, &str) {
    let prompt = prompt.trim();
    prompt.rsplit_once('\n').map_or(("", prompt), |(before, last)| (before, last.trim()))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::super::keys::{Key, Keys};
    use super::{Prompt, Step};
    use crate::host::ui::samples::{question, save, shape, topic};

    fn press(prompt: &mut Prompt, keys: &str) -> Step {
        let mut step = Step::Open;
        for key in Keys::default().feed(keys.as_bytes()) {
            step = prompt.press(&key);
        }
        step
    }

    fn seen(prompt: &Prompt) -> String {
        let view = prompt.view(40, 10);
        let lines: Vec<String> = view.lines.iter().map(|line| line.chars().map(|(c, _)| c).collect()).collect();
        format!("{}\n{:?}", lines.join("\n"), view.cursor)
    }

    #[test]
    fn a_free_answer_is_edited_and_may_have_lines() {
        let mut prompt = Prompt::new(&topic(), vec!["before".to_owned()]);
        assert_eq!(press(&mut prompt, "\r"), Step::Open);
        assert_snapshot!(seen(&prompt), @r"
        ? What about?
        › 
        an answer is needed
        Some((1, 2))
        ");
        press(&mut prompt, "\u{1b}[A\u{1}un \u{5} été\\\r\u{1b}[200~two\r\nthree\r\n\u{1b}[201~");
        assert_snapshot!(seen(&prompt), @r"
        ? What about?
        › un before été
          two
          three
        Some((3, 7))
        ");
        assert_eq!(press(&mut prompt, "\r"), Step::Answered(json!("un before été\ntwo\nthree")));
    }

    #[test]
    fn tab_shows_what_may_be_meant() {
        let mut prompt = Prompt::new(&topic(), Vec::new());
        press(&mut prompt, "/\t");
        assert_snapshot!(seen(&prompt), @r"
        ? What about?
        › /
        /done  /help
        Some((1, 3))
        ");
        assert_eq!(press(&mut prompt, "d\t\r"), Step::Answered(json!("/done")));
    }

    #[test]
    fn a_choice_is_made_by_arrows_by_number_and_by_name() {
        let mut prompt = Prompt::new(&shape(), Vec::new());
        press(&mut prompt, "\u{1b}[B");
        assert_snapshot!(seen(&prompt), @r"
        ? Which shape?
          1. Round  no corners
        ❯ 2. Square
        ›   ↑ ↓ or a number, then Enter
        None
        ");
        assert_eq!(press(&mut prompt, "\r"), Step::Answered(json!("square")));
        assert_eq!(press(&mut Prompt::new(&shape(), Vec::new()), "\u{1b}[A\r"), Step::Answered(json!("square")));
        assert_eq!(press(&mut Prompt::new(&shape(), Vec::new()), "2\r"), Step::Answered(json!("square")));
        let mut prompt = Prompt::new(&shape(), Vec::new());
        press(&mut prompt, "sq");
        assert_snapshot!(seen(&prompt), @r"
        ? Which shape?
          1. Round  no corners
        ❯ 2. Square
        › sq  Enter takes it, Esc forgets it
        None
        ");
        assert_eq!(press(&mut prompt, "\r"), Step::Answered(json!("square")));
        let mut prompt = Prompt::new(&shape(), Vec::new());
        assert_eq!(press(&mut prompt, "9\r"), Step::Open);
        assert_snapshot!(seen(&prompt), @r"
        ? Which shape?
        ❯ 1. Round  no corners
          2. Square
        there is no option 9; there are 2
        None
        ");
    }

    #[test]
    fn a_long_list_scrolls_around_what_is_chosen() {
        let options: Vec<_> =
            (1..=30).map(|n| json!({"value": format!("v{n}"), "label": format!("Option {n}")})).collect();
        let long =
            question(json!({"id": "l", "type": "choose", "prompt": "Which?", "options": options, "default": "v20"}));
        assert_snapshot!(seen(&Prompt::new(&long, Vec::new())), @r"
        ? Which?
          17. Option 17
          18. Option 18
          19. Option 19
        ❯ 20. Option 20
          21. Option 21
          22. Option 22
          23. Option 23
          … 20 of 30
        ›   ↑ ↓ or a number, then Enter
        None
        ");
    }

    #[test]
    fn yes_and_no_need_one_key_and_the_default_is_enter() {
        let mut prompt = Prompt::new(&save(), Vec::new());
        assert_eq!(press(&mut prompt, "x"), Step::Open);
        assert_snapshot!(seen(&prompt), @r"
        ? Save it? (y/N)
        › 
        press y or n
        Some((1, 2))
        ");
        assert_eq!(press(&mut prompt, "y"), Step::Answered(json!(true)));
        assert_eq!(press(&mut Prompt::new(&save(), Vec::new()), "\r"), Step::Answered(json!(false)));
    }

    #[test]
    fn a_question_is_left_with_ctrl_c_or_with_ctrl_d_on_nothing_and_ctrl_c_clears_a_line_first() {
        for question in [topic(), shape(), save()] {
            assert_eq!(Prompt::new(&question, Vec::new()).press(&Key::Ctrl('c')), Step::Interrupted);
            assert_eq!(Prompt::new(&question, Vec::new()).press(&Key::Ctrl('d')), Step::Over);
        }
        assert_eq!(press(&mut Prompt::new(&topic(), Vec::new()), "a\u{4}"), Step::Open);
        let mut prompt = Prompt::new(&topic(), vec!["before".to_owned()]);
        for typed in ["half a sentence", "\u{1b}[A"] {
            assert_eq!(press(&mut prompt, &format!("{typed}\u{3}")), Step::Open);
            assert_eq!(prompt.editor.text(), "");
        }
        assert_eq!(press(&mut prompt, "whole\r"), Step::Answered(json!("whole")));
        assert_eq!(press(&mut Prompt::new(&topic(), Vec::new()), "half\u{3}\u{3}"), Step::Interrupted);
    }
}
