//! The stock `rouille::Server`, as an alternative to this module's own server. It must run behind a proxy,
//! because it has no timeouts and no limit on the size of a request's head.

use std::io::{self, Cursor, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::RequestHandler;
use super::shutdown::ShutdownSignal;
use crate::http::body::Body;
use crate::http::response::{BodyParts, Response, ResponseBody};

/// How often the server checks whether it is to stop.
const POLL_PERIOD: Duration = Duration::from_millis(200);

type RouilleHandler = Box<dyn Fn(&rouille::Request) -> rouille::Response + Send + Sync>;

/// A bound server, not yet answering.
pub struct RouilleServer(rouille::Server<RouilleHandler>);

impl RouilleServer {
    /// Binds `address`. Requests are answered by `workers` threads.
    pub fn bind(
        address: SocketAddr,
        workers: usize,
        handler: Box<RequestHandler>,
    ) -> Result<RouilleServer, Box<dyn std::error::Error + Send + Sync>> {
        let answer: RouilleHandler = Box::new(move |request| answer(&handler, request));
        Ok(RouilleServer(rouille::Server::new(address, answer)?.pool_size(workers)))
    }

    /// The address it listens on, with the port that was picked if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.0.server_addr()
    }

    /// Answers requests until the process is asked to stop, then finishes those that are being answered.
    ///
    /// `rouille` only notices a stop in a pause between requests, and it cannot be told to refuse new ones.
    /// So this returns after the time for open requests in any case.
    pub fn run(self, stop: ShutdownSignal) {
        let stop = Arc::new(stop);
        let polled = stop.clone();
        let serving = thread::spawn(move || {
            while !polled.is_requested() {
                self.0.poll_timeout(POLL_PERIOD);
            }
            self.0.join();
        });
        stop.wait();
        let deadline = Instant::now() + stop.begin_stop();
        while !serving.is_finished() && Instant::now() < deadline {
            thread::sleep(POLL_PERIOD);
        }
    }
}

/// Calls the handler with the request and its body, which `rouille` keeps inside the request.
fn answer(handler: &RequestHandler, request: &rouille::Request) -> rouille::Response {
    let length = request.header("Content-Length").and_then(|text| text.parse().ok());
    let body = match request.data() {
        Some(mut data) => Body::new(move |buffer, _| data.read(buffer), length),
        None => Body::new(|_, _| Ok(0), length),
    };
    into_rouille(handler(request, body))
}

/// The response in the form that `rouille` sends.
fn into_rouille(response: Response) -> rouille::Response {
    let data = match response.body {
        ResponseBody::Bytes(bytes) => rouille::ResponseBody::from_data(bytes),
        ResponseBody::File(range) => {
            let length = range.length as usize;
            rouille::ResponseBody::from_reader_and_size(range, length)
        }
        // If reading fails, the server ends the response as if it were whole. Contents in a store are streams, which is
        // why the settings refuse a store with this server.
        ResponseBody::Stream(reader, length) => {
            rouille::ResponseBody::from_reader_and_size(reader, length as usize)
        }
        // A failure ends this one as if it were whole, too; an archive then lacks its end, without which none is read.
        ResponseBody::Parts { parts, length, .. } => {
            let reader = PartReader { part: Box::new(io::empty()), parts };
            match length {
                Some(length) => {
                    rouille::ResponseBody::from_reader_and_size(reader, length as usize)
                }
                None => rouille::ResponseBody::from_reader(reader),
            }
        }
    };
    let headers = response.headers.into_iter().map(|(name, value)| (name.into(), value));
    rouille::Response {
        status_code: response.status,
        headers: headers.collect(),
        data,
        upgrade: None,
    }
}

/// A body of parts as `rouille` reads it.
struct PartReader {
    part: Box<dyn Read + Send>,
    parts: Box<BodyParts>,
}

impl Read for PartReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.part.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.part = match self.parts.next().transpose()? {
                Some(ResponseBody::Bytes(bytes)) => Box::new(Cursor::new(bytes)),
                Some(ResponseBody::File(range)) => Box::new(range),
                Some(ResponseBody::Stream(reader, _)) => reader,
                Some(ResponseBody::Parts { .. }) | None => return Ok(0),
            }
        }
    }
}
