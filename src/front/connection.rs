//! One connection: one request after the other, answered in order.

use std::net::SocketAddr;
use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use super::Front;
use super::answer::{Manner, Writer};
use super::body::{Body, Reader};
use super::head::{self, Head};
use super::house::Stay;
use super::wire::{NoHead, Wire};
use crate::error::Error;
use crate::http::{request, response};
use crate::model::timestamp::Timestamp;

/// Serves the connection to its end.
pub fn serve(front: &Arc<Front>, stay: &Stay, peer: SocketAddr) {
    let Ok(mut wire) = Wire::new(stay.guest.clone()) else {
        return; // gone already
    };
    let mut writer = Writer::default();
    let answered = loop {
        let head = match wire.head(front.idle_timeout, front.head_timeout) {
            Ok(length) => {
                let head = head::parse(&wire.buffered()[..length], peer);
                wire.consume(length);
                head
            }
            Err(NoHead::Refused(error)) => Err(error),
            Err(NoHead::Closed) => break false,
        };
        let outcome = match head {
            Ok(head) => exchange(front, &mut wire, &mut writer, &head),
            Err(error) => refuse(front, &mut wire, &mut writer, &error, peer),
        };
        match outcome {
            Ok(true) => {}
            Ok(false) => break true,
            Err(_) => break false, // the client has gone, or its answer broke off
        }
    };
    if answered {
        wire.linger();
    }
}

/// One request and its answer. True where the connection can go on.
fn exchange(
    front: &Front,
    wire: &mut Wire,
    writer: &mut Writer,
    head: &Head,
) -> std::io::Result<bool> {
    let mut body = Body::of(head);
    let reader = Reader { body: &mut body, wire };
    let given = request::Body { reader: Box::new(reader), announced: head.announced };
    let response = (front.handler)(&head.request, given);
    // After a stop only what was pipelined before it is answered.
    let ends = wire.is_stopping() && !(body.is_over() && wire.holds_head());
    let goes_on = head.keeps_open && body.is_drainable() && !ends;
    let goes_on = writer.send(wire, response, &Manner::of(head, goes_on))?;
    Ok(goes_on && (body.is_over() || body.drain(wire)))
}

/// The front's own answer to what is no request. The connection ends with it.
fn refuse(
    front: &Front,
    wire: &mut Wire,
    writer: &mut Writer,
    error: &Error,
    peer: SocketAddr,
) -> std::io::Result<bool> {
    let id = Uuid::new_v4();
    let now = Timestamp(OffsetDateTime::now_utc());
    let mut response = response::error(error, front.error_format, now);
    let headers = &mut response.headers;
    headers.push(("X-Request-ID".into(), id.to_string().into()));
    headers.push(("X-Content-Type-Options".into(), "nosniff".into()));
    front.metrics.refused(response.status_code);
    log::info!(
        target: "cloakroom::access",
        request_id:% = id, status = response.status_code, client:% = peer.ip();
        "refused"
    );
    let manner = Manner { is_head: false, is_old: false, keeps_open: false };
    writer.send(wire, response, &manner)
}
