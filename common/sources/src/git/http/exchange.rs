//! One request and its answer, as gix reads and writes them: first the request, then the headers, then the body.

use std::io::{self, BufRead, Cursor, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::{Request, Response};

use super::{Learned, failed, judge, send};
use crate::git::wire::Wire;
use crate::http::{Http, Redirects};

/// Bytes of a request: it names commits.
const MAX_REQUEST: usize = 1 << 20;
/// Bytes of an advertisement that are kept.
const MAX_ADVERTISEMENT: usize = 64 << 10;

/// A request that is sent when its answer is first read.
#[derive(Clone)]
pub struct Exchange {
    wire: Arc<Wire>,
    http: Http,
    with_credentials: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    request: Option<Request>,
    sent: Vec<u8>,
    response: Option<Response>,
}

impl Exchange {
    /// A POST without its body.
    pub fn new(wire: Arc<Wire>, http: Http, with_credentials: bool, request: Request) -> Self {
        let state = State {
            request: Some(request),
            ..State::default()
        };
        Self {
            wire,
            http,
            with_credentials,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Sends what was written, once; the headers of the answer.
    fn send(&self) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut request) = state.request.take() else {
            return Ok(Vec::new());
        };
        *request.body_mut() = Some(std::mem::take(&mut state.sent).into());
        let response = send(&self.wire, &self.http, &request, Redirects::None)?;
        let response = judge(&self.wire, self.with_credentials, response)?;
        let lines = header_lines(&response);
        state.response = Some(response);
        Ok(lines)
    }

    fn response(&self) -> io::Result<Option<Response>> {
        self.send()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(state.response.take())
    }
}

/// `name:value` lines, as gix wants them.
pub fn header_lines(response: &Response) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in response.headers() {
        lines.extend_from_slice(name.as_str().as_bytes());
        lines.push(b':');
        lines.extend_from_slice(value.as_bytes());
        lines.push(b'\n');
    }
    lines
}

/// The body of a POST.
pub struct Outgoing(pub Exchange);

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.sent.len().saturating_add(bytes.len()) > MAX_REQUEST {
            return Err(io::Error::other("the request grows too large"));
        }
        state.sent.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The headers of an answer.
pub struct Headers {
    exchange: Option<Exchange>,
    lines: Cursor<Vec<u8>>,
}

impl Headers {
    /// Headers that are known already.
    pub fn known(lines: Vec<u8>) -> Self {
        Self {
            exchange: None,
            lines: Cursor::new(lines),
        }
    }

    /// The headers of an exchange, which is sent when they are read.
    pub fn of(exchange: Exchange) -> Self {
        Self {
            exchange: Some(exchange),
            lines: Cursor::default(),
        }
    }
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(exchange) = self.exchange.take() {
            self.lines = Cursor::new(exchange.send()?);
        }
        self.lines.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.lines.consume(amount);
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill_buf()?;
        self.lines.read(buffer)
    }
}

/// The body of an answer, counted while it is read.
pub struct Body {
    wire: Arc<Wire>,
    exchange: Option<Exchange>,
    response: Option<Response>,
    chunk: Cursor<Vec<u8>>,
    learned: Option<Learned>,
}

impl Body {
    /// A body that is known already.
    pub fn known(wire: &Arc<Wire>, bytes: Vec<u8>) -> Self {
        Self {
            wire: Arc::clone(wire),
            exchange: None,
            response: None,
            chunk: Cursor::new(bytes),
            learned: None,
        }
    }

    /// The body of a response, which is kept for later runs.
    pub fn kept(wire: &Arc<Wire>, response: Response, learned: Learned) -> Self {
        Self {
            response: Some(response),
            learned: Some(learned),
            ..Self::known(wire, Vec::new())
        }
    }

    /// The body of an exchange.
    pub fn of(wire: &Arc<Wire>, exchange: Exchange) -> Self {
        Self {
            exchange: Some(exchange),
            ..Self::known(wire, Vec::new())
        }
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(exchange) = self.exchange.take() {
            self.response = exchange.response()?;
        }
        while self.chunk.position() >= self.chunk.get_ref().len() as u64 {
            let Some(response) = self.response.as_mut() else {
                break;
            };
            let next = self.wire.run(response.chunk())?;
            let next = next.map_err(|error| failed(&self.wire, error))?;
            let Some(chunk) = next else {
                self.response = None;
                break;
            };
            self.wire.received(chunk.len())?;
            if let Some(learned) = &self.learned {
                let mut learned = learned.lock().unwrap_or_else(PoisonError::into_inner);
                let space = MAX_ADVERTISEMENT.saturating_sub(learned.bytes.len());
                learned.is_cut |= chunk.len() > space;
                learned.bytes.extend(chunk.iter().take(space));
            }
            self.chunk = Cursor::new(chunk.into());
        }
        self.chunk.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.chunk.consume(amount);
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill_buf()?;
        self.chunk.read(buffer)
    }
}
