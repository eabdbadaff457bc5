//! Connections to the store. `ureq` limits each write to a socket, but repeats one that took only a part of the bytes
//! until its limit, so a store that takes nothing would hold an upload for several times as long.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// Opens connections that are not encrypted.
#[derive(Debug)]
pub struct StoreConnector;

impl Connector for StoreConnector {
    type Out = StoreConnection;

    /// Tries all addresses, each for an equal part of the time.
    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<()>,
    ) -> Result<Option<StoreConnection>, Error> {
        let ConnectionDetails { addrs, config, timeout, .. } = details;
        let limit = *timeout.after / u32::try_from(addrs.len().max(1)).unwrap_or(u32::MAX);
        let mut outcome = Err(Error::HostNotFound);
        for address in addrs {
            outcome = TcpStream::connect_timeout(address, limit).map_err(|e| explained(e, timeout));
            if outcome.is_ok() {
                break;
            }
        }
        let stream = outcome?;
        stream.set_nodelay(true)?;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(StoreConnection { stream, buffers, read_limit: None, write_limit: None }))
    }
}

/// A connection.
#[derive(Debug)]
pub struct StoreConnection {
    stream: TcpStream,
    buffers: LazyBuffers,
    /// The limits that the socket has. They are nearly always the same, and then not set again.
    read_limit: Option<Duration>,
    write_limit: Option<Duration>,
}

impl Transport for StoreConnection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    /// Fails if no byte is taken for as long as a write may take.
    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let (timeout, mut begin) = (timeout.for_write(), Instant::now());
        let (mut sent, mut left) = (0, rest(&timeout, Duration::ZERO)?);
        while sent < amount {
            if self.write_limit != Some(left) {
                self.stream.set_write_timeout(Some(left))?;
                self.write_limit = Some(left);
            }
            let write_began = Instant::now();
            match self.stream.write(self.buffers.output().get(sent..amount).unwrap_or_default()) {
                Ok(0) => return Err(io::Error::from(ErrorKind::WriteZero).into()),
                Ok(taken) => {
                    sent += taken;
                    // The socket waits for as many bytes as it can take within the limit.
                    if write_began.elapsed() < left {
                        begin = Instant::now();
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(explained(e, &timeout)),
            }
            if sent < amount {
                left = rest(&timeout, begin.elapsed())?;
            }
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let (timeout, begin) = (timeout.for_read(), Instant::now());
        let mut left = rest(&timeout, Duration::ZERO)?;
        loop {
            if self.read_limit != Some(left) {
                self.stream.set_read_timeout(Some(left))?;
                self.read_limit = Some(left);
            }
            match self.stream.read(self.buffers.input_append_buf()) {
                Ok(count) => {
                    self.buffers.input_appended(count);
                    return Ok(count > 0);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {
                    left = rest(&timeout, begin.elapsed())?;
                }
                Err(e) => return Err(explained(e, &timeout)),
            }
        }
    }

    /// Whether an idle connection may be used: it has neither ended nor bytes that nobody asked for.
    fn is_open(&mut self) -> bool {
        let peek = || {
            self.stream.set_nonblocking(true)?;
            let outcome = self.stream.peek(&mut [0]);
            self.stream.set_nonblocking(false)?;
            outcome
        };
        peek().is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    }
}

/// What is left of the time, which must be more than none.
fn rest(timeout: &NextTimeout, elapsed: Duration) -> Result<Duration, Error> {
    let left = timeout.after.saturating_sub(elapsed);
    if left.is_zero() { Err(Error::Timeout(timeout.reason)) } else { Ok(left) }
}

/// The error of a socket, with its limit named if that was exceeded.
fn explained(error: io::Error, timeout: &NextTimeout) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}
