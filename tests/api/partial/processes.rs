//! Uploads in several requests before several processes whose contents are in a store: each has the bytes in its own
//! data directory, unless they share the one for these.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use crate::harness::*;

#[test]
fn processes_that_share_the_directory_go_on_for_each_other_and_others_know_no_upload() {
    let store = StoreServer::start();
    let url = store.url();
    let settings = store_settings(&url);
    let api = Server::start(&settings);
    let alone = Server::start_on(&api.database, &settings);
    let data = Arc::new(Directory::create());
    symlink(api.data.join("partial"), data.join("partial")).expect("a link");
    let sharing = Server::start_with(&api.database, &data, &settings);
    let ann = api.sign_up("ann");
    let path = api.begin_partial(&ann, 10);
    api.adding(&path, &ann, 0, b"0123").send().expect(204);
    alone.tus("HEAD", &path, &ann).send().expect(404);
    alone.adding(&path, &ann, 4, b"4567").send().refused(404, "Upload not found");
    assert_eq!(sharing.offset(&path, &ann), 4);
    sharing.adding(&path, &ann, 4, b"4567").send().expect(204);
    let answer = api.adding(&path, &ann, 8, b"89").send().expect(204);
    let file = answer.header("Content-Location").rsplit('/').next().expect("an id");
    // What is complete lies in the store, for all.
    assert_eq!(alone.download(&ann, file).expect(200).text(), "0123456789");
    assert!(entries(api.data.join("partial")).is_empty());
}
