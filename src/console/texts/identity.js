// The texts about the OpenID provider, by which people sign in.

export const identity = {
  sign_in: ({ provider }) => `Sign in with ${provider}`,
  new_account: "Your account is made when you first sign in this way.",
  admins: "Administrators sign in with a password",
  as: ({ provider }) => `At ${provider} you are`,
  nameless: ({ provider }) => `${provider} has confirmed who you are, and has told no name.`,
  confirm: ({ provider }) => `Confirm with ${provider}`,
  confirm_instead: ({ provider }) => `Confirm with ${provider} instead`,
  use_password: "Use the password",
  first: "Confirm who you are first.",
  used_up: "That confirmation is used up or too old. Confirm again.",
  sign_out: ({ provider }) => `Sign out at ${provider}`,
  still: ({ provider }) => `You are signed out here. At ${provider} you may still be signed in.`,

  errors: ({ provider }) => ({
    PROVIDER_REQUIRED: `Only administrators sign in with a password here. Sign in with ${provider}.`,
    PROVIDER_UNAVAILABLE: `${provider} cannot be reached at the moment.`,
    INVALID_CODE: identity.used_up,
    CODE_NOT_FRESH: `${provider} has not asked you to sign in just now.`,
    IDENTITY_IN_USE: "Another account here already has this identity. Sign in with it, and disconnect it there.",
    IDENTITY_PRESENT: "Your account is already connected to another identity. Disconnect that first.",
    IDENTITY_NOT_FOUND: "There is no identity to disconnect any more.",
    PASSWORD_MISSING: "Your account has no password. Choose one first.",
    FOREIGN_DOMAIN: "Accounts are made for addresses of other domains only. Ask an administrator for an invitation.",
    EMAIL_NOT_VERIFIED: `${provider} has not confirmed your e-mail address, so no account can be made for you. Confirm `
      + "it there, or ask an administrator for an invitation.",
  }),

  page: {
    title: "Sign in",
    waiting: "Signing in…",
    code_title: "Enter your code",
    code_lead: "Your account has a second factor.",
    submit: "Sign in",
    busy: "Signing in…",
    failed: "That did not work",
    again: "Try again",
    back: "Go back",
    reasons: ({ provider }) => ({
      denied: `You have not signed in at ${provider}, or ${provider} has refused it.`,
      expired: "That took too long, or was used already. Begin again.",
      unavailable: `${provider} cannot be reached at the moment. Try again in a few minutes.`,
      invalid: `What ${provider} has answered cannot be used. Try again, and if that does not help, tell whoever runs `
        + "this service.",
    }),
    request: ({ id }) => `For whoever runs this service, whose log names the causes: request ${id}.`,
    unable: ({ provider }) => `${provider} may not be able to confirm who you are anew. Then use your password. If you `
      + "have none, sign out and ask for a link by e-mail, which sets one.",
    unknown_title: "Begin again here",
    unknown: "This was begun in another tab or browser, or has been used already.",
    no_account_title: "No account yet",
    no_account: "No account here belongs to this identity.",
    no_account_join: "Sign in with your password, and connect it under Account. If you have no account, ask an "
      + "administrator for an invitation.",
    no_account_link: "If you have an account, ask for a link by e-mail and connect it there. If not, ask an "
      + "administrator for an invitation.",
    email_taken: "There is already an account with your e-mail address.",
    to_sign_in: "Go to sign-in",
    to_link: "Ask for a link",
  },

  reset: {
    use: ({ provider }) => `Use ${provider} instead`,
    ends: ({ provider }) => `If your account is connected to ${provider}, a new password ends that.`,
    title: "Connect your account",
    lead: "From now on you sign in with this identity. You are signed out everywhere, and links to your files end. "
      + "Go on only if you have asked for this link yourself.",
    submit: "Connect",
    busy: "Connecting…",
    other: "Use another identity",
    done_title: "Your account is connected",
    done: "Sign in with your identity now.",
  },

  account: {
    lead: ({ provider }) => `Signing in with ${provider} in place of a password.`,
    apart_title: "Not connected",
    apart: "Once your account is connected, you can sign in without a password.",
    connect: ({ provider }) => `Connect ${provider}`,
    join_title: "Connect this identity?",
    join_lead: "Whoever signs in with it can then use your account.",
    password: "Current password",
    join: "Connect",
    joining: "Connecting…",
    joined: "Your account is connected.",
    refused: ({ sentence }) => `${sentence} Nothing has been connected. Begin again.`,
    joined_title: "Connected",
    is_joined: ({ provider }) => `You can sign in with ${provider}.`,
    leave_title: "Disconnect",
    leave_lead: "After that, you sign in with your password. Sessions that were opened without it end, and so do all "
      + "personal access tokens.",
    leave_locked: "Only administrators sign in with a password here: after that, only a link by e-mail lets you in. "
      + "Your other sessions may end, and all personal access tokens do.",
    no_password: "This is your only way to sign in, because your account has no password. To disconnect, first",
    choose: "choose a password",
    leave: "Disconnect",
    leaving: "Disconnecting…",
    left: "Your account is disconnected.",
    left_here: "Your account is disconnected. Sign in with your password.",
  },
};
