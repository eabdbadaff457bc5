//! Serves one connection: reads its requests one after the other and answers them in order.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use super::body::BodyReader;
use super::builtin_server::Server;
use super::client_stream::{ClientStream, HeadError};
use super::connections::ConnectionGuard;
use super::head::{RequestHead, find_header};
use super::response_writer::{ResponseOptions, ResponseWriter};
use crate::error::Error;
use crate::http::body::Body;
use crate::http::request_id::request_id;
use crate::http::response;
use crate::model::timestamp::Timestamp;
use crate::telemetry::access_log::{self, AccessLogEntry};

/// Serves the connection of the client at `peer` until one side ends it.
pub fn serve_connection(server: &Server, guard: &ConnectionGuard, peer: SocketAddr) {
    // Setting the options of a socket fails where the client has closed it already.
    if let Ok(stream) = ClientStream::new(guard.connection.clone()) {
        RequestLoop { server, stream, writer: ResponseWriter::default(), peer }.run();
    }
}

struct RequestLoop<'a> {
    server: &'a Server,
    stream: ClientStream,
    writer: ResponseWriter,
    peer: SocketAddr,
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
                Ok(false) => return self.stream.lingering_close(),
                // The client is gone, or the response is incomplete, which a plain close shows to the client.
                Err(_) => return,
            }
        }
    }

    fn next_request(&mut self) -> Result<RequestHead, HeadError> {
        let length = self.stream.read_head(self.server.idle_timeout, self.server.head_timeout)?;
        let head = RequestHead::parse(&self.stream.buffered()[..length], self.peer);
        // A head that is refused stays in the buffer, because `refuse` reads it.
        let head = head.map_err(HeadError::Refused)?;
        self.stream.consume(length);
        Ok(head)
    }

    /// Answers one request. Returns whether the connection can serve another.
    fn answer(&mut self, head: &RequestHead) -> io::Result<bool> {
        let mut body = BodyReader::new(head, &mut self.stream);
        let handler_body = Body::new(&mut body, head.content_length);
        let response = (self.server.handler)(&head.request, handler_body);
        // During a shutdown, only requests that were sent before it, without waiting for this response, are served.
        let accepts_next = !body.stream().is_shutting_down()
            || (body.is_finished() && body.stream().complete_head().is_some());
        let keep_alive = head.keep_alive && body.is_drainable() && accepts_next;
        let options = ResponseOptions::new(head, keep_alive);
        Ok(self.writer.send(body.stream(), response, &options)? && body.drain())
    }

    /// Answers bytes that are no valid request. The connection ends then, because it is unknown where the next request
    /// begins. If a complete head has arrived, the response carries its `X-Request-ID`.
    fn refuse(&mut self, error: &Error) -> io::Result<bool> {
        let began = Instant::now();
        let head = self.stream.complete_head();
        let id = request_id(head.and_then(|head| find_header(head, "X-Request-ID")));
        let options = ResponseOptions::refusal(self.stream.buffered().starts_with(b"HEAD "));
        let now = Timestamp::now();
        let mut response = response::error(error, self.server.error_format, now);
        response.add_header("X-Request-ID", id.to_string());
        response.add_header("X-Content-Type-Options", "nosniff");
        response.add_header("Cache-Control", "no-store");
        self.server.metrics.count_malformed(response.status);
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
        access_log::write(&entry, self.server.log_format);
        self.writer.send(&mut self.stream, response, &options)
    }
}
