//! As much of HTTP/1.1 as a client of model services uses.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

use super::{Ending, Kind, Request, Response, wire};

/// Reads one request; nothing when the client has closed the connection.
pub(super) fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = Request {
        number: 0,
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        headers: Default::default(),
        raw: Vec::new(),
        body: Value::Null,
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => {
                request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
            None => break,
        }
    }
    let length = request.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    request.raw = body;
    Ok(Some(request))
}

/// Writes a response; `false` if the connection is over with it.
pub(super) fn write(stream: &TcpStream, request: &Request, response: &Response) -> io::Result<bool> {
    let mut headers = response.headers.clone();
    let (status, pieces) = match &response.kind {
        Kind::Plain { status, body } => (*status, vec![body.clone()]),
        Kind::Reply(reply) => {
            let (kind, pieces) = wire::render(request, reply);
            headers.push(("content-type".to_owned(), kind.to_owned()));
            (200, pieces)
        }
    };
    let pieces = match response.piece {
        Some(size) => pieces.concat().chunks(size).map(<[u8]>::to_vec).collect(),
        None => pieces,
    };
    let pieces = match &response.ending {
        Ending::Held(bytes, _) => {
            let mut first = pieces.concat();
            let rest = first.split_off((*bytes).min(first.len()));
            vec![first, rest]
        }
        Ending::Whole | Ending::Cut(_) | Ending::Silent(_) => pieces,
    };
    let mut out = stream;
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in &headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut left = match response.ending {
        Ending::Whole | Ending::Held(..) => usize::MAX,
        Ending::Cut(bytes) | Ending::Silent(bytes) => bytes,
    };
    // A response that is silent from the start has no head either.
    if !matches!(response.ending, Ending::Silent(0)) {
        out.write_all(head.as_bytes())?;
    }
    for (number, piece) in pieces.into_iter().enumerate() {
        if let (1, Ending::Held(_, gate)) = (number, &response.ending) {
            gate.wait();
        }
        let piece = &piece[..piece.len().min(left)];
        left -= piece.len();
        if !piece.is_empty() {
            // One write for a chunk, as a service that flushes after each event does.
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            out.write_all(&chunk)?;
        }
    }
    match response.ending {
        Ending::Whole | Ending::Held(..) => {
            out.write_all(b"0\r\n\r\n")?;
            return Ok(true);
        }
        Ending::Cut(_) => stream.shutdown(Shutdown::Both)?,
        Ending::Silent(_) => {
            // Reading ends when the client goes away.
            io::copy(&mut &*stream, &mut io::sink())?;
        }
    }
    Ok(false)
}
