//! Uploads that come in several requests: how they begin, go on, are shown and end. Those by links go the same way.

use std::fs::File;

use serde_json::json;
use uuid::Uuid;

use super::completion::{complete, end};
use super::metadata::{self, check_version, has_bytes, number};
use super::statements::{self, PartialUpload, Whose};
use super::writing::{Place, Writing, lock, lock_content, remove};
use crate::error::Error;
use crate::error::partial::PartialError;
use crate::http::client_address::first_bits;
use crate::http::response::{self, Response};
use crate::model::file::version_tag;
use crate::model::user::TokenScope;
use crate::request::context::RequestContext;
use crate::request::identity::{Credential, SignedIn};
use crate::storage::draft::partial::boot;

/// Most uploads that are listed, and the most memory that each takes, in bytes.
const MAX_LISTED: i64 = 500;
const LISTED_MEMORY: usize = 4096;

/// Where users' own uploads are found.
fn own<'a>(user: &'a SignedIn) -> Place<'a> {
    let whose = Whose { user: user.id(), link: None };
    Place { owner: &user.account, whose, user: Some(user), path: "/api/v1/uploads/partial".into() }
}

/// `GET /api/v1/uploads/partial`: the user's uploads that are not complete, and those by the user's links.
pub fn list(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    check_version(&context.request)?;
    let db = context.database_with_room(MAX_LISTED as usize * LISTED_MEMORY);
    let mut uploads = statements::list(&db, user.id(), MAX_LISTED)?;
    for upload in &mut uploads {
        let offset = offset_of(context, upload).unwrap_or(upload.synced());
        upload.file_offset = offset.cast_signed();
    }
    response::json(200, &json!({ "uploads": uploads }))
}

/// `POST /api/v1/uploads/partial`: begins an upload, perhaps with its first bytes.
pub fn create(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    begin(context, &own(user), None)
}

/// `HEAD /api/v1/uploads/partial/{upload_id}`: how far an upload has come.
pub fn show(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    check_version(&context.request)?;
    let id = context.path_id()?;
    match user.credential {
        Credential::PersonalToken(TokenScope::Read, _) => state(context, &own(user), id, 200),
        _ => show_whole(context, &own(user), id),
    }
}

/// `PATCH /api/v1/uploads/partial/{upload_id}`: adds bytes to an upload.
pub fn append(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    check_version(&context.request)?;
    let id = context.path_id()?;
    go_on(context, &own(user), id)
}

/// `DELETE /api/v1/uploads/partial/{upload_id}`: ends an upload; of a complete one the file stays.
pub fn delete(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    check_version(&context.request)?;
    let id = context.path_id()?;
    give_up(context, own(user).whose, id)
}

/// Begins an upload; `folder` is where the file will lie whatever the request says.
pub fn begin(
    context: &mut RequestContext,
    place: &Place,
    folder: Option<String>,
) -> Result<Response, Error> {
    check_version(&context.request)?;
    let app = context.app;
    let file = metadata::read(&context.request, app.config.max_upload_size, folder)?;
    let announced = context.request.header("Content-Length").and_then(|text| text.parse().ok());
    let has_bytes = has_bytes(&context.request);
    if has_bytes && announced.is_some_and(|length: u64| length > file.size) {
        return Err(Error::BodyTooLarge(file.size));
    }
    let network = place.whose.link.map(|_| first_bits(context.client, 24, 48));
    let quotas = app.file_quotas();
    let (id, _, ended) = statements::insert(&context.db, place.whose, network, &file, &quotas)?;
    for other in ended {
        app.extras.writers.end(other);
        app.storage.remove_partial(other);
    }
    let created = app.storage.create_partial(id);
    let has_file = created.is_ok();
    let outcome = created.and_then(|()| match has_bytes || file.size == 0 {
        true => write(context, place, id, 0),
        false => Ok(()),
    });
    // Nobody is told where to go on. Who only lost the connection finds it in the list.
    if !has_file || matches!(outcome, Err(Error::StorageFull | Error::BodyTooLarge(_))) {
        give_up(context, place.whose, id)?;
    }
    outcome?;
    let response = state(context, place, id, 201)?;
    Ok(response.with_header("Location", format!("{}/{id}", place.path)))
}

/// Responds with how far an upload has come. If all of it has, but the request that brought the last byte has failed to
/// record the file, this one does: clients send none after an offset that is the length.
pub fn show_whole(
    context: &mut RequestContext,
    place: &Place,
    id: Uuid,
) -> Result<Response, Error> {
    let (upload, offset) = find(context, place, id)?;
    if offset == upload.size() && !upload.is_complete {
        // While another request is about to do so, it is not known yet. Clients ask again.
        write(context, place, id, offset).map_err(|error| match error {
            Error::Partial(PartialError::Busy | PartialError::Overtaken) => Error::Unavailable,
            other => other,
        })?;
    }
    state(context, place, id, 200)
}

/// Adds the bytes of a request to an upload.
pub fn go_on(context: &mut RequestContext, place: &Place, id: Uuid) -> Result<Response, Error> {
    if !has_bytes(&context.request) {
        return Err(Error::Partial(PartialError::Type));
    }
    let offset = number(&context.request, "Upload-Offset")?;
    let announced = context.request.header("Content-Length").and_then(|text| text.parse().ok());
    let (upload, there) = find(context, place, id)?;
    if offset > there || upload.is_complete && offset != there {
        return Err(standing(there));
    }
    let left = upload.size() - offset;
    if announced.is_some_and(|length: u64| length > left) {
        return Err(Error::BodyTooLarge(left));
    }
    if !upload.is_complete {
        write(context, place, id, offset)?;
    }
    state(context, place, id, 204)
}

/// Writes the body of a request at an offset of an upload, as the newest one that does so, and records the file once it
/// is complete.
fn write(context: &mut RequestContext, place: &Place, id: Uuid, offset: u64) -> Result<(), Error> {
    let app = context.app;
    let turn = app.extras.writers.begin(id, context.request.body.room.clone());
    let file = lock(context, id, &turn)?;
    let is_gone = file.is_none();
    let upload = statements::find(&context.db, id, place.whose)?;
    let (size, synced) = (upload.size(), upload.synced());
    let is_whole = |it: &File| it.metadata().is_ok_and(|found| found.len() >= synced);
    let Some(file) = file.filter(|file| !upload.is_complete && is_whole(file)) else {
        // The content is in its place already, or the bytes are lost, as those that another host has.
        return match synced == size {
            true if offset != size => Err(standing(size)),
            true if upload.is_complete => Ok(()),
            true => {
                let content = lock_content(context, &upload, &turn)?;
                // Whoever has moved it there may have taken it back.
                if is_gone && content.is_none() && app.storage.partial_file(id)?.is_some() {
                    return Err(Error::Partial(PartialError::Busy));
                }
                complete(context, place, &upload, None)
            }
            false => Err(Error::Partial(PartialError::NotFound)),
        };
    };
    let mut writing = Writing::resume(context, (place, &upload, &turn), file)?;
    if writing.draft.size() != offset {
        return Err(standing(writing.draft.size()));
    }
    let has_bytes = has_bytes(&context.request) && context.request.method() != "HEAD";
    let received = if has_bytes { writing.receive(context) } else { Ok(()) };
    if let Err(error @ (Error::TypeNotAllowed { .. } | Error::TypeContradicted { .. })) = received {
        end(context, place, &upload);
        return Err(error);
    }
    let finished = writing.finish(context);
    // Its row may be there still, and wait for an owner who is inactive.
    let is_over = matches!(finished, Err(Error::Partial(PartialError::NotFound)));
    if is_over && statements::ended(&context.db, &[id])?.contains(&id) {
        remove(context, id, None)?;
    }
    // Whoever may not write any more is told that.
    if received.as_ref().is_err_and(|error| matches!(error.status(), 401 | 403)) {
        return received;
    }
    finished?;
    received.map_err(|error| match turn.is_over() {
        true => Error::Partial(PartialError::Overtaken),
        false => error,
    })?;
    match writing.draft.size() == size {
        true => {
            let upload = statements::find(&context.db, id, place.whose)?;
            complete(context, place, &upload, Some(writing.draft))
        }
        false => Ok(()),
    }
}

fn standing(offset: u64) -> Error {
    Error::Partial(PartialError::Offset(offset))
}

/// An upload, and how many bytes of it there are. It is looked up again if its file is gone, because that may have
/// become the content of a file meanwhile.
fn find(context: &RequestContext, place: &Place, id: Uuid) -> Result<(PartialUpload, u64), Error> {
    let find = || statements::find(&context.db, id, place.whose);
    let upload = find()?;
    if let Ok(offset) = offset_of(context, &upload) {
        return Ok((upload, offset));
    }
    let upload = find()?;
    let offset = offset_of(context, &upload)?;
    Ok((upload, offset))
}

/// How many bytes of an upload there are: those of its file, if this host has not lost power since they came, otherwise
/// those that are synced. Fails with [`PartialError::NotFound`] if bytes are missing, as those that another host has.
fn offset_of(context: &RequestContext, upload: &PartialUpload) -> Result<u64, Error> {
    let (synced, size) = (upload.synced(), upload.size());
    if synced == size || upload.is_complete {
        return Ok(size);
    }
    let boot = boot();
    let is_trusted = !boot.is_empty() && upload.boot.as_ref() == Some(&boot);
    match context.app.storage.partial_file(upload.id)?.map(|file| file.len()) {
        Some(length) if length >= synced => Ok(if is_trusted { length.min(size) } else { synced }),
        _ => Err(Error::Partial(PartialError::NotFound)),
    }
}

/// The response with how far an upload has come and, once it is complete, where its owner finds the file.
pub fn state(
    context: &RequestContext,
    place: &Place,
    id: Uuid,
    status: u16,
) -> Result<Response, Error> {
    let (upload, offset) = find(context, place, id)?;
    let mut response = Response::empty(status)
        .with_header("Upload-Offset", offset.to_string())
        .with_header("Upload-Expires", httpdate::fmt_http_date(upload.expires_at.to_the_second()));
    if status == 200 {
        response.add_header("Upload-Length", upload.size().to_string());
    }
    for version in upload.version.iter().filter(|_| place.user.is_some()) {
        response.add_header("Content-Location", format!("/api/v1/uploads/{id}"));
        response.add_header("ETag", version_tag(*version));
    }
    Ok(response)
}

/// Ends an upload with its bytes.
pub fn give_up(context: &RequestContext, whose: Whose, id: Uuid) -> Result<Response, Error> {
    let file = statements::delete(&context.db, id, whose)?;
    context.app.extras.writers.end(id);
    remove(context, id, file)?;
    Ok(Response::empty(204))
}
