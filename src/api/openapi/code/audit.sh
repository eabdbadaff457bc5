# Prints the refused sign-ins, a page a line, until a page names no `next`.
query='action=auth.login&outcome=failure&limit=100' before=
while page=$(curl --fail -sS "$URL/api/v1/admin/audit?$query$before" -H "Authorization: Bearer $TOKEN"); do
  printf '%s\n' "$page"
  next=$(printf '%s' "$page" | sed -n 's/.*"next":"\([^"]*\)".*/\1/p')
  [ -n "$next" ] || break
  before="&before=$next"
done
