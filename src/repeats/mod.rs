//! Uploads that a client sends again with the same `Idempotency-Key`.

mod statements;

pub use statements::find;

use crate::error::{Error, FieldError};
use crate::http::request::Request;
use crate::model::file::{File, KeyedUpload, NewFile};
use crate::model::{problems, rules};

/// The key in the header `Idempotency-Key`, if there is one.
pub fn key(request: &Request) -> Result<Option<String>, Error> {
    let of_header = |problem| FieldError::of_header("Idempotency-Key", problem);
    let mut lines = request.headers("Idempotency-Key");
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => rules::idempotency_key(line).map(Some).map_err(of_header),
        (Some(_), Some(_)) => Err(of_header(problems::NOT_A_KEY)),
    }
}

/// The error of an upload whose key another one has.
pub fn key_reused() -> Error {
    FieldError::of_header("Idempotency-Key", problems::KEY_REUSED)
}

/// The file of the first upload with the key of `upload`, as it was then. Fails if that was not the same upload.
pub fn first_file(upload: &NewFile, first: &KeyedUpload) -> Result<File, Error> {
    if first.request_hash != upload.request_hash() {
        return Err(key_reused());
    }
    Ok(File {
        id: first.file,
        user_id: upload.user,
        filename: upload.filename.clone(),
        original_filename: upload.filename.clone(),
        content_type: upload.content_type.clone(),
        file_size: upload.size as i64,
        file_hash: upload.hash.clone(),
        description: upload.description.clone(),
        upload_date: first.created_at,
        uploaded_at: first.created_at,
        updated_at: first.created_at,
        is_public: false,
        version: 1,
    })
}
