-- Records an export of users before its first byte is sent. $1, $2, $3: actor (null for an anonymous one), address and
-- request id; $4: how many rows it has; $5: whether only some users were asked for.
INSERT INTO audit_events (action, actor_id, address, request_id, details)
VALUES ('users.export', $1, $2, $3, jsonb_build_object('rows', $4::bigint, 'is_filtered', $5::boolean))
