-- Contents whose records were removed on purpose, and since when, for some days after that. Where contents stay in their
-- place for those days, this says when they go, and the sweep adds those whose records were lost, with the time at which
-- it first saw them; and it tells the sweep which are none of these. It takes the place of kept_contents, which stays for
-- processes of the release before: they insert into it. A later migration drops it.
CREATE TABLE deleted_contents (
    id uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX deleted_contents_age ON deleted_contents (deleted_at);

INSERT INTO deleted_contents (id, deleted_at) SELECT id, kept_at FROM kept_contents;
