//! What stands between a server and its database.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Binds a port for a proxy before the database of `url`. Returns the listener, the host and port of the database, and
/// the URL of the proxy, through which connections are not encrypted.
pub fn listen_before(url: &str) -> (TcpListener, String, String) {
    let (credentials, rest) = url.rsplit_once('@').expect("a URL with a user");
    let (target, database) = rest.split_once('/').expect("a URL with a database");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let url = format!("{credentials}@{address}/{database}?sslmode=disable");
    (listener, target.to_owned(), url)
}

/// Passes connections on to a database, and can hold back what clients send: for them their connection hangs.
pub struct DatabaseProxy {
    pub url: String,
    gate: Arc<Gate>,
}

/// What all connections have in common.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// All that clients have sent, in pieces, of which none has parts of two statements of one connection.
    sent: Vec<Vec<u8>>,
    /// Pieces that contain this are held back.
    held_text: Option<Vec<u8>>,
    /// How many pieces are held back.
    held: usize,
    /// The answer to the next piece that contains this is lost.
    lost_text: Option<Vec<u8>>,
}

impl DatabaseProxy {
    pub fn start(url: &str) -> DatabaseProxy {
        let (listener, target, url) = listen_before(url);
        let gate = Arc::new(Gate::default());
        let proxy = DatabaseProxy { url, gate: gate.clone() };
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a connection");
                let server = TcpStream::connect(&target).expect("the database");
                pass(client, server, &gate).expect("sockets");
            }
        });
        proxy
    }

    /// From now on holds back each piece that contains `text`, and with it all that its connection sends afterwards.
    /// An empty text is in every piece.
    pub fn hold(&self, text: &[u8]) {
        self.gate.state.lock().expect("a gate").held_text = Some(text.to_owned());
    }

    /// How many connections are held back.
    pub fn held(&self) -> usize {
        self.gate.state.lock().expect("a gate").held
    }

    /// Passes on what is held back, and all that comes.
    pub fn release(&self) {
        self.gate.state.lock().expect("a gate").held_text = None;
        self.gate.changed.notify_all();
    }

    /// The answer to the next piece that contains `text` does not arrive: in its place comes what PgBouncer says if its
    /// connection to the server breaks, and only a moment later the end of the connection.
    pub fn lose_answer(&self, text: &[u8]) {
        self.gate.state.lock().expect("a gate").lost_text = Some(text.to_owned());
    }

    /// How many pieces, of those that clients have sent so far, meet a condition.
    pub fn count_sent(&self, condition: impl Fn(&[u8]) -> bool) -> usize {
        let state = self.gate.state.lock().expect("a gate");
        state.sent.iter().filter(|piece| condition(piece)).count()
    }
}

impl Gate {
    /// Returns when the piece may be passed on.
    fn pass(&self, piece: &[u8]) {
        let mut state = self.state.lock().expect("a gate");
        state.sent.push(piece.to_owned());
        let is_held = |state: &mut GateState| {
            state.held_text.as_ref().is_some_and(|text| contains(piece, text))
        };
        if is_held(&mut state) {
            state.held += 1;
            state = self.changed.wait_while(state, is_held).expect("a gate");
            state.held -= 1;
        }
    }

    /// Whether the answer to the piece is to be lost.
    fn loses(&self, piece: &[u8]) -> bool {
        let mut state = self.state.lock().expect("a gate");
        state.lost_text.take_if(|text| contains(piece, text)).is_some()
    }
}

/// `FATAL: server conn crashed?`, as a message of PostgreSQL's protocol.
const SERVER_CRASHED: &[u8] = b"E\0\0\0\x30SFATAL\0VFATAL\0C08P01\0Mserver conn crashed?\0\0";

pub fn contains(piece: &[u8], text: &[u8]) -> bool {
    text.is_empty() || piece.windows(text.len()).any(|part| part == text)
}

/// Passes on what both sides send, on two threads, until one of them closes the connection.
fn pass(mut client: TcpStream, mut server: TcpStream, gate: &Arc<Gate>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    let is_lost = Arc::new(AtomicBool::new(false));
    let gate = gate.clone();
    let loses = is_lost.clone();
    thread::spawn(move || {
        let mut block = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from_server.read(&mut block) {
            let answer = match loses.load(Ordering::Relaxed) {
                true => SERVER_CRASHED,
                false => &block[..count],
            };
            if to_client.write_all(answer).is_err() || loses.load(Ordering::Relaxed) {
                break;
            }
        }
        if loses.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(200));
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let mut block = vec![0; 1 << 16];
        while let Ok(count @ 1..) = client.read(&mut block) {
            gate.pass(&block[..count]);
            is_lost.store(gate.loses(&block[..count]), Ordering::Relaxed);
            if server.write_all(&block[..count]).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    });
    Ok(())
}
