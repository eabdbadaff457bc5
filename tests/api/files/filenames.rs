//! The names of files on their way: how clients write them in forms, and how downloads name what is saved.

use crate::harness::*;

/// How a name is written in the header of a download that has it as its only one, or beside an encoded one.
enum Written {
    /// As it is: a token that browsers do not decode.
    Bare,
    /// Quoted, and complete.
    Quoted,
    /// Quoted with `_` in place of what a header cannot have, and encoded beside it.
    Encoded,
}
use Written::*;

/// Names as they are stored. The test of the console checks what a browser makes of the same headers.
fn names() -> Vec<(String, Written)> {
    let long = |part: &str, count| part.repeat(count);
    [
        ("a.txt", Bare),
        ("README", Bare),
        (".hidden", Bare),
        ("..a", Bare),
        ("a.", Bare),
        ("a..b..", Bare),
        ("a!#$&+-^_`|~.txt", Bare),
        ("'", Bare),
        ("it's.txt", Bare),
        ("'a'.txt", Bare),
        ("*.txt", Bare),
        ("UTF-8''a.txt", Bare),
        ("a b.txt", Quoted),
        ("5\" disk.txt", Quoted),
        ("\"", Quoted),
        ("\"a\"", Quoted),
        ("a;b.txt", Quoted),
        ("a; filename=b.txt", Quoted),
        ("a; filename*=UTF-8''b.txt", Quoted),
        ("a=b.txt", Quoted),
        ("a?b", Quoted),
        ("a=b?", Quoted),
        ("a? =b", Quoted),
        ("(a) [b] {c}.txt", Quoted),
        ("<a@b>,c:d.txt", Quoted),
        ("%", Encoded),
        ("a%", Encoded),
        ("100%.txt", Encoded),
        ("100%25 cotton.txt", Encoded),
        ("a%20b.txt", Encoded),
        ("%41.txt", Encoded),
        ("%E4.txt", Encoded),
        ("%C3%A4.txt", Encoded),
        ("%0D%0Aa.txt", Encoded),
        ("%22.txt", Encoded),
        ("report%2Epdf.txt", Encoded),
        ("=?", Encoded),
        ("=?utf-8?q?=FCb?=.txt", Encoded),
        ("=?utf-8?B?w6Q=?=", Encoded),
        ("a =?x.txt", Encoded),
        ("na\u{ef}ve.txt", Encoded),
        ("\u{e4}\u{f6}\u{fc}", Encoded),
        ("\u{65e5}\u{672c}\u{8a9e}.txt", Encoded),
        ("\u{645}\u{644}\u{641}.txt", Encoded),
        ("\u{1f600}.txt", Encoded),
        ("\u{1f469}\u{200d}\u{1f4bb}", Encoded),
        ("a\u{a0}b\u{2003}c", Encoded),
        ("\u{fc}\"%;'=?.txt", Encoded),
    ]
    .map(|(name, written)| (name.to_owned(), written))
    .into_iter()
    .chain([
        (long("x", 255), Bare),
        (long("x ", 127) + "x", Quoted),
        (long("%", 255), Encoded),
        // The longest that is sent as it is, in bytes of UTF-8.
        (long("\u{1f600}", 63), Encoded),
    ])
    .collect()
}

/// All but what RFC 8187, 3.2.1 lets stand for itself.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'!' | b'#' | b'$' | b'&' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~' => {
            char::from(byte).to_string()
        }
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[test]
fn a_download_names_the_file_so_that_no_browser_reads_another_name() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a", "text");
    let link = |inline: bool| {
        let answer = api.create_link(&ann, &file, json!({ "inline": inline })).expect(201);
        answer.json()["url"].as_str().expect("a path").to_owned()
    };
    let links = has_extras().then(|| (link(false), link(true)));
    for (name, written) in names() {
        let ascii = |c: char| if matches!(c, ' '..='~') { c } else { '_' };
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        let quoted: String = quoted.chars().map(ascii).collect();
        let expected = match written {
            Bare => format!("filename={name}"),
            Quoted => format!("filename=\"{quoted}\""),
            Encoded => format!("filename=\"{quoted}\"; filename*=UTF-8''{}", encoded(&name)),
        };
        let form = Form::default().part(
            &format!(
                "Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''{}",
                encoded(&name)
            ),
            b"text",
        );
        let answer = api.upload_form(&ann, form).case(&name).expect(201);
        let uploaded = answer.has(json!({"filename": name, "original_filename": name})).id();
        api.update_file(&ann, &file, json!({"filename": name})).expect(200);
        for method in ["GET", "HEAD"] {
            let mut requests = vec![(api.download_request(method, &ann, &uploaded), "attachment")];
            if let Some((saved, shown)) = &links {
                requests.push((api.request_at_root(method, saved), "attachment"));
                requests.push((api.request_at_root(method, shown), "inline"));
            }
            for (request, kind) in requests {
                let answer = request.send().case(&name).expect(200);
                assert_eq!(answer.header("Content-Disposition"), format!("{kind}; {expected}"));
            }
        }
        // The names of an export are its own, and so is that of what a client has already.
        if let Some((_, shown)) = &links {
            let known = api.request_at_root("GET", shown).header("If-None-Match", "*").send();
            let disposition = format!("inline; {expected}");
            assert_eq!(known.expect(304).header("Content-Disposition"), disposition);
        }
    }
}

#[test]
fn what_forms_write_in_place_of_quotes_and_ends_of_lines_is_decoded_once() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (parameter, kept) in [
        ("filename=\"5%22 disk.txt\"", "5\" disk.txt"),
        ("filename=5%22disk.txt", "5\"disk.txt"),
        ("filename=\"%22%22\"", "\"\""),
        ("filename=\"a%0Ab%0Dc%0D%0A.txt\"", "abc.txt"),
        ("filename=\"%0A a %0D\"", "a"),
        ("filename=\"a%0ab%0dc.txt\"", "a%0ab%0dc.txt"),
        ("filename=\"100%25 cotton.txt\"", "100%25 cotton.txt"),
        ("filename=\"a%2Fb%2fc.txt\"", "a%2Fb%2fc.txt"),
        ("filename=\"a%5Cb.txt\"", "a%5Cb.txt"),
        ("filename=\"%E4%C3%A4%20%00.txt\"", "%E4%C3%A4%20%00.txt"),
        ("filename=\"%2522%250A.txt\"", "%2522%250A.txt"),
        ("filename=\"%%22%2%222.txt\"", "%\"%2\"2.txt"),
        ("filename=\"%0%0A22.txt\"", "%022.txt"),
        ("filename=\"%\"", "%"),
        ("filename=\"a%\"", "a%"),
        ("filename=\"dir/%22a%22.txt\"", "\"a\".txt"),
        ("filename=\"say \\\"%22\\\".txt\"", "say \"\"\".txt"),
        ("filename*=UTF-8''5%22%0Adisk%2522.txt", "5\"disk%22.txt"),
        ("filename=\"%22.txt\"; filename*=UTF-8''%2522.txt", "%22.txt"),
    ] {
        let header = format!("Content-Disposition: form-data; name=\"file\"; {parameter}");
        let answer = api.upload_form(&ann, Form::default().part(&header, b"x")).case(parameter);
        let names = json!({"filename": kept, "original_filename": kept});
        let file = answer.expect(201).has(names.clone()).id();
        api.show_file(&ann, &file).expect(200).has(names);
    }
    for nothing_left in ["%0A", "%0D%0A", "..%0A", "%0A.%0D", "a/%0A"] {
        api.upload(&ann, nothing_left, "x").invalid(&[("body.file", "value_error")]);
    }
    // Of a name of more than 255 characters those count that are left.
    let long = "x".repeat(252) + "%22.t";
    api.upload(&ann, &long, "x").expect(201).has(json!({"filename": "x".repeat(252) + "\".t"}));
    // Other names of a form stay as they are sent, and so does a name in JSON.
    let form = file_form("a", "text/plain", b"x").field("description", "%22%0A");
    let file = api.upload_form(&ann, form).expect(201).has(json!({"description": "%22%0A"})).id();
    let change = json!({"filename": "%22%0A.txt"});
    api.update_file(&ann, &file, change.clone()).expect(200).has(change);
}

#[test]
fn a_download_names_a_file_with_at_most_the_255_bytes_that_file_systems_take() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let name = "\u{65e5}".repeat(250) + ".txt";
    let file = api.new_file(&ann, &name, "x");
    api.show_file(&ann, &file).expect(200).has(json!({"filename": name}));
    let answer = api.download(&ann, &file).expect(200);
    let (_, sent) =
        answer.header("content-disposition").split_once("filename*=UTF-8''").expect("a name");
    let characters = sent.strip_suffix(".txt").expect("its extension");
    assert_eq!(characters, "%E6%97%A5".repeat(83), "83 characters of three bytes, and four more");
}

#[test]
fn an_encoded_part_is_refused_because_its_bytes_are_not_the_files() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let part = "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Transfer-Encoding: ";
    for (coding, is_plain) in
        [("binary", true), ("8bit", true), ("7BIT", true), ("base64", false), ("x", false)]
    {
        let answer =
            api.upload_form(&ann, Form::default().part(&format!("{part}{coding}"), b"aGVsbG8="));
        if is_plain {
            answer.case(coding).expect(201);
        } else {
            let answer = answer.case(coding).invalid(&[("body", "value_error")]);
            assert!(answer.text().contains("Content-Transfer-Encoding"), "{}", answer.text());
        }
    }
    assert_eq!(api.data.contents().len(), 3);
}
