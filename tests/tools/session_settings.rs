//! Settings of the database, which PostgreSQL gives to each session, change nothing about what the commands do.

use std::sync::Arc;

use crate::harness::*;

/// Settings that would end a command or change its statements, and such as change how values are written.
const SETTINGS: [(&str, &str); 10] = [
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_deferrable", "on"),
    ("standard_conforming_strings", "off"),
    ("TimeZone", "Pacific/Auckland"),
    ("DateStyle", "SQL"),
    ("IntervalStyle", "sql_standard"),
    ("bytea_output", "escape"),
    ("extra_float_digits", "-15"),
    ("idle_in_transaction_session_timeout", "1min"),
    ("statement_timeout", "1min"),
];

/// A new database with these settings, and a directory.
fn installation() -> Installation {
    let database = Database::create();
    let set = |(name, value)| format!("ALTER DATABASE {} SET {name} = '{value}';", database.name());
    database.run(&SETTINGS.map(set).concat());
    Installation { database, data: Arc::new(Directory::create()) }
}

#[test]
fn every_command_does_the_same_whatever_the_database_asks_of_sessions() {
    let (service, target, backups) = (installation(), installation(), Backups::create());
    service.run(&["migrate"], &[]).exits(0);
    let api = service.serve();
    api.create_admin("root@example.com", PASSWORD);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "content");
    // What has a meaning in texts of SQL, or of dumps.
    let text = json!({"description": r"\' \x41 \n \. $$ %"});
    api.update_file(&ann, &file, text.clone()).expect(200);
    let (backup, _) = backups.make(&api);
    for arguments in [&["check"][..], &["gc"], &["doctor"]] {
        service.run(arguments, &[]).exits(0);
    }
    target.restore(&backup).exits(0);
    assert!(target.warnings(&[]).is_empty());
    let restored = target.serve();
    let ann = restored.sign_in("ann");
    restored.show_file(&ann, &file).expect(200).has(text);
    assert_eq!(restored.download(&ann, &file).expect(200).text(), "content");
    restored.sign_in("root@example.com");
}
