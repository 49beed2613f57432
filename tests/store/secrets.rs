//! The promise: a password comes from where it is kept, is shown nowhere, and goes to a server alone whose certificate is the team's own
//! authority's.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use crate::support::env::Env;
use crate::support::postgres::{Server, shared};

/// In pieces, because it looks like one.
const PASSWORD: [&str; 2] = ["planted-", "store-password-81c2"];
const HBA: &str = "local all all trust\nhostssl all secure 127.0.0.1/32 scram-sha-256\nhost all secure 127.0.0.1/32 reject\n\
                   host all all 127.0.0.1/32 trust\n";

/// Puts a file where the server's user reads it, and nobody else.
fn place(folder: &Path, name: &str, text: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("it can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    if rustix::process::geteuid().is_root() {
        // As which the server runs then.
        chown(&path, Some(65534), Some(65534)).expect("root may");
    }
    path.display().to_string()
}

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/tls").join(name);
    std::fs::read(path).expect("the sample is there")
}

#[test]
fn a_server_with_a_certificate_of_the_teams_own_authority_gets_the_password_from_its_keeper() {
    if shared().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let of = |name: &str, text: &[u8]| place(folder.path(), name, text);
    let settings = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", of("server.pem", &sample("server.pem"))),
        format!("ssl_key_file={}", of("server.key", &sample("server.key"))),
        format!("hba_file={}", of("hba.conf", HBA.as_bytes())),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let Some(server) = Server::start(&settings) else { return };
    let database = server.database();
    let password = PASSWORD.concat();
    let mut owner = database.session();
    owner.get(&format!("CREATE ROLE secure LOGIN PASSWORD '{password}'; SELECT nietz.admit(1, 'secure', 'asker')"));
    let port = database.url().rsplit(':').next().and_then(|rest| rest.split('/').next()).expect("a port").to_owned();
    let url = |host: &str| {
        format!("postgres://secure@{host}:{port}/{}?hostaddr=127.0.0.1&sslmode=verify-full", database.name)
    };
    let named = url("models.company.test");
    let ca = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/tls/ca.pem");
    let trusting = |env: Env| env.var("SSL_CERT_FILE", &ca.display().to_string());
    let configured =
        |url: &str, how: &str| Env::new().config(&format!("store: {{url: '{url}', workspace: team, {how}}}\n"));
    let status = |env: &Env| env.nietz(["store", "status"]).go();

    let printed = trusting(configured(&named, &format!("key_command: [echo, {password}]")));
    let said = status(&printed).exits(0);
    assert!(said.stdout.contains("secure"), "{said:?}");
    let file = folder.path().join("password");
    std::fs::write(&file, format!("{password}\n")).expect("it can be written");
    let kept = trusting(configured(&named, &format!("password_file: {}", file.display())));
    status(&kept).exits(0);
    // As a unit of systemd has it.
    let by_variable = trusting(Env::new())
        .var("NIETZ_STORE", &named)
        .var("NIETZ_STORE_WORKSPACE", "team")
        .var("NIETZ_STORE_PASSWORD_FILE", &file.display().to_string());
    status(&by_variable).exits(0);

    // Nobody is trusted who only has the name, or another one.
    let untrusted = status(&configured(&named, &format!("key_command: [echo, {password}]")));
    assert_eq!(untrusted.code, Some(3), "{untrusted:?}");
    let other = status(&trusting(configured(&url("db.company.test"), &format!("key_command: [echo, {password}]"))));
    assert_eq!(other.code, Some(3), "{other:?}");
    let wrong = status(&trusting(configured(&named, "key_command: [echo, another-password]")));
    assert_eq!(wrong.code, Some(5), "{wrong:?}");
    let none = status(&trusting(configured(&named, "key_command: ['false']")));
    assert_ne!(none.code, Some(0), "{none:?}");
    for ended in [said, untrusted, other, wrong, none] {
        assert!(
            !format!("{ended:?}").contains(&password) && !format!("{ended:?}").contains("another-password"),
            "{ended:?}"
        );
    }
    // A file that others can write is nobody's word.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
    let refused = status(&kept);
    assert!(refused.code != Some(0) && !refused.stderr.contains(&password), "{refused:?}");
}
