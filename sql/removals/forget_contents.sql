-- Forgets the contents $1, which are gone; returns how many it forgot.
WITH forgotten AS (
    DELETE FROM deleted_contents WHERE id = ANY($1) RETURNING id
)
SELECT count(*) AS forgotten FROM forgotten
