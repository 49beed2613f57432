//! `nietz explain CODE`.

use clap::Args;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result, nearest};

/// Explain an error code: what it means, why it happens, what to do
#[derive(Args)]
pub(super) struct ExplainArgs {
    /// Such as `document-invalid`; all codes are listed without one
    code: Option<String>,
}

pub(super) fn run(args: &ExplainArgs) -> Result<Exit> {
    let Some(wanted) = &args.code else {
        let rows: Vec<Vec<String>> = Code::ALL
            .iter()
            .map(|code| vec![code.name().to_owned(), format!("exit {}", code.exit() as u8), summary(*code)])
            .collect();
        output::table(&rows)?;
        return Ok(Exit::Done);
    };
    let Some(code) = Code::parse(wanted) else {
        let failure =
            Failure::new(Code::Usage, format!("there is no error code `{}`", crate::model::text::excerpt(wanted)));
        return Err(match nearest(wanted, Code::ALL.iter().map(|code| code.name())) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`nietz explain` lists them"),
        });
    };
    output::block(code.page())?;
    Ok(Exit::Done)
}

/// Returns the first sentence of a code's page.
fn summary(code: Code) -> String {
    let text = code.page().lines().skip(1).find(|line| !line.is_empty()).unwrap_or_default();
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_owned()
}
