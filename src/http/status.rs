//! The HTTP statuses that the service answers with.

/// The reason phrase that follows the number in the status line (RFC 9110, 15). Clients ignore it.
pub fn reason(status: u16) -> &'static str {
    names(status).0
}

/// The code in the body of an error: a word for programs, one for each status.
pub fn error_code(status: u16) -> &'static str {
    names(status).1
}

/// The reason phrase and the error code; both are empty for statuses that the service does not use.
fn names(status: u16) -> (&'static str, &'static str) {
    match status {
        200 => ("OK", ""),
        201 => ("Created", ""),
        204 => ("No Content", ""),
        206 => ("Partial Content", ""),
        303 => ("See Other", ""),
        304 => ("Not Modified", ""),
        400 => ("Bad Request", "BAD_REQUEST"),
        401 => ("Unauthorized", "UNAUTHORIZED"),
        403 => ("Forbidden", "FORBIDDEN"),
        404 => ("Not Found", "NOT_FOUND"),
        405 => ("Method Not Allowed", "METHOD_NOT_ALLOWED"),
        408 => ("Request Timeout", "REQUEST_TIMEOUT"),
        409 => ("Conflict", "CONFLICT"),
        413 => ("Content Too Large", "PAYLOAD_TOO_LARGE"),
        415 => ("Unsupported Media Type", "UNSUPPORTED_MEDIA_TYPE"),
        416 => ("Range Not Satisfiable", "RANGE_NOT_SATISFIABLE"),
        417 => ("Expectation Failed", "EXPECTATION_FAILED"),
        422 => ("Unprocessable Content", "VALIDATION_ERROR"),
        429 => ("Too Many Requests", "RATE_LIMITED"),
        431 => ("Request Header Fields Too Large", "HEADERS_TOO_LARGE"),
        500 => ("Internal Server Error", "INTERNAL_ERROR"),
        503 => ("Service Unavailable", "SERVICE_UNAVAILABLE"),
        504 => ("Gateway Timeout", "TIMEOUT"),
        505 => ("HTTP Version Not Supported", "HTTP_VERSION_NOT_SUPPORTED"),
        507 => ("Insufficient Storage", "STORAGE_QUOTA_EXCEEDED"),
        _ => ("", ""),
    }
}
