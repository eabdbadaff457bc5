//! Names and searches in Unicode: in one form (NFC), and with case as Unicode folds it, whatever the locale of the
//! database. Each test runs in databases of four kinds.

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::harness::*;

/// Databases in which `lower()` and the order of texts differ: bytes alone, a language that has two letters i, another
/// one, and the root of all. Those of ICU stand for the same ones of libc too, which few machines have.
const KINDS: [&str; 4] = [
    "LOCALE 'C'",
    "LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'",
    "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LC_COLLATE 'C' LC_CTYPE 'C'",
    "LOCALE_PROVIDER icu ICU_LOCALE 'und' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'",
];

fn database(kind: &str) -> Arc<Database> {
    Database::create_with(&format!("ENCODING 'UTF8' {kind}"))
}

/// Calls `check` with a service on each kind of database.
fn in_each_kind(check: impl Fn(&Server)) {
    for kind in KINDS {
        println!("{kind}");
        check(&Server::start_on(&database(kind), &[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]));
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Texts that are one and the same but for form and case.
const SAME: [(&str, &str); 10] = [
    ("FIDAN", "fidan"),
    ("\u{dc}BER", "\u{fc}ber"),
    ("M\u{fc}ller", "mu\u{308}LLER"),
    // The signs of Kelvin and Angstrom are letters, and so is a long s.
    ("\u{212a}elvin", "kelvin"),
    ("\u{212b}ngstr\u{f6}m", "a\u{30a}ngstr\u{f6}m"),
    ("ma\u{17f}\u{17f}e", "MASSE"),
    ("stra\u{df}e", "STRA\u{1e9e}E"),
    ("\u{3bf}\u{3b4}\u{3bf}\u{3c2}", "\u{39f}\u{394}\u{39f}\u{3a3}"),
    // Marks in two orders, and syllables in parts.
    ("vi\u{1ec7}t", "VIE\u{323}\u{302}T"),
    ("\u{d55c}\u{ae00}", "\u{1112}\u{1161}\u{11ab}\u{ae00}"),
];

/// Texts that are different: a ligature, and letters that only some languages take for one.
const DIFFERENT: [(&str, &str); 4] = [
    ("\u{fb01}sh", "fish"),
    ("d\u{131}sh", "dIsh"),
    ("gro\u{df}er", "grosser"),
    ("\u{e9}mile", "emile"),
];

#[test]
fn an_address_and_a_username_are_unique_and_sign_in_without_regard_to_form_and_case() {
    in_each_kind(|api| {
        let root = api.sign_up_admin("root");
        let create = |body: Value| api.post("/users/test-only/create", &root, body);
        for (one, other) in SAME {
            let [one, other] = [one, other].map(|name| format!("{name}@Example.com"));
            let body = |email: &str| json!({"email": email, "password": PASSWORD});
            let user = api.register_with(body(&one)).expect(201).tokens().id().to_owned();
            api.register_with(body(&other)).case(&other).refused(400, "Email already exists");
            assert_eq!(api.login(&other, PASSWORD).case(&other).expect(200).tokens().id(), user);
            // It is stored as it was sent.
            api.show_user(&root, &user).has(json!({"email": one}));
        }
        for (one, other) in DIFFERENT {
            for name in [one, other] {
                let body = json!({"email": format!("{name}@example.com"), "password": PASSWORD});
                api.register_with(body).case(name).expect(201);
            }
        }
        let register = |name: &str, email: &str| {
            api.register_with(json!({"username": name, "email": email, "password": PASSWORD}))
        };
        register("FILIZ", "filiz@example.org").expect(201);
        register("filiz", "other@example.org").refused(400, "Username already exists");
        api.login("Filiz", PASSWORD).expect(200);
        create(json!({"username": "\u{dc}BER", "password": "1"})).expect(201);
        create(json!({"username": "u\u{308}ber"})).refused(409, "Username already exists");
        api.login("\u{fc}bER", "1").expect(200);
        // A small letter that composes where the capital one does not.
        create(json!({"email": "T\u{308}om"})).expect(201);
        create(json!({"email": "\u{1e97}om"})).refused(409, "Email already exists");
    });
}

/// Names of files and of users, and parts of them that find them.
const FOUND: [(&str, &str, &str); 12] = [
    ("IMG_TITLE.txt", "IMG_TITLE.txt", "img_title"),
    ("image2.txt", "image2.txt", "IMAGE2"),
    ("\u{dc}BERSICHT.txt", "\u{dc}BERSICHT.txt", "\u{fc}bersicht"),
    ("Mu\u{308}ller.txt", "M\u{fc}ller.txt", "m\u{fc}ll"),
    ("S\u{fc}den.txt", "S\u{fc}den.txt", "SU\u{308}D"),
    (
        "\u{416}\u{443}\u{440}\u{43d}\u{430}\u{43b}.txt",
        "\u{416}\u{443}\u{440}\u{43d}\u{430}\u{43b}.txt",
        "\u{436}\u{423}",
    ),
    ("\u{1112}\u{1161}\u{11ab}.txt", "\u{d55c}.txt", "\u{d55c}"),
    ("vie\u{302}\u{323}t.txt", "vi\u{1ec7}t.txt", "VIE\u{323}\u{302}T"),
    ("\u{212b}sa.txt", "\u{c5}sa.txt", "a\u{30a}sa"),
    ("\u{2126}hm.txt", "\u{3a9}hm.txt", "\u{3c9}HM"),
    ("\u{1fd3}.txt", "\u{390}.txt", "\u{390}"),
    ("\u{fb01}n.txt", "\u{fb01}n.txt", "\u{fb01}N"),
];

#[test]
fn files_are_stored_in_nfc_found_without_regard_to_form_and_case_and_in_the_order_of_code_points() {
    in_each_kind(|api| {
        let ann = api.sign_up("ann");
        let mut ids = Vec::new();
        for (sent, stored, _) in FOUND {
            let form =
                file_form(sent, "text/plain", b"x").field("description", &format!("of {sent}"));
            let file = api.upload_form(&ann, form).expect(201);
            file.has(json!({"filename": stored, "description": format!("of {stored}")}));
            ids.push(api.upload(&ann, "x", "x").expect(201).id());
        }
        for (id, (sent, stored, _)) in ids.iter().zip(FOUND) {
            let renamed = api.update_file(&ann, id, json!({"filename": sent, "description": sent}));
            renamed.expect(200).has(json!({"filename": stored, "description": stored}));
        }
        let mut sorted = FOUND.map(|(_, stored, _)| [stored; 2]).concat();
        sorted.sort_by_key(|name| name.to_lowercase());
        check_files(api, &ann, "", &sorted);
        for file in api.all_files(&ann) {
            api.delete_file(&ann, file["id"].as_str().unwrap()).expect(204);
        }
        if has_extras() {
            check_files(api, &ann, "&deleted=true", &sorted);
        }
    });
}

/// Checks that each search of [`FOUND`] finds both files, and the order by name.
fn check_files(api: &Server, user: &Tokens, deleted: &str, sorted: &[&str]) {
    for (_, stored, part) in FOUND {
        let query = format!("search={}{deleted}", encoded(part));
        let names = api.list_files(user, &query).expect(200).names("items", "filename");
        assert_eq!(names, [stored; 2], "{query}");
        let word = encoded(&format!("of {part}"));
        let query = format!("search={word}{deleted}");
        assert_eq!(api.list_files(user, &query).expect(200).names("items", "filename"), [stored]);
    }
    for search in ["", "&search=t"] {
        let list = |order: &str| {
            let query = format!("size=100&sort_by=filename&sort_order={order}{search}{deleted}");
            api.list_files(user, &query).expect(200).names("items", "filename")
        };
        assert_eq!(list("asc"), sorted);
        assert!(list("desc").iter().eq(sorted.iter().rev()));
    }
}

#[test]
fn users_are_found_without_regard_to_form_and_case_and_in_the_order_of_code_points() {
    in_each_kind(|api| {
        let root = api.sign_up_admin("root");
        for (n, (sent, stored, _)) in FOUND.into_iter().enumerate() {
            let local = sent.trim_end_matches(".txt");
            let (email, name) = (format!("{local}.{n}@example.com"), format!(" {sent} "));
            let body = json!({"email": email, "name": name, "password": PASSWORD, "role": "user",
                              "is_active": true});
            api.create_user(&root, body).expect(201).has(json!({"name": stored}));
        }
        let names = |path: &str, list: &str| {
            let names = api.get(path, &root).case(path).expect(200).json()[list].clone();
            let names = names.as_array().unwrap().iter().filter(|user| !user["name"].is_null());
            names.map(|user| user["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        for (n, (_, stored, part)) in FOUND.into_iter().enumerate() {
            for filter in ["name", "email", "search", "text"] {
                let query = format!("{filter}={}", encoded(part));
                assert_eq!(names(&format!("/users?{query}"), "users"), [stored], "{query}");
                assert_eq!(names(&format!("/admin/users?{query}"), "items"), [stored], "{query}");
            }
            let export = api.export(&root, &format!("email={}", encoded(part))).expect(200).text();
            assert!(export.lines().count() == 2 && export.contains(&format!(".{n}@")), "{export}");
        }
        let mut sorted = FOUND.map(|(_, stored, _)| stored);
        sorted.sort_by_key(|name| name.to_lowercase());
        let by_name = "/users?sort_by=name&size=100&sort_order=";
        assert_eq!(names(&format!("{by_name}asc"), "users"), sorted);
        sorted.reverse();
        assert_eq!(names(&format!("{by_name}desc"), "users"), sorted);
        let by_email = "/users?sort_by=email&size=100&name=txt&sort_order=";
        sorted.reverse();
        assert_eq!(names(&format!("{by_email}asc"), "users"), sorted);
    });
}

#[test]
fn lengths_count_what_nfc_leaves() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let nfd = |n: usize| "u\u{308}".repeat(n);
    let nfc = |n: usize| "\u{fc}".repeat(n);
    api.update_me(&ann, json!({"name": nfd(255)})).expect(200).has(json!({"name": nfc(255)}));
    api.update_me(&ann, json!({"name": nfd(256)})).invalid(&[("body.name", "string_too_long")]);
    // Hangul takes three times the bytes.
    let (parts, syllables) = ("\u{1112}\u{1161}\u{11ab}".repeat(4096), "\u{d55c}".repeat(4096));
    let upload = |name: &str, description: &str| {
        let form = file_form(name, "text/plain", b"x").field("description", description);
        api.upload_form(&ann, form)
    };
    let cut = format!("{}.txt", nfc(251));
    let file = upload(&format!("{}.txt", nfd(300)), &parts).expect(201);
    let file = file.has(json!({"filename": cut, "description": syllables})).id();
    upload("a.txt", &format!("{parts}\u{1112}"))
        .invalid(&[("body.description", "string_too_long")]);
    let rename = |name: String| api.update_file(&ann, &file, json!({"filename": name}));
    rename(nfd(255)).expect(200).has(json!({"filename": nfc(255)}));
    rename(nfd(256)).invalid(&[("body.filename", "string_too_long")]);
    let long = format!("email={}", encoded(&nfd(255)));
    let root = api.sign_up_admin("root");
    api.list_users(&root, &long).expect(200);
    api.list_users(&root, &format!("{long}u")).invalid(&[("query.email", "string_too_long")]);
    if !has_extras() {
        return;
    }
    let token = |n: usize| api.create_token(&ann, json!({"name": nfd(n)}));
    token(100).expect(201).has(json!({"name": nfc(100)}));
    token(101).invalid(&[("body.name", "string_too_long")]);
    // The same key, name and content in another form are the same upload.
    let repeat = |name: &str| {
        let request = api.upload_request(&ann, file_form(name, "text/plain", b"x").bytes());
        request.header("Idempotency-Key", "one").send().expect(201).id()
    };
    assert_eq!(repeat("M\u{fc}ller.txt"), repeat("Mu\u{308}ller.txt"));
}

#[test]
fn a_database_that_cannot_hold_or_fold_texts_is_refused_by_every_command_that_opens_it() {
    let admin = ["create-admin", "--email", "root@example.com"];
    let mut commands = vec![&["serve"][..], &["migrate"], &admin];
    if cfg!(feature = "tools") {
        commands.extend([&["check"][..], &["gc"], &["doctor"]]);
    }
    let refused = |database: &Database, sentence: &str| {
        for arguments in &commands {
            let data = Directory::create();
            std::fs::create_dir(data.join("files")).unwrap();
            let password = [("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)];
            let output = run_in(&data, &database.url, arguments, &password);
            let text = output.out() + &output.err();
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
            assert!(text.contains(sentence), "{arguments:?}: {text}");
        }
    };
    for encoding in ["SQL_ASCII", "LATIN1"] {
        let database = Database::create_with(&format!("ENCODING '{encoding}' LOCALE 'C'"));
        refused(
            &database,
            &format!("the encoding of the database is {encoding}, and must be UTF8"),
        );
        assert_eq!(database.count("pg_class WHERE relname = 'users'"), 0);
    }
    // As if its files had been moved to a machine that lacks the locale.
    let database = Database::create_migrated();
    database.run("UPDATE pg_collation SET collcollate = 'xx', collctype = 'xx' WHERE collname = 'by_character'");
    refused(&database, "the machine of the database lacks the locale C.UTF-8");
}

#[test]
fn an_account_that_is_copied_in_the_database_has_the_key_of_its_own_address() {
    in_each_kind(|api| {
        api.sign_up("ann");
        api.database.run(
            "INSERT INTO users (id, username, email, email_key, password_hash)
             SELECT gen_random_uuid(), 'ida', 'IDA@Example.com', email_key, password_hash FROM users
             WHERE username = 'ann'",
        );
        api.login("ida@example.COM", PASSWORD).expect(200);
        let body = json!({"username": "bob", "email": "ida@EXAMPLE.com", "password": PASSWORD});
        api.register_with(body).refused(400, "Email already exists");
        // A key that only the program can compute is left as it is.
        let update =
            "UPDATE users SET email = '\u{c9}@example.com', email_key = 'k' WHERE username = 'ida'";
        api.database.run(update);
        let key = "SELECT email_key FROM users WHERE username = 'ida'";
        assert_eq!(api.database.value::<String>(key), "k");
    });
}
