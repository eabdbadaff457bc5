//! The features beyond the specification: their endpoints, and what they ask of requests besides.

pub mod tus;

use crate::request::endpoint::Endpoint;
use crate::{
    accounts, archive, audit, changes, confirmation, files, folders, links, partial,
    personal_tokens, provider, second_factor, sessions, undo,
};

type Route = fn(&str, &[&str]) -> Option<Endpoint>;

/// Their endpoints.
pub const EXTRAS: &[Route] = &[
    accounts::extras::route,
    files::extras::route,
    second_factor::route,
    personal_tokens::route,
    sessions::route,
    confirmation::route,
    undo::route,
    folders::route,
    links::route,
    partial::route,
    archive::route,
    changes::route,
    audit::route,
    provider::route,
];
