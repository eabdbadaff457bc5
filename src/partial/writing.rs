//! The bytes of a request on their way into the file of an upload, of which the request holds the lock.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::statements::{self, PartialUpload, Progress, Whose};
use crate::error::Error;
use crate::error::partial::PartialError;
use crate::model::content_type::{SIGNATURE_BYTES, stored_type};
use crate::model::user::User;
use crate::request::context::RequestContext;
use crate::request::extras::writers::Turn;
use crate::request::identity::{self, SignedIn};
use crate::storage::Draft;
use crate::storage::draft::partial::boot;

/// How many bytes count at once towards the quotas that many share, before they are written: at least the first, at
/// most the second, and between them no more than have come. So many are synced at once, too.
const MIN_STEP: u64 = 1024 * 1024;
const MAX_STEP: u64 = 64 * 1024 * 1024;
/// How long a slow upload may come without a note of it, so that it does not seem unused.
const MAX_UNNOTED: Duration = Duration::from_secs(300);
/// How many bytes are read at once.
const PIECE: usize = 64 * 1024;
/// How long a request waits for the one before it to end.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// How long ago the sender may have been looked up when more is written.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Whose an upload is, who sends it, and where it is found.
pub struct Place<'a> {
    pub owner: &'a User,
    pub whose: Whose,
    /// The owner, or nobody if a stranger sends it.
    pub user: Option<&'a SignedIn>,
    /// The path of all uploads of this place.
    pub path: String,
}

impl Place<'_> {
    /// Looks the user who sends up again, see [`identity::check_again_if_late`].
    pub fn check(&self, context: &RequestContext) -> Result<(), Error> {
        self.user.map_or(Ok(()), |user| identity::check_again_if_late(context, user))
    }
}

/// Waits for the lock of the file of an upload. `None` if it is not there, or no longer.
pub fn lock(context: &RequestContext, id: Uuid, turn: &Turn) -> Result<Option<File>, Error> {
    locked(turn, || context.app.storage.open_partial(id))
}

/// The same for the content that an upload has become, because whoever has moved it there may take it back as long as
/// it is not synced. It is synced then.
pub fn lock_content(
    context: &RequestContext,
    upload: &PartialUpload,
    turn: &Turn,
) -> Result<Option<File>, Error> {
    let storage = &context.app.storage;
    let content = locked(turn, || storage.open_content(upload.file_id))?;
    content.as_ref().map_or(Ok(()), |content| storage.sync_content(content))?;
    Ok(content)
}

/// Opens a file and waits for its lock, but not long, and not if a newer request wants to write. Whoever had it before
/// may have removed or renamed the file, so it is opened again.
fn locked(
    turn: &Turn,
    open: impl Fn() -> Result<Option<File>, Error>,
) -> Result<Option<File>, Error> {
    let began = Instant::now();
    let Some(file) = open()? else { return Ok(None) };
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => {
                return Err(Error::Internal(format!("lock: {error}")));
            }
            Err(TryLockError::WouldBlock) if turn.is_over() => {
                return Err(Error::Partial(PartialError::Overtaken));
            }
            Err(TryLockError::WouldBlock) if began.elapsed() > MAX_WAIT => {
                return Err(Error::Partial(PartialError::Busy));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
        }
    }
    let inode = |it: &File| it.metadata().map(|found| found.ino()).ok();
    let found = open()?;
    Ok(found.filter(|found| inode(found) == inode(&file)).map(|_| file))
}

/// An upload while a request adds to it.
pub struct Writing<'a> {
    pub draft: Draft,
    place: &'a Place<'a>,
    upload: &'a PartialUpload,
    turn: &'a Turn<'a>,
    /// How many bytes are synced, and what follows from them; and how many of them the row names, once this request has
    /// noted anything.
    synced: u64,
    state: Vec<u8>,
    noted: Option<u64>,
    charged: u64,
    /// So many bytes there are after this request, at most.
    end: u64,
    boot: String,
    noted_at: Instant,
    checked_at: Instant,
}

impl<'a> Writing<'a> {
    /// Goes on with an upload whose file is locked. Fails with [`PartialError::NotFound`] if bytes are missing, as
    /// those that another host has.
    pub fn resume(
        context: &RequestContext,
        (place, upload, turn): (&'a Place, &'a PartialUpload, &'a Turn),
        file: File,
    ) -> Result<Writing<'a>, Error> {
        let (synced, boot) = (upload.synced(), boot());
        let is_trusted = !boot.is_empty() && upload.boot.as_ref() == Some(&boot);
        let (ids, saved) = ((upload.id, upload.file_id), (synced, upload.state.as_deref()));
        let draft = context.app.storage.resume(ids, file, saved, is_trusted)?;
        let draft = draft.ok_or(Error::Partial(PartialError::NotFound))?;
        let announced = context.request.header("Content-Length").and_then(|text| text.parse().ok());
        let end = draft.size().saturating_add(announced.unwrap_or(u64::MAX)).min(upload.size());
        let (charged, now) = (upload.charged.unsigned_abs(), Instant::now());
        let state = upload.state.clone().unwrap_or_default();
        let (noted_at, checked_at) = (now, now);
        Ok(Writing {
            draft,
            place,
            upload,
            turn,
            synced,
            state,
            noted: None,
            charged,
            end,
            boot,
            noted_at,
            checked_at,
        })
    }

    /// Writes what comes. However it ends, what was written before counts, see [`Writing::finish`]. Fails with
    /// [`Error::BodyTooLarge`] at the first byte after the end of the file, and as [`first_type`] does as soon as the
    /// first bytes are there.
    pub fn receive(&mut self, context: &mut RequestContext) -> Result<(), Error> {
        context.request.body.set_limit(u64::MAX)?;
        let (size, began) = (self.upload.size(), self.draft.size());
        let mut piece = vec![0; PIECE];
        loop {
            let before = self.draft.size();
            let most = usize::try_from(size - before).unwrap_or(PIECE).clamp(1, PIECE);
            let count = context.request.body.read(&mut piece[..most])?;
            match count {
                0 => return Ok(()),
                _ if before == size => return Err(Error::BodyTooLarge(size - began)),
                _ => self.make_room(context, count as u64)?,
            }
            self.draft.write(&piece[..count])?;
            let first = SIGNATURE_BYTES as u64;
            if before < first && self.draft.size() >= first {
                first_type(context, self.upload, &self.draft.beginning(SIGNATURE_BYTES)?)?;
            }
            if self.turn.is_over() {
                return Err(Error::Partial(PartialError::Overtaken));
            }
        }
    }

    /// Lets so many more bytes count before they are written, and notes what is synced from time to time.
    fn make_room(&mut self, context: &RequestContext, more: u64) -> Result<(), Error> {
        let (size, is_late) = (self.draft.size(), self.noted_at.elapsed() > MAX_UNNOTED);
        let is_due = is_late || size - self.synced >= MAX_STEP;
        // The first note of a request names the boot of the host that writes now.
        if size + more <= self.charged && !is_due && self.noted.is_some() {
            return Ok(());
        }
        if self.checked_at.elapsed() > MAX_AGE {
            // A request may take hours, so each of these has its own time for the database.
            identity::sender_check(context, self.place.user)()?;
            self.checked_at = Instant::now();
        }
        if is_due {
            self.sync()?;
        }
        if size + more <= self.charged {
            return self.note(context, self.charged);
        }
        // Where a whole step does not fit, the next bytes alone may.
        let step = (size + size.clamp(MIN_STEP, MAX_STEP)).min(self.end);
        match self.note(context, step) {
            Err(Error::StorageFull) if size + more < step => self.note(context, size + more),
            outcome => outcome,
        }
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.draft.sync()?;
        (self.synced, self.state) = (self.draft.size(), self.draft.sums().bytes());
        Ok(())
    }

    /// Notes what is synced, and lets `charge` bytes count.
    fn note(&mut self, context: &RequestContext, charge: u64) -> Result<(), Error> {
        let mut db = context.app.db.for_request(context.client, context.id);
        if let Some(user) = context.authenticated {
            db.changes_are_of(user);
        }
        let (synced, state, boot) = (self.synced, &*self.state, &*self.boot);
        let progress = Progress { synced, state, boot, charge };
        // What comes in one request counts in its process alone until it is recorded, and finds this there.
        let (mut quotas, stored) = (context.app.file_quotas(), &context.app.stored_bytes);
        quotas.service_bytes = quotas.service_bytes.saturating_sub(stored.arriving());
        statements::advance(&db, self.upload.id, &progress, &quotas)?;
        stored.add(charge.saturating_sub(self.charged), 0);
        (self.charged, self.noted_at, self.noted) = (charge, Instant::now(), Some(synced));
        Ok(())
    }

    /// Makes what has come safe, and gives back what was to count for more.
    pub fn finish(&mut self, context: &RequestContext) -> Result<(), Error> {
        let size = self.draft.size();
        if (self.noted.unwrap_or(self.upload.synced()), self.charged) == (size, size) {
            return Ok(());
        }
        self.sync()?;
        self.note(context, size)
    }
}

/// The type under which a file is stored that begins with these bytes, by the rules of uploads in one request.
pub fn first_type(
    context: &RequestContext,
    upload: &PartialUpload,
    first: &[u8],
) -> Result<String, Error> {
    let types = &context.app.config.allowed_upload_types;
    stored_type(upload.declared_type.as_deref(), &upload.filename, first, types)
}

/// Removes what is left of an upload whose row is gone, and of the file that it was to be.
pub fn remove(context: &RequestContext, upload: Uuid, file: Option<Uuid>) -> Result<(), Error> {
    context.app.storage.remove_partial(upload);
    file.map_or(Ok(()), |file| context.app.storage.remove(file))
}
