-- Forgets the contents $1, which are gone; returns a row for each.
DELETE FROM deleted_contents WHERE id = ANY($1) RETURNING id
