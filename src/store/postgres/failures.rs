//! What an error of the server means: whether it is tried again, and what people are told.

use tokio_postgres::Error;

use crate::error::{Code, Failure};

/// What went wrong with a call.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is gone, or was never made. Whether the call was performed is not known.
    Lost(String),
    /// The server could not do it at this moment, and has not done it.
    Moment(String),
    /// The server has refused it.
    Refused(Failure),
}

impl Trouble {
    pub(super) fn of(error: &Error) -> Trouble {
        let Some(found) = error.as_db_error() else { return Trouble::Lost(root(error)) };
        let state = found.code().code();
        let told = match found.detail().filter(|detail| !detail.is_empty() && state.starts_with("NZ")) {
            Some(detail) => format!("{} ({detail})", found.message()),
            None => found.message().to_owned(),
        };
        let refuse = |code: Code, hint: &str| Trouble::Refused(Failure::new(code, told.clone()).hint(hint));
        match state {
            "NZ001" => refuse(
                Code::RunTaken,
                "nothing more is written by this process; whoever has the run goes on with it from what is recorded",
            ),
            "NZ002" => refuse(Code::RunCancelled, "a cancelled run does not go on; begin another one"),
            "NZ003" => refuse(Code::RunOver, "`nietz fork RUN` begins another one from it"),
            "NZ004" | "NZ012" => refuse(
                Code::DocumentChanged,
                "nothing was written: save the version in memory under another name, or load it again",
            ),
            "NZ005" => refuse(Code::BudgetUsedUp, "`nietz store budget` shows and sets what the team may use in a day"),
            "NZ006" => refuse(Code::AnswerInvalid, "`nietz inbox` lists what is asked now"),
            "NZ007" => {
                refuse(Code::RunBusy, "wait for it, or `nietz cancel` it; two processes never write one journal")
            }
            "NZ008" | "42501" => {
                refuse(Code::StoreRefused, "the owner of the store admits people: `nietz store admit`")
            }
            "NZ009" => refuse(Code::StoreRefused, "`nietz store status` says which workspaces there are for you"),
            "NZ010" => refuse(Code::Usage, "give it another name"),
            "NZ011" => refuse(Code::Usage, "see `nietz explain usage`"),
            // The schema lacks what is called, or there is none.
            "3F000" | "42883" | "42P01" | "42703" | "42704" => refuse(
                Code::StoreVersion,
                "`nietz store status` says what is there, `nietz store migrate` brings it up to date",
            ),
            "28000" | "28P01" | "3D000" => refuse(Code::StoreRefused, "look at the address, the user and the password"),
            "57P01" | "57P02" | "57P03" | "57P05" => Trouble::Lost(told),
            _ if state.starts_with("08") => Trouble::Lost(told),
            "40001" | "40P01" | "55P03" => Trouble::Moment(told),
            _ if state.starts_with("53") => Trouble::Moment(told),
            _ => Trouble::Refused(Failure::new(Code::Internal, format!("the store: {told} [{state}]"))),
        }
    }
}

/// Returns why, as far down as it is known: the driver says "error connecting to server" and not why.
fn root(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}
