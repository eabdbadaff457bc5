# URL is that of the service, TOKEN an access token or a personal access token.
curl --fail-with-body "$URL/api/v1/uploads" -H "Authorization: Bearer $TOKEN" \
  -F 'file=@report.pdf;type=application/pdf' -F 'description=Quarterly report'
