-- The networks from which each account has signed in lately. Too many failed sign-ins with a name are refused from
-- everywhere else, so a stranger who causes them cannot keep the owner out.
CREATE TABLE sign_in_networks (
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    network cidr NOT NULL,
    last_sign_in_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, network)
);

CREATE INDEX sign_in_networks_last_sign_in_at ON sign_in_networks (last_sign_in_at);

-- The network of a client: the /24 of an IPv4 address, the /48 of an IPv6 address. A person's address changes within
-- such a network, for instance when a router reconnects, and hardly anybody else's is in it.
CREATE FUNCTION sign_in_network(address inet) RETURNS cidr LANGUAGE sql IMMUTABLE AS $$
    SELECT network(set_masklen(address, CASE family(address) WHEN 4 THEN 24 ELSE 48 END))
$$;

-- Networks are personal data and go with the account. A trigger does it and not the statements that delete accounts: it
-- looks anew, so it sees the network of a login that was committed while the deletion waited for the user's row.
CREATE FUNCTION forget_sign_in_networks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sign_in_networks WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_forget_sign_in_networks AFTER UPDATE OF is_deleted ON users FOR EACH ROW
WHEN (NEW.is_deleted)
EXECUTE FUNCTION forget_sign_in_networks();
