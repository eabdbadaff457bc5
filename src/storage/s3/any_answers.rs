//! What a store may answer: anything. Of a whole content, whose hash is known, nothing but what was stored may come of
//! it; of a part, of a listing and of the installation id, nothing but what it says that these are.

#![cfg(test)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Store;
use crate::config::{Secret, StoreSettings, StoreUrl};
use crate::model::hex;
use crate::semaphore::lock;
use crate::storage::{Content, Contents};

/// The answers of a store to one request after the other, each over a connection of its own. The last one is repeated.
type Answers = Arc<Mutex<Vec<Vec<u8>>>>;

/// Reads one request, and writes the next answer.
fn answer(stream: &TcpStream, answers: &Answers) -> std::io::Result<()> {
    let (mut request, mut length) = (BufReader::new(stream), 0);
    for line in request.by_ref().lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("content-length: ") {
            length = number.parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut request.take(length), &mut std::io::sink())?;
    let mut left = lock(answers);
    let next = if left.len() > 1 { left.remove(0) } else { left.concat() };
    drop(left);
    let mut stream = stream;
    stream.write_all(&next)
}

/// A store at a server that gives these answers.
fn store(answers: Answers) -> Store {
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { panic!("no listener") };
    let Ok(address) = listener.local_addr() else { panic!("no address") };
    thread::spawn(move || {
        // A client that hangs up early has seen enough.
        listener.incoming().flatten().for_each(|stream| drop(answer(&stream, &answers)));
    });
    let url = format!("s3://b/p?endpoint=http://{address}&region=r");
    let Some(url) = StoreUrl::parse(&url) else { panic!("no address of a store") };
    let key = || Secret::new("key".to_owned());
    let settings = StoreSettings { url, access_key: key(), secret_key: key(), authorities: None };
    Store::new(&settings).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Reads a part of a content to its end. `None` if that fails.
fn read(store: &Store, content: &[u8], part: std::ops::Range<u64>) -> Option<Vec<u8>> {
    let hash = hex(&Sha256::digest(content));
    let found = store.read(Uuid::nil(), content.len() as u64, &hash, part).ok()?;
    let Content::Stream(mut stream) = found else { panic!("not a stream") };
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok().map(|_| bytes)
}

#[test]
fn fuzz_answers_of_the_store() {
    let content = b"what was stored";
    let answers = Answers::default();
    let store = store(answers.clone());
    fuzz::check("store", move |input| {
        let Some((kind, rest)) = input.split_first() else { return };
        // No part of an answer needs this byte.
        *lock(&answers) = rest.split(|byte| *byte == 0xff).map(<[u8]>::to_vec).collect();
        let said = String::from_utf8_lossy(rest);
        let names = |name: &str, is_right: &dyn Fn(&str) -> bool| {
            said.lines().filter_map(|line| line.split_once(':')).any(|(found, value)| {
                found.trim().eq_ignore_ascii_case(name) && is_right(value.trim())
            })
        };
        // What comes in chunks may be divided.
        let is_chunked = said.to_lowercase().contains("chunked");
        match kind % 5 {
            0 => assert!(read(&store, content, 0..15).is_none_or(|bytes| bytes == content)),
            1 => {
                let Some(bytes) = read(&store, content, 2..9) else { return };
                let mut sent = rest.iter();
                assert!(bytes.len() == 7 && bytes.iter().all(|byte| sent.any(|b| b == byte)));
                assert!(names("content-range", &|range| range == "bytes 2-8/15"));
            }
            2 => {
                let pages = store.old_contents().into_iter().flatten();
                let ids: Vec<_> = pages.flat_map(|page| page.unwrap_or_default()).collect();
                let keys = percent_decode(rest).decode_utf8_lossy();
                let is_listed = |id: &Uuid| keys.contains(&format!("p/files/{id}"));
                assert!(ids.is_sorted() && (is_chunked || ids.iter().all(is_listed)));
            }
            3 => {
                let hash = BASE64_STANDARD.encode(Sha256::digest(format!("{}\n", Uuid::nil())));
                let is_stored = names("x-amz-checksum-sha256", &|value| value == hash)
                    || names("content-length", &|value| value.parse() == Ok(37));
                assert!(store.put_installation_id(Uuid::nil()).is_err() || is_stored);
            }
            _ => match store.read_installation_id() {
                // Bytes that are no UTF-8 are read as question marks.
                Ok(Some(text)) => assert!(is_chunked || text.contains('?') || said.contains(&text)),
                Ok(None) => assert!(said.contains(" 404")),
                Err(_) => {}
            },
        }
    });
}

#[test]
fn a_listing_that_does_not_go_on_or_is_not_in_order_is_refused() {
    let [first, last] = [7, 8].map(Uuid::from_u128);
    let page = |ids: &[Uuid]| {
        let object = |id| {
            format!(
                "<Contents><Key>p/files/{id}</Key><Size>7</Size>\
                 <LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"
            )
        };
        let objects: String = ids.iter().map(object).collect();
        let xml = format!(
            "<ListBucketResult><IsTruncated>true</IsTruncated>{objects}</ListBucketResult>"
        );
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{xml}", xml.len()).into_bytes()
    };
    for (answers, expected) in [
        (vec![page(&[first])], vec![Some(vec![first]), None]),
        (vec![page(&[first, last])], vec![Some(vec![first, last]), None]),
        (vec![page(&[last, first])], vec![None]),
        (vec![page(&[last]), page(&[first])], vec![Some(vec![last]), None]),
    ] {
        let store = store(Arc::new(Mutex::new(answers)));
        let pages = store.old_contents().into_iter().flatten();
        assert_eq!(pages.map(|page| page.ok()).collect::<Vec<_>>(), expected);
    }
}
