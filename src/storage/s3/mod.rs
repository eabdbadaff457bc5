//! Contents in a store that speaks the protocol of Amazon S3. Only `PUT`, `GET`, `HEAD`, `DELETE` and `ListObjectsV2`
//! are used, and every request may be repeated.
//!
//! The key of a content is the prefix of the settings, `files/` and the id; that of the installation id is the prefix
//! and `installation-id`. Nothing else below the prefix is touched.

mod any_answers;
mod client;
mod connection;
mod content_reader;
mod listing;
mod signature;

#[cfg(feature = "tools")]
use std::collections::BTreeMap;
use std::io::{Cursor, ErrorKind, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "tools")]
use std::time::Duration;
use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::Body;
use ureq::http::Response;
use uuid::Uuid;

use super::draft::CompleteDraft;
use super::file_system::remove_file;
use super::{Content, Contents, IdBatches, MIN_SWEPT_AGE};
use crate::config::StoreSettings;
use crate::error::Error;
use crate::telemetry::outage::Outage;
use client::{Client, Payload, StoreError, StoreRequest, read_text};
use content_reader::ContentReader;
use listing::{ListedObject, ListedPage};

/// How much of a content is read before the head of the response leaves, so that most failures are still answered.
const FIRST_BYTES: u64 = 16 * 1024;
/// Keys of a page of a listing, the most that the protocol allows.
const PAGE_KEYS: &str = "1000";
/// The header in which a store names the SHA-256 of what it has stored, in Base64.
const CHECKSUM: &str = "x-amz-checksum-sha256";

/// The contents in one bucket, below one prefix.
pub struct Store {
    client: Client,
    /// The place, for messages.
    name: String,
    prefix: String,
    outage: Outage,
    /// Whether it is not known yet that the store belongs to the database, so that no content may be used.
    is_held: AtomicBool,
}

impl Store {
    /// Sends nothing yet. On failure: what to tell the operator.
    pub fn new(settings: &StoreSettings) -> Result<Store, String> {
        let name = settings.url.to_string();
        Ok(Store {
            client: Client::new(settings)?,
            outage: Outage::new(format!("the store {name}")),
            name,
            prefix: settings.url.prefix.clone(),
            is_held: AtomicBool::new(false),
        })
    }

    /// Stores the installation id, in place of an earlier one.
    fn put_installation_id(&self, id: Uuid) -> Result<(), Error> {
        let text = format!("{id}\n");
        let (key, length) = (self.key("installation-id"), text.len() as u64);
        self.put_object(&key, Payload::Bytes(text.as_bytes()), length)
    }

    /// Stores an object. The store compares the SHA-256 that is signed with what it has received, and an
    /// acknowledgement usually names the one of what it has stored. If it does not, nothing shows that it comes from a
    /// store: then the object is looked for.
    fn put_object(&self, key: &str, payload: Payload, length: u64) -> Result<(), Error> {
        let checksum = BASE64_STANDARD.encode(payload.sha256());
        let headers = [(CHECKSUM, checksum.clone())];
        let put = StoreRequest { headers: &headers, payload, ..request("PUT", key) };
        let answer = self.send(&put)?.ok_or_else(|| self.fail("PUT answers 404"))?;
        match answer.headers().get(CHECKSUM) {
            Some(stored) if *stored == *checksum => Ok(()),
            Some(_) => Err(self.fail("it acknowledges another SHA-256 than it was sent")),
            None if self.size(key)? == Some(length) => Ok(()),
            None => Err(self.fail("it acknowledges what it does not have")),
        }
    }

    /// The size of an object; `None` if there is none.
    fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let found = self.send(&request("HEAD", key))?;
        Ok(found.and_then(|answer| header(&answer, "content-length")?.parse().ok()))
    }

    /// The bytes of a part of a content, none of which may have arrived yet.
    fn open(
        &self,
        id: Uuid,
        size: u64,
        sha256: &str,
        part: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, Error> {
        self.refuse_held()?;
        let key = self.content_key(id);
        let damaged = |what: &str| Error::Internal(format!("content of file {id}: {what}"));
        let missing = || damaged("the store does not have it");
        if part.is_empty() {
            return match self.size(&key)?.ok_or_else(missing)? {
                found if found == size => Ok(Box::new(std::io::empty())),
                found => Err(damaged(&format!("{found} bytes, not {size}"))),
            };
        }
        let is_whole = part == (0..size);
        let (length, last) = (part.end - part.start, part.end - 1);
        let range = [("range", format!("bytes={}-{last}", part.start))];
        let headers: &[_] = if is_whole { &[] } else { &range };
        let get = StoreRequest { headers, content: length, ..request("GET", &key) };
        let answer = self.send(&get)?.ok_or_else(missing)?;
        let (name, none, expected) = match is_whole {
            true => ("content-length", "an unknown number of", size.to_string()),
            false => {
                ("content-range", "no range of", format!("bytes {}-{last}/{size}", part.start))
            }
        };
        let found = header(&answer, name).unwrap_or(none);
        if found != expected {
            return Err(damaged(&format!("the store has {found} bytes, not {expected}")));
        }
        let body = answer.into_body().into_reader();
        Ok(Box::new(ContentReader::new(body, length, is_whole.then_some(sha256))))
    }

    /// The pages of the listing of contents from after a key on.
    fn pages(&self, after: String) -> impl Iterator<Item = Result<ListedPage, Error>> + use<'_> {
        let mut next = Some(after);
        std::iter::from_fn(move || {
            let page = self.page(&self.key("files/"), &next.take()?, PAGE_KEYS);
            if let Ok(ListedPage { objects, is_truncated: true }) = &page {
                next = objects.last().map(|object| object.key.clone());
            }
            Some(page)
        })
    }

    /// Up to `max` objects whose keys begin with `prefix`, from after the key `after` on.
    fn page(&self, prefix: &str, after: &str, max: &str) -> Result<ListedPage, Error> {
        let query = [
            ("encoding-type", "url"),
            ("list-type", "2"),
            ("max-keys", max),
            ("prefix", prefix),
            ("start-after", after),
        ];
        let list = StoreRequest { query: &query, ..request("GET", "") };
        let mut answer = self.send(&list)?.ok_or_else(|| self.fail("a listing answers 404"))?;
        let text = self.recorded(read_text(&mut answer))?;
        // The next page begins after the last key of this one: a store that did not go on would be asked forever, and
        // one that has another order would leave out keys.
        let goes_on = |page: &ListedPage| {
            let keys = page.objects.iter().map(|object| &*object.key);
            std::iter::once(after).chain(keys).is_sorted_by(|key, next| key < next)
        };
        let page = listing::parse(&text).filter(goes_on);
        page.ok_or_else(|| self.fail("its listing is not understood"))
    }

    /// The contents of a page. Objects that this program did not make are left out.
    fn contents(&self, page: ListedPage) -> Vec<(Uuid, ListedObject)> {
        let id_of = |object: ListedObject| {
            let id: Uuid = object.key.rsplit_once('/')?.1.parse().ok()?;
            (object.key == self.content_key(id)).then_some((id, object))
        };
        page.objects.into_iter().filter_map(id_of).collect()
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn content_key(&self, id: Uuid) -> String {
        format!("{}files/{id}", self.prefix)
    }

    /// Sends a request. Returns `None` if there is no such object.
    fn send(&self, request: &StoreRequest) -> Result<Option<Response<Body>>, Error> {
        match self.client.send(request) {
            Err(StoreError::Missing) => self.recorded(Ok(None)),
            outcome => self.recorded(outcome.map(Some)),
        }
    }

    /// Records whether the store has served a request.
    fn recorded<T>(&self, outcome: Result<T, StoreError>) -> Result<T, Error> {
        match outcome {
            Ok(value) => {
                self.outage.record_success(Instant::now());
                Ok(value)
            }
            Err(failure) => Err(self.fail(&failure.cause())),
        }
    }

    /// Records that the store has not served a request.
    fn fail(&self, cause: &str) -> Error {
        let line = format_args!("the store {} does not serve contents: {cause}", self.name);
        self.outage.record_failure(Instant::now(), line);
        Error::StoreUnavailable
    }

    fn refuse_held(&self) -> Result<(), Error> {
        if self.is_held.load(Ordering::Acquire) { Err(Error::StoreUnavailable) } else { Ok(()) }
    }
}

impl Contents for Store {
    fn place(&self) -> (String, &'static str) {
        (self.name.clone(), "CLOAKROOM_STORAGE_URL")
    }

    /// Asks for anything. Fails if the store refuses, as when the bucket is missing or the key is wrong.
    fn reach(&self) -> Result<Option<String>, String> {
        let query = [("list-type", "2"), ("max-keys", "1"), ("prefix", &*self.prefix)];
        let request = StoreRequest { query: &query, ..request("GET", "") };
        match self.client.send(&request) {
            Ok(_) => Ok(None),
            Err(StoreError::Away(cause)) => {
                self.fail(&cause);
                Ok(Some(cause))
            }
            Err(failure) => Err(format!("the store {}: {}", self.name, failure.cause())),
        }
    }

    fn is_usable(&self) -> bool {
        self.reach() == Ok(None) && !self.is_held.load(Ordering::Acquire)
    }

    fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }

    fn read_installation_id(&self) -> Result<Option<String>, String> {
        match self.send(&request("GET", &self.key("installation-id")))? {
            Some(mut answer) => Ok(Some(self.recorded(read_text(&mut answer))?)),
            None => Ok(None),
        }
    }

    /// A store that does not know `If-None-Match` replaces one that another process has made at the same moment.
    fn add_installation_id(&self, id: Uuid) -> Result<(), String> {
        let text = format!("{id}\n");
        let key = self.key("installation-id");
        let payload = Payload::Bytes(text.as_bytes());
        let checksum = BASE64_STANDARD.encode(payload.sha256());
        let headers = [("if-none-match", "*".to_owned()), (CHECKSUM, checksum)];
        let put = StoreRequest { headers: &headers, payload, ..request("PUT", &key) };
        Ok(match self.client.send(&put) {
            Err(StoreError::Exists) => self.recorded(Ok(())),
            Err(StoreError::Unknown) => self.put_installation_id(id),
            outcome => self.recorded(outcome.map(drop)),
        }?)
    }

    #[cfg(feature = "tools")]
    fn replace_installation_id(&self, id: Uuid) -> Result<(), String> {
        Ok(self.put_installation_id(id)?)
    }

    fn store(&self, id: Uuid, draft: &CompleteDraft) -> Result<(), Error> {
        self.refuse_held()?;
        let payload = Payload::File(draft.file, draft.size, draft.sha256);
        self.put_object(&self.content_key(id), payload, draft.size)?;
        remove_file(draft.path);
        Ok(())
    }

    fn open_part(
        &self,
        id: Uuid,
        size: u64,
        sha256: &str,
        part: Range<u64>,
    ) -> Result<Content, Error> {
        self.open(id, size, sha256, part).map(Content::Stream)
    }

    fn read(&self, id: Uuid, size: u64, sha256: &str, part: Range<u64>) -> Result<Content, Error> {
        let mut reader = self.open(id, size, sha256, part)?;
        let mut first = Vec::new();
        match reader.by_ref().take(FIRST_BYTES).read_to_end(&mut first) {
            Ok(_) => Ok(Content::Stream(Box::new(Cursor::new(first).chain(reader)))),
            Err(e) if e.kind() == ErrorKind::InvalidData => {
                Err(Error::Internal(format!("content of file {id}: {e}")))
            }
            Err(e) => Err(self.fail(&e.to_string())),
        }
    }

    fn remove(&self, id: Uuid) -> Result<(), Error> {
        self.refuse_held()?;
        self.send(&request("DELETE", &self.content_key(id))).map(drop)
    }

    #[cfg(feature = "tools")]
    fn sizes(&self, ids: &[Uuid]) -> Result<BTreeMap<Uuid, u64>, Error> {
        self.refuse_held()?;
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            return Ok(BTreeMap::new());
        };
        // Listings begin after a key. This one comes before that of the first content.
        let mut before = self.content_key(*first);
        before.pop();
        let mut found = BTreeMap::new();
        for page in self.pages(before) {
            let objects = self.contents(page?);
            let ended = objects.last().is_some_and(|(id, _)| id >= last);
            found.extend(objects.into_iter().map(|(id, object)| (id, object.size)));
            if ended {
                break;
            }
        }
        Ok(found)
    }

    fn old_contents(&self) -> Result<Box<IdBatches<'_>>, Error> {
        self.refuse_held()?;
        Ok(Box::new(self.pages(self.key("files/")).map(|page| {
            let is_old = |(_, object): &(Uuid, ListedObject)| object.age() > MIN_SWEPT_AGE;
            Ok(self.contents(page?).into_iter().filter(is_old).map(|(id, _)| id).collect())
        })))
    }

    #[cfg(feature = "tools")]
    fn age_of(&self, id: Uuid) -> Result<Option<Duration>, Error> {
        self.refuse_held()?;
        let key = self.content_key(id);
        // A listing begins after a key, such as one that is a character shorter.
        let before = key.get(..key.len() - 1).unwrap_or_default();
        let found = self.contents(self.page(&key, before, "1")?);
        Ok(found.first().map(|(_, object)| object.age()))
    }

    fn count_contents(&self, max: usize) -> Result<usize, Error> {
        let mut count = 0;
        for page in self.pages(self.key("files/")) {
            count += self.contents(page?).len();
            if count >= max {
                return Ok(max);
            }
        }
        Ok(count)
    }
}

impl StoreError {
    fn cause(self) -> String {
        match self {
            StoreError::Missing => "it does not have it".to_owned(),
            StoreError::Exists => "it has it already".to_owned(),
            StoreError::Unknown => "it does not know such requests".to_owned(),
            StoreError::Away(cause) | StoreError::Refused(cause) => cause,
        }
    }
}

/// A request without anything but a method and a key.
fn request<'a>(method: &'static str, key: &'a str) -> StoreRequest<'a> {
    StoreRequest { method, key, query: &[], headers: &[], payload: Payload::None, content: 0 }
}

fn header<'a>(answer: &'a Response<Body>, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}
