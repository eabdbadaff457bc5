-- The password hash and the identity of user $1 and the version of the credentials, for checking the current password,
-- and the network of a client with address $2, if the account has signed in from there within the last 30 days. The
-- development admin is found too and has no hash.
SELECT password_hash, credentials_version, identity_issuer, identity_subject, (
           SELECT network::text FROM sign_in_networks
           WHERE user_id = $1 AND network = sign_in_network($2) AND last_sign_in_at > now() - interval '30 days'
       ) AS known_network
FROM users WHERE id = $1 AND NOT is_deleted
