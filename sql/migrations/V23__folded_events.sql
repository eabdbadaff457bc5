-- The events that stand for several, which are few, for stats/daily.sql. A migration of its own, because a registration
-- that runs meanwhile locks the audit log before the tables that V20 locks.
CREATE INDEX audit_events_folded ON audit_events (action, at) WHERE details ? 'count';
