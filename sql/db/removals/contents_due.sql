-- Whether contents were listed more than $1 days ago. Looked at before db/removals/contents, for the same reason as
-- db/removals/due.
SELECT EXISTS (SELECT FROM deleted_contents WHERE deleted_at < now() - make_interval(days => $1)) AS due
