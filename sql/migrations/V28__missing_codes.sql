-- Sign-ins that lacked only the code of a second factor, which are no refusals: stats/daily.sql subtracts them from the
-- failed ones, which it counts in an index alone.
CREATE INDEX audit_events_missing_code ON audit_events (at) WHERE details ->> 'reason' = 'second_factor_required';
