//! From the bytes of a response to server-sent events, with limits on silence and on size.

use std::time::Duration;

use eventsource_stream::{Event, EventStream, EventStreamError};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::fault::{Fault, Subject};

/// The longest line of a stream, and the largest reply that is not streamed. A line is looked at again
/// with each piece that comes, so a server that never ends one could keep a processor busy.
const LONGEST_LINE: usize = 4 << 20;

/// The most bytes of one reply: some hundred bytes for each of a few hundred thousand tokens.
const LARGEST_REPLY: usize = 256 << 20;

/// How long to wait for the count of tokens once the whole text is there.
const PATIENCE_AFTER_END: Duration = Duration::from_secs(5);

/// How long a call waits for the end of the response after the end of the reply: a new connection
/// would cost the next call more.
const DRAIN_AT_ONCE: Duration = Duration::from_millis(10);

/// How long a connection may take to end its response, to be of use for later calls.
const DRAIN: Duration = Duration::from_secs(1);

/// What stops a stream of bytes.
#[derive(Debug)]
enum Trouble {
    Transport(reqwest::Error),
    Silence,
    TooLarge,
}

/// The events of one response.
pub(super) struct Events {
    events: EventStream<BoxStream<'static, Result<Vec<u8>, Trouble>>>,
    silence: Duration,
}

impl Events {
    /// Reads events from a response. Any byte ends a silence, also those of a comment.
    pub(super) fn new(response: reqwest::Response, silence: Duration) -> Events {
        let (mut line, mut total) = (0, 0);
        let bytes = timed(response, silence).map(move |piece| {
            let piece = piece?;
            total += piece.len();
            line = match memchr::memrchr2(b'\n', b'\r', &piece) {
                Some(end) => piece.len() - end,
                None => line + piece.len(),
            };
            if line > LONGEST_LINE || total > LARGEST_REPLY { Err(Trouble::TooLarge) } else { Ok(piece) }
        });
        Events { events: EventStream::new(bytes.boxed()), silence }
    }

    /// Returns the next event, or nothing at the end.
    pub(super) async fn next(&mut self, subject: Subject<'_>) -> Result<Option<Event>, Fault> {
        match self.events.next().await {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(EventStreamError::Transport(trouble))) => Err(trouble.fault(subject, self.silence)),
            Some(Err(EventStreamError::Utf8(_))) => Err(subject.broken("is not UTF-8")),
            Some(Err(EventStreamError::Parser(_))) => Err(subject.broken("is not a stream of events")),
        }
    }

    /// Returns what still comes after the whole text, if it comes soon. Trouble no longer matters.
    pub(super) async fn next_after_end(&mut self) -> Option<Event> {
        tokio::time::timeout(PATIENCE_AFTER_END, self.events.next()).await.ok()??.ok()
    }

    /// Reads the last bytes of the response, so that its connection can be used again. They nearly always
    /// come at once; a call does not wait for them any longer than that.
    pub(super) async fn drain(mut self) {
        let rest = async move { while self.events.next().await.is_some_and(|event| event.is_ok()) {} };
        let mut rest = Box::pin(rest);
        if tokio::time::timeout(DRAIN_AT_ONCE, &mut rest).await.is_err() {
            // A server that goes on for longer than this only loses its connection.
            tokio::spawn(tokio::time::timeout(DRAIN, rest));
        }
    }
}

/// Reads a body that is not streamed, up to the limit.
pub(super) async fn whole(
    response: reqwest::Response,
    silence: Duration,
    subject: Subject<'_>,
) -> Result<String, Fault> {
    let body = read(response, silence, LONGEST_LINE).await.map_err(|trouble| trouble.fault(subject, silence))?;
    String::from_utf8(body).map_err(|_| subject.broken("is not UTF-8"))
}

/// Reads the start of an error body: as much as comes without trouble.
pub(super) async fn error_body(response: reqwest::Response) -> String {
    let mut body = Vec::new();
    let mut pieces = timed(response, DRAIN);
    while let Some(Ok(piece)) = pieces.next().await {
        body.extend_from_slice(&piece);
        if body.len() > 64 << 10 {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

async fn read(response: reqwest::Response, silence: Duration, limit: usize) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    let mut pieces = timed(response, silence);
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece?);
        if body.len() > limit {
            return Err(Trouble::TooLarge);
        }
    }
    Ok(body)
}

/// Returns the pieces of a body, with a limit on the silence before each.
fn timed(response: reqwest::Response, silence: Duration) -> BoxStream<'static, Result<Vec<u8>, Trouble>> {
    futures_util::stream::unfold(Some(response), move |response| async move {
        let mut response = response?;
        match tokio::time::timeout(silence, response.chunk()).await {
            Ok(Ok(Some(piece))) => Some((Ok(piece.into()), Some(response))),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((Err(Trouble::Transport(error)), None)),
            Err(_) => Some((Err(Trouble::Silence), None)),
        }
    })
    .boxed()
}

impl Trouble {
    fn fault(self, subject: Subject<'_>, silence: Duration) -> Fault {
        match self {
            Trouble::Silence => subject.unreachable(&format!("was silent for {} s", silence.as_secs_f64())),
            Trouble::Transport(error) if error.is_timeout() => subject.unreachable("took too long"),
            Trouble::Transport(_) => subject.broken("was cut off"),
            Trouble::TooLarge => subject.broken("is larger than any reply should be"),
        }
    }
}
