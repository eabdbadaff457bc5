-- Forgets the contents $1, which are gone; returns a row for each. Those in $2 could not be removed: removals/contents,
-- with the same number of days, $3, finds them again after a minute.
WITH postponed AS (
    UPDATE deleted_contents SET deleted_at = now() - make_interval(days => $3, mins => -1) WHERE id = ANY ($2)
)
DELETE FROM deleted_contents WHERE id = ANY ($1) RETURNING id
