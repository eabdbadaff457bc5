//! Limits of the codes of a second factor.

use std::time::Duration;

use uuid::Uuid;

use super::{BucketOwner, Limit, refuse};
use crate::auth::token_bucket::BucketDecision;
use crate::error::Error;
use crate::http::client_address::provider_network;
use crate::request::context::RequestContext;

/// Gives a sign-in its tokens back that lacks only the code of the second factor, if that has not happened too often
/// for the account. Then a user who signs in with a code needs no more of the limit than others.
pub fn refund_missing_code(context: &mut RequestContext, account: Uuid) {
    let Some(taken) = context.taken.take() else { return };
    let app = context.app;
    let network = provider_network(context.client);
    let (name, tokens, buckets) = Limit::MissingCodes.row(app);
    let key = (name, BucketOwner::User(account));
    if !buckets.take(&key, network, tokens, app.started.elapsed()).allowed {
        return;
    }
    taken.give_back();
    if let Some(shown) = &mut context.limit {
        let interval = app.buckets.minute.interval(shown.limit);
        shown.remaining = shown.limit.min(shown.remaining + 1);
        shown.full_in = shown.full_in.saturating_sub(interval);
    }
}

/// The error of a request with a code of a second factor, after too many wrong ones from the client's network; the
/// headers of the response say so too. The database counts those, because several processes must not allow more:
/// `sql/second_factor/count_wrong_code.sql` has the limit.
pub fn refuse_code(context: &mut RequestContext, wait: Duration) -> Error {
    let (limit, full_in, retry_in) = (10, wait, wait);
    let decision = BucketDecision { allowed: false, limit, remaining: 0, full_in, retry_in };
    refuse(context, "second-factor", decision)
}
