//! What uploads of a stranger may cost: many parts, bytes that come one by one, bodies over a limit or a quota.

use crate::harness::*;

const MIB: u64 = 1024 * 1024;

/// Begins an upload and reads its answer, also if not all of the body was sent.
pub fn answer_to(api: &Server, user: &Tokens, framing: &str, body: &[u8]) -> RawAnswer {
    let stream = api.begin_upload(user, framing, body);
    RawConnection::over(stream).expect("a connection").answer()
}

/// The answer to a form that is sent in chunks of at most so many bytes.
fn answer_to_chunks(api: &Server, user: &Tokens, form: Form, length: usize) -> RawAnswer {
    let body = form.bytes();
    let chunks = body.chunks(length).flat_map(|chunk| {
        let size = format!("{:x}\r\n", chunk.len());
        [size.as_bytes(), chunk, b"\r\n"].concat()
    });
    let body: Vec<u8> = chunks.chain(*b"0\r\n\r\n").collect();
    answer_to(api, user, "Transfer-Encoding: chunked", &body)
}

#[test]
fn a_form_of_two_hundred_thousand_bad_parts_costs_less_than_a_file() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let begin = api.cpu_ticks();
    api.upload(&ann, "a.txt", vec![b'x'; 10 * MIB as usize]).expect(201);
    let (before, ticks) = (api.peak_memory(), api.cpu_ticks() - begin);
    let part = b"--b\r\nContent-Disposition:;name=description\r\n\r\n\xff\r\n";
    let request = api.request("POST", "/uploads").by(&ann);
    let request = request.header("Content-Type", "multipart/form-data; boundary=b");
    let begin = api.cpu_ticks();
    let answer = request.body([&part.repeat(210_915)[..], b"--b--"].concat()).send();
    let answer = answer.invalid(&[("body", "value_error")]);
    assert!(answer.bytes.len() < 1000, "{} bytes", answer.bytes.len());
    let grown = api.peak_growth(before);
    assert!(grown < 2 * MIB, "grew by {grown} bytes");
    let spent = api.cpu_ticks() - begin;
    assert!(spent <= ticks + 5, "{spent} ticks, a file {ticks}");
}

#[test]
fn a_form_has_at_most_16_parts_and_only_its_first_description_counts() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let others = |count| (0..count).fold(Form::default(), |form, _| form.field("x", "y"));
    let file = || file_form("a.txt", "text/plain", b"one");
    api.upload_form(&ann, others(15).then(file())).expect(201);
    for form in [others(16).then(file()), file().then(others(16)), others(1000)] {
        let answer = api.upload_form(&ann, form).invalid(&[("body", "value_error")]);
        let told = answer.json()["field_errors"]["body"].clone();
        assert_eq!(told, json!(["Must have at most 16 parts"]));
    }
    assert_eq!(api.data.contents().len(), 1);
    let bad = || {
        let header = "Content-Disposition: form-data; name=\"description\"";
        Form::default().part(header, b"caf\xe9").field("description", &"d".repeat(5000))
    };
    let form = file().field("description", "d").then(bad()).then(bad());
    api.upload_form(&ann, form).expect(201).has(json!({"description": "d"}));
    let form = bad().then(bad()).then(bad()).then(file());
    api.upload_form(&ann, form).invalid(&[("body.description", "value_error")]);
}

#[test]
fn a_header_that_comes_byte_by_byte_costs_what_a_file_does() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let long = format!("X: {}", "x".repeat(8000));
    let headers = (0..14).fold(Form::default(), |form, _| form.part(&long, b""));
    let headers = headers.file("a.txt", "text/plain", b"");
    let content = vec![b'x'; headers.clone().bytes().len()];
    let cost = |form: Form| {
        let begin = api.cpu_ticks();
        assert_eq!(answer_to_chunks(&api, &ann, form, 1).status, 201);
        api.cpu_ticks() - begin
    };
    let file = cost(file_form("a.txt", "text/plain", &content));
    let header = cost(headers);
    assert!(header <= 2 * file + 5, "{header} ticks, a file {file}");
}

#[test]
fn a_file_over_its_limit_and_a_form_over_that_of_the_body_are_told_apart() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "1000")], ["ann"]);
    let file = |size: usize| file_form("a.txt", "text/plain", &vec![b'x'; size]);
    let field = |size: usize| Form::default().field("x", &"x".repeat(size));
    let description = |size: usize| Form::default().field("description", &"d".repeat(size));
    let unknown = |count, size| (0..count).fold(Form::default(), |form, _| form.then(field(size)));
    let (large_file, large_body) =
        ("File size exceeds maximum limit (1000 bytes)", "Request body too large");
    let of_file = "The file may have at most 1000 bytes.";
    let of_form =
        "The form may have at most 66536 bytes: 1000 for the file, and 65536 for all else.";
    let expect = |answer: RawAnswer, message: &str, reason: &str| {
        let body = answer.json();
        let (hint, word) = match message == large_body {
            true => (of_form, "FORM_TOO_LARGE"),
            false => (of_file, "FILE_TOO_LARGE"),
        };
        assert_eq!((answer.status, &body["detail"]), (413, &json!(message)), "{reason}");
        assert_eq!((&body["hint"], &body["reason"]), (&json!(hint), &json!(word)), "{reason}");
    };
    for (form, message, reason) in [
        (file(1001), large_file, "a byte too many"),
        (file(70_000), large_file, "more than a body may have"),
        (field(60_000).then(file(10_000)), large_file, "after another part"),
        (file(3).then(field(70_000)), large_body, "a small file before a large part"),
        (field(70_000).then(file(3)), large_body, "a small file after a large part"),
        (field(70_000), large_body, "no file"),
        (field(65_500).then(file(1000)), large_body, "a file in which the body passes its limit"),
        (file(900).then(description(70_000)), large_body, "a large description after a small file"),
        (description(70_000).then(file(900)), large_body, "a large description before it"),
        (unknown(15, 5_000).then(file(900)), large_body, "many parts before a small file"),
        (file(900).then(unknown(15, 5_000)), large_body, "many parts after a small file"),
    ] {
        expect(answer_to_chunks(&api, &ann, form, 1024), message, reason);
    }
    // A chunk that passes the limit is refused by its length, so what is in it is not known.
    for (form, message, reason) in [
        (file(70_000), large_file, "what has arrived of the file is too much"),
        (file(900).then(description(70_000)), large_body, "the file has arrived"),
        (field(60_000).then(file(10_000)), large_file, "it may be the file's"),
    ] {
        expect(answer_to_chunks(&api, &ann, form, 60_000), message, reason);
    }
    // A body that is announced to be so long is refused before it is sent, so what is in it is not known.
    for (framing, body) in [
        ("Content-Length: 66537", ""),
        ("Content-Length: 66537\r\nExpect: 100-continue", ""),
        ("Transfer-Encoding: chunked", "103e9\r\n"),
    ] {
        expect(answer_to(&api, &ann, framing, body.as_bytes()), large_file, framing);
    }
    assert!(api.data.contents().is_empty());
}

#[test]
fn a_quota_that_is_used_up_is_told_before_the_body_is_sent() {
    const WAITING: &str = "Expect: 100-continue\r\nContent-Length: 500";
    for (setting, value) in [
        ("CLOAKROOM_USER_STORAGE_QUOTA", "1000"),
        ("CLOAKROOM_USER_FILE_QUOTA", "1"),
        ("CLOAKROOM_STORAGE_QUOTA", "1000"),
    ] {
        let (api, [ann, bob]) = Server::with_users(&[(setting, value)], ["ann", "bob"]);
        let file = api.new_file(&ann, "a.txt", &numbers(1000));
        let answer = answer_to(&api, &ann, WAITING, b"");
        assert_eq!(answer.status, 507, "{setting}");
        assert_eq!(answer.json()["detail"], "Storage quota exceeded");
        // The quota of the service holds for others too.
        let of_bob = if setting == "CLOAKROOM_STORAGE_QUOTA" { 507 } else { 100 };
        assert_eq!(answer_to(&api, &bob, WAITING, b"").status, of_bob, "{setting}");
        api.delete_file(&ann, &file).expect(204);
        wait_until(|| api.database.count("deleted_contents") == 0);
        api.new_file(&ann, "b.txt", &numbers(1000));
    }
}

#[test]
fn a_draft_that_grows_over_what_a_quota_has_left_ends_at_once() {
    let beginning = file_form("a.txt", "text/plain", &vec![b'x'; 400_000]).bytes();
    for (setting, value) in
        [("CLOAKROOM_USER_STORAGE_QUOTA", "1000"), ("CLOAKROOM_STORAGE_QUOTA", "300000")]
    {
        let (api, [ann]) = Server::with_users(&[(setting, value)], ["ann"]);
        let answer = answer_to(&api, &ann, "Content-Length: 9000000", &beginning);
        assert_eq!(answer.status, 507, "{setting}");
        assert!(api.data.contents().is_empty());
        api.upload(&ann, "a.txt", numbers(1000)).expect(201);
    }
}
