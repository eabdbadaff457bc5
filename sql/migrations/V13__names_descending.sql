-- Order by name, descending: accounts without a name come last in both orders, and an index serves only one of them.
-- While it is built, accounts can be read but not changed: a few seconds for a million of them.
CREATE INDEX users_name_desc ON users (lower(name) DESC NULLS LAST, id)
WHERE NOT is_deleted AND NOT is_development_admin;
