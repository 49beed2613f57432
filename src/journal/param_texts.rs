//! Long texts that a param took from a file or a pipe: they stand in lines of their own behind the first, which names them
//! by their digest. So the first line stays short, and still says exactly what was given: a text with another digest is
//! refused.

use serde_json::{Value, json};

use crate::journal::expander::TextExpander;
use crate::journal::lines::OpenRecord;
use crate::journal::texts::LONG;
use crate::model::digest::Digest;

impl OpenRecord {
    /// Returns the first line as it is written, and the texts that must follow it.
    pub fn folded(&self) -> (OpenRecord, Vec<String>) {
        let mut open = self.clone();
        let mut texts = Vec::new();
        for origin in &open.origins {
            let Some(place) = origin.text_in(&mut open.params) else { continue };
            if let Value::String(text) = place
                && text.len() >= LONG
            {
                let text = std::mem::take(text);
                *place = json!({ "$text": Digest::of(text.as_bytes()).to_string() });
                texts.push(text);
            }
        }
        (open, texts)
    }

    /// Puts the texts back that stand in later lines.
    ///
    /// # Errors
    ///
    /// Says which text is missing or is not the one that was given.
    pub fn unfold(&mut self, expander: &mut TextExpander) -> Result<(), String> {
        for origin in &self.origins {
            let Some(place) = origin.text_in(&mut self.params) else { continue };
            let Some(id) = place.get("$text").and_then(Value::as_str) else { continue };
            let param = &origin.param;
            if expander.length(id).is_none() {
                return Err(format!("the process ended before the text of `{param}` was written; begin another run"));
            }
            let text = expander.text(id)?;
            if Digest::of(text.as_bytes()).to_string() != id {
                return Err(format!("the text of `{param}` is not the one that the first line names"));
            }
            *place = Value::String(text);
        }
        Ok(())
    }

    /// Tells whether texts of the params stand in later lines.
    pub fn is_folded(&self) -> bool {
        let mut params = self.params.clone();
        self.origins.iter().any(|origin| origin.text_in(&mut params).is_some_and(|place| place.get("$text").is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::expander::OwnedPart;
    use crate::model::param::{FILE, ParamOrigin};

    fn open(text: &str) -> OpenRecord {
        let mut open: OpenRecord = serde_json::from_value(json!({
            "run": "r1", "flow": "f", "source": "f.lua", "params": { "notes": ["typed", text] }, "lang": "en", "seed": 1,
            "files": {}, "host": "nietz", "at": "2026-01-09T10:30:00Z",
        }))
        .unwrap();
        open.origins.push(ParamOrigin { param: "notes".into(), item: Some(1), kind: FILE.into(), name: None });
        open
    }

    #[test]
    fn a_long_text_leaves_the_first_line_and_only_the_same_text_comes_back() {
        let whole = open(&"long ".repeat(LONG));
        let (mut folded, texts) = whole.folded();
        assert!(serde_json::to_string(&folded).unwrap().len() < 500 && folded.is_folded() && texts.len() == 1);
        assert!(folded.unfold(&mut TextExpander::default()).unwrap_err().contains("ended before the text of `notes`"));
        let id = folded.params["notes"][1]["$text"].as_str().unwrap().to_owned();
        let mut expander = TextExpander::default();
        expander.add_text(&id, vec![OwnedPart::New("another".to_owned())]).unwrap();
        assert!(folded.unfold(&mut expander).unwrap_err().contains("is not the one"));
        expander.add_text(&id, texts.into_iter().map(OwnedPart::New).collect()).unwrap();
        folded.unfold(&mut expander).unwrap();
        assert_eq!(folded, whole);
        let short = open("short");
        assert_eq!(short.folded(), (short.clone(), Vec::new()));
        assert!(!short.is_folded());
    }
}
