//! Lists of so many files that most pages are found by an index: the same answers as one plain query gives.

use crate::harness::*;

#[test]
fn a_page_is_what_a_plain_query_gives_in_each_order_with_each_filter_and_however_far_out() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    // More than a thousand are texts, up to which the files of a type are sorted. Many names, sizes and times are the
    // same, and Bob has as many.
    for user in [&ann, &bob] {
        api.database.run(&format!(
            "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path,
                                file_hash, description, upload_date)
             SELECT gen_random_uuid(), '{}', (ARRAY['File', 'fILE', 'Émile'])[i % 3 + 1] || i % 40, 'f',
                    CASE WHEN i % 8 = 0 THEN 'image/png' ELSE 'text/plain' END, i * 7919 % 300, 'f', 'h',
                    CASE WHEN i % 5 = 0 THEN 'About ' || i END, timestamptz '2026-01-01Z' + i / 7 * interval '1 hour'
             FROM generate_series(1, 2000) i",
            user.id()
        ));
    }
    api.database.run("ANALYZE files");
    let mut client = api.database.client();
    for (filter, condition) in [
        ("", "true"),
        ("content_type=text/plain", "content_type = 'text/plain'"),
        ("content_type=image/png", "content_type = 'image/png'"),
        ("content_type=image/gif", "false"),
        ("search=FILE", "filename ILIKE 'file%'"),
        ("search=%C3%A9MILE1", "filename LIKE 'Émile1%'"),
        (
            "search=about%2010&content_type=image/png",
            "description LIKE '% 10%' AND content_type = 'image/png'",
        ),
        ("search=%25", "false"),
    ] {
        for (order, by) in [
            ("sort_by=upload_date&sort_order=asc", "upload_date, id"),
            ("sort_by=upload_date&sort_order=desc", "upload_date DESC, id"),
            ("sort_by=filename&sort_order=asc", "folded(filename), id"),
            ("sort_by=filename&sort_order=desc", "folded(filename) DESC, id"),
            ("sort_by=file_size&sort_order=asc", "file_size, id"),
            ("sort_by=file_size&sort_order=desc", "file_size DESC, id"),
        ] {
            let sql = format!(
                "SELECT id::text FROM files WHERE user_id = '{}' AND {condition} ORDER BY {by}",
                ann.id()
            );
            let rows = client.query(&sql, &[]).expect("rows");
            let all: Vec<String> = rows.iter().map(|row| row.get("id")).collect();
            for offset in [0, all.len() / 2, all.len().saturating_sub(5), all.len(), 50_000] {
                let query = format!("{filter}&{order}&limit=10&offset={offset}");
                let body = api.list_files(&ann, &query).case(&query).expect(200).json();
                let expected: Vec<_> = all.iter().skip(offset).take(10).cloned().collect();
                assert_eq!(names_of(&body["items"], "id"), expected, "{query}");
                assert_eq!(body["total"], all.len(), "{query}");
            }
        }
    }
}
