-- Fails if the B-tree index with oid $1 is damaged: if its entries are out of order, or a row of the table has
-- none (true), without which a look-up misses the row and a unique index lets a second one in. That reads the table
-- once as well. The locks are those of a SELECT.
SELECT FROM bt_index_check($1::oid::regclass, true)
