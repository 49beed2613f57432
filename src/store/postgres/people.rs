//! Who may do what in a workspace, what the team trusts, and what it may use in a day.

use super::Server;
use crate::error::Result;

/// A limit of a day, by what it limits; without a number there is none. And what was used of it today.
pub(crate) struct DayLimit {
    pub(crate) name: &'static str,
    pub(crate) limit: Option<String>,
    pub(crate) used: String,
}

/// What a role may do.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) role: String,
    pub(crate) kind: String,
    /// Whether it signs off what the team trusts and may use.
    pub(crate) signs: bool,
}

impl Server {
    /// Makes the workspace, if it is not there.
    ///
    /// # Errors
    ///
    /// `store-refused` for anybody but the schema's owner; here and below also those of the connection.
    pub(crate) fn make_workspace(&self) -> Result<()> {
        self.connection.query("SELECT nietz.workspace($1, true)", &[&self.name]).map(drop)
    }

    /// Returns the role that this process is, and the workspaces that it sees.
    pub(crate) fn seen_workspaces(&self) -> Result<(String, Vec<String>)> {
        let me = self.connection.one("SELECT session_user::text", &[])?.get(0);
        let rows = self.connection.query("SELECT name FROM nietz.workspace ORDER BY name", &[])?;
        Ok((me, rows.iter().map(|row| row.get(0)).collect()))
    }

    /// Returns who may do what here.
    pub(crate) fn members(&self) -> Result<Vec<Member>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT role::text, kind, signs FROM nietz.member WHERE workspace = $1 ORDER BY role, kind",
            &[&workspace],
        )?;
        Ok(rows.iter().map(|row| Member { role: row.get(0), kind: row.get(1), signs: row.get(2) }).collect())
    }

    /// Returns how many runs there are of each status.
    pub(crate) fn counts(&self) -> Result<Vec<(String, i64)>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT status, count(*) FROM nietz.run WHERE workspace = $1 GROUP BY status ORDER BY status",
            &[&workspace],
        )?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Lets a role in.
    pub(crate) fn admit(&self, role: &str, kind: &str, signs: bool) -> Result<()> {
        let workspace = self.workspace()?.id;
        self.connection
            .query("SELECT nietz.admit($1, $2::text::name, $3, $4)", &[&workspace, &role, &kind, &signs])
            .map(drop)
    }

    /// Takes from a role what it may do.
    pub(crate) fn dismiss(&self, role: &str, kind: &str) -> Result<()> {
        let workspace = self.workspace()?.id;
        self.connection.query("SELECT nietz.dismiss($1, $2::text::name, $3)", &[&workspace, &role, &kind]).map(drop)
    }

    /// Sets what the team may use in a day; without a number, there is no limit. Cost is in US dollars.
    pub(crate) fn set_budget(&self, calls: Option<i64>, tokens: Option<i64>, cost: Option<f64>) -> Result<()> {
        let workspace = self.workspace()?.id;
        self.connection
            .query("SELECT nietz.set_budget($1, $2, $3, $4::float8::numeric)", &[&workspace, &calls, &tokens, &cost])
            .map(drop)
    }

    /// Returns each limit of a day, and what was used of it today, with what is set aside for calls under way.
    pub(crate) fn budget(&self) -> Result<Vec<DayLimit>> {
        let workspace = self.workspace()?.id;
        let limits = self.connection.query(
            "SELECT calls::text, tokens::text, cost::text FROM nietz.budget WHERE workspace = $1",
            &[&workspace],
        )?;
        let used = self.connection.query(
            "SELECT (calls + reserved_calls)::text, (tokens + reserved_tokens)::text, (cost + reserved_cost)::text FROM nietz.spent
             WHERE workspace = $1 AND day = (now() AT TIME ZONE 'UTC')::date",
            &[&workspace],
        )?;
        let of = |(at, name): (usize, &'static str)| DayLimit {
            name,
            limit: limits.first().and_then(|row| row.get(at)),
            used: used.first().map_or("0".to_owned(), |row| row.get(at)),
        };
        Ok(["calls", "tokens", "dollars"].into_iter().enumerate().map(of).collect())
    }

    /// Returns what the team trusts, by subject, in JSON.
    pub(crate) fn trusted(&self) -> Result<Vec<(String, String, String)>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT subject, items::text, signed_by::text FROM nietz.trust WHERE workspace = $1 ORDER BY subject",
            &[&workspace],
        )?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }

    /// Signs off what is trusted of a subject.
    pub(crate) fn sign(&self, subject: &str, items: &str) -> Result<()> {
        let workspace = self.workspace()?.id;
        self.connection.query("SELECT nietz.sign($1, $2, $3::text::jsonb)", &[&workspace, &subject, &items]).map(drop)
    }

    /// Trusts nothing of a subject any more. Returns whether it was trusted.
    pub(crate) fn revoke(&self, subject: &str) -> Result<bool> {
        let workspace = self.workspace()?.id;
        Ok(self.connection.one("SELECT nietz.revoke($1, $2)", &[&workspace, &subject])?.get(0))
    }
}
