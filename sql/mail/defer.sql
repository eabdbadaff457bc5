-- Stores that attempt $2 to send message $1 failed. $3: the reason; $4: whether another attempt makes sense; $5:
-- whether the mail server cannot be used, whatever the recipient. The pause before the next attempt doubles each time,
-- from ten seconds to fifteen minutes. A message is given up if no attempt makes sense or it is a day old; its row
-- stays for the operator, without address and token, unless the program removes it. Returns whether it was given up. No row means that another process
-- has taken the message since.
WITH failed AS (
    SELECT id, NOT $4 OR created_at <= now() - interval '1 day' AS is_given_up FROM outbox WHERE id = $1
)
UPDATE outbox
SET error = $3, waits_for_server = $5 AND NOT is_given_up,
    due_at = now() + least(interval '10 seconds' * 2 ^ least(attempts - 1, 7), interval '15 minutes'),
    failed_at = CASE WHEN is_given_up THEN now() END,
    address = CASE WHEN NOT is_given_up THEN address END,
    email_key = CASE WHEN NOT is_given_up THEN email_key END,
    network = CASE WHEN NOT is_given_up THEN network END,
    sealed_token = CASE WHEN NOT is_given_up THEN sealed_token END
FROM failed
WHERE outbox.id = failed.id AND attempts = $2 AND failed_at IS NULL
RETURNING is_given_up
