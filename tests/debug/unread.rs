//! What nobody has read is not shown: a verifier that says nothing usable, one that thinks for long, replies that were cut;
//! and what a verifier and a model that is asked again are told.

use serde_json::{Value, json};

use super::desk::{Desk, For, PROBLEM, all_of, purpose, said, says, usual};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

/// The longest reply that a request allows, in tokens.
fn room(request: &Request) -> u64 {
    ["max_tokens", "max_completion_tokens"].iter().find_map(|name| request.body[name].as_u64()).unwrap_or(u64::MAX)
}

/// A model that thinks so many tokens before a verdict, and counts them to its reply.
fn thinking(tokens: u64) -> Desk {
    let server = ModelServer::start(move |request| match purpose(request) {
        For::Verdict if room(request) <= tokens => Response::text("").reasoning(tokens).usage(900, tokens).too_long(),
        For::Verdict => Response::text(usual(request)).reasoning(tokens).usage(900, tokens + 40),
        _ => Response::text(usual(request)),
    });
    Desk { env: Env::with(&server), server }
}

fn is_own_question(question: &Value) -> bool {
    let file = include_str!("../../personas/intensities/nietzsche.md");
    file.contains(&format!("    - \"{}\"\n", question.as_str().expect("a text")))
}

#[test]
fn a_verdict_has_room_for_what_a_model_thinks_first() {
    let desk = thinking(450);
    desk.session(&["exit", ""]).exits(0);
    assert_eq!(desk.asked(For::Verdict).len(), 1);
    assert_eq!(desk.saved()["transcript"][0]["question"], "What did the log show at step 1?");
    // One that thinks longer than expected is asked once more, with more room.
    let longer = thinking(4200);
    longer.session(&["exit", ""]).exits(0);
    let rooms: Vec<u64> = longer.asked(For::Verdict).iter().map(room).collect();
    assert!(rooms.len() == 2 && rooms[0] >= 4000 && rooms[1] > 4200, "{rooms:?}");
    assert_eq!(longer.saved()["transcript"][0]["question"], "What did the log show at step 1?");
    for request in longer.server.requests() {
        assert!(room(&request) >= 4000, "{:?} has room for {} tokens", purpose(&request), room(&request));
    }
}

#[test]
fn a_reply_without_a_verdict_is_not_shown_and_that_is_said_once() {
    let mute = Desk::with(|what, _| (what == For::Verdict).then(|| "hm".to_owned()));
    let ended = mute.session(&["I look", "exit", ""]).exits(0);
    assert_eq!(mute.asked(For::Verdict).len(), 4, "each is asked for twice");
    for turn in [0, 1] {
        assert!(is_own_question(&mute.saved()["transcript"][turn]["question"]), "{:#?}", mute.saved());
    }
    assert!(!mute.saved().to_string().contains("What did the log show"));
    assert_eq!(said(&ended).matches("What nobody has read is not shown").count(), 1, "{}", said(&ended));
    let french = Desk::with(|what, _| (what == For::Verdict).then(|| "hm".to_owned()));
    let ended = french.talk(["le cache est périmé", "--lang", "fr"], &["quitter", ""]).exits(0);
    says(&ended, &["Ce que personne n'a relu n'est pas montré"]);
}

#[test]
fn a_question_that_was_cut_is_asked_for_again_with_more_room() {
    let server = ModelServer::start(|request| match purpose(request) {
        For::Question if room(request) < 10_000 => Response::text("What did the log").too_long(),
        _ => Response::text(usual(request)),
    });
    let desk = Desk { env: Env::with(&server), server };
    desk.session(&["exit", ""]).exits(0);
    assert_eq!(desk.saved()["transcript"][0]["question"], "What did the log show at step 1?");
    assert_eq!(desk.asked(For::Verdict).len(), 1, "what was cut is not judged");
}

#[test]
fn a_hard_rule_refuses_at_once_and_a_soft_one_is_a_hint_for_the_verifier() {
    const SOFT: &str = "A herd has no shepherd. The deploy never clears the entry. What did you see there?";
    let desk = Desk::asking(&["Delete the keys during the deploy. Do you see why?", SOFT]);
    desk.session(&["exit", ""]).exits(0);
    assert_eq!(desk.saved()["transcript"][0]["question"], SOFT, "the verifier found no leak");
    let verdicts = desk.asked(For::Verdict);
    assert_eq!(verdicts.len(), 1, "what a hard rule refused is not paid for");
    let prompt = verdicts[0].prompt();
    let from = prompt.find("Questions to check.").expect("there are hints");
    insta::assert_snapshot!(prompt[from..].trim_end(), @r#"
    Questions to check. Patterns raised them, which understand nothing; to most of them the answer is no:
    - "The deploy never clears the entry.": is it so that it states how the developer's code or system behaves, beyond what they have said and shown?
    - "A herd has no shepherd.": is it so that it states something that the developer did not say, beyond what they have said and shown?
    "#);
    // Where nobody else reads, the rules decide.
    let alone = Desk::asking(&[SOFT, "What did the log show?"]);
    alone.talk([PROBLEM, "--no-verifier"], &["exit", ""]).exits(0);
    assert_eq!(alone.saved()["transcript"][0]["question"], "What did the log show?");
}

/// Each reason stands in the prompt as a part of its sentence, with the words that were written and not what stood for them.
#[test]
fn the_reason_that_is_sent_back_holds_the_words_that_were_read() {
    const REFUSED: [&str; 10] = [
        "Could it be that the key never expires?",
        "The fix is to clear the key on deploy. Does that help?",
        "The cause is the missing expiry. Does that help?",
        "Delete the keys during the deploy. Do you see why?",
        "Un collègue dirait : « Vide la clé à chaque déploiement. » Que répondrais-tu ?",
        "Il faut vider la clé. Tu vois ?",
        "1. Clear the key.\n2. Deploy.\nWhich is first?",
        "```\nredis.expire(key, 60)\n```\nWhat is new here?",
        "Interesting.",
        "Would `cache.purge()` not be wiser?",
    ];
    let mut seen = String::new();
    for refused in REFUSED {
        let desk = Desk::with(move |what, request| {
            (what == For::Question && !all_of(request).contains("was not shown")).then(|| refused.to_owned())
        });
        desk.talk([PROBLEM, "--no-verifier"], &["exit", ""]).exits(0);
        let asked = desk.asked(For::Question);
        let prompt = asked.get(1).map_or_else(|| format!("{refused} was shown"), Request::prompt);
        assert!(
            !prompt.contains(". .")
                && !prompt.contains("..")
                && !["ncode", "icode", "kcode"].iter().any(|word| prompt.contains(word)),
            "{prompt}"
        );
        seen.push_str(prompt.split("Reply again").next().unwrap_or_default().trim_end());
        seen.push('\n');
    }
    insta::assert_snapshot!(seen, @r#"
    [That reply was not shown to the developer, because its question carries the cause ("Could it be that the key never expires?").
    [That reply was not shown to the developer, because it names the fix ("The fix is to clear the key on deploy.").
    [That reply was not shown to the developer, because it names the cause ("The cause is the missing expiry.").
    [That reply was not shown to the developer, because it tells what to change ("Delete the keys during the deploy.").
    [That reply was not shown to the developer, because it tells what to change ("« Vide la clé à chaque déploiement.").
    [That reply was not shown to the developer, because it says what should be ("Il faut vider la clé.").
    [That reply was not shown to the developer, because it lists steps to follow ("1. Clear the key.").
    [That reply was not shown to the developer, because it shows code that the developer did not write ("redis.expire(key, 60)").
    [That reply was not shown to the developer, because it asks nothing ("Interesting.").
    [That reply was not shown to the developer, because it brings in code or a name that the developer did not mention ("Would `cache.purge()` not be wiser?").
    "#);
    // A verifier's reason is a sentence, and becomes a part of one.
    let desk = Desk::with(|what, request| match what {
        For::Verdict if request.prompt().contains("step 1?") => {
            Some(json!({"evidence": "step 1", "leaks": true, "reason": "It takes the cause for granted.."}).to_string())
        }
        For::Question if all_of(request).contains("was not shown") => Some("Which key is old?".to_owned()),
        _ => None,
    });
    desk.session(&["exit", ""]).exits(0);
    assert!(desk.asked(For::Question)[1].prompt().contains("because it takes the cause for granted. Reply again"));
}

#[test]
fn judge_says_what_a_session_would_do_line_by_line_whatever_stands_in_it() {
    let lines = [
        json!({"id": "fence", "lang": "en", "context": PROBLEM, "reply": "```\nredis.expire(key)\n```\nSee?"}),
        json!({"id": "mute", "lang": "en", "context": PROBLEM, "reply": "Which key is mute?"}),
        json!({"id": "fr", "lang": "fr", "context": PROBLEM, "reply": "Le cache garde l'ancien prix. Tu vois ?"}),
    ];
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let desk = Desk::with(|what, request| match what {
        For::Verdict if request.prompt().contains("mute?") => Some("hm".to_owned()),
        For::Verdict => Some(json!({"evidence": "x", "leaks": true, "reason": "```\nIt names it."}).to_string()),
        _ => None,
    })
    .file("replies.jsonl", &file);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
    let call = |more: &[&'static str]| {
        let _ = std::fs::remove_dir_all(desk.env.path(".nietz"));
        let arguments = ["run", path, "--model", "openai/test", "judge", "replies.jsonl"];
        desk.env.nietz(arguments.into_iter().chain(more.iter().copied())).go().exits(0).stdout
    };
    let all = call(&[]);
    for line in all.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line} is no JSON in\n{all}");
    }
    insta::assert_snapshot!(all, @r#"
    {"id":"fence","reason":"it shows code that the developer did not write: redis.expire(key)","rule":"new-code","verdict":"leak"}
    {"id":"mute","reason":"the verifier said nothing usable, twice: not shown","rule":"unread","verdict":"leak"}
    {"id":"fr","reason":"```\nIt names it.","rule":"verifier","verdict":"leak"}
    "#);
    assert_eq!(call(&["--only-lang", "fr", "--no-verifier"]).lines().count(), 1);
}
