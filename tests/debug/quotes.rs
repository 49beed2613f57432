//! Quotes: enough of them, each with its work; offered where they fit, and noted where a reply carries one.

use serde_json::Value;

use super::desk::{Desk, For};

const CONTEXTS: [&str; 6] = ["avoidance", "overwhelm", "strategy", "victory", "defeat", "perseverance"];

fn all() -> Vec<Value> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/quotes")).expect("there are quotes") {
        let path = entry.expect("it can be listed").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let format = nietz::model::collection::Format::Yaml;
        let file = nietz::schema::source::parse(&text, format, "quotes").expect("it is YAML");
        all.extend(file["quotes"].as_array().expect("a list").clone());
    }
    all
}

#[test]
fn there_are_sixty_quotes_and_six_in_english_for_each_context_with_their_works() {
    let all = all();
    assert!(all.len() >= 60, "{}", all.len());
    for context in CONTEXTS {
        let english = all.iter().filter(|quote| quote["context"] == context && quote["lang"].is_null()).count();
        assert!(english >= 6, "{english} for {context}");
        let french = all.iter().filter(|quote| quote["context"] == context && quote["lang"] == "fr").count();
        assert!(french >= 1, "none in French for {context}");
    }
    let mut texts: Vec<&str> = Vec::new();
    for quote in &all {
        let field = |name: &str| quote[name].as_str().unwrap_or_default();
        assert!(CONTEXTS.contains(&field("context")), "{quote}");
        assert!(field("text").len() > 15 && field("philosopher").len() > 3, "{quote}");
        // The work, and within it the place: a number, a letter or a chapter's name.
        assert!(field("source").len() > 8 && !field("source").to_lowercase().contains("attributed"), "{quote}");
        texts.push(field("text"));
    }
    let count = texts.len();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), count, "a quote is there twice");
}

/// The quote that a request offers, if it does.
fn offered(prompt: &str) -> Option<String> {
    let rest = prompt.split("word for word, and beside your question: “").nth(1)?;
    Some(rest.rsplit_once("” (")?.0.to_owned())
}

#[test]
fn a_quote_is_offered_by_the_context_of_the_response_and_noted_where_it_is_used() {
    for (line, context) in [
        ("just tell me", "avoidance"),
        ("I have no idea, I'm lost", "overwhelm"),
        ("where should I start?", "strategy"),
        ("that didn't work", "defeat"),
        ("I have looked at it for hours", "perseverance"),
        ("je ne sais pas", "overwhelm"),
    ] {
        let desk = Desk::with(|what, request| {
            let quote = offered(&request.prompt()).filter(|_| what == For::Question)?;
            Some(format!("{quote} Which line have you looked at?"))
        });
        desk.session(&[line, "exit", ""]).exits(0);
        let session = desk.saved();
        let used = &session["transcript"][1]["quoteUsed"];
        assert_eq!(used["context"], context, "{line}: {session:#}");
        assert!(all().iter().any(|quote| quote["text"] == used["text"] && quote["source"] == used["source"]));
        assert_eq!(session["transcript"][0]["quoteUsed"], Value::Null);
    }
    // Offered is not used, and a plain answer is offered none.
    let desk = Desk::new();
    desk.session(&["I'm lost", "the key is old", "exit", ""]).exits(0);
    let questions = desk.asked(For::Question);
    assert!(offered(&questions[1].prompt()).is_some() && questions[1].prompt().contains("Only if it fits"));
    assert_eq!(offered(&questions[2].prompt()), None);
    assert_eq!(desk.saved()["transcript"][1]["quoteUsed"], Value::Null);
}
