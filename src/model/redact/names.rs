//! Tells by their names which environment variables hold a secret.

/// A name that contains one of these holds a secret.
const PARTS: &[&str] =
    &["PASS", "TOKEN", "SECRET", "APIKEY", "API_KEY", "ACCESS_KEY", "CREDENTIAL", "PRIVATE_KEY", "JWT"];
/// A name of which one of these is a word, between underscores, holds a secret.
const WORDS: &[&str] = &["KEY", "PWD", "PAT", "DSN", "AUTH", "PW", "COOKIE"];
/// A name that ends with one of these holds a secret.
const ENDS: &[&str] = &["PWD", "DATABASE_URL", "DB_URL", "CONNECTION_STRING", "CONN_STR", "CONNSTR", "WEBHOOK_URL"];

/// A name that contains one of these has such a part for another reason, and holds no secret.
const OTHERS: &[&str] = &[
    "ASKPASS",
    "COMPASS",
    "BYPASS",
    "PASSENGER",
    "PASSIVE",
    "PASSTHROUGH",
    "PASSED",
    "TOKENIZER",
    "PUBLIC_KEY",
    "KEYBOARD",
    "KEYMAP",
    "PUBKEY",
    "FINGERPRINT",
    "AUTH_SOCK",
    "SECRETARY",
    "MAX_TOKENS",
    "TOKEN_LIMIT",
    "TOKENS_PER",
];
/// A name with one of these endings holds no secret, but something about one: where it is, whose it is, how long it is valid.
const ABOUT: &[&str] = &[
    "_FILE",
    "_PATH",
    "_DIR",
    "_URL",
    "_URI",
    "_ENDPOINT",
    "_HOST",
    "_ID",
    "_NAME",
    "_USER",
    "_USERNAME",
    "_TYPE",
    "_SOCK",
    "_SOCKET",
    "_COUNT",
    "_LENGTH",
    "_SIZE",
    "_TTL",
    "_EXPIRES",
    "_EXPIRY",
    "_EXPIRES_AT",
    "_ALGORITHM",
    "_ENABLED",
    "_MODE",
    "_METHOD",
    "_PROVIDER",
    "_VERSION",
    "_REGION",
];
/// These names never hold a secret.
const NONE: &[&str] = &["PWD", "OLDPWD", "GPG_KEY", "XAUTHORITY"];

/// Tells by the name whether the value of this variable is a secret; a number never is.
pub(super) fn holds_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let value = value.trim();
    let number = value.bytes().all(|byte| byte.is_ascii_digit() || b".,:-+".contains(&byte));
    if number || NONE.contains(&name.as_str()) || OTHERS.iter().any(|other| name.contains(other)) {
        return false;
    }
    if ENDS.iter().any(|end| name.ends_with(end)) {
        return true;
    }
    if ABOUT.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    PARTS.iter().any(|part| name.contains(part)) || name.split('_').any(|word| WORDS.contains(&word))
}

/// Tells whether a variable holds headers as `name=value,name=value`, each of which may be a key.
pub(super) fn holds_headers(name: &str) -> bool {
    name.to_ascii_uppercase().ends_with("_HEADERS")
}

/// Returns the password in a URL such as `postgres://user:password@host/db`.
pub(super) fn password_of(address: &str) -> Option<&str> {
    let authority = address.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken<'a>(environment: &'a [(&'a str, &'a str)]) -> Vec<&'a str> {
        environment.iter().filter(|(name, value)| holds_secret(name, value)).map(|(name, _)| *name).collect()
    }

    #[test]
    fn names_that_say_secret_are_taken() {
        for name in [
            "PGPASSWORD",
            "DATABASE_URL",
            "GITHUB_PAT",
            "TOKEN",
            "PASSWORD",
            "SECRET",
            "REDIS_PASS",
            "SMTP_PWD",
            "DBPWD",
            "SENTRY_DSN",
            "SECRET_KEY_BASE",
            "STRIPE_APIKEY",
            "SIGNING_PASSPHRASE",
            "NPM_CONFIG__AUTH",
            "OPENAI_KEY_2",
            "AZURE_CONNECTION_STRING",
            "OK_KEY",
            "npm_config__authtoken",
            "ACTIONS_RUNTIME_TOKEN",
            "SYSTEM_ACCESSTOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "CI_JOB_JWT_V2",
            "MYSQL_PWD",
            "SSHPASS",
            "RESTIC_PASSWORD",
            "GOOGLE_CREDENTIALS",
            "TF_VAR_db_password",
            "DJANGO_SECRET",
            "HEROKU_API_KEY",
            "PROD_DATABASE_URL",
        ] {
            assert!(holds_secret(name, "a-planted-value"), "{name}");
        }
    }

    /// The environments of a desktop (GNOME, kitty), of CI runners (GitHub, GitLab) and of containers (python, node), with
    /// typical values.
    #[test]
    fn what_else_is_in_an_environment_is_left_alone() {
        let desktop = [
            ("PWD", "/home/me/work"),
            ("OLDPWD", "/home/me/before"),
            ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
            ("XAUTHORITY", "/run/user/1000/.mutter-Xwaylandauth"),
            ("SSH_ASKPASS", "/usr/lib/ssh/ssh-askpass"),
            ("GIT_ASKPASS", "/usr/bin/ksshaskpass"),
            ("SUDO_ASKPASS", "/usr/bin/askpass"),
            ("GIT_AUTHOR_NAME", "Somebody Else"),
            ("GIT_AUTHOR_EMAIL", "somebody@example.org"),
            ("DESKTOP_SESSION", "gnome-wayland"),
            ("KITTY_PUBLIC_KEY", "1:8d7a#kd91+ls"),
            ("GNOME_KEYRING_CONTROL", "/run/user/1000/keyring"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
            ("SESSION_MANAGER", "local/host:@/tmp/.ICE-unix/2091"),
            ("XKB_DEFAULT_LAYOUT", "us,de,fr,ru"),
            ("COMPASS_HOME", "/opt/compass"),
            ("GPG_AGENT_INFO", "/run/user/1000/gnupg/S.gpg-agent:0:1"),
            ("KEYBOARD_LAYOUT", "english-us"),
            ("TERM_PROGRAM", "WezTerm"),
            ("XDG_SESSION_ID", "c2"),
            ("AWS_PROFILE", "development"),
            ("KEYTIMEOUT", "1"),
            ("HISTIGNORE", "pwd:exit:clear"),
        ];
        let runner = [
            ("GITHUB_ACTOR_ID", "12345678"),
            ("GITHUB_REPOSITORY", "somebody/something"),
            ("RUNNER_TOOL_CACHE", "/opt/hostedtoolcache"),
            ("GITHUB_SHA", "ffac537e6cbbf934b08745a378932722df287a53"),
            ("ACTIONS_ID_TOKEN_REQUEST_URL", "https://pipelines.example/x"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/secrets/token"),
            ("CI_SERVER_TLS_KEY_FILE", "/builds/x.tmp/KEY"),
            ("CI_COMMIT_AUTHOR", "Somebody Else <a@example.org>"),
            ("CI_DEPENDENCY_PROXY_USER", "gitlab-ci-token"),
            ("SECRETS_DIR", "/run/secrets-of-this"),
            ("TOKENIZERS_PARALLELISM", "disabled-here"),
            ("TOKEN_TTL", "86400 seconds"),
            ("GOOGLE_APPLICATION_CREDENTIALS_PATH", "/tmp/creds.json"),
            ("SECRET_COUNT", "123456789"),
            ("TOKEN_EXPIRES", "2026-01-09T10:30"),
            ("VAULT_ADDR", "https://vault.example:8200"),
            ("RUNNER_TRACKING_ID", "github_e1d9c0a4-7a53"),
            ("PASSENGER_APP_ENV", "production"),
        ];
        let container = [
            ("GPG_KEY", "E3FF2839C048B25C084DEBE9B26995E310250568"),
            ("PYTHON_SHA256", "8fb5f9fbc7609fa822cb31549884575db7fd9657"),
            ("NODE_VERSION", "22.11.0"),
            ("YARN_VERSION", "1.22.22"),
            ("HOSTNAME", "3f2504e04f89"),
            ("KUBERNETES_PORT", "tcp://10.0.0.1:443"),
            ("KUBERNETES_SERVICE_HOST", "10.96.0.1"),
            ("GOPATH", "/go/of/this/image"),
            ("JAVA_HOME", "/opt/java/openjdk"),
            ("POSTGRES_PASSWORD_FILE", "/run/secrets/pg"),
            ("LLM_MAX_TOKENS", "unlimited"),
            ("TOKEN_PORT", "12345678"),
        ];
        for environment in [&desktop[..], &runner, &container] {
            assert_eq!(taken(environment), Vec::<&str>::new());
        }
    }

    #[test]
    fn the_password_of_an_address_is_found() {
        assert_eq!(password_of("postgres://me:p%40ss@db:5432/x"), Some("p%40ss"));
        assert_eq!(password_of("redis://:abc@h"), Some("abc"));
        assert_eq!(password_of("https://token@h/a:b@c"), None);
        assert_eq!(password_of("no address"), None);
    }
}
