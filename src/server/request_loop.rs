//! Serves one connection: reads its requests one after the other and answers them in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use log::Level;

use super::Server;
use super::body::BodyReader;
use super::client_stream::{ClientStream, HeadError};
use super::connections::ConnectionGuard;
use super::head::{RequestHead, find_header};
use super::response_writer::{ResponseOptions, ResponseWriter};
use crate::body_memory::{Owner, Room};
use crate::error::Error;
use crate::http::body::Body;
use crate::http::client_address::network;
use crate::http::error_response::error_response;
use crate::http::request::request_id;
use crate::model::timestamp::Timestamp;
use crate::telemetry::access_log::{self, AccessLogEntry};

/// Serves the connection of the client at `peer` until one side ends it.
pub fn serve_connection(server: &Server, guard: &ConnectionGuard, peer: SocketAddr) {
    // Setting the options of a socket fails if the client has closed it already.
    if let Ok(stream) = ClientStream::new(guard.connection.clone(), server.client_limits) {
        let owner = Owner::Network(network(peer.ip()));
        let room = server.body_memory.room(guard.connection.clone(), owner);
        RequestLoop { server, stream, writer: ResponseWriter::default(), peer, room }.run();
    }
}

struct RequestLoop<'a> {
    server: &'a Server,
    stream: ClientStream,
    writer: ResponseWriter,
    peer: SocketAddr,
    /// Bytes of bodies that the current request holds.
    room: Arc<Room>,
}

impl RequestLoop<'_> {
    fn run(mut self) {
        loop {
            let keep_alive = match self.next_request() {
                Ok(head) => self.answer(&head),
                Err(HeadError::Refused(error)) => self.refuse(&error),
                Err(HeadError::Closed) => return,
            };
            match keep_alive {
                Ok(true) => {}
                Ok(false) => {
                    let limit = self.server.connections.max_linger(self.peer.ip());
                    return self.stream.lingering_close(limit);
                }
                // The client is gone, or the response is incomplete.
                Err(_) => return self.stream.reset(),
            }
        }
    }

    fn next_request(&mut self) -> Result<RequestHead, HeadError> {
        let length = self.stream.read_head()?;
        let head = RequestHead::parse(&self.stream.buffered()[..length], self.peer);
        // A head that is refused stays in the buffer, because `refuse` reads it.
        let head = head.map_err(HeadError::Refused)?;
        self.stream.consume_head(length);
        Ok(head)
    }

    /// Answers one request. Returns whether the connection can serve another.
    fn answer(&mut self, head: &RequestHead) -> io::Result<bool> {
        let mut body = BodyReader::new(head, &mut self.stream);
        let mut handler_body = Body::new(|out, max| body.read(out, max), head.content_length);
        handler_body.room = Some(self.room.clone());
        let response = (self.server.handler)(&head.request, handler_body);
        // During a shutdown, only requests that were sent before it, without waiting for this response, are served.
        let accepts_next = !body.stream().connection.is_shutting_down()
            || (body.is_finished() && body.stream().complete_head().is_some());
        let keep_alive = head.keep_alive && body.is_drainable() && accepts_next;
        let omit_body = head.request.method() == "HEAD";
        let options = ResponseOptions { omit_body, is_http_1_0: head.is_http_1_0, keep_alive };
        let keep_alive = self.writer.send(body.stream(), response, &options)?;
        self.room.free();
        Ok(keep_alive && body.drain())
    }

    /// Answers bytes that are no valid request. The connection ends then, because it is unknown where the next request
    /// begins. If a complete head has arrived, the response carries its `X-Request-ID`.
    fn refuse(&mut self, error: &Error) -> io::Result<bool> {
        let began = Instant::now();
        let head = self.stream.complete_head();
        let id = request_id(head.and_then(|head| find_header(head, "X-Request-ID")));
        let omit_body = self.stream.buffered().starts_with(b"HEAD ");
        let options = ResponseOptions { omit_body, is_http_1_0: false, keep_alive: false };
        let now = Timestamp::now();
        let mut response = error_response(error, self.server.error_format, now);
        response.add_header("X-Request-ID", id.to_string());
        response.add_header("X-Content-Type-Options", "nosniff");
        response.add_header("Referrer-Policy", "no-referrer");
        response.add_header("Cache-Control", "no-store");
        let entry = AccessLogEntry {
            method: None,
            path: None,
            status: response.status,
            duration: began.elapsed(),
            error: Some(&error.message()),
            user: None,
            client: self.peer.ip(),
            id,
        };
        self.server.metrics.count_request(None, entry.status, entry.duration);
        access_log::write(&entry, Level::Info, self.server.log_format);
        self.writer.send(&mut self.stream, response, &options)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::body_memory::BodyMemory;
    use crate::config::{ErrorFormat, LogFormat};
    use crate::http::response::Response;
    use crate::server::connections::{ConnectionLimits, Connections};
    use crate::server::limits::ClientLimits;
    use crate::telemetry::metrics::Metrics;

    const LENGTH: usize = 4 << 20;
    const LONG: Duration = Duration::from_secs(60);

    /// Limits that nobody reaches. A test makes shorter what it waits for.
    const PATIENT: ClientLimits = ClientLimits {
        head_timeout: LONG,
        idle_timeout: LONG,
        body_grace: LONG,
        min_body_rate: 4096,
        max_body_allowance: LONG,
        max_write_stall: LONG,
        response_grace: LONG,
        min_response_rate: 64 * 1024,
    };

    /// Serves one connection, on which each request is answered with its error or with `LENGTH` bytes once its body has
    /// been read. Returns the client's end, whose receive buffer is small, and the thread.
    fn connect(client_limits: ClientLimits) -> (TcpStream, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        client.set_recv_buffer_size(4096).unwrap();
        client.connect(&listener.local_addr().unwrap().into()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        let limits = ConnectionLimits { max: 9, max_per_network: 9, trusted_proxies: Vec::new() };
        let server = Server {
            handler: Box::new(|_, mut body| match body.read_all(LENGTH as u64) {
                Ok(_) => Response::new(200, "text/plain", vec![b'x'; LENGTH]),
                Err(error) => error_response(&error, ErrorFormat::Detail, Timestamp::now()),
            }),
            client_limits,
            error_format: ErrorFormat::Detail,
            log_format: LogFormat::Text,
            metrics: Metrics::new(""),
            connections: Arc::new(Connections::new(limits, Arc::default())),
            body_memory: BodyMemory::new(LENGTH),
        };
        let serve = move || {
            let guard = server.connections.register(socket, peer.ip());
            serve_connection(&server, &guard, peer);
        };
        (client.into(), thread::spawn(serve))
    }

    /// Sends the head of a request with a body, and its first bytes; returns how long the 408 took.
    fn time_to_408(limits: ClientLimits, sent: usize) -> Duration {
        let (mut client, _) = connect(limits);
        let begin = Instant::now();
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {LENGTH}\r\n\r\n");
        // At once, because the time for the body begins with the end of the head.
        client.write_all(&[head.into_bytes(), vec![b'x'; sent]].concat()).unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).unwrap();
        assert_eq!(status, *b"HTTP/1.1 408");
        begin.elapsed()
    }

    #[test]
    fn a_body_is_waited_for_as_long_as_the_grace_and_what_was_sent_allow() {
        let limits = ClientLimits {
            body_grace: Duration::from_millis(200),
            max_body_allowance: Duration::from_millis(800),
            ..PATIENT
        };
        let (nothing, nearly_all) = (time_to_408(limits, 0), time_to_408(limits, LENGTH - 1));
        assert!(nothing >= limits.body_grace && nothing < LONG / 2, "{nothing:?}");
        assert!(nearly_all >= limits.max_body_allowance && nearly_all < LONG / 2, "{nearly_all:?}");
    }

    /// Sends a request and reads `count` bytes of the response each hundredth of a second, until the server has closed
    /// the connection or `longest` is over. Returns how long that took, and whether the rest of the response comes.
    fn read_slowly(limits: ClientLimits, count: usize, longest: Duration) -> (Duration, bool) {
        let (mut client, serving) = connect(limits);
        let begin = Instant::now();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut received = 0;
        while !serving.is_finished() && begin.elapsed() < longest {
            client.read_exact(&mut vec![0; count]).unwrap();
            received += count;
            thread::sleep(Duration::from_millis(10));
        }
        let took = begin.elapsed();
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
        (took, received + rest.len() > LENGTH)
    }

    #[test]
    fn a_client_that_reads_nothing_or_too_slowly_is_disconnected_and_a_faster_one_is_not() {
        let short = Duration::from_millis(300);
        let (took, is_whole) =
            read_slowly(ClientLimits { max_write_stall: short, ..PATIENT }, 0, LONG / 2);
        assert!(took >= short && took < LONG / 2 && !is_whole, "it read nothing: {took:?}");
        // A write waits for a thirtieth of the stall at most, so the rate is looked at soon enough.
        let limits = ClientLimits { response_grace: short, max_write_stall: 6 * short, ..PATIENT };
        let (took, is_whole) = read_slowly(limits, 100, LONG / 2);
        assert!(took >= short && took < LONG / 2 && !is_whole, "10 kB a second: {took:?}");
        let (took, is_whole) = read_slowly(limits, 10_000, 2 * took + short);
        assert!(is_whole, "1 MB a second: {took:?}");
    }
}
