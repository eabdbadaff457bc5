//! A refusal of a large body reaches a client behind a proxy that looks for the answer only after it has passed the
//! whole body on: Apache does so, and nginx as long as its writes do not have to wait.

use std::net::{TcpListener, TcpStream};

use crate::harness::*;

const MIB: usize = 1024 * 1024;
const TRUST: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");

/// Sends all of a request with a body of 64 MiB, whether or not there is an answer meanwhile, and then reads the
/// answer. `None` if the service ends the connection before it has read the whole body.
fn send_all_first(api: &Server, head: &str) -> Option<u16> {
    let mut connection = RawConnection::open(&api.address);
    connection.send(format!("{head}\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 64 * MIB));
    let piece = vec![b'x'; MIB];
    (0..64).try_for_each(|_| connection.try_send(&piece)).ok()?;
    connection.try_answer().ok().map(|answer| answer.status)
}

#[test]
fn the_rest_of_a_refused_body_is_read_for_a_trusted_proxy_and_for_nobody_else() {
    let (trusting, other) = (Server::start(&[TRUST]), Server::start(&[]));
    for api in [&trusting, &other] {
        let ann = api.sign_up("ann");
        let upload = format!(
            "POST /api/v1/uploads HTTP/1.1\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}"
        );
        for (head, status) in [
            (upload.clone(), 401),
            (format!("{upload}\r\nAuthorization: Bearer {}", ann.access), 413),
            ("POST /api/v1/auth/login HTTP/1.1".to_owned(), 413),
            ("POST /api/v1/nowhere HTTP/1.1".to_owned(), 404),
            ("DELETE /api/v1/uploads HTTP/1.1".to_owned(), 405),
            ("POST /api/v1/uploads HTTP/1.1\r\nno header".to_owned(), 400),
        ] {
            let expected = Some(status).filter(|_| std::ptr::eq(api, &trusting));
            assert_eq!(send_all_first(api, &head), expected, "{head}");
        }
    }
}

#[test]
fn a_refusal_of_a_body_of_any_size_comes_through_nginx_with_its_default_buffering() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    let (api, [ann]) = Server::with_users(&[TRUST], ["ann"]);
    drop(free);
    let http = format!(
        "client_max_body_size 0;\n\
         server {{ listen {address}; location / {{ proxy_pass http://{}; }} }}\n",
        api.address
    );
    let is_ready = || TcpStream::connect(&address).is_ok();
    let _nginx = NginxProcess::start(Directory::create(), &http, is_ready);
    let upload = |sender: &dyn Credentials, bytes| {
        let form = file_form("a.txt", "text/plain", &vec![b'x'; bytes]);
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = Request::new("POST", format!("http://{address}/api/v1/uploads"));
        request.by(sender).header("Content-Type", &content_type).body(form.bytes()).send()
    };
    upload(&ann, MIB).expect(201);
    for bytes in [12 * MIB, 30 * MIB, 200 * MIB] {
        upload(&Anonymous, bytes).expect(401);
        upload(&ann, bytes).expect(413);
    }
}
