//! The terminal front end on a real pseudo-terminal: what arrives at the other side, what keys from there
//! do, and in which modes the device is left.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::thread;
use std::time::Duration;

use insta::assert_snapshot;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;
use tokio::sync::mpsc;

use super::{Device, Terminal};
use crate::error::{Code, Failure};
use crate::host::FrontEnd;
use crate::host::ui::samples::{
    delta, ended, finished, progress, retried, said, save, shape, started, status, thought, topic,
};
use crate::model::event::{EndStatus, Event};

/// The other side of a pseudo-terminal, in place of the person.
struct Person {
    keyboard: File,
    device: File,
    screen: mpsc::UnboundedReceiver<Vec<u8>>,
    seen: String,
}

fn sit_down() -> (Terminal, Person) {
    let far = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there are ptys");
    grantpt(&far).expect("the pty is ours");
    unlockpt(&far).expect("the pty is ours");
    let name = ptsname(&far, Vec::new()).expect("the pty has a name");
    let noctty = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).expect("a flag fits");
    let path = name.to_str().expect("its name is ASCII");
    let device = OpenOptions::new().read(true).write(true).custom_flags(noctty).open(path).expect("it opens");
    tcsetwinsize(&device, Winsize { ws_row: 24, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 }).expect("it has a size");
    let keyboard = File::from(far);
    let mut reader = keyboard.try_clone().expect("a handle can be doubled");
    let (send, screen) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            if send.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let double = || device.try_clone().expect("a handle can be doubled");
    let (out, err) = (Box::new(double()), Box::new(double()));
    let terminal =
        Terminal::new("r1", Device { tty: OwnedFd::from(double()), out, err, colour: true, err_colour: true });
    (terminal, Person { keyboard, device, screen, seen: String::new() })
}

impl Person {
    /// Waits until the screen has received this text, and discards everything up to its end.
    async fn sees(&mut self, text: &str) {
        let wait = async {
            while !self.seen.contains(text) {
                let Some(bytes) = self.screen.recv().await else { break };
                self.seen.push_str(&String::from_utf8_lossy(&bytes));
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        assert!(waited.is_ok() && self.seen.contains(text), "{text:?} was not seen: {:?}", self.seen);
        let end = self.seen.find(text).map_or(0, |start| start + text.len());
        self.seen.drain(..end);
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the pty is open");
    }

    fn raw(&self) -> bool {
        !tcgetattr(&self.device).expect("the pty is open").local_modes.contains(LocalModes::ICANON)
    }
}

#[tokio::test]
async fn questions_are_answered_with_the_keyboard() {
    let (terminal, mut person) = sit_down();
    let (topic, shape, save) = (topic(), shape(), save());
    let talk = async {
        person.sees("What about?").await;
        person.sees("\u{1b}[?25h").await;
        assert!(person.raw());
        person.types("une ide\u{1b}[D\u{1b}[D\u{7f}\u{1b}[Fée\u{5}!");
        person.sees("ée!").await;
        person.types("\r");
        person.sees("❯ ").await;
        person.sees("Enter").await;
        person.types("\u{1b}[B");
        person.sees("❯ \u{1b}[0m\u{1b}[2m2. ").await;
        person.types("\r");
        person.sees("Save it?").await;
        person.sees("\u{1b}[?25h").await;
        person.types("y");
    };
    let asked = async { [terminal.ask(&topic).await, terminal.ask(&shape).await, terminal.ask(&save).await] };
    let (answers, ()) = tokio::join!(asked, talk);
    assert_eq!(answers.map(|answer| answer.ok()), [Some(json!("une deée!")), Some(json!("square")), Some(json!(true))]);
    assert!(!person.raw());
}

#[tokio::test]
async fn ctrl_c_interrupts_and_leaves_the_device_as_it_was() {
    let (terminal, mut person) = sit_down();
    let topic = topic();
    let (answer, ()) = tokio::join!(terminal.ask(&topic), async {
        person.sees("\u{1b}[?25h").await;
        // The first Ctrl-C clears the line.
        person.types("half\u{3}\u{3}");
    });
    let failure = answer.expect_err("it was interrupted");
    assert_eq!(failure.code, Code::Interrupted);
    assert!(!person.raw());
    let (answer, ()) = tokio::join!(terminal.ask(&topic), async {
        person.sees("\u{1b}[?25h").await;
        person.types("\u{4}");
    });
    assert_eq!(answer.expect_err("the input is over").code, Code::AnswerMissing);
}

#[tokio::test]
async fn a_question_that_is_taken_away_steals_no_keys() {
    let (terminal, mut person) = sit_down();
    let topic = topic();
    tokio::select! {
        _ = terminal.ask(&topic) => panic!("nobody answered"),
        () = person.sees("\u{1b}[?25h") => {}
    }
    assert!(!person.raw());
    person.types("for the shell\n");
    let mut device = person.device.try_clone().expect("a handle can be doubled");
    let mut line = [0; 64];
    let count = device.read(&mut line).expect("the line is there");
    assert_eq!(line.get(..count), Some("for the shell\n".as_bytes()));
}

#[tokio::test]
async fn text_streams_on_above_an_open_question() {
    let (terminal, mut person) = sit_down();
    let save = save();
    let talk = async {
        person.sees("Save it?").await;
        terminal.show(&started("architect", true));
        terminal.show(&delta("architect", "Some *soft* words.\n\nAnd"));
        person.sees("architect\u{1b}[0m").await;
        person.sees("\u{1b}[3msoft\u{1b}[0m words.").await;
        person.sees("Save it?").await;
        terminal.show(&ended("architect", None));
        person.sees("And").await;
        person.types("n");
    };
    let (answer, ()) = tokio::join!(terminal.ask(&save), talk);
    assert_eq!(answer.ok(), Some(json!(false)));
}

#[tokio::test]
async fn a_run_leaves_only_what_was_said() {
    let (terminal, mut person) = sit_down();
    let failure = Failure::new(Code::ModelOverloaded, "too many at once");
    let events = [
        Event::Replayed { effects: 2 },
        said(Some("Hypatia"), "All *formal*\u{1b}[2J religions."),
        said(None, "- one"),
        said(None, "- two"),
        status("weighing"),
        progress("rounds", 1, 2),
        started("first", true),
        started("second", true),
        delta("second", "I wait.\n"),
        delta("first", "Wrong.\n\nStart\n"),
        retried("first"),
        delta("first", "Right."),
        ended("first", None),
        ended("second", Some(failure)),
        Event::Asked { question: save() },
        Event::Answered { id: "save".to_owned(), answer: json!(true) },
        progress("rounds", 2, 2),
        Event::Notice { text: "by the way".to_owned() },
        finished(EndStatus::Done, None),
    ];
    events.iter().for_each(|event| terminal.show(event));
    drop(terminal);
    let mut screen = Picture::default();
    while !screen.text().contains("$0.0123\n") {
        let bytes = tokio::time::timeout(Duration::from_secs(20), person.screen.recv()).await;
        screen.write(&bytes.ok().flatten().unwrap_or_else(|| panic!("it never ended: {}", screen.text())));
    }
    assert_snapshot!(screen.text(), @r"
    ↻ resumed: 2 recorded effects given back

    Hypatia
    All formal␛[2J religions.

    • one
    • two

    first
    Wrong.

    ↻ first starts again; the text above does not count

    first
    Right.

    second
    I wait.

    ✗ second: too many at once

    ? Save it?
    › yes

    by the way
    done in 0s · 1 call · 10 tokens in, 5 out · $0.0123
    ");
}

#[tokio::test]
async fn what_a_model_thinks_is_seen_dimmed_until_its_text_begins() {
    let (terminal, mut person) = sit_down();
    terminal.show(&started("first", true));
    let long: String = (1..=9).map(|number| format!("Thought {number}.\n")).collect();
    terminal.show(&thought("first", &long));
    // A frame may be left out; the spinner draws the next.
    person.sees("\u{1b}[2mThought 9.").await;
    assert!(!person.seen.contains("Thought 1."));
    terminal.show(&delta("first", "Said."));
    terminal.show(&thought("first", "Too late."));
    terminal.show(&ended("first", None));
    terminal.show(&finished(EndStatus::Done, None));
    drop(terminal);
    person.sees("Said.").await;
    while !person.seen.contains("$0.0123") {
        let bytes = tokio::time::timeout(Duration::from_secs(20), person.screen.recv()).await;
        let bytes = bytes.ok().flatten().unwrap_or_else(|| panic!("it never ended: {}", person.seen));
        person.seen.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(!person.seen.contains("Too late.") && !person.seen.contains("Thought"), "{}", person.seen);
}

/// A terminal that knows only the sequences that the screen writes; it shows any other sequence as text.
#[derive(Default)]
struct Picture {
    waiting: Vec<u8>,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Picture {
    fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned() + "\n");
        lines.collect()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        // A read may end within a character or a sequence; the rest arrives with the next read.
        let Ok(text) = String::from_utf8(self.waiting.clone()) else { return };
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\u{1b}' => {
                    let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) else {
                        self.waiting = format!("\u{1b}{rest}").into_bytes();
                        return;
                    };
                    let count = rest[1..end].parse().unwrap_or(1);
                    let column = self.column;
                    match &rest[end..=end] {
                        "A" => self.row -= count,
                        "C" => self.column += count,
                        "K" => self.line().truncate(column),
                        "J" => {
                            self.line().truncate(column);
                            self.lines.truncate(self.row + 1);
                        }
                        _ => {}
                    }
                    rest = &rest[end + 1..];
                }
                c => {
                    let column = self.column;
                    let line = self.line();
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    self.column += 1;
                }
            }
        }
        self.waiting.clear();
    }

    fn line(&mut self) -> &mut Vec<char> {
        let rows = self.lines.len().max(self.row + 1);
        self.lines.resize(rows, Vec::new());
        &mut self.lines[self.row]
    }
}
