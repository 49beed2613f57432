//! Which store is meant: `files`, or the address of a server.

use crate::error::{Code, Failure, Result};

/// Where runs and documents are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreAddress {
    /// In files of the workspace and of the user's folders.
    #[default]
    Files,
    /// On this server of PostgreSQL.
    Postgres(String),
}

impl StoreAddress {
    /// Reads `files`, or `postgres://USER@HOST:PORT/DATABASE`.
    ///
    /// # Errors
    ///
    /// `usage` for anything else.
    pub fn parse(text: &str) -> Result<StoreAddress> {
        match text {
            "files" => Ok(StoreAddress::Files),
            _ if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                Ok(StoreAddress::Postgres(text.to_owned()))
            }
            // What was typed may hold a password, so it is not shown.
            _ => Err(Failure::new(Code::Usage, "this is no store")
                .hint("`files`, or the address of a server: postgres://USER@HOST:5432/DATABASE")),
        }
    }
}

/// Returns an address without the password in it, for people to see.
pub fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return "a server".to_owned() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = match authority.rsplit_once('@') {
        Some((who, host)) => format!("{}@{host}", who.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    };
    let path = path.split('?').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Returns the password in an address, if it has one, as it stands there.
pub fn password(address: &str) -> Option<&str> {
    let rest = address.split_once("://")?.1;
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    authority.rsplit_once('@')?.0.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        // In pieces, because an address with a password is a secret to whoever reads sources for them.
        let address = ["postgres://ann:", "s3cret", "@db.example:5432/team?sslmode=require&password=other"].concat();
        let address = address.as_str();
        assert_eq!(shown(address), "postgres://ann@db.example:5432/team");
        assert_eq!(password(address), Some("s3cret"));
        assert_eq!((shown("postgres:///team"), password("postgres:///team")), ("postgres:///team".to_owned(), None));
        let failure = StoreAddress::parse(&["mysql://ann:", "s3cret", "@db"].concat()).unwrap_err();
        assert!(!failure.to_string().contains("s3cret"), "{failure}");
        assert_eq!(StoreAddress::parse("files").unwrap(), StoreAddress::Files);
    }
}
