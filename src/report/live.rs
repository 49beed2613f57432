//! A run while it goes on: what each new line of its journal changes on its page.

use std::collections::HashMap;
use std::path::Path;

use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

use super::history::{RecordedEffect, RunHistory};
use super::page::{ShownTexts, Speakers, cannot_be_written, shown_effect, templates};
use super::words;
use crate::error::Result;
use crate::journal::entries::Follower;

const ROW: &str = "{% import 'rows.html' as rows %}{% if turn %}{{ rows.turn(turn, w) }}{% else %}{{ rows.effect(effect, w) }}{% endif %}";

/// A run whose journal is followed.
pub(crate) struct LiveRun {
    follower: Follower,
    history: RunHistory,
    /// The effects by their keys.
    open: HashMap<String, usize>,
    speakers: Speakers,
    texts: ShownTexts,
}

/// A piece of a page that is new, or that takes the place of an older one.
#[derive(Debug, Serialize)]
pub(crate) struct Change {
    id: String,
    /// The part of the page that it is added to, if it is new.
    into: &'static str,
    html: String,
}

impl LiveRun {
    /// Begins before the first line of a journal.
    pub(crate) fn new(journal: &Path) -> LiveRun {
        LiveRun {
            follower: Follower::new(journal),
            history: RunHistory { status: "stopped".to_owned(), ..RunHistory::default() },
            open: HashMap::new(),
            speakers: Speakers::default(),
            texts: ShownTexts::default(),
        }
    }

    /// Returns what the run has done so far.
    pub(crate) fn history(&self) -> &RunHistory {
        &self.history
    }

    /// Reads the lines that were added, and returns the effects that they are of, by their places, each with its line.
    ///
    /// # Errors
    ///
    /// Those of [`Follower::more`].
    pub(crate) fn effects(&mut self) -> Result<Vec<(usize, u64)>> {
        let mut changed = Vec::new();
        let (history, open) = (&mut self.history, &mut self.open);
        self.follower.more(|entry| {
            let line = entry["seq"].as_u64().unwrap_or_default();
            if let Some(effect) = history.take(entry, open) {
                changed.push((effect, line));
            }
        })?;
        self.history.lines = self.follower.line();
        Ok(changed)
    }

    /// Reads the lines that were added, and returns what those behind a line change.
    ///
    /// # Errors
    ///
    /// Those of [`Follower::more`].
    pub(crate) fn more(&mut self, after: u64) -> Result<Vec<Change>> {
        let mut changed = self.effects()?;
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let w = words::of(&self.history.lang)?;
        // An effect of which several lines came is shown once, as it is after the last of them.
        let last: HashMap<usize, u64> = changed.iter().copied().collect();
        changed.retain(|(effect, line)| last[effect] == *line);
        let template = templates().template_from_named_str("row.html", ROW);
        let template = template.map_err(|error| cannot_be_written(&error))?;
        let words = minijinja::Value::from(Serde(&w));
        let shown = |part: &str, value: &serde_json::Value| {
            let value = minijinja::Value::from(Serde(value));
            let (turn, effect) = if part == "turn" { (Some(value), None) } else { (None, Some(value)) };
            let values = context! { turn => turn, effect => effect, w => words.clone() };
            template.render(values).map_err(|error| cannot_be_written(&error))
        };
        let mut changes = Vec::new();
        for (effect, line) in changed {
            let effect = &self.history.effects[effect];
            let (turns, row) = (self.speakers.turns(effect, &w), shown_effect(effect, &mut self.texts));
            if line <= after {
                continue;
            }
            for turn in turns {
                let id = format!("e{}", turn["line"].as_str().map_or_else(|| turn["line"].to_string(), str::to_owned));
                changes.push(Change { id, into: "turns", html: shown("turn", &turn)? });
            }
            let id = row["id"].as_str().unwrap_or_default().to_owned();
            changes.push(Change { id, into: "rows", html: shown("effect", &row)? });
        }
        Ok(changes)
    }
}

impl RunHistory {
    /// Returns the questions that wait for an answer.
    pub(crate) fn open_questions(&self) -> Vec<&RecordedEffect> {
        let asked = || self.effects.iter().filter(|effect| effect.kind == "ask");
        // One that a later process asked again stands there twice.
        let last: HashMap<&str, u64> = asked().map(|effect| (effect.key.as_str(), effect.line)).collect();
        let open =
            |effect: &&RecordedEffect| effect.ended.is_none() && last.get(effect.key.as_str()) == Some(&effect.line);
        asked().filter(open).collect()
    }
}
