//! The last byte of an upload has come: its file is recorded, once, whatever ends in between.

use std::io::Read;
use std::sync::Arc;

use super::statements::{self, PartialUpload};
use super::writing::{Place, first_type, remove};
use crate::error::partial::PartialError;
use crate::error::{Error, FieldError};
use crate::files::record::{self, Recorded};
use crate::files::statements::unrecorded;
use crate::model::content_type::SIGNATURE_BYTES;
use crate::model::file::NewFile;
use crate::model::problems;
use crate::request::context::RequestContext;
use crate::storage::draft::partial::Sums;
use crate::storage::{Content, Draft};

/// Records the file of an upload whose bytes are all there and noted: in a draft or, if a request before this one has
/// ended in between, in the place of contents already. What may not be stored ends the upload. If the upload has ended
/// meanwhile, as a transfer to a store may take long, its content is removed.
pub fn complete(
    context: &RequestContext,
    place: &Place,
    upload: &PartialUpload,
    mut draft: Option<Draft>,
) -> Result<(), Error> {
    place.check(context)?;
    let (sums, first) = match &draft {
        Some(draft) => (draft.sums(), draft.beginning(SIGNATURE_BYTES)?),
        None => stored(context, upload)?,
    };
    let hash = sums.hash();
    let is_other = upload.sha256.as_ref().is_some_and(|wanted| *wanted != hash);
    let content_type = match first_type(context, upload, &first) {
        Ok(_) if is_other => Err(FieldError::of_header("Upload-Metadata", problems::OTHER_CONTENT)),
        checked => checked,
    };
    let content_type = content_type.inspect_err(|_| end(context, place, upload))?;
    // Its lock is held until the file is recorded.
    draft.as_mut().map(Draft::commit).transpose()?;
    let app = context.app;
    let file = Arc::new(NewFile {
        id: upload.file_id,
        user: place.owner.id,
        folder: upload.folder.clone(),
        filename: upload.filename.clone(),
        content_type,
        size: upload.size(),
        hash,
        crc32: sums.crc32(),
        is_utf8: sums.is_utf8(),
        description: upload.description.clone(),
        address: context.db.address,
        request_id: context.db.request_id,
        link: place.whose.link,
        key: None,
        partial: Some(upload.id),
    });
    let recorded = record(context, place, &file);
    if recorded.is_err() {
        for content in unrecorded(&context.db, &[file.id])? {
            app.storage.remove(content)?;
        }
    }
    match recorded {
        // It has ended, or another process has recorded it.
        Err(Error::StorageFull) if !is_open(context, place, upload)? => Ok(()),
        outcome => outcome,
    }
}

/// Stores the record of a file, whose sender is looked up again: a store may have taken long.
fn record(context: &RequestContext, place: &Place, file: &Arc<NewFile>) -> Result<(), Error> {
    place.check(context)?;
    let app = context.app;
    let timeout = app.config.database_timeout;
    let turn = place.whose.link.map(|_| app.extras.link_permits.record(place.owner.id, timeout));
    let _turn = turn.transpose()?;
    if let Recorded::New(_) = record::record(&app.uploads, &context.db, file, &app.file_quotas())? {
        app.wake_background(); // which wakes the thread that sends mail
    }
    Ok(())
}

fn is_open(context: &RequestContext, place: &Place, it: &PartialUpload) -> Result<bool, Error> {
    Ok(!statements::find(&context.db, it.id, place.whose)?.is_complete)
}

/// What follows from a content that is in its place, and its first bytes.
fn stored(context: &RequestContext, upload: &PartialUpload) -> Result<(Sums, Vec<u8>), Error> {
    let lost = || Error::Partial(PartialError::NotFound);
    let (size, mut first) = (upload.size(), Vec::new());
    let sums = upload.state.as_deref().and_then(|state| Sums::of(state, size)).ok_or_else(lost)?;
    let part = 0..size.min(SIGNATURE_BYTES as u64);
    let content = match context.app.storage.read(upload.file_id, size, &sums.hash(), part) {
        Ok(Content::File(file)) => file.take(SIGNATURE_BYTES as u64).read_to_end(&mut first),
        Ok(Content::Stream(mut reader)) => reader.read_to_end(&mut first),
        // It is missing.
        Err(Error::Internal(_)) => return Err(lost()),
        Err(error) => return Err(error),
    };
    content.map_err(|error| Error::Internal(format!("content of an upload: {error}")))?;
    Ok((sums, first))
}

/// Ends an upload that may not be stored.
pub fn end(context: &RequestContext, place: &Place, upload: &PartialUpload) {
    let ended = statements::delete(&context.db, upload.id, place.whose);
    if let Err(error) = ended.and_then(|file| remove(context, upload.id, file)) {
        log::warn!("upload {} has not ended: {}", upload.id, error.cause());
    }
}
