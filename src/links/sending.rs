//! Links by which anyone sends files to a folder of their owner. What whoever has one can do, cost or learn, and what
//! bounds it; `tests/api/links/sending.rs`, `sending_limits.rs` and `received.rs` try each:
//!
//! - **Room on the disk**: the link's files and bytes, and the quotas of the owner, the service and young accounts, in
//!   the statement that records a file, `sql/files/insert_many.sql`. What is under way counts as it comes, or, if it
//!   may come in several requests, by its whole length.
//! - **Threads and connections**: eight uploads of a link at once, four of a network of clients; others are refused. A
//!   body that comes too slowly is given up, as any.
//! - **Time of the database**: a look-up by a hash for each request. One file for an owner is recorded at a time,
//!   beside the owner's own. Requests count for the link and the network, keys for them too, and requests with unknown
//!   tokens for the address.
//! - **The audit log**: a hundred events an hour of a link, which are none of its owner's.
//! - **Mail**: one an hour and ten a day for an owner, of all links, with a number and nothing that anybody chose.
//! - **Names, descriptions and types**: by the rules of uploads. A file lies in the link's folder, whatever the form
//!   says.
//! - **Other people**: a link to a folder, and its archive, show no file as it was received.
//! - **What is told**: note, owner's name, end, and what the link itself takes; of a file its name, size and hash. A
//!   quota that is used up is told like a full link, before the body; what it has left is not, whatever length is
//!   announced.
//! - **The end**: the statement that records looks at the link; one that has ended is answered as one that never was.

use std::net::IpAddr;

use serde_json::json;

use super::handlers::token_hash;
use super::outcome::{ended, to_page};
pub use super::statements::LinkToSend;
use super::statements::{self, LinkHash};
use crate::auth::token_bucket::Taken;
use crate::error::Error;
use crate::files::handlers::{SendingLink, replayed, store};
use crate::http::client_address::first_bits;
use crate::http::multipart::MAX_FORM_OVERHEAD;
use crate::http::response::{self, Response};
use crate::repeats;
use crate::request::app::App;
use crate::request::context::RequestContext;
use crate::request::limits::{self, Caller, Limit};
use crate::request::link_permits::LinkUpload;

/// After how many seconds a client may try again if too many uploads of a link are under way.
const PAUSE: u64 = 5;

/// What there is to know of a link to send files by, or the way to its page. To all else it is no link.
pub fn open(
    context: &RequestContext,
    hash: &LinkHash,
    is_about: bool,
    is_bare: bool,
) -> Result<Response, Error> {
    let no_link = || ended(context, Error::LinkNotFound);
    if !is_bare {
        return Err(no_link());
    }
    if !is_about {
        return to_page(context, "send").ok_or_else(no_link);
    }
    let link =
        statements::find_to_send(&context.db, hash).map_err(|error| ended(context, error))?;
    let config = &context.app.config;
    let types = &config.allowed_upload_types;
    let types = if types.take_any() { vec!["*/*"] } else { types.iter().collect() };
    let bytes_left =
        bytes_left(&link).saturating_sub(context.app.extras.link_permits.uploads.arriving(link.id));
    let body = json!({
        "upload": true, "note": link.note, "sender": link.sender, "expires_at": link.expires_at,
        "files_left": link.files_left, "bytes_left": bytes_left, "max_file_size": config.max_upload_size,
        "allowed_types": types
    });
    response::json(200, &body)
}

/// The network for which whoever sends counts.
fn network(client: IpAddr) -> IpAddr {
    first_bits(client, 24, 48)
}

fn hash_in_path(context: &RequestContext) -> LinkHash {
    token_hash(context.path_params.first().map_or("", |param| &param.text))
}

/// The live link to send files by in the path of a request.
pub fn find(context: &RequestContext) -> Result<LinkToSend, Error> {
    let found = statements::find_to_send(&context.db, &hash_in_path(context));
    found.map_err(|error| ended(context, error))
}

/// The same for a request that counts for the link and the network of the client, or, if there is no such link, for the
/// client's address: that has a token before the link is looked up, and gets it back if there is one.
pub fn find_limited(context: &mut RequestContext) -> Result<LinkToSend, Error> {
    let link = find(context)?;
    context.taken.take().into_iter().for_each(Taken::give_back);
    context.limit = None;
    let caller = Caller::Sending(link.id, network(context.client));
    limits::take(context, Limit::Upload, caller)?;
    Ok(link)
}

/// Counts an upload that is under way by a link. Fails if there are too many of the link, or of the client's network.
pub fn begin<'a>(app: &'a App, link: &LinkToSend, client: IpAddr) -> Result<LinkUpload<'a>, Error> {
    let bytes = (link.max_bytes.unsigned_abs(), link.received_bytes.unsigned_abs());
    let upload = app.extras.link_permits.uploads.begin(link.id, network(client), bytes);
    upload.ok_or(Error::RateLimited { retry_after: PAUSE, login: false })
}

/// How many bytes a link still takes.
fn bytes_left(link: &LinkToSend) -> u64 {
    u64::try_from(link.max_bytes - link.received_bytes).unwrap_or(0)
}

/// `POST /api/v1/links/{token}/files`: stores a file that anyone sends, as an upload of the link's owner to the link's
/// folder.
pub fn receive(context: &mut RequestContext) -> Result<Response, Error> {
    let hash = hash_in_path(context);
    let network = network(context.client);
    let link = find_limited(context)?;
    // Keys of different networks are different ones.
    let key = repeats::key(&context.request)?.map(|key| format!("{network} {key}"));
    let app = context.app;
    let upload = begin(app, &link, context.client)?;
    let announced = context.request.header("Content-Length").and_then(|text| text.parse().ok());
    // What is longer than any file may be is refused for that.
    let may_fit =
        |length: &u64| *length <= app.config.max_upload_size.saturating_add(MAX_FORM_OVERHEAD);
    let least = announced.filter(may_fit).unwrap_or(0).saturating_sub(MAX_FORM_OVERHEAD);
    let sending = SendingLink {
        id: link.id,
        folder: &link.folder,
        is_full: link.files_left <= 0 || least > bytes_left(&link),
        bytes: &upload.bytes,
    };
    let turn = |_: &RequestContext, is_recorded: bool| {
        let permits = &app.extras.link_permits;
        let wait = || permits.record(link.owner.id, app.config.database_timeout);
        is_recorded.then(wait).transpose()
    };
    let stored = store(context, &link.owner, Some(&sending), key, turn);
    // Why a file was refused tells nothing once the link has ended.
    let (file, is_replayed) =
        stored.map_err(|error| match statements::find_to_send(&context.db, &hash) {
            Err(ended_meanwhile @ Error::LinkNotFound) => ended(context, ended_meanwhile),
            _ => error,
        })?;
    app.wake_background(); // which wakes the thread that sends mail
    let file = json!(file);
    let body = json!({
        "filename": file["filename"], "file_size": file["file_size"], "file_hash": file["file_hash"]
    });
    Ok(replayed(response::json(201, &body)?, is_replayed))
}
