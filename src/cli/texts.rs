//! What the texts of a run are: attachments, and what a text param takes: the words themselves, `@FILE` for what stands in a file, `-` for what comes from standard input.
//! A `\` in front of one of these makes words of it. Whoever types `@FILE` has read permission enough: the file is what
//! they would have typed.

use std::io::{IsTerminal, Read};
use std::path::Path;

use rustix::fs::FileType;
use serde_json::{Map, Value};

use crate::cli::output;
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result, nearest};
use crate::model::attachment::{ATTACH, AttachedFile};
use crate::model::command::placeholder;
use crate::model::media;
use crate::model::param::{FILE, PIPE, Param, ParamKind, ParamOrigin};
use crate::model::text::{clean, excerpt, shell};
use crate::schema::source;

/// The longest text, and the most that all attachments have, in bytes.
const LONGEST: u64 = 50 << 20;

/// What the help of a flow with text params says about them.
pub(super) const HELP: &str = "A text can come from elsewhere: `@FILE` is what stands in that file, and `-` what comes from \
    standard input. Words that begin with `@` are written `\\@…`, and a lone `-` is written `\\-`.";

/// Tells whether a param takes texts from files and pipes. A choice is no text, and a command that is to be run is what the
/// user typed and nothing else.
pub(super) fn takes_texts(name: &str, param: &Param, exec: &[String]) -> bool {
    let is_command = exec.iter().any(|grant| placeholder(grant) == Some(name));
    param.kind == ParamKind::String && param.choices.is_empty() && !is_command
}

/// Takes the texts of one command line, and remembers where they came from.
#[derive(Default)]
pub(super) struct TextReader {
    pub origins: Vec<ParamOrigin>,
    /// The images and PDFs, which params have by their digests.
    pub files: Vec<Vec<u8>>,
    /// Images and PDFs that stood where a text can: what params have of them, and where they came from.
    moved: Vec<(Value, ParamOrigin)>,
    /// Where standard input would have come from, had it not been empty.
    empty_pipe: Option<ParamOrigin>,
    /// How many bytes the attachments have so far.
    attached: u64,
}

impl TextReader {
    /// Returns the text that a word of the command line stands for, for this param and item, or `None` if it is an image or a
    /// PDF: that goes with the run as an attachment ([`TextReader::place_moved`]).
    ///
    /// # Errors
    ///
    /// `usage` if the text cannot be read, or standard input is taken already.
    pub(super) fn take(&mut self, param: &str, item: Option<usize>, word: &str) -> Result<Option<Value>> {
        let unread = |failure: Failure| match failure.code {
            Code::DocumentUnreadable => Failure { code: Code::Usage, ..failure },
            _ => {
                Failure::new(Code::Usage, format!("{param}: cannot read {}: {}", clean(word), clean(&failure.message)))
            }
        };
        let origin = |kind: &str, name| ParamOrigin { param: param.to_owned(), item, kind: kind.to_owned(), name };
        let (bytes, name, origin) = match word.strip_prefix('@') {
            _ if word == "-" => {
                if let Some(taken) = self.taker_of_stdin() {
                    let message = format!("{param}: standard input is taken by `{taken}` already");
                    return Err(Failure::new(Code::Usage, message).hint("give one of them as @FILE"));
                }
                (read_stdin(param)?, "standard input", origin(PIPE, None))
            }
            Some("") => {
                return Err(Failure::new(Code::Usage, format!("{param}: `@` names no file"))
                    .hint("write @FILE for what stands in a file, \\@ for the sign itself"));
            }
            Some(path) => {
                let read = disk::read(Path::new(path), Links::All, LONGEST).map_err(|failure| {
                    let is_closed = failure.hint.is_some();
                    let failure = unread(failure);
                    match is_closed {
                        true => failure.hint("make it readable for you, or name another file"),
                        false => failure.hint("`-` reads a pipe; a text has 50 MB at most"),
                    }
                })?;
                let bytes = read.ok_or_else(|| {
                    let near = neighbour(path).map(|near| format!("did you mean {}? ", shell(&format!("@{near}"))));
                    Failure::new(Code::Usage, format!("{param}: there is no file {}", excerpt(path))).hint(format!(
                        "{}words that begin with `@` are written `\\@`: {}",
                        near.unwrap_or_default(),
                        shell(&format!("\\{}", excerpt(word)))
                    ))
                })?;
                (bytes, path, origin(FILE, Some(path.to_owned())))
            }
            None => return Ok(Some(Value::from(unescaped(word)))),
        };
        if let Some(file) = AttachedFile::of_media(name, &bytes) {
            self.attached += bytes.len() as u64;
            let kept = self.keep(&file, bytes).map_err(|why| Failure::new(Code::Usage, format!("{param}: {why}")))?;
            self.moved.push((kept, origin));
            return Ok(None);
        }
        let text = source::decode(&bytes, name).map_err(unread)?;
        // As `$(…)` of a shell does: what ends the last line is no part of the text.
        let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
        self.origins.push(origin);
        Ok(Some(Value::from(text)))
    }

    /// Adds the images and PDFs that stood where a text can to the attachments of a command that takes some.
    ///
    /// # Errors
    ///
    /// `usage` if it takes none.
    pub(super) fn place_moved(&mut self, takes_files: bool, params: &mut Map<String, Value>) -> Result<()> {
        for (kept, origin) in std::mem::take(&mut self.moved) {
            if !takes_files {
                let name = origin.name.as_deref().map_or("standard input".into(), excerpt);
                let kind = kept["media_type"].as_str().unwrap_or_default();
                let message = format!("{}: {name} is no text ({kind})", clean(&origin.param));
                return Err(Failure::new(Code::Usage, message).hint("this flow takes no attachments, and texts alone"));
            }
            let all = params.entry(ATTACH).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(all) = all else { continue };
            self.origins.push(ParamOrigin { param: ATTACH.to_owned(), item: Some(all.len()), ..origin });
            all.push(kept);
        }
        Ok(())
    }

    /// Keeps the bytes of an image or a PDF, and returns what a param has of it, or what is wrong.
    fn keep(&mut self, file: &AttachedFile, bytes: Vec<u8>) -> std::result::Result<Value, String> {
        if file.bytes > media::LARGEST {
            let (size, most) = (megabytes(file.bytes), media::LARGEST >> 20);
            return Err(format!("{} has {size}, and {most} MB is the most of an image or a PDF", excerpt(&file.name)));
        }
        if self.attached > LONGEST {
            return Err("all attachments together are longer than 50 MB".to_owned());
        }
        self.files.push(bytes);
        Ok(file.as_param())
    }

    /// Returns what a param has of an attachment: the text of a file, or of standard input for `-`, as it is; an image or a
    /// PDF by its digest.
    ///
    /// # Errors
    ///
    /// `usage` if it cannot be read, is of another kind, or is too long with those before it.
    pub(super) fn attach(&mut self, param: &str, item: Option<usize>, path: &str) -> Result<Value> {
        let wrong = |why: String| Failure::new(Code::Usage, format!("--{param}: {why}"));
        let shown = excerpt(path);
        let (bytes, kind, name) = match path {
            "-" => match self.taker_of_stdin() {
                Some(taken) => return Err(wrong(format!("standard input is taken by `{taken}` already"))),
                None => (read_stdin(param)?, PIPE, None),
            },
            path => {
                let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
                if self.attached + size > LONGEST {
                    let (size, all) = (megabytes(size), megabytes(self.attached + size));
                    return Err(wrong(format!("{shown} has {size}, which makes {all} in all, and 50 MB is the most")));
                }
                let read = disk::read(Path::new(path), Links::All, LONGEST);
                let bytes =
                    read.map_err(|failure| wrong(format!("cannot read {shown}: {}", clean(&failure.message))))?;
                let bytes = bytes.ok_or_else(|| {
                    wrong(format!("there is no file {shown}")).hint("words that are no files stand before `--attach`")
                })?;
                (bytes, FILE, Some(path.to_owned()))
            }
        };
        self.attached += bytes.len() as u64;
        if self.attached > LONGEST {
            return Err(wrong("all of them together are longer than 50 MB".to_owned()));
        }
        let value = match AttachedFile::of_media(path, &bytes) {
            Some(file) => self.keep(&file, bytes).map_err(wrong)?,
            None => {
                let size = megabytes(bytes.len() as u64);
                Value::from(String::from_utf8(bytes).map_err(|error| {
                    let kind = media::binary_type(error.as_bytes());
                    wrong(format!("{shown} is of no kind that models take ({kind}, {size})"))
                        .hint("attachments are UTF-8 texts, images (PNG, JPEG, GIF, WebP) and PDF")
                })?)
            }
        };
        self.origins.push(ParamOrigin { param: param.to_owned(), item, kind: kind.to_owned(), name });
        Ok(value)
    }

    /// Adds what comes by a pipe to the attachments, if nothing else took it. A terminal, a device and a connection are no pipe.
    ///
    /// # Errors
    ///
    /// `usage` as for [`TextReader::attach`].
    pub(super) fn attach_piped(&mut self, params: &mut Value) -> Result<()> {
        let is_piped = rustix::fs::fstat(std::io::stdin())
            .is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::RegularFile));
        let Some(params) = params.as_object_mut().filter(|_| is_piped && self.taker_of_stdin().is_none()) else {
            return Ok(());
        };
        let count = params.get(ATTACH).and_then(Value::as_array).map_or(0, Vec::len);
        let given = self.attach(ATTACH, Some(count), "-")?;
        // An empty pipe shows nothing, and has no answers either.
        if given != "" {
            let all = params.entry(ATTACH).or_insert_with(|| Value::Array(Vec::new()));
            all.as_array_mut().into_iter().for_each(|all| all.push(given.clone()));
        } else {
            self.empty_pipe = self.origins.pop();
        }
        Ok(())
    }

    /// Returns the param that standard input was given to.
    pub(super) fn taker_of_stdin(&self) -> Option<&str> {
        let moved = self.moved.iter().map(|(_, origin)| origin);
        self.origins
            .iter()
            .chain(moved)
            .chain(&self.empty_pipe)
            .find(|origin| origin.kind == PIPE)
            .map(|origin| origin.param.as_str())
    }
}

/// Returns the words without the backslash that keeps them from standing for a text from elsewhere.
fn unescaped(word: &str) -> &str {
    let rest = word.trim_start_matches('\\');
    match rest.len() < word.len() && (rest.starts_with('@') || rest == "-") {
        true => &word[1..],
        false => word,
    }
}

/// The most names of a folder that a misspelt one is compared with.
const MOST_NAMES: usize = 1000;

/// Returns the file beside a path that is not there which was most likely meant.
fn neighbour(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').map_or((".", path), |(folder, name)| (folder, name));
    let entries = std::fs::read_dir(if folder.is_empty() { "/" } else { folder }).ok()?;
    let names = entries.take(MOST_NAMES).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(path[..path.len() - name.len()].to_owned() + near)
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} kB", bytes / 1024),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

fn read_stdin(param: &str) -> Result<Vec<u8>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        output::print_status(&format!("{param}: type the text here; Ctrl-D on a line of its own ends it\n"));
    }
    let failed = |why: String| Failure::new(Code::Usage, format!("{param}: cannot read standard input: {why}"));
    let mut bytes = Vec::new();
    stdin.lock().take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    match bytes.len() as u64 > LONGEST {
        true => Err(failed("it is longer than 50 MB".to_owned())),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::{TextReader, unescaped};

    #[test]
    fn a_backslash_makes_words_of_what_stands_for_a_text() {
        for (word, words) in [
            (r"\@home", "@home"),
            (r"\\@home", r"\@home"),
            (r"\-", "-"),
            (r"\\-", r"\-"),
            (r"\- a list", r"\- a list"),
            (r"\server", r"\server"),
            ("a@b", "a@b"),
            ("-1", "-1"),
            ("", ""),
        ] {
            assert_eq!(unescaped(word), words, "{word}");
            assert_eq!(TextReader::default().take("topic", None, word).unwrap().unwrap(), words, "{word}");
        }
    }
}
