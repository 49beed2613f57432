//! The promise: what the program prints is what a reader was shown before. Whole outputs, with the paths of
//! this machine taken out; the bundled flows are left out, because this file names none of them.

use insta::assert_snapshot;

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Ended;

const SHORT: &str = include_str!("../support/flows/short.lua");
const COMMANDS: &str = include_str!("../support/flows/commands.lua");

fn env() -> (ModelServer, Env) {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let env = Env::with(&server).flow("short", SHORT).flow("commands", COMMANDS);
    (server, env)
}

/// Status and streams of a call, as one text.
fn whole(env: &Env, ended: &Ended) -> String {
    let mut text = format!("exit {}\n", ended.code.unwrap_or(-1));
    for (name, stream) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        if !stream.is_empty() {
            text.push_str(&format!("-- {name}\n{}", at_once(&env.normal(stream))));
        }
    }
    text
}

/// Takes the seconds out that a run took.
fn at_once(text: &str) -> String {
    let Some((before, after)) = text.split_once("done in ") else { return text.to_owned() };
    format!("{before}done in 0{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn call(env: &Env, arguments: &[&str]) -> String {
    whole(env, &env.nietz(arguments.iter().copied()).go())
}

fn run_short(env: &Env) -> Ended {
    env.nietz(["run", "--seed", "1", "--model", "openai/test", "short", "coffee"]).stdin("sugar\n").go()
}

#[test]
fn a_run_through_a_pipe_reads_as_the_conversation_did() {
    let (_server, env) = env();
    let ended = run_short(&env);
    assert_snapshot!(whole(&env, &ended), @r"
    exit 0
    -- stdout
    ? What else?
    > sugar
    Saved.
    -- stderr
    standard input answers the questions, a line each; `--answers -` says so and spares this line
    done in 0s · 1 call · 10 tokens in, 2 out · no price is known for openai/test
    ");
}

#[test]
fn runs_and_logs_tell_what_happened() {
    let (_server, env) = env();
    assert_snapshot!(call(&env, &["runs"]), @r"
    exit 0
    -- stdout
    no runs here yet: `nietz flows` shows what can be run
    ");
    run_short(&env).exits(0);
    env.nietz(["run", "--model", "openai/test", "short"]).var("NIETZ_RUN", "r2").go().exits(7);
    assert_snapshot!(call(&env, &["runs"]), @r"
    exit 0
    -- stdout
    RUN  FLOW   STATUS               CALLS  COST  STARTED           TOPIC
    r1   short  done                 1      -     2026-01-09 10:30  coffee
    r2   short  waits for an answer  1      -     2026-01-09 10:30  tea
    ");
    assert_snapshot!(call(&env, &["runs", "--json"]), @r#"
    exit 0
    -- stdout
    {"run":"r1","flow":"short","command":null,"topic":"coffee","status":"done","code":null,"started":"2026-01-09T10:30:00Z","parent":null,"tags":[],"calls":1,"usage":{"input":10,"output":2},"cost":null,"saved":null,"foreign":false,"failure":null,"verdict":null}
    {"run":"r2","flow":"short","command":null,"topic":"tea","status":"waiting","code":"answer-missing","started":"2026-01-09T10:30:00Z","parent":null,"tags":[],"calls":1,"usage":{"input":10,"output":2},"cost":null,"saved":null,"foreign":false,"failure":null,"verdict":null}
    "#);
    assert_snapshot!(call(&env, &["log", "r1"]), @r#"
    exit 0
    -- stdout
        1          run r1  short {"rounds":1,"topic":"coffee"} · nietz 0.1.0
        2 10:30:00 chat 3b846b52  openai/test, 1 messages: talk about coffee
        3 10:30:00   = 3b846b52  a reply (2 tokens)
        4 10:30:00 ask 44fb7218  What else?
        5 10:30:00   = 44fb7218  sugar
        6 10:30:00 say 54895f94  Saved.
        7 10:30:00 save 21af0f6f  notes {"slug":"first"}
        8 10:30:00   = 21af0f6f  notes/first.yaml
        9          end: done
    "#);
    // Digests are of files with the paths of this machine: they are not shown here.
    let json = call(&env, &["log", "r1", "--json"]);
    let shape: Vec<String> = json
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|line| format!("{} {} {}", line["seq"], line["type"], line["kind"]))
        .collect();
    assert_snapshot!(shape.join("\n"), @r#"
    1 "open" null
    2 "intent" "chat"
    3 "outcome" null
    4 "intent" "ask"
    5 "outcome" null
    6 "effect" "say"
    7 "intent" "save"
    8 "outcome" null
    9 "end" null
    "#);
    assert_snapshot!(call(&env, &["log", "r3"]), @r"
    exit 2
    -- stderr
    error[run-not-found]: there is no run `r3` here
    hint: did you mean `r1`?
    ");
    assert_snapshot!(call(&env, &["resume", "r1"]), @r"
    exit 0
    -- stderr
    this run was done already; nothing was done again
    done in 0s · 1 call · 10 tokens in, 2 out · no price is known for openai/test
    ");
}

#[test]
fn a_code_is_explained() {
    let (_server, env) = env();
    assert_snapshot!(call(&env, &["explain", "run-busy"]), @r"
    exit 0
    -- stdout
    # run-busy

    Another process is working on this run. Exit status 1.

    ## Why it happens

    - The run was started or resumed in another terminal, and goes on there.
    - A process that was stopped (Ctrl-Z) still holds the run.

    ## What to do

    - Go on in the other terminal, or end the process that the message names.
    - The lock goes with its process, so there is no file to delete after a crash.
    - `nietz runs` shows which runs there are and what each is doing.
    ");
    assert_snapshot!(call(&env, &["explain", "run-bsy"]), @r"
    exit 2
    -- stderr
    error[usage]: there is no error code and no word `run-bsy`
    hint: did you mean `run-busy`?
    ");
}

#[test]
fn a_word_is_explained() {
    let (_server, env) = env();
    assert_snapshot!(call(&env, &["explain", "replay", "source"]), @r"
    exit 0
    -- stdout
    replay source: the journal from which a run takes outcomes instead of causing effects.
    ");
    assert_snapshot!(call(&env, &["explain", "casette"]), @r"
    exit 2
    -- stderr
    error[usage]: there is no error code and no word `casette`
    hint: did you mean `cassette`?
    ");
    // Verbs and parts of words lead to the word that they belong to.
    let beside = [
        ("fault", "fault: "),
        ("hole", "hole: "),
        ("migrate", "version: "),
        ("notify", "notification: "),
        ("raised", "failure: "),
        ("foreign", "foreign run: "),
    ];
    for (word, told) in beside {
        let told_now = env.nietz(["explain", word]).go().exits(0).stdout;
        assert!(told_now.starts_with(told), "{word}: {told_now}");
    }
    let all = env.nietz(["explain", "words"]).go().exits(0).stdout;
    assert_eq!(all.trim_end(), include_str!("../../src/WORDS.md").trim_end());
}

#[test]
fn flows_are_listed_with_where_they_are() {
    let (_server, env) = env();
    let listed = env.nietz(["flows"]).go().exits(0);
    let own: Vec<String> = env
        .normal(&listed.stdout)
        .lines()
        .filter(|line| line.contains("/tmp/test"))
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" | "))
        .collect();
    assert_snapshot!(own.join("\n"), @r"
    commands | Has commands | /tmp/test/work/flows/commands.lua
    short | A call, a question and a document | /tmp/test/work/flows/short.lua
    ");
}

#[test]
fn documents_and_flows_are_checked_with_all_their_faults() {
    let (_server, env) = env();
    env.write("notes/good.yaml", "slug: good\nsaid: [one]\n");
    env.write("notes/bad.yaml", "slug: other\nsaid: one\nmood: fine\n");
    env.write("notes/broken.yaml", "slug: [\n");
    env.write("flows/odd.lua", "return require(\"@nietz\").flow { name = \"odd\", sumary = \"x\", run = print }\n");
    env.write("plain.txt", "nothing\n");
    assert_snapshot!(call(&env, &["check", "notes/good.yaml", "flows/short.lua"]), @r"
    exit 0
    -- stdout
    notes/good.yaml: valid
    flows/short.lua: valid
    ");
    assert_snapshot!(call(&env, &["check", "notes/bad.yaml"]), @r#"
    exit 4
    -- stdout
    error: must be "bad", as the file's name says; found "other"
     --> notes/bad.yaml:1:7
      |
    1 | slug: other
      |       ^^^^^ /slug

    error: must be a list; found "one"
     --> notes/bad.yaml:2:7
      |
    2 | said: one
      |       ^^^ /said

    error: "mood" is not known here
     --> notes/bad.yaml:3:1
      |
    3 | mood: fine
      | ^^^^ /mood
    "#);
    assert_snapshot!(call(&env, &["check", "notes/broken.yaml"]), @r"
    exit 4
    -- stdout
    error: unclosed bracket '['
     --> notes/broken.yaml:1:7
      |
    1 | slug: [
      |       ^
    ");
    assert_snapshot!(call(&env, &["check", "notes/bad.yaml", "--json"]), @r#"
    exit 4
    -- stdout
    {"file":"notes/bad.yaml","line":1,"column":7,"pointer":"/slug","message":"must be \"bad\", as the file's name says; found \"other\"","keyword":"key","severity":"error","code":"document-invalid"}
    {"file":"notes/bad.yaml","line":2,"column":7,"pointer":"/said","message":"must be a list; found \"one\"","keyword":"type","severity":"error","code":"document-invalid"}
    {"file":"notes/bad.yaml","line":3,"column":1,"pointer":"/mood","message":"\"mood\" is not known here","keyword":"additionalProperties","severity":"error","code":"document-invalid"}
    "#);
    assert_snapshot!(call(&env, &["check", "flows/odd.lua"]), @r#"
    exit 4
    -- stdout
    error[flow-invalid]: the manifest has 2 faults
      --> /tmp/test/work/flows/odd.lua:1
        |
      1 | return require("@nietz").flow { name = "odd", sumary = "x", run = print }
        |
      - nietz.flow has no field `sumary` (did you mean `summary`?)
      - nietz.flow needs a summary
    "#);
    assert_snapshot!(call(&env, &["check", "--as", "short:note", "notes/bad.yaml"]), @r"
    exit 2
    -- stderr
    error[usage]: short has no collection `note`
    hint: did you mean `notes`?
    ");
    assert_snapshot!(call(&env, &["check", "plain.txt"]), @r"
    exit 2
    -- stderr
    error[usage]: plain.txt belongs to no collection of any flow here
    hint: say which: nietz check --as FLOW:COLLECTION FILE
    ");
}

#[test]
fn a_flow_says_how_it_is_used() {
    let (_server, env) = env();
    assert_snapshot!(call(&env, &["run", "short", "--help"]), @r"
    exit 0
    -- stdout
    A call, a question and a document

    Usage: nietz run short [OPTIONS] [TOPIC]

    Arguments:
      [TOPIC]  What to talk about [default: tea]

    Options:
          --json                Write events as JSON lines; answers are read as JSON lines
          --answers <FILE>      Answer questions from this YAML or JSON file: question id to answer, or
                                to a list of answers; with `-`, from standard input, a line each
          --verbose             Show each request to a model and its reply, on standard error, without
                                secrets
          --thoughts            Show what models think also of those that must be asked for it
          --trust               Trust this folder with what it asks for, in this run alone: for CI
          --trace               Show where a flow that is not yours fails in its source, too
          --model <NAME>        The model for this run: `provider/model`, a provider, or an alias
          --effort <LEVEL>      How much models think, where the flow says nothing of it: none, minimal,
                                low, medium, high, xhigh or max
          --lang <LANG>         Language of the flow, two letters [default: from the locale]
          --seed <N>            Seed of local models and, with the run's name, of chance
          --plan                Show what the flow may do, with which models and within which limits,
                                and end
      -C, --workspace <FOLDER>  Work for this folder
      -h, --help                Print help

    Budget:
          --max-calls <N>    The most model calls
          --max-tokens <N>   The most tokens, of requests and replies together
          --max-cost <USD>   The most that the calls may cost, in US dollars
          --max-time <TIME>  The longest that this process may take: 90s, 10m, 1h30m

    Options of this flow:
          --rounds <INTEGER>  How often to ask [default: 1] [1 to 5]

    A text can come from elsewhere: `@FILE` is what stands in that file, and `-` what comes from
    standard input. Words that begin with `@` are written `\@…`, and a lone `-` is written `\-`.
    ");
    assert_snapshot!(call(&env, &["run", "commands", "--help"]), @r"
    exit 0
    -- stdout
    Has commands

    Usage: nietz run commands [OPTIONS]
           nietz run commands [OPTIONS] <COMMAND>

    Commands:
      count  Count up
      fail   Fail
      help   Print this message or the help of the given subcommand(s)

    Options:
          --json                Write events as JSON lines; answers are read as JSON lines
          --answers <FILE>      Answer questions from this YAML or JSON file: question id to answer, or
                                to a list of answers; with `-`, from standard input, a line each
          --verbose             Show each request to a model and its reply, on standard error, without
                                secrets
          --thoughts            Show what models think also of those that must be asked for it
          --trust               Trust this folder with what it asks for, in this run alone: for CI
          --trace               Show where a flow that is not yours fails in its source, too
          --model <NAME>        The model for this run: `provider/model`, a provider, or an alias
          --effort <LEVEL>      How much models think, where the flow says nothing of it: none, minimal,
                                low, medium, high, xhigh or max
          --lang <LANG>         Language of the flow, two letters [default: from the locale]
          --seed <N>            Seed of local models and, with the run's name, of chance
          --plan                Show what the flow may do, with which models and within which limits,
                                and end
      -C, --workspace <FOLDER>  Work for this folder
      -h, --help                Print help

    Budget:
          --max-calls <N>    The most model calls
          --max-tokens <N>   The most tokens, of requests and replies together
          --max-cost <USD>   The most that the calls may cost, in US dollars
          --max-time <TIME>  The longest that this process may take: 90s, 10m, 1h30m

    Options of this flow:
      -l, --loud  Say it loud
    ");
    assert_snapshot!(call(&env, &["run", "commands", "count", "--help"]), @r"
    exit 0
    -- stdout
    Count up

    Usage: nietz run commands count [OPTIONS] <TO>

    Arguments:
      <TO>  How far

    Options:
          --json                Write events as JSON lines; answers are read as JSON lines
          --answers <FILE>      Answer questions from this YAML or JSON file: question id to answer, or
                                to a list of answers; with `-`, from standard input, a line each
          --verbose             Show each request to a model and its reply, on standard error, without
                                secrets
          --thoughts            Show what models think also of those that must be asked for it
          --trust               Trust this folder with what it asks for, in this run alone: for CI
          --trace               Show where a flow that is not yours fails in its source, too
          --model <NAME>        The model for this run: `provider/model`, a provider, or an alias
          --effort <LEVEL>      How much models think, where the flow says nothing of it: none, minimal,
                                low, medium, high, xhigh or max
          --lang <LANG>         Language of the flow, two letters [default: from the locale]
          --seed <N>            Seed of local models and, with the run's name, of chance
          --plan                Show what the flow may do, with which models and within which limits,
                                and end
      -C, --workspace <FOLDER>  Work for this folder
      -h, --help                Print help

    Options of this flow:
          --style <STRING>  Digits [default: arabic] [possible values: roman, arabic]

    Budget:
          --max-calls <N>    The most model calls
          --max-tokens <N>   The most tokens, of requests and replies together
          --max-cost <USD>   The most that the calls may cost, in US dollars
          --max-time <TIME>  The longest that this process may take: 90s, 10m, 1h30m
    ");
}

#[test]
fn a_misspelt_word_is_answered_with_the_one_that_was_meant() {
    let (_server, env) = env();
    env.write("flows/odd.lua", "return require(\"@nietz\").flow { name = \"odd\", sumary = \"x\", run = print }\n");
    assert_snapshot!(call(&env, &["run", "shrot"]), @r"
    exit 2
    -- stderr
    error[flow-not-found]: there is no flow `shrot`
    hint: did you mean `short`?
    ");
    assert_snapshot!(call(&env, &["run", "short", "--ronds", "2"]), @r"
    exit 2
    -- stderr
    error: unexpected argument '--ronds' found

      tip: a similar argument exists: '--rounds'

    Usage: nietz run short --rounds <INTEGER> [TOPIC]

    For more information, try '--help'.
    ");
    assert_snapshot!(call(&env, &["run", "short", "--rounds", "9"]), @r"
    exit 2
    -- stderr
    error: invalid value '9' for '--rounds <INTEGER>': must be at most 5

    For more information, try '--help'.
    ");
    assert_snapshot!(call(&env, &["run", "commands", "cuont"]), @r"
    exit 2
    -- stderr
    error: unrecognized subcommand 'cuont'

      tip: a similar subcommand exists: 'count'

    Usage: nietz run commands [OPTIONS]
           nietz run commands [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert_snapshot!(call(&env, &["run", "odd"]), @r#"
    exit 4
    -- stderr
    error[flow-invalid]: the manifest has 2 faults
      --> /tmp/test/work/flows/odd.lua:1
        |
      1 | return require("@nietz").flow { name = "odd", sumary = "x", run = print }
        |
      - nietz.flow has no field `sumary` (did you mean `summary`?)
      - nietz.flow needs a summary
    "#);
    assert_snapshot!(call(&env, &["rnu", "short"]), @r"
    exit 2
    -- stderr
    error: unrecognized subcommand 'rnu'

      tip: a similar subcommand exists: 'runs'

    Usage: nietz [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn an_error_of_a_flow_shows_the_authors_line() {
    let (_server, env) = env();
    assert_snapshot!(call(&env, &["run", "commands", "fail"]), @r#"
    exit 1
    -- stderr
    error[flow-error]: it went wrong
      --> /tmp/test/work/flows/commands.lua:6
        |
      6 | 	error("it went wrong")
        |
      - called from flows/commands.lua:27, in `run`
    resume with: nietz resume r1
    "#);
}
