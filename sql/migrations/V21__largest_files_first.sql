-- The order by size that is asked for most begins with the largest files, and those of one size are in the order of
-- their ids in both directions. An index has only one of the two orders without sorting all files of one size.
DROP INDEX files_size;
CREATE INDEX files_size ON files (user_id, file_size DESC, id);
