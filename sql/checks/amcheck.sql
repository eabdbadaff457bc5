-- Whether this database user may call the function of the extension amcheck that verifies an index: false if the
-- extension is not installed or not permitted. And the user's name, for a GRANT.
SELECT coalesce(has_function_privilege(to_regprocedure('bt_index_check(regclass, boolean)'), 'EXECUTE'), false)
           AS is_usable,
       quote_ident(current_user) AS role
