//! Lists of files by folder, and of folders.

use crate::harness::*;

fn encoded(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

impl Server {
    /// The names of the folders in another one, page by page, of which each has so many.
    fn folders_in(&self, user: &Tokens, folder: &str, limit: usize) -> Vec<String> {
        let (mut names, mut after) = (Vec::new(), String::new());
        loop {
            let query = encoded(&[("in", folder), ("after", &after)]);
            let answer = self.get(&format!("/folders?{query}&limit={limit}"), user).expect(200);
            let page = answer.list("folders");
            assert!(page.len() <= limit);
            let parent = folder.trim_end_matches('/');
            for one in &page {
                let name = one["name"].as_str().expect("a name");
                assert_eq!(one["folder"], format!("{parent}/{name}"));
                names.push(name.to_owned());
            }
            match answer.json()["next"].as_str() {
                None => return names,
                Some(next) => {
                    assert_eq!((page.len(), names.last()), (limit, Some(&next.to_owned())));
                    after = next.to_owned();
                }
            }
        }
    }
}

/// What could stand between a folder and what lies below it, in the order of code points.
const NAMES: [&str; 12] =
    ["!", "0", "a", "a b", "a!", "a-b", "a.b", "a0", "b", "\u{c4}", "\u{1f600}", "\u{10ffff}"];

#[test]
fn each_folder_is_told_once_in_the_order_of_names() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    for name in NAMES.iter().rev() {
        // Some have files, and others only folders.
        let deep = ["", "/a", "/a/b"].map(|below| format!("/{name}{below}"));
        let chosen = if name.len() == 1 { &deep[..] } else { &deep[2..] };
        chosen.iter().for_each(|folder| drop(api.new_file_in(&ann, folder, "f")));
    }
    api.new_file(&ann, "at the root", "a");
    api.new_file_in(&bob, "/a/of bob", "f");
    for limit in [1, 2, 5, 12, 13, 1000] {
        assert_eq!(api.folders_in(&ann, "/", limit), NAMES, "{limit}");
        assert_eq!(api.folders_in(&ann, "/a", limit), ["a"]);
        assert_eq!(api.folders_in(&ann, "/a/a/", limit), ["b"]);
    }
    for none in ["/a/a/b", "/c", "/a-", "/of bob"] {
        assert_eq!(api.folders_in(&ann, none, 5), [""; 0], "{none}");
    }
    // What the list begins after need not be a folder.
    for (after, first) in
        [("a,", "a-b"), ("a\u{1}", "a b"), ("\u{10ffff}z", ""), ("a/b", "a0"), ("A", "a")]
    {
        let query = encoded(&[("after", after), ("limit", "1")]);
        let found = api.get(&format!("/folders?{query}"), &ann).expect(200).list("folders");
        let name = found.first().map_or("", |one| one["name"].as_str().expect("a name"));
        assert_eq!(name, first, "{after:?}");
    }
    for (query, field) in [
        ("in=a//b", "in"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("after=%00", "after"),
    ] {
        let answer = api.get(&format!("/folders?{query}"), &ann).case(query).expect(422);
        assert_eq!(answer.json()["detail"][0]["loc"], json!(["query", field]), "{query}");
    }
    let answer = api.get("/folders/move", &ann).expect(405);
    assert_eq!(answer.header("Allow"), "POST");
}

#[test]
fn a_list_has_what_lies_in_a_folder_or_below_it() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (folder, name) in [
        ("/", "r"),
        ("/a", "x"),
        ("/a", "Y"),
        ("/a/b", "x"),
        ("/a b", "x"),
        ("/a-b", "x"),
        ("/ab", "x"),
    ] {
        api.new_file_in(&ann, folder, name);
    }
    for (query, files) in [
        ("folder=/", "/:r"),
        ("folder=", "/:r, /a:x, /a:Y, /a/b:x, /a b:x, /a-b:x, /ab:x"),
        ("folder=/a", "/a:x, /a:Y"),
        ("folder=a/&sort_by=filename", "/a:x, /a:Y"),
        ("below=/a", "/a:x, /a:Y, /a/b:x"),
        ("below=/", "/:r, /a:x, /a:Y, /a/b:x, /a b:x, /a-b:x, /ab:x"),
        ("below=/a/b", "/a/b:x"),
        ("folder=/a&search=X", "/a:x"),
        ("below=/a&search=x", "/a:x, /a/b:x"),
        ("folder=/a&content_type=text/plain", "/a:x, /a:Y"),
        ("below=/a&content_type=text/plain", "/a:x, /a:Y, /a/b:x"),
        ("folder=/a&content_type=image/png", ""),
        ("folder=/none", ""),
        ("below=/none", ""),
    ] {
        let mut expected: Vec<_> = files.split(", ").filter(|one| !one.is_empty()).collect();
        for sort in ["asc", "desc"] {
            let path = format!("{query}&sort_by=uploaded_at&sort_order={sort}");
            let answer = api.list_files(&ann, &path).case(&path).expect(200).json();
            assert_eq!(answer["total"], expected.len(), "{path}");
            let listed = answer["items"].as_array().expect("items").iter().map(|file| {
                let text = |name: &str| file[name].as_str().expect("a text").to_owned();
                format!("{}:{}", text("folder"), text("filename"))
            });
            assert_eq!(listed.collect::<Vec<_>>(), expected, "{path}");
            expected.reverse();
        }
    }
    let both = api.list_files(&ann, "folder=/a&below=/a");
    both.invalid(&[("query.below", "value_error")]);
    api.list_files(&ann, "folder=a//b").invalid(&[("query.folder", "value_error")]);
    // A page past the end has the total, too.
    for query in ["folder=/a&page=9", "below=/a/b&page=9", "folder=/a&page=9&sort_by=filename"] {
        let total = if query.starts_with("below") { 1 } else { 2 };
        api.list_files(&ann, query).expect(200).has(json!({"total": total, "items": []}));
    }
}
