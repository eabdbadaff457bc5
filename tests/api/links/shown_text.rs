//! Which charset a browser is told of a text that a link shows. Without one it takes a text for windows-1252, unless
//! its first bytes say something else.

use crate::harness::*;

const UTF8: &str = "text/plain; charset=utf-8";
const AS_STORED: &str = "text/plain";

impl Server {
    /// The path of a link that shows a file.
    fn inline_link(&self, sender: &Tokens, file: &str) -> String {
        let link = self.create_link(sender, file, json!({"inline": true})).expect(201).json();
        link["url"].as_str().expect("a path").to_owned()
    }

    fn shown_type(&self, link: &str) -> String {
        self.open_link(link).expect(200).header("Content-Type").to_owned()
    }
}

/// Texts and what they are sent as: kinds of bytes, and characters wherever pieces of a body end.
fn texts() -> Vec<(Vec<u8>, &'static str, String)> {
    let mut texts: Vec<(Vec<u8>, &str, String)> = [
        (&b""[..], UTF8, "nothing"),
        (b"plain", UTF8, "ASCII"),
        ("Gr\u{fc}\u{df}e".as_bytes(), UTF8, "two bytes a character"),
        ("\u{65e5}\u{672c}\u{8a9e}".as_bytes(), UTF8, "three bytes"),
        ("\u{1f600}".as_bytes(), UTF8, "four bytes"),
        ("\u{feff}Gr\u{fc}\u{df}e".as_bytes(), UTF8, "a byte order mark"),
        (b"\x1b[1mred\x1b[0m\r\n\x0c\xc2\x85", UTF8, "control characters"),
        (b"Gr\xfc\xdfe", AS_STORED, "ISO 8859-1"),
        (b"\xff\xfeG\0r\0\xfc\0", AS_STORED, "UTF-16, least byte first"),
        (b"\xfe\xff\0G\0r\0\xfc", AS_STORED, "UTF-16"),
        (b"G\0r\0", AS_STORED, "UTF-16 without a mark"),
        (b"a\0b", AS_STORED, "NUL"),
        (b"\x83\x65\x83\x58", AS_STORED, "Shift JIS"),
        (b"\xed\xa0\xbd\xed\xb8\x80", AS_STORED, "surrogates"),
        (b"Gr\xc3\xbc\xc3\x9fe \xe2\x82", AS_STORED, "a character that is cut off"),
    ]
    .map(|(text, shown, reason)| (text.to_vec(), shown, reason.to_owned()))
    .to_vec();
    let long = "\u{e9}\u{20ac}\u{1f600}".repeat(30_000).into_bytes();
    for before in 0..4 {
        let text = [&b"x".repeat(before)[..], &long].concat();
        texts.push((text.clone(), UTF8, format!("many characters after {before} bytes")));
        for end in [&b"\xe9"[..], b"\0", b"\xf0\x9f\x98"] {
            let text = [&text, end].concat();
            texts.push((text, AS_STORED, format!("the same, {before}, and {end:?} at the end")));
        }
    }
    texts
}

/// Links show all of the texts as they must be.
fn assert_shown(api: &Server) {
    let ann = api.sign_up("ann");
    for (text, shown, reason) in texts() {
        let form = file_form("a.txt", "text/plain; charset=iso-8859-1", &text);
        let answer = api.upload_form(&ann, form).case(&reason).expect(201);
        let file = answer.has(json!({"content_type": "text/plain"})).id();
        let link = api.inline_link(&ann, &file);
        let answer = api.open_link(&link).case(&reason).expect(200);
        assert_eq!((answer.header("Content-Type"), &answer.bytes), (shown, &text), "{reason}");
        let saved = api.new_link(&ann, &file);
        assert_eq!(api.shown_type(&saved), AS_STORED, "{reason}, saved");
        let download = api.download(&ann, &file).expect(200);
        assert_eq!(download.header("Content-Type"), AS_STORED, "{reason}, downloaded");
        assert_eq!(download.header("ETag"), answer.header("ETag"), "{reason}");
    }
}

#[test]
fn a_text_that_is_utf_8_as_a_whole_says_so_where_a_link_shows_it() {
    assert_shown(&Server::start(&[]));
}

#[cfg(feature = "s3")]
#[test]
fn a_text_in_a_store_says_so_as_well() {
    let (_store, api) = crate::files::store::start();
    assert_shown(&api);
}

#[test]
fn every_answer_of_the_link_says_the_same_whatever_became_of_the_file() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "Gr\u{fc}\u{df}e");
    let link = api.inline_link(&ann, &file);
    let request = |method: &str| api.request_at_root(method, &link);
    assert_eq!(request("HEAD").send().expect(200).header("Content-Type"), UTF8);
    // A range may cut characters.
    let part = request("GET").header("Range", "bytes=3-3").send().expect(206);
    assert_eq!((part.header("Content-Type"), &part.bytes[..]), (UTF8, &b"\xbc"[..]));
    let tag = api.open_link(&link).header("ETag").to_owned();
    let known = request("GET").header("If-None-Match", &tag).send().expect(304);
    assert!(!known.has_header("Content-Type"), "a browser keeps the one that it has");
    let change = json!({"filename": "b.bin", "description": "d", "is_public": true});
    api.update_file(&ann, &file, change).expect(200).has(json!({"content_type": "text/plain"}));
    assert_eq!(api.shown_type(&link), UTF8, "changed");
    let latin = api.upload(&ann, "c.txt", b"Gr\xfc\xdfe").expect(201).id();
    for (file, shown) in [(&file, UTF8), (&latin, AS_STORED)] {
        api.delete_file(&ann, file).expect(204);
        api.post(&format!("/uploads/{file}/restore"), &ann, json!({})).expect(200);
        assert_eq!(api.shown_type(&api.inline_link(&ann, file)), shown, "restored");
    }
}

#[test]
fn only_a_plain_text_has_a_charset() {
    let types = [("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "text/*,image/*")];
    let (api, [ann]) = Server::with_users(&types, ["ann"]);
    for kind in ["text/html", "text/csv", "text/markdown", "image/png"] {
        let file = api.upload_form(&ann, file_form("a", kind, b"text")).case(kind).expect(201).id();
        assert_eq!(api.shown_type(&api.inline_link(&ann, &file)), kind);
    }
    let form = file_form("a", "Text/Plain", b"text");
    let file = api.upload_form(&ann, form).expect(201).id();
    assert_eq!(api.shown_type(&api.inline_link(&ann, &file)), UTF8);
}
