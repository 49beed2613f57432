//! Reads one line at a terminal without showing it.

use std::io::{self, Read};

use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};

use crate::error::{Code, Failure, Result};

/// What ends or corrects a line, as terminals send it.
const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Puts the terminal back into the mode that it had.
struct Restore(Termios);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Returns the line that is typed at standard input, which is a terminal. Nothing of it is shown, and no more than `most` bytes
/// are taken. `prompt` is called when nothing that is typed is shown any more.
///
/// # Errors
///
/// `interrupted` on Ctrl-C, Ctrl-D before anything was typed, or if the terminal is gone.
pub fn hidden_line(most: usize, prompt: impl FnOnce()) -> Result<String> {
    let gone = |_| Failure::new(Code::Interrupted, "the terminal is gone");
    let before = termios::tcgetattr(io::stdin()).map_err(gone)?;
    let mut silent = before.clone();
    // Ctrl-C comes as a byte, so that it cannot end the program before the terminal is put back.
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    silent.special_codes[SpecialCodeIndex::VMIN] = 1;
    silent.special_codes[SpecialCodeIndex::VTIME] = 0;
    let _restore = Restore(before);
    termios::tcsetattr(io::stdin(), OptionalActions::Flush, &silent).map_err(gone)?;
    prompt();
    read(io::stdin().lock().bytes(), most)
}

fn read(bytes: impl Iterator<Item = io::Result<u8>>, most: usize) -> Result<String> {
    let stopped = |why: &str| Failure::new(Code::Interrupted, format!("{why}: nothing was stored"));
    let mut typed = Vec::new();
    for byte in bytes {
        match byte.map_err(|_| stopped("the terminal is gone"))? {
            b'\r' | b'\n' => return Ok(String::from_utf8_lossy(&typed).into_owned()),
            CTRL_C => return Err(stopped("it was interrupted")),
            CTRL_D if typed.is_empty() => return Err(stopped("nothing was typed")),
            CTRL_D => return Ok(String::from_utf8_lossy(&typed).into_owned()),
            CTRL_U => typed.clear(),
            BACKSPACE | DELETE => drop(typed.pop()),
            // What is too long is told by whoever looks at it.
            byte if typed.len() <= most => typed.push(byte),
            _ => {}
        }
    }
    Err(stopped("the terminal is gone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_corrected_ended_or_given_up() {
        let typed = |keys: &[u8]| read(keys.iter().map(|key| Ok(*key)), 8).map_err(|failure| failure.code);
        assert_eq!(typed(b"abc\rd"), Ok("abc".to_owned()));
        assert_eq!(typed(b"abx\x7fc\n"), Ok("abc".to_owned()));
        assert_eq!(typed(b"wrong\x15right\n"), Ok("right".to_owned()));
        assert_eq!(typed(b"abc\x04"), Ok("abc".to_owned()));
        assert_eq!(typed(b"123456789abc\n"), Ok("123456789".to_owned()));
        for keys in [&b"abc\x03"[..], b"\x04", b"abc", b""] {
            assert_eq!(typed(keys), Err(Code::Interrupted), "{keys:?}");
        }
    }
}
