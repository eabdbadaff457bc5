//! A deadline on every wait for PostgreSQL's answer.
//!
//! A server that hangs without closing its socket would hold a thread forever: the statement timeout is enforced by the
//! server itself, TCP keeps an idle connection for hours, and the `postgres` crate has no read timeout. Its connections
//! therefore read from a [`DeadlineStream`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The time by which the server's next bytes must have arrived. Clones share it: the pool's entry for a connection
/// moves it before each statement, and the connection's stream looks at it while it waits.
#[derive(Clone)]
pub struct Deadline {
    /// An `Instant` does not fit an atomic, so the deadline is kept in nanoseconds after this one. Not in a coarser
    /// unit: a check that ended a moment before its limit would not count as one that the server let pass.
    start: Instant,
    nanos: Arc<AtomicU64>,
}

impl Deadline {
    /// Creates a deadline `wait` from now.
    pub fn new(wait: Duration) -> Deadline {
        let deadline = Deadline { start: Instant::now(), nanos: Arc::new(AtomicU64::new(0)) };
        deadline.set(wait);
        deadline
    }

    /// Moves the deadline to `wait` from now.
    pub fn set(&self, wait: Duration) {
        // Relaxed: only one thread at a time uses a connection, and the number guards no other memory.
        self.nanos.store((self.start.elapsed() + wait).as_nanos() as u64, Ordering::Relaxed);
    }

    /// Returns the deadline as a point in time.
    pub fn at(&self) -> Instant {
        self.start + Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

/// A socket with TLS on top of it.
pub type RustlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The socket of a connection, with or without TLS.
pub enum Transport {
    /// The socket itself.
    Plain(Socket),
    /// TLS over the socket. Boxed, because its state is large.
    Tls(Box<RustlsStream>),
}

trait ReadWrite: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> ReadWrite for T {}

impl Transport {
    fn stream(&mut self) -> Pin<&mut dyn ReadWrite> {
        match self {
            Transport::Plain(socket) => Pin::new(socket as &mut dyn ReadWrite),
            Transport::Tls(stream) => Pin::new(stream.as_mut()),
        }
    }
}

/// A stream whose reads fail with [`io::ErrorKind::TimedOut`] once the deadline has passed. Writes have no deadline:
/// statements are small, and the read that follows each of them has one.
pub struct DeadlineStream {
    transport: Transport,
    deadline: Deadline,
    /// Wakes a waiting read. It is kept from read to read, and moved only if it is set for later than the current
    /// deadline, or goes off before it, so a statement that is answered in time costs no timer.
    timer: Option<Pin<Box<Sleep>>>,
}

impl DeadlineStream {
    /// Puts `deadline` on the reads from `transport`.
    pub fn new(transport: Transport, deadline: Deadline) -> DeadlineStream {
        DeadlineStream { transport, deadline, timer: None }
    }
}

impl AsyncRead for DeadlineStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(outcome) = self.transport.stream().poll_read(cx, buf) {
            return Poll::Ready(outcome);
        }
        loop {
            let at = self.deadline.at();
            if at <= Instant::now() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let timer =
                self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
            // The timer may have been set for a statement with more time than this one.
            if timer.deadline() > at.into() {
                timer.as_mut().reset(at.into());
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            // The timer was set for an earlier deadline.
            timer.as_mut().reset(at.into());
        }
    }
}

impl AsyncWrite for DeadlineStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.transport.stream().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.stream().poll_shutdown(cx)
    }
}

impl TlsStream for DeadlineStream {
    /// Ties SCRAM authentication to the TLS session (RFC 5929).
    fn channel_binding(&self) -> ChannelBinding {
        match &self.transport {
            Transport::Plain(_) => ChannelBinding::none(),
            Transport::Tls(stream) => stream.channel_binding(),
        }
    }
}
