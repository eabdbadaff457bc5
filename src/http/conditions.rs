//! Conditional requests: what a client says about the state it has seen (RFC 9110, 13).

use std::time::SystemTime;

use super::request::Request;
use crate::error::Error;
use crate::model::file::{VersionConditions, version_of_tag};

/// The conditions in the headers of a request. Several headers of one name count as one list. A date that cannot be
/// read is ignored, and so are two dates.
pub struct Conditions<'a> {
    if_match: Option<Tags<'a>>,
    if_none_match: Option<Tags<'a>>,
    if_modified_since: Option<SystemTime>,
    if_unmodified_since: Option<SystemTime>,
}

/// The value of `If-Match` or `If-None-Match`.
enum Tags<'a> {
    /// `*`: whatever there is.
    Any,
    /// Entity tags with their quotes, some of which may be malformed. They are split at commas, which no tag of ours
    /// contains, so a foreign tag with a comma matches nothing, as it should.
    List(Vec<&'a str>),
}

impl<'a> Tags<'a> {
    /// `opaque_tag` returns what of each tag is compared with ours, which are strong.
    fn read(
        request: &Request<'a>,
        header: &str,
        opaque_tag: fn(&'a str) -> &'a str,
    ) -> Option<Tags<'a>> {
        request.header(header)?;
        let tags: Vec<_> = request.elements(header).collect();
        Some(match tags.contains(&"*") {
            true => Tags::Any,
            false => Tags::List(tags.into_iter().map(opaque_tag).collect()),
        })
    }

    /// Whether one of them is `tag`.
    fn contain(&self, tag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::List(tags) => tags.contains(&tag),
        }
    }

    /// The versions of records that they name.
    fn versions(&self) -> Option<Vec<i32>> {
        match self {
            Tags::Any => None,
            Tags::List(tags) => Some(tags.iter().filter_map(|tag| version_of_tag(tag)).collect()),
        }
    }
}

impl<'a> Conditions<'a> {
    pub fn read(request: &Request<'a>) -> Conditions<'a> {
        let date = |header| {
            let mut lines = request.headers(header);
            let (line, second) = (lines.next()?, lines.next());
            httpdate::parse_http_date(line).ok().filter(|_| second.is_none())
        };
        Conditions {
            // Compared strongly: a weak tag, `W/"..."`, is none of ours (RFC 9110, 8.8.3.2).
            if_match: Tags::read(request, "If-Match", |tag| tag),
            // Compared weakly, which ignores that a tag is weak.
            if_none_match: Tags::read(request, "If-None-Match", |tag| {
                tag.strip_prefix("W/").unwrap_or(tag)
            }),
            if_modified_since: date("If-Modified-Since"),
            if_unmodified_since: date("If-Unmodified-Since"),
        }
    }

    /// For `GET` and `HEAD`: whether the client has already what `tag` and `modified`, a time of whole seconds if there
    /// is one, stand for, so that the response is 304. Fails with [`Error::PreconditionFailed`] if the request is about
    /// something else. The order is that of RFC 9110, 13.2.2.
    pub fn is_known(&self, tag: &str, modified: Option<SystemTime>) -> Result<bool, Error> {
        let is_met = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => tags.contain(tag),
            (None, Some(date)) => modified.is_none_or(|modified| modified <= date),
            (None, None) => true,
        };
        if !is_met {
            return Err(Error::PreconditionFailed);
        }
        Ok(match &self.if_none_match {
            Some(_) => self.has_seen(tag),
            None => self
                .if_modified_since
                .zip(modified)
                .is_some_and(|(date, modified)| modified <= date),
        })
    }

    /// Whether `If-None-Match` says that the client has what `tag` stands for.
    pub fn has_seen(&self, tag: &str) -> bool {
        self.if_none_match.as_ref().is_some_and(|tags| tags.contain(tag))
    }

    /// For methods that change a record: what the statement that changes it has to compare.
    pub fn of_version(&self) -> VersionConditions {
        let allowed = self.if_match.as_ref().and_then(Tags::versions);
        let refused = self.if_none_match.as_ref().map(Tags::versions);
        VersionConditions {
            // `If-None-Match: *` asks that there is no record, so no version of it is right.
            allowed: if refused == Some(None) { Some(Vec::new()) } else { allowed },
            refused: refused.flatten().unwrap_or_default(),
            unmodified_since: match &self.if_match {
                Some(_) => None,
                None => self.if_unmodified_since.map(Into::into),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::http::body::Body;

    /// Reads the conditions of a request with these headers, and passes them on.
    fn with<T>(headers: &[(&str, &str)], look: impl FnOnce(Conditions) -> T) -> T {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let head = rouille::Request::fake_http("GET", "/", headers.collect(), Vec::new());
        look(Conditions::read(&Request::new(&head, Body::new(|_, _| Ok(0), None))))
    }

    const DAY_1: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
    const DAY_2: &str = "Fri, 02 Jan 2026 00:00:00 GMT";
    const DAY_3: &str = "Sat, 03 Jan 2026 00:00:00 GMT";

    #[test]
    fn conditions_of_reading_are_compared_in_the_order_of_the_standard() {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_312_000); // DAY_2
        let (met, known, failed) = (Some(false), Some(true), None);
        for (headers, expected) in [
            (&[][..], met),
            (&[("If-Match", "\"7\"")], met),
            (&[("If-Match", "*")], met),
            (&[("If-Match", "\"6\", \"7\"")], met),
            (&[("If-Match", "\"6\""), ("If-Match", "\"7\"")], met),
            (&[("If-Match", "W/\"7\"")], failed),
            (&[("If-Match", "7")], failed),
            (&[("If-Match", "")], failed),
            (&[("If-Match", "\"7\""), ("If-Unmodified-Since", DAY_1)], met),
            (&[("If-Match", "\"6\""), ("If-None-Match", "\"7\"")], failed),
            (&[("If-Unmodified-Since", DAY_1)], failed),
            (&[("If-Unmodified-Since", DAY_2)], met),
            (&[("If-Unmodified-Since", "yesterday")], met),
            (&[("If-Unmodified-Since", DAY_1), ("If-Unmodified-Since", DAY_1)], met),
            (&[("If-None-Match", "\"7\"")], known),
            (&[("If-None-Match", "\"6\",W/\"7\"")], known),
            (&[("If-None-Match", "*")], known),
            (&[("If-None-Match", "\"6\""), ("If-Modified-Since", DAY_3)], met),
            (&[("If-Modified-Since", DAY_1)], met),
            (&[("If-Modified-Since", DAY_2)], known),
        ] {
            let outcome =
                with(headers, |conditions| conditions.is_known("\"7\"", Some(modified)).ok());
            assert_eq!(outcome, expected, "{headers:?}");
        }
        // What has no time of its last change is not compared with one.
        for header in ["If-Unmodified-Since", "If-Modified-Since"] {
            let headers = [(header, DAY_1)];
            let outcome = with(&headers, |conditions| conditions.is_known("\"7\"", None).ok());
            assert_eq!(outcome, met, "{header}");
        }
    }

    #[test]
    fn conditions_of_a_change_name_versions() {
        for (headers, allowed, refused, has_date) in [
            (&[][..], None, vec![], false),
            (&[("If-Match", "*")], None, vec![], false),
            (&[("If-Match", "\"3\", W/\"4\", \"05\", \"x\"")], Some(vec![3]), vec![], false),
            (
                &[("If-Match", "\"3\""), ("If-Unmodified-Since", DAY_1)],
                Some(vec![3]),
                vec![],
                false,
            ),
            (&[("If-None-Match", "W/\"4\"")], None, vec![4], false),
            (&[("If-None-Match", "*")], Some(vec![]), vec![], false),
            (&[("If-Unmodified-Since", DAY_1)], None, vec![], true),
        ] {
            let found = with(headers, |conditions| conditions.of_version());
            let date = found.unmodified_since.is_some();
            assert_eq!(
                (found.allowed, found.refused, date),
                (allowed, refused, has_date),
                "{headers:?}"
            );
        }
    }
}
