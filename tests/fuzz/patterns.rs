//! The promise: a regular expression finds what a plain matcher finds, and one of any text is compiled within its limits
//! or refused, and searches in time. A path's pattern is filled and read backwards without a guess, and leads nowhere else.

use nietz::model::collection::{Collection, DocumentKey, Format};
use nietz::model::path_template::PathTemplate;
use nietz::model::regexes::{CompiledRegex, RegexCache};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};

use super::draw::{mutated, text};
use super::{each, holds};

/// A regular expression, as it is meant.
#[derive(Clone, Debug)]
enum Node {
    Char(char),
    Any,
    /// Whether the letters are those that it is not.
    Class(bool, Vec<char>),
    Start,
    End,
    Seq(Vec<Node>),
    Or(Vec<Node>),
    Group(Box<Node>),
    /// What is repeated takes at least one letter: what libraries do with empty ones differs.
    Repeat(Box<Node>, u32, Option<u32>, bool),
}

impl Node {
    fn takes_something(&self) -> bool {
        match self {
            Node::Char(_) | Node::Any | Node::Class(..) => true,
            Node::Start | Node::End => false,
            Node::Seq(all) => all.iter().any(Node::takes_something),
            Node::Or(all) => all.iter().all(Node::takes_something),
            Node::Group(one) => one.takes_something(),
            Node::Repeat(one, least, ..) => *least > 0 && one.takes_something(),
        }
    }

    fn written(&self) -> String {
        let all = |nodes: &[Node], between: &str| nodes.iter().map(Node::written).collect::<Vec<_>>().join(between);
        match self {
            Node::Char(c) => regex::escape(&c.to_string()),
            Node::Any => "(?s:.)".to_owned(),
            Node::Class(not, letters) => {
                format!("[{}{}]", if *not { "^" } else { "" }, letters.iter().collect::<String>())
            }
            Node::Start => "^".to_owned(),
            Node::End => "$".to_owned(),
            Node::Seq(nodes) => format!("(?:{})", all(nodes, "")),
            Node::Or(nodes) => format!("(?:{})", all(nodes, "|")),
            Node::Group(node) => format!("({})", node.written()),
            Node::Repeat(node, least, most, greedy) => {
                let most = most.map(|most| most.to_string()).unwrap_or_default();
                format!("(?:{}){{{least},{most}}}{}", node.written(), if *greedy { "" } else { "?" })
            }
        }
    }
}

type Groups = Vec<Option<(usize, usize)>>;

/// A matcher that tries all, in the order in which the expression says.
struct Matcher<'a> {
    text: &'a [char],
    steps: usize,
}

/// What has to match behind.
type Then<'t> = &'t mut dyn FnMut(&mut Matcher<'_>, usize, &mut Groups) -> bool;

impl Matcher<'_> {
    fn go(&mut self, node: &Node, number: usize, at: usize, groups: &mut Groups, then: Then<'_>) -> bool {
        self.steps += 1;
        if self.steps > 20_000 {
            return false;
        }
        match node {
            Node::Char(c) => self.text.get(at) == Some(c) && then(self, at + 1, groups),
            Node::Any => at < self.text.len() && then(self, at + 1, groups),
            Node::Class(not, letters) => {
                self.text.get(at).is_some_and(|c| letters.contains(c) != *not) && then(self, at + 1, groups)
            }
            Node::Start => at == 0 && then(self, at, groups),
            Node::End => at == self.text.len() && then(self, at, groups),
            Node::Seq(nodes) => self.seq(nodes, number, at, groups, then),
            Node::Or(nodes) => {
                let mut number = number;
                nodes.iter().any(|node| {
                    let mine = number;
                    number += count(node);
                    self.go(node, mine, at, groups, then)
                })
            }
            Node::Group(node) => {
                let before = groups[number];
                let found = self.go(node, number + 1, at, groups, &mut |this, end, groups| {
                    let inner = groups[number].replace((at, end));
                    then(this, end, groups) || {
                        groups[number] = inner;
                        false
                    }
                });
                if !found {
                    groups[number] = before;
                }
                found
            }
            Node::Repeat(node, least, most, greedy) => {
                self.repeat((node, *least, *most, *greedy), number, at, groups, then)
            }
        }
    }

    fn seq(&mut self, nodes: &[Node], number: usize, at: usize, groups: &mut Groups, then: Then<'_>) -> bool {
        let Some((first, rest)) = nodes.split_first() else { return then(self, at, groups) };
        let behind = number + count(first);
        self.go(first, number, at, groups, &mut |this, at, groups| this.seq(rest, behind, at, groups, then))
    }

    fn repeat(
        &mut self,
        (node, least, most, greedy): (&Node, u32, Option<u32>, bool),
        number: usize,
        at: usize,
        groups: &mut Groups,
        then: Then<'_>,
    ) -> bool {
        let again = |this: &mut Self, groups: &mut Groups, then: Then<'_>| {
            let left = (node, least.saturating_sub(1), most.map(|most| most.saturating_sub(1)), greedy);
            most != Some(0)
                && this
                    .go(node, number, at, groups, &mut |this, at, groups| this.repeat(left, number, at, groups, then))
        };
        match (least > 0, greedy) {
            (true, _) => again(self, groups, then),
            (false, true) => again(self, groups, then) || then(self, at, groups),
            (false, false) => then(self, at, groups) || again(self, groups, then),
        }
    }
}

/// Returns how many groups a node has.
fn count(node: &Node) -> usize {
    match node {
        Node::Seq(all) | Node::Or(all) => all.iter().map(count).sum(),
        Node::Group(one) => 1 + count(one),
        Node::Repeat(one, ..) => count(one),
        _ => 0,
    }
}

/// Returns the first match and its groups, or nothing; an error where it gave up.
fn plainly(node: &Node, text: &[char]) -> Result<Option<Groups>, ()> {
    let mut matcher = Matcher { text, steps: 0 };
    for start in 0..=text.len() {
        let mut groups: Groups = vec![None; 1 + count(node)];
        let mut whole = None;
        let found = matcher.go(node, 1, start, &mut groups, &mut |_, end, _| {
            whole = Some((start, end));
            true
        });
        if matcher.steps > 20_000 {
            return Err(());
        }
        if found {
            groups[0] = whole;
            return Ok(Some(groups));
        }
    }
    Ok(None)
}

const LETTERS: &[char] = &['a', 'b', 'c', 'é', '\n', '🦀', ' '];

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        5 => select(LETTERS).prop_map(Node::Char),
        1 => Just(Node::Any),
        2 => (any::<bool>(), vec(select(&LETTERS[..4]), 1..3)).prop_map(|(not, letters)| Node::Class(not, letters)),
        1 => Just(Node::Start),
        1 => Just(Node::End),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let repeat = (inner.clone(), 0..3_u32, proptest::option::of(0..3_u32), any::<bool>());
        prop_oneof![
            3 => vec(inner.clone(), 1..4).prop_map(Node::Seq),
            2 => vec(inner.clone(), 1..4).prop_map(Node::Or),
            2 => inner.prop_map(|node| Node::Group(Box::new(node))),
            3 => repeat.prop_map(|(node, least, more, greedy)| match node.takes_something() {
                // Groups of what is repeated no time are no groups.
                true => Node::Repeat(Box::new(node), least, more.map(|more| (least + more).max(1)), greedy),
                false => node,
            }),
        ]
    })
}

#[test]
fn a_regular_expression_finds_what_a_plain_matcher_finds() {
    holds("regex", (node(), vec(select(LETTERS), 0..12)), |(node, letters)| {
        let (pattern, text) = (node.written(), letters.iter().collect::<String>());
        let compiled = RegexCache::default().get(&pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
        let Ok(expected) = plainly(node, letters) else { return };
        let place = |at: usize| letters[..at].iter().map(|c| c.len_utf8()).sum::<usize>();
        let expected =
            expected.map(|all| all.iter().map(|one| one.map(|(from, to)| (place(from), place(to)))).collect());
        let found = compiled.regex.captures_at(&text, 0);
        let found = found.map(|all| all.iter().map(|one| one.map(|one| (one.start(), one.end()))).collect::<Vec<_>>());
        assert_eq!(found, expected, "{pattern}");
    });
}

/// The longest text that is searched at once.
const AT_ONCE: usize = 16 << 10;

#[track_caller]
fn searches_in_time(pattern: &str, text: &str) {
    match CompiledRegex::new(pattern) {
        Ok(compiled) => {
            let found = compiled.regex.captures_at(text, 0);
            found.iter().flat_map(|found| found.iter().flatten()).for_each(|one| drop(text[one.range()].to_owned()));
        }
        Err(why) => assert!(!why.is_empty(), "it does not say why"),
    }
}

#[test]
fn a_regular_expression_of_any_text_searches_in_time_or_is_refused() {
    let patterns = [
        r"(\w+)@(\w+)\.\w+",
        r"^\s*error(\[\w+\])?: (.*)$",
        r"(a|aa)+$",
        r"([ab]*a){9}[cd]",
        r"(?i)\p{Greek}+|[[:alpha:]]{2,30}",
        r"(x+x+)+y",
        r"(?:a?){40}a{40}",
        r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
        r"(?x) a # comment",
        r"[\p{L}--a]",
        r"(?P<name>.)",
        r"(((((((((a){1,9}){1,9}){1,9}){1,9}){1,9}){1,9})))",
        r"[a-z]*y[ab]{900}[cd]",
    ];
    let patterns = mutated(patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect());
    let texts = (prop_oneof![Just("a".to_owned()), Just("ab".to_owned()), Just("x".to_owned()), text()], 0..AT_ONCE);
    holds("regex_text", (patterns, texts), |((_, pattern), (piece, length))| {
        let mut text = piece.repeat(length / piece.len().max(1));
        text.truncate((0..=AT_ONCE.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        searches_in_time(&String::from_utf8_lossy(&pattern.0), &text);
    });
}

#[test]
fn what_repeats_repetitions_searches_in_time_or_is_refused() {
    let cases = [
        "(?:a?){1000}a{1000}",
        "(a*)*b",
        "((a{50}){50}){50}",
        "[ab]*a[ab]{9000}[cd]",
        r"(?:\p{L}{1,100}){1,100}",
        "a{4294967296}",
        "(?s).*.*.*.*=.*",
        "(|a)+$",
    ];
    let deep = ["(".repeat(100_000), "(".repeat(50_000) + &")".repeat(50_000), "a|".repeat(100_000)];
    let all = cases.into_iter().map(str::to_owned).chain(deep);
    each("regex_cases", all, |pattern| searches_in_time(pattern, &"a".repeat(AT_ONCE)));
}

fn collection(path: &str) -> Collection {
    Collection {
        name: "notes".to_owned(),
        path: path.to_owned(),
        format: Format::Yaml,
        schema: serde_json::Value::Bool(true),
        version: None,
        keys: DocumentKey::new(),
        index: Vec::new(),
        expects: Vec::new(),
        everywhere: false,
        shared: false,
    }
}

#[test]
fn a_path_is_filled_and_read_backwards_and_leads_nowhere_else() {
    let piece = select(vec![
        "{a}", "{b}", "{c}", "{*}", "{", "}", "/", "/", "-", "@", "x", ".", "..", ".yaml", ".git", ".nietz", "é", "\\",
        ":", "\n", "~",
    ]);
    let odd = select(vec!["../x", "..", ".", ".git"]).prop_map(str::to_owned);
    let value = prop_oneof![3 => "[A-Za-z0-9._-]{1,6}", 1 => text(), 1 => odd, 1 => Just("x".repeat(121))];
    let keys = btree_map(select(vec!["a", "b", "c", "file"]).prop_map(str::to_owned), value, 0..4);
    let all = (vec(piece, 1..9).prop_map(|pieces| pieces.concat()), keys, text(), any::<Index>());
    holds("paths", all, |(path, keys, other, at)| {
        let collection = collection(path);
        let Ok(pattern) = PathTemplate::of(&collection) else { return };
        // What a flow gives: just the keys that there are holes for.
        let keys: DocumentKey = keys
            .iter()
            .filter(|(name, _)| pattern.placeholders().any(|hole| hole == *name))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect();
        if let Ok(filled) = pattern.fill(&keys) {
            let safe = |part: &str| !matches!(part, "" | "." | "..") && !part.to_ascii_lowercase().starts_with(".git");
            assert!(filled.split('/').all(safe) && !filled.contains(['\\', ':', '\0']), "{filled}");
            assert!(filled.starts_with(&pattern.folder()), "{filled} is not in {}", pattern.folder());
            if path != "{*}" {
                assert_eq!(pattern.matches(&filled), Some(keys), "{filled}");
            }
            // Whatever else is taken for a path of this pattern is the path of that key.
            let mut near = filled;
            let place = (0..=at.index(near.len() + 1)).rev().find(|at| near.is_char_boundary(*at)).unwrap_or(0);
            near.insert_str(place, other);
            if let Some(key) = pattern.matches(&near) {
                assert_eq!(pattern.fill(&key).ok(), Some(near));
            }
        }
    });
}
