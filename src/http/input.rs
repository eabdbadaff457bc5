//! What a handler reads from the query or the body of a request, as one value that both the handler and the OpenAPI
//! document use.

use super::params::{ParamDescription, Params};
use super::request::Request;
use crate::error::Error;

/// Where the parameters of an input are, and how they are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The query of the URL.
    Query,
    /// A JSON body.
    Json,
    /// A JSON body or an HTML form, see [`Request::json_or_form`].
    JsonOrForm,
    /// A `multipart/form-data` body. The handler reads its parts itself, because a file must not be kept in memory.
    Multipart,
}

/// Parameters of type `T` in a query, in JSON or in an HTML form: where they are, and the function that reads them.
pub struct Input<T> {
    encoding: ReadableEncoding,
    read: fn(&mut Params) -> T,
}

/// The encodings that [`Input::read`] can read.
#[derive(Clone, Copy)]
enum ReadableEncoding {
    Query,
    Json,
    JsonOrForm,
}

/// The fields of a multipart form. Only the OpenAPI document calls the function, to learn which fields there are: a
/// file must not be kept in memory, so the handler goes through the parts of the form itself.
pub struct FormInput(pub fn(&mut Params));

impl<T> Input<T> {
    pub const fn query(read: fn(&mut Params) -> T) -> Input<T> {
        Input { encoding: ReadableEncoding::Query, read }
    }

    pub const fn json(read: fn(&mut Params) -> T) -> Input<T> {
        Input { encoding: ReadableEncoding::Json, read }
    }

    pub const fn json_or_form(read: fn(&mut Params) -> T) -> Input<T> {
        Input { encoding: ReadableEncoding::JsonOrForm, read }
    }

    /// Reads the parameters of a request. Fails with [`Error::Invalid`] if any of them breaks a rule.
    pub fn read(&self, request: &mut Request) -> Result<T, Error> {
        match self.encoding {
            ReadableEncoding::Query => request.query(self.read),
            ReadableEncoding::Json => request.json(self.read),
            ReadableEncoding::JsonOrForm => request.json_or_form(self.read),
        }
    }
}

/// An [`Input`] of any type, for the OpenAPI document.
pub trait DescribedInput: Sync {
    fn encoding(&self) -> Encoding;
    /// The parameters in the order in which they are read.
    fn params(&self) -> Vec<ParamDescription>;
}

impl<T> DescribedInput for Input<T> {
    fn encoding(&self) -> Encoding {
        match self.encoding {
            ReadableEncoding::Query => Encoding::Query,
            ReadableEncoding::Json => Encoding::Json,
            ReadableEncoding::JsonOrForm => Encoding::JsonOrForm,
        }
    }

    fn params(&self) -> Vec<ParamDescription> {
        Params::describe(self.read)
    }
}

impl DescribedInput for FormInput {
    fn encoding(&self) -> Encoding {
        Encoding::Multipart
    }

    fn params(&self) -> Vec<ParamDescription> {
        Params::describe(self.0)
    }
}
