//! Uploads as browsers and other clients send them (RFC 7578).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use super::{Answer, Credentials, Request, Server};

/// The boundary of every form.
pub const BOUNDARY: &str = "a-boundary";
/// The first bytes of a picture.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// The parts of a `multipart/form-data` body.
#[derive(Clone, Default)]
pub struct Form(Vec<u8>);

impl Form {
    /// Adds a part with any headers.
    pub fn part(mut self, headers: &str, content: &[u8]) -> Form {
        self.0.extend(format!("--{BOUNDARY}\r\n{headers}\r\n\r\n").as_bytes());
        self.0.extend(content);
        self.0.extend(b"\r\n");
        self
    }

    pub fn field(self, name: &str, text: &str) -> Form {
        self.part(&format!("Content-Disposition: form-data; name=\"{name}\""), text.as_bytes())
    }

    pub fn file(self, filename: &str, content_type: &str, content: &[u8]) -> Form {
        let disposition =
            format!("Content-Disposition: form-data; name=\"file\"; filename=\"{filename}\"");
        self.part(&format!("{disposition}\r\nContent-Type: {content_type}"), content)
    }

    /// Adds the parts of another form.
    pub fn then(mut self, other: Form) -> Form {
        self.0.extend(other.0);
        self
    }

    /// The body, with its closing delimiter.
    pub fn bytes(self) -> Vec<u8> {
        [&self.0, format!("--{BOUNDARY}--\r\n").as_bytes()].concat()
    }
}

/// A form with one file.
pub fn file_form(filename: &str, content_type: &str, content: &[u8]) -> Form {
    Form::default().file(filename, content_type, content)
}

/// A text of that length in bytes, made of increasing numbers, so that no two parts of it are equal.
pub fn numbers(length: usize) -> String {
    let mut text: String = (0..=length / 8).map(|number| format!("{number:07} ")).collect();
    text.truncate(length);
    text
}

impl Server {
    /// Uploads a text file.
    pub fn upload(
        &self,
        sender: impl Credentials,
        filename: &str,
        content: impl AsRef<[u8]>,
    ) -> Answer {
        self.upload_form(sender, file_form(filename, "text/plain", content.as_ref()))
    }

    pub fn upload_form(&self, sender: impl Credentials, form: Form) -> Answer {
        self.upload_request(sender, form.bytes()).send()
    }

    /// An upload whose body may be anything.
    pub fn upload_request(&self, sender: impl Credentials, body: Vec<u8>) -> Request {
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        self.request("POST", "/uploads").by(sender).header("Content-Type", &content_type).body(body)
    }

    /// Uploads a text file and returns its id.
    #[track_caller]
    pub fn new_file(&self, sender: impl Credentials, filename: &str, content: &str) -> String {
        self.upload(sender, filename, content).expect(201).id()
    }

    /// Begins a download, as [`Server::begin_slow_request`] does.
    pub fn begin_download(&self, sender: impl Credentials, file: &str) -> TcpStream {
        self.begin_slow_request(sender, &format!("/uploads/{file}/download"))
    }

    /// Begins a request below `/api/v1` by a client with small buffers, so that the server learns at once how slowly it
    /// reads.
    pub fn begin_slow_request(&self, sender: impl Credentials, path: &str) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let address: SocketAddr = self.address.parse().expect("an address");
        socket.connect(&address.into()).expect("a connection");
        let mut stream = TcpStream::from(socket);
        let head = format!(
            "GET /api/v1{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            sender.access_token().expect("a token")
        );
        stream.write_all(head.as_bytes()).expect("the head is sent");
        stream
    }

    /// Begins an upload: sends a head with the header that frames the body, and the first bytes of the body.
    pub fn begin_upload(&self, sender: impl Credentials, framing: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let token = sender.access_token().expect("a token");
        let head = format!(
            "POST /api/v1/uploads HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n{framing}\r\n\r\n"
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body))
            .expect("the beginning is sent");
        stream
    }
}

/// Reads from a connection to its end and returns the status of the response.
pub fn status_of(mut stream: TcpStream) -> u16 {
    let mut answer = Vec::new();
    // The server may reset the connection after it has answered: what came before counts.
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let word = text.split(' ').nth(1);
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no answer: {text}"))
}
