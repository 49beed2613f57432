//! How complete Markdown texts look at a terminal.

use insta::assert_snapshot;

use super::render;

/// Shows styles as tags, so that a snapshot is readable: `<1>bold</>`.
fn shown(markdown: &str, width: usize) -> String {
    let lines = render(markdown, width);
    let ansi: Vec<String> = lines.iter().map(|line| line.ansi(true)).collect();
    // `ESC [ 1 m` becomes `<1>`.
    let parts: Vec<String> = ansi.join("\n").split("\u{1b}[").map(str::to_owned).collect();
    let looks = parts.iter().skip(1).map(|part| format!("<{}", part.replacen('m', ">", 1)));
    parts.first().cloned().into_iter().chain(looks).collect::<String>().replace("<0>", "</>")
}

fn plain(markdown: &str, width: usize) -> String {
    let lines = render(markdown, width);
    let text: Vec<String> = lines.iter().map(|line| line.chars().map(|(c, _)| c).collect()).collect();
    text.join("\n")
}

#[test]
fn prose_has_headings_emphasis_code_and_links() {
    let markdown = "# Vérité\n\nSome *soft* and **strong** and ~~gone~~ words, `let x = 1;`,\n\
        a [link](https://example.org) and <https://nietz.dev>.\n\n## Second\nline one  \nline two\n\n---\n\nend";
    assert_snapshot!(shown(markdown, 40), @r"
    <1;4>Vérité</>

    Some <3>soft</> and <1>strong</> and <9>gone</> words,
    <36>`let x = 1;`</>, a <4>link</>
    <2>(https://example.org)</> and
    <4>https://nietz.dev</>.

    <1>Second</>

    line one
    line two

    <2>────────────────────────────────────────</>

    end
    ");
}

#[test]
fn lists_nest_and_keep_their_numbers() {
    let markdown = "Before\n\n- one that is longer than the width of it\n- two\n  1. inner\n  2. second\n\n     \
        more of second\n- [x] done\n- [ ] open\n-\n\n7. seven\n8. eight\n\nAfter";
    assert_snapshot!(plain(markdown, 24), @r"
    Before

    • one that is longer
      than the width of it
    • two
      1. inner
      2. second

         more of second
    • [x] done
    • [ ] open
    •

    7. seven
    8. eight

    After
    ");
}

#[test]
fn quotes_and_code_keep_their_marks() {
    let markdown = "> He who has a why\n> can bear almost any how.\n>\n> - a German\n\n```rust\nfn main() {\n\
        \tlet long = \"more than fits\";\n\n}\n```\n\n- item\n\n  ```\n  inside\n  ```\n\n> ```\n> quoted\n> ```";
    assert_snapshot!(plain(markdown, 30), @r#"
    │ He who has a why can bear
    │ almost any how.
    │
    │ • a German

      rust
      fn main() {
          let long = "more than
            fits";

      }

    • item

        inside

    │   quoted
    "#);
}

#[test]
fn a_table_fits_or_becomes_records() {
    let markdown =
        "| Idea | Score | Why |\n|---|---:|:-:|\n| Wide 漢字 | 7 | **because** it is short |\n| Été | 12 | x |";
    assert_snapshot!(plain(markdown, 60), @r"
    Idea      │ Score │         Why
    ──────────┼───────┼────────────────────
    Wide 漢字 │     7 │ because it is short
    Été       │    12 │          x
    ");
    assert_snapshot!(plain(markdown, 32), @r"
    Idea      │ Score │     Why
    ──────────┼───────┼─────────────
    Wide 漢字 │     7 │  because it
              │       │   is short
    Été       │    12 │      x
    ");
    assert_snapshot!(plain(markdown, 16), @r"
    Idea: Wide 漢字
    Score: 7
    Why: because it
    is short

    Idea: Été
    Score: 12
    Why: x
    ");
}

#[test]
fn nothing_foreign_reaches_the_terminal_raw() {
    let markdown =
        "a\u{1b}[2Jb\u{7} <b>html</b>\n\n<div>\u{9b}31m</div>\n\n    code\u{1b}]0;x\u{7}\n\n[x](java\u{202e}script)";
    assert_snapshot!(plain(markdown, 60), @r"
    a␛[2Jb␇ <b>html</b>

    <div>�31m</div>

      code␛]0;x␇

    x (java�script)
    ");
    let lines = render(markdown, 60);
    assert!(lines.iter().flat_map(|line| line.chars()).all(|(c, _)| !c.is_control()));
}

#[test]
fn what_begins_with_a_mark_of_its_own_goes_on_behind_it() {
    assert_eq!(plain("• cause: one two three", 14), "• cause: one\n  two three");
    assert_eq!(plain("✓ goal 1: done  \n→ next: one two", 12), "✓ goal 1:\n  done\n→ next: one\n  two");
    assert_eq!(plain("see docs/briefs/checkout-that/brief.md", 20), "see\ndocs/briefs/\ncheckout-that/\nbrief.md");
}
