//! Errors of uploads that come in several requests.

use super::table::{Explanation, errors, row};

errors! {
    /// Why a request about such an upload failed.
    #[derive(Debug, Clone, Copy)]
    pub enum PartialError

    /// There is no such upload of the sender, or it has ended.
    NotFound => row(404, "UPLOAD_NOT_FOUND", "Upload not found",
        "It may have expired. Begin it anew.");
    /// The request does not name the version of the protocol that is spoken here.
    Version => row(412, "TUS_VERSION", "Precondition failed", "Send the header `Tus-Resumable: 1.0.0`.");
    /// The body is not declared as a part of an upload.
    Type => row(415, "OFFSET_STREAM_REQUIRED", "Content type is not supported",
        "Send the header `Content-Type: application/offset+octet-stream`.");
    /// The upload has another number of bytes.
    Offset(offset: u64) => row(409, "OFFSET_MISMATCH", "Upload-Offset is not where the upload stands",
        "Go on at the offset that the header `Upload-Offset` of this response names.");
    /// A newer request goes on with the upload.
    Overtaken => row(409, "UPLOAD_OVERTAKEN", "Another request goes on with this upload",
        "What came before it is kept.");
    /// Another process writes the upload, or its file is being recorded.
    Busy => row(409, "UPLOAD_BUSY", "Another request goes on with this upload", "Try again in a second.");
}

impl PartialError {
    pub(super) fn explain(&self) -> Explanation {
        self.explanation()
    }

    /// What programs are told in headers.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let header = match self {
            PartialError::Offset(offset) => Some(("Upload-Offset", offset.to_string())),
            PartialError::Version => Some(("Tus-Version", "1.0.0".to_owned())),
            PartialError::Busy => Some(("Retry-After", "1".to_owned())),
            _ => None,
        };
        header.into_iter()
    }
}
