//! One connection: one request after the other, answered in order.

use std::net::SocketAddr;
use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use super::Server;
use super::body::{Body, Reader};
use super::client_stream::{ClientStream, NoHead};
use super::connections::ConnectionGuard;
use super::head::{self, Head};
use super::response_writer::{ResponseOptions, ResponseWriter};
use crate::error::Error;
use crate::http::{self, response};
use crate::model::timestamp::Timestamp;

/// Serves the connection to its end.
pub fn serve(server: &Arc<Server>, stay: &ConnectionGuard, peer: SocketAddr) {
    let Ok(mut stream) = ClientStream::new(stay.connection.clone()) else {
        return; // gone already
    };
    let mut writer = ResponseWriter::default();
    let answered = loop {
        let head = match stream.head(server.idle_timeout, server.head_timeout) {
            Ok(length) => {
                let head = head::parse(&stream.buffered()[..length], peer);
                stream.consume(length);
                head
            }
            Err(NoHead::Refused(error)) => Err(error),
            Err(NoHead::Closed) => break false,
        };
        let outcome = match head {
            Ok(head) => exchange(server, &mut stream, &mut writer, &head),
            Err(error) => refuse(server, &mut stream, &mut writer, &error, peer),
        };
        match outcome {
            Ok(true) => {}
            Ok(false) => break true,
            Err(_) => break false, // the client has gone, or its answer broke off
        }
    };
    if answered {
        stream.linger();
    }
}

/// One request and its answer. True where the connection can go on.
fn exchange(
    server: &Server,
    stream: &mut ClientStream,
    writer: &mut ResponseWriter,
    head: &Head,
) -> std::io::Result<bool> {
    let mut body = Body::of(head);
    let reader = Reader { body: &mut body, stream };
    let response = (server.handler)(&head.request, http::body::Body::new(reader, head.announced));
    // After a stop only what was pipelined before it is answered.
    let ends = stream.is_stopping() && !(body.is_over() && stream.holds_head());
    let goes_on = head.keeps_open && body.is_drainable() && !ends;
    let goes_on = writer.send(stream, response, &ResponseOptions::of(head, goes_on))?;
    Ok(goes_on && (body.is_over() || body.drain(stream)))
}

/// The server's own answer to what is no request. The connection ends with it.
fn refuse(
    server: &Server,
    stream: &mut ClientStream,
    writer: &mut ResponseWriter,
    error: &Error,
    peer: SocketAddr,
) -> std::io::Result<bool> {
    let id = Uuid::new_v4();
    let now = Timestamp(OffsetDateTime::now_utc());
    let mut response = response::error(error, server.error_format, now);
    let headers = &mut response.headers;
    headers.push(("X-Request-ID".into(), id.to_string().into()));
    headers.push(("X-Content-Type-Options".into(), "nosniff".into()));
    server.metrics.count_malformed(response.status_code);
    log::info!(
        target: "cloakroom::access",
        request_id:% = id, status = response.status_code, client:% = peer.ip();
        "refused"
    );
    let manner = ResponseOptions { is_head: false, is_old: false, keeps_open: false };
    writer.send(stream, response, &manner)
}
