// The texts about e-mail addresses that wait until they are confirmed.

export const confirmation = {
  title: "Confirm your e-mail address",
  lead: "Enter the password of your Cloakroom account, not that of your mailbox.",
  password: "Password of your account",
  several: "Registered more than once?",
  username: "Username",
  username_hint: "Of the account that is to have this address, if you have registered more than once with it.",
  submit: "Confirm",
  busy: "Confirming…",
  done_title: "Your e-mail address is confirmed",
  done: "You can sign in with it now.",
  sign_in: "Sign in",
  to_profile: "Go to your profile",
  missing_title: "This link is incomplete",
  missing: "Open the whole link from the mail again, or get another mail.",

  mail: {
    title: "Need another link?",
    to: ({ email }) => `It comes in a mail to ${email}.`,
    to_which: "Enter your address, and it comes in a mail.",
    email: "E-mail",
    submit: "Send the mail again",
    busy: "Sending…",
    sent: ({ email }) => `If ${email} still waits to be confirmed, another mail is on its way. Nothing there? Check `
      + "your spam folder, and that the address is right.",
  },

  registered: {
    title: "Check your mail",
    lead: ({ email }) => `A mail to ${email} is on its way. Open the link in it and enter your password, and `
      + "you can sign in.",
    else: "The link works for 48 hours; after that, the account is removed. If you already have an account with this "
      + "address, the mail says so.",
  },
};
