//! The adapter with shell scripts as children: they die, hang, or obey.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{EngineSettings, LocalModelAdapter};
use crate::error::Code;
use crate::host::llm::local::catalogue::Model;
use crate::host::llm::local::local_model::LocalModel;
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatRequest, Message, Role};

/// Runs a script as the child, after it has answered the order to load. The script may leave files beside `$0`.
fn scripted(script: &str) -> (LocalModelAdapter, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("toy.gguf"), b"x").expect("writable");
    let toy = Model {
        name: "toy".into(),
        about: String::new(),
        default: false,
        file: "toy.gguf".into(),
        bytes: 1,
        sha256: String::new(),
        licence: String::new(),
        https: String::new(),
        wheels: Vec::new(),
    };
    let script = format!("PATH=/usr/bin:/bin\nread load; echo '\"loaded\"'\n{script}");
    let name = dir.path().join("mark").display().to_string();
    let settings = EngineSettings {
        arguments: vec!["-c".into(), script, name],
        ..EngineSettings::new(dir.path(), Path::new("/bin/sh"))
    };
    (LocalModelAdapter::new(LocalModel::Known(Box::leak(Box::new(toy))), settings, |_| ()), dir)
}

/// Begins a call and drops it once the child has written `noted`.
async fn dropped_after(models: &LocalModelAdapter, dir: &tempfile::TempDir, noted: &str) {
    let mark = dir.path().join("mark");
    let seen = async {
        while !std::fs::read_to_string(&mark).is_ok_and(|notes| notes.contains(noted)) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let chat_request = request();
    let mut ignore = |_: CallEvent<'_>| ();
    tokio::select! {
        outcome = models.chat(&chat_request, &mut ignore) => panic!("the call ended: {outcome:?}"),
        () = seen => {}
    }
}

fn done(id: u64, text: &str) -> String {
    format!(
        r#"echo '{{"done":{{"id":{id},"reply":{{"text":"{text}","usage":{{"input":1,"output":1}},"model":"toy","finish":"stop"}},"crowded":false}}}}'"#
    )
}

fn request() -> ChatRequest {
    let content = "x".into();
    ChatRequest {
        model: "local/toy".into(),
        system: None,
        messages: vec![Message {
            attachments: Vec::new(),
            role: Role::User,
            content,
            state: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }],
        schema: None,
        tools: Vec::new(),
        tool_choice: None,
        max_tokens: None,
        temperature: None,
        top_p: None,
        stop: Vec::new(),
        provider_options: serde_json::Map::new(),
        seed: None,
        effort: None,
    }
}

#[tokio::test]
async fn a_child_that_dies_fails_its_call_and_the_next_call_has_another() {
    let (models, _dir) = scripted(&format!(
        "read chat; if [ -e $0 ]; then {}; read more; else : > $0; echo boom >&2; kill -9 $$; fi",
        done(2, "hi")
    ));
    let failure = models.chat(&request(), &mut |_| ()).await.expect_err("it died");
    assert_eq!(failure.code, Code::ModelBroken);
    assert!(failure.details.iter().any(|detail| detail.contains("boom")), "{failure:?}");
    assert_eq!(models.chat(&request(), &mut |_| ()).await.expect("another child").text, "hi");
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_the_child_is_kept_when_it_stops_in_time() {
    let (models, dir) = scripted(&format!(
        "echo start >> $0; read chat; echo asked >> $0; read cancel; echo $cancel >> $0; echo '{{\"cancelled\":{{\"id\":1}}}}'; \
         read chat; {}; read more",
        done(2, "next")
    ));
    dropped_after(&models, &dir, "asked").await;
    assert_eq!(models.chat(&request(), &mut |_| ()).await.expect("the same child").text, "next");
    let seen = std::fs::read_to_string(dir.path().join("mark")).expect("the script's notes");
    assert_eq!(seen, "start\nasked\n{\"cancel\":{\"id\":1}}\n");
}

#[tokio::test]
async fn a_child_that_does_not_stop_is_killed_and_replaced() {
    let (models, dir) = scripted(&format!(
        "read chat; if [ -e $0 ]; then {}; read more; else echo $$ > $0; while :; do sleep 1; done; fi",
        done(2, "another")
    ));
    dropped_after(&models, &dir, "\n").await;
    let started = Instant::now();
    assert_eq!(models.chat(&request(), &mut |_| ()).await.expect("another child").text, "another");
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    let pid = std::fs::read_to_string(dir.path().join("mark")).expect("the script's notes");
    assert!(!Path::new("/proc").join(pid.trim()).join("exe").exists(), "the first child is still there");
}

#[tokio::test]
async fn calls_side_by_side_take_turns_and_hear_only_their_own_pieces() {
    let (models, _dir) = scripted(&format!(
        "read chat; echo '{{\"delta\":{{\"id\":1,\"text\":\"a\"}}}}'; {}; \
         read chat; echo '{{\"delta\":{{\"id\":1,\"text\":\"late\"}}}}'; \
         echo '{{\"delta\":{{\"id\":2,\"text\":\"b\"}}}}'; {}; read more",
        done(1, "a"),
        done(2, "b")
    ));
    let (mut one, mut two) = (String::new(), String::new());
    let mut hear_one = |event: CallEvent<'_>| one.push_str(&format!("{event:?}"));
    let mut hear_two = |event: CallEvent<'_>| two.push_str(&format!("{event:?}"));
    let (asked_one, asked_two) = (request(), request());
    let (first, second) = tokio::join!(models.chat(&asked_one, &mut hear_one), models.chat(&asked_two, &mut hear_two));
    assert_eq!((first.expect("answered").text, second.expect("answered").text), ("a".into(), "b".into()));
    assert_eq!((one.as_str(), two.as_str()), ("Delta(\"a\")", "Delta(\"b\")"));
}

#[tokio::test]
async fn a_call_whose_prompt_is_read_or_that_waits_for_its_turn_gives_signs_of_life() {
    let (models, dir) = scripted(&format!(
        "read chat; echo '{{\"alive\":{{\"id\":1}}}}'; while ! [ -e $0 ]; do sleep 0.01; done; {}; read chat; {}; read more",
        done(1, "a"),
        done(2, "b")
    ));
    let mark = dir.path().join("mark");
    let (mut read, mut waited) = (0, 0);
    let mut hear_one = |event: CallEvent<'_>| read += usize::from(event == CallEvent::Alive);
    let mut hear_two = |event: CallEvent<'_>| {
        waited += usize::from(event == CallEvent::Alive);
        // The first is answered only when the second has waited long enough to say so.
        std::fs::write(&mark, "").expect("writable");
    };
    let (asked_one, asked_two) = (request(), request());
    let (first, second) = tokio::join!(models.chat(&asked_one, &mut hear_one), models.chat(&asked_two, &mut hear_two));
    assert_eq!((first.expect("answered").text, second.expect("answered").text), ("a".into(), "b".into()));
    assert_eq!(read, 1);
    assert!(waited > 0);
}
