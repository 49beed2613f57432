//! Reads the body of a response, with limits on silence and on size.

use std::time::Duration;

use super::attempt_error::{AttemptError, CallContext};
use super::sse::{NotUtf8, Parser};

/// The longest line of a stream, and the largest reply that is not streamed.
const LONGEST_LINE: usize = 16 << 20;

/// The most bytes of one reply: about a hundred bytes for each of a few hundred thousand tokens.
const LARGEST_REPLY: usize = 64 << 20;

/// The most bytes of an error: nobody reads more.
const LARGEST_ERROR: usize = 64 << 10;

/// How long to wait for the token counts once the text is complete.
const PATIENCE_AFTER_END: Duration = Duration::from_secs(5);

/// How long a call waits for the end of the response after the end of the reply. The wait is worth it: a
/// new connection would cost the next call more.
const DRAIN_AT_ONCE: Duration = Duration::from_millis(10);

/// How long a connection may take to end its response and still be reused by later calls.
const DRAIN: Duration = Duration::from_secs(1);

/// The body of a streamed response.
pub(super) struct ResponseBody {
    response: reqwest::Response,
    silence: Duration,
    parser: Parser,
    total: usize,
}

impl ResponseBody {
    pub(super) fn new(response: reqwest::Response, silence: Duration) -> ResponseBody {
        ResponseBody { response, silence, parser: Parser::default(), total: 0 }
    }

    /// Returns the data of the next event; `None` at the end. Any byte ends a silence, even one of a comment.
    pub(super) async fn event(&mut self, context: CallContext<'_>) -> Result<Option<String>, AttemptError> {
        loop {
            match self.parser.event() {
                Ok(Some(data)) => return Ok(Some(data)),
                Ok(None) => {}
                Err(NotUtf8) => return Err(context.broken_reply("is not UTF-8")),
            }
            if !self.more(context).await? {
                return Ok(None);
            }
        }
    }

    /// Returns the next event after the complete text, if it comes soon. Errors no longer matter then.
    pub(super) async fn event_after_end(&mut self, context: CallContext<'_>) -> Option<String> {
        tokio::time::timeout(PATIENCE_AFTER_END, self.event(context)).await.ok()?.ok()?
    }

    /// Reads the next bytes; returns `false` at the end.
    async fn more(&mut self, context: CallContext<'_>) -> Result<bool, AttemptError> {
        match tokio::time::timeout(self.silence, self.response.chunk()).await {
            Err(_) => return Err(context.silence_error(self.silence)),
            Ok(Err(error)) if error.is_timeout() => return Err(context.unreachable_error("took too long")),
            Ok(Err(_)) => return Err(context.broken_reply("was cut off")),
            Ok(Ok(None)) => return Ok(false),
            Ok(Ok(Some(piece))) => {
                self.total += piece.len();
                self.parser.push(&piece);
            }
        }
        if self.parser.unfinished_length() > LONGEST_LINE || self.total > LARGEST_REPLY {
            return Err(context.broken_reply("is larger than any reply should be"));
        }
        Ok(true)
    }

    /// Reads the last bytes of the response, so that its connection can be reused. They nearly always come at
    /// once, and a call does not wait any longer.
    pub(super) async fn drain(self) {
        let ResponseBody { mut response, .. } = self;
        let mut rest = Box::pin(async move { while let Ok(Some(_)) = response.chunk().await {} });
        if tokio::time::timeout(DRAIN_AT_ONCE, &mut rest).await.is_err() {
            // A server that sends for longer than this only loses its connection.
            tokio::spawn(tokio::time::timeout(DRAIN, rest));
        }
    }
}

/// Reads a body that is not streamed.
pub(super) async fn read_whole(
    mut response: reqwest::Response,
    silence: Duration,
    context: CallContext<'_>,
) -> Result<String, AttemptError> {
    let mut body = Vec::new();
    loop {
        match tokio::time::timeout(silence, response.chunk()).await {
            Err(_) => return Err(context.silence_error(silence)),
            Ok(Err(_)) => return Err(context.broken_reply("was cut off")),
            Ok(Ok(None)) => break,
            Ok(Ok(Some(piece))) => body.extend_from_slice(&piece),
        }
        if body.len() > LONGEST_LINE {
            return Err(context.broken_reply("is larger than any reply should be"));
        }
    }
    String::from_utf8(body).map_err(|_| context.broken_reply("is not UTF-8"))
}

/// Reads the start of a short body: what arrives soon and without errors.
pub(super) async fn read_start(mut response: reqwest::Response) -> String {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() > LARGEST_ERROR {
                break;
            }
        }
    };
    // The bytes before the limit are used all the same.
    tokio::time::timeout(DRAIN, reading).await.ok();
    String::from_utf8_lossy(&body).into_owned()
}
