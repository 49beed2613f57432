//! The promise: what the memory offers had a like cause. Measured on pairs of failures, 30 of the project's own and 30 by somebody
//! who has not seen the rules: what the rules are sure of, what they let a model judge, and what a strong model says of that.
//!
//! With `NIETZ_PAIR_PROMPTS=FOLDER` the prompts of the stranger's pairs are written there, without labels, for whoever plays the
//! model next; `pairs/verdicts.yaml` has what was said, and by whom.

use std::collections::BTreeSet;

use serde_json::Value;

use super::recall::with_flows;

/// How often what is offered is like, and how much of what is like is offered.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    like: usize,
    offers: usize,
    /// The like pasts of their pairs, and the unlike ones of theirs. Of other pairs' pasts nobody has said whether they are like.
    found: usize,
    wrong: usize,
}

/// The ids under a name; an empty list of Lua is an object.
fn ids<'a>(pair: &'a Value, name: &str) -> Vec<&'a str> {
    pair[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn figures<'a>(asked: &'a [Value], set: &str, offered: impl Fn(&'a Value) -> Vec<&'a str>) -> Figures {
    let mut figures = Figures::default();
    for pair in asked.iter().filter(|pair| pair["set"] == set) {
        let of_it = offered(pair);
        let own = of_it.iter().any(|id| pair["id"] == **id);
        let like = pair["label"] == "like";
        figures.offers += of_it.len();
        figures.like += usize::from(like);
        figures.found += usize::from(like && own);
        figures.wrong += usize::from(!like && own);
    }
    figures
}

/// What was said of the candidates of a failure: which were judged, and which of them are like.
struct Verdict<'a> {
    judged: BTreeSet<&'a str>,
    alike: Vec<&'a str>,
}

fn verdict<'a>(file: &'a Value, id: &str) -> Option<Verdict<'a>> {
    let said = file["verdicts"].as_array()?.iter().find(|said| said["now"] == id)?;
    let alike = said["alike"].as_array()?.iter().filter_map(|past| past["past"].as_str()).collect();
    Some(Verdict { judged: ids(said, "judged").into_iter().collect(), alike })
}

/// In how many runs the pairs are asked, each of which is short on a loaded machine, too.
const PARTS: usize = 6;

#[test]
fn pairs_of_failures_are_told_apart() {
    let env = with_flows("pairs", include_str!("pairs/ask.luau"));
    let mut asked: Vec<Value> = Vec::new();
    for part in 1..=PARTS {
        let (part, parts) = (part.to_string(), PARTS.to_string());
        let call = env.nietz(["run", "--json", "flows/pairs.lua", "--part", &part, "--parts", &parts]);
        let ended = call.var("NIETZ_RUN", &format!("part-{part}")).go().exits(0);
        asked.extend(ended.result()["asked"].as_array().expect("there are pairs").clone());
    }
    asked.sort_by_key(|pair| pair["id"].to_string());
    assert_eq!(asked.len(), 60);
    let file: Value = serde_yaml::from_str(include_str!("pairs/verdicts.yaml")).expect("it is YAML");
    assert!(file["model"].as_str().is_some_and(|name| name.starts_with("relay/")), "who played is told");
    for pair in &asked {
        let prompt = pair["prompt"].as_str().expect("there is a prompt");
        assert!(!prompt.contains("own-") && !prompt.contains("stranger-"), "a prompt gives nothing away: {prompt}");
        assert!(prompt.contains("`alike`: which of the past observations above (P1 to P"), "{prompt}");
        assert!(ids(pair, "candidates").len() <= 8, "candidates are few");
    }
    if let Some(folder) = std::env::var_os("NIETZ_PAIR_PROMPTS") {
        let of_strangers = asked.iter().filter(|pair| pair["set"] == "stranger");
        for (index, pair) in of_strangers.enumerate() {
            let path = std::path::Path::new(&folder).join(format!("{:02}.md", index + 1));
            std::fs::write(path, pair["prompt"].as_str().unwrap_or_default()).expect("it can be written");
        }
    }
    let sure = ["own", "stranger"].map(|set| figures(&asked, set, |pair| ids(pair, "offered")));
    let candidates = ["own", "stranger"].map(|set| figures(&asked, set, |pair| ids(pair, "candidates")));
    // What was judged and is no candidate any more is not offered, and a candidate that nobody judged counts as not confirmed.
    let judged = figures(&asked, "stranger", |pair| {
        let verdict = verdict(&file, pair["id"].as_str().unwrap_or_default()).expect("each was judged");
        let now = ids(pair, "candidates");
        verdict.alike.into_iter().filter(|id| verdict.judged.contains(id) && now.contains(id)).collect()
    });
    let of_known = |figures: &Figures| format!("{} of {}", figures.found, figures.found + figures.wrong);
    for (what, found) in [
        ("sure, own", &sure[0]),
        ("sure, stranger", &sure[1]),
        ("candidates, own", &candidates[0]),
        ("candidates, stranger", &candidates[1]),
        ("judged, stranger", &judged),
    ] {
        eprintln!(
            "{what}: {} of {} like ones are offered; of the offers with a label {} are like; {} offers are from other pairs",
            found.found,
            found.like,
            of_known(found),
            found.offers - found.found - found.wrong
        );
    }
    // Sure is what is never wrong here; the candidates hold nearly all; and of what a strong model confirms, nine tenths are like,
    // with four fifths of what there is.
    assert_eq!((sure[0].wrong, sure[1].wrong), (0, 0));
    assert!(sure[0].found >= 2 && sure[1].found >= 1, "{sure:?}");
    assert!(candidates[0].found >= 14 && candidates[1].found >= 13, "{candidates:?}");
    assert!(
        judged.found * 10 >= judged.like * 8 && judged.found * 10 >= (judged.found + judged.wrong) * 9,
        "{judged:?}"
    );
    assert_eq!(judged.like, 15);
}
