//! Builds a value from the events of a parser, and enforces what holds for YAML and JSON alike.
//!
//! Both readers hand their events to one [`ValueBuilder`], so that the limit of depth, the refusal of duplicate
//! keys and the positions of nodes cannot differ between the formats. `P` is how a reader gives positions:
//! lines are cheap to know in YAML, but only byte offsets are in JSON.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::model::text::excerpt;

/// How many lists and objects may stand in one another.
pub(super) const DEPTH: usize = 128;

/// Why a text cannot be read, and where.
#[derive(Debug)]
pub(super) struct ParseError<P> {
    pub at: P,
    pub reason: String,
}

impl<P> ParseError<P> {
    pub(super) fn new(at: P, reason: impl Into<String>) -> ParseError<P> {
        ParseError { at, reason: reason.into() }
    }
}

/// Where a node stands: its value, and its key if it is a member of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodePosition<P> {
    pub key: Option<P>,
    pub value: P,
}

enum OpenContainer<P> {
    List(Vec<Value>),
    Object { members: Map<String, Value>, key: Option<(String, P)> },
}

pub(super) struct ValueBuilder<'w, P> {
    open: Vec<(OpenContainer<P>, usize)>,
    root: Option<Value>,
    /// The pointer of the node that is being built; kept only if positions are wanted.
    path: String,
    wanted: Option<&'w HashSet<String>>,
    pub found: HashMap<String, NodePosition<P>>,
}

impl<'w, P: Copy> ValueBuilder<'w, P> {
    /// Returns an empty tree that notes where the `wanted` pointers stand.
    pub(super) fn new(wanted: Option<&'w HashSet<String>>) -> ValueBuilder<'w, P> {
        ValueBuilder { open: Vec::new(), root: None, path: String::new(), wanted, found: HashMap::new() }
    }

    /// Returns how many lists and objects are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Tells whether the next event is a key, and not a value.
    pub(super) fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some((OpenContainer::Object { key: None, .. }, _)))
    }

    pub(super) fn open_list(&mut self, at: P) -> Result<(), ParseError<P>> {
        self.open(OpenContainer::List(Vec::new()), at)
    }

    pub(super) fn open_object(&mut self, at: P) -> Result<(), ParseError<P>> {
        self.open(OpenContainer::Object { members: Map::new(), key: None }, at)
    }

    fn open(&mut self, container: OpenContainer<P>, at: P) -> Result<(), ParseError<P>> {
        if self.open.len() >= DEPTH {
            return Err(too_deep(at));
        }
        let parent = self.enter(at);
        self.open.push((container, parent));
        Ok(())
    }

    /// Takes the key of the next member.
    pub(super) fn key(&mut self, name: String, at: P) -> Result<(), ParseError<P>> {
        if let Some((OpenContainer::Object { members, key }, _)) = self.open.last_mut() {
            if members.contains_key(&name) {
                return Err(ParseError::new(at, format!("the key \"{}\" is given twice", excerpt(&name))));
            }
            *key = Some((name, at));
        }
        Ok(())
    }

    /// Takes a scalar, or a value that was built elsewhere.
    pub(super) fn value(&mut self, value: Value, at: P) {
        let parent = self.enter(at);
        self.path.truncate(parent);
        self.put(value);
    }

    /// Closes the innermost list or object and returns it; the caller puts it back with [`ValueBuilder::put`].
    pub(super) fn close(&mut self) -> Value {
        let Some((container, parent)) = self.open.pop() else { return Value::Null };
        self.path.truncate(parent);
        match container {
            OpenContainer::List(items) => Value::Array(items),
            OpenContainer::Object { members, .. } => Value::Object(members),
        }
    }

    /// Puts a finished value into the innermost list or object.
    pub(super) fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some((OpenContainer::List(items), _)) => items.push(value),
            Some((OpenContainer::Object { members, key }, _)) => {
                if let Some((name, _)) = key.take() {
                    members.insert(name, value);
                }
            }
            None => self.root = Some(value),
        }
    }

    /// Returns the whole value, if there was one.
    pub(super) fn finish(self) -> Option<Value> {
        self.root
    }

    /// Moves `path` to the node that starts here, and returns the length of its parent's pointer.
    fn enter(&mut self, at: P) -> usize {
        let parent = self.path.len();
        let Some(wanted) = self.wanted else { return parent };
        let mut key = None;
        match self.open.last() {
            Some((OpenContainer::List(items), _)) => self.path.push_str(&format!("/{}", items.len())),
            Some((OpenContainer::Object { key: Some((name, place)), .. }, _)) => {
                key = Some(*place);
                self.path.push('/');
                self.path.push_str(&escape(name));
            }
            _ => {}
        }
        if wanted.contains(&self.path) {
            self.found.insert(self.path.clone(), NodePosition { key, value: at });
        }
        parent
    }
}

pub(super) fn too_deep<P>(at: P) -> ParseError<P> {
    ParseError::new(at, format!("lists and objects stand more than {DEPTH} deep in one another"))
}

/// Tells whether a value is nested deeper than a file may be.
pub(super) fn is_too_deep(value: &Value) -> bool {
    fn exceeds(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left == 0 || items.iter().any(|item| exceeds(item, left - 1)),
            Value::Object(members) => left == 0 || members.values().any(|member| exceeds(member, left - 1)),
            _ => false,
        }
    }
    exceeds(value, DEPTH)
}

/// Returns a member's name as it stands in a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
