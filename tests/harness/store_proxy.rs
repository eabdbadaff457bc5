//! What stands between a service and its store, and does to requests and answers what networks and broken stores do.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::http_message::{HttpMessage, read_head};
use super::store_server::{refusal, url_at};
use super::{Port, StoreServer};

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

/// A proxy before a store.
pub struct StoreProxy {
    port: Port,
    shared: Arc<Shared>,
}

struct Shared {
    store: SocketAddr,
    /// The present fault and the beginning of the requests that it concerns, such as their method.
    fault: Mutex<Option<(StoreFault, &'static str)>>,
}

impl StoreProxy {
    pub fn start(store: &StoreServer) -> StoreProxy {
        let shared = Arc::new(Shared { store: store.port.address, fault: Mutex::default() });
        let of_port = shared.clone();
        let port = Port::open(move |socket| {
            let _ = pass_all(&socket, &of_port);
            let _ = socket.shutdown(Shutdown::Both);
        });
        StoreProxy { port, shared }
    }

    /// The setting with which a service uses the store through it.
    pub fn url(&self) -> String {
        url_at("http", self.port.address)
    }

    /// Misbehaves from now on for requests that begin like this, such as with a method.
    pub fn misbehave(&self, fault: StoreFault, beginning: &'static str) {
        *self.shared.fault.lock().expect("no panic") = Some((fault, beginning));
        if fault == StoreFault::Refuse {
            self.port.close();
        }
    }

    /// Passes all on again, over new connections.
    pub fn behave(&self) {
        match self.shared.fault.lock().expect("no panic").take() {
            Some((StoreFault::Refuse, _)) => self.port.open_again(),
            _ => self.port.end_connections(),
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

/// Passes requests and answers on, until either side ends the connection.
fn pass_all(socket: &TcpStream, shared: &Shared) -> io::Result<()> {
    let mut client = BufReader::new(socket);
    let mut store = BufReader::new(TcpStream::connect(shared.store)?);
    loop {
        let is_idle_closed = shared.fault_for("") == Some(StoreFault::CloseIdle);
        let idle = is_idle_closed.then_some(Duration::from_millis(100));
        socket.set_read_timeout(idle)?;
        let mut request = HttpMessage { head: read_head(&mut client)?, body: Vec::new() };
        socket.set_read_timeout(None)?;
        let fault = shared.fault_for(&request.head);
        while fault == Some(StoreFault::Stall) {
            // What is in the buffers of the connection is not read until the test ends this.
            thread::sleep(Duration::from_millis(50));
            if shared.fault_for(&request.head) != fault {
                return Ok(());
            }
        }
        request.read_body(&mut client)?;
        let answer = match fault {
            // The client or the test ends the connection.
            Some(StoreFault::Hang) => return HttpMessage::read(&mut client, true).map(drop),
            Some(StoreFault::Answer(status, code)) => refusal(status, code),
            Some(StoreFault::Pretend) => HttpMessage::answer(200, "", b""),
            _ => ask(&mut store, request, fault == Some(StoreFault::Flip))?,
        };
        match fault {
            Some(StoreFault::Late(by)) => thread::sleep(by),
            Some(StoreFault::Drop) => return Ok(()),
            _ => {}
        }
        send(socket, &answer.bytes(), fault)?;
    }
}

/// Passes a request on and returns the answer, with a flipped bit in one of them if that is wanted.
fn ask(
    store: &mut BufReader<TcpStream>,
    mut request: HttpMessage,
    flips: bool,
) -> io::Result<HttpMessage> {
    let flips_answer = flips && request.body.is_empty();
    if flips {
        flip(&mut request.body);
    }
    store.get_mut().write_all(&request.bytes())?;
    let mut answer = HttpMessage::read(store, request.word(0) != "HEAD")?;
    if flips_answer {
        flip(&mut answer.body);
    }
    Ok(answer)
}

/// Sends an answer, or as much of it as the fault lets through.
fn send(mut client: &TcpStream, bytes: &[u8], fault: Option<StoreFault>) -> io::Result<()> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    client.write_all(first)?;
    match fault {
        Some(StoreFault::Cut) => Err(io::ErrorKind::ConnectionAborted.into()),
        Some(StoreFault::Drip) => second.iter().try_for_each(|byte| {
            thread::sleep(Duration::from_millis(100));
            client.write_all(&[*byte])
        }),
        _ => client.write_all(second),
    }
}

fn flip(body: &mut [u8]) {
    let middle = body.len() / 2;
    if let Some(byte) = body.get_mut(middle) {
        *byte ^= 1;
    }
}
