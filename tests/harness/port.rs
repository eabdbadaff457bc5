//! A port on which a server of a test listens, and which it may close and open again.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use socket2::{Domain, Socket, Type};

use super::eventually;

/// A port of 127.0.0.1. It is closed when this is dropped.
pub struct Port {
    pub address: SocketAddr,
    serve: Arc<dyn Fn(TcpStream) + Send + Sync>,
    open: Mutex<Option<OpenPort>>,
    /// A socket that does not listen, which keeps the number while the port is closed.
    closed: Mutex<Option<Socket>>,
}

struct OpenPort {
    /// Copies of the sockets of all connections. `None` once the port is being closed.
    sockets: Arc<Mutex<Option<Vec<TcpStream>>>>,
    thread: JoinHandle<()>,
}

impl Port {
    /// Opens a free one. Each connection is served by a thread of its own. It stays open when that ends, unless it is
    /// shut down.
    pub fn open(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Port {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (open, closed) = (Mutex::default(), Mutex::default());
        let port = Port { address, serve: Arc::new(serve), open, closed };
        port.listen(listener);
        port
    }

    /// Opens it again, after it was closed.
    pub fn open_again(&self) {
        let socket = self.closed.lock().expect("no panic").take().expect("a closed port");
        socket.listen(128).expect("it listens");
        self.listen(socket.into());
    }

    fn listen(&self, listener: TcpListener) {
        let sockets = Arc::new(Mutex::new(Some(Vec::new())));
        let (serve, all) = (self.serve.clone(), sockets.clone());
        let thread = thread::spawn(move || {
            let mut threads = Vec::new();
            for socket in listener.incoming() {
                let socket = socket.expect("a connection");
                match all.lock().expect("no panic").as_mut() {
                    Some(sockets) => sockets.push(socket.try_clone().expect("a socket")),
                    None => break,
                }
                let serve = serve.clone();
                threads.push(thread::spawn(move || serve(socket)));
            }
            drop(listener);
            threads
                .into_iter()
                .for_each(|thread| thread.join().expect("the server does not panic"));
        });
        *self.open.lock().expect("no panic") = Some(OpenPort { sockets, thread });
    }

    /// Ends all connections. New ones are served as before.
    pub fn end_connections(&self) {
        if let Some(open) = &*self.open.lock().expect("no panic") {
            let before = open.sockets.lock().expect("no panic").replace(Vec::new());
            end_all(before);
        }
    }

    /// Closes the port, for nobody else to open, and all connections, and waits for their threads.
    pub fn close(&self) {
        self.end();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("it may follow another one");
        eventually(|| socket.bind(&self.address.into()).ok());
        *self.closed.lock().expect("no panic") = Some(socket);
    }

    fn end(&self) {
        let Some(open) = self.open.lock().expect("no panic").take() else { return };
        end_all(open.sockets.lock().expect("no panic").take());
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
        let outcome = open.thread.join();
        if !thread::panicking() {
            outcome.expect("the server does not panic");
        }
    }
}

fn end_all(sockets: Option<Vec<TcpStream>>) {
    for socket in sockets.into_iter().flatten() {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.end();
    }
}
