//! Removing contents that no record owns: the command `gc` and the sweep at start.

use std::fs;
use std::sync::Arc;

use crate::harness::*;

#[test]
fn gc_removes_what_is_old_and_without_a_record() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let recorded = api.data.content(&api.new_file(&ann, "a.txt", "one"));
    let place = |relative: &str| {
        let path = api.data.join(relative);
        fs::write(&path, "x").expect("a file");
        path
    };
    let old = "11111111-1111-4111-8111-111111111111";
    let young = "22222222-2222-4222-8222-222222222222";
    let removed = [place(&format!("files/{old}")), place(&format!("tmp/{old}"))];
    let too_young = [place(&format!("files/{young}")), place(&format!("tmp/{young}"))];
    // An id is only recognised as one in its usual form, with hyphens.
    let foreign = [place("files/note.txt"), place("files/11111111111141118111111111111112")];
    for path in removed.iter().chain(&foreign).chain([&recorded]) {
        make_older(path, 1);
    }
    let printed = api.collect_garbage();
    for path in &removed {
        assert!(!path.exists());
        assert!(printed.contains(&format!("removed {}\n", path.display())), "{printed}");
    }
    for path in too_young.iter().chain(&foreign).chain([&recorded]) {
        assert!(path.exists(), "{}", path.display());
    }
    assert!(printed.ends_with("\n2 removed, 0 missing.\n"), "{printed}");
}

#[test]
fn gc_handles_more_contents_and_records_than_one_batch() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let kept = api.new_file(&ann, "a.txt", "one");
    for n in 0..2500 {
        let path = api.data.content(&format!("{n:08x}-1111-4111-8111-111111111111"));
        fs::write(&path, "").expect("a file");
        make_older(&path, 1);
    }
    api.database.insert_files(ann.id(), &[1; 2500]);
    let printed = api.collect_garbage();
    assert!(printed.ends_with("\n2500 removed, 2500 missing.\n"));
    assert_eq!(api.data.contents(), [api.data.content(&kept)]);
}

#[test]
fn a_start_removes_old_uploads_in_progress() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    drop(Server::start_with(&database, &data, &[]));
    let path = data.join("tmp/11111111-1111-4111-8111-111111111111");
    fs::write(&path, "x").expect("a file");
    make_older(&path, 1);
    let api = Server::start_with(&database, &data, &[]);
    api.logged(&format!("removed {}", path.display()));
    assert!(!path.exists());
}

#[test]
fn a_content_that_is_missing_or_cut_is_a_500_and_reported() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
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
    let expected = format!("the content of file {missing} is missing\n0 removed, 1 missing.\n");
    assert_eq!(api.collect_garbage(), expected);
    api.delete_file(&ann, &missing).expect(204);
}
