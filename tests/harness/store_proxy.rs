//! What stands between a service and its store, and does to requests and answers what networks and broken stores do.

use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::store_server::{HttpMessage, url_at};
use super::{StoreServer, eventually};

/// What the proxy does in place of passing a request and its answer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Nothing listens.
    Refuse,
    /// Takes the request and never answers.
    Hang,
    /// Takes the head of the request, and no more.
    Stall,
    /// Passes a half of the answer on, and closes the connection.
    Cut,
    /// Passes the first half of the answer on at once, and then a byte each tenth of a second.
    Drip,
    /// Flips a bit in the middle of the body of the request, or of the answer if the request has none.
    Flip,
    /// Answers with this status and code, without passing the request on.
    Answer(u16, &'static str),
    /// Passes the answer on so much later.
    Late(Duration),
    /// Passes the request on, and closes the connection in place of an answer.
    Drop,
    /// Acknowledges without passing the request on.
    Pretend,
    /// Passes all on, and closes each connection once it was idle for a tenth of a second.
    CloseIdle,
}

/// A proxy before a store. It runs until the end of the process.
pub struct StoreProxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    store: SocketAddr,
    /// The present fault and the beginning of the requests that it concerns, such as their method.
    fault: Mutex<Option<(StoreFault, &'static str)>>,
    open: Mutex<Vec<TcpStream>>,
}

impl StoreProxy {
    pub fn start(store: &StoreServer) -> StoreProxy {
        let shared =
            Shared { store: store.address, fault: Mutex::default(), open: Mutex::default() };
        let shared = Arc::new(shared);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = StoreProxy { address: listener.local_addr().expect("an address"), shared };
        proxy.listen(listener);
        proxy
    }

    fn listen(&self, listener: TcpListener) {
        let shared = self.shared.clone();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, shared) = (socket.expect("a connection"), shared.clone());
                if shared.fault_for("") == Some(StoreFault::Refuse) {
                    return; // which closes the port
                }
                let copy = || socket.try_clone().expect("a socket");
                shared.open.lock().expect("no panic").push(copy());
                let own = copy();
                thread::spawn(move || {
                    pass_all(socket, &shared);
                    // The copies keep it open otherwise.
                    let _ = own.shutdown(Shutdown::Both);
                });
            }
        });
    }

    /// The setting with which a service uses the store through it.
    pub fn url(&self) -> String {
        url_at("http", self.address)
    }

    /// Misbehaves from now on for requests that begin like this, such as with a method.
    pub fn misbehave(&self, fault: StoreFault, beginning: &'static str) {
        *self.shared.fault.lock().expect("no panic") = Some((fault, beginning));
        if fault == StoreFault::Refuse {
            // Wakes the thread that listens, and waits until the port is closed.
            while TcpStream::connect(self.address).is_ok() {}
            self.end_connections();
        }
    }

    /// Passes all on again, over new connections.
    pub fn behave(&self) {
        let before = self.shared.fault.lock().expect("no panic").take();
        self.end_connections();
        if matches!(before, Some((StoreFault::Refuse, _))) {
            self.listen(eventually(|| TcpListener::bind(self.address).ok()));
        }
    }

    fn end_connections(&self) {
        for socket in self.shared.open.lock().expect("no panic").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    /// The fault that concerns requests with this first line.
    fn fault_for(&self, first_line: &str) -> Option<StoreFault> {
        let fault = *self.fault.lock().expect("no panic");
        fault.filter(|(_, of)| first_line.starts_with(of)).map(|(fault, _)| fault)
    }
}

/// Passes requests and answers on, until either side ends. `None` is that end.
fn pass_all(socket: TcpStream, shared: &Shared) -> Option<()> {
    let mut client = BufReader::new(socket);
    let mut store = BufReader::new(TcpStream::connect(shared.store).ok()?);
    loop {
        let is_idle_closed = shared.fault_for("") == Some(StoreFault::CloseIdle);
        let idle = is_idle_closed.then_some(Duration::from_millis(100));
        client.get_ref().set_read_timeout(idle).ok()?;
        let mut request = HttpMessage::read_head(&mut client)?;
        client.get_ref().set_read_timeout(None).ok()?;
        let method = request.method().to_owned();
        let fault = shared.fault_for(&request.first_line);
        if fault == Some(StoreFault::Stall) {
            // Until the test ends it: what is in the buffers of the connection is not read.
            while shared.fault_for(&request.first_line) == fault {
                thread::sleep(Duration::from_millis(50));
            }
            return None;
        }
        request.read_body(&mut client)?;
        let own = match fault {
            Some(StoreFault::Hang) => {
                // The client or the test ends the connection.
                HttpMessage::read(&mut client, true);
                return None;
            }
            Some(StoreFault::Answer(status, code)) => Some(HttpMessage::refusal(status, code)),
            Some(StoreFault::Pretend) => Some(HttpMessage::answer(200, &[], b"")),
            Some(StoreFault::Flip) if !request.body.is_empty() => {
                flip(&mut request.body);
                None
            }
            _ => None,
        };
        let has_flipped = fault == Some(StoreFault::Flip) && !request.body.is_empty();
        let mut answer = match own {
            Some(answer) => answer,
            None => {
                store.get_mut().write_all(&request.bytes()).ok()?;
                HttpMessage::read(&mut store, method != "HEAD")?
            }
        };
        match fault {
            Some(StoreFault::Late(by)) => thread::sleep(by),
            Some(StoreFault::Drop) => return None,
            Some(StoreFault::Flip) if !has_flipped => flip(&mut answer.body),
            _ => {}
        }
        let bytes = answer.bytes();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let to = client.get_mut();
        match fault {
            Some(StoreFault::Cut) => {
                to.write_all(first).ok()?;
                return None;
            }
            Some(StoreFault::Drip) => {
                to.write_all(first).ok()?;
                for byte in second {
                    thread::sleep(Duration::from_millis(100));
                    to.write_all(&[*byte]).ok()?;
                }
            }
            _ => to.write_all(&bytes).ok()?,
        }
    }
}

fn flip(body: &mut [u8]) {
    let middle = body.len() / 2;
    if let Some(byte) = body.get_mut(middle) {
        *byte ^= 1;
    }
}
