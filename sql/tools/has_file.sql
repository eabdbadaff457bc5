-- Whether user $1 has a file in folder $2, in the form of the column, with name $3 and size $4 and, unless $5 is null,
-- with that SHA-256 in hexadecimal. However many files are in the folder, an index finds those of the name.
SELECT EXISTS (
    SELECT FROM files
    WHERE user_id = $1 AND folder = $2 AND folded(filename) = folded($3) AND filename = $3 AND file_size = $4
      AND ($5::text IS NULL OR file_hash = $5)
) AS is_there
