//! Uploads in several requests, as tus 1.0.0 says.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Anonymous, Credentials, Request, Server, Value};

pub const BYTES: &str = "application/offset+octet-stream";
pub const ALL: &str = "/api/v1/uploads/partial";

/// `Upload-Metadata` with these pairs.
pub fn metadata(pairs: &[(&str, &str)]) -> String {
    let pair = |(key, value): &(&str, &str)| format!("{key} {}", STANDARD.encode(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join(",")
}

impl Server {
    /// A request of the protocol to a path.
    pub fn tus(&self, method: &str, path: &str, sender: impl Credentials) -> Request {
        self.request_at_root(method, path).by(sender).header("Tus-Resumable", "1.0.0")
    }

    /// A request that begins an upload of so many bytes.
    pub fn beginning(&self, path: &str, sender: impl Credentials, length: usize) -> Request {
        let request = self.tus("POST", path, sender).header("Upload-Length", &length.to_string());
        request.header("Upload-Metadata", &metadata(&[("filename", "a.txt")]))
    }

    /// Begins an upload of a text, and returns its path.
    #[track_caller]
    pub fn begin_partial(&self, sender: impl Credentials, length: usize) -> String {
        let answer = self.beginning(ALL, sender, length).send().expect(201);
        answer.header("Location").to_owned()
    }

    /// A request that adds bytes.
    pub fn adding(&self, path: &str, sender: impl Credentials, at: usize, bytes: &[u8]) -> Request {
        let request = self.tus("PATCH", path, sender).header("Content-Type", BYTES);
        request.header("Upload-Offset", &at.to_string()).body(bytes)
    }

    /// Where an upload stands.
    #[track_caller]
    pub fn offset(&self, path: &str, sender: impl Credentials) -> usize {
        let answer = self.tus("HEAD", path, sender).send().expect(200);
        answer.header("Upload-Offset").parse().expect("a number")
    }

    /// What is listed.
    #[track_caller]
    pub fn partial_uploads(&self, sender: impl Credentials) -> Vec<Value> {
        self.tus("GET", ALL, sender).send().expect(200).list("uploads")
    }

    /// Begins an upload of a text by a link, and returns its path.
    #[track_caller]
    pub fn begin_by_link(&self, link: &str, length: usize) -> String {
        let all = format!("{link}/partial");
        let answer = self.beginning(&all, Anonymous, length).send().expect(201);
        answer.header("Location").to_owned()
    }
}

/// The id of an upload.
pub fn id_of(path: &str) -> &str {
    path.rsplit('/').next().expect("an id")
}
