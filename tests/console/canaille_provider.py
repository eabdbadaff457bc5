"""Usage: canaille_provider.py PORT REDIRECT_URI

Canaille, an OpenID provider for companies, with its defaults and nothing stored: people ann and bob, whose password is
`correct horse battery`, and the client `cloakroom`. It runs in the Python environment that `identities_canaille.py`
makes."""

import datetime
import sys


def main(port, redirect_uri):
    # pylint: disable=import-outside-toplevel  # pytest looks at this file too, where there is no Canaille
    from canaille import create_app
    from canaille.app import models
    from canaille.backends import Backend
    from joserfc.jwk import RSAKey
    from werkzeug.serving import run_simple

    key = RSAKey.generate_key(2048, auto_kid=True).as_dict(private=True)
    app = create_app({
        "SECRET_KEY": "a key of the tests",
        "SERVER_NAME": f"127.0.0.1:{port}",
        "PREFERRED_URL_SCHEME": "http",
        "CANAILLE": {"DATABASE": "memory"},
        "CANAILLE_OIDC": {"ACTIVE_JWKS": [key]},
    })
    with app.app_context(), Backend.instance.session():
        for name in ("ann", "bob"):
            Backend.instance.save(models.User(
                user_name=name, formatted_name=f"Dr {name}", family_name=name, emails=[f"{name}@example.com"],
                password="correct horse battery"))
        client = models.Client(
            client_id="cloakroom", client_secret="secret", client_name="Cloakroom", redirect_uris=[redirect_uri],
            grant_types=["authorization_code"], response_types=["code"], scope=["openid", "profile", "email"],
            token_endpoint_auth_method="client_secret_basic", client_id_issued_at=datetime.datetime.now(datetime.UTC))
        Backend.instance.save(client)
        client.audience = [client]
        Backend.instance.save(client)
    run_simple("127.0.0.1", int(port), app, threaded=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
