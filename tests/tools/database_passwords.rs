//! No part of the database's password is shown or logged, however odd the password is and however it is written.

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::harness::*;

/// Passwords that are easily written in a wrong way. Three characters of them stand nowhere else, but for `://`.
const PASSWORDS: [&str; 6] = [
    "Zq@Xv Kj/7Yw",
    "Zq@Xv@Kj:7Yw?Qz=Jx&Vq",
    "Zq'Xv Kj\"7Yw=Qz",
    "Zq%41Xv%ZZ@7Yw#Kj",
    "Zq\\Xv' Kj@7Yw",
    "Zq://Xv@Kj://7Yw",
];

/// Fails if any three successive characters of the password stand in the text.
#[track_caller]
fn hides(text: &str, password: &str) {
    let characters: Vec<char> = password.chars().collect();
    for part in characters.windows(3) {
        let part: String = part.iter().collect();
        assert!(part == "://" || !text.contains(&part), "{part:?} of {password:?} in: {text}");
    }
}

/// The password as each of the two forms should have it: encoded for a URL, quoted for key/value text.
fn encoded(password: &str) -> (String, String) {
    let quoted = password.replace('\\', r"\\").replace('\'', r"\'");
    (utf8_percent_encode(password, NON_ALPHANUMERIC).to_string(), format!("'{quoted}'"))
}

#[test]
fn a_password_that_is_written_in_a_wrong_way_is_in_no_message() {
    let data = Directory::create();
    std::fs::create_dir(data.join("files")).expect("a directory");
    for password in PASSWORDS {
        for (name, text) in [
            ("CLOAKROOM_DATABASE_URL", format!("postgres://ann:{password}@127.0.0.1:1/x")),
            ("DATABASE_URL", format!("postgres://ann:{password}@127.0.0.1:1/x?sslmode=disable")),
            ("CLOAKROOM_DATABASE_URL", format!("postgres://{password}@127.0.0.1:1/x")),
            ("CLOAKROOM_DATABASE_URL", format!("postgresql://ann@{password}")),
            ("CLOAKROOM_DATABASE_URL", format!("postgres:/ann:{password}@127.0.0.1:1/x")),
            ("CLOAKROOM_DATABASE_URL", format!("host=127.0.0.1 port=1 user=x password={password}")),
            ("DATABASE_URL", format!("password='{password}' host=127.0.0.1 port=1 user=x")),
            ("CLOAKROOM_DATABASE_URL", format!("host=127.0.0.1 port=1 options={password} user=x")),
        ] {
            for arguments in [&["config"][..], &["doctor"], &["check"], &["backup", "b"]] {
                let settings = [
                    ("CLOAKROOM_DATABASE_URL", ""),
                    ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1"),
                    (name, &text),
                ];
                let output = run_in(&data, "", arguments, &settings);
                hides(&(output.out() + &output.err()), password);
            }
        }
    }
}

#[test]
fn a_password_that_is_written_as_it_should_be_is_in_no_output_either() {
    let database = Database::create();
    let role = format!("{}_odd", database.name());
    database.run(&format!("CREATE ROLE {role} LOGIN SUPERUSER"));
    let (_, address) = database.url.rsplit_once('@').expect("a URL");
    let parts: Vec<_> = address.split([':', '/']).collect();
    let [host, port, name] = parts[..] else { panic!("{parts:?}") };
    let (data, backups) = (Arc::new(Directory::create()), Backups::create());
    for password in PASSWORDS {
        let literal = password.replace('\'', "''");
        database.run(&format!("ALTER ROLE {role} LOGIN PASSWORD '{literal}'"));
        let (in_url, quoted) = encoded(password);
        let in_url = format!("postgres://{role}:{in_url}@{address}");
        let key_value =
            format!("user={role} password={quoted} host={host} port={port} dbname={name}");
        for url in [in_url, key_value] {
            let timeout = [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")];
            let run = |arguments: &[&str], status| {
                let output = run_in(&data, &url, arguments, &timeout).exits(status);
                hides(&(output.out() + &output.err()), password);
            };
            let api = Server::spawn(command(&url, &data, &timeout), &database, &data);
            for arguments in [&["config"][..], &["doctor"], &["check"], &backups.arguments()] {
                run(arguments, 0);
            }
            // The pool cannot open connections any more, and says why.
            database.run(&format!("ALTER ROLE {role} NOLOGIN"));
            database.end_connections("usename LIKE '%_odd'");
            api.readyz().expect(503);
            api.logged("no connection to the database at ");
            hides(&api.log(), password);
            run(&["doctor"], 1);
            run(&backups.arguments(), 1);
            database.run(&format!("ALTER ROLE {role} LOGIN"));
        }
    }
    database.run(&format!("REASSIGN OWNED BY {role} TO CURRENT_USER; DROP ROLE {role}"));
}
