//! The HTTP/1.1 listener that faces strangers (contract, 8): a thread a connection, one buffer of
//! fixed size each, an absolute deadline on every wait. Handlers are given a `rouille::Request` and a
//! reader of its body and cannot tell it from the stock server.

mod body;
mod chunked;
mod client_stream;
mod connection;
mod connections;
mod head;
mod listener;
mod response_writer;
mod rouille_server;
mod shutdown;

use std::sync::Arc;
use std::time::Duration;

use connections::Connections;

use crate::config::{Config, ErrorFormat};
use crate::http::body::Body;
use crate::telemetry::metrics::Metrics;

pub use listener::{bind, run};
pub use rouille_server::RouilleServer;
pub use shutdown::ShutdownSignal;

// What the contract fixes (section 8), in its order.

/// "Head: at most 16 KiB": bytes, and the size of a connection's buffer.
const MAX_HEAD: usize = 16 * 1024;
/// "and 100 headers".
const MAX_HEADERS: usize = 100;
/// "then a short lingering close": longest time, and what is read and dropped in it: 64 chunks, 16 MiB,
/// enough for a file well over the default limit, whose sender looks for an answer only when all of
/// it is sent.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_CHUNKS: usize = 64;
const LINGER_CHUNK: usize = 256 * 1024;
/// "slower than 4 KiB/s on average": bytes a second.
const BODY_RATE: u64 = 4 * 1024;
/// "after its first 10 s".
const BODY_GRACE: Duration = Duration::from_secs(10);
/// "drained up to 64 KiB": bytes.
const MAX_DRAIN: u64 = 64 * 1024;
/// "cut after 30 s without progress".
const MAX_STALL: Duration = Duration::from_secs(30);
/// "finish every request ... (at most 30 s)".
pub const MAX_STOP: Duration = Duration::from_secs(30);

// What it leaves open.

/// Connections the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;
/// Stack of a connection's thread, bytes; untouched pages cost nothing. JSON nested 127 deep
/// overflows 128 KiB in a debug build.
const STACK: usize = 512 * 1024;
/// Pause after an error of `accept`, and longest wait for a cut connection to be gone.
const PAUSE: Duration = Duration::from_millis(20);
/// After a stop: for heads that are on their way, so that an orderly client loses no request.
const STOP_GRACE: Duration = Duration::from_millis(100);
/// Storage beside connections and the database's pool.
const FILES_BESIDE: usize = 32;

/// What answers requests. It must not panic; where it does, its connection ends.
pub type Handler = dyn Fn(&rouille::Request, Body) -> rouille::Response + Send + Sync;

/// What connections share.
pub struct Server {
    /// Answers requests.
    pub handler: Box<Handler>,
    /// `CLOAKROOM_HEAD_TIMEOUT_SECONDS`.
    pub head_timeout: Duration,
    /// `CLOAKROOM_IDLE_TIMEOUT_SECONDS`.
    pub idle_timeout: Duration,
    /// Body of the server's own refusals.
    pub error_format: ErrorFormat,
    /// Counts connections and refusals.
    pub metrics: Metrics,
    /// The open connections.
    pub connections: Arc<Connections>,
}

impl Server {
    /// A server without connections.
    pub fn new(
        config: &Config,
        metrics: Metrics,
        stop: &ShutdownSignal,
        handler: Box<Handler>,
    ) -> Server {
        Server {
            handler,
            head_timeout: config.head_timeout,
            idle_timeout: config.idle_timeout,
            error_format: config.error_format,
            metrics,
            connections: Arc::new(Connections::new(listener::connections_most(config), stop)),
        }
    }
}

/// Tries a property on random values for `CLOAKROOM_TEST_PROPERTY_SECONDS`, else a second. Read when
/// the tests are compiled: only the settings read the environment.
#[cfg(test)]
fn repeat<S: proptest::strategy::Strategy>(
    values: &S,
    holds: impl Fn(S::Value) -> proptest::test_runner::TestCaseResult,
) {
    let seconds = option_env!("CLOAKROOM_TEST_PROPERTY_SECONDS").and_then(|text| text.parse().ok());
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds.unwrap_or(1)) {
        let mut runner = proptest::test_runner::TestRunner::default();
        if let Err(fault) = runner.run(values, &holds) {
            panic!("{fault}");
        }
    }
}
