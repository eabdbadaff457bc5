//! Contents that no record owns: the command `gc` and the sweep at start move them to the trash.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::*;

/// Starts a server with a user, and waits until the sweep at start has ended, which would do the work of a test's own
/// sweep.
fn start_swept() -> (Server, Tokens) {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    // The old days of the trash are the last thing that a sweep looks at.
    let day = data.join("trash/2000-01-01");
    fs::create_dir_all(&day).expect("a directory");
    let api = Server::start_with(&database, &data, &[]);
    api.logged(&format!("removed {}", day.display()));
    let ann = api.sign_up("ann");
    (api, ann)
}

#[test]
fn gc_moves_what_is_old_and_without_a_record_to_the_trash() {
    let (api, ann) = start_swept();
    let recorded = api.data.content(&api.new_file(&ann, "a.txt", "one"));
    let place = |relative: &str| {
        let path = api.data.join(relative);
        fs::write(&path, "x").expect("a file");
        path
    };
    let [old, young] = [1, 2].map(uuid);
    let (moved, removed) = (place(&format!("files/{old}")), place(&format!("tmp/{old}")));
    let too_young = [place(&format!("files/{young}")), place(&format!("tmp/{young}"))];
    // An id is only recognised as one in its usual form, with hyphens.
    let foreign = [place("files/note.txt"), place("files/11111111111141118111111111111112")];
    for path in foreign.iter().chain([&moved, &removed, &recorded]) {
        make_older(path, 1);
    }
    let printed = api.collect_garbage();
    assert!(!moved.exists() && !removed.exists());
    let [trashed] = &api.data.trash()[..] else { panic!("{printed}") };
    assert_eq!(*trashed, day_of_trash(&api, 0).join(&old));
    assert_eq!(fs::read_to_string(trashed).expect("a content"), "x");
    let moved = format!("moved {} to {}\n", moved.display(), trashed.display());
    let removed = format!("removed {}\n", removed.display());
    assert!(printed.contains(&moved) && printed.contains(&removed), "{printed}");
    for path in too_young.iter().chain(&foreign).chain([&recorded]) {
        assert!(path.exists(), "{}", path.display());
    }
    assert!(printed.ends_with(&swept(1, 1)), "{printed}");
}

#[test]
fn a_standby_which_may_lack_records_makes_no_content_one_without_a_record() {
    let cluster = Cluster::start("gc");
    let api = cluster.serve(&[]);
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    make_orphans(&data, 0, 1);
    let collect = || run_in(&data, &database.url, &["gc"], &[]).exits(0).out();
    cluster.stop();
    cluster.start_as_standby();
    assert_eq!((collect(), data.trash()), (swept(0, 0), vec![]));
    cluster.stop();
    cluster.start_as_primary();
    assert!(collect().ends_with(&swept(1, 0)));
}

/// The directory of the trash for what went there so many days ago.
fn day_of_trash(api: &Server, ago: i32) -> PathBuf {
    let day =
        format!("to_char((now() AT TIME ZONE 'UTC') - {ago} * interval '1 day', 'YYYY-MM-DD')");
    api.data.join("trash").join(api.database.value::<String>(&format!("SELECT {day}")))
}

/// Makes that many old contents without a record; the names of those of another `series` differ.
fn make_orphans(data: &Directory, series: u32, count: u32) {
    for n in 0..count {
        let path = data.content(&format!("{n:08x}-1111-4111-8111-{series:012x}"));
        fs::write(&path, "").expect("a file");
        make_older(&path, 1);
    }
}

#[test]
fn the_trash_is_emptied_after_as_many_days_as_the_setting_says() {
    let (api, _) = start_swept();
    let day = |ago| day_of_trash(&api, ago);
    let (old, kept) = (day(8), [day(7), day(-1), api.data.join("trash/2020-01-01-notes")]);
    for path in kept.iter().chain([&old]) {
        fs::create_dir(path).expect("a directory");
        fs::write(path.join(uuid(1)), "x").expect("a file");
    }
    let printed = api.collect_garbage();
    assert_eq!(printed, format!("removed {}\n{}", old.display(), swept(0, 1)));
    assert!(!old.exists() && kept.iter().all(|path| path.exists()));
    let settings = [("CLOAKROOM_TRASH_DAYS", "6")];
    let server = Server::start_with(&api.database, &api.data, &settings);
    server.logged(&format!("removed {}", kept[0].display()));
}

#[test]
fn a_sweep_that_would_move_over_five_percent_and_more_than_twenty_moves_none() {
    let (api, ann) = start_swept();
    // However large a part they are, twenty may go.
    make_orphans(&api.data, 0, 20);
    assert!(api.collect_garbage().ends_with(&swept(20, 0)));
    // Twenty-one of 419 are over five percent.
    api.database.insert_files(ann.id(), &[1; 398]);
    for id in api.database.texts("SELECT id::text FROM files") {
        fs::write(api.data.content(&id), "x").expect("a content");
    }
    make_orphans(&api.data, 1, 21);
    assert_eq!(api.data.contents().len(), 419);
    // Where something is wrong, what is in the trash may be wanted back, however old it is.
    let old = api.data.join("trash/2020-01-01");
    fs::create_dir(&old).expect("a directory");
    let output = api.run_beside(&["gc"]).exits(1);
    assert_eq!(output.out(), swept(0, 0));
    output.reports("21 of 419 contents").reports("gc --confirm");
    let server = Server::start_with(&api.database, &api.data, &[]);
    server.logged("21 of 419 contents have no record");
    assert_eq!((api.data.contents().len(), api.data.trash().len()), (419, 20));
    assert!(old.exists());
    // With one more content that has a record they are not.
    api.new_file(&ann, "b.txt", "two");
    assert!(api.collect_garbage().ends_with(&swept(21, 1)));
    assert!(!old.exists());
    make_orphans(&api.data, 2, 50);
    let printed = api.run_beside(&["gc", "--confirm"]).exits(0).out();
    assert!(printed.ends_with(&swept(50, 0)), "{printed}");
    assert_eq!((api.data.contents().len(), api.data.trash().len()), (399, 91));
}

#[test]
fn no_more_ids_are_gathered_than_are_certain_to_be_too_many() {
    let (api, _) = start_swept();
    make_orphans(&api.data, 0, 2500);
    let output = api.run_beside(&["gc"]).exits(1);
    assert_eq!(output.out(), swept(0, 0));
    output.reports("at least 1000 of 2500 contents have no record").reports("gc --confirm");
    assert_eq!(api.data.contents().len(), 2500);
}

#[test]
fn contents_newer_than_a_recovered_database_go_to_the_trash_and_come_back_with_their_records() {
    let (api, ann) = start_swept();
    let ids: Vec<String> = (0..18).map(|n| api.new_file(&ann, "a.txt", &n.to_string())).collect();
    ids.iter().for_each(|id| make_older(&api.data.content(id), 2));
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    // As if the database had been recovered to a time before the last uploads.
    database.run(
        "CREATE TABLE lost AS SELECT * FROM files ORDER BY upload_date DESC LIMIT 15;
         ALTER TABLE lost DROP COLUMN disk_usage;
         DELETE FROM files WHERE id IN (SELECT id FROM lost)",
    );
    let api = Server::start_with(&database, &data, &[]);
    let line = api.logged("15 contents have no record in the database");
    assert!(line.contains("WARN") && line.contains("/trash now, for 7 days"), "{line}");
    assert_eq!((data.contents().len(), data.trash().len()), (3, 15));
    drop(api);
    // As if it had been recovered anew, to a time after them.
    database.run("INSERT INTO files SELECT * FROM lost");
    let api = Server::start_with(&database, &data, &[]);
    api.run_beside(&["check", "--repair"]).exits(0);
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(api.download(&ann, id).expect(200).text(), n.to_string());
    }
    assert_eq!(api.collect_garbage(), swept(0, 0));
}

#[test]
fn gc_handles_more_contents_and_records_than_one_batch() {
    let (api, ann) = start_swept();
    let kept = api.new_file(&ann, "a.txt", "one");
    make_orphans(&api.data, 0, 2500);
    api.database.insert_files(ann.id(), &[1; 2500]);
    let printed = api.run_beside(&["gc", "--confirm"]).exits(0).out();
    assert!(printed.ends_with(&swept(2500, 0)));
    assert_eq!(api.data.trash().len(), 2500);
    assert_eq!(api.data.contents(), [api.data.content(&kept)]);
}

#[test]
fn a_content_that_is_missing_or_cut_is_a_500_and_reported() {
    let (api, ann) = start_swept();
    let missing = api.new_file(&ann, "a.txt", "one");
    let cut = api.new_file(&ann, "b.txt", "two");
    let whole = api.new_file(&ann, "c.txt", "three");
    fs::remove_file(api.data.content(&missing)).expect("removed");
    fs::write(api.data.content(&cut), "tw").expect("cut");
    for id in [&missing, &cut] {
        api.download(&ann, id).refused(500, "Internal server error");
        api.logged(&format!("content of file {id}"));
        api.show_file(&ann, id).expect(200);
    }
    api.download(&ann, &whole).expect(200);
    assert!(!api.log().contains("panic"), "{}", api.log());
    assert_eq!(api.collect_garbage(), swept(0, 0));
    let printed = api.run_beside(&["check"]).exits(1).out();
    for (id, name, damage) in [(&missing, "a.txt", "is missing"), (&cut, "b.txt", "")] {
        let line = format!("fault   files/{id} (\"{name}\", owner ann) {damage}");
        assert!(printed.contains(&line), "{printed}");
        api.delete_for_good(&ann, id).expect(204);
    }
    api.run_beside(&["check"]).exits(0);
}
