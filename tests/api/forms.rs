//! Uploads as clients write them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Answer, Request, Server};

/// The boundary of every form.
pub const BOUNDARY: &str = "a-boundary";
/// A picture's first bytes.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A `multipart/form-data` body in the making.
#[derive(Clone, Default)]
pub struct Form(Vec<u8>);

impl Form {
    /// A part with any headers.
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
        let headers = format!(
            "Content-Disposition: form-data; name=\"file\"; filename=\"{filename}\"\r\nContent-Type: {content_type}"
        );
        self.part(&headers, content)
    }

    /// With the last delimiter.
    pub fn bytes(self) -> Vec<u8> {
        [&self.0, format!("--{BOUNDARY}--\r\n").as_bytes()].concat()
    }
}

/// A form with one file.
pub fn file(filename: &str, content_type: &str, content: &[u8]) -> Form {
    Form::default().file(filename, content_type, content)
}

impl Server {
    pub fn upload_request(&self, token: &str, body: Vec<u8>) -> Request {
        self.api("POST", "/uploads")
            .bearer(token)
            .header("Content-Type", &format!("multipart/form-data; boundary={BOUNDARY}"))
            .body(body)
    }

    pub fn upload(&self, token: &str, form: Form) -> Answer {
        self.upload_request(token, form.bytes()).send()
    }

    /// Uploads a text and gives its id.
    pub fn upload_text(&self, token: &str, filename: &str, text: &str) -> String {
        let answer = self.upload(token, file(filename, "text/plain", text.as_bytes()));
        id(&answer.expect(201).json())
    }

    pub fn download(&self, token: &str, id: &str) -> Request {
        self.api("GET", &format!("/uploads/{id}/download")).bearer(token)
    }

    /// Everything in the data directory's two rooms, sorted.
    pub fn contents(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for room in ["files", "tmp"] {
            for entry in std::fs::read_dir(self.data.0.join(room)).expect("a room") {
                found.push(entry.expect("an entry").path());
            }
        }
        found.sort();
        found
    }

    /// Begins an upload whose body is announced as `length` bytes, and sends `body` of it.
    pub fn begin_upload(&self, token: &str, length: usize, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let head = format!(
            "POST /api/v1/uploads HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("a head is sent");
        stream.write_all(body).expect("a body is sent");
        stream
    }
}

/// Reads an answer to its end and gives its status.
pub fn status(mut stream: TcpStream) -> u16 {
    let mut answer = Vec::new();
    // What came before a reset counts.
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let word = text.split(' ').nth(1);
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no answer: {text}"))
}

pub fn id(file: &Value) -> String {
    file["id"].as_str().expect("an id").to_owned()
}
