//! Finds what a change brings besides sources (`model::brings`), from the trees and the files themselves.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use super::Repository;
use super::stage::summarize_names;
use crate::error::Result;
use crate::model::brings::{
    EXECUTABLE, LINK, MergeRisk, MergeRiskKind, SUBMODULE, by_name, by_text, depends_on_text, leads_elsewhere,
};
use crate::model::effect::git::{MergeRiskLine, MergeRisks};

/// The most risks that a flow gets.
const MOST: usize = 1000;
/// The largest file that is read, in bytes; a larger one is reported as a risk.
const LARGEST: u64 = 1 << 20;

/// What changes at one path.
struct Change<'a> {
    before: Side<'a>,
    now: Side<'a>,
    path: String,
}

#[derive(Clone, Copy)]
struct Side<'a> {
    mode: &'a str,
    object: &'a str,
}

impl Repository {
    pub(super) fn brings(&self, from: &str, to: &str) -> Result<MergeRisks> {
        let all = self.list_brought(&self.need_commit(from)?, &self.need_commit(to)?)?;
        let cut = all.len() > MOST;
        let line = |brought: MergeRisk| MergeRiskLine { text: brought.line(), brought };
        Ok(MergeRisks { things: all.into_iter().take(MOST).map(line).collect(), cut })
    }

    /// Tells the user what a run's branch brings: one line for each kind, so that none hides another.
    pub(super) fn tell_brought(&self, branch: &str, from: &str, to: &str) -> Result<()> {
        let all = self.list_brought(from, to)?;
        for kind in all.chunk_by(|one, next| one.kind == next.kind) {
            let risks = summarize_names(kind.iter().map(MergeRisk::line));
            self.remark(format!("look at this before you merge `{branch}`: {risks}"));
        }
        Ok(())
    }

    /// Returns the risks of the change from one commit or tree to another, sorted by kind.
    fn list_brought(&self, from: &str, to: &str) -> Result<Vec<MergeRisk>> {
        let listed =
            self.read_only_call()?.args(["diff-tree", "-r", "-z", "--raw", "--no-renames", from, to]).bytes()?;
        let mut parts = listed.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            let Ok(head) = std::str::from_utf8(head) else { continue };
            let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            let [before, now, old, new, _] = words[..] else { continue };
            let sides = (Side { mode: before, object: old }, Side { mode: now, object: new });
            changes.push(Change { before: sides.0, now: sides.1, path: String::from_utf8_lossy(path).into_owned() });
        }
        let hooks = self.hook_folders()?;
        let mut all = BTreeSet::new();
        let mut take = |path: &str, kind: MergeRiskKind, to: Option<String>| {
            all.insert(MergeRisk { path: path.to_owned(), kind, to });
        };
        let is_file = |side: Side<'_>| side.mode.starts_with("100");
        // A deleted file starts nothing.
        changes.retain(|change| change.now.mode != "000000");
        for Change { before, now, path } in &changes {
            // A link or a submodule can take the place of a folder that programs look for.
            let replaces_folder = !is_file(*now);
            let kinds = [
                by_name(path).or_else(|| by_name(&format!("{path}/-")).filter(|_| replaces_folder)),
                hooks.iter().any(|folder| path.starts_with(folder.as_str())).then_some(MergeRiskKind::Hook),
                (now.mode == SUBMODULE).then_some(MergeRiskKind::Submodule),
                (now.mode == EXECUTABLE && before.mode != EXECUTABLE).then_some(MergeRiskKind::Executable),
            ];
            kinds.into_iter().flatten().for_each(|kind| take(path, kind, None));
        }
        let read: Vec<&Change<'_>> = changes
            .iter()
            .filter(|change| change.now.mode == LINK || is_file(change.now) && depends_on_text(&change.path))
            .collect();
        let wanted = read.iter().flat_map(|change| {
            let before = (is_file(change.before) && is_file(change.now)).then_some(change.before.object);
            [Some(change.now.object), before].into_iter().flatten()
        });
        let mut texts = self.texts(wanted)?.into_iter();
        for Change { before, now, path } in read {
            let text = texts.next().flatten();
            let old = if is_file(*before) && is_file(*now) { texts.next().flatten() } else { None };
            match (now.mode, text) {
                (LINK, Some(to)) if !leads_elsewhere(path, &to) => {}
                (LINK, to) => take(path, MergeRiskKind::Link, to),
                // A file that cannot be read is reported as if it contained every risk.
                (_, None) => {
                    take(path, by_text(path, "", "filter= build backend").unwrap_or(MergeRiskKind::Starts), None)
                }
                (_, Some(text)) => {
                    if let Some(kind) = by_text(path, old.as_deref().unwrap_or_default(), &text) {
                        take(path, kind, None);
                    }
                }
            }
        }
        let mut all: Vec<MergeRisk> = all.into_iter().collect();
        all.sort_by_key(|brought| brought.kind);
        Ok(all)
    }

    /// Returns the folders of the worktree in which git looks for hooks, as the user or the repository configures it.
    fn hook_folders(&self) -> Result<Vec<String>> {
        let call = self.git().repository(&self.git_folders()?.common).with_user_config(&self.user);
        let listed = call.args(["config", "-z", "--type=path", "--get-all", "core.hooksPath"]).output()?;
        let values = listed.stdout.split(|byte| *byte == 0).map(|value| String::from_utf8_lossy(value).into_owned());
        let below = |value: String| {
            let path = Path::new(&value);
            let path = if path.is_absolute() { path.strip_prefix(&self.workspace).ok()? } else { path };
            let plain: Vec<_> = path
                .components()
                .filter_map(|part| match part {
                    std::path::Component::Normal(part) => part.to_str(),
                    _ => None,
                })
                .collect();
            (!plain.is_empty()).then(|| plain.join("/") + "/")
        };
        Ok(values.filter_map(below).collect())
    }

    /// Returns the texts of objects, in their order; `None` for an object that is too large or missing.
    fn texts<'a>(&self, objects: impl Iterator<Item = &'a str>) -> Result<Vec<Option<String>>> {
        let mut objects = objects.peekable();
        if objects.peek().is_none() {
            return Ok(Vec::new());
        }
        let running = self.read_only_call()?.args(["cat-file", "--batch"]).interactive().start()?;
        let broken = |error: std::io::Error| running.pipe_failure(&error);
        let (mut input, mut from) = (running.input(), BufReader::new(running.output()));
        let mut texts = Vec::new();
        for object in objects {
            input.write_all(format!("{object}\n").as_bytes()).map_err(broken)?;
            let mut head = String::new();
            from.read_line(&mut head).map_err(broken)?;
            let size = head.trim_end().split_once(" blob ").and_then(|(_, size)| size.parse::<u64>().ok());
            let Some(size) = size else {
                texts.push(None);
                continue;
            };
            let mut bytes = Vec::new();
            let mut content = (&mut from).take(size);
            (&mut content).take(LARGEST).read_to_end(&mut bytes).map_err(broken)?;
            std::io::copy(&mut content, &mut std::io::sink()).map_err(broken)?;
            from.read_exact(&mut [0]).map_err(broken)?;
            texts.push((size <= LARGEST).then(|| String::from_utf8_lossy(&bytes).into_owned()));
        }
        drop(input);
        running.wait_for_success()?;
        Ok(texts)
    }
}
