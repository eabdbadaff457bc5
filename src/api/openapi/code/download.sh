# Goes on where an interrupted download has stopped: curl sends `Range: bytes=<size so far>-`.
curl --fail "$URL/api/v1/uploads/$FILE_ID/download" -H "Authorization: Bearer $TOKEN" \
  --continue-at - --output report.pdf
