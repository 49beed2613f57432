//! The promise: a template inserts, chooses and repeats what it was given, and says nothing else; it reads no file outside of
//! its pack, and whatever it is, it ends within its bounds.

use nietz::pack::tree::{PackTree, Root};
use nietz::template::{includes, names, render};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};

use super::draw::{corpus, mutated, text, value};
use super::{each, holds};

/// The longest text that a template may make, in bytes.
const LONGEST: usize = 4 << 20;

/// A template, as it is meant.
#[derive(Clone, Debug)]
enum Node {
    Text(String),
    Insert(&'static str),
    If(&'static str, Vec<Node>, Vec<Node>),
    For(&'static str, Vec<Node>),
}

fn written(nodes: &[Node]) -> String {
    let one = |node: &Node| match node {
        Node::Text(text) => text.clone(),
        Node::Insert(name) => format!("{{{{ {name} }}}}"),
        Node::If(name, then, other) => {
            format!("{{% if {name} %}}{}{{% else %}}{}{{% endif %}}", written(then), written(other))
        }
        Node::For(name, body) => format!("{{% for item in {name} %}}{}{{% endfor %}}", written(body)),
    };
    nodes.iter().map(one).collect()
}

/// What it says, by a plain reading.
fn said(nodes: &[Node], vars: &Value, item: &str) -> String {
    let one = |node: &Node| match node {
        Node::Text(text) => text.clone(),
        Node::Insert("item") => item.to_owned(),
        Node::Insert(name) => vars[name].as_str().unwrap_or_default().to_owned(),
        Node::If(name, then, other) => {
            let is = match &vars[name] {
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                other => other == &json!(true),
            };
            said(if is { then } else { other }, vars, item)
        }
        Node::For(name, body) => {
            let items = vars[name].as_array().into_iter().flatten();
            items.map(|item| said(body, vars, item.as_str().unwrap_or_default())).collect()
        }
    };
    nodes.iter().map(one).collect()
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    // White space beside tags is another promise.
    let leaf = prop_oneof![
        "[a-zé.,%}#'\"]{1,6}( [a-z]{1,4})?".prop_map(Node::Text),
        select(vec!["a", "b", "item"]).prop_map(Node::Insert),
    ];
    let node = leaf.prop_recursive(4, 24, 4, |inner| {
        let all = || vec(inner.clone(), 0..4);
        prop_oneof![
            (select(vec!["a", "yes", "no", "many", "none"]), all(), all())
                .prop_map(|(n, then, other)| Node::If(n, then, other)),
            (select(vec!["many", "none"]), all()).prop_map(|(name, body)| Node::For(name, body)),
        ]
    });
    vec(node, 0..6)
}

#[test]
fn a_template_says_what_it_was_given_and_nothing_else() {
    holds("templates_plain", (nodes(), text(), text(), vec(text(), 1..4)), |(nodes, a, b, many)| {
        let vars = json!({ "a": a, "b": b, "item": "no item", "yes": true, "no": false, "many": many, "none": [] });
        let source = written(nodes);
        let made = render(None, "t.md", &source, &vars).unwrap_or_else(|failure| panic!("{failure}\n{source}"));
        assert_eq!(made, said(nodes, &vars, "no item").trim(), "{source}");
        assert!(
            names("t.md", &source).is_ok_and(|names| names.iter().all(|name| vars.get(name).is_some())),
            "{source}"
        );
    });
}

/// What stands outside of the pack, and what another pack's file says.
const SECRET: &str = "s3cr3t-outside";

/// A pack beside a secret, with a link to it.
fn pack() -> (tempfile::TempDir, PackTree) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let root = folder.path().join("pack");
    std::fs::create_dir_all(root.join("flows/f")).expect("folders can be made");
    let files = [
        ("secret.md", SECRET),
        ("pack/secret.md", SECRET),
        ("pack/.env.md", SECRET),
        ("pack/flows/.secret.md", SECRET),
        ("pack/flows/f/part.md", "part {{ a }}"),
        ("pack/flows/f/self.md", "{% include './self.md' %}"),
        ("pack/flows/f/two.md", "{% include './part.md' %}{% include './part.md' %}"),
    ];
    files.iter().for_each(|(path, text)| std::fs::write(folder.path().join(path), text).expect("it can be written"));
    std::os::unix::fs::symlink("../../../secret.md", root.join("flows/f/link.md")).expect("a link can be made");
    (folder, PackTree::new(Root::Disk(root)))
}

#[track_caller]
fn keeps_to_its_values(tree: &PackTree, source: &str, vars: &Value) {
    let made = render(Some(tree), "flows/f/main.md", source, vars);
    let told = match &made {
        Ok(text) => text.clone(),
        Err(failure) => format!("{failure:?}"),
    };
    assert!(told.len() <= LONGEST && !told.contains(SECRET), "{told}");
    if let Err(failure) = made {
        let message = failure.message;
        assert!(message.contains(".md"), "it names no file: {message}");
    }
    let _ = names("flows/f/main.md", source);
    includes(source).iter().for_each(|(line, _)| assert!(*line <= 1 + source.matches('\n').count()));
}

fn vars() -> impl Strategy<Value = Value> {
    let long = prop_oneof![Just(json!("x".repeat(60_000))), Just(json!(vec!["y"; 2_000])), value()];
    (text(), long, value()).prop_map(|(a, b, c)| json!({ "a": a, "b": b, "c": c, "many": [1, 2, 3] }))
}

#[test]
fn a_template_keeps_to_its_values_and_its_pack_and_its_bounds() {
    let token = select(vec![
        "{% include './link.md' %}",
        "{% include '../../secret.md' %}",
        "{% include '../.secret.md' %}",
        "{% include c %}",
        "{{ b|replace('', b) }}",
        "{{ b|join(b) }}",
        "{{ ",
        " }}",
        "{% ",
        " %}",
        "{%- ",
        " -%}",
        "{# ",
        " #}",
        "a",
        "b",
        "c",
        "many",
        "item",
        "loop.index",
        "loop",
        "self",
        "super()",
        "if ",
        "elif ",
        "else",
        "endif",
        "for item in ",
        "endfor",
        "include ",
        "set x = ",
        "raw",
        "endraw",
        "macro m()",
        "block q",
        "range(9999)",
        "range(0, 9223372036854775807)",
        "'./part.md'",
        "'./two.md'",
        "'./self.md'",
        "'./link.md'",
        "'../../secret.md'",
        "'../../../secret.md'",
        "'/etc/hostname'",
        "'./../f/part.md'",
        "'secret.md'",
        "'../.secret.md'",
        "[b, './part.md']",
        "|upper",
        "|replace('', b)",
        "|replace(a, b)",
        "|join(b)",
        "|list",
        "|tojson",
        "|string",
        "|indent(99999)",
        "|items",
        "|first",
        "|length",
        "|default(b)",
        "|int",
        "|round(999)",
        "|capitalize",
        "|nope",
        " is defined",
        " is in b",
        ".x",
        "[0]",
        "[-1]",
        "[a]",
        "['__class__']",
        " == ",
        " in ",
        " and ",
        " not ",
        "(",
        ")",
        " ~ ",
        " * ",
        " + ",
        " - 1",
        "//0",
        " % 0",
        " ** 9",
        "9223372036854775807",
        "1e999",
        "\n",
        "{",
        "}",
        "'",
        "\"",
        "\\",
        "é",
        "\0",
        "x",
    ]);
    let drawn = vec(token, 0..24).prop_map(|tokens| tokens.concat());
    let loops = (
        1..6_usize,
        select(vec!["{{ b }}", "{{ a|upper }}", "{{ b|tojson }}", "{% include './two.md' %}", "{{ many|join(b) }}"]),
    )
        .prop_map(|(depth, body)| "{% for item in range(99) %}".repeat(depth) + body + &"{% endfor %}".repeat(depth));
    let honest =
        mutated(corpus(&["flows"], &["md"])).prop_map(|(_, bytes)| String::from_utf8_lossy(&bytes.0).into_owned());
    let (_folder, tree) = pack();
    holds("templates", (prop_oneof![5 => drawn, 1 => loops, 3 => honest], vars()), |(source, vars)| {
        keeps_to_its_values(&tree, source, vars);
    });
}

#[test]
fn what_reaches_for_more_is_refused() {
    let (_folder, tree) = pack();
    let vars = json!({ "a": "x", "b": "y".repeat(60_000), "c": "./../../secret.md", "many": [1, 2, 3] });
    for source in [
        "{% include '../../secret.md' %}",
        "{% include './link.md' %}",
        "{% include c %}",
        "{% include '/etc/hostname' %}",
        "{% include './self.md' %}",
        "{% include '../../../secret.md' %}",
        "{% for i in range(9999) %}{{ b }}{% endfor %}",
        "{{ b|replace('', b) }}",
        "{{ range(0, 9223372036854775807) }}",
        "{{ a|indent(9223372036854775807) }}",
        "{{ self }}",
        "{{ many|join(b)|replace('', b) }}",
        "{{ debug() }}",
        "{{ nothing }}",
    ] {
        keeps_to_its_values(&tree, source, &vars);
        assert!(render(Some(&tree), "flows/f/main.md", source, &vars).is_err(), "{source}");
    }
    let opens = ["(", "[", "{{", "{% if a %}", "{% for i in many %}", "not ", "-", "{% include './part.md' %}"];
    let deep = opens.iter().flat_map(|open| [format!("{{{{ {} }}}}", open.repeat(5_000)), open.repeat(5_000)]);
    each("templates_cases", deep, |source| keeps_to_its_values(&tree, source, &vars));
}
