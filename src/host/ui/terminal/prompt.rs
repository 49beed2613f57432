//! An open question at the terminal: what each key does, and how the question looks.
//!
//! Like the editor, this is pure state: keys go in, lines and finally an answer come out.

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use super::editor::Editor;
use super::keys::KeyPress;
use super::style::{BOLD, DIM, StyledLine};
use super::wrap::{hanging, wrap_text};
use crate::host::ui::answer::{self, Said};
use crate::model::question::{Question, QuestionKind};

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub(super) enum PromptOutcome {
    /// The question is still open.
    Open,
    /// Like `Open`, and the screen has to be redrawn from its top.
    Clear,
    Answered(Value),
    /// The user wants to know what can be typed.
    Help,
    Interrupted,
    /// The input has ended, so nobody will answer.
    EndOfInput,
}

/// Lines to show, and the row and column of the cursor in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    pub(super) lines: Vec<StyledLine>,
    pub(super) cursor: Option<(usize, usize)>,
}

/// A question while it is open.
pub(super) struct Prompt {
    question: Question,
    editor: Editor,
    /// For `choose`: the index of the option that Enter takes.
    chosen: usize,
    /// Why the last answer was invalid, or the possible completions after Tab.
    note: Option<StyledLine>,
}

const MARK: &str = "› ";
const ERROR: Style = AnsiColor::Red.on_default();
const ANSWER: Style = AnsiColor::Cyan.on_default();

impl Prompt {
    pub(super) fn new(question: &Question, history: Vec<String>) -> Prompt {
        let default = answer::default(question);
        let value = default.as_ref().and_then(Value::as_str);
        let chosen = question.options.iter().position(|choice| Some(choice.value.as_str()) == value).unwrap_or(0);
        Prompt { question: question.clone(), editor: Editor::new(history), chosen, note: None }
    }

    pub(super) fn press(&mut self, key: &KeyPress) -> PromptOutcome {
        self.note = None;
        match key {
            KeyPress::Ctrl('c') if self.editor.text().is_empty() => return PromptOutcome::Interrupted,
            KeyPress::Ctrl('c') => {
                self.editor.clear();
                return PromptOutcome::Open;
            }
            KeyPress::Ctrl('d') if self.editor.text().is_empty() => return PromptOutcome::EndOfInput,
            KeyPress::Ctrl('l') => return PromptOutcome::Clear,
            KeyPress::Enter => return self.enter(),
            _ => {}
        }
        match self.question.kind {
            QuestionKind::Ask => self.edit(key),
            QuestionKind::Choose => self.choose(key),
            QuestionKind::Confirm => return self.confirm(key),
        }
        PromptOutcome::Open
    }

    /// Takes what was typed before the question was shown as the beginning of its answer, up to the first Enter, which is
    /// pressed anew by who has seen the question. What stands behind that Enter is left for the next question. Returns whether
    /// it was interrupted.
    pub(super) fn take_ahead(&mut self, keys: &mut Vec<KeyPress>) -> bool {
        let end = keys.iter().position(|key| *key == KeyPress::Enter);
        let mut typed: Vec<KeyPress> = keys.drain(..end.map_or(keys.len(), |end| end + 1)).collect();
        if end.is_some() {
            typed.pop();
        }
        for key in &typed {
            match key {
                KeyPress::Ctrl('c') if self.editor.text().is_empty() => return true,
                KeyPress::Ctrl('c') => self.editor.clear(),
                KeyPress::Ctrl('d') => {}
                key if self.question.kind == QuestionKind::Choose => self.choose(key),
                key => self.edit(key),
            }
        }
        if end.is_some() && !self.editor.text().is_empty() {
            self.note = Some(StyledLine::new("typed before this was asked: Enter takes it", DIM));
        }
        false
    }

    /// Returns the lines of the question with the text typed so far.
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
                    let line = StyledLine::new(MARK, DIM).with(typed, ANSWER).with("  ", Style::new());
                    lines.push(line.with(help, DIM));
                }
                None
            }
            QuestionKind::Ask | QuestionKind::Confirm => {
                let (rows, (row, column)) = self.editor.rows(width.saturating_sub(2));
                let cursor = (lines.len() + row, column + 2);
                for (index, row) in rows.iter().enumerate() {
                    lines.push(StyledLine::new(if index == 0 { MARK } else { "  " }, DIM).with(row, Style::new()));
                }
                Some(cursor)
            }
        };
        if let Some(note) = &self.note {
            lines.extend(super::wrap::wrap(&note.chars().collect::<Vec<_>>(), width));
        }
        View { lines: lines.iter().map(|line| line.cut(width)).collect(), cursor }
    }

    fn head(&self, width: usize) -> Vec<StyledLine> {
        head(&self.question, true, width)
    }

    fn enter(&mut self) -> PromptOutcome {
        if self.question.kind == QuestionKind::Ask && self.editor.continue_line() {
            return PromptOutcome::Open;
        }
        let typed = self.editor.text().to_owned();
        let text = match self.question.options.get(self.chosen) {
            Some(choice) if self.question.kind == QuestionKind::Choose && typed.is_empty() => &choice.value,
            _ => &typed,
        };
        match answer::parse(&self.question, text) {
            Ok(Said::Answer(value)) => PromptOutcome::Answered(value),
            Ok(Said::Help) => {
                self.editor.clear();
                PromptOutcome::Help
            }
            Err(why) => {
                self.note = Some(StyledLine::new(&why, ERROR));
                if let Some(refusal) = answer::slip(&self.question, &typed)
                    && let Some(meant) = &refusal.meant
                {
                    self.note = Some(StyledLine::new(&refusal.told_with_meant(), ERROR));
                    self.editor.clear();
                    self.editor.insert(meant);
                }
                if self.question.kind == QuestionKind::Choose {
                    self.editor.delete_to_start();
                }
                PromptOutcome::Open
            }
        }
    }

    fn edit(&mut self, key: &KeyPress) {
        let editor = &mut self.editor;
        match key {
            KeyPress::Char(c) => editor.insert(c.encode_utf8(&mut [0; 4])),
            KeyPress::Paste(text) => editor.insert(text.trim_end_matches('\n')),
            KeyPress::NewLine => editor.insert("\n"),
            KeyPress::Backspace | KeyPress::Ctrl('h') => editor.backspace(),
            KeyPress::Delete | KeyPress::Ctrl('d') => editor.delete(),
            KeyPress::DeleteWord | KeyPress::Ctrl('w') => editor.delete_word(),
            KeyPress::Ctrl('u') => editor.delete_to_start(),
            KeyPress::Ctrl('k') => editor.delete_to_end(),
            KeyPress::Left | KeyPress::Ctrl('b') => editor.left(),
            KeyPress::Right | KeyPress::Ctrl('f') => editor.right(),
            KeyPress::WordLeft => editor.go_word_left(),
            KeyPress::WordRight => editor.go_word_right(),
            KeyPress::Home | KeyPress::Ctrl('a') => editor.home(),
            KeyPress::End | KeyPress::Ctrl('e') => editor.end(),
            KeyPress::Up | KeyPress::Ctrl('p') => editor.up(),
            KeyPress::Down | KeyPress::Ctrl('n') => editor.down(),
            KeyPress::Tab => {
                let words = editor.complete(&completions(&self.question));
                if !words.is_empty() {
                    self.note = Some(StyledLine::new(&words.join("  "), DIM));
                }
            }
            KeyPress::Enter | KeyPress::BackTab | KeyPress::Escape | KeyPress::Ctrl(_) => {}
        }
    }

    /// Moves the choice: by arrow keys, or to the option that the typed text means.
    fn choose(&mut self, key: &KeyPress) {
        let last = self.question.options.len().saturating_sub(1);
        match key {
            KeyPress::Up | KeyPress::BackTab | KeyPress::Ctrl('p') => {
                self.go(self.chosen.checked_sub(1).unwrap_or(last))
            }
            KeyPress::Down | KeyPress::Tab | KeyPress::Ctrl('n') => {
                self.go(if self.chosen >= last { 0 } else { self.chosen + 1 })
            }
            KeyPress::Home => self.go(0),
            KeyPress::End => self.go(last),
            KeyPress::Escape => self.go(self.chosen),
            KeyPress::Char(_) | KeyPress::Backspace | KeyPress::Paste(_) => {
                self.edit(key);
                let place = |value: &Value| self.question.options.iter().position(|choice| *value == choice.value);
                if let Ok(Said::Answer(value)) = answer::parse(&self.question, self.editor.text())
                    && let Some(place) = place(&value)
                {
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

    fn confirm(&mut self, key: &KeyPress) -> PromptOutcome {
        match key {
            KeyPress::Char(c) if *c != '/' && self.editor.text().is_empty() => {
                if let Some(said) = answer::confirmed_by(&self.question, *c) {
                    return PromptOutcome::Answered(Value::from(said));
                }
                let [yes, no] = answer::yes_and_no_keys(&self.question);
                self.note = Some(StyledLine::new(&format!("{yes} / {no}"), ERROR));
                PromptOutcome::Open
            }
            // Only `/help` is more than a key.
            key => {
                self.edit(key);
                PromptOutcome::Open
            }
        }
    }

    /// Adds as many options around the chosen one as there is room for, in lines.
    fn options(&self, width: usize, room: usize, lines: &mut Vec<StyledLine>) {
        let options = &self.question.options;
        let digits = options.len().to_string().len();
        let laid: Vec<Vec<StyledLine>> = options
            .iter()
            .enumerate()
            .map(|(index, choice)| {
                let here = index == self.chosen;
                let mut line = StyledLine::new(if here { "❯ " } else { "  " }, ANSWER);
                line.push(&format!("{:>digits$}. ", index + 1), DIM);
                line.push(&choice.label, if here { ANSWER } else { Style::new() });
                if let Some(hint) = &choice.hint {
                    line.push(&format!("  {hint}"), DIM);
                }
                hanging(&line.chars().collect::<Vec<_>>(), width, digits + 4)
            })
            .collect();
        let height = |index: usize| laid.get(index).map_or(0, Vec::len);
        let (mut first, mut last, mut taken) = (self.chosen, self.chosen + 1, height(self.chosen));
        // Half of the room is for those above, and what either side leaves is for the other one.
        for most in [room / 2 + 1, room] {
            while first > 0 && taken + height(first - 1) <= most {
                first -= 1;
                taken += height(first);
            }
            while most == room / 2 + 1 && last < laid.len() && taken + height(last) <= room {
                taken += height(last);
                last += 1;
            }
        }
        lines.extend(laid.iter().take(last).skip(first).flatten().cloned());
        if last - first < options.len() {
            lines.push(StyledLine::new(&format!("  … {} of {}", self.chosen + 1, options.len()), DIM));
        }
    }
}

/// Returns what Tab completes: commands by their slash, words that are commands, and the flow's other words.
fn completions(question: &Question) -> Vec<String> {
    let mut found: Vec<String> = question.commands.iter().map(|command| format!("/{}", command.name)).collect();
    if !found.is_empty() && !found.iter().any(|name| name == "/help") {
        found.push("/help".to_owned());
    }
    let bare = question.commands.iter().map(|command| &command.name).filter(|_| question.commands_only);
    for word in bare.chain(question.commands.iter().flat_map(|command| &command.words)).chain(&question.complete) {
        if !found.contains(word) {
            found.push(word.clone());
        }
    }
    found
}

/// Returns the lines of a question that was answered, here or elsewhere, or interrupted.
pub(super) fn closed_lines(question: &Question, answer: Option<&Value>, width: usize) -> Vec<StyledLine> {
    let mut lines = head(question, false, width);
    let (text, style) = match answer {
        Some(answer) => (answer::display_text(question, answer), ANSWER),
        None => ("^C".to_owned(), DIM),
    };
    for (index, line) in wrap_text(&text, style, width.saturating_sub(2)).iter().enumerate() {
        let mut row = StyledLine::new(if index == 0 { MARK } else { "  " }, DIM);
        row.append(line);
        lines.push(row);
    }
    lines
}

/// Returns the lines of the prompt's last line; the text before it was already shown as Markdown.
fn head(question: &Question, open: bool, width: usize) -> Vec<StyledLine> {
    let (_, last) = answer::split_prompt(&question.prompt);
    let mut chars: Vec<(char, Style)> = "? ".chars().map(|c| (c, AnsiColor::Green.on_default().bold())).collect();
    chars.extend(last.chars().map(|c| (c, BOLD)));
    if open {
        chars.extend(answer::hint(question).chars().map(|c| (c, DIM)));
    }
    super::wrap::wrap(&chars, width)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::super::keys::{KeyParser, KeyPress};
    use super::{Prompt, PromptOutcome};
    use crate::host::ui::samples::{question, save, shape, topic};

    fn press(prompt: &mut Prompt, keys: &str) -> PromptOutcome {
        let mut step = PromptOutcome::Open;
        for key in KeyParser::default().feed(keys.as_bytes()) {
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
        assert_eq!(press(&mut prompt, "\r"), PromptOutcome::Open);
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
        assert_eq!(press(&mut prompt, "\r"), PromptOutcome::Answered(json!("un before été\ntwo\nthree")));
    }

    #[test]
    fn what_is_typed_ahead_begins_the_answer_and_sends_none() {
        let ahead = |question: &crate::model::question::Question, keys: &str| {
            let mut prompt = Prompt::new(question, Vec::new());
            let mut keys = KeyParser::default().feed(keys.as_bytes());
            let interrupted = prompt.take_ahead(&mut keys);
            (prompt, keys, interrupted)
        };
        let (mut prompt, left, _) = ahead(&topic(), "Xann\u{7f}t\u{1b}[A");
        assert_eq!((prompt.editor.text(), left.len()), ("Xant", 0));
        assert_eq!(press(&mut prompt, "hippe\r"), PromptOutcome::Answered(json!("Xanthippe")));
        // Enter is pressed by who has seen the question; what stands behind it is for the next one.
        let (mut prompt, left, _) = ahead(&save(), "y\r2\r");
        assert_snapshot!(seen(&prompt), @r"
        ? Save it? (y/N)
        › y
        typed before this was asked: Enter takes
        it
        Some((1, 3))
        ");
        assert_eq!(left, [KeyPress::Char('2'), KeyPress::Enter]);
        assert_eq!(press(&mut prompt, "\r"), PromptOutcome::Answered(json!(true)));
        let (mut prompt, ..) = ahead(&shape(), "2\r");
        assert_snapshot!(seen(&prompt), @r"
        ? Which shape?
          1. Round  no corners
        ❯ 2. Square
        typed before this was asked: Enter takes
        it
        None
        ");
        assert_eq!(press(&mut prompt, "\r"), PromptOutcome::Answered(json!("square")));
        // Enter alone takes no default, and Ctrl-C interrupts as ever.
        let (prompt, left, interrupted) = ahead(&save(), "\r");
        assert_eq!((prompt.editor.text(), left.len(), interrupted), ("", 0, false));
        assert!(ahead(&topic(), "half\u{3}\u{3}").2);
    }

    #[test]
    fn an_option_that_is_wider_than_the_screen_goes_on_below() {
        let options = [
            json!({"value": "a", "label": "The first of the options that there are here", "hint": "no"}),
            json!({"value": "b", "label": "Short"}),
        ];
        let long = question(json!({"id": "l", "type": "choose", "prompt": "Which?", "options": options}));
        assert_snapshot!(seen(&Prompt::new(&long, Vec::new())), @r"
        ? Which?
        ❯ 1. The first of the options that there
             are here  no
          2. Short
        ›   ↑ ↓ or a number, then Enter
        None
        ");
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
        assert_eq!(press(&mut prompt, "d\t\r"), PromptOutcome::Answered(json!("/done")));
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
        assert_eq!(press(&mut prompt, "\r"), PromptOutcome::Answered(json!("square")));
        assert_eq!(
            press(&mut Prompt::new(&shape(), Vec::new()), "\u{1b}[A\r"),
            PromptOutcome::Answered(json!("square"))
        );
        assert_eq!(press(&mut Prompt::new(&shape(), Vec::new()), "2\r"), PromptOutcome::Answered(json!("square")));
        let mut prompt = Prompt::new(&shape(), Vec::new());
        press(&mut prompt, "sq");
        assert_snapshot!(seen(&prompt), @r"
        ? Which shape?
          1. Round  no corners
        ❯ 2. Square
        › sq  Enter takes it, Esc forgets it
        None
        ");
        assert_eq!(press(&mut prompt, "\r"), PromptOutcome::Answered(json!("square")));
        let mut prompt = Prompt::new(&shape(), Vec::new());
        assert_eq!(press(&mut prompt, "9\r"), PromptOutcome::Open);
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
        assert_eq!(press(&mut prompt, "x"), PromptOutcome::Open);
        assert_snapshot!(seen(&prompt), @r"
        ? Save it? (y/N)
        › 
        y / n
        Some((1, 2))
        ");
        assert_eq!(press(&mut prompt, "y"), PromptOutcome::Answered(json!(true)));
        assert_eq!(press(&mut Prompt::new(&save(), Vec::new()), "\r"), PromptOutcome::Answered(json!(false)));
    }

    #[test]
    fn a_question_is_left_with_ctrl_c_or_with_ctrl_d_on_nothing_and_ctrl_c_clears_a_line_first() {
        for question in [topic(), shape(), save()] {
            assert_eq!(Prompt::new(&question, Vec::new()).press(&KeyPress::Ctrl('c')), PromptOutcome::Interrupted);
            assert_eq!(Prompt::new(&question, Vec::new()).press(&KeyPress::Ctrl('d')), PromptOutcome::EndOfInput);
        }
        assert_eq!(press(&mut Prompt::new(&topic(), Vec::new()), "a\u{4}"), PromptOutcome::Open);
        let mut prompt = Prompt::new(&topic(), vec!["before".to_owned()]);
        for typed in ["half a sentence", "\u{1b}[A"] {
            assert_eq!(press(&mut prompt, &format!("{typed}\u{3}")), PromptOutcome::Open);
            assert_eq!(prompt.editor.text(), "");
        }
        assert_eq!(press(&mut prompt, "whole\r"), PromptOutcome::Answered(json!("whole")));
        assert_eq!(press(&mut Prompt::new(&topic(), Vec::new()), "half\u{3}\u{3}"), PromptOutcome::Interrupted);
    }
}
