-- Takes a lock until the end of the transaction, so that processes that start together compare installation ids one
-- after the other.
LOCK TABLE installation IN EXCLUSIVE MODE
