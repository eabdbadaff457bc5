// The texts about e-mail addresses that must be confirmed.

export const confirmation = {
  title: "Confirm your e-mail address",
  lead: "Enter the password that you have chosen for your Cloakroom account, not that of your mailbox.",
  password: "Password of your account",
  another: "Want another username?",
  username: "Username",
  username_hint: "For a new account, in place of the one you have registered with. 3 to 50 letters, digits and "
    + "underscores.",
  submit: "Confirm",
  busy: "Confirming…",
  done_title: "Your e-mail address is confirmed",
  done: "You can sign in with it now.",
  sign_in: "Sign in",
  to_profile: "Go to your profile",
  missing_title: "This link is incomplete",
  missing: "Copy the whole link from the mail and paste it here. If you have no mail, register again, or ask again for "
    + "the new address in your profile.",

  registered: {
    lead: ({ email }) => `A mail to ${email} is on its way. Open the link in it and enter your password, and `
      + "your account is made.",
    else: "The link works for 48 hours. If you already have an account with this address, the mail says so. Nothing "
      + "there? Check your spam folder, and that the address is right; then register again.",
  },
};
