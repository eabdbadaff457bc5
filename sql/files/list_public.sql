-- A page of the files that active accounts have published, the latest upload first and then by id. $1: who asks, whose
-- own ones are among them; $2: a part of the filename or the description, null for any; $3: whether others must have
-- been made by an administrator, have an identity at a provider, or be older than seven days; $4, $5: upload time and
-- id of the last one that was looked at; $6: how many at most.
-- At most 10,000 files after that one are looked at, so that nobody's files make this longer for others. The last row
-- is the last of these, without an owner, if there were so many and the page is not full.
-- The planner does not see the values of the parameters, so it keeps its plan.
WITH searched AS MATERIALIZED (
    SELECT folded($2::text) AS part
), looked_at AS NOT MATERIALIZED (
    SELECT * FROM files
    WHERE is_public AND upload_date <= (SELECT $4::timestamptz) AND (upload_date < $4 OR id > $5)
    ORDER BY upload_date DESC, id LIMIT 10000
), page AS MATERIALIZED (
    SELECT f.*, coalesce(owner.name, owner.username) AS owner_name
    FROM looked_at f JOIN users owner ON owner.id = f.user_id CROSS JOIN searched
    WHERE owner.is_active AND NOT owner.is_deleted
      AND (owner.id = $1 OR NOT $3 OR NOT owner.is_self_registered OR owner.identity_issuer IS NOT NULL
           OR owner.created_at <= now() - interval '7 days')
      AND (part IS NULL OR strpos(folded(filename), part) > 0 OR strpos(folded(description), part) > 0)
    ORDER BY f.upload_date DESC, f.id LIMIT (SELECT $6::bigint)
), last AS (
    SELECT id, upload_date FROM looked_at
    ORDER BY upload_date DESC, id OFFSET 9999 LIMIT CASE WHEN (SELECT count(*) FROM page) < $6 THEN 1 ELSE 0 END
)
SELECT id, user_id, folder, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
       updated_at, is_public, version, received_by, owner_name
FROM page
UNION ALL
SELECT id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, upload_date, NULL, NULL, NULL, NULL, NULL FROM last
