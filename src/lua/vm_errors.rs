//! Turns the errors that the VM itself raises into failures.

use crate::error::{Code, Failure};
use crate::model::text::clean;

/// Returns the failure for a VM that used up its memory.
pub(crate) fn memory_limit_failure() -> Failure {
    Failure::new(Code::FlowMemory, "the flow used up its memory")
        .hint("keep less in tables and strings, or ask for more in the manifest: limits = { megabytes = … }")
}

/// Returns the failure for an error of mlua: of syntax, of memory, or the one that a callback returned.
pub(crate) fn from_error(error: &mlua::Error) -> Failure {
    match error {
        mlua::Error::CallbackError { cause, .. } | mlua::Error::WithContext { cause, .. } => from_error(cause),
        mlua::Error::ExternalError(source) => match source.downcast_ref::<Failure>() {
            Some(failure) => failure.clone(),
            None => Failure::new(Code::Internal, source.to_string()),
        },
        mlua::Error::MemoryError(_) => memory_limit_failure(),
        mlua::Error::SyntaxError { message, .. } => Failure::new(Code::FlowInvalid, clean(message)),
        mlua::Error::RuntimeError(message) => Failure::new(Code::FlowError, clean(message)),
        other => Failure::new(Code::FlowError, clean(&other.to_string())),
    }
}
