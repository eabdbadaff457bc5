-- Moves files that lie in folder `source` or below it to `target` or below that, at most 1,000. The caller has locked
-- the user's row, and `target` is not in or below `source`. Returns how many it moved, or null if nothing lies there,
-- how many remain, and instead why nothing can be moved: a folder would be `too long`, or it is `ambiguous` which of so
-- many files are still to be moved, because what was moved lies below `source` again.
CREATE FUNCTION move_folder(of_user uuid, source text, target text,
                            OUT moved bigint, OUT remaining bigint, OUT problem text)
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    longest integer;
    deepest integer;
BEGIN
    -- Not by a regular expression: that would take half a millisecond of each folder.
    SELECT sum(files), max(octet_length(moved_to)), max(length(moved_to) - length(replace(moved_to, chr(1), '')))
    INTO remaining, longest, deepest
    FROM folder_totals, concat(target, substr(folder, length(source) + 1)) moved_to
    WHERE user_id = of_user AND folder >= source AND folder < after_folder(source);
    IF longest > 1000 OR deepest > 16 THEN
        problem := 'too long';
    ELSIF remaining > 1000 AND starts_with(source, target) AND EXISTS (
        SELECT FROM folder_totals
        WHERE user_id = of_user AND folder >= source || substr(source, length(target) + 1)
          AND folder < after_folder(source || substr(source, length(target) + 1))
    ) THEN
        problem := 'ambiguous';
    ELSIF remaining > 0 THEN
        UPDATE files SET folder = target || substr(folder, length(source) + 1), updated_at = now()
        WHERE id = ANY (ARRAY(SELECT id FROM files
                              WHERE user_id = of_user AND folder >= source AND folder < after_folder(source)
                              ORDER BY folder, upload_date DESC, id LIMIT 1000));
        GET DIAGNOSTICS moved = ROW_COUNT;
        remaining := remaining - moved;
    END IF;
END
$$;

-- Deletes files that lie in this folder or below it, at most 1,000, as delete_files does. Returns how many it deleted,
-- and how many remain.
CREATE FUNCTION delete_folder(of_user uuid, source text, is_restorable boolean, most_bytes bigint, most_files bigint,
                              most_remembered bigint, OUT deleted bigint, OUT remaining bigint)
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    SELECT count(*) INTO deleted
    FROM delete_files(of_user, ARRAY(SELECT id FROM files
                                     WHERE user_id = of_user AND folder >= source AND folder < after_folder(source)
                                     ORDER BY folder, upload_date DESC, id LIMIT 1000),
                      is_restorable, most_bytes, most_files, most_remembered);
    SELECT coalesce(sum(files), 0) INTO remaining
    FROM folder_totals WHERE user_id = of_user AND folder >= source AND folder < after_folder(source);
END
$$;

-- A folder as clients write it.
CREATE FUNCTION folder_path(folder text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT '/' || translate(left(folder, -1), chr(1), '/')
$$;
