// What the service offers and takes in its present settings.

/**
 * `{ registration, passwordResets, emailConfirmation, types, spellings, fileBytes, trashDays, userBytes, userFiles }`:
 * whether people may make accounts of their own and ask for links to new passwords, and must confirm addresses, the
 * media types of files, all names under which files of these types may be sent, the most bytes of a file, for how many
 * days deleted files can be restored, and the most bytes and files of an account that has no limits of its own. The
 * service writes it into the page.
 */
export const service = JSON.parse(document.getElementById("service").textContent);
