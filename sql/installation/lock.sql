-- Makes processes that start together compare their installation ids one after the other, until the end of the
-- transaction.
LOCK TABLE installation IN EXCLUSIVE MODE
