-- Records failures. $1: a JSON array of events. An event that is recorded already, because the answer to an earlier
-- attempt was lost, is left out.
INSERT INTO audit_events (at, id, action, outcome, actor_id, subject_type, subject_id, address, request_id, details)
SELECT at, id, action, 'failure', actor_id, CASE WHEN subject_id IS NOT NULL THEN 'user' END, subject_id, address,
       request_id, details
FROM jsonb_to_recordset($1) failure (
    at timestamptz, id uuid, action audit_action, actor_id uuid, subject_id uuid, address inet, request_id uuid,
    details jsonb
)
ON CONFLICT (at, id) DO NOTHING
