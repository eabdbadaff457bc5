-- The networks from which each account has signed in lately. After too many failed sign-ins with a name, further ones
-- are refused except from these networks, so a stranger who causes the failures cannot lock the owner out.
CREATE TABLE sign_in_networks (
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    network cidr NOT NULL,
    last_sign_in_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, network)
);

CREATE INDEX sign_in_networks_last_sign_in_at ON sign_in_networks (last_sign_in_at);

-- The network of a client: the /24 of an IPv4 address, the /48 of an IPv6 address. When a person's address changes, for
-- instance because a router reconnects, it often stays in this network, and an attacker's address is rarely in it.
CREATE FUNCTION sign_in_network(address inet) RETURNS cidr LANGUAGE sql IMMUTABLE AS $$
    SELECT network(set_masklen(address, CASE family(address) WHEN 4 THEN 24 ELSE 48 END))
$$;

-- Networks are personal data, which is deleted with the account. A trigger does this and not the statements that delete
-- accounts, because its statement takes a new snapshot: it sees the network of a login that was committed while the
-- deletion waited for the user's row.
CREATE FUNCTION forget_sign_in_networks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sign_in_networks WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER users_forget_sign_in_networks AFTER UPDATE OF is_deleted ON users FOR EACH ROW
WHEN (NEW.is_deleted)
EXECUTE FUNCTION forget_sign_in_networks();
