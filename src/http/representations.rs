//! Content that stays the same while the process runs and that clients may have plain or compressed.

use std::borrow::Cow;
use std::io::Read;

use flate2::Compression;
use flate2::read::GzEncoder;
use sha2::{Digest, Sha256};

use super::request::Request;
use super::response::Response;
use crate::model::hex;

/// Both forms of a content. Compressing takes longer than all else that an answer needs, so both are kept.
pub struct Representations {
    content_type: &'static str,
    plain: Representation,
    /// The same, compressed by gzip.
    gzip: Representation,
}

/// A form in which something is sent, see RFC 9110, 3.2.
struct Representation {
    /// All responses share it, because each would need hundreds of kilobytes otherwise, for as long as its client does
    /// not read it.
    content: &'static [u8],
    /// The entity tag, with its quotes: the beginning of the hash of the content. The forms have tags of their own
    /// (RFC 9110, 8.8.3.3).
    tag: String,
}

impl Representation {
    /// Keeps the content for as long as the process runs.
    fn new(content: Cow<'static, [u8]>) -> Representation {
        let tag = format!("\"{}\"", hex(&Sha256::digest(&content)[..8]));
        let content = match content {
            Cow::Borrowed(content) => content,
            Cow::Owned(content) => content.leak(),
        };
        Representation { content, tag }
    }
}

impl Representations {
    /// Compresses the content, and keeps both forms for as long as the process runs.
    pub fn new(
        content_type: &'static str,
        content: impl Into<Cow<'static, [u8]>>,
    ) -> Representations {
        let (content, mut gzip) = (content.into(), Vec::new());
        // It cannot fail, because it reads from memory.
        let _ = GzEncoder::new(&*content, Compression::best()).read_to_end(&mut gzip);
        let (plain, gzip) = (Representation::new(content), Representation::new(gzip.into()));
        Representations { content_type, plain, gzip }
    }

    /// 200 with the form that the client prefers, or 304 if it has that already.
    pub fn respond(&self, request: &Request) -> Response {
        let compressed = prefers_gzip(request);
        let form = if compressed { &self.gzip } else { &self.plain };
        let mut response = if request.knows_tag(&form.tag) == Some(true) {
            Response::empty(304)
        } else {
            let mut response = Response::new(200, self.content_type, form.content);
            if compressed {
                response.add_header("Content-Encoding", "gzip");
            }
            response
        };
        response.add_header("Vary", "Accept-Encoding");
        response.with_header("ETag", form.tag.clone())
    }
}

/// Whether the client takes gzip, and likes it no less than no coding at all (RFC 9110, 12.5.3). One without
/// `Accept-Encoding` may get any, but is often a simple program that reads only what is not compressed.
fn prefers_gzip(request: &Request) -> bool {
    let weight = |coding: &str| {
        let mut items = request.headers("Accept-Encoding").flat_map(|list| list.split(','));
        items.find_map(|item| weight_of(item, coding))
    };
    let others = weight("*");
    let gzip = weight("gzip").or(others).unwrap_or(0.0);
    gzip > 0.0 && gzip >= weight("identity").or(others).unwrap_or(0.0)
}

/// The weight of an item of `Accept-Encoding`, such as `gzip;q=0.5`, if it is about this coding. One that cannot be
/// read counts as a refusal.
fn weight_of(item: &str, coding: &str) -> Option<f32> {
    let mut words = item.split(';').map(str::trim);
    if !words.next()?.eq_ignore_ascii_case(coding) {
        return None;
    }
    let weight = words.find_map(|word| word.strip_prefix("q=").or(word.strip_prefix("Q=")));
    Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}
