//! The promise: what the files of types say is told in the terminal and on a page, whole and the same.

use crate::support::env::Env;

#[test]
fn the_reference_is_there_by_name() {
    let env = Env::new();
    let list = env.nietz(["docs"]).go().exits(0).stdout;
    for part in ["pages:\n", "  permissions", "modules of the host API:\n", "  llm", "Model calls."] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let module = env.nietz(["docs", "llm"]).go().exits(0).stdout;
    assert!(module.contains("llm.chat(options: Chat): Reply") && !module.contains("export type"), "{module}");
    let one = env.nietz(["docs", "@nietz/ui.ask"]).go().exits(0).stdout;
    assert!(one.contains("### ui.ask\n") && one.contains("recap: string?") && !one.contains("ui.choose"), "{one}");
    assert!(env.nietz(["docs", "limits"]).go().exits(0).stdout.starts_with("# Limits"));
    let wrong = env.nietz(["docs", "llm.chatt"]).go().exits(2).stderr;
    assert!(wrong.contains("did you mean `nietz docs llm.chat`?"), "{wrong}");
}

#[test]
fn the_page_has_all_of_it_and_asks_for_nothing() {
    let env = Env::new();
    assert_eq!(env.nietz(["docs", "--html", "-o", "docs.html"]).go().exits(0).stdout.matches("wrote ").count(), 1);
    let page = env.read("docs.html");
    for part in
        ["id=\"llm\"", "id=\"llm-llm.chat\"", "id=\"permissions\"", "key-missing", "EMS", "nietz compare", "</html>"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("<link"), "it is one file");
    let hrefs = page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    for href in hrefs {
        let found = href.starts_with("https://")
            || href.strip_prefix('#').is_some_and(|id| page.contains(&format!("id=\"{id}\"")));
        assert!(found, "{href}");
    }
    assert_eq!(env.nietz(["docs", "--html"]).go().exits(0).stdout.trim_end(), page.trim_end());
    env.nietz(["docs", "llm", "--html"]).go().exits(2);
}

/// Every page of a shell that the reference shows names verbs that there are.
#[test]
fn the_lines_that_pages_tell_to_type_are_verbs_that_there_are() {
    let env = Env::new();
    let help = env.nietz(["--help"]).go().exits(0).stdout;
    let verbs: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let pages = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs")).expect("they are there");
    let mut seen = 0;
    for page in pages {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let blocks = text.split("```").skip(1).step_by(2);
        for line in blocks.flat_map(str::lines).filter(|line| line.starts_with("nietz ")) {
            let verb = line.split(' ').nth(1).unwrap();
            assert!(verbs.contains(&verb), "{verb}: {line}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}
