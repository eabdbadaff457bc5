//! The files of users: upload, list, download, change and delete.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::record::{self, Recorded};
use super::statements::{self, FileChange, FileQuery, FileSort};
use super::upload_form::{self, Room};
use crate::db::stats::StoredBytes;
use crate::error::{Error, Forbidden};
use crate::folders;
use crate::http::conditions::Conditions;
use crate::http::file_response::{FileUse, file_response, metadata_response, with_version};
use crate::http::params::Params;
use crate::http::response::{self, FileRange, Response, ResponseBody};
use crate::model::file::{File, NewFile, version_tag};
use crate::model::page::Page;
use crate::model::user::User;
use crate::model::{filename, media_type, rules};
use crate::repeats;
use crate::request::app::App;
use crate::request::context::RequestContext;
use crate::request::identity::{self, SignedIn, json_body};
use crate::storage::{Content, Draft};
use crate::undo;

/// `POST /api/v1/uploads`: stores a file. The form has the field `file` and optionally `description`, `sha256` and
/// `folder`, in any order. An upload whose `Idempotency-Key` is known is answered as the first one was.
pub fn create(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let key = repeats::key(&context.request)?;
    let check = |context: &RequestContext, _| identity::check_again_if_late(context, user);
    let (file, is_replayed) = store(context, &user.account, None, key, check)?;
    let path = format!("/api/v1/uploads/{}", file.id);
    Ok(replayed(metadata_response(201, &file)?.with_header("Location", path), is_replayed))
}

/// The response to an upload, which says if it is that to an earlier one.
pub fn replayed(response: Response, is_replayed: bool) -> Response {
    if is_replayed { response.with_header("Idempotency-Replayed", "true") } else { response }
}

/// A link by which a stranger sends a file to its owner.
pub struct SendingLink<'a> {
    pub id: Uuid,
    /// Where the file will lie, in the form of the column `files.folder`.
    pub folder: &'a str,
    /// Whether it certainly takes no file of this length.
    pub is_full: bool,
    /// The bytes that count towards what it takes.
    pub bytes: &'a StoredBytes,
}

/// Stores the file in the form of a request for its owner, who sends it, or a stranger by a link. Returns the file, and
/// whether it is that of an earlier upload with the same key. The content is safely stored before it is recorded in the
/// database. `turn` is called once the form has arrived, and told whether a file is to be recorded; what it returns is
/// kept until that is done.
pub fn store<T>(
    context: &mut RequestContext,
    owner: &User,
    link: Option<&SendingLink>,
    key: Option<String>,
    turn: impl FnOnce(&RequestContext, bool) -> Result<T, Error>,
) -> Result<(File, bool), Error> {
    let quotas = &shared_quotas(context.app, owner, link);
    // This comes first: an upload that uses up what is left meanwhile has its key recorded then.
    let left = left_for_file(context, owner, quotas, link.is_some_and(|link| link.is_full));
    let (sender, folder) = link.map(|link| (link.id, link.folder.to_owned())).unzip();
    let find = |key| repeats::find(&context.db, sender.unwrap_or(owner.id), key);
    let known = key.as_deref().map(find).transpose()?.flatten();
    let mut room = match &known {
        None => {
            let arrivals = quotas.iter().map(|quota| quota.begin(owner.id)).collect();
            Room { bytes: left?, folder, beyond: || Error::StorageFull, arrivals }
        }
        // A longer content is not the first one's, and none is kept.
        Some(it) => Room { bytes: it.size, folder, beyond: repeats::key_reused, arrivals: vec![] },
    };
    let stored = upload_form::receive(context, &mut room).and_then(|(mut draft, file)| {
        let hash = if known.is_some() { draft.hash() } else { draft.commit()? };
        Ok((hash, draft, file))
    });
    // A store may take long, too.
    let _turn = turn(context, stored.is_ok() && known.is_none())?;
    let (hash, draft, file) = stored?;
    let upload = Arc::new(NewFile {
        id: draft.id(),
        user: owner.id,
        size: draft.size(),
        hash,
        crc32: draft.crc32(),
        is_utf8: draft.is_utf8(),
        address: context.db.address,
        request_id: context.db.request_id,
        link: sender,
        key,
        ..file
    });
    let recorded = match known {
        Some(known) => Recorded::Known(known),
        None => {
            drop(room);
            record(context, quotas, &upload, draft)?
        }
    };
    match recorded {
        Recorded::New(file) => Ok((file, false)),
        Recorded::Known(first) => Ok((repeats::first_file(&upload, &first)?, true)),
    }
}

/// Records a file whose content is stored, and that counts towards these quotas.
fn record(
    context: &RequestContext,
    quotas: &[&StoredBytes],
    upload: &Arc<NewFile>,
    draft: Draft,
) -> Result<Recorded, Error> {
    let all = &context.app.file_quotas();
    let recorded = record::record(&context.app.uploads, &context.db, upload, all);
    match &recorded {
        Ok(Recorded::New(file)) => {
            let description = file.description.as_ref().map_or(0, String::len);
            quotas.iter().for_each(|quota| quota.add(upload.size, description));
        }
        Ok(Recorded::Known(first)) if first.file != upload.id => return recorded,
        // What is known is this upload itself, if its first answer was lost.
        Ok(Recorded::Known(_)) | Err(_) => quotas.iter().for_each(|quota| quota.forget()),
    }
    // If it is unknown whether the file was recorded, also because of a panic, the content stays. The sweep removes it
    // later if it has no record.
    if matches!(recorded, Ok(_) | Err(Error::OutcomeUnknown | Error::Internal(_))) {
        draft.keep();
    }
    recorded
}

/// How many bytes another file of the owner may have, by what the quotas have left. Fails with [`Error::StorageFull`]
/// if a quota is used up already, or a link `is_full`, and with [`Error::Unavailable`] if the database has refused a
/// change in the last seconds, so that no body is received in vain. The database decides in the end: uploads that run
/// at once see the same numbers.
fn left_for_file(
    context: &RequestContext,
    owner: &User,
    quotas: &[&StoredBytes],
    is_full: bool,
) -> Result<u64, Error> {
    let (most_bytes, most_files) = owner.quotas(&context.app.file_quotas());
    let own_left = u64::try_from(most_bytes - owner.stats.total_storage_used).unwrap_or(0);
    if is_full || own_left == 0 || owner.stats.total_uploads >= most_files {
        return Err(Error::StorageFull);
    }
    let wanted = own_left.min(context.app.config.max_upload_size);
    let left = quotas.iter().try_fold(own_left, |left, quota| {
        quota.left(&context.db, owner.id, wanted).map(|of_all| left.min(of_all))
    })?;
    match left {
        0 => Err(Error::StorageFull),
        _ if context.db.pool.refuses_changes() => Err(Error::Unavailable),
        _ => Ok(left),
    }
}

/// The quotas that files of the owner share with others: that of the service, where registrations are limited that of
/// young accounts, which may turn out not to be the owner's, and that of the link.
fn shared_quotas<'a>(
    app: &'a App,
    owner: &User,
    link: Option<&'a SendingLink>,
) -> Vec<&'a StoredBytes> {
    let is_young = app.config.registrations_per_day > 0 && owner.is_young();
    let young = is_young.then_some(&app.young_bytes);
    iter::once(&app.stored_bytes).chain(young).chain(link.map(|link| link.bytes)).collect()
}

/// Lists that may read more files than this take their turn, as searches do: those of a type are counted, and a page
/// far out comes after the others.
const MANY_FILES: i64 = 1000;

/// `GET /api/v1/uploads`: a page of the user's own files, or of those that are deleted, filtered and sorted.
pub fn list(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let (deleted, query, page) = context.request.query().read(|query| {
        let deleted = undo::is_asked_for(query);
        (deleted, read_file_query(query, deleted), query.page())
    })?;
    let page = page?;
    let files = user.account.stats.total_uploads;
    let most_read = if query.content_type.is_some() { files } else { files.min(page.offset) };
    let needs_permit = deleted || query.reads_all() || most_read > MANY_FILES;
    let turn = || identity::search_turn(context, user, false);
    let _permits = needs_permit.then(turn).transpose()?;
    if deleted {
        return undo::list(context, user, &query, page);
    }
    let types = &context.app.config.allowed_upload_types;
    let db = &context.database_with_room(page.size.min(files) as usize * rules::FILE_MEMORY);
    let (files, total) = statements::list(db, user.id(), &query, page)?;
    let files = files.into_iter().map(|file| file.with_listed_type(types)).collect();
    response::json(200, &Page::new(files, total, page))
}

fn read_file_query(query: &mut Params, deleted: bool) -> FileQuery {
    let columns = [
        ("upload_date", FileSort::UploadDate),
        ("uploaded_at", FileSort::UploadDate),
        ("filename", FileSort::Filename),
        ("file_size", FileSort::Size),
        ("deleted_at", FileSort::DeletedAt),
    ];
    // Only deleted files have the last one.
    let columns = &columns[..columns.len() - usize::from(!deleted)];
    let content_type = query.filter("content_type", rules::search);
    let (folder, below, received) = folders::filters(query);
    FileQuery {
        search: query.filter("search", rules::search),
        content_type: content_type.map(|name| {
            let name = name.to_ascii_lowercase();
            media_type::spellings(&name).into_iter().map(str::to_owned).collect()
        }),
        folder,
        below,
        received,
        sort: query.choice("sort_by", columns).unwrap_or(match deleted {
            true => FileSort::DeletedAt,
            false => FileSort::UploadDate,
        }),
        descending: query.is_descending(),
    }
}

/// `GET /api/v1/uploads/{file_id}`: the file's metadata.
pub fn show(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let id = context.path_id()?;
    let file = find_readable(context, user, id)?;
    let conditions = Conditions::read(&context.request);
    if conditions.is_known(&version_tag(file.version), Some(file.updated_at.to_the_second()))? {
        return Ok(with_version(Response::empty(304), &file));
    }
    metadata_response(200, &file)
}

/// `GET /api/v1/uploads/{file_id}/download`: the content, or a range of it.
pub fn download(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let id = context.path_id()?;
    download_response(context, || Ok((find_readable(context, user, id)?, FileUse::Download)))
}

/// Responds with the content of the file that `find` finds, or a range of it.
pub fn download_response(
    context: &RequestContext,
    find: impl Fn() -> Result<(File, FileUse), Error>,
) -> Result<Response, Error> {
    let (file, file_use) = find()?;
    let (storage, size) = (&context.app.storage, file.file_size as u64);
    // Of the content of a response that has none, it only matters that it is there.
    let is_head = context.request.method() == "HEAD";
    let open = |range: Range<u64>| {
        let part = if is_head { 0..0 } else { range.clone() };
        // If the content is missing, the file may have been deleted since its record was read. Looking the record up
        // again turns that into a 404. A record that still exists without its content is an internal error.
        let content = storage.read(file.id, size, &file.file_hash, part);
        Ok(content_body(content.or_else(|lost| find().and(Err(lost)))?, range))
    };
    file_response(&context.request, &file, file_use, open)
}

/// The body with a part of a content, which is open for reading that.
pub fn content_body(content: Content, part: Range<u64>) -> ResponseBody {
    let (offset, length) = (part.start, part.end - part.start);
    match content {
        Content::File(file) => ResponseBody::File(FileRange { file, offset, length }),
        Content::Stream(reader) => ResponseBody::Stream(reader, length),
    }
}

fn read_file_change(body: &mut Params) -> FileChange {
    let filename = body.optional("filename", filename::filename);
    let description = body.optional("description", rules::description);
    let (is_public, folder) = (body.boolean("is_public"), folders::field(body));
    FileChange { filename, description, is_public, folder }
}

/// `PUT /api/v1/uploads/{file_id}`: changes `filename`, `description`, `is_public` and `folder`, each if it is given,
/// and if the file is in the state that the conditions of the request name.
pub fn update(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let id = context.path_id()?;
    let change = json_body(context, user)?.read(read_file_change)?;
    let conditions = Conditions::read(&context.request).of_version();
    let file = statements::update(&context.db, id, user.id(), &change, &conditions)?;
    metadata_response(200, &file.with_listed_type(&context.app.config.allowed_upload_types))
}

/// `DELETE /api/v1/uploads/{file_id}`: deletes a file, which the user may restore for some days, or permanently. A
/// background thread removes the contents of files that nobody may restore.
pub fn delete(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let id = context.path_id()?;
    let deletion = undo::deletion(context, user)?;
    let (db, quotas) = (&context.db, context.app.file_quotas());
    let conditions = Conditions::read(&context.request).of_version();
    statements::delete(db, id, user.id(), &deletion, &quotas, &conditions)?;
    Ok(Response::empty(204))
}

/// Finds a file that the user may read. Fails with [`Error::NotPermitted`] unless it is the user's own or public.
fn find_readable(context: &RequestContext, user: &SignedIn, id: Uuid) -> Result<File, Error> {
    let file = statements::find(&context.db, id)?;
    let file = file.with_listed_type(&context.app.config.allowed_upload_types);
    match file.user_id == user.id() {
        true => Ok(file),
        false if file.is_public => Ok(File { folder: None, received_by: None, ..file }),
        false => Err(Error::NotPermitted(Forbidden::PrivateFile)),
    }
}
