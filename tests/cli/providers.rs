//! The promise to users of today's models: each bundled flow comes to its end with each generation of them, at the provider's own
//! address, on a server that refuses what the provider refuses, and nothing is refused. The table of `src/docs/models.md` says what was shown;
//! here a part of it is shown, and the whole with `NIETZ_TEST_WHOLE` (`.ci/long providers`).
//!
//! The program is not told that it is tested: it asks for `https://api.openai.com` by name, and a proxy and an authority of the
//! usual variables lead it to the server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::shots::basics::{CHECK, divided};
use crate::support::env::{Env, KEY};
use crate::support::git::init;
use crate::support::model_server::strict::{Provider, Seen, Strict};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;
use crate::support::tls::{Between, sample};
use crate::{brainstorm, council, debug, debug_memory};

/// How a user comes to a provider: its name, the variables, and what `config.yaml` says of it. `{server}` is the server's address.
struct Access {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    config: &'static str,
}

const fn by_key(name: &'static str, variables: &'static [(&'static str, &'static str)]) -> Access {
    Access { name, variables, config: "" }
}

fn access(provider: Provider) -> Access {
    match provider {
        Provider::OpenAi41 | Provider::Responses => by_key("openai", &[("OPENAI_API_KEY", KEY)]),
        Provider::OpenAi => Access { config: "openai: {wire: openai}", ..by_key("openai", &[("OPENAI_API_KEY", KEY)]) },
        Provider::Anthropic45 | Provider::Anthropic5 | Provider::Anthropic => {
            by_key("anthropic", &[("ANTHROPIC_API_KEY", KEY)])
        }
        Provider::Gemini => by_key("gemini", &[("GEMINI_API_KEY", KEY)]),
        Provider::DeepSeek => by_key("deepseek", &[("DEEPSEEK_API_KEY", KEY)]),
        Provider::Xai => by_key("xai", &[("XAI_API_KEY", KEY)]),
        Provider::Groq => by_key("groq", &[("GROQ_API_KEY", KEY)]),
        Provider::OpenRouter => by_key("openrouter", &[("OPENROUTER_API_KEY", KEY)]),
        Provider::Mistral => Access {
            config: "mistral: {base_url: 'https://api.mistral.ai/v1', key_env: MISTRAL_API_KEY}",
            ..by_key("mistral", &[("MISTRAL_API_KEY", KEY)])
        },
        Provider::Ollama => by_key("ollama", &[("OLLAMA_HOST", "{server}")]),
        Provider::LlamaCpp => Access { config: "llama: {base_url: 'http://{server}/v1'}", ..by_key("llama", &[]) },
        Provider::Azure | Provider::AzureOwnNames => by_key(
            "azure",
            &[("AZURE_OPENAI_ENDPOINT", "https://nietz-test.openai.azure.com"), ("AZURE_OPENAI_API_KEY", KEY)],
        ),
        Provider::Bedrock => by_key("bedrock", &[("AWS_REGION", "us-east-1"), ("AWS_BEARER_TOKEN_BEDROCK", KEY)]),
        Provider::BedrockClaude => Access {
            config: "claude: {base_url: 'https://bedrock-runtime.us-east-1.amazonaws.com/anthropic', wire: anthropic, \
                     key_env: AWS_BEARER_TOKEN_BEDROCK, key_header: authorization}",
            ..by_key("claude", &[("AWS_BEARER_TOKEN_BEDROCK", KEY)])
        },
    }
}

/// A bundled flow with a session of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Brainstorm,
    Council,
    Debug,
    Shots,
    DebugMemory,
}

const FLOWS: [(Flow, &str); 5] = [
    (Flow::Brainstorm, "brainstorm"),
    (Flow::Council, "council"),
    (Flow::Debug, "debug"),
    (Flow::Shots, "shots-on-goal"),
    (Flow::DebugMemory, "debug-memory"),
];

impl Flow {
    /// What stands in for the models: it answers by what it is asked.
    fn script(self, models: [&'static str; 2]) -> Box<dyn Fn(&Request) -> Response + Send + Sync> {
        match self {
            Flow::Brainstorm => {
                let brain = brainstorm::model::Brain::default();
                Box::new(move |request| Response::text(brain.reply(request).to_string()))
            }
            Flow::Council => {
                let brain = council::model::Brain::default();
                Box::new(move |request| brain.answer(request).usage(100, 50))
            }
            Flow::Debug => Box::new(|request| Response::text(debug::desk::usual(request))),
            // The script knows its models as `a` and `b`.
            Flow::Shots => Box::new(move |request| {
                let mut request = request.clone();
                request.body["model"] = if request.body["model"] == models[0] { "b" } else { "a" }.into();
                divided(&request)
            }),
            Flow::DebugMemory => Box::new(debug_memory::edits("work.txt", &[("todo", "done")])),
        }
    }

    /// The member of its result that says how it ended, and what that is where it came to what it is for.
    fn good_end(self) -> (&'static str, &'static str) {
        match self {
            Flow::Brainstorm | Flow::Council => ("status", "completed"),
            Flow::Debug => ("outcome", "solved"),
            Flow::Shots => ("status", "success"),
            Flow::DebugMemory => ("status", "passed"),
        }
    }

    /// Takes the flow to its end with two models, the first the one that it is run with.
    fn run(self, env: Env, models: [&str; 2]) -> Ended {
        let [model, other] = models;
        let lines = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        match self {
            Flow::Brainstorm => {
                use brainstorm::table::{FULL, MORE, TOPIC};
                let said = ["", FULL, "party", "", "", "party exit", MORE, "panel", "", "panel exit", "finish"];
                env.run_on(model, ["brainstorm", TOPIC, "--no-clarify"]).stdin(lines(&said)).go()
            }
            Flow::Council => env.run_on(model, ["council", council::table::REQUEST, "--no-pause", "--control"]).go(),
            Flow::Debug => {
                let said = [
                    "src/price.py:2 reads it",
                    "the log shows an old key",
                    "found it",
                    "",
                    "look at the age of the key",
                ];
                env.run_on(model, ["debug", debug::desk::PROBLEM]).stdin(lines(&said)).go()
            }
            Flow::Shots => {
                let env = env
                    .file("work.txt", "one\ntodo\nthree\n")
                    .file("check.sh", "grep -q '^done$' work.txt && echo fine\n")
                    .file("big/README", "read me\n");
                init(&env.workspace());
                let goal = ["--validate", CHECK, "--run", "grep", "say done in work.txt"];
                let shot = env.run_on(model, ["shots-on-goal", "--model-a", other, "--model-b", model]);
                shot.args(goal).go()
            }
            Flow::DebugMemory => {
                let check = "echo 1..1\nif grep -q done work.txt; then echo 'ok 1 - work'; else echo 'not ok 1 - work'; exit 1; fi\n";
                let env = env.file("work.txt", "one\ntodo\n").file("check.sh", check);
                init(&env.workspace());
                env.run_on(model, ["debug-memory", "--test", "sh check.sh"]).go()
            }
        }
    }
}

/// An environment in which this provider is reached at its own address, or on this machine if it has none.
fn env(provider: Provider, server: &ModelServer) -> Env {
    let access = access(provider);
    let filled = |text: &str| text.replace("{server}", &server.address().to_string());
    let tls = Between::providers(server.address());
    let proxy = Between::proxy(tls.address);
    let retry = "retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}";
    let config = format!("models: {{{retry}, providers: {{{}}}}}\n", filled(access.config));
    let env = Env::new()
        .without("OPENAI_API_KEY")
        .without("OPENAI_BASE_URL")
        .var("HTTPS_PROXY", &format!("http://{}", proxy.address))
        .var("SSL_CERT_FILE", &sample("providers-ca.pem").display().to_string())
        .config(&config);
    access.variables.iter().fold(env, |env, (name, value)| env.var(name, &filled(value)))
}

/// Runs a flow with a provider's models, and says what was shown, as a cell of the table has it, or what is wrong.
fn cell(provider: Provider, flow: Flow) -> Result<(String, BTreeSet<&'static str>), String> {
    let rules = provider.rules();
    let strict = Strict::new(provider).at_home();
    let seen = strict.seen();
    let server = ModelServer::start(strict.before(flow.script(rules.models)));
    let name = access(provider).name;
    let [model, other] = rules.models.map(|model| format!("{name}/{model}"));
    let ended = flow.run(env(provider, &server), [&model, &other]);
    let seen = std::mem::take(&mut *seen.lock().expect("nobody panics while it is held"));
    let told: Vec<String> =
        ended.of_type("notice").iter().map(|event| event["text"].as_str().unwrap_or_default().to_owned()).collect();
    let mut wrong = seen.wrong.clone();
    if learns(provider) {
        wrong.extend(not_learnt(&seen, &told, name));
    } else {
        wrong.extend(seen.refused.iter().map(|words| format!("refused: {words}")));
    }
    let last = ended.events().pop().unwrap_or_default();
    let (member, end) = flow.good_end();
    if ended.code != Some(0) || last["result"][member] != end {
        wrong.push(format!("exit {:?}: {last} {}", ended.code, ended.stderr));
    }
    if !wrong.is_empty() {
        let mut said = BTreeSet::new();
        wrong.retain(|one| said.insert(one.clone()));
        return Err(format!("{} · {flow:?} ({} calls)\n  {}", rules.name, server.calls(), wrong.join("\n  ")));
    }
    let shown = [("S", seen.schemas), ("T", seen.tools), ("F", seen.streams)];
    let letters = shown.map(|(letter, calls)| if calls > 0 { letter } else { "-" });
    Ok((letters.join(" "), seen.ways))
}

/// What nobody can know, of a provider of one's own and of a name of one's own, is learnt.
fn learns(provider: Provider) -> bool {
    matches!(provider, Provider::AzureOwnNames | Provider::Mistral | Provider::BedrockClaude)
}

/// What was refused of what nobody could know, and was not learnt and told once for each model.
fn not_learnt(seen: &Seen, told: &[String], provider: &str) -> Option<String> {
    let kinds: BTreeSet<&String> = seen.refused.iter().collect();
    let told: Vec<&String> = told.iter().filter(|text| text.contains(&format!("{provider}/"))).collect();
    let once: BTreeSet<&&String> = told.iter().collect();
    let models = 2;
    let learnt = once.len() == told.len() && kinds.len() <= told.len() && told.len() <= models * kinds.len();
    (!learnt).then(|| format!("refused and told otherwise: {:#?} {told:#?}", seen.refused))
}

const PAGE: &str = include_str!("../../src/docs/models.md");

/// The rows of the page's table: the name of a server, how schemas are asked for there, and a cell for each flow.
fn rows() -> Vec<Vec<&'static str>> {
    let (_, table) =
        PAGE.split_once("\n| by documentation of 2026-11-23, not tried on the provider |").expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Shows the cells of a flow: those of the diagonal, or all.
fn show(flow: Flow) {
    let whole = std::env::var_os("NIETZ_TEST_WHOLE").is_some();
    let column = FLOWS.iter().position(|(one, _)| *one == flow).expect("it is one of them");
    // Of five flows in a row, three: each server has three of them.
    let chosen = |row: usize| whole || (row + 2 * column) % 5 < 3;
    let providers = Provider::ALL.iter().enumerate().filter(|(row, _)| chosen(*row)).map(|(_, provider)| *provider);
    let open = Arc::new(Mutex::new(providers.collect::<Vec<_>>()));
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let work = || {
        while let Some(provider) = { open.lock().expect("nobody panics while it is held").pop() } {
            let name = provider.rules().name;
            let told = match cell(provider, flow) {
                Err(told) => told,
                Ok((letters, ways)) => {
                    let row = rows().into_iter().find(|row| row[0] == name).unwrap_or_default();
                    let (said, known) = (row.get(2 + column).copied(), row.get(1).copied().unwrap_or_default());
                    let strange: Vec<_> = ways.into_iter().filter(|way| !known.contains(way)).collect();
                    if said == Some(letters.as_str()) && strange.is_empty() {
                        continue;
                    }
                    format!(
                        "{name} · {flow:?}: the page says {said:?}, and {letters:?} was shown; schemas: {strange:?}"
                    )
                }
            };
            wrong.lock().expect("nobody panics while it is held").push(told);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let wrong = wrong.lock().expect("nobody panics while it is held");
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_brainstorm_ends_with_the_models_of_each_provider() {
    show(Flow::Brainstorm);
}

#[test]
fn a_council_ends_with_the_models_of_each_provider() {
    show(Flow::Council);
}

#[test]
fn a_debugging_session_ends_with_the_models_of_each_provider() {
    show(Flow::Debug);
}

#[test]
fn shots_on_goal_end_with_the_models_of_each_provider() {
    show(Flow::Shots);
}

#[test]
fn a_debug_memory_ends_with_the_models_of_each_provider() {
    show(Flow::DebugMemory);
}

#[test]
fn an_effort_is_said_to_each_provider_in_a_way_that_it_takes() {
    let mut wrong = Vec::new();
    for provider in Provider::ALL {
        for effort in ["none", "minimal", "low", "medium", "high", "xhigh", "max"] {
            let rules = provider.rules();
            let strict = Strict::new(provider).at_home();
            let seen = strict.seen();
            let server = ModelServer::start(strict.before(|_| Response::text("hello")));
            let model = format!("{}/{}", access(provider).name, rules.models[0]);
            let env = env(provider, &server);
            let ended = env.nietz(["run", "ask", "Who?", "--model", &model, "--effort", effort]).go();
            let seen = std::mem::take(&mut *seen.lock().expect("nobody panics while it is held"));
            if ended.code != Some(0) || !(seen.refused.is_empty() || learns(provider)) {
                wrong.push(format!("{} · {effort}: {:?} {}", rules.name, seen.refused, ended.stderr));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_table_of_the_readme_has_each_server_and_each_flow() {
    let names: Vec<&str> = rows().iter().map(|row| row[0]).collect();
    assert_eq!(names, Provider::ALL.map(|provider| provider.rules().name));
    let head = PAGE.lines().find(|line| line.starts_with("| by documentation of")).expect("the table");
    let flows: Vec<&str> = head.trim_matches('|').split('|').map(str::trim).skip(2).collect();
    assert_eq!(flows, FLOWS.map(|(_, name)| name));
    // Each server is shown by three flows at least, and each flow by three servers, wherever tests run.
    for row in 0..Provider::ALL.len() {
        assert_eq!((0..FLOWS.len()).filter(|column| (row + 2 * column) % 5 < 3).count(), 3);
    }
}
