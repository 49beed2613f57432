//! The blocks that a flow may show of its runs: plain data of a closed set, which the host draws. No markup comes from a flow.

use serde::Deserialize;
use serde_json::{Value, json};

use super::prose;
use crate::error::{Code, Failure, Result};
use crate::model::text::{clean, excerpt, line};

/// The most blocks of one report, and the most items of one block.
const BLOCKS: usize = 100;
const ITEMS: usize = 2_000;
/// How deep a tree goes.
const DEEPEST: usize = 20;
/// The size of a curve's picture, in its own units, and its margins.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 36.0;
const BELOW: f64 = 24.0;

/// One block: what it shows, below its title.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Block {
    /// Markdown.
    Text {
        title: Option<String>,
        text: String,
    },
    Table {
        title: Option<String>,
        columns: Vec<String>,
        rows: Vec<Vec<Value>>,
    },
    /// Lines over the same steps; a step without a value is `null`.
    Curve {
        title: Option<String>,
        steps: Vec<String>,
        lines: Vec<Line>,
        most: Option<f64>,
    },
    /// Values beside each other, each of `most` or of the largest.
    Bars {
        title: Option<String>,
        bars: Vec<Bar>,
        most: Option<f64>,
    },
    Tree {
        title: Option<String>,
        nodes: Vec<Node>,
    },
    /// What happened when, in order.
    Timeline {
        title: Option<String>,
        events: Vec<Moment>,
    },
    /// A unified diff.
    Diff {
        title: Option<String>,
        diff: String,
    },
    /// Figures with their names.
    Cards {
        title: Option<String>,
        cards: Vec<Card>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    name: String,
    values: Vec<Option<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bar {
    name: String,
    value: f64,
    note: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    name: String,
    /// `good`, `bad` or `open`.
    status: Option<String>,
    note: Option<String>,
    #[serde(default)]
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Moment {
    at: String,
    who: Option<String>,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Card {
    name: String,
    value: Value,
    note: Option<String>,
}

/// Reads what a flow's `report` function returned.
///
/// # Errors
///
/// `flow-error` if it is no list of blocks, or a block has too much in it.
pub(super) fn read(value: Value) -> Result<Vec<Block>> {
    let Value::Array(items) = value else {
        // An empty table of Lua may be either.
        return match value.as_object().is_some_and(serde_json::Map::is_empty) || value.is_null() {
            true => Ok(Vec::new()),
            false => Err(wrong("it is no list of blocks".to_owned())),
        };
    };
    if items.len() > BLOCKS {
        return Err(wrong(format!("it has more than {BLOCKS} blocks")));
    }
    let read = |(index, item): (usize, Value)| {
        let block: Block =
            serde_json::from_value(item).map_err(|error| wrong(format!("block {}: {error}", index + 1)))?;
        match block.size() > ITEMS || block.depth() > DEEPEST {
            true => Err(wrong(format!("block {} has more than {ITEMS} items or {DEEPEST} levels", index + 1))),
            false => Ok(block),
        }
    };
    items.into_iter().enumerate().map(read).collect()
}

fn wrong(why: String) -> Failure {
    Failure::new(Code::FlowError, format!("what the flow's report returned cannot be shown: {}", excerpt(&why))).hint(
        "a block is { type = \"text\", title = …, text = … }, or a table, curve, bars, tree, timeline, diff or cards",
    )
}

impl Block {
    fn size(&self) -> usize {
        match self {
            Block::Text { .. } | Block::Diff { .. } => 1,
            Block::Table { columns, rows, .. } => columns.len().max(rows.len()),
            Block::Curve { steps, lines, .. } => steps.len().max(lines.len()),
            Block::Bars { bars, .. } => bars.len(),
            Block::Tree { nodes, .. } => nodes.iter().map(Node::size).sum(),
            Block::Timeline { events, .. } => events.len(),
            Block::Cards { cards, .. } => cards.len(),
        }
    }

    fn depth(&self) -> usize {
        match self {
            Block::Tree { nodes, .. } => nodes.iter().map(Node::depth).max().unwrap_or(0),
            _ => 1,
        }
    }

    /// Returns the block as a template shows it.
    pub(super) fn shown(&self) -> Value {
        let title = |title: &Option<String>| title.as_deref().map(|title| line(title).into_owned());
        match self {
            Block::Text { title: name, text } => {
                json!({ "type": "text", "title": title(name), "html": prose::html(text) })
            }
            Block::Table { title: name, columns, rows } => {
                let rows: Vec<Vec<String>> =
                    rows.iter().map(|row| row.iter().map(|value| prose::inline(&cell(value))).collect()).collect();
                let columns: Vec<_> = columns.iter().map(|column| line(column)).collect();
                json!({ "type": "table", "title": title(name), "columns": columns, "rows": rows })
            }
            Block::Curve { title: name, steps, lines, most } => curve(title(name), steps, lines, *most),
            Block::Bars { title: name, bars, most } => {
                let most =
                    most.unwrap_or_else(|| bars.iter().map(|bar| bar.value).fold(0.0, f64::max)).max(f64::EPSILON);
                let bars = bars.iter().map(|bar| {
                    json!({
                        "name": inline(&bar.name), "value": number(bar.value), "note": bar.note.as_deref().map(inline),
                        "width": tenth((bar.value / most).clamp(0.0, 1.0) * 100.0),
                    })
                });
                json!({ "type": "bars", "title": title(name), "bars": bars.collect::<Vec<_>>() })
            }
            Block::Tree { title: name, nodes } => {
                let mut rows = Vec::new();
                nodes.iter().for_each(|node| node.flatten(0, &mut rows));
                json!({ "type": "tree", "title": title(name), "rows": rows })
            }
            Block::Timeline { title: name, events } => {
                let events = events.iter().map(|event| {
                    json!({
                        "at": line(&event.at), "who": event.who.as_deref().map(line), "html": prose::html(&event.text),
                    })
                });
                json!({ "type": "timeline", "title": title(name), "events": events.collect::<Vec<_>>() })
            }
            Block::Diff { title: name, diff } => {
                let lines = clean(diff).trim_end().lines().map(diff_line).collect::<Vec<_>>();
                json!({ "type": "diff", "title": title(name), "lines": lines })
            }
            Block::Cards { title: name, cards } => {
                let cards = cards.iter().map(|card| {
                    json!({
                        "name": line(&card.name), "value": prose::inline(&cell(&card.value)),
                        "note": card.note.as_deref().map(inline),
                    })
                });
                json!({ "type": "cards", "title": title(name), "cards": cards.collect::<Vec<_>>() })
            }
        }
    }
}

impl Node {
    fn size(&self) -> usize {
        1 + self.nodes.iter().map(Node::size).sum::<usize>()
    }

    fn depth(&self) -> usize {
        1 + self.nodes.iter().map(Node::depth).max().unwrap_or(0)
    }

    /// Adds the node and those below it, each with how deep it stands.
    fn flatten(&self, depth: usize, rows: &mut Vec<Value>) {
        let status = self.status.as_deref().filter(|status| ["good", "bad", "open"].contains(status));
        rows.push(json!({
            "name": inline(&self.name), "note": self.note.as_deref().map(inline), "status": status, "depth": depth,
        }));
        self.nodes.iter().for_each(|node| node.flatten(depth + 1, rows));
    }
}

/// Returns a text that stays within its line, as HTML.
fn inline(text: &str) -> String {
    prose::inline(&line(text))
}

fn diff_line(text: &str) -> Value {
    json!({ "class": prose::diff_class(text), "text": text })
}

/// Returns lines as points of a picture, with the same as a table.
fn curve(title: Option<String>, steps: &[String], lines: &[Line], most: Option<f64>) -> Value {
    let values = || lines.iter().flat_map(|line| line.values.iter().flatten().copied());
    let top = most.unwrap_or_else(|| values().fold(0.0, f64::max)).max(f64::EPSILON);
    let bottom = values().fold(0.0, f64::min);
    let x =
        |step: usize| tenth(LEFT + (WIDTH - LEFT - RIGHT) * step as f64 / steps.len().saturating_sub(1).max(1) as f64);
    let y = |value: f64| tenth(8.0 + (HEIGHT - BELOW - 8.0) * (1.0 - (value - bottom) / (top - bottom)));
    let drawn = lines.iter().enumerate().map(|(index, drawn)| {
        let points = drawn.values.iter().take(steps.len()).enumerate();
        let points = points.filter_map(|(step, value)| Some((step, (*value)?)));
        let points: Vec<Value> = points
            .map(|(step, value)| json!({ "x": x(step), "y": y(value), "title": format!("{}: {}", line(&steps[step]), number(value)) }))
            .collect();
        let path: Vec<String> = points.iter().map(|point| format!("{},{}", point["x"], point["y"])).collect();
        json!({ "name": line(&drawn.name), "class": index % 8 + 1, "points": points, "path": path.join(" ") })
    });
    let drawn: Vec<Value> = drawn.collect();
    let rows = lines.iter().map(|drawn| {
        let value = |step: usize| drawn.values.get(step).copied().flatten().map(number).unwrap_or_default();
        std::iter::once(line(&drawn.name).into_owned()).chain((0..steps.len()).map(value)).collect::<Vec<_>>()
    });
    // Names of steps that would run into one another are left out of the picture; the table has all.
    let every = steps.len().div_ceil(12).max(1);
    let marks = steps.iter().enumerate().filter(|(step, _)| step % every == 0);
    let marks: Vec<Value> = marks.map(|(step, name)| json!({ "x": x(step), "name": line(name) })).collect();
    let levels: Vec<Value> = [bottom, (bottom + top) / 2.0, top]
        .iter()
        .map(|level| json!({ "y": y(*level), "name": number(*level) }))
        .collect();
    json!({
        "type": "curve", "title": title, "width": WIDTH, "height": HEIGHT, "left": LEFT, "lines": drawn, "marks": marks,
        "levels": levels, "steps": steps.iter().map(|step| line(step)).collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>(),
    })
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(found) => found.as_f64().map(number).unwrap_or_default(),
        Value::String(text) => clean(text),
        other => clean(&other.to_string()),
    }
}

/// Returns a number with at most two decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
