-- Stores the ASCII forms $3 of the addresses $2 of the accounts $1, if the accounts have these addresses still. An
-- account whose form is taken by another one is left out.
UPDATE users SET email_ascii = form.email_ascii
FROM (
    SELECT DISTINCT ON (lower(email_ascii)) id, email, email_ascii
    FROM unnest($1::uuid[], $2::text[], $3::text[]) AS given (id, email, email_ascii)
    ORDER BY lower(email_ascii), id
) AS form
WHERE users.id = form.id AND users.email = form.email AND NOT users.is_deleted AND NOT EXISTS (
    SELECT FROM users other
    WHERE lower(coalesce(other.email_ascii, other.email)) = lower(form.email_ascii) AND other.id <> form.id
      AND NOT other.is_deleted AND NOT other.is_development_admin
)
