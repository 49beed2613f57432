//! Runs, their lines and answers: the functions of the schema, each one transaction. What a function promises stands in its script.

use std::time::SystemTime;

use chrono::{DateTime, Utc};

use super::Server;
use crate::error::{Code, Failure, Result};

/// For how long a run is held without a sign of life, in seconds.
pub(crate) const HELD: i32 = 15;

/// The columns of a run. Times are written here: the server needs as long for that as for all else of a long list.
const COLUMNS: &str = "id, name, flow, status, claim, worker, summary::text, questions::text, began_by::text, began_as,
    began, waiting_since";
/// Those that a list of runs shows.
const LISTED: &str = "id, name, flow, status, summary::text, began_by::text, began_as, began";

/// A run, as the server knows it.
#[derive(Clone, Debug)]
pub(crate) struct StoredRun {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) flow: String,
    pub(crate) status: String,
    pub(crate) claim: i64,
    pub(crate) worker: Option<String>,
    /// JSON, as whoever ended a segment wrote it.
    pub(crate) summary: String,
    /// A list in JSON.
    pub(crate) questions: String,
    /// The role that began it, and how that person is called.
    pub(crate) began_by: String,
    pub(crate) began_as: String,
    /// ISO 8601, UTC.
    pub(crate) began: String,
    pub(crate) waiting_since: Option<String>,
}

/// What a list tells of a run, as it came from the server.
pub(crate) struct ListedRow<'a> {
    pub(crate) id: i64,
    pub(crate) name: &'a str,
    pub(crate) flow: &'a str,
    pub(crate) status: &'a str,
    pub(crate) summary: &'a str,
    pub(crate) began_by: &'a str,
    pub(crate) began_as: &'a str,
    began: SystemTime,
}

impl ListedRow<'_> {
    /// When it began: ISO 8601, UTC.
    pub(crate) fn began(&self) -> String {
        iso(self.began)
    }
}

/// A run, and the number under which this process may write its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) run: i64,
    pub(crate) claim: i64,
}

/// What a run begins with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beginning<'a> {
    pub(crate) name: &'a str,
    pub(crate) flow: &'a str,
    pub(crate) lines: &'a [String],
    pub(crate) summary: &'a str,
    pub(crate) tag: &'a str,
    /// When it is to begin, if not now: ISO 8601.
    pub(crate) at: Option<&'a str>,
    pub(crate) began_as: &'a str,
    pub(crate) parent: Option<Claim>,
    /// The process that holds it at once; without one it is queued.
    pub(crate) held_by: Option<&'a str>,
}

/// A run that a worker has taken from the queue.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) claim: Claim,
    pub(crate) name: String,
    pub(crate) flow: String,
    pub(crate) deliveries: i32,
    pub(crate) began_by: String,
}

/// What became of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// `queued`, `kept` or `second`.
    pub(crate) result: String,
    pub(crate) who: String,
    pub(crate) said_as: String,
    pub(crate) at: String,
}

/// An answer that was given.
#[derive(Clone, Debug)]
pub(crate) struct GivenAnswer {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) who: String,
    pub(crate) said_as: String,
    pub(crate) at: String,
}

fn run(row: &tokio_postgres::Row) -> StoredRun {
    StoredRun {
        id: row.get(0),
        name: row.get(1),
        flow: row.get(2),
        status: row.get(3),
        claim: row.get(4),
        worker: row.get(5),
        summary: row.get(6),
        questions: row.get(7),
        began_by: row.get(8),
        began_as: row.get(9),
        began: iso(row.get(10)),
        waiting_since: row.get::<_, Option<SystemTime>>(11).map(iso),
    }
}

fn listed(row: &tokio_postgres::Row) -> ListedRow<'_> {
    ListedRow {
        id: row.get(0),
        name: row.get(1),
        flow: row.get(2),
        status: row.get(3),
        summary: row.get(4),
        began_by: row.get(5),
        began_as: row.get(6),
        began: row.get(7),
    }
}

/// Returns a time as ISO 8601, UTC, in whole seconds.
fn iso(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Server {
    /// Begins a run.
    ///
    /// # Errors
    ///
    /// `usage` if the name is taken, `store-refused`, `store-unreachable`.
    pub(crate) fn begin(&self, beginning: &Beginning<'_>) -> Result<Claim> {
        let Beginning { name, flow, lines, summary, tag, at, began_as, parent, held_by } = beginning;
        let workspace = self.workspace()?.id;
        let (above, above_claim) = (parent.map(|parent| parent.run), parent.map(|parent| parent.claim));
        let begun = self.connection.query_again(
            "SELECT run, claim FROM nietz.enqueue($1, $2, $3, $4, $5::text::jsonb, $6, $7::text::timestamptz, $8, $9, $10, $11, $12)",
            &[&workspace, name, flow, lines, summary, tag, at, began_as, &above, &above_claim, held_by, &HELD],
        );
        match begun {
            Ok((rows, _)) => {
                let row = rows.first().ok_or_else(|| Failure::new(Code::Internal, "the store has begun no run"))?;
                Ok(Claim { run: row.get(0), claim: row.get::<_, Option<i64>>(1).unwrap_or_default() })
            }
            // It may have been begun by a call whose answer was lost.
            Err(failure) if failure.code == Code::Usage => match self.find(name)? {
                Some(found)
                    if self.line(found.id, 1)?.as_ref() == lines.first() && found.worker.as_deref() == *held_by =>
                {
                    Ok(Claim { run: found.id, claim: found.claim })
                }
                _ => Err(Failure::new(Code::Usage, format!("there is a run {name} already"))
                    .hint(format!("go on with it: nietz resume {name}"))),
            },
            Err(failure) => Err(failure),
        }
    }

    /// Returns the run of this name.
    ///
    /// # Errors
    ///
    /// `store-refused`, `store-unreachable`, `store-version`, here and in all that follows.
    pub(crate) fn find(&self, name: &str) -> Result<Option<StoredRun>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            &format!("SELECT {COLUMNS} FROM nietz.run WHERE workspace = $1 AND name = $2"),
            &[&workspace, &name],
        )?;
        Ok(rows.first().map(run))
    }

    /// Returns what `take` makes of each run, oldest first, or of the one of this name. It is made while the server sends the next ones.
    pub(crate) fn listed<T>(&self, name: Option<&str>, take: &dyn Fn(&ListedRow<'_>) -> T) -> Result<Vec<T>> {
        let workspace = self.workspace()?.id;
        let take = |row: &tokio_postgres::Row| take(&listed(row));
        let from = format!("SELECT {LISTED} FROM nietz.run WHERE workspace = $1");
        match name {
            Some(name) => self.connection.each(&format!("{from} AND name = $2"), &[&workspace, &name], &take),
            None => self.connection.each(&format!("{from} ORDER BY id"), &[&workspace], &take),
        }
    }

    /// Returns the names of all runs.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let workspace = self.workspace()?.id;
        let rows =
            self.connection.query("SELECT name FROM nietz.run WHERE workspace = $1 ORDER BY name", &[&workspace])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Returns the runs that wait for somebody, longest first.
    pub(crate) fn inbox(&self) -> Result<Vec<StoredRun>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            &format!(
                "SELECT {COLUMNS} FROM nietz.run WHERE workspace = $1 AND (status IN ('waiting', 'stuck') OR
                 status = 'running' AND questions <> '[]') ORDER BY waiting_since NULLS LAST, id"
            ),
            &[&workspace],
        )?;
        Ok(rows.iter().map(run).collect())
    }

    /// Returns the lines of a run behind one of its lines.
    pub(crate) fn lines(&self, run: i64, after: i64) -> Result<Vec<(i64, String)>> {
        let rows = self.connection.query("SELECT seq, body FROM nietz.lines($1, $2)", &[&run, &after])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Returns one line of a run.
    pub(crate) fn line(&self, run: i64, seq: i64) -> Result<Option<String>> {
        let rows = self.connection.query("SELECT body FROM nietz.line WHERE run = $1 AND seq = $2", &[&run, &seq])?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Takes a run for this process, whoever had it before and is gone.
    pub(crate) fn hold(&self, run: i64, worker: &str) -> Result<Claim> {
        let row = self.connection.one("SELECT nietz.hold($1, $2, $3)", &[&run, &worker, &HELD])?;
        Ok(Claim { run, claim: row.get(0) })
    }

    /// Takes the next run that is due from the queues of these tags.
    pub(crate) fn take(&self, tags: &[String], worker: &str, holding: &[i64]) -> Result<Option<Taken>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT run, claim, name, flow, deliveries, began_by::text FROM nietz.take($1, $2, $3, $4, $5)",
            &[&workspace, &tags, &HELD, &worker, &holding],
        )?;
        Ok(rows.first().map(|row| Taken {
            claim: Claim { run: row.get(0), claim: row.get(1) },
            name: row.get(2),
            flow: row.get(3),
            deliveries: row.get(4),
            began_by: row.get(5),
        }))
    }

    /// Holds a run for longer. Returns whether it is still this process's.
    pub(crate) fn beat(&self, claim: Claim) -> Result<bool> {
        let row = self.connection.one("SELECT nietz.beat($1, $2, $3)", &[&claim.run, &claim.claim, &HELD])?;
        Ok(row.get(0))
    }

    /// Writes lines, the first of which has this number.
    pub(crate) fn append(&self, claim: Claim, seq: i64, lines: &[String]) -> Result<()> {
        self.connection.query("SELECT nietz.append($1, $2, $3, $4)", &[&claim.run, &claim.claim, &seq, &lines])?;
        Ok(())
    }

    /// As [`Server::append`]; reserves or settles what calls may use of the team's budget (`money`, a list in JSON) in the same transaction.
    pub(crate) fn append_with(&self, claim: Claim, seq: i64, lines: &[String], money: &str) -> Result<()> {
        self.connection.query(
            "SELECT nietz.append($1, $2, $3, $4, $5::text::jsonb)",
            &[&claim.run, &claim.claim, &seq, &lines, &money],
        )?;
        Ok(())
    }

    /// Writes the last lines of a segment, and lets the run wait. `false`: what it waits for is there, and nothing was written.
    pub(crate) fn park(
        &self,
        claim: Claim,
        (seq, lines): (i64, &[String]),
        (questions, summary): (&str, &str),
        wake: Option<&str>,
        awaits: &[i64],
    ) -> Result<bool> {
        let row = self.connection.one(
            "SELECT nietz.park($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb, $7::text::timestamptz, $8)",
            &[&claim.run, &claim.claim, &seq, &lines, &questions, &summary, &wake, &awaits],
        )?;
        Ok(row.get(0))
    }

    /// Writes the last lines of a run, which is over with this status.
    pub(crate) fn finish(&self, claim: Claim, seq: i64, lines: &[String], status: &str, summary: &str) -> Result<()> {
        self.connection.query(
            "SELECT nietz.finish($1, $2, $3, $4, $5, $6::text::jsonb)",
            &[&claim.run, &claim.claim, &seq, &lines, &status, &summary],
        )?;
        Ok(())
    }

    /// Hands a run on: to the next worker, or to nobody (`stop`) until somebody resumes it.
    pub(crate) fn release(&self, claim: Claim, stop: bool) -> Result<()> {
        match self.connection.query_again("SELECT nietz.release($1, $2, $3)", &[&claim.run, &claim.claim, &stop]) {
            Ok(_) => Ok(()),
            // It was handed on before, by a call whose answer was lost, or it is over.
            Err(failure) if matches!(failure.code, Code::RunOver | Code::RunTaken | Code::RunCancelled) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Notes why this process cannot do a run. With `at_once`, nobody takes it until somebody requeues it.
    pub(crate) fn put_aside(&self, claim: Claim, why: &str, at_once: bool) -> Result<()> {
        self.connection
            .query("SELECT nietz.put_aside($1, $2, $3, $4)", &[&claim.run, &claim.claim, &why, &at_once])
            .map(drop)
    }

    /// Returns `held` while this process holds a run, `fenced` if another one does, else the run's status.
    pub(crate) fn state(&self, claim: Claim) -> Result<String> {
        Ok(self.connection.one("SELECT nietz.state($1, $2)", &[&claim.run, &claim.claim])?.get(0))
    }

    /// Shows what a run asks while it goes on.
    pub(crate) fn asked(&self, claim: Claim, questions: &str) -> Result<()> {
        self.connection
            .query("SELECT nietz.asked($1, $2, $3::text::jsonb)", &[&claim.run, &claim.claim, &questions])?;
        Ok(())
    }

    /// Answers a question.
    pub(crate) fn answer(&self, run: i64, key: &str, value: &str, said_as: &str) -> Result<Answered> {
        let (rows, again) = self.connection.query_again(
            "SELECT result, who::text, said_as, at::text FROM nietz.answer($1, $2, $3::text::jsonb, $4)",
            &[&run, &key, &value, &said_as],
        )?;
        let row = rows.first().ok_or_else(|| Failure::new(Code::Internal, "the store has answered with no row"))?;
        let mut answered = Answered { result: row.get(0), who: row.get(1), said_as: row.get(2), at: row.get(3) };
        // The first of two calls may be this very one, whose answer was lost.
        if again && answered.result == "second" && answered.who == self.workspace()?.me && answered.said_as == said_as {
            let is_mine = self.answers(run)?.iter().any(|given| given.key == key && same_json(&given.value, value));
            if is_mine {
                "kept".clone_into(&mut answered.result);
            }
        }
        Ok(answered)
    }

    /// Returns the answers that a run was given, in their order.
    pub(crate) fn answers(&self, run: i64) -> Result<Vec<GivenAnswer>> {
        let rows = self.connection.query(
            "SELECT key, value::text, who::text, said_as, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM nietz.answers($1)",
            &[&run],
        )?;
        let given = |row: &tokio_postgres::Row| GivenAnswer {
            key: row.get(0),
            value: row.get(1),
            who: row.get(2),
            said_as: row.get(3),
            at: row.get(4),
        };
        Ok(rows.iter().map(given).collect())
    }

    /// Returns the answer to one question, in JSON.
    pub(crate) fn answer_to(&self, run: i64, key: &str) -> Result<Option<String>> {
        let rows =
            self.connection.query("SELECT value::text FROM nietz.answer WHERE run = $1 AND key = $2", &[&run, &key])?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Removes an answer that fits nothing.
    pub(crate) fn refuse(&self, claim: Claim, key: &str) -> Result<()> {
        self.connection.query("SELECT nietz.refuse($1, $2, $3)", &[&claim.run, &claim.claim, &key])?;
        Ok(())
    }

    /// Cancels a run and those that it began, and returns what it was before.
    pub(crate) fn cancel(&self, run: i64) -> Result<String> {
        Ok(self.connection.one("SELECT nietz.cancel($1)", &[&run])?.get(0))
    }

    /// Puts a run into the queue that no worker has: one that is stuck, failed, stopped or waits.
    pub(crate) fn requeue(&self, run: i64) -> Result<()> {
        self.connection.query("SELECT nietz.requeue($1)", &[&run])?;
        Ok(())
    }

    /// Takes in a run with all of its lines, which is not queued.
    pub(crate) fn keep(&self, name: &str, flow: &str, status: &str, lines: &[String], summary: &str) -> Result<i64> {
        let workspace = self.workspace()?.id;
        let row = self.connection.one(
            "SELECT nietz.keep($1, $2, $3, $4, $5, $6::text::jsonb, '')",
            &[&workspace, &name, &flow, &status, &lines, &summary],
        )?;
        Ok(row.get(0))
    }

    /// Returns for each tag how many messages its queue has, and how many of them are due.
    pub(crate) fn queues(&self) -> Result<Vec<(String, i64, i64)>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query("SELECT tag, length, visible FROM nietz.queue_metrics($1)", &[&workspace])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }

    /// Removes a run that nobody is at.
    pub(crate) fn remove(&self, run: i64) -> Result<()> {
        self.connection.query("SELECT nietz.remove($1)", &[&run])?;
        Ok(())
    }
}

fn same_json(one: &str, other: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    parse(one).is_some_and(|value| Some(value) == parse(other))
}
