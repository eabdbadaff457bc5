//! The HTTP/1.1 server that faces the internet directly: one thread and one read buffer of fixed size per connection,
//! and a deadline on every wait for a client. It exists because the server under `rouille` (`tiny_http`) has no
//! timeouts and no limits. Handlers receive a `rouille::Request` and a reader of its body, so they cannot tell which
//! of the two servers runs.
//!
//! A connection passes through these files: `listener` accepts it, `connections` registers it, `request_loop` reads
//! its requests with `client_stream`, `head`, `target`, `body` and `chunked`, and `response_writer` answers them.

mod body;
mod builtin_server;
mod chunked;
mod client_stream;
mod connection;
mod connections;
mod head;
pub mod limits;
mod listener;
mod property;
mod request_loop;
mod response_writer;
mod rouille_server;
mod shutdown;
mod target;

pub use builtin_server::{RequestHandler, Server};
pub use listener::{bind, run};
pub use rouille_server::RouilleServer;
pub use shutdown::ShutdownSignal;
