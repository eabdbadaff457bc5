//! Links to send files by, and files that are sent by them.

use std::io::Write;
use std::net::TcpStream;

use super::{Answer, BOUNDARY, Credentials, Form, Request, Server, Tokens, Value, file_form, json};

impl Server {
    /// Makes all accounts old enough to ask for files.
    pub fn settle(&self) {
        self.database.run("UPDATE users SET created_at = created_at - interval '8 days'");
    }

    /// Starts a service with a user who may ask for files.
    pub fn with_settled(settings: &[(&str, &str)], name: &str) -> (Server, Tokens) {
        let (api, [user]) = Server::with_users(settings, [name]);
        api.settle();
        (api, user)
    }

    /// Makes a link to send files by, and returns its path.
    #[track_caller]
    pub fn ask_for_files(&self, sender: impl Credentials, mut body: Value) -> String {
        if body["upload_to"].is_null() {
            body["upload_to"] = json!("/in");
        }
        let answer = self.post("/links", sender, body).expect(201);
        answer.json()["url"].as_str().expect("a path").to_owned()
    }

    /// A request that sends a form by a link.
    pub fn send_request(&self, link: &str, form: Form) -> Request {
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = self.request_at_root("POST", &format!("{link}/files"));
        request.header("Content-Type", &content_type).body(form.bytes())
    }

    /// Sends a text by a link.
    pub fn send_file(&self, link: &str, name: &str, content: &[u8]) -> Answer {
        self.send_request(link, file_form(name, "text/plain", content)).send()
    }

    /// Begins to send a text of so many bytes by a link, from a client that a trusted proxy names, and stops before its
    /// last byte. Returns what is left to send.
    pub fn begin_send(&self, link: &str, from: &str, length: usize) -> (TcpStream, Vec<u8>) {
        let mut form = file_form("late.txt", "text/plain", &vec![b'x'; length]).bytes();
        let rest = form.split_off(form.len() - BOUNDARY.len() - 9);
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let head = format!(
            "POST {link}/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: {from}\r\n\
             Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {}\r\n\r\n",
            form.len() + rest.len()
        );
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&form));
        sent.expect("the beginning is sent");
        (stream, rest)
    }

    /// What a link to send files by says of itself.
    #[track_caller]
    pub fn about_link(&self, link: &str) -> Value {
        self.open_link(&format!("{link}?about=true")).expect(200).json()
    }
}
