//! What a run has said, as text: the events of its process, put together.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::text::clean;

/// How much of a text that is still written is told, in letters.
const END: usize = 80;

/// What was said and not taken yet, and what the run is doing now.
#[derive(Default)]
pub(crate) struct Transcript {
    /// How many events were taken.
    pub seen: usize,
    parts: Vec<String>,
    /// The calls whose text is shown: who speaks, and the text so far.
    streams: HashMap<String, (String, String)>,
    /// The others, in the order in which they began: what each is for.
    quiet: Vec<(String, String)>,
    status: String,
    progress: Option<(String, u64, u64)>,
}

impl Transcript {
    /// Returns a transcript of what comes after so many events.
    pub(crate) fn from(seen: usize) -> Transcript {
        Transcript { seen, ..Transcript::default() }
    }

    /// Takes an event.
    pub(crate) fn take(&mut self, event: &Value) {
        self.seen += 1;
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        match text("type") {
            "said" => self.say(text("from"), text("markdown")),
            "call_started" if event["show"] == true => {
                self.streams.insert(text("call").to_owned(), (text("label").to_owned(), String::new()));
            }
            "call_started" => {
                let name = if text("label").is_empty() { text("model") } else { text("label") };
                self.quiet.push((text("call").to_owned(), clean(name)));
            }
            "call_delta" => {
                if let Some((_, so_far)) = self.streams.get_mut(text("call")) {
                    so_far.push_str(text("text"));
                }
            }
            "call_retried" => {
                if let Some((_, so_far)) = self.streams.get_mut(text("call")) {
                    so_far.clear();
                }
            }
            "call_ended" => {
                self.quiet.retain(|(call, _)| call != text("call"));
                if let Some((label, whole)) = self.streams.remove(text("call")).filter(|_| event["failure"].is_null()) {
                    self.say(&label, &whole);
                }
            }
            "status" => self.status = clean(text("text")),
            "progress" => {
                let count = |name: &str| event[name].as_u64().unwrap_or_default();
                self.progress = Some((clean(text("label")), count("done"), count("total")));
            }
            "notice" => self.parts.push(format!("({})", clean(text("text")))),
            _ => {}
        }
    }

    fn say(&mut self, from: &str, markdown: &str) {
        let markdown = clean(markdown.trim_end());
        if markdown.is_empty() {
            return;
        }
        self.parts.push(match from {
            "" => markdown,
            from => format!("**{}:** {markdown}", clean(from)),
        });
    }

    /// Returns what was said since it was taken the last time.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.parts).join("\n\n")
    }

    /// Returns what the run is doing now, in one line, and how far it is.
    pub(crate) fn doing(&self) -> (String, Option<(u64, u64)>) {
        let speaking = self.streams.values().find(|(label, _)| !label.is_empty());
        let speaking = speaking.map(|(label, text)| match end(text) {
            end if end.is_empty() => label.clone(),
            end => format!("{label}: {end}"),
        });
        let thinking = self.quiet.first().map(|(_, label)| label.as_str()).unwrap_or_default();
        let status = self.status.lines().next().unwrap_or_default();
        let progress = self.progress.as_ref();
        let counted = progress.map(|(label, done, total)| format!("{label} {done}/{total}")).unwrap_or_default();
        let parts = [status, counted.as_str(), speaking.as_deref().unwrap_or(thinking)];
        let line = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
        (line, progress.map(|(_, done, total)| (*done, *total)))
    }
}

/// Returns the end of a text that is still written, in one line.
fn end(text: &str) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().rev().nth(END) {
        Some((at, _)) => format!("…{}", &line[at..]),
        None => line,
    }
}
