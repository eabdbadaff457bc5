//! The answer to `ListObjectsV2`, an XML document, of which only a few elements matter. Keys are asked for in percent-
//! encoded form, so they contain no entities of XML.

use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::model::timestamp::Timestamp;

/// One object of a listing.
pub struct ListedObject {
    pub key: String,
    /// In bytes.
    #[cfg_attr(not(feature = "tools"), expect(dead_code, reason = "only tools compare sizes"))]
    pub size: u64,
    /// When it was stored.
    pub modified: Timestamp,
}

impl ListedObject {
    /// How long ago it was stored; zero if the clock of the store is ahead.
    pub fn age(&self) -> Duration {
        (Timestamp::now().0 - self.modified.0).try_into().unwrap_or_default()
    }
}

/// A part of a listing, in the order of keys.
pub struct ListedPage {
    pub objects: Vec<ListedObject>,
    /// Whether more keys follow the last one.
    pub is_truncated: bool,
}

/// Parses the answer. `None` if it is not one.
pub fn parse(xml: &str) -> Option<ListedPage> {
    let (_, body) = xml.split_once("<ListBucketResult")?;
    let is_truncated = element(body, "IsTruncated")? == "true";
    let objects = body.split("<Contents>").skip(1).map(object).collect::<Option<Vec<_>>>()?;
    // The next page begins after the last key of this one.
    (!is_truncated || !objects.is_empty()).then_some(ListedPage { objects, is_truncated })
}

fn object(xml: &str) -> Option<ListedObject> {
    let (xml, _) = xml.split_once("</Contents>")?;
    Some(ListedObject {
        key: percent_decode_str(element(xml, "Key")?).decode_utf8().ok()?.into_owned(),
        size: element(xml, "Size")?.parse().ok()?,
        modified: Timestamp::parse(element(xml, "LastModified")?)?,
    })
}

/// The text of the first element with this name.
pub fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text.trim())
}

#[cfg(test)]
mod tests {
    use percent_encoding::NON_ALPHANUMERIC;

    use super::*;

    #[test]
    fn a_listing_has_keys_sizes_and_times() {
        let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                   <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><Prefix>a</Prefix>\
                   <IsTruncated>true</IsTruncated><Contents><Key>a%2Fb%20c</Key>\
                   <LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;x&quot;</ETag><Size>7</Size>\
                   </Contents></ListBucketResult>";
        let page = parse(xml).filter(|page| page.is_truncated);
        let found = page.and_then(|page| page.objects.into_iter().next());
        let found =
            found.map(|object| (object.key, object.size, object.modified.0.unix_timestamp()));
        assert_eq!(found, Some(("a/b c".to_owned(), 7, 1_767_323_045)));
    }

    #[test]
    fn an_answer_that_is_cut_or_another_one_is_none() {
        let whole = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key>\
                     <LastModified>2026-01-02T03:04:05Z</LastModified><Size>7</Size></Contents></ListBucketResult>";
        assert!(parse(whole).is_some_and(|page| page.objects.len() == 1));
        for bad in [
            "",
            "<html></html>",
            "<ListBucketResult></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            &whole.replace("7", "x"),
            &whole.replace("2026", "later"),
            &whole.replace("</Contents>", ""),
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn fuzz_listings() {
        let shown = |page: &ListedPage| {
            let shown = |o: &ListedObject| (o.key.clone(), o.size, o.modified.text());
            (page.is_truncated, page.objects.iter().map(shown).collect::<Vec<_>>())
        };
        fuzz::check("listing", move |input| {
            let Some(page) = parse(&String::from_utf8_lossy(input)) else { return };
            let (is_truncated, objects) = shown(&page);
            assert!(!is_truncated || !objects.is_empty());
            let object = |(key, size, modified): &(String, u64, String)| {
                let key = percent_encoding::utf8_percent_encode(key, NON_ALPHANUMERIC);
                format!(
                    "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{modified}</LastModified></Contents>"
                )
            };
            let objects_again: String = objects.iter().map(object).collect();
            let again = format!(
                "<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{objects_again}"
            );
            assert_eq!(parse(&again).as_ref().map(shown), Some((is_truncated, objects)));
        });
    }
}
